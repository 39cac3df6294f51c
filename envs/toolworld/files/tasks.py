"""The tasks of a folder, each checked: its plan works, and doing nothing does not solve it."""

from __future__ import annotations

import functools
import re
from random import Random
from typing import Any

import pydantic

from turnwise.envs.toolworld.cases import case_of, domain_of
from turnwise.envs.toolworld.domain import Domain
from turnwise.envs.toolworld.facts import Fact
from turnwise.envs.toolworld.files import taubench
from turnwise.envs.toolworld.files.domain import fingerprint, read_json
from turnwise.envs.toolworld.knobs import FileDomainKnobs
from turnwise.envs.toolworld.story import PlanStep, Stage, Story, ask, call, tell
from turnwise.envs.worlds.knobs import in_split
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise/ToolWorld-v0"


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


def draw_file_task(rng: Random, split: Split, knobs: FileDomainKnobs) -> Task:
    """One of the folder's tasks; where its file does not name its split, the hash of what it says does.

    Raises:
        EnvError: the split has none, or a task cannot be played.
    """
    found = [task for task in file_tasks(knobs) if _split_of(task) is split]
    if not found:
        raise EnvError(f"{knobs.data} has no task of the {split} split.", "Add tasks, or use file_tasks().")
    return rng.choice(found)


def file_tasks(knobs: FileDomainKnobs) -> tuple[Task, ...]:
    """All tasks of a folder, each checked: its plan works, and doing nothing does not solve it.

    Raises:
        EnvError: a task is broken; all broken ones are named.
    """
    return _file_tasks(knobs, fingerprint(knobs.data))


@functools.lru_cache(maxsize=16)
def _file_tasks(knobs: FileDomainKnobs, stamp: str) -> tuple[Task, ...]:
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


def _entries(folder: str) -> list[tuple[str, Json]]:
    """List the entries of ``tasks.json`` or of tau-bench's lists of tasks, each with its split or ""."""
    if not taubench.is_original(folder):
        return [("", entry) for entry in read_json(folder, "tasks.json")]
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
    for action in task.plan:
        if action.name in writes:
            given = action.arguments or action.kwargs
            values = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in given.items())
            what = f"I will {action.name.replace('_', ' ')} ({values}). Shall I proceed?"
            plan.append(PlanStep("confirm", what))
        plan.append(call(action.name, **(action.arguments or action.kwargs)))
    facts = tuple(_fact(output) for output in task.told)
    values = ", ".join(
        str(output) if isinstance(output, str) else str(output["value"]) for output in task.told
    )
    kinds = {made.kind for action in task.plan if (made := domain.act(action.name)) is not None}
    report = "Sorry, that is not possible." if "note" in kinds and "write" not in kinds else "Done."
    plan.append(tell(f"{report} It is: {values}." if values else report))
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
