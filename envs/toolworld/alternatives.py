"""Requests of parts: one thing or another by what the agent finds out, or several things in one wish."""

from __future__ import annotations

from typing import NamedTuple

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact
from turnwise.envs.toolworld.story import PlanStep, Stage, tell
from turnwise.envs.toolworld.vocabulary import begun


class WishPart(NamedTuple):
    """One thing that a user asks for: a clause that can follow "please", what does it, and what is reported then."""

    say: str
    steps: tuple[PlanStep, ...]
    report: str
    tells: tuple[Fact, ...] = ()
    again: str = ""
    said: str = ""  # beside the wish


def either(draft: StoryDraft, condition: str, then: str, otherwise: str) -> str:
    """A wish for one thing where a condition holds, and for another where it does not."""
    return draft.words(
        f"If {condition}, {then}; otherwise {otherwise}.",
        f"Please check whether {condition}; if so, {then}, and if not, {otherwise}.",
        f"Provided that {condition}, {then}; if that is not the case, {otherwise}.",
        f"Can you see if {condition}? If so, please {then}. If not, {otherwise}.",
        f"I am not sure whether {condition}. If that is so, please {then}; if not, {otherwise}.",
        f"Suppose that {condition}, then please {then}. Otherwise, {otherwise}.",
        f"It depends on whether {condition}; if it is so, {then}; if it is not, {otherwise}.",
        f"I would like to know if {condition}. Where that is true, please {then}. Where it is not, {otherwise}.",
        f"Find out whether {condition}, please; if yes, {then}; if no, {otherwise}.",
        f"In case {condition}, {then}; in any other case, {otherwise}.",
        f"Have a look whether {condition}. In that case please {then}. Else, {otherwise}.",
        f"Is it true that {condition}? Then please {then}. If it is wrong, {otherwise}.",
    )


def together(draft: StoryDraft, first: str, second: str) -> str:
    """A wish for two things."""
    return draft.words(
        f"Please {first}, and {second}.",
        f"I want two things: {first}; and {second}.",
        f"There are two things to be done: {first}, and then {second}.",
        f"{begun(first)}, please. Also, {second}.",
        f"I have a double request: {first}; also, {second}.",
        f"Be so kind as to {first}. Besides that, {second}.",
        f"Two wishes at once: {first}; {second}.",
        f"{begun(first)}. Apart from that, please {second}.",
        f"I need you to {first} and, besides, {second}.",
        f"First {first}; after that, {second}.",
        f"It would be nice of you to {first}. And while you are at it, {second}.",
        f"There is something to do for you: {first}. In addition, {second}.",
    )


def decided(
    draft: StoryDraft, look: tuple[PlanStep, ...], condition: str, parts: tuple[WishPart, WishPart], *, holds: bool
) -> Stage:  # fmt: skip
    """A request of which the first part is wanted where the condition holds, else the second.

    The user cannot know which it will be, so he would agree to the changes of both: his yes tells nothing.
    """
    then, otherwise = parts
    now = then if holds else otherwise
    say = either(draft, condition, then.say, otherwise.say)
    plan = (*look, *now.steps, tell(now.report))
    return Stage(_beside(say, *parts), plan, now.tells, again=now.again, wants=changes(*parts))


def joined(
    draft: StoryDraft, look: tuple[PlanStep, ...], first: WishPart, second: WishPart, say: str = ""
) -> Stage:
    """A request of two parts, both wanted."""
    plan = (*look, *first.steps, *second.steps, tell(f"{first.report} {second.report}"))
    again = f"{first.again} {second.again}".strip()
    said = _beside(say or together(draft, first.say, second.say), first, second)
    return Stage(said, plan, (*first.tells, *second.tells), again=again, wants=changes(first, second))


def _beside(say: str, *parts: WishPart) -> str:
    """A wish, and what is said beside its parts; nothing of it twice."""
    return " ".join(dict.fromkeys((say, *(part.said for part in parts if part.said))))


def changes(*parts: WishPart) -> tuple[str, ...]:
    """The changes that the parts of a wish need."""
    return tuple(dict.fromkeys(step.name for part in parts for step in part.steps if step.kind == "call"))


def confirmed(what: str, *calls: PlanStep) -> tuple[PlanStep, ...]:
    """A question for a yes, and the changes that it is for."""
    return (PlanStep("confirm", f"I will {what}. Shall I proceed?"), *calls)
