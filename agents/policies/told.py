"""One task under other conditions: any policy told its plan, what it must know for it, or one question after the other."""

from __future__ import annotations

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from turnwise.agents.core import History, Policy, Reply
from turnwise.agents.policies.options import PolicyOptions
from turnwise.agents.policies.primed import above
from turnwise.agents.policies.registry import files_of, make_policy
from turnwise.envs.core import AgentEnv
from turnwise.envs.messages import Message
from turnwise.envs.registry import make
from turnwise.errors import TurnwiseError
from turnwise.registry import component
from turnwise.tasks.core import digest

_WORD = re.compile(r"\w+")
MOST = 200
"""Turns after which a solution is given up."""
KEPT = 4096
"""Episodes whose texts are kept."""

Told = Callable[[History, Sequence[str]], Sequence[str]]
"""Texts above the observations so far, that of the first turn first, no more than there are; those of one turn ago are given."""


@dataclass
class ConditionedPolicy:
    """A policy that reads texts about its task above what the world says; the episode's own record has none of them."""

    name: str
    inner: Policy
    told: Told
    known: OrderedDict[tuple[str, int, str], Sequence[str]] = field(
        default_factory=OrderedDict[tuple[str, int, str], Sequence[str]]
    )

    @property
    def version(self) -> int:
        """That of the policy within."""
        return self.inner.version

    async def act(self, history: History) -> Reply:
        """The reply of the policy within, to whom the texts stand in the conversation."""
        shown = _with_texts(history, await self._texts(history))
        reply = await self.inner.act(shown)
        history.memory, history.rendered, history.shown = shown.memory, shown.rendered, shown.shown
        return reply

    async def _texts(self, history: History) -> Sequence[str]:
        acts = [repr(turn.action) for turn in history.turns]  # branches of a tree share task and seed
        key, last = ((history.task.id, history.seed, digest(some)) for some in (acts, acts[:-1]))
        if key not in self.known:
            self.known[key] = await asyncio.to_thread(
                self.told, history, self.known.get(last, ()) if acts else ()
            )
            while len(self.known) > KEPT:
                self.known.popitem(last=False)
        return self.known[key]

    def close(self) -> None:
        """Close the policy within."""
        self.inner.close()


def _with_texts(history: History, texts: Sequence[str]) -> History:
    observations = [*(turn.observation for turn in history.turns), history.observation]
    each = [*texts, *[""] * (len(observations) - len(texts))]
    *before, last = [above(seen, text) for seen, text in zip(observations, each, strict=True)]
    turns = [replace(turn, observation=seen) for turn, seen in zip(history.turns, before, strict=True)]
    return replace(history, observation=last, turns=turns)


def solution_from(history: History, acts: Sequence[Message] = ()) -> list[Message | str]:
    """The environment's solution of an episode's task, from where these acts lead; empty where they end it.

    Raises:
        EnvError: it knows none.
    """
    env: AgentEnv[Any] = make(history.task.env)
    try:
        env.reset(seed=history.env.now.seed, options={"task": history.task})
        for act in acts:
            env.step(act)
        found: list[Message | str] = []
        while env.now.end is None and len(found) < MOST:
            found.append(env.gold(env.state))
            env.step(found[-1])
        return found
    finally:
        env.close()


def verb_of(act: Message | str) -> str:
    """The kind of an act: the tools that it calls, or its first word.

    >>> verb_of(Message("assistant", "search[red mug]")), verb_of("buy it"), verb_of("")
    ('search', 'buy', '')
    """
    said, calls = (act, ()) if isinstance(act, str) else (act.content, act.tool_calls)
    called = " ".join(call.name for call in calls)
    found = _WORD.search(said)
    return called or (found[0] if found else "")


def plan(history: History, before: Sequence[str]) -> Sequence[str]:
    """The kinds of act of the solution, in order."""
    if before:
        return before
    verbs = [verb_of(act) for act in solution_from(history)]
    return [f"Plan : {' , '.join(verbs)}"]


def knowledge(history: History, before: Sequence[str]) -> Sequence[str]:
    """The kinds of act that the solution takes."""
    if before:
        return before
    verbs = {verb_of(act) for act in solution_from(history)}
    return [f"Needed : {' , '.join(sorted(verbs))}"]


def chain(history: History, before: Sequence[str]) -> list[str]:
    """Before each act, which kind of act is next on a solution from where the episode stands."""
    acts = [turn.action for turn in history.turns]
    told = list(before)
    for k in range(len(told), len(acts) + 1):
        left = solution_from(history, acts[:k])
        told.append(f"Question {k + 1} of {k + len(left)} : {verb_of(left[0])} ?" if left else "")
    return told


CONDITIONS: Mapping[str, Told] = {"plan": plan, "knowledge": knowledge, "chain": chain}


def _parsed(target: str) -> tuple[str, str]:
    what, equals, spec = target.partition("=")
    if not equals or not what or not spec:
        raise TurnwiseError(
            f"The policy 'told:{target}' is not complete.",
            f"Write told:CONDITION=POLICY, a condition being {', '.join(CONDITIONS)} or a file of texts by task.",
        )
    return what, spec


def _files(target: str) -> list[Path]:
    what, spec = _parsed(target)
    own = [] if what in CONDITIONS else [Path(what).expanduser()]
    return [*own, *files_of(spec)]


@component(
    "policy", "told", form="told:CONDITION=POLICY", paper="2506.04723", files=_files, told_context=True
)
def told(target: str, options: PolicyOptions) -> ConditionedPolicy:
    """Any policy that is told something of each task: its plan, what must be known for it, or question after question.

    SPARKLE's conditions (Wang et al. 2025), for ``turnwise audit eval PLAIN UNDER_IT --measure conditions``. ``plan`` names the kinds of act of the environment's
    own solution in their order, ``knowledge`` the same without the order, both above the task; ``chain`` cuts the task into a chain of questions, and
    says before each act what kind is next on a solution from there, with all that was said and seen so far in the prompt. Any other word
    is a JSON file of texts by a task's id, such as plans that a larger model wrote; tasks that it lacks are told nothing. What no deployment knows is told here: the
    name of the evaluation's policy says so.
    """
    what, spec = _parsed(target)
    texts: Told = CONDITIONS[what] if what in CONDITIONS else _from_file(Path(what).expanduser())
    inner = make_policy(spec, **options._asdict())
    return ConditionedPolicy(f"told:{Path(what).name}={inner.name}", inner, texts)


def _from_file(path: Path) -> Told:
    """The texts of a file, above the first observation of each task that it has."""
    try:
        read: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise TurnwiseError(
            f"{path} cannot be read: {error}.",
            f"Name a condition ({', '.join(CONDITIONS)}), or a JSON file of texts by a task's id.",
        ) from None
    known = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    if not known or not all(isinstance(text, str) for text in known.values()):
        raise TurnwiseError(f"{path} has no texts by task.", 'Write {"TASK_ID": "text", …}.')
    return lambda history, before: [str(known.get(history.task.id, ""))]
