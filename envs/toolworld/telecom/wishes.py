"""What customers ask for, in words that do not say whether they get it: requests and traps draw from the same."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import StoryDraft

PER_MONTH = (
    "What does that cost per month?", "What is the price per month?", "What will I pay each month?", "Tell me the monthly price.",
    "How much is that a month?", "What does it come to per month?",
)  # fmt: skip
ONCE = (
    "What do I pay for that?", "What will that cost?", "How much is it?", "What's the price of that?", "What would I owe you for it?",
    "Tell me the price, too.",
)  # fmt: skip


def asks_price(draft: StoryDraft) -> bool:
    """Whether this customer wants to be told what it costs."""
    return draft.rng.random() < 0.6


def _and(draft: StoryDraft, wish: str, question: tuple[str, ...], *, asks: bool) -> str:
    return f"{wish} {draft.words(*question)}" if asks else wish


def plan(draft: StoryDraft, gigabytes: int, *, asks: bool) -> str:
    wish = draft.words(
        f"I need a plan with {gigabytes} GB. Change mine, please.", f"Please put me on the plan with {gigabytes} GB.",
        f"Switch me to the {gigabytes} GB plan.", f"Change my plan to the one with {gigabytes} GB.",
        f"Please move me to the {gigabytes} GB plan.", f"I would like to move to the plan with {gigabytes} GB.",
        f"From now on I want the plan with {gigabytes} GB.", f"I'd like to have the plan that comes with {gigabytes} GB.",
    )  # fmt: skip
    return _and(draft, wish, PER_MONTH, asks=asks)


def cheapest_plan(draft: StoryDraft, *, asks: bool) -> str:
    wish = draft.words(
        "Put me on the cheapest plan that still covers the data that I have used this month.",
        "My plan is too expensive. Find the cheapest one whose data is more than what I used this month, and move me there.",
        "I want to save money: change me to the cheapest plan that is enough for my use this month.",
        "Change me to whatever plan costs least and has more data than I used this month.",
    )  # fmt: skip
    return _and(draft, wish, PER_MONTH, asks=asks)


def data(draft: StoryDraft, gigabytes: int, *, asks: bool) -> str:
    wish = draft.words(
        f"Add {gigabytes} GB to my line.", f"I want {gigabytes} more gigabytes this month.",
        f"My data is nearly gone, put {gigabytes} GB on top.", f"I need {gigabytes} GB more on my line.",
        f"Please book {gigabytes} extra GB for me.", f"Put {gigabytes} extra gigabytes on my line.",
        f"Give me {gigabytes} GB more, please.", f"Top me up by {gigabytes} GB.",
    )  # fmt: skip
    return _and(draft, wish, ONCE, asks=asks)


def roaming(draft: StoryDraft, which: str, *, enabled: bool) -> str:
    """``which``: "my line", or one by its phone number."""
    if enabled:
        return draft.words(
            f"I will travel abroad. Allow roaming on {which}.", f"Please switch roaming on for {which}, for a trip abroad.",
            f"I leave the country next week: enable roaming on {which}.", f"Make {which} work abroad, I need roaming.",
            f"For my holidays I need roaming on {which}.", f"I am off to another country soon, please set up roaming for {which}.",
        )  # fmt: skip
    return draft.words(
        f"I am back home. Forbid roaming on {which} again.", f"Please switch roaming off on {which}, I do not travel any more.",
        f"Disable roaming for {which}, I fear the cost.", f"No more roaming: turn it off on {which}.",
        f"I want {which} to be without roaming.", f"Take roaming off {which}, please.",
    )  # fmt: skip


def resume(draft: StoryDraft, *, pays: bool) -> str:
    """``pays``: he does not say that he will not pay for it."""
    wish = draft.words(
        "My line was suspended. Resume it.", "Please resume my line, it is suspended.", "My line is off. Switch it on again.",
        "You have suspended my line. I want it resumed.", "Take the suspension off my line, please.", "Reactivate my line.",
    )  # fmt: skip
    unwilling = (
        "I will not pay any bill for that, so do not ask me to.", "But I pay nothing before that.",
        "You get no money from me for it, though.", "And I refuse to pay any bills for it.",
    )  # fmt: skip
    return _and(draft, wish, unwilling, asks=not pays)


def end_of_contract(draft: StoryDraft) -> str:
    return draft.words(
        "I want to end my contract today.", "Terminate my contract with immediate effect.", "Let me out of my contract now.",
        "Close my line this week, I want to be out of the contract.", "Please end my contract right now.", "I quit. End the contract at once.",
    )  # fmt: skip


def no_internet(draft: StoryDraft) -> str:
    return draft.words(
        "My mobile data does not work.", "I have no internet on my phone.", "Nothing loads when I am not at home.",
        "Since I put in a wrong PIN for the SIM my mobile data does not work.",
        "The internet on my phone has been gone since this morning.", "Since I typed a wrong SIM PIN I have no internet.",
        "I cannot get online with my phone.", "No page opens on my phone any more.",
        "Since I mistyped the PIN of my SIM, nothing loads.",
    )  # fmt: skip
