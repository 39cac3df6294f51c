"""Cost of each part of an update: its seconds, and the tokens that were read or sampled for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from turnwise.agents.core import Episode


class PartMeter:
    """Adds up, by part, seconds and tokens.

    >>> meter, read = PartMeter(), [10]
    >>> with meter.of("teacher", lambda: read[0]):
    ...     read[0] += 5
    >>> sorted(meter.metrics), meter.metrics["teacher_tokens"]
    (['teacher_seconds', 'teacher_tokens'], 5.0)
    """

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}

    @contextmanager
    def of(self, part: str, tokens: Callable[[], int] | None = None) -> Iterator[None]:
        """Count what is done inside as the part's: ``PART_seconds``, and by how much ``tokens`` rises as ``PART_tokens``."""
        before = tokens() if tokens else 0
        began = time.perf_counter()
        yield
        self._add(f"{part}_seconds", time.perf_counter() - began)
        if tokens:
            self._add(f"{part}_tokens", tokens() - before)

    def _add(self, name: str, value: float) -> None:
        self.metrics[name] = self.metrics.get(name, 0.0) + value


def tokens_added(episodes: Sequence[Episode]) -> int:
    """Count the tokens that the turns of these episodes add: new ones of prompts, and chosen ones."""
    turns = [turn for one in episodes for said in one.trajectories.values() for turn in said.turns]
    return sum(len(turn.reply.prompt_ids) + len(turn.reply.action_ids) for turn in turns)
