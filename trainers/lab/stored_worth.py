"""Worth of stored episodes before anything is trained on them: how good they are, and how much they have tried.

``python -m turnwise.trainers.lab.stored_worth LOG --random LOG --best LOG`` prints both, from three episode logs of one suite: the stored
episodes, those of a policy that acts at random, and those that the best policy known played or was trained on.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import LogReader
from turnwise.errors import TurnwiseError
from turnwise.trainers.kit.spoken import spoken

Pair = tuple[str, str]


class StoredWorth(NamedTuple):
    """TQ and SACo of stored episodes (Schweighofer et al. 2022).

    Attributes:
        quality: TQ, the success rate from 0, that of the random policy, to 1, that of the best; None where these are equal.
        coverage: SACo, how many different pairs of a state and an action there are, as a share of those of the best policy's
            episodes in as many turns; it may be above 1.
        log_coverage: the same of the logarithms; None where a log has one pair.
        turns: how many turns of each were counted.
    """

    quality: float | None
    coverage: float
    log_coverage: float | None
    turns: int


def worth(stored: Sequence[Episode], by_chance: Sequence[Episode], best: Sequence[Episode]) -> StoredWorth:
    """TQ and SACo; actions are equal if they say the same but for case and white space.

    Where TQ is high imitation suffices; methods that stay near what was stored want both, and those that look for what is better
    in it want SACo. The paper says so of deterministic worlds; in others a state's pairs are met by luck as well.

    Raises:
        TurnwiseError: a log has no turn.
    """
    rates = [_rate(log) for log in (stored, by_chance, best)]
    told, known = _pairs(stored), _pairs(best)
    turns = min(len(told), len(known))
    if not turns:
        raise TurnwiseError(
            "A log without a turn has no pair of a state and an action.", "Give logs of played episodes."
        )
    mine, theirs = len({*told[:turns]}), len({*known[:turns]})
    return StoredWorth(
        quality(*rates), mine / theirs, math.log(mine) / math.log(theirs) if theirs > 1 else None, turns
    )


def quality(stored: float, by_chance: float, best: float) -> float | None:
    """Return where the stored episodes are between chance (0) and the best (1); None where there is nothing between.

    >>> quality(45, 5, 105), quality(1, 1, 1)
    (0.4, None)
    """
    return None if best == by_chance else (stored - by_chance) / (best - by_chance)


def _rate(episodes: Sequence[Episode]) -> float:
    if not episodes:
        raise TurnwiseError(
            "A log without an episode that counts has no success rate.", "Play episodes first."
        )
    return sum(episode.success for episode in episodes) / len(episodes)


def _pairs(episodes: Sequence[Episode]) -> list[Pair]:
    """State and action of every turn of every agent, in order."""
    return [
        (turn.state_key, spoken(turn.action))
        for episode in episodes
        for trajectory in episode.trajectories.values()
        for turn in trajectory.turns
    ]


def _read(path: Path) -> list[Episode]:
    return [record.episode for record in LogReader(path) if record.episode.outcome.counts]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser("stored_worth", description="TQ and SACo of stored episodes.")
    parser.add_argument("stored", type=Path)
    parser.add_argument("--random", type=Path, required=True, help="episodes of a policy that acts at random")
    parser.add_argument("--best", type=Path, required=True, help="episodes of the best policy known")
    given = parser.parse_args(arguments)
    try:
        found = worth(_read(given.stored), _read(given.random), _read(given.best))
    except TurnwiseError as error:
        print(f"{error.cause}\n→ {error.remedy}", file=sys.stderr)
        return 1
    shown = (
        f"{name} {'–' if x is None else format(x, '.4f')}"
        for name, x in zip(("TQ", "SACo", "log SACo"), found[:3], strict=True)
    )
    print(f"{', '.join(shown)}; of {found.turns} turns each")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
