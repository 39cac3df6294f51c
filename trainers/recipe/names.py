"""Names in a recipe that do not exist: suites, scripts, opponents, parts and their options.

Each section has a check of its own names, and each kind of part one of what it says beside its name. Whoever adds a section
registers its check here; :func:`missing` walks the recipe.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from turnwise.agents.contexts.core import make_context
from turnwise.agents.gateway.agent_program import program_of
from turnwise.agents.multi_agent import check_opponents
from turnwise.agents.policies.registry import check_spec
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.tokens.template import check_tools_format
from turnwise.envs.registry import env_class, get_suite
from turnwise.envs.returned import check_named
from turnwise.errors import RecipeError
from turnwise.registry import Component, components, get_component
from turnwise.tasks.core import Suite
from turnwise.trainers.core import SEAMS
from turnwise.trainers.kit.asking import SELF
from turnwise.trainers.recipe.part import GuidePart, LossPart, Part, SourcePart, made
from turnwise.trainers.recipe.problems import RecipeProblem, found_by
from turnwise.trainers.recipe.schema import (
    Agent,
    EngineOptions,
    Evaluate,
    Phase,
    Recipe,
    Rollout,
    SamplingOptions,
    Section,
    WarmStart,
    plain,
)
from turnwise.trainers.recipe.synonyms import PARTS

Where: TypeAlias = Callable[[str], str]
"""In which line a dotted key was given, for a message; empty where that is not known."""
KINDS = {"signals": "signal", "sinks": "sink"}
"""The kind of the parts that a key names, where it is not called like the key."""


class _Place(NamedTuple):
    """Place of a section or a part: its dotted key, and the suites of the recipe."""

    key: str
    where: Where
    suites: Sequence[Suite] = ()

    def below(self, name: str) -> _Place:
        return self._replace(key=f"{self.key}.{name}".strip("."))

    @property
    def seam(self) -> str:
        last = self.key.rpartition(".")[2]
        return KINDS.get(last, last)

    def __str__(self) -> str:
        return self.where(self.key)


def missing(recipe: Recipe, where: Where) -> Iterator[RecipeProblem]:
    """Yield the problems with names that do not exist, in the order of the recipe's keys."""
    suites: list[Suite] = []
    for name in recipe.suites:
        yield from found_by(lambda n=name: suites.append(get_suite(n)), where("suite"))
    yield from _below(recipe, _Place("", where, suites))


def _below(section: Section, place: _Place) -> Iterator[RecipeProblem]:
    """Yield the problems of a section's own names, then those of the sections and parts in it."""
    yield from _own(section, place)
    for name in type(section).model_fields:
        value, at = getattr(section, name), place.below(name)
        inner = (
            [value]
            if not isinstance(value, (list, dict))
            else value.values()
            if isinstance(value, dict)
            else value
        )
        for one in inner:
            if isinstance(one, Part):
                yield from _of_part(one, at)
            elif isinstance(one, Section) and not isinstance(one, Phase):  # phases are checked as recipes
                yield from _below(one, at)


@functools.singledispatch
def _own(section: Section, place: _Place) -> Iterator[RecipeProblem]:
    """Yield the problems of the names that are a section's own."""
    return iter(())


@_own.register
def _(section: WarmStart, place: _Place) -> Iterator[RecipeProblem]:
    yield from found_by(lambda: scripted(section.demonstrator), str(place.below("demonstrator")))


@_own.register
def _(section: Agent, place: _Place) -> Iterator[RecipeProblem]:
    told = plain(section)
    yield from found_by(lambda: program_of(told, place.key).check(), str(place))


@_own.register
def _(section: Rollout, place: _Place) -> Iterator[RecipeProblem]:
    options = place.below("env_options")
    yield from _not_json(section.env_options, options)
    for suite in place.suites if section.env_options else ():
        yield from found_by(
            lambda s=suite: check_named(env_class(s.env), section.env_options, "environment"), str(options)
        )
    yield from _opponents(section.opponents, place.below("opponents"), (SELF,))


@_own.register
def _(section: Evaluate, place: _Place) -> Iterator[RecipeProblem]:
    yield from _opponents(section.opponents, place.below("opponents"))


@_own.register
def _(section: EngineOptions, place: _Place) -> Iterator[RecipeProblem]:
    engines: list[Component] = []
    yield from found_by(
        lambda: engines.append(get_component("engine", section.kind)), str(place.below("kind"))
    )
    for engine in engines:
        yield from found_by(lambda e=engine: e.build(section.options), str(place.below("options")))


@_own.register
def _(section: SamplingOptions, place: _Place) -> Iterator[RecipeProblem]:
    yield from found_by(lambda: check_tools_format(section.tools), str(place.below("tools")))
    if (context := section.context) is not None:
        asked = {**context.options, "name": context.name}
        yield from found_by(lambda: make_context(asked), str(place.below("context")))


@functools.singledispatch
def _of_part(part: Part, place: _Place) -> Iterator[RecipeProblem]:
    """Yield the problems of a part: its name and options, and what its kind says beside."""
    unknown = list(_unknown(place.seam, part, str(place)))
    yield from unknown
    if place.seam in ("schedule", "judge") and not unknown:
        yield from found_by(lambda: made(part, place.seam), str(place))


@_of_part.register
def _(part: LossPart, place: _Place) -> Iterator[RecipeProblem]:
    unknown = list(_unknown("loss", part, str(place)))
    yield from unknown or found_by(lambda: _check_loss(part), str(place))


@_of_part.register
def _(part: GuidePart, place: _Place) -> Iterator[RecipeProblem]:
    unknown = list(_unknown(place.seam, part, str(place)))
    yield from unknown or found_by(part.make, str(place))
    yield from _foreign(part, place)


def _foreign(part: GuidePart, place: _Place) -> Iterator[RecipeProblem]:
    """Yield the problems with the losses and the correction of a guide's or a source's tokens."""
    shows = isinstance(part, SourcePart)  # what it shows is a minibatch of its own
    for loss in part.loss or ():
        unknown = list(_unknown("loss", loss, str(place)))
        yield from unknown or ([] if shows else found_by(lambda p=loss: _no_whole(p), str(place)))
    if part.correction is not None:
        yield from _unknown("correction", part.correction, str(place))


def _opponents(
    opponents: Mapping[str, str], place: _Place, known: Sequence[str] = ()
) -> Iterator[RecipeProblem]:
    lead = f"{place.key}: "
    for suite in place.suites:
        yield from found_by(lambda s=suite: check_opponents(s, opponents), str(place), lead)
    for spec in opponents.values() if place.suites else ():
        if spec not in known:
            yield from found_by(lambda s=spec: check_spec(s), str(place), lead)


def _unknown(seam: str, part: Part, place: str) -> Iterator[RecipeProblem]:
    for cause, remedy in found_by(lambda: part.build(seam), place):
        yield RecipeProblem(cause, PARTS.get((seam, part.name)) or _elsewhere(seam, part.name) or remedy)


def _elsewhere(seam: str, name: str) -> str:
    """Return what to write where a part of this name is of another kind; empty if there is none, or it is of this one."""
    kinds = [kind for kind in SEAMS if name in (entry.name for entry in components(kind))]
    if not kinds or seam in kinds:
        return ""
    if "shape" in kinds:
        return f"It is a shape, laid over a credit rule: keep one, such as grpo, and write shape: [{name}]."
    return f"There is a {kinds[0]} of this name (`turnwise list {kinds[0]}`)."


def _no_whole(part: LossPart) -> None:
    if part.whole:
        raise RecipeError(
            f"The loss {part.name!r} is of whole minibatches, and a guide has single tokens only.",
            "Choose a loss of tokens.",
        )


def _check_loss(part: Part) -> None:
    """Refuse a loss that remembers and is not of whole minibatches: it sees every token once, and micro-batches must not count."""
    entry = part.component("loss")
    if inspect.isclass(entry.target) and not entry.whole:
        raise RecipeError(
            f"The loss {part.name!r} is a class, so that it remembers, and is not of whole minibatches.",
            "Register it with whole=True, or make it a function.",
        )


def _not_json(value: Any, place: _Place) -> Iterator[RecipeProblem]:
    """Yield values that YAML reads as something that no episode log can hold, such as dates."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _not_json(inner, place.below(str(name)))
    elif isinstance(value, list):
        for inner in value:
            yield from _not_json(inner, place)
    elif not isinstance(value, (str, int, float, bool, type(None))):
        yield RecipeProblem(
            f"The recipe's {place.key!r} is a {type(value).__name__} to YAML ({value}), which an episode log cannot hold"
            f"{place}.",
            "Write it in quotes, as text.",
        )
