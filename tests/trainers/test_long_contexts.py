"""A run whose episodes have two hundred turns and four compactions: killed, resumed, replayed, relearned."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

torch = pytest.importorskip("torch")

from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.replay import replay
from turnwise.errors import RecipeError
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.checkpoint import file_hashes
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.relearn import relearn, weight_files

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(str(TESTS))
    from long_letters import RECIPE, register_long_letters

    register_long_letters()
    return RECIPE


def weights(run: Path) -> list[str]:
    hashes = file_hashes(run / "checkpoints/step-000002")
    return [hashes[name] for name in weight_files(hashes)]


def killed_in_its_second_update(recipe: str, run: Path) -> None:
    """A process that dies within an episode, at its 150th turn, after the checkpoint of the first update."""
    (run.parent / "recipe.yaml").write_text(recipe)
    env = os.environ | {"LONG_HOLD": str(run / "checkpoints/step-000001")}
    process = subprocess.Popen(
        [
            sys.executable,
            str(TESTS / "long_letters.py"),
            str(run.parent / "recipe.yaml"),
            str(run),
            "--no-preflight",
        ],
        env=env,
        stdout=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 200
        while not (run / "checkpoints/held").exists():
            assert process.poll() is None, "it ended before it was held"
            assert time.monotonic() < until, "it was never held"
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_two_hundred_turns_and_four_compactions_are_resumed_replayed_and_relearned(
    tmp_path: Path, recipe: str
) -> None:
    data = yaml.safe_load(recipe)
    whole, run = tmp_path / "whole", tmp_path / "run"
    train(data, out=whole, preflight=False, log=lambda line: None)
    killed_in_its_second_update(recipe, run)
    (run / "checkpoints/held").unlink()
    train(data, out=run, preflight=False, resume=True, log=lambda line: None)
    assert weights(run) == weights(whole)

    records = list(LogReader(run / "episodes.jsonl.zst"))
    assert len(records) == 4
    for record in records:
        turns = record.episode.trajectory.turns
        written = [turn for turn in turns if turn.kind == "memory"]
        assert len(written) >= 4
        assert len(turns) == 200 + len(written)
        assert all(len(turn.reply.logprobs) == len(turn.reply.action_ids) > 0 for turn in written)
        assert len(record.given) == len(turns), "they have advantages of their own"
    assert replay(records).ok
    found = relearn(run, out=tmp_path / "again")
    assert found.equal == (0, 1, 2)
    assert weights(tmp_path / "again") == weights(run)


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ({"guide": ["hint"]}, "a guide writes prompts"),
        ({"source": [{"name": "demonstrations", "episodes": 2}]}, "a source writes prompts"),
        ({"agent": {"command": ["true"]}}, "a program"),
    ],
)
def test_parts_that_write_prompts_do_not_go_with_a_context_manager(recipe: str, part, why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        check_recipe(yaml.safe_load(recipe) | part)
