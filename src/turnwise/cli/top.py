"""The commands about what a run does and did: top, relearn."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult
from turnwise.terminal import visible

if TYPE_CHECKING:
    from rich.console import Group

    from turnwise.console import SafeConsole
    from turnwise.trainers.report.events import EngineNow, LiveRun

SILENT_S = 10.0
"""After so many seconds without an event a run is taken to be gone."""
BAR = 24


def top(run: Path, /, *, once: Annotated[bool, Parameter(negative=())] = False) -> VerbResult:
    """Show what a run does now: who plays, what the learner does, lag, tokens per second, failures by cause.

    For example: `turnwise top runs/shop`.

    Args:
        run: The run's folder.
        once: Print one picture and leave.
    """
    from turnwise.trainers.report.events import live_run

    live = live_run(run)
    value = {
        "run": str(run),
        "age": round(time.time() - live.time, 1),
        "ended": live.ended,
        **{
            name: dict(getattr(live, name))
            for name in ("start", "state", "learning", "published", "evaluated")
        },
        "updates": [dict(event) for event in live.updates],
    }

    def show(console: SafeConsole) -> None:
        if once or not console.is_terminal:
            console.print(picture(run, live))
        else:
            _watch(run, console)

    return VerbResult(value, show)


def relearn(run: Path, /, *, out: Path | None = None) -> VerbResult:
    """Learn a finished run again from its episode log, and compare every checkpoint with it bit for bit.

    For example: `turnwise relearn runs/shop`.

    Args:
        run: The run's folder, which is only read.
        out: A folder for the checkpoints that come out; nowhere without it.
    """
    import sys

    from turnwise.trainers.run.relearn import relearn as learn_again

    found = learn_again(run, out=out, log=lambda line: print(line, file=sys.stderr, flush=True))

    def show(console: SafeConsole) -> None:
        console.print(
            f"{found.updates} updates learned again in {found.seconds:.0f} s: {found.advantages} advantages and the "
            f"checkpoints after {', '.join(map(str, found.equal))} have the same bits"
        )
        console.print(f"weights {found.sha256}", style="dim")

    return VerbResult(found.to_json(), show)


def _watch(run: Path, console: SafeConsole) -> None:
    """Show the run until it ends, or Ctrl-C."""
    from rich.live import Live

    from turnwise.trainers.report.events import live_run

    with Live(console=console, screen=False, auto_refresh=False) as shown:
        while True:
            live = live_run(run)
            shown.update(picture(run, live), refresh=True)
            if live.ended:
                return
            time.sleep(1.0)


def picture(run: Path, live: LiveRun) -> Group:
    """One picture of a run.

    Raises:
        TurnwiseError: its events are not what a run writes.
    """
    from turnwise.errors import TurnwiseError

    try:
        return _frame(run, live)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TurnwiseError(
            f"The events of {run} are damaged: {error}.", "Remove events.jsonl; the run writes it anew."
        ) from None


def _frame(run: Path, live: LiveRun) -> Group:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    state, start, learning = live.state, live.start, live.learning
    age = time.time() - live.time
    doing = str(state.get("doing", "starting"))
    silent = f" (silent for {age:.0f} s)" if age > SILENT_S else ""
    made = max([int(start.get("update", 0)), *(int(event["update"]) for event in live.updates)])
    head = f"{run}  update {made}/{start.get('updates', '?')}  staleness {start.get('staleness', 0)}"
    rows = Table.grid(padding=(0, 2))

    def add(name: str, said: str) -> None:
        rows.add_row(*(Text(visible(text)) for text in (name, said)))  # no markup: causes are others' words

    add("learner", live.ended or f"{doing}{silent}")
    add(
        "engine",
        f"{state.get('in_flight', 0)} answers in flight  {state.get('tokens_per_second', 0):.0f} tok/s"
        f"  weights {live.published.get('version', start.get('update', 0))}",
    )
    for engine in live.engines:
        add(f"  {engine.name}", _engine_said(engine))
    if live.engines:
        waiting = int(state.get("in_flight", 0)) - sum(engine.in_flight for engine in live.engines)
        if waiting > 0:
            add("", f"{waiting} answers wait for an engine")
    for update, (done, of) in dict(state.get("playing", {})).items():
        filled = round(BAR * min(1.0, done / max(1, of)))
        add(f"update {update}", f"{'█' * filled}{'·' * (BAR - filled)} {done}/{of} episodes")
    if learning:
        add(
            "newest lesson",
            f"lag {learning.get('lag', 0):.2f}, at most {learning.get('lag_most', 0)}; "
            f"waited {learning.get('waited', 0):.1f} s",
        )
    if live.published:
        add("weight update", f"stall {1000 * float(live.published.get('stall', 0)):.0f} ms")
    if live.evaluated:
        add("dev", f"{live.evaluated.get('dev_success', 0):.3f} after update {live.evaluated.get('update')}")
    for event in live.updates:
        success = f"success {event['success']:.3f}  " if "success" in event else ""
        add(f"  {event['update']}", f"{success}{event.get('seconds', 0):.1f} s")
    for cause, count in dict(state.get("failures", {})).items():
        add("failed", f"{count} × {cause}")
    return Group(Text(visible(head), style="bold"), rows)


def _engine_said(engine: EngineNow) -> str:
    """One engine, in a line."""
    lag = f" ({engine.lag} behind)" if engine.lag else ""
    said = f"{engine.in_flight} in hand  {engine.tokens_per_second:.0f} tok/s  weights {engine.version}{lag}"
    if engine.stall:
        said += f"  stall {1000 * engine.stall:.0f} ms"
    if engine.failures:
        said += "  failed " + ", ".join(f"{count} × {cause}" for cause, count in engine.failures)
    return said if engine.serving else f"out: {engine.cause}  {said}"


VERBS: dict[str, Callable[..., VerbResult]] = {"top": top, "relearn": relearn}
