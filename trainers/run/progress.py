"""A run's counters, and its final result."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.tasks.core import Json


class CheckpointEvaluation(NamedTuple):
    """An evaluation on test, of the policy before reinforcement or of the best checkpoint after it.

    Attributes:
        name: ``"warm start"`` or ``"before"``, and ``"after RL"``.
        mode: ``"sampled"`` or ``"greedy"``.
        evaluation: the figures.
    """

    name: str
    mode: str
    evaluation: Evaluation


class TrainingResult(NamedTuple):
    """The final result of a run.

    Attributes:
        path: the run's folder; ``vllm:PATH`` is the trained policy.
        evaluations: on test, before and after reinforcement, sampled and greedy.
        best_update: after which the checkpoint was written that did best on dev.
        learned: updates from which something was learned.
        interrupted: whether Ctrl-C stopped it, so that it can go on with ``resume=True``.
        seconds: of this call.
    """

    path: Path
    evaluations: tuple[CheckpointEvaluation, ...]
    best_update: int
    learned: int
    interrupted: bool
    seconds: float

    def to_json(self) -> dict[str, Json]:
        """One JSON object."""
        rows = [{"name": name, "mode": mode, **found.to_json()} for name, mode, found in self.evaluations]
        return {
            "run": str(self.path),
            "best_update": self.best_update,
            "learned": self.learned,
            "interrupted": self.interrupted,
            "seconds": round(self.seconds, 1),
            "evaluations": rows,
        }


@dataclasses.dataclass
class RunProgress:
    """The counters of a run, which a checkpoint holds beside weights and optimizer state.

    ``learned``: updates from which something was learned.
    ``vacuous``: updates in a row, up to now, from which nothing was learned.
    """

    update: int = 0
    best_update: int = 0
    best_score: float = -1.0
    tokens: int = 0
    failed: int = 0
    learned: int = 0
    vacuous: int = 0

    @classmethod
    def from_state(cls, state: Mapping[str, Json]) -> RunProgress:
        """The counters in a checkpoint's state."""
        return cls(**{f.name: state[f.name] for f in dataclasses.fields(cls) if f.name in state})


def update_line(update: int, updates: int, metrics: Mapping[str, Any], nothing: str = "") -> str:
    """One line about an update, for whoever watches; ``nothing`` says why nothing was learned in it."""
    dev = f"  dev {metrics['dev_success']:.3f}" if "dev_success" in metrics else ""
    learned = f"entropy {metrics['entropy']:.3f}" if "entropy" in metrics else "entropy –"
    because = f"  nothing was learned: {nothing}" if nothing else ""
    played = f"  {learned}"
    if "success" in metrics:
        success = metrics.get("success_unguided", metrics["success"])
        played = (
            f"  success {success:.3f}{played}  informative groups {metrics['informative']:.2f}"
            f"  {metrics['tokens_per_second']:5.0f} tok/s"
        )
    ahead = ""
    if "waited_seconds" in metrics:
        ahead = f"  waited {metrics['waited_seconds']:.1f} s  lag {metrics['lag']:.2f} ≤ {metrics['lag_most']:.0f}"
    return f"  update {update:3d}/{updates}{played}  {metrics['seconds']:4.1f} s{ahead}{dev}{because}"
