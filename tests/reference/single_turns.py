"""Credit rules that give each turn a number of its own."""

from __future__ import annotations

from math import exp, sqrt

from plain import (
    Refused,
    acts_between,
    against_peers,
    deviation,
    discounted,
    each_discounted,
    each_turn,
    mean,
    others,
    reference,
    to_go,
    z,
)
from ragged import Ragged, Rows

from turnwise.tasks.core import derive_rng


def flat(rows: Rows) -> list[float]:
    return [x for row in rows for x in row]


def of_group(r: Ragged, i: int, rows: Rows) -> list[float]:
    return [x for j in r.peers(i) for x in rows[j]]


def lambda_returns(
    paid: list[float], value: list[float], discounts: list[float], lam: float, last: float = 0.0
) -> list[float]:
    """A_k = δ_k + γ_k·λ·A_{k+1}, δ_k = r_k + γ_k·V_{k+1} − V_k, the value after the end being ``last``."""
    found, behind, following = [0.0] * len(paid), 0.0, last
    for k in range(len(paid) - 1, -1, -1):
        behind = paid[k] + discounts[k] * following - value[k] + discounts[k] * lam * behind
        found[k], following = behind, value[k]
    return found


def after_turns(r: Ragged, i: int, discount: float) -> list[float]:
    """γ after each act, 1 after what was written for later contexts."""
    return [discount ** acts_between(r, i, k, k + 1) for k in range(len(r.rewards[i]))]


@reference("credit", "return_to_go", discount=[0.8], peers=["alive"])
def return_to_go(r: Ragged, discount: float = 1.0, peers: str = "all") -> Rows:
    G = each_discounted(r, discount)

    def of(i: int, k: int) -> float:
        if not others(r, i):
            return 0.0
        if peers == "all":
            return G[i][k] - mean([G[j][k] if k < len(G[j]) else 0.0 for j in others(r, i)])
        alive = [G[j][k] for j in others(r, i) if k < len(G[j])]
        return G[i][k] - (mean(alive) if alive else 0.0)

    return each_turn(r, of)


@reference("credit", "rebn", discount=[1.0, 0.5], std=["sample"])
def rebn(r: Ragged, discount: float = 0.9, std: str = "population") -> Rows:
    G = each_discounted(r, discount)
    every = flat(G)
    squares = sum((x - mean(every)) ** 2 for x in every)
    spread = sqrt(squares / (len(every) if std == "population" else max(1, len(every) - 1)))
    return each_turn(r, lambda i, k: (G[i][k] - mean(every)) / (spread + 1e-9))


@reference("credit", "reinforce_pp", discount=[0.7])
def reinforce_pp(r: Ragged, discount: float = 1.0) -> Rows:
    G = each_discounted(r, discount)
    every = flat(G)
    return each_turn(r, lambda i, k: (G[i][k] - mean(every)) / sqrt(deviation(every) ** 2 + 1e-8))


@reference("credit", "gae", discount=[0.9], lam=[0.7])
def gae(r: Ragged, discount: float = 1.0, lam: float = 1.0) -> Rows:
    return [
        lambda_returns(paid, v, after_turns(r, i, discount), lam)
        for i, (paid, v) in enumerate(zip(r.rewards, r.turns["value"], strict=True))
    ]


@reference("credit", "gae_truncated", discount=[0.9], lam=[0.7])
def gae_truncated(r: Ragged, discount: float = 1.0, lam: float = 1.0) -> Rows:
    return [
        lambda_returns(
            r.rewards[i],
            r.turns["value"][i],
            after_turns(r, i, discount),
            lam,
            r.whole["last_value"][i] if r.truncated[i] else 0.0,
        )
        for i in range(len(r))
    ]


@reference("credit", "ota", turns=[1, 2, 100, 0, -1], discount=[1.0, 0.5])
def ota(r: Ragged, turns: int = 3, discount: float = 0.99) -> Rows:
    """What an option of some turns earns, and once discounted what its last state is worth, against its first state's."""
    if turns < 1:
        raise Refused

    def of(i: int, k: int) -> float:
        earned, at = 0.0, k
        while at < len(r.rewards[i]) and at - k < turns:
            earned += r.rewards[i][at]
            at += 1
        worth = (
            (discount if acts_between(r, i, k, at) else 1.0) * r.turns["value"][i][at]
            if at < len(r.rewards[i])
            else 0.0
        )
        return earned + worth - r.turns["value"][i][k]

    return each_turn(r, of)


@reference("credit", "vine")
def vine(r: Ragged) -> Rows:
    return [
        lambda_returns(paid, v, [1.0] * len(v), 0.0)
        for paid, v in zip(r.rewards, r.turns["fork_value"], strict=True)
    ]


@reference("credit", "pav", weight=[1.0], attempts=[2])
def pav(r: Ragged, weight: float = 3.0, attempts: int = 4) -> Rows:
    def prover(v: float) -> float:
        return 1 - (1 - min(1.0, max(0.0, v))) ** attempts

    def of(i: int, k: int) -> float:
        v = r.turns["value"][i]
        after = v[k + 1] if k + 1 < len(v) else r.returns[i]
        return to_go(r.rewards[i])[k] - v[k] + weight * (prover(after) - prover(v[k]))

    return each_turn(r, of)


@reference("credit", "gigpo", weight=[0.5], discount=[1.0], normalize=["std"])
def gigpo(r: Ragged, weight: float = 1.0, discount: float = 0.95, normalize: str = "none") -> Rows:
    G = each_discounted(r, discount)

    def f(a: float, among: list[float]) -> float:
        return z(a, among) if normalize == "std" else a - mean(among)

    def of(i: int, k: int) -> float:
        here = [G[j][m] for j in r.peers(i) for m in range(len(G[j])) if r.states[j][m] == r.states[i][k]]
        return f(r.returns[i], [r.returns[j] for j in r.peers(i)]) + weight * f(G[i][k], here)

    return each_turn(r, of)


@reference("credit", "grpo_process")
def grpo_process(r: Ragged) -> Rows:
    return [to_go([z(x, of_group(r, i, r.rewards)) for x in row]) for i, row in enumerate(r.rewards)]


@reference("credit", "hgpo", history=[0, 1], alpha=[0.0, 2.0], discount=[1.0])
def hgpo(r: Ragged, history: int = 2, alpha: float = 1.0, discount: float = 0.95) -> Rows:
    G = each_discounted(r, discount)

    def of(i: int, k: int) -> float:
        terms: list[tuple[float, float]] = []
        for d in range(1, min(history + 1, k + 1) + 1):
            way = r.states[i][k - d + 1 : k + 1]
            cell = [
                G[j][m]
                for j in r.peers(i)
                for m in range(d - 1, len(G[j]))
                if r.states[j][m - d + 1 : m + 1] == way
            ]
            if len(cell) > 1:
                spread = sqrt(mean([(x - mean(cell)) ** 2 for x in cell]))
                terms.append(((d + 1) ** alpha, (G[i][k] - mean(cell)) / (spread + 1e-6)))
        return sum(w * a for w, a in terms) / sum(w for w, _ in terms) if terms else 0.0

    return each_turn(r, of)


@reference("credit", "igpo", discount=[0.6])
def igpo(r: Ragged, discount: float = 1.0) -> Rows:
    gains = [row[:-1] for row in r.turns["information"]]

    def row(i: int) -> list[float]:
        before = [z(x, of_group(r, i, gains)) for x in gains[i]]
        paid = [*before, z(r.rewards[i][-1], [r.rewards[j][-1] for j in r.peers(i)])]
        return discounted(r, i, paid, discount)

    return [row(i) for i in range(len(r))]


@reference("credit", "istar", weight=[0.4])
def istar(r: Ragged, weight: float = 1.0) -> Rows:
    said = r.turns["implicit"]
    most = max(abs(x) for row in said for x in to_go(row)) + 1e-6

    def of(i: int, k: int) -> float:
        rest = [said[j][m] / most for j in r.peers(i) for m in range(len(said[j])) if (j, m) != (i, k)]
        peers = [r.returns[j] for j in others(r, i)]
        if not peers:
            return 0.0
        return r.returns[i] - mean(peers) + weight * (said[i][k] / most - (mean(rest) if rest else 0.0))

    return each_turn(r, of)


@reference("credit", "iter_research", discount=[0.5], workers=[4, 7, 0])
def iter_research(r: Ragged, discount: float = 0.95, workers: int = 1) -> Rows:
    if workers < 1:
        raise Refused

    def left(i: int, k: int) -> int:
        """Acts that are still to come after the next one."""
        return max(0, acts_between(r, i, k, len(r.rewards[i])) - 1)

    paid = each_turn(r, lambda i, k: discount ** left(i, k) * r.returns[i])
    found = each_turn(r, lambda i, k: z(paid[i][k], of_group(r, i, paid)))
    places = [(i, k) for i, row in enumerate(found) for k in range(len(row))]
    kept = len(places) // workers * workers
    for one in derive_rng("iter_research", len(places)).sample(range(len(places)), len(places) - kept):
        i, k = places[one]
        found[i][k] = 0.0
    return found


@reference("credit", "mt_grpo", weight=[0.4])
def mt_grpo(r: Ragged, weight: float = 1.0) -> Rows:
    def of(i: int, k: int) -> float:
        outcome = z(r.rewards[i][-1], [r.rewards[j][-1] for j in r.peers(i)], 1e-4)
        if k == len(r.rewards[i]) - 1:
            return outcome
        there = [r.rewards[j][k] for j in r.peers(i) if k < len(r.rewards[j]) - 1]
        return outcome + weight * z(r.rewards[i][k], there, 1e-4)

    return each_turn(r, of)


@reference("credit", "ppr", shift=[0.5])
def ppr(r: Ragged, shift: float = 1.0) -> Rows:
    p = r.turns["principle"]
    return against_peers(
        r, [[*(x + r.returns[i] - shift for x in p[i][:-1]), r.returns[i]] for i in range(len(r))]
    )


@reference("credit", "spa", progress=[0.3], grounding=[2.0])
def spa(r: Ragged, progress: float = 1.0, grounding: float = 0.5) -> Rows:
    return against_peers(
        r,
        each_turn(r, lambda i, k: progress * r.turns["progress"][i][k] + grounding * r.turns["valid"][i][k]),
    )


@reference(
    "credit", "pure", temperature=[0.5], signal=["value"], baseline=["token"],
    also=[{"signal": "fork_value", "baseline": "token"}],
)  # fmt: skip
def pure(r: Ragged, temperature: float = 0.1, signal: str = "", baseline: str = "turn") -> Rows:
    scores = r.turns[signal] if signal else r.rewards

    def worst(row: list[float]) -> list[float]:
        weights = [exp(-x / temperature) for x in row]
        return [x * w / sum(weights) for x, w in zip(row, weights, strict=True)]

    softened = [worst(row) for row in scores]
    said = [[len(ids) for ids in row] for row in r.ids]

    def row(i: int) -> list[float]:
        if not others(r, i):
            return [0.0] * len(scores[i])
        verified = r.returns[i] - mean([r.returns[j] for j in others(r, i)]) if signal else 0.0
        if baseline == "token":
            every = sum(sum(said[j]) for j in others(r, i))
            each = sum(sum(softened[j]) for j in others(r, i)) / every
            left = [x - each * n for x, n in zip(softened[i], said[i], strict=True)]
        else:
            each = mean([sum(softened[j]) / len(softened[j]) for j in others(r, i)])
            left = [x - each for x in softened[i]]
        return [x + verified for x in to_go(left)]

    return [row(i) for i in range(len(r))]


@reference("credit", "rank_grpo")
def rank_grpo(r: Ragged) -> Rows:
    G = [to_go(row) for row in r.rewards]
    return each_turn(r, lambda i, k: z(G[i][k], [G[j][k] for j in r.peers(i) if k < len(G[j])], 1e-4))


@reference("credit", "turn_index")
def turn_index(r: Ragged) -> Rows:
    def left(i: int, k: int) -> float:
        return r.rewards[i][k] - mean([r.rewards[j][k] for j in r.peers(i) if k < len(r.rewards[j])])

    return [to_go(row) for row in each_turn(r, left)]


@reference("credit", "capo", whole=[1.0], process=[0.3], success=[0.4])
def capo(r: Ragged, whole: float = 2.0, process: float = 1.0, success: float = 1.0) -> Rows:
    paid = each_turn(
        r, lambda i, k: whole * (r.returns[i] >= success - 1e-6) - process * r.turns["wrong"][i][k]
    )
    tokens = each_turn(r, lambda i, k: float(len(r.ids[i][k])))

    def of(i: int, k: int) -> float:
        every = [
            x for j in r.peers(i) for x, n in zip(paid[j], tokens[j], strict=True) for _ in range(int(n))
        ]
        return z(paid[i][k], every)

    return each_turn(r, of)


@reference("credit", "spo_chain", sure=[0.5, 1.1])
def spo_chain(r: Ragged, sure: float = 0.9) -> Rows:
    def row(i: int) -> list[float]:
        said, n, v = r.turns["logp"][i], r.turns["tokens"][i], r.turns["fork_value"][i]
        cuts = [k for k in range(len(said)) if exp(said[k] / n[k]) < sure]
        found = [0.0] * len(said)
        for cut, after in zip(cuts, [*cuts[1:], len(said)], strict=False):
            found[cut] = sum(r.rewards[i][cut:after]) + (v[after] if after < len(said) else 0.0) - v[cut]
        return found

    return [row(i) for i in range(len(r))]


@reference("credit", "rlvmr", weight=[2.0], counts=["turns"], also=[{"weight": 0.3, "counts": "turns"}])
def rlvmr(r: Ragged, weight: float = 0.5, counts: str = "trajectories") -> Rows:
    tag, paid = r.turns["tag"], r.turns["tag_reward"]

    def of(i: int, k: int) -> float:
        peers = r.peers(i)
        returns = [r.returns[j] for j in peers for _ in (r.rewards[j] if counts == "turns" else [0])]
        same = [paid[j][m] for j in peers for m in range(len(paid[j])) if tag[j][m] == tag[i][k]]
        step = z(paid[i][k], same) if len(same) > 1 else paid[i][k]
        return z(r.returns[i], returns) + weight * step

    return each_turn(r, of)


@reference("credit", "grounded", decay=[0.5], labels=[True], success=[0.4])
def grounded(r: Ragged, decay: float = 0.9, labels: bool = False, success: float = 1.0) -> Rows:
    def row(i: int) -> list[float]:
        v = [2 * x - 1 for x in r.turns["valid"][i]]
        F = 1 if r.returns[i] >= success - 1e-6 else -1

        def V(k: int) -> float:
            rest = v[k + 1 :]
            N = len(rest)
            return sum(x * (N - j) / N for j, x in enumerate(rest)) / N + F / N if N else F

        paid = [mean([decay ** (j - k) * V(j) for j in range(k, len(v))]) for k in range(len(v))]
        return [float((x > 0) - (x < 0)) for x in paid] if labels else paid

    return [row(i) for i in range(len(r))]
