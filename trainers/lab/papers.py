"""Which paper is where: ``python -m turnwise.trainers.lab.papers > docs/papers.md``, from the registry alone."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import PurePosixPath

from turnwise.registry import Component, components
from turnwise.trainers.core import SEAMS

KINDS = (*SEAMS, "schedule")

COMPOSED = (
    ("KL-RL as Bayesian inference (7)", "", "a tested requirement: KL-regularised policy gradients rest at π₀·exp(r/β), and collapse without KL, on the exact processes (tests/trainers/test_fixed_points.py)"),
    ("SFT or RL? An early investigation (48)", "", "an experiment, not a part: `warm_start` before and `source: demonstrations` beside reinforcement (benchmarks/learning/plans/demonstrations.yaml)"),
    ("Verifier-based vs verifier-free scaling (122)", "", "theory, with a diagnostic: where successes of one task differ, rewards beat cloning; imitation of what was solved beside the others (benchmarks/learning/plans/offline.yaml)"),
    ("SuperHF (178)", "", "filter `{name: ranked, keep: best}` and loss `[nll, {name: rapo, failure: 1, success: 1, weight: 0.23}]`: best of n, and KL(π₀ ‖ π) on samples of π in place of its own"),
    ("VerIPO (246)", "", "`phases` of grpo, dpo and grpo, as in the recipe tulu3; left out: pairs that a judge builds (ours are in order of returns) and dropping 80 % of the mastered tasks"),
    ("HERO", "2606.11559", "teacher `hindsight`, which is told the environment's next observation, with `distill` or the shape `step_opsd`; left out: the reflection that turns an observation into a diagnosis"),
    ("StepOPSD", "2605.27140", "shape `step_opsd` with teacher `hindsight`"),
)  # fmt: skip
"""Rows of the formula book and papers that several parts are together: name, arXiv id where there is one, and how."""

NOT_HERE = (
    ("B-Coder (104)", "the book has no operator: the paper's conservative Bellman step was not found"),
    ("SS-ORL (103)", "the book has no formula or number: labels of inverse dynamics for episodes without actions, which no log here is"),
)  # fmt: skip
"""Rows of the formula book that are no part here, and why."""


def every_component() -> list[Component]:
    """All parts that have papers, in the order in which a batch passes them; schedules last."""
    return [entry for kind in KINDS for entry in components(kind)]


def home(entry: Component) -> str:
    """The file of a part, relative to the repository.

    >>> from turnwise.registry import get_component
    >>> home(get_component("credit", "rloo"))
    'trainers/credit/rloo.py'
    """
    return str(PurePosixPath(*inspect.unwrap(entry.target).__module__.split(".")[1:])) + ".py"


def row(entry: Component) -> str:
    """A line of the table."""
    paper = f"[{entry.paper}](https://arxiv.org/abs/{entry.paper})" if entry.paper else "–"
    evidence = entry.bias or entry.objective or "–"
    cells = (
        paper,
        f"`{entry.name}`",
        entry.kind,
        f"[{home(entry)}](../{home(entry)})",
        entry.summary,
        evidence,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _linked(name: str, paper: str) -> str:
    return f"{name} [{paper}](https://arxiv.org/abs/{paper})" if paper else name


def table(entries: Iterable[Component]) -> str:
    """A Markdown table of these parts, by paper."""
    head = ("paper", "component", "seam", "file", "what it does", "declared bias, measured, or objective")
    ordered = sorted(entries, key=lambda entry: (entry.paper, KINDS.index(entry.kind), entry.name))
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *map(row, ordered)]
    return "\n".join(lines)


def report() -> str:
    """The page."""
    entries = every_component()
    cited = [entry for entry in entries if entry.paper]
    composed = [f"| {_linked(name, paper)} | {how} |" for name, paper, how in COMPOSED]
    own = [entry for entry in entries if not entry.paper]
    count = len({entry.paper for entry in cited})
    return f"""# Papers and where they are

This page is written by `python -m turnwise.trainers.lab.papers`; `tests/trainers/test_papers.py` keeps it up to date.
{count} papers, {len(entries)} components, {sum(entry.kind == "credit" for entry in entries)} of them credit rules.

The evidence for a formula is the example worked by hand in its docstring, which runs as a test, together with the
contract tests in `tests/contract/`. A declared bias is compared with exact policy gradients
(`tests/contract/test_parts.py`, figures in [credit-bias.md](credit-bias.md)). The docstring of a rule says what it
leaves out of its paper, and what it adds.

{table(cited)}

## Without a paper

{table(own)}

## Several parts together

| paper (row of the formula book) | how |
|---|---|
{chr(10).join(composed)}

## Not here

| paper (row of the formula book) | why |
|---|---|
{chr(10).join(f"| {name} | {why} |" for name, why in NOT_HERE)}
"""


if __name__ == "__main__":
    print(report(), end="")
