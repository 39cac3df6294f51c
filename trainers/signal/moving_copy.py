"""A copy of the policy that follows it slowly, and is not trained itself."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from turnwise.errors import RecipeError
from turnwise.trainers.core import PartState
from turnwise.trainers.learn.collate import TokenRows
from turnwise.trainers.learn.weights import weights_of
from turnwise.trainers.signal.core import SignalSetup


class MovingCopy:
    """φ ← decay·φ + (1 − decay)·θ after every ``every`` updates, from the policy as it is when reinforcement begins.

    Raises:
        RecipeError: ``decay`` is no share, or ``every`` is below 1.
    """

    def __init__(self, setup: SignalSetup, of: str, decay: float, every: int) -> None:
        if not 0 <= decay <= 1 or every < 1:
            raise RecipeError(
                f"{of}: a copy with decay={decay:g}, every={every} cannot follow the policy.",
                "Give a decay from 0 to 1, and every from 1 on.",
            )
        self.model = setup.copy_policy()
        self.weights = weights_of(self.model)
        self.reader, self.most = setup.reader, setup.micro_tokens
        self.decay, self.every, self.updates = decay, every, 0

    def score(self, rows: TokenRows) -> Tensor:
        """Log-probabilities of the tokens under the mask, (R, T), on the CPU."""
        return self.reader.score(self.model, rows, self.most)

    @torch.no_grad()
    def follow(self, policy: nn.Module) -> None:
        """Called once an update, after the copy was read."""
        self.updates += 1
        if self.updates % self.every:
            return
        own, theirs = self.weights.state(), weights_of(policy).state()
        self.weights.restore(
            {name: self.decay * x + (1 - self.decay) * theirs[name].to(x) for name, x in own.items()}
        )

    def state(self) -> PartState:
        return PartState(
            {"updates": self.updates}, {name: x.clone() for name, x in self.weights.state().items()}
        )

    def restore(self, state: PartState) -> None:
        self.updates = int(state.numbers["updates"])  # pyright: ignore[reportArgumentType]
        self.weights.restore(state.tensors)
