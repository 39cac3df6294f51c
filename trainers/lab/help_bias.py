"""The bias of help: what guides, sources and teachers do to the expected first step, beside the exact policy gradient.

Help adds groups that the policy did not play by itself, and some of it chooses by outcome which groups it adds to. Both
can be listed on the small processes: the demonstrator takes the best action of each state, a hinted policy is the
policy with that action made likelier, an older one is the policy with other logits.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import get_component
from turnwise.trainers.core import Correction, TokenCredit, TurnBatch
from turnwise.trainers.lab.exact import Paths, Process, compare, paths
from turnwise.trainers.lab.first_step import (
    PLAYED,
    SOLVED,
    Circumstances,
    Composition,
    MeasuredLoss,
    expected_step,
)
from turnwise.trainers.lab.processes import PROCESSES, lopsided, signals
from turnwise.trainers.lab.recipe_bias import degrees, fitting

HINTED, OLDER = 2.0, 0.7
"""By how much a hint raises the best action's logit; how much flatter the older policy's logits are."""


class HelpedStep(NamedTuple):
    """An expected first step, and what is declared of it.

    Attributes:
        mean_SA: the step of all losses, (S, A).
        declared_SA: the gradient of what is declared to be ascended; None: of the expected return.
        alone_SA: the part of the step that this is declared of; None: all of it.
    """

    mean_SA: Tensor
    declared_SA: Tensor | None = None
    alone_SA: Tensor | None = None


class LearnedHelp(NamedTuple):
    """Correction, losses and weight with which tokens are learned that others had a hand in.

    Attributes:
        correction: of their tokens.
        losses: of their tokens, or of what a source shows; None: those of the recipe, and of what is shown `nll`.
        weight: a source's.
    """

    correction: Correction
    losses: Sequence[MeasuredLoss] | None = None
    weight: float = 1.0

    def joining(self, parts: Composition) -> Composition:
        """The parts by which tokens are learned that join what was played; losses of the whole are the recipe's own."""
        own, of_whole = ([loss for loss in parts.losses if loss.whole is whole] for whole in (False, True))
        tokens = [
            loss._replace(weight=loss.weight * self.weight)
            for loss in (own if self.losses is None else self.losses)
        ]
        return parts._replace(correction=self.correction, losses=[*tokens, *of_whole])

    def showing(self, parts: Composition) -> Composition:
        """The parts by which what is shown is learned: the same denominators with the advantage 1, no filter and no shape."""
        losses = [_loss("nll", {})] if self.losses is None else self.losses
        return parts._replace(
            credit=_ones,
            filter=_everything,
            shapes=(),
            correction=self.correction,
            losses=[loss._replace(weight=loss.weight * self.weight) for loss in losses],
        )


def _ones(batch: TurnBatch) -> Tensor:
    return batch.mask_BK.to(batch.reward_BK.dtype)


def _everything(batch: TurnBatch, found: Tensor | TokenCredit) -> Tensor:
    return torch.ones(len(batch.group_B), dtype=torch.float64)


def _loss(name: str, options: Mapping[str, Any]) -> MeasuredLoss:
    entry = get_component("loss", name)
    built = entry.build(options)
    return MeasuredLoss(name, lambda: built, whole=entry.whole, needs=entry.needs_with(options))


Step: TypeAlias = Callable[[Composition, Paths, int], HelpedStep]
"""The expected first step of a recipe's parts with help, on a process, in groups of a size."""


class Help(NamedTuple):
    """A kind of help: the part and its options, what it is declared to ascend, and its expected first step."""

    part: str
    options: str
    declared: str
    step: Step


class HelpBias(NamedTuple):
    """Angles of the expected first step on a process: to the exact policy gradient, and to what is declared."""

    degrees: float
    declared: float


def help_bias(parts: Composition, step: Step, group_size: int) -> dict[str, HelpBias]:
    """By process, what a recipe's parts and a kind of help do together, in groups of ``group_size`` or as large as fit."""
    found: dict[str, HelpBias] = {}
    for process in PROCESSES:
        p = paths(process, lopsided(process))
        mean_SA, declared_SA, alone_SA = step(parts, p, fitting(len(p.reward_NK), group_size, 1))
        exact_SA = p.policy_gradient()
        wanted_SA = exact_SA if declared_SA is None else declared_SA
        found[process.name] = HelpBias(
            degrees(compare(mean_SA, exact_SA)),
            degrees(compare(mean_SA if alone_SA is None else alone_SA, wanted_SA)),
        )
    return found


def helps() -> list[Help]:
    """Every kind of help that comes with us, with options that change its bias."""
    none, capped, whole = (
        LearnedHelp(get_component("correction", name).build(options))
        for name, options in (("none", {}), ("tis", {}), ("tis", {"level": "trajectory", "cap": 1e9}))
    )
    ratio = "{name: tis, level: trajectory, cap: 1e9}"
    start = "(1 − share)·J + share·E_k J_k, J_k the return from where k of the demonstrator's turns led"
    also = "J + P·E_k J_k, P the chance of an unsolved group, held fixed"
    return [
        Help("guide/prefix", "where: all", start, functools.partial(prefixed, where="all")),
        Help(
            "guide/prefix",
            "where: all, share: 0.3",
            start,
            functools.partial(prefixed, where="all", share=0.3),
        ),
        Help("guide/prefix", "where: unsolved", also, prefixed),
        Help("guide/hint", "correction: none", "J", functools.partial(hinted, theirs=none)),
        Help("guide/hint", "correction: tis", "J", functools.partial(hinted, theirs=capped)),
        Help("guide/hint", f"correction: {ratio}", "J", functools.partial(hinted, theirs=whole)),
        Help(
            "source/demonstrations",
            "weight: 1",
            "J + weight·E Σ log π(demonstrated)",
            functools.partial(demonstrated, theirs=none),
        ),
        Help("source/stored", "join, correction: none", "J", functools.partial(joined, theirs=none)),
        Help("source/stored", "join, correction: tis", "J", functools.partial(joined, theirs=capped)),
        Help("source/stored", f"join, correction: {ratio}", "J", functools.partial(joined, theirs=whole)),
        *(
            Help(
                "teacher + distill",
                f"beta: {beta}{', filter: any' * every}",
                f"−E Σ {'JS(q, π)' if beta else 'KL(q ‖ π)'}, the states held fixed",
                functools.partial(_distill_alone, beta=beta, every=every),
            )
            for beta in (0, 0.5)
            for every in (False, True)
        ),
    ]


def _distill_alone(
    parts: Composition, p: Paths, n: int, *, beta: float = 0.0, every: bool = False
) -> HelpedStep:
    """No other loss beside it, on ``every`` group that was played or on those that the filter keeps."""
    alone = parts._replace(losses=[_loss("distill", {"beta": beta})])
    return distilled(alone._replace(filter=_everything) if every else alone, p, n, beta=beta)


def step_of(part: str, options: Mapping[str, Any], theirs: LearnedHelp) -> Step | None:
    """The expected first step with a part, KIND/NAME, as a recipe has it; None where it cannot be listed here.

    Args:
        part: a guide, a source, or the loss by which a teacher is followed.
        options: the part's own.
        theirs: how what it had a hand in is learned.
    """
    match part:
        case "guide/prefix" if (
            options.get("length", "random") == "random"
            and options.get("method", "ppo++") == "ppo++"
            and not options.get("each")
        ):
            chosen = {name: options[name] for name in ("where", "share") if name in options}
            return functools.partial(prefixed, **chosen)
        case "guide/hint":
            return functools.partial(hinted, theirs=theirs)
        case "source/demonstrations":
            return functools.partial(demonstrated, theirs=theirs)
        case "source/stored" if options.get("join"):
            return functools.partial(joined, theirs=theirs)
        case "loss/distill" if options.get("divergence", "jensen_shannon") == "jensen_shannon":
            return functools.partial(distilled, beta=options.get("beta", 0.0))
        case _:
            return None


# --- guides -----------------------------------------------------------------------------------------------------


def prefixed(
    parts: Composition, p: Paths, n: int, *, where: str = "unsolved", share: float = 1.0
) -> HelpedStep:
    """``prefix``: groups (the unsolved ones, or all) are by chance ``share`` replaced by groups from a demonstrator's state.

    Declared for ``all``: (1 − share)·J + share·E_k J_k, J_k the return from where k of the demonstrator's turns led; for
    ``unsolved``: J + share·P·E_k J_k, P the chance of an unsolved group, held fixed.
    """
    every, own_SA = _groups(p, n), p.policy_gradient()
    unsolved = every[(p.return_N[every] < SOLVED).all(1)]
    replaced = unsolved if where == "unsolved" else every
    share = share if any(length > 1 for _, length in _demonstrations(p)) else 0.0
    chance, guided_SA, theirs_SA = _chance(p, replaced), torch.zeros_like(own_SA), torch.zeros_like(own_SA)
    for probability, k in _prefixes(p):
        from_k = _after(p, k)
        guided = _mean(parts, from_k, _groups(from_k, n), n, Circumstances(first_turn=k))
        guided_SA = guided_SA + probability * guided
        theirs_SA = theirs_SA + probability * from_k.policy_gradient()
    stayed_SA = _mean(parts, p, every, n) - share * _mean(parts, p, replaced, n)
    declared_SA = (1 - share if where == "all" else 1.0) * own_SA + share * chance * theirs_SA
    return HelpedStep(stayed_SA + share * chance * guided_SA, declared_SA)


def hinted(parts: Composition, p: Paths, n: int, *, theirs: LearnedHelp) -> HelpedStep:
    """``hint``: unsolved groups are played again by a hinted policy and learned as the policy's own, if somebody solved them.

    Declared: the direction of J, where the correction is the whole ratio of a trajectory and unsolved groups say nothing.
    """
    logits_SA = p.logits_SA.detach().clone()
    for state, action in {s: a for (s, _), a in best_actions(p.process).items()}.items():
        logits_SA[state, action] += HINTED
    other, every = paths(p.process, logits_SA), _groups(p, n)
    missed = (p.return_N[every] < SOLVED).all(1)
    again_SA = _mean(theirs.joining(parts), _scored_by(p, other), every[~missed], n, _sampled_by(other))
    failed = _chance(other, every[missed])
    plain_SA, unsolved_SA = _mean(parts, p, every, n), _mean(parts, p, every[missed], n)
    chance = _chance(p, every[missed])
    return HelpedStep(plain_SA - (1 - failed) * unsolved_SA + chance * again_SA)


# --- sources and teachers ---------------------------------------------------------------------------------------


def demonstrated(parts: Composition, p: Paths, n: int, *, theirs: LearnedHelp) -> HelpedStep:
    """``demonstrations``: the demonstrator's actions with the advantage 1. Declared: J + weight·E Σ_k log π(a_k | s_k).

    Losses of the whole see one demonstration at a time.
    """
    shown_SA = torch.zeros_like(p.logits_SA)
    objective = p.logits_SA.new_zeros(())
    one = torch.zeros(1, 1, dtype=torch.long)
    for chance, index in _shown(p):
        objective = objective + chance * p.logp_NK[index].sum()
        shown_SA = shown_SA + chance * _mean(theirs.showing(parts), _certain(p, index), one, 1)
    own_SA = _mean(parts, p, _groups(p, n), n)
    return HelpedStep(own_SA + shown_SA, p.policy_gradient() + theirs.weight * p.gradient(objective))


def joined(parts: Composition, p: Paths, n: int, *, theirs: LearnedHelp) -> HelpedStep:
    """``stored`` with ``join``: as many groups of an older policy as are played. Declared: the direction of J.

    Raises:
        RecipeError: a loss sees groups of both in one minibatch.
    """
    if of_whole := [loss.name for loss in parts.losses if loss.whole]:
        raise RecipeError(
            f"loss {of_whole[0]} of minibatches that hold groups of two policies",
            "Measure the recipe without the source.",
        )
    older = paths(
        p.process,
        OLDER * p.logits_SA.detach()
        + 0.3 * torch.cos(torch.arange(p.logits_SA.numel())).view_as(p.logits_SA),
    )
    every = _groups(p, n)
    theirs_SA = _mean(theirs.joining(parts), _scored_by(p, older), every, n, _sampled_by(older))
    return HelpedStep((_mean(parts, p, every, n) + theirs_SA) / 2)


def distilled(parts: Composition, p: Paths, n: int, *, beta: float = 0.0) -> HelpedStep:
    """A teacher with the loss ``distill``, beside the recipe's others.

    Declared of ``distill`` alone: −E Σ_k D(q ‖ π)(s_k), states sampled by π and held fixed; groups that a filter drops are not
    taught. The teacher finds the best action of each state as likely as a hinted policy does.
    """
    logits_SA = p.logits_SA.detach().clone()
    for state, action in {s: a for (s, _), a in best_actions(p.process).items()}.items():
        logits_SA[state, action] += HINTED
    teacher_SA, own_SA = logits_SA.log_softmax(-1), p.logits_SA.log_softmax(-1)
    taught, every = Circumstances(teacher_SA=teacher_SA), _groups(p, n)
    mean_SA = _mean(parts, p, every, n, taught)
    following = [loss for loss in parts.losses if "teacher_top" in loss.needs]
    alone_SA = _mean(parts._replace(losses=following), p, every, n, taught)
    visits_S = torch.zeros(len(own_SA), dtype=torch.float64)
    visits_S.index_add_(
        0, p.state_NK[p.mask_NK], p.probability_N.detach()[:, None].expand_as(p.mask_NK)[p.mask_NK]
    )
    q, m = teacher_SA.exp(), beta * teacher_SA.exp() + (1 - beta) * own_SA.exp()
    exact_S = (
        (q * (teacher_SA - own_SA)).sum(-1)
        if beta == 0
        else (own_SA.exp() * (own_SA - teacher_SA)).sum(-1)
        if beta == 1
        else beta * (q * (teacher_SA - m.log())).sum(-1)
        + (1 - beta) * (own_SA.exp() * (own_SA - m.log())).sum(-1)
    )
    return HelpedStep(mean_SA, p.gradient(-(visits_S * exact_S).sum()), alone_SA)


# --- what they are made of --------------------------------------------------------------------------------------


def best_actions(process: Process) -> dict[tuple[int, int], int]:
    """The action of the highest expected return, by state and turns that are left."""
    value: dict[tuple[int, int], float] = {(s, 0): 0.0 for s in range(process.shape[0])}
    best: dict[tuple[int, int], int] = {}
    for left in range(1, process.horizon + 1):
        for s in range(process.shape[0]):
            of = [
                sum(
                    b.probability * (b.reward + (0.0 if b.state is None else value[b.state, left - 1]))
                    for b in branches
                )
                for branches in (process.branches[s, a] for a in range(process.shape[1]))
            ]
            best[s, left], value[s, left] = of.index(max(of)), max(of)
    return best


def _follows(p: Paths, turns: int) -> Tensor:
    """The trajectories whose first ``turns`` actions are the demonstrator's, (N,) of bool."""
    best = best_actions(p.process)
    rows = zip(p.state_NK.tolist(), p.action_NK.tolist(), p.mask_NK.tolist(), strict=True)
    return torch.tensor([
        all(a == best[s, p.process.horizon - k] for k, (s, a, m) in enumerate(zip(*row, strict=True)) if m and k < turns)
        for row in rows
    ])  # fmt: skip


def _shown(p: Paths) -> Iterator[tuple[float, int]]:
    """The demonstrator's trajectories with their chances."""
    for index in _follows(p, p.process.horizon).nonzero()[:, 0].tolist():
        yield p.chance_N[index].item(), index


def _demonstrations(p: Paths) -> list[tuple[float, int]]:
    """The chance and the number of turns of each of them."""
    return [(chance, int(p.mask_NK[index].sum())) for chance, index in _shown(p)]


def _prefixes(p: Paths) -> Iterator[tuple[float, int]]:
    """Yield the chance of each length k of a group's prefix, drawn from 1 … T − 1 where T > 1."""
    known = [(chance, length) for chance, length in _demonstrations(p) if length > 1]
    for k in range(1, p.process.horizon):
        probability = sum(chance / (length - 1) for chance, length in known if k < length)
        if probability:
            yield probability / sum(chance for chance, _ in known), k


def _after(p: Paths, k: int) -> Paths:
    """All trajectories whose first k turns the demonstrator plays; the policy has no hand in these."""
    kept_N = _follows(p, k)
    theirs_K = torch.arange(p.mask_NK.shape[1]) < k
    return _some(replace(p, logp_NK=p.logp_NK.masked_fill(theirs_K, 0.0)), kept_N)


def _certain(p: Paths, index: int) -> Paths:
    """One trajectory, as if nothing else happened."""
    one = _some(p, torch.arange(len(p.chance_N)) == index)
    return replace(one, chance_N=torch.ones(1, dtype=torch.float64), logp_NK=torch.zeros_like(one.logp_NK))


def _some(p: Paths, kept_N: Tensor) -> Paths:
    names = (
        "logp_NK",
        "chance_N",
        "reward_NK",
        "mask_NK",
        "state_NK",
        "action_NK",
        "cut_N",
        "value_NK",
        "last_value_N",
        "fork_value_NK",
        "memory_NK",
    )
    return replace(p, **{name: getattr(p, name)[kept_N] for name in names})


def _scored_by(p: Paths, other: Paths) -> Paths:
    """Sampled by another policy, with the scores of this one."""
    return replace(p, logp_NK=other.logp_NK.detach())


def _sampled_by(other: Paths) -> Circumstances:
    return Circumstances(behaviour_NK=other.logp_NK.detach())


def _groups(p: Paths, n: int) -> Tensor:
    return torch.tensor([*itertools.combinations_with_replacement(range(len(p.reward_NK)), n)])


def _mean(parts: Composition, p: Paths, index_CB: Tensor, n: int, how: Circumstances = PLAYED) -> Tensor:
    """Σ over these groups of their chance times their step, (S, A)."""
    if not len(index_CB):
        return torch.zeros_like(p.logits_SA)
    return expected_step(parts, p, index_CB, n, signals(p), how)


def _chance(p: Paths, index_CB: Tensor) -> float:
    """That a group is one of these, in any order."""
    chance_N = p.probability_N.detach()
    return sum(
        math.factorial(len(group))
        / math.prod(math.factorial(group.count(i)) for i in {*group})
        * chance_N[group].prod().item()
        for group in index_CB.tolist()
    )
