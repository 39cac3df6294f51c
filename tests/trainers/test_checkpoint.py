"""Checkpoints are whole or not there: after kills, full disks, flipped bits and torn files."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

from signals_by_hand import signals
from transformers import AutoTokenizer

from turnwise import durable
from turnwise.agents.core import Sampling
from turnwise.agents.policies.model import ChatFormat, ModelPolicy
from turnwise.agents.policies.registry import make_policy
from turnwise.errors import RunError
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.learn.options import LoraOptions, OptimizerOptions
from turnwise.trainers.run import checkpoint
from turnwise.trainers.run.checkpoint import (
    load_newest,
    prune,
    read_state,
    remove_after,
    restore,
    save_checkpoint,
    verify,
)

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def tokenizer(small_model: Path) -> Any:
    return AutoTokenizer.from_pretrained(small_model)


def learner_of(folder: Path, *, lora: bool = False, seed: int = 0) -> Learner:
    model = load_model(folder, CPU, LoraOptions(2, 32, "all-linear") if lora else None, seed=seed)
    return Learner(model, OptimizerOptions(learning_rate=0.01), heads=signals("value", seed=seed).heads)


def train(learner: Learner, steps: int) -> None:
    """Steps whose gradients depend on the weights and on the number of steps made."""
    for _ in range(steps):
        for held in learner.weights:
            for p in held.trainable():
                p.grad = torch.sin(p.detach() * 7 + learner.steps)
        learner._descend(learner._rate())  # pyright: ignore[reportPrivateUsage]


def weights(learner: Learner) -> list[torch.Tensor]:
    return [p.detach().clone() for held in learner.weights for p in held.module.parameters()]


def same(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.fixture
def save(tmp_path: Path, small_model: Path, tokenizer: Any) -> Callable[..., Path]:
    learner = learner_of(small_model)

    def one(step: int) -> Path:
        train(learner, 1)
        return save_checkpoint(
            tmp_path / "c", step, learner, {}, tokenizer, ChatFormat("none"), {"update": step}
        )

    return one


@pytest.mark.parametrize("lora", [False, True], ids=["full", "lora"])
def test_training_goes_on_as_if_it_had_not_stopped(
    tmp_path: Path, small_model: Path, tokenizer: Any, lora: bool
) -> None:
    learner = learner_of(small_model, lora=lora)
    train(learner, 3)
    saved = save_checkpoint(
        tmp_path, 7, learner, {}, tokenizer, ChatFormat("text", 9), {"update": 7, "note": "x"}
    )
    train(learner, 3)

    other = learner_of(small_model, lora=lora, seed=5)
    train(other, 1)
    loaded = load_newest(tmp_path)
    assert loaded is not None
    assert (loaded.path, loaded.notes) == (saved, ())
    assert loaded.state == {"update": 7, "note": "x", "learner_steps": 3, "parts": {}}
    restore(loaded.path, other, {}, loaded.state)
    train(other, 3)
    assert other.steps == 6
    assert same(weights(learner), weights(other))


def test_it_is_a_model_folder_without_pickles(tmp_path: Path, small_model: Path, tokenizer: Any) -> None:
    learner = learner_of(small_model, lora=True)
    train(learner, 2)
    path = save_checkpoint(tmp_path, 0, learner, {}, tokenizer, ChatFormat("text", 9), {})
    assert {file.suffix for file in path.rglob("*") if file.is_file()} <= {".safetensors", ".json", ".jinja"}
    merged = load_model(path / "model", CPU)
    tokens = torch.arange(20, 60)[None]
    with torch.no_grad():
        assert torch.allclose(merged(tokens).logits, learner.model(tokens).logits, atol=1e-4)
        assert not torch.allclose(
            merged(tokens).logits, load_model(small_model, CPU)(tokens).logits, atol=1e-2
        )


def test_it_is_played_as_it_was_trained(tmp_path: Path, small_model: Path, tokenizer: Any) -> None:
    path = save_checkpoint(
        tmp_path, 0, learner_of(small_model), {}, tokenizer, ChatFormat("none", 9, "Aim."), {}
    )
    other = {"max_tokens": 5, "tools": "text", "instruction": "Rest."}
    for given, said in ({}, ("none", 9, "Aim.")), (other, ("text", 5, "Rest.")):
        policy = make_policy(f"torch:{path / 'model'}", **given)
        assert isinstance(policy, ModelPolicy)
        renderer = policy.renderer
        assert (renderer.template.tools_format, policy.sampling.max_tokens, renderer.instruction) == said
        policy.close()
    (path / "model" / "turnwise.json").unlink()  # a model from elsewhere
    policy = make_policy(f"torch:{path / 'model'}")
    assert isinstance(policy, ModelPolicy)
    assert policy.sampling == Sampling(1.0, 1.0, 256)
    policy.close()


def test_the_checkpoint_of_another_model_is_refused(
    tmp_path: Path, small_model: Path, tokenizer: Any, tied_checkpoint: Path
) -> None:
    path = save_checkpoint(tmp_path, 1, learner_of(small_model), {}, tokenizer, ChatFormat("none"), {})
    with pytest.raises(RunError, match="another model"):
        restore(path, learner_of(tied_checkpoint), {}, read_state(path))
    with pytest.raises(RunError, match="another model"):
        restore(path, learner_of(small_model, lora=True), {}, read_state(path))


# --- damage ------------------------------------------------------------------------------------------

FILES = (
    "model/model.safetensors",
    "model/tokenizer.json",
    "model/config.json",
    "trainer.safetensors",
    "state.json",
)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


DAMAGE = {"flip": flip, "cut": cut, "missing": Path.unlink}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("file", [*FILES, "MANIFEST.json"])
def test_a_damaged_file_is_named_and_the_one_before_is_used(
    save: Callable[..., Path], file: str, damage: str
) -> None:
    first, second = save(1), save(2)
    DAMAGE[damage](second / file)
    assert verify(first) is None
    loaded = load_newest(first.parent)
    assert loaded is not None
    assert loaded.path == first
    (note,) = loaded.notes
    assert note.startswith("step-000002/")
    assert file in note or file == "MANIFEST.json"
    assert "missing" in note if damage == "missing" else "missing" not in note or file == "MANIFEST.json"


@pytest.mark.parametrize("text", ["", "{}", "[1]", "\ud800"])
def test_a_manifest_that_says_nothing_is_damage(save: Callable[..., Path], text: str) -> None:
    path = save(1)
    (path / "MANIFEST.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert "MANIFEST.json" in str(verify(path))


def test_if_all_are_damaged_the_error_names_the_newest(save: Callable[..., Path]) -> None:
    first, second = save(1), save(2)
    flip(first / "state.json")
    cut(second / "trainer.safetensors")
    with pytest.raises(RunError) as caught:
        load_newest(first.parent)
    assert "step-000002/trainer.safetensors is damaged" in caught.value.cause
    assert caught.value.remedy


def test_what_was_never_finished_does_not_count(save: Callable[..., Path], tmp_path: Path) -> None:
    assert load_newest(tmp_path / "c") is None
    first = save(1)
    shutil.copytree(first, first.parent / ".writing-step-000009")
    (first.parent / "step-000010.bak").mkdir()
    loaded = load_newest(first.parent)
    assert loaded is not None
    assert (loaded.path, loaded.notes) == (first, ())
    save(2)
    assert not list(first.parent.glob(".writing*"))


def test_prune_keeps_the_newest_and_the_best(save: Callable[..., Path]) -> None:
    *_, folder = [save(step).parent for step in (1, 2, 9, 10, 11)]
    prune(folder, 2, "step-000002")
    assert sorted(path.name for path in folder.iterdir()) == ["step-000002", "step-000010", "step-000011"]
    remove_after(folder, 10)
    assert sorted(path.name for path in folder.iterdir()) == ["step-000002", "step-000010"]


# --- a save that does not come to its end -------------------------------------------------------------


def failing_writes(monkeypatch: pytest.MonkeyPatch, at: int, error: Exception) -> list[int]:
    """Let the ``at``-th write of a save fail."""
    calls: list[int] = []

    def wrap(call: Any) -> Any:
        def wrapped(*args: Any, **options: Any) -> Any:
            calls.append(1)
            if len(calls) == at:
                raise error
            return call(*args, **options)

        return wrapped

    for module, name in ((checkpoint, "save_file"), (checkpoint, "write_chat_format"), (durable, "sync")):
        monkeypatch.setattr(module, name, wrap(getattr(module, name)))
    monkeypatch.setattr(os, "rename", wrap(os.rename))
    monkeypatch.setattr(Path, "write_text", wrap(Path.write_text))
    return calls


ERRORS = [
    OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    Exception("Error while serializing: I/O error: No space left on device (os error 28)"),
]


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS, ids=["python", "rust"])
def test_whichever_write_fails_the_earlier_checkpoint_stays(
    save: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    first = save(1)
    with monkeypatch.context() as patch:
        calls = failing_writes(patch, 0, error)
        save(2)
    assert len(calls) > 10
    for at in range(1, len(calls) + 1):
        shutil.rmtree(first.parent / "step-000002", ignore_errors=True)
        with monkeypatch.context() as patch:
            failing_writes(patch, at, error)
            with pytest.raises(RunError, match=r"No space left(.|\n)*--resume"):
                save(2)
        assert not list(first.parent.glob(".writing*"))
        assert verify(first) is None
        loaded = load_newest(first.parent)
        assert loaded is not None
        assert not loaded.notes


def test_other_errors_stay_what_they_are(save: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    failing_writes(monkeypatch, 2, ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        save(2)


@pytest.mark.parametrize("limit", [200, 5_000, 100_000])
def test_a_file_that_may_not_grow(save: Callable[..., Path], limit: int) -> None:
    """RLIMIT_FSIZE fails the real writes of Python, safetensors and tokenizers, as a full disk does."""
    first = save(1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(RunError) as caught:
            save(2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot be written" in caught.value.cause
    assert "Make room" in caught.value.remedy
    assert [path.name for path in first.parent.iterdir()] == ["step-000001"]
    assert verify(first) is None


def test_a_full_disk(small_model: Path, tokenizer: Any, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a disk can only be mounted by root")
    try:
        learner = learner_of(small_model)
        saved = save_checkpoint(disk, 1, learner, {}, tokenizer, ChatFormat("none"), {})
        size = sum(file.stat().st_size for file in saved.rglob("*"))
        (disk / "other").write_bytes(bytes(shutil.disk_usage(disk).free - size // 2))
        with pytest.raises(RunError, match="No space left"):
            save_checkpoint(disk, 2, learner, {}, tokenizer, ChatFormat("none"), {})
        assert {path.name for path in disk.iterdir()} == {"step-000001", "other"}
        assert verify(saved) is None
    finally:
        subprocess.run(["umount", disk], check=True)


KILLED = """
import json, os, random, signal, sys, time
from pathlib import Path
import torch
from transformers import AutoTokenizer
from turnwise.agents.policies.model import ChatFormat
from turnwise.trainers.run.checkpoint import load_newest, prune, save_checkpoint
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.learn.options import OptimizerOptions
torch.set_num_threads(1)
source, folder = sys.argv[1], Path(sys.argv[2])
learner = Learner(load_model(source, torch.device("cpu")), OptimizerOptions())
tokenizer = AutoTokenizer.from_pretrained(source)
random.seed(0)
newest, torn = 0, 0
for trial in range(25):
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        for step in range(newest + 1, 10**6):
            save_checkpoint(folder, step, learner, {}, tokenizer, ChatFormat("none"), {"update": step})
            prune(folder, 2, None)
            os.write(write, f"{step} ".encode())
    first = os.read(read, 1 << 20)  # it saves one after the other from here on, however slow the machine is
    time.sleep(random.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(write)
    said = (first + os.read(read, 1 << 20)).split()
    os.close(read)
    torn += bool(list(folder.glob(".writing*")))
    loaded = load_newest(folder)
    if said:
        assert int(loaded.state["update"]) in (int(said[-1]), int(said[-1]) + 1), (said, loaded)
        assert not loaded.notes, loaded.notes
        newest = loaded.state["update"]
print(json.dumps({"newest": newest, "torn": torn}))
"""


@pytest.mark.slow
def test_sigkill_at_any_moment_leaves_a_whole_checkpoint(small_model: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(small_model), str(tmp_path / "c")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["newest"] > 3
    assert found["torn"] > 3, "no kill came in the middle of a save"
