"""The entropy of the nucleus as a leaf of a pass: by hand, however rows are cut, and read as a tree."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))

from test_whole_losses import advantages, played, steps

from turnwise.errors import RecipeError
from turnwise.registry import get_component
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.objective import Objective, WholeTerm

AIM, SHARE, MASS = 0.3, 0.4, 0.8


def siren_alone(**options: Any) -> Objective:
    loss = get_component("loss", "siren").build({"aim": AIM, "share": SHARE, **options})()
    return Objective(
        [],
        get_component("reduce", "turn_mean").build({}),
        get_component("correction", "none").build({}),
        whole=[WholeTerm("siren", loss, 1.0)],
    )


def entropy_by_hand(logp_V: Any) -> Any:
    """Of the likeliest tokens, one after the other as long as their mass is below 0.8."""
    kept, mass = list[int](), 0.0
    for token in sorted(range(len(logp_V)), key=lambda v: -logp_V[v].item()):
        mass += logp_V[token].exp().item()
        if mass >= MASS:
            break
        kept.append(token)
    own = logp_V[kept].softmax(-1)
    return -(own * own.log()).sum() if kept else logp_V.sum() * 0


def gradients_by_hand(model: Any, batch: TrainingBatch) -> list[Any]:
    rows = batch.rows
    of: dict[int, list[Any]] = {}
    for r in range(len(rows.token_RT)):
        ids = rows.token_RT[r, : int(rows.length_R[r])]
        known = model(input_ids=ids[None]).logits[0].log_softmax(-1)
        for t in range(1, len(ids)):
            if rows.mask_RT[r, t]:
                of.setdefault(int(rows.trajectory_R[r]), []).append(entropy_by_hand(known[t - 1]))
    means = []
    for own in of.values():
        every = torch.stack(own)
        means.append(every[every >= torch.quantile(every.detach(), 1 - SHARE)].mean())
    loss = (torch.stack(means).mean() - AIM) ** 2
    return [*torch.autograd.grad(loss, [*model.parameters()])]


def test_the_slope_of_siren_is_that_of_the_nucleus_by_hand_in_rows_and_in_trees(
    random_model: Callable[..., Any],
) -> None:
    batch = collate([played()[:3], played()[3:]])
    given = advantages(batch)
    expected = gradients_by_hand(random_model(), batch)
    assert max(x.abs().max().item() for x in expected) > 1e-3
    for options in ({"micro_tokens": 10_000}, {"micro_tokens": 1}, {"share": "tree"}):
        found = steps(random_model(), batch, given, siren_alone(mass=MASS), max_grad_norm=1e9, **options)
        for x, y in zip(found.seen[0], expected, strict=True):
            torch.testing.assert_close(x, y, rtol=2e-3, atol=2e-6)
    every = steps(random_model(), batch, given, siren_alone(), max_grad_norm=1e9)
    assert any(
        not torch.allclose(x, y, rtol=0.1, atol=1e-4) for x, y in zip(every.seen[0], expected, strict=True)
    )


def test_two_nuclei_are_refused_and_a_loss_that_asks_for_none_gets_none() -> None:
    assert siren_alone().nucleus is None
    both = Objective(
        [], lambda rows: rows.mask_RT, lambda batch: batch.advantage_RT,
        whole=[*siren_alone(mass=0.8).whole, *siren_alone(mass=0.9).whole],
    )  # fmt: skip
    with pytest.raises(RecipeError, match="two nuclei"):
        _ = both.nucleus
    with pytest.raises(RecipeError, match="no probability"):
        siren_alone(mass=1.5)
