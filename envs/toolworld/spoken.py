"""The user as a language model: told the story as tau-bench tells it, examined, and asked again when off script.

What counts is the same as with a user who is another agent: the database, what was told, the rules, and consent to what
was proposed (:func:`turnwise.envs.toolworld.actions.hear_user`). The model only speaks and uses its device.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from turnwise.envs.messages import Message
from turnwise.envs.toolworld.actions import hear_user, user_tools
from turnwise.envs.toolworld.state import ToolState
from turnwise.envs.toolworld.users import ROLE, STOP, rules_for_user, script
from turnwise.envs.worlds.speaking.offscript import Examined, Role, examine, fault
from turnwise.envs.worlds.speaking.speaker import Speaker
from turnwise.errors import InfraError
from turnwise.tools.core import ToolCall

GREETING = "Hi! How can I help you today?"
MOST_DEEDS = 8
"""Number of deeds that a user may do with the device before speaking."""
_INSTEAD = "Sorry, could you say that again?"


class UserTurn(NamedTuple):
    """After the user's turn: the state, the words, and what had to be put right, by name."""

    state: ToolState
    text: str
    repairs: tuple[str, ...]


def answer(speaker: Speaker, state: ToolState) -> UserTurn:
    """Return what the model says, and does before it, when it has heard ``state.pending`` (first: a
    greeting).

    Raises:
        InfraError: the server failed, or the model does not stay in its role.
    """
    case = state.case
    domain, story = case.domain, case.story
    told = script(domain, story)
    talk = (*state.talk, Message("user", state.pending if state.opened else GREETING))
    tools = user_tools(domain)
    deeds = {deed.name: deed for deed in domain.deeds}
    db, acted, repairs = state.db, state.acted, list[str]()
    for _ in range(MOST_DEEDS):
        known = "\n".join([told, *(message.content for message in talk)])
        role = Role(f"{ROLE} {' '.join(rules_for_user(domain, together=story.together))}", known)

        def check(message: Message, role: Role = role) -> Examined:
            return _examined(message, role, deeds, first=not state.opened)

        said = speaker.ask(told, talk, check, tools, instead=_INSTEAD)
        repairs += said.repairs
        if not said.message.tool_calls:
            break
        name = said.message.tool_calls[0].name
        done = deeds[name].does(db, story.customer)
        db, acted = done.db, acted | {name}
        call_id = f"call_{len(talk)}"
        call = Message("assistant", "", (ToolCall(name, {}, call_id),))
        talk = (*talk, call, Message("tool", str(done.result), tool_call_id=call_id))
    else:
        raise InfraError(
            f"The model {speaker.who} uses the device again and again and says nothing.",
            "Use a stronger model.",
        )
    text = said.message.content
    talk = (*talk, Message("assistant", text))
    after = hear_user(state._replace(db=db, acted=acted, talk=talk), text)
    return UserTurn(after, text.replace(STOP, "").strip() or "Goodbye.", tuple(repairs))


def _examined(message: Message, role: Role, deeds: Collection[str], *, first: bool) -> Examined:
    """Return what of a message counts; a stop is no word of it, and none may stand in the first message."""
    if message.tool_calls and not message.malformed:
        name = message.tool_calls[0].name
        return Examined(message) if name in deeds else fault(message, "malformed")
    stops = STOP in message.content
    if stops and first:
        return fault(message, "stops_early")
    bare = message.content.replace(STOP, "").strip()
    if stops and not bare:
        return Examined(Message("assistant", STOP))
    found = examine(Message("assistant", bare, malformed=message.malformed), role)
    if found.fault or not stops:
        return found
    return found._replace(message=Message("assistant", f"{found.message.content} {STOP}"))
