"""Faults seen in released trainers, each kept out by a test."""

import pytest
import torch

from turnwise.registry import components, get_component
from turnwise.trainers.check.options import variants
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.token_credit import on_turns
from turnwise.trainers.kit.toy_batches import rounded, turn_batch

COMPARES_TURNS = {  # rules that compare the turns of one trajectory with each other, with a constant, or not at all: their judge did
    "gae", "gae_truncated", "grpo_process", "hgpo", "gigpo", "igpo", "iter_research", "ngrpo", "pav", "psr_nsr", "rebn",
    "reinforce_pp", "vine", "spo_chain", "gae_token", "gae_bilevel", "prime", "capo",
    "dcpo", "ota", "rlvmr", "epo_strategic", "trr", "grounded", "think_rm", "reinforce", "alphamath",
}  # fmt: skip


def credit(name: str, batch: TurnBatch, **options) -> list[list[float]]:
    return rounded(on_turns(get_component("credit", name).build(options)(batch), batch))


def lone() -> TurnBatch:
    """One trajectory by itself and two together, with every signal that a rule or a shape asks for."""
    parts = (*components("credit"), *components("shape"))
    needs = {need for entry in parts for need in entry.needs_with({})} - {"last_value"}
    signals: dict[str, list] = {
        name: [[0.5, 0.25], [0.1, 0.2], [0.3, 0.4]] for name in needs if not name.startswith("token_")
    }
    return turn_batch(
        [[0.2, 1.0], [0.0, 1.0], [0.5, 0.0]],
        [0, 1, 1],
        signals={**signals, "last_value": [0.3, 0.2, 0.1]},
        tokens=[[[1, 2], [3]], [[1], [2]], [[4, 5], [6]]],
        token_signals={
            name: [[0.5, 0.3, 0.2], [0.1, 0.4], [0.2, 0.5, 0.6]]
            for name in needs
            if name.startswith("token_")
        },
    )


@pytest.mark.parametrize("name", sorted({c.name for c in components("credit")} - COMPARES_TURNS))
def test_a_trajectory_without_peers_learns_nothing(name: str) -> None:
    """Others pass its raw return through, which reinforces whatever it did."""
    batch = lone()
    for said, rule in variants(get_component("credit", name)):
        assert rounded(on_turns(rule(batch), batch))[0] == [0.0, 0.0], said


@pytest.mark.parametrize("name", sorted({c.name for c in components("shape")} - {"empg", "whiten"}))
def test_what_is_given_nothing_stays_so_unless_the_batch_is_centred(name: str) -> None:
    batch = lone()
    nothing_BK = get_component("credit", "rloo").build({})(batch)
    for said, shape in variants(get_component("shape", name)):
        assert rounded(on_turns(shape(nothing_BK, batch), batch))[0] == [0.0, 0.0], said


def test_turns_without_reward_are_turns() -> None:
    """Where turn ends are looked for in the rewards (RAGEN's bi-level GAE), these vanish."""
    batch = turn_batch([[0, 0, 0], [0, 0, 1]], signals={"value": [[0.3, 0.2, 0.1], [0.3, 0.2, 0.1]]})
    assert credit("gae", batch) == [[-0.3, -0.2, -0.1], [0.7, 0.8, 0.9]]
    assert credit("return_to_go", batch) == [[-1.0] * 3, [1.0] * 3]


@pytest.mark.parametrize("name", ["grpo", "rloo", "dr_grpo", "gigpo", "lite_ppo", "rank"])
def test_long_episodes_do_not_weigh_more_in_the_group_mean(name: str) -> None:
    """verl-agent averages over steps: success in 2, failure in 10 gives +0.83, −0.17."""
    states = [[1, 2], [3] + [10 + k for k in range(9)]]  # nothing shared, so that gigpo is its group part
    success, failure = credit(name, turn_batch([[0, 1], [0] * 10], states=states))
    assert success[0] == pytest.approx(-failure[0])


def test_equal_returns_give_exactly_nothing() -> None:
    batch = turn_batch([[0.1, 0.2], [0.3], [0.15, 0.15]])
    for name in ("grpo", "rloo", "lite_ppo", "tempo"):
        if not get_component("credit", name).needs_with({}):
            assert max(abs(x) for row in credit(name, batch) for x in row) < 1e-6


def test_float32_noise_is_not_blown_up() -> None:
    """Returns that are equal up to rounding have no spread to divide by."""
    batch = turn_batch([[0.1] * 7, [0.7]])
    single = TurnBatch(
        batch.reward_BK.float(), batch.mask_BK, batch.group_B, batch.truncated_B, batch.state_BK
    )
    assert single.return_B[0] != single.return_B[1], "the rounding differs, which is the point"
    for name in ("grpo", "lite_ppo", "maxrl"):
        assert get_component("credit", name).build({})(single).abs().max() < 0.1, name


def test_rewards_after_the_end_do_not_count() -> None:
    """Padding is zero by contract; a rule may not read it either way."""
    batch = turn_batch([[1.0], [0.0, 1.0]])
    dirty = TurnBatch(
        torch.tensor([[1.0, 5.0], [0.0, 1.0]], dtype=torch.float64),
        batch.mask_BK, batch.group_B, batch.truncated_B, batch.state_BK,
    )  # fmt: skip
    for entry in components("credit"):
        if not entry.needs_with({}):
            clean_BK, dirty_BK = entry.build({})(batch), entry.build({})(dirty)
            assert torch.allclose(clean_BK, dirty_BK), entry.name
