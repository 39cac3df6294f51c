"""Losses that are the same, and the settings under which they are: on fresh samples many objectives are one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from turnwise.trainers.lab.objectives import MEMBERS, Setting, degrees, minibatch, slopes


class PartChoice(NamedTuple):
    """A loss, or a credit rule, with options."""

    name: str
    options: Mapping[str, Any] = {}

    def __str__(self) -> str:
        inner = "".join(f", {key}: {_plain(value)}" for key, value in self.options.items())
        return f"{{name: {self.name}{inner}}}" if inner else self.name


class LossTwin(NamedTuple):
    """Two losses whose slopes point the same way at every token, under a setting.

    Attributes:
        one, two: the losses.
        setting: under which.
        scale: the first's slopes are this times the second's; None: the same factor in a minibatch, of no closed form.
        because: why.
        apart: a setting under which they are not the same.
    """

    one: PartChoice
    two: PartChoice
    setting: Setting
    scale: float | None
    because: str
    apart: Setting


FRESH, STALE = Setting(), Setting(stale=0.3)
SUMS = Setting(reduce="fixed_length")
CLIP = PartChoice("clip")
PLAIN = PartChoice("clip", {"dual": None})
_FIXED = 256.0  # the length of `fixed_length`
_ROOT = math.sqrt(MEMBERS / (MEMBERS - 1))
_POLICY_GRADIENT = "its slope on fresh samples is −A, as every surrogate's"

TWINS: Sequence[LossTwin] = (
    *(
        LossTwin(PartChoice(name), CLIP, FRESH, 1.0, _POLICY_GRADIENT, STALE)
        for name in (
            *("bpo", "cispo", "dppo", "dro", "dynamic_clip", "etr", "gmpo", "grpo_guard", "gspo", "nll"),
            *("kl_cov", "sapo"),
        )
    ),
    LossTwin(
        PartChoice("gspo", {"low": 0.2, "high": 0.2, "level": "turn"}),
        PLAIN,
        Setting(stale=0.3, tokens=1),
        1.0,
        "the geometric mean over one token is that token's ratio",
        STALE,
    ),
    LossTwin(
        PartChoice("luspo", {"low": 3e-4, "high": 4e-4}),
        PartChoice("gspo"),
        Setting(stale=3e-4, tokens=2),
        4.0,
        "where all trajectories have the same number of tokens, weighing by length is a factor",
        STALE,
    ),
    LossTwin(
        PartChoice("nft", {"by": "std"}),
        CLIP,
        FRESH,
        _ROOT,
        "√((1 − q)/q) for a success and −√(q/(1 − q)) for a failure are GRPO's advantages, but for the sample deviation: "
        "√(n/(n − 1)) with groups of n",
        STALE,
    ),
    LossTwin(
        PartChoice("nft"),
        CLIP,
        Setting(credit="dr_grpo"),
        1.0,
        "1 − q for a success and −q for a failure are its return less the group's mean",
        STALE,
    ),
    LossTwin(
        PartChoice("pacs", {"balanced": False}),
        CLIP,
        Setting(credit="rloo", reduce="fixed_length"),
        _FIXED,
        "at ψ = 0 a success pulls by +½ and a failure by −½, less the mean of the others: RLOO's advantage, halved and "
        "doubled, summed over tokens",
        Setting(stale=0.3, credit="rloo", reduce="fixed_length"),
    ),
    LossTwin(
        PartChoice("rover"),
        CLIP,
        FRESH,
        2.0,
        "at Q = 0 and a successor that has not moved the residual is A itself; a square has twice its slope",
        STALE,
    ),
    LossTwin(
        PartChoice("reg_grpo"),
        CLIP,
        SUMS,
        None,
        "at ρ = 0 the residual is A itself, scaled by 2/guard",
        Setting(stale=0.3, reduce="fixed_length"),
    ),
    LossTwin(
        PartChoice("one_token", {"miss": -0.1}),
        PartChoice("one_token", {"miss": 0.0}),
        STALE,
        1.1,
        "what a miss costs is, in the mean, a larger reward for the hit (dynamic fine-tuning has miss 0)",
        STALE,
    ),
)
"""Held by tests/trainers/test_objective_laws.py."""


class CreditTwin(NamedTuple):
    """Two credit rules that give the same advantages, and a third, close to them, that does not.

    Attributes:
        one, two: the rules.
        because: why.
        apart: the first with options under which they are not the same.
    """

    one: PartChoice
    two: PartChoice
    because: str
    apart: PartChoice


CREDIT_TWINS: Sequence[CreditTwin] = (
    CreditTwin(
        PartChoice("ota", {"turns": 1, "discount": 0.9}),
        PartChoice("gae", {"discount": 0.9, "lam": 0.0}),
        "an option of one turn is a turn",
        PartChoice("ota", {"turns": 2, "discount": 0.9}),
    ),
    CreditTwin(
        PartChoice("ota", {"turns": 99, "discount": 0.9}),
        PartChoice("gae", {"discount": 1.0, "lam": 1.0}),
        "an option that lasts to the end is paid all that comes, and no value after it",
        PartChoice("ota", {"turns": 2, "discount": 0.9}),
    ),
    CreditTwin(
        PartChoice("grpo", {"normalize": "none"}),
        PartChoice("dr_grpo"),
        "without the deviation only the group's mean is left",
        PartChoice("grpo"),
    ),
)
"""Held by tests/trainers/test_objective_laws.py."""


class Compared(NamedTuple):
    """The largest angle over minibatches, in degrees, and the ratio of sizes in each."""

    degrees: float
    ratios: Sequence[float]


def compare(one: PartChoice, two: PartChoice, setting: Setting, seeds: int = 6) -> Compared:
    """Two losses on random minibatches."""
    worst, ratios = 0.0, list[float]()
    for seed in range(seeds):
        batch = minibatch(seed, setting)
        a, b = slopes(one.name, one.options, batch), slopes(two.name, two.options, batch)
        worst = max(worst, degrees(a, b))
        ratios.append(float(a.norm() / b.norm()))
    return Compared(worst, ratios)


def _plain(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
