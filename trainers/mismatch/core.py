"""Rows of a log, explanations of what they say, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from turnwise.tasks.core import Json

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Truths = NDArray[np.bool_]
FAULTS = (
    "none",
    "stale_weights",
    "missing_adapter",
    "retokenized_history",
    "truncated_sampling",
    "temperature",
    "wrong_template",
    "wrong_end_token",
    "quantized_engine",
)
"""Names of answers, as docs/how-to/mismatch.md explains them."""


class DeclaredSampling(NamedTuple):
    """Settings with which a row's tokens were drawn, as the trainer believes; those that change nothing are the defaults."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0


PLAIN = DeclaredSampling()
"""Settings that leave the distribution as it is."""


class LoggedRow(NamedTuple):
    """A sequence of tokens, as the trainer reads it.

    Attributes:
        number: its place in the file, from 0.
        ids: all tokens.
        turns: the span [start, end) of each turn of the model.
        logprobs: one for each token, as the engine reported them; NaN where none is known.
        declared: the settings that the trainer believes in.
        raw: the log-probabilities are of the model's own distribution; None: nobody says.
        messages: the conversation, where it is known.
        tools: that the conversation's model may call.
        episode: what the rows of one episode have in common; "" where nobody says.
        turn: of the row's first turn, where each call of the engine is a row; None where nobody says.
        version: of the weights, as the framework believes.
    """

    number: int
    ids: tuple[int, ...]
    turns: tuple[tuple[int, int], ...]
    logprobs: tuple[float, ...]
    declared: DeclaredSampling = PLAIN
    raw: bool | None = None
    messages: tuple[Mapping[str, Any], ...] | None = None
    tools: tuple[Mapping[str, Any], ...] | None = None
    episode: str = ""
    turn: int | None = None
    version: int | None = None

    @property
    def pieces(self) -> Iterator[tuple[int, ...]]:
        """The tokens before each turn, which nobody sampled, and those after the last."""
        at = 0
        for start, stop in self.turns:
            yield self.ids[at:start]
            at = stop
        yield self.ids[at:]


class FaultPlace(NamedTuple):
    """A sampled token: its row in the file, the turn in the row and the place in the turn, each from 0."""

    row: int
    turn: int
    token: int

    def __str__(self) -> str:
        return f"row {self.row + 1}, turn {self.turn + 1}, token {self.token + 1}"


@dataclass(frozen=True)
class Explanation:
    """A fault that may have made a log what it is.

    Attributes:
        fault: its name.
        words: its kind and size in words, as the rest of a sentence that begins with the fault.
        expected_N: the log-probabilities that it leads one to expect, for each sampled token; NaN where nothing was computed.
        evidence: of explanations that rest on the choice of tokens or on ids alone: the logarithm of an e-value, in nats.
        begins: where it begins, if the explanation knows; else where the log leaves the model.
        data: size and kind in plain values.
    """

    fault: str
    words: str
    expected_N: Floats | None = None
    evidence: float = 0.0
    begins: FaultPlace | None = None
    data: Mapping[str, Json] = field(default_factory=dict[str, Json])


class RankedFault(NamedTuple):
    """An explanation beside the others: the share of the differences that it leaves, and its evidence."""

    fault: str
    words: str
    left: float | None
    evidence: float


@dataclass(frozen=True)
class MismatchReport:
    """The answer.

    Attributes:
        fault: its name, or ``none``.
        confidence: between 0 and 1.
        said: the evidence in words, the verdict first.
        begins: where it begins; None without a fault.
        figures: sizes, by name.
        ranked: the explanations that were tried, the best first.
        data: kind and size of the fault in plain values.
        notes: about what was left out.
    """

    fault: str
    confidence: float
    said: Sequence[str]
    begins: FaultPlace | None
    figures: Mapping[str, float]
    ranked: Sequence[RankedFault] = ()
    data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    notes: Sequence[str] = ()

    def to_json(self) -> dict[str, Json]:
        """One JSON object; places count from 0."""
        return {
            "fault": self.fault,
            "confidence": round(self.confidence, 3),
            "said": [*self.said],
            "begins": self.begins._asdict() if self.begins else None,
            "figures": dict(self.figures),
            "data": dict(self.data),
            "explanations": [one._asdict() for one in self.ranked],
            "notes": [*self.notes],
        }


Detector = Callable[..., Iterator[Explanation]]
"""From a :class:`~turnwise.trainers.mismatch.case.MismatchCase` to explanations."""
_Detects = TypeVar("_Detects", bound=Detector)
COST, NUMBERS = "__turnwise_mismatch_cost__", "__turnwise_mismatch_numbers__"


def detects(cost: int, *, numbers: bool = False) -> Callable[[_Detects], _Detects]:
    """Mark a function as the detector of its file. Those of a lower cost are asked first; what they explain is not asked of others.

    One that explains ``numbers`` alone is not asked where the log's are the model's to the digits.
    """

    def mark(find: _Detects) -> _Detects:
        setattr(find, COST, cost)
        setattr(find, NUMBERS, numbers)
        return find

    return mark
