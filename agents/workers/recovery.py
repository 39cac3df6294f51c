"""Recovery: bring a fresh environment to the state in which another one failed, to repeat only the step.

States are immutable and chance is a function of (task, seed, turn), so both ways lead to the very same moment (E3, E4):
restoring its snapshot, or playing the same actions again from where the episode began.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from turnwise.agents.core import Outcome
from turnwise.agents.execution.calls import Fault, in_env
from turnwise.agents.multi_agent import MultiAgentEpisode
from turnwise.agents.workers.remote import RemoteEnv
from turnwise.envs.core import AgentEnv, Snapshot
from turnwise.envs.live import LiveEnv


class Deadlines(NamedTuple):
    """Seconds for a reset or a restore, and for a step."""

    reset_s: float
    step_s: float


def checkpoint(env: AgentEnv[Any]) -> Snapshot[Any] | None:
    """A snapshot of the current state if it costs nothing; None for a live environment."""
    if isinstance(env, RemoteEnv):
        return env.checkpoint
    return None if isinstance(env, LiveEnv) else env.now


async def bring(
    episode: MultiAgentEpisode,
    env: AgentEnv[Any],
    moment: Snapshot[Any] | None,
    start: Snapshot[Any] | None,
    deadlines: Deadlines,
) -> None:
    """Bring ``env`` to the current state of ``episode`` and continue the episode there.

    Args:
        episode: to go on with.
        env: a fresh environment.
        moment: where the episode stands, if that is known.
        start: where it began, if not with a reset.
        deadlines: of each call.

    Raises:
        Fault: the environment failed again, or came to another state than before.
    """
    if moment is not None:
        await in_env(env, deadlines.reset_s, env.restore, moment)
    else:
        if start is not None:
            await in_env(env, deadlines.reset_s, env.restore, start)
        else:
            options = {"task": episode.task}
            await in_env(env, deadlines.reset_s, env.reset, seed=episode.seed, options=options)
        for turn, (action, state_key) in enumerate(episode.done):
            step = await in_env(env, deadlines.step_s, env.step, action)
            if step.info.get("state_key", "") != state_key:
                cause = f"played again after a failure, turn {turn} led to another state (E3)"
                raise Fault(Outcome.INFRA_ERROR, cause)
    episode.move_to(env)
