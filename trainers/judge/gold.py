"""The environment's own solution as judge: how much closer each turn brought the agent to the goal."""

import asyncio
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.envs.core import AgentEnv, EndReason
from turnwise.envs.registry import make
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.bracket import standings
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.stand_in import turns_of, wave

FAR = 60  # steps of gold that are looked at


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    mask_NK, wave_NK = turns_of(p), wave(p)
    return {
        "wrong": mask_NK * (wave_NK < -0.3),
        "principle": (0.5 + 0.5 * wave_NK) * mask_NK,
        "standing": p.return_N.sigmoid()[:, None] * mask_NK,
    }


@component("judge", "gold", gives=("wrong", "principle", "standing"), stand_in=_stand_in)
async def gold(groups: Sequence[Group]) -> list[Group]:
    """Each episode is replayed, and after every turn the environment's gold counts the steps that are left.

    ``wrong``: 1 where the action was refused, brought the goal no nearer, or ended the episode short of it, else 0.
    ``principle``: 1 where the way became a step shorter, 1/2 where it stayed, 0 where it grew. ``standing``: the place in a
    tournament decided by return, then by the steps that were left in the end. No model is asked; costs replays
    and gold's steps, no tokens. From where a replay differs (chance in forks), turns are not called wrong.

    >>> from turnwise.trainers.strategy.runner import plan_groups, try_out
    >>> from turnwise.trainers.strategy.chain import chain
    >>> played, _ = try_out(chain, "scripted:gold", "shop/quick", groups=1, size=2)
    >>> judged = asyncio.run(gold(played))
    >>> [(turn.signals["wrong"], turn.signals["principle"]) for turn in judged[0][0].trajectory.turns]
    [(0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0)]
    """
    return [await _judge(group) for group in groups]


async def _judge(group: Group) -> Group:
    told = [await asyncio.to_thread(_verdicts, episode) for episode in group]
    left = [found[-1][2] if found else FAR for found in told]

    async def compare(i: int, j: int) -> tuple[float, float]:
        return tuple(group[x].trajectory.total_reward - left[x] / (100 * FAR) for x in (i, j))  # pyright: ignore

    places = await standings(len(group), compare)
    return [
        with_signals(
            episode, [{"wrong": w, "principle": p, "standing": place} for w, p, _ in found]
        )
        for episode, found, place in zip(group, told, places, strict=True)
    ]  # fmt: skip


def _verdicts(episode: Episode) -> list[tuple[float, float, int]]:
    """Of each turn: is it wrong, how good was it, and the steps that gold would still take after it."""
    env: AgentEnv[Any] = make(episode.task.env)
    try:
        _, info = env.reset(seed=episode.seed, options={"task": episode.task})
        key, before = info["state_key"], _left(env)
        found: list[tuple[float, float, int]] = []
        for turn in episode.trajectory.turns:
            if key != turn.state_key or env.now.end is not None:
                found.append((0.0, 0.5, before))
                continue
            step = env.step(turn.action)
            key = step.info.get("state_key", "")
            after = _left(env)
            wrong = turn.bad_action or after >= before
            found.append((float(wrong), min(1.0, max(0.0, 0.5 + (before - after) / 2)), after))
            before = after
        return found
    finally:
        env.close()


def _left(env: AgentEnv[Any]) -> int:
    """Steps that gold takes from here to a solution; ``FAR`` where it finds none."""
    if env.now.end is not None:
        return 0 if env.now.end is EndReason.SOLVED else FAR
    tried = env.fork()
    for steps in range(1, FAR):
        step = tried.step(tried.gold(tried.state))
        if (end := step.info.get("end")) is not None:
            return steps if end is EndReason.SOLVED else FAR
    return FAR
