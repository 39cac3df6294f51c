"""Recipes: what is read, what is refused, and in how few words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from torch import Tensor

from turnwise import registry
from turnwise.agents.policies.command import read_program
from turnwise.envs.core import ForkCost
from turnwise.envs.registry import env_class
from turnwise.errors import RecipeError, TurnwiseError
from turnwise.registry import component, components
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_std
from turnwise.trainers.kit.toy_batches import turn_batch
from turnwise.trainers.recipe.docs import recipe_docs
from turnwise.trainers.recipe.load import check_recipe, load_recipe, recipe_names
from turnwise.trainers.recipe.no_effect import (
    drops_everything,
    gives_nothing_alone,
    idle_options,
    is_blind_to_outcomes,
    pays_the_outcome_alone,
)
from turnwise.trainers.recipe.part import LossPart, Part
from turnwise.trainers.recipe.schema import Optimizer
from turnwise.trainers.signal.choose import measurable

BASE: dict[str, Any] = {"suite": "shop/quick", "model": {"path": "x"}}


def refused(changes: dict[str, Any]) -> TurnwiseError:
    with pytest.raises(TurnwiseError) as caught:
        load_recipe("shop-quick", changes)
    text = str(caught.value)
    assert len(text.splitlines()) <= 5
    assert max(map(len, text.splitlines())) < 300
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize("name", recipe_names())
def test_shipped_recipes_are_right_and_survive_being_frozen(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.about
    assert check_recipe(yaml.safe_load(recipe.to_yaml())) == recipe


@pytest.mark.parametrize("name", [name for name in recipe_names() if name.startswith("smollm-")])
def test_recipes_of_a_pretrained_model_take_the_adapters_that_they_speak_of(name: str) -> None:
    recipe = load_recipe(name)
    said = re.findall(r"--set \"?([\w.]+)=([^\s\"]+(?: [^\s\"]+)*?)\"?(?= --set|\.$|\.\n)", recipe.about)
    if recipe.model.lora is None:
        recipe = load_recipe(name, {key: yaml.safe_load(value) for key, value in said})
        assert recipe.optimizer.learning_rate > load_recipe(name).optimizer.learning_rate
    assert recipe.model.lora is not None
    assert recipe.model.path == "smollm2"


@pytest.mark.parametrize("key", ["rollout.opponents", "evaluate.opponents"])
@pytest.mark.parametrize(
    ("opponents", "cause", "remedy"),
    [
        ({"oponent": "scripted:rival"}, "games/kuhn-self called 'oponent'", "Did you mean 'opponent'?"),
        ({"opponent": "scripted:rivl"}, "'rivl'", "Did you mean 'rival'?"),
        ({"opponent": "scriptd:rival"}, "no kind of policy 'scriptd'", "Did you mean 'scripted'?"),
        ({"opponent": "scripted"}, "'scripted' is not complete", "scripted:NAME"),
        ({"agent": "scripted:gold", "opponent": "scripted:gold"}, "every agent", "Leave one of"),
    ],
)
def test_opponents_who_are_not_there_are_refused(
    key: str, opponents: dict[str, str], cause: str, remedy: str
) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe("kuhn-self", {key: opponents})
    assert caught.value.cause.startswith(f"{key}: ")
    assert cause in caught.value.cause
    assert remedy in caught.value.remedy


def test_where_one_agent_plays_there_are_no_opponents() -> None:
    assert "'user'" in refused({"rollout.opponents": {"user": "scripted:gold"}}).cause


def test_options_that_are_null_survive_being_frozen() -> None:
    loss = [{"name": "clip", "dual": None}, {"name": "entropy", "weight": 0.5}]
    recipe = check_recipe({**BASE, "loss": loss, "optimizer": {"epochs": 2}, "credit": "rloo"})
    again = yaml.safe_load(recipe.to_yaml())
    assert again["loss"] == loss
    assert again["credit"] == "rloo"
    assert check_recipe(again) == recipe


@pytest.mark.parametrize(
    ("changes", "cause", "remedy"),
    [
        ({"updats": 3}, "unknown key 'updats'", "'updates'"),
        ({"optimizer.learning_rat": 1}, "'optimizer.learning_rat'", "'learning_rate'"),
        ({"model.scratch.layer": 1}, "'model.scratch.layer'", "'layers'"),
        ({"model.lora.ranks": 1}, "'model.lora.ranks'", "'rank'"),
        ({"warm_start.zzz": 1}, "'warm_start.zzz'", "Known here: demonstrator"),
        ({"rollout.grops": 1}, "'rollout.grops'", "'groups'"),
        ({"suite": "shop/quik"}, "'shop/quik'", "'shop/quick'"),
        ({"suite": None}, "'suite'", "docs/recipes.md"),
        ({"credit": "rlo"}, "no credit 'rlo'", "'rloo'"),
        ({"reduce": "token_men"}, "no reduce 'token_men'", "'token_mean'"),
        ({"filter": "informativ"}, "no filter", "'informative'"),
        ({"loss": ["clp"]}, "no loss 'clp'", "'clip'"),
        ({"loss": []}, "no loss", "at least one"),
        ({"rollout.strategy": "chian"}, "no strategy 'chian'", "'chain'"),
        ({"credit.discont": 0.9}, "'discont'", "'discount'"),
        ({"credit.weight": 2}, "option of credit", "Known"),
        ({"credit.discount": "much"}, "discount='much'", "default is 1.0"),
        ({"loss.clip.hgh": 0.3}, "'hgh'", "'high'"),
        ({"loss.klip.high": 0.3}, "no loss.klip", "'clip'"),
        ({"loss.clip": 0.3}, "loss.clip is a part", "loss.clip.OPTION"),
        ({"updates.x": 3}, "'updates' is a value", "itself"),
        ({"updates": "many"}, "'updates'", "docs/recipes.md"),
        ({"updates": -1}, "'updates'", "docs/recipes.md"),
        ({"optimizer": 3}, "'optimizer'", "docs/recipes.md"),
        ({"warm_start.demonstrator": "demonstratr"}, "'demonstratr'", "'demonstrator'"),
        ({"engine.options": {"kv_cach_gib": 1}, "engine.kind": "vllm"}, "'kv_cach_gib'", "'kv_cache_gib'"),
        ({"rollout.env_options": {"shapng": 1}}, "'shapng'", "'shaping'"),
        ({"model.path": "x"}, "loaded or made", "exactly one"),
        ({"model.scratch": None}, "loaded or made", "exactly one"),
        ({"model.scratch.heads": 3}, "3 heads", "heads ×"),
        ({"model.scratch.layers": 1}, "induction", "init: random"),
        ({"engine.context_length": 4096}, "4096", "context"),
        ({"sampling.max_tokens": 512}, "no room", "Lower it"),
        ({"sampling.temperature": 0}, "sampling.temperature", "docs/recipes.md"),
    ],
    ids=str,
)
def test_what_does_not_exist_or_fit_is_refused(changes: dict[str, Any], cause: str, remedy: str) -> None:
    error = refused(changes)
    assert cause in error.cause
    assert remedy in str(error)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"loss.entropy.weight": 0}, "weight 0"),
        ({"loss": ["clip", "clip"]}, "stands twice"),
        ({"loss.clip.high": 0.3, "optimizer.minibatches": 1}, "high can have no effect"),
        ({"loss.clip": None, "loss": [{"name": "clip", "dual": 5}], "optimizer.minibatches": 1}, "dual"),
        ({"rollout.group_size": 1}, "gives nothing to a group of one"),
        ({"rollout.group_size": 1, "filter": "any"}, "gives nothing to a group of one"),
        (
            {"rollout.groups": 1, "rollout.group_size": 2, "optimizer.minibatches": 3},
            "more than the 1 groups",
        ),
        ({"evaluate.every": 99}, "no checkpoints to choose from"),
        ({"updates": 0, "warm_start": None}, "Nothing would be trained"),
        ({"optimizer.warmup": 100}, "never ends"),
        ({"warm_start.episodes": 3}, "less than one batch"),
        ({"optimizer.value_weight": 0.1}, "no part needs a signal that learns"),
        ({"rollout.strategy": "vine"}, "no effect"),
        ({"warm_start.forgets": 0.3}, "no demonstration writes anything down"),
        ({"warm_start.forgets": 0.3, "sampling.context": "window"}, "no demonstration writes anything down"),
        ({"shape": ["memory_turns"], "sampling.context": "clear"}, "changes the credit of what is written"),
        ({"shape": ["memory_turns"]}, "changes the credit of what is written"),
        (
            {"reward": "soft_overlong", "sampling.max_tokens": 100},
            "replies, and all of up to 100 tokens are alike",
        ),
    ],
    ids=str,
)
def test_what_changes_nothing_is_refused(changes: dict[str, Any], cause: str) -> None:
    changes = {key: value for key, value in changes.items() if key != "loss.clip"}
    assert cause in refused(changes).cause


def test_settings_with_an_effect_are_accepted() -> None:
    load_recipe("shop-quick", {"loss.clip.high": 0.3})  # two minibatches
    load_recipe("shop-quick", {"loss.clip.low": 0.2, "optimizer.minibatches": 1})  # its default: says nothing
    load_recipe(
        "shop-quick", {"loss": ["clip", {"name": "kl", "estimator": "k2"}], "optimizer.minibatches": 1}
    )
    load_recipe("shop-quick", {"credit": "gae", "filter": "any", "rollout.group_size": 1})
    load_recipe("shop-quick", {"updates": 0})
    load_recipe("shop-quick", {"shape": ["memory_turns"], "sampling.context": "summary"})
    load_recipe("shop-quick", {"credit": "gae", "optimizer.value_weight": 0.1})


@pytest.mark.slow
def test_signals_that_nobody_measures_are_refused() -> None:
    sources = [(seam, source) for seam in ("strategy", "judge", "guide") for source in components(seam)]
    given = {name for _, source in sources for name in source.gives}
    assert not [c.name for c in components("credit") if c.needs_with({}) - measurable() - given], (
        "a rule nobody can use"
    )
    for entry in components("credit"):
        for seam, source in sources:
            if entry.needs_with({}) & {*source.gives}:
                assert re.search(rf"(which|and) (a )?{seam} ", refused({"credit": entry.name}).cause)
    for seam, source in sources[1:]:
        if seam == "judge" and source.gives:
            assert "can have no effect" in refused({"judge": source.name}).cause
    known = [c for c in components("credit") if not c.needs_with({}) - measurable()]
    assert {"gae", "rloo"} <= {c.name for c in known}
    for entry in known:
        assert load_recipe("shop-quick", {"credit": entry.name, "reward": "as_is"}).credit.name == entry.name


@pytest.mark.parametrize(
    ("signal", "heard", "other"),
    [("causal_rm", {}, {"label": "thumb"}), ("hc_rlhf", {"cost": "principle"}, {})],
)
def test_a_judge_that_a_signal_alone_reads_is_used(
    signal: str, heard: dict[str, str], other: dict[str, str]
) -> None:
    paid = {"judge": "principles", "reward": {"name": "from_signal", "signal": signal}}
    recipe = load_recipe("shop-quick", {**paid, "signals": [{"name": signal, **heard}]})
    assert "principle" in recipe.needs
    assert "can have no effect" in refused({**paid, "signals": [{"name": signal, **other}]}).cause
    assert "can have no effect" in refused({**paid, "reward": "as_is"}).cause


def test_shapes_that_cannot_read_the_advantages_before_them_are_refused_at_once() -> None:
    tokens = {"credit": "gae_token", "filter": "any"}
    for shape in ("salt", "arpo", "grpo_lambda"):
        assert "differ within a turn" in refused({**tokens, "shape": [shape]}).cause
        assert load_recipe("shop-quick", {"credit": "grpo", "shape": [shape]}).shape[0].name == shape
    assert "differ within a turn" in refused({"credit": "grpo", "shape": ["hicra", "salt"]}).cause
    load_recipe("shop-quick", {"credit": "grpo", "shape": ["salt", "hicra", "whiten"]})
    load_recipe("shop-quick", {**tokens, "shape": ["ear", "gtpo"]})


def test_rules_that_became_shapes_say_how_to_write_them() -> None:
    for entry in components("shape"):
        error = refused({"credit": entry.name})
        assert f"shape: [{entry.name}]" in error.remedy
        if entry.needs_with({}) <= measurable():
            written = {"sampling.context": "summary"}  # for one that looks at what is written
            load_recipe("shop-quick", {"credit": "grpo", "shape": [entry.name], **written})
    assert "shape: [whiten]" in refused({"credit": "reinforce_pp_baseline"}).remedy
    load_recipe("shop-quick", {"credit": "grpo", "shape": [{"name": "seed_grpo", "by": "answer"}]})


def test_a_shape_may_make_a_rule_fit_for_episodes_that_share_turns() -> None:
    tree = {"credit": "grpo", "rollout.strategy": "tree", "rollout.group_size": 4}
    assert "share" in refused(tree).cause
    assert load_recipe("shop-quick", {**tree, "shape": ["arpo"]}).shape[0].name == "arpo"


def test_nothing_forks_where_nobody_can_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = {"credit": "grpo", "rollout.strategy": "tree", "rollout.group_size": 4, "shape": ["arpo"]}
    load_recipe("shop-quick", tree)
    monkeypatch.setattr(env_class("turnwise/Shop-v0"), "fork_cost", ForkCost.NONE)
    assert "nobody can go back" in refused(tree).cause
    load_recipe("shop-quick")


def test_overrides_reach_parts_lists_and_defaults(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(yaml.safe_dump(BASE))
    changes = {
        "credit.discount": 0.9,
        "loss.clip.weight": 2.0,
        "warm_start.episodes": 64,
        "model.lora.rank": 4,
        "rollout.strategy": "chain",
        "filter": "any",
    }
    recipe = load_recipe(file, changes)
    assert recipe.credit == Part.model_validate({"name": "return_to_go", "discount": 0.9})
    assert recipe.loss == [LossPart(name="clip", weight=2.0)]
    assert recipe.warm_start is not None
    assert recipe.warm_start.episodes == 64
    assert recipe.model.lora is not None
    assert recipe.model.lora.rank == 4
    assert recipe.filter.name == "any"
    assert load_recipe("shop-quick", {"warm_start": None}).warm_start is None
    assert load_recipe("shop-quick", {"loss.entropy.weight": 0.5}).loss[1].weight == 0.5


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a: [1", "is no YAML"),
        ("- a", "is no recipe"),
        ("", "is no recipe"),
        ("suite: shop/quick", "no 'model'"),
    ],
)
def test_files_that_are_no_recipes(tmp_path: Path, text: str, cause: str) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(text)
    with pytest.raises(TurnwiseError) as caught:
        load_recipe(file)
    assert cause in caught.value.cause
    assert len(str(caught.value).splitlines()) <= 5


def test_a_file_of_another_trainer_is_told_how_it_is_explained(tmp_path: Path) -> None:
    file = tmp_path / "rl.toml"
    file.write_text("[model]\n")
    with pytest.raises(RecipeError, match="recipes are YAML") as caught:
        load_recipe(str(file))
    assert f"turnwise explain {file} --from" in caught.value.remedy


def test_every_part_can_be_tried_out() -> None:
    """The probes neither crash on nor condemn what ships, used as it is by default."""
    for entry in components("loss"):
        assert idle_options(Part(name=entry.name)) == []
    assert not any(drops_everything(Part(name=entry.name)) for entry in components("filter"))
    alone = {entry.name: gives_nothing_alone(Part(name=entry.name)) for entry in components("credit")}
    assert alone["grpo"]
    assert alone["rloo"]
    assert not alone["gae"]
    assert not alone["reinforce_pp"]
    assert {e.name for e in components("credit") if is_blind_to_outcomes(Part(name=e.name))} == {"pure"}
    rewards = [Part(name=entry.name) for entry in components("reward")]
    outcomes = [{r.name for r in rewards if pays_the_outcome_alone([r], others=x)} for x in (False, True)]
    gates = {"length_budget", "rlcr", "rlsp", "tool_gate", "verified"}
    gates |= {
        "ares",
        "codevision",
        "crossthink",
        "crpo",
        "earl",
        "ftrl",
        "grit",
        "heron",
        "rise",
        "rubicon",
        "sets",
        "ssrl",
    }
    assert outcomes == [{"success", *gates}, gates]


def test_a_rule_of_single_payments_is_refused_where_only_the_outcome_is_paid() -> None:
    """It stands on what the rule does: in one that looks at the sum, too, (a high temperature) outcomes are seen."""
    for reward in ("success", "verified"):
        with pytest.raises(RecipeError, match="'pure' gives what solved a task and what failed it the same"):
            load_recipe("shop-quick", {"credit": "pure", "reward": reward})
    load_recipe("shop-quick", {"credit": "pure", "reward": "as_is"})
    load_recipe(
        "shop-quick", {"credit": "pure", "rollout.env_options": {"shaping": 0.1}}
    )  # each turn is paid for its progress
    load_recipe("shop-quick", {"credit": {"name": "pure", "temperature": 5.0}})


def by_returns(batch: TurnBatch, credit: Any) -> Tensor:
    """DAPO's dynamic sampling as published (2503.14476, eq. 11): groups of equal returns are dropped, whatever credit says."""
    return (group_std(batch.return_B, batch.group_B) > 1e-9).double()


@pytest.fixture
def dapo_filter() -> Iterator[str]:
    component("filter", "by_returns")(by_returns)
    yield "by_returns"
    del registry._components["filter", "by_returns"]


def test_rules_that_learn_from_equal_groups_are_refused_with_a_filter_that_drops_them(
    dapo_filter: str,
) -> None:
    """By what rule and filter do on a small batch: a filter from elsewhere is seen through, and none of ours drops them."""
    for credit in ("ngrpo", "psr_nsr", "gae"):
        cause = refused({"credit": credit, "filter": dapo_filter}).cause
        assert f"credit {credit!r} learns from groups whose episodes all earned the same, and filter" in cause
    for credit in (
        "return_to_go",
        "rloo",
        "lite_ppo",
    ):  # what they take from equal groups is in their statistics
        load_recipe("shop-quick", {"credit": credit, "filter": dapo_filter})
    load_recipe("shop-quick", {"credit": "grpo", "filter": dapo_filter, "shape": ["a_grae"]})
    for ours in ("informative", "any", "ranked"):
        load_recipe("shop-quick", {"credit": "ngrpo", "filter": ours})


def test_a_filter_of_what_a_judge_says_wants_that_judge_and_goes_with_any_rule() -> None:
    """Writing-Zero's drops groups by the draw that its judge made; where outcomes stood in its place it dropped those that solve most."""
    refusal = refused({"filter": "writing_zero"})
    assert "need against_one, which judge 'none' does not give" in refusal.cause
    assert "judge: writing_zero" in refusal.remedy
    for credit in ("reinforce", "ngrpo"):
        load_recipe("shop-quick", {"credit": credit, "filter": "writing_zero", "judge": "writing_zero"})
        assert "filter 'band' drops them" in refused({"credit": credit, "filter": "band"}).cause
    judged = {"credit": "capo", "judge": "critic", "rollout.strategy": "vine", "reward": "success"}
    load_recipe("shop-quick", {**judged, "filter": "consensus"})  # it keeps by labels, of equal groups too


def test_statistics_of_a_batch_know_of_groups_that_a_filter_drops() -> None:
    """Advantages of `lite_ppo` and of the shape `a_grae` are made before any filter, from all that was played."""
    batch = turn_batch([[1], [0], [0], [0], [0], [0]], [0, 0, 1, 1, 2, 2])
    kept = turn_batch([[1], [0]], [0, 0])
    for name, shape in (("lite_ppo", None), ("grpo", "a_grae")):
        found = [Part(name=name).build("credit")(one) for one in (batch, kept)]
        if shape:
            found = [
                Part(name=shape).build("shape")(x, one) for x, one in zip(found, (batch, kept), strict=True)
            ]
        assert not torch.allclose(found[0][:2], found[1])


def test_the_page_of_all_keys_is_up_to_date() -> None:
    page = Path(__file__).parents[2] / "docs" / "recipes.md"
    assert page.read_text("utf-8") == recipe_docs(), "run `python -m turnwise.trainers.recipe.docs`"


def test_every_key_is_described_in_sentences() -> None:
    """A cell such as "Of the residual stream." or "The number of updates." is none."""
    cells = re.findall(r"^\| `[\w.]+` \| [^|]* \| (.+) \|$", recipe_docs(), re.MULTILINE)
    assert len(cells) > 100
    fragment = (
        r"(?:Of|For|How|Who|What|Which|Where|When|Whether|Further|Parts|The (?:number|most|name|deadline))\b"
    )
    assert [
        cell for cell in cells if re.match(fragment, cell) or not re.match(r"[A-Z`].{20,}[.)]$", cell)
    ] == []


def test_a_part_of_ones_own_is_told_what_it_lacks() -> None:
    def no_type(batch: object, *, x=1) -> None: ...

    def no_default(batch: object, *, x: float) -> None: ...

    with pytest.raises(
        RecipeError, match=r"credit 'mine' \(.*no_type\): its option 'x' has no type(.|\n)*x: float"
    ):
        component("credit", "mine", bias="unbiased")(no_type)
    with pytest.raises(RecipeError, match=r"its option 'x' has no default"):
        component("credit", "mine", bias="unbiased")(no_default)
    with pytest.raises(RecipeError, match=r"no kind of component 'credits'(.|\n)*Did you mean 'credit'"):
        component("credits", "mine")
    assert "mine" not in [entry.name for entry in components("credit")]


def test_the_learner_has_the_defaults_of_the_recipe() -> None:
    """They stand in two places, so that the learner need not know what a recipe is."""
    from turnwise.trainers.learn.options import OptimizerOptions
    from turnwise.trainers.run.door import descent

    assert descent(Optimizer()) == OptimizerOptions()


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"reward": {"name": "from_signal", "signal": "past_mean"}}, "measured after the rewards"),
        (
            {
                "reward": {"name": "from_signal"},
                "judge": "gold",
                "credit": "vine",
                "rollout.strategy": "vine",
            },
            "paid otherwise than episodes",
        ),
    ],
    ids=["it reads rewards", "forks"],
)
def test_a_reward_pays_only_what_is_known_before_it_and_for_all(changes: dict[str, Any], cause: str) -> None:
    with pytest.raises(RecipeError, match=cause):
        load_recipe("shop-quick", changes)
    load_recipe("shop-quick", {"reward": {"name": "from_signal"}, "judge": "gold"})


def test_a_model_may_be_given_by_its_name_alone() -> None:
    given = {"suite": "shop/quick", "model": "some/model", "updates": 30}
    assert load_recipe(given).model.path == "some/model"
    changed = load_recipe(given, {"model.lora.rank": 4}).model
    assert (changed.path, changed.lora and changed.lora.rank) == ("some/model", 4)
    assert load_recipe(given, {"model": "other/model"}).model.path == "other/model"


def test_a_command_that_is_a_text_is_told_as_the_list_that_it_should_be(tmp_path: Path) -> None:
    given = {"suite": "shop/quick", "model": {"path": "some/model"}}
    with pytest.raises(
        RecipeError, match=r"(?s)'agent.command' must be a list.*\n→ Write command: \[python3, x.py, 'a b'\]"
    ):
        check_recipe({**given, "agent": {"command": "python3 x.py 'a b'"}})
    with pytest.raises(RecipeError, match=r"(?s)no 'agent.command'.*\n→ Give it, such as command: …"):
        check_recipe({**given, "agent": {"calls": 3}})
    file = tmp_path / "agent.yaml"
    for text, said in {
        "command: python3 x.py": r"agent.yaml: command must be a list, .*\n→ Write command: \[python3, x.py\]",
        "command: [a]\ncalls: many": r"calls must be a whole number, and 'many' is given.\n→ An agent has command, workdir",
        "calls: 3": "command must be given",
        "3": "agent.yaml: it must be",
    }.items():
        file.write_text(text)
        with pytest.raises(TurnwiseError, match=said) as told:
            read_program(str(file))
        assert "__" not in str(told.value)


def test_a_mistyped_number_of_a_schedule_is_told_as_such_and_signals_are_quoted() -> None:
    typo = refused({"schedule": {"optimizer.learning_rat": "cosine"}})
    assert "no number 'optimizer.learning_rat'" in typo.cause
    assert "optimizer.learning_rate" in typo.remedy
    with pytest.raises(RecipeError, match="fixed when a run begins"):
        check_recipe({**BASE, "schedule": {"optimizer.warmup": "cosine"}})
    assert "no part needs the signal 'wrong'" in refused({"judge": "critic"}).cause
