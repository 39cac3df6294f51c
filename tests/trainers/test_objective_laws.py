"""Laws of objectives: which losses and which credit rules are one, and where they part."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor

from turnwise.registry import get_component
from turnwise.trainers.kit.toy_batches import turn_batch
from turnwise.trainers.lab.twins import CREDIT_TWINS, TWINS, CreditTwin, LossTwin, PartChoice, compare


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: f"{twin.one}={twin.two}")
def test_twins_are_one(twin: LossTwin) -> None:
    found = compare(twin.one, twin.two, twin.setting)
    assert found.degrees < 1e-3
    scale = twin.scale if twin.scale is not None else found.ratios[0]
    assert found.ratios == pytest.approx(
        [scale] * len(found.ratios), rel=1e-5
    )  # GRPO adds 1e-6 to its deviation


@pytest.mark.parametrize(
    "twin", [twin for twin in TWINS if twin.apart != twin.setting], ids=lambda twin: f"{twin.one}={twin.two}"
)
def test_twins_part_where_it_is_said(twin: LossTwin) -> None:
    """So that the page says no more than it may."""
    assert compare(twin.one, twin.two, twin.apart).degrees > 1


@pytest.mark.parametrize("twin", CREDIT_TWINS, ids=lambda twin: f"{twin.one}={twin.two}")
def test_credit_twins_are_one_and_part_where_it_is_said(twin: CreditTwin) -> None:
    def given(choice: PartChoice, seed: int) -> Tensor:
        rng = random.Random(seed)
        rewards = [[rng.choice([0.0, 0.5, 1.0]) for _ in range(rng.randint(1, 5))] for _ in range(6)]
        value = [[rng.uniform(-1, 1) for _ in row] for row in rewards]
        batch = turn_batch(rewards, [0, 0, 0, 1, 1, 1], signals={"value": value})
        return get_component("credit", choice.name).build(dict(choice.options))(batch) * batch.mask_BK

    for seed in range(6):
        assert torch.allclose(given(twin.one, seed), given(twin.two, seed), atol=1e-9)
        assert not torch.allclose(given(twin.apart, seed), given(twin.two, seed), atol=1e-3)
