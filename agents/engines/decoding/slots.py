"""A KV cache of slots: sequences of different lengths share one batch, joining and leaving between steps.

Axes: S slot, B batch row, H head, Q new token, C column (position in a sequence), D head dimension.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

COLUMNS = 256  # to begin with; doubled when a sequence outgrows them


class SlotWindow(NamedTuple):
    """Slots on which one forward pass works, and the columns where its new tokens go."""

    slot_B: Tensor
    column_BQ: Tensor  # where each new token is kept; -1 for padding, which is kept nowhere
    length: int  # columns that are read
    dense: bool  # slot_B is 0 … B-1: the cache is read in place, without a copy


class SlotLayer(CacheLayerMixin):
    """Keys and values of one layer, (S, H, C + 1, D); the last column takes what padding writes."""

    def __init__(self, slots: int) -> None:
        super().__init__()
        self.slots = slots
        self.window: SlotWindow | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate, in the shape of the first states seen."""
        self.keys = self._allocate(key_states, COLUMNS)
        self.values = self._allocate(value_states, COLUMNS)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Keep the new states (B, H, Q, D) in their slots; return all that the window reads."""
        assert self.window is not None
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        for name in ("keys", "values"):
            setattr(self, name, self._fitting(getattr(self, name), self.window.length))
        return self._put(self.keys, key_states), self._put(self.values, value_states)

    def copy(self, source: int, target: int, columns: int) -> None:
        """Give slot ``target`` the first ``columns`` of slot ``source``."""
        for kept in (self.keys, self.values):
            if kept is not None:
                kept[target, :, :columns] = kept[source, :, :columns]

    def swap(self, one: int, other: int, columns: int) -> None:
        """Exchange the first ``columns`` of two slots."""
        for kept in (self.keys, self.values):
            if kept is not None:
                held = kept[one, :, :columns].clone()
                kept[one, :, :columns] = kept[other, :, :columns]
                kept[other, :, :columns] = held

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return (self.window.length if self.window else query_length), 0

    def get_seq_length(self) -> int:
        return self.window.length if self.window else 0

    def get_max_length(self) -> int:
        return -1

    def _put(self, kept: Tensor | None, states: Tensor) -> Tensor:
        assert kept is not None
        assert self.window is not None
        slot_B, column_BQ, length, dense = self.window
        kept[slot_B[:, None], :, column_BQ] = states.transpose(1, 2)
        return kept[: len(slot_B), :, :length] if dense else kept[slot_B, :, :length]

    def _allocate(self, states: Tensor, columns: int) -> Tensor:
        _, heads, _, width = states.shape
        return states.new_zeros((self.slots, heads, columns + 1, width))

    def _fitting(self, kept: Tensor, length: int) -> Tensor:
        """The cache itself, or a larger copy if it is too short."""
        old = columns = kept.shape[2] - 1
        while columns < length:
            columns *= 2
        if columns == old:
            return kept
        larger = self._allocate(kept, columns)
        larger[:, :, :old] = kept[:, :, :old]
        return larger


class SlotCache(Cache):
    """One :class:`SlotLayer` per layer of the model, for ``past_key_values``."""

    def __init__(self, layers: int, slots: int) -> None:
        self.slot_layers = [SlotLayer(slots) for _ in range(layers)]
        super().__init__(layers=list(self.slot_layers))

    def open(self, window: SlotWindow) -> None:
        """Set the window of the next forward pass."""
        for layer in self.slot_layers:
            layer.window = window

    def copy(self, source: int, target: int, columns: int) -> None:
        for layer in self.slot_layers:
            layer.copy(source, target, columns)

    def swap(self, one: int, other: int, columns: int) -> None:
        for layer in self.slot_layers:
            layer.swap(one, other, columns)


def attention_mask(position_BQ: Tensor, length: int, dtype: torch.dtype) -> Tensor:
    """Additive causal mask (B, 1, Q, length): each new token sees its slot up to its own position."""
    column_C = torch.arange(length, device=position_BQ.device)
    hidden = column_C > position_BQ[:, None, :, None]
    return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(
        hidden, torch.finfo(dtype).min
    )
