"""Signals of likeness to the right answer, token by token."""

from __future__ import annotations

import math
from typing import Any

from measured import Part, measured, near, of_turns
from own_words import thinking, thoughts_of
from plain import mean, reference

from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.trainers.learn.collate import collate


@reference("signal", "bmas")
def bmas(signal: Part) -> None:
    """Cosines of the rows of the embedding, each token of one side with the best of the other; after thoughts, of the last turn alone."""
    batch, groups, see = thinking()
    model: Any = see.learner.model
    rows = [[float(x) for x in row] for row in model.get_input_embeddings().weight.tolist()]

    def cosine(i: int, j: int) -> float:
        a, b = rows[i], rows[j]
        length = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
        return sum(x * y for x, y in zip(a, b, strict=True)) / length

    wanted: list[list[float]] = []
    for group in groups:
        shown = run_episodes([Request(group[0].task, group[0].seed)], scripted("gold"))[0]
        answer = see.renderer.reply_ids(shown.trajectory.turns[-1].action)
        for one in group:
            turns, worth = one.trajectory.turns, 0.0
            if turns:
                said = turns[-1].reply.action_ids
                words = said[thoughts_of(see, said) :]
                if words:
                    worth += mean([max(cosine(i, j) for j in answer) for i in words]) / 2
                    worth += mean([max(cosine(i, j) for i in words) for j in answer]) / 2
            wanted.append([worth] * len(turns))
    found = measured(signal, see, batch, groups)
    near(of_turns(found.turn["bmas"], batch), wanted, "bmas", 1e-6)
    flat = [x for one in wanted for x in one]
    assert 0.0 in flat, "one says nothing but thoughts"
    assert len({*flat}) > 2
    empty = measured(signal, see, collate([[groups[1][2]]]), [[groups[1][2]]])
    assert empty.turn["bmas"].shape == (1, 0)
