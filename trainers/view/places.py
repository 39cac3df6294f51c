"""Places in the folders that can be viewed: runs, evaluations, logs by themselves, results of campaigns."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import yaml

from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.agents.log.episodes import LOG_NAME
from turnwise.durable import LOCK
from turnwise.errors import TurnwiseError
from turnwise.plain_yaml import read_yaml
from turnwise.trainers.report.events import EVENTS
from turnwise.trainers.report.records import EVALUATIONS, METRICS, RECIPE

PlaceKind: TypeAlias = Literal["run", "evaluation", "log", "campaign"]

_DEPTH = 5
_NEVER = frozenset(
    {"checkpoints", "model", "start", "warm-start", "tensorboard", "node_modules", "__pycache__"}
)
_LARGEST_JSON = 30_000_000
_FRESH_SECONDS = 30.0


class ViewedPlace(NamedTuple):
    """Something that has a page. ``id`` is what addresses name it by: a hash of its path."""

    id: str
    kind: PlaceKind
    path: Path
    name: str

    @property
    def log(self) -> Path:
        """Its episode log."""
        return self.path if self.kind == "log" else self.path / LOG_NAME


def find_places(folders: Sequence[Path]) -> list[ViewedPlace]:
    """Everything under the folders, in the order of their names; links are not followed.

    Raises:
        TurnwiseError: a folder that was named is not there.
    """
    found: dict[Path, ViewedPlace] = {}
    for folder in folders:
        if not folder.exists():
            raise TurnwiseError(
                f"There is no folder {folder}.", "Give the folder that holds runs or evaluations."
            )
        for path, kind in _walk(folder, 0):
            inside = path.relative_to(folder) if path != folder else Path(path.resolve().name)
            found.setdefault(path.resolve(), ViewedPlace(_id_of(path), kind, path, str(inside)))
    return sorted(found.values(), key=lambda place: (place.kind == "campaign", place.name))


def _walk(path: Path, depth: int) -> Iterator[tuple[Path, PlaceKind]]:
    if path.is_file():
        if kind := _kind_of_file(path):
            yield path, kind
        return
    if kind := _kind_of(path):
        yield path, kind
        return
    if depth >= _DEPTH:
        return
    try:
        inside = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError:  # a folder that is not ours to read holds nothing of ours
        return
    for entry in inside:
        if entry.is_symlink() or entry.name.startswith(".") or entry.name in _NEVER:
            continue
        if entry.is_dir() or entry.name.endswith((".json", ".jsonl.zst")):
            yield from _walk(Path(entry.path), depth + 1)


def _kind_of(folder: Path) -> PlaceKind | None:
    def has(*names: str) -> bool:
        return any((folder / name).exists() for name in names)

    if has("asked.json", "evaluation.json"):
        return "evaluation"
    return "run" if has(METRICS, RECIPE, EVALUATIONS) else "evaluation" if has(LOG_NAME) else None


def _kind_of_file(path: Path) -> PlaceKind | None:
    if path.name.endswith((".jsonl.zst", ".jsonl")):
        return "log" if path.name.endswith(".zst") or "episodes" in path.name else None
    if path.suffix == ".json" and path.stat().st_size < _LARGEST_JSON:
        with path.open("rb") as file:
            head = file.read(2000)
        return "campaign" if b'"settings"' in head and b'"name"' in head else None
    return None


def _id_of(path: Path) -> str:
    return hashlib.blake2b(str(path.resolve()).encode("utf-8", "replace"), digest_size=6).hexdigest()


class Activity(NamedTuple):
    """Activity at a place: whether it is being written, and when it last was, in seconds since the epoch."""

    live: bool
    changed: float

    @property
    def ago(self) -> str:
        """Time since the last change, in words."""
        return said_ago(time.time() - self.changed) if self.changed else "never"


def activity(place: ViewedPlace) -> Activity:
    """Return the activity of a place: somebody writes there if its lock is held, or if a record is some seconds old."""
    folder = place.path if place.path.is_dir() else place.path.parent
    names = (METRICS, EVENTS, EVALUATIONS, LOG_NAME, "evaluation.json", RECIPE)
    changed = max((_mtime(folder / name) for name in names), default=0.0)
    held = _is_locked(folder / LOCK)
    return Activity(held if held is not None else time.time() - changed < _FRESH_SECONDS, changed)


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _is_locked(lock: Path) -> bool | None:
    """Say whether some process holds a lock, without touching it; None where the system does not say."""
    try:
        held = Path("/proc/locks").read_text("ascii", "replace")
        inode = lock.stat().st_ino
    except OSError:
        return None if lock.exists() else False
    return any(
        line.split()[5].rsplit(":", 1)[-1] == str(inode)
        for line in held.splitlines()
        if len(line.split()) > 5
    )


def said_ago(seconds: float) -> str:
    """A time that has passed.

    >>> said_ago(5), said_ago(300), said_ago(90_000)
    ('5 s ago', '5 min ago', '25 h ago')
    """
    if seconds < 120:
        return f"{max(0, round(seconds))} s ago"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min ago"
    return f"{seconds / 3600:.0f} h ago" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days ago"


def read_evaluation(place: ViewedPlace) -> Evaluation | None:
    """The figures of an evaluation; None while it is played, or where they cannot be read."""
    data = _json(place.path / "evaluation.json")
    try:
        return Evaluation.from_json(data) if data else None
    except (KeyError, TypeError, ValueError):
        return None


class AskedEvaluation(NamedTuple):
    """Suite, policy and episodes that an evaluation was asked to play."""

    suite: str = ""
    policy: str = ""
    split: str = ""
    episodes: int = 0


def read_asked(place: ViewedPlace) -> AskedEvaluation:
    """The request of an evaluation, as far as it is there."""
    data = _json(place.path / "asked.json")
    count = data.get("episodes", 0)
    return AskedEvaluation(
        str(data.get("suite", "")),
        str(data.get("policy", "")),
        str(data.get("split", "")),
        count if isinstance(count, int) else 0,
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def read_recipe(place: ViewedPlace) -> tuple[str, dict[str, str]]:
    """A run's recipe as text, and the entries of its top level that are a word or a number."""
    try:
        text = (place.path / RECIPE).read_text("utf-8", "replace")
        data = read_yaml(text)
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return "", {}
    if not isinstance(data, dict):
        return text, {}
    return text, {str(name): said for name, value in data.items() if (said := _in_a_word(value))}


def _in_a_word(value: Any) -> str:
    if isinstance(value, dict):
        return _in_a_word(value.get("name", ""))
    if isinstance(value, list):
        parts = [_in_a_word(item) for item in value]
        return " + ".join(part for part in parts if part) if len(parts) <= 4 else ""
    return str(value) if isinstance(value, (str, int, float)) and len(str(value)) <= 60 else ""


class ModelPlace(NamedTuple):
    """A model that can play: its spec, and how it is named to people."""

    spec: str
    name: str


def models_of(places: Sequence[ViewedPlace]) -> list[ModelPlace]:
    """The checkpoints of all runs, newest first in each, and models with which reinforcement began."""
    found: list[ModelPlace] = []
    for place in places:
        if place.kind != "run":
            continue
        steps = sorted(place.path.glob("checkpoints/step-*/model/config.json"), reverse=True)
        for config in [*steps, place.path / "start" / "config.json", place.path / "model" / "config.json"]:
            if config.is_file():
                inside = config.parent.relative_to(place.path)
                found.append(
                    ModelPlace(
                        f"torch:{config.parent}", f"{place.name} · {str(inside).removesuffix('/model')}"
                    )
                )
    return found
