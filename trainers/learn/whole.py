"""Weights that a process holds whole: the parameters of a module, in one piece each.

This is the one place that walks a module's parameters to train, clip, save, publish or copy them
(:class:`turnwise.trainers.learn.weights.Weights`). Adapters are merged on the way out, a layer at a time, or go out alone.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from turnwise.agents.core import Kv
from turnwise.agents.models.loading import load_causal
from turnwise.agents.remote.adapters import AdaptedWeights, Adapter
from turnwise.trainers.learn.model import base_of
from turnwise.trainers.learn.trainable_engine import TakesAdapters, TrainableEngine

_logger = logging.getLogger(__name__)


class Whole:
    """The weights of a module whose parameters are all here, each in one piece."""

    parted = False

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    @property
    def device(self) -> torch.device:
        return next(self.module.parameters()).device

    @property
    def adapted(self) -> bool:
        return hasattr(self.module, "peft_config")

    def trainable(self) -> list[nn.Parameter]:
        return [parameter for _, parameter in self._trained()]

    def names(self) -> list[str]:
        return [name for name, _ in self._trained()]

    def copied(self) -> list[nn.Parameter]:
        return self.trainable()

    def clip(self, longest: float) -> Tensor:
        return nn.utils.clip_grad_norm_(self.trainable(), longest)

    def gradients(self, *, last: bool) -> None:
        """They add up where they are."""

    def shared(self, call: object) -> None:
        """Nobody else is needed."""

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        return tensor

    def state(self) -> dict[str, Tensor]:
        return {name: parameter.detach() for name, parameter in self._trained()}

    @torch.no_grad()
    def restore(self, state: Mapping[str, Tensor]) -> None:
        for name, parameter in self._trained():
            parameter.copy_(state[name])

    def gather(self) -> Iterator[tuple[str, Tensor]]:
        yield from checkpoint_tensors(self.module)

    def load(self, folder: Path) -> None:
        base = base_of(self.module)
        saved = load_causal(folder, base.dtype)  # which knows how a checkpoint's names become the model's
        base.load_state_dict(saved.state_dict())

    def publish(self, engine: TrainableEngine, version: int, *, kv: Kv | None = None) -> None:
        given: dict[str, Kv] = {} if kv is None else {"kv": kv}
        adapters = adapted_weights(self.module) if isinstance(engine, TakesAdapters) else None
        if isinstance(engine, TakesAdapters) and adapters is not None:
            engine.load_adapters(adapters, version, **given)
        else:
            engine.load_weights(self.gather(), version, **given)

    def _trained(self) -> Iterator[tuple[str, nn.Parameter]]:
        for name, parameter in self.module.named_parameters():
            if parameter.requires_grad:
                yield name, parameter


def checkpoint_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """All weights under the names of a Hugging Face checkpoint, output head included, adapters merged.

    The model is not changed, and one layer's adapters are merged at a time.
    """
    tensors = model.state_dict() if not hasattr(model, "get_base_model") else _merged(model)
    yield from as_saved(base_of(model), {name: tensor.detach() for name, tensor in tensors.items()}).items()


def published_names(model: nn.Module) -> frozenset[str]:
    """The names that all weights of a model are published under, but for those that are other weights by another name."""
    base = base_of(model)
    tensors = (
        _state(base, lambda layer: dict(layer.get_base_layer().named_parameters()))
        if hasattr(model, "get_base_model")
        else base.state_dict()
    )
    hollow = {name: tensor.to("meta") for name, tensor in tensors.items()}
    return frozenset(as_saved(base, hollow)) - set(getattr(base, "all_tied_weights_keys", None) or ())


def as_saved(model: Any, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return weights as a checkpoint keeps them. Some architectures hold their weights fused or renamed; their checkpoints, and vLLM, do not."""
    from transformers import PreTrainedModel
    from transformers.core_model_loading import revert_weight_conversion

    return revert_weight_conversion(model, tensors) if isinstance(model, PreTrainedModel) else tensors


def adapted_weights(model: nn.Module) -> AdaptedWeights | None:
    """The weights of a model with adapters as a base that stays and what is added to it; None for any other.

    Adapters of another form than LoRA's ``scale · B A`` on linear layers are merged; why is logged once.
    """
    if not hasattr(model, "get_base_model"):
        return None
    try:
        return _adapted(base_of(model))
    except OtherFormError as other:
        _tell_once(f"adapters do not go alone to the engines, whole weights do: {other}")
        return None


class OtherFormError(Exception):
    """Why a model's weights are no base and adapters."""


@functools.cache
def _tell_once(said: str) -> None:
    _logger.warning("%s", said)


def _adapted(base: Any) -> AdaptedWeights:
    own = _without_adapters(base)
    saved = as_saved(base, own)
    names = {_place(tensor): name for name, tensor in saved.items()}
    adapters: dict[str, Adapter] = {}
    for own_name, adapter in adapters_of(base).items():
        weight = own[own_name]
        as_own = own_name in saved and _place(saved[own_name]) == _place(weight)
        known = own_name if as_own else names.get(_place(weight))
        if known is None:
            raise OtherFormError(f"a checkpoint keeps {own_name.removesuffix('.weight')} in another form")
        adapters[known] = adapter
    return AdaptedWeights(base, saved, adapters)


def own_state(model: nn.Module) -> Mapping[str, Tensor]:
    """Return all weights of a model under its own names, adapters left out."""
    return _without_adapters(base_of(model)) if hasattr(model, "get_base_model") else model.state_dict()


def _without_adapters(base: Any) -> dict[str, Tensor]:
    return _state(base, lambda layer: layer.get_base_layer().state_dict())


def adapters_of(base: Any) -> dict[str, Adapter]:
    """Return the adapters in a peft model's base model, by the model's own names of what they are added to.

    Raises:
        OtherFormError: they have another form than LoRA's on linear layers.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils.other import ModulesToSaveWrapper

    if any(isinstance(module, ModulesToSaveWrapper) for module in base.modules()):
        raise OtherFormError("whole layers are trained beside them (modules_to_save)")
    return {
        f"{name}.weight": _adapter(module, name)
        for name, module in base.named_modules()
        if isinstance(module, BaseTunerLayer)
    }


def _place(tensor: Tensor) -> tuple[int, torch.Size]:
    return tensor.data_ptr(), tensor.shape


def _adapter(layer: Any, name: str) -> Adapter:
    from peft.tuners.lora.layer import Linear

    active, plain = list(layer.active_adapters), type(layer) is Linear
    if not plain or not isinstance(layer.get_base_layer(), nn.Linear) or len(active) != 1:
        raise OtherFormError(f"{name} has {len(active)} of {type(layer).__name__}")
    (key,) = active
    if layer.lora_variant or layer.lora_bias[key] or layer.merged or layer.disable_adapters:
        raise OtherFormError(f"those of {name} are a variant, have a bias, or are merged")
    a_KI, b_OK = layer.lora_A[key].weight, layer.lora_B[key].weight
    return Adapter(a_KI.detach(), b_OK.detach(), layer.scaling[key])


def _merged(model: Any) -> dict[str, Tensor]:
    """State of a peft model's base model, its active adapters merged in."""
    return _state(base_of(model), _merged_layer)


def _state(base: Any, of_layer: Callable[[Any], Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """State of a peft model's base model under its own names; ``of_layer`` gives that of a layer with adapters."""
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils.other import ModulesToSaveWrapper

    tensors: dict[str, Tensor] = {}
    inside: tuple[str, ...] = ()
    for name, module in base.named_modules():
        if name.startswith(inside) and inside:
            continue
        if isinstance(module, BaseTunerLayer):
            inside = (*inside, f"{name}.")
            tensors |= {f"{name}.{key}": tensor for key, tensor in of_layer(module).items()}
        elif isinstance(module, ModulesToSaveWrapper):
            inside = (*inside, f"{name}.")
            trained = module.modules_to_save[module.active_adapters[0]]
            tensors |= {f"{name}.{key}": tensor for key, tensor in trained.state_dict().items()}
    for key, tensor in base.state_dict().items():
        if not (inside and key.startswith(inside)):
            tensors[key] = tensor
    return tensors


def _merged_layer(layer: Any) -> dict[str, Tensor]:
    """Weight and bias with the adapters merged; the layer gets its own tensors back, bit for bit."""
    inner = layer.get_base_layer()
    kept = {name: parameter.data for name, parameter in inner.named_parameters()}
    merged_before = list(layer.merged_adapters)
    try:
        layer.merge(safe_merge=True)  # replaces .data instead of adding to it
        return {name: parameter.data for name, parameter in inner.named_parameters()}
    finally:
        for name, parameter in inner.named_parameters():
            parameter.data = kept[name]
        layer.merged_adapters[:] = merged_before
