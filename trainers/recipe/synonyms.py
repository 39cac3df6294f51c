"""Keys as other trainers (TRL, verl, verifiers, OpenRLHF, …) call them, and what to write here instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Here(NamedTuple):
    """Keys by which another trainer's argument is called here.

    Attributes:
        keys: of a recipe, or options of `turnwise train` (``--out``); none where there is no counterpart.
        note: what else is to be said of it, in sentences.
        renamed: whether it is the same thing under another name.
    """

    keys: tuple[str, ...]
    note: str = ""
    renamed: bool = True

    @property
    def message(self) -> str:
        """Advice on what to write instead, for someone who used the argument here."""
        called = f"It is called {' or '.join(self.keys)}." if self.renamed and self.keys else ""
        return " ".join(filter(None, (called, self.note)))


def called(keys: str, note: str = "") -> Here:
    """The same thing under another name; several keys are separated by blanks."""
    return Here(tuple(keys.split()), note)


def instead(keys: str, note: str) -> Here:
    """Something else that does its work."""
    return Here(tuple(keys.split()), note, renamed=False)


def nothing(note: str) -> Here:
    """No counterpart, and why."""
    return Here((), note, renamed=False)


KL = instead("loss", "Write it as a loss: `loss: [clip, {name: kl, weight: 0.01}]`.")
ENTROPY = instead("loss", "Write it as a loss: `loss: [clip, {name: entropy, weight: 0.001}]`.")
CLIP = instead("loss", "It is an option of the loss: `loss: [{name: clip, low: 0.2, high: 0.28}]`.")
GROUPS = instead(
    "rollout.groups rollout.group_size",
    "An update plays rollout.groups tasks, rollout.group_size episodes each; optimizer.micro_tokens sets memory, and "
    "optimizer.minibatches the optimizer steps.",
)
MICRO = instead(
    "optimizer.micro_tokens",
    "Memory is set by optimizer.micro_tokens, which changes nothing else; steps by optimizer.minibatches.",
)
CREDIT = instead(
    "credit",
    "Name the rule that turns rewards into advantages, such as `credit: grpo` (`turnwise list credit`).",
)
UPDATES = called("updates", "An update plays episodes and learns from them.")
REWARD = instead(
    "reward",
    "Rewards are the environment's own; the recipe's reward replaces them (`turnwise list reward`), also by one of your own (`imports`).",
)
SUITE = called("suite", "`turnwise list suites` names those there are.")
OUT = instead("--out", "The folder is given on the command line: --out.")
SHOWN = instead(
    "sinks",
    "Figures go to sinks, such as `sinks: [tensorboard, wandb]` (`turnwise list sink`); every run writes report.html too.",
)
RUN_NAME = instead(
    "sinks",
    "It is the sink's, such as `sinks: [{name: wandb, project: mine}]`; a run is called after its folder.",
)
REDUCE = instead("reduce", "Denominators are chosen by reduce (`turnwise list reduce`).")
DISTRIBUTION = nothing(
    "It is not offered: log-probabilities are of the whole distribution at sampling.temperature."
)
CONTEXT = called("engine.context_length model.scratch.context", "The second is of a model from nothing.")
ENGINE_OPTION = instead(
    "engine.options",
    "It is one of engine.options: `engine: {options: {gpu_memory_utilization: 0.5}}`.",
)
TURNS = instead(
    "rollout.env_options",
    "The limit is the environment's: set it in its class, or in rollout.env_options where it has that option.",
)

_MEANINGS: Mapping[str, Here] = {
    "max_staleness max_staleness_steps max_off_policy_steps max_steps_off_policy max_head_offpolicyness "
    "max_trajectory_age_steps off_policy_steps max_off_policy_threshold": called(
        "scale.staleness", "It is a bound for every token; nothing is discarded."
    ),
    "lr actor_lr policy_lr": called("optimizer.learning_rate"),
    "critic_lr value_lr": called("optimizer.value_learning_rate"),
    "num_generations n rollout_n n_samples n_samples_per_prompt num_samples_per_prompt samples_per_prompt "
    "num_return_sequences rollouts_per_example": called("rollout.group_size"),
    "train_batch_size prompts_per_step num_prompts rollout_batch_size n_tasks num_tasks": called(
        "rollout.groups"
    ),
    "batch_size per_device_train_batch_size generation_batch_size": GROUPS,
    "gradient_accumulation_steps micro_batch_size micro_train_batch_size ppo_micro_batch_size "
    "ppo_micro_batch_size_per_gpu use_dynamic_bsz": MICRO,
    "ppo_max_token_len_per_gpu max_token_len": called("optimizer.micro_tokens"),
    "mini_batch_size ppo_mini_batch_size num_mini_batches steps_per_generation": called(
        "optimizer.minibatches", "It is the number of optimizer steps per epoch of an update, and not a size."
    ),
    "ppo_epochs num_ppo_epochs num_iterations inner_epochs": called("optimizer.epochs"),
    "max_steps steps total_steps num_steps iterations num_updates total_training_steps train_steps": UPDATES,
    "num_train_epochs total_epochs num_epochs total_episodes": UPDATES,
    "beta kl_coef kl_coeff kl_loss_coef init_kl_coef kl_weight kl_penalty use_kl_loss": KL,
    "kl_loss_type kl_estimator": instead(
        "loss", "It is the loss's estimator: `loss: [clip, {name: kl, weight: 0.01, estimator: k3}]`."
    ),
    "entropy_coef entropy_coeff ent_coef entropy_bonus entropy_weight": ENTROPY,
    "clip clip_ratio clip_range cliprange clip_eps clip_ratio_low clip_ratio_high epsilon epsilon_high eps_clip": CLIP,
    "clip_ratio_c dual_clip delta": instead(
        "loss", "It is clip's bound for negative advantages: `loss: [{name: clip, dual: 4.0}]`."
    ),
    "gamma discount discount_factor": instead(
        "credit", "It is an option of credit rules: `credit: {name: return_to_go, discount: 0.99}`."
    ),
    "lam lambda gae_lambda": instead(
        "credit", "It is an option of a credit rule: `credit: {name: gae, lam: 0.95}`."
    ),
    "adv_estimator advantage_estimator advantage": CREDIT,
    "algo rl_algorithm method": called("algorithm", "`turnwise list algorithms` names them."),
    "loss_type loss_agg_mode": REDUCE,
    "scale_rewards norm_adv_by_std_in_grpo": instead(
        "credit",
        "Credit rules differ in what they divide by: `credit: grpo` by the group's standard deviation, "
        "`credit: dr_grpo` by nothing, `credit: lite_ppo` by the batch's.",
    ),
    "max_new_tokens max_completion_length max_response_length max_tokens_per_turn response_length": called(
        "sampling.max_tokens", "It is of one turn; rollout.episode_tokens limits an episode."
    ),
    "max_prompt_length max_seq_length max_seq_len max_model_len max_length context context_window "
    "vllm_max_model_length prompt_length max_prompt_len": CONTEXT,
    "top_p top_k min_p repetition_penalty presence_penalty frequency_penalty": DISTRIBUTION,
    "model_name model_name_or_path base_model pretrained model_id checkpoint_path policy": called(
        "model.path"
    ),
    "env environment env_name env_id dataset dataset_name task tasks train_files train_dataset": SUITE,
    "reward_fn reward_func reward_funcs reward_function reward_model rewards reward_weights": REWARD,
    "use_vllm backend inference_engine rollout_engine": called("engine.kind", "It is vllm, torch or remote."),
    "gpu_memory_utilization tensor_parallel_size tp kv_cache_gib vllm_gpu_memory_utilization dtype "
    "vllm_tensor_parallel_size tensor_model_parallel_size engine_kwargs": ENGINE_OPTION,
    "max_num_seqs": called("engine.max_sequences"),
    "output_dir save_dir output_path run_dir out default_local_dir": OUT,
    "resume resume_from_checkpoint resume_mode": instead(
        "--resume", "It is said on the command line: --resume."
    ),
    "save_steps save_freq save_interval save_every": called("checkpoint.every", "It is counted in updates."),
    "save_total_limit max_checkpoints max_actor_ckpt_to_keep": called("checkpoint.keep"),
    "eval_steps eval_freq test_freq eval_every eval_interval": called(
        "evaluate.every", "It is counted in updates."
    ),
    "eval eval_episodes num_eval_episodes val_batch_size val_max_samples": called(
        "evaluate.dev evaluate.test",
        "They are numbers of tasks; the checkpoint is chosen on dev and judged on test.",
    ),
    "eval_dataset val_files": instead(
        "evaluate.dev evaluate.test", "Every suite has splits of its own for both."
    ),
    "grad_clip clip_grad gradient_clipping": called("optimizer.max_grad_norm"),
    "warmup_steps lr_warmup_steps num_warmup_steps": called(
        "optimizer.warmup", "It is counted in optimizer steps."
    ),
    "warmup_ratio lr_warmup_steps_ratio": instead(
        "optimizer.warmup", "Warm-up is optimizer.warmup, a number of optimizer steps and not a share."
    ),
    "adam_beta1 adam_beta2 adam_betas": called("optimizer.betas"),
    "lora_r r lora_rank": called("model.lora.rank"),
    "lora_alpha": called("model.lora.alpha"),
    "target_modules lora_target_modules": called("model.lora.targets"),
    "use_lora use_peft peft_config lora_config": instead(
        "model.lora", "Adapters are `model: {lora: {rank: 16}}`."
    ),
    "bf16 fp16 torch_dtype mixed_precision": called(
        "optimizer.precision", "It is auto, float32 or bfloat16."
    ),
    "enable_gradient_checkpointing": called("model.gradient_checkpointing"),
    "use_cpu no_cuda": called("device"),
    "num_envs n_envs parallel_envs max_concurrency max_concurrent": called("rollout.concurrency"),
    "num_workers workers num_processes": called(
        "rollout.env_workers", "They are processes for environments."
    ),
    "max_turns turn_limit max_episode_steps horizon max_assistant_turns max_user_turns max_tool_calling_iterations": TURNS,
    "vllm_importance_sampling_correction rollout_is tis": instead(
        "correction", "It is `correction: tis`, or `correction: none` for nothing."
    ),
    "vllm_importance_sampling_cap vllm_importance_sampling_clip_max rollout_is_threshold tis_cap": instead(
        "correction", "It is an option of the correction: `correction: {name: tis, cap: 2.0}`."
    ),
    "sft sft_episodes cold_start": called(
        "warm_start", "Such as `warm_start: {demonstrator: gold, episodes: 4000}`."
    ),
    "random_seed": called("seed"),
    "report_to wandb mlflow logger log_with use_wandb": SHOWN,
    "project_name experiment_name run_name": RUN_NAME,
}

SYNONYMS: Mapping[str, Here] = {key: here for keys, here in _MEANINGS.items() for key in keys.split()}
"""A key that a recipe does not have → what is meant."""

PARTS: Mapping[tuple[str, str], str] = {
    ("credit", "ppo"): "Write algorithm: ppo, or credit: gae_token with loss: [clip].",
    ("credit", "reinforce"): "REINFORCE is credit: return_to_go, or reinforce_pp.",
    ("credit", "dapo"): "Write algorithm: dapo, which is credit: grpo with a wider clip.",
    (
        "credit",
        "reinforce_pp_baseline",
    ): "It is credit: dr_grpo with shape: [whiten], or algorithm: reinforce++_baseline.",
    ("loss", "grpo"): "Write algorithm: grpo, or credit: grpo with loss: [clip].",
    (
        "loss",
        "ppo",
    ): "PPO's loss is called clip: loss: [clip], with credit: gae_token; or write algorithm: ppo.",
    (
        "loss",
        "policy_gradient",
    ): "It is called clip; with one optimizer step per batch it is the policy gradient.",
    (
        "reward",
        "e_grpo",
    ): "The reward is called near_miss; e_grpo is the credit rule, which pays for what gold names.",
    ("loss", "kl_penalty"): "It is called kl: loss: [clip, {name: kl, weight: 0.01}].",
}
"""A part that there is not, as others call it → what to write."""
