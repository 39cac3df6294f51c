"""Earlier turns that came back from text, where nobody says which tokens were sampled: they are guessed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.core import Explanation, Floats, Ints, detects

ROWS, GUESSES, STEPS = 4, 64, 2
"""Rows that are looked at, guesses at each, and tokens that may differ in each."""
FITS, FEWEST = 0.15, 2
"""The share that a guess may leave of a turn's differences, and in how many rows one has to be found."""
MOST_WORK = 2e12
"""Floating-point operations that guesses may cost; with a large model fewer are made."""


class AfterHistory(NamedTuple):
    """The first turn of a row that differs from the model, and its tokens."""

    row: int
    turn: int
    index_M: Ints


@detects(cost=5, numbers=True)
def history_guessed(case: MismatchCase) -> Iterator[Explanation]:
    """Write tokens of earlier turns as other tokens with the same text, and look whether the next turn's log-probabilities follow."""
    expected_N, found, tried = np.full(len(case.row_N), np.nan), 0, 0
    for after in _turns(case)[:ROWS]:
        tried += 1
        guessed = _guess(case, after)
        if guessed is not None:
            expected_N[after.index_M] = guessed
            found += 1
    if found >= max(FEWEST, tried / 2):
        yield Explanation(
            "retokenized_history",
            f"the engine read other tokens of the same text in earlier turns, which were guessed in {found} of {tried} rows",
            expected_N,
        )


def _turns(case: MismatchCase) -> list[AfterHistory]:
    """Rows whose first turn agrees with the model, or says nothing, and whose later turns do not."""
    found: list[AfterHistory] = []
    looked_N = case.affected_N & case.known_N
    for row in np.unique(case.row_N[looked_N]):
        mine = np.flatnonzero(looked_N & (case.row_N == row))
        turn = int(case.turn_N[mine[0]])
        if turn:
            found.append(AfterHistory(int(row), turn, case.of_turn(int(row), turn)))
    return sorted(found, key=lambda one: case.rows[one.row].turns[one.turn][1])


def _guess(case: MismatchCase, after: AfterHistory) -> Floats | None:
    """The log-probabilities of the turn under the best guess, if that explains them."""
    row = case.rows[after.row]
    start, _ = row.turns[after.turn]
    history, best, best_size = row.ids[:start], None, _size(case, after, case.expected_N[after.index_M])
    whole = best_size
    size = sum(one.numel() for one in case.models.model.parameters())
    guesses = min(GUESSES, int(MOST_WORK / (2.0 * ROWS * STEPS * size * row.turns[after.turn][1])))
    spans = list(row.turns[: after.turn])
    for _ in range(STEPS):
        improved = None
        for other in _others(case, history, spans)[:guesses]:
            expected_M = case.after(other, after.row, after.turn)
            size = _size(case, after, expected_M)
            if size < best_size:
                improved, best, best_size = other, expected_M, size
        if improved is None or best_size <= FITS * whole:
            break
        spans = [(s, min(e + 1, len(improved))) for s, e in spans]
        history = improved
    return best if best is not None and best_size <= FITS * whole else None


def _size(case: MismatchCase, after: AfterHistory, expected_M: Floats) -> float:
    size_M = np.abs(case.logged_N[after.index_M] - expected_M) / case.unit_N[after.index_M]
    return float(np.nanmean(size_M)) if np.isfinite(size_M).any() else 0.0


def _others(
    case: MismatchCase, history: tuple[int, ...], spans: list[tuple[int, int]]
) -> list[tuple[int, ...]]:
    """Histories of the same text in which a token is two, or two next to each other are cut elsewhere; the latest tokens first."""
    vocabulary: dict[str, int] = case.models.tokenizer.get_vocab()
    words = case.models.tokenizer.convert_ids_to_tokens(list(history))
    found: list[tuple[int, ...]] = []
    for start, stop in reversed(spans):
        for at in reversed(range(start, stop)):
            for width in (1, 2):
                if at + width > stop:
                    continue
                text = "".join(words[at : at + width])
                for cut in range(1, len(text)):
                    one, two = vocabulary.get(text[:cut]), vocabulary.get(text[cut:])
                    if one is not None and two is not None and (one, two) != history[at : at + width]:
                        found.append((*history[:at], one, two, *history[at + width :]))
    return found
