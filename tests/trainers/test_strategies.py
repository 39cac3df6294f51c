"""Rollout strategies: forks start where their parents were, and trees weigh as the policy plays."""

import asyncio
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from process_worlds import Tabular, register_processes, steps, task_of

from turnwise.agents.core import History, Outcome, Reply
from turnwise.agents.rollout import Request
from turnwise.errors import RecipeError, TurnwiseError
from turnwise.registry import get_component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.credit.tree import tree as tree_credit
from turnwise.trainers.credit.vine import vine as vine_credit
from turnwise.trainers.lab.exact import Process, paths
from turnwise.trainers.lab.processes import CHAIN, CHANCE, PUZZLE, STOPPING, lopsided
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups, try_out
from turnwise.trainers.strategy.tree import tree
from turnwise.trainers.strategy.vine import vine

register_processes()


def grow(strategy, process: Process, groups: int, size: int, **options):
    """Groups of a strategy, and what they cost."""
    runner = RolloutRunner(Tabular(process), as_is)
    plan = [
        [Request(task_of(process), derive_rng("test", g, i).getrandbits(60)) for i in range(size)]
        for g in range(groups)
    ]
    return asyncio.run(strategy(runner, plan, **options)), runner.cost


# --- forks ----------------------------------------------------------------------------------------


def test_a_fork_begins_with_its_parents_turns_and_tokens() -> None:
    groups, _ = grow(tree, STOPPING, 40, 4, at=(1,))
    for group in groups:
        for parent in group[:2]:
            for child in group[2:]:
                shared = [
                    (a, b)
                    for a, b in zip(parent.trajectory.turns, child.trajectory.turns, strict=False)
                    if a.signals["edge"] and a.signals["edge"] == b.signals["edge"]
                ]
                assert all(a.reply is b.reply and a.observation == b.observation for a, b in shared)
    assert {turn.signals["edge"] for g in groups for e in g for turn in e.trajectory.turns} == {0.0, 1.0, 2.0}


@pytest.mark.slow
def test_vine_values_are_the_values_of_the_states() -> None:
    """Mean over many forks against the exact value, within what chance allows."""
    for process in (CHANCE, STOPPING):
        p = paths(process, lopsided(process))
        exact = {
            (int(s), k): v
            for states, values, mask in zip(p.state_NK, p.value_NK, p.mask_NK, strict=True)
            for k, (s, v, m) in enumerate(zip(states, values.tolist(), mask, strict=True))
            if m
        }
        groups, cost = grow(vine, process, 4, 2, forks=200)
        for episode in (e for g in groups for e in g):
            for k, ((state, _), turn) in enumerate(
                zip(steps(episode), episode.trajectory.turns, strict=True)
            ):
                off = abs(turn.signals["fork_value"] - exact[state, k])
                assert off < 5 * turn.signals["fork_error"] + 1e-9
        assert cost.fork_steps > 100 * (cost.steps - cost.fork_steps)


def test_vine_changes_no_episode_and_its_forks_are_counted() -> None:
    plain, cost = grow(chain, CHANCE, 3, 4)
    measured, more = grow(vine, CHANCE, 3, 4, forks=2)
    assert [steps(e) for g in measured for e in g] == [steps(e) for g in plain for e in g]
    assert more.steps - more.fork_steps == cost.steps
    assert more.fork_tokens == 2 * more.fork_steps, "one token is read and one sampled per turn"


def test_measured_signals_reach_the_credit_rule() -> None:
    groups, _ = grow(vine, CHAIN, 2, 3, forks=8)
    batch = collate(groups).turns
    advantage_BK = vine_credit(batch)
    first = groups[0][0].trajectory.turns
    gain = first[0].reward + first[1].signals["fork_value"] - first[0].signals["fork_value"]
    assert advantage_BK[0, 0].item() == pytest.approx(gain, abs=1e-6)


def test_where_no_fork_comes_through_the_episode_is_a_fault() -> None:
    request = Request(task_of(CHAIN), 5)

    class Fragile(Tabular):
        async def act(self, history: History) -> Reply:
            if len(history.turns) == 1 and history.seed != request.seed:
                raise RuntimeError("the engine fell over")
            return await super().act(history)

    runner = RolloutRunner(Fragile(CHAIN), as_is)
    [[episode]] = asyncio.run(vine(runner, [[request]], forks=2))
    assert episode.outcome is Outcome.INFRA_ERROR
    assert "fork" in episode.error


# --- trees ----------------------------------------------------------------------------------------


def moments(
    process: Process, size: int, groups: int, at: tuple[int, ...]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and standard error over groups of (1/size)·Σ A·∇log π, each (S, A)."""
    p = paths(process, lopsided(process))
    p_SA = p.logits_SA.detach().softmax(-1)
    grown, _ = grow(tree, process, groups, size, at=at)
    updates = []
    for group in grown:
        advantage_BK = tree_credit(collate([group]).turns)
        update_SA = torch.zeros_like(p_SA)
        for b, episode in enumerate(group):
            for k, (s, a) in enumerate(steps(episode)):
                score_A = -p_SA[s]
                score_A[a] += 1
                update_SA[s] += advantage_BK[b, k].item() * score_A / size
        updates.append(update_SA)
    stacked = torch.stack(updates)
    return stacked.mean(0), stacked.std(0) / len(updates) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("process", [CHAIN, STOPPING, CHANCE], ids=lambda p: p.name)
def test_the_tree_rule_is_unbiased_on_trees(process: Process) -> None:
    """Also where episodes end before they branch; within 4 standard errors of the exact gradient."""
    exact_SA = paths(process, lopsided(process)).policy_gradient()
    mean_SA, error_SA = moments(process, 4, 1500, (1,))
    assert ((mean_SA - exact_SA).abs() < 4 * error_SA + 1e-9).all(), (mean_SA, exact_SA, error_SA)
    assert error_SA.max() < 0.25 * exact_SA.abs().max(), "too few groups to see anything"


@pytest.mark.slow
def test_weights_undo_the_branching() -> None:
    """Weighted leaves take each way as often as the policy does; unweighted ones do not where it may stop."""
    p = paths(STOPPING, lopsided(STOPPING))
    stops = sum(
        q for q, length in zip(p.probability_N.tolist(), p.mask_NK.sum(1), strict=True) if length == 1
    )
    groups, _ = grow(tree, STOPPING, 1500, 4, at=(1,))
    leaves = [e for g in groups for e in g]
    weight = [e.trajectory.turns[0].signals["leaf_weight"] for e in leaves]
    short = [len(e.trajectory.turns) == 1 for e in leaves]
    share = sum(w for w, s in zip(weight, short, strict=True) if s) / sum(weight)
    assert share == pytest.approx(stops, abs=0.04)
    assert sum(short) / len(short) < stops - 0.08
    assert sum(weight) == pytest.approx(4 * len(groups))


def test_two_branchings_make_four_leaves_of_each_root() -> None:
    groups, cost = grow(tree, CHAIN, 2, 8, at=(0, 1))
    assert [len(group) for group in groups] == [8, 8]
    assert {t.signals["leaf_weight"] for g in groups for e in g for t in e.trajectory.turns} == {1.0}
    edges = Counter(e.trajectory.turns[0].signals["edge"] for e in groups[0])
    assert sorted(edges.values()) == [2, 2, 2, 2], "of two roots, each first turn was sampled in two ways"
    assert cost.steps == 2 * (2 * 2 + 2 * 2 + 4 * 1)


def test_entropy_branches_where_the_policy_was_least_sure() -> None:
    groups, _ = grow(tree, CHAIN, 20, 4, at="entropy")
    for group in groups:
        for parent in group[:2]:
            logps = [turn.reply.logprobs[0] for turn in parent.trajectory.turns]
            forked = [turn.signals["edge"] > 0 for turn in parent.trajectory.turns]
            assert forked == ([True, False] if logps[1] < logps[0] else [False, False])


@pytest.mark.slow
def test_uncertainty_branches_where_returns_differ_the_most() -> None:
    """On a puzzle of 0 or 1 the spread from a state of value v is √(v(1 − v)), so the choice is known."""
    p = paths(PUZZLE, lopsided(PUZZLE))
    value = {}
    for n in range(len(p.mask_NK)):
        for k in range(int(p.mask_NK[n].sum())):
            value[k, int(p.state_NK[n, k])] = p.value_NK[n, k].item()
    groups, cost = grow(tree, PUZZLE, 12, 4, at="uncertainty", probes=300)
    assert cost.fork_steps > 12 * 300
    right = 0
    for parent in (e for group in groups for e in group[:2]):
        turns = parent.trajectory.turns
        states = [0, *(int(t.observation[-1].content) for t in turns[1:])]
        unsure = [value[k, s] * (1 - value[k, s]) for k, s in enumerate(states)]
        branched = sum(turn.signals["edge"] > 0 for turn in turns)  # turns before the branch are shared
        right += abs(unsure[branched] - max(unsure)) < 0.03  # what 300 probes can tell apart
    assert right >= 22, "of 24"


def test_what_makes_no_tree_is_refused() -> None:
    for size, options, message in (
        (4, {"at": "uncertainty", "probes": 1}, "spread"),
        (4, {"at": (1, 2)}, "at least 8"),
        (8, {"at": (2, 1)}, "no tree"),
        (4, {"branches": 1}, "no tree"),
        (4, {"at": "entropy"}, "log-probabilities"),
    ):
        strategy = get_component("strategy", "tree").build(options)
        with pytest.raises(RecipeError, match=message):
            try_out(strategy, "scripted:gold", "shop/quick", groups=1, size=size)


def test_a_plan_is_the_same_each_time_it_is_made() -> None:
    def seeds(*names: int) -> Sequence[int]:
        return [r.seed for g in plan_groups("shop/quick", 2, 2, *names) for r in g]

    assert seeds(0, 1) == seeds(0, 1)
    assert len({*seeds(0, 1), *seeds(0, 2)}) == 8


# --- in a recipe ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"credit": "vine"}, "Set rollout.strategy: vine"),
        ({"credit": "tree"}, "Set rollout.strategy: tree"),
        ({"rollout.strategy": "vine"}, "no effect.*Use credit: vine"),
        ({"rollout.strategy": {"name": "tree", "at": [1, 2, 3]}, "credit": "tree"}, "at least 16"),
        ({"rollout.strategy": "vines"}, "vine"),
    ],
)
def test_a_strategy_that_does_not_fit_is_refused_when_the_recipe_is_read(changes, message) -> None:
    with pytest.raises(TurnwiseError) as refused:
        load_recipe("shop-quick", changes)
    assert re.search(message, f"{refused.value.cause} {refused.value.remedy}")


def test_a_recipe_with_a_strategy_and_its_options() -> None:
    changes = {"credit": "vine", "rollout.strategy.name": "vine", "rollout.strategy.forks": 2}
    recipe = load_recipe("shop-quick", changes)
    assert recipe.rollout.strategy.options == {"forks": 2}
    assert load_recipe("shop-quick").rollout.strategy.name == "chain"
