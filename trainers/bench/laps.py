"""Laps of ``turnwise bench update``: a side's work and its seconds, a check that two sides did the same, and counted operations."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from turnwise.agents.core import Episode
from turnwise.errors import RunError
from turnwise.tasks.core import Task
from turnwise.trainers.learn.collate import collate_rows
from turnwise.trainers.learn.tree import count_nodes

RECIPE = "shop-quick"
TRL = "trl_transformers"
ALIKE = 0.01
"""By how much the tokens that two sides read may differ: the environment's answers to what the policy happens to say."""


class UpdateWorkload(NamedTuple):
    """The size of the runs.

    ``skipped`` updates at the beginning of each, at least one, are not counted. ``engines`` are Turnwise's. ``trl_rows`` is how many
    rows a forward pass of TRL's takes at most; 32 of the longest are as many tokens as the recipe's ``micro_tokens``. ``turns`` is what an episode has in
    the runs whose turns grow by ``times``, of ``grown_groups`` groups an update, played by the last of ``engines``; none where there are no
    ``times``. ``model`` is a published one's folder that takes the place of the recipe's small one.
    """

    groups: int = 8
    group_size: int = 8
    updates: int = 2
    skipped: int = 1
    engines: tuple[str, ...] = ("torch", "vllm")
    trl: tuple[str, ...] | None = (
        None  # what TRL generates with; None: transformers and vllm, where they are installed
    )
    trl_rows: int = 32
    threads: int = 0  # 0: torch's own number
    turns: int = 4
    times: tuple[int, ...] = (2, 4, 8)
    grown_groups: int = 2
    model: str = ""


class UpdateLap(NamedTuple):
    """An update: its seconds, and what it did."""

    seconds: float
    play_s: float
    learn_s: float
    push_s: float
    episodes: int
    turns: int
    sampled: int  # tokens of the policy, all of which are trained on
    read: int  # tokens of whole episodes, prompts and answers of the environment among them
    steps: int  # of the optimizer


class Played(NamedTuple):
    """A run: its updates that count, the tasks of all its groups in order, the threads that it had, and its :func:`token_ratio`."""

    laps: Sequence[UpdateLap]
    tasks: Sequence[Task]
    threads: int
    token_ratio: float = 1.0


def middle(laps: Sequence[UpdateLap], field: str) -> float:
    return statistics.median(getattr(lap, field) for lap in laps)


def check_alike(sides: Mapping[str, Played]) -> None:
    """Refuse to compare what did not do the same.

    Raises:
        RunError: two sides differ in episodes, turns, steps, sampled tokens or threads, or by more than :data:`ALIKE` in tokens that were read.
    """
    (name, first), *others = sides.items()
    for other, played in others:
        for what in ("episodes", "turns", "steps", "sampled", "read"):
            a, b = (middle(side.laps, what) for side in (first, played))
            if abs(a - b) > (ALIKE * a if what == "read" else 0):
                raise RunError(
                    f"An update of {name} had {a:g} {what}, one of {other} {b:g}: their times compare nothing.",
                    "Report it: the benchmark means them to be equal.",
                )
        if first.threads != played.threads:
            raise RunError(
                f"{name} had {first.threads} threads and {other} {played.threads}.", "Set OMP_NUM_THREADS."
            )


def token_ratio(groups: Sequence[Sequence[Episode]]) -> float:
    """Return how many times fewer distinct prefixes groups have than tokens in their rows."""
    rows = [collate_rows([episode.trajectory for episode in group]) for group in groups]
    tokens = sum(int(own.length_R.sum()) for own in rows)
    return tokens / sum(count_nodes(own.token_RT, own.length_R) for own in rows)


def multiply_adds(lap: UpdateLap, sizes: Mapping[str, Any]) -> float:
    """Of one forward pass over what an update played; each pass over its tokens, forward or backward, is a multiple of it."""
    layers, width, vocabulary = (int(sizes[name]) for name in ("layers", "width", "vocab_size"))
    length = lap.read / lap.episodes
    matrices = layers * (4 + 8) * width**2  # attention's four and those of the feed-forward layer
    attention = layers * width * length  # keys and values of half of the episode, on average
    return lap.read * (matrices + attention) + lap.sampled * width * vocabulary
