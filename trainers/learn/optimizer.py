"""The optimizer of weights: made, stepped, saved and put back.

A step is taken only where all gradients are finite: a single overflow must not destroy a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.weights import Weights


def make_optimizer(weights: Sequence[Weights], options: OptimizerOptions) -> torch.optim.AdamW:
    """Make AdamW on the policy, which comes first, and on heads, whose rate is ``scale`` times as high.

    Vectors (norms, biases) are not decayed.
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
    return torch.optim.AdamW(groups, lr=options.learning_rate, betas=options.betas, fused=True)


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


def moments_of(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return what an optimizer remembers, as ``INDEX/NAME``: of the parameter at this place in it, the tensor of this name."""
    state = optimizer.state_dict()["state"]
    return {f"{index}/{name}": tensor for index, kept in state.items() for name, tensor in kept.items()}


def restore_moments(optimizer: torch.optim.Optimizer, moments: Mapping[str, Tensor]) -> None:
    """Have an optimizer go on from :func:`moments_of`."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in moments.items():
        index, _, name = key.partition("/")
        state.setdefault(int(index), {})[name] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _by_shape(held: Weights) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return the matrices, and all else."""
    parameters = held.trainable()
    return [p for p in parameters if p.dim() == 2], [p for p in parameters if p.dim() != 2]
