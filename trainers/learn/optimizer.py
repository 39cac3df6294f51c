"""The optimizer of weights: made, stepped, saved and put back.

A step is taken only where all gradients are finite: a single overflow must not destroy a run.
"""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from turnwise.extras import needing
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.weights import Weights


def make_optimizer(weights: Sequence[Weights], options: OptimizerOptions) -> torch.optim.Optimizer:
    """Make AdamW on the policy, which comes first, and on heads, whose rate is ``scale`` times as high.

    Vectors (norms, biases) are not decayed. The library of moments in eight bits keeps those of fewer than 4,096 numbers as they are.

    Raises:
        MissingDependencyError: moments are to be in eight bits, and bitsandbytes is not installed.
    """
    # A schedule may end at 0: the heads then rest with the policy.
    of_heads = options.value_learning_rate / options.learning_rate if options.learning_rate else 0.0
    scales = [1.0] + [of_heads] * (len(weights) - 1)
    groups = [
        {"params": parameters, "weight_decay": decay, "scale": scale}
        for held, scale in zip(weights, scales, strict=True)
        for parameters, decay in zip(_by_shape(held), (options.weight_decay, 0.0), strict=True)
        if parameters
    ]
    if options.moments == "int8":
        return eight_bits()(groups, lr=options.learning_rate, betas=options.betas)
    return torch.optim.AdamW(groups, lr=options.learning_rate, betas=options.betas, fused=True)


def eight_bits() -> Any:
    """Return the class of AdamW with moments in eight bits.

    Raises:
        MissingDependencyError: bitsandbytes is not installed.
    """
    with (
        needing("optimizer.moments: int8"),
        contextlib.redirect_stdout(io.StringIO()),
    ):  # it prints where it finds no GPU
        return importlib.import_module("bitsandbytes.optim").AdamW8bit


def descend(
    optimizer: torch.optim.Optimizer, weights: Sequence[Weights], longest: float
) -> list[float] | None:
    """Take one step, and forget the gradients.

    The gradient of each of ``weights`` is clipped apart, so that a head far off does not slow the policy.

    Returns:
        The norm that each gradient had; None where one was not finite, and no step was taken.
    """
    norms = [held.clip(longest) for held in weights]
    finite = all(bool(torch.isfinite(norm)) for norm in norms)
    if finite:
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return [float(norm) for norm in norms] if finite else None


def moments_of(optimizer: torch.optim.Optimizer, weights: Sequence[Weights]) -> dict[str, Tensor]:
    """Return what an optimizer remembers, as ``PLACE/NAME/KIND``: of the weights at this place the parameter of this name."""
    return {
        f"{name}/{kind}": told if isinstance(told, Tensor) else torch.tensor(told)
        for name, parameter in _named(weights).items()
        for kind, told in optimizer.state.get(parameter, {}).items()
    }


def restore_moments(
    optimizer: torch.optim.Optimizer, weights: Sequence[Weights], moments: Mapping[str, Tensor]
) -> None:
    """Have an optimizer go on from :func:`moments_of`.

    Raises:
        KeyError: they are of parameters that it does not have, or kept otherwise (``optimizer.moments``).
    """
    kinds = {key.rpartition("/")[2] for key in moments}
    if kinds and ("exp_avg" in kinds) != isinstance(optimizer, torch.optim.AdamW):
        raise KeyError("its moments are of the other kind (optimizer.moments)")
    own, held = _named(weights), dict(zip(map(str, range(len(weights))), weights, strict=True))
    place = {
        parameter: i for i, parameter in enumerate(p for g in optimizer.param_groups for p in g["params"])
    }
    state: dict[int, dict[str, Tensor | int]] = {}
    for key, tensor in moments.items():
        name, _, kind = key.rpartition("/")
        if name not in own:
            raise KeyError(f"it has moments of {name}, which is not trained here")
        whole = tensor.dtype == torch.int64  # a count of steps; PyTorch's own is a number in float32
        part = int(tensor) if whole else held[name.partition("/")[0]].part(tensor, own[name])
        state.setdefault(place[own[name]], {})[kind] = part
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _named(weights: Sequence[Weights]) -> dict[str, nn.Parameter]:
    """Return the trained parameters by the place of their weights and their names there."""
    return {
        f"{place}/{name}": parameter
        for place, held in enumerate(weights)
        for name, parameter in zip(held.names(), held.trainable(), strict=True)
    }


def _by_shape(held: Weights) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return the matrices, and all else."""
    parameters = held.trainable()
    return [p for p in parameters if p.dim() == 2], [p for p in parameters if p.dim() != 2]
