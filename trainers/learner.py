"""The learner: forward, loss, backward, step. It knows no algorithm by name.

A batch's denominators are fixed by the reducer before it is cut into micro-batches, so how it is cut
changes nothing but the rounding.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from turnwise.trainers.collate import Batch, Rows, micro_batches
from turnwise.trainers.core import Correction, Loss, Reduce, RowMask, TokenBatch
from turnwise.trainers.model import ValueHead, hidden_states, token_stats, trainable
from turnwise.trainers.schema import Optimizer


class Term(NamedTuple):
    """A loss with its weight in the sum."""

    name: str
    loss: Loss
    weight: float


@dataclass(frozen=True)
class Objective:
    """What is descended: Σ weight · reduce(loss), advantages corrected for the engine's gap."""

    terms: Sequence[Term]
    reduce: Reduce
    correction: Correction
    value_weight: float = 0.5
    reference: bool = False  # whether a loss compares with the frozen reference


class Scores(NamedTuple):
    """What a forward pass reads off every sampled token, and off the state before every turn."""

    logp_RT: Tensor
    entropy_RT: Tensor
    value_BK: Tensor | None


class Learner:
    """A model, its optimizer, and the passes over them.

    Args:
        model: a Hugging Face causal model or a peft model, on its device.
        options: of the optimizer.
        value_head: where the credit rule needs V(s).
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
        reference: nn.Module | None = None,
        temperature: float = 1.0,
    ) -> None:
        self.model, self.value_head, self.reference = model, value_head, reference
        self.options, self.temperature = options, temperature
        self.device = next(model.parameters()).device
        self.reset_optimizer()

    @property
    def modules(self) -> list[nn.Module]:
        return [self.model, *([self.value_head] if self.value_head else [])]

    def reset_optimizer(self) -> None:
        """Forget the moments, as between a warm start and reinforcement."""
        self.optimizer = make_optimizer(self.modules, self.options)
        self.steps = 0

    # --- passes without gradient -----------------------------------------------------------------

    @torch.no_grad()
    def score(self, rows: Rows, row_M: Tensor | None = None, *, reference: bool = False) -> Tensor:
        """Log-probabilities of the sampled tokens, (R, T), on the CPU; zero outside rows ``row_M``."""
        logp_RT = torch.zeros(rows.mask_RT.shape)
        model = self.reference if reference and self.reference is not None else self.model
        disable = (
            getattr(self.model, "disable_adapter", None) if reference and self.reference is None else None
        )
        with disable() if disable else contextlib.nullcontext():
            for index_M in micro_batches(rows, self.options.micro_tokens, row_M):
                part = rows.select(index_M)
                scores = self._forward(model, part)
                logp_RT[index_M, : part.mask_RT.shape[1]] = scores.logp_RT.cpu()
        return logp_RT

    @torch.no_grad()
    def values(self, batch: Batch) -> Tensor:
        """V of the state before each turn, (B, K), on the CPU."""
        rows, mask_BK = batch.rows, batch.turns.mask_BK
        value_BK = torch.zeros(mask_BK.shape)
        assert self.value_head is not None
        for index_M in micro_batches(rows, self.options.micro_tokens):
            part = rows.select(index_M)
            where_BK, hidden_ND = self._states(part, index_M, mask_BK, self._hidden(self.model, part))
            value_BK[where_BK] = self.value_head(hidden_ND).float().cpu()
        return value_BK

    # --- passes with gradient --------------------------------------------------------------------

    def update(
        self, batch: Batch, advantage_BK: Tensor, objective: Objective, *, order: Sequence[int] | None = None
    ) -> dict[str, float]:
        """Train on a batch: ``epochs`` × ``minibatches`` optimizer steps. Returns metrics, averaged.

        Args:
            batch: of whole groups.
            advantage_BK: what the credit rule gave each turn.
            objective: the losses.
            order: trajectories in the order in which minibatches take them; as they come if None.
        """
        rows = batch.rows
        order_B = torch.tensor(order if order is not None else range(len(batch.turns.group_B)))
        chunks = order_B.tensor_split(self.options.minibatches)
        chunks = [torch.isin(rows.trajectory_R, chosen_B).nonzero()[:, 0] for chosen_B in chunks]
        chunks = [row_M for row_M in chunks if len(row_M) and bool(rows.mask_RT[row_M].any())]
        extra = _Extra(
            # The first step's own forward pass is that of the old weights.
            old_RT=self.score(rows, torch.cat(chunks[1:]))
            if len(chunks) > 1
            else torch.zeros(rows.mask_RT.shape),
            reference_RT=self.score(rows, reference=True) if objective.reference else None,
            advantage_RT=advantage_BK[rows.trajectory_R[:, None], rows.turn_RT.clamp(min=0)] * rows.mask_RT,
            group_R=batch.turns.group_B[rows.trajectory_R],
            return_BK=_value_targets(batch, advantage_BK),
        )
        metrics = _Mean()
        for step in range(self.options.epochs * len(chunks)):
            row_M = chunks[step % len(chunks)]
            metrics.add(self._step(batch, row_M, extra, objective, first=step == 0))
        return metrics.values()

    def supervise(self, rows: Rows, observation_weight: float, learning_rate: float) -> dict[str, float]:
        """One step of cross-entropy on actions, and on observations by ``observation_weight``."""
        position_RT = torch.arange(rows.token_RT.shape[1])
        inside_RT = (position_RT < rows.length_R[:, None]) & (position_RT > 0)
        weight_RT = torch.where(rows.mask_RT, 1.0, observation_weight) * inside_RT
        total, action_nll = weight_RT.sum(), 0.0
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        for index_M in micro_batches(rows, self.options.micro_tokens):
            part = rows.select(index_M)._replace(
                mask_RT=weight_RT[index_M, : int(rows.length_R[index_M].max())] > 0
            )
            weights = weight_RT[index_M, : part.mask_RT.shape[1]].to(self.device)
            with self._precision():
                logp_RT = self._forward(self.model, part).logp_RT
            (-(logp_RT * weights).sum() / total).backward()
            action_nll -= float((logp_RT.detach() * (part.turn_RT >= 0).to(self.device)).sum())
        norm = self._descend()
        return {"action_nll": action_nll / max(1, int(rows.mask_RT.sum())), "grad_norm": norm}

    # --- inside ----------------------------------------------------------------------------------

    def _step(
        self, batch: Batch, row_M: Tensor, extra: _Extra, objective: Objective, *, first: bool
    ) -> dict[str, float]:
        rows = batch.rows
        weight_MT = objective.reduce(
            RowMask(rows.mask_RT[row_M], rows.turn_RT[row_M], rows.trajectory_R[row_M])
        )
        metrics = _Mean()
        turns = int(batch.turns.mask_BK[rows.trajectory_R[row_M].unique()].sum())
        place_R = torch.full((len(rows.trajectory_R),), -1).index_put((row_M,), torch.arange(len(row_M)))
        for index_N in micro_batches(rows, self.options.micro_tokens, row_M):
            part = rows.select(index_N)
            with self._precision():
                hidden = self._hidden(self.model, part)
                scores = self._read(self.model, part, hidden)
                if first:
                    extra.old_RT[index_N, : part.mask_RT.shape[1]] = scores.logp_RT.detach().cpu()
                loss, measured = self._loss(
                    part, index_N, scores, extra, objective, weight_MT[place_R[index_N]]
                )
                if self.value_head is not None:
                    where_BK, hidden_ND = self._states(part, index_N, batch.turns.mask_BK, hidden)
                    gap_N = self.value_head(hidden_ND) - extra.return_BK[where_BK].to(self.device)
                    loss = loss + objective.value_weight * gap_N.square().sum() / max(1, turns)
                    measured["value_error"] = gap_N.detach().abs().mean()
            loss.backward()
            metrics.add(measured, int(part.mask_RT.sum()))
        return {**metrics.values(), "grad_norm": self._descend(self._rate())}

    def _loss(
        self,
        part: Rows,
        index_N: Tensor,
        scores: Scores,
        extra: _Extra,
        objective: Objective,
        weight_NT: Tensor,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        batch = self._token_batch(part, index_N, scores, extra)
        correction_RT = objective.correction(batch)
        batch = replace(batch, advantage_RT=batch.advantage_RT * correction_RT)
        weight_RT = weight_NT[:, : part.mask_RT.shape[1]].to(self.device)
        loss, metrics = torch.zeros((), device=self.device), {}
        for term in objective.terms:
            found = term.loss(batch)
            loss = loss + term.weight * (weight_RT * found.loss_RT).sum()
            metrics |= dict(found.metrics)
        mask, n = batch.mask_RT, batch.mask_RT.sum().clamp(min=1)
        gap_RT = (batch.old_logp_RT - batch.behaviour_logp_RT).abs() * mask
        metrics |= {
            "entropy": (batch.entropy_RT.detach() * mask).sum() / n,
            "engine_gap": gap_RT.sum() / n,
            "correction": (correction_RT * mask).sum() / n,
        }
        return loss, metrics

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

    def _forward(self, model: nn.Module, part: Rows) -> Scores:
        return self._read(model, part, self._hidden(model, part))

    def _hidden(self, model: nn.Module, part: Rows) -> Tensor:
        with self._precision():
            return hidden_states(model, part.token_RT.to(self.device))

    def _read(self, model: nn.Module, part: Rows, hidden_RTD: Tensor) -> Scores:
        """What the hidden state one token earlier says of each token under the mask."""
        wanted_RT = part.mask_RT.to(self.device)
        token_N = part.token_RT.to(self.device)[wanted_RT]
        with self._precision():
            stats = token_stats(model, hidden_RTD[:, :-1][wanted_RT[:, 1:]], token_N, self.temperature)
        zero_RT = torch.zeros(wanted_RT.shape, device=self.device)
        logp_RT = zero_RT.masked_scatter(wanted_RT, stats.logp_N)
        return Scores(logp_RT, zero_RT.masked_scatter(wanted_RT, stats.entropy_N), None)

    def _states(
        self, part: Rows, index_N: Tensor, mask_BK: Tensor, hidden_RTD: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Which turns have their state in these rows (a mask over B, K), and its hidden states."""
        where_BK = mask_BK & torch.isin(part.state_row_BK, index_N)
        place = {int(row): n for n, row in enumerate(index_N)}
        row_N = torch.tensor([place[int(row)] for row in part.state_row_BK[where_BK]], device=self.device)
        return where_BK, hidden_RTD[row_N, part.state_position_BK[where_BK].to(self.device)]

    def _descend(self, learning_rate: float | None = None) -> float:
        if learning_rate is not None:
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate
        norm = nn.utils.clip_grad_norm_(trainable(self.modules), self.options.max_grad_norm)
        if torch.isfinite(norm):  # a single overflow must not destroy the run
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        return float(norm)

    def _rate(self) -> float:
        return self.options.learning_rate * min(1.0, (self.steps + 1) / max(1, self.options.warmup))

    def _precision(self) -> Any:
        if self.device.type == "cuda":
            return torch.autocast("cuda", torch.bfloat16)
        return contextlib.nullcontext()


class _Extra(NamedTuple):
    """What stays constant over the steps on one batch."""

    old_RT: Tensor  # the first step fills in its own rows
    reference_RT: Tensor | None
    advantage_RT: Tensor
    group_R: Tensor
    return_BK: Tensor


class _Mean:
    """Weighted means of metrics by name."""

    def __init__(self) -> None:
        self._seen: dict[str, list[tuple[Tensor | float, float]]] = defaultdict(list)

    def add(self, values: Mapping[str, Tensor | float], weight: float = 1.0) -> None:
        for name, value in values.items():
            self._seen[name].append((value, weight))

    def values(self) -> dict[str, float]:
        """Read here and not before: each number fetched from a GPU waits for all that was queued."""
        means: dict[str, float] = {}
        for name, seen in self._seen.items():
            weight = sum(w for _, w in seen)
            if weight:
                means[name] = sum(float(value) * w for value, w in seen) / weight
        return means


def make_optimizer(modules: Sequence[nn.Module], options: Optimizer) -> torch.optim.AdamW:
    """AdamW; norms, biases and embeddings are not decayed."""
    decayed, plain = [], []
    for parameter in trainable(modules):
        (decayed if parameter.dim() == 2 else plain).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": options.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=options.learning_rate, betas=options.betas, fused=True)


def _value_targets(batch: Batch, advantage_BK: Tensor) -> Tensor:
    """What V is fitted to: advantage + V, which is the λ-return, (B, K)."""
    value_BK = batch.turns.signals.get("value")
    return torch.zeros_like(advantage_BK) if value_BK is None else advantage_BK + value_BK
