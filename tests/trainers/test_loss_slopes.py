"""Slopes of losses that were worked out by hand; their formulas are in tests/reference."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor

from turnwise.registry import get_component
from turnwise.trainers.kit.toy_batches import token_batch, whole_batch


def slopes(value: Tensor, batch: Any) -> Tensor:
    (found,) = torch.autograd.grad(value.sum(), [batch.logp_RT])
    return found


def test_swapped_bounds_of_clip_are_noticed() -> None:
    """Clip-higher: what is allowed to rise by 28 % may fall by 20 % only."""
    batch = token_batch([[math.log(1.25), math.log(0.75)]], [[1.0, -1.0]], old_logp=[[0.0, 0.0]])
    clip = get_component("loss", "clip")
    found = slopes(clip.build({"low": 0.2, "high": 0.28})(batch).loss_RT, batch)
    assert found.tolist() == [[pytest.approx(-1.25), 0.0]]
    found = slopes(clip.build({"low": 0.28, "high": 0.2})(batch).loss_RT, batch)
    assert found.tolist() == [[0.0, pytest.approx(0.75)]]


def test_disco_weighs_hard_failures_more() -> None:
    """The slope in a failure's score is softmax(s/τ) of the group's failures: the worked weights of the formula book."""
    batch = whole_batch([[-0.5], [-0.7], [-0.6], [-0.9], [-1.2]], success=[1, 1, 0, 0, 0])
    for tau, wanted in ((10.0, [0.3434, 0.3332, 0.3234]), (1.0, [0.4368, 0.3236, 0.2397])):
        found = get_component("loss", "disco").build({"temperature": tau})(batch).loss
        assert slopes(found, batch)[:, 0].tolist() == pytest.approx([-0.5, -0.5, *wanted], abs=1e-4)
