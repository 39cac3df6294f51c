"""What `turnwise explain --bias` says of whole recipes: where a rule is unbiased and the recipe around it is not."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from typing import Any

import pytest
import torch

from turnwise.cli.recipe_bias import bias_file, bias_of, changes, composition
from turnwise.errors import RecipeError
from turnwise.registry import Component, components
from turnwise.trainers.check.losses import batch_for, made
from turnwise.trainers.core import TokenBatch, TokenLoss, WholeBatch, WholeLoss
from turnwise.trainers.kit.toy_batches import whole_batch
from turnwise.trainers.lab.exact import compare, paths, step_gradient
from turnwise.trainers.lab.first_step import Composition, MeasuredLoss, expected_step
from turnwise.trainers.lab.processes import CHAIN, PROCESSES, lopsided, signals
from turnwise.trainers.lab.recipe_bias import (
    ProcessBias,
    pulls_alone,
    recipe_bias,
    shown,
    step_of_groups,
)
from turnwise.trainers.recipe.load import check_recipe, load_recipe
from turnwise.trainers.recipe.phases import phases_of

EXACT = 1e-6
SIZE = 4


def found(size: int = SIZE, **keys: Any) -> dict[str, ProcessBias]:
    recipe = check_recipe({"suite": "calc/easy", "model": {"scratch": {}}, **keys})
    return recipe_bias(composition(recipe), size, changes(recipe))


def parts(**keys: Any) -> Composition:
    return composition(check_recipe({"suite": "calc/easy", "model": {"scratch": {}}, **keys}))


def degrees(**keys: Any) -> dict[str, float]:
    return {name: bias.degrees for name, bias in found(**keys).items() if bias.degrees is not None}


@pytest.mark.slow
@pytest.mark.parametrize("keys", [{}, {"credit": "rloo"}, {"credit": "dr_grpo"}, {"credit": "gae"}], ids=str)
def test_the_default_recipe_is_exact_with_its_filter_and_its_denominator(keys: dict[str, Any]) -> None:
    for name, bias in found(**keys).items():
        assert bias.degrees is not None, name
        assert bias.degrees < EXACT, (name, bias)
        assert bias.scale == pytest.approx(1), (name, bias)


def test_dropping_groups_of_equal_returns_was_biased() -> None:
    """The filter that the trainer used to have: returns are compared, where the rule looks at single turns."""

    def by_returns(batch: Any, credit: Any) -> torch.Tensor:
        R_B, G = batch.return_B, int(batch.group_B.max()) + 1
        low, high = (
            R_B.new_zeros(G).scatter_reduce(0, batch.group_B, R_B, f, include_self=False)
            for f in ("amin", "amax")
        )
        return (high - low > 1e-6)[batch.group_B].float()

    assert recipe_bias(parts()._replace(filter=by_returns), SIZE)["puzzle"].degrees > 3  # pyright: ignore


def test_grpo_is_exact_on_each_task_of_two_outcomes_and_not_on_two_tasks() -> None:
    given = degrees(credit="grpo")
    assert given["puzzle"] < EXACT
    assert given["two tasks"] > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys",
    [
        {"reduce": "token_mean"},
        {"credit": {"name": "return_to_go", "discount": 0.9}},
        {"credit": "rloo", "shape": ["whiten"], "filter": "any"},
    ],
    ids=str,
)
def test_options_denominators_and_shapes_are_seen(keys: dict[str, Any]) -> None:
    assert max(degrees(**keys).values()) > 0.3


@pytest.mark.slow
def test_learned_signals_are_also_shown_wrong_and_others_are_not_measurable() -> None:
    gae = found(credit={"name": "gae", "lam": 0.5})
    assert all((gae[name].degrees or 0.0) < EXACT for name in ("stopping", "two tasks"))
    assert all((gae[name].perturbed_degrees or 0.0) > 0.1 for name in ("stopping", "two tasks"))
    assert gae["puzzle"].exact_signals == ()
    assert all("progress" in bias.not_measurable for bias in found(credit="spa").values())
    tree = found(credit="tree", rollout={"strategy": "tree"})
    assert all("strategy tree" in bias.not_measurable for bias in tree.values())


def test_rules_for_episodes_drawn_apart_are_refused_where_episodes_share_turns() -> None:
    for rule in ("rloo", "return_to_go", "siblings", "dr_grpo"):
        with pytest.raises(RecipeError, match="share turns"):
            found(credit=rule, rollout={"strategy": "tree"})


def test_what_was_computed_is_kept_by_parts_and_options(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keys: dict[str, Any] = {"suite": "calc/easy", "model": {"scratch": {}}, "rollout": {"group_size": 2}}
    recipe = check_recipe(keys)
    assert bias_of(recipe, compute=False) is None
    first = bias_of(recipe, compute=True)
    assert bias_of(check_recipe({**keys, "seed": 9}), compute=False) == first
    assert bias_of(check_recipe({**keys, "credit": "rloo"}), compute=False) is None
    bias_file(recipe).write_text('{"damaged": 1}')
    assert bias_of(recipe, compute=False) is None
    assert bias_of(recipe, compute=True) == first
    monkeypatch.setattr("turnwise.cli.recipe_bias.code_state", lambda: "another formula")
    assert bias_of(recipe, compute=False) is None


# --- the losses ---------------------------------------------------------------------------------------------------

LOSSES = components("loss")
FEW = [process for process in PROCESSES if process.name in ("chain", "stopping", "chance", "puzzle")]
TEACHER = {"name": "model", "path": "/m"}
TOP = {**TEACHER, "top": 8}


@functools.cache
def steps(loss: str, of_turns: bool = True) -> dict[str, torch.Tensor]:
    """The expected first step of a loss by itself, by process, under a rule of turns that is not exact, or one of trajectories."""
    credit = {"name": "return_to_go", "discount": 0.9} if of_turns else "dr_grpo"
    rule = parts(loss=[loss], credit=credit, filter="any", correction="none")
    given = {process.name: paths(process, lopsided(process)) for process in FEW}
    return {name: step_of_groups(rule, p, 2, signals(p)) for name, p in given.items()}


def factors(entry: Component) -> set[float]:
    """By how much the slope of the loss with its defaults exceeds −A, on batches that have nothing to do with the processes.

    Not a number where they differ in anything but a factor.
    """
    _, loss = next(made(entry))
    found: set[float] = set()
    for seed in range(4):
        batch = batch_for(entry, seed)
        value, leaves = loss(batch)[0].sum(), (batch.logp_RT, batch.entropy_RT)
        if not value.requires_grad:
            return {math.nan}
        slopes = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
        weight_RT = batch.weight_RT if isinstance(batch, WholeBatch) else batch.mask_RT
        plain_RT = -batch.advantage_RT * weight_RT
        factor = ((slopes[0] * plain_RT).sum() / (plain_RT**2).sum()).item()
        alike = not slopes[1].any() and torch.allclose(slopes[0], factor * plain_RT)
        found.add(round(factor, 6) if alike else math.nan)
    return found


@pytest.mark.parametrize("entry", LOSSES, ids=lambda entry: entry.name)
def test_every_loss_is_measured_by_its_own_slope(entry: Component) -> None:
    """−A: clip's step to the digit. Any other slope: not that step, or said to be not measurable; never another loss's angle."""
    if any("teacher" in need for need in entry.needs):
        teacher = TOP if "teacher_top" in entry.needs else TEACHER
        biases = found(2, loss=["clip", entry.name], teacher=teacher, correction="none")
        assert all(bias.degrees is None and bias.scale is None for bias in biases.values())
        assert all(f"loss {entry.name} needs" in bias.not_measurable[0] for bias in biases.values())
        return
    of_turns = entry.name != "rover"  # which asks for one outcome per trajectory
    own, clip = (steps(name, of_turns) for name in (entry.name, "clip"))
    known = factors(entry)
    if entry.slope == "-A":
        assert known == {1.0}
    if len(known) == 1 and known != {math.nan}:
        (factor,) = known
        assert all(torch.allclose(own[p], factor * clip[p], rtol=1e-9, atol=1e-15) for p in clip)
    else:
        bent = [own[p].norm() == 0 or compare(own[p], clip[p]).angle > 1e-3 for p in clip]
        assert any(bent), "the angle of a policy gradient is claimed of a loss that is none"


def test_a_step_of_plain_policy_gradients_is_the_sum_of_advantages_times_scores() -> None:
    """The losses' way and that of credit rules alone (trainers/lab/exact.py) come to one step."""
    rule = parts(credit="grpo", filter="any", reduce={"name": "fixed_length", "length": 1}, loss=["nll"])
    for process in FEW:
        p = paths(process, lopsided(process))
        index_Cn = torch.tensor([*itertools.combinations_with_replacement(range(len(p.reward_NK)), 3)])
        plain = step_gradient(rule.credit, p, index_Cn, 3, signals(p)).mean_SA
        assert torch.allclose(expected_step(rule, p, index_Cn, 3, signals(p)), plain, atol=1e-12)


def test_filters_weigh_advantages_and_no_other_pull() -> None:
    def weighing(batch: Any, credit: Any) -> torch.Tensor:
        return 0.5 + 1.5 * (batch.return_B > 0.5)

    same: dict[str, Any] = {
        "credit": "grpo",
        "filter": "any",
        "reduce": {"name": "fixed_length", "length": 1},
    }
    rule, entropy = (parts(loss=[loss], correction="none", **same) for loss in ("nll", "entropy"))
    p = paths(CHAIN, lopsided(CHAIN))
    index_Cn = torch.tensor([*itertools.combinations_with_replacement(range(len(p.reward_NK)), 3)])

    def step(of: Composition) -> torch.Tensor:
        return expected_step(of, p, index_Cn, 3, signals(p))

    def weighed(batch: Any) -> Any:
        return rule.credit(batch) * weighing(batch, None)[:, None]  # pyright: ignore[reportOperatorIssue]

    by_rule = step_gradient(weighed, p, index_Cn, 3, signals(p)).mean_SA
    assert torch.allclose(step(rule._replace(filter=weighing)), by_rule, atol=1e-12)
    assert not torch.allclose(step(rule), by_rule, atol=1e-3)
    assert torch.allclose(step(entropy._replace(filter=weighing)), step(entropy), atol=1e-12)


def by_hand(loss: str, filter: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The expected first step on `chain` in groups of 2, and the slope of the loss's value over ordered pairs, by differences.

    For losses without a stopped gradient: old log-probabilities and the reference stay where the policy was.
    """
    rule = parts(
        loss=[loss],
        credit="dr_grpo",
        filter=filter,
        correction="none",
        reduce={"name": "fixed_length", "length": 8},
    )
    p = paths(CHAIN, lopsided(CHAIN))
    ((_, make, _, whole, _),) = rule.losses
    assert whole
    start_SA, chance_N = p.logits_SA.detach(), p.probability_N.detach().tolist()

    def value(logits_SA: torch.Tensor) -> float:
        now, old = (x.log_softmax(-1) for x in (logits_SA, start_SA))
        total = 0.0
        for i, j in itertools.product(range(len(chance_N)), repeat=2):
            R, steps = p.return_N[[i, j]], [(p.state_NK[k], p.action_NK[k]) for k in (i, j)]
            if filter == "informative" and R[0] == R[1]:
                continue
            logp, before = ([x[s, a].tolist() for s, a in steps] for x in (now, old))
            entropy = [(-(now.exp() * now).sum(-1))[s].tolist() for s, _ in steps]
            A = (R - R.mean()).tolist()
            batch = whole_batch(
                logp, [[a] * len(row) for a, row in zip(A, logp, strict=True)], old_logp=before,
                reference_logp=before, entropy=entropy, reward=[p.reward_NK[k].tolist() for k in (i, j)],
                success=[int(r >= 1) for r in R], turn=[[0, 1]] * 2,
            )  # fmt: skip
            batch = dataclasses.replace(batch, weight_RT=batch.mask_RT / 16)
            total += chance_N[i] * chance_N[j] * make()(batch).loss.item()
        return total

    slope_SA = torch.zeros_like(start_SA)
    for s, a in itertools.product(*map(range, start_SA.shape)):
        off = torch.zeros_like(start_SA)
        off[s, a] = 1e-5
        slope_SA[s, a] = (value(start_SA + off) - value(start_SA - off)) / 2e-5
    index_C2 = torch.tensor([*itertools.combinations_with_replacement(range(len(chance_N)), 2)])
    return expected_step(rule, p, index_C2, 2, signals(p)), -slope_SA


@pytest.mark.parametrize("filter", ["any", "informative"])
@pytest.mark.parametrize("loss", ["dpo", "ipo", "disco", "cpl", "prdp", "pacs", "gspo", "luspo"])
def test_losses_of_the_whole_have_the_slope_of_their_value_over_all_ordered_batches(
    loss: str, filter: str
) -> None:
    step_SA, slope_SA = by_hand(loss, filter)
    assert slope_SA.norm() > 1e-6
    assert torch.allclose(step_SA, slope_SA, rtol=1e-5, atol=1e-8)


@pytest.mark.slow
def test_what_the_audit_found_is_told_now() -> None:
    """Of these, each by itself, 0 degrees were claimed on every process, and DPO had the angle of GRPO."""
    for loss in ("disco", "dpo", "luspo", "one_token", "high_entropy"):
        angles = [bias.degrees for bias in found(2, loss=[loss], correction="none").values()]
        assert max(angle for angle in angles if angle is not None) > 1, loss
    clip, dpo = (found(3, loss=[loss], correction="none", credit="grpo") for loss in ("clip", "dpo"))
    assert all(
        abs((dpo[name].degrees or 0) - (clip[name].degrees or 0)) > 0.1 for name in ("chain", "stopping")
    )
    assert dpo["chain"].objectives == ("dpo",)
    assert "loss dpo pulls where no advantage does" in "\n".join(shown(dpo))
    assert "the reference is the policy itself" in "\n".join(shown(dpo))


@pytest.mark.slow
def test_no_step_and_a_loss_without_its_teacher_are_no_zero_degrees() -> None:
    for loss in ("kl", "siren"):
        biases = found(2, loss=[loss], correction="none")
        assert all(bias.degrees is None for bias in biases.values())
        assert {bias.not_measurable for bias in biases.values()} == {("the expected first step is 0",)}
    taught = found(2, loss=["clip", {"name": "distill", "weight": 0.1}], teacher=TOP)
    assert all(bias.degrees is None for bias in taught.values())
    assert all(bias.instead == {"without loss distill": 0.0} for bias in taught.values())
    assert "0.0° without loss distill" in "\n".join(shown(taught))
    alone = found(2, loss=["distill"], teacher=TOP, correction="none")
    assert all(bias.degrees is None and not bias.instead for bias in alone.values())


@pytest.mark.slow
def test_an_added_objective_is_in_the_angle_and_what_it_adds_is_said() -> None:
    plain, more = (found(2, loss=["clip", {"name": "entropy", "weight": w}]) for w in (1e-9, 0.1))
    for name in plain:
        assert (plain[name].degrees or 0) < 0.01
        assert (more[name].degrees or 0) > 0.5
        assert more[name].instead == {"without loss entropy": pytest.approx(0, abs=EXACT)}
    assert more["chain"].objectives == ("entropy",)
    assert "0.0° without loss entropy" in "\n".join(shown(more))


@pytest.mark.slow
def test_options_that_cost_exactness_are_named() -> None:
    off = found(
        2,
        credit={"name": "return_to_go", "discount": 0.9},
        loss=["clip", {"name": "entropy", "weight": 0.05}],
    )
    with_own = "with credit return_to_go(discount=1.0)"
    both = f"without loss entropy and {with_own}"
    assert all({*bias.instead} == {"without loss entropy", with_own, both} for bias in off.values())
    assert all(bias.instead[both] < EXACT for bias in off.values())
    assert (off["chain"].degrees or 0) > off["chain"].instead[with_own] > 0.5
    assert all(not bias.instead for bias in found(2, reduce={"name": "fixed_length", "length": 9}).values())


@pytest.mark.slow
def test_losses_that_nobody_knows_are_measured() -> None:
    def doubtful(batch: TokenBatch) -> TokenLoss:
        """The slope of unlikely tokens alone."""
        return TokenLoss(-batch.advantage_RT * batch.logp_RT * (batch.old_logp_RT < -0.7), {})

    def best_of_group(batch: WholeBatch) -> WholeLoss:
        """Imitates what earned most."""
        best_B = batch.return_B >= batch.return_B.max()
        return WholeLoss(-(batch.weight_RT * batch.logp_RT * best_B[batch.trajectory_R][:, None]).sum(), {})

    def begins(batch: TokenBatch) -> TokenLoss:
        """The slope of the first token of each turn alone."""
        first_RT = batch.turn_RT != torch.roll(batch.turn_RT, 1, 1)
        return TokenLoss(-batch.advantage_RT * batch.logp_RT * first_RT, {})

    def of(loss: Any, whole: bool = False) -> ProcessBias:
        stranger = MeasuredLoss("theirs", lambda: loss, whole=whole)
        return recipe_bias(parts(correction="none")._replace(losses=[stranger]), 2)["chain"]

    assert of(begins).not_measurable == ("loss theirs looks within turns, and here each has one token",)
    assert (of(doubtful).degrees or 0) > 1
    assert not of(doubtful).objectives
    assert (of(best_of_group, whole=True).degrees or 0) > 1
    assert of(best_of_group, whole=True).objectives == ("theirs",)


def test_which_losses_pull_alone_is_found_by_trying_them() -> None:
    own = {loss.name for entry in LOSSES for loss in parts_of(entry) if pulls_alone(loss)}
    assert {"dpo", "disco", "entropy", "kl", "awr", "nft", "distill"} <= own
    assert own.isdisjoint({entry.name for entry in LOSSES if entry.slope != "own"})
    assert own.isdisjoint({"high_entropy", "bpo", "clip_cov"})


def parts_of(entry: Component) -> Any:
    teacher = {"teacher": TOP if "teacher_top" in entry.needs else TEACHER}
    teacher = teacher if any("teacher" in need for need in entry.needs) else {}
    credit = "dr_grpo" if entry.name == "rover" else "return_to_go"
    return parts(loss=[entry.name], correction="none", credit=credit, **teacher).losses


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"source": [{"name": "stored", "path": "/log"}]}, "source stored"),
        ({"guide": [{"name": "prefix", "length": 0.5}]}, "guide prefix"),
        (
            {"source": [{"name": "stored", "path": "/log", "join": True}], "loss": ["dpo"]},
            "source stored: loss dpo",
        ),
    ],
    ids=str,
)
def test_help_that_cannot_be_listed_is_not_measurable(
    keys: dict[str, Any], why: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recipe = check_recipe(
        {
            "suite": "calc/easy",
            "model": {"scratch": {}},
            "correction": "none",
            "rollout": {"group_size": 2},
            **keys,
        }
    )
    biases = bias_of(recipe, compute=True)
    assert biases is not None
    assert all(bias.degrees is None and bias.not_measurable[0].startswith(why) for bias in biases.values())
    assert all(f"without {why.partition(':')[0]}" in bias.instead for bias in biases.values())
    assert bias_of(recipe, compute=False) == biases


@pytest.mark.slow
def test_shipped_recipes_are_exact_or_it_is_said_why() -> None:
    from turnwise.trainers.recipe.load import recipe_names

    for name in recipe_names():
        for phase in phases_of(load_recipe(name)):
            recipe = phase.recipe
            for process, bias in recipe_bias(composition(recipe), 2, changes(recipe)).items():
                at = f"{name} {phase.name} {process}: {bias}"
                assert bias.degrees is not None, at
                exact = min([bias.degrees, *bias.instead.values()]) < 0.001
                assert exact or bias.objectives == tuple(loss.name for loss in recipe.loss), at


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "part", "unbiased"),
    [
        ({"guide": [{"name": "prefix", "where": "all"}]}, "guide/prefix", True),
        ({"guide": ["hint"], "correction": "none"}, "guide/hint", False),
        ({"source": [{"name": "demonstrations", "weight": 0.5}]}, "source/demonstrations", True),
        (
            {
                "loss": ["clip", {"name": "distill", "weight": 0.1}],
                "teacher": {"name": "model", "path": "/m", "top": 8},
                "filter": "any",
            },
            "loss/distill",
            True,
        ),
    ],
    ids=str,
)
def test_help_is_shown_beside_what_it_declares_and_is_kept(
    keys: dict[str, Any], part: str, unbiased: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recipe = check_recipe(
        {"suite": "calc/easy", "model": {"scratch": {}}, "rollout": {"group_size": SIZE}, **keys}
    )
    computed = bias_of(recipe, compute=True)
    assert computed is not None
    angles = [bias.help[part] for name, bias in computed.items() if name != "two tasks"]
    assert max(to_return for to_return, _ in angles) > 3
    assert (max(declared for _, declared in angles) < EXACT) is unbiased
    if part.startswith("loss"):
        assert all(bias.instead["without loss distill"] < EXACT for bias in computed.values())
    else:
        assert all(bias.degrees is not None and bias.degrees < EXACT for bias in computed.values())
    assert bias_of(recipe, compute=False) == computed
    text = "\n".join(shown(computed))
    assert f"with {part}" in text
