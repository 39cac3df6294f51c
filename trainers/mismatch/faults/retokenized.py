"""Earlier turns that were decoded to text and encoded again, and came back as other tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.core import Explanation, LoggedRow, detects

MOST = 40
"""So many turns are read again with another history."""


class OtherHistory(NamedTuple):
    """A turn whose history may have been other tokens than the row's."""

    row: int
    turn: int
    ids: tuple[int, ...]


@detects(cost=2, numbers=True)
def retokenized(case: MismatchCase) -> Iterator[Explanation]:
    """Read turns again after histories that went through text, and after those that an earlier row says were sampled."""
    wanted = {
        (int(r), int(k)) for r, k in zip(case.row_N[case.looked_N], case.turn_N[case.looked_N], strict=True)
    }
    for words, others in (
        ("the engine read earlier turns that had been encoded again from text", [*_encoded_again(case)]),
        ("the row has earlier turns that had been encoded again from text", [*_as_sampled(case)]),
    ):
        chosen = [one for one in others if (one.row, one.turn) in wanted][:MOST]
        if chosen:
            yield _explanation(case, words, chosen)


def _explanation(case: MismatchCase, words: str, others: Sequence[OtherHistory]) -> Explanation:
    """Expect the log-probabilities that follow the other histories, and the model's own elsewhere."""
    expected_N = case.expected_N.copy()
    of_turn = {(one.row, one.turn): one for one in others}
    touched = {one.row for one in others}
    for n in np.flatnonzero(case.affected_N):
        if int(case.row_N[n]) not in touched:
            expected_N[n] = np.nan
    for (row, turn), one in of_turn.items():
        expected_N[case.of_turn(row, turn)] = case.after(one.ids, row, turn)
    first = min(others)
    at = case.rows[first.row]
    told = f"{words}, in {len(touched)} rows"
    return Explanation("retokenized_history", told, expected_N, data={"rows": len(touched), "row": at.number})


def _encoded_again(case: MismatchCase) -> Iterator[OtherHistory]:
    """Each turn whose history changes on its way through text."""
    for r, row in enumerate(case.rows):
        pieces, again, same = [*row.pieces], list[int](), True
        for k, (start, stop) in enumerate(row.turns):
            again += pieces[k]
            if not same:
                yield OtherHistory(r, k, tuple(again))
            own = row.ids[start:stop]
            encoded = through_text(case.models.tokenizer, own)
            same = same and encoded == own
            again += encoded


def through_text(tokenizer: object, ids: Sequence[int]) -> tuple[int, ...]:
    """Decode tokens and encode the text."""
    text = tokenizer.decode(list(ids), skip_special_tokens=False)  # pyright: ignore
    return tuple(tokenizer.encode(text, add_special_tokens=False))  # pyright: ignore


def _as_sampled(case: MismatchCase) -> Iterator[OtherHistory]:
    """Each call of the engine whose prompt says the same as the row of the call before, in other tokens."""
    decode = case.models.tokenizer.decode
    before: dict[str, LoggedRow] = {}
    for r, row in enumerate(case.rows):
        known = before.get(row.episode) if row.episode and row.turn else None
        if row.episode:
            before[row.episode] = row
        if known is None or not row.turns:
            continue
        prompt, said = row.ids[: row.turns[0][0]], known.ids
        if prompt[: len(said)] == said:
            continue
        text, told = decode(list(prompt)), decode(list(said))
        if not text.startswith(told):
            continue
        rest = text[len(told) :]
        cut = next((i for i in range(len(prompt) + 1) if decode(list(prompt[i:])) == rest), None)
        if cut is not None:
            yield OtherHistory(r, 0, (*said, *prompt[cut:]))
