"""What a long command says while it works."""

from __future__ import annotations

import re

import pytest

from turnwise.cli.progress import ProgressLine


def test_outside_a_terminal_progress_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLine("me on a \x1b[31msuite", 3, every=0.0) as progress:
        for solved in (0.0, 0.5, 0.667):
            progress.advance(success=solved)
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == 3
    assert re.fullmatch(r"me on a ␛\[31msuite: 2 of 3, 0 s  success 0\.500", lines[1])
    with ProgressLine("quick", 2) as progress:
        progress.advance()
    assert capsys.readouterr().err == ""
