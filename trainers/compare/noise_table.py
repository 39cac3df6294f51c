"""The noise of evaluations in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from turnwise.agents.evaluation.comparison import p_text
from turnwise.trainers.compare.noise import Noise, PairNoise, RunNoise
from turnwise.trainers.compare.table import points, points_interval


def renderables(noise: Noise) -> Iterator[RenderableType]:
    """Yield the tables and sentences that are printed, one after the other."""
    names = short_names([run.results.label for run in noise.runs])
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in (
        "evaluation",
        "format",
        "tasks",
        "trials",
        "mean",
        "95 % interval",
        "tasks that flip",
        "floor",
    ):
        table.add_column(heading, justify="left" if heading in ("evaluation", "format") else "right")
    for name, run in zip(names.values(), noise.runs, strict=True):
        table.add_row(*_row(name, run))
    yield table
    if any(run.floor is not None for run in noise.runs):
        yield Text(
            "Floor: by so many points two runs of the very same setting, one trial a task, differ in 95 % of cases at most."
        )
    for run in noise.runs:
        if run.results.left_out:
            yield Text(
                f"{names[run.results.label]}: episodes without a score, which are left out: {run.results.left_out}.",
                style="yellow",
            )
    for pair in noise.pairs:
        yield sentence(pair, names, len(noise.pairs))


def _row(name: str, run: RunNoise) -> list[str]:
    low, high = run.trials
    interval = run.estimate.interval
    return [
        name, run.results.form, str(len(run.results.scores)), str(low) if low == high else f"{low} … {high}", f"{run.estimate.mean:.3f}",
        f"{interval.low:.3f} … {interval.high:.3f}" if math.isfinite(interval.high) else "–", "–" if run.flipped is None else f"{100 * run.flipped:.0f} %",
        "–" if run.floor is None else f"{100 * run.floor:.1f}",
    ]  # fmt: skip


def sentence(pair: PairNoise, names: dict[str, str], pairs: int) -> Text:
    """A pair in plain sentences: the difference, its test, what it would take to tell the two apart, and the evidence so far."""
    difference = pair.difference
    told = pair.adjusted < difference.alpha
    first, second = (names[label] for label in pair.labels)
    corrected = f"; with Holm's adjustment over {pairs} pairs {p_text(pair.adjusted)}" if pairs > 1 else ""
    words = [
        f"{second} against {first}: ",
        ("told apart" if told else "not told apart", "bold green" if told else "bold yellow"),
        f": {points(difference.difference)} points, 95 % interval {points_interval(difference.interval)} ({difference.test}{corrected}).",
    ]
    if not told and pair.more is not None:
        words.append(f" A true difference of this size takes {pair.more} tasks to see in four of five cases.")
    if pair.evidence is not None:
        stop = "one may stop" if pair.evidence >= 20 else "below 20, at which one may stop"
        words.append(f" Evidence {pair.evidence:.3g} ({stop}, however often one looked).")
    return Text.assemble(*words)


def short_names(labels: Sequence[str]) -> dict[str, str]:
    """The ends of paths, as long as they must be to differ.

    >>> short_names(["a/x/results.json", "b/x/results.json", "c.csv"])
    {'a/x/results.json': 'a/x/results.json', 'b/x/results.json': 'b/x/results.json', 'c.csv': 'c.csv'}
    """
    for length in range(1, max((len(Path(label).parts) for label in labels), default=1) + 1):
        ends = ["/".join(Path(label).parts[-length:]) for label in labels]
        if len(set(ends)) == len(ends):
            return dict(zip(labels, ends, strict=True))
    return {label: label for label in labels}
