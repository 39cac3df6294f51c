"""The user's story: stages with their plans, private facts and a persona, as JSON data of a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from turnwise.envs.toolworld.facts import Fact
from turnwise.tasks.core import Json

StepKind: TypeAlias = Literal["ask", "call", "propose", "confirm", "guide", "tell"]
"""ask: for facts. propose: a question that the user answers with a change of mind. confirm: one that they answer
with yes. guide: have the user do something. tell: report, which ends the stage."""


class PlanStep(NamedTuple):
    """One action of a plan that solves a stage: words (``text``), or a tool call (``name``, ``arguments``), of
    which ``text`` is the thought."""

    kind: StepKind
    text: str = ""
    name: str = ""  # of the tool or the deed
    arguments: Mapping[str, Json] = {}
    slots: tuple[str, ...] = ()  # that an ``ask`` asks for


class Stage(NamedTuple):
    """One request: what the user says, and what solves it."""

    say: str
    plan: tuple[PlanStep, ...]
    tells: tuple[Fact, ...] = ()
    again: str = ""  # how they ask when a report lacks what they want to know
    twist: str = ""  # their change of mind, said instead of the first yes
    insist: str = ""  # said once when they are told no
    check: str = ""  # what they must see for themselves before they are content
    wants: tuple[
        str, ...
    ] = ()  # changes that they would agree to, beside those that they name and the planned ones
    quiet: bool = False  # its plan changes nothing (known to a case, not told in JSON)


class Story(NamedTuple):
    """The requests of one conversation, with what the user knows and how the user behaves."""

    customer: str
    stages: tuple[Stage, ...]
    facts: Mapping[str, str] = {}
    patience: int = 4
    brief: bool = False  # tells one fact at a time
    manner: str = ""  # said before the first request
    voice: Mapping[str, str] = {}  # how they say what is no request (phrases.yaml)
    together: bool = False  # tells all requests at the beginning

    @property
    def opening(self) -> str:
        """The first words."""
        first, *others = (stage.say for stage in self.stages)
        if not self.together:
            return f"{self.manner} {first}".strip()
        then = self.voice["besides"]
        told = (self.manner, self.voice["several"], first, *(f"{then} {say}" for say in others))
        return " ".join(told).strip()

    def to_json(self) -> Json:
        fields = self._asdict().items()
        told = {name: value for name, value in fields if name not in ("voice", "together") or value}
        return {**told, "stages": [*map(_stage_json, self.stages)], "facts": dict(self.facts)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Story:
        return Story(**{**data, "stages": tuple(map(_stage_of, data["stages"]))})


def ask(text: str, *slots: str) -> PlanStep:
    return PlanStep("ask", text, slots=slots)


def call(tool: str, /, **arguments: Json) -> PlanStep:
    return PlanStep("call", name=tool, arguments=arguments)


def verified(customer: Any, tool: str, /, **questions: str) -> tuple[PlanStep, ...]:
    """A customer is asked for some of their own fields, and found by them."""
    given = {field: getattr(customer, field) for field in questions}
    return (*(ask(text, field) for field, text in questions.items()), call(tool, **given))


def tell(text: str) -> PlanStep:
    return PlanStep("tell", text)


def confirmed(what: str, *calls: PlanStep) -> tuple[PlanStep, ...]:
    """A question for a yes, and the changes that it is for."""
    return (PlanStep("confirm", f"I will {what}. Shall I proceed?"), *calls)


def once(plan: Iterable[PlanStep]) -> tuple[PlanStep, ...]:
    """A plan in which nothing is read or asked for twice."""
    kept: list[PlanStep] = []
    for step in plan:
        if step.kind == "confirm" or step not in kept:
            kept.append(step)
    return tuple(kept)


def _step_json(step: PlanStep) -> Json:
    kept = {name: value for name, value in step._asdict().items() if value not in ("", (), {})}
    return {**kept, "slots": list(step.slots)} if step.slots else kept


def _stage_json(stage: Stage) -> Json:
    told = {**stage._asdict(), "plan": [*map(_step_json, stage.plan)], "tells": [*map(list, stage.tells)]}
    return {name: value for name, value in told.items() if value not in ("", [], (), False)}


def _stage_of(data: Mapping[str, Any]) -> Stage:
    plan = tuple(PlanStep(**{**step, "slots": tuple(step.get("slots", ()))}) for step in data["plan"])
    tells = tuple(Fact(kind, value, tuple(choices)) for kind, value, choices in data.get("tells", ()))
    return Stage(**{**data, "plan": plan, "tells": tells, "wants": tuple(data.get("wants", ()))})
