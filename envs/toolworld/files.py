"""Domains given as data files, in tau-bench's manner: a JSON database, a policy, tools, tasks.

A folder holds

* ``db.json``: ``{table: {key: row}}``, rows being JSON objects;
* ``policy.md``: what the agent is told;
* ``tools.json``: a list of ``{name, description, parameters, kind, does}``: a JSON schema, a kind as in
  :class:`turnwise.envs.toolworld.domain.Act`, and one of the operations below;
* ``tasks.json``: a list of tasks in tau-bench's form (``instruction``, ``actions``, ``outputs``) or tau2-bench's
  (``user_scenario``, ``evaluation_criteria`` with ``actions`` and ``communicate_info``). ``opening`` and ``facts``
  (slot → sentence) tell the scripted user what to say; without them he says the instruction.
* ``slots.json`` (optional): ``{slot: [words by which it is asked for]}``.

Operations, with ``$name`` standing for an argument: ``{"get": table, "key": …}``, ``{"find": table, "where": {field:
…}}``, ``{"set": table, "key": …, "fields": {…}, "require": {field: value}}``, ``{"add": table, "prefix": …,
"fields": {…}}``. Tools whose behaviour needs code are written in Python instead, as in the domains beside this file.

A folder of tau-bench's own layout (``wiki.md``, ``data/``, ``tools/``, ``tasks_*.py``) is read by
:mod:`turnwise.envs.toolworld.taubench`. Not copied from tau-bench: a task that doing nothing would solve is refused, a planned action that fails is an error
when the task is loaded, and outputs are matched by type and value.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from pathlib import Path
from random import Random
from typing import Any, Literal

import pydantic

from turnwise.envs.toolworld import taubench
from turnwise.envs.toolworld.database import Database, frozen
from turnwise.envs.toolworld.domain import Domain
from turnwise.envs.toolworld.facts import Fact
from turnwise.envs.toolworld.operations import act_of
from turnwise.envs.toolworld.story import PlanStep, Stage, Story, ask, call, tell
from turnwise.envs.worlds.knobs import in_split
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise/ToolWorld-v0"
_FILES = ("db.json", "policy.md", "tools.json", "tasks.json", "slots.json")


class FileKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """A suite over a folder of files."""

    data: str
    code: bool = False  # run the tools of tau-bench's own folders: as trusted as a package that you install
    skip: bool = False  # leave out tasks that cannot be used, instead of refusing the folder
    user: Literal["scripted", "agent"] = "scripted"
    patience: int = pydantic.Field(4, ge=2, le=20)
    turn_limit: int = pydantic.Field(40, ge=4)


class Calling(pydantic.BaseModel):
    """A planned action of a task."""

    name: str
    arguments: dict[str, Any] = {}
    kwargs: dict[str, Any] = {}  # tau-bench's older name


class FileTask(pydantic.BaseModel):
    """A task as it stands in ``tasks.json``, both dialects."""

    id: str | int = ""
    instruction: str = ""
    opening: str = ""
    facts: dict[str, str] = {}
    actions: list[Calling] = []
    outputs: list[str | dict[str, Any]] = []
    user_scenario: dict[str, Any] = {}
    evaluation_criteria: dict[str, Any] = {}

    @property
    def wish(self) -> str:
        told = self.user_scenario.get("instructions", "")
        prose = " ".join(str(part) for part in told.values() if part) if isinstance(told, dict) else str(told)
        return self.instruction or prose

    @property
    def plan(self) -> list[Calling]:
        later = self.evaluation_criteria.get("actions") or []
        return self.actions or [Calling.model_validate(action) for action in later]

    @property
    def told(self) -> list[str | dict[str, Any]]:
        return self.outputs or list(self.evaluation_criteria.get("communicate_info") or [])


def folder_of(name: str) -> str:
    """The folder of a domain from files: ``files:PATH``, or ``code:PATH`` whose tools are run; else ""."""
    kind, _, folder = name.partition(":")
    return folder if kind in ("files", "code") else ""


def load_domain(name: str) -> Domain:
    """The domain of a folder (``files:PATH`` or ``code:PATH``).

    Raises:
        EnvError: a file is missing or cannot be read, or its tools are code that was not allowed.
    """
    folder = folder_of(name)
    original = taubench.is_original(folder)
    if original and not name.startswith("code:"):
        raise EnvError(
            f"The tools of {folder} are Python code.",
            "Read them, then set the knob `code: true` to run them here.",
        )
    slots = _read(folder, "slots.json", optional=True) or {}
    tables = _tables(folder, original)
    base = Database.of(
        {table: {key: frozen(row) for key, row in rows.items()} for table, rows in tables.items()}
    )
    if original:
        acts = taubench.acts_of(folder, fingerprint(folder))
    else:
        acts = tuple(act_of(folder, entry, set(tables)) for entry in _read(folder, "tools.json"))
    return Domain(
        name=name,
        policy=_text(folder, "wiki.md" if original else "policy.md"),
        build=lambda rng, size: base,
        acts=acts,
        slots={slot: tuple(words) for slot, words in slots.items()},
    )


def _tables(folder: str, original: bool) -> dict[str, dict[str, Any]]:
    if original:
        names = sorted(path.name for path in (Path(folder) / "data").glob("*.json"))
        tables = {name.removesuffix(".json"): _read(folder, f"data/{name}") for name in names}
    else:
        tables = _read(folder, "db.json")
    if not isinstance(tables, dict) or not all(isinstance(rows, dict) for rows in tables.values()):
        raise EnvError(f"{folder} holds no database.", "It is an object {table: {key: row}}.")
    return tables


def draw_file_task(rng: Random, split: Split, knobs: FileKnobs) -> Task:
    """One of the folder's tasks; where its file does not name its split, the hash of what it says does.

    Raises:
        EnvError: the split has none, or a task cannot be played.
    """
    found = [task for task in file_tasks(knobs) if _split_of(task) is split]
    if not found:
        raise EnvError(f"{knobs.data} has no task of the {split} split.", "Add tasks, or use file_tasks().")
    return rng.choice(found)


def file_tasks(knobs: FileKnobs) -> tuple[Task, ...]:
    """All tasks of a folder, each checked: its plan works, and doing nothing does not solve it.

    Raises:
        EnvError: a task is broken; all broken ones are named.
    """
    return _file_tasks(knobs, fingerprint(knobs.data))


@functools.lru_cache(maxsize=16)
def _file_tasks(knobs: FileKnobs, stamp: str) -> tuple[Task, ...]:
    from turnwise.envs.toolworld.tasks import case_of, domain_of

    name = f"{'code' if knobs.code else 'files'}:{knobs.data}"
    domain = domain_of(name)
    made: list[Task] = []
    broken: list[str] = []
    for place, (split, entry) in enumerate(_entries(knobs.data)):
        try:
            found = FileTask.model_validate(entry)
            story = _story(domain, found, knobs.patience)
            options = {
                "domain": name, "world": [stamp, 0], "patch": [], "story": story.to_json(), "user": knobs.user,
                "turn_limit": knobs.turn_limit, **({"split": split} if split else {}),
            }  # fmt: skip
            task = Task(ENV, story.stages[0].say, options)
            case = case_of(task)
            if not case.goal and not story.stages[0].tells:
                raise EnvError("doing nothing solves it", "")
            made.append(Task(ENV, task.prompt, options, {"database": case.target.digest}))
        except (EnvError, pydantic.ValidationError) as error:
            cause = error.cause if isinstance(error, EnvError) else error.errors()[0]["msg"]
            broken.append(
                f"{entry.get('id', place)}: {cause}" if isinstance(entry, dict) else f"{place}: no object"
            )
    if broken and not (knobs.skip and made):
        raise EnvError(
            f"{len(broken)} tasks of {knobs.data} cannot be used: {'; '.join(broken[:5])}.",
            "Each needs a plan that works and an action that writes (a recorded refusal is one) or an output; "
            "the knob `skip: true` leaves such tasks out.",
        )
    return tuple(made)


def fingerprint(folder: str) -> str:
    """A hash of the folder's files, which a task carries."""
    original = taubench.is_original(folder)
    paths = taubench.source_files(folder) if original else [Path(folder) / name for name in _FILES]
    return _hashed(folder, tuple((path, path.stat().st_mtime_ns) for path in paths if path.exists()))


@functools.lru_cache(maxsize=64)
def _hashed(folder: str, files: tuple[tuple[Path, int], ...]) -> str:
    found = hashlib.sha256()
    for path, _ in files:
        found.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def _entries(folder: str) -> list[tuple[str, Json]]:
    """What ``tasks.json`` or tau-bench's lists of tasks hold, each with its split or ""."""
    if not taubench.is_original(folder):
        return [("", entry) for entry in _read(folder, "tasks.json")]
    return [
        (split or "", entry)
        for split, path in taubench.task_files(folder)
        for entry in taubench.read_tasks(path)
    ]


def _split_of(task: Task) -> Split:
    told = task.options.get("split")
    return (
        Split(told)
        if told
        else next(s for s in Split if in_split(s, ENV, task.prompt, task.options["story"]))
    )


def _story(domain: Domain, task: FileTask, patience: int) -> Story:
    writes = {made.name for made in domain.acts if made.kind == "write"}
    plan: list[PlanStep] = [
        ask(f"What is your {slot.replace('_', ' ')}?", slot) for slot in sorted(task.facts)
    ]
    asked = False
    for action in task.plan:
        if action.name in writes and not asked:
            plan.append(PlanStep("confirm", "I will do that now. Shall I proceed?"))
            asked = True
        plan.append(call(action.name, **(action.arguments or action.kwargs)))
    facts = tuple(_fact(output) for output in task.told)
    values = ", ".join(
        str(output) if isinstance(output, str) else str(output["value"]) for output in task.told
    )
    plan.append(tell(f"Done. It is: {values}." if values else "Done."))
    say = task.opening or task.wish
    if not say:
        raise EnvError("it says nothing", "")
    return Story("", (Stage(say, tuple(plan), facts, again=say),), task.facts, patience)


def _fact(output: str | dict[str, Any]) -> Fact:
    """The type of an output that is only written down; an object tells it itself."""
    if isinstance(output, dict):
        return Fact(
            output["kind"], str(output["value"]), tuple(output.get("choices", (str(output["value"]),)))
        )
    text = output.strip().replace(",", "")
    if re.fullmatch(r"\$?\d+\.\d{1,2}|\$\d+", text):
        return Fact("money", str(round(float(text.strip("$")) * 100)))
    if text.isdecimal():
        return Fact("count", str(int(text)))
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return Fact("date", text)
    if re.fullmatch(r"(?=\S*\d)[A-Za-z][\w-]*", text):
        return Fact("code", text.upper())
    return Fact("word", output, (output,))


def _read(folder: str, name: str, *, optional: bool = False) -> Any:
    if optional and not (Path(folder) / name).exists():
        return None
    try:
        return json.loads(_text(folder, name))
    except ValueError as error:
        raise EnvError(f"{folder}/{name} is no JSON: {error}.", "Repair the file.") from None


def _text(folder: str, name: str) -> str:
    try:
        return (Path(folder) / name).read_text("utf-8")
    except OSError as error:
        raise EnvError(
            f"{folder}/{name} cannot be read: {error.strerror}.", "See envs/toolworld/files.py."
        ) from None
