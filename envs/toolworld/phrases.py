"""Phrases in which users say what is no request of their own: a yes, a question back, that they wait. No
split shares a phrase."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from random import Random

from turnwise.data_file import data_file
from turnwise.envs.toolworld.story import Story
from turnwise.tasks.core import Split


@functools.cache
def phrases() -> Mapping[str, tuple[str, ...]]:
    """Act → ways to say it (phrases.yaml)."""
    return data_file("turnwise.envs.toolworld", "phrases", dict[str, tuple[str, ...]])


def pool(ways: tuple[str, ...], split: Split) -> tuple[str, ...]:
    """The ways of a split: no two splits share one, where there are three or more.

    >>> [pool(("a", "b", "c", "d", "e", "f"), split) for split in Split]
    [('a', 'b', 'c'), ('d',), ('e', 'f')]
    """
    if len(ways) < 3:
        return ways
    held = max(1, len(ways) // 3)
    dev = max(1, held // 2)
    start = len(ways) - held - dev
    parts = {Split.TRAIN: ways[:start], Split.DEV: ways[start : start + dev], Split.TEST: ways[start + dev :]}
    return parts[split]


def draw_voice(rng: Random, split: Split) -> dict[str, str]:
    """One phrase of the split for each act."""
    return {act: rng.choice(pool(ways, split)) for act, ways in phrases().items()}


def phrase(story: Story, act: str) -> str:
    """Return the phrase of this story's user for an act."""
    return story.voice.get(act) or phrases()[act][0]
