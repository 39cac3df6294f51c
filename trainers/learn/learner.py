"""The learner: forward, loss, backward, step. It knows no algorithm by name.

A batch's denominators are fixed by the reducer before it is cut into micro-batches, and whatever looks at several rows
(losses of the whole, corrections and heads by trajectory) is evaluated once, before any micro-batch has a gradient. So
how a batch is cut changes nothing but the rounding, and no forward pass is longer than ``micro_tokens`` or one row.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from turnwise.errors import RunError
from turnwise.trainers.core import Nucleus, TeacherTop, TokenCredit
from turnwise.trainers.kit.token_credit import on_tokens, over_tokens
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch
from turnwise.trainers.learn.heads import Head, HeadErrors
from turnwise.trainers.learn.minibatch import (
    Constants,
    Minibatch,
    Stream,
    is_cut,
    minibatches,
    reducer_weights,
    tokens_of,
    whole_of,
)
from turnwise.trainers.learn.model import deterministic
from turnwise.trainers.learn.objective import Objective, Slopes, policy_loss, whole_slopes
from turnwise.trainers.learn.optimizer import descend, make_optimizer
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.passes import Means, PassPart, Reader, Scores
from turnwise.trainers.learn.team import Alone, Team, check_agreement, means_of, shares, tree_shares
from turnwise.trainers.learn.weights import Weights, weights_of

MAX_SKIPPED = 10
"""Steps in a row without finite gradients after which a run stops."""


class Learner:
    """A model, its optimizer, and the passes over them.

    Args:
        model: a Hugging Face causal model or a peft model, on its device.
        options: of the optimizer.
        heads: on the model's hidden states, trained with it.
        reference: a frozen model, where a loss needs one. A peft model is its own reference without
            its adapters.
        temperature: at which the engine samples; log-probabilities are of that distribution.

    Attributes:
        team: with whom rows are shared, and every step is taken together; all must call :meth:`score` and :meth:`update`
            alike.
    """

    def __init__(
        self,
        model: nn.Module,
        options: OptimizerOptions,
        *,
        heads: Sequence[Head] = (),
        reference: nn.Module | None = None,
        temperature: float = 1.0,
    ) -> None:
        self.model, self.heads, self.reference = model, heads, reference
        self.options = options
        self.team: Team = Alone()
        self.device = weights_of(model).device
        self.reader = Reader(self.device, temperature, options.precision, options.share)
        self.reset_optimizer_state()

    @property
    def weights(self) -> list[Weights]:
        """Those of the model and of its heads, as far as there are any."""
        heads = [head.module for head in self.heads if head.module is not None]
        return [weights_of(module) for module in (self.model, *heads)]

    def reset_optimizer_state(self) -> None:
        """Forget the moments, as between a warm start and reinforcement."""
        self.optimizer = make_optimizer(self.weights, self.options)
        self.steps = 0
        self.skipped_in_a_row = 0

    # --- passes without gradient -----------------------------------------------------------------

    @torch.no_grad()
    def score(self, rows: TokenRows, row_M: Tensor | None = None, *, reference: bool = False) -> Tensor:
        """Log-probabilities of the sampled tokens, (R, T), on the CPU; zero outside rows ``row_M``."""
        logp_RT = torch.zeros(rows.mask_RT.shape)
        with contextlib.ExitStack() as stack:
            model = self.reference_model(stack) if reference else self.model
            for index_M in itertools.chain(*self._own(self._cut(rows, row_M))):
                if not len(index_M):
                    self.reader.nothing(model)
                    continue
                part = rows.select(index_M)
                logp_RT[index_M, : part.mask_RT.shape[1]] = self.reader.scores(model, part).logp_RT.cpu()
        self.team.sum_(logp_RT)
        return logp_RT

    @torch.no_grad()
    def read(
        self,
        rows: TokenRows,
        readers: Sequence[Callable[[PassPart], None]],
        row_M: Tensor | None = None,
        *,
        reference: bool = False,
    ) -> None:
        """One forward pass over rows (all if None), in micro-batches, which all ``readers`` look at; of the frozen ``reference`` if asked.

        In a team every learner reads all of them.
        """
        with contextlib.ExitStack() as stack:
            model = self.reference_model(stack) if reference else self.model
            parts = self.reader.cut(model, rows, self.options.micro_tokens, row_M)
            self._read(parts, rows, readers, model=model)

    @torch.no_grad()
    def _read(
        self,
        parts: Iterable[Tensor],
        rows: TokenRows,
        readers: Sequence[Callable[[PassPart], None]],
        nucleus: Nucleus | None = None,
        model: nn.Module | None = None,
    ) -> None:
        read_by = self.model if model is None else model
        for index_M in parts:
            if not len(index_M):
                self.reader.nothing(read_by)
                continue
            part = PassPart(self.reader, read_by, rows.select(index_M), index_M, nucleus)
            for read in readers:
                read(part)

    def _cut(self, rows: TokenRows, row_M: Tensor | None) -> list[list[Tensor]]:
        """The micro-batches of each share of these rows (all if None).

        Where each pass takes all learners, shares have equally many: those that are over sooner end in empty ones.
        """
        divide = tree_shares if self.reader.shares(self.model, rows, row_M) else shares
        chosen_M = torch.arange(len(rows.length_R)) if row_M is None else row_M
        cut = [
            self.reader.cut(self.model, rows, self.options.micro_tokens, own_M)
            for own_M in divide(rows, self.team.size, chosen_M)
        ]
        most = max(1, *map(len, cut)) if weights_of(self.model).parted else 0
        return [[*own, *[torch.zeros(0, dtype=torch.long)] * (most - len(own))] for own in cut]

    def _own(self, cut: Sequence[list[Tensor]]) -> list[list[Tensor]]:
        """Of the micro-batches of each share those of this process's shares."""
        return [cut[number] for number in self.team.mine]

    # --- passes with gradient --------------------------------------------------------------------

    def update(
        self,
        batch: TrainingBatch,
        credit: Tensor | TokenCredit,
        objective: Objective,
        *,
        weight_B: Tensor | None = None,
        aims: Tensor | TokenCredit | None = None,
        order: Sequence[int] | None = None,
        beside: Sequence[Stream] = (),
    ) -> dict[str, float]:
        """Train on a batch: ``epochs`` × ``minibatches`` optimizer steps. Returns metrics, averaged.

        A minibatch holds whole groups. Trajectories of weight 0 are not read, and count in denominators. A batch
        without a single sampled token to learn from changes nothing and gives no metrics.

        Args:
            batch: of whole groups, all that was played.
            credit: the advantage of each turn, or of each sampled token.
            objective: the losses.
            weight_B: multiplies a trajectory's advantages; 1 if None.
            aims: what heads are fitted by: the credit rule's own advantages; ``credit`` if None.
            order: groups in the order in which minibatches take them; as they come if None.
            beside: what sources show; each step takes its share of them.

        Raises:
            RunError: gradients were not finite for too many steps in a row.
        """
        streams = [
            self._prepared(one) for one in (Stream(batch, credit, objective, weight_B, aims, order), *beside)
        ]
        check_agreement(
            self.team,
            [
                (one.stream.batch.rows.token_RT, one.constants.advantage_RT * one.constants.kept_RT)
                for one in streams
            ],
        )
        count = max(len(one.chunks) for one in streams)
        metrics, skipped = Means(), 0
        for step in range(self.options.epochs * count):
            active = [one for one in streams if step % count < len(one.chunks)]
            for one in active:
                first = step == 0 or not one.compares
                chunk = one.chunks[step % count]
                found = self._backward(one, chunk, first=first, last=one is active[-1])
                metrics.add({f"{one.stream.name}/{k}" if one.stream.name else k: v for k, v in found.items()})
            self.team.add_up(self.weights)
            norm = self._descend(self._rate())
            skipped += norm is None
            metrics.add({} if norm is None else {"grad_norm": norm})
        return {**metrics.values(), "skipped_steps": float(skipped)} if count else {}

    def _prepared(self, stream: Stream) -> _Prepared:
        """Cut a stream into minibatches, and score what must be known before the first step."""
        batch, objective = stream.batch, stream.objective
        rows, turns = batch.rows, batch.turns
        weight_B = torch.ones(len(turns.group_B)) if stream.weight_B is None else stream.weight_B.float()
        chunks = minibatches(batch, weight_B, stream.order, self.options.minibatches)
        # The first step's own forward pass is that of the old weights, so its rows need no other; none do where
        # nothing asks how likely a token was before.
        compares = bool(rows.known_RT.any()) or objective.reads_old
        later = [chunk.row_M for chunk in chunks[1:]] if compares else []
        kept_M = torch.cat([chunk.row_M for chunk in chunks]) if chunks else torch.zeros(0, dtype=torch.long)
        kept_RT = over_tokens(batch.weight_BK, turns) * weight_B[rows.trajectory_R][:, None]
        token = turns.tokens.signals if turns.tokens else {}
        constants = Constants(
            old_RT=self.score(rows, torch.cat(later)) if later else torch.zeros(rows.mask_RT.shape),
            reference_RT=self.score(rows, kept_M, reference=True) if objective.reference else None,
            advantage_RT=on_tokens(stream.credit, turns).float(),
            kept_RT=kept_RT.float(),
            group_R=turns.group_B[rows.trajectory_R],
            weight_B=weight_B,
            aims=stream.credit if stream.aims is None else stream.aims,
            signals={name: token[name].float() for name in sorted(objective.signals & {*token})},
        )
        return _Prepared(stream, chunks, constants, compares)

    def supervise(self, rows: TokenRows, observation_weight: float, learning_rate: float) -> dict[str, float]:
        """One step of cross-entropy on actions, and on observations by ``observation_weight``.

        Raises:
            RunError: gradients were not finite for too many steps in a row.
        """
        position_RT = torch.arange(rows.token_RT.shape[1])
        inside_RT = (position_RT < rows.length_R[:, None]) & (position_RT > 0)
        weight_RT = torch.where(rows.mask_RT, 1.0, observation_weight) * inside_RT
        total, metrics = weight_RT.sum(), Means()
        with deterministic(self.device, self.options.deterministic):
            for index_M in self.reader.cut(self.model, rows, self.options.micro_tokens):
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
        self, prepared: _Prepared, chunk: Minibatch, *, first: bool, last: bool
    ) -> dict[str, float]:
        """Gradients of the objective on a minibatch, one micro-batch after the other; ``last``: a step comes after it."""
        stream, constants = prepared.stream, prepared.constants
        batch, objective = stream.batch, stream.objective
        rows, tokens = batch.rows, int(batch.rows.mask_RT[chunk.row_M].sum())
        cut = self._cut(rows, chunk.row_M)
        parts = list(itertools.chain(*cut))
        counts = {
            "turns": int(batch.turns.mask_BK[rows.trajectory_R[chunk.row_M].unique()].sum()),
            "tokens": tokens,
            "trajectories": len(rows.trajectory_R[chunk.row_M].unique()),
        }
        ahead = self._look_ahead(prepared, chunk, cut, first=first)
        weight_RT = reducer_weights(rows, chunk, objective.reduce)
        # Without a look ahead the first step's old log-probabilities are known micro-batch by micro-batch only.
        known = not first or ahead.scores is not None
        correction_RT = self._correction(prepared, chunk) if known else None
        slopes = None
        if ahead.scores is not None and objective.whole:
            assert correction_RT is not None
            whole = whole_of(
                batch, chunk, ahead.scores, constants, correction_RT, weight_RT, objective.signals
            )
            slopes = whole_slopes(whole, objective.whole, chunk.row_M, rows.mask_RT.shape)
        step = _Step(prepared, first, weight_RT, correction_RT, slopes, ahead.errors, counts)
        found: list[Means] = []
        for number in self.team.mine:
            found.append(Means())
            if slopes is not None and number == 0:
                found[-1].add(slopes.metrics, tokens)
            with self.team.share(number, self.weights):
                for place, index_N in enumerate(cut[number], 1):
                    weights_of(self.model).gradients(last=last and place == len(cut[number]))
                    self._back(step, index_N, found[-1])
        if first and len(self.team.mine) < self.team.size:
            self._tell_old(constants.old_RT, parts, list(itertools.chain(*self._own(cut))))
        return means_of(self.team, found)

    def _back(self, step: _Step, index_N: Tensor, metrics: Means) -> None:
        """Gradients of the objective on one micro-batch."""
        if not len(index_N):
            self.reader.nothing(self.model).backward()
            return
        stream, constants = step.prepared.stream, step.prepared.constants
        batch, objective = stream.batch, stream.objective
        seen = PassPart(self.reader, self.model, batch.rows.select(index_N), index_N, objective.nucleus)
        with self.reader.precision():
            part, scores = seen.rows, seen.scores
            longest = part.mask_RT.shape[1]
            if step.first:
                constants.old_RT[index_N, :longest] = scores.logp_RT.detach().cpu()
            top = _top_of(batch, seen) if objective.reads_top else None
            mean_RT = seen.mean_logp() if objective.reads_mean else None
            sampled = tokens_of(batch.rows, index_N, scores, constants, self.device, top, mean_RT)
            source_RT = part.source_RT.to(self.device)
            corrected_RT = (
                objective.corrected(sampled, source_RT, batch.sources)
                if step.correction_RT is None
                else step.correction_RT[index_N, :longest].to(self.device)
            )
            kept_RT, weight_RT = (
                x_RT[index_N, :longest].to(self.device) for x_RT in (constants.kept_RT, step.weight_RT)
            )
            shares_of = objective.shares(source_RT, batch.sources)
            loss, measured = policy_loss(sampled, corrected_RT, kept_RT, weight_RT, shares_of)
            if step.slopes is not None:
                loss = loss + step.slopes.along(index_N, scores)
        metrics.add(measured, int(part.mask_RT.sum()))
        if not stream.name:
            loss = loss + self._head_loss(seen, batch, constants, step.errors, step.counts, metrics)
        loss.backward()

    def _tell_old(self, old_RT: Tensor, parts: Sequence[Tensor], own: Sequence[Tensor]) -> None:
        """Every learner gets the first step's log-probabilities of all rows; each has those of its own."""
        told_RT = torch.zeros_like(old_RT)
        for index_N in own:
            told_RT[index_N] = old_RT[index_N]
        self.team.sum_(told_RT)
        for index_N in parts:
            old_RT[index_N] = told_RT[index_N]

    def _look_ahead(
        self, prepared: _Prepared, chunk: Minibatch, parts: Sequence[list[Tensor]], *, first: bool
    ) -> _Ahead:
        """A pass without gradient over the minibatch, where something looks at rows of several micro-batches."""
        cut = is_cut(prepared.stream.batch.rows, list(itertools.chain(*parts)))
        stream, constants = prepared.stream, prepared.constants
        batch, objective = stream.batch, stream.objective
        rows = batch.rows
        heads = [] if stream.name else [head for head in self.heads if head.sums_over_turns]
        leaves = 2 if objective.nucleus is None else 3
        found = Scores(*(torch.zeros(rows.mask_RT.shape) for _ in range(leaves)))
        errors = HeadErrors(len(batch.turns.group_B))

        def score(seen: PassPart) -> None:
            for x_RT, new_RT in zip(found, seen.scores, strict=True):
                if x_RT is not None and new_RT is not None:
                    x_RT[seen.index_N, : new_RT.shape[1]] = new_RT.cpu()

        def fit(seen: PassPart) -> None:
            for head in heads:
                for gap in head.gaps(seen, batch, constants.aims):
                    errors.add(gap)

        scored = bool(objective.whole) or (first and cut and objective.corrects_by_trajectory)
        if cut and heads:
            readers = [*([score] if scored else []), fit]
            whole = self.reader.cut(self.model, rows, self.options.micro_tokens, chunk.row_M)
            self._read(whole, rows, readers, objective.nucleus)
        elif scored:
            self._read(itertools.chain(*self._own(parts)), rows, [score], objective.nucleus)
            for x_RT in found:
                if x_RT is not None:
                    self.team.sum_(x_RT)
        if scored and first:
            constants.old_RT[chunk.row_M] = found.logp_RT[chunk.row_M]
        return _Ahead(found if scored else None, errors)

    def _correction(self, prepared: _Prepared, chunk: Minibatch) -> Tensor:
        """The correction of a whole minibatch, from old log-probabilities that are known, (R, T) of the batch."""
        batch, constants = prepared.stream.batch, prepared.constants
        rows = batch.rows
        longest = int(rows.length_R[chunk.row_M].max())
        old_RT = constants.old_RT[chunk.row_M, :longest].to(self.device)
        scores = Scores(old_RT, torch.zeros_like(old_RT))
        correction_RT = torch.zeros(rows.mask_RT.shape)
        sampled = tokens_of(rows, chunk.row_M, scores, constants, self.device)
        source_RT = rows.source_RT[chunk.row_M, :longest].to(self.device)
        found_RT = prepared.stream.objective.corrected(sampled, source_RT, batch.sources)
        correction_RT[chunk.row_M, :longest] = found_RT.to(correction_RT.dtype).cpu()
        return correction_RT

    def _head_loss(
        self,
        seen: PassPart,
        batch: TrainingBatch,
        constants: Constants,
        errors: HeadErrors,
        counts: Mapping[str, int],
        metrics: Means,
    ) -> Tensor:
        """Return a number that has the gradient of the heads' squared errors; their mean sizes go into ``metrics``."""
        loss = torch.zeros((), device=self.device)
        for head in self.heads:
            for gap in head.gaps(seen, batch, constants.aims):
                error_N, share_N = errors.of(gap)
                # ∂Σ e² = Σ 2e·∂gap, also where the error is a sum over rows that are elsewhere.
                squares = 2 * (error_N * gap.gap_N).sum()
                loss = loss + self.options.value_weight * squares / max(1, counts[gap.unit])
                size = (share_N * error_N.abs()).sum() / share_N.sum().clamp(min=1e-9)
                weight = len(gap.gap_N) if gap.owner_N is None else float(share_N.sum())
                metrics.add({gap.metric: size}, weight)
        return loss

    def reference_model(self, stack: contextlib.ExitStack) -> nn.Module:
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
        norms = descend(self.optimizer, self.weights, self.options.max_grad_norm)
        self.steps += 1
        self.skipped_in_a_row = 0 if norms else self.skipped_in_a_row + 1
        if self.skipped_in_a_row >= MAX_SKIPPED:
            raise RunError(
                f"The gradients of {MAX_SKIPPED} optimizer steps in a row were not finite; none was taken.",
                "Lower optimizer.learning_rate, or set optimizer.precision: float32, and resume or start anew.",
            )
        return norms[0] if norms else None

    def _rate(self) -> float:
        return self.options.learning_rate * min(1.0, (self.steps + 1) / max(1, self.options.warmup))


class _Ahead(NamedTuple):
    """Results of a pass without gradient: scores (R, T) of the batch, on the CPU, and the heads' sums."""

    scores: Scores | None
    errors: HeadErrors


class _Step(NamedTuple):
    """Quantities that all micro-batches of a minibatch have in common; tensors (R, T) are of the batch."""

    prepared: _Prepared
    first: bool
    weight_RT: Tensor
    correction_RT: Tensor | None
    slopes: Slopes | None
    errors: HeadErrors
    counts: Mapping[str, int]


class _Prepared(NamedTuple):
    """A stream, cut into minibatches; ``compares``: with the weights before its first step."""

    stream: Stream
    chunks: Sequence[Minibatch]
    constants: Constants
    compares: bool


def _top_of(batch: TrainingBatch, seen: PassPart) -> TeacherTop:
    """Return what the teacher would say instead in some rows, and how likely that is to the policy, with gradient."""
    if batch.top is None:
        raise RunError(
            "A loss asks for what a teacher would say, and there is no teacher.",
            "Set the recipe's `teacher`.",
        )
    longest = seen.rows.mask_RT.shape[1]
    token_RTJ, logp_RTJ = (x[seen.index_N, :longest] for x in batch.top[:2])
    own_RTJ = seen.of_tokens(token_RTJ)
    return TeacherTop(token_RTJ.to(own_RTJ.device), logp_RTJ.to(own_RTJ.device), own_RTJ)
