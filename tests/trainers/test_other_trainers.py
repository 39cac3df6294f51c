"""Configurations of other trainers: what is said of them, by which keys, and that ours which mean the same are recipes."""

import json

import pytest

from turnwise.errors import TurnwiseError
from turnwise.trainers.others.explained import TRAINERS, as_recipe, explain_other, text_of, to_json
from turnwise.trainers.recipe.load import load_recipe

VERL = """\
set -x
n=8
model=Qwen/Qwen3-8B
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo algorithm.lam=0.95 \\
    data.train_batch_size=256 \\
    actor_rollout_ref.model.path=$model actor_rollout_ref.model.lora_rank=32 \\
    actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.clip_ratio=0.3 \\
    actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_type=kl \\
    actor_rollout_ref.rollout.n=$n actor_rollout_ref.rollout.top_p=0.9 \\
    actor_rollout_ref.rollout.multi_turn.enable=True \\
    trainer.n_gpus_per_node=$GPUS "$@"
"""
TRL = """\
from trl import GRPOConfig, GRPOTrainer
config = GRPOConfig(output_dir=f"runs/{name}", num_generations=8, beta=0.04, mask_truncated_completions=True, use_vllm=True,
                    max_tool_calling_iterations=6, top_k=20, loss_type="grpo", epsilon=0.3, gradient_accumulation_steps=steps)
"""
PRIME = """\
max_steps = 100
[model]
name = "Qwen/Qwen3-4B-Thinking-2507"
[orchestrator]
batch_size = 64
max_off_policy_steps = 2
[[orchestrator.train.source]]
name = "wordle"
[orchestrator.train.source.env.taskset]
id = "wordle"
[orchestrator.train.sampling.extra_body]
top_p = 0.95
"""
NEMO_BASE = """\
grpo: {num_prompts_per_step: 32, num_generations_per_prompt: 16, async_grpo: {enabled: false, max_trajectory_age_steps: 1}}
loss_fn: {ratio_clip_min: 0.2, ratio_clip_max: 0.2, reference_policy_kl_penalty: 0}
policy: {model_name: "meta-llama/Llama-3.1-8B-Instruct", train_global_batch_size: 512, generation: {top_p: 1.0}}
"""
NEMO = """\
defaults: base.yaml
grpo: {overlong_filtering: true, max_rollout_turns: 10}
loss_fn: {ratio_clip_max: 0.28}
"""


@pytest.fixture
def explained(tmp_path):
    """The four configurations, each explained."""
    (tmp_path / "base.yaml").write_text(NEMO_BASE)
    texts = {
        "verl": ("run.sh", VERL),
        "trl": ("train.py", TRL),
        "prime-rl": ("rl.toml", PRIME),
        "nemo": ("grpo.yaml", NEMO),
    }
    found = {}
    for trainer, (name, text) in texts.items():
        (tmp_path / name).write_text(text)
        found[trainer] = explain_other(trainer, tmp_path / name)
    return found


def said(one, kind, word):
    return [statement for statement in one.statements if statement.kind == kind and word in statement.text]


def test_public_complaints_are_named_from_the_configuration_alone(explained):
    verl, trl, prime, nemo = (explained[name] for name in ("verl", "trl", "prime-rl", "nemo"))
    assert said(prime, "trap", "thinking of earlier turns")[0].keys  # templates that strip what was thought
    assert said(trl, "bias", "scores them by the whole one")[0].keys == (
        "top_k",
    )  # ratios under truncated sampling
    assert said(verl, "bias", "truncated")[0].keys == ("actor_rollout_ref.rollout.top_p",)
    assert said(verl, "note", "all its tokens get one number")  # rewards of single turns
    assert said(prime, "bias", "more than 2 steps ago is dropped")[0].keys == (
        "orchestrator.max_off_policy_steps",
    )
    assert said(nemo, "bias", "their rewards stay in their group's mean")[0].keys == (
        "grpo.overlong_filtering",
    )
    assert said(trl, "bias", "their rewards stay in their group's mean")[0].keys == (
        "mask_truncated_completions",
    )
    assert said(nemo, "note", "compacts")
    assert said(verl, "trap", "Adapters are trained")


def test_a_group_of_one_teaches_nothing(explained):
    assert said(explained["prime-rl"], "trap", "no reward teaches anything")
    assert not any(said(explained[name], "trap", "group has one") for name in ("verl", "trl", "nemo"))


VERL_ONE = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator={} data.train_batch_size=64 actor_rollout_ref.actor.ppo_mini_batch_size=64 {}\n"


def of_text(tmp_path, trainer, name, text):
    (tmp_path / name).write_text(text)
    return explain_other(trainer, tmp_path / name)


def test_a_group_of_one_keeps_its_reward_where_the_trainer_takes_0_as_its_mean(tmp_path):
    for estimator in ("rloo", "opo", "reinforce_plus_plus_baseline"):
        assert said(
            of_text(tmp_path, "verl", "run.sh", VERL_ONE.format(estimator, "")),
            "trap",
            "nothing is subtracted",
        )
    assert said(
        of_text(tmp_path, "verl", "run.sh", VERL_ONE.format("rloo_vectorized", "")), "trap", "every one is 0"
    )
    alone = "grpo: {num_generations_per_prompt: 1, normalize_rewards: true}"
    assert said(of_text(tmp_path, "nemo", "one.yaml", alone), "trap", "every one is 0")
    text = "[orchestrator.algo]\ntype = 'hierarchical_grpo'\n"  # whose solvers are compared within an episode
    assert not said(of_text(tmp_path, "prime-rl", "h.toml", text), "trap", "one episode")


def test_the_mean_of_verls_tokens_is_that_of_each_micro_batch_and_of_some_losses_that_of_each_trajectory(
    tmp_path,
):
    actor = "actor_rollout_ref.actor"
    found = of_text(tmp_path, "verl", "run.sh", VERL_ONE.format("grpo", ""))
    assert found.choices.weighting == "local"
    found = of_text(
        tmp_path, "verl", "run.sh", VERL_ONE.format("grpo", "trainer.use_legacy_worker_impl=disable")
    )
    assert found.choices.weighting == "tokens"
    for loss in ("gspo", "sapo", "geo_mean"):
        more = f"{actor}.policy_loss.loss_mode={loss} {actor}.loss_agg_mode=token-mean"
        found = of_text(tmp_path, "verl", "run.sh", VERL_ONE.format("grpo", more))
        assert found.choices.weighting == "sequence"
        assert f"{actor}.loss_agg_mode" in dict(found.without_effect)


def test_a_clipped_ratio_to_the_engine_takes_no_second_one(tmp_path):
    at = "algorithm.rollout_correction"
    more = f"{at}.bypass_mode=True {at}.rollout_is=token actor_rollout_ref.actor.policy_loss.loss_mode=gspo"
    found = of_text(tmp_path, "verl", "run.sh", VERL_ONE.format("grpo", more))
    assert found.choices.correction == "none"
    assert "clipped surrogate of each token" in found.choices.loss.words
    found = of_text(tmp_path, "verl", "run.sh", VERL_ONE.format("grpo", f"{more} {at}.loss_type=reinforce"))
    assert found.choices.correction == {"name": "tis", "cap": 2.0}
    assert "without a ratio" in found.choices.loss.words


def test_a_penalty_in_the_loss_of_nemo_is_weighted_and_one_in_the_reward_needs_an_advantage_that_takes_it(
    tmp_path,
):
    group = "grpo: {num_generations_per_prompt: 4, adv_estimator: {name: NAME}}\nloss_fn: {reference_policy_kl_penalty: 0.1, "
    found = of_text(
        tmp_path, "nemo", "a.yaml", group.replace("NAME", "grpo") + "reference_policy_kl_type: k3}"
    )
    assert said(found, "note", "its expected value: the reverse KL")
    assert not said(found, "bias", "KL(π_ref")
    found = of_text(
        tmp_path, "nemo", "a.yaml", group.replace("NAME", "grpo") + "reference_policy_kl_type: k2}"
    )
    assert said(found, "note", "not the reverse KL")
    found = of_text(tmp_path, "nemo", "a.yaml", group.replace("NAME", "grpo") + "use_kl_in_reward: true}")
    assert "does not take it in" in dict(found.without_effect)["loss_fn.reference_policy_kl_penalty"]
    found = of_text(
        tmp_path, "nemo", "a.yaml", group.replace("NAME", "reinforce_plus_plus") + "use_kl_in_reward: true}"
    )
    assert found.choices.kl
    assert found.choices.kl.place == "reward"
    assert said(found, "note", "not quite that of the reverse KL")  # by k3


def test_nemos_advantage_reads_the_keys_of_its_estimator_alone(tmp_path):
    found = of_text(
        tmp_path, "nemo", "a.yaml", "grpo: {normalize_rewards: false, num_generations_per_prompt: 4}"
    )
    assert found.choices.scaled == "group"
    assert "adv_estimator" in dict(found.without_effect)["grpo.normalize_rewards"]
    found = of_text(
        tmp_path,
        "nemo",
        "a.yaml",
        "grpo: {adv_estimator: {name: reinforce_plus_plus, minus_baseline: false}}",
    )
    assert not found.choices.centred
    found = of_text(tmp_path, "nemo", "a.yaml", "ppo: {num_prompts_per_step: 32}")
    assert (found.choices.steps, found.recipe["credit"]) == (
        4.0,
        {"name": "gae_token", "discount": 1.0, "lam": 0.95},
    )
    assert found.choices.scaled == "batch"


def test_a_masked_row_moves_nobody_where_no_mean_is_subtracted_and_nothing_is_off_policy_where_play_waits(
    tmp_path,
):
    """The same keys, with and without what makes them matter."""
    for it in ("true", "false"):
        advantage = f"adv_estimator: {{name: reinforce_plus_plus, minus_baseline: {it}}}"
        text = f"grpo: {{overlong_filtering: true, {advantage}, async_grpo: {{enabled: {it}}}}}"
        found = of_text(tmp_path, "nemo", "a.yaml", text)
        assert bool(said(found, "bias", "their rewards stay in their group's mean")) is (it == "true")
        assert bool(said(found, "bias", "nothing corrects the ratio")) is (it == "true")


def test_a_truncation_that_the_trainer_repeats_is_no_bias_of_ratios(tmp_path):
    found = of_text(
        tmp_path,
        "nemo",
        "a.yaml",
        "grpo: {num_generations_per_prompt: 4}\npolicy: {generation: {top_p: 0.9}}",
    )
    assert said(found, "note", "cuts its own alike")
    assert not said(found, "bias", "truncated distribution")


def test_trls_asynchronous_trainer_has_its_ratio_to_the_engine(tmp_path):
    text = "AsyncGRPOConfig(epsilon=0.3, max_staleness=2, vllm_server_base_url='http://a')"
    found = of_text(tmp_path, "trl", "a.py", text)
    assert said(found, "bias", "more than 2 steps ago")
    assert "1e-8" in found.choices.advantage.words
    assert not said(found, "bias", "nothing corrects")
    assert not found.without_effect


def test_trls_clips_without_effect_are_those_that_the_loss_does_not_read(tmp_path):
    def ineffective(text):
        return set(dict(of_text(tmp_path, "trl", "a.py", f"GRPOConfig({text})").without_effect))

    assert ineffective("loss_type='cispo', epsilon=5.0") == set()  # which stands for epsilon_high
    assert ineffective("loss_type='cispo', epsilon=0.2, epsilon_high=5.0") == {"epsilon"}
    assert ineffective("loss_type='vespo', epsilon_high=0.3, num_iterations=2") == {"epsilon_high"}
    assert (
        ineffective("epsilon=0.2, steps_per_generation=3, gradient_accumulation_steps=4") == set()
    )  # cut across steps
    assert ineffective("use_vllm=args.vllm, vllm_mode='colocate'") == set()  # code decides it
    luspo = of_text(
        tmp_path, "trl", "a.py", "GRPOConfig(loss_type='luspo', importance_sampling_level='sequence')"
    )
    assert luspo.choices.weighting == "fixed"
    local = of_text(
        tmp_path,
        "trl",
        "a.py",
        "GRPOConfig(loss_type='grpo', beta=0.1, num_iterations=2, steps_per_generation=2, gradient_accumulation_steps=4)",
    )
    assert local.choices.steps == 1
    assert {"name": "kl", "estimator": "k3", "weight": 0.1} in local.recipe["loss"]


def test_adapters_of_trl_are_a_trap_where_an_engine_samples(tmp_path):
    for engine, warned in (("", False), (" --use_vllm", True)):
        found = of_text(tmp_path, "trl", "a.sh", f"trl grpo --num_generations 4 --use_peft{engine}\n")
        assert bool(said(found, "trap", "Adapters are trained")) is warned


def test_switches_of_the_command_in_a_programs_first_lines_are_on(tmp_path):
    command = '"""\naccelerate launch a.py --num_generations 4 --use_peft --use_vllm --vllm_mode colocate --log_completions\n"""'
    found = of_text(
        tmp_path, "trl", "a.py", f"{command}\nTrlParser((ScriptArguments, GRPOConfig)).parse_args()\n"
    )
    assert said(found, "trap", "Adapters are trained")
    assert "vllm_mode" not in dict(found.without_effect)


def test_keywords_that_code_puts_together_are_read_and_said_to_be_open(tmp_path):
    found = of_text(
        tmp_path, "trl", "a.py", "kwargs: dict = dict(num_generations=n, beta=0.1)\nGRPOConfig(**kwargs)"
    )
    assert found.choices.group_size is None
    assert found.choices.kl
    assert "**kwargs" in found.unknown


def test_a_shell_script_is_not_run_and_nothing_that_it_decides_is_guessed(tmp_path):
    rollout = "actor_rollout_ref.rollout"
    text = f"if [ $big ]; then\nn=8\nelse\nn=16\nfi\nwhole=a/b.sh\nARGS=(algorithm.adv_estimator=rloo {rollout}.top_p=0.9)\npython3 -m verl.trainer.main_ppo {rollout}.n=$n {rollout}.dtype=${{whole%.*}} ~{rollout}.top_p=0.9\n"
    found = of_text(tmp_path, "verl", "run.sh", text)
    assert found.choices.group_size is None
    assert found.settings.unknown[f"{rollout}.n"] == "$n"
    assert f"{rollout}.dtype" in found.settings.unknown
    assert found.settings.get("algorithm.adv_estimator") == "rloo"
    assert not found.choices.truncated


def test_a_penalty_whose_gradient_is_nothing_is_named(explained):
    assert said(explained["verl"], "trap", "its expected gradient on fresh samples is 0")
    assert said(explained["trl"], "bias", "KL(π_ref ‖ π)")
    assert not said(explained["nemo"], "bias", "KL(π_ref")


def test_settings_without_effect_are_those_of_the_file_itself(explained):
    verl = dict(explained["verl"].without_effect)
    assert "defaults of their own" in verl["actor_rollout_ref.actor.clip_ratio"]
    assert "does not read it" in verl["algorithm.lam"]
    nemo = dict(explained["nemo"].without_effect)
    assert "ratio is 1" in nemo["loss_fn.ratio_clip_max"]
    assert "loss_fn.ratio_clip_min" not in nemo  # which the base gives
    assert "grpo.async_grpo.max_trajectory_age_steps" not in nemo


def test_several_steps_on_a_batch_make_the_clip_matter(explained):
    assert explained["verl"].choices.steps == 4
    assert not [key for key in dict(explained["verl"].without_effect) if key.endswith("clip_ratio_low")]
    assert explained["trl"].choices.steps is None  # a variable decides it


def test_what_code_decides_is_said_and_not_guessed(explained):
    assert explained["trl"].unknown["gradient_accumulation_steps"] == "steps"
    assert "trainer.n_gpus_per_node" not in explained["verl"].unknown  # which changes no objective


@pytest.mark.parametrize("trainer", TRAINERS)
def test_the_recipe_that_means_the_same_is_a_recipe(explained, trainer):
    recipe = load_recipe(as_recipe(explained[trainer]))
    wanted = {"verl": "grpo", "trl": "grpo", "prime-rl": "dr_grpo", "nemo": "grpo"}[trainer]
    assert recipe.credit.name == wanted
    json.dumps(to_json(explained[trainer]))
    assert all(len(line) <= 120 for line in text_of(explained[trainer]).splitlines()[1:])


@pytest.mark.parametrize(
    ("trainer", "name", "text", "words"),
    [
        ("verl", "sft.sh", "torchrun -m verl.trainer.fsdp_sft_trainer optim.lr=1e-5", "none of verl's keys"),
        ("nemo", "dpo.yaml", "dpo: {beta: 0.1}", "no section `grpo`"),
        ("prime-rl", "sft.toml", "[data]\nname = 'x'\n", "no [orchestrator]"),
        ("trl", "sft.py", "from trl import SFTConfig\nSFTConfig()", "makes no GRPOConfig"),
        ("trl", "broken.py", "GRPOConfig(", "is not Python"),
        ("nemo", "broken.yaml", "a: [", "is not YAML"),
        ("nemo", "loop.yaml", "defaults: loop.yaml\ngrpo: {a: 1}", "based on itself"),
        ("prime-rl", "broken.toml", "a = ", "is not TOML"),
        ("prim", "rl.toml", "", "There is no trainer"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path, trainer, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(TurnwiseError, match=words.replace("[", r"\[")):
        explain_other(trainer, tmp_path / name)


def test_a_base_that_is_not_there_is_said(tmp_path):
    (tmp_path / "a.yaml").write_text("defaults: ../grpo_math_1B.yaml\ngrpo: {num_generations_per_prompt: 4}")
    found = explain_other("nemo", tmp_path / "a.yaml")
    assert "../grpo_math_1B.yaml" in found.unknown
    assert found.choices.group_size == 4


def test_the_verb_explains_and_refuses_options_of_recipes(tmp_path, explained, capfd):
    from turnwise.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["explain", str(tmp_path / "grpo.yaml"), "--from", "nemo", "--json"])
    assert not ended.value.code
    assert json.loads(capfd.readouterr().out)["recipe"]["credit"] == "grpo"
    with pytest.raises(SystemExit) as ended:
        main(["explain", str(tmp_path / "grpo.yaml"), "--from", "nemo", "--set", "credit=rloo"])
    assert ended.value.code
