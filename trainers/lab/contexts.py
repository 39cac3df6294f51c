"""The bias of every credit rule through every context manager: ``python -m turnwise.trainers.lab.contexts > docs/context-bias.md``.

The process is played by the managers themselves: what a policy sees before each decision is the context that the registered
function gives, at a budget that the whole conversation exceeds. All conversations are listed, so that the expected update of a
rule is a finite sum, and is set against the exact gradient of the expected return in the logits of the policy by context. What the policy
writes for its later contexts is a decision as any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import asin, degrees
from typing import NamedTuple

from torch import Tensor

from turnwise.agents.contexts.core import ContextShown, Exchange, Look, TalkSoFar, TokenCounter
from turnwise.envs.messages import Message, Messages
from turnwise.registry import Component, components
from turnwise.tools.core import Tool, ToolCall
from turnwise.trainers.lab.exact import Bias, Branch, Paths, Process, compare, expected_update, paths
from turnwise.trainers.lab.processes import lopsided, made_up, signals

GROUP = 2
EXACT = 1e-9
HEAD = Messages([Message("user", "Which way does the key lie? You may leave with what you have.")])
COUNTED = TokenCounter(lambda messages: len(messages), lambda tools: 0)
BUDGET = 4
"""Messages that fit; the whole conversation before the last action has five."""
OPTIONS = {"notes": {"tokens": 2 * BUDGET - len(HEAD)}, "clear": {"keep": 1}}
"""Options by manager, beside the budget: notes have half of the room beside the head."""
VARIANTS = {"gae": ({"lam": 0.9},), "gae_token": ({"lam": 0.9},)}
"""Options of rules that are worth a row of their own."""


class _WorldMoment(NamedTuple):
    """A moment of the episode: how many actions were taken, what the hint said (-1: nothing yet), and what was said so far."""

    acted: int = 0
    hint: int = -1
    passages: tuple[Exchange, ...] = ()


class _WorldChoice(NamedTuple):
    """A decision of a moment: the context, the messages by action, and whether it is a memory."""

    context: tuple[str, ...]
    messages: Sequence[Message]
    memory: bool
    tools: tuple[Tool, ...] = ()


@dataclass
class _ListedProcess:
    """The process in the making."""

    look: Look
    branches: dict[tuple[int, int], tuple[Branch, ...]] = field(
        default_factory=dict[tuple[int, int], tuple[Branch, ...]]
    )
    seen: list[int] = field(default_factory=list[int])
    contexts: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])
    memory: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def enter(self, moment: _WorldMoment) -> int:
        """Number a moment and all that comes of it."""
        number = len(self.seen)
        choice = _choice(self.look, moment)
        self.seen.append(self.contexts.setdefault(choice.context, len(self.contexts)))
        for action, said in enumerate(choice.messages):
            if choice.memory or said.tool_calls:
                self.memory.add((number, action))
            ways = [
                Branch(chance, reward, None if after is None else self.enter(after))
                for chance, reward, after in _ways(moment, choice, action)
            ]
            self.branches[number, action] = tuple(ways)
        return number


def _choice(look: Look, moment: _WorldMoment) -> _WorldChoice:
    shown = look(TalkSoFar(HEAD, moment.passages, (), COUNTED))
    written = bool(moment.passages) and moment.passages[-1].memory
    context = tuple(f"{message.role}: {message}" for message in shown.messages)
    words = [Message("assistant", "0"), Message("assistant", "1")]
    if shown.ask and moment.passages and not written:
        return _WorldChoice((*context, shown.ask), words, True)
    if shown.tools and moment.acted == 1 and not written:
        return _WorldChoice(context, (*words, *_calls(shown)), False, shown.tools)
    return _WorldChoice(context, words, False)


def _calls(shown: ContextShown) -> Iterator[Message]:
    """Calls of the manager's tool, with either symbol as its words."""
    (tool,) = shown.tools
    for symbol in "01":
        kinds = tool.spec.parameters["properties"]
        arguments = {name: 1 if kind["type"] == "integer" else symbol for name, kind in kinds.items()}
        yield Message("assistant", "", (ToolCall(tool.spec.name, arguments, "call_0"),))


def _ways(
    moment: _WorldMoment, choice: _WorldChoice, action: int
) -> Iterator[tuple[float, float, _WorldMoment | None]]:
    """Whatever may come of an action: how likely, what it pays, and the moment after it."""
    said, passages = choice.messages[action], moment.passages
    if choice.memory:
        yield 1.0, 0.0, moment._replace(passages=(*passages, Exchange(said, Messages(), True)))
    elif said.tool_calls:
        (tool,), (call,) = choice.tools, said.tool_calls
        told = Messages([Message("tool", str(tool.function(**call.arguments)), tool_call_id=call.id)])
        yield 1.0, 0.0, moment._replace(passages=(*passages, Exchange(said, told, True)))
    elif moment.acted == 0 and action == 0:
        yield 1.0, 0.4, None
    elif moment.acted == 0:
        for hint in (0, 1):
            told = Messages([Message("user", f"It lies at {hint}.")])
            yield 0.5, 0.0, _WorldMoment(1, hint, (*passages, Exchange(said, told)))
    elif moment.acted == 1:
        told = Messages([Message("user", "You stand before both.")])
        yield 1.0, 0.1 * action, _WorldMoment(2, moment.hint, (*passages, Exchange(said, told)))
    else:
        yield 1.0, float(action == moment.hint), None


def managed(entry: Component | None) -> Process:
    """The process as a context manager shows it; None: the whole conversation is shown."""
    if entry is None:
        look: Look = _whole
    else:
        options = {"tokens": BUDGET, **OPTIONS.get(entry.name, {})}
        look = entry.build({name: value for name, value in options.items() if name in entry.options})
    listed = _ListedProcess(look)
    listed.enter(_WorldMoment())
    name = entry.name if entry else "whole"
    return Process(name, listed.branches, 8, "", tuple(listed.seen), frozenset(listed.memory))


def _whole(talk: TalkSoFar) -> ContextShown:
    return ContextShown((*talk.head, *(message for passage in talk.passages for message in passage.messages)))


class ContextBias(NamedTuple):
    """A rule through every manager: by manager, and whether its signals mean something here."""

    entry: Component
    options: Mapping[str, float]
    bias: dict[str, Bias]
    known: bool

    @property
    def name(self) -> str:
        """The rule, with its options where they are not the defaults."""
        return " ".join(
            (f"`{self.entry.name}`", *(f"{key} {value:g}" for key, value in self.options.items()))
        )

    @property
    def told(self) -> str:
        """The statement about it."""
        if not self.known:
            return "not known: a signal that it needs means nothing here"
        straight = {name for name, bias in self.bias.items() if bias.angle < EXACT and bias.scale > 0}
        if straight == self.bias.keys():
            declared = self.entry.bias.startswith("unbiased")
            return "unbiased through all of them" if declared else "no bias is seen here"
        if "whole" in straight:
            return "**biased through contexts alone**"
        return "biased"


class ListedWorld(NamedTuple):
    """The process as a manager shows it, all that can happen in it, and every signal there."""

    process: Process
    paths: Paths
    signals: Mapping[str, Tensor]


def worlds(*names: str) -> list[ListedWorld]:
    """The process as nobody, and as each manager of these names shows it; all of them unless named."""
    found: list[ListedWorld] = []
    for entry in (None, *components("context")):
        if entry is None or not names or entry.name in names:
            process = managed(entry)
            p = paths(process, lopsided(process))
            found.append(ListedWorld(process, p, signals(p)))
    return found


def measure(
    entry: Component, shown: Sequence[ListedWorld], n: int = GROUP, options: Mapping[str, float] = {}
) -> ContextBias:
    """The bias of a credit rule through each manager."""
    found: dict[str, Bias] = {}
    for process, p, given in shown:
        update = expected_update(entry.build(options), p, n, given)
        found[process.name] = compare(update.mean_SA, p.policy_gradient())
    return ContextBias(entry, options, found, not entry.needs_with(options) & made_up())


def report() -> str:
    """The page."""
    shown = worlds()
    rows = [
        measure(entry, shown, options=options)
        for entry in components("credit")
        for options in ({}, *VARIANTS.get(entry.name, ()))
    ]
    names = [world.process.name for world in shown]
    lines = [f"| rule | {' | '.join(names)} | declared | through contexts |", "|" + "---|" * (len(names) + 3)]
    lines += [
        f"| {row.name} | {' | '.join(_degrees(row.bias[name]) for name in names)} | "
        f"{row.entry.bias.partition(':')[0]} | {row.told} |"
        for row in rows
    ]
    sizes = "\n".join(
        f"| `{one.name}` | {len(one.seen)} | {one.shape[0]} | {len({state for state, _ in one.memory})} |"
        for one in (world.process for world in shown)
    )
    table = "\n".join(lines)
    return f"""# How biased is credit through a context manager?

This page is written by `python -m turnwise.trainers.lab.contexts`.

A policy may leave at once for 0.4. Else it is told on which of two sides a key lies, walks on (one of two ways pays 0.1), and is
paid 1 for the side where the key is. Before the last action the conversation has five messages, and a context has room for {BUDGET}: the
hint is gone there, unless the policy wrote it down, or its manager keeps it. The contexts are those that the registered managers
give, and the policy has logits for each context; moments that look alike to it share them. Notes and folds are offered between the hint and the walk.

| manager | moments | contexts | moments of writing |
|---|---|---|---|
{sizes}

Each manager has a column with the angle, in degrees, between the expected update over groups of {GROUP} and the exact gradient of the expected
return; `whole` shows the whole conversation. With 0 the update is right up to a factor, for what is written as well as for what is done. Exact
signals are those of a critic that sees the policy's context (`value`) or of forks of the world (`fork_value`). *Through contexts* says what
follows: a rule whose signals mean nothing here is not known to be unbiased, whatever the angle. Rules that sum what was really paid (`return_to_go`, `rloo`, `vine`,
`gae` with λ = 1) stay right whatever the context hides: what is subtracted does not look at the action. One that puts a critic's
value in place of what came is wrong by as much as contexts hide from the critic, which on the whole conversation is nothing. Here notes and folds
are the same decision, and so are `clear` and `window`; each column is played by its own manager all the same.

{table}
"""


def _degrees(bias: Bias) -> str:
    if bias.angle < EXACT:
        return "0" if bias.scale > 0 else "none"
    angle = degrees(asin(min(bias.angle, 1.0)))
    angle = angle if bias.scale > 0 else 180 - angle
    return f"{angle:.1f}" if angle > 0.05 else f"{angle:.2f}"


if __name__ == "__main__":
    print(report(), end="")
