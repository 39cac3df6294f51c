"""Forward passes over a model: log-probabilities of sampled tokens, and hidden states before each turn."""

from __future__ import annotations

import contextlib
import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from turnwise.errors import RecipeError
from turnwise.trainers.core import Nucleus
from turnwise.trainers.learn.attention import by_flex, hidden_states_of, take_trees, why_not
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch, micro_batches
from turnwise.trainers.learn.memory import LARGE
from turnwise.trainers.learn.model import (
    hidden_states,
    nothing_read,
    token_stats,
    vocabulary_logp,
    vocabulary_size,
)
from turnwise.trainers.learn.options import Precision, Share
from turnwise.trainers.learn.tree import TokenTree, count_nodes, tree_batches, tree_of

SAVES = 0.8
"""Rows are read as a tree where it has at most this share of their tokens."""


class Scores(NamedTuple):
    """Log-probabilities and entropies of the tokens under the mask, in nats; 0 elsewhere. ``nucleus_RT``: entropies of the
    nucleus, where a loss asks for them."""

    logp_RT: Tensor
    entropy_RT: Tensor
    nucleus_RT: Tensor | None = None


class RowStates(NamedTuple):
    """Last hidden states of rows; where these were read as a tree, also those of its nodes."""

    hidden_RTD: Tensor
    tree: TokenTree | None = None
    hidden_ND: Tensor | None = None


class Reader:
    """Runs models and reads tokens and turns off their hidden states.

    Args:
        device: of the models.
        temperature: log-probabilities are of the distribution at this temperature.
        precision: of matrix products; ``auto`` is bfloat16 on CUDA.
        share: when rows are read as trees.

    Attributes:
        tokens_read: how many tokens its forward passes have read so far, padding aside.
    """

    def __init__(
        self, device: torch.device, temperature: float, precision: Precision, share: Share = "auto"
    ) -> None:
        if share == "flex" and device.type != "cuda":
            raise RecipeError(
                "optimizer.share is flex, and PyTorch's flex attention has no backward pass on a CPU.",
                "Set optimizer.share: auto, or device: cuda.",
            )
        self.device, self.temperature, self.share = device, temperature, share
        self.tokens_read = 0
        self.half = precision == "bfloat16" or (precision == "auto" and device.type == "cuda")

    def precision(self) -> AbstractContextManager[Any]:
        """The context in which models are run."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.half else contextlib.nullcontext()

    def scores(self, model: nn.Module, part: TokenRows) -> Scores:
        """Run a forward pass and return the log-probabilities and entropies of the tokens."""
        with self.precision():
            return self.tokens(model, part, self.states(model, part))

    @torch.no_grad()
    def score(self, model: nn.Module, rows: TokenRows, most: int) -> Tensor:
        """Log-probabilities under any model of the tokens under the mask, (R, T), on the CPU, in passes of at most ``most`` tokens."""
        logp_RT = torch.zeros(rows.mask_RT.shape)
        for index_M in self.cut(model, rows, most):
            part = rows.select(index_M)
            logp_RT[index_M, : part.mask_RT.shape[1]] = self.scores(model, part).logp_RT.cpu()
        return logp_RT

    def shares(self, model: nn.Module, rows: TokenRows, row_M: Tensor | None = None) -> bool:
        """Say whether these rows (all if None) are read as trees. It depends on the rows and the model alone.

        Raises:
            RecipeError: trees were asked for, and the model reads rows only.
        """
        if self.share == "rows" or not len(rows.length_R):
            return False
        if reason := why_not(model):
            if self.share == "auto":
                return False
            raise RecipeError(
                f"optimizer.share is {self.share}, and {type(model).__name__} reads rows only: {reason}.",
                "Set optimizer.share: auto.",
            )
        if self.share != "auto":
            return True
        chosen_M = slice(None) if row_M is None else row_M
        length_M = rows.length_R[chosen_M]
        return count_nodes(rows.token_RT[chosen_M], length_M) <= SAVES * int(length_M.sum())

    def cut(self, model: nn.Module, rows: TokenRows, most: int, row_M: Tensor | None = None) -> list[Tensor]:
        """Indices of the rows (all if None) of each micro-batch, of at most ``most`` tokens or nodes."""
        if not self.shares(model, rows, row_M):
            return list(micro_batches(rows, most, row_M))
        chosen_M = torch.arange(len(rows.length_R)) if row_M is None else row_M
        return list(tree_batches(rows.token_RT, rows.length_R, most, chosen_M))

    def states(self, model: nn.Module, part: TokenRows) -> RowStates:
        """Run a forward pass and return the last hidden states."""
        if not self.shares(model, part):
            self.tokens_read += int(part.length_R.sum())
            return RowStates(hidden_states(model, part.token_RT.to(self.device)))
        take_trees(model)
        tree = tree_of(part.token_RT, part.length_R)
        self.tokens_read += len(tree.token_N)
        hidden_ND = hidden_states_of(model, tree, self.device, by_flex if self.share == "flex" else None)
        return RowStates(hidden_ND[tree.node_RT.to(self.device)], tree, hidden_ND)

    def nothing(self, model: nn.Module) -> Tensor:
        """Take part in a pass of learners that share this model's weights, without a row. Return 0, with a gradient of 0."""
        with self.precision():
            return nothing_read(model, self.device)

    def tokens(
        self, model: nn.Module, part: TokenRows, states: RowStates, nucleus: Nucleus | None = None
    ) -> Scores:
        """Log-probability and entropy of each token under the mask, by the hidden state before it."""
        wanted_RT = part.mask_RT.to(self.device)
        drawn = self._drawn(part, states)
        stats = token_stats(model, drawn.hidden_ED, drawn.token_E, self.temperature, nucleus)
        zero_RT = torch.zeros(wanted_RT.shape, device=self.device)
        measured = (x_E for x_E in stats if x_E is not None)
        return Scores(*(zero_RT.masked_scatter(wanted_RT, drawn.spread(x_E)) for x_E in measured))

    def _drawn(self, part: TokenRows, states: RowStates) -> _Drawn:
        """The tokens under the mask, each distinct one once where the rows were read as a tree."""
        wanted_RT = part.mask_RT.to(self.device)
        if states.tree is None or states.hidden_ND is None:
            token_N = part.token_RT.to(self.device)[wanted_RT]
            return _Drawn(states.hidden_RTD[:, :-1][wanted_RT[:, 1:]], token_N, None)
        tree = states.tree
        node_E, each_N = tree.node_RT[part.mask_RT].unique(return_inverse=True)
        above_E = tree.parent_N[node_E].to(self.device)
        return _Drawn(states.hidden_ND[above_E], tree.token_N[node_E].to(self.device), each_N.to(self.device))

    def likeliest(
        self, model: nn.Module, part: TokenRows, states: RowStates, count: int
    ) -> tuple[Tensor, Tensor]:
        """The ``count`` likeliest tokens at each place under the mask and their log-probabilities, (R, T, J), 0 off it.

        All of the vocabulary, if it has no more.
        """
        logp_NV = self.vocabulary(model, part, states)
        logp_NJ, token_NJ = logp_NV.topk(min(count, logp_NV.shape[-1]))
        return _placed(part, token_NJ), _placed(part, logp_NJ)

    def of_tokens(self, model: nn.Module, part: TokenRows, states: RowStates, token_RTJ: Tensor) -> Tensor:
        """Log-probabilities of given tokens at each place under the mask, (R, T, J), 0 off it."""
        logp_NV = self.vocabulary(model, part, states)
        return _placed(part, logp_NV.gather(-1, token_RTJ.to(self.device)[part.mask_RT.to(self.device)]))

    def vocabulary(self, model: nn.Module, part: TokenRows, states: RowStates) -> Tensor:
        """Log-probabilities of the whole vocabulary at each place under the mask, (N, V)."""
        drawn = self._drawn(part, states)
        return drawn.spread(vocabulary_logp(model, drawn.hidden_ED, self.temperature))


class _Drawn(NamedTuple):
    """Sampled tokens, and the hidden states that they were drawn from; ``each_N`` has the one of each place under the mask."""

    hidden_ED: Tensor
    token_E: Tensor
    each_N: Tensor | None

    def spread(self, x_E: Tensor) -> Tensor:
        """Repeat what belongs to the tokens for each place under the mask."""
        return x_E if self.each_N is None else x_E[self.each_N]


def _placed(part: TokenRows, x_NJ: Tensor) -> Tensor:
    """Put what belongs to the tokens under the mask where they are, (R, T, J)."""
    x_RTJ = x_NJ.new_zeros(*part.mask_RT.shape, x_NJ.shape[-1])
    wanted_RT = part.mask_RT.to(x_NJ.device)
    return x_RTJ.masked_scatter(wanted_RT[:, :, None].expand_as(x_RTJ), x_NJ)


def states(
    part: TokenRows, index_N: Tensor, mask_BK: Tensor, hidden_RTD: Tensor, at_BK: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return which turns have their state in these rows (a mask over B, K), and its hidden states (N, D).

    The state is the last prompt token; ``at_BK`` gives other positions in the same rows.
    """
    where_BK = mask_BK & torch.isin(part.state_row_BK, index_N)
    place_R = torch.zeros(int(index_N.max()) + 1, dtype=torch.long)
    place_R[index_N] = torch.arange(len(index_N))
    position_BK = part.state_position_BK if at_BK is None else at_BK
    row_N, position_N = place_R[part.state_row_BK[where_BK]], position_BK[where_BK]
    return where_BK, hidden_RTD[row_N.to(hidden_RTD.device), position_N.to(hidden_RTD.device)]


def before_tokens(part: TokenRows, hidden_RTD: Tensor) -> Tensor:
    """The hidden state from which each sampled token was drawn, (N, D)."""
    return hidden_RTD[:, :-1][part.mask_RT[:, 1:].to(hidden_RTD.device)]


def turn_ends(batch: TrainingBatch) -> Tensor:
    """Return the position of each turn's last sampled token in its row, (B, K)."""
    rows, (B, K) = batch.rows, batch.turns.mask_BK.shape
    position_RT = torch.arange(rows.mask_RT.shape[1]).expand_as(rows.mask_RT)
    turn_N = (rows.trajectory_R[:, None] * K + rows.turn_RT)[rows.mask_RT]
    last = torch.zeros(B * K, dtype=torch.long).scatter_reduce_(0, turn_N, position_RT[rows.mask_RT], "amax")
    return last.view(B, K)


class PassPart:
    """A micro-batch of rows in a forward pass, for whatever reads it.

    Attributes:
        rows: those of the micro-batch.
        index_N: where they are in the whole batch.
        hidden_RTD: their last hidden states.

    Scores have the entropy of the ``nucleus``, if one is given.
    """

    def __init__(
        self,
        reader: Reader,
        model: nn.Module,
        rows: TokenRows,
        index_N: Tensor,
        nucleus: Nucleus | None = None,
    ) -> None:
        self._reader, self._model, self._nucleus = reader, model, nucleus
        self.rows, self.index_N = rows, index_N
        with reader.precision():
            self._states = reader.states(model, rows)
        self.hidden_RTD = self._states.hidden_RTD

    def of_tokens(self, token_RTJ: Tensor) -> Tensor:
        """Log-probabilities of given tokens at each sampled token's place, (R, T, J)."""
        with self._reader.precision():
            return self._reader.of_tokens(self._model, self.rows, self._states, token_RTJ)

    def distributions(self, wanted_RT: Tensor) -> Tensor:
        """Log-probabilities of the whole vocabulary at the places of some sampled tokens, row by row, (N, V)."""
        with self._reader.precision():
            return self._reader.vocabulary(self._model, self.rows._replace(mask_RT=wanted_RT), self._states)

    def places(self) -> Iterator[Tensor]:
        """The sampled tokens' places cut so that the distributions of each part fit into memory: masks, (R, T)."""
        chunk = max(1, LARGE // vocabulary_size(self._model))
        for some_N2 in self.rows.mask_RT.nonzero().split(chunk):
            place_RT = torch.zeros_like(self.rows.mask_RT)
            place_RT[tuple(some_N2.T)] = True
            yield place_RT

    @torch.no_grad()
    def mean_logp(self) -> Tensor:
        """The mean over the vocabulary of its log-probabilities at each sampled token's place, (R, T), 0 off the mask."""
        found_RT = self.hidden_RTD.new_zeros(self.rows.mask_RT.shape)
        wanted_RT = self.rows.mask_RT.to(found_RT.device)
        mean_N = self.distributions(self.rows.mask_RT).mean(-1)
        return found_RT.to(mean_N.dtype).masked_scatter(wanted_RT, mean_N)

    @functools.cached_property
    def scores(self) -> Scores:
        """Log-probabilities and entropies of the sampled tokens; computed when they are first asked for."""
        with self._reader.precision():
            return self._reader.tokens(self._model, self.rows, self._states, self._nucleus)


class Means:
    """Weighted means of metrics by name."""

    def __init__(self) -> None:
        self._seen: dict[str, list[tuple[Tensor | float, float]]] = defaultdict(list)

    def add(self, values: Mapping[str, Tensor | float], weight: float = 1.0) -> None:
        """Each value with this weight, such as the number of tokens that it is a mean over."""
        for name, value in values.items():
            self._seen[name].append((value, weight))

    def values(self) -> dict[str, float]:
        """Read here and not before: each number fetched from a GPU waits for all that was queued."""
        return {name: total / weight for name, (total, weight) in self.sums().items()}

    def sums(self) -> dict[str, tuple[float, float]]:
        """Of each name the weighted sum and the weight, which is not 0."""
        found: dict[str, tuple[float, float]] = {}
        for name, seen in self._seen.items():
            weight = sum(w for _, w in seen)
            if weight:
                found[name] = sum(float(value) * w for value, w in seen), weight
        return found
