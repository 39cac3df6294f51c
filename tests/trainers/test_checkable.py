"""Items that were made checkable are played as tasks, and their answers are right."""

import json
from pathlib import Path

import pytest

import turnwise
from turnwise.errors import TurnwiseError
from turnwise.trainers.lab.checkable import main

ITEMS = [
    {"question": "Which is even?", "answer": "4", "options": ["3", "4"]},
    {"question": "Which is odd?", "answer": "6", "options": ["3", "4"]},
    {"question": "The capital of France?", "answer": "Paris"},
    {"question": "Why is it so?", "answer": "because " * 11},
]


@pytest.mark.parametrize(("form", "answers"), [("choice", ["B", "Paris"]), ("short", ["4", "Paris"])])
def test_items_become_tasks_that_accept_their_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, answers: list[str]
) -> None:
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows.write_text("".join(json.dumps(item) + "\n" for item in ITEMS))
    main([str(rows), str(out), "--form", form])
    assert "2 of 4 items" in capsys.readouterr().out
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["answer"] for row in written] == answers
    played = turnwise.evaluate(f"math:{out}", "scripted:gold", episodes=2)
    assert (played.episodes, played.success) == (2, 1.0)


def test_what_is_no_row_is_refused(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("no rows")
    with pytest.raises(TurnwiseError, match="holds no rows of items"):
        main([str(rows), str(tmp_path / "out.jsonl")])
