"""A verdict of two stages: what the rule accepts is never asked about, and what it rejects is what a model says."""

from __future__ import annotations

import dataclasses
from typing import Any

from judged import asked, chance, judged_groups, told
from plain import reference
from played import Part

from turnwise.envs.core import EndReason
from turnwise.tasks.core import Json
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import transcript

GOLDS: dict[str, tuple[Json, list[str]]] = {
    "a text": ("ebro", ["ebro"]),
    "a list": (["ebro", "Ebro River", 3, ""], ["ebro; Ebro River"]),
    "answers": ({"answers": ["ebro", "suki"], "form": "chain"}, ["ebro; suki"]),
    "none": (None, []),
    "empty": ("", []),
    "a number": (3, []),
    "other keys": ({"form": "chain"}, []),
}


def words(question: str) -> str:
    """One in three is no answer at all; the last line of its kind counts."""
    return (
        "ANSWER: yes\nOr rather:\n**ANSWER:** No",
        "It says the same.\nANSWER: yes",
        "Well.",
    )[chance(question).randrange(3)]


@reference("judge", "two_stage", policy=["another"])
def two_stage(judge: Part, policy: str = "") -> None:
    for name, (gold, shown) in GOLDS.items():
        groups: list[Group] = []
        for g, group in enumerate(judged_groups()):
            ends = [EndReason.SOLVED if (g + i) % 2 else EndReason.FAILED for i in range(len(group))]
            groups.append(
                [
                    dataclasses.replace(one, end=end, task=dataclasses.replace(one.task, gold=gold))
                    for one, end in zip(group, ends, strict=True)
                ]
            )
        found, questions = asked(judge, groups, lambda question, before: words(question))
        expected: list[list[list[Any]]] = []
        rejected: list[str] = []
        for group in groups:
            rows: list[list[Any]] = []
            for one in group:
                turns = len(one.trajectory.turns)
                if not one.outcome.counts or not turns:
                    rows.append([None] * turns)
                    continue
                right = one.end == EndReason.SOLVED
                if not right:
                    (question,) = {q for q in questions if f"\n{transcript(one)}\n" in q}
                    rejected.append(question)
                    right = words(question).endswith("yes")
                    told_ = [line for line in question.splitlines() if line.startswith("The right answer: ")]
                    assert told_ == [f"The right answer: {text}" for text in shown], name
                rows.append([0.0] * (turns - 1) + [float(right)])
            expected.append(rows)
        assert told(found, "right") == expected
        assert sorted(questions) == sorted({*rejected})
        assert len(rejected) >= 2
