"""What parts must refuse, and numbers of any size, beside formulas that stand in other files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import exp, isclose
from typing import Any

import losses  # noqa: F401  (the formulas register themselves)
import outcomes  # noqa: F401
import pairs  # noqa: F401
import ratios  # noqa: F401
import shapes  # noqa: F401
import torch
from law import LAWS
from plain import REFERENCES, Law, refuses

from turnwise.trainers.core import Nucleus
from turnwise.trainers.kit.toy_batches import turn_batch, whole_batch

Part = Callable[..., Any]


def _shape(part: Part, wrong: Mapping[str, Any]) -> None:
    signals = {"token_teacher_logp": [[-1.0, -1.2]], "token_logp": [[-1.1, -1.1]]}
    batch = turn_batch([[1]], tokens=[[[7, 8]]], token_signals=signals)
    refuses(lambda: part(torch.tensor([[1.0]]), batch, **wrong))


def refusing(kind: str, wrongs: Sequence[Mapping[str, Any]]) -> Law:
    """The law of the kind, and that it refuses each of these options."""

    def law(name: str, part: Part, formula: Part) -> None:
        LAWS[kind](name, part, formula)
        for wrong in wrongs:
            _shape(part, wrong)

    return law


def ranked_law(name: str, part: Part, formula: Part) -> None:
    """Also where the power of a return is beyond what a number of 64 bits can be."""
    LAWS["filter"](name, part, formula)
    refuses(lambda: part(turn_batch([[1.0]]), torch.zeros(1, 1), power=0.0))
    refuses(lambda: part(turn_batch([[1.0]]), torch.zeros(1, 1), power=-0.5))
    for scale in (1.0, -1.0, 1e-6):
        batch = turn_batch([[scale], [1000 * scale], [2000 * scale]])
        assert part(batch, torch.zeros(3, 1), keep="power", power=400.0).tolist() == [0.0, 0.0, 3.0]


def band_law(name: str, part: Part, formula: Part) -> None:
    """Also the widest band, within which everything is."""
    LAWS["filter"](name, part, formula)
    batch, given = turn_batch([[1.0], [0.0]]), torch.zeros(2, 1)
    for low, high in ((-0.1, 0.8), (0.2, 1.1), (0.6, 0.5)):
        refuses(lambda low=low, high=high: part(batch, given, low=low, high=high))
    assert part(batch, given, low=0.0, high=1.0).tolist() == [1.0, 1.0]
    assert part(batch, given, low=0.5, high=0.5).tolist() == [1.0, 1.0]


def rest_rl_law(name: str, part: Part, formula: Part) -> None:
    """Also a bound that is none."""
    LAWS["filter"](name, part, formula)
    refuses(lambda: part(turn_batch([[1.0], [0.0]]), torch.zeros(2, 1), least=-0.1))


def nft_law(name: str, part: Part, formula: Part) -> None:
    """Also where a token has become far likelier: up to e^10 times, by hand, for the one success of a group of four."""
    LAWS["loss"](name, part, formula)
    for gap, counted in ((9.5, 9.5), (10.5, 10.0)):
        logp = [[gap if i == 0 else 0.0] for i in range(4)]
        batch = whole_batch(logp, old_logp=[[0]] * 4, success=[1, 0, 0, 0])
        assert isclose(4 * part(batch, by="none").loss.item(), -counted, rel_tol=1e-6)


def siren_law(name: str, part: Part, formula: Part) -> None:
    """Also which nucleus it asks the learner for, and what is no mass."""
    LAWS["loss"](name, part, formula)
    made: Part = type(part)  # pyright: ignore[reportAssignmentType]
    asked = [made(**given).nucleus for given in ({}, {"mass": 0.7}, {"mass": 0.7, "crossing": True})]
    assert asked == [None, Nucleus(0.7, crossing=False), Nucleus(0.7, crossing=True)]
    for mass in (-0.5, 0.0, 1.5):
        refuses(lambda mass=mass: made(mass=mass))


def pro_grpo_law(name: str, part: Part, formula: Part) -> None:
    """Also 15 of 25 tokens, which are 15.000001 in 32 bits, and a batch of nobody."""
    LAWS["shape"](name, part, formula)
    lowest_first = [-2.0] * 15 + [-1.0] * 10
    batch = turn_batch(
        [[1]], tokens=[[[*range(25)]]], token_signals={"token_logp": [lowest_first]}, signals={"sure": [1.0]}
    )
    given = part(torch.ones(1, 1), batch, lowest=0.6, against="sure", alpha=1.0)
    assert isclose(given.item(), 2 - exp(-2), rel_tol=1e-6)
    nobody = turn_batch([[]], tokens=[[]], token_signals={"token_logp": [[]]}, signals={"sure": [[]]})
    assert part(torch.ones(1, 0), nobody, lowest=0.6, against="sure").shape == (1, 0)


def prof_law(name: str, part: Part, formula: Part) -> None:
    """Also a failure before its first turn, which is not chosen in place of one that has a score."""
    LAWS["credit"](name, part, formula)
    scores = [[0.9], [], [0.4], [0.2]]
    batch = turn_batch([[1], [], [0], [0]], signals={"principle": scores})
    found = part(batch, keep=2, success=1.0)[:, 0].sign().tolist()
    assert found == [1, 0, 0, -1]


_LAWS: dict[tuple[str, str], Law] = {
    ("shape", "clamp"): refusing("shape", [{"limit": 0.0}, {"limit": -0.5}, {"asymmetric": -0.5}]),
    ("shape", "memory_turns"): refusing("shape", [{"weight": -0.5}]),
    ("shape", "step_opsd"): refusing(
        "shape",
        [{"clip": 0.0}, {"clip": -0.5}, {"clip": 1.0}, {"clip": 1.5}, {"mix": -0.5}, {"mix": 1.5}],
    ),
    ("filter", "ranked"): ranked_law,
    ("filter", "band"): band_law,
    ("filter", "rest_rl"): rest_rl_law,
    ("loss", "nft"): nft_law,
    ("loss", "siren"): siren_law,
    ("shape", "pro_grpo"): pro_grpo_law,
    ("credit", "prof"): prof_law,
}
for _part, _law in _LAWS.items():
    REFERENCES[_part] = REFERENCES[_part]._replace(law=_law)
