"""Losses, denominators, corrections, filters and rewards.

A loss is of one token, or of a whole minibatch; its slopes are differences of the formula itself. ``now`` is what is
varied, ``then`` the same numbers held fixed, for what the formula takes without gradient.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, log
from typing import Any

from plain import Refused, deviation, mean, reference
from ragged import Ragged

from turnwise.tasks.core import Task, derive_rng


@dataclass
class Token:
    """A sampled token: log-probabilities, its advantage, weight, place and what it belongs to."""

    logp: float
    old: float
    behaviour: float
    reference: float
    teacher: float
    entropy: float
    advantage: float
    weight: float
    trajectory: int
    turn: int
    nucleus: float = 0.0


@dataclass
class Batch:
    """The tokens of a minibatch, by place, and its trajectories, those that are not read too.

    ``before`` are the minibatches that were seen earlier, ``out`` the tokens that a lot took out.
    """

    tokens: dict[tuple[int, int], Token] = field(default_factory=dict[tuple[int, int], Token])
    group: list[int] = field(default_factory=list[int])
    success: list[bool] = field(default_factory=list[bool])
    rewards: list[list[float]] = field(default_factory=list[list[float]])
    kept: list[bool] = field(default_factory=list[bool])
    before: list[Batch] = field(default_factory=list["Batch"])
    out: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])


@reference("loss", "clip", low=[0.05, 0.5], high=[0.28, 0.05], dual=[None, 1.3])
def clip(now: Token, then: Token, low: float = 0.2, high: float = 0.2, dual: float | None = 3.0) -> float:
    ratio, A = exp(now.logp - now.old), now.advantage
    loss = max(-ratio * A, -min(max(ratio, 1 - low), 1 + high) * A)
    return min(loss, -dual * A) if A < 0 and dual is not None else loss


@reference("loss", "told_clip", low=[0.05, 0.5], high=[0.28, 0.05])
def told_clip(now: Token, then: Token, low: float = 0.2, high: float = 0.2) -> float:
    ratio, A = exp(now.logp - now.behaviour), now.advantage
    return -min(ratio * A, min(max(ratio, 1 - low), 1 + high) * A)


def held_back(batch: Batch, low: float = 0.2, high: float = 0.2) -> dict[str, float]:
    every = [(exp(t.logp - t.behaviour), t.advantage) for t in batch.tokens.values()]
    held = [(A > 0 and ratio > 1 + high) or (A < 0 and ratio < 1 - low) for ratio, A in every]
    return {"clip_told": mean([float(x) for x in held])}


@reference("loss", "expo")
def expo(now: Token, then: Token) -> float:
    return -now.logp


@reference("loss", "nll")
def nll(now: Token, then: Token) -> float:
    return -now.advantage * now.logp


@reference("loss", "entropy")
def entropy(now: Token, then: Token) -> float:
    return -now.entropy


def straightened(of: Callable[[float], float], slope: Callable[[float], float], x: float) -> float:
    """A convex function that is 0 at 0, and where it is above 10 its tangent from there, at x's side."""
    if of(x) <= 10:
        return of(x)
    near, far = 0.0, x
    for _ in range(200):
        middle = (near + far) / 2
        near, far = (middle, far) if of(middle) < 10 else (near, middle)
    return 10 + slope(near) * (x - near)


def kl_estimate(x: float, estimator: str) -> float:
    """Of KL(π ‖ q), with x = log π − log q of a token that π sampled; k3 is nearly straight above 10 by itself."""
    if estimator == "k1":
        return x
    if estimator == "k2":
        return straightened(lambda y: y * y / 2, lambda y: y, x)
    if x > 0:
        return exp(-x) + x - 1
    return straightened(lambda y: exp(-y) + y - 1, lambda y: 1 - exp(-y), x)


def kl_estimates(token: Token) -> dict[str, float]:
    return {name: kl_estimate(token.logp - token.reference, name) for name in ("k1", "k2", "k3")}


@reference("loss", "kl", estimator=["k1", "k2"])
def kl(now: Token, then: Token, estimator: str = "k3") -> float:
    """k1 is shown, and its descent is along k2."""
    found = kl_estimates(now)
    if estimator == "k1":
        return found["k2"] - kl_estimates(then)["k2"] + kl_estimates(then)["k1"]
    return found[estimator]


@reference("loss", "kl_cov", share=[0.3], coefficient=[0.2])
def kl_cov(now: Batch, then: Batch, share: float = 0.002, coefficient: float = 1.0) -> float:
    middle_a = mean([t.advantage for t in then.tokens.values()])
    middle_p = mean([t.logp for t in then.tokens.values()])
    cov = {at: (t.advantage - middle_a) * (t.logp - middle_p) for at, t in then.tokens.items()}
    least = sorted(cov.values(), reverse=True)[max(1, int(share * len(cov))) - 1]
    total = 0.0
    for at, t in now.tokens.items():
        loss = -exp(t.logp - t.old) * t.advantage
        if cov[at] >= least:
            loss += coefficient * abs(t.logp - t.old)
        total += t.weight * loss
    return total


@reference("loss", "disco", score=["ratio"], temperature=[0.5], limit=[0.02], penalty=[7.0])
def disco(
    now: Batch,
    then: Batch,
    score: str = "logp",
    temperature: float = 10.0,
    limit: float = 1e-4,
    penalty: float = 1000.0,
) -> float:
    def gap(batch: Batch) -> float:
        return mean([t.old - t.logp for t in batch.tokens.values()])

    s: dict[int, float] = {}
    for b in range(len(now.group)):
        own = [t for t in now.tokens.values() if t.trajectory == b]
        if own and now.kept[b]:
            s[b] = mean([exp(t.logp - t.old) if score == "ratio" else t.logp for t in own])
    margins: list[float] = []
    for g in sorted(set(now.group)):
        good = [s[b] for b in s if now.group[b] == g and now.success[b]]
        bad = [s[b] for b in s if now.group[b] == g and not now.success[b]]
        most = max(bad, default=0.0)  # taken out, so that no power is too large
        hard = most + temperature * log(mean([exp((x - most) / temperature) for x in bad])) if bad else 0.0
        margins.append(mean(good) - hard if good and bad else 0.0)
    return -mean(margins) + penalty * max(0.0, gap(then) - limit) * gap(now)


# --- what losses show ----------------------------------------------------------------------------------------


def kl_old(batch: Batch) -> float:
    return mean([exp(t.logp - t.old) - 1 - (t.logp - t.old) for t in batch.tokens.values()])


def clip_metrics(
    batch: Batch, low: float = 0.2, high: float = 0.2, dual: float | None = 3.0
) -> dict[str, float]:
    every = [(exp(t.logp - t.old), t.advantage) for t in batch.tokens.values()]
    found = {
        "clip_low": mean([float(A < 0 and ratio < 1 - low) for ratio, A in every]),
        "clip_high": mean([float(A > 0 and ratio > 1 + high) for ratio, A in every]),
        "kl_old": kl_old(batch),
    }
    if dual is not None:
        found["clip_dual"] = mean([float(A < 0 and ratio > dual) for ratio, A in every])
    return found


def held(batch: Batch, share: float = 0.002, coefficient: float = 1.0) -> dict[str, float]:
    count = len(batch.tokens)
    return {"cov_held": max(1, int(share * count)) / count, "kl_old": kl_old(batch)}


def step(batch: Batch, **options: Any) -> dict[str, float]:
    gap = mean([t.old - t.logp for t in batch.tokens.values()])
    plain = disco(batch, batch, **{**options, "penalty": 0.0})
    return {"disco_margin": -plain, "kl_step": gap}


METRICS: dict[str, Callable[..., dict[str, float]]] = {
    "expo": lambda batch: {"explanation_nll": mean([-t.logp for t in batch.tokens.values()])},
    "told_clip": held_back,
    "clip": clip_metrics,
    "kl_cov": held,
    "disco": step,
    "nll": lambda batch: {"nll": mean([-t.logp for t in batch.tokens.values()])},
    "entropy": lambda batch: {"entropy": mean([t.entropy for t in batch.tokens.values()])},
    "kl": lambda batch, estimator="k3": {
        "kl_reference": mean([kl_estimates(t)["k3"] for t in batch.tokens.values()])
    },
}
"""By loss."""
LOTS: dict[str, Callable[..., tuple[set[tuple[int, int]], int]]] = {}
"""By loss that draws lots: the tokens among which it draws, and how many."""


# --- denominators: the weight of each token -----------------------------------------------------------------

Tokens = dict[tuple[int, int], tuple[int, int]]
"""Row and place → trajectory and turn."""


@reference("reduce", "token_mean")
def token_mean(tokens: Tokens) -> dict[tuple[int, int], float]:
    return {at: 1 / len(tokens) for at in tokens}


@reference("reduce", "fixed_length", length=[3, 1])
def fixed_length(tokens: Tokens, length: int = 256) -> dict[tuple[int, int], float]:
    return {at: 1 / (len({b for b, _ in tokens.values()}) * length) for at in tokens}


@reference("reduce", "sequence_mean")
def sequence_mean(tokens: Tokens) -> dict[tuple[int, int], float]:
    owners = [b for b, _ in tokens.values()]
    return {at: 1 / (len(set(owners)) * owners.count(b)) for at, (b, _) in tokens.items()}


@reference("reduce", "turn_mean")
def turn_mean(tokens: Tokens) -> dict[tuple[int, int], float]:
    turns = [*tokens.values()]
    return {at: 1 / (len(set(turns)) * turns.count(turn)) for at, turn in tokens.items()}


# --- corrections ----------------------------------------------------------------------------------------------


def ratio(batch: Batch, at: tuple[int, int], level: str) -> float:
    mine = batch.tokens[at]
    total = 0.0
    for place, t in batch.tokens.items():
        together = {
            "token": place == at,
            "turn": (t.trajectory, t.turn) == (mine.trajectory, mine.turn),
            "trajectory": t.trajectory == mine.trajectory,
        }
        total += t.old - t.behaviour if together[level] else 0.0
    return exp(total)


@reference("correction", "none")
def none(batch: Batch, at: tuple[int, int]) -> float:
    return 1.0


@reference("correction", "tis", cap=[1.1], level=["turn", "trajectory"])
def tis(batch: Batch, at: tuple[int, int], cap: float = 2.0, level: str = "token") -> float:
    return min(ratio(batch, at, level), cap)


@reference("correction", "mis", low=[0.9], high=[1.1], level=["turn", "trajectory"])
def mis(
    batch: Batch, at: tuple[int, int], low: float = 0.5, high: float = 2.0, level: str = "token"
) -> float:
    found = ratio(batch, at, level)
    return found if low <= found <= high else 0.0


# --- filters: the weight of each trajectory ---------------------------------------------------------------------


@reference("filter", "any")
def any_group(r: Ragged, A: list[list[list[float]]]) -> list[float]:
    return [1.0] * len(r)


@reference("filter", "informative", tolerance=[1.5])
def informative(r: Ragged, A: list[list[list[float]]], tolerance: float = 1e-6) -> list[float]:
    def most(i: int) -> float:
        return max(abs(a) for j in r.peers(i) for turn in A[j] for a in turn)

    return [float(most(i) > tolerance) for i in range(len(r))]


@reference("filter", "band", low=[0.4], high=[0.6], success=[0.3], also=[{"low": 0.0, "high": 1.0}])
def band(
    r: Ragged, A: list[list[list[float]]], low: float = 0.2, high: float = 0.8, success: float = 1.0
) -> list[float]:
    def share(i: int) -> float:
        return mean([float(r.returns[j] >= success - 1e-6) for j in r.peers(i)])

    return [float(low <= share(i) <= high) for i in range(len(r))]


@reference("filter", "rest_rl", least=[0.0, 0.3, 0.5])
def rest_rl(r: Ragged, A: list[list[list[float]]], least: float = 0.05) -> list[float]:
    """The population's deviation of a group, by differences of pairs."""

    def deviation(i: int) -> float:
        among = [r.returns[j] for j in r.peers(i)]
        return mean([(x - y) ** 2 / 2 for x in among for y in among]) ** 0.5

    return [float(deviation(i) >= least - 1e-6) for i in range(len(r))]


@reference("filter", "ranked", keep=["power", "best"], power=[3.0, 1.0])
def ranked(
    r: Ragged, A: list[list[list[float]]], keep: str = "best_worst", power: float = 2.0
) -> list[float]:
    def of(i: int) -> float:
        among = [r.returns[j] for j in r.peers(i)]

        def share(extreme: float) -> float:
            """One, shared by the returns that are the extreme one up to rounding."""
            tied = [abs(x - extreme) < 1e-9 for x in among]
            return 1 / sum(tied) if abs(r.returns[i] - extreme) < 1e-9 else 0.0

        best, worst = max(among), min(among)
        if keep == "best":
            return share(best)
        if keep == "best_worst":
            return share(best) + share(worst) if best - worst > 1e-9 else 1.0
        average = mean([abs(x) ** power for x in among])
        return abs(r.returns[i]) ** power / average if average > 0 else 1.0

    return [of(i) for i in range(len(r))]


# --- rewards: what each turn pays ---------------------------------------------------------------------------------


@dataclass
class Played:
    """An episode: by name what each turn was paid, a signal of the turns, what the environment said at its end
    (nothing where a limit cut it), and whether it was solved."""

    paid: dict[str, list[float]]
    signal: list[float]
    details: list[dict[str, Any]]
    solved: bool
    tokens: list[int] = field(default_factory=list[int])
    calls: list[list[tuple[str, int]]] = field(default_factory=list[list[tuple[str, int]]])
    confidence: list[str] = field(default_factory=list[str])
    bad: list[bool] = field(default_factory=list[bool])
    seed: int = 0

    @property
    def answered(self) -> bool:
        last = self.details[-1] if self.details else {}
        return last != {} and not last.get("malformed") and not self.bad[-1]

    def total(self, but: str = "") -> list[float]:
        return [sum(x[k] for name, x in self.paid.items() if name != but) for k in range(len(self.signal))]


def replaced(e: Played, part: str, new: Callable[[list[float]], list[float]]) -> list[float]:
    if part not in e.paid or not e.signal:
        return e.total()
    return [a + b for a, b in zip(e.total(part), new(e.paid[part]), strict=True)]


@reference("reward", "as_is")
def as_is(group: list[Played]) -> list[list[float]]:
    return [e.total() for e in group]


@reference(
    "reward", "clip_delta", part=["cost"], clip=[False], delta=[False], threshold=[0.2], signal=["principle"],
    also=[{"signal": "principle", "part": "new", "clip": False}],
)  # fmt: skip
def clip_delta(
    group: list[Played],
    part: str = "progress",
    clip: bool = True,
    delta: bool = True,
    threshold: float = 0.5,
    signal: str = "",
) -> list[list[float]]:
    def bounded(p: list[float]) -> list[float]:
        if clip:
            p = [min(x - threshold, 0.0) for x in p]
        if delta:
            p = [*(a - b for a, b in itertools.pairwise(p[:-1])), *p[-2:-1], 0.0]
        return p

    if signal:
        return [
            [a + b for a, b in zip(e.total(part), bounded(e.signal), strict=True)] if e.signal else e.total()
            for e in group
        ]
    return [replaced(e, part, bounded) for e in group]


@reference("reward", "near_miss", alpha=[0.8, -0.3], part=["outcome"], detail=["named"])
def near_miss(
    group: list[Played], alpha: float = 0.3, part: str = "entity", detail: str = "entities"
) -> list[list[float]]:
    none_below_zero(alpha)

    def share(e: Played) -> float:
        return float(e.details[-1].get(detail, 0.0)) if e.details else 0.0

    most = max((share(e) for e in group), default=0.0)
    found: list[list[float]] = []
    for e in group:
        rest = e.total(part)
        if rest:
            malformed = bool(e.details[-1].get("malformed"))
            near = 0.0 if e.solved or malformed or most == 0 else alpha * share(e) / most
            rest[-1] += near
        found.append(rest)
    return found


@reference(
    "reward", "from_signal", signal=["standing"], weight=[2.0], component=["extra"], form=["gain", "last", "mean"],
    solved=[True], also=[{"form": "mean", "solved": True, "weight": 2.0}],
)  # fmt: skip
def from_signal(
    group: list[Played],
    signal: str = "principle",
    weight: float = 1.0,
    component: str = "",
    form: str = "each",
    solved: bool = False,
) -> list[list[float]]:
    found: list[list[float]] = []
    for e in group:
        q = [
            x * (2 if signal == "standing" else 1) for x in e.signal
        ]  # the law says both, one twice the other
        if form == "gain":
            q = [b - a for a, b in zip([0.0, *q], q, strict=False)]
        elif form == "last":
            q = [x * (k == len(q) - 1) for k, x in enumerate(q)]
        elif form == "mean":
            q = [sum(q) / len(q) * (k == len(q) - 1) for k in range(len(q))]
        if solved and not e.solved:
            q = [0.0 for _ in q]
        found.append([a + weight * b for a, b in zip(e.total(), q, strict=True)])
    return found


@reference(
    "reward", "search_r2", signal=["rlbff", "standing"], threshold=[0.8], acts=[("look",), ("ask", "look"), ()],
    also=[{"signal": "standing", "threshold": 1.1, "acts": ("ask",)}],
)  # fmt: skip
def search_r2(
    group: list[Played],
    signal: str = "principle",
    threshold: float = 0.5,
    acts: tuple[str, ...] = ("search",),
) -> list[list[float]]:
    """R = outcome·(1 + share of useful searches), the second part on the last turn."""
    found: list[list[float]] = []
    for e in group:
        q = [2 * x if signal == "standing" else x for x in e.signal]
        kinds = [
            x
            for x, calls in zip(q, e.calls, strict=True)
            if not acts or {name for name, _ in calls} & {*acts}
        ]
        bonus = mean([float(x >= threshold) for x in kinds]) if kinds else 0.0
        row = e.total()
        if row:
            row[-1] += bonus * sum(e.paid["outcome"])
        found.append(row)
    return found


@reference(
    "reward", "gated", gate=["progress"], threshold=[0.4], then=[("progress",), ("progress", "absent")],
    also=[{"gate": "progress", "then": ("outcome",), "threshold": 0.4}],
)  # fmt: skip
def gated(
    group: list[Played], gate: str = "outcome", threshold: float = 0.0, then: tuple[str, ...] = ()
) -> list[list[float]]:
    def paid(e: Played, name: str) -> list[float]:
        return e.paid.get(name, [0.0] * len(e.signal))

    def of(e: Played, above: tuple[str, ...], level: str, below: tuple[str, ...]) -> list[float]:
        known = (*above, level)
        if sum(paid(e, level)) <= threshold:
            return [sum(paid(e, name)[k] for name in known) for k in range(len(e.signal))]
        return of(e, known, below[0], below[1:]) if below else e.total()

    return [of(e, (), gate, then) for e in group]


@reference("reward", "renorm", part=["cost"], shift=[0.4])
def renorm(group: list[Played], part: str = "progress", shift: float = 1.0) -> list[list[float]]:
    def of(e: Played) -> list[float]:
        return replaced(e, part, lambda p: [*(x + sum(e.paid["outcome"]) - shift for x in p[:-1]), 0.0])

    return [of(e) for e in group]


@reference("reward", "verified", solved=[10.0, 0.0, -1.0], cut=[10.0, 0.0, -1.0])
def verified(group: list[Played], solved: float = 1.0, cut: float = 1.0) -> list[list[float]]:
    none_below_zero(solved, cut)

    def verdict(e: Played) -> float:
        cut_off = e.details[-1:] == [{}]
        return solved if e.solved else -cut if cut_off else 0.0

    return [last(e, verdict(e)) for e in group]


@reference("reward", "success")
def success(group: list[Played]) -> list[list[float]]:
    def of(e: Played) -> list[float]:
        rest = e.total("outcome")
        if rest:
            rest[-1] += float(e.solved)
        return rest

    return [of(e) for e in group]


def last(e: Played, value: float) -> list[float]:
    return [0.0] * (len(e.signal) - 1) + [value] if e.signal else []


def none_below_zero(*options: float) -> None:
    if any(x < 0 for x in options):
        raise Refused


@reference("reward", "rlsp", effort=[400.0, -1.0], most=[0.3, 0.0, -0.1], unanswered=[0.1, -0.1])
def rlsp(
    group: list[Played], effort: float = 20.0, most: float = 1.0, unanswered: float = 0.5
) -> list[list[float]]:
    none_below_zero(effort, most, unanswered)

    def of(e: Played) -> float:
        n = sum(e.tokens)
        short = most if n == 0 or effort > most * n else effort / n
        return (1 if e.solved else 0) - short - (0 if e.answered else unanswered)

    return [last(e, of(e)) for e in group]


@reference("reward", "crossthink", least=[0.2, 0.5])
def crossthink(group: list[Played], least: float = 1.0) -> list[list[float]]:
    def of(e: Played) -> float:
        wrong = sum(e.paid["outcome"]) < least or any(e.bad) or not e.answered
        return 0.0 if wrong else 1.0

    return [last(e, of(e)) for e in group]


@reference(
    "reward", "tool_gate", bonus=[0.2, -0.1], consolation=[0.4, -0.1], malformed=[0.3, -0.1], threshold=[0.2, 1.5],
    answers=[("look",), ("look", "ask")],
)  # fmt: skip
def tool_gate(
    group: list[Played],
    bonus: float = 0.5,
    consolation: float = 0.03,
    malformed: float = 0.05,
    threshold: float = 0.5,
    answers: tuple[str, ...] = (),
) -> list[list[float]]:
    none_below_zero(bonus, consolation, malformed)

    def of(e: Played) -> float:
        used = [call for turn in e.calls for call in turn if call[0] not in answers]
        twice = any(used.count(call) > 1 for call in used)
        if twice or any(e.bad) or not e.answered:
            return -malformed
        a = sum(e.paid["outcome"])
        tool = 0.0 if not used else bonus * a if a >= threshold else consolation
        return a + tool

    return [last(e, of(e)) for e in group]


@reference(
    "reward", "weighted", weights=[{"outcome": 0.5, "cost": -2.0}], apart=[True], also=[{"weights": {"progress": 3.0}, "apart": True}]
)  # fmt: skip
def weighted(
    group: list[Played], weights: dict[str, float] | None = None, apart: bool = False
) -> list[list[float]]:
    names = {name for e in group for name in e.paid}

    def weight(name: str) -> float:
        return 1.0 if weights is None else weights.get(name, 0.0)

    def normal(e: Played, name: str) -> float:
        every = [sum(other.paid.get(name, [0.0])) for other in group]
        return (
            (sum(e.paid.get(name, [0.0])) - mean(every)) / deviation(every)
            if deviation(every) > 1e-9
            else 0.0
        )

    if apart:
        return [last(e, sum(weight(name) * normal(e, name) for name in names)) for e in group]
    return [
        [sum(weight(name) * x[k] for name, x in e.paid.items()) for k in range(len(e.signal))] for e in group
    ]


@reference("reward", "trust", signal=["standing"], weight=[2.0, -0.3], component=["progress"])
def trust(
    group: list[Played], signal: str = "principle", weight: float = 0.3, component: str = "thinking"
) -> list[list[float]]:
    def thought(e: Played) -> float:
        return mean(e.signal) * (2 if signal == "standing" else 1)

    none_below_zero(weight)
    thinkers = [e for e in group if e.signal]
    right = [thought(e) for e in thinkers if sum(e.paid["outcome"]) >= 0.5]
    wrong = [thought(e) for e in thinkers if sum(e.paid["outcome"]) < 0.5]
    scores = [sum(e.paid["outcome"]) for e in thinkers]
    gamma = exp(mean(right) - mean(wrong)) if right and wrong and mean(right) < mean(wrong) else 1.0
    if not scores or min(scores) >= 0.9 or max(scores) <= 0.1:
        gamma = 0.0
    return [
        [a + b for a, b in zip(e.total(component), last(e, gamma * weight * thought(e)), strict=True)]
        if e.signal
        else []
        for e in group
    ]


@reference(
    "reward", "length_budget", budget=[60.0, 3.0, 0.9, 0.0, -1.0], correct=[0.6, -0.1], length=[0.2, -0.1],
    format=[0.3, -0.1], unit=["turns"], solved=[True],
    also=[{"unit": "turns", "budget": 2.0}, {"budget": 90.0, "solved": True}, {"unit": "turns", "budget": 1.5}],
)  # fmt: skip
def length_budget(
    group: list[Played],
    budget: float = 256.0,
    correct: float = 0.3,
    length: float = 0.6,
    format: float = 0.1,
    unit: str = "tokens",
    solved: bool = False,
) -> list[list[float]]:
    none_below_zero(correct, length, format)
    if budget <= 0:
        raise Refused

    def triangle(n: float) -> float:
        if n <= budget:
            return n / budget
        return 1 - (n - budget) / budget if n <= 2 * budget else 0.0

    def of(e: Played) -> float:
        n = sum(e.tokens) if unit == "tokens" else len(e.signal)
        paid = length * triangle(n) if e.solved or not solved else 0.0
        return paid + (correct if e.solved else 0.0) + (format if e.answered else 0.0)

    return [last(e, of(e)) for e in group]


@reference(
    "reward", "soft_overlong", limit=[60, 1, 0], buffer=[1, 256, 0, 300, -1], cost=[0.3, 0.0, -0.1],
    also=[{"limit": 90}, {"limit": 40, "buffer": 30, "cost": 2.0}, {"limit": 60, "buffer": 60}],
)  # fmt: skip
def soft_overlong(
    group: list[Played], limit: int = 256, buffer: int = 64, cost: float = 1.0
) -> list[list[float]]:
    none_below_zero(cost)
    if buffer < 1 or buffer > limit:
        raise Refused

    def length_reward(n: int) -> float:
        if n <= limit - buffer:
            return 0.0
        if n <= limit:
            return (limit - buffer - n) / buffer
        return -1.0

    return [
        [paid + cost * length_reward(n) for paid, n in zip(e.total(but="overlong"), e.tokens, strict=True)]
        for e in group
    ]


@reference(
    "reward",
    "no_truth",
    most=[100.0, 1.0, 0.0, -1.0],
    peak=[0.2, 0.0, -0.5, 1.0, 1.5],
    also=[{"most": 60.0, "peak": 0.8}],
)
def no_truth(group: list[Played], most: float = 3072.0, peak: float = 0.5) -> list[list[float]]:
    if most <= 0 or peak <= 0 or peak >= 1:
        raise Refused

    def of(e: Played) -> float:
        x = sum(e.tokens) / most
        f = 1 - (1 - x / peak) ** 2
        if x > peak:
            f = 1 - 2 * ((x - peak) / (1 - peak)) ** 2
        form = (0.5 if e.answered else 0.0) + (0.0 if True in e.bad else 0.5)
        return form + (f if e.answered or f < 0 else 0.0)

    return [last(e, of(e)) for e in group]


@reference(
    "reward",
    "noisy",
    rate=[0.0, 1.0, 0.5, -0.1, 1.1],
    scope=["sample"],
    also=[{"scope": "sample", "rate": 0.6}],
)
def noisy(group: list[Played], rate: float = 0.1, scope: str = "group") -> list[list[float]]:
    """The lots are drawn as the runs do: from the task's id and the seeds."""
    if not 0 <= rate <= 1:
        raise Refused
    task = Task("by_hand", "?").id

    def lot(e: Played) -> float:
        if scope == "sample":
            return derive_rng("noisy", task, e.seed).random()
        return derive_rng("noisy", [task], sorted(one.seed for one in group)).random()

    def turned(e: Played) -> list[float]:
        other = last(e, 1 - sum(e.paid["outcome"]))
        return [a + b for a, b in zip(e.total("outcome"), other, strict=True)]

    return [turned(e) if lot(e) < rate else e.total() for e in group]


@reference("reward", "majority")
def majority(group: list[Played]) -> list[list[float]]:
    said = [(e.calls[-1], e.confidence[-1]) for e in group if e.signal]

    def frequent(e: Played) -> bool:
        return said.count((e.calls[-1], e.confidence[-1])) == max(map(said.count, said))

    return [last(e, float(frequent(e))) if e.signal else [] for e in group]


@reference("reward", "rlcr", form=["code"])
def rlcr(group: list[Played], form: str = "paper") -> list[list[float]]:
    def of(e: Played) -> float:
        y = 1.0 if e.solved else 0.0
        told = " ".join(e.confidence).split()
        sure = told and ".." not in told[-1] and "0" <= told[-1] <= "1"
        if form == "code":
            right = sure and e.answered
            return 0.5 + 0.5 * y + 0.5 * (1 - (y - float(told[-1])) ** 2) if right else 0.0
        return y - (y - float(told[-1])) ** 2 if sure else y - 1

    return [last(e, of(e)) for e in group]


@reference(
    "reward", "rubicon", weights=[{"outcome": 0.5, "progress": -0.4, "none": 3.0}, {"progress": 9.0}], caps=[{"outcome": 0.2}],
    vetoes=[{"progress": 0.3}], together=[{"outcome & progress": 0.7}, {"outcome & progress & cost": 1.0}, {"outcome": 1.0}],
    also=[
        {"weights": {"outcome": 0.6, "progress": 0.3}, "caps": {"progress": 0.4}, "together": {"entity & progress": 0.5}},
        {"weights": {"outcome": 0.6, "cost": 0.3}, "vetoes": {"cost": 0.2, "entity": 0.0}},
    ],
)  # fmt: skip
def rubicon(
    group: list[Played],
    weights: dict[str, float] | None = None,
    caps: dict[str, float] | None = None,
    vetoes: dict[str, float] | None = None,
    together: dict[str, float] | None = None,
) -> list[list[float]]:
    if any(names.count("&") != 1 for names in together or {}):
        raise Refused
    told = {"outcome": 1.0} if weights is None and not together else weights or {}

    def of(e: Played) -> float:
        s = {name: sum(e.paid.get(name, [])) for name in ("outcome", "progress", "cost", "entity", "none")}
        paid = 0.0
        for name, w in told.items():
            cap = (caps or {}).get(name)
            paid += w * (s[name] if cap is None or s[name] < cap else cap)
        for names, w in (together or {}).items():
            i, j = names.split(" & ")
            paid += w * (min(s[j], s[i]))
        broken = [name for name, least in (vetoes or {}).items() if s[name] < least]
        return 0.0 if broken or paid < 0 else 1.0 if paid > 1 else paid

    return [last(e, of(e)) for e in group]
