"""Bytes of tensors at most, counted tensor by tensor, on any device and alike each time: those that wait for a backward pass, and all."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class HeldBytes:
    """Counts while :func:`held_bytes` is entered.

    Attributes:
        most: of all that was held at a time.
    """

    def __init__(self, model: nn.Module) -> None:
        self.most = 0
        self._now = 0
        self._owners: dict[int, int] = {}
        self._own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def hold(self, tensor: Tensor) -> _Held:
        """Count a tensor's storage, unless it is a weight's or something of it is held already, until what is returned is gone."""
        held = _Held(tensor)
        storage = tensor.untyped_storage()
        place, size = storage.data_ptr(), storage.nbytes()
        if place not in self._own:
            owners = self._owners.get(place, 0)
            self._owners[place] = owners + 1
            self._now += 0 if owners else size
            self.most = max(self.most, self._now)
            weakref.finalize(held, self._free, place, size)
        return held

    def _free(self, place: int, size: int) -> None:
        self._owners[place] -= 1
        if not self._owners[place]:
            del self._owners[place]
            self._now -= size


class _Held:
    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


@contextlib.contextmanager
def held_bytes(model: nn.Module) -> Iterator[HeldBytes]:
    """Within it all that autograd keeps for the backward pass is counted, weights aside.

    >>> layer, x = nn.Linear(4, 4), torch.randn(8, 4)
    >>> with held_bytes(layer) as held:
    ...     layer(x).tanh().sum().backward()
    >>> held.most == 2 * 8 * 4 * 4  # the input and the output of tanh
    True
    """
    meter = HeldBytes(model)
    with torch.autograd.graph.saved_tensors_hooks(meter.hold, lambda held: held.tensor):
        yield meter


class LiveBytes(TorchDispatchMode):
    """Counts, while it is entered, the bytes of all tensors that are there at a time: each storage from the operation that made it until it is let go of.

    What a kernel takes within one operation is not seen.

    >>> with LiveBytes() as live:
    ...     held = torch.zeros(10)
    ...     gone = torch.zeros(5) + 1
    ...     del gone
    >>> live.now, live.most
    (40, 80)

    Args:
        known: tensors that are there already and not counted.

    Attributes:
        now: bytes that are held.
        most: of all that was held at a time.
    """

    def __init__(self, known: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.now = self.most = 0
        self._seen = {_place(tensor) for tensor in known}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(found):
            if isinstance(tensor, Tensor) and (place := _place(tensor)) not in self._seen:
                storage = tensor.untyped_storage()
                self._seen.add(place)
                self.now += storage.nbytes()
                self.most = max(self.most, self.now)
                weakref.finalize(storage, self._free, place, storage.nbytes())
        return found

    def _free(self, place: int, size: int) -> None:
        self._seen.discard(place)
        self.now -= size


def _place(tensor: Tensor) -> int:
    storage: Any = tensor.untyped_storage()
    return int(storage._cdata)
