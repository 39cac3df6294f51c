"""Questions to a judge: any policy answers one message with another."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random
from typing import TYPE_CHECKING

from turnwise.agents.core import Episode, Policy, Reply
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import rollout_episode
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.errors import EngineError, RecipeError
from turnwise.tasks.core import Json, Split, Task, derive_rng

if TYPE_CHECKING:  # a judge is asked where torch is not installed, too
    from turnwise.trainers.core import Group

SHOWN = 1500
"""Characters of one message that a judge sees: its beginning and its end."""
TOGETHER = 32
"""Questions in flight."""


class JudgeQuestion(AgentEnv[str]):
    """One question; the answer ends the episode."""

    blocking = False

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return Task("judge", "?", {"salt": rng.getrandbits(32)})

    def initial(self, task: Task) -> tuple[str, str]:
        return "", task.prompt

    def transition(self, state: str, action: Message) -> Transition[str]:
        return Transition(action.content, "", {"outcome": 0.0}, EndReason.SOLVED)


SELF = "self"
"""Names, in place of a policy's spec, the policy that is trained, with the weights that it has now."""
_trained: ContextVar[Policy | None] = ContextVar("trained", default=None)


@contextmanager
def trained(policy: Policy | None) -> Iterator[None]:
    """Let :data:`SELF` name this policy for what is asked within."""
    token = _trained.set(policy)
    try:
        yield
    finally:
        _trained.reset(token)


def judge_policy(spec: str) -> Policy:
    """The policy that a judge part names: the one that is trained where that is :data:`SELF`, else one that is made on first use.

    Raises:
        RecipeError: it is :data:`SELF`, and nothing is trained here.
    """
    if spec != SELF:
        return _made(spec)
    policy = _trained.get()
    if policy is None:
        raise RecipeError(
            f"A judge asks the policy that is trained (policy: {SELF}), and nothing is trained here.",
            "Name a policy, such as torch:PATH or openai:MODEL@URL.",
        )
    return policy


@functools.cache
def _made(spec: str) -> Policy:
    return make_policy(spec)


async def ask(policy: Policy, questions: Sequence[str], *names: Json) -> list[str]:
    """The policy's answers, in order. ``names`` make repeated questions different samples.

    Raises:
        EngineError: the judge cannot be reached. An update without its judge is not made.
    """
    free = asyncio.Semaphore(TOGETHER)

    async def one(question: str) -> str:
        async with free:
            reply = await answer(policy, question, *names)
        return reply.message.content if reply is not None else ""

    return list(await asyncio.gather(*map(one, questions)))


async def answer(policy: Policy, question: str, *names: Json) -> Reply | None:
    """The policy's answer with what it took; None if it had no room for one.

    Raises:
        EngineError: the judge cannot be reached.
    """
    seed = derive_rng("judge", question, *names).getrandbits(62)
    episode = await rollout_episode(JudgeQuestion(), policy, Task("judge", question), seed=seed)
    if not episode.outcome.counts:
        raise EngineError(
            f"The judge {policy.name} did not answer: {episode.error[:200]}", "See to it that it is up."
        )
    return episode.trajectory.turns[-1].reply if episode.trajectory.turns else None


def transcript(episode: Episode) -> str:
    """The task and all turns, numbered from 1, as a judge reads them."""
    trajectory = episode.trajectory
    return transcript_of([(turn.observation, turn.action) for turn in trajectory.turns], trajectory.final)


def transcript_of(turns: Iterable[tuple[Messages, Message]], final: Messages) -> str:
    """The same of what was told and said, turn by turn, and of what was told last."""
    lines: list[str] = []
    for number, (told, action) in enumerate(turns, 1):
        lines += [f"[told] {_short(m.content)}" for m in told if m.role != "system"]
        called = " ".join(f"{call.name}({call.arguments})" for call in action.tool_calls)
        lines.append(f"[turn {number}] {_short(f'{action.content} {called}'.strip())}")
    lines += [f"[told] {_short(m.content)}" for m in final if m.role != "system"]
    return "\n".join(lines)


def counting(group: Group) -> list[int]:
    """The episodes of a group that a judge is asked about."""
    return [i for i, episode in enumerate(group) if episode.outcome.counts and episode.trajectory.turns]


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} … {text[-SHOWN // 2 :]}"
