"""A moment of a conversation, and what calls and words do to it."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from turnwise.envs.toolworld import judge
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Domain, as_json
from turnwise.envs.toolworld.facts import stated
from turnwise.envs.toolworld.tasks import Case
from turnwise.envs.toolworld.users import STOP, UserState, respond
from turnwise.tasks.core import Json, canonical
from turnwise.tools.core import Tool, ToolCall, find_tool, tool

_YES = re.compile(r"\b(yes|yeah|yep|sure|ok|okay|go ahead|please do|correct|confirmed?)\b", re.IGNORECASE)
_NO = re.compile(r"\b(no|not|wait|actually|instead|don't|stop)\b", re.IGNORECASE)


class ToolState(NamedTuple):
    """An immutable moment. ``done`` are calls that succeeded, ``best`` what planned calls have earned so far.

    ``closed`` says how the conversation ended: ``content``, ``left`` (the user's patience) or a tool's name. The
    last four fields matter only where the user is another agent.
    """

    case: Case
    db: Database
    user: UserState
    verified: frozenset[str]
    broken: tuple[str, ...]
    done: frozenset[tuple[str, str]]
    best: tuple[float, ...]
    calls: int = 0
    closed: str = ""
    mover: str = "agent"
    pending: str = ""  # what the agent said and the user has not answered
    opened: bool = True  # the user has said what he wants
    acted: frozenset[str] = frozenset()  # deeds since the agent spoke


def begin(case: Case, played: bool) -> ToolState:
    """The first moment; ``played``: the user is another agent, and speaks first."""
    user = UserState(patience=case.story.patience)
    first = ToolState(case, case.base, user, frozenset(), (), frozenset(), (-1.0,) * len(case.planned))
    return first._replace(mover="user", opened=False) if played else first


class Told(NamedTuple):
    """The next moment, and what was said."""

    state: ToolState
    text: str


def use(state: ToolState, call: ToolCall, earned: dict[str, float]) -> tuple[ToolState, Json]:
    """Carry out one call; add what it is worth to ``earned``.

    Raises:
        ToolError: it cannot be carried out; nothing has changed.
    """
    case, domain = state.case, state.case.domain
    made = domain.act(call.name)
    arguments = (made.tool if made else find_tool(domain.tools, call.name)).validate(call)
    assert made is not None  # else find_tool raised
    broken: list[str] = []
    if made.kind in ("write", "note", "end"):
        owner = made.owner(state.db, **arguments) if made.owner else None
        if owner is not None and owner not in state.verified:
            broken.append("unverified")
        if made.kind == "write" and domain.asks_consent and not state.user.consent:
            broken.append("unconfirmed")
        broken += domain.rules(state.db, call.name, arguments)
    db, result, customer = made.run(state.db, arguments)
    given = {name: as_json(value) for name, value in arguments.items()}
    value = judge.worth(case.planned, state.best, call.name, given)
    counted = state.calls < len(case.planned)
    for part, gain in (("valid", float(counted)), ("tool", value.tool), ("arguments", value.arguments)):
        earned[part] = earned.get(part, 0.0) + gain
    verified = state.verified
    if made.kind == "identify" and customer:
        verified = verified | {customer}
    after = state._replace(
        db=db,
        verified=verified,
        broken=(*state.broken, *broken),
        done=state.done | {(call.name, canonical(given))},
        best=value.best,
        calls=min(state.calls + 1, len(case.planned)),
        closed=call.name if made.kind == "end" else "",
    )
    return after, result


def hear(state: ToolState, text: str) -> Told:
    """What comes of words to the user."""
    case = state.case
    if case.played:
        waiting = state._replace(mover="user", pending=text, acted=frozenset(), user=_all_told(state, text))
        return Told(waiting, text)
    answer = respond(case.domain, case.story, state.user, state.db, text)
    closed = "content" if answer.user.over else "" if answer.user.patience else "left"
    return Told(state._replace(user=answer.user, db=answer.db, closed=closed), answer.text)


def hear_user(state: ToolState, text: str) -> ToolState:
    """What comes of the words of a user who is another agent.

    The scripted user listens too, so that plans know where they are; his answer is not said.
    """
    if not state.opened:
        return state._replace(mover="agent", opened=True)
    case = state.case
    answer = respond(case.domain, case.story, state.user, state.db, state.pending)
    consent = not _NO.search(text) and (bool(_YES.search(text)) or state.user.consent)
    if answer.user.stage != state.user.stage:
        consent = False
    user = answer.user._replace(
        consent=consent, told=state.user.told, over=False, patience=case.story.patience
    )
    closed = "content" if STOP in text else ""
    return state._replace(mover="agent", user=user, closed=closed, pending="")


def user_tools(domain: Domain) -> tuple[Tool, ...]:
    """What a user can do himself, as tools without arguments."""
    return tuple(_deed_tool(deed.name) for deed in domain.deeds)


@functools.cache
def _deed_tool(name: str) -> Tool:
    def do() -> str:
        return name

    do.__name__, do.__doc__ = name, name.replace("_", " ").capitalize() + "."
    return tool(do)


def _all_told(state: ToolState, text: str) -> UserState:
    """Facts of all stages, since nobody knows in which one another agent thinks that he is.

    Where the scripted user would be, a wrong value takes a right one back.
    """
    told = set(state.user.told)
    for number, stage in enumerate(state.case.story.stages):
        for index, fact in enumerate(stage.tells):
            right = stated(fact, text)
            if right:
                told.add((number, index))
            elif right is False and number == state.user.stage:
                told.discard((number, index))
    return state.user._replace(told=frozenset(told))
