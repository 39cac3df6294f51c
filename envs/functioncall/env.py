"""``turnwise/FunctionCall-v0``: calling functions for a user, in one turn or many.

A message with calls carries them out; a message without calls is said to the user and closes the request:
it is right if then exactly the wanted calls have been made, each once. So a request that no function fits is
answered with words, and an argument that was left out must be asked for, by its name, before it is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar, NamedTuple

from turnwise.envs.core import AgentEnv, End, Kind, Snapshot, Transition
from turnwise.envs.functioncall.reward import Nearness, matches, nearness
from turnwise.envs.functioncall.talk import Wanted, talk_of
from turnwise.envs.functioncall.tasks import FunctionCallKnobs, draw_task
from turnwise.envs.messages import Message, Messages
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.tasks.core import Json, Split, Task, digest
from turnwise.tools.core import ToolCall, ToolError, find_tool
from turnwise.tools.dialects.registry import read_calls

_MOST_CALLS = 16  # in one message
_LONGEST = 20_000  # characters of a message to the user
_SYSTEM = (
    "You help a user by calling functions. Call what a request asks for, several functions at once where you can; "
    "then tell the user in words that it is done. Ask for what is missing. If no function fits, say so."
)
_DECLINE = "I have no function for that."
_PLAIN = re.compile(r"(?=.*[A-Za-z]{2})[^\[\]{}<>\x00-\x08\x0b-\x1f\ud800-\udfff]+", re.DOTALL)
_PARTS = ("names", "parameters", "values")


class CallState(NamedTuple):
    """Where the conversation is. ``made`` and ``failed`` number the wanted calls of this round."""

    task: str
    patience: int
    round: int = 0
    made: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    expired: bool = False
    asked: bool = False
    best: Nearness = Nearness()
    valid: bool = False  # a message of this round called functions and all calls fitted their schemas


class FunctionCallEnv(AgentEnv[CallState]):
    """Function calling. ``toolrl`` weighs ToolRL's parts (format, names, parameters, values).

    The parts are paid by how far a message comes beyond the best of its round, so repeating earns nothing.
    """

    system = _SYSTEM
    blocking: ClassVar[bool] = False
    floor: ClassVar[float] = 0.05
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {"single": {}, "multi": {"rounds": [4, 4]}}

    def __init__(self, *, shaping: float = 0.0, toolrl: float = 0.0, render_mode: str | None = None) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.toolrl = toolrl
        if toolrl:
            self.ledger = {**self.ledger, "format": Kind.STEP, **dict.fromkeys(_PARTS, Kind.STEP)}

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, check_knobs(FunctionCallKnobs, knobs, "function calling"))

    def initial(self, task: Task) -> tuple[CallState, str]:
        self.tools = talk_of(task).tools
        return CallState(task.id, task.options["patience"]), task.prompt

    def restore(self, snapshot: Snapshot[CallState]) -> None:
        self.tools = talk_of(snapshot.task).tools
        super().restore(snapshot)

    def transition(self, state: CallState, action: Message) -> Transition[CallState]:
        calls, role = action.tool_calls, "tool"
        if not calls:
            parsed = read_calls(action.content, [one.spec for one in self.tools])
            calls, role = parsed.calls, "user"
            if parsed.error:
                raise ToolError(parsed.error)
        if not calls:
            return self._said(state, action.content)
        if len(calls) > _MOST_CALLS:
            raise ToolError(f"At most {_MOST_CALLS} calls in one message.")
        told: list[Message] = []
        after, wrong, valid = state, False, True
        for call in calls:
            try:
                text, after = self._call(after, call)
            except _WrongCall as done:
                text, wrong = str(done), True
            except ToolError as error:
                text, valid = f"error: {error}", valid and not isinstance(error, _InvalidCall)
            told.append(Message("tool" if role == "tool" else "user", text, tool_call_id=call.id))
        rewards, after = self._nearness(state, after, calls, valid)
        if wrong:
            return Transition(after, Messages(told), {"outcome": 0.0, **rewards}, End.FAILED)
        return Transition(after, Messages(told), rewards)

    # --- calls -----------------------------------------------------------------------------------

    def _call(self, state: CallState, call: ToolCall) -> tuple[str, CallState]:
        """The result of one call and the state after it."""
        talk = talk_of(self.task)
        try:
            arguments = find_tool(self.tools, call.name).validate(call)
        except ToolError as error:
            raise _InvalidCall(str(error)) from None
        if call.name == "renew_session":
            return "A new session has begun.", state._replace(expired=False)
        now = talk.rounds[state.round]
        plain = self._without_defaults(ToolCall(call.name, arguments))
        fits = [n for n, one in enumerate(now.wanted) if matches(plain, self._without_defaults(one.call))]
        number = next((n for n in fits if n not in state.made), None)
        if number is None:
            return self._not_wanted(state, plain, fits)
        one = now.wanted[number]
        if state.expired:
            raise ToolError("401: the session has expired; call renew_session, then try again.")
        if one.fails and number not in state.failed:
            after = state._replace(failed=state.failed | {number}, expired=one.fails == "session")
            expired = "error: 401: the session has expired; call renew_session, then try again."
            return (expired if after.expired else "error: 503: busy; nothing was done, try again."), after
        if now.ask is not None and not state.asked and not one.reads:
            raise _WrongCall("Done, with an argument that nobody gave.")
        return _result(one), state._replace(made=state.made | {number})

    def _not_wanted(self, state: CallState, call: ToolCall, fits: Sequence[int]) -> tuple[str, CallState]:
        wanted = talk_of(self.task).rounds[state.round].wanted
        if fits and wanted[fits[0]].reads:
            return _result(wanted[fits[0]]), state  # reading again changes nothing
        everything = [one for each in talk_of(self.task).rounds for one in each.wanted]
        if any(one.reads and one.call.name == call.name for one in everything):
            raise ToolError("404: not found.")
        known = {one.gives for one in everything}
        for value in call.arguments.values():
            if isinstance(value, str) and _looks_like_id(value) and value not in known:
                raise ToolError(f"404: there is no {value!r}.")
        raise _WrongCall("Done.")

    def _without_defaults(self, call: ToolCall) -> ToolCall:
        defaults = talk_of(self.task).defaults.get(call.name, {})
        kept = {k: v for k, v in call.arguments.items() if not (k in defaults and defaults[k] is v)}
        return ToolCall(call.name, kept)

    def _nearness(
        self, before: CallState, after: CallState, calls: Sequence[ToolCall], valid: bool
    ) -> tuple[dict[str, float], CallState]:
        """ToolRL's parts of a message with calls, beyond the best of the round so far."""
        if not self.toolrl:
            return {}, after
        wanted = [one.call for one in talk_of(self.task).rounds[before.round].wanted]
        made = [wanted[n] for n in before.made]
        now = nearness([*made, *calls], wanted)
        best = max(now, before.best, key=sum)
        parts = {
            name: self.toolrl * (new - old) for name, new, old in zip(_PARTS, best, before.best, strict=True)
        }
        first = valid and bool(wanted) and not before.valid
        after = after._replace(best=best, valid=before.valid or first)
        return {"format": self.toolrl * first, **parts}, after

    # --- words -----------------------------------------------------------------------------------

    def _said(self, state: CallState, text: str) -> Transition[CallState]:
        """What the user answers to a message without calls."""
        if len(text) > _LONGEST or not _PLAIN.fullmatch(
            text
        ):  # else a broken call would end the conversation
            raise ToolError("Call a function, or tell the user something in plain words, without brackets.")
        rounds = talk_of(self.task).rounds
        now = rounds[state.round]
        if now.ask is not None and not state.asked:
            return self._asked(state, text, now.ask)
        if len(state.made) < len(now.wanted):
            return Transition(state, "That is not what I wanted.", {"outcome": 0.0}, End.FAILED)
        if state.round + 1 == len(rounds):
            return Transition(state._replace(round=len(rounds)), "Thank you.", {"outcome": 1.0}, End.SOLVED)
        after = CallState(state.task, state.patience, state.round + 1, expired=state.expired)
        return Transition(after, rounds[state.round + 1].say)

    def _asked(self, state: CallState, text: str, ask: Mapping[str, Json]) -> Transition[CallState]:
        words = f" {' '.join(_plain(text).split())} "
        named = any(f" {_plain(word)} " in words for word in ask["words"])
        again = sum(f" {_plain(word)} " in words for word in ask["told"])
        if named and again <= 1:
            return Transition(state._replace(asked=True), f"{ask['reply']}.".lstrip())
        if state.patience <= 1:
            return Transition(state, "Never mind.", {"outcome": 0.0}, End.FAILED)
        left = state._replace(patience=state.patience - 1)
        return Transition(
            left,
            "I told you some of that. What exactly is missing?"
            if named
            else "What exactly do you need to know?",
        )

    # --- agents ----------------------------------------------------------------------------------

    def gold(self, state: CallState) -> Message:
        talk = talk_of(self.task)
        if state.round >= len(talk.rounds):
            return Message("assistant", "Done.")
        now = talk.rounds[state.round]
        if now.ask is not None and not state.asked:
            return Message("assistant", f"Which {now.ask['words'][0]}?")
        if state.expired:
            return Message("assistant", "", (ToolCall("renew_session", {}, "call_0"),))
        ready = [n for n, one in enumerate(now.wanted) if n not in state.made and one.after <= state.made]
        if not ready:
            return Message("assistant", "Done." if now.wanted else _DECLINE)
        calls = [now.wanted[n].call for n in ready]
        return Message(
            "assistant", "", tuple(ToolCall(c.name, c.arguments, f"call_{n}") for n, c in enumerate(calls))
        )

    def demonstrate(self, state: CallState, rng: Random) -> Message:
        """Errs in a number, leaves an argument out, takes the wrong function or gives up, now and then."""
        message, luck = self.gold(state), rng.random()
        if not message.tool_calls:
            return message
        if luck < 0.08:
            return Message("assistant", _DECLINE)
        first, *rest = message.tool_calls
        numbers = sorted(name for name, value in first.arguments.items() if type(value) is int)
        if luck < 0.2 and numbers:
            name = rng.choice(numbers)
            off = {**first.arguments, name: first.arguments[name] % 5 + 1}
            return Message("assistant", "", (ToolCall(first.name, off, first.id), *rest))
        if luck < 0.3 and first.arguments:
            left = rng.choice(sorted(first.arguments))
            kept = {key: value for key, value in first.arguments.items() if key != left}
            return Message("assistant", "", (ToolCall(first.name, kept, first.id), *rest))
        if luck < 0.35:
            other = rng.choice(self.tools).spec.name
            return Message("assistant", "", (ToolCall(other, first.arguments, first.id), *rest))
        return message

    def potential(self, state: CallState) -> float:
        """The share of all wanted calls, answers and questions that have been made."""
        rounds = talk_of(self.task).rounds
        sizes = [len(one.wanted) + 1 + (one.ask is not None) for one in rounds]
        return (sum(sizes[: state.round]) + len(state.made) + state.asked) / sum(sizes)

    def admissible(self, state: CallState) -> Sequence[str]:
        return [_DECLINE, "Done.", "What is missing?"]

    def state_key(self, state: CallState) -> str:
        parts = [sorted(part) if isinstance(part, frozenset) else part for part in state[:-2]]
        return digest(*parts, list(state.best), state.valid)


class _WrongCall(Exception):
    """A call was carried out that nobody wanted."""


class _InvalidCall(ToolError):
    """A call that does not fit its schema."""


def _result(one: Wanted) -> str:
    return f'{{"id": "{one.gives}"}}' if one.gives else '{"status": "ok"}'


def _looks_like_id(value: str) -> bool:
    return len(value) == 7 and value[2] == "-" and value[3:].isdecimal()


def _plain(text: str) -> str:
    return "".join(c if c.isalnum() else " " for c in text.lower().replace("_", " "))
