"""Records of runs for audits: learning curves, sizes of models, episodes of the first update."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from turnwise.errors import TurnwiseError
from turnwise.trainers.compare.sources import RunRecords

_WEIGHTS = "*.safetensors"
_LONGEST = 100 << 20  # of a header


@dataclass(frozen=True)
class AuditedRuns:
    """Runs of one method, by their records."""

    runs: tuple[RunRecords, ...]

    @property
    def label(self) -> str:
        return ", ".join(str(run.path) for run in self.runs)

    def one(self, wanted: str) -> RunRecords:
        """The only run.

        Raises:
            TurnwiseError: several were named.
        """
        if len(self.runs) != 1:
            raise TurnwiseError(
                f"{len(self.runs)} runs are named, and {wanted} is of one.", "Audit them one by one."
            )
        return self.runs[0]


def read_runs(paths: Sequence[str]) -> AuditedRuns:
    """The records of these runs.

    Raises:
        TurnwiseError: one is no run, or is damaged.
    """
    runs = tuple(RunRecords(Path(path)) for path in paths)
    for run in runs:
        if not run.metrics and not run.rows:
            raise TurnwiseError(
                f"{run.path} holds no records of a run.", "Name the folder that `turnwise train --out` wrote."
            )
    return AuditedRuns(runs)


def parameters_of(run: RunRecords) -> int | None:
    """Number of the model's weights, by the headers of a checkpoint; None where the run keeps none."""
    folders = [run.path / "best" / "model", *sorted((run.path / "checkpoints").glob("step-*/model"))]
    for folder in folders:
        if files := sorted(folder.glob(_WEIGHTS)):
            return sum(map(_weights, files))
    return None


def _weights(path: Path) -> int:
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(size, _LONGEST)))
        return sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
    except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
        raise TurnwiseError(f"{path} cannot be read: {error!r}.", "Put it back from a copy.") from None
