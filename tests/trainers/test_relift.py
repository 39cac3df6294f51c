"""ReLIFT in a run: what whole groups failed at is demonstrated when enough of it waits, also by a run that was killed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turnwise.errors import RecipeError
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.loop import train

SHOWN = "source/relift/nll"
CLOCK = ("seconds", "tokens_per_second")


def test_it_is_refused_where_nothing_is_played() -> None:
    data = {"suite": "shop/quick", "model": {"scratch": {}}, "source": [{"name": "relift", "batch": 2}]}
    check_recipe(data)
    with pytest.raises(RecipeError, match=r"source 'relift' looks at what was played, and rollout\.groups 0"):
        check_recipe({**data, "rollout": {"groups": 0}})


@pytest.mark.slow
def test_what_waits_is_shown_and_a_run_that_was_killed_forgets_none_of_it(
    letters: dict[str, Any], tmp_path: Path
) -> None:
    source = {"name": "relift", "batch": 3, "loss": ["nll", {"name": "entropy", "weight": 0.001}]}
    rollout = {**letters["rollout"], "groups": 2, "group_size": 2}
    data = {
        **letters, "warm_start": None, "filter": "any", "updates": 3, "rollout": rollout, "source": [source],
        "evaluate": {"every": 3, "dev": 2, "test": 2}, "checkpoint": {"every": 1, "keep": 9},
    }  # fmt: skip
    data["optimizer"] = {**letters.get("optimizer", {}), "minibatches": 1}
    whole, killed = tmp_path / "whole", tmp_path / "killed"

    def run(out: Path, *, resume: bool = False) -> list[dict[str, Any]]:
        train(data, out=out, resume=resume, preflight=False, log=lambda line: None)
        found = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        return [
            {k: v for k, v in row.items() if not k.endswith(CLOCK)} for row in found if row["phase"] == "rl"
        ]

    rows = run(whole)
    assert [SHOWN in row for row in rows] == [False, True, True], "2 wait, then 4, of which 3 leave, then 3"
    shutil.copytree(whole, killed, symlinks=True)
    for later in ("step-000002", "step-000003"):
        shutil.rmtree(killed / "checkpoints" / later)
    assert run(killed, resume=True) == rows
    for step in (2, 3):
        for file in (whole / f"checkpoints/step-{step:06d}").rglob("*"):
            if file.is_file():
                assert (killed / file.relative_to(whole)).read_bytes() == file.read_bytes(), file.name
