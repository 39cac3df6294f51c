"""The seam for how weights are held: whatever trains, clips, saves, publishes or copies them goes through it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

from test_checkpoint import CPU
from test_learner import SHAPES, advantages, objective, spoken
from transformers import AutoTokenizer

from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.policies.model import ChatFormat
from turnwise.trainers.learn import learner, sync
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.learn.options import LoraOptions, OptimizerOptions
from turnwise.trainers.learn.passes import Reader
from turnwise.trainers.learn.team import Alone
from turnwise.trainers.learn.whole import Whole
from turnwise.trainers.run import checkpoint
from turnwise.trainers.run.checkpoint import read_state, restore, save_checkpoint
from turnwise.trainers.signal import reward_model
from turnwise.trainers.signal.reward_model import ImplicitReward

TRAINERS = Path(__file__).resolve().parents[2] / "trainers"
WALKS = {"parameters", "named_parameters", "state_dict", "load_state_dict", "clip_grad_norm_", "full_tensor"}
BESIDE = {
    (
        "learn/sync.py",
        "named_parameters",
    ),  # a module's own weights are in another type while it computes the canary
    ("learn/optimizer.py", "state_dict"),  # the optimizer's, not a module's
    ("learn/optimizer.py", "load_state_dict"),
    ("run/planning.py", "parameters"),  # a head's that is made without memory, to be counted
}


def test_nothing_else_in_a_run_walks_a_modules_parameters() -> None:
    found = {
        (path.relative_to(TRAINERS).as_posix(), node.func.attr)
        for room in ("learn", "run", "signal", "teacher", "source", "strategy", "guide", "judge")
        for path in sorted((TRAINERS / room).glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WALKS
    }
    kinds = {"learn/whole.py", "learn/shards.py"}
    walked = {walk for walk in found if walk[0] not in kinds}
    assert walked == BESIDE
    assert {walk[0] for walk in found - walked} == kinds, "these are where they are walked"


class Noted(Whole):
    """Another kind of holding weights, which notes what it is asked for."""

    asked: set[str]

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name not in ("module", "asked"):
            type(self).asked.add(name)
        return super().__getattribute__(name)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    found: set[str] = set()
    monkeypatch.setattr(Noted, "asked", found, raising=False)
    for module in (learner, sync, checkpoint, reward_model):
        monkeypatch.setattr(module, "weights_of", Noted)
    return found


@pytest.mark.parametrize("lora", [None, LoraOptions(2, 32, "all-linear")], ids=["full", "lora"])
def test_a_run_asks_another_kind_for_all_that_it_needs_of_weights(
    small_model: Path, tmp_path: Path, asked: set[str], lora: LoraOptions | None
) -> None:
    model = load_model(small_model, CPU, lora)
    learns = Learner(model, OptimizerOptions(learning_rate=0.01, max_grad_norm=0.3))
    learns.team = Alone(2)
    batch = collate([[spoken(SHAPES[0], 0), spoken(SHAPES[1], 1)]])
    learns.update(batch, advantages(batch), objective())
    assert {"trainable", "copied", "clip"} <= asked
    asked.clear()
    path = save_checkpoint(
        tmp_path, 1, learns, {}, AutoTokenizer.from_pretrained(small_model), ChatFormat("none", 8, ""), {}
    )
    assert asked >= {"gather", "adapted", "names", "parted"}
    asked.clear()
    again = Learner(load_model(small_model, CPU, lora), learns.options)
    restore(path, again, {}, read_state(path))
    assert ("restore" if lora else "load") in asked
    assert all(
        torch.equal(a, b) for a, b in zip(again.model.parameters(), learns.model.parameters(), strict=True)
    )
    asked.clear()
    engine = TorchEngine(str(small_model), context_length=64)
    sync.push_weights(model, engine, 1)
    assert "publish" in asked


def test_a_copy_that_is_trained_beside_the_policy_asks_too(small_model: Path, asked: set[str]) -> None:
    model = load_model(small_model, CPU)
    copy = ImplicitReward(
        model, Reader(CPU, 1.0, "float32"), "outcomes", learning_rate=1e-3, micro_tokens=512
    )
    batch = collate([[spoken(SHAPES[0], 0), spoken(SHAPES[1], 1)]])
    copy.learn(batch, batch.rows.behaviour_logp_RT, torch.tensor([True, False]))
    copy.load(copy.tensors())
    assert {"trainable", "clip", "state", "restore"} <= asked
