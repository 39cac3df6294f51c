"""An engine that answers with tokens it was given: for replays, and for tests without a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from turnwise.agents.core import Completion, Sampling, VersionSpan
from turnwise.errors import EngineError


class RecordedCall(NamedTuple):
    """One call of :meth:`RecordedEngine.generate`."""

    prompt_ids: tuple[int, ...]
    sampling: Sampling
    stop_ids: tuple[int, ...]
    seed: int


class RecordedEngine:
    """Answers the n-th call with the n-th record, cut at its first stop token and at ``max_tokens``.

    Its choice is certain, so every log-probability is 0. ``asked`` keeps what it was given.
    """

    def __init__(
        self, records: Iterable[Sequence[int]], *, context_length: int = 1 << 20, version: int = 0
    ) -> None:
        self.context_length = context_length
        self.version = version
        self.asked: list[RecordedCall] = []
        self._records: Iterator[Sequence[int]] = iter(records)

    async def generate(
        self, prompt_ids: Sequence[int], sampling: Sampling, *, stop_ids: Sequence[int], seed: int
    ) -> Completion:
        self.asked.append(RecordedCall(tuple(prompt_ids), sampling, tuple(stop_ids), seed))
        record = next(self._records, None)
        if record is None:
            raise EngineError(f"Only {len(self.asked) - 1} replies were recorded.", "Ask for fewer turns.")
        ends = [place for place, token in enumerate(record) if token in stop_ids]
        said = tuple(record[: ends[0] + 1] if ends else record)[: sampling.max_tokens]
        stopped = bool(said) and said[-1] in stop_ids
        return Completion(said, (0.0,) * len(said), stopped, (VersionSpan(0, self.version),))

    def close(self) -> None:
        """Nothing is held."""
