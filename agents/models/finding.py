"""Finding a model by what a recipe or a policy's spec calls it: a short name, a folder, a run, a file, or an id."""

from __future__ import annotations

import re
from pathlib import Path

from turnwise.agents.models.gguf import SUFFIX, already_converted, converted
from turnwise.agents.models.loading import not_a_model
from turnwise.errors import TurnwiseError
from turnwise.extras import missing
from turnwise.registry import Component, components, likely_component

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_SHORT = re.compile(r"[A-Za-z0-9][\w-]*")


def find_model(name: str) -> str:
    """The folder of a model (of a run: its best on dev; of a GGUF file: what it was converted to), or its Hugging Face id.

    A registered name comes before a folder that is called the same, which is then written ``./NAME``.

    Raises:
        MissingDependencyError: a registered model's package is not installed.
        TurnwiseError: it is a path at which there is no model.
    """
    entry = _registered(name)
    if entry is not None:
        return _in_folder(Path(_given_by(entry)))
    path = Path(name).expanduser()
    if path.exists():
        return _in_folder(path)
    if not _HUB_ID.fullmatch(name) or ("/" in name and path.parent.is_dir()):
        names = ", ".join(entry.name for entry in components("model"))
        raise TurnwiseError(
            f"There is no model folder {name}.",
            f"Give a folder with a config.json, a Hugging Face id, or a registered name ({names}).",
        )
    return name


def local_model(name: str) -> Path | None:
    """Find the path to which a name leads on this machine, if anywhere: nothing is converted, fetched or refused."""
    try:
        entry = _registered(name)
        path = Path(_given_by(entry) if entry else name).expanduser()
    except TurnwiseError:
        return None
    return already_converted(path) if path.suffix == SUFFIX else path


def _registered(name: str) -> Component | None:
    if not _SHORT.fullmatch(name):
        return None
    if found := likely_component("model", name):
        return found
    return next((entry for entry in components("model") if entry.name == name), None)


def _given_by(entry: Component) -> str:
    for library in entry.lacking:
        raise missing(library, f"the model {entry.name!r}")
    return str(entry.build({})())


def _in_folder(path: Path) -> str:
    for folder in (path, path / "best" / "model"):
        if (folder / "config.json").is_file():
            return str(folder)
    packed = [path] if path.suffix == SUFFIX else sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else []
    if len(packed) == 1:
        return str(converted(packed[0]))
    if path.exists():
        raise not_a_model(path)
    return str(path)
