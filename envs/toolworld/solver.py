"""Scripted policies: the plan's next step, an imperfect variant of it, and some meaningful actions."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from turnwise.envs.toolworld.facts import Fact, say
from turnwise.envs.toolworld.mind import unconfirmed
from turnwise.envs.toolworld.story import PlanStep
from turnwise.tasks.core import Json, digest

if TYPE_CHECKING:
    from turnwise.envs.toolworld.state import ToolState

_FORGETS = 0.1
_MIXES_UP = 0.2
_OTHERS = 6  # that an offer has beside each planned call


def next_step(state: ToolState) -> PlanStep:
    """The first step of the stage's plan that is not done."""
    stage = state.case.story.stages[state.user.stage]
    for place, step in enumerate(stage.plan):
        if not _is_done(state, step, place):
            return step
    return stage.plan[-1]  # the report, again


def imperfect_step(state: ToolState, rng: Random) -> PlanStep:
    """The next step of an imperfect scripted policy, which sometimes mixes things up."""
    domain, story = state.case.domain, state.case.story
    stage = story.stages[state.user.stage]
    made = sum(step.kind == "call" for earlier in story.stages[: state.user.stage] for step in earlier.plan)
    for place, step in enumerate(stage.plan):
        if step.kind == "call":
            made += 1
            if state.calls >= made:  # whatever the calls were
                continue
        elif (step.kind != "tell" and _is_done(state, step, place)) or (
            step.kind == "confirm" and domain.asks_consent and rng.random() < _FORGETS
        ):
            continue
        if domain.confuse is not None:
            return domain.confuse(stage, state.db, state.done, step, rng) or step
        return _mixed_up(state, step, rng)
    return stage.plan[-1]


def _mixed_up(state: ToolState, step: PlanStep, rng: Random) -> PlanStep:
    """At times a call with another key or choice in it."""
    others = _like(state, step)[1:] if step.kind == "call" and rng.random() < _MIXES_UP else []
    if not others:
        return step
    return step._replace(arguments=dict(zip(step.arguments, rng.choice(others), strict=True)))


def offers(state: ToolState) -> list[str]:
    """Questions, calls and reports that mean something now."""
    domain, story = state.case.domain, state.case.story
    stage = story.stages[state.user.stage]
    said = [step.text for step in stage.plan if step.text]
    for fact in stage.tells:
        said += [
            text.replace(say(fact), other) for text in said for other in _unlike(fact) if say(fact) in text
        ]
    said += [f"{slot} ?" for slot in domain.slots]
    said += ["sure ?", "done ."] if domain.compact else ["Shall I proceed?", "Sorry, that is not possible."]
    for step in state.case.planned:
        said += [f"{step.name}[{', '.join(map(str, values))}]" for values in _like(state, step)]
    return sorted({*said}, key=lambda text: digest(text))  # an order that tells nothing


def _like(state: ToolState, step: PlanStep) -> list[list[Json]]:
    """The planned arguments, and others in which one key or choice is another one."""
    made = state.case.domain.act(step.name)
    properties = made.tool.spec.parameters.get("properties", {}) if made else {}
    found = [list(step.arguments.values())]
    for place, (name, value) in enumerate(step.arguments.items()):
        choices = properties.get(name, {}).get("enum", ())
        for other in _others(state, value, choices):
            found.append([*found[0][:place], other, *found[0][place + 1 :]])
    return found


def _others(state: ToolState, value: Json, choices: Sequence[Json] = ()) -> list[Json]:
    """Other values in place of a key of a table or one of several choices; also inside of an object."""
    if isinstance(value, dict):
        return [{**value, name: other} for name, inner in value.items() for other in _others(state, inner)]
    keys = list(choices)
    if isinstance(value, str) and not keys:
        table = next((rows for rows in state.case.base.tables.values() if value in rows), None)
        keys = sorted(table) if table is not None else []
    others = [key for key in keys if key != value]
    return others[:: max(1, len(others) // _OTHERS)]


def _unlike(fact: Fact) -> list[str]:
    """Other values of the fact's kind, as one would write them."""
    if fact.kind in ("money", "count"):
        step = 500 if fact.kind == "money" else 1
        return [
            say(fact._replace(value=str(int(fact.value) + step * n)))
            for n in (-6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6)
        ]
    return [choice for choice in fact.choices if choice != fact.value][:_OTHERS]


def _is_done(state: ToolState, step: PlanStep, place: int) -> bool:
    """Say whether the step in this place of the stage's plan is done."""
    user = state.user
    match step.kind:
        case "ask":
            return user.revealed.issuperset(step.slots)
        case "call":
            return state.case.records[user.stage][place] in state.done
        case "propose":
            return user.twisted
        case "confirm":
            return _is_agreed(state, place)
        case "guide":
            return step.name in user.did
        case "tell":
            return False


def _is_agreed(state: ToolState, place: int) -> bool:
    """Say whether the user has said yes to the change that a plan's ``confirm`` is for: the next one after
    it."""
    domain, user = state.case.domain, state.user
    plan = state.case.story.stages[user.stage].plan
    if domain.compact:
        return user.consent
    records = state.case.records[user.stage]
    for later, record in zip(plan[place + 1 :], records[place + 1 :], strict=True):
        made = domain.act(later.name) if later.kind == "call" else None
        if made is not None and made.kind == "write":
            return record in state.done or not unconfirmed(domain, user, later.name, later.arguments, None)
    return user.consent
