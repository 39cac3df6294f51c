"""Every part against its formula in plain numbers on random ragged batches, or against what it must do, over every option.

A part of any kind without a reference fails, and so does an option that no variant changes.
"""

from __future__ import annotations

from typing import Any

import agreeing  # noqa: F401  (they register themselves)
import alike  # noqa: F401
import allocated  # noqa: F401
import augmented  # noqa: F401
import bounds  # noqa: F401
import chained  # noqa: F401
import charged  # noqa: F401
import chosen  # noqa: F401
import compared  # noqa: F401
import contexts  # noqa: F401
import criticised  # noqa: F401
import debated  # noqa: F401
import discerning  # noqa: F401
import distilled  # noqa: F401
import drawn  # noqa: F401
import efforts  # noqa: F401
import evidence  # noqa: F401
import expected  # noqa: F401
import factored  # noqa: F401
import helped  # noqa: F401
import hint_rates  # noqa: F401
import hinted  # noqa: F401
import imitation  # noqa: F401
import instructed  # noqa: F401
import judged  # noqa: F401
import judged_turns  # noqa: F401
import labels_in_part  # noqa: F401
import learned  # noqa: F401
import leaving  # noqa: F401
import like_experts  # noqa: F401
import listing  # noqa: F401
import losses  # noqa: F401
import measured  # noqa: F401
import nudging  # noqa: F401
import outcomes  # noqa: F401
import own_words  # noqa: F401
import pairs  # noqa: F401
import played  # noqa: F401
import prefixed  # noqa: F401
import progressing  # noqa: F401
import proposed  # noqa: F401
import pytest
import ratios  # noqa: F401
import reattempted  # noqa: F401
import reflecting  # noqa: F401
import returning  # noqa: F401
import rows_helped  # noqa: F401
import rules  # noqa: F401
import schedules  # noqa: F401
import scored  # noqa: F401
import seeded  # noqa: F401
import shapes  # noqa: F401
import single_tokens  # noqa: F401
import single_turns  # noqa: F401
import staged  # noqa: F401
import tempered  # noqa: F401
import towards  # noqa: F401
import trees  # noqa: F401
import two_stages  # noqa: F401
import vocabulary  # noqa: F401
import voted  # noqa: F401
import whole_gradient  # noqa: F401
from law import KINDS, SHARED, check, law_of_the_empty, options_of, variants
from plain import REFERENCES, WITHOUT

from turnwise.registry import components

EVERY = [(entry.kind, entry.name) for kind in KINDS for entry in components(kind)]
PARTS = [*(part for part in EVERY if part not in WITHOUT), *SHARED]


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS, ids="-".join)
def test_a_part_is_its_formula(part: tuple[str, str]) -> None:
    assert part in REFERENCES, "write its formula in tests/reference"
    for options in variants(*part):
        check(*part, options)


@pytest.mark.parametrize("part", PARTS, ids="-".join)
def test_every_option_is_varied(part: tuple[str, str]) -> None:
    defaults: dict[str, Any] = options_of(*part)
    given = REFERENCES[part].options
    assert set(given) == set(defaults)
    for name, values in given.items():
        assert values
        assert defaults[name] not in values, f"{name}={defaults[name]!r} is the default"


def test_nothing_is_left_behind() -> None:
    assert set(REFERENCES) == set(PARTS), "a reference of a part that is gone"
    assert set(WITHOUT) < set(EVERY)


@pytest.mark.parametrize(
    "part", [part for part in PARTS if part[0] in ("credit", "filter", "shape")], ids="-".join
)
def test_a_trajectory_without_turns_breaks_nothing(part: tuple[str, str]) -> None:
    law_of_the_empty(*part)
