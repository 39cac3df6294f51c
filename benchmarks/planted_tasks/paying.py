"""Calls the reward function of a JSONL set for one row, in the set's convention."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Payer(NamedTuple):
    """The rows of a set, by id, and its reward function."""

    rows: Mapping[str, Mapping[str, Any]]
    function: Callable[..., Any]
    convention: str

    def pays(self, task: str, completion: str) -> float:
        """Return the reward of a completion."""
        row = self.rows[task]
        if self.convention == "verl":
            truth = row["reward_model"]["ground_truth"]
            return float(self.function(row["data_source"], completion, truth, row["extra_info"]))
        if self.convention == "plain":
            return float(self.function(row["prompt"], row["answer"], completion))
        talks = isinstance(row["prompt"], list)
        said: Any = [{"role": "assistant", "content": completion}] if talks else completion
        others = {name: [value] for name, value in row.items() if name != "prompt"}
        return float(self.function(completions=[said], prompts=[row["prompt"]], **others)[0])


def payer(file: Path, convention: str) -> Payer:
    """Read a set and load its reward function."""
    source = file.parent / "reward.py"
    spec = importlib.util.spec_from_file_location(f"reward_of_{file.parent.name.replace('-', '_')}", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = {row["id"]: row for row in map(json.loads, file.read_text().splitlines())}
    return Payer(rows, module.compute_score if convention == "verl" else module.reward, convention)
