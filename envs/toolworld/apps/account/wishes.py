"""What people want of their accounts, in words that do not say whether they get it: requests and traps draw from the same."""

from __future__ import annotations

from turnwise.envs.toolworld.apps.account.parts import begun
from turnwise.envs.toolworld.domain import StoryDraft

RECENT = (
    "I bought it only last week.",
    "It is brand new.",
    "It cannot be two weeks old.",
    "I got it just a few days ago.",
)
UNOPENED = ("I never opened it.", "It is untouched.", "Nobody has looked into it.", "It was not even opened.")
LATE = (
    "I only see it now.",
    "I have just found it.",
    "It was among older bills.",
    "Until today I had not noticed it.",
)
STAYS_PAUSED = (
    "If it is paused, leave it paused.", "Should it be paused, it stays so.", "Do not end a pause for that.", "A pause must not end by that.",
)  # fmt: skip
NEW_TO_ME = ("I do not have it yet.", "It is new to me.", "So far I have none.", "I am without it so far.")
GOOD_CODE = (
    "It is certainly good.",
    "I was given it yesterday.",
    "It has not been used.",
    "It's a fresh one.",
)
LITTLE = (
    "I hardly use any.",
    "That is enough for me.",
    "More I do not need.",
    "I have little that is stored.",
)
WELCOME = (
    "Nothing speaks against it.",
    "We all agree.",
    "Everybody knows about it.",
    "Everyone here wants that.",
)
FIT = (
    "I have thought about it.",
    "I take the responsibility.",
    "That is all right with me.",
    "I know what I do.",
)
UNUSED = ("Nobody uses them.", "They are free.", "We want to save money.", "We have no use for them.")
OF_AGE = ("My mum said yes.", "My parents allow it.", "Dad is fine with it.", "I have asked at home.")

BACK = (
    "Do I get anything back, and how much?", "What do you refund?", "Tell me how much of the money returns to me.",
    "Is there money back, and what sum?", "How much will I be refunded?", "What amount comes back?",
)  # fmt: skip
REFUNDED = ("How much is it?", "What sum do I get?", "Tell me the amount.", "What does the refund come to?")
CREDIT_AFTER = (
    "What is my credit afterwards?", "Tell me the new sum of my credit.", "How much credit have I then?", "What does my credit come to with it?",
)  # fmt: skip
MEGABYTES = (
    "How many megabytes is that?",
    "Tell me how many megabytes go.",
    "What is the size of it in megabytes?",
    "How many megabytes are there?",
)
CREDIT_LOST = (
    "How much credit do I lose?", "What credit is on it that goes with it?", "Tell me the credit that is lost.", "What is the amount of credit on it?",
)  # fmt: skip


def asks(draft: StoryDraft) -> bool:
    """Whether this person wants to be told what it comes to."""
    return draft.rng.random() < 0.6


def per(draft: StoryDraft, period: str) -> str:
    """A question for the price of a "monthly" or "yearly" period."""
    unit = "month" if period == "monthly" else "year"
    return draft.words(
        f"What does it cost a {unit} then?", f"How much is that a {unit}?", f"Tell me what I pay a {unit} for it.", f"What is the price per {unit}?",
        f"What will I pay per {unit}?", f"And what would that be a {unit}?",
    )  # fmt: skip


def with_more(draft: StoryDraft, wish: str, claims: tuple[str, ...] = (), question: str = "") -> str:
    """A wish, at times with something that its owner says for it, and with what he wants to know."""
    said = draft.words(*claims) if claims and draft.rng.random() < 0.5 else ""
    return " ".join(part for part in (wish, said, question) if part)


def cancel(draft: StoryDraft, which: str) -> str:
    return draft.words(
        f"Cancel {which}.", f"I want to end {which}.", f"Please stop {which}.", f"I do not use it any more: terminate {which}.",
        f"{begun(which)} can go. End it, please.", f"Call off {which} for me.",
    )  # fmt: skip


def tier(draft: StoryDraft, which: str, new: str) -> str:
    return draft.words(
        f"Change {which} to {new}.", f"I would like to have {which} in {new}.", f"Move {which} to the {new} tier.", f"Put {which} on {new}, please.",
        f"Make {which} a {new} one.", f"From now on I want {which} to be {new}.",
    )  # fmt: skip


def period(draft: StoryDraft, which: str, new: str) -> str:
    return draft.words(
        f"I want to pay {which} {new} from now on.", f"Switch {which} to {new} payment.", f"Please bill {which} {new} instead.",
        f"Change {which} to {new} billing, please.",
    )  # fmt: skip


def months(number: int) -> str:
    return f"{number} month{'s' * (number > 1)}"


def pause(draft: StoryDraft, which: str, number: int) -> str:
    return draft.words(
        f"Pause {which} for {months(number)}.", f"I am away, so please put {which} on hold for {months(number)}.",
        f"Freeze {which} for {months(number)}, I will not need it.", f"I would like a break of {months(number)} from {which}: pause it.",
    )  # fmt: skip


def subscribe(draft: StoryDraft, app: str, level: str, how: str) -> str:
    return draft.words(
        f"Subscribe me to {app} {level}, paid {how}.", f"I would like {app} in the {level} tier with {how} payment.",
        f"Sign me up for {app}, {level}, {how}.", f"Set up a {how} {level} subscription to {app} for me.",
        f"Take out {app} for me, {level}, with {how} billing.", f"Please get me {app} {level} on a {how} basis.",
    )  # fmt: skip


def share(draft: StoryDraft, which: str) -> str:
    return draft.words(
        f"Share {which} with my family.", f"My family should have {which} too, please share it.", f"Let everybody in the family use {which}.",
        f"Please make {which} available to my whole family.",
    )  # fmt: skip


def refund(draft: StoryDraft, which: str, to: str) -> str:
    where = {"credit": "as credit", "card": "to my card"}[to]
    return draft.words(
        f"Refund {which} {where}.", f"I want my money back for {which}, {where}.", f"Please take back {which} and pay it back {where}.",
        f"{begun(which)} was a mistake. Give the price back {where}.", f"I regret {which}. Return the money {where}.",
        f"I would like a refund of {which} {where}.",
    )  # fmt: skip


def child_refund(draft: StoryDraft, which: str, first: str, to: str) -> str:
    where = {"credit": "as credit", "card": "to the card"}[to]
    return draft.words(
        f"My child {first} bought {which} without asking. Refund it {where}.", f"{first} is a child and got {which} behind my back. I want a refund {where}.",
        f"Without my knowledge our {first} paid for {which}. Please return the price {where}.",
        f"I never allowed {which}, which our child {first} has bought. Pay it back {where}.",
    )  # fmt: skip


def dispute(draft: StoryDraft, key: str, reason: str) -> str:
    which = f"purchase {key}"
    if reason == "unknown_purchase":
        return draft.words(
            f"I never made {which}. Contest the charge.", f"Nobody here has bought {which}. Please dispute it with the bank.",
            f"We know nothing of {which}. Challenge the charge, please.", f"I do not recognise {which}; open a dispute about it.",
            f"{begun(which)} is not from us at all. Challenge that charge for me.", f"{begun(which)} was not made by me or my family, so file a dispute.",
        )  # fmt: skip
    return draft.words(
        f"You charged me two times for the same with {which}. Contest one of the charges.", f"{begun(which)} was charged twice on one day. Dispute it.",
        f"I see the charge of {which} double. Open a dispute about that one.", f"For {which} I paid double on the same day, so challenge the charge.",
    )  # fmt: skip


def redeem(draft: StoryDraft, code: str) -> str:
    return draft.words(
        f"Redeem the gift code {code}.", f"I got the code {code} as a present. Add it to my credit.", f"Put {code}, a gift code, on my account.",
        f"Please cash in the voucher {code}.",
    )  # fmt: skip


def gift(draft: StoryDraft, worth: int, email: str) -> str:
    return draft.words(
        f"Buy a gift code of ${worth} for {email}.", f"I want to give ${worth} to {email} as a gift code.",
        f"Please send a gift code worth ${worth} to {email}.", f"I need a present for {email}: buy a gift code over ${worth}, please.",
    )  # fmt: skip


def storage(draft: StoryDraft, gigabytes: int, *, family: bool) -> str:
    """``family``: whoever speaks has one, and may speak of its storage."""
    whose = "our family's" if family and draft.rng.random() < 0.5 else "my"
    return draft.words(
        f"Change {whose} storage to {gigabytes} GB.", f"Switch {whose} storage to the plan with {gigabytes} GB.",
        f"Please move {whose} storage to {gigabytes} GB.", f"I want {whose} cloud storage to have {gigabytes} GB.",
    )  # fmt: skip


def cheapest_storage(draft: StoryDraft) -> str:
    return draft.words(
        "Put me on the cheapest storage plan that holds all I have.", "I pay too much for storage: change me to the cheapest plan that is large enough.",
        "Please find the cheapest storage plan for what I keep, and switch me to it.", "Give me the least expensive storage plan into which my data fit.",
    )  # fmt: skip


def add_member(draft: StoryDraft, email: str) -> str:
    return draft.words(
        f"Add {email} to my family.", f"Somebody new belongs to my family: add {email}.", f"Please take {email} into our family group.",
        f"I want {email} as a member of my family.",
    )  # fmt: skip


def remove_member(draft: StoryDraft, name: str) -> str:
    return draft.words(
        f"Take {name} out of my family.", f"{name} lives somewhere else now; remove that account from my family.",
        f"Please remove {name} from our family group.", f"{name} does not belong to my family any more, so remove the account.",
    )  # fmt: skip


def age_limit(draft: StoryDraft, first: str, new: str) -> str:
    return draft.words(
        f"Let {first} buy and see things up to {new}.", f"Set the age limit of my child {first} to {new}.",
        f"{first} is old enough for {new} now, please change the limit.", f"Please change what {first} may see: the age limit is to be {new}.",
    )  # fmt: skip


def allowance(draft: StoryDraft, first: str, amount: int) -> str:
    return draft.words(
        f"Give {first} an allowance of ${amount} a month.", f"{first} may spend ${amount} a month from now on.",
        f"Please set the allowance of my child {first} to ${amount} a month.", f"As pocket money in the store {first} gets ${amount} a month.",
    )  # fmt: skip


def remove_device(draft: StoryDraft, which: str) -> str:
    return draft.words(
        f"Remove {which} from my account.", f"I sold {which}. Please sign it out of my account.", f"Take {which} off my account.",
        f"I gave {which} away, so unlink it from my account.",
    )  # fmt: skip


def export(draft: StoryDraft, app: str, form: str) -> str:
    return draft.words(
        f"Send me a copy of my {app} data as {form}.", f"I want all that {app} keeps about me, as {form}.",
        f"Please export what {app} has stored about me in {form}.", f"I need my data from {app}; the format is {form}.",
    )  # fmt: skip


def erase(draft: StoryDraft, app: str) -> str:
    return draft.words(
        f"Delete everything that {app} keeps about me.", f"Erase my {app} data for good.", f"Please wipe what {app} has about me.",
        f"I want all my data at {app} deleted.",
    )  # fmt: skip


def close(draft: StoryDraft) -> str:
    return draft.words(
        "Close my account for good.", "I want my account deleted.", "Please shut down my account.", "I am done with you: delete my account."
    )  # fmt: skip


def more_seats(draft: StoryDraft, seats: int) -> str:
    return draft.words(
        f"Add {seats} seats to my team.", f"My company grows: we need {seats} more seats.", f"Please book {seats} additional seats for my team.",
        f"I want {seats} more seats for my business team.",
    )  # fmt: skip


def fewer_seats(draft: StoryDraft, seats: int) -> str:
    return draft.words(
        f"Give {seats} seats of my team back.", f"We need {seats} seats less; remove them from my team.",
        f"Please take {seats} seats off my business team.", f"My team has {seats} seats too many, so drop these.",
    )  # fmt: skip


def assign(draft: StoryDraft, email: str) -> str:
    return draft.words(
        f"{email} is a new colleague: assign a seat to that address.", f"Give {email} a seat of my team.", f"Please assign one of our seats to {email}.",
        f"I want {email} to have a seat of my business team.",
    )  # fmt: skip
