"""Shapes: A[i][k] is a list, of one number where a turn has one, or of a number for each of its tokens."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, exp, log, sqrt
from typing import Any

from plain import Refused, deviation, mean, others, reference, to_go
from ragged import Ragged, Rows

Units = list[Rows]


def each(A: Units, of: Callable[[float, int, int], float]) -> Units:
    return [[[of(a, i, k) for a in turn] for k, turn in enumerate(row)] for i, row in enumerate(A)]


def flat(A: Units) -> list[float]:
    return [a for row in A for turn in row for a in turn]


def means(x: Rows) -> list[float]:
    return [mean(row) for row in x]


def likely(r: Ragged) -> list[float]:
    """Mean log-probability per token of each trajectory."""
    return [sum(said) / sum(n) for said, n in zip(r.turns["logp"], r.turns["tokens"], strict=True)]


@reference("shape", "whiten", tokens="either", centre=[False])
def whiten(r: Ragged, A: Units, centre: bool = True) -> Units:
    every = flat(A)
    if len(every) < 2:
        return each(A, lambda a, i, k: 0.0 if centre else a)
    if centre:
        return each(A, lambda a, i, k: (a - mean(every)) / sqrt(deviation(every) ** 2 + 1e-8))
    return each(A, lambda a, i, k: a / max(deviation(every), 1e-8))


@reference("shape", "ear", tokens="either", cap=[0.5])
def ear(r: Ragged, A: Units, cap: float = 2.0) -> Units:
    H = means(r.turns["entropy"])

    def of(a: float, i: int, k: int) -> float:
        average = mean([H[j] for j in r.peers(i)])
        factor = min(2.0, max(0.0, 1 + (average - H[i]) / average)) if average > 0 else 1.0
        return min(cap, max(-cap, a * factor))

    return each(A, of)


@reference("shape", "empg", tokens="either", sharpness=[2.0], clarity=[0.5])
def empg(r: Ragged, A: Units, sharpness: float = 1.0, clarity: float = 0.1) -> Units:
    every = [h for row in r.turns["entropy"] for h in row]
    low, high = min(every), max(every)
    sure = [
        [exp(-sharpness * (h - low) / (high - low)) if high > low else 1.0 for h in row]
        for row in r.turns["entropy"]
    ]
    average = mean([g for row in sure for g in row])
    found = each(
        A,
        lambda a, i, k: (
            a * sure[i][k] / average + clarity * (sure[i][k + 1] if k + 1 < len(sure[i]) else 0.0)
        ),
    )
    middle = mean(flat(found))
    return each(found, lambda a, i, k: a - middle)


@reference("shape", "entropy_shaped", tokens="either", alpha=[0.05], kappa=[5.0])
def entropy_shaped(r: Ragged, A: Units, alpha: float = 0.4, kappa: float = 2.0) -> Units:
    return each(A, lambda a, i, k: a + min(alpha * r.turns["entropy"][i][k], abs(a) / kappa))


@reference("shape", "xrpo", tokens="either", weight=[0.5], cap=[0.1], success=[0.4])
def xrpo(r: Ragged, A: Units, weight: float = 2.5, cap: float = 0.5, success: float = 1.0) -> Units:
    s = likely(r)

    def of(a: float, i: int, k: int) -> float:
        if r.returns[i] < success - 1e-6:
            return a
        novelty = 1 - exp(s[i] - mean([s[j] for j in r.peers(i)]))
        return a + min(max(weight * novelty, 0.0), max(cap * a, 0.0))

    return each(A, of)


@reference("shape", "pro_grpo", tokens="either", alpha=[1.5], lowest=[0.6, 0.5000000000000001, 1e-12, 0.0, 1.5],
           against=["answer", "progress"])  # fmt: skip
def pro_grpo(
    r: Ragged, A: Units, alpha: float = 0.5, lowest: float = 0.2, against: str | None = None
) -> Units:
    if not 0 < lowest <= 1:
        raise Refused

    def confidence(i: int) -> float:
        said = sorted(p for turn in r.tokens["token_logp"][i] for p in turn)
        return exp(mean(said[: max(1, ceil(lowest * len(said) - 1e-12))]))

    def level(i: int) -> float:
        if against is None:
            return mean([confidence(j) for j in r.peers(i)])
        return r.whole[against][i] if against in r.whole else r.turns[against][i][0]

    def of(a: float, i: int, k: int) -> float:
        if not any(abs(mean(turn)) > 1e-6 for j in r.peers(i) for turn in A[j]):
            return a
        return a + alpha * (level(i) - confidence(i))

    return each(A, of)


@reference("shape", "kdrl", tokens="tokens", beta=[0.7], where=["failed", "failed_groups"], success=[0.4],
           also=[{"where": "failed", "success": 0.4}, {"where": "failed_groups", "success": 0.4}])  # fmt: skip
def kdrl(r: Ragged, A: Units, beta: float = 0.2, where: str = "all", success: float = 1.0) -> Units:
    solved = [x >= success - 1e-6 for x in r.returns]
    teacher, own = r.tokens["token_teacher_logp"], r.tokens["token_logp"]

    def asked(i: int) -> bool:
        return (
            where == "all"
            or (where == "failed" and not solved[i])
            or (where == "failed_groups" and not any(solved[j] for j in r.peers(i)))
        )

    return [
        [
            [a + (beta * (q - p) if asked(i) else 0.0) for a, q, p in zip(turn, teacher[i][k], own[i][k], strict=True)]
            for k, turn in enumerate(row)
        ]
        for i, row in enumerate(A)
    ]  # fmt: skip


@reference("shape", "a_grae", tokens="either", maturity=[0.25])
def a_grae(r: Ragged, A: Units, maturity: float = 1.0) -> Units:
    p = [min(1.0, max(0.0, mean([r.returns[j] for j in r.peers(i)]))) for i in range(len(r))]
    m = mean(p)

    def of(a: float, i: int, k: int) -> float:
        root = sqrt(p[i])
        found = (1 - m) * 0.5 * a / (1 - root + 1e-6) + m * 0.5 * a / (root + 1e-6)
        return found * min(1.0, m / maturity) if found > 0 else found

    return each(A, of)


@reference("shape", "hicra", tokens="tokens", alpha=[0.7])
def hicra(r: Ragged, A: Units, alpha: float = 0.2) -> Units:
    plan = r.tokens["token_planning"]
    return [
        [
            [a + alpha * abs(a) * p for a, p in zip(turn, said, strict=True)]
            for turn, said in zip(row, plans, strict=True)
        ]
        for row, plans in zip(A, plan, strict=True)
    ]


@reference("shape", "earl", tokens="tokens", share=[0.5], per=["trajectory"])
def earl(r: Ragged, A: Units, share: float = 0.2, per: str = "turn") -> Units:
    def quantile(x: list[float]) -> float:
        ordered, at = sorted(x), (1 - share) * (len(x) - 1)
        below = int(at)
        return ordered[below] + (at - below) * (ordered[min(below + 1, len(x) - 1)] - ordered[below])

    H = r.tokens["token_entropy"]

    def of(i: int, k: int) -> list[float]:
        unit = H[i][k] if per == "turn" else [h for turn in H[i] for h in turn]
        return [a if h >= quantile(unit) - 1e-9 else 0.0 for a, h in zip(A[i][k], H[i][k], strict=True)]

    return [[of(i, k) for k in range(len(row))] for i, row in enumerate(A)]


@reference("shape", "gtpo", tokens="tokens", entropy=[0.3], shared=[1.5], cutoff=[1.0])
def gtpo(
    r: Ragged, A: Units, entropy: float = 0.1, shared: float = 2.0, cutoff: float | None = None
) -> Units:
    H = [mean([h for turn in row for h in turn]) for row in r.tokens["token_entropy"]]

    def at(i: int, k: int, n: int, backwards: bool) -> tuple[int, float] | None:
        """The token at a place of a turn and its advantage."""
        if k >= len(r.ids[i]) or n >= len(r.ids[i][k]):
            return None
        place = -1 - n if backwards else n
        return r.ids[i][k][place], A[i][k][place]

    def torn(i: int, k: int, n: int, backwards: bool) -> bool:
        mine = at(i, k, n, backwards)
        assert mine is not None
        same = [seen[1] for j in r.peers(i) if (seen := at(j, k, n, backwards)) and seen[0] == mine[0]]
        return any(a > 1e-9 for a in same) and any(a < -1e-9 for a in same)

    def run(i: int, k: int, n: int, backwards: bool) -> bool:
        return all(torn(i, k, m, backwards) for m in range(n + 1))

    def of(i: int, k: int, n: int) -> float:
        a = A[i][k][n]
        if abs(a) <= 1e-9 or (cutoff is not None and H[i] > cutoff):
            return 0.0
        found = a - entropy * H[i]
        for conflict in (run(i, k, n, False), run(i, k, len(r.ids[i][k]) - 1 - n, True)):
            if conflict:
                found *= shared if a > 0 else 0.0
        return found

    return [
        [[of(i, k, n) for n in range(len(turn))] for k, turn in enumerate(row)] for i, row in enumerate(A)
    ]


@reference("shape", "grpo_lambda", tokens="turns", lam=[0.4], floor=[-0.1])
def grpo_lambda(r: Ragged, A: Units, lam: float = 0.9, floor: float | None = None) -> Units:
    raised = [[a if floor is None else max(a, floor) for (a,) in row] for row in A]
    return [[[x] for x in to_go(row, lam)] for row in raised]


@reference("shape", "tempflow", tokens="either")
def tempflow(r: Ragged, A: Units) -> Units:
    H = r.turns["entropy"]
    return each(A, lambda a, i, k: a * H[i][k] / mean(H[i]) if any(H[i]) else a)


@reference("shape", "tp_grpo", tokens="either", alpha=[0.3], success=[0.4])
def tp_grpo(r: Ragged, A: Units, alpha: float = 1.0, success: float = 1.0) -> Units:
    solved = [x >= success - 1e-6 for x in r.returns]

    def of(a: float, i: int, k: int) -> float:
        if not others(r, i):
            return a
        rate, wrong = mean([float(solved[j]) for j in r.peers(i)]), r.turns["wrong"][i][k]
        return a - alpha * rate * wrong if solved[i] else a * wrong

    return each(A, of)


def averaged(
    A: Units, same: Callable[[int, int, int, int], bool], members: Callable[[int], list[int]]
) -> Units:
    """Each turn's mean over the turns of its group that are the same step."""

    def of(i: int, k: int) -> float:
        return mean([A[j][m][0] for j in members(i) for m in range(len(A[j])) if same(i, k, j, m)])

    return [[[of(i, k)] for k in range(len(row))] for i, row in enumerate(A)]


@reference("shape", "salt", tokens="turns")
def salt(r: Ragged, A: Units) -> Units:
    def same(i: int, k: int, j: int, m: int) -> bool:
        if k + 1 == len(A[i]) or m + 1 == len(A[j]):
            return (i, k) == (j, m)
        return r.states[i][k : k + 2] == r.states[j][m : m + 2]

    return averaged(A, same, r.peers)


@reference("shape", "arpo", tokens="turns")
def arpo(r: Ragged, A: Units) -> Units:
    def same(i: int, k: int, j: int, m: int) -> bool:
        if k + 1 == len(A[i]) or m + 1 == len(A[j]):
            return (i, k) == (j, m)
        return k == m and r.states[i][: k + 2] == r.states[j][: k + 2]

    return averaged(A, same, r.peers)


@reference("shape", "seed_grpo", tokens="either", alpha=[0.8], by=["answer", "valid"])
def seed_grpo(r: Ragged, A: Units, alpha: float = 0.0417, by: str | None = None) -> Units:
    s = likely(r)

    def of(a: float, i: int, k: int) -> float:
        peers = r.peers(i)
        total = sum(exp(s[j]) for j in peers)
        clusters: dict[Any, float] = {}
        for j in peers:
            end = (
                (r.whole[by][j] if by in r.whole else r.turns[by][j][-1])
                if by
                else (r.states[j][-1], round(r.returns[j], 6))
            )
            clusters[end] = clusters.get(end, 0.0) + exp(s[j]) / total
        entropy = -sum(p * log(p) for p in clusters.values())
        return a / (1 + (alpha / log(len(peers)) if len(peers) > 1 else 0.0) * entropy)

    return each(A, of)


@reference("shape", "gpg", tokens="either")
def gpg(r: Ragged, A: Units) -> Units:
    given = {r.group[i] for i, row in enumerate(A) if any(abs(mean(turn)) > 1e-6 for turn in row)}
    return each(A, lambda a, i, k: a * len(set(r.group)) / max(1, len(given)))


@reference("shape", "loop", tokens="either", smallest=[0.5])
def loop(r: Ragged, A: Units, smallest: float = 0.01) -> Units:
    return each(A, lambda a, i, k: a if abs(a) >= smallest else 0.0)


@reference("shape", "clamp", tokens="either", limit=[0.4], asymmetric=[0.5, 0.0])
def clamp(r: Ragged, A: Units, limit: float = 1.0, asymmetric: float | None = None) -> Units:
    lowest = -limit if asymmetric is None else -asymmetric
    return each(A, lambda a, i, k: min(max(a, lowest), limit))


@reference("shape", "memory_turns", tokens="either", weight=[0.5, 1.0, 3.0])
def memory_turns(r: Ragged, A: Units, weight: float = 0.0) -> Units:
    return each(A, lambda a, i, k: weight * a if r.memory and r.memory[i][k] else a)


@reference("shape", "step_opsd", tokens="tokens", clip=[0.05, 0.9], mix=[0.8, 0.0])
def step_opsd(r: Ragged, A: Units, clip: float = 0.2, mix: float = 0.5) -> Units:
    teacher, before = r.tokens["token_teacher_logp"], r.tokens["token_logp"]

    def of(i: int, k: int) -> list[float]:
        w: list[float] = []
        for a, q, p in zip(A[i][k], teacher[i][k], before[i][k], strict=True):
            sign = (a > 0) - (a < 0)
            w.append(min(max(exp(sign * (q - p)), 1 - clip), 1 + clip))
        return [a * ((1 - mix) + mix * x / mean(w)) for a, x in zip(A[i][k], w, strict=True)]

    return [[of(i, k) for k in range(len(row))] for i, row in enumerate(A)]


@reference("shape", "verl", tokens="either", kappa=[5.0])
def verl(r: Ragged, A: Units, kappa: float = 2.0) -> Units:
    drive = [[max(0.0, x) for x in row] for row in r.turns["rank_drive"]]
    return each(A, lambda a, i, k: a + (drive[i][k] if drive[i][k] * kappa < abs(a) else abs(a) / kappa))


@reference("shape", "tw_grpo", tokens="tokens", alpha=[1.4, 1.0, 0.5])
def tw_grpo(r: Ragged, A: Units, alpha: float = 1.7) -> Units:
    if alpha < 1:
        raise Refused
    part = r.tokens["token_disagreement"]
    return [
        [
            [a * (1 - part[i][k][j]) + a * alpha * part[i][k][j] for j, a in enumerate(turn)]
            for k, turn in enumerate(row)
        ]
        for i, row in enumerate(A)
    ]
