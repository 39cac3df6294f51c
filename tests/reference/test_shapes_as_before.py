"""What rules gave that had GRPO welded into them: the same rule and a shape give the same, in float64.

``shapes_before.json`` was written by those rules, on the batches of ``ragged.py``, before they became shapes.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from ragged import ragged

from turnwise.registry import components, get_component
from turnwise.trainers.core import TokenCredit

BEFORE: list[dict[str, Any]] = json.loads(Path(__file__).with_name("shapes_before.json").read_text("utf-8"))


@pytest.mark.parametrize("was", BEFORE, ids=lambda was: f"{was['shape']}-{was['options']}")
def test_a_rule_and_a_shape_give_what_the_welded_rule_gave(was: dict[str, Any]) -> None:
    rule = get_component("credit", was["credit"]).build({})
    shape = get_component("shape", was["shape"]).build(was["options"])
    for seed, expected in enumerate(was["advantages"]):
        batch = ragged(seed).batch()
        assert batch.tokens is not None
        found = shape(rule(batch), batch)
        given = (
            found.advantage_RT[batch.tokens.mask_RT]
            if isinstance(found, TokenCredit)
            else found[batch.mask_BK]
        )
        assert torch.allclose(given, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-14), (
            seed
        )


def test_no_shape_that_was_once_a_rule_is_gone() -> None:
    assert {was["shape"] for was in BEFORE} <= {entry.name for entry in components("shape")}
