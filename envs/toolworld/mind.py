"""State of mind of a user during a conversation, and what they have agreed to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Domain
from turnwise.envs.toolworld.facts import amounts, dollars, has_rivals, stated
from turnwise.envs.toolworld.speech.proposing import Proposal
from turnwise.envs.toolworld.speech.values import Value, clash, named
from turnwise.envs.toolworld.story import Stage
from turnwise.tasks.core import Json

MOST_AMOUNTS = 4
"""Amounts that a proposal may name: who names every price has told none."""
_SPOKEN = re.compile(
    r"dollar|buck|cent|free|charge|cost|nothing|owe|outstanding|balance|unpaid", re.IGNORECASE
)
_COSTS = ("charged", "refund", "price")
"""Keys of a tool's result that say what a change costs or gives back."""


class StageMind(NamedTuple):
    """State of mind about a request that the user has told and that is not talked about now."""

    stage: int
    consent: bool = False
    agreed: tuple[Proposal, ...] = ()
    offered: Proposal = Proposal()
    twisted: bool = False
    insisted: bool = False
    served: bool = False
    corrected: bool = False
    doubts: bool = False
    priced: frozenset[int] = frozenset()
    paid: frozenset[str] = frozenset()
    answered: bool = False


class UserState(NamedTuple):
    """Record of what the user has said and heard. ``told`` are the (stage, fact) pairs that were last stated
    right.

    ``stage`` is the request that is talked about, ``aside`` the others that he has told and that are open, in their order.
    """

    stage: int = 0
    patience: int = 4
    revealed: frozenset[str] = frozenset()
    consent: bool = False
    agreed: tuple[Proposal, ...] = ()  # what the user said yes to in this stage
    offered: Proposal = Proposal()  # what was proposed last, and not answered
    twisted: bool = False
    insisted: bool = False
    served: bool = False  # something was changed for this request
    corrected: bool = False  # has said that a report was not what they asked for
    doubts: bool = False  # has asked whether that was a no
    priced: frozenset[int] = frozenset()  # cents that were named since they told this request
    paid: frozenset[str] = frozenset()  # cents that its changes have cost or given back
    answered: bool = False  # was told a value of each kind that was asked for, beside other things
    puzzled: bool = False  # made nothing of the last message
    told: frozenset[tuple[int, int]] = frozenset()
    did: frozenset[str] = frozenset()
    over: bool = False
    aside: tuple[StageMind, ...] = ()


class UserAnswer(NamedTuple):
    """The user's next words, and the world after what they did."""

    user: UserState
    db: Database
    text: str


def turn_to(user: UserState, stage: int) -> UserState:
    """The user with one of their open requests as what is talked about; the one before is put aside."""
    if stage == user.stage:
        return user
    now = StageMind(*(getattr(user, name) for name in StageMind._fields))
    then = next(one for one in user.aside if one.stage == stage)
    others = (*(one for one in user.aside if one is not then), now)
    return user._replace(**then._asdict(), aside=tuple(sorted(others, key=lambda one: one.stage)))


def all_agreed(user: UserState) -> tuple[Proposal, ...]:
    """Return what the user has said yes to, for any request that is open."""
    return user.agreed + tuple(one for aside in user.aside for one in aside.agreed)


def listen(stage: Stage, user: UserState, text: str, *, alone: bool = False) -> tuple[UserState, bool]:
    """Note which facts are stated right now, and say whether all that are waited for have a value in this
    text. With ``alone``, a fact beside another value of its kind is not stated."""
    told, waiting = set(user.told), False
    for index, fact in enumerate(stage.tells):
        beside = user.paid if (user.stage, index) in told else ()
        right = stated(fact, text, beside)
        if right is None and fact.kind == "money" and _SPOKEN.search(text):
            right = stated(fact, _in_digits(text, free=fact.value == "0"), beside)
        if right and alone and has_rivals(fact, text):
            right = False
        if right is None:
            waiting = True
        elif right:
            told.add((user.stage, index))
        else:
            told.discard((user.stage, index))  # the last statement counts
    return (user._replace(told=frozenset(told)) if stage.tells else user), not waiting


def _in_digits(text: str, *, free: bool) -> str:
    """Amounts that are told in words, in digits; that nothing is to be paid counts where this is the answer."""
    spoken = sorted(named(text, {}).money)
    return " ".join(dollars(cents) for cents in spoken if cents or free)


def unconfirmed(
    domain: Domain, user: UserState, name: str, arguments: Mapping[str, Any], result: Json
) -> tuple[str, ...]:
    """List the rules about a yes that a write breaks: ``unconfirmed``, or ``cost_untold`` where the policy
    wants it told.

    A yes is to what was proposed: the write must be the action that was named, and contradict no value that was.
    """
    if domain.compact:  # the small language names nothing
        return () if user.consent else ("unconfirmed",)
    if not (agreed := all_agreed(user)):
        return ("unconfirmed",)
    meant = values_of(domain, arguments)
    fitting = [p for p in agreed if name in p.actions and not clash(p.named.values, meant)]
    if not fitting:
        return ("unconfirmed",)
    cost = cost_of(result)
    if not domain.tells_cost or not cost:
        return ()
    told = any(cost in p.named.money and len(p.named.money) <= MOST_AMOUNTS for p in fitting)
    return () if told or cost in _priced(user) else ("cost_untold",)


def _priced(user: UserState) -> frozenset[int]:
    return user.priced.union(*(one.priced for one in user.aside))


def hear_price(user: UserState, money: frozenset[int]) -> UserState:
    """The user after a message that names these amounts; one that names many tells the price of nothing."""
    if not money or len(money) > MOST_AMOUNTS or money <= user.priced:
        return user
    return user._replace(priced=user.priced | money)


def values_of(domain: Domain, arguments: Mapping[str, Any]) -> frozenset[Value]:
    """Return the values that a call's arguments name, as words would."""
    return frozenset[Value]().union(
        *(
            named(f"{part} {name}", domain.lexicon.patterns).values
            for name, value in arguments.items()
            for part in (value if isinstance(value, list) else [value])
        )
    )


def cost_of(result: Json) -> int:
    """Cents that a change costs or gives back, by what its tool answers; 0 where it says nothing."""
    if not isinstance(result, dict):
        return 0
    found = next((str(result[key]) for key in _COSTS if key in result), "")
    return int((amounts(found) or ["0"])[0])
