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

Not copied from tau-bench: a task that doing nothing would solve is refused, a planned action that fails is an error
when the task is loaded, and outputs are matched by type and value.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Literal

import pydantic
from immutables import Map

from turnwise.envs.toolworld.database import Database, fresh_key, frozen, plain
from turnwise.envs.toolworld.domain import Act, Domain, Written
from turnwise.envs.toolworld.facts import Fact
from turnwise.envs.toolworld.story import PlanStep, Stage, Story, ask, call, tell
from turnwise.envs.worlds.knobs import in_split
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError, ToolSpec
from turnwise.tools.schema import tool_of_schema

ENV = "turnwise/ToolWorld-v0"
_FILES = ("db.json", "policy.md", "tools.json", "tasks.json", "slots.json")


class FileKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """A suite over a folder of files."""

    data: str
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


def load_domain(folder: str) -> Domain:
    """The domain of a folder.

    Raises:
        EnvError: a file is missing or cannot be read.
    """
    slots = _read(folder, "slots.json", optional=True) or {}
    tables = _read(folder, "db.json")
    if not isinstance(tables, dict) or not all(isinstance(rows, dict) for rows in tables.values()):
        raise EnvError(f"{folder}/db.json is no database.", "It is an object {table: {key: row}}.")
    base = Database.of(
        {table: {key: frozen(row) for key, row in rows.items()} for table, rows in tables.items()}
    )
    return Domain(
        name=f"files:{folder}",
        policy=_text(folder, "policy.md"),
        build=lambda rng, size: base,
        acts=tuple(_act(folder, entry, set(tables)) for entry in _read(folder, "tools.json")),
        slots={slot: tuple(words) for slot, words in slots.items()},
    )


def draw_file_task(rng: Random, split: Split, knobs: FileKnobs) -> Task:
    """One of the folder's tasks; a task belongs to one split by the hash of what it says.

    Raises:
        EnvError: the split has none, or a task cannot be played.
    """
    found = [task for task in file_tasks(knobs) if in_split(split, ENV, task.prompt, task.options["story"])]
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

    name = f"files:{knobs.data}"
    domain = domain_of(name)
    made: list[Task] = []
    broken: list[str] = []
    for place, entry in enumerate(_read(knobs.data, "tasks.json")):
        try:
            found = FileTask.model_validate(entry)
            story = _story(domain, found, knobs.patience)
            options = {
                "domain": name, "world": [stamp, 0], "patch": [], "story": story.to_json(), "user": knobs.user,
                "turn_limit": knobs.turn_limit,
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
    if broken:
        raise EnvError(
            f"{len(broken)} tasks of {knobs.data} cannot be used: {'; '.join(broken[:5])}.",
            "Each needs a plan that works and an action that writes (a recorded refusal is one) or an output.",
        )
    return tuple(made)


def fingerprint(folder: str) -> str:
    """A hash of the folder's files, which a task carries."""
    found = hashlib.sha256()
    for name in _FILES:
        path = Path(folder) / name
        found.update(f"{name}\0".encode() + (path.read_bytes() if path.exists() else b""))
    return found.hexdigest()[:16]


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


def _act(folder: str, entry: Mapping[str, Any], tables: set[str]) -> Act:
    does: Mapping[str, Any] = entry.get("does", {})
    verb = next((verb for verb in _OPERATIONS if verb in does), None)
    if verb is None or does[verb] not in tables:
        raise EnvError(
            f"{folder}/tools.json: {entry.get('name')} does nothing that is known.",
            f"`does` has one of {', '.join(_OPERATIONS)} with a table of db.json.",
        )
    operation = _OPERATIONS[verb]

    def run(db: Database, **arguments: Any) -> Written:
        return operation(db, does, arguments)

    spec = ToolSpec(entry["name"], entry.get("description", ""), entry["parameters"])
    try:
        return Act(tool_of_schema(spec, run), entry.get("kind", "read"))
    except ValueError as error:
        raise EnvError(str(error), f"Repair {folder}/tools.json.") from None


def _get(db: Database, does: Mapping[str, Any], given: Mapping[str, Any]) -> Written:
    key = str(_filled(does["key"], given))
    return Written(db, plain(db.get(does["get"], key)), key)


def _find(db: Database, does: Mapping[str, Any], given: Mapping[str, Any]) -> Written:
    wanted: Mapping[str, Any] = _filled(does["where"], given)
    found = [
        key for key in db.keys(does["find"])
        if all(plain(db.get(does["find"], key).get(field)) == value for field, value in wanted.items())
    ]  # fmt: skip
    if not found:
        raise ToolError("Nothing was found.")
    return Written(db, found, found[0])


def _set(db: Database, does: Mapping[str, Any], given: Mapping[str, Any]) -> Written:
    table, key = does["set"], str(_filled(does["key"], given))
    row: Map[str, Any] = db.get(table, key)
    for field, value in _filled(does.get("require", {}), given).items():
        if plain(row.get(field)) != value:
            raise ToolError(f"{field} is {plain(row.get(field))!r}, not {value!r}.")
    for field, value in _filled(does["fields"], given).items():
        row = row.set(field, frozen(value))
    return Written(db.put(table, key, row), plain(row))


def _add(db: Database, does: Mapping[str, Any], given: Mapping[str, Any]) -> Written:
    fields: Mapping[str, Json] = _filled(does["fields"], given)
    key = fresh_key(db, does["add"], does.get("prefix", ""), dict(fields))
    return Written(db.put(does["add"], key, frozen(dict(fields))), key)


_OPERATIONS: Mapping[str, Callable[[Database, Mapping[str, Any], Mapping[str, Any]], Written]] = {
    "get": _get,
    "find": _find,
    "set": _set,
    "add": _add,
}


def _filled(value: Any, given: Mapping[str, Any]) -> Any:
    """With ``$name`` replaced by the argument of that name."""
    if isinstance(value, str) and value.startswith("$"):
        return given.get(value[1:])
    if isinstance(value, dict):
        return {key: _filled(part, given) for key, part in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


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
