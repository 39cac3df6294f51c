"""The learning half of an update: signals, rewards, credit, filter, shapes, and the learner's steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group, TurnBatch
from turnwise.trainers.kit.meter import PartMeter
from turnwise.trainers.kit.token_credit import on_turns
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch, collate
from turnwise.trainers.learn.minibatch import Stream
from turnwise.trainers.run.parts import Parts
from turnwise.trainers.run.paying import pay
from turnwise.trainers.signal.core import SignalContext
from turnwise.trainers.signal.measure import Signals
from turnwise.trainers.source.core import SourceDraw, is_known, marked
from turnwise.trainers.teacher.core import Teacher, taught

TokenNumbers: TypeAlias = Sequence[tuple[float, ...]]
"""Of a trajectory, turn by turn, a number for each token that was chosen; none where nobody chose any."""


class UpdateResult(NamedTuple):
    """Result of an update of the groups that were played.

    Attributes:
        groups: with the recipe's rewards.
        weights: of each episode, as the filter gave them; 0 was not trained on.
        advantages: of each episode, one number per turn, as they were learned from.
        metrics: of signals and steps.
        entropies: of each episode and turn, one number per sampled token, in nats; empty where they are not logged.
        joined: groups, weights and advantages of what sources joined.
    """

    groups: Sequence[Group] = ()
    weights: Sequence[float] = ()
    advantages: Sequence[Sequence[float]] = ()
    metrics: Mapping[str, float] = MappingProxyType({})
    entropies: Sequence[TokenNumbers] = ()
    joined: UpdateResult | None = None

    @property
    def kept(self) -> list[bool]:
        """Say of each group whether any of its episodes is trained on."""
        weights = iter(self.weights)
        return [max((next(weights) for _ in group), default=0.0) > 0 for group in self.groups]


class Teaching(NamedTuple):
    """Teacher, and the number of its likeliest tokens that losses are told."""

    teacher: Teacher
    top: int


def update_policy(
    see: SignalContext,
    signals: Signals,
    parts: Parts,
    groups: Sequence[Group],
    *,
    seed: int,
    update: int,
    weights: Sequence[float] = (),
    drawn: Sequence[SourceDraw] = (),
    teaching: Teaching | None = None,
    logged: str = "",
) -> UpdateResult:
    """Train on all groups that were played; chance comes from (seed, update).

    ``weights`` of the groups' trajectories multiply those of the filter; 1 each if there are none. ``drawn`` is what the
    sources give, in their order. ``logged`` is the signal of tokens that the log holds as entropies, if any.
    """
    _check_joined(parts, drawn)
    joined = [
        [marked(episode, f"source/{source.name}") for episode in group]
        for source, draw in zip(parts.sources, drawn, strict=True)
        for group in draw.joined
    ]
    meter = PartMeter()
    beside = _shown(see, parts, drawn, teaching, meter)
    if not groups and not joined and not beside:
        return UpdateResult()
    together = [*groups, *joined]
    batch = _taught(see, together, teaching, meter)
    asked, metrics = parts.paid_signals - batch.turns.measured, dict[str, float]()
    if asked:
        batch, metrics = signals.measure(see, batch, together, only=asked)
    with meter.of("reward"):
        batch, paid, told = pay(batch, together, parts.reward, asked)
    batch, measured = signals.measure(see, batch, paid)
    metrics |= measured | told
    turns = batch.turns
    with meter.of("credit"):
        credit = parts.credit(turns)
        weight_B = parts.filter(turns, credit)
        if weights:
            each = torch.tensor([*weights, *[1.0] * len(joined)], dtype=weight_B.dtype)
            weight_B = weight_B * each[turns.group_B]
        shaped = credit
        for shape in parts.shapes:
            shaped = shape(shaped, turns)
    order = list(range(len(together)))
    derive_rng("minibatches", seed, update).shuffle(order)
    with meter.of("descent", lambda: see.learner.reader.tokens_read):
        metrics |= see.learner.update(
            batch, shaped, parts.objective, weight_B=weight_B, aims=credit, order=order, beside=beside
        )
    metrics |= meter.metrics
    if teaching is not None:
        teaching.teacher.learned(see.learner.model)
    n, weights_given = sum(map(len, groups)), weight_B.tolist()
    advantages = _per_turn(on_turns(shaped, turns) * weight_B[:, None], turns)
    entropies: Sequence[TokenNumbers] = ()
    if logged and turns.tokens is not None:
        entropies = by_turn(turns.tokens.signals[logged], batch.rows, turns.length_B.tolist())[:n]
    others = UpdateResult(paid[len(groups) :], weights_given[n:], advantages[n:])
    return UpdateResult(
        paid[: len(groups)], weights_given[:n], advantages[:n], metrics, entropies, others if joined else None
    )


def _check_joined(parts: Parts, drawn: Sequence[SourceDraw]) -> None:
    for source, draw in zip(parts.sources, drawn, strict=True):
        if source.corrects and not all(is_known(one) for group in draw.joined for one in group):
            raise RecipeError(
                f"source {source.name!r} joins tokens whose log-probabilities nobody kept (of a script, a person, a server or another "
                "tokeniser), and its correction asks for them.",
                "Remove the source's correction, or join the episodes of a run.",
            )
        if draw.joined and source.objective.whole:
            raise RecipeError(
                f"source {source.name!r} joins what was played, and its loss {source.objective.whole[0].name!r} is of "
                "whole minibatches.",
                "Give the source losses of tokens, or put that one into the recipe's own `loss`.",
            )


def _shown(
    see: SignalContext, parts: Parts, drawn: Sequence[SourceDraw], teaching: Teaching | None, meter: PartMeter
) -> list[Stream]:
    """Return what sources show, each as a batch whose turns have the advantage 1."""
    found: list[Stream] = []
    for source, draw in zip(parts.sources, drawn, strict=True):
        if draw.shown:
            batch = _taught(see, [[episode] for episode in draw.shown], teaching, meter)
            ones_BK = batch.turns.mask_BK.double()
            found.append(Stream(batch, ones_BK, source.objective, name=f"source/{source.name}"))
    return found


def _taught(
    see: SignalContext, groups: Sequence[Group], teaching: Teaching | None, meter: PartMeter
) -> TrainingBatch:
    """The batch of some groups, read by the teacher if there is one."""
    batch = collate(groups)
    if teaching is None:
        return batch
    with meter.of("teacher", lambda: see.learner.reader.tokens_read):
        return taught(teaching.teacher, see, batch, groups, teaching.top)


def _per_turn(x_BK: Tensor, turns: TurnBatch) -> list[list[float]]:
    return [row[:n] for row, n in zip(x_BK.tolist(), turns.length_B.tolist(), strict=True)]


def by_turn(x_RT: Tensor, rows: TokenRows, turns_B: Sequence[int]) -> list[TokenNumbers]:
    """The numbers of the tokens under the mask, by trajectory and turn, in the order of the tokens, to 5 decimals.

    ``turns_B`` says how many turns each trajectory has.

    >>> from turnwise.trainers.learn.collate import plain_rows
    >>> by_turn(torch.tensor([[0.0, 0.5, 1.25]]), plain_rows([[7, 8, 9]], [1]), [2])
    [((0.5, 1.25), ())]
    """
    found: list[list[list[float]]] = [[[] for _ in range(count)] for count in turns_B]
    for r, b in enumerate(rows.trajectory_R.tolist()):
        chosen_T = rows.mask_RT[r]
        for k, x in zip(rows.turn_RT[r, chosen_T].tolist(), x_RT[r, chosen_T].tolist(), strict=True):
            found[b][k].append(round(x, 5))
    return [tuple(map(tuple, of)) for of in found]
