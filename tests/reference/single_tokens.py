"""Credit rules that give each token a number of its own."""

from __future__ import annotations

from math import sqrt

from plain import deviation, mean, others, reference, to_go
from ragged import Ragged, Rows
from single_turns import after_turns, lambda_returns


def cut(r: Ragged, i: int, x: list[float]) -> Rows:
    """The tokens of trajectory i, turn by turn."""
    at, found = 0, []
    for turn in r.ids[i]:
        found.append(x[at : at + len(turn)])
        at += len(turn)
    return found


def joined(r: Ragged, name: str, i: int) -> list[float]:
    return [x for turn in r.tokens[name][i] for x in turn]


def on_last(r: Ragged, i: int, paid: list[float]) -> list[float]:
    return [x for turn, p in zip(r.ids[i], paid, strict=True) for x in [0.0] * (len(turn) - 1) + [p]]


def constant_returns(paid: list[float], value: list[float], discount: float, lam: float) -> list[float]:
    return lambda_returns(paid, value, [discount] * len(paid), lam)


@reference("credit", "gae_token", discount=[0.9], lam=[0.7])
def gae_token(r: Ragged, discount: float = 1.0, lam: float = 1.0) -> list[Rows]:
    return [
        cut(r, i, constant_returns(on_last(r, i, paid), joined(r, "token_value", i), discount, lam))
        for i, paid in enumerate(r.rewards)
    ]


@reference("credit", "gae_bilevel", turn_discount=[0.6], discount=[0.9], lam=[0.7])
def gae_bilevel(
    r: Ragged, turn_discount: float = 0.95, discount: float = 1.0, lam: float = 1.0
) -> list[Rows]:
    found: list[Rows] = []
    for i, paid in enumerate(r.rewards):
        values = r.tokens["token_value"][i]
        ends = [turn[-1] for turn in values]
        high = lambda_returns(paid, ends, after_turns(r, i, turn_discount), lam)
        found.append(
            [
                constant_returns([0.0] * (len(turn) - 1) + [a + v], turn, discount, lam)
                for turn, a, v in zip(values, high, ends, strict=True)
            ]
        )
    return found


@reference("credit", "prime", process=[1.0], outcome=[2.0])
def prime(r: Ragged, process: float = 5.0, outcome: float = 5.0) -> list[Rows]:
    said = [joined(r, "token_implicit", i) for i in range(len(r))]
    most = max(abs(x) for row in said for x in to_go(row)) + 1e-6
    scaled = [[x / most for x in row] for row in said]
    summed: Rows = []
    for i in range(len(r)):
        peers, n = others(r, i), len(r.peers(i))
        step = [0.0] * len(scaled[i])
        if peers:
            means = sum(mean(scaled[j]) for j in r.peers(i))
            step = [process * (n * x - means) / (n - 1) for x in scaled[i]]
            step[-1] += outcome * (r.returns[i] - mean([r.returns[j] for j in peers]))
        summed.append(to_go(step))
    every = [x for row in summed for x in row]
    spread = sqrt(deviation(every) ** 2 + 1e-8)
    return [cut(r, i, [(x - mean(every)) / spread for x in row]) for i, row in enumerate(summed)]
