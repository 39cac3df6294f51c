"""Tasks of function calling: functions, rounds of requests with the calls they want, and what goes wrong."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib.resources import files
from random import Random
from typing import Any, Literal, NamedTuple

import pydantic
import yaml

from turnwise.envs.functioncall.values import draw_value, said, schema
from turnwise.envs.worlds.knobs import first_drawn, in_split
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise/FunctionCall-v0"
RoundKind = Literal["call", "irrelevant", "missing"]
_FAILURES = ("busy", "session")


class FunctionCallKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """What a suite of function calling may set."""

    rounds: tuple[int, int] = (1, 1)  # requests of one conversation, at least and at most
    calls: tuple[int, int] = (1, 1)  # of one request; several are independent of each other (parallel)
    functions: int = pydantic.Field(6, ge=3, le=20)  # that are offered
    irrelevant: float = pydantic.Field(0.0, ge=0, le=0.9)  # share of requests that no function fits
    missing: float = pydantic.Field(0.0, ge=0, le=0.9)  # share of requests in which an argument is left out
    failing: float = pydantic.Field(0.0, ge=0, le=1)  # probability that a call fails at first
    lookups: bool = True  # whether ids must be found out by another call
    spoken: bool = False  # dates and small numbers in words
    patience: int = pydantic.Field(2, ge=1)  # unclear questions that the user bears
    turn_limit: int = pydantic.Field(30, ge=3)


class Interface(NamedTuple):
    """A function under the names of one task."""

    api: Mapping[str, Json]
    name: str
    parameters: Mapping[str, str]  # our name → the task's

    def described(self) -> dict[str, Json]:
        """For the task's options: name, about, JSON schema."""
        fields = {**self.api["needs"], **self.api.get("may", {})}
        properties = {
            self.parameters[key]: schema(field["kind"], field["names"][0]) for key, field in fields.items()
        }
        parameters = {
            "type": "object",
            "properties": properties,
            "required": [self.parameters[key] for key in self.api["needs"]],
            "additionalProperties": False,
        }
        return {"name": self.name, "about": self.api["about"], "parameters": parameters}


@functools.cache
def _apis() -> Sequence[Mapping[str, Json]]:
    return yaml.safe_load(files("turnwise.envs.functioncall").joinpath("apis.yaml").read_text("utf-8"))


def draw_task(rng: Random, split: Split, knobs: FunctionCallKnobs) -> Task:
    """A conversation that no other split can draw. At least one of its requests wants a call."""

    def draw(rng: Random) -> Task | None:
        offered = _offer(rng, knobs)
        rounds: list[dict[str, Json]] = []
        for place in range(rng.randint(*knobs.rounds)):
            luck = rng.random()
            if luck < knobs.irrelevant:
                rounds.append(_irrelevant(rng, offered, knobs))
            else:
                leave_out = luck < knobs.irrelevant + knobs.missing
                rounds.append(_request(rng, offered, knobs, place, leave_out))
        wanted = [[call["name"], call["arguments"]] for one in rounds for call in one["calls"]]
        if not wanted or not in_split(split, ENV, wanted):
            return None
        options: dict[str, Json] = {
            "functions": [one.described() for one in rng.sample(offered, len(offered))],
            "rounds": rounds,
            "patience": knobs.patience,
            "turn_limit": knobs.turn_limit,
        }
        return Task(ENV, rounds[0]["say"], options, {"calls": len(wanted)})

    return first_drawn(draw, rng, split, "function calling")


def _offer(rng: Random, knobs: FunctionCallKnobs) -> list[Interface]:
    """Functions with names in one style; what gives an id is offered along with what needs it."""
    style = rng.choice(("snake", "camel"))
    usable = [api for api in _apis() if knobs.lookups or not (api.get("gives") or _ids(api))]
    chosen: list[Mapping[str, Json]] = []
    for api in rng.sample(usable, len(usable)):
        givers = [one for one in usable if one.get("gives") in _ids(api)]
        extra = [one for one in (*givers, api) if one not in chosen]
        if len(chosen) + len(extra) <= knobs.functions:
            chosen += extra
    return [_named(rng, api, style) for api in chosen]


def _ids(api: Mapping[str, Json]) -> list[str]:
    return [field["kind"][3:] for field in api["needs"].values() if field["kind"].startswith("id:")]


def _named(rng: Random, api: Mapping[str, Json], style: str) -> Interface:
    def write(words: str) -> str:
        first, *rest = words.split()
        return first + (
            "".join(word.title() for word in rest) if style == "camel" else "".join(f"_{w}" for w in rest)
        )

    fields = {**api["needs"], **api.get("may", {})}
    parameters = {key: write(rng.choice(field["names"])) for key, field in fields.items()}
    return Interface(api, write(rng.choice(api["names"])), parameters)


def _request(
    rng: Random, offered: Sequence[Interface], knobs: FunctionCallKnobs, place: int, leave_out: bool
) -> dict[str, Json]:
    """A request for some calls; with ``leave_out`` one argument of the first is told only when asked for."""
    doable = [one for one in offered if one.api.get("ask")]
    if not doable:
        return {"say": "", "calls": [], "ask": None}
    sentences: list[str] = []
    calls: list[dict[str, Json]] = []
    ask: dict[str, Json] | None = None
    for number in range(rng.randint(*knobs.calls)):
        one = rng.choice(doable)
        call, phrases = _call(rng, one, offered, calls, knobs)
        if leave_out and number == 0:
            left = rng.choice(
                [key for key, field in one.api["needs"].items() if not field["kind"].startswith("id:")]
            )
            told = phrases.pop(left)
            names = one.api["needs"][left]["names"]
            others = [name for key in phrases for name in one.api["needs"].get(key, {"names": []})["names"]]
            ask = {
                "words": [*names, one.parameters[left]],
                "told": sorted({word for word in others if word not in names}),
                "reply": told,
            }
        if any(call["name"] == other["name"] and call["arguments"] == other["arguments"] for other in calls):
            continue
        call["fails"] = rng.choice(_FAILURES) if rng.random() < knobs.failing else ""
        calls.append(call)
        sentences.append(" ".join([one.api["ask"], *(phrase for phrase in phrases.values() if phrase)]) + ".")
    opening = "" if place == 0 else rng.choice(("Thank you. ", "Good. ", "And then: "))
    return {"say": opening + " Also: ".join(sentences), "calls": calls, "ask": ask}


def _call(
    rng: Random,
    one: Interface,
    offered: Sequence[Interface],
    calls: list[dict[str, Json]],
    knobs: FunctionCallKnobs,
) -> tuple[dict[str, Json], dict[str, str]]:
    """A wanted call and the phrases that tell of it; a lookup that it needs is added to ``calls``."""
    arguments: dict[str, Json] = {}
    phrases: dict[str, str] = {}
    after: list[int] = []
    for key, field in one.api["needs"].items():
        kind, name = field["kind"], one.parameters[key]
        if kind.startswith("id:"):
            giver = next(other for other in offered if other.api.get("gives") == kind[3:])
            ((sought, how),) = giver.api["needs"].items()
            value = draw_value(rng, how["kind"])
            found = f"{kind[3:5]}-{rng.randint(1000, 9999)}"
            asked = {giver.parameters[sought]: value}
            same = [
                n for n, call in enumerate(calls) if call["name"] == giver.name and call["arguments"] == asked
            ]
            if not same:
                calls.append(
                    {
                        "name": giver.name,
                        "arguments": asked,
                        "gives": found,
                        "after": [],
                        "fails": "",
                        "reads": True,
                    }
                )
            lookup = same[0] if same else len(calls) - 1
            after.append(lookup)
            arguments[name] = calls[lookup]["gives"]
            phrases[key] = field["say"].format(value)
        else:
            arguments[name] = draw_value(rng, kind)
            phrases[key] = field["say"].format(said(kind, arguments[name], spoken=knobs.spoken))
    for key, field in one.api.get("may", {}).items():
        if rng.random() < 0.4:
            value = draw_value(rng, field["kind"])
            arguments[one.parameters[key]] = value
            phrases[key] = field["say"].format(said(field["kind"], value, spoken=knobs.spoken))
    return {
        "name": one.name,
        "arguments": arguments,
        "gives": "",
        "after": after,
        "fails": "",
        "reads": False,
    }, phrases


def _irrelevant(rng: Random, offered: Sequence[Interface], knobs: FunctionCallKnobs) -> dict[str, Json]:
    """A request for something that none of the offered functions does."""
    here: list[Any] = [one.api for one in offered]
    api = rng.choice([one for one in _apis() if one not in here and one.get("ask") and not _ids(one)])
    phrases = [
        field["say"].format(said(field["kind"], draw_value(rng, field["kind"]), spoken=knobs.spoken))
        for field in api["needs"].values()
    ]
    return {"say": f"{api['ask']} {' '.join(phrases)}.", "calls": [], "ask": None}
