"""Losses that imitate, look at entropy, or hold against what another policy would say."""

from __future__ import annotations

from math import exp

from losses import METRICS, Batch, Token, kl_estimate
from plain import Refused, mean, reference
from ratios import between, together


def means(**what: list[float]) -> dict[str, float]:
    return {name: mean(x) for name, x in what.items()}


def nll(batch: Batch) -> list[float]:
    return [-t.logp for t in batch.tokens.values()]


# --- token by token -----------------------------------------------------------------------------------------


@reference("loss", "awr", temperature=[0.5, 3.0], cap=[1.5])
def awr(now: Token, then: Token, temperature: float = 1.0, cap: float = 20.0) -> float:
    return -min(exp(now.advantage / temperature), cap) * now.logp


def imitated_by_advantage(batch: Batch, temperature: float = 1.0, cap: float = 20.0) -> dict[str, float]:
    weights = [min(exp(t.advantage / temperature), cap) for t in batch.tokens.values()]
    return means(imitation=weights, nll=nll(batch))


def hesitation(t: Token) -> float:
    return exp(t.logp) * (1 - exp(t.logp))


@reference("loss", "chord", form=["is"])
def chord(now: Token, then: Token, form: str = "phi") -> float:
    return -now.advantage * (hesitation(then) if form == "phi" else exp(then.logp)) * now.logp


def taken_up(t: Token, gamma: float = 0.1) -> float:
    if gamma <= 0:
        raise Refused
    return exp(t.logp) / (exp(t.logp) + gamma)


@reference("loss", "luffy", gamma=[0.5, 0.0])
def luffy(now: Token, then: Token, gamma: float = 0.1) -> float:
    return -now.advantage * taken_up(now, gamma)


@reference("loss", "one_token", miss=[0.0, -0.5])
def one_token(now: Token, then: Token, miss: float = -0.1) -> float:
    return -now.advantage * (1 - miss) * exp(then.logp) * now.logp


def mixed(t: Token) -> float:
    old = exp(t.old)
    return 2 * exp(t.logp) / (old + (old + 1) / 2)


@reference("loss", "rl_plus", focus=[2.0])
def rl_plus(now: Token, then: Token, focus: float = 0.5) -> float:
    return -now.advantage * (1 - exp(then.logp)) ** focus * mixed(now)


def depends(t: Token) -> float:
    """k3 with x = log π − log π_blind, at most 10: what more of it would be farmed."""
    x = t.logp - t.teacher
    return min(exp(-x) + x - 1, 10.0)


@reference("loss", "papo", surprise=[0.5])
def papo(now: Token, then: Token, surprise: float = 2.5) -> float:
    return -depends(now) + surprise * -now.logp


@reference("loss", "kdrl", estimator=["k3"])
def kdrl(now: Token, then: Token, estimator: str = "k2") -> float:
    return kl_estimate(now.logp - now.teacher, estimator)


METRICS |= {
    "awr": imitated_by_advantage,
    "chord": lambda batch, form="phi": means(
        imitation=[hesitation(t) if form == "phi" else exp(t.logp) for t in batch.tokens.values()],
        nll=nll(batch),
    ),
    "luffy": lambda batch, gamma=0.1: means(taken_up=[taken_up(t, gamma) for t in batch.tokens.values()]),
    "one_token": lambda batch, miss=0.0: means(
        hit=[exp(t.logp) for t in batch.tokens.values()], nll=nll(batch)
    ),
    "rl_plus": lambda batch, focus=0.0: means(ratio_mixed=[mixed(t) for t in batch.tokens.values()]),
    "papo": lambda batch, surprise=0.0: means(depends=[depends(t) for t in batch.tokens.values()]),
    "kdrl": lambda batch, estimator="": means(
        kl_teacher=[kl_estimate(t.logp - t.teacher, "k3") for t in batch.tokens.values()]
    ),
}


# --- over a minibatch ---------------------------------------------------------------------------------------


def worth_learning(batch: Batch, share: float, weight: float) -> set[tuple[int, int]]:
    """The tokens with the largest −log π − weight·H."""
    count = max(1, int(share * len(batch.tokens)))
    of = {at: -t.logp - weight * t.entropy for at, t in batch.tokens.items()}
    return {*sorted(of, key=lambda at: -of[at])[:count]}


@reference("loss", "entropy_sft", share=[0.01, 0.5], entropy=[0.1])
def entropy_sft(now: Batch, then: Batch, share: float = 0.2, entropy: float = 1.0) -> float:
    kept = worth_learning(then, share, entropy)
    return sum(-t.weight * t.advantage * t.logp for at, t in now.tokens.items() if at in kept)


def nll_kept(batch: Batch, share: float = 0.2, entropy: float = 1.0) -> dict[str, float]:
    kept = [-batch.tokens[at].logp for at in worth_learning(batch, share, entropy)]
    return means(nll=nll(batch), nll_kept=kept)


@reference("loss", "ift", discount=[0.5, 0.0])
def ift(now: Batch, then: Batch, discount: float = 0.95) -> float:
    total = 0.0
    for b in {t.trajectory for t in now.tokens.values()}:
        own = [at for at, t in now.tokens.items() if t.trajectory == b]
        own.sort(key=lambda at: (now.tokens[at].turn, at))
        after, S = 0.0, dict[tuple[int, int], float]()
        for at in reversed(own):
            after = S[at] = -now.tokens[at].logp + discount * after
        for at in own:
            t = now.tokens[at]
            w = len(own) * S[at] / sum(S.values())
            total += t.weight * w * -t.logp if t.advantage > 0 else 0.0
    return total


def bonus(batch: Batch, t: Token, scale: float, cap: float) -> float:
    own = together(batch, t, "trajectory")
    middle_a, middle_p = mean([u.advantage for u in own]), mean([u.logp for u in own])

    def weight(u: Token) -> float:
        return exp((u.advantage - middle_a) * (u.logp - middle_p))

    return between(scale * weight(t) / sum(weight(u) for u in own), 0.0, cap)


@reference("loss", "tea", scale=[2.0], cap=[0.7])
def tea(now: Batch, then: Batch, scale: float = 10.0, cap: float = 5.0) -> float:
    return -sum(
        t.weight * bonus(then, then.tokens[at], scale, cap) * t.entropy for at, t in now.tokens.items()
    )


def bonuses(batch: Batch, scale: float = 10.0, cap: float = 5.0) -> dict[str, float]:
    every = [*batch.tokens.values()]
    return means(bonus=[bonus(batch, t, scale, cap) for t in every], entropy=[t.entropy for t in every])


def by_turn(batch: Batch) -> dict[int, float]:
    turns = {t.turn for t in batch.tokens.values()}
    return {k: mean([t.entropy for t in batch.tokens.values() if t.turn == k]) for k in turns}


def strayed(batch: Batch, t: Token, before: list[Batch], below: float, above: float) -> float:
    history = [by_turn(b)[t.turn] for b in before if t.turn in by_turn(b)]
    if not history:
        return 0.0
    h = mean(history)
    return max(0.0, t.entropy - above * h) + max(0.0, below * h - t.entropy)


@reference("loss", "epo", beta=[0.3], below=[0.7], above=[1.2], late=[1, 2, 9])
def epo(
    now: Batch, then: Batch, beta: float = 1.0, below: float = 0.0, above: float = 2.0, late: int = 0
) -> float:
    if not any(turn >= late for turn in by_turn(now)):
        return 0.0
    every = [*now.tokens.values()]
    penalty = mean([strayed(now, t, now.before, below, above) for t in every])
    return -(mean([t.entropy for t in every]) - beta * penalty)


def where_strayed(
    batch: Batch, beta: float = 1.0, below: float = 0.0, above: float = 2.0, late: int = 0
) -> dict[str, float]:
    turns = by_turn(batch)
    off = [float(strayed(batch, t, batch.before, below, above) > 0) for t in batch.tokens.values()]
    return {
        "entropy_strayed": mean(off),
        "entropy_first": turns[min(turns)],
        "entropy_last": turns[max(turns)],
    }


METRICS |= {
    "entropy_sft": nll_kept,
    "ift": lambda batch, discount=0.0: means(nll=nll(batch)),
    "tea": bonuses,
    "epo": where_strayed,
}
