"""Report on a pair of releases: how many tests and tasks had which fate, and what each step cost."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

_T = TypeVar("_T")


class StepCost(NamedTuple):
    """Cost of a part of the work.

    It is in seconds of wall time and of this process's and its children's processor time.
    """

    name: str
    seconds: float
    cpu: float


@dataclass
class PairReport:
    """Report on a pair of releases. ``fates``: how many changes, tests, then tasks, had which."""

    package: str
    older: str
    newer: str
    problem: str = ""
    fates: dict[str, int] = field(default_factory=dict[str, int])
    steps: list[StepCost] = field(default_factory=list[StepCost])

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def tasks(self) -> int:
        return self.fates.get("tasks", 0)

    def count(self, fate: str, number: int = 1) -> None:
        if number:
            self.fates[fate] = self.fates.get(fate, 0) + number

    def timed(self, name: str, work: Callable[[], _T]) -> _T:
        """Do a part of the work, and note what it took."""
        since, spent = time.monotonic(), _cpu()
        try:
            return work()
        finally:
            self.steps.append(StepCost(name, round(time.monotonic() - since, 2), round(_cpu() - spent, 2)))

    def __str__(self) -> str:
        told = ", ".join(f"{number} {fate}" for fate, number in self.fates.items())
        told = "; ".join(part for part in (self.problem, told) if part) or "nothing changed"
        cost: dict[str, float] = {}
        for step in self.steps:
            cost[step.name] = cost.get(step.name, 0.0) + step.seconds
        spent = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in cost.items() if seconds >= 0.5)
        return f"{self.package} {self.older} → {self.newer}: {told}" + (f" ({spent})" if spent else "")


def note(notes: Path, report: PairReport) -> None:
    """Add a report to a file of them."""
    with notes.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(report)) + "\n")


def noted(notes: Path) -> list[PairReport]:
    """The reports of a file; a last line that was cut short is none."""
    text = notes.read_text("utf-8") if notes.exists() else ""
    rows: list[dict[str, Any]] = [json.loads(line) for line in text.split("\n")[:-1]]
    return [PairReport(**{**row, "steps": [StepCost(*step) for step in row["steps"]]}) for row in rows]


def _cpu() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
