"""Knobs → questions, and suites of episode logs."""

from __future__ import annotations

from random import Random
from typing import get_args

from turnwise.envs.judging import hidden, turns, verdicts
from turnwise.envs.judging.drawing import AttemptPart, Draw, JudgingQuestion
from turnwise.envs.judging.knobs import Ask, JudgingKnobs
from turnwise.envs.judging.recorded import book_of
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Suite, Task

ENV = "turnwise/Judging-v0"
DRAWS: dict[str, Draw] = {**verdicts.DRAWS, **turns.DRAWS, **hidden.DRAWS}
_ATTEMPTS = 300
_NEEDS = {
    "verdict": "solved and unsolved attempts of one length that end in the same kind of act",
    "cut": "solved attempts that go on after their first sentence",
    "score": "solved and unsolved attempts of one length that end in the same kind of act",
    "pair": "attempts at one task that were paid differently",
    "strength": "attempts at one task that were paid differently",
    "rank": "several attempts at one task that were paid differently",
    "step": "turns that a judge has labelled (`judge: gold` in a run, or `python -m turnwise.trainers.lab.labelled LOG OUT`)",
    "first": "turns that a judge has labelled (`judge: gold` in a run, or `python -m turnwise.trainers.lab.labelled LOG OUT`)",
    "chain": "turns that a judge has labelled (`judge: gold` in a run, or `python -m turnwise.trainers.lab.labelled LOG OUT`)",
}


def draw_task(rng: Random, split: Split, **knobs: Json) -> Task:
    """A question about an episode of the split.

    Raises:
        EnvError: the log has none that such a question can be made of.
    """
    chosen = check_knobs(JudgingKnobs, knobs, "judging")
    book = book_of(ENV, chosen.log, split)
    draw = DRAWS[chosen.ask]
    for _ in range(_ATTEMPTS):
        if found := draw(rng, book, chosen):
            return _task(rng, chosen.ask, found)
    raise EnvError(
        f"{chosen.log or 'The shipped log'} has no episode of the {split} split for the question {chosen.ask!r}.",
        f"It is made of {_NEEDS.get(chosen.ask, 'solved attempts of several turns')}.",
    )


def verdict_task(rng: Random, part: AttemptPart) -> Task:
    """Ask of an attempt, up to one of its acts, whether that solved its task."""
    whole = part.turns == len(part.episode.turns)
    return _task(rng, "verdict", verdicts.solves(part, part.episode.solved and whole))


def _task(rng: Random, ask: Ask, found: JudgingQuestion) -> Task:
    offers = rng.sample(found.offers, len(found.offers))
    options = {"ask": ask, "truth": found.truth, "offers": offers}
    return Task(ENV, found.text, options, found.answer)


def log_suite(path: str) -> Suite:
    """The suite ``judging:PATH`` or ``judging:ASK:PATH``: questions about a log's episodes; without a path about the shipped ones.

    >>> log_suite("pair:runs/mine").knobs["ask"], log_suite("step").knobs, log_suite("runs/mine").knobs["log"]
    ('pair', {'ask': 'step', 'log': ''}, 'runs/mine')
    """
    head, _, rest = path.partition(":")
    ask, log = (head, rest) if head in get_args(Ask) else ("verdict", path)
    return Suite(
        f"judging:{path}",
        ENV,
        f"Judging the episodes of {log or 'the shipped log'}: {ask}.",
        {"ask": ask, "log": log},
    )
