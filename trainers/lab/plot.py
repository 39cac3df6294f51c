"""The picture of a credit-quality benchmark: how well each rule agrees with the truth, per source."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from turnwise.trainers.lab.quality import Report, RuleScore, stage_labels

COLOURS = {"unbiased": "#1a7f5a", "biased": "#9aa3ad", "changes the objective": "#c2571a"}


def draw(report: Report, path: Path) -> Path:
    """Write the picture; the suffix says in which format (.svg, .png)."""
    sources = report.sources
    rows = max(len(report.of(source)) for source in sources)
    figure = Figure(figsize=(5.6 * len(sources), 1.2 + 0.2 * rows), layout="constrained")
    for index, source in enumerate(sources):
        _panel(figure.add_subplot(1, len(sources), index + 1), source, report.of(source))
    for kind, colour in COLOURS.items():
        figure.axes[0].plot([], [], "o", color=colour, label=kind)
    figure.legend(loc="outside upper right", ncols=3, fontsize=7, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return path


def draw_stages(report: Report, path: Path) -> Path | None:
    """A table in colours: how well each rule agrees with the truth at each stage of the policy, per suite.

    None where no suite was played by more than one policy.
    """
    sources = [s for s in report.sources if s != "processes" and len(report.stages(s)) > 1]
    if not sources:
        return None
    rows = max(len(report.of(source)) for source in sources)
    figure = Figure(figsize=(5.2 * len(sources), 1.4 + 0.2 * rows), layout="constrained")
    for index, source in enumerate(sources):
        axes = figure.add_subplot(1, len(sources), index + 1)
        scores, stages = report.of(source), report.stages(source)
        cells = [[score.by_stage[stage]["correlation"].value for stage in stages] for score in scores]
        axes.imshow(cells, cmap="RdYlGn", vmin=-1, vmax=1, aspect="auto")
        for y, row in enumerate(cells):
            for x, value in enumerate(row):
                axes.text(
                    x, y, f"{value:.2f}" if isfinite(value) else "–", ha="center", va="center", fontsize=6
                )
        axes.set_yticks(range(len(scores)), [score.rule.name for score in scores], fontsize=7)
        axes.set_xticks(range(len(stages)), stage_labels(stages), fontsize=7, rotation=20, ha="right")
        axes.set_title(f"{source}: correlation with the truth, by stage", fontsize=9, loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return path


def _panel(axes: Axes, source: str, scores: list[RuleScore]) -> None:
    for y, score in enumerate(reversed(scores)):
        found = score.figures["correlation"]
        colour = COLOURS[score.rule.bias.partition(":")[0]]
        axes.plot([found.low, found.high], [y, y], color=colour, linewidth=1.5, solid_capstyle="round")
        axes.plot([found.value], [y], "o", color=colour, markersize=3.5)
    axes.axvline(0, color="#d0d4d9", linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(scores)), [score.rule.name for score in reversed(scores)], fontsize=7)
    axes.set_ylim(-0.7, len(scores) - 0.3)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("correlation with the true advantage (95 % interval)", fontsize=8)
    axes.set_title(source, fontsize=9, loc="left")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
