"""Checkpoints: written to a temporary folder, hashed, committed by a rename, and verified before loading.

A checkpoint is a folder::

    step-000010/model/            the weights as a Hugging Face folder (adapters merged): play it with
                                  `turnwise eval SUITE --policy vllm:RUN/best/model`
    step-000010/trainer.safetensors   optimizer, heads, adapters, tensors of parts that learn
    step-000010/shards/           of these what learners hold in parts, a file of each
    step-000010/state.json        counters, memories of parts; all other randomness is derived from the seed and these
    step-000010/MANIFEST.json     SHA-256 of every file above

Nothing is pickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from turnwise.agents.models.vocabulary import write_generation_config
from turnwise.agents.policies.model import ChatFormat, write_chat_format
from turnwise.errors import RunError
from turnwise.tasks.core import Json
from turnwise.trainers.core import PartState, Stateful
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.mesh import MeshSeat
from turnwise.trainers.learn.model import base_of
from turnwise.trainers.learn.optimizer import moments_of, restore_moments
from turnwise.trainers.learn.weights import Weights, weights_of
from turnwise.trainers.run.dcp import SHARDS, is_part, read_shards, write_shards
from turnwise.trainers.run.disk import written_aside

FILE_BYTES = 4 << 30
"""A model's folder has weights in files of about this size."""
MANIFEST, STATE, TRAINER = "MANIFEST.json", "state.json", "trainer.safetensors"
PART, PARTS = "part/", "parts"
_PARAMETER, _OPTIMIZER = "parameter/", "optimizer/"


class LoadedCheckpoint(NamedTuple):
    """The newest checkpoint that is whole, and what was wrong with newer ones."""

    path: Path
    state: dict[str, Json]
    notes: tuple[str, ...]


def save_checkpoint(
    folder: Path,
    step: int,
    learner: Learner,
    parts: Mapping[str, Stateful],
    tokenizer: Any,
    chat_format: ChatFormat,
    state: Mapping[str, Json],
) -> Path:
    """Write ``folder/step-…``; the old ones stay until :func:`prune`. ``parts`` learn or remember, by KIND/NAME.

    Raises:
        RunError: the disk is full or cannot be written. Earlier checkpoints are intact.
    """
    with begin_checkpoint(folder, step, learner, parts, tokenizer, chat_format) as counters:
        counters.update(state)
    return folder / f"step-{step:06d}"


@contextmanager
def begin_checkpoint(
    folder: Path,
    step: int,
    learner: Learner,
    parts: Mapping[str, Stateful],
    tokenizer: Any,
    chat_format: ChatFormat,
) -> Iterator[dict[str, Json]]:
    """Write what a checkpoint has of the learner and the parts as they are now; it is there when the context ends well.

    Yields:
        The counters, to be filled in before that.

    Raises:
        RunError: the disk is full or cannot be written. Earlier checkpoints are intact.
    """
    final, counters = folder / f"step-{step:06d}", dict[str, Json]()
    with written_aside(final) as aside:
        (aside / "model").mkdir()
        save_model(aside / "model", learner.model, tokenizer, chat_format)
        learner.weights[0].shared(KeepShards(aside.absolute()))
        kept, tensors = _kept(aside, learner, parts)
        save_file(tensors | _part_tensors(kept), aside / TRAINER)
        numbers = {name: {**of.numbers} for name, of in kept.items() if of.numbers}
        own: dict[str, Json] = {"learner_steps": learner.steps, PARTS: json.loads(json.dumps(numbers))}
        yield counters
        (aside / STATE).write_text(json.dumps({**counters, **own}), "utf-8")
        (aside / MANIFEST).write_text(json.dumps(file_hashes(aside), indent=1), "utf-8")


class KeepShards(NamedTuple):
    """Write into the folder of a checkpoint what this learner holds in parts, as the first one does."""

    folder: Path

    def carried_out(self, seat: MeshSeat) -> None:
        """Write it; the first learner writes all else."""
        _kept(self.folder, seat.learner, seat.parts)


def _kept(
    folder: Path, learner: Learner, parts: Mapping[str, Stateful]
) -> tuple[dict[str, PartState], dict[str, Tensor]]:
    """Write what is held in parts. Return the state of what learns or remembers, and the learner's other tensors."""
    kept = {name: part.state() for name, part in parts.items()}
    tensors = _trainer_tensors(learner)
    divided = {name: tensor for name, tensor in tensors.items() if is_part(tensor)}
    if learner.weights[0].parted:
        write_shards(folder / SHARDS, divided)
    return kept, _saved({name: tensor for name, tensor in tensors.items() if name not in divided})


def load_newest(folder: Path) -> LoadedCheckpoint | None:
    """The newest whole checkpoint; None where there is none at all.

    Raises:
        RunError: there are checkpoints, and each one is damaged.
    """
    notes: list[str] = []
    for path in _newest_first(folder):
        problem = verify(path)
        if problem is None:
            return LoadedCheckpoint(path, read_state(path), tuple(notes))
        notes.append(problem)
    if notes:
        raise RunError(
            f"No checkpoint in {folder} is whole: {notes[0]}", "Restore one from a backup, or start anew."
        )
    return None


def read_state(path: Path) -> dict[str, Json]:
    """The counters of a checkpoint."""
    return json.loads((path / STATE).read_text("utf-8"))


def verify(path: Path) -> str | None:
    """Say what is wrong with a checkpoint; None if every file is as it was written."""
    try:
        wanted = json.loads((path / MANIFEST).read_text("utf-8"))
        found = file_hashes(path)
    except (OSError, ValueError) as error:
        said = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({error})"
        return f"{path.name}/{MANIFEST} {said}."
    if not isinstance(wanted, dict) or not {STATE, TRAINER} <= wanted.keys():
        return f"{path.name}/{MANIFEST} is damaged."
    for name, digest in wanted.items():
        if found.get(name) != digest:
            return f"{path.name}/{name} is {'missing' if name not in found else 'damaged'}."
    return None


def restore(
    path: Path,
    learner: Learner,
    parts: Mapping[str, Stateful],
    state: Mapping[str, Json],
    *,
    moments: bool = True,
) -> None:
    """Put a verified checkpoint into the learner (weights, heads, optimizer, counters) and into the parts.

    It may have been written by another number of learners, and by those that hold weights otherwise. Without ``moments``
    nothing is to be learned, and the optimizer's are left where they are.

    Raises:
        RunError: it is the checkpoint of another model.
    """
    tensors = _trainer_of(path, learner, [_PARAMETER, *([_OPTIMIZER] if moments else [])])
    apart = _kept_apart(learner)
    try:
        if 0 not in apart:
            learner.weights[0].load(path / "model")
        for index, weights in apart.items():
            weights.restore(_below(f"{_PARAMETER}{index}/", tensors))
        if moments:
            restore_moments(learner.optimizer, learner.weights, _below(_OPTIMIZER, tensors))
    except (KeyError, RuntimeError) as error:
        raise _another_model(path, error) from error
    learner.steps = int(state["learner_steps"])
    numbers: Any = state.get(PARTS, {})
    for name, part in parts.items():
        part.restore(PartState(numbers.get(name, {}), _below(f"{PART}{name}/", tensors)))


def same_trainer(ours: Path, theirs: Path, learner: Learner) -> bool:
    """Say whether two checkpoints have the same bits of optimizer, heads, adapters and parts, in however many files.

    Args:
        ours, theirs: the checkpoints.
        learner: holds whole what they are of.
    """
    first, second = (_trainer_of(path, learner, [""]) for path in (ours, theirs))
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def _trainer_of(path: Path, learner: Learner, wanted: Sequence[str]) -> dict[str, Tensor]:
    """Read what ``model/`` does not hold, and of parts what begins with one of these names."""
    tensors = load_file(path / TRAINER)
    if (path / SHARDS).is_dir():
        tensors |= read_shards(path / SHARDS, learner.weights, wanted)
    return tensors


def prune(folder: Path, keep: int, best: str | None) -> None:
    """Remove all but the newest ``keep`` checkpoints and the best one."""
    for path in _newest_first(folder)[keep:]:
        if path.name != best:
            shutil.rmtree(path, ignore_errors=True)


def remove_after(folder: Path, step: int) -> None:
    """Remove checkpoints of later steps: the damaged ones that a resumed run replaces."""
    for path in _newest_first(folder):
        if _step(path) > step:
            shutil.rmtree(path, ignore_errors=True)


def saved_steps(folder: Path) -> list[int]:
    """After which steps there is a checkpoint, in order."""
    return sorted(map(_step, _newest_first(folder)))


def started_at(folder: Path) -> set[int]:
    """After which updates the policies were saved that checkpoints compare with; -1 of those that compare with none."""
    found: set[int] = set()
    for path in _newest_first(folder):
        with contextlib.suppress(OSError, ValueError, KeyError):  # a damaged one asks for nothing
            found.add(int(read_state(path)["started"]))
    return found


def save_model(path: Path, model: nn.Module, tokenizer: Any, chat_format: ChatFormat) -> None:
    """Write a Hugging Face folder into ``path``, adapters merged, with the chat format of its training."""
    base = base_of(model)
    tokenizer.save_pretrained(path)
    base.config.save_pretrained(path)
    write_generation_config(path, base)
    tied = (
        base.get_output_embeddings().weight is base.get_input_embeddings().weight
    )  # whatever the config says
    whole = weights_of(model).gather()
    _write_weights(path, (pair for pair in whole if not (tied and pair[0] == "lm_head.weight")))
    # Only a template that asks for the time is told it: two runs of any other leave the same files.
    asks = "strftime_now" in str(getattr(tokenizer, "chat_template", "") or "")
    write_chat_format(path, chat_format if asks else chat_format._replace(clock=""))


def _write_weights(path: Path, tensors: Iterator[tuple[str, Tensor]]) -> None:
    """Write weights as Hugging Face does: one file, or several with an index, none of which is ever whole in memory with another."""
    files: list[list[str]] = []
    size, held = 0, dict[str, Tensor]()

    def write() -> None:
        files.append([*held])
        save_file(held, path / f"model-{len(files):05d}.safetensors", metadata={"format": "pt"})
        held.clear()

    for name, tensor in tensors:
        bytes_ = tensor.numel() * tensor.element_size()
        if held and sum(x.numel() * x.element_size() for x in held.values()) + bytes_ > FILE_BYTES:
            write()
        held[name] = tensor.detach().cpu().contiguous().clone()
        size += bytes_
    write()
    if len(files) == 1:
        (path / "model-00001.safetensors").rename(path / "model.safetensors")
        return
    names = {name: f"model-{i:05d}.safetensors" for i, own in enumerate(files, 1) for name in own}
    index = {"metadata": {"total_size": size}, "weight_map": names}
    (path / "model.safetensors.index.json").write_text(json.dumps(index, indent=1), "utf-8")


def _newest_first(folder: Path) -> list[Path]:
    found = [path for path in folder.glob("step-*") if re.fullmatch(r"step-\d+", path.name)]
    return sorted(found, key=_step, reverse=True)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def _another_model(path: Path, error: Exception) -> RunError:
    said = str(error).strip().splitlines()[0]
    return RunError(
        f"{path} is the checkpoint of another model: {said}", "Resume with the recipe that it was made with."
    )


def _kept_apart(learner: Learner) -> dict[int, Weights]:
    """Return, by their place, the weights that ``model/`` does not hold as they are trained: heads; adapters, which are merged there."""
    held = dict(enumerate(learner.weights))
    return held if held[0].adapted else {index: weights for index, weights in held.items() if index}


def _trainer_tensors(learner: Learner) -> dict[str, Tensor]:
    """Return what ``model/`` does not hold, each tensor as this process has it."""
    kept = {
        f"{_PARAMETER}{index}/{name}": parameter.detach()
        for index, weights in _kept_apart(learner).items()
        for name, parameter in zip(weights.names(), weights.trainable(), strict=True)
    }
    moments = moments_of(learner.optimizer, learner.weights)
    return kept | {f"{_OPTIMIZER}{name}": tensor for name, tensor in moments.items()}


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with this, without it."""
    return {name.removeprefix(prefix): x for name, x in tensors.items() if name.startswith(prefix)}


def _part_tensors(parts: Mapping[str, PartState]) -> dict[str, Tensor]:
    return _saved({f"{PART}{name}/{key}": x for name, of in parts.items() for key, x in of.tensors.items()})


def _saved(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def file_hashes(path: Path) -> dict[str, str]:
    """SHA-256 of every file of a checkpoint, by its path in it."""
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != MANIFEST)
    return {str(file.relative_to(path)): _sha256(file) for file in files}


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
