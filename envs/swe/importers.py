"""Tasks of others: SWE-bench, SWE-Gym and SWE-smith instances (JSONL), Harbor and terminal-bench folders.

What is read here is data; to play it, the machine needs the Docker image that it names (:mod:`turnwise.envs.images`). SWE-bench's
instances and these folders keep their own tests, which run in that image (:func:`judge_script`).
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic
import yaml

from turnwise.errors import TurnwiseError
from turnwise.plain_yaml import read_yaml
from turnwise.texts import read_json_lines, read_utf8

_DIFF = re.compile(r"^diff --git a/(\S+) b/(\S+)$", re.MULTILINE)


class Foreign(pydantic.BaseModel):
    """A SWE-bench, SWE-Gym or SWE-smith instance. ``patch`` is the repair; for SWE-smith, whose patches make the bug,
    ``reverse`` is true. Lists that were saved as JSON texts are read."""

    model_config = pydantic.ConfigDict(extra="ignore", frozen=True)

    instance_id: str
    repo: str
    issue: str = pydantic.Field(validation_alias="problem_statement")
    patch: str
    base_commit: str = ""
    test_patch: str = ""
    image: str = ""
    reverse: bool = False
    test_command: str = ""
    fail_to_pass: tuple[str, ...] = pydantic.Field(
        validation_alias=pydantic.AliasChoices("FAIL_TO_PASS", "fail_to_pass")
    )
    pass_to_pass: tuple[str, ...] = pydantic.Field(
        validation_alias=pydantic.AliasChoices("PASS_TO_PASS", "pass_to_pass")
    )

    @pydantic.field_validator("fail_to_pass", "pass_to_pass", mode="before")
    @classmethod
    def _list(cls, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    @property
    def test_files(self) -> tuple[str, ...]:
        """The files that are put back before judging: those of the test patch, and of the tests that are named."""
        patched = {match.group(2) for match in _DIFF.finditer(self.test_patch)}
        named = {name.partition("::")[0] for name in self.fail_to_pass if "::" in name}
        return tuple(sorted(patched | named))


_AS_PUBLISHED = "Give JSONL as SWE-bench publishes it: instance_id, repo, patch, problem_statement, FAIL_TO_PASS, PASS_TO_PASS."


def read_instances(path: Path) -> Iterator[Foreign]:
    """The instances of a JSONL file.

    Raises:
        TurnwiseError: a line is not one; says which and why.
    """
    for number, row in read_json_lines(path, _AS_PUBLISHED):
        try:
            yield instance_of(row)
        except (ValueError, pydantic.ValidationError) as error:
            told = " ".join(str(error).split())[:200]
            raise TurnwiseError(
                f"{path.name}, line {number} is no instance: {told}.",
                _AS_PUBLISHED,
            ) from None


def instance_of(row: Mapping[str, Any]) -> Foreign:
    """A row as published.

    Raises:
        ValueError: it is none.
    """
    smith = "image_name" in row and not row.get("test_patch")
    image = row.get("image_name") or row.get("docker_image") or _published_image(row)
    installed = row.get("install_config") or {}
    command = row.get("test_cmd") or (installed.get("test_cmd", "") if isinstance(installed, dict) else "")
    return Foreign.model_validate({**row, "image": image, "reverse": smith, "test_command": command})


def _published_image(row: Mapping[str, Any]) -> str:
    """The image of a row that names none. Rows of SWE-Gym have lists where those of SWE-bench have JSON texts.

    https://hub.docker.com/u/swebench and https://hub.docker.com/u/xingyaoww; a "__" may not be in a name there.
    """
    is_gym = isinstance(row.get("FAIL_TO_PASS"), list)
    namespace, stands_for = ("xingyaoww", "_s_") if is_gym else ("swebench", "_1776_")
    name = str(row.get("instance_id", "")).replace("__", stands_for).lower()
    return f"{namespace}/sweb.eval.x86_64.{name}:latest"


@dataclass(frozen=True)
class FolderTask:
    """A task of Harbor or terminal-bench: an instruction, a Dockerfile, a test script that judges, a solution.

    ``image`` is one that is ready, where the task names it instead of a Dockerfile.
    """

    name: str
    instruction: str
    dockerfile: str
    tests: Mapping[str, bytes]
    script: str
    solution: str
    seconds: float
    agent_seconds: float
    image: str = ""


def read_folder(folder: Path) -> FolderTask:
    """A task folder: ``task.toml`` with ``instruction.md`` (Harbor) or ``task.yaml`` (terminal-bench).

    Raises:
        TurnwiseError: it is neither.
    """
    if (folder / "task.toml").is_file():
        return _harbor(folder)
    if (folder / "task.yaml").is_file():
        return _terminal_bench(folder)
    raise TurnwiseError(
        f"{folder} is no task: it has neither task.toml nor task.yaml.",
        "Name one task's folder, not the folder of all.",
    )


def judge_script(task: FolderTask) -> str:
    """Bash that judges in the task's image, with its tests at /tests: the last line it prints is the reward.

    Harbor's tests write ``/logs/verifier/reward.txt``; terminal-bench's are judged by their exit code.
    """
    return "\n".join(
        (
            "rm -rf /logs/verifier; mkdir -p /logs/verifier",
            f"bash /tests/{task.script} >/dev/null 2>&1; code=$?",
            "if [ -f /logs/verifier/reward.txt ]; then head -c 32 /logs/verifier/reward.txt",
            "elif [ $code = 0 ]; then echo 1; else echo 0; fi",
        )
    )


def services_beside(context: Path) -> tuple[str, ...]:
    """Return the containers that a task's `docker-compose.yaml` starts beside the agent's own."""
    file = context / "docker-compose.yaml"
    if not file.is_file():
        return ()
    try:
        services = list((read_yaml(file.read_text("utf-8")) or {}).get("services") or ())
    except (yaml.YAMLError, AttributeError):
        return ()  # not ours to read: the Dockerfile beside it is what is built
    return tuple(name for name in services if name != "main")[not ("main" in services) :]


def _harbor(folder: Path) -> FolderTask:
    file = folder / "task.toml"
    about = _about(file, tomllib.loads)
    image = str(_part(about, "environment", file).get("docker_image", ""))
    return FolderTask(
        folder.name,
        _read(folder / "instruction.md"),
        _read(folder / "environment" / "Dockerfile", "" if image else None),
        _files(folder / "tests"),
        "test.sh",
        _read(folder / "solution" / "solve.sh", ""),
        _seconds(_part(about, "verifier", file), "timeout_sec", file),
        _seconds(_part(about, "agent", file), "timeout_sec", file),
        image,
    )


def _terminal_bench(folder: Path) -> FolderTask:
    file = folder / "task.yaml"
    about = _about(file, read_yaml)
    if not isinstance(about.get("instruction"), str):
        there = ", ".join(map(str, about))[:120] or "nothing"
        raise TurnwiseError(
            f"{file} has no text under `instruction`, but: {there}.", "Write there what the agent is to do."
        )
    tests = {**_files(folder / "tests"), "run-tests.sh": _read(folder / "run-tests.sh").encode()}
    return FolderTask(
        folder.name,
        about["instruction"],
        _read(folder / "Dockerfile"),
        tests,
        "run-tests.sh",
        _read(folder / "solution.sh", ""),
        _seconds(about, "max_test_timeout_sec", file),
        _seconds(about, "max_agent_timeout_sec", file),
    )


def _about(file: Path, parse: Callable[[str], Any]) -> Mapping[str, Any]:
    """The settings of a task."""
    try:
        about = parse(_read(file))
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        raise TurnwiseError(f"{file} cannot be read: {said}.", "Correct it, or copy it again.") from None
    if not isinstance(about, Mapping):
        raise TurnwiseError(f"{file} holds no settings.", "Copy it again, or leave its folder out.")
    return about


def _part(about: Mapping[str, Any], name: str, file: Path) -> Mapping[str, Any]:
    part = about.get(name, {})
    if not isinstance(part, Mapping):
        raise TurnwiseError(
            f"{name!r} of {file} is {str(part)[:60]!r}, and no table.", f"Write [{name}] above its settings."
        )
    return part


def _seconds(about: Mapping[str, Any], name: str, file: Path) -> float:
    value = about.get(name, 600)
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not seconds > 0:
        raise TurnwiseError(
            f"{name!r} of {file} is {str(value)[:60]!r}.", "Write a number of seconds above 0."
        )
    return seconds


def _read(path: Path, missing: str | None = None) -> str:
    if not path.is_file():
        if missing is not None:
            return missing
        raise TurnwiseError(f"The task has no {path.name} ({path}).", "Copy the whole folder of the task.")
    return read_utf8(path, "Copy the whole folder of the task.")


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
