"""Turns that end otherwise than the model ends them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.core import Explanation, FaultPlace, Ints, detects
from turnwise.trainers.mismatch.scoring import AskedPlaces, distributions

SURE = 1000.0
SHARE = 0.6
"""Share of turns that have to show the same."""
FEWEST = 5


@detects(cost=0)
def end_token(case: MismatchCase) -> Iterator[Explanation]:
    """Look at the last token of each turn: which it is, how likely it was, and what follows it."""
    last_M = _last(case)
    yield from _another(case, last_M)
    yield from _cut_off(case, last_M)
    yield from _put_there(case, last_M)
    yield from _passed_over(case, last_M)


def _last(case: MismatchCase) -> Ints:
    """The last token of each turn."""
    key_N = case.row_N * (case.turn_N.max(initial=0) + 1) + case.turn_N
    return np.flatnonzero(np.r_[key_N[1:] != key_N[:-1], True]) if len(key_N) else np.zeros(0, np.int64)


def _id(case: MismatchCase, n: int) -> int:
    return case.rows[case.row_N[n]].ids[case.position_N[n]]


def _words(case: MismatchCase, token: int) -> str:
    return repr(str(case.models.tokenizer.decode([token], skip_special_tokens=False)))


def _another(case: MismatchCase, last_M: Ints) -> Iterator[Explanation]:
    """Turns end in a token at which the engine stopped, and which ends no turn of the model."""
    ends = set(case.models.ends)
    by_row = [(int(n), _id(case, int(n))) for n in last_M]
    counts = Counter(token for _, token in by_row if token not in ends)
    if not counts:
        return
    token, count = counts.most_common(1)[0]
    mine = [n for n, one in by_row if one == token]
    total = sum(1 for n, _ in by_row if n >= mine[0])
    inside = sum(
        ids[p] == token
        for row in case.rows
        for ids in (row.ids,)
        for s, e in row.turns
        for p in range(s, e - 1)
    )
    never = not any(one in ends for n, one in by_row if n >= mine[0])
    if count < FEWEST or count < SHARE * total or not (never or inside == 0):
        return
    chance = float(np.exp(case.found.logp_N[mine]).mean())
    if inside > count / 4:
        return  # a frequent token, at which turns were cut by chance
    yield Explanation(
        "wrong_end_token",
        f"{count} of {total} turns end in {_words(case, token)}, which is not among the model's ends "
        f"({', '.join(_words(case, one) for one in case.models.ends)}); it had a mean chance of {chance:.2g}",
        evidence=SURE,
        begins=case.place(mine[0]),
        data={"token": token},
    )


def _cut_off(case: MismatchCase, last_M: Ints) -> Iterator[Explanation]:
    """Turns of different lengths end without an end, and the model would have ended them there; those that a limit ended say nothing."""
    ends = set(case.models.ends)
    if not ends:
        return
    open_M = [int(n) for n in last_M if _id(case, int(n)) not in ends]
    longest = max((int(case.token_N[n]) for n in open_M), default=0)  # these a limit may have ended
    open_M = [n for n in open_M if case.token_N[n] < longest]
    if len(open_M) < FEWEST:
        return
    asked = [AskedPlaces(case.rows[case.row_N[n]].ids, (int(case.position_N[n]) + 1,)) for n in open_M[:80]]
    after_M = distributions(case.models.model, asked, case.models.ends).end_N
    beside_N = case.found.end_N[~np.isin(np.arange(len(case.row_N)), last_M)]
    typical = float(np.exp(beside_N).mean()) if len(beside_N) else 0.0
    chance_M = np.exp(after_M)
    # Whether the model would have ended there, against whether a limit happened to fall there.
    nats = float((np.log(chance_M + 1e-6) - np.log(typical + 1e-3)).sum())
    if nats < 10:
        return
    place = case.place(open_M[int(np.argmax(chance_M > min(0.5, float(chance_M.mean()))))])
    yield Explanation(
        "wrong_end_token",
        f"{len(open_M)} of {len(last_M)} turns are shorter than others and have no sampled end, though the model ends there with a mean chance of "
        f"{chance_M.mean():.2g} ({typical:.2g} elsewhere): it was cut off",
        evidence=min(SURE, nats),
        begins=FaultPlace(place.row, place.turn, place.token),
    )


def _put_there(case: MismatchCase, last_M: Ints) -> Iterator[Explanation]:
    """The differences lie at the ends of turns alone: another token stands there than was sampled, or one that nobody sampled."""
    size_N = np.where(case.known_N, np.abs(case.gap_N), 0.0)
    at_end_N = np.zeros(len(size_N), bool)
    at_end_N[last_M] = True
    beyond_N = size_N > 5 * case.noise.largest * case.unit_N + 1e-3
    if beyond_N.sum() < FEWEST or beyond_N[at_end_N].sum() < 0.9 * beyond_N.sum():
        return
    expected_N = np.where(np.isfinite(case.expected_N), case.expected_N, np.nan)
    mine = np.flatnonzero(at_end_N & beyond_N)
    expected_N[mine] = case.logged_N[mine]  # whatever was sampled there, it is not the token of the row
    own_M = np.abs(case.logged_N[mine] - case.found.end_N[mine])
    words = (
        "the model's own end was sampled, and another token stands there"
        if np.median(own_M) < 0.05
        else "put there and not sampled"
    )
    tokens = Counter(_id(case, int(n)) for n in mine)
    yield Explanation(
        "wrong_end_token",
        f"the log leaves the model at the last token of {len(mine)} turns alone, which is {_words(case, tokens.most_common(1)[0][0])}: {words}",
        expected_N,
        evidence=SURE,
        begins=case.place(int(mine[0])),
    )


def _passed_over(case: MismatchCase, last_M: Ints) -> Iterator[Explanation]:
    """The model ended its turn, and the engine sampled on."""
    at_end_N = np.isin(np.arange(len(case.row_N)), last_M)
    inside = [n for n in np.flatnonzero(~at_end_N).tolist() if _id(case, n) in case.models.ends[:1]]
    turns = {(int(case.row_N[n]), int(case.turn_N[n])) for n in inside}
    if len(turns) >= FEWEST:
        yield Explanation(
            "wrong_end_token",
            f"in {len(turns)} turns the model sampled {_words(case, _id(case, inside[0]))}, which ends a turn, and the engine went on",
            evidence=SURE,
            begins=case.place(inside[0]),
        )
