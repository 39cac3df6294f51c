"""Requirements of every registered component; a new one is tested by being registered."""

import pytest
import torch

from turnwise.kinds import KINDS
from turnwise.registry import Component, components, get_component
from turnwise.requirements import NotTested, requirements
from turnwise.trainers.check.tokens import ROWS, same, tokens
from turnwise.trainers.core import TokenBatch

ELSEWHERE = ("engine", "sandbox")  # tests/agents/test_engines.py and tests/sandbox start each of them once
EVERY = [
    pytest.param(entry, test, id=f"{kind}-{entry.name}-{name.replace(' ', '_')}")
    for kind in KINDS
    if kind not in ELSEWHERE
    for entry in components(kind)
    for name, test in requirements(kind).items()
]


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "test"), EVERY)
def test_what_is_required_of_its_kind(entry: Component, test) -> None:
    try:
        test(entry)
    except NotTested as why:
        pytest.skip(str(why))


@pytest.mark.parametrize("kind", KINDS)
def test_ours_are_in_files_of_their_kind(kind: str) -> None:
    for entry in components(kind):
        assert entry.module.startswith(f"{KINDS[kind].home}."), entry
        assert entry.package == "turnwise"


REGULARISERS = {  # by name: (∂/∂logp, ∂/∂entropy) at zero staleness
    "kl": lambda batch: (
        torch.zeros_like(batch.logp_RT),
        torch.zeros_like(batch.logp_RT),
    ),  # it is the reference
    "entropy": lambda batch: (torch.zeros_like(batch.logp_RT), -batch.mask_RT.double()),
}


@pytest.mark.parametrize("name", ["clip", *REGULARISERS])
def test_gradient_at_zero_staleness(name: str) -> None:
    for seed in range(6):
        batch = tokens(seed)
        get_component("loss", name).build({})(batch).loss_RT.sum().backward()
        expected = REGULARISERS.get(name, lambda b: (-b.advantage_RT, torch.zeros_like(b.logp_RT)))
        for leaf, gradient_RT in zip((batch.logp_RT, batch.entropy_RT), expected(batch), strict=True):
            found_RT = leaf.grad if leaf.grad is not None else torch.zeros_like(leaf)
            assert same(found_RT, gradient_RT)


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_kl_descends_what_it_says(estimator: str) -> None:
    """On average over the policy's own tokens: k1, k2 → ∇KL(π‖ref), k3 → ∇KL(ref‖π)."""
    logits = torch.tensor([0.3, -0.5, 1.1], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([0.5, 0.2, -0.4], dtype=torch.float64).log_softmax(-1)
    logp = logits.log_softmax(-1)
    mask = torch.ones(3, 1, dtype=torch.bool)
    zeros = torch.zeros(3, 1, dtype=torch.float64)
    batch = TokenBatch(
        logp[:, None], zeros, zeros, zeros, zeros, mask, zeros.long(),
        torch.arange(3), torch.zeros(3).long(), reference[:, None],
    )  # fmt: skip
    loss = get_component("loss", "kl").build({"estimator": estimator})(batch).loss_RT[:, 0]
    (found,) = torch.autograd.grad((logp.exp().detach() * loss).sum(), logits, retain_graph=True)
    forward = (reference.exp() * (reference - logp)).sum()
    reverse = (logp.exp() * (logp - reference)).sum()
    (expected,) = torch.autograd.grad(forward if estimator == "k3" else reverse, logits)
    assert torch.allclose(found, expected)
    if estimator != "k2":  # and they estimate KL(π‖ref) without bias
        assert (logp.exp() * loss).sum().item() == pytest.approx(reverse.item())


def test_clip_stops_the_gradient_outside_the_trust_region_only_where_it_helps() -> None:
    from math import log

    from turnwise.trainers.kit.toy_batches import token_batch

    ratios, advantages = [1.5, 1.5, 0.5, 0.5, 4.0], [1.0, -1.0, 1.0, -1.0, -1.0]
    batch = token_batch([[log(r) for r in ratios]], [advantages], old_logp=[[0.0] * 5])
    loss_RT, metrics = get_component("loss", "clip").build({"high": 0.28})(batch)
    loss_RT.sum().backward()
    assert batch.logp_RT.grad is not None
    assert batch.logp_RT.grad.tolist() == [pytest.approx([0.0, 1.5, -0.5, 0.0, 0.0])]
    shares = [metrics[name].item() for name in ("clip_low", "clip_high", "clip_dual")]
    assert shares == pytest.approx([0.2, 0.2, 0.2])


def test_truncation_caps_and_masking_drops() -> None:
    batch = tokens(1, stale=2.0)
    ratio_RT = (batch.old_logp_RT - batch.behaviour_logp_RT).exp()
    tis_RT = get_component("correction", "tis").build({"cap": 1.5})(batch)
    mis_RT = get_component("correction", "mis").build({"low": 0.8, "high": 1.25})(batch)
    assert tis_RT.max() == 1.5
    kept_RT = batch.mask_RT & (ratio_RT >= 0.8) & (ratio_RT <= 1.25)
    assert torch.equal(mis_RT != 0, kept_RT)


@pytest.mark.parametrize("name", ["token_mean", "turn_mean", "sequence_mean"])
def test_means_sum_to_one(name: str) -> None:
    assert get_component("reduce", name).build({})(ROWS).sum().item() == pytest.approx(1.0)
