"""SPCT: scores of all attempts at once, in orders drawn by chance, summed over samples; a meta judge may keep half of them."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from compared import groups_to_compare, playing, unjudged
from judged import _counted, _likely, chance, told  # pyright: ignore
from plain import reference, refuses
from played import Part

from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import transcript

ASKS_META = "one word, Yes or No"


def attempts_in(question: str) -> list[str]:
    """The attempts as they are shown, in their order."""
    (shown,) = re.findall(
        r"\n\n(=== Attempt 1\n.*?)\n\n(?!=== Attempt)(?:First write|=== )", question, re.DOTALL
    )[:1]
    return re.split(r"(?:\n\n|^)=== Attempt \d+\n", shown)[1:]


def points_of(question: str, n: int) -> list[int]:
    """What a server gives the n-th time that it is asked, by place; nothing where it cannot be read."""
    rng = chance(question, n)
    return [] if rng.random() < 0.2 else [rng.randint(1, 10) for _ in attempts_in(question)]


def answer_to(question: str, n: int) -> str:
    """One that can be read, or one with a score too many, too few, too high, or none."""
    rng, points = chance(question, n, 1), points_of(question, n)
    count = len(attempts_in(question))
    if not points:
        bad = ([5] * (count + 1), [5] * (count - 1), [11] * count, [0] * count)
        return f"So {n}.\nSCORES: " + " ".join(map(str, rng.choice(bad)))
    said = rng.choice([" ", ", "]).join(map(str, points))
    before = rng.choice(["SCORES: 1 1\n", "> SCORES: 9 9\n", ""])
    return f"Principles {n}.\n{before}{rng.choice(['SCORES:', '**Scores:**'])} {said}"


def held(
    judge: Part, groups: Sequence[Group], salt: int, meta: str
) -> tuple[list[Group], list[tuple[str, str]]]:
    """The groups as they were judged, and all questions with the model that was asked."""
    from chat_server import said, serve  # pyright: ignore[reportMissingImports]

    heard: list[tuple[str, str]] = []

    def reply(request: dict[str, Any]) -> Any:
        question = str(request["messages"][-1]["content"])
        before = sum(q == question for _, q in heard)
        heard.append((request["model"], question))
        return _likely(question) if ASKS_META in question else said(answer_to(question, before + 10 * salt))

    with serve(reply) as server:
        named = {"meta": f"openai:{meta}@{server.url}"} if meta else {}
        return asyncio.run(judge(groups, policy=f"openai:m@{server.url}", **named)), heard


def most_trusted(read: Sequence[tuple[float, list[int]]], keep: int) -> list[list[list[int]]]:
    """The scores of the samples of the highest trust, in each choice among those of equal trust."""
    least = sorted((trust for trust, _ in read), reverse=True)[keep - 1]
    sure = [scores for trust, scores in read if trust > least]
    equal = [scores for trust, scores in read if trust == least]
    return [[*sure, *some] for some in combinations(equal, keep - len(sure))]


def sums_by_hand(samples: Sequence[Sequence[int]]) -> list[int]:
    """S*_j = Σ_i S_ij."""
    return [sum(column) for column in zip(*samples, strict=True)]


@reference(
    "judge",
    "spct",
    policy=["another"],
    samples=[1, 3, 0],
    meta=["a meta judge"],
    also=[{"samples": 5, "meta": "m2"}, {"samples": 3, "meta": "m2"}],
)
def spct(judge: Part, policy: str = "", samples: int = 8, meta: str = "") -> None:
    assert sums_by_hand([[6, 8], [7, 4], [5, 7]]) == [18, 19]
    if samples < 1:
        refuses(lambda: asyncio.run(judge([])))
        return
    orders, values, dropped = set[tuple[int, ...]](), set[float](), 0
    groups: list[Group] = groups_to_compare()
    for salt in range(3):
        groups = [[dataclasses.replace(one, seed=one.seed + salt) for one in group] for group in groups]
        found, heard = held(judge, groups, salt, meta)
        asked: dict[str, int] = {}
        every: list[tuple[str, int]] = []  # each question with how often it was asked before
        for _, question in heard:
            if ASKS_META not in question:
                every.append((question, asked.get(question, 0)))
                asked[question] = asked.get(question, 0) + 1
        trusted = [q for _, q in heard if ASKS_META in q]
        for before, after in zip(groups, found, strict=True):
            unjudged(before, after)
            members = playing(before)
            shown = {i: transcript(before[i]) for i in members}
            mine = [(q, n) for q, n in every if sorted(attempts_in(q)) == sorted(shown.values())]
            assert len(mine) == (samples if members else 0)
            read: list[tuple[float, list[int]]] = []
            for question, n in mine:
                points = points_of(question, n + 10 * salt)
                text = answer_to(question, n + 10 * salt)
                placed = attempts_in(question)
                orders.add(tuple(placed.index(shown[i]) for i in members))
                trust = 1.0
                if meta:
                    quoted = "> " + "\n> ".join(text.splitlines())
                    of_it = {q for q in trusted if quoted in q and attempts_in(q) == placed}
                    assert len(of_it) == bool(points)
                    trust = _counted(of_it.pop(), "chance") if of_it else -1.0
                read.append((trust, [points[placed.index(shown[i])] if points else 0 for i in members]))
            counted = [[scores for _, scores in read]]
            if meta and members:
                keep = max(1, samples // 2)
                dropped += len(read) - keep
                counted = most_trusted(read, keep)
            every_turn = [[turn.signals["spct"] for turn in after[i].trajectory.turns] for i in members]
            wanted = [
                [
                    [float(sum(scores[place] for scores in some))] * len(before[i].trajectory.turns)
                    for place, i in enumerate(members)
                ]
                for some in counted
            ]
            assert every_turn in wanted
            values.update(one for each in every_turn for one in each)
        assert {model for model, q in heard if ASKS_META in q} <= {meta}
        assert {model for model, q in heard if ASKS_META not in q} == {"m"}
        if (
            salt == 0 and not meta
        ):  # which of equally trusted samples counts is told by their numbers, which a server does not hear
            again, _ = held(judge, groups, salt, meta)
            assert told(again, "spct") == told(found, "spct")
    assert len(orders) > 4
    assert len(values) > 5
    assert bool(meta and samples > 1) == (dropped > 0)
