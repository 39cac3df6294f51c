"""Units that a loss weighs as one (a token, a turn, a trajectory), and whether advantages move it: measured on a small batch.

A surrogate with one ratio for a whole trajectory means that all its tokens count alike. A correction that weighs them one
by one undoes that, so a recipe may not lay a finer correction over a coarser loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.trainers.core import TokenBatch, WholeBatch
from turnwise.trainers.kit.tokens import Level
from turnwise.trainers.kit.toy_batches import token_batch, whole_batch

LEVELS: tuple[Level, ...] = ("token", "turn", "trajectory")
_LOGP = ((-1.0, -0.8, -1.2, -0.9), (-1.1, -0.7, -1.0, -1.3))
_TURN = ((0, 0, 1, 1), (0, 0, 1, 1))
_ADVANTAGE = ((1.0,) * 4, (-1.0,) * 4)
_NUDGE = 1e-4
"""Small enough that no clip of a ratio is reached."""
_BELONGING: dict[tuple[int, int], Level] = {(0, 1): "turn", (0, 2): "trajectory"}
"""Of row and place, to which unit this token and the nudged one, (0, 0), both belong."""


def _batch(*, whole: bool, behaviour: float = 0.0, old: float = 0.0, advantage: float = 1.0) -> Any:
    """Two trajectories of two turns; the first token's behaviour or old log-probability is off by so much."""
    off = [list(row) for row in _LOGP]
    off[0][0] += old
    sampled = [list(row) for row in off]
    sampled[0][0] += behaviour
    given = [[advantage * x for x in row] for row in _ADVANTAGE]
    common: dict[str, Any] = {
        "old_logp": off,
        "behaviour_logp": sampled,
        "reference_logp": [list(row) for row in _LOGP],
        "turn": _TURN,
        "entropy": [[1.0] * 4] * 2,
    }
    if whole:
        return whole_batch(_LOGP, given, success=[1, 0], **common)
    return token_batch(_LOGP, given, group=[0, 0], **common)


def _slope(loss: Callable[..., Any], batch: TokenBatch | WholeBatch) -> Tensor:
    """The slope of the loss in each token's log-probability, (R, T)."""
    found = loss(batch)
    value = found.loss if isinstance(batch, WholeBatch) else found.loss_RT.sum()
    slope = torch.autograd.grad(value, [batch.logp_RT], allow_unused=True)[0]
    return torch.zeros_like(batch.logp_RT) if slope is None else slope


def _coarsest(moved_RT: Tensor) -> Level:
    """The largest unit of the nudged token in which another one moved; what moves with another trajectory is no unit."""
    if bool(moved_RT[1].any()):
        return "token"
    found: list[Level] = [unit for place, unit in _BELONGING.items() if bool(moved_RT[place])]
    return max(("token", *found), key=LEVELS.index)


def level_of_loss(make: Callable[[], Callable[..., Any]], *, whole: bool) -> Level | None:
    """Over which unit a loss forms its ratio; None where it needs more than a small batch has."""
    try:
        plain_RT, nudged_RT = (_slope(make(), _batch(whole=whole, old=old)) for old in (0.0, _NUDGE))
    except (RecipeError, RuntimeError, KeyError):
        return None
    return _coarsest((plain_RT - nudged_RT).abs() > 1e-9)


def level_of_correction(correction: Callable[[TokenBatch], Tensor]) -> Level | None:
    """Over which unit a correction forms its weight; None where it weighs nothing."""
    plain_RT, nudged_RT = (correction(_batch(whole=False, behaviour=off)) for off in (0.0, _NUDGE))
    moved_RT = (plain_RT - nudged_RT).abs() > 1e-9
    return _coarsest(moved_RT) if bool(moved_RT.any()) else None


def corrects_itself(make: Callable[[], Callable[..., Any]], *, whole: bool) -> bool:
    """Say whether a loss holds the ratio to who sampled in it, so that a correction would weigh it a second time.

    >>> from turnwise.trainers.recipe.part import LossPart
    >>> [corrects_itself(LossPart(name=name).make, whole=False) for name in ("told_clip", "clip")]
    [True, False]
    """
    try:
        one_RT, other_RT = (_slope(make(), _batch(whole=whole, behaviour=x)) for x in (0.0, _NUDGE))
    except (RecipeError, RuntimeError, KeyError):
        return False
    return not torch.equal(one_RT, other_RT)


def ignores_advantages(make: Callable[[], Callable[..., Any]], *, whole: bool) -> bool:
    """Say whether a loss pulls in the same way whatever the advantages are, so that no correction can reach it."""
    try:
        one_RT, other_RT = (_slope(make(), _batch(whole=whole, advantage=x)) for x in (1.0, 0.3))
    except (RecipeError, RuntimeError, KeyError):
        return False
    return bool(torch.equal(one_RT, other_RT))
