"""Evaluations as terminal tables."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from turnwise.agents.comparison import Comparison
from turnwise.agents.evaluate import Evaluation
from turnwise.agents.statistics import Interval


def percent(share: float | None) -> str:
    """A share as people read it.

    >>> percent(0.4349), percent(1.0), percent(None)
    ('43.5 %', '100.0 %', '–')
    """
    return "–" if share is None else f"{100 * share:.1f} %"


def percent_interval(interval: Interval) -> str:
    """
    >>> percent_interval(Interval(0.3512, 1.0))
    '35.1 … 100.0 %'
    """
    low, high = interval
    return f"{100 * low:.1f} … {100 * high:.1f} %" if math.isfinite(high - low) else "unknown (one task)"


def verdict(comparison: Comparison) -> Text:
    """The difference between two policies as one plain sentence, in colour."""
    low, high = (100 * end for end in comparison.interval)
    colour = "yellow"
    if comparison.significant:
        colour = "green" if comparison.difference > 0 else "red"
    return Text.assemble(
        (comparison.verdict, f"bold {colour}"),
        f": {100 * comparison.difference:+.1f} points, 95 % interval {low:+.1f} … {high:+.1f} ({comparison.test}).",
    )


def evaluation_table(evaluation: Evaluation) -> Table:
    """One evaluation: each figure with its 95 % interval, and how the episodes ended."""
    table = Table(
        title=Text(f"{evaluation.suite} · {evaluation.split} · {evaluation.policy}"),
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    table.add_column("")
    table.add_column("value", justify="right")
    table.add_column("95 % interval", justify="right")
    counting = evaluation.episodes - evaluation.excluded
    table.add_row("success", percent(evaluation.success), percent_interval(evaluation.success_interval))
    low, high = evaluation.mean_score_interval
    score = f"{low:.3f} … {high:.3f}" if math.isfinite(high - low) else "unknown (one task)"
    table.add_row("mean score", f"{evaluation.mean_score:.3f}", score)
    if evaluation.k > 1:
        table.add_row(f"pass@{evaluation.k}", percent(evaluation.pass_at_k), "")
        table.add_row(f"pass^{evaluation.k}", percent(evaluation.pass_hat_k), "")
    table.add_row("turns per episode", f"{evaluation.turns:.1f}", "")
    table.add_section()
    for end, count in sorted(evaluation.ends.items(), key=lambda item: -item[1]):
        table.add_row(Text(f"ended: {end}"), str(count), percent(count / counting))
    for outcome, count in evaluation.outcomes.items():
        if count and outcome not in ("ok", "limit"):
            table.add_row(Text(f"left out: {outcome}", style="red"), str(count), "")
    runs = f"{evaluation.tasks} tasks" + (f" × {evaluation.k} runs" if evaluation.k > 1 else "")
    table.caption = Text(f"{evaluation.episodes} episodes ({runs}), {evaluation.seconds:.1f} s")
    return table


def comparison_table(evaluations: Mapping[str, Evaluation]) -> Table:
    """Several evaluations of the same tasks under each other; the last is compared with the first."""
    table = Table(box=SIMPLE_HEAD)
    for heading in ("", "success", "95 % interval", "score", "turns", "episodes"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, evaluation in evaluations.items():
        table.add_row(
            Text(name),
            percent(evaluation.success),
            percent_interval(evaluation.success_interval),
            f"{evaluation.mean_score:.3f}",
            f"{evaluation.turns:.1f}",
            str(evaluation.episodes - evaluation.excluded),
        )
    first, last = next(iter(evaluations.values())), list(evaluations.values())[-1]
    if len(evaluations) > 1:
        table.caption = verdict(last.compare(first))
        table.caption_justify = "left"
        table.caption_style = "none"
    return table
