"""Our suites as packages of verifiers v1 (0.4): a taskset with its harness and environment, which others install.

    turnwise tasks shop/easy --form verifiers --out environments/shop_easy --n 200
    uv pip install -e environments/shop_easy && vf-eval shop-easy

Turnwise plays in a process of its own there; `packed/taskset.py` is the program that speaks with it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from turnwise import __version__
from turnwise.durable import write_whole
from turnwise.envs.offered.rows import task_rows
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Split, canonical

VERIFIERS = "verifiers>=0.4,<0.5"
_NAMES = ("SuiteConfig", "SuiteData", "SuiteEnv", "SuiteEnvConfig", "SuiteHarness", "SuiteHarnessConfig", "SuiteState",
          "SuiteTask", "SuiteTaskset")  # fmt: skip
_PYPROJECT = """\
[project]
name = "{name}"
version = "0.1.0"
description = "Turnwise's suite {suite} as a taskset of verifiers."
requires-python = ">=3.11"
dependencies = ["{verifiers}", "aiohttp"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["{package}"]
"""
_README = """\
# {name}

{n} tasks of Turnwise's suite `{suite}` ({split}) for verifiers v1. Turnwise {version} wrote them.

    uv pip install -e .
    vf-eval {name} -n 3

Turnwise itself plays in a process of its own, in another environment (`uv tool install turnwise`). Where its command is not on the
path, name it: `--env.agent.harness.turnwise "/path/to/python -m turnwise"`. `--env.agent.harness.url` names a server that runs already.
"""


def write_verifiers_package(
    suite: str, folder: Path, n: int, *, split: Split = Split.TRAIN, start: int = 0
) -> Path:
    """Write a package with tasks ``start … start + n − 1`` of a suite, and return the folder of its module.

    Raises:
        NotFoundError: there is no such suite.
        EnvError: several agents play in it.
        TurnwiseError: there is something else in the folder.
    """
    package = package_name(folder.name)
    inside = folder / package
    if folder.exists() and not (
        folder.is_dir() and (not any(folder.iterdir()) or (inside / "suite.json").is_file())
    ):
        raise TurnwiseError(f"{folder} holds something else.", "Name a new folder.")
    rows = list(task_rows(suite, n, split=split, start=start))
    about = {
        "suite": suite,
        "split": str(split),
        "start": start,
        "n": n,
        "version": f"Turnwise {__version__}",
    }
    told = {
        "name": package.replace("_", "-"), "package": package, "suite": suite, "split": split, "n": n, "version": __version__,
        "verifiers": VERIFIERS,
    }  # fmt: skip
    names = ", ".join(_NAMES)
    inside.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "pyproject.toml", _PYPROJECT.format(**told))
    write_whole(folder / "README.md", _README.format(**told))
    write_whole(
        inside / "__init__.py", f"from {package}.taskset import {names}\n\n__all__ = {list(_NAMES)}\n"
    )
    write_whole(inside / "taskset.py", (Path(__file__).parent / "packed" / "taskset.py").read_text("utf-8"))
    write_whole(inside / "tasks.jsonl", "".join(canonical(row.to_json()) + "\n" for row in rows))
    write_whole(inside / "suite.json", json.dumps(about) + "\n")
    return inside


def package_name(name: str) -> str:
    """Return the name of a module for a folder's name.

    >>> package_name("shop-easy"), package_name("2048")
    ('shop_easy', 'suite_2048')
    """
    word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
    return word if word[:1].isalpha() else f"suite_{word}"
