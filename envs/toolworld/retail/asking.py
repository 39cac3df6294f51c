"""What the shop's customers ask for, in words that do not say whether they get it: requests and traps draw from the same."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.vocabulary import begun

REFUND = (
    "How much do I get back?", "What will be refunded?", "What amount comes back to me?", "How much money will I see again?",
)  # fmt: skip
WRAPPING = (
    "What does it cost?", "What is the price of that?", "How much is that?", "What do I pay for that?",
)  # fmt: skip
REASONS = {
    "no longer needed": (
        "I no longer need it.", "I have no use for it any more.", "It is not needed any longer.", "I do not need it now.",
    ),
    "ordered by mistake": (
        "I ordered it by mistake.", "It was ordered by mistake.", "That order was a mistake.", "I pressed the wrong button, a mistake.",
    ),
    "": (
        "I found it cheaper somewhere else.", "Another shop is cheaper.", "I do not like what your reviews say.", "You take too long to ship it.",
    ),
}  # fmt: skip
"""Why somebody cancels; the last is no reason for which that is allowed."""


def asks(draft: StoryDraft) -> bool:
    """Whether this customer wants to be told what it comes to."""
    return draft.rng.random() < 0.5


def why(draft: StoryDraft, *kinds: str) -> tuple[str, str] | None:
    """Why the customer cancels whatever he cancels in this story, and how he says it; None where it is none of the kinds."""
    known = draft.facts.get("reason")
    if known is None:
        reason = draft.rng.choice(kinds)
        draft.facts["reason"] = draft.words(*REASONS[reason])
        return reason, draft.facts["reason"]
    reason = next(kind for kind, ways in REASONS.items() if known in ways)
    return (reason, known) if reason in kinds else None


def _with(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def cancel(draft: StoryDraft, which: str, said: str = "", question: str = "") -> str:
    """``said``: why, if he says so at once."""
    wish = draft.words(
        f"I want to cancel {which}.", f"Please cancel {which}.", f"Can you cancel {which}?", f"I would like you to cancel {which}.",
        f"Call {which} off, please.", f"It is about {which}, which I want cancelled.",
    )  # fmt: skip
    return _with(wish, said, question)


def swap(draft: StoryDraft, verb: str, which: str, name: str, new: str, payment: str = "") -> str:
    """Another variant, whose colour and size are named; ``payment``: what the difference goes to, if that is said."""
    wish = draft.words(
        f"In {which}, {verb} the {name} for the {new}.",
        f"Instead of the {name} in {which}, I want the {new}: {verb} it.",
        f"Please {verb} the {name} of {which} for the {new}.",
        f"I do not like the {name} of {which}. {begun(verb)} it for the {new}.",
    )
    return _with(wish, _difference(draft, payment))


def swap_cheapest(
    draft: StoryDraft, verb: str, which: str, name: str, colour: str, product: str, payment: str = ""
) -> str:
    """The cheapest variant of a colour."""
    wish = draft.words(
        f"In {which}, {verb} the {name} for the cheapest {colour} {product} that you have.",
        f"Instead of the {name} in {which}, I want the cheapest {colour} {product}: {verb} it.",
        f"Please {verb} the {name} of {which}: give me your cheapest {colour} {product} for it.",
        f"I do not like the {name} of {which}. {begun(verb)} it for the {colour} {product} that costs least.",
    )
    return _with(wish, _difference(draft, payment))


def _difference(draft: StoryDraft, payment: str) -> str:
    if not payment:
        return ""
    return draft.words(
        f"Any price difference goes to {payment}.", f"Settle the difference with {payment}.",
        f"Use {payment} for what it costs more or less.", f"Put the difference in price on {payment}.",
    )  # fmt: skip


def give_back(draft: StoryDraft, which: str, things: str, method: str, question: str = "") -> str:
    wish = draft.words(
        f"I want to return {things} from {which}. Refund it to {method}.",
        f"Please take back {things} from {which}, with the refund to {method}.",
        f"I am sending back {things} from {which}, so refund me on {method}.",
        f"Please register a return of {things} from {which}, refunded to {method}.",
    )
    return _with(wish, question)


def send(draft: StoryDraft, which: str, address: str) -> str:
    return draft.words(
        f"Send {which} to {address}.", f"I have moved. Please ship {which} to {address}.", f"{begun(which)} must go to {address} now.",
        f"Change the address of {which} to {address}.", f"Please deliver {which} to {address}.", f"Redirect {which}. The new address is {address}.",
    )  # fmt: skip


def pay(draft: StoryDraft, which: str, payment: str) -> str:
    return draft.words(
        f"I want to pay {which} with {payment}.", f"Change the payment of {which} to {payment}.", f"Please charge {which} to {payment} instead.",
        f"Use {payment} for {which}, not what I chose.",
    )  # fmt: skip


def remove(draft: StoryDraft, which: str, name: str, question: str = "") -> str:
    wish = draft.words(
        f"Take the {name} out of {which}.", f"I do not want the {name} in {which} any more: remove it.", f"Please remove the {name} from {which}.",
        f"Leave the {name} out of {which}.",
    )  # fmt: skip
    return _with(wish, question)


def wrap(draft: StoryDraft, which: str, question: str = "") -> str:
    wish = draft.words(
        f"Wrap {which} as a gift.", f"Please have {which} gift-wrapped.", f"I need gift wrapping for {which}.",
        f"{begun(which)} is a present: wrap it, please.",
    )  # fmt: skip
    return _with(wish, question)


def refund_question(draft: StoryDraft) -> str:
    """At times a question for what comes back."""
    return draft.words(*REFUND) if asks(draft) else ""


def price_question(draft: StoryDraft) -> str:
    """At times a question for the price of the wrapping."""
    return draft.words(*WRAPPING) if asks(draft) else ""
