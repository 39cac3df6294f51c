"""MLflow."""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turnwise.extras import needing
from turnwise.registry import component

_FOLDER = "turnwise.folder"


@component("sink", "mlflow")
class MLflow:
    """MLflow: a database in the run's folder, ``mlflow.db``, or the server that ``uri`` names.

    A run that is resumed goes on as the same run of MLflow. What MLflow would tell its makers of its use is not sent, unless
    ``MLFLOW_DISABLE_TELEMETRY=false`` stands in the environment.

    Args:
        folder: the run's.
        update: the newest one that counts.
        experiment: under which the run is found.
        uri: of a tracking server or a database, such as ``http://localhost:5000``; the run's own unless given.
    """

    def __init__(self, folder: Path, update: int, *, experiment: str = "turnwise", uri: str = "") -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        with needing("the sink mlflow"):
            mlflow: Any = importlib.import_module("mlflow")  # a name that this file has too

        self._client: Any = mlflow.MlflowClient(
            tracking_uri=uri or f"sqlite:///{folder.resolve() / 'mlflow.db'}"
        )
        found = self._client.get_experiment_by_name(experiment)
        where = found.experiment_id if found else self._client.create_experiment(experiment)
        place = str(folder.resolve())
        earlier = self._client.search_runs([where], f"tags.`{_FOLDER}` = '{place}'", max_results=1)
        self._run: str = (
            earlier[0].info.run_id
            if earlier
            else self._client.create_run(where, run_name=folder.name, tags={_FOLDER: place}).info.run_id
        )

    def write(self, update: int, metrics: Mapping[str, Any]) -> None:
        """Show an update's numbers."""
        for name, value in metrics.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
                self._client.log_metric(self._run, name, float(value), step=update)

    def close(self) -> None:
        """Mark the run as finished."""
        self._client.set_terminated(self._run)
