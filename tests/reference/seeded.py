"""The guide that shows solved tasks that are alike: which ones, to whom, and what it remembers."""

from __future__ import annotations

import dataclasses
import json
from itertools import product
from random import Random
from typing import Any

from helped import Part, actions
from plain import reference, refuses
from rows_helped import SIZE, Knowing, learned_under, on_riddles, sampled_under, source_of, strewn

from turnwise.agents.core import Episode
from turnwise.envs.core import EndReason
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer

ALIKE = (
    ["RIDDLE", "of two words"],
    ["riddle one", "older"],
    ["nothing of it", "unlike"],
    ["two riddle", "newer"],
    ["riddle riddle riddle", "of two words, too"],
    ["of another riddle", "of five"],
)


def likest(prompt: str, known: list[list[str]], shots: int) -> list[list[str]]:
    """One after the other, whoever shares most words; of equals the last."""

    def share(task: str) -> float:
        mine, its = prompt.lower().split(), task.lower().split()
        both = [word for word in {*mine, *its} if word in mine and word in its]
        return len(both) / len({*mine, *its})

    left, found = [*known], list[list[str]]()
    while left and len(found) < shots:
        most = max(share(task) for task, _ in left)
        place = max(i for i, (task, _) in enumerate(left) if share(task) == most)
        found.append(left.pop(place))
    return found


def own(one: Episode) -> bool:
    return one.success and one.outcome.counts and not any(t.reply.source for t in one.trajectory.turns)


@reference("guide", "xrpo", shots=[1, 3, 0], pool=[1, 3, 0])
def xrpo(make: Part, shots: int = 2, pool: int = 64) -> None:
    if min(shots, pool) < 1:
        assert "guide 'xrpo'" in refuses(make)
        return
    assert make().replaces_failures
    guide, rng, kinds = make(), Random(0), set[str]()
    memory, elsewhere = list[list[str]](), {"other/Env": [["Riddle", "nothing"]]}
    guide.restore(PartState({**elsewhere}))
    for update, (seed, words) in enumerate(product((0, 0, 0, 1, 1, 1), (2, "paid"))):
        if update == 3:
            memory = [[f"old {i}", "nothing"] for i in range(70)] + [[*one] for one in ALIKE]
            guide.restore(PartState({"test/Riddle-v0": memory, **elsewhere}))
        given = list[Group]()

        async def helped(player: GuidePlayer, groups: Any, guide: Part = guide, given: Any = given) -> Any:
            for group in groups:
                mixed = strewn(group, rng)
                if rng.random() < 0.6:
                    mixed = [dataclasses.replace(one, end=EndReason.FAILED) for one in mixed]
                given.append(mixed)
            return await guide(player, given)

        found = on_riddles(
            helped, Knowing(lambda hint, plan: rng.random() < 0.7), words=words, update=update, seed=seed,
            size=1 if update == 5 else SIZE, alone=update % 4,
        )  # fmt: skip
        (played,) = found.played
        for n, (old, new) in enumerate(zip(given, found.found, strict=True)):
            prompt = old[0].task.prompt
            known = [one for one in memory if one[0] != prompt]
            counting = [one for one in old if one.outcome.counts]
            open_ = bool(counting) and not any(one.success for one in counting)
            assert (n in played) == (open_ and bool(known))
            if n not in played or n == update % 4:
                kinds.add(
                    "lost"
                    if n in played
                    else "nothing known"
                    if open_
                    else "solved"
                    if counting
                    else "nobody"
                )
                assert new == old
                continue
            kinds |= {"its own is known"} if len(known) < len(memory) else set()
            shown = likest(prompt, known, shots)
            told = "\n\n".join(f"A solved example:\n{task}\n\nHint: {how}" for task, how in shown)
            kinds |= {how for _, how in shown}
            last = max(i for i, one in enumerate(old) if one.outcome.counts)
            kinds |= {"the last row was not played"} if last + 1 < len(old) else set()
            assert [*new] == [*old[:last], *played[n], *old[last + 1 :]]
            assert f"Guess.\n\n{told}<|user|>{prompt}<|" in sampled_under(new[last], found.engine)
            assert "example" not in learned_under(new[last], found.engine)
            assert source_of(new[last]) == "guide/xrpo"
        for group in given:
            solved = [one for one in group if own(one)]
            if solved:
                memory = [*memory, [solved[0].task.prompt, "\n".join(actions(solved[0]))]][-pool:]
        now: Any = guide.state().numbers
        assert now == elsewhere | ({"test/Riddle-v0": memory} if memory else {})
        other = make()
        other.restore(PartState(json.loads(json.dumps({**now}))))
        guide = other
    assert {
        "nothing known",
        "solved",
        "nobody",
        "lost",
        "of two words, too",
        "the last row was not played",
    } <= kinds
    assert "its own is known" in kinds or pool < 64
