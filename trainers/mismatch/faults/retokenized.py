"""Earlier turns that were decoded to text and encoded again, and came back as other tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.core import Explanation, LoggedRow, detects

MOST = 40
"""So many turns are read again with another history."""
WAYS: Mapping[str, Callable[[str], str]] = {
    "": str,
    " without white space around it": str.strip,
    " without its control tokens": str,
    " without its control tokens and white space around it": str.strip,
}
"""Ways in which frameworks make text of a reply, in words, and what they do with the text."""


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
    again = "earlier turns that had been encoded again from text"
    tried: list[Sequence[OtherHistory]] = []
    for words, others in (
        *((f"the engine read {again}{way}", [*_encoded_again(case, way)]) for way in WAYS),
        (f"the row has {again}", [*_as_sampled(case)]),
    ):
        chosen = [one for one in others if (one.row, one.turn) in wanted][:MOST]
        if chosen and chosen not in tried:
            tried.append(chosen)
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


def _encoded_again(case: MismatchCase, way: str) -> Iterator[OtherHistory]:
    """Each turn whose history changes on its way through text."""
    ends = set(case.models.ends)
    for r, row in enumerate(case.rows):
        pieces, again, same = [*row.pieces], list[int](), True
        for k, (start, stop) in enumerate(row.turns):
            again += pieces[k]
            if not same:
                yield OtherHistory(r, k, tuple(again))
            own = row.ids[start:stop]
            end = own[-1:] if own and own[-1] in ends else ()
            encoded = (*through_text(case.models.tokenizer, own[: len(own) - len(end)], way), *end)
            same = same and encoded == own
            again += encoded


def through_text(tokenizer: object, ids: Sequence[int], way: str = "") -> tuple[int, ...]:
    """Decode tokens and encode the text."""
    text = tokenizer.decode(list(ids), skip_special_tokens="control" in way)  # pyright: ignore
    return tuple(tokenizer.encode(WAYS[way](text), add_special_tokens=False))  # pyright: ignore


class EarlierCall(NamedTuple):
    """The tokens that the engine had at the end of a call, and the texts of them that a later prompt may begin with."""

    ids: tuple[int, ...]
    told: Sequence[str]


def _as_sampled(case: MismatchCase) -> Iterator[OtherHistory]:
    """Each call of the engine whose prompt says the same as what was read and sampled before, in other tokens."""
    decode = case.models.tokenizer.decode
    before: dict[str, EarlierCall] = {}
    for r, row in enumerate(case.rows):
        known = before.get(row.episode) if row.episode and row.turn else None
        if row.episode:
            before[row.episode] = EarlierCall(row.ids, _told(case, row))
        if known is None or not row.turns:
            continue
        prompt = row.ids[: row.turns[0][0]]
        if prompt[: len(known.ids)] == known.ids:
            continue
        text = decode(list(prompt))
        told = next((one for one in known.told if text.startswith(one)), None)
        if told is None:
            continue
        rest = text[len(told) :]
        cut = next((i for i in range(len(prompt) + 1) if decode(list(prompt[i:])) == rest), None)
        if cut is not None:
            read = (*known.ids, *prompt[cut:])
            before[row.episode] = EarlierCall((*read, *row.ids[len(prompt) :]), _told(case, row))
            yield OtherHistory(r, 0, read)


def _told(case: MismatchCase, row: LoggedRow) -> Sequence[str]:
    """The texts of a row, with its reply in each way in which frameworks make text of one."""
    decode, begins = case.models.tokenizer.decode, row.turns[-1][0] if row.turns else len(row.ids)
    body, end = list(row.ids[begins:]), list[int]()
    if body and body[-1] in case.models.ends:
        end = [body.pop()]
    shown = decode(list(row.ids[:begins]))
    return [
        shown + WAYS[way](decode(body, skip_special_tokens="control" in way)) + decode(end) for way in WAYS
    ]
