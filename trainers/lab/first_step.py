"""The expected first step of a recipe's parts: the gradient of its actual losses, summed over all batches that can be drawn.

Every batch of a small process passes what the trainer would pass it through: credit, filter, shapes, correction, denominators, the
losses of tokens and those of the whole minibatch. The policy is a table of logits, so that log-probabilities, entropies and
statistics of the vocabulary (its actions) are exact, and the reference, from which the policy begins, is the policy itself. No loss
is known here by its name.

Axes: C batches that can be drawn, B trajectory, T token (one to a turn), R row; N, S, A as in :mod:`turnwise.trainers.lab.exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from turnwise.trainers.core import (
    Correction,
    Credit,
    Filter,
    Reduce,
    RowMask,
    Shape,
    TeacherTop,
    TokenBatch,
    TurnBatch,
    WholeBatch,
)
from turnwise.trainers.kit.token_credit import on_tokens, tokens_of
from turnwise.trainers.lab.exact import Paths, batch_of, chances, of_batches
from turnwise.trainers.learn.objective import LossTerm, WholeTerm, policy_loss, whole_slopes
from turnwise.trainers.learn.passes import Scores

AT_ONCE = 8192
"""So many batches are evaluated at once, for the sake of memory."""
SOLVED = 1 - 1e-9
"""The return from which a trajectory has solved its task."""


class MeasuredLoss(NamedTuple):
    """A loss of a recipe.

    Attributes:
        name: as it is registered.
        make: gives the loss; one that remembers is made anew for every batch, which is its first.
        weight: in the sum.
        whole: whether it is a function of the whole minibatch.
        needs: the signals that it asks for.
    """

    name: str
    make: Callable[[], Callable[[Any], Any]]
    weight: float = 1.0
    whole: bool = False
    needs: frozenset[str] = frozenset()


class Composition(NamedTuple):
    """The parts of a recipe that decide its first step.

    Attributes:
        credit, filter, shapes, reduce, correction: built.
        losses: whose weighted sum is descended.
        needs: the signals that the other parts ask for.
        learned: those signals that are learned in the run, so that they are never exact there.
        not_measurable: parts that change the update in ways which cannot be enumerated here.
        beside: parts without which the first step would be the one that is measured, and with which it cannot be.
        left_out: parts whose effect is measured apart, or that say what the return is.
    """

    credit: Credit
    filter: Filter
    shapes: Sequence[Shape]
    reduce: Reduce
    correction: Correction
    losses: Sequence[MeasuredLoss]
    needs: frozenset[str] = frozenset()
    learned: frozenset[str] = frozenset()
    not_measurable: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def all_needs(self) -> frozenset[str]:
        """The signals that any part asks for."""
        return self.needs.union(*(loss.needs for loss in self.losses))


class Circumstances(NamedTuple):
    """Circumstances of a batch that is not simply played by the policy that is trained.

    Attributes:
        first_turn: earlier turns are read and not learned.
        behaviour_NK: log-probability with which each turn was sampled; None: the policy's own.
        teacher_SA: log-probabilities of a teacher in each state; None: there is none.
    """

    first_turn: int = 0
    behaviour_NK: Tensor | None = None
    teacher_SA: Tensor | None = None


PLAYED = Circumstances()


class _LabRows(NamedTuple):
    """All trajectories of all batches as rows of tokens, (C, B, …).

    Attributes:
        scores: log-probabilities and entropies, with gradient.
        advantage: what credit says.
        reduce: the reducer's weights in the batch.
        weight: the filter's, of each trajectory.
        mask, turn: as in a batch.
        behaviour: log-probability with which each token was sampled.
        signals: of tokens.
        top: what a teacher would say instead.
    """

    scores: Scores
    advantage: Tensor
    reduce: Tensor
    weight: Tensor
    mask: Tensor
    turn: Tensor
    behaviour: Tensor
    signals: Mapping[str, Tensor]
    top: TeacherTop | None


def expected_step(
    parts: Composition,
    p: Paths,
    index_CB: Tensor,
    n: int,
    signals: Mapping[str, Tensor],
    how: Circumstances = PLAYED,
) -> Tensor:
    """−Σ over batches of their chance times ∇loss, (S, A): the first optimizer step before AdamW and norm clipping.

    Args:
        parts: of the recipe.
        p: the process under the policy; trajectories are as likely as it says, and are scored by its logits.
        index_CB: batches of groups of ``n`` trajectories, each group standing for all its orders.
        n: the group size.
        signals: by name, of every trajectory.
        how: the batch came about.

    Raises:
        RecipeError: a part asks for something that is not known here.
    """
    asked = {name: x for name, x in signals.items() if name in parts.all_needs}
    pieces = index_CB.split(AT_ONCE)
    return torch.stack([_step_of(parts, p, piece, n, asked, how) for piece in pieces]).sum(0)


def groups_stand_alone(parts: Composition, p: Paths, signals: Mapping[str, Tensor]) -> bool:
    """Say whether no part looks beyond its group: what it makes of pairs side by side is what it makes of each."""
    if any(loss.whole for loss in parts.losses):
        return False
    pair_C2 = torch.combinations(torch.arange(len(p.reward_NK)), 2, with_replacement=True)

    def learned(index_C2: Tensor) -> Tensor:
        group_B = torch.arange(len(index_C2)).repeat_interleave(2)
        return _learned_from(parts, batch_of(p, index_C2.flatten(), group_B, signals), 0)

    alone = torch.cat([learned(pair_2[None]) for pair_2 in pair_C2])
    return torch.allclose(learned(pair_C2), alone, atol=1e-12)


def _step_of(
    parts: Composition,
    p: Paths,
    index_CB: Tensor,
    n: int,
    signals: Mapping[str, Tensor],
    how: Circumstances,
) -> Tensor:
    """:func:`expected_step` of so many batches as fit into memory."""
    rows, chance_C = _rows(parts, p, index_CB, n, signals, how), chances(p, index_CB, n)
    kept_CB = (rows.weight > 0) & rows.mask.any(-1)
    correction = torch.ones_like(rows.advantage)
    total = p.logits_SA.sum() * 0
    where = kept_CB.nonzero(as_tuple=True)
    if len(where[0]):
        batch = _token_batch(rows, where, n, parts)
        correction[where] = parts.correction(batch).detach().to(correction.dtype)
        terms = [LossTerm(loss.name, loss.make(), loss.weight) for loss in parts.losses if not loss.whole]
        share_RT = rows.reduce[where] * chance_C[where[0], None]
        total = (
            total
            + policy_loss(
                batch,
                correction[where],
                rows.weight[where][:, None],
                share_RT,
                [(terms, torch.ones_like(batch.mask_RT))],
            )[0]
        )
    rows = rows._replace(advantage=rows.advantage * rows.weight[..., None] * correction)
    if any(loss.whole for loss in parts.losses):
        total = total + _of_the_whole(parts, p, rows, index_CB, n, signals, chance_C)
    (gradient_SA,) = torch.autograd.grad(total, p.logits_SA)
    return -gradient_SA


def _rows(
    parts: Composition,
    p: Paths,
    index_CB: Tensor,
    n: int,
    signals: Mapping[str, Tensor],
    how: Circumstances,
) -> _LabRows:
    """Return the rows that the losses see of every batch."""
    found = of_batches(lambda batch: _learned_from(parts, batch, how.first_turn), p, index_CB, n, signals)
    advantage, reduce, weight = found.unbind(-1)
    logp_SA = p.logits_SA.log_softmax(-1)
    mask_NK, K = p.mask_NK, p.mask_NK.shape[1]
    learned_NK = mask_NK & (torch.arange(K) >= how.first_turn)
    logp_NK = logp_SA[p.state_NK, p.action_NK] * mask_NK
    entropy_NK = -(logp_SA.exp() * logp_SA).sum(-1)[p.state_NK] * mask_NK
    turn_NK = torch.arange(K).expand_as(mask_NK).masked_fill(~learned_NK, -1)
    behaviour_NK = logp_NK.detach() if how.behaviour_NK is None else how.behaviour_NK
    token = {name: x for name, x in signals.items() if name.startswith("token_")}
    top = None
    if how.teacher_SA is not None:
        token["token_teacher_logp"] = how.teacher_SA[p.state_NK, p.action_NK] * mask_NK
        ids = torch.arange(logp_SA.shape[1]).expand(*mask_NK.shape, -1)
        top = TeacherTop(*(x[index_CB] for x in (ids, how.teacher_SA[p.state_NK], logp_SA[p.state_NK])))
    return _LabRows(
        Scores(*((x_NK * learned_NK)[index_CB] for x_NK in (logp_NK, entropy_NK))),
        advantage,
        reduce / index_CB.shape[1],
        weight[..., 0],
        learned_NK[index_CB],
        turn_NK[index_CB],
        (behaviour_NK * learned_NK)[index_CB],
        {name: x[index_CB] for name, x in token.items() if name in parts.all_needs},
        top,
    )


def _learned_from(parts: Composition, batch: TurnBatch, first_turn: int) -> Tensor:
    """Advantage, the reducer's weight times the number of trajectories, and the filter's weight, (B, T, 3)."""
    view = tokens_of(batch)
    read_RT = view.turn_RT < first_turn
    view = replace(view, mask_RT=view.mask_RT & ~read_RT, turn_RT=view.turn_RT.masked_fill(read_RT, -1))
    batch = replace(batch, tokens=view)
    credit = parts.credit(batch)
    weight_B = parts.filter(batch, credit).double()
    for shape in parts.shapes:
        credit = shape(credit, batch)
    reduce_RT = parts.reduce(RowMask(view.mask_RT, view.turn_RT, view.trajectory_R)).double()
    given_RT = on_tokens(credit, batch).double()
    return torch.stack([given_RT, reduce_RT * len(batch.group_B), weight_B[:, None].expand_as(given_RT)], -1)


def _token_batch(rows: _LabRows, where: tuple[Tensor, ...], n: int, parts: Composition) -> TokenBatch:
    """The rows of all batches, one beside the other: a loss of tokens sees each by itself."""
    batch_R, place_R = where
    groups = rows.weight.shape[1] // n
    old_RT = rows.scores.logp_RT[where].detach()
    return TokenBatch(
        logp_RT=rows.scores.logp_RT[where],
        old_logp_RT=old_RT,
        behaviour_logp_RT=rows.behaviour[where],
        entropy_RT=rows.scores.entropy_RT[where],
        advantage_RT=rows.advantage[where],
        mask_RT=rows.mask[where],
        turn_RT=rows.turn[where],
        trajectory_R=torch.arange(len(batch_R)),
        group_R=batch_R * groups + place_R // n,
        reference_logp_RT=old_RT if "reference" in parts.all_needs else None,
        signals={name: x[where] for name, x in rows.signals.items()},
        top=None if rows.top is None else TeacherTop(*(x[where] for x in rows.top if x is not None)),
    )


def _of_the_whole(
    parts: Composition,
    p: Paths,
    rows: _LabRows,
    index_CB: Tensor,
    n: int,
    signals: Mapping[str, Tensor],
    chance_C: Tensor,
) -> Tensor:
    """Σ over batches of what has the slopes of the losses of the whole, as the learner lets them weight its backward pass."""
    total = p.logits_SA.sum() * 0
    shape = rows.mask.shape[1:]
    for c in range(len(index_CB)):
        kept_M = ((rows.weight[c] > 0) & rows.mask[c].any(-1)).nonzero()[:, 0]
        if len(kept_M):
            terms = [WholeTerm(loss.name, loss.make(), loss.weight) for loss in parts.losses if loss.whole]
            batch = _whole_batch(parts, p, rows, index_CB[c], c, kept_M, n, signals)
            slopes = whole_slopes(batch, terms, kept_M, shape, torch.float64)
            of_batch = Scores(rows.scores.logp_RT[c], rows.scores.entropy_RT[c])
            total = total + chance_C[c] * slopes.along(torch.arange(len(rows.weight[c])), of_batch)
    return total


def _whole_batch(
    parts: Composition,
    p: Paths,
    rows: _LabRows,
    index_B: Tensor,
    c: int,
    kept_M: Tensor,
    n: int,
    signals: Mapping[str, Tensor],
) -> WholeBatch:
    """One of the batches, of which rows ``kept_M`` are trained on."""
    logp_RT = rows.scores.logp_RT[c, kept_M].detach()
    asked = {name: x for name, x in signals.items() if name in parts.all_needs and name not in rows.signals}
    return WholeBatch(
        logp_RT=logp_RT.clone().requires_grad_(),
        entropy_RT=rows.scores.entropy_RT[c, kept_M].detach().clone().requires_grad_(),
        old_logp_RT=logp_RT,
        behaviour_logp_RT=rows.behaviour[c, kept_M],
        advantage_RT=rows.advantage[c, kept_M],
        mask_RT=rows.mask[c, kept_M],
        turn_RT=rows.turn[c, kept_M],
        weight_RT=rows.reduce[c, kept_M],
        trajectory_R=kept_M,
        group_B=torch.arange(len(index_B) // n).repeat_interleave(n),
        reward_BK=p.reward_NK[index_B],
        return_B=p.return_N[index_B],
        success_B=p.return_N[index_B] >= SOLVED,
        weight_B=rows.weight[c],
        reference_logp_RT=logp_RT if "reference" in parts.all_needs else None,
        signals={name: x[index_B] for name, x in asked.items()}
        | {name: x[c, kept_M] for name, x in rows.signals.items()},
    )
