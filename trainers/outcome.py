"""What a run keeps count of, and what it came to."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.evaluate import Evaluation
from turnwise.tasks.core import Json


class Judged(NamedTuple):
    """An evaluation on test."""

    name: str
    mode: str
    evaluation: Evaluation


class Result(NamedTuple):
    """What a run came to."""

    path: Path
    evaluations: tuple[Judged, ...]
    best_update: int
    interrupted: bool
    seconds: float

    def to_json(self) -> dict[str, Json]:
        """One JSON object."""
        rows = [{"name": name, "mode": mode, **found.to_json()} for name, mode, found in self.evaluations]
        return {
            "run": str(self.path),
            "best_update": self.best_update,
            "interrupted": self.interrupted,
            "seconds": round(self.seconds, 1),
            "evaluations": rows,
        }


@dataclasses.dataclass
class Progress:
    """The counters of a run: all that a checkpoint must remember beside weights and optimizer.

    ``past``: visits of each task with mean and standard deviation of its returns, where a rule asks for them.
    """

    update: int = 0
    best_update: int = 0
    best_score: float = -1.0
    tokens: int = 0
    failed: int = 0
    past: dict[str, list[float]] = dataclasses.field(default_factory=dict[str, list[float]])

    @classmethod
    def from_state(cls, state: Mapping[str, Json]) -> Progress:
        """The counters in a checkpoint's state."""
        return cls(**{f.name: state[f.name] for f in dataclasses.fields(cls) if f.name in state})


def update_line(update: int, updates: int, metrics: Mapping[str, Any]) -> str:
    """One line about an update, for whoever watches."""
    dev = f"  dev {metrics['dev_success']:.3f}" if "dev_success" in metrics else ""
    return (
        f"  update {update:3d}/{updates}  success {metrics['success']:.3f}"
        f"  entropy {metrics.get('entropy', float('nan')):.3f}  informative groups {metrics['informative']:.2f}"
        f"  {metrics['tokens_per_second']:5.0f} tok/s  {metrics['seconds']:4.1f} s{dev}"
    )
