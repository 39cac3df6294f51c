"""The verb that sets credit rules against the truth: credit-quality."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnwise.cli.answer import Json, VerbResult, table

if TYPE_CHECKING:
    from turnwise.console import SafeConsole
    from turnwise.trainers.lab.quality import Report, ScoreInterval

Words = Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)]
COLUMNS = (
    "correlation",
    "rank_correlation",
    "sign_accuracy",
    "bias",
    "noise",
    "gradient_cosine",
    "expected_cosine",
)
PAGE_ONLY = ("rank_correlation", "bias", "noise", "ms/1000 turns")  # what a terminal has no room for


def credit_quality(
    *,
    suite: Words = None,
    policy: Words = None,
    run: Path | None = None,
    rule: Words = None,
    show: Words = None,
    groups: int = 16,
    size: int = 8,
    forks: int = 24,
    vine_forks: int = 4,
    processes: bool = True,
    trees: bool = True,
    seed: int = 0,
    out: Path | None = None,
    episodes_log: Path | None = None,
) -> VerbResult:
    """Score every credit rule on the same episodes against the turns' true advantages.

    For example: `turnwise credit-quality --out runs/credit`.

    Args:
        suite: Played beside the small exact processes; shop/easy if none is given.
        policy: One for each stage of training; scripts of rising skill if none is given.
        run: A run whose checkpoints are the stages: the first, the last and two between, on the episodes that each
            of them sampled as the run logged them; with --suite, on fresh ones. Its report and `turnwise view` then show
            turns with their true advantages.
        rule: Which rules; all if none is given.
        show: Rules with columns in credit-quality-turns.html; some that differ if none is given.
        groups: Tasks per policy.
        size: Episodes per task; with trees a multiple of 4, at least 8.
        forks: Rollouts from every state for the truth.
        vine_forks: Rollouts from every state for rules that need fork_value.
        processes: Also score on the processes whose gradients are exact.
        trees: Also score on episodes that branch.
        seed: For all chance.
        out: A folder for credit-quality.json, .svg and .md, and credit-quality-turns.html.
        episodes_log: Offline: give these saved episodes their credit by each rule instead.
    """
    if episodes_log is not None:
        return _offline(episodes_log, rule or [], out)
    from turnwise.trainers.lab.quality import STAGES, Scale, checkpoints, logged_run
    from turnwise.trainers.lab.quality import credit_quality as bench

    as_logged = run is not None and not suite
    report = bench(
        suite or ([] if as_logged and not policy else ["shop/easy"]),
        [*(policy or ()), *(checkpoints(run) if run and not as_logged else ())] or STAGES,
        run=logged_run(run, groups, _env_options(run)) if run and as_logged else None,
        rules=rule or (),
        show=show or (),
        processes=processes,
        trees=trees,
        scale=Scale(groups, size, forks, vine_forks),
        seed=seed,
        log=lambda line: print(line, file=sys.stderr, flush=True),
    )
    written = _write(report, out) if out is not None else []
    if run is not None:
        written.append(_into_report(report, run))
    found = report.to_json() | {"files": [str(path) for path in written]}
    return VerbResult(found, lambda console: _print(console, report, written))


def _print(console: SafeConsole, report: Report, written: list[Path]) -> None:
    for source in report.sources:
        _show_source(console, report, source)
    for path in written:
        console.print(f"wrote {path}")


def _show_source(console: SafeConsole, report: Report, source: str) -> None:
    console.print(f"\n{source}", style="bold")
    rows = _rows(report, source)
    table(rows, [column for column in rows[0] if column not in PAGE_ONLY])(console)
    if by_stage := _stage_rows(report, source):
        console.print(f"\n{source}, by stage: correlation", style="bold")
        table(by_stage)(console)
    for name, missing in report.left_out.get(source, {}).items():
        console.print(f"{name} is left out: {', '.join(missing)} cannot be measured here", style="dim")


def _rows(report: Report, source: str) -> list[dict[str, Json]]:
    return [
        {
            "name": score.rule.name,
            **{key: said(score.figures[key]) for key in COLUMNS if key in score.figures},
            "extra": f"×{score.extra_steps:.1f}" if score.extra_steps else "",
            "ms/1000 turns": f"{score.milliseconds:.2f}",
            "declared": score.rule.bias.partition(":")[0].replace("changes the objective", "other objective"),
        }
        for score in report.of(source)
    ]


def _stage_rows(report: Report, source: str) -> list[dict[str, Json]]:
    """The correlation at each stage, side by side; nothing where there is one, or many small processes."""
    from turnwise.trainers.lab.quality import stage_labels

    stages = report.stages(source)
    if source == "processes" or len(stages) < 2:
        return []
    labels = stage_labels(stages)
    return [
        {
            "name": score.rule.name,
            **{
                label: said(score.by_stage[stage]["correlation"])
                for label, stage in zip(labels, stages, strict=True)
            },
        }
        for score in report.of(source)
    ]


def said(found: ScoreInterval) -> str:
    """A figure with its interval.

    >>> from turnwise.trainers.lab.quality import ScoreInterval
    >>> said(ScoreInterval(0.5, 0.25, 0.75)), said(ScoreInterval(1, 1, 1)), said(ScoreInterval(float("nan"), 0, 0))
    ('0.50 [0.25, 0.75]', '1.00', '–')
    """
    from math import isfinite

    if not isfinite(found.value):
        return "–"
    if found.low == found.high:
        return f"{found.value:.2f}"
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _write(report: Report, out: Path) -> list[Path]:
    import json

    from turnwise.machine import describe
    from turnwise.trainers.lab.plot import draw, draw_stages
    from turnwise.trainers.report.turns import page as turns_page

    out.mkdir(parents=True, exist_ok=True)
    data = out / "credit-quality.json"
    data.write_text(json.dumps({"machine": describe(), **report.to_json()}, allow_nan=False) + "\n")
    page = out / "credit-quality.md"
    page.write_text(_page(report))
    written = [data, page, draw(report, out / "credit-quality.svg")]
    if stages := draw_stages(report, out / "credit-quality-stages.svg"):
        written.append(stages)
    if report.shown:
        written.append(out / "credit-quality-turns.html")
        written[-1].write_text(turns_page(report.shown), "utf-8", errors="replace")
    return written


def _env_options(run: Path) -> dict[str, Json]:
    """With which the run made its environments."""
    from turnwise.trainers.recipe.load import load_recipe

    return dict(load_recipe(run / "recipe.yaml").rollout.env_options)


def _into_report(report: Report, run: Path) -> Path:
    """Keep the turns that are shown in the run's directory, and write its report anew."""
    from turnwise.trainers.report.page import write_report
    from turnwise.trainers.report.turns import TRUE_TURNS, save_groups

    save_groups(report.shown, run / TRUE_TURNS)
    return write_report(run)


def _page(report: Report) -> str:
    from turnwise.trainers.lab.score import FIGURES

    lines = ["# Credit rules against the truth", "", "Written by `turnwise credit-quality --out`.", ""]
    lines += [f"- **{name}**: {text}." for name, text in FIGURES.items()]
    lines += [
        "",
        "Brackets: 95 % bootstrap intervals over groups. *Extra*: steps of the environment that only measure, per step trained on.",
    ]
    for source in report.sources:
        rows = _rows(report, source)
        lines += ["", f"## {source}", ""]
        lines += [
            f"- {true_batch['stage']}: {true_batch['turns']} turns, mean return {true_batch['mean_return']}, "
            f"reliability of the truth {true_batch['reliability']}"
            for true_batch in report.batches
            if true_batch["source"] == source
        ]
        lines += ["", *_markdown(rows)]
        if by_stage := _stage_rows(report, source):
            lines += ["", "Correlation by stage:", "", *_markdown(by_stage)]
        left = report.left_out.get(source, {})
        lines += [""] + [
            f"`{name}` is left out: {', '.join(m)} cannot be measured here." for name, m in left.items()
        ]
    return "\n".join(lines) + "\n"


def _markdown(rows: list[dict[str, Json]]) -> list[str]:
    head = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    return head + ["| " + " | ".join(str(cell) for cell in row.values()) + " |" for row in rows]


def _offline(log: Path, rules: list[str], out: Path | None) -> VerbResult:
    import json

    from turnwise.trainers.lab.offline import swap_credit

    found = swap_credit(log, rules)
    written: list[Path] = []
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        written = [out / "credit-offline.json"]
        written[0].write_text(json.dumps(found.to_json(), indent=1, allow_nan=False) + "\n")

    def show(console: SafeConsole) -> None:
        table(found.rules)(console)
        for name, missing in found.left_out.items():
            console.print(f"{name} is left out: the log holds no {', '.join(missing)}", style="dim")
        for path in written:
            console.print(f"wrote {path}")

    return VerbResult(found.to_json() | {"files": [str(path) for path in written]}, show)


VERBS: dict[str, Callable[..., VerbResult]] = {"credit-quality": credit_quality}
