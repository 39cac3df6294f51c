"""Judges that compare two attempts, or let somebody answer again: with answers by a server."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import math
import os
import re
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

from judged import asked, chance, judged_groups, told
from law import LAWS
from plain import mean, reference, refuses
from played import Part
from ragged import Ragged

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import run_episodes
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Messages
from turnwise.errors import RunError
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.judge.gold import gold
from turnwise.trainers.judge.principles import QUESTION
from turnwise.trainers.kit.asking import transcript
from turnwise.trainers.kit.toy_batches import turn_batch
from turnwise.trainers.strategy.runner import plan_groups

SUITE = "shop/quick"


def playing(group: Group) -> list[int]:
    return [i for i, one in enumerate(group) if one.outcome.counts and one.trajectory.turns]


def pair_in(question: str) -> tuple[str, str]:
    first, second = re.findall(
        r"=== Attempt [AB]\n(.*?)(?=\n\n=== Attempt|\n\nExplain|\n\nFirst write)", question, re.DOTALL
    )
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
    """Groups of several sizes; in one nobody counts, in one there is a single attempt, in one there are two."""
    groups = judged_groups()
    lost = [dataclasses.replace(one, outcome=Outcome.INFRA_ERROR) for one in groups[0]]
    return [*groups, groups[0][:1], [*lost], [groups[0][0], groups[1][0]]]


def unjudged(before: Group, after: Group) -> None:
    for i, (one, other) in enumerate(zip(before, after, strict=True)):
        assert (other is one) == (i not in playing(before))


@reference("judge", "pref_grpo", policy=["another"], both_orders=[False])
def pref_grpo(judge: Part, policy: str = "", both_orders: bool = True) -> None:
    seen = set[float]()
    for SALT[0] in range(3):
        seen |= rates_of(judge, both_orders)
    assert len(seen) > 3


def rates_of(judge: Part, both_orders: bool) -> set[float]:
    groups, seen = groups_to_compare(), set[float]()
    found, questions = asked(judge, groups, in_points)
    for before, after in zip(groups, found, strict=True):
        unjudged(before, after)
        members = playing(before)
        for i in members:
            wins: list[float] = []
            for j in members:
                if i == j:
                    continue
                low, high = sorted((i, j))
                a, b = of_pair(questions, before[low], before[high])
                if both_orders:
                    d, c = of_pair(questions, before[high], before[low])
                    a, b = a + c, b + d
                if i == high:
                    a, b = b, a
                wins.append(1.0 if a > b else 0.5 if a == b else 0.0)
            rate = mean(wins) if wins else 0.5
            seen.add(rate)
            told_ = [turn.signals["win_rate"] for turn in after[i].trajectory.turns]
            assert all(math.isclose(x, rate) for x in told_)
    pairs = sum(len(playing(group)) * (len(playing(group)) - 1) // 2 for group in groups)
    assert len(questions) == pairs * (1 + both_orders)
    return seen


@reference("judge", "writing_zero", policy=["another"])
def writing_zero(judge: Part, policy: str = "") -> None:
    groups, references, won = groups_to_compare(), set[int](), set[float]()
    for salt in range(10):
        SALT[0] = salt
        groups = [[dataclasses.replace(one, seed=one.seed + salt) for one in group] for group in groups]
        found, questions = asked(judge, groups, in_points)
        for question in questions:
            wanted = [
                question.rfind(text)
                for text in ("=== Attempt B", "principles", "each principle", "POINTS: a b")
            ]
            assert wanted == sorted({*wanted} - {-1}), "principles are written before points"
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


def filter_of_draws(name: str, part: Part, formula: Part) -> None:
    """The book's groups, and every small one: what is dropped follows what the judge said, not what episodes earned."""
    LAWS["filter"](name, part, formula)
    most = getattr(part, "keywords", {}).get("most", 0.6)
    groups = [[0.0, *said] for n in (0, 1, 2, 3) for said in product([1.0, -1.0], repeat=n)]
    groups += [[0, 1, 1, -1, -1, -1, -1, 1], [0, 1, *[-1] * 6], [0, *[-1] * 7]]
    said = [[value] * (1 + i % 3) for group in groups for i, value in enumerate(group)]
    earned = [[0.0] * (len(row) - 1) + [float(n % 2)] for n, row in enumerate(said)]
    number = [g for g, group in enumerate(groups) for _ in group]
    batch = turn_batch(earned, number, signals={"against_one": said})
    expected = [float(abs(sum(groups[g])) / len(groups[g]) <= most) for g in number]
    assert part(batch, batch.reward_BK).tolist() == expected
    assert part(batch, batch.reward_BK, most=1.0).tolist() == [1.0] * len(number)
    refuses(lambda: part(batch, batch.reward_BK, most=-0.1))


@reference("filter", "writing_zero", law=filter_of_draws, most=[0.2, 0.0])
def writing_zero_filter(r: Ragged, A: Any, most: float = 0.6) -> list[float]:
    value = [(row or [0.0])[0] for row in r.turns["against_one"]]
    return [float(abs(sum(value[j] for j in r.peers(i))) / len(r.peers(i)) <= most) for i in range(len(r))]


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


@reference("judge", "oni", policy=["another"], power=[0.5, 0.0, -0.1])
def oni(make: Part, policy: str = "", power: float = 1.0) -> None:
    """Two updates of the same groups, by another object that goes on from the first one's labels and asks for nothing."""
    from chat_server import said, serve

    if power < 0:
        refuses(make)
        return
    groups = [group for group in groups_to_compare() if group]
    looped = groups[2][0]
    seen = [looped.trajectory.turns[1].observation, looped.trajectory.turns[0].observation, Messages()]
    turns = [
        dataclasses.replace(t, observation=seen[k % 3]) for k, t in enumerate(looped.trajectory.turns * 5)
    ]
    groups[2] = [
        dataclasses.replace(
            looped, trajectories={"agent": dataclasses.replace(looped.trajectory, turns=tuple(turns))}
        ),
        *groups[2][1:],
    ]
    questions, found = list[str](), list[Group]()

    def label(question: str) -> str:
        return chance(question).choice(
            ["PROGRESS: no\nPROGRESS: Yes", "**Progress:** no", "yes", "progress: YES"]
        )

    def reply(request: dict[str, Any]) -> Any:
        questions.append(str(request["messages"][-1]["content"]))
        return said(label(questions[-1]))

    def of(one: Episode) -> list[float]:
        turns = one.trajectory.turns
        answers = [*(t.observation for t in turns[1:]), one.trajectory.final]
        texts = ["\n".join(m.content for m in a) for a in answers[: len(turns)]]
        found: list[float] = []
        for k, text in enumerate(texts):
            asked_ = [
                q
                for q in questions
                if "\n\n{}\n\nDoes".format("\n> ".join(text.splitlines())) in q
                and f"\n\n{one.task.prompt}\n\n" in q
            ]
            good = bool(text.strip()) and label(asked_[0]) in ("PROGRESS: no\nPROGRESS: Yes", "progress: YES")
            found.append(good / texts[: k + 1].count(text) ** power)
        return found

    with serve(reply) as server:
        judge = make(policy=f"openai:m@{server.url}")
        for update in range(2):
            asked_before = len(questions)
            found = asyncio.run(judge(groups))
            assert (len(questions) > asked_before) == (update == 0)
            for before, after in zip(groups, found, strict=True):
                unjudged(before, after)
                for i in playing(before):
                    told_ = [turn.signals["oni"] for turn in after[i].trajectory.turns]
                    assert told_ == of(before[i])
            kept = json.loads(json.dumps(judge.state().numbers))
            judge = make(policy=f"openai:m@{server.url}")
            judge.restore(PartState(kept))
        assert {len(name) for name in kept["labels"]} == {16}
        names = getattr(make, "func", make).__call__.__globals__
        with patch.dict(names, KEPT=3):
            short = make(policy=f"openai:m@{server.url}")
            asyncio.run(short(groups))
            assert [*short.state().numbers["labels"].items()] == [*kept["labels"].items()][-3:]
        assert not any("turns:\n\n\n\nDoes" in question for question in questions), "nothing was answered"
        questions = questions[: len(kept["labels"])]
    assert len(questions) == len({*questions})
    values = {x for group in found for one in group for t in one.trajectory.turns for x in t.signals.values()}
    assert len(values) > (2 if power else 1)


LOG = f"{tempfile.gettempdir()}/turnwise-par-{os.getpid()}.jsonl"
"""Of reference episodes, written when it is first needed."""


@functools.cache
def stored() -> dict[str, list[Episode]]:
    """The episodes of the log that can be scored, by task; the first of a task cannot, since it has no turn or was not played."""
    played: dict[str, list[Episode]] = {}
    Path(LOG).unlink(missing_ok=True)
    with EpisodeLog(Path(LOG), policy="toy") as log:
        for group in judged_groups():
            gone = dataclasses.replace(group[0].trajectory, turns=())
            for one in (dataclasses.replace(group[0], trajectories={"agent": gone}), *group[::-1]):
                log.append(one)
                if one.outcome.counts and one.trajectory.turns:
                    played.setdefault(one.task.id, []).append(one)
    return played


@reference(
    "judge", "par", policy=["another"], by=["gold", "none"], signal=["wrong"], path=["a log"], references=[2, 0], scale=[0.5],
    also=[
        {"by": "gold", "signal": "wrong", "references": 3, "scale": 3.0},
        {"by": "gold", "references": 2, "scale": 3000.0, "path": "a log"},
    ],
)  # fmt: skip
def par(
    make: Part, policy: str = "", by: str = "principles", signal: str = "principle", path: str = "", references: int = 1,
    scale: float = 1.0,
) -> None:  # fmt: skip
    from chat_server import said, serve

    if references < 1 or (by, signal) not in (
        ("principles", "principle"),
        ("gold", "principle"),
        ("gold", "wrong"),
    ):
        refuses(make)
        return
    groups, known = groups_to_compare(), dict[str, list[float]]()
    stored()
    log = {"path": LOG} if path else {}

    def points(question: str, k: int) -> int:
        own, _, _ = question.partition("Where your answer is held to JSON")
        return chance(own.strip(), k).randrange(5)

    def reply(request: dict[str, Any]) -> Any:
        question = str(request["messages"][-1]["content"])
        return said("\n".join(f"TURN {k}: {points(question, k)}/4" for k in range(1, 9)))

    def score(one: Episode) -> float:
        if by == "gold":
            ((judged,),) = asyncio.run(gold([[one]]))
            return mean([turn.signals[signal] for turn in judged.trajectory.turns])
        question = QUESTION.format(transcript=transcript(one))
        return mean([points(question, k) / 4 for k in range(1, len(one.trajectory.turns) + 1)])

    with serve(reply) as server:
        judge = make(policy=f"openai:m@{server.url}", **log)
        for update in range(2):
            later = groups if update == 0 else [group[::-1] for group in groups]
            for group in later:
                for i in playing(group):
                    shown = stored()[group[i].task.id] if path else [group[j] for j in playing(group)]
                    known.setdefault(group[i].task.id, [score(one) for one in shown[:references]])
            found = asyncio.run(judge(later))
            for before, after in zip(later, found, strict=True):
                for i in playing(before):
                    mine = score(before[i])
                    chances = [
                        1 / (1 + math.exp(min(700.0, -scale * (mine - other))))
                        for other in known[before[i].task.id]
                    ]
                    for turn in after[i].trajectory.turns:
                        assert math.isclose(turn.signals["par"], mean(chances), rel_tol=1e-9, abs_tol=1e-12)
            kept = json.loads(json.dumps(judge.state().numbers))
            kept["scores"] = {name: [x + 0.25 for x in some] for name, some in kept["scores"].items()}
            known = {name: [x + 0.25 for x in some] for name, some in known.items()}  # none is scored again
            judge = make(policy=f"openai:m@{server.url}", **log)
            judge.restore(PartState(kept))
        (one, *_) = groups[0]
        strange = dataclasses.replace(one, task=dataclasses.replace(one.task, prompt="another"))
        if path:
            refuses(lambda: asyncio.run(judge([[strange]])), RunError)
        else:
            asyncio.run(judge([[strange]]))
