"""RAPO: the reference, flattened after failures and normalised, and the forward KL to it on samples of the policy."""

from __future__ import annotations

import math
from math import exp

from losses import METRICS, Token
from measured import Part, context, logits, measured, near_tokens, row, scene
from plain import mean, reference, refuses
from ratios import between


def forward(t: Token) -> float:
    y = between(t.teacher - t.logp, -10.0, 10.0)
    return exp(y) * y - exp(y) + 1


@reference("loss", "rapo")
def rapo(now: Token, then: Token) -> float:
    return forward(now)


METRICS["rapo"] = lambda batch: {"kl_forward": mean([forward(t) for t in batch.tokens.values()])}


@reference(
    "signal",
    "tempered_reference",
    failure=[0.1, 0.0, -0.5],
    success=[0.7, -0.5],
    also=[{"failure": 0.3, "success": 0.6}],
)
def tempered_reference(signal: Part, failure: float = 0.5, success: float = 1.0) -> None:
    batch, groups = scene()
    see = context("tempered_reference")
    if failure < 0 or success < 0:
        refuses(lambda: measured(signal, see, batch, groups))
        return
    found = measured(signal, see, batch, groups).token["token_tempered_reference"]
    solved = [one.success for group in groups for one in group]
    assert {*solved} == {True, False}
    expected: dict[tuple[int, int], float] = {}
    for r in range(len(batch.rows.token_RT)):
        ids = row(batch, r)
        known = logits(see.learner.reference, ids)
        power = success if solved[int(batch.rows.trajectory_R[r])] else failure
        for t in range(1, len(ids)):
            if batch.rows.mask_RT[r, t]:
                each = [power * x for x in known[t - 1].tolist()]
                expected[r, t] = each[ids[t]] - math.log(sum(map(exp, each)))
    near_tokens(found, expected, "tempered")
