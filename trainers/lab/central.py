"""Tasks whose score by a critic is neither low nor high: ``python -m turnwise.trainers.lab.central LOG OUT.json [--signal principle --low 0.25 --high 0.75]``.

Rubric Anchors (Rubicon) trains on the prompts whose critic score lies in the central quantile band, since those of the tails teach
little or are noise. A task's score is the mean over its episodes of the signal's mean over turns; the log has it from ``trainers/lab/labelled.py``, or from a run with
that judge. OUT is a list of ids, which ``sampler: {name: listed, tasks: OUT.json}`` plays. Ours: the quantiles, which no source gives, by linear interpolation,
both ends within.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean

from turnwise.agents.core import Episode
from turnwise.agents.log.episodes import load_episodes
from turnwise.durable import write_whole
from turnwise.errors import TurnwiseError


def scores_of(episodes: Iterable[Episode], signal: str) -> dict[str, float]:
    """The mean score of each task by its id; episodes without the signal say nothing.

    >>> from turnwise.trainers.kit.reward_edits import with_signals
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> two = [with_signals(episode([0, 0]), [{"rubric": a}, {"rubric": b}]) for a, b in ((0, 1), (1, 1))]
    >>> [*scores_of([*two, episode([0])], "rubric").values()]
    [0.75]
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        told = [turn.signals[signal] for turn in episode.trajectory.turns if signal in turn.signals]
        if told and episode.outcome.counts:
            found[episode.task.id].append(mean(told))
    return {task: mean(scores) for task, scores in found.items()}


def quantile(scores: Sequence[float], share: float) -> float:
    """The quantile with linear interpolation between neighbours.

    >>> [round(quantile([0.2, 0.5, 0.6, 0.7, 0.9, 2.5], q), 6) for q in (0.1, 0.9, 0, 1)]
    [0.35, 1.7, 0.2, 2.5]
    """
    rising = sorted(scores)
    place = share * (len(rising) - 1)
    below = int(place)
    above = min(below + 1, len(rising) - 1)
    return rising[below] + (place - below) * (rising[above] - rising[below])


def central(scores: Mapping[str, float], low: float, high: float) -> list[str]:
    """The tasks whose score lies between two quantiles.

    >>> central({"a": 0.2, "b": 0.5, "c": 0.6, "d": 0.7, "e": 0.9, "f": 2.5}, 0.1, 0.9)
    ['b', 'c', 'd', 'e']
    """
    least, most = quantile([*scores.values()], low), quantile([*scores.values()], high)
    return sorted(task for task, score in scores.items() if least <= score <= most)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the list of tasks, and say how many it has."""
    parser = argparse.ArgumentParser(prog="python -m turnwise.trainers.lab.central")
    parser.add_argument("log", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--signal", default="principle")
    parser.add_argument("--low", type=float, default=0.25)
    parser.add_argument("--high", type=float, default=0.75)
    given = parser.parse_args(arguments)
    if not 0 <= given.low < given.high <= 1:
        raise TurnwiseError(
            f"[{given.low:g}, {given.high:g}] is no band of quantiles.", "Give 0 ≤ low < high ≤ 1."
        )
    scores = scores_of((one.episode for one in load_episodes(given.log).records), given.signal)
    if not scores:
        raise TurnwiseError(
            f"No episode of {given.log} has the signal {given.signal!r}.",
            "Label it first: `python -m turnwise.trainers.lab.labelled LOG OUT --judge principles`.",
        )
    kept = central(scores, given.low, given.high)
    write_whole(given.out, json.dumps(kept))
    print(
        f"{len(kept)} of {len(scores)} tasks lie between the quantiles {given.low:g} and {given.high:g}: {given.out}"
    )


if __name__ == "__main__":
    main()
