"""A tiny policy and what it has played, on which signals and other parts that read a model are tested."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from turnwise.agents.core import PREVIOUS, ROOT, Episode, Reply
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.registry import Component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.learn.passes import Reader
from turnwise.trainers.signal.core import SignalContext, SignalSetup
from turnwise.trainers.signal.measure import Signals

VOCABULARY, WIDTH, CONTEXT, MICRO_TOKENS = 96, 32, 64, 40
SHAPES = ([(5, 3), (4, 2), (2, 6)], [(7, 1)], [(3, 2), (9, 4)], [(6, 5), (1, 1)], [(2, 2)], [(4, 3), (3, 3)])
"""Of six episodes in two groups: the prompt's and the action's tokens of each turn."""


class Words:
    """A tokenizer that can only decode."""

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(f" then{token}" if token % 7 == 0 else f" w{token}" for token in tokens)


def small_model(seed: int = 0) -> nn.Module:
    """A causal model of one layer."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        max_position_embeddings=CONTEXT,
        initializer_range=0.2,  # far from uniform, so that mistakes show
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval()


def played_batch() -> tuple[TrainingBatch, list[Group]]:
    """Two groups of three episodes of random tokens; one was cut by a limit, one is in two rows."""
    ends = (
        EndReason.SOLVED,
        EndReason.FAILED,
        EndReason.TURN_LIMIT,
        EndReason.FAILED,
        EndReason.SOLVED,
        EndReason.FAILED,
    )
    played = [_spoken(shape, i, end) for i, (shape, end) in enumerate(zip(SHAPES, ends, strict=True))]
    groups: list[Group] = [played[:3], played[3:]]
    return collate(groups), groups


def _spoken(shape: list[tuple[int, int]], seed: int, end: EndReason) -> Episode:
    rng = random.Random(seed)
    said: list[int] = []
    replies: list[Reply] = []
    for k, (prompt, action) in enumerate(shape):
        new = [rng.randrange(VOCABULARY) for _ in range(prompt)]
        ids = tuple(rng.randrange(VOCABULARY) for _ in range(action))
        fresh = seed == 0 and k == 1
        whole = (*said, *new) if fresh else tuple(new)
        logps = tuple(-rng.uniform(3, 8) for _ in ids)
        replies.append(
            Reply(Message("assistant", "!"), whole, ids, logps, parent=ROOT if fresh else PREVIOUS)
        )
        said += [*new, *ids]
    found = episode([rng.uniform(-1, 1) for _ in shape], end=end)
    turns = tuple(
        dataclasses.replace(t, reply=r) for t, r in zip(found.trajectory.turns, replies, strict=True)
    )
    return dataclasses.replace(
        found, trajectories={"agent": dataclasses.replace(found.trajectory, turns=turns)}
    )


def signal_setup(entry: Component) -> SignalSetup:
    """Return the setup with which a signal is made on this policy."""
    device = torch.device("cpu")
    return SignalSetup(
        needs=frozenset(entry.gives),
        width=WIDTH,
        device=device,
        seed=0,
        reader=Reader(device, 1.0, "float32"),
        micro_tokens=MICRO_TOKENS,
        copy_policy=small_model,
        load=lambda path: small_model(int(path)),
        tokenizer=Words(),
    )


def signal_context(entry: Component, signals: Signals | None = None) -> SignalContext:
    """Return the context from which a signal is read: this policy, with another one as the frozen reference."""
    renderer: Any = None  # nothing of the batch is rendered again
    learner = Learner(
        small_model(),
        OptimizerOptions(micro_tokens=MICRO_TOKENS, precision="float32"),
        heads=signals.heads if signals else (),
        reference=small_model(1),
    )
    return SignalContext(frozenset(entry.gives), learner, Words(), renderer, CONTEXT, {})
