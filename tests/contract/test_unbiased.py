"""A credit rule's expected update beside the exact policy gradient; tests/contract/test_parts.py tests each declaration."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from turnwise.errors import TurnwiseError
from turnwise.registry import components, get_component
from turnwise.requirements import BrokenRequirement
from turnwise.trainers.check import bias, tokens
from turnwise.trainers.check.bias import EXACT, NOTABLE, SIZES, measure
from turnwise.trainers.core import TokenCredit
from turnwise.trainers.kit.groups import returns_to_go
from turnwise.trainers.kit.token_credit import sequences
from turnwise.trainers.lab.exact import compare, expected_update, paths
from turnwise.trainers.lab.processes import PROCESSES, STOPPING, lopsided, signals

CREDITS = components("credit")


@pytest.mark.parametrize("per_turn", [1, 2])
def test_bilevel_gae_is_unbiased_without_discounts(per_turn: int) -> None:
    bilevel = get_component("credit", "gae_bilevel").build({"turn_discount": 1.0})
    for process in PROCESSES:
        p = paths(process, lopsided(process))
        wrong = {"token_value": torch.cos(p.state_NK * 2.0)}
        update = expected_update(bilevel, p, 2, wrong, per_turn=per_turn)
        assert compare(update.mean_SA, p.policy_gradient()).error < EXACT, process.name


def test_a_token_rule_that_pays_later_tokens_for_earlier_ones_is_caught() -> None:
    """The test can fail also within a turn: one baseline per turn that knows the turn's tokens."""

    def careless(batch):
        at = sequences(batch)
        G_BM = at.of_turns(returns_to_go(batch))
        first_BM = torch.cat([torch.ones_like(at.last_BM[:, :1]), at.last_BM[:, :-1]], 1)
        G_BM = G_BM * (1 + ~first_BM)
        return TokenCredit(at.unpack(G_BM, batch.tokens.mask_RT))

    p = paths(STOPPING, lopsided(STOPPING))
    assert (
        compare(expected_update(careless, p, 2, {}, per_turn=2).mean_SA, p.policy_gradient()).angle > NOTABLE
    )


@pytest.mark.parametrize("options", [{"peers": "alive"}, {"peers": "all"}])
@pytest.mark.parametrize("n", SIZES)
def test_both_baselines_of_return_to_go_are_unbiased(options, n) -> None:
    found = measure(get_component("credit", "return_to_go").build(options), n)
    assert all(bias.error < EXACT for bias in found.values()), found


def test_discounting_is_biased() -> None:
    found = measure(get_component("credit", "return_to_go").build({"discount": 0.5}), 2)
    assert any(bias.angle > NOTABLE for bias in found.values())


def test_grpo_without_division_is_right_up_to_a_factor() -> None:
    for n in SIZES:
        found = measure(get_component("credit", "grpo").build({"normalize": "none"}), n)
        assert all(bias.angle < EXACT for bias in found.values())
        assert all(bias.scale == pytest.approx((n - 1) / n) for bias in found.values())


@pytest.mark.parametrize("lam", [1.0, 0.5])
def test_gae_is_unbiased_with_a_wrong_value_only_if_lambda_is_one(lam: float) -> None:
    gae = get_component("credit", "gae").build({"lam": lam})
    p = paths(STOPPING, lopsided(STOPPING))
    right = compare(expected_update(gae, p, 2, {"value": p.value_NK}).mean_SA, p.policy_gradient())
    wrong = compare(
        expected_update(gae, p, 2, {"value": torch.cos(p.state_NK * 2.0)}).mean_SA, p.policy_gradient()
    )
    assert right.error < EXACT
    assert (wrong.error < EXACT) == (lam == 1.0), wrong


def test_a_mean_that_includes_oneself_is_caught() -> None:
    """The test can fail: a per-turn group mean looks innocent and is not."""

    def careless(batch):
        alive = batch.mask_BK.double()
        G = batch.reward_BK.flip(1).cumsum(1).flip(1) * alive
        mean = torch.zeros_like(G).index_add_(0, batch.group_B, G) / torch.zeros_like(G).index_add_(
            0, batch.group_B, alive
        ).clamp(min=1)
        return (G - mean[batch.group_B]) * alive

    found = measure(careless, 3)
    assert found["chain"].angle < EXACT  # nobody stops early: only a factor is lost
    assert found["stopping"].angle > NOTABLE


def test_stopping_time_bias_turns_the_update_around() -> None:
    """Centring per turn index and summing: where going on is right, the policy is told to stop."""
    p = paths(STOPPING, lopsided(STOPPING))
    exact = p.policy_gradient()
    updates = {
        name: expected_update(get_component("credit", name).build({}), p, 3, signals(p)).mean_SA
        for name in ("turn_index", "return_to_go")
    }
    assert exact[0, 1] > 0.02
    assert updates["turn_index"][0, 1] < -0.02
    assert torch.allclose(updates["return_to_go"], exact, atol=EXACT)


def test_the_page_lists_every_rule_with_its_declaration() -> None:
    page = (Path(__file__).parents[2] / "docs" / "credit-bias.md").read_text()
    parts = [*CREDITS, *components("shape")]
    missing = [c.name for c in parts if f"| `{c.name}` |" not in page or c.bias not in page]
    assert not missing, "write it anew: python -m turnwise.trainers.lab.bias > docs/credit-bias.md"


def test_probabilities_and_values_are_exact() -> None:
    for process in PROCESSES:
        p = paths(process, lopsided(process))
        assert p.probability_N.sum().item() == pytest.approx(1.0)
        expected = (p.probability_N * p.return_N).sum().item()
        assert p.value_NK[:, 0].tolist() == pytest.approx([expected] * len(p.value_NK))


def test_expected_update_equals_the_sum_over_ordered_batches() -> None:
    p = paths(STOPPING, lopsided(STOPPING))
    credit = get_component("credit", "grpo").build({})
    probability = p.probability_N.detach()
    weight = torch.zeros_like(p.reward_NK)
    from turnwise.trainers.lab.exact import batch_of

    for pair in itertools.product(range(len(probability)), repeat=2):
        index = torch.tensor(pair)
        advantage = credit(batch_of(p, index, torch.zeros(2, dtype=torch.long), {}))
        weight.index_add_(0, index, probability[index].prod() * advantage / 2)
    slow = p.gradient((weight * p.logp_NK).sum())
    assert torch.allclose(slow, expected_update(credit, p, 2, {}).mean_SA)


def test_missing_signal_says_what_to_do() -> None:
    p = paths(STOPPING, lopsided(STOPPING))
    with pytest.raises(TurnwiseError, match="value"):
        expected_update(get_component("credit", "gae").build({}), p, 2, {})


def test_a_bias_that_is_declared_wrongly_is_told_in_degrees_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bias, "measured", bias.measured.__wrapped__)  # other tests keep all processes
    for module in (bias, tokens):
        monkeypatch.setattr(module, "PROCESSES", (PROCESSES[0],))
    with pytest.raises(BrokenRequirement) as told:
        bias.bias_is_as_declared(replace(get_component("credit", "grpo"), bias="unbiased"))
    assert re.fullmatch(
        r"Its expected update over groups of 2 is not the policy gradient: chain [\d.]+° off, factor [\d.]+\. "
        r'Correct the rule, or declare bias="biased: why"\.',
        str(told.value),
    )
    with pytest.raises(BrokenRequirement, match=r'Declare bias="unbiased"'):
        bias.bias_is_as_declared(replace(get_component("credit", "rloo"), bias="biased: by nothing"))
    with pytest.raises(BrokenRequirement, match=r'factor [\d.]+\. Declare bias="unbiased"'):
        tokens.bias_of_the_denominator(replace(get_component("reduce", "fixed_length"), bias="biased: a bit"))
