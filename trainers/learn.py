"""What one update learns: signals, credit, and the learner's steps."""

from __future__ import annotations

from turnwise.tasks.core import derive_rng
from turnwise.trainers.collate import collate
from turnwise.trainers.measure import Past, measure
from turnwise.trainers.parts import Parts
from turnwise.trainers.rollouts import Sample
from turnwise.trainers.setup import Studio
from turnwise.trainers.token_credit import on_turns


def learn(
    studio: Studio, parts: Parts, played: Sample, past: Past, update: int
) -> tuple[list[list[float]], dict[str, float]]:
    """Train on what the filter kept. Returns the advantages, one per turn of each episode, and metrics.

    ``past`` is the run's memory of its tasks; it is brought up to date.
    """
    if not played.kept:
        return [], {}
    training = played.training
    batch, metrics = measure(studio, collate(training), training, past)
    credit = parts.credit(batch.turns)
    order = list(range(len(batch.turns.group_B)))
    derive_rng("minibatches", studio.recipe.seed, update).shuffle(order)
    metrics |= studio.learner.update(batch, credit, parts.objective, order=order)
    advantage_BK, lengths = on_turns(credit, batch.turns), batch.turns.length_B.tolist()
    return [row[:n] for row, n in zip(advantage_BK.tolist(), lengths, strict=True)], metrics
