"""Scripts that know what to do next, the gold one and an imperfect one, and the progress of a conversation."""

from __future__ import annotations

from random import Random

from turnwise.envs.functioncall.interfaces import written
from turnwise.envs.functioncall.state import RENEW, Conversation, FunctionCallState
from turnwise.envs.functioncall.verdict import remaining
from turnwise.envs.messages import Message
from turnwise.tools.core import ToolCall

DECLINE = "I am sorry, I cannot do that: I have no function for it."


def next_message(talk: Conversation, state: FunctionCallState) -> Message:
    """The gold policy: the next question, call or reply that is still missing."""
    if state.round >= len(talk.rounds):
        return Message("assistant", "Done.")
    now = talk.rounds[state.round]
    if now.ask is not None and not state.asked:
        return Message("assistant", f"Which {now.ask['words'][0]} do you mean?")
    if state.expired:
        return Message("assistant", "", (ToolCall(written(RENEW, talk.case), {}, "call_0"),))
    open_ = remaining(state.made, now.wanted)
    ready = [n for n in open_ if now.wanted[n].after.isdisjoint(open_)]
    if not ready:
        told = f"It is {now.answer['value']}." if now.answer else DECLINE if now.declines else "Done."
        return Message("assistant", told)
    calls = [now.wanted[n].call for n in ready]
    return Message(
        "assistant", "", tuple(ToolCall(c.name, c.arguments, f"call_{n}") for n, c in enumerate(calls))
    )


def imperfect_message(talk: Conversation, state: FunctionCallState, rng: Random) -> Message:
    """Errs in a number, leaves an argument out, takes the wrong function or gives up, now and then."""
    message, luck = next_message(talk, state), rng.random()
    if not message.tool_calls:
        return message
    if luck < 0.06:
        return Message("assistant", DECLINE)
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
        other = rng.choice(talk.tools).spec.name
        return Message("assistant", "", (ToolCall(other, first.arguments, first.id), *rest))
    return message


def progress(talk: Conversation, state: FunctionCallState) -> float:
    """The share of all wanted calls, answers and questions that have been made."""
    rounds = talk.rounds
    sizes = [len(one.wanted) + 1 + (one.ask is not None) for one in rounds]
    if state.round >= len(rounds):
        return 1.0
    now = rounds[state.round].wanted
    made = len(now) - len(remaining(state.made, now)) + state.asked
    return (sum(sizes[: state.round]) + made) / sum(sizes)
