"""Forward passes over a model: log-probabilities of sampled tokens, and hidden states before each turn."""

from __future__ import annotations

import contextlib
import functools
from collections import defaultdict
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from turnwise.trainers.learn.collate import TokenRows, TrainingBatch
from turnwise.trainers.learn.model import hidden_states, token_stats, vocabulary_logp
from turnwise.trainers.learn.options import Precision


class Scores(NamedTuple):
    """Log-probabilities and entropies of the tokens under the mask, in nats; 0 elsewhere."""

    logp_RT: Tensor
    entropy_RT: Tensor


class Reader:
    """Runs models and reads tokens and turns off their hidden states.

    Args:
        device: of the models.
        temperature: log-probabilities are of the distribution at this temperature.
        precision: of matrix products; ``auto`` is bfloat16 on CUDA.

    Attributes:
        tokens_read: how many tokens its forward passes have read so far, padding aside.
    """

    def __init__(self, device: torch.device, temperature: float, precision: Precision) -> None:
        self.device, self.temperature = device, temperature
        self.tokens_read = 0
        self.half = precision == "bfloat16" or (precision == "auto" and device.type == "cuda")

    def precision(self) -> AbstractContextManager[Any]:
        """The context in which models are run."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.half else contextlib.nullcontext()

    def scores(self, model: nn.Module, part: TokenRows) -> Scores:
        """Run a forward pass and return the log-probabilities and entropies of the tokens."""
        with self.precision():
            return self.tokens(model, part, self.hidden(model, part))

    def hidden(self, model: nn.Module, part: TokenRows) -> Tensor:
        """Last hidden states, (R, T, D)."""
        self.tokens_read += int(part.length_R.sum())
        return hidden_states(model, part.token_RT.to(self.device))

    def tokens(self, model: nn.Module, part: TokenRows, hidden_RTD: Tensor) -> Scores:
        """Log-probability and entropy of each token under the mask, by the hidden state before it."""
        wanted_RT = part.mask_RT.to(self.device)
        token_N = part.token_RT.to(self.device)[wanted_RT]
        stats = token_stats(model, hidden_RTD[:, :-1][wanted_RT[:, 1:]], token_N, self.temperature)
        zero_RT = torch.zeros(wanted_RT.shape, device=self.device)
        return Scores(*(zero_RT.masked_scatter(wanted_RT, x_N) for x_N in stats))

    def likeliest(
        self, model: nn.Module, part: TokenRows, hidden_RTD: Tensor, count: int
    ) -> tuple[Tensor, Tensor]:
        """The ``count`` likeliest tokens at each place under the mask and their log-probabilities, (R, T, J), 0 off it.

        All of the vocabulary, if it has no more.
        """
        logp_NV = self.vocabulary(model, part, hidden_RTD)
        logp_NJ, token_NJ = logp_NV.topk(min(count, logp_NV.shape[-1]))
        return _placed(part, token_NJ), _placed(part, logp_NJ)

    def of_tokens(self, model: nn.Module, part: TokenRows, hidden_RTD: Tensor, token_RTJ: Tensor) -> Tensor:
        """Log-probabilities of given tokens at each place under the mask, (R, T, J), 0 off it."""
        logp_NV = self.vocabulary(model, part, hidden_RTD)
        return _placed(part, logp_NV.gather(-1, token_RTJ.to(self.device)[part.mask_RT.to(self.device)]))

    def vocabulary(self, model: nn.Module, part: TokenRows, hidden_RTD: Tensor) -> Tensor:
        """Log-probabilities of the whole vocabulary at each place under the mask, (N, V)."""
        wanted_RT = part.mask_RT.to(self.device)
        return vocabulary_logp(model, hidden_RTD[:, :-1][wanted_RT[:, 1:]], self.temperature)


def _placed(part: TokenRows, x_NJ: Tensor) -> Tensor:
    """What belongs to the tokens under the mask, put where they are, (R, T, J)."""
    x_RTJ = x_NJ.new_zeros(*part.mask_RT.shape, x_NJ.shape[-1])
    wanted_RT = part.mask_RT.to(x_NJ.device)
    return x_RTJ.masked_scatter(wanted_RT[:, :, None].expand_as(x_RTJ), x_NJ)


def states(
    part: TokenRows, index_N: Tensor, mask_BK: Tensor, hidden_RTD: Tensor, at_BK: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Which turns have their state in these rows (a mask over B, K), and its hidden states (N, D).

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
    """Where the last sampled token of each turn lies in its row, (B, K)."""
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
    """

    def __init__(self, reader: Reader, model: nn.Module, rows: TokenRows, index_N: Tensor) -> None:
        self._reader, self._model = reader, model
        self.rows, self.index_N = rows, index_N
        with reader.precision():
            self.hidden_RTD = reader.hidden(model, rows)

    def of_tokens(self, token_RTJ: Tensor) -> Tensor:
        """Log-probabilities of given tokens at each sampled token's place, (R, T, J)."""
        with self._reader.precision():
            return self._reader.of_tokens(self._model, self.rows, self.hidden_RTD, token_RTJ)

    def distributions(self, wanted_RT: Tensor) -> Tensor:
        """Log-probabilities of the whole vocabulary at the places of some sampled tokens, row by row, (N, V)."""
        with self._reader.precision():
            return self._reader.vocabulary(
                self._model, self.rows._replace(mask_RT=wanted_RT), self.hidden_RTD
            )

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
            return self._reader.tokens(self._model, self.rows, self.hidden_RTD)


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
