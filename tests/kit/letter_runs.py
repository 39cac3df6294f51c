"""Runs of the letters recipe by two learners, in processes that something else has started."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
import yaml

from turnwise.tools.processes import module_path
from turnwise.trainers.run.checkpoint import file_hashes, saved_steps
from turnwise.trainers.run.loop import train

TESTS = Path(__file__).parents[1]


class LetterRun:
    """The letters recipe, with a checkpoint after each update, and the processes that learn it.

    Args:
        folder: where everything of it is.
        updates: how many it makes.
        path: where its processes find modules, beside those of this one.
    """

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, updates: int, path: Sequence[Path] = ()
    ) -> None:
        monkeypatch.syspath_prepend(str(TESTS))
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        from letters import RECIPE, register_letters

        register_letters()
        evaluate = {"every": updates, "dev": 2, "test": 2}
        self.recipe: dict[str, Any] = yaml.safe_load(RECIPE) | {"updates": updates, "evaluate": evaluate}
        self.recipe |= {"checkpoint": {"every": 1, "keep": 9}}
        self.folder = folder
        (folder / "recipe.yaml").write_text(yaml.safe_dump(self.recipe))
        self._path = os.pathsep.join((*map(str, path), module_path()))
        self._processes: list[subprocess.Popen[bytes]] = []

    def launch(self, name: str, *command: str, **variables: str) -> subprocess.Popen[bytes]:
        """Start a process in this folder, whose lines go to a log of that name."""
        environment = {**os.environ, "PYTHONPATH": self._path, **variables}
        with (self.folder / f"{name}-{len(self._processes)}.log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, cwd=self.folder, stdout=log, stderr=log)
        self._processes.append(process)
        return process

    def checkpoint(self, out: str, step: int) -> Path:
        return self.folder / out / "checkpoints" / f"step-{step:06d}"

    def said(self) -> str:
        return "\n".join(path.read_text("utf-8", "replace")[-4000:] for path in self.folder.glob("*.log"))

    def weights(self, out: str) -> Mapping[str, str]:
        """The digests of the last checkpoint."""
        last = saved_steps(self.folder / out / "checkpoints")[-1]
        assert last == self.recipe["updates"]
        hashes = file_hashes(self.checkpoint(out, last))
        return {name: said for name, said in hashes.items() if name.endswith(".safetensors")}

    def alone(self, out: str) -> Mapping[str, str]:
        """The same of a run that starts its second learner by itself."""
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            recipe = self.recipe | {"scale": {"learners": 2}}
            train(recipe, out=self.folder / out, preflight=False, log=lambda line: None)
        finally:
            torch.set_num_threads(before)
        return self.weights(out)

    def end(self) -> None:
        """End what still runs of it."""
        for process in self._processes:
            if process.poll() is None:
                for one in psutil.Process(process.pid).children(recursive=True):
                    one.kill()
                process.kill()
                process.wait(60)
