"""Knobs, worlds and tasks; and the case that an episode is played on."""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Mapping, Sequence
from random import Random
from typing import Literal

import pydantic

from turnwise.envs.toolworld.database import Cell, Database, changes
from turnwise.envs.toolworld.domain import Domain, Primitive, as_json
from turnwise.envs.toolworld.drafts import Draft, carry_out
from turnwise.envs.toolworld.files import FileKnobs, draw_file_task, fingerprint, folder_of, load_domain
from turnwise.envs.toolworld.story import PlanStep, Stage, Story
from turnwise.envs.worlds.knobs import check_knobs, first_drawn, in_split
from turnwise.errors import EnvError, NotFoundError
from turnwise.tasks.core import Json, Split, Task, canonical, derive_rng, digest
from turnwise.tools.core import ToolCall

ENV = "turnwise/ToolWorld-v0"
DOMAINS: Mapping[str, str] = {
    "desk": "turnwise.envs.toolworld.desk",
    "retail": "turnwise.envs.toolworld.retail",
    "airline": "turnwise.envs.toolworld.airline",
    "telecom": "turnwise.envs.toolworld.telecom",
    "apps": "turnwise.envs.toolworld.apps",
}
MANNERS = (
    "",
    "Please be quick.",
    "Hello there!",
    "I have been waiting for ages.",
    "Thanks for your patience with me.",
    "Well, the weather is awful here, but anyway.",
    "Look, I have order 66 of my day's tasks to do.",
)
_PATIENCE = 40  # worlds and customers that one kind of first request is tried with


class ToolWorldKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """What a suite of tool worlds may set."""

    domains: tuple[str, ...] = ("retail",)
    requests: tuple[int, int] = (1, 2)  # of a story, at least and at most; or one number
    traps: float = pydantic.Field(0.25, ge=0, le=1)  # probability that a request is against the policy
    changes: float = pydantic.Field(
        0.2, ge=0, le=1
    )  # probability that the user changes his mind in a request
    paraphrase: bool = True
    patience: int = pydantic.Field(4, ge=2, le=20)  # misunderstandings until the user leaves
    brief: float = pydantic.Field(0.3, ge=0, le=1)  # probability of a user who tells one fact at a time
    size: int = pydantic.Field(24, ge=4, le=2000)  # customers of a world, about
    worlds: int = pydantic.Field(64, ge=1)  # different ones per split
    user: Literal["scripted", "agent"] = "scripted"
    turn_limit: int = pydantic.Field(30, ge=4)

    @pydantic.field_validator("requests", mode="before")
    @classmethod
    def _range(cls, value: Json) -> Json:
        return (value, value) if isinstance(value, int) else value

    @pydantic.field_validator("domains", mode="after")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in DOMAINS:
                error = NotFoundError("domain", name, DOMAINS)
                raise ValueError(f"{error.cause} {error.remedy}")
        return value


_loaded: dict[str, Domain] = {}


def domain_of(name: str) -> Domain:
    """A domain by its name: one of ours, or a folder of files (``files:PATH``, ``code:PATH``).

    Raises:
        NotFoundError: there is none of this name.
    """
    if folder := folder_of(name):
        key = f"{name}#{fingerprint(folder)}"
        if key not in _loaded:
            _loaded[key] = load_domain(name)
        return _loaded[key]
    if name not in DOMAINS:
        raise NotFoundError("domain", name, DOMAINS)
    if name not in _loaded:
        _loaded[name] = importlib.import_module(DOMAINS[name]).DOMAIN
    return _loaded[name]


@functools.lru_cache(maxsize=512)
def world(name: str, seed: str, size: int) -> Database:
    """The world of this seed, built once per process and shared: databases are immutable."""
    return domain_of(name).build(derive_rng("world", name, seed), size)


class Case:
    """What stays the same during an episode: the domain, the story, the first and the last database."""

    __slots__ = (
        "base", "domain", "goal", "marks", "name", "planned", "played", "records", "story", "target", "task_id",
    )  # fmt: skip

    def __init__(self, name: str, story: Story, base: Database, task_id: str, played: bool) -> None:
        self.name, self.base, self.task_id = name, base, task_id
        self.played = played  # the user is another agent
        self.domain = domain_of(name)
        goal = base
        for stage in story.stages:
            goal = carry_out(self.domain, goal, story.customer, stage.plan)
        self.target: Database = goal
        self.goal: Mapping[Cell, str] = changes(base, goal)
        stages = tuple(
            stage._replace(plan=tuple(_in_full(self.domain, step) for step in stage.plan))
            for stage in story.stages
        )
        self.story = story._replace(stages=stages)
        # how each planned call is recorded when it was made (ToolState.done)
        self.records = tuple(
            tuple((step.name, canonical(step.arguments)) for step in stage.plan) for stage in stages
        )
        steps = (step for stage in stages for step in stage.plan)
        self.planned: tuple[PlanStep, ...] = tuple(step for step in steps if step.kind == "call")
        tells = sum(len(stage.tells) for stage in story.stages)
        self.marks = tells + len(self.planned)

    def __repr__(self) -> str:
        return f"Case({self.task_id})"


def _in_full(domain: Domain, step: PlanStep) -> PlanStep:
    """A planned call with the defaults that it leaves out, as calls are recorded."""
    made = domain.act(step.name) if step.kind == "call" else None
    if made is None:
        return step
    arguments = made.tool.validate(ToolCall(step.name, step.arguments))
    return step._replace(arguments={name: as_json(value) for name, value in arguments.items()})


def case_of(task: Task) -> Case:
    """The case of a task.

    Raises:
        EnvError: its plan does not work, or the files of its domain are not those that it was made of.
    """
    options = task.options
    name = options["domain"]
    seed, size = options["world"]
    if (folder := folder_of(name)) and (stamp := fingerprint(folder)) != seed:
        raise EnvError(f"The files of {name} have changed: {stamp}, not {seed}.", "Make the tasks again.")
    base = world(name, seed, size)
    for table, key, fields in options.get("patch", ()):
        base = base.update(table, key, **fields)
    base = Database(base.tables, base.mark)  # what the task's own world differs in was touched by nobody
    return Case(name, Story.from_json(options["story"]), base, task.id, options["user"] == "agent")


def knobs_of(values: Mapping[str, Json]) -> ToolWorldKnobs | FileKnobs:
    """Check knobs; with ``data`` they are those of a domain in files.

    Raises:
        EnvError: one is unknown or has a value that is not allowed.
    """
    return check_knobs(FileKnobs if "data" in values else ToolWorldKnobs, values, "tool world")


def draw_task(rng: Random, split: Split, knobs: ToolWorldKnobs | FileKnobs) -> Task:
    """A task that no other split can draw, whose plan was carried out and breaks no rule."""
    if isinstance(knobs, FileKnobs):
        return draw_file_task(rng, split, knobs)

    name = rng.choice(knobs.domains)
    kinds = _first_kinds(domain_of(name), rng, knobs)
    attempts = itertools.count()

    def draw(rng: Random) -> Task | None:
        kind = kinds[next(attempts) // _PATIENCE % len(kinds)]
        seed = digest(ENV, name, split.value, rng.randrange(knobs.worlds))
        draft = Draft(
            domain_of(name),
            rng,
            world(name, seed, knobs.size),
            paraphrase=knobs.paraphrase,
            changes=knobs.changes,
        )
        stages = _stages(draft, kind, rng, knobs)
        if stages is None:
            return None
        brief, manner = rng.random() < knobs.brief, rng.choice(MANNERS) if knobs.paraphrase else ""
        story = Story(draft.customer, tuple(stages), draft.facts, knobs.patience, brief, manner)
        core = [[stage.say, [canonical(step) for step in stage.plan]] for stage in stages]
        if not in_split(split, ENV, core):
            return None
        if draft.db == draft.base and not any(stage.tells for stage in stages):
            return None  # doing nothing would solve it
        options: dict[str, Json] = {
            "domain": name,
            "world": [seed, knobs.size],
            "patch": [[table, key, dict(fields)] for table, key, fields in draft.patch],
            "story": story.to_json(),
            "user": knobs.user,
            "turn_limit": knobs.turn_limit,
        }
        return Task(ENV, stages[0].say, options, {"database": draft.db.digest})

    return first_drawn(draw, rng, split, "tool world")


def _first_kinds(domain: Domain, rng: Random, knobs: ToolWorldKnobs) -> list[Primitive]:
    """What the first request may be: drawn before everything else, so that what seldom fits is not rarer."""
    trap = bool(domain.traps) and rng.random() < knobs.traps
    kinds = domain.traps if trap else domain.requests
    return [kinds[name] for name in rng.sample(sorted(kinds), len(kinds))]


def _stages(draft: Draft, first: Primitive, rng: Random, knobs: ToolWorldKnobs) -> Sequence[Stage] | None:
    domain = draft.domain
    if not domain.enter(draft):
        return None
    stages: list[Stage] = []
    for number in range(rng.randint(*knobs.requests)):
        trap = domain.traps and rng.random() < knobs.traps
        stage = _drawn(draft, domain.traps if trap else domain.requests, rng) if number else first(draft)
        if stage is None:
            return None
        draft.apply(stage)
        stages.append(stage)
        if any((made := domain.act(step.name)) is not None and made.kind == "end" for step in stage.plan):
            break
    return _introduced(domain, stages)


def _drawn(draft: Draft, kinds: Mapping[str, Primitive], rng: Random) -> Stage | None:
    for name in rng.sample(sorted(kinds), len(kinds)):
        stage = kinds[name](draft)
        if stage is not None:
            return stage
    return None


def _introduced(domain: Domain, stages: list[Stage]) -> list[Stage]:
    """Without calls that a stage before made (the customer is identified once)."""
    seen: set[str] = set()
    kept: list[Stage] = []
    for stage in stages:
        plan: list[PlanStep] = []
        for step in stage.plan:
            made = domain.act(step.name) if step.kind == "call" else None
            once = step.kind == "ask" or (made is not None and made.kind == "identify")
            key = canonical([step.kind, step.text, step.name, dict(step.arguments), step.slots])
            if once and key in seen:
                continue
            seen.add(key)
            plan.append(step)
        kept.append(stage._replace(plan=tuple(plan)))
    return kept
