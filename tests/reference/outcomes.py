"""Credit rules that give a trajectory one number."""

from __future__ import annotations

from math import ceil, exp, sqrt

from plain import Refused, deviation, each_discounted, mean, others, over_turns, reference, z
from ragged import Ragged, Rows


def returns(r: Ragged, i: int) -> list[float]:
    return [r.returns[j] for j in r.peers(i)]


@reference("credit", "grpo", normalize=["none"])
def grpo(r: Ragged, normalize: str = "std") -> Rows:
    if normalize == "none":
        return dr_grpo(r)
    return over_turns(r, lambda i: z(r.returns[i], returns(r, i)))


@reference("credit", "reinforce")
def reinforce(r: Ragged) -> Rows:
    return over_turns(r, lambda i: r.returns[i])


@reference("credit", "dr_grpo")
def dr_grpo(r: Ragged) -> Rows:
    return over_turns(r, lambda i: r.returns[i] - mean(returns(r, i)))


@reference("credit", "rloo")
def rloo(r: Ragged) -> Rows:
    return over_turns(
        r, lambda i: r.returns[i] - mean([r.returns[j] for j in others(r, i)]) if others(r, i) else 0.0
    )


@reference("credit", "rl_plus")
def rl_plus(r: Ragged) -> Rows:
    def gap(i: int) -> float:
        own = [r.returns[j] for j in r.peers(i) if not any(r.turns["foreign"][j])]
        return r.returns[i] - mean(own) if own else 0.0

    return over_turns(r, gap)


@reference("credit", "lite_ppo")
def lite_ppo(r: Ragged) -> Rows:
    return over_turns(r, lambda i: (r.returns[i] - mean(returns(r, i))) / (deviation(r.returns) + 1e-6))


@reference("credit", "trr")
def trr(r: Ragged) -> Rows:
    role = r.role or [0] * len(r)
    return over_turns(
        r, lambda i: z(r.returns[i], [r.returns[j] for j in range(len(r)) if role[j] == role[i]])
    )


@reference("credit", "epo_strategic", discount=[0.0, 0.5, 1.0, -0.1, 1.1])
def epo_strategic(r: Ragged, discount: float = 0.99) -> Rows:
    if not 0 <= discount <= 1:
        raise Refused
    found: Rows = []
    for G in each_discounted(r, discount):
        most = max((abs(g) for g in G), default=0.0)
        found.append([g / most if most else 0.0 for g in G])
    return found


@reference("credit", "ngrpo", best=[2.0])
def ngrpo(r: Ragged, best: float = 1.0) -> Rows:
    return over_turns(r, lambda i: z(r.returns[i], [*returns(r, i), best]))


@reference("credit", "psr_nsr", positive=[0.5], negative=[0.3], success=[0.4])
def psr_nsr(r: Ragged, positive: float = 0.1, negative: float = 1.0, success: float = 1.0) -> Rows:
    return over_turns(r, lambda i: positive if r.returns[i] >= success - 1e-6 else -negative)


def beaten(a: float, peers: list[float]) -> float:
    """How many of the others are below, ties counting half."""
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for b in peers) - 0.5  # its own tie


@reference("credit", "rank")
def rank(r: Ragged) -> Rows:
    def share(i: int) -> float:
        return beaten(r.returns[i], returns(r, i)) / max(1, len(r.peers(i)) - 1)

    return over_turns(r, lambda i: z(share(i), [share(j) for j in r.peers(i)]))


@reference("credit", "arena")
def arena(r: Ragged) -> Rows:
    place = [row[0] for row in r.turns["standing"]]
    return over_turns(r, lambda i: z(place[i], [place[j] for j in r.peers(i)]))


@reference("credit", "dcpo")
def dcpo(r: Ragged) -> Rows:
    def of(i: int) -> float:
        before, past, spread = (r.whole[f"past_{name}"][i] for name in ("visits", "mean", "std"))
        visits, mu, sigma = before + 1, mean(returns(r, i)), deviation(returns(r, i))
        total = (before * past + mu) / visits
        whole = sqrt((before * spread**2 + sigma**2 + before / visits * (past - mu) ** 2) / visits)
        new = (r.returns[i] - mu) / sigma if sigma > 1e-6 else 0.0
        every = (r.returns[i] - total) / whole if whole > 1e-6 else 0.0
        smooth = (before * new + every) / visits, (new + before * every) / visits
        return smooth[0] if abs(smooth[0]) < abs(smooth[1]) - 1e-12 else smooth[1]

    return over_turns(r, of)


@reference("credit", "e_grpo", alpha=[0.8], success=[0.4])
def e_grpo(r: Ragged, alpha: float = 0.3, success: float = 1.0) -> Rows:
    named = [row[0] for row in r.turns["matched"]]

    def paid(i: int) -> float:
        most = max(named[j] for j in r.peers(i))
        if r.returns[i] >= success - 1e-6:
            return 1.0
        return alpha * named[i] / most if most > 0 else 0.0

    return over_turns(r, lambda i: z(paid(i), [paid(j) for j in r.peers(i)]))


@reference("credit", "maxrl")
def maxrl(r: Ragged) -> Rows:
    def of(i: int) -> float:
        average = mean(returns(r, i))
        return (r.returns[i] - average) / average if average > 1e-6 else 0.0

    return over_turns(r, of)


@reference("credit", "pass_at_k")
def pass_at_k(r: Ragged) -> Rows:
    def of(i: int) -> float:
        peers = [r.returns[j] for j in others(r, i)]
        return max(0.0, r.returns[i] - max(peers)) if peers else 0.0

    return over_turns(r, of)


@reference("credit", "unlikeliness", beta=[0.9])
def unlikeliness(r: Ragged, beta: float = 0.25) -> Rows:
    likely = [sum(said) / sum(n) for said, n in zip(r.turns["logp"], r.turns["tokens"], strict=True)]

    def reduced(i: int) -> float:
        peers = [likely[j] for j in r.peers(i)]
        return r.returns[i] * (1 - beta * beaten(likely[i], peers) / len(peers))

    return over_turns(r, lambda i: z(reduced(i), [reduced(j) for j in r.peers(i)]))


@reference(
    "credit", "canon", by=[None, "progress"], inter=[0.0, 0.5], low=[0.5], high=[0.3],
    also=[{"low": 0.7, "inter": 0.4}, {"by": None, "high": 0.6}],
)  # fmt: skip
def canon(
    r: Ragged, by: str | None = "entropy", inter: float = 1.0, low: float = 1.0, high: float = 1.0
) -> Rows:
    metric = [len(row) if by is None else mean(r.turns[by][i]) for i, row in enumerate(r.rewards)]

    def share_below(i: int) -> float:
        """How much of it is in the lower half, which has half of the group, rounded down."""
        half = len(r.peers(i)) // 2
        before = sum(metric[j] < metric[i] for j in r.peers(i))
        tied = sum(metric[j] == metric[i] for j in r.peers(i))
        return min(1.0, max(0.0, (half - before) / tied))

    def of(i: int) -> float:
        peers, R = r.peers(i), r.returns
        if len(peers) == 1:
            return 0.0
        below = {j: share_below(j) for j in peers}
        lower = sum(below[j] * R[j] for j in peers) / sum(below.values())
        upper = sum((1 - below[j]) * R[j] for j in peers) / sum(1 - x for x in below.values())
        as_lower = inter * (low * R[i] - high * upper) + (1 - inter) * (R[i] - lower)
        as_upper = inter * (high * R[i] - low * lower) + (1 - inter) * (R[i] - upper)
        return below[i] * as_lower + (1 - below[i]) * as_upper

    return over_turns(r, of)


@reference("credit", "opo")
def opo(r: Ragged) -> Rows:
    def of(i: int) -> float:
        peers = r.peers(i)
        if len(peers) == 1:
            return 0.0
        return r.returns[i] - sum(len(r.rewards[j]) * r.returns[j] for j in peers) / sum(
            len(r.rewards[j]) for j in peers
        )

    return over_turns(r, of)


@reference("credit", "gated_length", share=[0.6, 0.5000000000000001, 1.0, 0.0, -0.5, 1.5], alpha=[0.7], success=[0.4], by=[None, "progress"],
           also=[{"share": 0.6, "success": 0.4}, {"share": 1.0, "success": 0.0}])  # fmt: skip
def gated_length(
    r: Ragged, share: float = 0.2, alpha: float = 0.2, success: float = 1.0, by: str | None = "tokens"
) -> Rows:
    if share < 0 or share > 1:
        raise Refused
    solved = [paid_in_all >= success - 1e-6 for paid_in_all in r.returns]
    length = [len(row) if by is None else sum(r.turns[by][i]) for i, row in enumerate(r.rewards)]
    rate = {g: mean([float(s) for s, of in zip(solved, r.group, strict=True) if of == g]) for g in r.group}
    best = sorted(rate.values(), reverse=True)[: ceil(share * len(rate) - 1e-9)]

    def paid(i: int) -> float:
        if not solved[i]:
            return 0.0
        if rate[r.group[i]] < min(best, default=2.0):
            return 1.0
        good = [length[j] for j in r.peers(i) if solved[j]]
        spread = sqrt(mean([(x - mean(good)) ** 2 for x in good]))
        return 1 - alpha / (1 + exp(-(length[i] - mean(good)) / (spread + 1e-6)))

    return over_turns(r, lambda i: z(paid(i), [paid(j) for j in r.peers(i)]))


@reference("credit", "prof", keep=[2, 3, 1], cost=[0.3], longest=[3], success=[0.4],
           also=[{"keep": 2, "cost": 0.9, "longest": 2, "success": 0.4}, {"keep": 3, "cost": 0.9, "success": 0.0},
                 {"keep": 2, "success": 0.5000001}])  # fmt: skip
def prof(r: Ragged, keep: int = 4, cost: float = 0.0, longest: int = 0, success: float = 1.0) -> Rows:
    if keep < 2:
        raise Refused
    average = [mean(row) for row in r.turns["principle"]]

    def worth(i: int) -> float:
        n = len(r.rewards[i])
        return average[i] - (cost if n == 1 or (longest > 0 and n >= longest) else 0.0)

    def kept(i: int) -> list[int]:
        good = sorted((j for j in r.peers(i) if r.returns[j] >= success - 1e-6), key=lambda j: (-worth(j), j))
        bad = sorted((j for j in r.peers(i) if j not in good), key=lambda j: (average[j], j))
        pairs = [(a * b, a, b) for a in range(len(good) + 1) for b in range(len(bad) + 1)]
        total = min(keep, len(good) + len(bad))
        _, a, b = max(pair for pair in pairs if pair[1] + pair[2] == total)
        return [*good[:a], *bad[:b]]

    return over_turns(r, lambda i: z(r.returns[i], [r.returns[j] for j in kept(i)]) if i in kept(i) else 0.0)


@reference("credit", "think_rm")
def think_rm(r: Ragged) -> Rows:
    return over_turns(r, lambda i: r.turns["preference"][i][0])
