"""Requirements for rewards, judges and strategies, on groups of episodes."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Sequence

from turnwise.agents.core import Episode, History
from turnwise.agents.policies.registry import make_policy
from turnwise.envs.core import EndReason
from turnwise.registry import Component
from turnwise.requirements import Requirements, require
from turnwise.trainers.check.options import EVERY_PART, variants
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import judged_now, made_judge
from turnwise.trainers.kit.payer import RewardInRow
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups

SUITE = "shop/quick"
JUDGE = f"python:{__name__}:cannot_say"
EPISODES = [
    episode([0.0, 0.25, 0.5], end=EndReason.FAILED),
    episode([1.0], end=EndReason.SOLVED),
    episode([], end=EndReason.TOKEN_LIMIT),
    episode([0.0, 0.0], end=EndReason.TURN_LIMIT),
    episode([0.5, 0.5], parts={"cost": [-0.1, -0.1], "progress": [0.8, 0.3]}, end=EndReason.SOLVED),
    episode([0.0, 0.0], parts={"cost": [-0.1, -0.1], "progress": [0.8, 0.3]}),
]


def cannot_say(history: History) -> str:
    """A judge that answers, and nothing of use."""
    return "I cannot say."


def reward_is_pure_and_keeps_the_components(entry: Component) -> None:
    """New episodes with the same turns and all reward components, whose sum is the reward; no order matters."""
    needed = sorted(entry.needs_with({}))
    episodes = [
        with_signals(e, [dict.fromkeys(needed, 0.25 * k - 0.5) for k in range(len(e.trajectory.turns))])
        for e in EPISODES
    ]
    for said, built in variants(entry):
        reward = RewardInRow(entry.name, built, entry.whole)
        before = [repr(e) for e in episodes]
        changed = reward.pay([episodes])[0]
        require([repr(e) for e in episodes] == before, f"It changes what it is given ({said}).")
        require(len(changed) == len(episodes), f"It loses episodes ({said}).")
        for old, new in zip(episodes, changed, strict=True):
            _check_rewarded(old, new, said)
        reordered = [repr(e) for e in reward.pay([episodes[::-1]])[0]]
        require(reordered == [repr(e) for e in changed][::-1], f"It depends on the order ({said}).")


def _check_rewarded(old: Episode, new: Episode, said: str) -> None:
    kept = (new.task, new.seed, new.end, new.outcome) == (old.task, old.seed, old.end, old.outcome)
    require(kept, f"It changes more than rewards ({said}).")
    require(len(new.trajectory.turns) == len(old.trajectory.turns), f"It loses turns ({said}).")
    for turn, was in zip(new.trajectory.turns, old.trajectory.turns, strict=True):
        total = sum(turn.rewards.values())
        require(
            math.isclose(turn.reward, total, abs_tol=1e-9), f"A reward is not its components' sum ({said})."
        )
        require(set(was.rewards) <= set(turn.rewards), f"A reward component was lost ({said}).")


def played(strategy: Component | None, spec: str = "mix:gold=2,random=1") -> list[Group]:
    """Two groups of eight episodes of a small shop, played by a strategy (chains without one)."""
    from turnwise.registry import get_component

    chosen = (strategy or get_component("strategy", "chain")).build({})
    runner = RolloutRunner(make_policy(spec), as_is)
    return asyncio.run(_await(chosen(runner, plan_groups(SUITE, 2, 8))))


async def _await(found: object) -> list[Group]:
    return list(await found)  # pyright: ignore


def judge_writes_what_it_gives(entry: Component) -> str:
    """The groups as they were, with finite figures of every turn under the names in ``gives``."""
    groups = played(None)
    options = (
        {"policy": JUDGE} if "policy" in entry.options else {}
    )  # nobody outside of this machine is asked
    judged = judged_now(made_judge(entry, options), groups)
    require([len(group) for group in judged] == [len(group) for group in groups], "It loses episodes.")
    for old, new in zip(itertools.chain(*groups), itertools.chain(*judged), strict=True):
        require(
            (new.task, new.seed, new.outcome) == (old.task, old.seed, old.outcome), "Their order changes."
        )
        same = [t.reply for t in new.trajectory.turns] == [t.reply for t in old.trajectory.turns]
        require(same, "It changes what was said.")
        _check_signals(new, entry.gives)
    return f"{', '.join(entry.gives) or 'nothing'} of {sum(map(len, groups))} episodes"


def _check_signals(found: Episode, gives: Sequence[str]) -> None:
    for turn in found.trajectory.turns:
        for name in gives:
            value = turn.signals.get(name)
            require(value is not None and math.isfinite(value), f"A turn has {name}={value}.")


def strategy_plays_the_plan(entry: Component) -> str:
    """A group for each of the plan, of its task; the same plan gives the same episodes."""
    groups = played(entry)
    tasks = [request[0].task.id for request in plan_groups(SUITE, 2, 8)]
    require(len(groups) == 2, f"A plan of 2 groups became {len(groups)}.")
    for group, task in zip(groups, tasks, strict=True):
        require(group and all(e.task.id == task for e in group), "A group mixes tasks, or is empty.")
    again = [[e.trajectory.total_reward for e in group] for group in played(entry)]
    require(
        again == [[e.trajectory.total_reward for e in group] for group in groups],
        "Chance is not derived from seeds.",
    )
    for name in entry.gives:
        turns = [turn for group in groups for e in group for turn in e.trajectory.turns]
        require(
            any(name in turn.signals for turn in turns), f"No turn has {name!r}, which it declares to give."
        )
    return f"{sum(map(len, groups))} episodes"


REQUIREMENTS: dict[str, Requirements] = {
    "reward": {
        **EVERY_PART,
        "pure, and keeps the reward components": reward_is_pure_and_keeps_the_components,
    },
    "judge": {**EVERY_PART, "writes what it gives": judge_writes_what_it_gives},
    "strategy": {**EVERY_PART, "plays the plan": strategy_plays_the_plan},
}
