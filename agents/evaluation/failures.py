"""Failed episodes, which do not count: their causes, and the bounds that they leave for success."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from turnwise.agents.core import Episode
from turnwise.agents.evaluation.statistics import Interval
from turnwise.errors import TurnwiseError

MAX_FAILED = 0.1
FEW = 0.01
"""Up to this share of episodes that do not count, success is one figure and no bound."""

_MOST_CAUSES = 5
_LONGEST = 300
_PLACE = re.compile(r" ?\((?:it stood at )?([^()\s]+:\d+)(?: in [^()]+)?\)")
_NUMBER = re.compile(r"\d+")


class Cause(NamedTuple):
    """Why episodes did not count: their outcome, the first one's message, whose line it was, how many they are."""

    outcome: str
    message: str
    place: str  # file:line of the author's code; empty where the message names none
    episodes: int

    def __str__(self) -> str:
        return f"{self.episodes} × {self.outcome}{self.place and f' at {self.place}'}: {self.message}"


def check_max_failed(max_failed: float) -> None:
    """Refuse a value that is not a share between 0 and 1."""
    if not 0 <= max_failed <= 1:
        raise TurnwiseError(f"max_failed is {max_failed:g}.", "It is a share of the episodes, from 0 to 1.")


def causes(episodes: Iterable[Episode]) -> tuple[Cause, ...]:
    """The most frequent causes for which episodes do not count; messages that differ in numbers only are one."""
    found: dict[tuple[str, ...], Cause] = {}
    for episode in episodes:
        if episode.outcome.counts:
            continue
        message, place = _apart(episode.error)
        kind = (message.partition(":")[0], place) if place else (_NUMBER.sub("#", message),)
        key = (episode.outcome.value, *kind)
        known = found.get(key, Cause(episode.outcome.value, message, place, 0))
        found[key] = known._replace(episodes=known.episodes + 1)
    return tuple(sorted(found.values(), key=lambda cause: -cause.episodes)[:_MOST_CAUSES])


def is_bounded(interval: Interval, bound: Interval, failed_share: float) -> bool:
    """Return whether success must be reported as a bound, since failures leave more uncertainty than chance."""
    return failed_share > FEW or bound.high - bound.low > interval.high - interval.low


def bound(success: float, counting: int, excluded: int) -> Interval:
    """Success if every episode that does not count had failed, and if every one had been solved.

    >>> [round(end, 3) for end in bound(1.0, 10, 10)], bound(0.25, 8, 0)
    ([0.5, 1.0], Interval(low=0.25, high=0.25))
    """
    if not excluded:
        return Interval(success, success)
    total, solved = counting + excluded, success * counting
    return Interval(solved / total, (solved + excluded) / total)


def _apart(error: str) -> tuple[str, str]:
    """The message in one line, and the place that it names last."""
    said = " ".join(error.split()) or "no message"
    places = list(_PLACE.finditer(said))
    if not places:
        return _short(said), ""
    last = places[-1]
    return _short(said[: last.start()] + said[last.end() :]), last[1]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def nothing_counts(episodes: Sequence[Episode], outcomes: Mapping[str, int]) -> TurnwiseError:
    """Return the error of an evaluation in which not a single episode counts."""
    if not episodes:
        return TurnwiseError("There are no episodes to evaluate.", "Play at least one.")
    counted = ", ".join(f"{n} {outcome}" for outcome, n in outcomes.items())
    return TurnwiseError(
        f"None of the {len(episodes)} episodes can be judged ({counted}).",
        f"Fix this first: {causes(episodes)[0]}",
    )
