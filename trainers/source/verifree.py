"""VeriFree's other half: the right answer is shown after the reasoning that the policy played."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from turnwise.agents.core import Episode
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.messages import Message
from turnwise.kinds import PLAYED
from turnwise.registry import component
from turnwise.trainers.kit.reward_edits import has_answer
from turnwise.trainers.signal.answers import answer_cut, solutions
from turnwise.trainers.source.core import SourceContext, SourceDraw


@component("source", "verifree", paper="2505.21493", reads=(PLAYED,))
async def verifree(see: SourceContext, update: int, *, tag: str = "") -> SourceDraw:
    """Every trajectory that was played, its last answer replaced by the right one, which alone is learned; by loss `verifree` as R·∇log π(y | reasoning).

    Answer, reasoning and ``tag`` are those of the signal `verifree`, which is the other half. Shown with a weight of 0, and so counted in
    denominators and not learned: earlier turns, trajectories without an answer that the environment could read, and messages
    without the tag; their R is 0. Of an episode's first agent. With `reduce: fixed_length` and one minibatch both halves together are, in
    expectation, the gradient of the chance that the policy gives the right answer (tests/trainers/test_verifree.py).

    >>> import asyncio
    >>> from turnwise.trainers.source.toy import example_context, failed_groups
    >>> see = replace(example_context("shop/quick"), played=failed_groups(0, 2))
    >>> shown = asyncio.run(verifree(see, 0)).shown
    >>> len(shown), shown[0].trajectory.turns[-1].reply.action_ids == see.renderer.reply_ids(Message("assistant", "click[buy]"))
    (4, True)

    Raises:
        RunError: the last act of gold has no such tag.
    """
    groups = [[one for one in group if one.outcome.counts and _is_sampled(one)] for group in see.played]
    groups = [group for group in groups if group]
    plans = await asyncio.to_thread(solutions, groups, see.env_options)
    return SourceDraw(
        shown=[
            _answering(one, plan, see.renderer, tag)
            for group, plan in zip(groups, plans, strict=True)
            for one in group
        ]
    )


def _is_sampled(episode: Episode) -> bool:
    turns = episode.trajectory.turns
    return bool(turns) and all(turn.reply.action_ids for turn in turns)


def _answering(episode: Episode, plan: Sequence[Message], renderer: Renderer, tag: str) -> Episode:
    *before, last = [replace(turn, weight=0.0) for turn in episode.trajectory.turns]
    reply = last.reply
    cut = answer_cut(episode, plan, reply.action_ids, renderer, tag)
    if cut is not None:
        prompt = reply.prompt_ids if reply.scored_ids is None else reply.scored_ids
        told = reply._replace(
            prompt_ids=(*prompt, *reply.action_ids[: cut.kept]),
            scored_ids=None,
            action_ids=cut.answer,
            logprobs=(),
            versions=(),
        )
        answered = has_answer(episode, episode.trajectory.turns)
        last = replace(last, reply=told, weight=float(answered))
    trajectory = replace(episode.trajectory, turns=(*before, last))
    return replace(episode, trajectories={trajectory.agent: trajectory})
