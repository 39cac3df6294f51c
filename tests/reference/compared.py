"""Judges that compare two attempts, or let somebody answer again: with answers by a server."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from judged import asked, chance, judged_groups, told
from law import LAWS
from plain import reference, refuses
from played import Part
from ragged import Ragged

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import run_episodes
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Messages
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import transcript
from turnwise.trainers.kit.toy_batches import turn_batch
from turnwise.trainers.strategy.runner import plan_groups

SUITE = "shop/quick"


def playing(group: Group) -> list[int]:
    return [i for i, one in enumerate(group) if one.outcome.counts and one.trajectory.turns]


def pair_in(question: str) -> tuple[str, str]:
    first, second = re.findall(r"=== Attempt [AB]\n(.*?)(?=\n\n=== Attempt|\n\nExplain)", question, re.DOTALL)
    return first, second


SALT = [0]
"""Of the server's answers."""


def given(question: str) -> tuple[int, int] | None:
    """Points that a server gives to both; None: nothing that can be read."""
    rng = chance(question, SALT[0])
    return None if rng.random() < 0.2 else (rng.randrange(3), rng.randrange(3))


def in_points(question: str, before: int) -> str:
    said = given(question)
    return "I cannot say." if said is None else f"So.\nPOINTS: {said[0]} {said[1]}"


def of_pair(questions: Sequence[str], one: Episode, two: Episode) -> tuple[float, float]:
    """Points of the first and the second of a pair, as they were asked about in this order."""
    shown = transcript(one), transcript(two)
    question = next(q for q in questions if pair_in(q) == shown)
    return given(question) or (5, 5)


def groups_to_compare() -> list[Group]:
    """Groups of several sizes; in one nobody counts, in one there is a single attempt."""
    groups = judged_groups()
    lost = [dataclasses.replace(one, outcome=Outcome.INFRA_ERROR) for one in groups[0]]
    return [*groups, groups[0][:1], [*lost]]


def unjudged(before: Group, after: Group) -> None:
    for i, (one, other) in enumerate(zip(before, after, strict=True)):
        assert (other is one) == (i not in playing(before))


@reference("judge", "writing_zero", policy=["another"])
def writing_zero(judge: Part, policy: str = "") -> None:
    groups, references, won = groups_to_compare(), set[int](), set[float]()
    for salt in range(10):
        SALT[0] = salt
        groups = [[dataclasses.replace(one, seed=one.seed + salt) for one in group] for group in groups]
        found, questions = asked(judge, groups, in_points)
        for before, after in zip(groups, found, strict=True):
            unjudged(before, after)
            members = playing(before)
            values = {i: after[i].trajectory.turns[0].signals["against_one"] for i in members}
            assert [x for x in values.values() if x == 0] == [0.0][: len(members)]
            for i in members:
                assert {turn.signals["against_one"] for turn in after[i].trajectory.turns} == {values[i]}
            against = next((i for i in members if values[i] == 0), None)
            references.add(-1 if against is None else members.index(against))
            for i in members:
                if i == against or against is None:
                    continue
                a, b = of_pair(questions, before[i], before[against])
                d, c = of_pair(questions, before[against], before[i])
                won.add(values[i])
                assert values[i] == (1.0 if a > b and c > d else -1.0)
        assert len(questions) == sum(2 * max(0, len(playing(group)) - 1) for group in groups)
        again, _ = asked(judge, groups, in_points)
        assert told(again, "against_one") == told(found, "against_one")
    assert {0, 1} <= references
    assert won == {1.0, -1.0}


def filter_law_with_bounds(name: str, part: Part, formula: Part) -> None:
    LAWS["filter"](name, part, formula)
    batch = turn_batch([[1.0], [-1.0], [0.5]], [0, 0, 1])
    refuses(lambda: part(batch, batch.reward_BK, most=-0.1))
    assert part(batch, batch.reward_BK, most=0.0).tolist() == [1.0, 1.0, 0.0]
    assert part(batch, batch.reward_BK, most=0.5).tolist() == [1.0, 1.0, 1.0]


@reference("filter", "writing_zero", law=filter_law_with_bounds, most=[0.2, 0.0])
def writing_zero_filter(r: Ragged, A: Any, most: float = 0.6) -> list[float]:
    return [
        float(abs(sum(r.returns[j] for j in r.peers(i))) / len(r.peers(i)) <= most) for i in range(len(r))
    ]


@reference("judge", "csv", policy=["another"])
def csv(judge: Part, policy: str = "self") -> None:
    """Gold's last act, said again as it was or as something else; one lookup brought nothing, one episode failed."""
    groups: list[Group] = [run_episodes(plan, scripted("gold")) for plan in plan_groups(SUITE, 3, 4)]
    groups = [[dataclasses.replace(one, seed=one.seed) for one in group] for group in groups]
    groups[0] = [*groups[0][:3], dataclasses.replace(groups[0][3], end=EndReason.FAILED)]
    quiet = groups[1][0]
    turns = [quiet.trajectory.turns[0]] + [
        dataclasses.replace(turn, observation=Messages()) for turn in quiet.trajectory.turns[1:]
    ]
    silent = dataclasses.replace(quiet.trajectory, turns=tuple(turns))
    groups[1] = [dataclasses.replace(quiet, trajectories={"agent": silent}), *groups[1][1:]]
    groups[2] = [dataclasses.replace(groups[2][0], outcome=Outcome.INFRA_ERROR), *groups[2][1:]]
    acts = {g: str(group[1].trajectory.turns[-1].action) for g, group in enumerate(groups)}

    tasks = [str(group[1].trajectory.turns[0].observation[-1].content) for group in groups]
    good: list[bool] = []  # an assertion within the server would only make it be asked again

    def again(question: str, before: int) -> str:
        asked_of = [g for g, group in enumerate(groups) if tasks[g] in question]
        g = asked_of[0] if asked_of else 0
        told_ = [m.content for turn in groups[g][1].trajectory.turns[1:] for m in turn.observation]
        good.append(len(asked_of) == 1 and all(text in question for text in told_))
        return ("I don't know", f"<think>hm</think> {acts[g]}\n", "go")[(before + g) % 3]

    found, questions = asked(judge, groups, again)
    assert all(good)
    count = 0
    for g, (group, after) in enumerate(zip(groups, found, strict=True)):
        for i, (one, other) in enumerate(zip(group, after, strict=True)):
            if not one.outcome.counts:
                assert other is one
                continue
            values = {turn.signals["csv"] for turn in other.trajectory.turns}
            assert len(values) == 1
            if not one.success or (g, i) == (1, 0):
                assert values == {0.0}
            count += values == {1.0}
    assert len(questions) == 3 + 3 + 3
    assert count == sum((n + g) % 3 == 1 for g in range(3) for n in range(3))
    nothing = [[dataclasses.replace(one, end=EndReason.FAILED) for one in groups[0]]]
    (unasked,) = asyncio.run(judge(nothing))
    assert all(turn.signals["csv"] == 0 for one in unasked for turn in one.trajectory.turns)
