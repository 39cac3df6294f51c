"""GRPO-CSV: what an agent gathered must be enough to answer by."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from turnwise.agents.core import Episode
from turnwise.envs.core import AgentEnv, EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import make
from turnwise.registry import component
from turnwise.tools.thoughts import without_thoughts
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import ask, judge_policy
from turnwise.trainers.kit.reward_edits import with_signals

QUESTION = """\
{task}

You can look nothing up any more. This is what was found out before:

{evidence}

By this alone, say how you end the task: write only your last action, exactly as the task wants it. Write `I don't know` if it is not enough."""


@component("judge", "csv", gives=("csv",))
async def csv(groups: Sequence[Group], *, policy: str = "self") -> list[Group]:
    """1 where a solved task is solved again from what the environment told alone, 0 where not or unsolved; on every turn.

    The policy that is trained, or any other, is shown the task and the answers to all of an episode's turns, without a word of the agent's
    reasoning, and says how to end. Its words are played in the episode's last moment. Completeness self-verification (GRPO-CSV,
    TimeSearch-R): an answer that was guessed, or known before, is paid less. Theirs is
    `reward: {name: own_probability, signal: csv, weight: 0.5, format: 1, outcome: 0.5}`: format + ½·right + ½·right again. An episode
    to whose turns nothing was answered gathered nothing, and is not asked about; nor is one that failed.

    Worked by hand: a right format and solved twice, once, not at all: 2.0, 1.5, 1.0.

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> from turnwise.trainers.reward.own_probability import own_probability
    >>> played = [with_signals(episode([a], end=EndReason.SOLVED if a else EndReason.FAILED), [{"csv": q}]) for a, q in [(1, 1.0), (1, 0.0), (0, 0.0)]]
    >>> paid = own_probability(played, signal="csv", weight=0.5, format=1.0, outcome=0.5)
    >>> [one.trajectory.total_reward for one in paid]
    [2.0, 1.5, 1.0]
    """
    judged: list[Group] = []
    for group in groups:
        told, answers = list(group), dict[int, str]()
        asked = [i for i, one in enumerate(group) if gathered(one)]
        if asked:
            questions = [QUESTION.format(task=task_of(group[i]), evidence=evidence(group[i])) for i in asked]
            answers = dict(zip(asked, await ask(judge_policy(policy), questions), strict=True))
        for i, one in enumerate(group):
            right = i in answers and await asyncio.to_thread(ends_well, one, answers[i])
            if one.outcome.counts:
                told[i] = with_signals(one, [{"csv": float(right)}] * len(one.trajectory.turns))
        judged.append(told)
    return judged


def gathered(episode: Episode) -> bool:
    """Say whether an episode solved its task by more than its last turn."""
    return episode.outcome.counts and episode.success and bool(evidence(episode))


def task_of(episode: Episode) -> str:
    """Texts that the agent was told at first."""
    return "\n\n".join(message.content for message in episode.trajectory.turns[0].observation)


def evidence(episode: Episode) -> str:
    """Answers of the environment to the turns before the last one."""
    said = (message.content for turn in episode.trajectory.turns[1:] for message in turn.observation)
    return "\n\n".join(text for text in said if text.strip())


def ends_well(episode: Episode, answer: str) -> bool:
    """Say whether this answer solves the task where the episode's last turn stood."""
    env: AgentEnv[Any] = make(episode.task.env)
    try:
        env.reset(seed=episode.seed, options={"task": episode.task})
        for turn in episode.trajectory.turns[:-1]:
            env.step(turn.action)
        if env.now.end is None:
            env.step(Message("assistant", without_thoughts(answer).strip()))
        return env.now.end is EndReason.SOLVED
    finally:
        env.close()
