"""The learners among whom weights are divided: their devices, and what they do together.

A pass through divided weights takes all of them, and so does whatever looks at whole weights: each layer is gathered when it is
its turn. The first learner decides when that happens; before it begins it has the others do the same (:class:`SharedCall`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import torch


class MeshSeat(NamedTuple):
    """What another learner has at hand: its learner, and the parts that learn or remember, by KIND/NAME."""

    learner: Any
    parts: Mapping[str, Any]


class SharedCall(Protocol):
    """Something that every learner must do at the same time; it is sent to the others."""

    def carried_out(self, seat: MeshSeat) -> None:
        """Do it with what this learner has."""
        ...


class Mesh:
    """The learners' devices, in a line.

    Args:
        device: this learner's.
        rank: this one's number.
        tell: has the others carry out a call, if this is the first one; the others tell nobody.
    """

    def __init__(
        self, device: torch.device, rank: int = 0, tell: Callable[[SharedCall], None] = lambda call: None
    ) -> None:
        from torch import distributed
        from torch.distributed.device_mesh import init_device_mesh

        self.device, self.leads, self.tell = device, rank == 0, tell
        self.size = distributed.get_world_size()
        self.devices: Any = init_device_mesh(device.type, (self.size,))
