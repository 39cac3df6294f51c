"""Credit that every rule would give the turns of a logged group, whatever rule it was trained with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from turnwise.agents.core import Episode
from turnwise.errors import TurnwiseError
from turnwise.extras import needing

if TYPE_CHECKING:
    from torch import Tensor


_ROUNDING = 1e-12
"""Advantages that are not larger are 0 but for rounding."""


class RuleGiven(NamedTuple):
    """A rule's advantages on one episode, turn by turn; where it could not be applied, why."""

    name: str
    bias: str
    advantages: tuple[float, ...]
    largest: float
    why_not: str = ""


class GroupGiven(NamedTuple):
    """Credit that rules give an episode among its siblings."""

    siblings: int
    applied: tuple[RuleGiven, ...]
    others: tuple[RuleGiven, ...]


@needing("what other credit rules would give", extra="train")
def credit_of(group: Sequence[Episode], member: int) -> GroupGiven:
    """Apply every credit rule to a group as it was logged: with the environment's rewards, and the signals in its turns.

    A rule that needs what was not logged (a learned value, forks) is named with what it lacks. Episodes that do not count
    are left out, as in training.

    Args:
        group: the siblings, this episode among them.
        member: which of them is asked about.

    Raises:
        MissingDependencyError: torch is not installed.
    """
    counting = [index for index, episode in enumerate(group) if episode.outcome.counts]
    if member not in counting:
        return GroupGiven(len(counting), (), ())
    from turnwise.registry import components
    from turnwise.trainers.learn.collate import collate_turns

    episodes = [group[index] for index in counting]
    batch = collate_turns([episodes])
    signals = dict(batch.signals) | _sampled(episodes)
    batch = dataclasses.replace(batch, signals=signals)
    row, turns = counting.index(member), len(group[member].trajectory.turns)
    found: list[RuleGiven] = []
    for entry in components("credit"):
        missing = sorted(need for need in entry.needs_with({}) if need not in signals)
        if missing:
            why = f"needs {', '.join(missing)}, which the log does not hold"
            found.append(RuleGiven(entry.name, entry.bias, (), 0.0, why))
            continue
        try:
            given_BK = entry.build({})(batch)
        except (TurnwiseError, RuntimeError, ValueError, KeyError, IndexError, TypeError) as error:
            found.append(RuleGiven(entry.name, entry.bias, (), 0.0, f"{type(error).__name__}: {error}"[:200]))
            continue
        given = tuple(float(x) if abs(x) > _ROUNDING else 0.0 for x in given_BK[row][:turns])
        found.append(RuleGiven(entry.name, entry.bias, given, max(map(abs, given), default=0.0)))
    return GroupGiven(
        len(counting),
        tuple(rule for rule in found if not rule.why_not),
        tuple(rule for rule in found if rule.why_not),
    )


def _sampled(episodes: Sequence[Episode]) -> dict[str, Tensor]:
    """Of turns that a model sampled: how many tokens, and how likely; nothing where any of them is unknown."""
    turns = [turn for episode in episodes for turn in episode.trajectory.turns]
    if not turns or not all(
        turn.reply.action_ids and len(turn.reply.logprobs) == len(turn.reply.action_ids) for turn in turns
    ):
        return {}
    from turnwise.trainers.learn.collate import collate
    from turnwise.trainers.signal.sampled import logp_and_tokens

    return dict(logp_and_tokens(collate([episodes])))
