"""`turnwise plan` as a user runs it."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")


@pytest.mark.slow
def test_a_plan_says_what_fits_where_it_goes_and_what_to_change(turnwise_here, tmp_path):
    told = turnwise_here("plan", "shop-quick", "--on", "8xH100", "--json")
    assert told.code == 0
    assert (told.json["fits"], told.json["changes"]) == (True, [])
    assert told.json["where"] == "each of 8 H100"
    assert told.json["total"] == pytest.approx(sum(part["learning"] for part in told.json["parts"]), abs=9)
    config = {
        "model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 32_768, "max_position_embeddings": 4096,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    large = ["--set", "model={path: config.json}", "warm_start=null"]
    shown = turnwise_here("plan", "shop-quick", *large, "--on", "H100")
    assert shown.code == 1
    assert "It does not fit" in shown.out
    assert "--set model.lora.rank=32" in shown.out
    again = turnwise_here("plan", "shop-quick", *large, "--on", "H100", "--json")
    assert again.code == 1
    best = again.json["changes"][-1]
    changed = turnwise_here("plan", "shop-quick", *large, *best["set"].split(), "--on", "H100", "--json")
    assert (changed.json["total"], changed.json["fits"]) == (best["total"], best["fits"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["shop-quick", "--on", "8xH10"], "There is no card 'H10'.\n→ Did you mean 'H100'?"),
        (["shop-quik"], "Did you mean 'shop-quick'?"),
        (["shop-quick", "--on", "0xH100"], "--on '0xH100' is no number of cards."),
        (["shop-quick", "--row", "-3"], "--row and --shared count tokens."),
        (["shop-quick", "--on", "H100", "--set", "scale.learners=2"], "has 2 learners (scale.learners), and --on names 1 cards."),
        (["shop-quick", "--set", "model={path: ./nowhere}"], "There is no model folder ./nowhere."),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_what_cannot_be_planned_is_said(turnwise_here, line, said):
    done = turnwise_here("plan", *line)
    assert done.code == 1
    assert said in done.err
