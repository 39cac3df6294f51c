"""Scores of an episode by what its log holds: signals of judges and of the run, returns, the policy's own confidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from turnwise.agents.core import Episode, Turn
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.trainers.audit.reading import LoggedGroups

FOLDS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "mean": lambda x: sum(x) / len(x),
    "product": math.prod,
    "last": lambda x: x[-1],
    "sum": sum,
}
"""From the scores of turns to the score of an episode."""
BUILT_IN = ("confidence", "return")


class Term(NamedTuple):
    """A weighted part of a score."""

    weight: float
    name: str


def terms(text: str) -> list[Term]:
    """A score as it is written: a signal's name, or several with weights.

    >>> terms("principle")
    [Term(weight=1.0, name='principle')]
    >>> terms("0.3*confidence+0.7*principle")
    [Term(weight=0.3, name='confidence'), Term(weight=0.7, name='principle')]
    """
    found: list[Term] = []
    for part in text.split("+"):
        weight, star, name = part.rpartition("*")
        try:
            found.append(Term(float(weight) if star else 1.0, name.strip()))
        except ValueError:
            raise TurnwiseError(
                f"{part!r} is no part of a score.", "Write score=NAME or score=0.3*confidence+0.7*NAME."
            ) from None
    return found


def turn_scores(played: LoggedGroups, name: str) -> list[list[list[float]]]:
    """A signal's value on every turn, by group and episode; ``confidence`` is the mean log-probability of a turn's tokens.

    Raises:
        TurnwiseError: a turn has none.
    """
    return [
        [[_of_turn(turn, name, played) for turn in e.trajectory.turns] for e in g.episodes]
        for g in played.groups
    ]


def episode_scores(played: LoggedGroups, score: str, fold: str) -> list[list[float]]:
    """The score of each episode by group: Σ weight · fold(turns).

    Raises:
        TurnwiseError: a part of it is not in the log, or nothing folds that way.
    """
    if fold not in FOLDS:
        raise NotFoundError("way from turns to episodes", fold, FOLDS)
    if not score:
        raise TurnwiseError(
            f"No score is named by which episodes of {played.label} are ranked; its turns have {_signals(played) or 'no signals'}.",
            "`--set score=NAME`; `--judge NAME` labels the episodes first, and score=confidence is the policy's own.",
        )
    parts = terms(score)
    by_turn = {term.name: turn_scores(played, term.name) for term in parts}
    return [
        [
            sum(term.weight * FOLDS[fold](by_turn[term.name][g][i]) for term in parts)
            for i in range(len(group.records))
        ]
        for g, group in enumerate(played.groups)
    ]


def _of_turn(turn: Turn, name: str, played: LoggedGroups) -> float:
    if name == "return":
        return turn.reward
    if name == "confidence":
        if not turn.reply.logprobs:
            raise TurnwiseError(
                f"{played.label} has no log-probabilities of what was sampled, so that there is no confidence.",
                "A model that samples here records them: `turnwise eval SUITE --policy vllm:PATH --out FOLDER` (served models have none).",
            )
        return sum(turn.reply.logprobs) / len(turn.reply.logprobs)
    if name not in turn.signals:
        has = _signals(played)
        raise TurnwiseError(
            f"{played.label} has no signal {name!r} on some turn; its turns have {has or 'none'}.",
            "`--judge NAME` labels the episodes (judges: `turnwise list judge`); a run logs the signals that its recipe measures.",
        )
    return turn.signals[name]


def _signals(played: LoggedGroups) -> str:
    names = sorted(
        {name for episode in played.episodes for turn in episode.trajectory.turns for name in turn.signals}
    )
    return ", ".join([*names, *BUILT_IN]) if names else ""


def turns_of(episode: Episode) -> int:
    """Number of turns of the first agent."""
    return len(episode.trajectory.turns)
