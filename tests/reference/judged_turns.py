"""Judges of turns read both ways, of progress, and of pairs: with answers drawn by chance and said by a server."""

from __future__ import annotations

import re
from random import Random

from compared import groups_to_compare
from judged import _saying as saying  # pyright: ignore[reportPrivateUsage]
from judged import _shown as shown_turns  # pyright: ignore[reportPrivateUsage]
from judged import asked, chance, judged_groups, turns_in
from plain import reference, refuses
from played import Part


def scored(question: str, before: int, turns: int) -> dict[int, int]:
    rng = chance(question)
    return {k: rng.choice([0, 3, 7, 10, 14]) for k in range(turns + 3) if rng.random() < 0.8}


@reference("judge", "biprm", policy=["another"], forward=[0.25, 1.0, 1.5, -0.5])
def biprm(judge: Part, policy: str = "", forward: float = 0.5) -> None:
    def answer(question: str, before: int) -> str:
        points = scored(question, before, turns_in(question))
        return "So.\n" + "\n".join(f"**Turn {k}**: {s} / 10" for k, s in points.items())

    groups = judged_groups()
    if not 0 <= forward <= 1:
        refuses(lambda: asked(judge, groups, answer))
        return
    found, questions = asked(judge, groups, answer)
    counting = [one for group in groups for one in group if one.outcome.counts and one.trajectory.turns]
    assert len(questions) == 2 * len(counting)
    back = {shown_turns(q)[::-1]: q for q in questions if "last to the first" in q}
    there = {shown_turns(q): q for q in questions if "last to the first" not in q}
    for before, after in zip(groups, found, strict=True):
        for one, other in zip(before, after, strict=True):
            if not one.outcome.counts or not one.trajectory.turns:
                assert other is one
                continue
            n, both = len(one.trajectory.turns), (there[saying(one)], back[saying(one)])
            assert both[1].index(f"[turn {n}]") <= both[1].index("[turn 1]")
            a, c = ({k: s / 10 for k, s in scored(q, 0, n).items() if s <= 10} for q in both)
            for k, turn in enumerate(other.trajectory.turns, 1):
                expected = forward * a.get(k, 0.0) + (1 - forward) * c.get(k, 0.0)
                assert abs(turn.signals["principle"] - expected) < 1e-12


@reference("judge", "vlac", policy=["another"])
def vlac(judge: Part, policy: str = "") -> None:
    def delta(question: str) -> float:
        return chance(question).choice([0, 20, -35, 62.5, 100, 100.5, 140])

    def answer(question: str, before: int) -> str:
        said = delta(question)
        return "I cannot say." if said == 0 else f"PROGRESS: 1\nRather:\n**Progress: {said:g} %**"

    groups = judged_groups()
    found, questions = asked(judge, groups, answer)
    asked_of = iter(questions)
    by_parts = {
        tuple(re.findall(r"=== \w+ ?\w*\n(.*?)(?=\n\n===|\n\nHow much)", q, re.DOTALL)): q for q in asked_of
    }
    seen = set[float]()
    for before, after in zip(groups, found, strict=True):
        for one, other in zip(before, after, strict=True):
            if not one.outcome.counts or not one.trajectory.turns:
                assert other is one
                continue
            told = [
                [m.content for m in turn.observation if m.role != "system"] for turn in one.trajectory.turns
            ]
            told.append([m.content for m in one.trajectory.final])
            left = 1.0
            for k, turn in enumerate(other.trajectory.turns):
                shown = ("\n".join(told[k]), turn.action.content, "\n".join(told[k + 1]))
                key = tuple("\n> ".join(text.splitlines()) for text in shown)
                said = delta(by_parts[key])
                share = said / 100 if abs(said) <= 100 else 0.0
                assert abs(turn.signals["gain"] - left * share) < 1e-9
                left *= 1 - share
                seen.add(said)
    assert len(seen) > 3


@reference("judge", "think_rm", policy=["another"])
def think_rm(judge: Part, policy: str = "") -> None:
    def sides(question: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        one, two = question.split("=== Attempt A")[1].split("=== Attempt B")
        return shown_turns(one), shown_turns(two)

    def strength(a: tuple[str, ...], b: tuple[str, ...]) -> int:
        return Random(f"strength {a} {b}").choice([-3, -2, 0, 1, 3, 4, 5])

    def answer(question: str, before: int) -> str:
        said = strength(*sides(question))
        return "Neither." if said == 0 else f"STRENGTH: 1\nOr rather\n*Strength: {said}*"

    def d(a: tuple[str, ...], b: tuple[str, ...]) -> float:
        there, back = (x if abs(x) <= 3 else 0 for x in (strength(a, b), strength(b, a)))
        return (there - back) / 2

    groups = groups_to_compare()
    groups += [
        [groups[0][i], groups[1][j]] for i, j in ((0, 1), (2, 0), (3, 1))
    ]  # no pair is asked about twice
    found, questions = asked(judge, groups, answer)
    sizes = [sum(bool(o.outcome.counts and o.trajectory.turns) for o in group) for group in groups]
    assert {0, 1, 2} <= {*sizes}
    assert len(questions) == sum(n * (n - 1) for n in sizes)
    decided = set[tuple[int, bool]]()
    for before, after in zip(groups, found, strict=True):
        taking = [i for i, one in enumerate(before) if one.outcome.counts and one.trajectory.turns]
        said = {(i, j): d(saying(before[i]), saying(before[j])) for i in taking for j in taking if i != j}
        n = len(taking)
        rms = (sum(x * x for x in said.values()) / (2 * n * (n - 1)) + 1e-6) ** 0.5 if said else 1.0
        for i, (one, other) in enumerate(zip(before, after, strict=True)):
            if i not in taking:
                assert other is one
                continue
            expected = sum(said[i, j] for j in taking if j != i) / (n * rms)
            assert all(abs(turn.signals["preference"] - expected) < 1e-9 for turn in other.trajectory.turns)
            decided.add((n, abs(expected) > 0.1))
    assert (2, True) in decided
