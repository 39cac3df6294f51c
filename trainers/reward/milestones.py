"""Milestones: states that solved attempts have in common are paid where they are reached first."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from turnwise.agents.core import Episode, Turn
from turnwise.agents.log.episode_log import read_episodes
from turnwise.errors import RecipeError, RunError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import Turns, replace_turns, with_part


@component("reward", "milestones")
def milestones(group: Group, *, path: str = "", weight: float = 0.5, share: float = 1.0) -> Group:
    """``weight``/M for each of the M milestones of a task, on the turn that first led to it; what the environment paid stays.

    A milestone is a state, other than the first, in which at least ``share`` of the solved demonstrations of the task acted. The demonstrations are the
    episodes of the log at ``path``; without one, the group's own successes, so that a group that nobody solved earns nothing (ours). A reward learned
    from a few demonstrations by matching their intermediate stages, as unsupervised perceptual rewards are; these cut films of robots into
    stages by the features of a network that knows pictures, and so match states that were never seen, where here they must be the same.

    Worked by hand: a and b stand in both demonstrations, c in one; s is where the task begins.

    >>> sorted(common([["s", "a", "c", "b"], ["s", "b", "a"]], 1.0)), sorted(common([["s", "a", "c"], ["s", "b"]], 0.5))
    (['a', 'b'], ['a', 'b', 'c'])
    >>> reached(["s", "c", "a", "s", "a"], {"a", "b"})  # by the turn in c
    [1]

    Raises:
        RecipeError: the weight is below 0, or the share is not above 0 and at most 1.
        RunError: when it pays: there is no such log, or nothing in it was solved.
    """
    not_below_zero("reward 'milestones'", weight=weight)
    if not 0 < share <= 1:
        raise RecipeError(f"reward 'milestones': share={share:g}.", "Give a share above 0, at most 1.")
    solved = [one for one in group if one.success and one.outcome.counts]
    if path:
        tasks = {one.task.id for one in group}
        solved = [one for one in _demonstrations(path) if one.task.id in tasks]
    wanted = common([_states(one.trajectory.turns) for one in solved], share)

    def pay(turns: Turns) -> list[Turn]:
        led = reached(_states(turns), wanted)
        return [
            with_part(turn, "milestones", weight / len(wanted) if k in led else 0.0)
            for k, turn in enumerate(turns)
        ]

    return [replace_turns(one, pay) for one in group]


def common(attempts: Sequence[Sequence[str]], share: float) -> set[str]:
    """The states of at least this share of the attempts, but for those in which one begins."""
    met = Counter(state for states in attempts for state in {*states})
    return {state for state, count in met.items() if count >= share * len(attempts)} - {
        one[0] for one in attempts if one
    }


def reached(states: Sequence[str], wanted: Iterable[str]) -> list[int]:
    """The turns after which a wanted state was met for the first time."""
    return sorted(states.index(state) - 1 for state in wanted if state in states and state != states[0])


def _states(turns: Turns) -> list[str]:
    return [turn.state_key for turn in turns]


def _demonstrations(path: str) -> list[Episode]:
    log = Path(path).resolve()
    if not log.is_file() or not (found := _solved(str(log), log.stat().st_mtime_ns)):
        raise RunError(
            f"reward 'milestones': {path} has no solved episode.",
            "Name the episodes.jsonl.zst of a run or an evaluation that solved tasks, such as `turnwise eval SUITE --split train --policy scripted:gold --out FOLDER`.",
        )
    return found


@functools.lru_cache(maxsize=4)
def _solved(path: str, written_ns: int) -> list[Episode]:
    """The solved episodes of a log; what is written later is read anew."""
    return [one for one in read_episodes(path) if one.success and one.outcome.counts]
