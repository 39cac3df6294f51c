"""The command that compares runs, checkpoints and evaluations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult

if TYPE_CHECKING:
    from turnwise.console import SafeConsole


def compare(
    *sources: str,
    baseline: str | None = None,
    allow_unlike: Annotated[bool, Parameter(negative=())] = False,
    env: str = "",
    plot: Path | None = None,
    out: Path | None = None,
) -> VerbResult:
    """Compare runs, checkpoints or evaluations: differences with their intervals and tests.

    For example: `turnwise compare runs/a runs/b --out compared.html`.

    Args:
        sources: Two or more, the base first: a run's folder, RUN@best, RUN@40, a checkpoint's folder, an evaluation's
            folder or its evaluation.json. A pattern in quotes ('runs/grpo-*') is one group, compared over its seeds.
        baseline: With what the others are compared, instead of the first.
        allow_unlike: Compare also what was played otherwise (suite, split, sampling, limits), and say so.
        env: The file of the environment where that is not installed: path/to/file.py. Its tasks are sorted by their knobs.
        plot: An .svg or .png of the learning curves on dev and of the differences by knob.
        out: A page (.html) that holds everything.
    """
    from turnwise.trainers.compare.comparison import compare as compare_sources
    from turnwise.trainers.compare.table import renderables

    written: list[Path] = []
    result = compare_sources(*sources, baseline=baseline, allow_unlike=allow_unlike, env=env)
    if plot is not None:
        from turnwise.trainers.compare.plots import write_plot

        written.append(write_plot(result, plot))
    if out is not None:
        from turnwise.trainers.compare.page import write_page

        written.append(write_page(result, out))

    def show(console: SafeConsole) -> None:
        for part in renderables(result):
            console.print(part)
        for path in written:
            console.print(f"wrote {path}")

    return VerbResult(result.to_json() | {"written": [str(path) for path in written]}, show)


VERBS: dict[str, Callable[..., VerbResult]] = {"compare": compare}
