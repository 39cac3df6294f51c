"""NeMo RL's GRPO and PPO: a YAML file with the files that it is based on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json
from turnwise.trainers.others.core import (
    Kl,
    ObjectivePart,
    OtherObjective,
    OtherTrainer,
    Settings,
    thinking_model,
    truncations,
)
from turnwise.trainers.others.reading import based_yaml, resolved

DEFAULTS: dict[str, Json] = {
    "grpo.num_prompts_per_step": 32, "grpo.num_generations_per_prompt": 16, "grpo.max_rollout_turns": 1, "grpo.normalize_rewards": True,
    "grpo.use_leave_one_out_baseline": True, "grpo.overlong_filtering": False, "grpo.use_dynamic_sampling": False,
    "grpo.async_grpo.enabled": False, "grpo.async_grpo.max_trajectory_age_steps": 1, "grpo.adv_estimator.name": "grpo",
    "loss_fn.reference_policy_kl_penalty": 0.01, "loss_fn.reference_policy_kl_type": "k3", "loss_fn.ratio_clip_min": 0.2,
    "loss_fn.ratio_clip_max": 0.2, "loss_fn.ratio_clip_c": None, "loss_fn.use_importance_sampling_correction": False,
    "loss_fn.sequence_level_importance_ratios": False, "loss_fn.token_level_loss": True, "loss_fn.use_kl_in_reward": False,
    "policy.train_global_batch_size": 512, "policy.generation.top_p": 1.0, "policy.generation.top_k": None,
    "policy.generation.temperature": 1.0, "grpo.adv_estimator.normalize_rewards": True,
    "grpo.adv_estimator.use_leave_one_out_baseline": True, "grpo.adv_estimator.minus_baseline": True,
}  # fmt: skip


PPO_DEFAULTS: dict[str, Json] = {
    **DEFAULTS, "grpo.adv_estimator.name": "gae", "grpo.adv_estimator.gae_lambda": 0.95, "grpo.adv_estimator.gae_gamma": 1.0,
    "grpo.adv_estimator.normalize_advantages": True, "grpo.ppo_epochs": 4,
}  # fmt: skip


def read(file: Path) -> Settings:
    """Read a YAML file and those that its `defaults` name, which lie beside it."""
    found = based_yaml(file)
    given, unknown = resolved(found.given)
    unknown |= dict.fromkeys(found.missing, "a file that is not beside this one")
    if not any(
        key.startswith("grpo.") for key in given
    ):  # run_ppo.py has the same keys below `ppo`, and its own estimator
        given = {
            "grpo." + key.removeprefix("ppo.") if key.startswith("ppo.") else key: value
            for key, value in given.items()
        }
        given = {key.replace("grpo.async_ppo.", "grpo.async_grpo."): value for key, value in given.items()}
    if not any(key.startswith("grpo.") for key in (*given, *unknown)) and not found.missing:
        raise TurnwiseError(
            f"{file} has no section `grpo` or `ppo`.",
            remedy="Give a file of run_grpo.py or run_ppo.py; imitation, preferences and distillation are not read.",
        )
    defaults = PPO_DEFAULTS if any(key.startswith("ppo.") for key in found.given) else DEFAULTS
    return Settings(file, given, unknown, defaults, found.below)


def choose(settings: Settings) -> OtherObjective:
    """Return the choices of NeMo RL's settings."""
    estimator = str(settings.get("grpo.adv_estimator.name"))
    whole = settings.on("loss_fn.token_level_loss")
    turns, group = (
        settings.number("grpo.max_rollout_turns"),
        settings.number("grpo.num_generations_per_prompt"),
    )
    asynchronous = settings.on("grpo.async_grpo.enabled")
    reinforce = settings.on("loss_fn.disable_ppo_ratio") or settings.on("loss_fn.force_on_policy_ratio")
    return OtherObjective(
        trainer=TRAINER.title,
        advantage=_advantage(settings, estimator),
        loss=_loss(settings),
        weights=ObjectivePart("the mean over all sampled tokens of the step", {"reduce": "token_mean"}, ("loss_fn.token_level_loss",)) if whole
        else ObjectivePart("the mean over a trajectory's tokens, then over trajectories", {"reduce": "sequence_mean"}, ("loss_fn.token_level_loss",)),
        others=tuple(_others(settings)),
        group_size=group,
        tasks=settings.number("grpo.num_prompts_per_step"),
        centred=estimator in ("grpo", "gdpo") or (estimator == "reinforce_plus_plus" and _subtracts(settings)),
        alone="zero" if estimator in ("grpo", "gdpo") or (estimator == "reinforce_plus_plus" and _subtracts(settings)) else "",
        scaled=_scaled(settings, estimator),
        one_number=estimator not in ("gae", "opd"),
        weighting="tokens" if whole else "sequence",
        steps=_steps(settings),
        ratio_free=reinforce,
        kl=_kl(settings),
        truncated=tuple(truncations(settings, "policy.generation.top_p", "policy.generation.top_k", "policy.generation.min_p", same=True)),
        masks_cut="grpo.overlong_filtering" if settings.on("grpo.overlong_filtering") else "",
        zero_groups=("grpo.use_dynamic_sampling", True) if settings.on("grpo.use_dynamic_sampling") else None,
        corrected=_correction(settings),
        correction=_our_correction(settings),
        asynchronous=asynchronous,
        length=("grpo.reward_shaping.enabled",) if settings.on("grpo.reward_shaping.enabled") else (),
        turns="grpo.max_rollout_turns" if turns and turns > 1 else ("env.should_use_nemo_gym" if settings.on("env.should_use_nemo_gym") else ""),
        thinks=thinking_model(settings.get("policy.model_name")),
        adapters=next((key for key in settings.given if ".lora_cfg.enabled" in key and settings.on(key)), ""),
        without_effect=tuple(_without_effect(settings)),
        by_code=(
            "the reward: the environment's, and what it pays for an episode that failed in reset (only rows that it marks `mask_sample` carry no loss)",
            "the chat template: whether the thinking of earlier turns stays in the prompt",
        ),
    )  # fmt: skip


def _subtracts(settings: Settings) -> bool:
    return settings.on("grpo.adv_estimator.minus_baseline")


def _scaled(settings: Settings, estimator: str) -> Literal["group", "batch", "no"]:
    if estimator == "grpo":
        return "group" if settings.on("grpo.adv_estimator.normalize_rewards") else "no"
    whitened = estimator in ("gae", "raw_reward") and settings.on("grpo.adv_estimator.normalize_advantages")
    return "batch" if whitened or estimator in ("reinforce_plus_plus", "gdpo") else "no"


def _advantage(settings: Settings, estimator: str) -> ObjectivePart:
    at = "grpo.adv_estimator"
    keys = (f"{at}.name", f"{at}.normalize_rewards", f"{at}.use_leave_one_out_baseline")
    if estimator == "grpo":
        alone = settings.on(f"{at}.use_leave_one_out_baseline")
        mean = "the mean of the group's others" if alone else "the group's mean"
        if _scaled(settings, estimator) == "group":
            spread = "their standard deviation" if alone else "the group's standard deviation"
            return ObjectivePart(f"the return minus {mean}, divided by {spread}", {"credit": "grpo"}, keys,
                        "`grpo` takes mean and deviation of the whole group" if alone else "")  # fmt: skip
        return ObjectivePart(f"the return minus {mean}", {"credit": "rloo" if alone else "dr_grpo"}, keys)
    if estimator == "reinforce_plus_plus":
        if not _subtracts(settings):
            words = "the return, standardised over the tokens of the batch"
            return ObjectivePart(words, {"credit": "reinforce_pp"}, (f"{at}.name", f"{at}.minus_baseline"))
        words = "the return minus the group's mean, standardised over the tokens of the batch"
        return ObjectivePart(
            words, {"credit": "dr_grpo", "shape": ["whiten"]}, (f"{at}.name", f"{at}.minus_baseline")
        )
    if estimator == "raw_reward":
        words = "the return" + (
            ", standardised over the tokens of the batch" if _scaled(settings, estimator) == "batch" else ""
        )
        return ObjectivePart(words, {}, (f"{at}.name", f"{at}.normalize_advantages"))
    if estimator == "gae":
        ours: dict[str, Json] = {
            "credit": {
                "name": "gae_token",
                "discount": settings.number(f"{at}.gae_gamma") or 1.0,
                "lam": settings.number(f"{at}.gae_lambda") or 0.95,
            }
        }
        whitened = {"shape": ["whiten"]} if _scaled(settings, estimator) == "batch" else {}
        return ObjectivePart(
            "GAE over single tokens, by a learned value", {**ours, **whitened}, ("grpo.adv_estimator.name",)
        )
    return ObjectivePart(f"NeMo RL's {estimator}", {}, keys)


def _loss(settings: Settings) -> ObjectivePart:
    low, high, dual = (settings.number(f"loss_fn.ratio_clip_{end}") for end in ("min", "max", "c"))
    low, high = 0.2 if low is None else low, 0.2 if high is None else high
    keys = ("loss_fn.ratio_clip_min", "loss_fn.ratio_clip_max", "loss_fn.ratio_clip_c")
    if settings.on("loss_fn.disable_ppo_ratio"):
        return ObjectivePart("−A·log π, without a ratio", {"loss": [{"name": "clip", "low": 1.0, "high": 1e6, "dual": None}]}, ("loss_fn.disable_ppo_ratio",),
                    "our `clip` keeps a ratio, which is 1 on the first step")  # fmt: skip
    if settings.on("loss_fn.use_cispo"):
        return ObjectivePart(
            f"−sg[clip(ρ, {1 - low:g}, {1 + high:g})]·A·log π",
            {"loss": [{"name": "cispo", "low": low, "high": high}]},
            keys,
        )
    if settings.on("loss_fn.sequence_level_importance_ratios"):
        return ObjectivePart(f"the clipped surrogate by the geometric mean of a sequence's ratios, in [1 − {low:g}, 1 + {high:g}]",
                    {"loss": [{"name": "gspo", "low": low, "high": high}]}, (*keys, "loss_fn.sequence_level_importance_ratios"))  # fmt: skip
    most = f", at most {dual:g}·|A| where A < 0" if dual else ""
    return ObjectivePart(f"the clipped surrogate of each token, its ratio in [1 − {low:g}, 1 + {high:g}]{most}",
                {"loss": [{"name": "clip", "low": low, "high": high, "dual": dual}]}, keys)  # fmt: skip


def _others(settings: Settings) -> Iterator[ObjectivePart]:
    found = _kl(settings)
    if found:
        ours: dict[str, Json] = {}
        if found.place == "loss" and found.estimator != "other":
            ours = {"loss": [{"name": "kl", "estimator": found.estimator, "weight": found.coefficient}]}
        weighted = ", weighted by the importance ratio" if found.weighted else ""
        yield ObjectivePart(f"{found.coefficient:g} times {found.estimator} of the policy against the reference, in the {found.place}{weighted}", ours,
                   ("loss_fn.reference_policy_kl_penalty", "loss_fn.reference_policy_kl_type"),
                   "our `kl` has no such weight" if ours and found.weighted else "")  # fmt: skip
    imitated = settings.number("loss_fn.positive_example_nll_weight")
    if imitated:
        yield ObjectivePart(
            f"{imitated:g} times the negative log-likelihood of solved trajectories (VAPO)",
            {},
            ("loss_fn.positive_example_nll_weight",),
        )
    if settings.on("grpo.use_dynamic_sampling"):
        yield ObjectivePart("groups without differences are replaced by further ones", {"filter": "informative"},
                   ("grpo.use_dynamic_sampling",), "for the replacement set rollout.refill")  # fmt: skip
    if _correction(settings):
        yield ObjectivePart(
            f"the gap between engine and trainer: {_correction(settings)}",
            {},
            ("loss_fn.use_importance_sampling_correction",),
        )


def _kl(settings: Settings) -> Kl | None:
    weight = settings.number("loss_fn.reference_policy_kl_penalty") or 0.0
    if weight <= 0 or _kl_unread(settings):
        return None
    kind = str(settings.get("loss_fn.reference_policy_kl_type"))
    estimator: Literal["k1", "k2", "k3", "other"] = kind if kind in ("k1", "k2", "k3") else "other"  # type: ignore[assignment]
    place = "reward" if settings.on("loss_fn.use_kl_in_reward") else "loss"
    # in the loss it is always multiplied by a ratio: to the engine's policy with use_on_policy_kl_approximation, else to itself
    return Kl(weight, estimator, place, "loss_fn.reference_policy_kl_type", place == "loss")


def _kl_unread(settings: Settings) -> bool:
    """Say whether the penalty is taken out of the loss, and no advantage takes it in."""
    reads = settings.get("grpo.adv_estimator.name") in ("reinforce_plus_plus", "gae")
    return settings.on("loss_fn.use_kl_in_reward") and not reads


def _correction(settings: Settings) -> str:
    if not settings.on("loss_fn.use_importance_sampling_correction"):
        return ""
    kind, cap = (
        settings.get("loss_fn.truncated_importance_sampling_type"),
        settings.number("loss_fn.truncated_importance_sampling_ratio"),
    )
    of = "whole trajectories" if settings.on("loss_fn.sequence_level_importance_ratios") else "single tokens"
    return f"ratios of {of}{f', {kind} at {cap:g}' if kind and cap else ', not cut'}"


def _our_correction(settings: Settings) -> Json:
    if not settings.on("loss_fn.use_importance_sampling_correction"):
        return "none"
    kind = settings.get("loss_fn.truncated_importance_sampling_type")
    cap = settings.number("loss_fn.truncated_importance_sampling_ratio") or 1e6
    least = settings.number("loss_fn.truncated_importance_sampling_ratio_min") or 0.0
    level: dict[str, Json] = (
        {"level": "trajectory"} if settings.on("loss_fn.sequence_level_importance_ratios") else {}
    )
    return (
        {"name": "mis", "low": least, "high": cap} if kind == "icepop" else {"name": "tis", "cap": cap}
    ) | level


def _steps(settings: Settings) -> float | None:
    keys = ("grpo.num_prompts_per_step", "grpo.num_generations_per_prompt", "policy.train_global_batch_size")
    prompts, group, batch = (settings.number(key) for key in keys)
    rounds = settings.number("grpo.ppo_epochs") or 1.0
    return rounds * max(1.0, prompts * group / batch) if prompts and group and batch else None


def _without_effect(settings: Settings) -> Iterator[tuple[str, str]]:
    free = next(
        (key for key in ("loss_fn.disable_ppo_ratio", "loss_fn.force_on_policy_ratio") if settings.on(key)),
        "",
    )
    for key in settings.given:
        if key.startswith("loss_fn.ratio_clip") and settings.get(key) is not None:
            if free:
                yield key, f"{free.rpartition('.')[2]} leaves no ratio to clip"
            elif _steps(settings) == 1 and not settings.on("grpo.async_grpo.enabled"):
                yield (
                    key,
                    "there is one optimizer step on each batch, and π_old is computed by the trainer: the ratio is 1",
                )
    for key in ("normalize_rewards", "use_leave_one_out_baseline"):
        if settings.gives(f"grpo.{key}") and not settings.gives(f"grpo.adv_estimator.{key}"):
            read = settings.get("grpo.adv_estimator.name") in ("grpo", "gdpo")
            yield (
                f"grpo.{key}",
                f"the advantage {'is by grpo.adv_estimator.' + key + ' (true)' if read else 'does not read it'}",
            )
    if _kl_unread(settings):
        for key in ("loss_fn.reference_policy_kl_penalty", "loss_fn.reference_policy_kl_type"):
            if settings.gives(key) and settings.get(key):
                yield (
                    key,
                    "use_kl_in_reward takes it out of the loss, and this adv_estimator does not take it in",
                )
    if settings.off("loss_fn.use_importance_sampling_correction"):
        for key in settings.given:
            if key.startswith("loss_fn.truncated_importance_sampling") and settings.get(key) is not None:
                yield key, "use_importance_sampling_correction is off"
    if not settings.number("loss_fn.reference_policy_kl_penalty"):
        for key in ("loss_fn.reference_policy_kl_type", "loss_fn.use_on_policy_kl_approximation"):
            if settings.gives(key) and settings.get(key):
                yield key, "reference_policy_kl_penalty is 0"
    if not settings.on("grpo.async_grpo.enabled"):
        for key in settings.given:
            if key.startswith("grpo.async_grpo.") and key != "grpo.async_grpo.enabled" and settings.get(key):
                yield key, "grpo.async_grpo.enabled is off"


TRAINER = OtherTrainer("nemo", "NeMo RL, with the defaults of 2026-08-22", read, choose)
