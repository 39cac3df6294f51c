"""Conditioning on returns: stored episodes are imitated under a prompt that says what they earned, lucky ones or deserved."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from turnwise.agents.core import Episode
from turnwise.envs.messages import Message
from turnwise.envs.trust import make_for
from turnwise.errors import RecipeError, RunError
from turnwise.registry import component
from turnwise.tasks.core import Task, derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.source.core import SourceContext, SourceDraw, by_agent
from turnwise.trainers.source.rendering import ToolsOfTasks, rendered
from turnwise.trainers.source.stored import draw_groups, required_path, stored_groups

LABEL = "Return: "


@component("source", "conditioned", paper="2210.13435", instruction=LABEL)
class Conditioned:
    """`stored` episodes, each imitated under a prompt that ends in its return; with ``chances``, in what its actions earn on average.

    Supervised learning that is conditioned on returns asks for a high one when the policy plays: ``sampling.instruction: "Return:
    1.0"``. Where the world is random it imitates luck, for a gamble that was won says the same as a sure thing. Dichotomy of
    Control (Yang et al. 2022) conditions on what carries no chance, so that the policy can bring it about. Theirs is a latent
    variable, trained so that it tells neither rewards nor next states beyond what state and action tell; ours is the mean return of
    the episode's own actions, played ``chances`` times from the beginning with other chance (0: the return that it had), which is
    less than they deserve where later actions answered to earlier chance. Tasks must be ones that this machine can play.

    Worked by hand: a gamble that pays 1 or 0 and was won is told as 1.0, and as 0.5 by the mean of two replays.

    >>> instruction_of(1.0), instruction_of(0.5), instruction_of(-0.01)
    ('Return: 1.0', 'Return: 0.5', 'Return: 0.0')
    >>> from dataclasses import replace
    >>> from turnwise.trainers.source.toy import example_context, example_log
    >>> see = example_context("shop/quick")
    >>> see = replace(see, renderer=see.renderer.instructed("Return: 1.0"))
    >>> source = Conditioned(path=str(example_log()), groups=1, chances=2)
    >>> one, other = asyncio.run(source(see, 0)).shown
    >>> "Return: 0.0" in see.renderer.tokenizer.decode(one.trajectory.turns[0].reply.prompt_ids)
    True

    Raises:
        RecipeError: there is no path, or ``chances`` is below 0.
        RunError: when it is asked: the log has no episode, the policy is not asked for a return, or one agent's actions cannot be
            played again, because there are others or a program stood between it and the environment.
    """

    def __init__(self, *, path: str = "", groups: int = 4, chances: int = 0) -> None:
        if chances < 0:
            raise RecipeError(
                f"source 'conditioned': chances={chances} is no number of replays.",
                "Give how often each episode's actions are played with other chance (8), or 0 for the return that it had.",
            )
        self.path, self.groups, self.chances = required_path("conditioned", path), groups, chances
        self._worth: dict[tuple[str, str], float] = {}
        self._tools: ToolsOfTasks | None = None

    def log_path(self) -> str:
        return self.path

    async def __call__(self, see: SourceContext, update: int) -> SourceDraw:
        if not see.renderer.instruction.startswith(LABEL):
            raise RunError(
                "source 'conditioned' learns what to do for a return, and the policy is not asked for one when it plays.",
                'Ask for the best of the log: sampling: {instruction: "Return: 1.0"}.',
            )
        known, shown = stored_groups(see, self.path, solved=False), list[Episode]()
        if self._tools is None:
            if self.chances:
                _require_plans(known, self.path, see.env_options)
            self._tools = ToolsOfTasks(see.env_options)
        for group in draw_groups(see, update, known, self.groups):
            for one in (alone for episode in group for alone in by_agent(episode)):
                told = instruction_of(await self._worth_of(one, see))
                shown.append(rendered(one, see.renderer.instructed(told), self._tools, self.path))
        return SourceDraw(shown=shown)

    async def _worth_of(self, episode: Episode, see: SourceContext) -> float:
        """The return, or the mean return of the same actions; every plan for a task meets the same chance."""
        if not self.chances:
            return episode.trajectory.total_reward
        actions = [turn.action for turn in episode.trajectory.turns]
        place = episode.task.id, repr(actions)
        if place not in self._worth:
            rng = derive_rng("conditioned", see.seed, episode.task.id)
            seeds = [rng.getrandbits(62) for _ in range(self.chances)]
            self._worth[place] = await asyncio.to_thread(
                mean_return, episode.task, actions, seeds, see.env_options
            )
        return self._worth[place]


def _require_plans(groups: Sequence[Group], path: str, env_options: Mapping[str, Any]) -> None:
    """Every episode is one agent's, whose messages are what the environment was told."""
    agents = dict[str, int]()
    for episode in (one for group in groups for one in group):
        if episode.task.env not in agents:
            env = make_for(episode.task, env_options)
            try:
                env.reset(seed=episode.seed, options={"task": episode.task})
                agents[episode.task.env] = len(env.agents)
            finally:
                env.close()
        told = [turn.acts for one in episode.trajectories.values() for turn in one.turns]
        if max(agents[episode.task.env], len(episode.trajectories)) > 1 or any(
            acts is not None for acts in told
        ):
            raise RunError(
                f"{path}: the actions of an agent on {episode.task.id} cannot be played again alone: others acted beside it, or a program "
                "between it and the environment.",
                "Leave chances out, or name the log of a policy that plays a suite with one agent.",
            )


def instruction_of(worth: float) -> str:
    """Return what stands in the prompt of an episode that is worth so much; a hundredth below 0 is 0."""
    return f"{LABEL}{round(worth, 1) + 0.0:.1f}"


def mean_return(
    task: Task, actions: Sequence[Message], seeds: Sequence[int], env_options: Mapping[str, Any]
) -> float:
    """Return what these actions earn on average, each time from the beginning with the chance of another seed."""
    env, returns = make_for(task, env_options), list[float]()
    try:
        for seed in seeds:
            env.reset(seed=seed, options={"task": task})
            earned = 0.0
            for action in actions:
                step = env.step(action)
                earned += float(step.reward)
                if env.now.end is not None:
                    break
            returns.append(earned)
    finally:
        env.close()
    return fmean(returns)
