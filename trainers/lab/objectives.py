"""Losses beside each other: the direction in which each moves every token, on the same random minibatches."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from turnwise.registry import Component, components, get_component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import RowMask, TeacherTop, TokenBatch, TurnBatch, WholeBatch
from turnwise.trainers.kit.toy_batches import token_batch, turn_batch, whole_batch

GROUPS, MEMBERS = 4, 4
TURNS = 2
TOP = 5  # tokens that the teacher names


@dataclass(frozen=True)
class Setting:
    """Under which losses are compared.

    Attributes:
        stale: deviation of log π − log π_old of a token, in nats; 0: fresh samples.
        credit: the rule that gives the advantages.
        reduce: the denominators.
        tokens: the sampled tokens of each turn; None: between one and five.
    """

    stale: float = 0.0
    credit: str = "grpo"
    reduce: str = "sequence_mean"
    tokens: int | None = None


class ComparedBatch(NamedTuple):
    """The same rows as losses of tokens and as losses of the whole see them."""

    tokens: TokenBatch
    whole: WholeBatch


def minibatch(seed: int, setting: Setting) -> ComparedBatch:
    """Groups of trajectories of two turns, some of which succeed; one row each."""
    rng = derive_rng("objectives", seed)
    n = GROUPS * MEMBERS
    group = [i // MEMBERS for i in range(n)]
    wins = [g % MEMBERS for g in range(1, GROUPS + 1)]  # of the last group none
    success = [int(i % MEMBERS < wins[group[i]]) for i in range(n)]
    sizes = [[setting.tokens or rng.randint(1, 5) for _ in range(TURNS)] for _ in range(n)]
    lengths = [sum(row) for row in sizes]

    def numbers(low: float, high: float) -> list[list[float]]:
        return [[rng.uniform(low, high) for _ in range(length)] for length in lengths]

    old = numbers(-3, -0.1)
    given: dict[str, Any] = {
        "old_logp": old,
        "reference_logp": [[x + rng.gauss(0, 0.3) for x in row] for row in old],
        "entropy": numbers(0.1, 2),
        "turn": [[k for k, size in enumerate(row) for _ in range(size)] for row in sizes],
    }
    teacher = [[x + rng.gauss(0, 0.3) for x in row] for row in old]
    now = (
        [[min(-0.01, x + rng.gauss(0, setting.stale)) for x in row] for row in old] if setting.stale else old
    )
    rewards = [[0.0] * (TURNS - 1) + [float(won)] for won in success]
    advantage = _advantages(setting.credit, turn_batch(rewards, group), given["turn"])
    tokens = token_batch(now, advantage, group=group, **given)
    whole = whole_batch(now, advantage, group=group, success=success, reward=rewards, **given)
    reduce = get_component("reduce", setting.reduce).build({})
    weight_RT = reduce(RowMask(tokens.mask_RT, tokens.turn_RT, tokens.trajectory_R)).double()
    width = tokens.mask_RT.shape[1]
    told_RT = torch.tensor([[*row, *[0.0] * (width - len(row))] for row in teacher], dtype=torch.float64)
    mean_RT = -_drawn(seed, "theirs", tokens.mask_RT.shape)[..., 0].abs() - 3
    signals = {
        "token_teacher_logp": told_RT,
        "token_mean_logp": mean_RT,
        "token_tempered_reference": tokens.reference_logp_RT,
    }
    top = TeacherTop(
        torch.arange(TOP).expand(*tokens.mask_RT.shape, TOP),
        *(_drawn(seed, name, tokens.mask_RT.shape) for name in ("theirs", "ours")),
    )
    return ComparedBatch(
        replace(tokens, signals=signals, top=top, mean_logp_RT=_moved(mean_RT, seed, setting)),
        replace(whole, signals=signals, weight_RT=weight_RT),
    )


def _moved(mean_RT: Tensor, seed: int, setting: Setting) -> Tensor:
    """The vocabulary's mean log-probability after steps: it moves with the policy."""
    noise_RT = torch.randn(mean_RT.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return mean_RT + setting.stale * noise_RT


def _drawn(seed: int, name: str, shape: Sequence[int]) -> Tensor:
    generator = torch.Generator().manual_seed(seed * 2 + (name == "ours"))
    return torch.randn(*shape, TOP + 1, generator=generator, dtype=torch.float64).log_softmax(-1)[..., :TOP]


def _advantages(credit: str, turns: TurnBatch, turn: Sequence[Sequence[int]]) -> list[list[float]]:
    found = get_component("credit", credit).build({})(turns)
    return [[float(found[b, k]) for k in row] for b, row in enumerate(turn)]


def made(entry: Component, options: Mapping[str, Any]) -> Any:
    """The loss as a run has it."""
    built = entry.build(dict(options))
    return built() if inspect.isclass(entry.target) else built


def slopes(name: str, options: Mapping[str, Any], batch: ComparedBatch) -> Tensor:
    """∂L/∂log π of every sampled token, in one row, under the reducer's weights."""
    entry = get_component("loss", name)
    if entry.whole:
        rows: Any = batch.whole
        value = made(entry, options)(rows).loss
    else:
        rows = batch.tokens
        value = (made(entry, options)(rows).loss_RT * batch.whole.weight_RT).sum()
    if not value.requires_grad:  # it looks at other tokens than those that were sampled
        return torch.zeros_like(rows.logp_RT[rows.mask_RT])
    (found,) = torch.autograd.grad(value, [rows.logp_RT], allow_unused=True, materialize_grads=True)
    return found[rows.mask_RT]


def degrees(a: Tensor, b: Tensor) -> float:
    """The angle between two directions, in degrees; not a number where one is 0."""
    size = float(a.norm() * b.norm())
    if size < 1e-12:
        return math.nan
    return math.degrees(math.acos(max(-1.0, min(1.0, float(a @ b) / size))))


def angle(
    one: tuple[str, Mapping[str, Any]], two: tuple[str, Mapping[str, Any]], setting: Setting, seeds: int
) -> float:
    """The mean angle between two losses over some minibatches, in degrees."""
    found = []
    for seed in range(seeds):
        batch = minibatch(seed, setting)
        found.append(degrees(slopes(*one, batch), slopes(*two, batch)))
    return sum(found) / len(found)


def angles(setting: Setting, seeds: int = 8) -> dict[str, dict[str, float]]:
    """The mean angle between each two losses with their defaults, of those whose slope in log π is not 0."""
    total: dict[str, dict[str, float]] = {}
    names = [entry.name for entry in components("loss")]
    for seed in range(seeds):
        batch = minibatch(seed, setting)
        own = {name: slopes(name, {}, batch) for name in names}
        for a in names:
            for b in names:
                row = total.setdefault(a, {})
                row[b] = row.get(b, 0.0) + degrees(own[a], own[b]) / seeds
    moving = [name for name in names if not math.isnan(total[name][name])]
    return {a: {b: total[a][b] for b in moving} for a in moving}
