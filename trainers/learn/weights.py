"""The seam for how a module's weights are held.

Training needs more of a module than its forward pass: which parameters the optimizer steps, how long their gradient is, what a
checkpoint keeps of them, what an engine is given. All of that goes through :class:`Weights`. A process holds whole parameters
(:class:`~turnwise.trainers.learn.whole.Whole`) or, of each, a part (:class:`~turnwise.trainers.learn.shards.Sharded`);
:func:`weights_of` says which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from turnwise.agents.core import Kv
from turnwise.trainers.learn.mesh import SharedCall
from turnwise.trainers.learn.shards import Sharded, mesh_of
from turnwise.trainers.learn.trainable_engine import TrainableEngine
from turnwise.trainers.learn.whole import Whole


class Weights(Protocol):
    """The weights of one module, as whoever holds them gives them out.

    Attributes:
        module: computes with them.
        device: where they are.
        adapted: whether adapters are trained, which the checkpoint of :meth:`gather` merges.
        parted: whether each learner holds a part, so that every pass and every look at whole weights takes all learners.
    """

    @property
    def module(self) -> nn.Module: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def adapted(self) -> bool: ...

    @property
    def parted(self) -> bool: ...

    def trainable(self) -> list[nn.Parameter]:
        """Return what the optimizer steps, in an order that a checkpoint may rely on."""
        ...

    def names(self) -> list[str]:
        """Return the names in the module of :meth:`trainable`, in its order."""
        ...

    def copied(self) -> list[nn.Parameter]:
        """Return those of which every learner of a team has a copy of its own: the team adds up their gradients."""
        ...

    def clip(self, longest: float) -> Tensor:
        """Scale the gradient down to a norm of at most ``longest``. Return the norm that it had."""
        ...

    def gradients(self, *, last: bool) -> None:
        """Take the next backward pass for one before a step; after the ``last`` one its gradient is what it steps by."""
        ...

    def shared(self, call: SharedCall) -> None:
        """Have the other learners do what this one does next, where it takes all of them."""
        ...

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """Return what this process holds of a whole tensor that stands beside a parameter, such as its moment."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Return the trained parameters, whole, by their names in the module."""
        ...

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Take the parameters of :meth:`state` over.

        Raises:
            KeyError: one is missing.
            RuntimeError: one has another shape.
        """
        ...

    def gather(self) -> Iterator[tuple[str, Tensor]]:
        """Yield all weights, whole, under the names of a Hugging Face checkpoint: output head included, adapters merged."""
        ...

    def load(self, folder: Path) -> None:
        """Take over the weights of a Hugging Face folder that was made of :meth:`gather`, adapters aside.

        Raises:
            RuntimeError: they are another model's.
        """
        ...

    def publish(self, engine: TrainableEngine, version: int, *, kv: Kv | None = None) -> None:
        """Hand the weights to an engine, the adapters alone where it can add them itself."""
        ...


def weights_of(module: nn.Module) -> Weights:
    """Return the weights of a module, by how they are held."""
    mesh = mesh_of(module)
    return Whole(module) if mesh is None else Sharded(module, mesh)


def trainable(weights: Sequence[Weights]) -> list[nn.Parameter]:
    """Return the trained parameters of several modules, in their order."""
    return [parameter for held in weights for parameter in held.trainable()]
