"""The report says which tasks were played how often, and how success moved on hard and easy ones: numbers by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from turnwise.agents.log.records import Record
from turnwise.envs.core import EndReason
from turnwise.tasks.core import Task
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.report.page import render
from turnwise.trainers.report.played import PlayCounter, PlayedTasks, ReturnRow, SuiteRow
from turnwise.trainers.report.records import ReportedRun

PLAYED = {  # by suite, task and update: what became of four episodes
    ("hard", "a", 1): "....",
    ("hard", "a", 4): "1...",
    ("hard", "a", 6): "11..",
    ("hard", "b", 2): "1...",
    ("easy", "c", 3): "1111",
    ("easy", "c", 5): "11.1",
    ("easy", "d", 3): "11.x",  # one failed, and does not count
    ("easy", "e", 9): "xxxx",
}


def counted(update: int | None = None) -> PlayedTasks | None:
    counter = PlayCounter()
    for (suite, task, number), outcomes in PLAYED.items():
        for mark in outcomes:
            ended = episode([0.0], end=EndReason.SOLVED if mark == "1" else EndReason.FAILED)
            ended = dataclasses.replace(ended, task=Task(suite, task, {}))
            if mark == "x":
                ended = dataclasses.replace(ended, outcome=type(ended.outcome)("infra_error"))
            counter.see(Record(ended, update=number if update is None else update or None, suite=suite))
    return counter.tables()


def test_tasks_and_visits_are_counted_by_suite() -> None:
    found = counted()
    assert found
    assert found.suites == (SuiteRow("easy", 2, 3, 2, 11, 9 / 11), SuiteRow("hard", 2, 4, 3, 16, 4 / 16))


def test_visits_of_each_span_are_of_one_band() -> None:
    found = counted()
    assert found
    assert [(row.first, row.last, row.visits) for row in found.spans] == [
        *((1, 1, 1), (2, 2, 1), (3, 3, 2), (4, 4, 1), (5, 6, 2))
    ]
    assert [row.shares for row in found.spans] == [
        *((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0.5, 0.5), (0, 1, 0, 0), (0, 0, 1, 0))
    ]
    assert [row.success for row in found.spans] == pytest.approx([0, 1 / 4, 6 / 7, 1 / 4, 5 / 8])


def test_later_success_is_by_the_first_visit_and_without_it() -> None:
    found = counted()
    assert found
    assert found.returned == (
        ReturnRow("never", 1, (None, None, None, 0.25, 0.5)),
        ReturnRow("always", 1, (None, None, None, None, 0.75)),
    )


def test_evaluations_are_no_visits() -> None:
    assert counted(update=0) is None


def test_the_page_has_the_tables_where_something_was_played() -> None:
    def page(played: PlayedTasks | None) -> str:
        return render(ReportedRun(Path("/none"), "", "", (), (), (), {}, played, ()))

    text = page(counted())
    for said in ("What was played", "in less than half", "5 to 6", "25.0 %", "less hard than it"):
        assert said in text
    assert "What was played" not in page(None)
    once = counted(update=1)
    assert once
    assert not once.returned
    assert "less hard than it" not in page(once)
