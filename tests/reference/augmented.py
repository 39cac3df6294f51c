"""Guides that play all of a group under more text, or all but one of its turns without chance."""

from __future__ import annotations

import asyncio
from typing import Any

from drawn import fair
from helped import Part
from leaving import Forgetful, Thinker, pondering
from plain import reference
from rows_helped import (
    Watched,
)

from turnwise.agents.core import Completion, Episode, Outcome, Sampling
from turnwise.agents.policies.model import ModelPolicy
from turnwise.trainers.core import Group
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups


class Coin(Thinker):
    """Says its seed, and where it takes the likeliest token that it does."""

    async def generate(self, prompt_ids: Any, sampling: Any, *, stop_ids: Any, seed: int) -> Completion:
        text = f"hm {seed if sampling.temperature else 'surely'}"
        ids = (*self.plain.renderer.tokenizer.encode(text, add_special_tokens=False), next(iter(stop_ids)))
        return Completion(ids, (-0.5,) * len(ids), stopped=True)


@reference("guide", "tempflow")
def tempflow(make: Part) -> None:
    pondering()
    parted = list[int]()
    for seed in range(12):
        most, size = ((6, 3), (6, 1), (1, 2), (6, 2))[seed % 4]
        groups = parting(make, most, size, seed, Watched)
        for group in groups:
            (k,) = {drawn_at(one) for one in group}
            parted += [k] if most == 6 else []
            acts = [[str(turn.action) for turn in one.trajectory.turns] for one in group]
            assert len({row[k] for row in acts}) == size, "each draws for itself"
            for one, row in zip(group, acts, strict=True):
                assert len(row) == most
                assert [text == "hm surely" for text in row] == [n != k for n in range(most)]
                assert [turn.weight for turn in one.trajectory.turns] == [float(n == k) for n in range(most)]
                begun = [turn.reply for turn in group[0].trajectory.turns[:k]]
                assert [turn.reply for turn in one.trajectory.turns[:k]] == begun
    for k in range(6):
        fair(parted.count(k), len(parted), 1 / 6)
    first, second = parting(make, 3, 2, 0, Forgetful)
    assert [one.outcome for one in first] == [Outcome.INFRA_ERROR] * 2
    assert {turn.weight for one in first for turn in one.trajectory.turns} == {0.0}
    assert all(one.outcome.counts for one in second)
    for group in parting(make, 3, 2, 0, Watched, room=1):
        assert [(one.outcome, len(one.trajectory.turns)) for one in group] == [(Outcome.LIMIT, 0)] * 2


def parting(
    make: Part, most: int, size: int, seed: int, kind: type[Watched], room: int = 8192
) -> list[Group]:
    engine = Coin("", 1, "")
    engine.context_length = room
    policy = ModelPolicy(engine, engine.plain.renderer, Sampling(max_tokens=200))  # pyright: ignore
    runner = RolloutRunner(policy, as_is)
    player = kind(runner, policy, {}, seed, 0)
    player.played, player.lost, player.alone = [], None, None
    guide = make()
    assert guide.instead
    guide.restore(guide.state())

    async def run() -> list[Group]:
        given = await chain(runner, plan_groups(f"pondering/{most}", 2, size, seed))
        found = await guide(player, given)
        assert [[one.task.id for one in group] for group in found] == [
            [one.task.id for one in group] for group in given
        ]
        return found

    return asyncio.run(run())


def drawn_at(one: Episode) -> int:
    """The turn that is not marked."""
    (k,) = [n for n, turn in enumerate(one.trajectory.turns) if turn.reply.source != "guide/tempflow"]
    return k
