"""Effect of staleness on the expected update: ``python -m turnwise.trainers.lab.staleness > docs/staleness.md``.

The policy that is trained has taken a few steps since the one that played. On processes whose trajectories can all be
listed, the expected update of a credit rule and a correction under the older policy is a finite sum, which is compared with
the exact gradient of the newer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from turnwise.registry import Component, components, get_component
from turnwise.trainers.core import Correction, TokenBatch
from turnwise.trainers.lab.exact import Bias, Paths, Process, all_groups, compare, group_advantages, paths
from turnwise.trainers.lab.processes import PROCESSES, lopsided, made_up, signals

GROUP = 3
MOST = 4
"""The largest staleness."""
STEP = 0.5
"""Norm of the change of the logits in one update."""


class Corrected(NamedTuple):
    """A correction with its options, and what it is called in tables."""

    title: str
    name: str
    options: Mapping[str, Any]

    def build(self) -> Correction:
        return get_component("correction", self.name).build(self.options)


CORRECTIONS = (
    Corrected("none", "none", {}),
    Corrected("tis, token", "tis", {}),
    Corrected("tis, trajectory", "tis", {"level": "trajectory"}),
    Corrected("whole ratio", "tis", {"level": "trajectory", "cap": 1e9}),
)
MORE = (
    *CORRECTIONS,
    Corrected("tis, token, never cut", "tis", {"cap": 1e9}),
    Corrected("mis, token", "mis", {}),
    Corrected("mis, trajectory", "mis", {"level": "trajectory"}),
)


class Versions(NamedTuple):
    """A process, all its trajectories under the newest policy, and the logits of every version up to that, (V, S, A)."""

    p: Paths
    logits_VSA: Tensor

    def behaviour(self, staleness: int, *, in_flight: bool = False) -> Tensor:
        """log μ(a_k | s_k) of the policy that played, (N, K); 0 where there is no turn.

        The whole trajectory is of the version ``staleness`` behind the newest; ``in_flight`` the weights change after
        every turn, up to the newest.
        """
        newest, K = len(self.logits_VSA) - 1, self.p.mask_NK.shape[1]
        version_K = torch.full((K,), newest - staleness)
        if in_flight:
            version_K = (version_K + torch.arange(K)).clamp(max=newest)
        logp_VSA = self.logits_VSA.log_softmax(-1)
        return logp_VSA[version_K[None], self.p.state_NK, self.p.action_NK] * self.p.mask_NK


def versions(process: Process) -> Versions:
    """The policies of ``MOST`` updates along the exact gradient, each a step of length ``STEP``."""
    logits = [lopsided(process)]
    for _ in range(MOST):
        gradient_SA = paths(process, logits[-1]).policy_gradient()
        logits.append(logits[-1] + STEP * gradient_SA / gradient_SA.norm())
    return Versions(paths(process, logits[-1]), torch.stack(logits))


class Stale(NamedTuple):
    """An expected update beside the exact gradient, and its variance."""

    bias: Bias
    variance: float


class Enumerated:
    """The expected updates of a credit rule on one process, under any policy that played and any correction."""

    def __init__(self, entry: Component, given: Versions, n: int = GROUP) -> None:
        self.p = given.p
        self.index_CB, self.orders_C = all_groups(given.p, n)
        credit = entry.build({})
        self.advantage_CBK = group_advantages(credit, given.p, self.index_CB, n, signals(given.p))
        self.gradient_SA = given.p.policy_gradient()

    def under(self, behaviour_NK: Tensor, correction: Correction) -> Stale:
        """The update where trajectories are drawn by ``behaviour_NK`` and their advantages corrected."""
        p = self.p
        drawn_N = p.chance_N * behaviour_NK.sum(-1).exp()
        weight_NK = correction(_tokens(p, behaviour_NK))
        chance_C = self.orders_C * drawn_N[self.index_CB].prod(-1)
        scaled_CBK = self.advantage_CBK * weight_NK[self.index_CB]
        update_CSA = torch.einsum("cbk,cbksa->csa", scaled_CBK, p.score_NKSA[self.index_CB])
        update_CSA = update_CSA / self.index_CB.shape[1]
        mean_SA = torch.einsum("c,csa->sa", chance_C, update_CSA)
        variance = (chance_C * ((update_CSA - mean_SA) ** 2).sum((1, 2))).sum()
        return Stale(compare(mean_SA, self.gradient_SA), variance.item())


def _tokens(p: Paths, behaviour_NK: Tensor) -> TokenBatch:
    """All trajectories as rows of tokens, one to a turn, as a correction sees them."""
    N, K = p.mask_NK.shape
    now_NK, zero_NK = p.logp_NK.detach(), torch.zeros_like(behaviour_NK)
    return TokenBatch(
        logp_RT=now_NK,
        old_logp_RT=now_NK,
        behaviour_logp_RT=behaviour_NK,
        entropy_RT=zero_NK,
        advantage_RT=zero_NK,
        mask_RT=p.mask_NK,
        turn_RT=torch.arange(K).expand(N, K).masked_fill(~p.mask_NK, -1),
        trajectory_R=torch.arange(N),
        group_R=torch.zeros(N, dtype=torch.long),
    )


def worst(
    found: Sequence[Enumerated], given: Sequence[Versions], staleness: int, one: Corrected, *, in_flight: bool
) -> float:
    """The largest angle over the processes, in degrees."""
    correction = one.build()
    return max(
        rule.under(each.behaviour(staleness, in_flight=in_flight), correction).bias.degrees
        for rule, each in zip(found, given, strict=True)
    )


def rules() -> list[Component]:
    """The credit rules of which figures mean something here: those that need no made-up signal."""
    return [entry for entry in components("credit") if not entry.needs_with({}) & made_up()]


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return "\n".join([_row(head), "|" + "---|" * len(head), *map(_row, rows)])


def _cells(
    found: Sequence[Enumerated],
    given: Sequence[Versions],
    one: Corrected,
    *,
    first: int = 1,
    in_flight: bool = False,
) -> list[str]:
    return [f"{worst(found, given, s, one, in_flight=in_flight):.1f}" for s in range(first, MOST + 1)]


def _of_rules(given: Sequence[Versions]) -> str:
    head = ["credit", "0", *(f"{one.title}: {s}" for one in CORRECTIONS for s in range(1, MOST + 1))]
    rows: list[list[str]] = []
    for entry in rules():
        found = [Enumerated(entry, each) for each in given]
        fresh = f"{worst(found, given, 0, CORRECTIONS[0], in_flight=False):.1f}"
        cells = [cell for one in CORRECTIONS for cell in _cells(found, given, one)]
        rows.append([f"`{entry.name}`", fresh, *cells])
    return _table(head, rows)


def _of_corrections(given: Sequence[Versions]) -> str:
    found = [Enumerated(get_component("credit", "rloo"), each) for each in given]
    head = ["correction", *(f"whole episode: {s}" for s in range(1, MOST + 1))]
    head += [*(f"in flight: {s}" for s in range(1, MOST + 1)), "noise: 1", f"noise: {MOST}"]
    rows: list[list[str]] = []
    for one in MORE:
        noise = [f"{_noise(found, given, s, one):.2f}" for s in (1, MOST)]
        rows.append(
            [one.title, *_cells(found, given, one), *_cells(found, given, one, in_flight=True), *noise]
        )
    return _table(head, rows)


def _noise(found: Sequence[Enumerated], given: Sequence[Versions], s: int, one: Corrected) -> float:
    """The variance of the update, relative to that of a fresh one; the mean over the processes."""
    ratios = [
        rule.under(each.behaviour(s), one.build()).variance
        / rule.under(each.behaviour(0), CORRECTIONS[0].build()).variance
        for rule, each in zip(found, given, strict=True)
    ]
    return sum(ratios) / len(ratios)


def report() -> str:
    """The page."""
    given = [versions(process) for process in PROCESSES]
    moved = [
        (each.p.probability_N.detach() * (each.p.logp_NK.detach() - each.behaviour(s)).sum(-1)).sum().item()
        for s in (1, MOST)
        for each in given
    ]
    first, last = moved[: len(given)], moved[len(given) :]
    return f"""# What staleness does to the expected update

This page is written by `python -m turnwise.trainers.lab.staleness`; `tests/trainers/test_staleness.py` computes its figures anew.

An asynchronous run ([asynchronous](asynchronous.md)) trains on episodes that an older policy played. A correction weighs each
token by how much likelier it is to the newer policy. Here the expected update of every credit rule under each correction
is computed exactly, on the five processes of [credit-bias](credit-bias.md), whose trajectories can all be listed. From the
first policy {MOST} steps are taken along the exact gradient, each of length {STEP:g} in the logits. The newest policy is trained; the one
that played is 1 to {MOST} steps older, and differs from it by {min(first):.3f} to {max(first):.3f} nats (KL, of a whole episode) at staleness 1 and by
{min(last):.2f} to {max(last):.2f} at staleness {MOST}. These are large steps: in training they are smaller, and so is what follows.

Each figure is an angle in degrees between the expected update and the exact gradient of the newest policy, the largest of
the five processes; groups of {GROUP}, one token to a turn, the first optimizer step (at which a clipped loss has the same slope
as an unclipped one). 0 means that staleness does no harm on average; at 90 an update no longer improves anything.

## Every credit rule

Column 0 is the rule's own bias, without staleness. `none` corrects nothing; `tis, token` is the default (ratios of single tokens,
at most 2); `tis, trajectory` takes the ratio of the whole trajectory, at most 2; `whole ratio` never cuts it.

{_of_rules(given)}

## What a correction of tokens cannot do

A ratio of single tokens corrects which *action* is taken in a state. It does not correct how often the older policy *comes
into* that state: for that the ratios of all earlier tokens would have to be multiplied as well, which is the ratio of the trajectory. So
`tis, token` is biased under staleness also where it never cuts. The whole ratio is exact for rules that are unbiased (rloo, return_to_go),
and its noise grows with the length of an episode: over hundreds of tokens it is of no use. Cutting it trades the one for
the other.

Below, for `rloo`, whose own bias is 0. *Whole episode*: one version plays all turns. *In flight*: the weights change after every
turn, as they do where an update comes into the middle of an episode; later turns are then fresher. *Noise* is the variance of the
update relative to that of a fresh one without a correction.

{_of_corrections(given)}

What this leaves to choose: keep `scale.staleness` low (1 hides the learner's time behind the play, or the other way round;
more helps where a few episodes are much longer than the others), keep `correction: tis`, and watch `lag` and `engine_gap` in the metrics.
"""


if __name__ == "__main__":
    print(report(), end="")
