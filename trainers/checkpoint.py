"""Checkpoints: written aside, hashed, committed by a rename; what cannot be verified is not loaded.

A checkpoint is a folder::

    step-000010/model/            the weights as a Hugging Face folder (adapters merged): play it with
                                  `turnwise eval SUITE --policy vllm:RUN/best/model`
    step-000010/trainer.safetensors   optimizer, value head, adapters
    step-000010/state.json        counters; all other randomness is derived from the seed and these
    step-000010/MANIFEST.json     SHA-256 of every file above

Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from turnwise.agents.policies.model import write_habits
from turnwise.errors import RunError
from turnwise.tasks.core import Json
from turnwise.trainers.learner import Learner
from turnwise.trainers.model import base_of
from turnwise.trainers.run import disk_error
from turnwise.trainers.sync import checkpoint_tensors

MANIFEST, STATE, TRAINER = "MANIFEST.json", "state.json", "trainer.safetensors"


class Loaded(NamedTuple):
    """The newest checkpoint that is whole, and what was wrong with newer ones."""

    path: Path
    state: dict[str, Json]
    notes: tuple[str, ...]


def save_checkpoint(
    folder: Path, step: int, learner: Learner, tokenizer: Any, tools_format: str, state: dict[str, Json]
) -> Path:
    """Write ``folder/step-…``; the old ones stay until :func:`prune`.

    Raises:
        RunError: the disk is full or cannot be written. Earlier checkpoints are intact.
    """
    final = folder / f"step-{step:06d}"
    aside = folder / f".writing-{step:06d}"
    try:
        shutil.rmtree(aside, ignore_errors=True)
        (aside / "model").mkdir(parents=True)
        _save_model(aside / "model", learner, tokenizer)
        write_habits(aside / "model", tools_format)
        save_file(_trainer_tensors(learner), aside / TRAINER)
        (aside / STATE).write_text(json.dumps({**state, "learner_steps": learner.steps}), "utf-8")
        (aside / MANIFEST).write_text(json.dumps(_hashes(aside), indent=1), "utf-8")
        for file in aside.rglob("*"):
            _sync(file)
        shutil.rmtree(final, ignore_errors=True)
        os.rename(aside, final)
        _sync(folder)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise disk_error(final, error) from error
    return final


def load_newest(folder: Path) -> Loaded | None:
    """The newest whole checkpoint; None where there is none at all.

    Raises:
        RunError: there are checkpoints, and each one is damaged.
    """
    notes: list[str] = []
    for path in sorted(folder.glob("step-*"), reverse=True):
        problem = verify(path)
        if problem is None:
            return Loaded(path, read_state(path), tuple(notes))
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
    """What is wrong with a checkpoint; None if every file is as it was written."""
    try:
        wanted = json.loads((path / MANIFEST).read_text("utf-8"))
        found = _hashes(path)
    except (OSError, ValueError) as error:
        return f"{path.name} has no readable manifest ({error})."
    for name, digest in wanted.items():
        if found.get(name) != digest:
            return f"{path.name}/{name} is {'missing' if name not in found else 'damaged'}."
    return None


def restore(path: Path, learner: Learner, state: dict[str, Json]) -> None:
    """Put a verified checkpoint into the learner: weights, value head, optimizer, counters."""
    tensors = load_file(path / TRAINER)
    parameters = _named_parameters(learner)
    if not hasattr(learner.model, "peft_config"):
        weights = load_weights(path / "model")
        own = base_of(learner.model).state_dict()
        base_of(learner.model).load_state_dict(
            {name: weights[name] for name in own if name in weights}, strict=False
        )
    with torch.no_grad():
        for name, parameter in parameters.items():
            if f"parameter/{name}" in tensors:
                parameter.copy_(tensors[f"parameter/{name}"])
    moments: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimizer/"):
            _, index, name = key.split("/")
            moments.setdefault(int(index), {})[name] = tensor
    groups = learner.optimizer.state_dict()["param_groups"]
    learner.optimizer.load_state_dict({"state": moments, "param_groups": groups})
    learner.steps = int(state["learner_steps"])


def load_weights(model: Path) -> dict[str, Tensor]:
    """All tensors of a Hugging Face folder."""
    return {
        name: tensor
        for file in sorted(model.glob("*.safetensors"))
        for name, tensor in load_file(file).items()
    }


def prune(folder: Path, keep: int, best: str | None) -> None:
    """Remove all but the newest ``keep`` checkpoints and the best one."""
    for path in sorted(folder.glob("step-*"), reverse=True)[keep:]:
        if path.name != best:
            shutil.rmtree(path, ignore_errors=True)


def _save_model(path: Path, learner: Learner, tokenizer: Any) -> None:
    base = base_of(learner.model)
    tokenizer.save_pretrained(path)
    base.config.save_pretrained(path)
    tensors = {name: t.detach().cpu().contiguous().clone() for name, t in checkpoint_tensors(learner.model)}
    if getattr(base.config, "tie_word_embeddings", False):
        tensors.pop("lm_head.weight", None)  # as Hugging Face saves them
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt"})


def _named_parameters(learner: Learner) -> dict[str, torch.nn.Parameter]:
    return {
        f"{index}/{name}": parameter
        for index, module in enumerate(learner.modules)
        for name, parameter in module.named_parameters()
        if parameter.requires_grad
    }


def _trainer_tensors(learner: Learner) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    whole_model = not hasattr(learner.model, "peft_config")
    for name, parameter in _named_parameters(learner).items():
        if not (whole_model and name.startswith("0/")):  # those are in model/
            tensors[f"parameter/{name}"] = parameter.detach().cpu().clone()
    for index, moments in learner.optimizer.state_dict()["state"].items():
        for name, tensor in moments.items():
            tensors[f"optimizer/{index}/{name}"] = tensor.detach().cpu().clone()
    return tensors


def _hashes(path: Path) -> dict[str, str]:
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != MANIFEST)
    return {str(file.relative_to(path)): _sha256(file) for file in files}


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
