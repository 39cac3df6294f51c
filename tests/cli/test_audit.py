"""`audit`: what cannot be had is refused before anything is judged, and a terminal names what is clean in a line."""

from __future__ import annotations

import pytest

from turnwise.cli.app import run as main
from turnwise.trainers.audit.page import renderables
from turnwise.trainers.audit.registry import AuditReport
from turnwise.trainers.audit.task_sets.shared import listed
from turnwise.trainers.audit.xray.core import Evidence, XTask


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--html", "page.txt"], "page.txt is no page"),
        (["--html", "."], "is no page"),
        (["--html", "folder.html"], "is a folder"),
        (["--measure", "flakey"], "Did you mean 'flaky'?"),
        (["--set", "k=16"], "option of these audits 'k'"),
    ],
)
def test_a_page_a_measure_or_an_option_that_cannot_be_had_is_refused_before_the_set_is_read(
    tmp_path, monkeypatch, capfd, words, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    assert main(["audit", "tasks", "nowhere", *words]) != 0
    told = capfd.readouterr().err
    assert said in told
    assert "nowhere is no file" not in told


def test_a_terminal_lists_kinds_of_defect_that_no_task_has_in_one_line():
    task = XTask("a", "rows.jsonl:1", "Sum up.")
    report = AuditReport(
        "tasks",
        ["rows.jsonl"],
        {
            "flaky": listed([task], [None]),
            "twice": listed([task], [Evidence("as b", "look")]),
            "key_word": listed([task], [None]),
        },
        [],
    )
    lines = [str(part) for part in renderables(report)]
    assert lines.count("\ntwice") == 1
    assert lines[-2:] == ["\nnothing found", "flaky, key_word"]
    assert "\nflaky" not in lines


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--columns", "prompt=question"], "--columns has no effect on shop/quick"),
        (["--args", "difficulty=2"], "--args has no effect on shop/quick"),
        (["--with", "numpy"], "--with has no effect on shop/quick"),
    ],
)
def test_an_option_that_has_no_effect_on_a_set_is_refused(capfd, words, said):
    assert main(["audit", "tasks", "shop/quick", "--n", "2", "--dry-run", *words]) != 0
    assert said in capfd.readouterr().err
