"""Signals, each something measured of the turns, tokens or trajectories of a batch, for the parts that ask for it.

A signal that only looks is a function; one that learns or remembers is a class::

    @component("signal", "my_words", gives=("words",), reads=("tokens",))
    def my_words(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured: ...

    @component("signal", "my_value", gives=("value",), reads=("forward pass",), learns=True)
    class MyValue(Signal): ...

Signals that read the policy's forward pass answer with a :class:`Reading`, so that all of them share one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from turnwise.agents.tokens.renderer import Renderer
from turnwise.trainers.core import Group, PartState, TokenCredit
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.heads import Gap
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.passes import PassPart, Reader


@dataclass(frozen=True)
class SignalContext:
    """Inputs from which signals are read.

    Attributes:
        needs: the signals that the parts of the run ask for.
        learner: the policy, and what is trained beside it.
        tokenizer: the policy's.
        renderer: messages ⇄ tokens.
        context: how many tokens the policy can read.
        env_options: what environments are made with.
    """

    needs: frozenset[str]
    learner: Learner
    tokenizer: Any
    renderer: Renderer
    context: int
    env_options: Mapping[str, Any]


class Measured(NamedTuple):
    """Signals by name, of turns (B, K) or trajectories (B,) and of tokens (R, T); metrics of what was learned for them."""

    turn: Mapping[str, Tensor] = {}
    token: Mapping[str, Tensor] = {}
    metrics: Mapping[str, float] = {}


class Reading(NamedTuple):
    """A signal that waits for the forward pass over all rows, which it shares with others.

    Attributes:
        read: is called with each micro-batch of rows, without gradient.
        done: is called after the last one.
    """

    read: Callable[[PassPart], None]
    done: Callable[[], Measured]


Measure: TypeAlias = Callable[[SignalContext, TrainingBatch, Sequence[Group]], "Measured | Reading"]
"""The form of a signal that neither learns nor remembers."""


@dataclass(frozen=True)
class SignalSetup:
    """Inputs with which signals that learn are made, when the policy is where reinforcement begins.

    Attributes:
        needs: the signals that the parts of the run ask for.
        width: of the policy's hidden states.
        device: of the policy.
        seed: the run's.
        reader: reads log-probabilities off a model as the learner does.
        micro_tokens: of one forward pass.
        copy_policy: makes a trainable copy of the policy as it is now.
        load: a frozen model, from its Hugging Face id or folder, on the policy's device.
        tokenizer: the policy's.
        critic: what a learned value is fitted to (``advantages`` or ``returns``).
    """

    needs: frozenset[str]
    width: int
    device: torch.device
    seed: int
    reader: Reader
    micro_tokens: int
    copy_policy: Callable[[], nn.Module]
    load: Callable[[str], nn.Module]
    tokenizer: Any
    critic: str = "advantages"


class Signal:
    """A signal that learns or remembers; subclasses replace what applies to them.

    Attributes:
        module: a head on the policy's hidden states, which is trained in the policy's own passes.
        sums_over_turns: its errors are sums over a trajectory's turns, so that ``gaps`` says whose each is.
        objective: by signal, the term that it adds to what is minimised, for ``turnwise explain``.
        symbols: by signal, a symbol of that term and what it stands for.
    """

    module: nn.Module | None = None
    sums_over_turns: bool = False
    objective: ClassVar[Mapping[str, str]] = {}
    symbols: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def measure(
        self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]
    ) -> Measured | Reading:
        """Its values on a batch."""
        raise NotImplementedError

    def gaps(self, seen: PassPart, batch: TrainingBatch, credit: Tensor | TokenCredit) -> Iterator[Gap]:
        """Yield the gaps of its module in a micro-batch, with gradient; their squares are minimised."""
        return iter(())

    def state(self) -> PartState:
        """Return what a checkpoint keeps of it beside the module, which the learner keeps."""
        return PartState()

    def restore(self, state: PartState) -> None:
        """Go on from :meth:`state`."""
