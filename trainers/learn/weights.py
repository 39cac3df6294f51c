"""The seam for how a module's weights are held.

Training needs more of a module than its forward pass: which parameters the optimizer steps, how long their gradient is, what a
checkpoint keeps of them, what an engine is given. All of that goes through :class:`Weights`. Today a process holds whole
parameters (:class:`~turnwise.trainers.learn.whole.Whole`); a kind that holds parts of them belongs behind the same protocol, and
:func:`weights_of` chooses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from turnwise.agents.core import Kv
from turnwise.trainers.learn.trainable_engine import TrainableEngine
from turnwise.trainers.learn.whole import Whole


class Weights(Protocol):
    """The weights of one module, as whoever holds them gives them out.

    Attributes:
        module: computes with them.
        device: where they are.
        adapted: whether adapters are trained, which the checkpoint of :meth:`gather` merges.
    """

    @property
    def module(self) -> nn.Module: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def adapted(self) -> bool: ...

    def trainable(self) -> list[nn.Parameter]:
        """Return what the optimizer steps, in an order that a checkpoint may rely on."""
        ...

    def copied(self) -> list[nn.Parameter]:
        """Return those of which every learner of a team has a copy of its own: the team adds up their gradients."""
        ...

    def clip(self, longest: float) -> Tensor:
        """Scale the gradient down to a norm of at most ``longest``. Return the norm that it had."""
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
    return Whole(module)


def trainable(weights: Sequence[Weights]) -> list[nn.Parameter]:
    """Return the trained parameters of several modules, in their order."""
    return [parameter for held in weights for parameter in held.trainable()]
