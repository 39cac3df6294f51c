"""Weights in parts: each learner holds a part of every parameter, of its gradient and of its moments (FSDP2).

PyTorch's ``fully_shard`` gathers a layer when a pass comes to it, lets it go after, and adds up the learners' gradients, each
learner receiving its part of the sum. :class:`Sharded` is the kind of :class:`~turnwise.trainers.learn.weights.Weights`
behind the seam. Parameters that leave it are whole again, one after the other. A learner holds all weights while it loads them, and
all gradients within a step of a model of up to :data:`WHOLE_GRADIENTS`; else a layer beside its parts.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from turnwise.agents.core import Kv
from turnwise.agents.models.loading import load_causal
from turnwise.errors import RunError
from turnwise.trainers.learn.memory import WHOLE_GRADIENTS
from turnwise.trainers.learn.mesh import Mesh, MeshSeat, SharedCall
from turnwise.trainers.learn.model import DECODES, base_of, decoded_by
from turnwise.trainers.learn.trainable_engine import TrainableEngine
from turnwise.trainers.learn.whole import OtherFormError, adapters_of, as_saved, own_state

_held: WeakKeyDictionary[nn.Module, Mesh] = WeakKeyDictionary()


def divide(module: nn.Module, mesh: Mesh, *, alike: bool = False) -> nn.Module:
    """Leave this learner a part of a model's weights; all learners must hold the same ones. Return the model.

    Args:
        module: whole, without gradients.
        mesh: the learners.
        alike: all learners read the same rows with it, so that the mean of their gradients counts, not the sum.
    """
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    base = base_of(module)
    setattr(base, DECODES, functools.partial(decoded_by, base))
    for layer in _layers(base):
        fully_shard(layer, mesh=mesh.devices)
    fully_shard(base, mesh=mesh.devices)
    for part in base.modules():
        if isinstance(part, FSDPModule):
            part.set_gradient_divide_factor(float(mesh.size) if alike else 1.0)
            part.set_force_sum_reduction_for_comms(True)
    register_fsdp_forward_method(base, DECODES)
    _held[module] = mesh
    return module


def mesh_of(module: nn.Module) -> Mesh | None:
    """Return the learners among whom a module was divided; None where this process holds all of it."""
    return _held.get(module)


class Sharded:
    """The weights of a module of which each learner has a part."""

    parted = True

    def __init__(self, module: nn.Module, mesh: Mesh) -> None:
        self.module, self.mesh = module, mesh

    @property
    def device(self) -> torch.device:
        return self.mesh.device

    @property
    def adapted(self) -> bool:
        return hasattr(self.module, "peft_config")

    def trainable(self) -> list[nn.Parameter]:
        return [parameter for _, parameter in self._trained()]

    def names(self) -> list[str]:
        return [name for name, _ in self._trained()]

    def copied(self) -> list[nn.Parameter]:
        return []

    def clip(self, longest: float) -> Tensor:
        """Clip by the norms of whole gradients, one after the other: those of parts would round otherwise."""
        found: list[Any] = [p.grad for p in self.trainable() if p.grad is not None]
        if not found:
            return torch.zeros((), device=self.device)
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(whole(g)) for g in found]))
        share = torch.clamp(longest / (norm + 1e-6), max=1.0)
        for gradient in found:
            gradient.to_local().mul_(share)
        return norm

    def gradients(self, *, last: bool) -> None:
        root: Any = base_of(self.module)
        trained = sum(p.numel() for p in self.module.parameters() if p.requires_grad)
        added = last or trained > WHOLE_GRADIENTS
        root.set_requires_gradient_sync(added)
        root.set_is_last_backward(last)

    def shared(self, call: SharedCall) -> None:
        if self.mesh.leads:
            self.mesh.tell(call)

    def state(self) -> dict[str, Tensor]:
        return {name: whole(parameter.detach()) for name, parameter in self._trained()}

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor]) -> None:
        for name, parameter in self._trained():
            parameter.copy_(self.part(state[name], parameter))

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """Return this learner's part of a tensor that stands beside a parameter; no other learner is asked for it."""
        from torch.distributed.tensor import DTensor, distribute_tensor

        if isinstance(tensor, DTensor) or not isinstance(like, DTensor) or tensor.shape != like.shape:
            return tensor
        own = tensor.to(self.device, like.dtype)
        return distribute_tensor(own, like.device_mesh, like.placements, src_data_rank=None)

    @torch.no_grad()
    def gather(self) -> Iterator[tuple[str, Tensor]]:
        self.shared(Gather())
        self._reshard()
        base = base_of(self.module)
        adapters = self._adapters()
        groups: dict[str, dict[str, Tensor]] = {}
        for name, tensor in own_state(self.module).items():
            groups.setdefault(_group_of(name), {})[name] = tensor
        for group in groups.values():
            found: dict[str, Tensor] = {}
            for name, tensor in group.items():
                adapter = adapters.get(name)
                found[name] = whole(tensor.detach())
                if adapter is not None:
                    added = adapter._replace(a_KI=whole(adapter.a_KI), b_OK=whole(adapter.b_OK))
                    found[name] = added.added_to(found[name])
            yield from as_saved(base, found).items()

    @torch.no_grad()
    def load(self, folder: Path) -> None:
        self._reshard()
        base = base_of(self.module)
        saved = load_causal(folder, base.dtype).state_dict()
        for name, tensor in base.state_dict().items():
            if name not in saved or saved[name].shape != tensor.shape:
                raise RuntimeError(f"{name} is missing there, or has another shape")
            tensor.copy_(self.part(saved[name], tensor))

    def publish(self, engine: TrainableEngine, version: int, *, kv: Kv | None = None) -> None:
        given: dict[str, Kv] = {} if kv is None else {"kv": kv}
        engine.load_weights(self.gather(), version, **given)

    def _adapters(self) -> Mapping[str, Any]:
        if not self.adapted:
            return {}
        try:
            return adapters_of(base_of(self.module))
        except OtherFormError as other:
            raise RunError(
                f"Adapters of this form cannot be merged from parts of weights: {other}.",
                "Set scale.weights: replicated, or use plain LoRA.",
            ) from other

    def _trained(self) -> Iterator[tuple[str, nn.Parameter]]:
        self._reshard()
        for name, parameter in self.module.named_parameters():
            if parameter.requires_grad:
                yield name, parameter

    def _reshard(self) -> None:
        """Let go of what a pass without a backward pass has left whole: those are no parameters to an optimizer."""
        root: Any = base_of(self.module)
        root.reshard()


class Gather(NamedTuple):
    """Gather all weights, as whoever publishes or saves them does."""

    def carried_out(self, seat: MeshSeat) -> None:
        """Take part, and keep nothing."""
        mesh = mesh_of(seat.learner.model)
        assert mesh is not None
        for _ in Sharded(seat.learner.model, mesh).gather():
            pass


def whole(tensor: Tensor) -> Tensor:
    """Return a tensor in one piece, of which every learner has a part; all of them must ask for it."""
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _layers(base: Any) -> list[nn.Module]:
    lists = [child for child in base.get_decoder().children() if isinstance(child, nn.ModuleList)]
    return [layer for layers in lists for layer in layers]


def _group_of(name: str) -> str:
    """Return the layer of a parameter: a checkpoint may keep what belongs to one layer fused or apart.

    >>> _group_of("model.layers.0.mlp.up_proj.weight"), _group_of("lm_head.weight")
    ('model.layers.0', 'lm_head.weight')
    """
    parts = name.split(".")
    number = next((i for i, part in enumerate(parts) if part.isdigit()), None)
    return name if number is None else ".".join(parts[: number + 1])
