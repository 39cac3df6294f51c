"""Two learners that divide their weights, each a process of its own: ``python shard_cases.py FOLDER RANK SIZE CASE…``.

Each case compares with whole weights in the first one's process, and says what it found; FOLDER/found.json has that.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))

from signals_by_hand import measured, signals
from test_learner import SHAPES, advantages, objective, spoken

from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.group import process_group
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.mesh import Mesh
from turnwise.trainers.learn.minibatch import Stream
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.passes import Reader
from turnwise.trainers.learn.ranks import Meeting, Rank
from turnwise.trainers.learn.shards import divide
from turnwise.trainers.learn.sync import canary_sequences, trainer_logprobs
from turnwise.trainers.learn.team import Alone
from turnwise.trainers.learn.weights import weights_of
from turnwise.trainers.signal.reward_model import ImplicitReward

CPU = torch.device("cpu")
OPTIONS: dict[str, Any] = {
    "learning_rate": 1e-2, "epochs": 2, "minibatches": 2, "micro_tokens": 24, "max_grad_norm": 0.3
}  # fmt: skip


class Place:
    """One of the learners, and where it writes."""

    def __init__(self, folder: Path, rank: int, size: int) -> None:
        self.folder, self.rank, self.size = folder, rank, size
        self.team: Any = Rank(rank, size, Meeting.in_file(folder / "team", size), patience_s=60.0)
        self.mesh = Mesh(CPU, rank)

    def sharded(self, kind: str = "plain", heads: Sequence[Any] = (), **options: Any) -> Learner:
        learner = Learner(divide(made(kind), self.mesh), OptimizerOptions(**OPTIONS | options), heads=heads)
        learner.team = self.team
        return learner

    def alone(self, kind: str = "plain", heads: Sequence[Any] = (), **options: Any) -> Learner:
        learner = Learner(made(kind), OptimizerOptions(**OPTIONS | options), heads=heads)
        learner.team = Alone(self.size)
        return learner


def made(kind: str) -> Any:
    """A small Llama of this kind, the same in each process."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    model: Any = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=320, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=512, tie_word_embeddings="tied" in kind,
        )
    )  # fmt: skip
    if "lora" in kind:
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(
            r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False
        )
        torch.manual_seed(1)
        model = get_peft_model(model, config)
    if "again" in kind:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    return model.train("again" in kind)


def batch_of(*shapes: list[tuple[int, int]]) -> TrainingBatch:
    said = [
        spoken(s, i, fresh=frozenset({1}) if i == 0 and len(s) > 1 else frozenset())
        for i, s in enumerate(shapes or SHAPES)
    ]
    half = (len(said) + 1) // 2
    return collate([said[:half], said[half:]] if half < len(said) else [said])


def weights(learner: Learner) -> dict[str, torch.Tensor]:
    return {
        f"{place}/{name}": tensor.clone()
        for place, held in enumerate(learner.weights)
        for name, tensor in held.state().items()
    }


def gap(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float:
    assert ours.keys() == theirs.keys()
    return max(float((ours[name] - theirs[name]).abs().max()) for name in theirs)


def update(
    place: Place,
    kind: str,
    aim: Callable[[], Any],
    *,
    batch: TrainingBatch | None = None,
    steps: int = 2,
    **options: Any,
) -> dict[str, Any]:
    """Some updates of divided weights and of whole ones."""
    batch = batch or batch_of()
    ours, theirs = place.sharded(kind, **options), place.alone(kind, **options)
    before, found, wanted = weights(theirs), dict[str, float](), dict[str, float]()
    for step in range(steps):
        found = ours.update(batch, advantages(batch, step), aim())
        wanted = theirs.update(batch, advantages(batch, step), aim())
    return {
        "gap": gap(weights(ours), weights(theirs)),
        "moved": gap(weights(theirs), before),
        "metrics": max(abs(found[name] - wanted[name]) for name in wanted),
        "kept": sum(p.to_local().numel() for p in ours.weights[0].trainable())
        / sum(p.numel() for p in theirs.weights[0].trainable()),
    }


def clipped() -> Any:
    return objective("clip", "entropy", correction="tis")


def value_head(place: Place) -> dict[str, Any]:
    learners: list[Any] = []
    for make in (place.sharded, place.alone):
        found = signals("value", "value")
        learner = make("plain", found.heads)
        batch = measured(found, learner, batch_of())
        learner.update(batch, advantages(batch), objective("clip"))
        learners.append(learner)
    return {"gap": gap(weights(learners[0]), weights(learners[1]))}


def streams(place: Place) -> dict[str, Any]:
    shown, learners = batch_of([(4, 6)], [(3, 2), (5, 1)], [(2, 9)]), list[Learner]()
    for learner in (place.sharded(), place.alone()):
        batch = batch_of()
        beside = Stream(shown, shown.turns.mask_BK.double(), objective("nll"), name="source/s")
        learner.update(batch, advantages(batch), clipped(), beside=[beside])
        learners.append(learner)
    return {"gap": gap(weights(learners[0]), weights(learners[1]))}


def implicit(place: Place) -> dict[str, Any]:
    """A copy that all learners train on all rows, and its checkpoint."""
    batch = batch_of()
    success_B = torch.arange(len(SHAPES)) % 2 == 0
    copies: list[ImplicitReward] = []
    for model in (divide(made("plain"), place.mesh, alike=True), made("plain")):
        copy = ImplicitReward(
            model, Reader(CPU, 1.0, "float32"), "outcomes", learning_rate=1e-2, micro_tokens=24
        )
        for _ in range(2):
            copy.learn(batch, batch.rows.behaviour_logp_RT, success_B)
        copies.append(copy)
    ours, theirs = (dict(copy.tensors()) for copy in copies)
    copies[0].load(theirs)
    copies[1].load(ours)
    for copy in copies:
        copy.learn(batch, batch.rows.behaviour_logp_RT, success_B)
    after = gap(dict(copies[0].tensors()), dict(copies[1].tensors()))
    return {"gap": gap(ours, theirs), "after": after}


def pushed(place: Place, kind: str) -> dict[str, Any]:
    """What an engine is given, before an update and after it; and the canary's own side."""
    ours, theirs = place.sharded(kind), place.alone(kind)
    batch, gaps = batch_of(), list[float]()
    for learner in (ours, theirs):
        learner.score(batch.rows)  # leaves the root whole
    for step in range(2):
        found = {name: x.clone() for name, x in weights_of(ours.model).gather()}
        gaps.append(gap(found, {name: x.clone() for name, x in weights_of(theirs.model).gather()}))
        for learner in (ours, theirs):
            learner.update(batch, advantages(batch, step), clipped())
    sequences, scored = canary_sequences(320, 1), list[float]()
    for dtype in (torch.float32, torch.bfloat16):
        both = [trainer_logprobs(one.model, sequences, computed_in=dtype) for one in (ours, theirs)]
        scored.append(float((both[0] - both[1]).abs().max()))
    learners = weights(ours), weights(theirs)
    return {"gap": max(gaps), "canary": max(scored), "after": gap(*learners)}


CASES: dict[str, Callable[[Place], dict[str, Any]]] = {
    "full": lambda at: update(at, "plain", clipped),
    "tied": lambda at: update(at, "tied", clipped),
    "by trajectory": lambda at: update(
        at, "plain", lambda: objective("clip", correction="mis", level="trajectory")
    ),
    "checkpointing": lambda at: update(at, "plain again", clipped),
    "trees": lambda at: update(at, "plain", clipped, share="tree"),
    "lora": lambda at: update(at, "lora", clipped),
    "lora and its reference": lambda at: update(
        at, "lora", lambda: objective("clip", "kl", reference=True)
    ),
    "one row for two": lambda at: update(at, "plain", clipped, batch=batch_of([(7, 3)]), minibatches=1),
    "one pass and nine": lambda at: update(
        at, "plain", clipped, batch=batch_of([(90, 9)], *[[(5, 4)]] * 9), minibatches=1, micro_tokens=10, share="rows"
    ),
    "value head": value_head,
    "two streams": streams,
    "implicit rewards": implicit,
    "push": lambda at: pushed(at, "plain"),
    "push tied": lambda at: pushed(at, "tied"),
    "push lora": lambda at: pushed(at, "lora"),
}  # fmt: skip


def main(folder: Path, rank: int, size: int, names: Sequence[str]) -> None:
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    with process_group(rank, size, Meeting.in_file(folder / "weights", size), CPU, 60.0):
        place = Place(folder, rank, size)
        for name in names or CASES:
            print(name, flush=True)
            try:
                found[name] = CASES[name](place)
            except Exception as error:  # noqa: BLE001  told, and the other learner is gone with this one
                traceback.print_exc()
                found[name] = {"error": f"{type(error).__name__}: {error}"}
                break
            finally:
                (folder / f"found-{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
        sys.stdout.flush()
        os._exit(0)
