"""The effect of an agent's message: its calls are carried out, or its text is heard by the user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from turnwise.envs.core import EndReason
from turnwise.envs.functioncall.answers import ToldAnswer, told
from turnwise.envs.functioncall.data import carry_out
from turnwise.envs.functioncall.hearing import (
    WordsMeaning,
    agrees,
    asks_for,
    meaning,
    settled,
    without_offers,
)
from turnwise.envs.functioncall.interfaces import by_written, check_forms, to_ours, written
from turnwise.envs.functioncall.state import RENEW, RENEWED, Conversation, FunctionCallState, Round
from turnwise.envs.functioncall.verdict import CallVerdict, equivalent
from turnwise.tasks.core import Json, canonical
from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool
from turnwise.tools.reading import check_sayable

_LONGEST = 20_000  # characters of a message to the user, and of a call's arguments
_REMEMBERED = 200  # calls of a round


_ASKED_BACK: Mapping[ToldAnswer | None, str] = {
    ToldAnswer.NOTHING: "And what is the answer?",
    ToldAnswer.OPEN: "And what is the answer, then?",
    ToldAnswer.UNCLEAR: "Which of these is it? Say only that.",
}
_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class InvalidCall(ToolError):
    """A call that does not fit its schema."""


class UserReply(NamedTuple):
    """Reply of the user to a message, and the verdict where it closed a request."""

    state: FunctionCallState
    text: str
    end: EndReason | None = None
    verdict: CallVerdict | None = None


def use(talk: Conversation, state: FunctionCallState, call: ToolCall) -> tuple[Json, FunctionCallState]:
    """The result of one call and the state after it.

    Raises:
        ToolError: it cannot be carried out; an :class:`InvalidCall` where it does not fit its schema.
    """
    try:
        arguments = _checked(find_tool(talk.tools, call.name), call.arguments)
        check_sayable(arguments)
        if _is_large(arguments):
            raise ToolError(f"{call.name}: the arguments are too large.")
    except ToolError as error:
        raise InvalidCall(str(error)) from None
    if call.name == written(RENEW, talk.case):
        coming = any("session" in one.fails.values() for one in talk.rounds[state.round :])
        early = frozenset({RENEWED}) if coming and not state.expired else frozenset[str]()
        renewed = state._replace(expired=False, failed=state.failed | early)
        return {"status": "a new session has begun"}, renewed
    one = by_written(talk.case)[call.name]
    if state.expired:
        raise ToolError(_expired(talk))
    fails = talk.rounds[state.round].fails.get(one.words)
    if fails and one.words not in state.failed:
        failed = state.failed | {one.words}
        if fails != "session":
            raise FailingCall("503: busy; nothing was done, try again.", state._replace(failed=failed))
        if RENEWED not in failed:
            raise FailingCall(_expired(talk), state._replace(failed=failed, expired=True))
        state = state._replace(failed=failed - {RENEWED})
    ours = to_ours(one, arguments, talk.case)
    check_forms(one, ours, talk.case)
    result, data, mark = carry_out(one, ours, state.data)
    made = (*state.made, mark)[-_REMEMBERED:]
    return result, state._replace(data=data, made=made, read=state.read | {one.table})


def _expired(talk: Conversation) -> str:
    return f"401: the session has expired; call {written(RENEW, talk.case)}, then try again."


def _checked(tool: Tool, arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Arguments that fit a tool's schema.

    Raises:
        ToolError: they do not; what an object in question consists of is told too.
    """
    try:
        return tool.check(_said(tool, arguments))
    except ToolError as error:
        parameters: Mapping[str, Mapping[str, Json]] = tool.spec.parameters.get("properties", {})
        objects = [
            f" {name} is an object with {', '.join(_field(*field) for field in one['properties'].items())}."
            for name, one in parameters.items()
            if "properties" in one
        ]
        raise ToolError(f"{error}{''.join(objects)}") from None


def _field(name: str, schema: Mapping[str, Json]) -> str:
    return f"{name} (one of {', '.join(schema['enum'])})" if "enum" in schema else name


def _said(tool: Tool, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    """Arguments without optional ones that are empty, which is how many models leave them out."""
    needed = tool.spec.parameters.get("required", ())
    if not any(value in (None, "") for value in arguments.values()):
        return arguments
    return {name: value for name, value in arguments.items() if name in needed or value not in (None, "")}


def _is_large(arguments: Mapping[str, Json]) -> bool:
    # Writing a call's arguments as JSON takes longer than measuring them: a character becomes six at most.
    sizes = [len(value) if type(value) is str else len(repr(value)) for value in arguments.values()]
    return sum(sizes) > _LONGEST // 10 and len(canonical(arguments)) > _LONGEST


class FailingCall(ToolError):
    """A call that failed for reasons of its own and changed only that; ``state`` remembers it."""

    def __init__(self, text: str, state: FunctionCallState) -> None:
        super().__init__(text)
        self.state = state


def say(talk: Conversation, state: FunctionCallState, text: str) -> UserReply:
    """Return the user's answer to words.

    Raises:
        ToolError: nothing was said.
    """
    if len(text) > _LONGEST or not any(map(str.isalnum, text)) or _NO_TEXT.search(text):
        raise ToolError("Call a function, or tell the user something in words.")
    now = talk.rounds[state.round]
    text = without_offers(text)
    meant = meaning(text)
    if state.doubted and meant is WordsMeaning.UNSURE and agrees(text):
        meant = WordsMeaning.DECLINES
    if now.ask is not None and not state.asked:
        return _while_missing(state, now, now.ask, text, meant)
    heard = None if now.answer is None else told(settled(text), now.answer, now.say)
    verdict = _verdict(state, now, heard, meant)
    told_nothing = heard in (None, ToldAnswer.NOTHING)
    if (
        told_nothing and meant is WordsMeaning.ANNOUNCES
    ):  # right or not: else announcing would tell what is right
        return UserReply(state, "Good, go ahead.")
    if verdict.right:
        return _next(talk, state, verdict)
    if heard is not ToldAnswer.WRONG and (meant is WordsMeaning.ASKS or "?" in text):
        return _patiently(state, "I know no more than I have said. Please go on.", verdict)
    if verdict.state and heard in _ASKED_BACK and not _gives_up(heard, meant):
        return _patiently(state, _ASKED_BACK[heard], verdict)
    if told_nothing and meant is WordsMeaning.UNSURE and not state.doubted:
        return UserReply(state._replace(doubted=True), "Do you mean that you cannot do it?")
    return UserReply(state, "That is not what I wanted.", EndReason.FAILED, verdict)


def _gives_up(heard: ToldAnswer | None, meant: WordsMeaning) -> bool:
    """Say whether a message refuses and names nothing that could be an answer."""
    return heard is ToldAnswer.NOTHING and meant is WordsMeaning.DECLINES


def _verdict(
    state: FunctionCallState, now: Round, heard: ToldAnswer | None, meant: WordsMeaning
) -> CallVerdict:
    answer = meant is WordsMeaning.DECLINES if now.declines else True
    if heard is not None:
        looked = {one.function.table for one in now.wanted} <= state.read
        answer = looked and heard is ToldAnswer.RIGHT
    return CallVerdict(state.data.key == now.key, answer, equivalent(state.made, now.wanted))


def _while_missing(
    state: FunctionCallState, now: Round, ask: Mapping[str, Json], text: str, meant: WordsMeaning
) -> UserReply:
    """Something has not been told yet."""
    verdict = CallVerdict(state=False, answer=False, calls=False)
    if meant is WordsMeaning.ANNOUNCES:
        return UserReply(state, "Good, go ahead.")
    if meant is WordsMeaning.REPORTS:
        return UserReply(state, "That is not what I wanted.", EndReason.FAILED, verdict)
    if meant is not WordsMeaning.UNSURE and asks_for(text, ask, _description(now, ask)):
        return UserReply(state._replace(asked=True), f"{ask['reply']}.")
    return _patiently(state, "What exactly do you need to know?", verdict)


def _description(now: Round, ask: Mapping[str, Json]) -> str:
    """Return the description of the parameter that was left out."""
    leaves = [leaf for one in now.wanted[-1:] for p in one.function.parameters for leaf in p.leaves]
    return next((leaf.about for leaf in leaves if leaf.name.replace("_", " ") == ask["words"][0]), "")


def _patiently(state: FunctionCallState, text: str, verdict: CallVerdict) -> UserReply:
    if state.patience <= 1:
        return UserReply(state, "Never mind.", EndReason.FAILED, verdict)
    return UserReply(state._replace(patience=state.patience - 1), text)


def _next(talk: Conversation, state: FunctionCallState, verdict: CallVerdict) -> UserReply:
    if state.round + 1 == len(talk.rounds):
        return UserReply(state._replace(round=len(talk.rounds)), "Thank you.", EndReason.SOLVED, verdict)
    after = FunctionCallState(
        state.task, state.patience, state.data, state.round + 1, read=state.read, expired=state.expired,
        failed=state.failed & {RENEWED},
    )  # fmt: skip
    return UserReply(after, talk.rounds[state.round + 1].say, None, verdict)
