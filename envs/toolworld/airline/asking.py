"""What the airline's customers ask for, in words that do not say whether they get it: requests and traps draw from the same."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.vocabulary import begun, counted

REFUND = (
    "How much will be refunded?", "What do I get back?", "What amount comes back to me?", "How much money will I see again?",
)  # fmt: skip
PRICE = (
    "What does it cost in total?", "What is that in all?", "How much is it altogether?", "What do I pay for it, all in all?",
)  # fmt: skip
AMOUNT = ("How much do I get?", "What will the amount be?", "How high is it?", "What sum is it?")
REASONS = (
    "My plans have changed.", "I feel unwell.", "My meeting was called off.", "Something came up at home.",
)  # fmt: skip
"""Why somebody does not fly, which changes nothing."""


def asks(draft: StoryDraft) -> bool:
    """Whether this customer wants to be told what it comes to."""
    return draft.rng.random() < 0.6


def question(draft: StoryDraft, *ways: str) -> str:
    """At times one of the ways to ask what it comes to."""
    return draft.words(*ways) if asks(draft) else ""


def _with(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def cancel(draft: StoryDraft, which: str, asked: str = "") -> str:
    wish = draft.words(
        f"I want to cancel {which}.", f"Please cancel {which}.", f"Can you cancel {which} for me?", f"I cannot go, so cancel {which}.",
        f"Call {which} off, please.", f"It is about {which}: I want it cancelled.",
    )  # fmt: skip
    why = draft.words(*REASONS) if draft.rng.random() < 0.4 else ""
    return _with(why, wish, asked)


def move(draft: StoryDraft, which: str, day: str) -> str:
    return draft.words(
        f"Move {which} to the cheapest flight on {day} that is not delayed or cancelled.",
        f"I cannot travel as planned. Put {which} on the cheapest scheduled flight of {day}.",
        f"Rebook {which} to {day}, the cheapest flight that runs on time.",
        f"Can {which} be moved to {day}? Take the cheapest one that is neither delayed nor cancelled.",
    )


def upgrade(draft: StoryDraft, which: str, asked: str = "") -> str:
    wish = draft.words(
        f"Upgrade {which} to business.", f"Please move {which} to business class.", f"I want to sit in business on {which}, so change it.",
        f"Put {which} into business class.", f"Business class for {which}, please.", f"I would like to have {which} in business.",
    )  # fmt: skip
    return _with(wish, asked)


def downgrade(draft: StoryDraft, which: str, asked: str = "") -> str:
    wish = draft.words(
        f"Put {which} down to economy.", f"Economy will do for {which}: change it, please.", f"Change {which} to economy.",
        f"Economy is enough for {which}. Please change it.",
    )  # fmt: skip
    return _with(wish, asked)


def bags(draft: StoryDraft, which: str, number: int, asked: str = "") -> str:
    wish = draft.words(
        f"Add {counted(number, 'bag')} to {which}.", f"We have {counted(number, 'more bag')} to check in for {which}.",
        f"Please register {counted(number, 'further bag')} for {which}.", f"{begun(which)} needs {counted(number, 'more bag')}.",
        f"I travel with {counted(number, 'extra bag')} on {which}.", f"Put {counted(number, 'bag')} on top for {which}.",
    )  # fmt: skip
    return _with(wish, asked)


def rename(draft: StoryDraft, which: str, old: str, new: str) -> str:
    return draft.words(
        f"In {which}, the passenger {old} has a new name: {new}. Please correct it.", f"{old} in {which} is called {new} now. Change the name.",
        f"The name {old} in {which} is wrong, it must be {new}.", f"Please write {new} instead of {old} in {which}.",
    )  # fmt: skip


def claim(draft: StoryDraft, which: str, status: str, asked: str = "") -> str:
    """``status``: what has become of the flight, if that is said."""
    if status:
        wish = draft.words(
            f"The flight of {which} is {status}, so I ask for compensation.", f"Since the flight of {which} is {status}, I want to be compensated.",
            f"I claim compensation: the flight of {which} is {status}.", f"I hear that the flight of {which} is {status}. Compensate me, please.",
        )  # fmt: skip
    else:
        wish = draft.words(
            f"I want compensation for {which}.", f"Compensate me for {which}, please.", f"What happened with {which} must be compensated.",
            f"I think that I am owed a compensation for {which}.",
        )  # fmt: skip
    return _with(wish, asked)


def meal(draft: StoryDraft, which: str, food: str, asked: str = "") -> str:
    wish = draft.words(
        f"We eat {food} food only: order it for {which}.", f"Please note a {food} meal for {which}.", f"I need {food} meals on {which}.",
        f"Can you arrange {food} food on {which}?",
    )  # fmt: skip
    return _with(wish, asked)


def insure(draft: StoryDraft, which: str, asked: str = "") -> str:
    wish = draft.words(
        f"Insure {which}, please.", f"I want insurance for {which}.", f"Add insurance to {which}.", f"Can {which} still be insured? Do it, please.",
    )  # fmt: skip
    return _with(wish, asked)
