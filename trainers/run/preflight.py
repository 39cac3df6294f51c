"""The preflight: a few scripted episodes, measured with the model's own tokeniser before training.

What they show is compared with the context, the turn limit and ``sampling.max_tokens``; that the environment works
is seen here too, and that good play earns another reward than trivial play. Its chance is its own, so that a run is
the same with and without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from turnwise.agents.core import Episode, Policy, Trajectory
from turnwise.agents.policies.model import DemonstrationPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, rollout
from turnwise.agents.tokens.renderer import Renderer
from turnwise.agents.workers.pool import WorkerPool, workers_for
from turnwise.envs.core import AgentEnv, EndReason
from turnwise.envs.registry import env_class, suite_tasks
from turnwise.errors import RecipeError
from turnwise.tasks.core import Split, derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.kit.token_credit import on_turns
from turnwise.trainers.learn.collate import collate_turns
from turnwise.trainers.recipe.no_effect import BLIND
from turnwise.trainers.recipe.part import payer_of
from turnwise.trainers.recipe.problems import RecipeProblem, refuse
from turnwise.trainers.run.door import PreflightOptions
from turnwise.trainers.run.placement import Placement, env_workers_of
from turnwise.trainers.run.vacuous import SAME
from turnwise.trainers.sampler.mixture import Mixture

PREFLIGHT_TASKS = 1 << 41
"""It plays training tasks from this index on; warm starts play those from 1 << 40 on, reinforcement those from 0 on."""
TASKS = 4
PATIENCE = 20.0
"""Seconds after which it goes with what has been played."""
TRIVIAL_BASELINES = ("random", "null")


class Lengths(NamedTuple):
    """The token counts of one agent's observations and messages in an episode."""

    prompt: int  # before its first message
    tools: int  # of them, what describes the tools
    longest: int  # all that the model sees at its last message, that message included
    message: int  # the longest of its messages
    turns: int


class ScriptedEpisodes(NamedTuple):
    """Episodes of one script."""

    script: str
    episodes: Sequence[Episode]

    @property
    def whole(self) -> list[Episode]:
        return [episode for episode in self.episodes if episode.outcome.counts]


async def preflight(options: PreflightOptions, renderer: Renderer, context: int) -> str:
    """Play a few episodes and refuse a run that they show to be in vain; returns their summary in a line.

    Args:
        options: of the run.
        renderer: the model's, as the recipe prompts it.
        context: the longest prompt plus answer, in tokens.

    Raises:
        RecipeError: with every cause and its remedy.
    """
    played = await _play(options, renderer)
    shown = [one for one in played if one.script not in TRIVIAL_BASELINES]
    lengths = [
        [_lengths(renderer, side) for side in _sides(episode)] for one in shown for episode in one.whole
    ]
    problems = [
        *_failures(options, played),
        *_too_long(options, [side for sides in lengths for side in sides], context),
        *_turn_limit(shown),
        *_nothing_to_learn(options, played),
        *_failure_pays(options, played),
        *_nothing_credited(options, played),
    ]
    refuse(problems, "This run")
    return _summary([side for sides in lengths for side in sides], context, played)


async def _play(options: PreflightOptions, renderer: Renderer) -> list[ScriptedEpisodes]:
    """Every script's episodes, as far as they end in time."""
    mixture = Mixture(options.suites, options.play.seed)
    scripts = [*_demonstrators(options, mixture.envs), *TRIVIAL_BASELINES]
    played = {name: list[Episode]() for name in scripts}
    tasks = [
        task
        for suite, _ in mixture.shares
        for task in suite_tasks(suite, Split.TRAIN, TASKS, start=PREFLIGHT_TASKS)
    ]
    requests = [
        Request(task, derive_rng("preflight", options.play.seed, i).getrandbits(62))
        for i, task in enumerate(tasks)
    ]

    async def one(name: str, workers: WorkerPool | None) -> None:
        script: Policy = scripted(name)
        await rollout(
            requests,
            script if name in TRIVIAL_BASELINES else DemonstrationPolicy(script, renderer),
            limits=options.play.limits,
            retries=0,
            env_options=options.play.env_options,
            env_workers=workers or 0,
            on_episode=lambda _, episode: played[name].append(episode),
        )

    try:
        with workers_for(env_workers_of(Placement(), options.roles, mixture.envs)) as workers:
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*(one(name, workers) for name in scripts))
    except TimeoutError:
        pass  # what has been played says enough, or `_summary` says that nothing was
    return [ScriptedEpisodes(name, episodes) for name, episodes in played.items()]


def _demonstrators(options: PreflightOptions, envs: Sequence[str]) -> list[str]:
    """Scripts that know the task: the warm start's, and gold where the environment has it."""
    asked = [options.demonstrator] if options.demonstrator else []
    gold = ["gold"] if all(_knows_gold(env_class(env)) for env in envs) else []
    return list(dict.fromkeys([*asked, *gold]))


def _knows_gold(cls: type[AgentEnv[Any]]) -> bool:
    return cls.gold_known and cls.gold is not AgentEnv.gold


def _sides(episode: Episode) -> list[Trajectory]:
    return [side for side in episode.trajectories.values() if side.turns]


def _lengths(renderer: Renderer, side: Trajectory) -> Lengths:
    first = side.turns[0]
    prompt, totals = len(first.reply.prompt_ids), list[int]()
    for k, turn in enumerate(side.turns):
        reply = turn.reply
        parent = reply.parent.turn(k)
        before = 0 if parent is None else totals[parent]
        totals.append(before + len(reply.prompt_ids) + len(reply.action_ids))
    return Lengths(
        prompt,
        prompt - len(renderer.start(first.observation)),
        max(totals),
        max(len(turn.reply.action_ids) for turn in side.turns),
        len(side.turns),
    )


def _failures(options: PreflightOptions, played: Sequence[ScriptedEpisodes]) -> Iterator[RecipeProblem]:
    """Scripts that cannot play, each with the message of the first episode that failed."""
    for script, episodes in played:
        failed = [episode for episode in episodes if not episode.outcome.counts]
        if len(failed) > options.play.max_failed * len(episodes):
            yield RecipeProblem(
                f"{len(failed)} of {len(episodes)} episodes of scripted:{script} fail in {' + '.join(options.suites)}: "
                f"{failed[0].error[:400]}",
                f"Fix that first (`turnwise check {failed[0].task.env}`).",
            )


def _too_long(options: PreflightOptions, sides: Sequence[Lengths], context: int) -> Iterator[RecipeProblem]:
    if not sides:
        return
    key = options.context_key
    shortest = min(sides, key=lambda side: side.prompt)
    enough = -(-max(side.longest for side in sides) * 5 // 4 // 64) * 64
    if shortest.prompt >= context:
        tools = f", {shortest.tools} of them for the tools" if shortest.tools > 0 else ""
        hide = " or show the tools in fewer words (sampling.tools, the tools' descriptions)" if tools else ""
        yield RecipeProblem(
            f"Not one episode could begin: what the model is shown before its first message takes at least "
            f"{shortest.prompt} tokens{tools}, and the context holds {context}.",
            f"Set {key} to {enough} or more{hide}.",
        )
    elif min(side.longest for side in sides) > context:
        least = min(side.longest for side in sides)
        yield RecipeProblem(
            f"Not one episode of a script that knows the task fits into the context of {context} tokens: "
            f"the shortest takes {least}, {shortest.prompt} of them before its first message.",
            f"Set {key} to {enough} or more, or choose an easier suite.",
        )
    message = min(side.message for side in sides)
    if message > options.talk.max_tokens:
        yield RecipeProblem(
            f"In every episode of a script that knows the task a message takes {message} tokens or more, "
            f"and sampling.max_tokens is {options.talk.max_tokens}.",
            f"Set sampling.max_tokens to {max(side.message for side in sides)} or more "
            "(--no-preflight, if shorter messages will do).",
        )


def _turn_limit(shown: Sequence[ScriptedEpisodes]) -> Iterator[RecipeProblem]:
    for script, episodes in shown:
        if script == "gold" and episodes and all(episode.end is EndReason.TURN_LIMIT for episode in episodes):
            turns = len(episodes[0].trajectory.turns)
            yield RecipeProblem(
                f"The turn limit of {turns} ends every episode of scripted:gold before the task is done.",
                "Raise the environment's turn_limit, or choose an easier suite.",
            )


def _nothing_to_learn(
    options: PreflightOptions, played: Sequence[ScriptedEpisodes]
) -> Iterator[RecipeProblem]:
    """Yield a problem if good play and trivial play earn the same in every task: then nothing can be learned from rewards."""
    if not _pays_scripts(options):
        return
    groups = _rewarded(options, played)
    paid = [[side.total_reward for e in group for side in e.trajectories.values()] for group in groups]
    if paid and all(max(returns) - min(returns) <= SAME for returns in paid):
        yield RecipeProblem(
            f"There is nothing to learn from: scripts that know the task and trivial ones earned the same in each "
            f"of {len(groups)} tasks ({', '.join(f'{returns[0]:g}' for returns in paid)}).",
            f"Fix the environment's rewards (`turnwise check {groups[0][0].task.env}`), its options "
            f"(rollout.env_options), or the recipe's reward ({_named(options)}).",
        )


def _failure_pays(options: PreflightOptions, played: Sequence[ScriptedEpisodes]) -> Iterator[RecipeProblem]:
    """Yield a problem if every failure earned more than any success, in each task that has both: then a policy learns to fail."""
    if not _pays_scripts(options):
        return
    sides = [
        tuple([e.trajectory.total_reward for e in group if e.success is solved] for solved in (True, False))
        for group in _rewarded(options, played)
    ]
    both = [(solved, failed) for solved, failed in sides if solved and failed]
    if both and all(max(solved) < min(failed) - SAME for solved, failed in both):
        solved, failed = both[0]
        yield RecipeProblem(
            f"Failure pays better than success: in each of {len(both)} tasks every failed episode earned more than any "
            f"solved one ({min(failed):g} against {max(solved):g} in the first).",
            f"Turn the recipe's reward around ({_named(options)}), or the environment's (rollout.env_options).",
        )


def _nothing_credited(
    options: PreflightOptions, played: Sequence[ScriptedEpisodes]
) -> Iterator[RecipeProblem]:
    """Yield a problem if good play and trivial play earn otherwise, and the credit rule gives neither an advantage."""
    if options.credit.needs("credit") or not _pays_scripts(options):
        return  # signals are measured of the policy's own episodes
    groups = _rewarded(options, played)
    if not groups:
        return
    returns = [episode.trajectory.total_reward for group in groups for episode in group]
    turns = collate_turns(groups)
    try:
        given_BK = on_turns(options.credit.build("credit")(turns), turns)
    except (RecipeError, RuntimeError):  # it needs more than scripts leave
        return
    if 0 <= float(given_BK.abs().max()) < BLIND * (max(returns) - min(returns)):
        yield RecipeProblem(
            f"credit {options.credit.name!r} gives (nearly) nothing for what scripts that know the task and trivial ones earned, "
            f"though their returns go from {min(returns):g} to {max(returns):g}.",
            "Choose another credit rule, or let the turns be paid that it looks at (reward, rollout.env_options).",
        )


def _pays_scripts(options: PreflightOptions) -> bool:
    """Tell whether the recipe's rewards are known of scripts, which have no signals, no way of speaking, and do not agree with themselves."""
    return all(
        not part.needs("reward") and {"votes", "words"}.isdisjoint(part.component("reward").reads)
        for part in options.rewards
    )


def _rewarded(options: PreflightOptions, played: Sequence[ScriptedEpisodes]) -> list[Group]:
    """By task what was played by anyone, where a script knows the task, with the recipe's rewards."""
    reward = payer_of(options.rewards)
    shown = {task for one in played if one.script not in TRIVIAL_BASELINES for task in map(_task, one.whole)}
    groups = [[e for one in played for e in one.whole if _task(e) == task] for task in shown]
    return reward.pay([group for group in groups if len(group) > 1]).groups


def _named(options: PreflightOptions) -> str:
    return ", ".join(part.name for part in options.rewards)


def _task(episode: Episode) -> str:
    return episode.task.id


def _summary(sides: Sequence[Lengths], context: int, played: Sequence[ScriptedEpisodes]) -> str:
    if not sides:
        return "preflight: no script knows this task, so that lengths and rewards were not checked"
    shown = [episode for one in played if one.script not in TRIVIAL_BASELINES for episode in one.whole]
    prompt, longest = max(side.prompt for side in sides), max(side.longest for side in sides)
    over = sum(side.longest > context for side in sides)
    cut = f"; {over} of {len(sides)} are longer than the context" if over else ""
    return (
        f"preflight: prompts of up to {prompt} tokens, whole episodes of up to {longest} in a context of {context}{cut}; "
        f"scripts that know the task solve {sum(e.success for e in shown)} of {len(shown)}"
    )
