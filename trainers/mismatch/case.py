"""A log under examination: its tokens scored once, the size of rounding, and passes over parts of it with other models."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from turnwise.trainers.mismatch.core import (
    PLAIN,
    DeclaredSampling,
    FaultPlace,
    Floats,
    Ints,
    LoggedRow,
    Truths,
)
from turnwise.trainers.mismatch.sampled import as_declared
from turnwise.trainers.mismatch.scoring import AskedPlaces, Distributions, distributions, in_half

FLOAT32 = 1e-4
"""Differences that rounding in float32, and of printed decimals, explains, in nats."""
MEAN, LARGEST = 3.0, 5.0
"""Gaps that are still rounding, as multiples of what rounding in half precision does to the model itself: on average, and at most. The same as
of the canary (trainers/learn/sync.py), which has seen 1.4 and 2.4 with the same weights."""
NOTHING = 0.05
"""A share of the differences that no wrong explanation leaves."""
FEWEST, FEW_SHARE = 8, 0.01
"""Tokens that have to be affected, and their share in the log, before anything is said of them."""
EXACT_SHARE, OF_HALF = 0.2, 0.02
"""Tokens that agree to the digits of float32, and to a hundredth of what bfloat16 does, of those that could differ: from this share on the engine did not compute
in half precision. Its rounding is then taken for this part of half precision's."""
_OF_NOISE = 400
_SURE = 0.05
"""Added to each token's unit, so that tokens that are nearly certain are not divided by nothing."""


class RoundingNoise(NamedTuple):
    """Differences that computing in half precision makes, in units: mean, spread and the largest."""

    mean: float
    spread: float
    largest: float


class MismatchModels(NamedTuple):
    """Models of a question.

    Attributes:
        model: that should have sampled.
        tokenizer: its own.
        without_adapter: the model without its adapter, made when it is wanted; None where it has none.
        also: other models by name, each loaded when it is wanted.
        ends: tokens that end a turn: the template's own first.
        engine_dtype: the precision in which the engine computed; None where nobody says: bfloat16, or float32 where the log shows it.
    """

    model: Any
    tokenizer: Any
    without_adapter: Callable[[], Any] | None = None
    also: Mapping[str, Callable[[], Any]] = {}
    ends: tuple[int, ...] = ()
    engine_dtype: torch.dtype | None = None


@dataclass(frozen=True)
class MismatchCase:
    """All sampled tokens of the rows that were scored, in order. Axis N: a sampled token.

    Attributes:
        rows: that were scored.
        models: that may be asked.
        row_N, turn_N, token_N: place in ``rows``, in the row's turns and in the turn.
        position_N: place in the row's ids.
        logged_N: the engine's log-probability; NaN where none is known.
        found: the model's distributions.
        raw_N: the log is of the model's own distribution, and not of the one that was sampled from.
        noise: what rounding does.
    """

    rows: Sequence[LoggedRow]
    models: MismatchModels
    row_N: Ints
    turn_N: Ints
    token_N: Ints
    position_N: Ints
    logged_N: Floats
    found: Distributions
    raw_N: Truths
    noise: RoundingNoise

    @functools.cached_property
    def declared_N(self) -> list[DeclaredSampling]:
        return [self.rows[row].declared for row in self.row_N]

    @functools.cached_property
    def expected_N(self) -> Floats:
        """Log-probabilities as this model would have reported them."""
        return as_declared(self.found, self.declared_N, self.raw_N)

    @functools.cached_property
    def unit_N(self) -> Floats:
        """The distance by which a token's log-probability moves where logits move by 1, independently: √(1 − 2p + Σp²)."""
        moved = np.maximum(1 - 2 * np.exp(self.found.logp_N) + self.found.square_N, 0)
        return np.sqrt(moved) + _SURE

    @functools.cached_property
    def gap_N(self) -> Floats:
        """Log minus model, in nats; NaN where the log says nothing."""
        return self.logged_N - self.expected_N

    @functools.cached_property
    def known_N(self) -> Truths:
        return np.isfinite(self.logged_N)

    @functools.cached_property
    def first_N(self) -> Ints:
        """For each token, the number of its row's first token."""
        return np.searchsorted(self.row_N, self.row_N)

    @functools.cached_property
    def affected_N(self) -> Truths:
        """Tokens of rows that differ from the model by more than rounding, from where they do so."""
        affected = np.zeros(len(self.row_N), bool)
        size_N = np.where(self.known_N, np.abs(self.gap_N) / self.unit_N, 0.0)
        for row in range(len(self.rows)):
            of_row = np.flatnonzero(self.row_N == row)
            onset = self._onset(size_N[of_row], self.known_N[of_row])
            if onset is not None:
                affected[of_row[onset:]] = True
        return affected

    @functools.cached_property
    def felt(self) -> bool:
        """The log differs from the model by more than rounding."""
        there_N = self.affected_N & self.known_N
        rows = len(np.unique(self.row_N[there_N]))
        known = self.known_N.sum()
        few = max(min(FEWEST, known), FEW_SHARE * known)
        return bool(known) and there_N.sum() >= few and rows >= min(2, len(self.rows))

    @functools.cached_property
    def looked_N(self) -> Truths:
        """Tokens that explanations are tried on: those that are affected, or all where the log is within rounding."""
        return (self.affected_N if self.felt else np.ones(len(self.row_N), bool)) & self.known_N

    def _onset(self, size_M: Floats, known_M: Truths) -> int | None:
        """Return the place in a row from which on it differs; None where it does not."""
        noise, n = self.noise, int(known_M.sum())
        if not n:
            return None
        most = LARGEST * noise.largest + 2 * FLOAT32
        mean = MEAN * noise.mean + 6 * noise.spread / math.sqrt(n) + FLOAT32
        beyond = np.flatnonzero(size_M > most)
        if size_M[known_M].mean() <= mean and not len(beyond):
            return None
        if not len(beyond):
            return 0
        first = int(beyond[0])
        typical = MEAN * noise.mean + FLOAT32
        while first and size_M[first - 1] > typical:
            first -= 1
        return first

    def place(self, n: int) -> FaultPlace:
        """The place of a sampled token."""
        row = self.rows[self.row_N[n]]
        return FaultPlace(row.number, int(self.turn_N[n]) + (row.turn or 0), int(self.token_N[n]))

    def some(self, wanted_N: Truths, tokens: int, most_read: int = 4000) -> Ints:
        """Return some of the tokens, of whole rows spread over the log, that cost a pass over few tokens."""
        rows = np.unique(self.row_N[wanted_N])
        order = rows[np.argsort([_spread(i, len(rows)) for i in range(len(rows))], kind="stable")]
        chosen, have, read = list[int](), 0, 0
        for row in order:
            length = len(self.rows[row].ids)
            if chosen and (have >= tokens or read + length > most_read):
                break
            chosen.append(row)
            have += int((wanted_N & (self.row_N == row)).sum())
            read += length
        return np.flatnonzero(wanted_N & np.isin(self.row_N, chosen))

    def asked(self, index_M: Ints) -> list[AskedPlaces]:
        """The sequences and places of some tokens, which stand in order."""
        found: list[AskedPlaces] = []
        for row in np.unique(self.row_N[index_M]):
            mine = index_M[self.row_N[index_M] == row]
            found.append(AskedPlaces(self.rows[row].ids, tuple(self.position_N[mine].tolist())))
        return found

    def by_another(self, model: Any, index_M: Ints) -> Floats:
        """Log-probabilities that another model leads one to expect for some tokens, for each of all; NaN elsewhere."""
        return self.reread(model, self.asked(index_M), index_M)

    def reread(self, model: Any, asked: Sequence[AskedPlaces], index_M: Ints) -> Floats:
        """The same where the tokens stand in other sequences."""
        declared = [self.declared_N[n] for n in index_M]
        usual = all(one == PLAIN for one in declared)
        found = distributions(model, asked, full=not usual)
        expected_N = np.full(len(self.row_N), np.nan)
        expected_N[index_M] = as_declared(found, declared, self.raw_N[index_M])
        return expected_N

    def of_turn(self, row: int, turn: int) -> Ints:
        """The tokens of a turn."""
        return np.flatnonzero((self.row_N == row) & (self.turn_N == turn))

    def after(self, prompt: Sequence[int], row: int, turn: int) -> Floats:
        """Log-probabilities that the tokens of a turn have after another prompt, in order."""
        start, stop = self.rows[row].turns[turn]
        own = self.rows[row].ids[start:stop]
        asked = AskedPlaces((*prompt, *own), tuple(range(len(prompt), len(prompt) + len(own))))
        index_M = self.of_turn(row, turn)
        return self.reread(self.models.model, [asked], index_M)[index_M]

    def left(self, expected_N: Floats, index_M: Ints | Truths) -> float:
        """The share of the differences that an explanation leaves, on some tokens; rounding counts as nothing."""
        before = np.abs(self.gap_N / self.unit_N)[index_M]
        after = np.abs((self.logged_N - expected_N) / self.unit_N)[index_M]
        there = np.isfinite(before) & np.isfinite(after)
        if not there.any():
            return 1.0
        cap = 20 * before[there].mean() + FLOAT32
        return float(
            np.minimum(after[there], cap).mean() / max(np.minimum(before[there], cap).mean(), FLOAT32)
        )


def _spread(i: int, n: int) -> float:
    """An order in which any beginning is spread over 0 … n − 1."""
    return (i * 0.6180339887498949) % 1.0


def prepare(
    rows: Sequence[LoggedRow], models: MismatchModels, most_read: int
) -> tuple[MismatchCase, list[str]]:
    """Score as many rows as ``most_read`` tokens allow, spread over the log."""
    chosen = _within(rows, most_read)
    notes = []
    if len(chosen) < len(rows):
        notes.append(
            f"{len(chosen)} of {len(rows)} rows were read, spread over the log; --tokens reads more."
        )
    flat = [
        (r, k, position - start, position)
        for r, row in enumerate(chosen)
        for k, (start, stop) in enumerate(row.turns)
        for position in range(start, stop)
    ]
    row_N, turn_N, token_N, position_N = (np.array(column, np.int64) for column in zip(*flat, strict=True))
    asked = [
        AskedPlaces(row.ids, tuple(p for start, stop in row.turns for p in range(start, stop)))
        for row in chosen
    ]
    found = distributions(models.model, asked, models.ends)
    logged_N = np.array([chosen[r].logprobs[p] for r, p in zip(row_N, position_N, strict=True)])
    raw_N = _raw(chosen, row_N, logged_N, found)
    case = MismatchCase(
        chosen, models, row_N, turn_N, token_N, position_N, logged_N, found, raw_N, RoundingNoise(0, 0, 0)
    )
    noise = _rounding(case)
    made = MismatchCase(chosen, models, row_N, turn_N, token_N, position_N, logged_N, found, raw_N, noise)
    return made, notes


def _within(rows: Sequence[LoggedRow], most_read: int) -> list[LoggedRow]:
    read, chosen = 0, list[int]()
    for i in sorted(range(len(rows)), key=lambda i: _spread(i, len(rows))):
        if not rows[i].turns:
            continue
        if chosen and read + len(rows[i].ids) > most_read:
            break
        chosen.append(i)
        read += len(rows[i].ids)
    return [rows[i] for i in sorted(chosen)]


def _raw(rows: Sequence[LoggedRow], row_N: Ints, logged_N: Floats, found: Distributions) -> Truths:
    """Return for each token whether its log-probability is the model's own; where nobody says, what fits the whole log better."""
    said = [row.raw for row in rows]
    if all(one is not None for one in said):
        return np.array([bool(said[r]) for r in row_N])
    declared_N = [rows[r].declared for r in row_N]
    sizes = [
        _typical(np.abs(logged_N - as_declared(found, declared_N, np.full(len(row_N), raw))))
        for raw in (False, True)
    ]
    fits = sizes[1] < sizes[0]
    return np.array([fits if said[r] is None else bool(said[r]) for r in row_N])


def _typical(size_N: Floats) -> float:
    known = size_N[np.isfinite(size_N)]
    return float(np.minimum(known, 5.0).mean()) if len(known) else math.inf


def _rounding(case: MismatchCase) -> RoundingNoise:
    """Measure how far the model's own log-probabilities move when it computes as the engine did.

    Where nobody says how, it is in bfloat16, and less where the log is exact in part.
    """
    dtype = case.models.engine_dtype
    index_M = case.some(np.ones(len(case.row_N), bool), _OF_NOISE, 1500)
    half = torch.float16 if dtype == torch.float16 else torch.bfloat16
    moved_N = case.by_another(in_half(case.models.model, half), index_M)
    size_M = (np.abs(moved_N - case.expected_N) / case.unit_N)[index_M]
    size_M = size_M[np.isfinite(size_M)]
    exact = dtype == torch.float32 or (dtype is None and _exact_in_part(case, float(size_M.mean())))
    part = OF_HALF if exact else 1.0
    return RoundingNoise(*(part * float(one) for one in (size_M.mean(), size_M.std(), size_M.max())))


def _exact_in_part(case: MismatchCase, rounding: float) -> bool:
    """Tell that the engine computed in float32, by tokens of which neither the model nor what was cut off made one certain; ``rounding`` is bfloat16's."""
    could_differ_N = case.known_N & (case.unit_N > 0.3) & (case.expected_N < -0.1)
    size_M = np.abs(case.gap_N / case.unit_N)[could_differ_N]
    return len(size_M) >= FEWEST and float(np.mean(size_M <= min(FLOAT32, rounding / 100))) >= EXACT_SHARE


def runs(numbers: Iterable[int]) -> list[list[int]]:
    """Group whole numbers that follow one another.

    >>> runs([1, 2, 3, 7, 8])
    [[1, 2, 3], [7, 8]]
    """
    found: list[list[int]] = []
    for one in numbers:
        if found and one == found[-1][-1] + 1:
            found[-1].append(one)
        else:
            found.append([one])
    return found
