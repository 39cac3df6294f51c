"""Faults of worlds: what an author's code may do in the middle of an episode."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any, NoReturn

from blame import Fault
from desk import Desk, DeskState

import turnwise
from turnwise import Message, Messages, Split, Suite, Task, ToolError, Transition
from turnwise.errors import InfraError, VerifierError

ENV = "contact/FaultyDesk-v0"


def raising(error: BaseException) -> Callable[..., NoReturn]:
    """What raises this."""

    def fail(*_: object) -> NoReturn:
        raise error

    return fail


def lookup(state: DeskState, action: Message) -> Any:
    """A mistake that depends on what the agent says."""
    return {}[action.content]


def deep(state: DeskState, action: Message) -> Any:
    """A recursion without end."""
    return deep(state, action)


def slow(state: DeskState, action: Message) -> Any:
    """A step that takes longer than it may."""
    time.sleep(1.5)
    return Transition(state, "late")


def end_word() -> Any:
    """A word, where a reason to end belongs."""
    return "solved"


def any_bytes() -> Any:
    """Bytes, where a text belongs."""
    return b"drawer"


def returning(result: Any) -> Callable[..., Any]:
    """What returns this."""
    return lambda state, action: result


def rewarding(**rewards: Any) -> Callable[..., Any]:
    """What pays this."""
    return lambda state, action: Transition(state, "Paid.", rewards)


DOES: dict[str, Callable[..., Any]] = {
    "divides by zero": lambda state, action: 1 / 0,
    "looks the agent's words up": lookup,
    "asserts": raising(AssertionError("drawer out of order")),
    "recurses without end": deep,
    "raises a TimeoutError of its own": raising(TimeoutError("database")),
    "raises a ConnectionError of its own": raising(ConnectionError("database")),
    "leaves by SystemExit": raising(SystemExit(0)),
    "returns None": returning(None),
    "returns a text": returning("You see a drawer."),
    "pays NaN": rewarding(outcome=float("nan")),
    "pays infinity": rewarding(outcome=float("inf")),
    "pays a component that it never named": rewarding(bonus=1.0),
    "ends with a word": lambda state, action: Transition(state, "Over.", {}, end_word()),
    "observes bytes": lambda state, action: Transition(state, any_bytes()),
    "loses its judge": raising(VerifierError("The judge of the desk is gone.", "Wait.")),
    "loses its sandbox": raising(InfraError("The sandbox of the desk is gone.", "Wait.")),
    "takes too long": slow,
    "refuses every action": raising(ToolError("The desk is closed.")),
    "cannot begin": raising(RuntimeError("no drawers")),
}
"""What each faulty desk does at the second action; the last one at once."""

FAULTS = [
    *(
        Fault(what, "author", what, "planted_worlds|FaultyDesk")
        for what in list(DOES)
        if what not in ("loses its sandbox", "takes too long", "refuses every action", "loses its judge")
    ),
    Fault("loses its judge", "author", "loses its judge", "judge of the desk is gone"),
    Fault("loses its sandbox", "server", "loses its sandbox", "sandbox of the desk is gone"),
    Fault("takes too long", "server", "takes too long", "second|time|deadline"),
    Fault("refuses every action", "agent", "refuses every action"),
]


class FaultyDesk(Desk):
    """The desk, with a fault at the second action."""

    blocking = True

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Any) -> Task:
        fault = knobs.pop("fault")
        task = super().generate(rng, split, **knobs)
        return Task(ENV, task.prompt, {**task.options, "fault": fault})

    def initial(self, task: Task) -> tuple[DeskState, str | Messages]:
        if task.options["fault"] == "cannot begin":
            DOES["cannot begin"]()
        return super().initial(task)

    def transition(self, state: DeskState, action: Message) -> Transition[DeskState]:
        if state.seen:
            return DOES[self.task.options["fault"]](state, action)
        return super().transition(state, action)


def suite_of(fault: Fault) -> str:
    """The suite that has this fault."""
    turnwise.register(ENV, f"{__file__}:FaultyDesk", "A desk with a fault.")
    name = f"contact/faulty-{fault.how.replace(' ', '-')}"
    turnwise.register_suite(Suite(name, ENV, "A desk with a fault.", {"fault": fault.how}))
    return name
