"""docs/coming-from.md, the arguments of other trainers and our keys: ``python -m turnwise.trainers.recipe.coming_from``.

What an argument is called here stands in :mod:`turnwise.trainers.recipe.synonyms`, from which messages about unknown
keys are made too; here are the arguments that each trainer has, and what is said of one of them alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from turnwise.trainers.recipe.synonyms import (
    CONTEXT,
    CREDIT,
    ENGINE_OPTION,
    REDUCE,
    REWARD,
    SYNONYMS,
    Here,
    called,
    instead,
    nothing,
)

HEAD = """\
# Coming from another trainer

What the arguments of TRL, verl and verifiers are called in a recipe. The same names at the top of a recipe of ours (of
verl's dotted names the last part) are refused with what this page says of them. Every key is explained in [recipes.md](recipes.md); whole algorithms have names too
(`algorithm: dapo`, `turnwise list algorithms`), and `turnwise explain RECIPE` shows what comes of them.

Worlds of others (reasoning-gym, TextArena, ScienceWorld, TextWorldExpress, BFCL, OpenEnv, verifiers) play here as they are: [packages
of others](how-to/foreign-worlds.md). Ours play in [TRL, OpenEnv, verifiers, Harbor, inspect_ai and PettingZoo](how-to/worlds-elsewhere.md).

Three things work fundamentally differently here:

- **A batch is counted in tasks and episodes.** An update plays `rollout.groups` tasks, `rollout.group_size` episodes each,
  and takes `optimizer.epochs` × `optimizer.minibatches` optimizer steps on them. Memory is set by
  `optimizer.micro_tokens`, which changes no result.
- **Rewards belong to the environment**, which names their parts turn by turn; a recipe's `reward` may replace them.
- **Several turns are the usual case.** A limit on tokens is of one turn (`sampling.max_tokens`); the number of turns is
  the environment's.

"""
FOOT = (
    "This page is generated (`python -m turnwise.trainers.recipe.coming_from`); a test keeps it up to date.\n"
)

_MISMATCH = "It masks instead of truncating: `correction: {name: mis, low: 0.5, high: 2.0}`."
_TOKENS = instead(
    "algorithm",
    "`sequence` is `algorithm: gspo`; other losses have ratios of single tokens, as with its default.",
)
_ALWAYS = nothing("It is always so: only tokens that the policy sampled carry loss.")
_LEARNERS = instead(
    "scale.learners",
    "`scale: {learners: 4}` learns in four processes, each with a GPU; --on places engines and workers beside them, also on "
    "other machines by Ray.",
)
_SHARDED = instead(
    "scale.weights",
    "`scale: {learners: 4, weights: sharded}` divides weights, gradients and moments among learners (FSDP2); nothing is offloaded "
    "to a processor's memory.",
)
_TRUNCATED = nothing("What a limit cut counts as it stands; `credit: gae_truncated` looks beyond the cut.")
_LR_SCHEDULE = instead(
    "schedule",
    "Such as `schedule: {optimizer.learning_rate: cosine}` (or `linear`), by update; without one the rate is constant after its warm-up.",
)
_ORDER = nothing("Tasks are drawn endlessly, by the seed.")
_OVERLONG = called(
    "reward",
    "`reward: {name: soft_overlong, limit: …, buffer: …, cost: …}`, of each turn's reply; limit is sampling.max_tokens.",
)
_SERVER = instead(
    "engine.kind engine.options",
    'Engines elsewhere are `engine: {kind: remote, options: {urls: ["http://127.0.0.1:8700"]}}`, each a `turnwise serve-engine`.',
)
_ASYNC = called("scale.staleness", "`scale: {staleness: 1}` plays the next update while this one is learned.")
_BEST = instead("evaluate.dev", "The checkpoint that did best on dev is judged and kept as `best`, always.")
_CRITIC = nothing("Values are read from the policy's hidden states by a head, whose weights a run makes.")
_REFERENCE = nothing("The reference is the model that reinforcement began with, and stays.")

TRL: Mapping[str, Here | None] = {
    "model": called("model.path"),
    "train_dataset": None,
    "eval_dataset": None,
    "reward_funcs": None,
    "reward_weights": None,
    "environment_factory": instead("suite", "An environment is a registered class; see writing-an-environment.md."),
    "tools": nothing("Tools are the environment's; `sampling.tools` says how they are shown to the model."),
    "peft_config": None,
    "num_generations": None,
    "per_device_train_batch_size": None,
    "gradient_accumulation_steps": None,
    "generation_batch_size": None,
    "steps_per_generation": None,
    "num_iterations": None,
    "max_steps": None,
    "num_train_epochs": None,
    "learning_rate": called("optimizer.learning_rate"),
    "lr_scheduler_type": _LR_SCHEDULE,
    "warmup_steps": None,
    "weight_decay": called("optimizer.weight_decay"),
    "adam_beta1": None,
    "adam_beta2": None,
    "max_grad_norm": called("optimizer.max_grad_norm"),
    "bf16": None,
    "gradient_checkpointing": called("model.gradient_checkpointing"),
    "use_cpu": None,
    "seed": called("seed"),
    "beta": None,
    "epsilon": None,
    "epsilon_high": None,
    "delta": None,
    "entropy_coef": None,
    "loss_type": instead(
        "reduce",
        "Its `grpo` is `reduce: sequence_mean`, its `dapo` is `reduce: token_mean`, its `dr_grpo` is "
        "`reduce: fixed_length`. Its cispo, sapo and luspo are losses of these names, such as `loss: [sapo]`.",
    ),
    "scale_rewards": None,
    "importance_sampling_level": _TOKENS,
    "mask_truncated_completions": _TRUNCATED,
    "top_entropy_quantile": instead("loss", "`loss: [high_entropy]` learns from the tokens of highest entropy; `shape: [{name: earl, share: 0.2, per: trajectory}]` takes those of each response."),
    "off_policy_mask_threshold": nothing("Nothing is dropped by its distance from the policy that sampled it."),
    "use_bias_correction_kl": nothing("The KL loss is not weighted by the ratio."),
    "sync_ref_model": _REFERENCE,
    "temperature": called("sampling.temperature"),
    "top_p": None,
    "top_k": None,
    "min_p": None,
    "repetition_penalty": None,
    "max_completion_length": None,
    "max_tool_calling_iterations": None,
    "chat_template_kwargs": called("sampling.template", "Such as `sampling: {template: {enable_thinking: false}}`."),
    "use_vllm": None,
    "vllm_mode": instead("engine.kind", "`engine: {kind: vllm}` is what it calls colocate, and kind remote what it calls server."),
    "vllm_gpu_memory_utilization": None,
    "vllm_tensor_parallel_size": None,
    "vllm_max_model_length": None,
    "vllm_enable_sleep_mode": nothing("The engine keeps its memory."),
    "vllm_server_base_url": _SERVER,
    "vllm_importance_sampling_correction": None,
    "vllm_importance_sampling_mode": instead(
        "correction",
        "Truncation is `correction: {name: tis, level: token}`, masking `correction: {name: mis, level: token}`; the "
        "level may be turn or trajectory too.",
    ),
    "vllm_importance_sampling_clip_max": None,
    "vllm_importance_sampling_clip_min": instead("correction", "`correction: {name: mis, low: 0.5}` has a lower bound."),
    "output_dir": None,
    "save_steps": None,
    "save_total_limit": None,
    "eval_strategy": called("evaluate.every", "It is counted in updates; a run always evaluates."),
    "eval_steps": None,
    "per_device_eval_batch_size": instead("rollout.concurrency", "Evaluation plays as many episodes at a time as training."),
    "num_generations_eval": nothing("Each dev or test task is played once; `turnwise eval --k` plays one k times."),
    "load_best_model_at_end": _BEST,
    "resume_from_checkpoint": None,
    "report_to": None,
    "run_name": None,
    "log_completions": nothing("Every episode of a run is in its episodes.jsonl.zst and episodes.parquet."),
    "deepspeed": _SHARDED,
}  # fmt: skip
"""``GRPOConfig`` and the arguments of ``GRPOTrainer`` (TRL 1.16). None: what the last part of the name means anywhere."""

VERL: Mapping[str, Here | None] = {
    "data.train_files": None,
    "data.val_files": None,
    "data.train_batch_size": None,
    "data.val_batch_size": None,
    "data.train_max_samples": _ORDER,
    "data.val_max_samples": None,
    "data.max_prompt_length": None,
    "data.max_response_length": None,
    "data.filter_overlong_prompts": nothing("A run whose prompts do not fit is refused before it starts (preflight)."),
    "reward_model.overlong_buffer.enable": _OVERLONG,
    "reward_model.overlong_buffer.len": _OVERLONG,
    "reward_model.overlong_buffer.penalty_factor": _OVERLONG,
    "data.shuffle": _ORDER,
    "data.seed": called("seed"),
    "data.custom_cls.path": instead("suite", "Tasks are made by an environment's generator; see writing-an-environment.md."),
    "actor_rollout_ref.model.path": called("model.path"),
    "actor_rollout_ref.model.lora_rank": None,
    "actor_rollout_ref.model.lora_alpha": None,
    "actor_rollout_ref.model.target_modules": None,
    "actor_rollout_ref.model.enable_gradient_checkpointing": None,
    "actor_rollout_ref.model.custom_chat_template": nothing("The tokeniser's template is used as it is; edit `chat_template.jinja` in the model's folder."),
    "actor_rollout_ref.model.use_remove_padding": nothing("Memory is counted in tokens (optimizer.micro_tokens)."),
    "actor_rollout_ref.actor.optim.lr": None,
    "actor_rollout_ref.actor.optim.lr_warmup_steps": None,
    "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio": None,
    "actor_rollout_ref.actor.optim.lr_scheduler_type": _LR_SCHEDULE,
    "actor_rollout_ref.actor.optim.weight_decay": called("optimizer.weight_decay"),
    "actor_rollout_ref.actor.optim.betas": called("optimizer.betas"),
    "actor_rollout_ref.actor.optim.clip_grad": None,
    "actor_rollout_ref.actor.grad_clip": None,
    "actor_rollout_ref.actor.ppo_mini_batch_size": None,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": None,
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": None,
    "actor_rollout_ref.actor.use_dynamic_bsz": None,
    "actor_rollout_ref.actor.ppo_epochs": None,
    "actor_rollout_ref.actor.shuffle": nothing("Episodes are cut into minibatches anew in every epoch."),
    "actor_rollout_ref.actor.clip_ratio": None,
    "actor_rollout_ref.actor.clip_ratio_low": None,
    "actor_rollout_ref.actor.clip_ratio_high": None,
    "actor_rollout_ref.actor.clip_ratio_c": None,
    "actor_rollout_ref.actor.policy_loss.loss_mode": instead("loss", "Its vanilla is `loss: [clip]`, its geo_mean `gmpo`; gspo, sapo, cispo, clip_cov, kl_cov are named as here."),
    "actor_rollout_ref.actor.loss_agg_mode": instead(
        "reduce",
        "Its token-mean is `reduce: token_mean`, its seq-mean-token-mean is `reduce: sequence_mean`, its "
        "seq-mean-token-sum-norm is `reduce: fixed_length`.",
    ),
    "actor_rollout_ref.actor.loss_scale_factor": instead("reduce", "It is an option: `reduce: {name: fixed_length, length: 1024}`."),
    "actor_rollout_ref.actor.entropy_coeff": None,
    "actor_rollout_ref.actor.use_kl_loss": None,
    "actor_rollout_ref.actor.kl_loss_coef": None,
    "actor_rollout_ref.actor.kl_loss_type": instead(
        "loss", "Its low_var_kl is `loss: [clip, {name: kl, weight: 0.01, estimator: k3}]`, the default; its mse is k2."
    ),
    "actor_rollout_ref.actor.fsdp_config.dtype": called("optimizer.precision", "It is auto, float32 or bfloat16."),
    "actor_rollout_ref.actor.fsdp_config.param_offload": _SHARDED,
    "actor_rollout_ref.actor.ulysses_sequence_parallel_size": nothing("A row of tokens is read by one learner."),
    "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": called("optimizer.micro_tokens"),
    "actor_rollout_ref.rollout.name": called("engine.kind", "It is vllm, torch or remote."),
    "actor_rollout_ref.rollout.n": None,
    "actor_rollout_ref.rollout.temperature": called("sampling.temperature"),
    "actor_rollout_ref.rollout.top_p": None,
    "actor_rollout_ref.rollout.top_k": None,
    "actor_rollout_ref.rollout.prompt_length": CONTEXT,
    "actor_rollout_ref.rollout.response_length": None,
    "actor_rollout_ref.rollout.max_model_len": None,
    "actor_rollout_ref.rollout.max_num_seqs": None,
    "actor_rollout_ref.rollout.gpu_memory_utilization": None,
    "actor_rollout_ref.rollout.tensor_model_parallel_size": None,
    "actor_rollout_ref.rollout.dtype": ENGINE_OPTION,
    "actor_rollout_ref.rollout.engine_kwargs": None,
    "actor_rollout_ref.rollout.free_cache_engine": nothing("The engine keeps its memory."),
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": called("optimizer.micro_tokens"),
    "actor_rollout_ref.rollout.calculate_log_probs": nothing("The engine's log-probabilities are always kept."),
    "actor_rollout_ref.rollout.val_kwargs.temperature": nothing("Dev is sampled; test is played sampled and greedily."),
    "actor_rollout_ref.rollout.val_kwargs.n": nothing("Each dev or test task is played once; `turnwise eval --k` plays one k times."),
    "actor_rollout_ref.rollout.multi_turn.enable": nothing("Every environment may have many turns."),
    "actor_rollout_ref.rollout.multi_turn.max_assistant_turns": None,
    "actor_rollout_ref.rollout.multi_turn.tool_config_path": nothing("Tools are the environment's."),
    "actor_rollout_ref.rollout.multi_turn.format": called("sampling.tools", "It is a dialect, such as hermes."),
    "actor_rollout_ref.rollout.multi_turn.max_tool_response_length": nothing("An environment caps its own observations."),
    "actor_rollout_ref.rollout.agent.num_workers": None,
    "actor_rollout_ref.rollout.agent.default_agent_loop": instead("suite", "What happens between two messages is the environment's."),
    "actor_rollout_ref.rollout.trace.backend": nothing("Every episode of a run is in its episodes.jsonl.zst."),
    "critic.optim.lr": called("optimizer.value_learning_rate"),
    "critic.model.path": _CRITIC,
    "critic.cliprange_value": nothing("The loss of values is not clipped."),
    "critic.ppo_epochs": called("optimizer.epochs", "The value head takes the same steps as the policy."),
    "reward.custom_reward_function.path": REWARD,
    "reward.reward_manager.name": REWARD,
    "reward.reward_model.enable": instead("judge", "A judge looks at the turns (`turnwise list judge`)."),
    "algorithm.adv_estimator": instead(
        "algorithm credit",
        "Such as `algorithm: grpo`, `algorithm: rloo`, `algorithm: reinforce++` or, for its gae, `algorithm: ppo`; "
        "credit alone names the advantage.",
    ),
    "algorithm.gamma": None,
    "algorithm.lam": None,
    "algorithm.norm_adv_by_std_in_grpo": None,
    "algorithm.use_kl_in_reward": nothing("KL is a loss here (`loss: [clip, {name: kl, weight: 0.01}]`)."),
    "algorithm.kl_penalty": None,
    "algorithm.kl_ctrl.kl_coef": None,
    "algorithm.kl_ctrl.type": instead("schedule", "Its adaptive is a schedule of the loss's weight: the schedule towards on the weight of the loss kl."),
    "algorithm.filter_groups.enable": instead("filter", "It is `filter: informative`, or `filter: any` for nothing."),
    "algorithm.filter_groups.metric": nothing("Compared is the return."),
    "algorithm.filter_groups.max_num_gen_batches": instead("rollout.refill.most", "It counts tasks, not batches; `rollout.refill.informative` says how many groups are enough."),
    "algorithm.rollout_correction.rollout_is": None,
    "algorithm.rollout_correction.rollout_is_threshold": None,
    "algorithm.rollout_correction.rollout_rs": instead("correction", _MISMATCH),
    "trainer.total_epochs": None,
    "trainer.total_training_steps": None,
    "trainer.save_freq": None,
    "trainer.test_freq": None,
    "trainer.val_before_train": nothing("The policy is always judged on test before reinforcement, and after it."),
    "trainer.max_actor_ckpt_to_keep": None,
    "trainer.default_local_dir": None,
    "trainer.resume_mode": None,
    "trainer.logger": None,
    "trainer.project_name": None,
    "trainer.experiment_name": None,
    "trainer.device": called("device"),
    "trainer.n_gpus_per_node": _LEARNERS,
    "trainer.nnodes": instead("scale.learners", "Learners on several machines are placed by Ray: `turnwise train RECIPE --on ray:engines=2`."),
    "trainer.critic_warmup": nothing("Values are learned from the first update on, beside the policy."),
}  # fmt: skip
"""The keys of verl's ``ppo_trainer.yaml``."""

VERIFIERS: Mapping[str, Here | None] = {
    "model": called("model.path"),
    "env": called("suite", "What load_environment(…) returns is an environment's class and a suite of its tasks."),
    "Rubric": REWARD,
    "MultiTurnEnv.max_turns": None,
    "use_lora": None,
    "lora_rank": None,
    "lora_alpha": None,
    "lora_target_modules": None,
    "lora_dropout": nothing("Adapters have no dropout."),
    "rollouts_per_example": None,
    "batch_size": None,
    "micro_batch_size": None,
    "max_seq_len": None,
    "max_prompt_len": None,
    "max_steps": None,
    "max_concurrent": None,
    "learning_rate": called("optimizer.learning_rate"),
    "lr_scheduler_type": _LR_SCHEDULE,
    "warmup_steps": None,
    "weight_decay": called("optimizer.weight_decay"),
    "max_grad_norm": called("optimizer.max_grad_norm"),
    "bf16": None,
    "gradient_checkpointing": called("model.gradient_checkpointing"),
    "epsilon": None,
    "importance_sampling_level": _TOKENS,
    "scale_rewards": None,
    "loss_type": REDUCE,
    "advantage": CREDIT,
    "mask_env_responses": _ALWAYS,
    "mask_truncated_completions": _TRUNCATED,
    "zero_truncated_completions": nothing("An environment pays what it pays when a limit cuts an episode."),
    "vllm_importance_sampling_cap": None,
    "max_tokens": called("sampling.max_tokens"),
    "temperature": called("sampling.temperature"),
    "top_p": None,
    "top_k": None,
    "min_p": None,
    "repetition_penalty": None,
    "num_batches_ahead": _ASYNC,
    "vllm_server_host": _SERVER,
    "vllm_server_port": _SERVER,
    "output_dir": None,
    "run_name": None,
    "seed": called("seed"),
    "save_steps": None,
    "save_total_limit": None,
    "eval_strategy": called("evaluate.every", "It is counted in updates; a run always evaluates."),
    "eval_steps": None,
    "report_to": None,
}  # fmt: skip
"""``vf.RLConfig`` of verifiers' trainer before v1, and what is around it."""

TRAINERS: Mapping[str, tuple[str, Mapping[str, Here | None]]] = {
    "TRL": ("`GRPOConfig` and `GRPOTrainer`", TRL),
    "verl": ("`ppo_trainer.yaml`: actor_rollout_ref, data, algorithm, critic, reward, trainer", VERL),
    "verifiers": (
        "`RLConfig`, environments and rubrics, as they were before v1 (0.1). v1 (0.4) has no trainer of its own; `verifiers:TASKSET` plays here",
        VERIFIERS,
    ),
}


def counterpart(argument: str, given: Here | None) -> Here:
    """Return what an argument is called here: what is said of it alone, or what its name means anywhere."""
    return given or SYNONYMS[argument.rpartition(".")[2]]


def foreign_argument(name: str) -> Here | None:
    """Return what an argument of another trainer is called here; of dotted names the last part, if it has more than one word."""
    if name in SYNONYMS:
        return SYNONYMS[name]
    for _, arguments in TRAINERS.values():
        for argument, given in arguments.items():
            last = argument.rpartition(".")[2]
            if given is not None and (
                name == argument or (name == last and ("_" in last or last == "nnodes"))
            ):
                return given
    return None


def page() -> str:
    """The page."""
    return HEAD + "".join(_tables()) + FOOT


def _tables() -> Iterator[str]:
    for name, (what, arguments) in TRAINERS.items():
        yield f"## {name}\n\n{what}.\n\n| {name} | here | |\n|---|---|---|\n"
        for argument, given in arguments.items():
            here = counterpart(argument, given)
            keys = ", ".join(f"`{key}`" for key in here.keys) or "no counterpart"
            yield f"| `{argument}` | {keys} | {here.note} |\n"
        yield "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/coming-from.md")
    target.write_text(page(), "utf-8")
    print(f"wrote {target}")
