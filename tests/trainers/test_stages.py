"""`turnwise top` before the first update, when nothing ticks yet."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from turnwise.cli.top import picture
from turnwise.trainers.report.events import EVENTS, live_run
from turnwise.trainers.run.events import Events


def shown(run: Path) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(picture(run, live_run(run)))
    return console.file.getvalue()


def test_a_run_that_warms_up_says_so_and_how_long_it_has_been_silent(tmp_path: Path) -> None:
    events = Events(tmp_path)
    events.stage("checking the recipe and loading the model")
    assert "checking the recipe and loading the model" in shown(tmp_path)
    events.stage("warm start, step 40")
    last = json.loads((tmp_path / EVENTS).read_text().splitlines()[-1])
    (tmp_path / EVENTS).write_text(json.dumps({**last, "time": last["time"] - 240}) + "\n")
    assert "warm start, step 40 (silent for 240 s)" in shown(tmp_path)
