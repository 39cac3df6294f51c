"""The learner: forward, loss, backward, step. It knows no algorithm by name.

A batch's denominators are fixed by the reducer before it is cut into micro-batches, so how it is cut
changes nothing but the rounding.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from turnwise.errors import RunError
from turnwise.trainers.collate import Batch, Rows, micro_batches
from turnwise.trainers.core import RowMask, TokenBatch, TokenCredit
from turnwise.trainers.implicit import ImplicitReward
from turnwise.trainers.model import ValueHead, trainable
from turnwise.trainers.objective import Objective, policy_loss
from turnwise.trainers.passes import Means, Reader, Scores, Targets, states, targets
from turnwise.trainers.readings import Heads, head_gaps
from turnwise.trainers.schema import Optimizer
from turnwise.trainers.token_credit import on_tokens, on_turns

MAX_SKIPPED = 10
"""Steps in a row without finite gradients after which a run stops."""


class Learner:
    """A model, its optimizer, and the passes over them.

    Args:
        model: a Hugging Face causal model or a peft model, on its device.
        options: of the optimizer.
        value_head: where the credit rule needs V(s).
        progress_head: where it needs each turn's part in the return.
        reference: a frozen model, where a loss needs one. A peft model is its own reference without
            its adapters.
        temperature: at which the engine samples; log-probabilities are of that distribution.
    """

    def __init__(
        self,
        model: nn.Module,
        options: Optimizer,
        *,
        value_head: ValueHead | None = None,
        progress_head: ValueHead | None = None,
        reference: nn.Module | None = None,
        temperature: float = 1.0,
    ) -> None:
        self.model, self.value_head, self.reference = model, value_head, reference
        self.progress_head = progress_head
        self.reward_model: ImplicitReward | None = None  # trained beside the policy, by trainers/measure.py
        self.options = options
        self.device = next(model.parameters()).device
        self.reader = Reader(self.device, temperature, options.precision)
        self.reset_optimizer()

    @property
    def modules(self) -> list[nn.Module]:
        """The model, and the heads that there are."""
        return [self.model, *(head for head in (self.value_head, self.progress_head) if head)]

    def reset_optimizer(self) -> None:
        """Forget the moments, as between a warm start and reinforcement."""
        self.optimizer = make_optimizer(self.modules, self.options)
        self.steps = 0
        self.skipped_in_a_row = 0

    # --- passes without gradient -----------------------------------------------------------------

    @torch.no_grad()
    def score(self, rows: Rows, row_M: Tensor | None = None, *, reference: bool = False) -> Tensor:
        """Log-probabilities of the sampled tokens, (R, T), on the CPU; zero outside rows ``row_M``."""
        logp_RT = torch.zeros(rows.mask_RT.shape)
        with contextlib.ExitStack() as stack:
            model = self._reference(stack) if reference else self.model
            for index_M in micro_batches(rows, self.options.micro_tokens, row_M):
                part = rows.select(index_M)
                logp_RT[index_M, : part.mask_RT.shape[1]] = self.reader.scores(model, part).logp_RT.cpu()
        return logp_RT

    @torch.no_grad()
    def values(self, batch: Batch) -> Tensor:
        """V of the state before each turn, (B, K), on the CPU."""
        rows, mask_BK = batch.rows, batch.turns.mask_BK
        value_BK = torch.zeros(mask_BK.shape)
        assert self.value_head is not None
        for index_M in micro_batches(rows, self.options.micro_tokens):
            part = rows.select(index_M)
            with self.reader.precision():
                hidden = self.reader.hidden(self.model, part)
            where_BK, hidden_ND = states(part, index_M, mask_BK, hidden)
            value_BK[where_BK] = self.value_head(hidden_ND).cpu()
        return value_BK

    # --- passes with gradient --------------------------------------------------------------------

    def update(
        self,
        batch: Batch,
        credit: Tensor | TokenCredit,
        objective: Objective,
        *,
        order: Sequence[int] | None = None,
    ) -> dict[str, float]:
        """Train on a batch: ``epochs`` × ``minibatches`` optimizer steps. Returns metrics, averaged.

        A batch without a single sampled token changes nothing and gives no metrics.

        Args:
            batch: of whole groups.
            credit: what the credit rule gave each turn, or each sampled token.
            objective: the losses.
            order: trajectories in the order in which minibatches take them; as they come if None.

        Raises:
            RunError: gradients were not finite for too many steps in a row.
        """
        rows = batch.rows
        order_B = torch.tensor(order if order is not None else range(len(batch.turns.group_B)))
        chunks = order_B.tensor_split(self.options.minibatches)
        chunks = [torch.isin(rows.trajectory_R, chosen_B).nonzero()[:, 0] for chosen_B in chunks]
        chunks = [row_M for row_M in chunks if bool(rows.mask_RT[row_M].any())]
        if not chunks:
            return {}
        # The first step's own forward pass is that of the old weights, so its rows need no other.
        later = chunks[1:]
        advantage_RT = on_tokens(credit, batch.turns)
        extra = _Extra(
            old_RT=self.score(rows, torch.cat(later)) if later else torch.zeros(rows.mask_RT.shape),
            reference_RT=self.score(rows, reference=True) if objective.reference else None,
            advantage_RT=advantage_RT,
            group_R=batch.turns.group_B[rows.trajectory_R],
            targets=targets(batch, on_turns(credit, batch.turns), advantage_RT),
        )
        metrics, skipped = Means(), 0
        for step in range(self.options.epochs * len(chunks)):
            metrics.add(self._backward(batch, chunks[step % len(chunks)], extra, objective, first=step == 0))
            norm = self._descend(self._rate())
            skipped += norm is None
            metrics.add({} if norm is None else {"grad_norm": norm})
        return {**metrics.values(), "skipped_steps": float(skipped)}

    def supervise(self, rows: Rows, observation_weight: float, learning_rate: float) -> dict[str, float]:
        """One step of cross-entropy on actions, and on observations by ``observation_weight``.

        Raises:
            RunError: gradients were not finite for too many steps in a row.
        """
        position_RT = torch.arange(rows.token_RT.shape[1])
        inside_RT = (position_RT < rows.length_R[:, None]) & (position_RT > 0)
        weight_RT = torch.where(rows.mask_RT, 1.0, observation_weight) * inside_RT
        total, metrics = weight_RT.sum(), Means()
        for index_M in micro_batches(rows, self.options.micro_tokens):
            part = rows.select(index_M)
            weight_MT = weight_RT[index_M, : part.mask_RT.shape[1]]
            logp_RT = self.reader.scores(self.model, part._replace(mask_RT=weight_MT > 0)).logp_RT
            (-(logp_RT * weight_MT.to(self.device)).sum() / total).backward()
            tokens = int(part.mask_RT.sum())
            nll = -(logp_RT.detach() * part.mask_RT.to(self.device)).sum() / max(1, tokens)
            metrics.add({"action_nll": nll}, tokens)
        norm = self._descend(learning_rate)
        return {**metrics.values(), **({"skipped_steps": 1.0} if norm is None else {"grad_norm": norm})}

    # --- inside ----------------------------------------------------------------------------------

    def _backward(
        self, batch: Batch, row_M: Tensor, extra: _Extra, objective: Objective, *, first: bool
    ) -> dict[str, float]:
        """Gradients of the objective on a minibatch, one micro-batch after the other."""
        rows = batch.rows
        weight_RT = torch.zeros(rows.mask_RT.shape)
        weight_RT[row_M] = objective.reduce(
            RowMask(rows.mask_RT[row_M], rows.turn_RT[row_M], rows.trajectory_R[row_M])
        ).to(weight_RT.dtype)
        trajectory_M = rows.trajectory_R[row_M].unique()
        turns, tokens = int(batch.turns.mask_BK[trajectory_M].sum()), int(rows.mask_RT[row_M].sum())
        counts = {"turns": turns, "tokens": tokens, "trajectories": len(trajectory_M)}
        metrics, heads = Means(), Heads(self.value_head, self.progress_head)
        for index_N in micro_batches(rows, self.options.micro_tokens, row_M):
            part = rows.select(index_N)
            with self.reader.precision():
                hidden = self.reader.hidden(self.model, part)
                scores = self.reader.tokens(self.model, part, hidden)
                if first:
                    extra.old_RT[index_N, : part.mask_RT.shape[1]] = scores.logp_RT.detach().cpu()
                sampled = self._token_batch(part, index_N, scores, extra)
                weights = weight_RT[index_N, : part.mask_RT.shape[1]].to(self.device)
                loss, measured = policy_loss(sampled, weights, objective)
            metrics.add(measured, int(part.mask_RT.sum()))
            for name, gap_N, count in head_gaps(heads, part, index_N, hidden, batch, extra.targets):
                loss = loss + self.options.value_weight * gap_N.square().sum() / max(1, counts[count])
                metrics.add({name: gap_N.detach().abs().sum() / max(1, len(gap_N))}, len(gap_N))
            loss.backward()
        return metrics.values()

    def _token_batch(self, part: Rows, index_N: Tensor, scores: Scores, extra: _Extra) -> TokenBatch:
        longest = part.mask_RT.shape[1]

        def cut(x_RT: Tensor) -> Tensor:
            return x_RT[index_N, :longest].to(self.device)

        return TokenBatch(
            logp_RT=scores.logp_RT,
            old_logp_RT=cut(extra.old_RT),
            behaviour_logp_RT=part.behaviour_logp_RT.to(self.device),
            entropy_RT=scores.entropy_RT,
            advantage_RT=cut(extra.advantage_RT),
            mask_RT=part.mask_RT.to(self.device),
            turn_RT=part.turn_RT.to(self.device),
            trajectory_R=part.trajectory_R.to(self.device),
            group_R=extra.group_R[index_N].to(self.device),
            reference_logp_RT=None if extra.reference_RT is None else cut(extra.reference_RT),
        )

    def _reference(self, stack: contextlib.ExitStack) -> nn.Module:
        """The frozen model, or this one with its adapters off for as long as ``stack`` lives."""
        if self.reference is not None:
            return self.reference
        disable = getattr(self.model, "disable_adapter", None)
        if disable is None:
            raise RunError(
                "A loss compares with a reference model, and there is none.", "Give the learner one."
            )
        stack.enter_context(disable())
        return self.model

    def _descend(self, learning_rate: float) -> float | None:
        """One step of the optimizer. Returns the policy's gradient norm; None if it was not finite."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate * group["scale"]
        limit = (
            self.options.max_grad_norm
        )  # for each module, so that a value head far off does not slow the policy
        norms = [nn.utils.clip_grad_norm_(trainable([module]), limit) for module in self.modules]
        finite = all(bool(torch.isfinite(norm)) for norm in norms)
        if finite:  # a single overflow must not destroy the run
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        self.skipped_in_a_row = 0 if finite else self.skipped_in_a_row + 1
        if self.skipped_in_a_row >= MAX_SKIPPED:
            raise RunError(
                f"The gradients of {MAX_SKIPPED} optimizer steps in a row were not finite; none was taken.",
                "Lower optimizer.learning_rate, or set optimizer.precision: float32, and resume or start anew.",
            )
        return float(norms[0]) if finite else None

    def _rate(self) -> float:
        return self.options.learning_rate * min(1.0, (self.steps + 1) / max(1, self.options.warmup))


class _Extra(NamedTuple):
    """What stays constant over the steps on one batch."""

    old_RT: Tensor  # the first step fills in its own rows
    reference_RT: Tensor | None
    advantage_RT: Tensor
    group_R: Tensor
    targets: Targets


def make_optimizer(modules: Sequence[nn.Module], options: Optimizer) -> torch.optim.AdamW:
    """AdamW on the policy, the first module, and on heads, whose rate is ``scale`` times as high.

    Vectors (norms, biases) are not decayed.
    """
    scales = [1.0] + [options.value_learning_rate / options.learning_rate] * (len(modules) - 1)
    groups = [
        {"params": parameters, "weight_decay": decay, "scale": scale}
        for module, scale in zip(modules, scales, strict=True)
        for parameters, decay in zip(_by_shape(module), (options.weight_decay, 0.0), strict=True)
        if parameters
    ]
    return torch.optim.AdamW(groups, lr=options.learning_rate, betas=options.betas, fused=True)


def _by_shape(module: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Matrices, and all else."""
    parameters = trainable([module])
    return [p for p in parameters if p.dim() == 2], [p for p in parameters if p.dim() != 2]
