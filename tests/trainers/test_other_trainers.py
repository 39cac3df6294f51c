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
    assert said(explained["prime-rl"], "trap", "nothing is learned")
    assert not any(said(explained[name], "trap", "group has one") for name in ("verl", "trl", "nemo"))


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
