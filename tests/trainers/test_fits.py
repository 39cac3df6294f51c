"""The table of what fits: its page is up to date, and its arithmetic is near to the one model that was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turnwise.trainers.bench.fits import MEASURED, SHAPES, cards_for, memory, page

ROOT = Path(__file__).parents[2]
FIGURES = json.loads((ROOT / "benchmarks/gpu.json").read_text())["figures"]


def test_the_page_is_what_its_command_writes() -> None:
    said = (ROOT / "docs/what-fits.md").read_text()
    assert said == page(), "python scripts/generated.py fits"


@pytest.mark.parametrize(
    ("name", "key"), zip(MEASURED, ("above_held/0.5b", "above_held_checkpointed/0.5b"), strict=True)
)
def test_the_formula_is_within_a_seventh_of_what_a_card_took(name: str, key: str) -> None:
    checkpointing, found = MEASURED[name]
    assert found == pytest.approx(FIGURES[key]["value"], abs=1e-3)
    said = memory(SHAPES["0.5 B"], 16_384, checkpointing=checkpointing)
    assert (said.all - said.held) / 16_384 / 1e6 == pytest.approx(found, rel=1 / 7)
    assert said.held / SHAPES["0.5 B"].weights == pytest.approx(FIGURES["bytes_held/0.5b"]["value"], rel=0.02)


def test_weights_are_those_that_are_published_and_more_cards_never_take_more_each() -> None:
    published = {"0.5 B": 0.494, "1.5 B": 1.54, "3 B": 3.09, "7 B": 7.62, "14 B": 14.8, "32 B": 32.8}
    for name, billions in published.items():
        assert SHAPES[name].weights / 1e9 == pytest.approx(billions, rel=0.01)
    for rank in (0, 32):
        each = [memory(SHAPES["7 B"], 8192, cards=cards, rank=rank).all for cards in (2, 4, 8, 16)]
        assert each == sorted(each, reverse=True)
    assert cards_for(SHAPES["7 B"], 8192, rank=32) == 1 < cards_for(SHAPES["7 B"], 8192)
