"""The right answer in place of the policy's own: how likely a model finds it after the policy's reasoning, and without."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from turnwise.trainers.core import Group
from turnwise.trainers.kit.thoughts import thought_length
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch, plain_rows
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.passes import PassPart
from turnwise.trainers.signal.answers import answer_cut, answer_ids, solutions
from turnwise.trainers.signal.core import SignalContext

Score: TypeAlias = Callable[[TokenRows], Tensor]
"""Log-probabilities of the tokens under the mask of some rows, (R, T)."""


def right_answers(see: SignalContext, groups: Sequence[Group]) -> list[tuple[int, ...]]:
    """Tokens of the right answer to each episode's task: its ``gold`` where that is a text, else the last act of gold's solution."""
    plans = solutions(groups, see.env_options)
    found = [answer_ids(group[0], plan[-1:], see.renderer) for group, plan in zip(groups, plans, strict=True)]
    return [answer for group, answer in zip(groups, found, strict=True) for _ in group]


class Forced(NamedTuple):
    """By trajectory: tokens up to where its answer begins, those of the right answer, and those before it where there is no reasoning."""

    contexts: dict[int, list[int]]
    answers: dict[int, tuple[int, ...]]
    bare: dict[int, list[int]]


def cut_answers(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group], tag: str) -> Forced:
    """The right answer in place of each trajectory's own, by :func:`answer_cut`; a trajectory without its ``tag`` is left out."""
    plans = solutions(groups, see.env_options)
    tasks = [(group[0], plan) for group, plan in zip(groups, plans, strict=True) for _ in group]
    found = Forced({}, {}, {})
    for b, task in without_reasoning(batch).items():
        before, said = last_turn(batch, b)
        cut = answer_cut(*tasks[b], said, see.renderer, tag)
        if cut is not None:
            found.contexts[b], found.answers[b] = [*before, *said[: cut.kept]], cut.answer
            found.bare[b] = [*task, *cut.led]
    return found


def forced(
    score: Score,
    contexts: Mapping[int, Sequence[int]],
    answers: Mapping[int, Sequence[int]],
    room: int,
) -> dict[int, Tensor]:
    """Log-probability of each token of the answers, each after its context, by the numbers of trajectories.

    A context that leaves no room for its answer is cut at its beginning. Equal texts are read once.
    """
    rows, row_of = _rows(contexts, answers, room)
    if not row_of:
        return {}
    logp_RT = score(rows)
    return {b: logp_RT[r][rows.mask_RT[r]].double() for b, r in row_of.items()}


def ranked(
    learner: Learner,
    contexts: Mapping[int, Sequence[int]],
    answers: Mapping[int, Sequence[int]],
    room: int,
) -> dict[int, Tensor]:
    """The rank of each of these tokens in the policy's vocabulary, 1 where none is likelier."""
    rows, row_of = _rows(contexts, answers, room)
    rank_RT = torch.zeros(rows.mask_RT.shape)

    def read(seen: PassPart) -> None:
        for place_RT in seen.places():
            logp_NV = seen.distributions(place_RT)
            token_N1 = seen.rows.token_RT[place_RT].to(logp_NV.device)[:, None]
            rank_N = 1 + (logp_NV > logp_NV.gather(-1, token_N1)).sum(-1)
            row_N, column_N = place_RT.nonzero(as_tuple=True)
            rank_RT[seen.index_N[row_N], column_N] = rank_N.to(rank_RT.dtype).cpu()

    if row_of:
        learner.read(rows, [read])
    return {b: rank_RT[r][rows.mask_RT[r]] for b, r in row_of.items()}


def _rows(
    contexts: Mapping[int, Sequence[int]],
    answers: Mapping[int, Sequence[int]],
    room: int,
) -> tuple[TokenRows, dict[int, int]]:
    """The answers after their contexts as rows of tokens, equal ones once, and the row of each trajectory."""
    places: dict[int, tuple[tuple[int, ...], int]] = {}
    for b, context in contexts.items():
        before = tuple(context)[-max(1, room - len(answers[b])) :]
        places[b] = ((*before, *answers[b])[:room], len(before))
    texts = {text: r for r, text in enumerate(dict.fromkeys(places.values()))}
    rows = plain_rows([text for text, _ in texts], [start for _, start in texts])
    return rows, {b: texts[place] for b, place in places.items()}


def without_reasoning(batch: TrainingBatch) -> dict[int, list[int]]:
    """By trajectory: the tokens of its task alone, those before its first turn."""
    rows = batch.rows
    return {
        b: rows.token_RT[rows.state_row_BK[b, 0], : int(rows.state_position_BK[b, 0]) + 1].tolist()
        for b, turns in enumerate(batch.turns.length_B.tolist())
        if turns
    }


def last_turn(batch: TrainingBatch, b: int) -> tuple[list[int], list[int]]:
    """The tokens before the last turn of a trajectory, and those that it sampled."""
    rows, k = batch.rows, int(batch.turns.length_B[b]) - 1
    r, end = int(rows.state_row_BK[b, k]), int(rows.state_position_BK[b, k]) + 1
    said_T = rows.turn_RT[r] == k
    return rows.token_RT[r, :end].tolist(), rows.token_RT[r, said_T].tolist()


def spread(batch: TrainingBatch, value_of: Mapping[int, float]) -> Tensor:
    """A number of each trajectory, on all of its turns, (B, K); 0 where it has none."""
    value_B = torch.zeros(len(batch.turns.group_B), dtype=torch.float64)
    for b, value in value_of.items():
        value_B[b] = value
    return value_B[:, None] * batch.turns.mask_BK


def thought_mask(batch: TrainingBatch, decode: Any) -> Tensor:
    """True for the sampled tokens that belong to the thoughts with which a turn begins, (R, T)."""
    rows = batch.rows
    found_RT = torch.zeros_like(rows.mask_RT)
    for b, turns in enumerate(batch.turns.length_B.tolist()):
        for k in range(turns):
            r = int(rows.state_row_BK[b, k])
            at_N = (rows.turn_RT[r] == k).nonzero()[:, 0]
            said = rows.token_RT[r, at_N].tolist()
            found_RT[r, at_N[: thought_length(said, decode)]] = True
    return found_RT
