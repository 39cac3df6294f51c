"""The command that compares runs, checkpoints and evaluations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult
from turnwise.errors import TurnwiseError

if TYPE_CHECKING:
    from turnwise.console import SafeConsole


def compare(
    *sources: str,
    baseline: str | None = None,
    allow_unlike: Annotated[bool, Parameter(negative=())] = False,
    noise: Annotated[bool, Parameter(negative=())] = False,
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
        noise: Say how noisy evaluations are instead, ours or others': an inspect log, τ² or SWE-bench results, a .csv. One is enough;
            of several each pair is compared, with the tasks that it takes to tell the two apart.
        allow_unlike: Compare also what was played otherwise (suite, split, sampling, limits), and say so.
        env: The file of the environment where that is not installed: path/to/file.py. Its tasks are sorted by their knobs.
        plot: An .svg or .png of the learning curves on dev and of the differences by knob.
        out: A page (.html) that holds everything.
    """
    if noise:
        return _noise(sources, baseline, env, plot, out, allow_unlike)
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


def _noise(sources: Sequence[str], *others: object) -> VerbResult:
    """Measure the noise of evaluations."""
    from turnwise.trainers.compare.foreign_results import FORMS, read_results
    from turnwise.trainers.compare.noise import noise
    from turnwise.trainers.compare.noise_table import renderables

    if any(others):
        raise TurnwiseError(
            "--noise stands alone.",
            "Leave out --baseline, --env, --plot, --out and --allow-unlike, or --noise.",
        )
    if not sources:
        raise TurnwiseError("No evaluation is named.", FORMS)
    found = noise([read_results(Path(source).expanduser()) for source in sources])

    def show(console: SafeConsole) -> None:
        for part in renderables(found):
            console.print(part)

    return VerbResult(found.to_json(), show)


VERBS: dict[str, Callable[..., VerbResult]] = {"compare": compare}
