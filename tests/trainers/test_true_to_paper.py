"""Numbers of the formula book that recipes give, where several parts make a paper's method together."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turnwise.envs.core import EndReason
from turnwise.errors import RecipeError
from turnwise.registry import get_component
from turnwise.trainers.judge.epo_strategic import paid
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.toy_batches import episode, token_batch, turn_batch, whole_batch, with_calls
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.recipe.phases import phases_of
from turnwise.trainers.recipe.schema import Refill
from turnwise.trainers.run.collect import _is_informative
from turnwise.trainers.run.parts import build_parts
from turnwise.trainers.sampler.veripo import kept

SHOP = {"suite": "shop/quick", "model": {"path": "Qwen/Qwen3-0.6B"}}
SUPERHF = {
    "credit": {"name": "psr_nsr", "positive": 1, "negative": 0, "success": -1e9},
    "filter": {"name": "ranked", "keep": "best"},
    "loss": ["nll", {"name": "distill", "weight": 0.23}],
    "teacher": {"name": "reference", "top": 1 << 20},
}


def test_superhf_imitates_the_best_of_each_group_with_weight_1() -> None:
    """Row 178: also where all earned the same; by the default rule the best weighed its lead, 0.667, and ties nothing."""
    parts = build_parts(check_recipe({**SHOP, **SUPERHF}))
    batch = turn_batch([[0.1], [0.9], [0.4], [0.2], [0], [0]], [0] * 4 + [1] * 2)
    credit: Any = parts.credit(batch)
    assert (credit[:, 0] * parts.filter(batch, credit)).tolist() == [0, 1, 0, 0, 0.5, 0.5]


def test_a_judges_scores_reach_pure_beside_the_outcome() -> None:
    """Row 58: equal scores, one success; the outcome drowned in the smallest score (0.0006 for 1)."""
    parts = build_parts(
        check_recipe({**SHOP, "judge": "principles", "credit": {"name": "pure", "signal": "principle"}})
    )
    scores = {"principle": [[0.8, 0.2, 0.9]] * 2}
    credit: Any = parts.credit(turn_batch([[0, 0, 1], [0, 0, 0]], signals=scores))
    assert torch.allclose((credit[0] - credit[1]) / 2, torch.ones(3, dtype=credit.dtype))


def test_the_tokens_of_a_turn_bear_their_share_of_pures_baseline() -> None:
    """Row 58, token mode: turns of 4, 2, 4 and 5, 3, 4 tokens."""
    tokens = [[[0] * n for n in row] for row in ([4, 2, 4], [5, 3, 4])]
    scores = {"principle": [[0.9, -0.8, 0.5], [0.9, 0.8, 0.85]]}
    batch = turn_batch([[0, 0, -1], [0, 0, 0]], signals=scores, tokens=tokens)
    found = get_component("credit", "pure").build({"signal": "principle", "baseline": "token"})(batch)
    expected = [[-2.4950, -2.2170, -1.2780], [2.7940, 2.2263, 1.5811]]
    assert torch.allclose(found, torch.tensor(expected, dtype=found.dtype), atol=1e-4)


def test_a_judges_scores_reach_clip_and_delta() -> None:
    """Row 31: a recipe has one reward, which may ask for the signal itself."""
    recipe = check_recipe(
        {**SHOP, "judge": "principles", "reward": {"name": "clip_delta", "signal": "principle"}}
    )
    judged = with_signals(episode([0, 0, 0, 0]), [{"principle": p} for p in (0.8, 0.3, 0.6, 0.9)])
    paid = build_parts(recipe).reward([judged])[0].trajectory.turns
    assert [round(turn.reward, 6) for turn in paid] == [0.2, -0.2, 0.0, 0.0]


@pytest.mark.parametrize(
    ("solved", "counts"), [(0, False), (1, False), (2, True), (4, True), (7, False), (8, False)]
)
def test_an_update_refills_until_enough_groups_lie_in_the_band(solved: int, counts: bool) -> None:
    """Row 10: groups of eight by the share just solved; any group with a difference counted before."""
    band = {"low": 0.2, "high": 0.8}
    recipe = check_recipe(
        {
            **SHOP,
            "filter": {"name": "band", **band},
            "rollout": {"groups": 4, "refill": {"informative": 2, "most": 8, **band}},
        }
    )
    parts = build_parts(recipe)
    ends = [EndReason.SOLVED] * solved + [EndReason.FAILED] * (8 - solved)
    group = [episode([float(end is EndReason.SOLVED)], end=end) for end in ends]
    assert recipe.rollout.refill is not None
    assert _is_informative(recipe.rollout.refill, parts, group) is counts
    assert _is_informative(Refill(), parts, group) is (0 < solved < 8)
    batch = turn_batch([[float(i < solved)] for i in range(8)])
    assert set(parts.filter(batch, parts.credit(batch)).tolist()) == {float(counts)}


def test_a_guides_tokens_have_ppos_clip_on_the_whole_ratio_and_no_second_correction() -> None:
    """Row 134: log π −2 without the hint, −1.2 with it; A = −1.5 gives −1.2 without slope, where correction and clip gave −0.674."""
    told = {"name": "hint", "loss": ["told_clip"], "correction": "none"}
    parts = build_parts(check_recipe({**SHOP, "guide": [told]}))
    (term,) = parts.objective.by_source["guide/hint"].terms
    batch = token_batch([[-2, -2]], [[1.5, -1.5]], old_logp=[[-2, -2]], behaviour_logp=[[-1.2, -1.2]])
    loss: Any = term.loss(batch).loss_RT
    assert torch.allclose(loss, torch.tensor([[-0.6740, 1.2]], dtype=loss.dtype), atol=1e-4)
    (slope,) = torch.autograd.grad(loss.sum(), [batch.logp_RT])
    assert slope[0, 1] == 0
    for recipe in ({"guide": [{**told, "correction": "tis"}]}, {"loss": ["told_clip"]}):
        with pytest.raises(RecipeError, match=r"a second time(.|\n)*correction: none"):
            check_recipe({**SHOP, **recipe})


def test_a_judges_scores_are_paid_where_the_task_was_solved_alone() -> None:
    """Row 106: outcome and score (1, .8), (0, .9), (1, .3) with 1 for the form: 2.8, 1, 2.3."""
    paid = {"name": "from_signal", "form": "mean", "solved": True}
    reward = build_parts(check_recipe({**SHOP, "judge": "principles", "reward": paid})).reward
    group = [
        with_signals(
            episode(
                [0, won], parts={"format": [0.5, 0.5]}, end=EndReason.SOLVED if won else EndReason.FAILED
            ),
            [{"principle": score - 0.1}, {"principle": score + 0.1}],
        )
        for won, score in ((1, 0.8), (0, 0.9), (1, 0.3))
    ]
    assert [round(e.trajectory.total_reward, 6) for e in reward(group)] == [2.8, 1.0, 2.3]


PROBABILITIES = {
    "RLPR": {"reward": "own_probability", "filter": "rlpr", "credit": "grpo"},
    "VeriFree": {
        "reward": {
            "name": "own_probability",
            "signal": "verifree",
            "weight": 1,
            "format": 0,
            "answered": True,
        },
        "credit": "rloo",
        "signals": [{"name": "verifree", "tag": "<answer"}],
        "source": [{"name": "verifree", "tag": "<answer", "loss": ["verifree"]}],
    },
    "R3": {
        "reward": {"name": "own_probability", "signal": "r3", "weight": 1, "format": 0},
        "signals": [{"name": "r3", "propagate": 0.5, "length": 0.5}],
        "filter": {"name": "r3", "rank": "r3_rank", "top": 100},
    },
    "RAPO": {
        "loss": ["clip", {"name": "rapo", "weight": 0.001}],
        "signals": [{"name": "tempered_reference", "failure": 0.3}],
        "credit": "grpo",
    },
    "listener": {
        "reward": {
            "name": "own_probability",
            "signal": "listener",
            "weight": 0.5,
            "format": 1,
            "outcome": 0.5,
        }
    },
    "LaRe": {
        "reward": [{"name": "from_signal", "signal": "lare"}, {"name": "weighted", "weights": {"lare": 1}}],
        "signals": [{"name": "lare", "sampled": 2}],
    },
    "ORPO": {
        "reward": {"name": "from_signal", "signal": "orpo"},
        "signals": [{"name": "orpo", "penalty": "chi2"}],
    },
    "Lipschitz GAIL": {
        "reward": [{"name": "from_signal", "signal": "gail"}, {"name": "weighted", "weights": {"gail": 1}}],
        "signals": [{"name": "gail", "spectral": True}],
    },
    "HC-RLHF": {
        "reward": {"name": "from_signal", "signal": "hc_rlhf"},
        "signals": [{"name": "hc_rlhf", "limit": 0.05}],
    },
    "debate": {
        "judge": "debate",
        "reward": {
            "name": "own_probability",
            "signal": "debate",
            "weight": 5,
            "outcome": 0.5,
            "format": 0,
        },
    },
    "ThinkPRM": {
        "judge": {"name": "think_prm", "policy": "self", "chains": 8},
        "reward": [
            {"name": "from_signal", "signal": "think_prm", "form": "last"},
            {"name": "weighted", "weights": {"think_prm": 1}},
        ],
        "source": [{"name": "stored", "path": "chains/episodes.jsonl.zst", "solved": True}],
    },
    "SPCT": {
        "judge": "spct",
        "reward": {"name": "own_probability", "signal": "spct", "weight": 1, "format": 0},
    },
    "CausalRM": {
        "judge": "principles",
        "reward": {"name": "own_probability", "signal": "causal_rm", "weight": 1, "format": 0},
        "signals": [{"name": "causal_rm", "missed": 0.2, "false": 0.1}],
    },
    "RLPT": {
        "judge": "rlpt",
        "reward": {"name": "own_probability", "signal": "goes_on", "weight": 1, "format": 0},
    },
    "URPO": {
        "judge": "urpo",
        "reward": {"name": "own_probability", "signal": "self_score", "weight": 1, "format": 0},
        "credit": "grpo",
    },
    "BMAS": {"reward": {"name": "own_probability", "signal": "bmas", "weight": 1, "format": 0}},
    "milestones": {"reward": {"name": "milestones", "weight": 0.2}},
    "GRPO-CARE": {"reward": "care", "signals": [{"name": "care", "decay": 0.99, "every": 5}]},
    "RLP": {"credit": {"name": "rlp", "weight": 0.1, "outcome": 1}},
    "DRM": {
        "credit": {"name": "drm", "confidence": "thought_logp", "length": "thought_tokens"},
        "judge": ["rlbff", "principles"],
    },
    "Shop-R1": {"reward": {"name": "from_signal", "signal": "self_certainty", "weight": 0.005}},
    "RLBFF": {
        "judge": {"name": "rlbff", "policy": "self", "form": "chance", "principles": ["It asks first."]},
        "reward": {"name": "from_signal", "signal": "rlbff"},
    },
    "GRPO-CSV": {
        "judge": "csv",
        "reward": {"name": "own_probability", "signal": "csv", "weight": 0.5, "format": 1, "outcome": 0.5},
    },
    "Pref-GRPO": {
        "judge": "pref_grpo",
        "reward": {"name": "own_probability", "signal": "win_rate", "weight": 1, "format": 0},
    },
    "Writing-Zero": {
        "judge": "writing_zero",
        "reward": {"name": "own_probability", "signal": "against_one", "weight": 1, "format": 0},
        "filter": "writing_zero",
        "credit": "reinforce",
    },
    "ONI": {
        "judge": "oni",
        "reward": [
            {"name": "from_signal", "signal": "oni"},
            {"name": "weighted", "weights": {"outcome": 0.1, "oni": 0.4}},
        ],
    },
    "PAR": {"judge": "par", "reward": {"name": "own_probability", "signal": "par", "weight": 1, "format": 0}},
    "CGPO": {
        "judge": [
            "par",
            {"name": "rlbff", "combine": "min", "principles": ["It is honest.", "It is allowed."]},
        ],
        "reward": "cgpo",
        "credit": "dr_grpo",
    },
    "AMPO": {
        "guide": [{"name": "ampo", "teachers": ["gold"], "loss": ["luffy"], "correction": "none"}],
        "credit": "dr_grpo",
    },
}


@pytest.mark.parametrize("paper", PROBABILITIES)
def test_a_recipe_takes_the_parts_of_a_paper_about_probabilities_and_judges(paper: str) -> None:
    recipe = check_recipe({**SHOP, **PROBABILITIES[paper]})
    parts = build_parts(recipe)
    numbers = {
        "ONI": ("oni", 1.0, 0.25, 0.2),
        "Lipschitz GAIL": ("gail", 1.0, 0.9163, 0.9163),
        "HC-RLHF": ("hc_rlhf", 1.0, 0.3898, 1.3898),
        "debate": ("debate", 0.2, 1.0, 5.1),
        "ThinkPRM": ("think_prm", 1.0, 0.832, 0.832),
        "SPCT": ("spct", 0.2, 19.0, 19.0),
        "RLPT": ("goes_on", 0.0, 1.0, 1.0),
        "URPO": ("self_score", 0.0, 0.7, 0.7),
    }  # as rows 11, 22, 145, 148, 153, 163, 168 and 256 have them
    if paper in numbers:
        signal, outcome, said, paid = numbers[paper]
        (found,) = parts.reward([with_signals(episode([outcome]), [{signal: said}])])
        assert found.trajectory.total_reward == pytest.approx(paid)


ROWS: dict[str, dict[str, Any]] = {
    "154 BRPO": {
        "guide": [{"name": "anytime", "budgets": [1, 2], "answers": 2}], "credit": "brpo", "rollout": {"group_size": 10},
    },
    "240 S-GRPO": {"guide": ["s_grpo"], "credit": "s_grpo"},
    "92 Lessons of PRMs": {
        "rollout": {"strategy": {"name": "vine", "forks": 8}}, "judge": "critic", "credit": "capo", "reward": "success", "filter": "consensus",
    },
    "89 GenPRM": {
        "rollout": {"strategy": "relative_progress"}, "judge": {"name": "genprm", "form": "chance"}, "credit": "capo", "reward": "success",
        "filter": "genprm",
    },
    "93 OmegaPRM": {"rollout": {"strategy": "omega"}, "credit": "capo"},
    "229 Train Long, Think Short": {
        "guide": ["length_budget"], "reward": "length_budget",
        "schedule": {"guide.length_budget.budget": "decay", "reward.length_budget.budget": "decay"},
    },
    "250 Reg-GRPO": {"guide": ["reg_grpo"], "loss": ["reg_grpo"]},
    "242 TempFlow-GRPO": {"guide": ["tempflow"], "credit": "dr_grpo", "shape": ["tempflow"]},
    "193 ETTRL": {
        "rollout": {"strategy": {"name": "tree", "at": "entropy", "turns": 2, "branches": 3}, "group_size": 60},
        "reward": "majority", "credit": "grpo", "shape": ["ear"],
    },
    "224 ARES": {"reward": "ares"},
    "43 SEELE": {
        "guide": [{"name": "seele", "loss": [{"name": "expo", "weight": 0.001}], "correction": "none"}], "credit": "dr_grpo",
        "rollout": {"group_size": 32}, "loss": ["clip", {"name": "kl", "weight": 0.001}],
    },
    "15 OTA, offline": {
        "credit": {"name": "ota", "turns": 10}, "signals": [{"name": "value", "expectile": 0.7}],
        "source": [{"name": "stored", "path": "a/episodes.jsonl.zst", "join": True}],
        "loss": ["awr"], "rollout": {"groups": 0},
    },
    "237 RGR-GRPO": {
        "guide": [{"name": "rgr_grpo", "loss": ["luffy"], "correction": "none"}], "judge": "rubric",
        "reward": {"name": "from_signal", "signal": "rubric", "form": "last"},
    },
    "49 SSRL": {
        "suite": "simulated:search/quick", "rollout": {"group_size": 5, "opponents": {"engine": "self"}}, "reward": "ssrl", "credit": "grpo",
        "loss": ["clip", {"name": "kl", "weight": 0.001}],
    },
    "206 INSPO": {"guide": [{"name": "inspo", "writer": "self"}], "credit": "grpo"},
    "253 APOHF": {"guide": [{"name": "apohf", "judge": "self"}]},
    "247 XRPO": {
        "rollout": {"sampler": "xrpo"}, "guide": [{"name": "xrpo", "loss": ["luffy"], "correction": "none"}], "credit": "grpo", "shape": ["xrpo"],
    },
    "28 PCL": {"rollout": {"sampler": "pcl"}, "credit": "dr_grpo"},
    "190 Fleming-R1": {"rollout": {"sampler": "fleming"}},
    "53 PAV, with its verifier": {
        "rollout": {"strategy": {"name": "vine", "forks": 20}}, "credit": "pav",
        "signals": [{"name": "value", "form": "verifier", "fit": "fork_value"}],
    },
    "99 AlphaMath": {
        "rollout": {"strategy": "alphamath", "group_size": 31}, "credit": "alphamath", "loss": ["nll"], "correction": "none",
        "signals": [{"name": "value", "fit": "tree_value"}],
    },
    "54 PROPA": {
        "rollout": {"strategy": "propa", "group_size": 31}, "credit": {"name": "propa", "trains": "value"},
        "signals": [{"name": "value", "form": "verifier", "fit": "tree_value"}],
    },
    "217 Search-R2": {
        "suite": "refined:shop/quick", "judge": {"name": "rlbff", "of": "turns"}, "reward": {"name": "search_r2", "signal": "rlbff"},
        "credit": "grpo", "rollout": {"group_size": 5},
    },
    "260 ReST-RL": {"guide": ["rest_rl"], "filter": "rest_rl"},
    "260 ReST-RL, its value": {
        "rollout": {"strategy": {"name": "alphamath", "wrong": 0}, "group_size": 31}, "credit": "alphamath", "loss": ["nll"], "correction": "none",
        "signals": [{"name": "value", "fit": "tree_value"}],
    },
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_the_recipe_of_a_row_is_read(row: str) -> None:
    build_parts(check_recipe({**SHOP, **ROWS[row]}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"guide": ["s_grpo"], "credit": "dr_grpo"}, r"guide 's_grpo' share turns"),
        (
            {"credit": "brpo"},
            r"(?s)exit_at, exit_segment, exit_trunk, which a guide gives.*Add guide: \[anytime\]",
        ),
        ({"guide": [{"name": "tempflow", "loss": ["nll"]}]}, "has a loss of its own"),
        ({"rollout": {"strategy": "alphamath", "group_size": 8}, "credit": "dr_grpo"}, "share turns"),
        ({"credit": "propa"}, r"(?s)need edge.*rollout.strategy"),
    ],
)
def test_a_half_of_a_row_that_means_nothing_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        check_recipe({**SHOP, **changes})


def test_propa_compares_boosted_shares_and_imitates_in_phases_between() -> None:
    """Row 54: labels of 0, 0.5224, 0.7472 and 1 over their sample deviation; and phases in which right ways are imitated."""
    imitates = {"credit": {"name": "alphamath", "trains": "value"}, "loss": ["nll"], "correction": "none"}
    stages = [
        {"name": "compares", "updates": 4, "set": {}},
        {"name": "imitates", "updates": 4, "set": imitates},
        {"name": "again", "updates": 4, "set": {}},
    ]
    recipe = check_recipe({**SHOP, **ROWS["54 PROPA"], "phases": stages})
    kinds = [(one.recipe.credit.name, [loss.name for loss in one.recipe.loss]) for one in phases_of(recipe)]
    assert kinds == [("propa", ["clip"]), ("alphamath", ["nll"]), ("propa", ["clip"])]
    edge = [[0], [1], [1], [1], [1], [2], [2], [0]]  # of the last four episodes two went one way
    paid = [[0], [1], [0], [0], [0], [1], [0], [1]]
    credit: Any = build_parts(recipe).credit(turn_batch(paid, signals={"edge": edge}))
    found = [credit[0, 0], *(credit[i : i + n, 0].sum() for i, n in ((1, 4), (5, 2), (7, 1)))]
    assert [float(x) for x in found] == pytest.approx([-1.3332, -0.1057, 0.4225, 1.0164], abs=1e-4)


ROUNDS = {
    "credit": {"name": "iter_research", "workers": 4},
    "loss": ["gspo"],
    "correction": {"name": "tis", "level": "trajectory"},
    "sampling": {"context": "workspace"},
}


def test_rounds_are_samples_that_divide_among_the_workers() -> None:
    """Row 195: a success of three rounds and a failure of two; 13 rounds for 4 workers; a ratio of 1.0869."""
    parts = build_parts(check_recipe({**SHOP, **ROUNDS}))
    credit: Any = parts.credit(turn_batch([[0, 0, 1], [0, 0]]))
    full = [0.6361, 0.7271, 0.8229, -1.0931, -1.0931]
    found = credit.flatten()[:5].tolist()
    assert sum(x == 0 for x in found) == 1
    assert all(x == 0 or abs(x - y) < 1e-4 for x, y in zip(found, full, strict=True))
    many: Any = parts.credit(turn_batch([[0] * 6 + [1], [0] * 6]))
    assert int(many.count_nonzero()) == 12
    batch = whole_batch([[0.1, -0.05, 0.2]], [[1, 1, 1]], old_logp=[[0, 0, 0]])
    batch.weight_RT[:] = 1 / 3
    loss = get_component("loss", "gspo").build({"low": 1.0, "high": 1.0})(batch).loss
    assert loss.item() == pytest.approx(-1.0869, abs=1e-4)


def test_the_turns_of_ftrl_are_samples_of_their_own() -> None:
    """Row 156: (n, s) = (1, 1), (2, 1), (2, 2), (3, 0) and the answer with two open parts, compared as five samples."""
    recipe = check_recipe(
        {**SHOP, "reward": "ftrl", "credit": {"name": "rebn", "discount": 0, "std": "sample"}}
    )
    parts = build_parts(recipe)
    told = [{"met": s, "open": 2} for s in (1, 1, 2, 0, 0)]
    calls = [[("look", {})] * n for n in (1, 2, 2, 3, 0)]
    played = with_calls(episode([0, 0, 0, 0, 1], details=told, end=EndReason.SOLVED), calls)
    paid = [turn.reward for turn in parts.reward([played])[0].trajectory.turns]
    assert [round(x, 4) for x in paid] == [1.0, 0.6667, 1.3333, 0.0, 0.3333]
    mean, deviation = statistics.mean(paid), statistics.stdev(paid)
    credit: Any = parts.credit(turn_batch([paid]))
    assert credit[0].tolist() == pytest.approx([(x - mean) / deviation for x in paid])


def test_several_named_scorers_are_weighed_into_one_reward() -> None:
    """Row 18: aspects of 1, 0.8, 0.6 and 0.9 in equal parts are 0.825; each stays a component, which is a metric."""
    aspects = {"principle": 0.8, "rlbff": 0.6, "par": 0.9}
    paid = [{"name": "from_signal", "signal": name, "form": "last"} for name in aspects]
    weights = dict.fromkeys(("outcome", *aspects), 0.25)
    recipe = check_recipe(
        {
            **SHOP,
            "judge": ["principles", "rlbff", "par"],
            "reward": [*paid, {"name": "weighted", "weights": weights}],
        }
    )
    (found,) = build_parts(recipe).reward([with_signals(episode([1]), [aspects])])
    assert found.trajectory.total_reward == pytest.approx(0.825)
    assert dict(found.trajectory.turns[0].rewards) == pytest.approx(
        {"outcome": 0.25, "principle": 0.2, "rlbff": 0.15, "par": 0.225}
    )


@pytest.mark.parametrize(("solved", "kept"), [(0, 0.0), (1, 1.0), (4, 1.0), (7, 1.0), (8, 0.0)])
def test_weak_tasks_make_new_ones_and_groups_outside_of_the_band_are_dropped(
    solved: int, kept: float
) -> None:
    """Row 144: groups of eight in [0.125, 0.875]; new tasks of the suites in which tasks stayed weak, by its sampler."""
    band = {"name": "band", "low": 0.125, "high": 0.875}
    recipe = check_recipe({**SHOP, "rollout": {"sampler": "sws", "group_size": 8}, "filter": band})
    batch = turn_batch([[float(i < solved)] for i in range(8)])
    parts = build_parts(recipe)
    assert set(parts.filter(batch, parts.credit(batch)).tolist()) == {kept}


ASKED = ("Its reasoning agrees with its answer.", "It looks at its result again before it ends.")
VERIPO = [
    {"name": "grpo", "updates": 4, "set": {}},
    {
        "name": "verified",
        "updates": 2,
        "set": {
            "judge": {"name": "rlbff", "principles": ASKED},
            "reward": {"name": "from_signal", "signal": "rlbff", "form": "mean", "solved": True},
            "loss": [{"name": "dpo", "beta": 0.1}],
            "optimizer.minibatches": 1,
        },
    },
    {"name": "again", "updates": 4, "set": {"rollout.sampler": {"name": "veripo", "size": 160}}},
]


def test_a_verifier_makes_pairs_between_two_stages_of_grpo() -> None:
    """Row 246: a consistent success is preferred to a lucky one, and that to a failure, by DPO with β = 0.1."""
    recipe = check_recipe({**SHOP, "credit": "grpo", "phases": VERIPO})
    first, second, third = (phase.recipe for phase in phases_of(recipe))
    assert first.loss[0].name == third.loss[0].name == "clip"
    parts = build_parts(second)
    ends = [EndReason.SOLVED, EndReason.SOLVED, EndReason.FAILED]
    group = [
        with_signals(episode([float(end is EndReason.SOLVED)], end=end), [{"rlbff": q}])
        for end, q in zip(ends, (1.0, 0.5, 1.0), strict=True)
    ]
    assert [one.trajectory.total_reward for one in parts.reward(group)] == [2.0, 1.5, 0.0]
    (term,) = parts.objective.whole
    batch = whole_batch([[-10], [-15]], reference_logp=[[-12], [-14]], success=[1, 0])
    assert term.loss(batch).loss.item() == pytest.approx(0.554355, abs=1e-6)
    assert kept(100, 0.8) + 60 == 80


EPO = {
    "suite": "advised:shop/quick",
    "rollout": {"opponents": {"actor": "self"}},
    "judge": "epo_strategic",
    "reward": [
        {"name": "from_signal", "signal": "critical"},
        {"name": "weighted", "weights": {"critical": 1}},
    ],
    "credit": "epo_strategic",
    "loss": ["nll"],
}


def test_critical_lines_and_the_outcome_are_what_a_strategist_earns() -> None:
    """Row 67: the second of four lines is critical, and it ends with 0.8, whatever else the world paid in between."""
    parts = build_parts(check_recipe({**SHOP, **EPO}))
    played = episode([0.3, 0, 0, 0.5], parts={"step": [1, 0, 0, 0]})
    told = with_signals(played, [{"critical": x} for x in paid("CRITICAL: 2", 4, 0.8)])
    earned = [turn.reward for turn in parts.reward([told])[0].trajectory.turns]
    assert earned == [0, 1, 0, 0.8]
    credit: Any = parts.credit(turn_batch([earned]))
    assert credit[0].tolist() == pytest.approx([0.99, 1, 0.4439, 0.4484], abs=5e-5)


def test_next_and_middle_segments_are_weighed_by_their_suites() -> None:
    """Row 22: r = 1, 0, 1, 1 of next segments and 0, 1 of masked ones, λ = ½: J = 1."""
    suites = {"judging/next": 1.0, "judging:middle:": 0.5}
    recipe = check_recipe({**SHOP, **PROBABILITIES["RLPT"], "suite": suites})
    parts, each = build_parts(recipe), {"judging/next": [1, 0, 1, 1], "judging:middle:": [0, 1]}
    found = 0.0
    for suite, weight in recipe.suites.items():
        judged = [with_signals(episode([0.0]), [{"goes_on": float(r)}]) for r in each[suite]]
        found += weight * statistics.mean(one.trajectory.total_reward for one in parts.reward(judged))
    assert found == pytest.approx(1.0)
