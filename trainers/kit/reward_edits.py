"""Helpers to replace rewards: episodes are immutable, and a turn's reward is the sum of its components."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from turnwise.agents.core import Episode, Turn
from turnwise.errors import RecipeError

Turns: TypeAlias = Sequence[Turn]


def components_of(turn: Turn) -> Mapping[str, float]:
    """The payments of a turn by reward component; what was never itemised is taken as ``outcome``."""
    return turn.rewards or {"outcome": turn.reward}


def part_total(turns: Turns, part: str) -> float:
    """The sum of one reward component.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> turns = episode([0.5, 0.25]).trajectory.turns
    >>> part_total(turns, "outcome"), part_total([turns[0], dataclasses.replace(turns[1], rewards={})], "outcome")
    (0.75, 0.75)
    """
    return sum(components_of(turn).get(part, 0.0) for turn in turns)


def with_part(turn: Turn, part: str, value: float) -> Turn:
    """The turn with one reward component replaced; its reward is the new sum.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> turn = with_part(episode([0.5]).trajectory.turns[0], "cost", -0.125)
    >>> turn.reward, dict(turn.rewards)
    (0.375, {'outcome': 0.5, 'cost': -0.125})
    """
    rewards = {**components_of(turn), part: value}
    return dataclasses.replace(turn, reward=float(sum(rewards.values())), rewards=rewards)


def signal_of(turn: Turn, signal: str) -> float:
    """A signal of a turn, to be paid.

    Raises:
        RecipeError: the turn has none of this name.
    """
    if signal not in turn.signals:
        known = ", ".join(sorted(turn.signals)) or "none"
        raise RecipeError(
            f"A turn has no signal {signal!r} to be paid (it has {known}).",
            "Name a judge, a strategy or a signal that gives it.",
        )
    return turn.signals[signal]


def with_signals(episode: Episode, signals: Sequence[Mapping[str, float]]) -> Episode:
    """The episode with these signals added to the turns of its first trajectory, one mapping per turn."""
    first = episode.trajectory
    turns = tuple(
        dataclasses.replace(turn, signals={**turn.signals, **more})
        for turn, more in zip(first.turns, signals, strict=True)
    )
    changed = dataclasses.replace(first, turns=turns)
    return dataclasses.replace(episode, trajectories={**episode.trajectories, first.agent: changed})


def replace_turns(episode: Episode, change: Callable[[Turns], Turns]) -> Episode:
    """The episode with the turns of every trajectory replaced."""
    return dataclasses.replace(
        episode,
        trajectories={
            name: dataclasses.replace(trajectory, turns=tuple(change(trajectory.turns)))
            for name, trajectory in episode.trajectories.items()
        },
    )


def paid_on_last(turns: Turns, part: str, value: float) -> Turns:
    """The turns with one reward component paid on the last of them, and on no other.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> turns = episode([0.5, 0.5], parts={"cost": [-1, -1]}).trajectory.turns
    >>> [turn.reward for turn in paid_on_last(turns, "cost", -0.25)]
    [0.5, 0.25]
    """
    return [with_part(turn, part, value if turn is turns[-1] else 0.0) for turn in turns]


def paid_instead(turns: Turns, value: float) -> Turns:
    """The turns with this as the outcome of the last, and nothing else paid."""
    return paid_each(turns, [value if turn is turns[-1] else 0.0 for turn in turns])


def paid_each(turns: Turns, values: Sequence[float]) -> Turns:
    """The turns with these as their outcomes, and nothing else paid."""
    return [
        dataclasses.replace(
            turn, reward=earned, rewards={**dict.fromkeys(turn.rewards, 0.0), "outcome": earned}
        )
        for turn, earned in zip(turns, values, strict=True)
    ]


def told_number(turn: Turn, detail: str) -> float:
    """A number that the environment told of a turn in its details; 0 where it told none.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> [turn] = episode([1], details=[{"entities": 0.5, "form": "date"}]).trajectory.turns
    >>> told_number(turn, "entities"), told_number(turn, "form"), told_number(turn, "more")
    (0.5, 0.0, 0.0)
    """
    told = turn.details.get(detail, 0.0)
    return float(told) if isinstance(told, (int, float)) else 0.0


def told_text(turn: Turn, detail: str) -> str:
    """A text that the environment told of a turn in its details; empty where it told none."""
    told = turn.details.get(detail, "")
    return told if isinstance(told, str) else ""


def told_list(turns: Turns, detail: str) -> list[str]:
    """A list that the environment told last in its details, as texts; empty where it told none.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> turns = episode([0, 1, 0], details=[{"read": [3]}, {"read": [3, 8]}, {}]).trajectory.turns
    >>> told_list(turns, "read"), told_list(turns, "cited")
    (['3', '8'], [])
    """
    for turn in reversed(turns):
        if isinstance(told := turn.details.get(detail), (list, tuple)):
            return [str(one) for one in told]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return []


def sampled_tokens(turns: Turns) -> int:
    """The number of tokens of all messages."""
    return sum(len(turn.reply.action_ids) for turn in turns)


def is_formed(episode: Episode, turns: Turns) -> bool:
    """Say whether there is an answer and the environment could read every act."""
    return has_answer(episode, turns) and not any(turn.bad_action for turn in turns)


def has_answer(episode: Episode, turns: Turns) -> bool:
    """Say whether the episode ended by an act that the environment could read, rather than by a limit."""
    cut = episode.end is not None and episode.end.truncated
    return bool(turns) and not cut and not turns[-1].bad_action and not turns[-1].details.get("malformed")
