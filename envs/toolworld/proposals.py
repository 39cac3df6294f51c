"""The optional tool ``propose``: a yes that is bound to an action, its arguments and its price, without any words."""

from __future__ import annotations

from typing import Any, NamedTuple

from turnwise.envs.toolworld.actions import PROPOSED
from turnwise.envs.toolworld.domain import Domain
from turnwise.envs.toolworld.facts import amounts
from turnwise.envs.toolworld.mind import values_of
from turnwise.envs.toolworld.speech.proposing import Proposal
from turnwise.envs.toolworld.speech.reading import Heard
from turnwise.envs.toolworld.speech.values import Named
from turnwise.envs.toolworld.state import ToolState
from turnwise.envs.toolworld.users import consent_to
from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool, tool


def propose(action: str, arguments: dict[str, Any], cost: str = "$0.00") -> str:
    """Ask the user for a yes to one change: the tool that you will call, its arguments, and what it costs or gives back."""
    return f"{action} {arguments} {cost}"


PROPOSE = tool(propose)


class Proposed(NamedTuple):
    """After a proposal: the state, and what the user says; "" where a user who is played is still to say it."""

    state: ToolState
    text: str
    asked: str  # the proposal in words


def tools_with(domain: Domain, *, proposals: bool) -> tuple[Tool, ...]:
    """A domain's tools, with ``propose`` where it is wanted and a yes means anything."""
    return (
        (*domain.tools, PROPOSE) if proposals and domain.asks_consent and not domain.compact else domain.tools
    )


def put(state: ToolState, call: ToolCall) -> Proposed:
    """Put a proposal to the user.

    Raises:
        ToolError: it names no change, or arguments or a price that cannot be read.
    """
    domain = state.case.domain
    given = PROPOSE.validate(call)
    made = domain.act(given["action"])
    if made is None or made.kind != "write":
        known = ", ".join(one.name for one in domain.acts if one.kind == "write")
        raise ToolError(
            f"{given['action'][:40]!r} changes nothing that needs a yes. Propose one of: {known}."
        )
    arguments = made.tool.validate(ToolCall(made.name, given["arguments"]))
    find_tool(domain.tools, made.name)
    money = frozenset(map(int, amounts(given["cost"])))
    if not money:
        raise ToolError("Say the cost in dollars, such as $7.50; $0.00 where there is none.")
    proposal = Proposal(frozenset((made.name,)), named=Named(values_of(domain, arguments), money))
    listed = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in given["arguments"].items())
    words = f"{PROPOSED} {made.name.replace('_', ' ')} ({listed}), at {given['cost']}. Do you agree?"
    user = state.user
    if state.case.played:
        waiting = state._replace(current_agent="user", pending=words, acted=frozenset())
        return Proposed(waiting._replace(user=user._replace(offered=proposal)), "", words)
    heard = Heard(proposal=proposal, consent=True, asked=True)
    answer = consent_to(domain, state.case.story, user, state.db, heard)
    return Proposed(state._replace(user=answer.user, db=answer.db), answer.text, words)
