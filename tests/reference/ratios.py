"""Losses of the ratio to the old policy: what they hold back, and where."""

from __future__ import annotations

import dataclasses
from math import exp, log, sqrt, tanh

from losses import LOTS, METRICS, Batch, Token, kl_old
from plain import mean, reference


def ratio(token: Token) -> float:
    return exp(token.logp - token.old)


def between(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


def surrogate(r: float, A: float, low: float, high: float) -> float:
    return max(-r * A, -between(r, low, high) * A)


def is_held(r: float, A: float, low: float, high: float) -> bool:
    """The clip leaves the token without slope."""
    return (A > 0 and r > high) or (A < 0 and r < low)


def share(of: list[bool]) -> float:
    return mean([float(x) for x in of])


def sign(x: float) -> int:
    return (x > 0) - (x < 0)


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


# --- token by token -----------------------------------------------------------------------------------------


@reference("loss", "cispo", low=[0.1, 0.5], high=[0.05, 2.0])
def cispo(now: Token, then: Token, low: float = 1.0, high: float = 0.28) -> float:
    return -between(ratio(then), 1 - low, 1 + high) * now.advantage * now.logp


def limited(batch: Batch, low: float = 1.0, high: float = 0.28) -> dict[str, float]:
    of = [ratio(t) for t in batch.tokens.values()]
    return {"clipped": share([r < 1 - low or r > 1 + high for r in of]), "kl_old": kl_old(batch)}


def two_valued(q: float, p: float) -> float:
    """KL(q ‖ p) of this token or another."""
    if q == 1 or p == 1:
        return -log(p) if q == 1 else float("inf")
    return q * log(q / p) + (1 - q) * log((1 - q) / (1 - p))


def let_go(t: Token, divergence: str, low: float, high: float) -> bool:
    p, q = exp(t.logp), exp(t.old)
    far = abs(p - q) if divergence == "tv" else two_valued(q, p)
    return (p > q and far > high) if t.advantage > 0 else (p < q and far > low)


@reference("loss", "dppo", divergence=["kl"], low=[0.02], high=[0.03], cap=[1.1])
def dppo(
    now: Token,
    then: Token,
    divergence: str = "tv",
    low: float = 0.15,
    high: float = 0.15,
    cap: float = 20.0,
) -> float:
    if let_go(then, divergence, low, high):
        return 0.0
    return -now.advantage * min(ratio(then), cap) * now.logp


def masked(
    batch: Batch, divergence: str = "tv", low: float = 0.15, high: float = 0.15, cap: float = 20.0
) -> dict[str, float]:
    gone = [let_go(t, divergence, low, high) for t in batch.tokens.values()]
    return {"masked": share(gone), "kl_old": kl_old(batch)}


@reference("loss", "dro", beta=[2.0])
def dro(now: Token, then: Token, beta: float = 0.5) -> float:
    return -(now.advantage * now.logp - beta / 2 * (now.logp - now.old) ** 2)


def own_bounds(q: float, low: float, high: float, cap: float) -> tuple[float, float]:
    return (
        0.5 + 0.5 * sqrt(max(1 - 4 * low / q, 0.0)),
        min(0.5 + 0.5 * sqrt(1 + 4 * high / q), cap),
    )


@reference("loss", "dynamic_clip", low=[0.02], high=[0.02], cap=[1.1])
def dynamic_clip(now: Token, then: Token, low: float = 0.16, high: float = 0.2, cap: float = 10.0) -> float:
    A, r = now.advantage, ratio(now)
    found = surrogate(r, A, *own_bounds(exp(now.old), low, high, cap))
    return min(found, -cap * A) if A < 0 else found


def clipped_dynamically(
    batch: Batch, low: float = 0.16, high: float = 0.2, cap: float = 10.0
) -> dict[str, float]:
    held = [
        is_held(ratio(t), t.advantage, *own_bounds(exp(t.old), low, high, cap))
        or (t.advantage < 0 and ratio(t) > cap)
        for t in batch.tokens.values()
    ]
    return {"clipped": share(held), "kl_old": kl_old(batch)}


@reference("loss", "sapo", positive=[3.0], negative=[0.5])
def sapo(now: Token, then: Token, positive: float = 1.0, negative: float = 1.05) -> float:
    tau = positive if now.advantage > 0 else negative
    return -now.advantage * 4 / tau * sigmoid(tau * (ratio(now) - 1))


def gate(batch: Batch, positive: float = 1.0, negative: float = 1.05) -> dict[str, float]:
    found: list[float] = []
    for t in batch.tokens.values():
        s = sigmoid((positive if t.advantage > 0 else negative) * (ratio(t) - 1))
        found.append(4 * s * (1 - s))
    return {"gate": mean(found), "kl_old": kl_old(batch)}


METRICS |= {
    "cispo": limited,
    "dppo": masked,
    "dro": lambda batch, beta=0.5: {"kl_old": kl_old(batch)},
    "dynamic_clip": clipped_dynamically,
    "sapo": gate,
}


# --- over a minibatch ---------------------------------------------------------------------------------------


def middle(x: list[float]) -> float:
    """The median; of an even number the mean of the middle two."""
    x = sorted(x)
    return (x[(len(x) - 1) // 2] + x[len(x) // 2]) / 2


def aim(batch: Batch, t: Token, bound: float, center: str) -> tuple[int, float]:
    """On which side of the median, and the ratio that is aimed at."""
    side = t.advantage
    if center == "median":
        group = [
            sum(batch.rewards[b])
            for b in range(len(batch.group))
            if batch.group[b] == batch.group[t.trajectory]
        ]
        side = sum(batch.rewards[t.trajectory]) - middle(group)
    return sign(side), 1 + bound * sign(side)


@reference("loss", "bpo", bound=[0.6], center=["median"])
def bpo(now: Batch, then: Batch, bound: float = 0.2, center: str = "advantage") -> float:
    return sum(
        t.weight * abs(t.advantage) * abs(ratio(t) - aim(now, t, bound, center)[1])
        for t in now.tokens.values()
    )


def beyond(batch: Batch, bound: float = 0.2, center: str = "advantage") -> dict[str, float]:
    past: list[bool] = []
    for t in batch.tokens.values():
        side, target = aim(batch, t, bound, center)
        past.append((ratio(t) - target) * side > 0)
    return {"beyond": share(past), "kl_old": kl_old(batch)}


def covariance(batch: Batch) -> dict[tuple[int, int], float]:
    middle_a = mean([t.advantage for t in batch.tokens.values()])
    middle_p = mean([t.logp for t in batch.tokens.values()])
    return {at: (t.advantage - middle_a) * (t.logp - middle_p) for at, t in batch.tokens.items()}


def drawn_from(
    batch: Batch, share: float = 0.0002, least: float = 1.0, most: float = 5.0, low: float = 0.2, high: float = 0.2
) -> tuple[set[tuple[int, int]], int]:  # fmt: skip
    cov = covariance(batch)
    eligible = {
        at
        for at, t in batch.tokens.items()
        if least < cov[at] < most and not is_held(ratio(t), t.advantage, 1 - low, 1 + high)
    }
    return eligible, min(max(1, int(share * len(batch.tokens))), len(eligible))


LOTS["clip_cov"] = drawn_from


@reference("loss", "clip_cov", share=[0.2, 0.9], least=[0.1], most=[1.5], low=[0.02], high=[0.05])
def clip_cov(
    now: Batch, then: Batch, share: float = 0.0002, least: float = 1.0, most: float = 5.0, low: float = 0.2, high: float = 0.2
) -> float:  # fmt: skip
    return sum(
        t.weight * surrogate(ratio(t), t.advantage, 1 - low, 1 + high)
        for at, t in now.tokens.items()
        if at not in now.out
    )


def cov_held(batch: Batch, **options: float) -> dict[str, float]:
    _, count = drawn_from(batch, **options)
    return {"cov_held": count / len(batch.tokens), "kl_old": kl_old(batch)}


def elastic(batch: Batch, t: Token, by_advantage: float, by_task: float) -> float:
    group = batch.group[t.trajectory]
    p = mean([float(s) for s, g in zip(batch.success, batch.group, strict=True) if g == group])
    return (1 + by_advantage * tanh(abs(t.advantage))) * (1 + by_task * (4 * p * (1 - p) - 0.5))


@reference("loss", "etr", low=[0.05], high=[0.5], by_advantage=[0.1], by_task=[1.5])
def etr(
    now: Batch, then: Batch, low: float = 0.2, high: float = 0.2, by_advantage: float = 0.5, by_task: float = 0.5
) -> float:  # fmt: skip
    total = 0.0
    for t in now.tokens.values():
        width = elastic(now, t, by_advantage, by_task)
        total += t.weight * surrogate(ratio(t), t.advantage, 1 - low * width, 1 + high * width)
    return total


def clipped_elastically(
    batch: Batch, low: float = 0.2, high: float = 0.2, by_advantage: float = 0.5, by_task: float = 0.5
) -> dict[str, float]:
    held: list[bool] = []
    for t in batch.tokens.values():
        width = elastic(batch, t, by_advantage, by_task)
        held.append(is_held(ratio(t), t.advantage, 1 - low * width, 1 + high * width))
    return {"clipped": share(held), "kl_old": kl_old(batch)}


def together(batch: Batch, t: Token, level: str) -> list[Token]:
    return [
        u
        for u in batch.tokens.values()
        if u.trajectory == t.trajectory and (level == "trajectory" or u.turn == t.turn)
    ]


def signed_clip(t: Token, clip: float) -> float:
    s, d = sign(t.advantage), t.logp - t.old
    return s * min(s * d, s * between(d, -clip, clip))


@reference("loss", "gmpo", clip=[0.1], level=["turn"])
def gmpo(now: Batch, then: Batch, clip: float = 0.4, level: str = "trajectory") -> float:
    total = 0.0
    for at, t in now.tokens.items():
        same = then.tokens[at]
        fixed = mean([signed_clip(u, clip) for u in together(then, same, level)])
        own = signed_clip(t, clip) - signed_clip(same, clip)  # 0, with the slope of its own token
        total -= t.weight * t.advantage * exp(fixed + own)
    return total


def clipped_by_sign(batch: Batch, clip: float = 0.4, level: str = "trajectory") -> dict[str, float]:
    held = [sign(t.advantage) * (t.logp - t.old) > clip for t in batch.tokens.values()]
    return {"clipped": share(held), "kl_old": kl_old(batch)}


def drifts(batch: Batch) -> dict[int, float]:
    turns = {t.turn for t in batch.tokens.values()}
    return {k: mean([t.logp - t.old for t in batch.tokens.values() if t.turn == k]) for k in turns}


@reference("loss", "grpo_guard", low=[0.05], high=[0.5])
def grpo_guard(now: Batch, then: Batch, low: float = 0.2, high: float = 0.2) -> float:
    drift = drifts(then)
    return sum(
        t.weight * surrogate(exp(t.logp - t.old - drift[t.turn]), t.advantage, 1 - low, 1 + high)
        for t in now.tokens.values()
    )


def clipped_by_turn(batch: Batch, low: float = 0.2, high: float = 0.2) -> dict[str, float]:
    drift = drifts(batch)
    held = [
        is_held(exp(t.logp - t.old - drift[t.turn]), t.advantage, 1 - low, 1 + high)
        for t in batch.tokens.values()
    ]
    most = max(abs(x) for x in drift.values())
    return {"clipped": share(held), "drift": most, "kl_old": kl_old(batch)}


def geometric(batch: Batch, t: Token, level: str) -> float:
    return exp(mean([u.logp - u.old for u in together(batch, t, level)]))


@reference("loss", "gspo", low=[0.1], high=[0.3], level=["turn"])
def gspo(
    now: Batch, then: Batch, low: float = 0.0003, high: float = 0.0004, level: str = "trajectory"
) -> float:
    total = 0.0
    for at, t in now.tokens.items():
        same = then.tokens[at]
        s = geometric(then, same, level) * exp(t.logp - same.logp)
        total += t.weight * surrogate(s, t.advantage, 1 - low, 1 + high)
    return total


@reference("loss", "luspo", low=[0.1], high=[0.3])
def luspo(now: Batch, then: Batch, low: float = 0.002, high: float = 0.0025) -> float:
    total = 0.0
    for at, t in now.tokens.items():
        same = then.tokens[at]
        s = geometric(then, same, "trajectory") * exp(t.logp - same.logp)
        n = len(together(now, t, "trajectory"))
        total += t.weight * n * surrogate(s, t.advantage, 1 - low, 1 + high)
    return total


def clipped_together(batch: Batch, low: float, high: float, level: str = "trajectory") -> dict[str, float]:
    held = [
        is_held(geometric(batch, t, level), t.advantage, 1 - low, 1 + high) for t in batch.tokens.values()
    ]
    return {"clipped": share(held), "kl_old": kl_old(batch)}


def quantile(x: list[float], at: float) -> float:
    """Linear between the two nearest."""
    x, place = sorted(x), at * (len(x) - 1)
    below = int(place)
    above = min(below + 1, len(x) - 1)
    return x[below] + (place - below) * (x[above] - x[below])


def hesitant(batch: Batch, kept: float) -> set[tuple[int, int]]:
    least = quantile([t.entropy for t in batch.tokens.values()], 1 - kept)
    return {at for at, t in batch.tokens.items() if t.entropy >= least}


@reference("loss", "high_entropy", share=[0.55], low=[0.05], high=[0.5])
def high_entropy(now: Batch, then: Batch, share: float = 0.2, low: float = 0.2, high: float = 0.2) -> float:
    kept = hesitant(then, share)
    return sum(
        t.weight * surrogate(ratio(t), t.advantage, 1 - low, 1 + high)
        for at, t in now.tokens.items()
        if at in kept
    )


def entropy_kept(batch: Batch, share: float = 0.2, low: float = 0.2, high: float = 0.2) -> dict[str, float]:
    kept = hesitant(batch, share)
    return {"entropy_kept": mean([batch.tokens[at].entropy for at in kept]), "kl_old": kl_old(batch)}


def hesitation(batch: Batch, chosen: Batch, kept: float, per: str) -> float:
    """The mean over trajectories of what their most hesitant tokens have; which these are, ``chosen`` says."""
    of: list[float] = []
    for b in sorted({t.trajectory for t in chosen.tokens.values()}):
        own: list[float] = []
        for at, t in chosen.tokens.items():
            unit = [u.entropy for u in together(chosen, t, per)]
            if t.trajectory == b and t.entropy >= quantile(unit, 1 - kept):
                own.append(batch.tokens[at].entropy)
        of.append(mean(own))
    return mean(of)


def anchor(batch: Batch, share: float, per: str, aim: float | None) -> float:
    first = batch.before[0] if batch.before else batch
    return hesitation(first, first, share, per) if aim is None else aim


def in_nucleus(batch: Batch, mass: float) -> Batch:
    """With the nucleus's entropy for that of all tokens, where there is one."""
    if mass == 1:
        return batch
    tokens = {at: dataclasses.replace(t, entropy=t.nucleus) for at, t in batch.tokens.items()}
    return dataclasses.replace(batch, tokens=tokens, before=[in_nucleus(one, mass) for one in batch.before])


@reference(
    "loss", "siren", share=[0.6], per=["turn"], aim=[0.8, 0.0], mass=[0.8], crossing=[True],
    also=[{"mass": 0.5, "crossing": True, "per": "turn"}],
)  # fmt: skip
def siren(
    now: Batch,
    then: Batch,
    share: float = 0.2,
    per: str = "trajectory",
    aim: float | None = None,
    mass: float = 1.0,
    crossing: bool = False,
) -> float:
    now, then = in_nucleus(now, mass), in_nucleus(then, mass)
    return (hesitation(now, then, share, per) - anchor(then, share, per, aim)) ** 2


def anchored(
    batch: Batch,
    share: float = 0.2,
    per: str = "trajectory",
    aim: float | None = None,
    mass: float = 1.0,
    crossing: bool = False,
) -> dict[str, float]:
    batch = in_nucleus(batch, mass)
    found = hesitation(batch, batch, share, per)
    return {"entropy_kept": found, "entropy_aim": anchor(batch, share, per, aim)}


METRICS |= {
    "siren": anchored,
    "bpo": beyond,
    "clip_cov": cov_held,
    "etr": clipped_elastically,
    "gmpo": clipped_by_sign,
    "grpo_guard": clipped_by_turn,
    "gspo": lambda batch, **given: clipped_together(batch, **{"low": 0.0003, "high": 0.0004, **given}),
    "luspo": lambda batch, **given: clipped_together(batch, **{"low": 0.002, "high": 0.0025, **given}),
    "high_entropy": entropy_kept,
}
