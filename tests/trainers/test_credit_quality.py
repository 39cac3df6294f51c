"""The credit-quality benchmark: its truths are true, its grades say what they claim, its verbs answer."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.policies.mixture import mixture
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import run_episodes
from turnwise.cli.credit import _stage_rows
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.registry import components, get_component
from turnwise.trainers.bench import credit
from turnwise.trainers.bench.train import TrainWorkload
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.credit.return_to_go import return_to_go
from turnwise.trainers.lab.exact import paths
from turnwise.trainers.lab.offline import swap_credit
from turnwise.trainers.lab.plot import draw_stages
from turnwise.trainers.lab.processes import PROCESSES, lopsided
from turnwise.trainers.lab.quality import Scale, checkpoints, credit_quality, stage_labels
from turnwise.trainers.lab.score import bootstrap, score_rule
from turnwise.trainers.lab.text_value import text_values
from turnwise.trainers.lab.truth import TrueAdvantageBatch, process_batches, suite_batch, true_advantages
from turnwise.trainers.learn.collate import collate_turns
from turnwise.trainers.strategy.runner import plan_groups

pytestmark = pytest.mark.slow

TINY = Scale(groups=3, size=3, forks=4, vine_forks=2, process_groups=6)


@pytest.fixture(scope="module")
def processes() -> list[TrueAdvantageBatch]:
    return list(process_batches(24, 6, 4, seed=1))


@pytest.fixture(scope="module")
def shop() -> TrueAdvantageBatch:
    policy = mixture("demonstrator=0.5,random=0.5")
    return suite_batch("shop/quick", policy, groups=6, size=4, forks=30, vine_forks=4, seed=0)


# --- the truth ------------------------------------------------------------------------------------


@pytest.mark.parametrize("process", PROCESSES, ids=lambda p: p.name)
def test_true_advantages_make_the_exact_gradient(process) -> None:
    """Σ_trajectories P · Σ_k A(s_k, a_k) · ∇log π is the policy gradient theorem."""
    p = paths(process, lopsided(process))
    update_SA = torch.einsum("n,nk,nksa->sa", p.probability_N.detach(), true_advantages(p), p.score_NKSA)
    assert torch.allclose(update_SA, p.policy_gradient(), atol=1e-12)


def test_forks_of_a_process_have_its_values_as_mean(processes: list[TrueAdvantageBatch]) -> None:
    for true_batch in processes:
        mask_BK = true_batch.turns.mask_BK
        off_N = (true_batch.turns.signals["fork_value"] - true_batch.turns.signals["value"])[mask_BK]
        assert abs(off_N.mean()) < 5 * off_N.std() / len(off_N) ** 0.5 + 1e-9
        assert off_N.std() > 0.01 or true_batch.stage.endswith("late"), "they are measured, not exact"
        assert true_batch.fork_cost.steps >= 4 * int(mask_BK.sum())


def test_the_measured_truth_of_a_certain_policy_is_nothing() -> None:
    true_batch = suite_batch(
        "shop/quick", make_policy("scripted:gold"), groups=2, size=2, forks=3, vine_forks=2, seed=0
    )
    assert not true_batch.truth_BK.any()
    assert not true_batch.error_BK.any()
    assert true_batch.reliability == 0


def test_advantages_sum_to_what_the_return_is_more_than_expected(shop: TrueAdvantageBatch) -> None:
    """They telescope: ΣA = R − V(s_0), whatever the values between are."""
    first_B = shop.turns.return_B - shop.truth_BK.sum(-1)
    for group in shop.turns.group_B.unique():
        mine_B = first_B[shop.turns.group_B == group]
        assert torch.allclose(mine_B, mine_B[0].expand_as(mine_B), atol=1e-9), "one beginning, one value"
        assert 0 <= mine_B[0] <= 1


def test_standard_errors_are_those_of_the_truth(shop: TrueAdvantageBatch) -> None:
    """Another measurement of the same turns differs by about what the standard errors say."""
    policy = mixture("demonstrator=0.5,random=0.5")
    rough = suite_batch("shop/quick", policy, groups=6, size=4, forks=8, vine_forks=1, seed=0)
    assert torch.equal(rough.turns.state_BK, shop.turns.state_BK), "the episodes are the same"
    unsure_BK = (shop.error_BK > 0) & (rough.error_BK > 0)
    z_N = ((rough.truth_BK - shop.truth_BK) / (rough.error_BK**2 + shop.error_BK**2).sqrt())[unsure_BK]
    assert 0.5 < z_N.std() < 1.6
    assert rough.reliability < shop.reliability


def test_turns_that_leaves_share_have_one_truth() -> None:
    policy = mixture("demonstrator=0.5,random=0.5")
    true_batch = suite_batch(
        "shop/quick", policy, groups=3, size=8, forks=5, vine_forks=2, seed=0, branch_at=(1, 2)
    )
    turns, edge_BK = true_batch.turns, true_batch.turns.signals["edge"]
    shared = 0
    for i, j in itertools.combinations(range(len(turns.group_B)), 2):
        if turns.group_B[i] == turns.group_B[j]:
            one_K = (edge_BK[i] > 0) & (edge_BK[i] == edge_BK[j])
            shared += int(one_K.sum())
            same_K = true_batch.truth_BK[i] == true_batch.truth_BK[j]
            assert same_K[one_K & torch.cat([one_K[1:], one_K[:1] & False])].all(), (
                "also the next state is one"
            )
    assert shared > 10


def test_values_of_texts_do_not_know_their_own_groups_returns() -> None:
    plan = plan_groups("shop/quick", 6, 3, 5)
    policy = mixture("demonstrator=0.7,random=0.3")
    groups = [run_episodes(requests, policy) for requests in plan]
    batch = collate_turns(groups)
    before_BK, _ = text_values(groups, batch)
    changed = replace(batch, reward_BK=batch.reward_BK + 10 * (batch.group_B == 2)[:, None] * batch.mask_BK)
    after_BK, _ = text_values(groups, changed)
    assert torch.equal(before_BK[batch.group_B == 2], after_BK[batch.group_B == 2])
    assert not torch.allclose(before_BK[batch.group_B == 3], after_BK[batch.group_B == 3])


# --- grades ---------------------------------------------------------------------------------------


def test_the_truth_grades_best_and_its_opposite_worst(
    processes: list[TrueAdvantageBatch], shop: TrueAdvantageBatch
) -> None:
    for true_batch in (*processes, shop):
        weights = bootstrap(int(true_batch.turns.group_B.max()) + 1, 50, 0)

        def truth(batch: TurnBatch, true_batch: TrueAdvantageBatch = true_batch) -> torch.Tensor:
            return 3 * true_batch.truth_BK

        right = score_rule(truth, replace(true_batch, exact=None), weights).figures
        wrong = score_rule(lambda batch, t=truth: -t(batch), replace(true_batch, exact=None), weights).figures
        for name in ("correlation", "rank_correlation", "sign_accuracy"):
            assert np.allclose(right[name], 1.0)
        assert np.allclose(wrong["correlation"], -1.0)
        assert wrong["sign_accuracy"][0] == 0
        assert abs(right["bias"][0]) < 1e-6
        assert abs(right["noise"][0]) < 1e-6
        assert np.isinf(wrong["noise"][0]), "no scale brings the opposite to the truth"


def test_noise_and_bias_are_told_apart(processes: list[TrueAdvantageBatch]) -> None:
    true_batch = replace(processes[0], exact=None)
    weights = bootstrap(24, 50, 0)
    spread = true_batch.truth_BK[true_batch.turns.mask_BK].std()
    noise_BK = torch.randn(true_batch.truth_BK.shape, generator=torch.Generator().manual_seed(0)) * 2 * spread
    shifted = score_rule(lambda batch: true_batch.truth_BK + 0.5 * spread, true_batch, weights).figures
    noisy = score_rule(lambda batch: true_batch.truth_BK + noise_BK, true_batch, weights).figures
    assert shifted["bias"][0] == pytest.approx(0.5, abs=0.01)
    assert shifted["noise"][0] == pytest.approx(0, abs=0.01)
    assert noisy["noise"][0] == pytest.approx(4, rel=0.4)
    assert abs(noisy["bias"][0]) < 0.5


def test_gradients_of_unbiased_rules_point_uphill_and_of_the_stopping_bias_do_not(
    processes: list[TrueAdvantageBatch],
) -> None:
    true_batch = next(e for e in processes if e.stage == "stopping, start")
    weights = bootstrap(24, 50, 0)
    for name, low, high in (("rloo", 1, 1), ("vine", 1, 1), ("turn_index", -1, 0)):
        found = score_rule(get_component("credit", name).build({}), true_batch, weights).figures
        assert low - 1e-9 <= found["expected_cosine"][0] <= high + 1e-9


def test_intervals_widen_with_fewer_groups() -> None:
    rule = get_component("credit", "rloo").build({})
    few, many = (next(iter(process_batches(n, 6, 2, seed=0))) for n in (8, 200))
    widths = [
        np.ptp(np.quantile(score_rule(rule, e, bootstrap(n, 200, 0)).figures["correlation"], [0.025, 0.975]))
        for e, n in ((few, 8), (many, 200))
    ]
    assert widths[0] > 2 * widths[1]


# --- the bench ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_rule_is_scored_or_left_out_with_the_reason() -> None:
    report = credit_quality(["shop/quick"], ["mix:demonstrator=1,random=1"], scale=TINY._replace(size=8))
    names = {entry.name for entry in components("credit")}
    assert "tree" in report.left_out["shop/quick"]
    assert "tree" not in report.left_out["shop/quick, trees"]
    for source in ("processes", "shop/quick", "shop/quick, trees"):
        scored = {score.rule.name for score in report.of(source)}
        assert scored | {*report.left_out[source]} == names
        assert {"rloo", "vine", "gae", "gigpo"} <= scored
        assert all(missing for missing in report.left_out[source].values())
    assert {s.rule.name for s in report.of("shop/quick")} >= {"arena", "ppr", "e_grpo"}, "gold is their judge"
    vine = next(score for score in report.of("shop/quick") if score.rule.name == "vine")
    assert vine.extra_steps > 1
    assert all(s.extra_steps == 0 for s in report.scores if "fork_value" not in s.rule.needs)
    text = json.dumps(report.to_json(), allow_nan=False)
    assert json.loads(text)["batches"][-1]["stage"] == "mix:demonstrator=1,random=1"


def test_stages_stand_side_by_side(tmp_path: Path) -> None:
    stages = ["mix:demonstrator=0.2,random=0.8", "mix:demonstrator=0.8,random=0.2"]
    report = credit_quality(
        ["shop/quick"], stages, rules=["rloo", "vine"], processes=False, trees=False, scale=TINY
    )
    rows = _stage_rows(report, "shop/quick")
    assert [list(row) for row in rows] == [["name", *stage_labels(stages)]] * 2
    assert len(set(stage_labels(stages))) == 2
    drawn = draw_stages(report, tmp_path / "stages.svg")
    assert drawn is not None
    assert "vine" in drawn.read_text() or "<svg" in drawn.read_text()
    assert [true_batch["stage"] for true_batch in report.to_json()["batches"]] == stages


def test_checkpoints_of_a_run_are_stages(tmp_path: Path) -> None:
    for step in (0, 5, 10, 15, 20, 25, 30):
        (tmp_path / f"checkpoints/step-{step:06d}/model").mkdir(parents=True)
    assert stage_labels(checkpoints(tmp_path)) == ["step-000000", "step-000010", "step-000020", "step-000030"]
    with pytest.raises(TurnwiseError, match="no checkpoints"):
        checkpoints(tmp_path / "nothing")


def test_the_same_seed_gives_the_same_figures() -> None:
    def figures(seed: int) -> list:
        report = credit_quality(
            ["shop/quick"],
            ["mix:demonstrator=1,random=1"],
            rules=["rloo", "vine"],
            trees=False,
            scale=TINY,
            seed=seed,
        )
        return [score.to_json()["figures"] for score in report.scores]

    assert figures(3) == figures(3)
    assert figures(3) != figures(4)


def test_an_unknown_rule_is_named() -> None:
    with pytest.raises(NotFoundError, match="rloo"):
        credit_quality(rules=["rlo"], scale=TINY)


def test_saved_episodes_get_their_credit_anew(tmp_path: Path) -> None:
    groups = [
        run_episodes(requests, mixture("demonstrator=1,random=1"))
        for requests in plan_groups("shop/quick", 4, 4, 2)
    ]
    given_BK = return_to_go(collate_turns(groups)).tolist()
    with EpisodeLog(tmp_path / "episodes.jsonl.zst") as log:
        rows = iter(given_BK)
        for number, group in enumerate(groups):
            for episode in group:
                own = {"agent": next(rows)[: len(episode.trajectory.turns)]}
                log.append(episode, update=0, group=number, advantages=own)
    found = swap_credit(tmp_path / "episodes.jsonl.zst")
    by_name = {row["rule"]: row for row in found.rules}
    assert by_name["return_to_go"]["correlation_with_logged"] == 1.0
    assert by_name["grpo"]["correlation_with_logged"] < 1.0
    assert "vine" in found.left_out
    for episode in found.episodes:
        for turn in episode["turns"]:
            assert turn["credit"]["return_to_go"] == pytest.approx(turn["logged"], abs=1e-5)
    with pytest.raises(TurnwiseError, match="no episode log"):
        swap_credit(tmp_path / "nothing.jsonl")


class Work(TorchDispatchMode):
    """Counts what a call does, which a busy machine does not change: elements that torch writes, and operations."""

    done = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        self.done += 1000 + sum(leaf.numel() for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor))
        return out


def work(call: Callable[[], object]) -> float:
    with Work() as counted:
        call()
    return counted.done


def test_every_rule_costs_a_small_part_of_an_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credit, "_lap", work)
    figures = credit.bench_credit(repeats=1, workload=TrainWorkload(tasks=4, group=4))
    assert {entry.name for entry in components("credit")} < {*figures}
    assert all(figure.value > 0 for figure in figures.values())
    assert figures["largest_share"].value < 1
