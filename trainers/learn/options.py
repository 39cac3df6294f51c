"""The learner's options: its optimizer, its adapters, and how the warm start imitates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]
Share: TypeAlias = Literal["auto", "rows", "tree", "flex"]
Moments: TypeAlias = Literal["float32", "int8"]


@dataclass(frozen=True)
class OptimizerOptions:
    """AdamW, with a linear warm-up and a constant rate after it.

    Attributes:
        learning_rate: the policy's.
        warmup: optimizer steps until the full rate.
        betas: decay of the moments.
        weight_decay: of matrices; norms and biases are not decayed.
        max_grad_norm: gradients of a greater norm are scaled down to it.
        epochs: how often an update goes through its episodes.
        minibatches: optimizer steps per epoch.
        micro_tokens: tokens of one forward pass; changes memory and speed, not the result.
        share: whether what rows begin with alike is computed once: ``auto`` where it saves a fifth and the model can; ``flex`` by one kernel.
        moments: in what AdamW keeps its two moments of a matrix; ``int8`` by bitsandbytes.
        precision: of matrix products; ``auto`` is bfloat16 on CUDA.
        deterministic: the same episodes give the same weights on a GPU too, bit for bit.
        value_weight: what the heads' squared errors are multiplied by in the loss.
        value_learning_rate: the heads'.
    """

    learning_rate: float = 1e-6
    warmup: int = 0
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    epochs: int = 1
    minibatches: int = 1
    micro_tokens: int = 16384
    share: Share = "auto"
    moments: Moments = "float32"
    precision: Precision = "auto"
    deterministic: bool = True
    value_weight: float = 0.5
    value_learning_rate: float = 1e-3


@dataclass(frozen=True)
class LoraOptions:
    """Low-rank adapters: the rank of each update matrix, which is scaled by ``alpha / rank``; the layers that get them."""

    rank: int
    alpha: int
    targets: list[str] | Literal["all-linear"]


@dataclass(frozen=True)
class ImitationOptions:
    """Options of a warm start's imitation: whom, on how many episodes, in which batches, at which peak rate.

    ``observation_weight`` is what the environment's tokens weigh in the loss, where the agent's weigh 1. ``chats`` is a file of
    chats that is imitated in the demonstrator's place; "" is none. ``forgets`` is the chance with which each line of a
    demonstrated memory is left out.
    """

    demonstrator: str
    episodes: int
    batch_size: int
    learning_rate: float
    observation_weight: float
    chats: str = ""
    forgets: float = 0.0

    @property
    def shown(self) -> str:
        """What is imitated, in words."""
        return imitated(self.demonstrator, self.chats)


def imitated(demonstrator: str, chats: str) -> str:
    """Say whose episodes, or which chats, a warm start imitates."""
    return f"chats of {chats}" if chats else f"episodes of scripted:{demonstrator}"
