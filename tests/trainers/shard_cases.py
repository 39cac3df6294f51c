"""Two learners that divide their weights, each a process of its own: ``python shard_cases.py FOLDER CASE…``.

Both are forks of the process that was started, so that what they import is imported once. Each case compares with whole weights in the first
one's process, and says what it found; FOLDER/found.json has that. ``shard_cases.py FOLDER kill 20`` kills the second one twenty
times, each time in a pass that both take, and says how long the first one took to notice.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import distributed

sys.path.insert(0, str(Path(__file__).parent))

from signals_by_hand import measured, signals
from test_learner import SHAPES, advantages, episode, objective, spoken

from turnwise.agents.policies.model import ChatFormat
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.group import process_group
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.mesh import Mesh, MeshSeat
from turnwise.trainers.learn.minibatch import Stream
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.passes import Reader
from turnwise.trainers.learn.ranks import Meeting, Rank
from turnwise.trainers.learn.shards import divide
from turnwise.trainers.learn.sync import canary_sequences, trainer_logprobs
from turnwise.trainers.learn.team import Alone
from turnwise.trainers.learn.weights import weights_of
from turnwise.trainers.run.checkpoint import read_state, restore, save_checkpoint, verify
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
    ours, theirs = ({name: x.clone() for name, x in copy.tensors().items()} for copy in copies)
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


def led(place: Place, learner: Learner, work: Callable[[], Any]) -> Any:
    """Do something in the first learner, which has the other take part where it must."""
    if place.rank:
        while (call := heard(None)) is not None:
            call.carried_out(MeshSeat(learner, {}))
        return None
    place.mesh.tell = heard
    try:
        return work()
    finally:
        place.mesh.tell = lambda call: None
        heard(None)


def heard(call: Any) -> Any:
    """What the first learner says to the others."""
    said = [call]
    distributed.broadcast_object_list(said, src=0)
    return said[0]


class Speechless:
    """A tokeniser that nobody asks."""

    def save_pretrained(self, path: Path) -> None:
        """There is nothing to save."""


def saved(learner: Learner, path: Path) -> Path:
    return save_checkpoint(path, 1, learner, {}, Speechless(), ChatFormat("none", 8, ""), {})


def checkpoints(place: Place, kind: str) -> dict[str, Any]:
    """From two learners to two, to one that holds everything, and to two again; the next update of each."""
    batch, gaps = batch_of(), dict[str, float]()

    def learn(learner: Learner, step: int) -> dict[str, torch.Tensor]:
        learner.update(batch, advantages(batch, step), clipped())
        return weights(learner)

    def resumed(make: Callable[..., Learner], path: Path) -> Learner:
        learner = make(kind)
        learn(learner, 9)  # it had other weights and moments
        restore(path, learner, {}, read_state(path))
        return learner

    ours, folder = place.sharded(kind), place.folder / kind
    learn(ours, 0)
    led(place, ours, lambda: saved(ours, folder / "parts"))
    path = folder / "parts" / "step-000001"
    wanted = learn(ours, 1)
    again, one = resumed(place.sharded, path), resumed(place.alone, path)
    gaps["two to two"] = gap(learn(again, 1), wanted)
    gaps["two to one"] = gap(learn(one, 1), wanted)
    if not place.rank:
        saved(one, folder / "whole")
    distributed.barrier()
    two = resumed(place.sharded, folder / "whole" / "step-000001")
    gaps["one to two"] = gap(learn(two, 2), learn(one, 2))
    files = {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}
    return {"gap": max(gaps.values()), "gaps": gaps, "files": sorted(files), "damaged": verify(path)}


def kill(place: Place) -> float:
    """Have the second learner killed in a pass. Return the seconds until the first one sees that."""
    learner, batch = place.sharded(), batch_of()
    learner.update(batch, advantages(batch), clipped())
    began, passes = time.monotonic(), learner.reader.states

    def doomed(*given: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)
        return passes(*given)

    if place.rank:
        learner.reader.states = doomed
    try:
        learner.update(batch, advantages(batch), clipped())
    except RuntimeError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return time.monotonic() - began
    raise AssertionError("nothing was noticed")


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
    "a minibatch that says nothing": lambda at: update(
        at, "plain", clipped, batch=collate([[episode([]), episode([])], [spoken(SHAPES[0], 0), spoken(SHAPES[2], 1)]])
    ),
    "one pass and nine": lambda at: update(
        at, "plain", clipped, batch=batch_of([(90, 9)], *[[(5, 4)]] * 9), minibatches=1, micro_tokens=10, share="rows"
    ),
    "value head": value_head,
    "two streams": streams,
    "implicit rewards": implicit,
    "checkpoints": lambda at: checkpoints(at, "plain"),
    "checkpoints of adapters": lambda at: checkpoints(at, "lora"),
    "push": lambda at: pushed(at, "plain"),
    "push tied": lambda at: pushed(at, "tied"),
    "push lora": lambda at: pushed(at, "lora"),
}  # fmt: skip


def learner(folder: Path, rank: int, names: Sequence[str]) -> None:
    """Be one of the two."""
    found: dict[str, Any] = {}
    with process_group(rank, 2, Meeting.in_file(folder / "weights", 2), CPU, 60.0):
        place = Place(folder, rank, 2)
        for name in names:
            try:
                found[name] = kill(place) if name == "kill" else CASES[name](place)
            except Exception as error:  # noqa: BLE001  it is told, and the other learner is gone with this one
                traceback.print_exc()
                found[name] = {"error": f"{type(error).__name__}: {error}"}
                break
            finally:
                if not rank:
                    (folder / "found.json").write_text(json.dumps(found))


def both(folder: Path, names: Sequence[str]) -> list[int]:
    """Run cases in two processes, forks of this one, which computes nothing itself. Return how they ended."""
    folder.mkdir(parents=True, exist_ok=True)
    started: list[int] = []
    for rank in (0, 1):
        child = os.fork()
        if not child:
            learner(folder, rank, names)
            os._exit(0)  # a group that has lost one cannot be left in order
        started.append(child)
    return [os.waitpid(child, 0)[1] for child in started]


if __name__ == "__main__":
    torch.set_num_threads(1)
    at, asked = Path(sys.argv[1]), sys.argv[2:]
    if asked[:1] == ["kill"]:
        took: list[float] = []
        for number in range(int(asked[1])):
            assert both(at / str(number), ["kill"])[1] == signal.SIGKILL
            took.append(json.loads((at / str(number) / "found.json").read_text())["kill"])
        (at / "found.json").write_text(json.dumps({"kill": took}))
    else:
        assert both(at, asked or [*CASES]) == [0, 0]
