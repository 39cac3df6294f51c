"""verl's main_ppo: its Hydra keys, in a YAML file or as words of a shell script."""

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
from turnwise.trainers.others.reading import assignments, based_yaml, resolved

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
ROOTS = (
    "actor_rollout_ref",
    "algorithm",
    "data",
    "trainer",
    "critic",
    "reward_model",
    "reward",
    "custom_reward_function",
    "async_training",
    "rollout",
)
DEFAULTS: dict[str, Json] = {
    "algorithm.adv_estimator": "gae", "algorithm.gamma": 1.0, "algorithm.lam": 1.0, "algorithm.norm_adv_by_std_in_grpo": True,
    "algorithm.use_kl_in_reward": False, "algorithm.kl_penalty": "kl", "algorithm.kl_ctrl.kl_coef": 0.001,
    "algorithm.rollout_correction.rollout_is": None, "algorithm.rollout_correction.rollout_is_threshold": 2.0,
    "algorithm.rollout_correction.rollout_rs": None, "algorithm.rollout_correction.bypass_mode": False,
    f"{ACTOR}.ppo_mini_batch_size": 256, f"{ACTOR}.ppo_epochs": 1, f"{ACTOR}.clip_ratio": 0.2, f"{ACTOR}.clip_ratio_low": 0.2,
    f"{ACTOR}.clip_ratio_high": 0.2, f"{ACTOR}.clip_ratio_c": 3.0, f"{ACTOR}.policy_loss.loss_mode": "vanilla",
    f"{ACTOR}.loss_agg_mode": "token-mean", f"{ACTOR}.entropy_coeff": 0, f"{ACTOR}.use_kl_loss": False,
    f"{ACTOR}.kl_loss_coef": 0.001, f"{ACTOR}.kl_loss_type": "low_var_kl", f"{ROLLOUT}.n": 1, f"{ROLLOUT}.temperature": 1.0,
    f"{ROLLOUT}.top_k": -1, f"{ROLLOUT}.top_p": 1, f"{ROLLOUT}.multi_turn.enable": False, "data.train_batch_size": 1024,
    "data.max_response_length": 512, "trainer.use_legacy_worker_impl": "auto",
    "algorithm.rollout_correction.loss_type": "ppo_clip",
}  # fmt: skip
_ESTIMATORS: dict[str, tuple[str, dict[str, Json]]] = {
    "gae": ("GAE over single tokens, by a learned value (γ and λ per token)", {"credit": "gae_token"}),
    "rloo": ("the return minus the mean return of the group's others", {"credit": "rloo"}),
    "rloo_vectorized": ("the return minus the mean return of the group's others", {"credit": "rloo"}),
    "reinforce_plus_plus": ("the discounted return of each token, standardised over the batch", {"credit": "reinforce_pp"}),
    "reinforce_plus_plus_baseline": ("the return minus the group's mean, standardised over the batch", {"credit": "dr_grpo", "shape": ["whiten"]}),
    "opo": ("the return minus the group's mean weighted by length", {"credit": "opo"}),
    "grpo_passk": ("the best of the group gets its lead over the second best, divided by the standard deviation", {"credit": "pass_at_k"}),
    "remax": ("the return minus that of a greedy answer", {}),
    "gpg": ("the return minus the group's mean, times the batch's episodes over those of them whose return is not 0", {"credit": "dr_grpo", "shape": ["gpg"]}),
}  # fmt: skip
_WHOLE = ("gspo", "sapo", "geo_mean")
"""Losses that take the mean over a trajectory's tokens, then over trajectories, whatever loss_agg_mode says."""
_NO_CLIP = ("gpg", "sapo", "kl_cov")
_WEIGHTS: dict[str, tuple[str, dict[str, Json], Literal["tokens", "sequence", "fixed"]]] = {
    "token-mean": ("the mean over all sampled tokens of the minibatch", {"reduce": "token_mean"}, "tokens"),
    "seq-mean-token-mean": (
        "the mean over a trajectory's tokens, then over trajectories",
        {"reduce": "sequence_mean"},
        "sequence",
    ),
    "seq-mean-token-sum": (
        "the sum over a trajectory's tokens, then the mean over trajectories",
        {"reduce": "fixed_length"},
        "fixed",
    ),
    "seq-mean-token-sum-norm": (
        "the sum over tokens divided by a constant",
        {"reduce": "fixed_length"},
        "fixed",
    ),
}
_KL: dict[str, Literal["k1", "k2", "k3", "other"]] = {
    "kl": "k1",
    "k1": "k1",
    "mse": "k2",
    "k2": "k2",
    "low_var_kl": "k3",
    "k3": "k3",
}


def read(file: Path) -> Settings:
    """Read a shell script with verl's keys as words, or a YAML file with what it is based on."""
    below = frozenset[str]()
    if file.suffix in (".sh", ".bash", ".md", ".txt"):
        given, unknown = assignments(file, ROOTS)
    else:
        found = based_yaml(file)
        below = found.below
        given, unknown = resolved(found.given)
        unknown |= {
            name: "a file that is not beside this one"
            for name in found.missing
            if name not in ("ppo_trainer", "ppo_megatron_trainer")
        }
    if not any(
        key.split(".")[0] in ROOTS for key in given
    ):  # a file that launches: its command stands in the text
        given, unknown = assignments(file, ROOTS)
    if not any(key.split(".")[0] in ("actor_rollout_ref", "algorithm") for key in (*given, *unknown)):
        raise TurnwiseError(
            f"{file} has none of verl's keys (actor_rollout_ref, algorithm).",
            remedy="Give the script that starts main_ppo, or its YAML file; imitation (sft) is not read.",
        )
    return Settings(file, given, unknown, DEFAULTS, below)


def choose(settings: Settings) -> OtherObjective:
    """Return the choices of verl's settings."""
    estimator = str(settings.get("algorithm.adv_estimator")).lower()
    scaled = _scaled(settings, estimator)
    weights, weighting = _weights(settings)
    filters = settings.on("algorithm.filter_groups.enable")
    buffer = [
        key
        for key in settings.given
        if "overlong_buffer" in key and key.endswith("enable") and settings.on(key)
    ]
    return OtherObjective(
        trainer=TRAINER.title,
        advantage=_advantage(settings, estimator),
        loss=_loss(settings),
        weights=weights,
        others=tuple(_others(settings)),
        group_size=settings.number(f"{ROLLOUT}.n"),
        tasks=settings.number("data.train_batch_size"),
        centred=estimator not in ("gae", "reinforce_plus_plus", "remax"),
        alone="zero" if estimator == "rloo_vectorized" else "" if estimator in ("gae", "reinforce_plus_plus", "remax", "grpo_passk") else "reward",
        scaled=scaled,
        one_number=estimator not in ("gae", "reinforce_plus_plus"),
        weighting=weighting,
        steps=_steps(settings),
        ratio_free=_mode(settings) in ("gpg", "reinforce"),
        kl=_kl(settings),
        truncated=tuple(truncations(settings, f"{ROLLOUT}.top_p", f"{ROLLOUT}.top_k", f"{ROLLOUT}.min_p")),
        zero_groups=("algorithm.filter_groups.enable", True) if filters else None,
        corrected=_correction(settings) or ("the ratio of the loss is to the policy that played" if _played(settings) else ""),
        correction=_our_correction(settings),
        asynchronous=_asynchronous(settings),
        length=tuple(buffer),
        turns=_turns(settings),
        thinks=thinking_model(settings.get("actor_rollout_ref.model.path")),
        adapters="actor_rollout_ref.model.lora_rank" if settings.number("actor_rollout_ref.model.lora_rank") else "",
        without_effect=tuple(_without_effect(settings, estimator)),
        by_code=(
            "the reward (`custom_reward_function`, the reward manager), and what it pays for an episode whose environment failed",
            "the chat template: whether the thinking of earlier turns stays in the prompt",
        ),
    )  # fmt: skip


def _mode(settings: Settings) -> str:
    """The policy's loss; in bypass mode it is chosen anew, and policy_loss.loss_mode is not read."""
    if settings.on(_BYPASS):
        kind = settings.get("algorithm.rollout_correction.loss_type")
        return "reinforce" if kind == "reinforce" else "vanilla"
    return str(settings.get(f"{ACTOR}.policy_loss.loss_mode"))


_BYPASS = "algorithm.rollout_correction.bypass_mode"


def _weights(settings: Settings) -> tuple[ObjectivePart, Literal["tokens", "sequence", "fixed", "local"]]:
    mode, key = _mode(settings), f"{ACTOR}.loss_agg_mode"
    if mode in _WHOLE:
        words, reduce, weighting = _WEIGHTS["seq-mean-token-mean"]
        return ObjectivePart(words, reduce, (f"{ACTOR}.policy_loss.loss_mode",)), weighting
    aggregate = str(settings.get(key))
    if aggregate == "token-mean" and settings.get("trainer.use_legacy_worker_impl") != "disable":
        words = "the mean over the sampled tokens of each micro-batch, then over micro-batches"
        return ObjectivePart(
            words, {"reduce": "token_mean"}, (key,), "`token_mean` is over the minibatch"
        ), "local"
    words, reduce, weighting = _WEIGHTS.get(aggregate, (f"verl's {aggregate}", {}, "tokens"))
    return ObjectivePart(words, reduce, (key,)), weighting


def _asynchronous(settings: Settings) -> bool:
    return any(key.startswith("async_training.") for key in (*settings.given, *settings.unknown))


def _played(settings: Settings) -> bool:
    """Say whether π_old is the policy that played, by the engine's log-probabilities."""
    if settings.on(_BYPASS):
        return True
    named = settings.get("async_training.use_rollout_log_probs")
    return _asynchronous(settings) and (named is None or settings.on("async_training.use_rollout_log_probs"))


def _turns(settings: Settings) -> str:
    if settings.on(f"{ROLLOUT}.multi_turn.enable"):
        return f"{ROLLOUT}.multi_turn.enable"
    loops = (f"{ROLLOUT}.agent.default_agent_loop", f"{ROLLOUT}.agent.agent_loop_config_path")
    return next(
        (
            key
            for key in loops
            if settings.gives(key) and settings.get(key) not in (None, "single_turn_agent")
        ),
        "",
    )


def _scaled(settings: Settings, estimator: str) -> Literal["group", "batch", "no"]:
    if estimator in ("grpo", "grpo_vectorized", "grpo_passk") and settings.on(
        "algorithm.norm_adv_by_std_in_grpo"
    ):
        return "group"
    return "batch" if estimator in ("gae", "reinforce_plus_plus", "reinforce_plus_plus_baseline") else "no"


def _advantage(settings: Settings, estimator: str) -> ObjectivePart:
    keys = ("algorithm.adv_estimator",)
    if estimator in ("grpo", "grpo_vectorized"):
        if settings.on("algorithm.norm_adv_by_std_in_grpo"):
            words = "the return minus the group's mean, divided by the group's standard deviation"
            return ObjectivePart(words, {"credit": "grpo"}, (*keys, "algorithm.norm_adv_by_std_in_grpo"))
        return ObjectivePart(
            "the return minus the group's mean",
            {"credit": "dr_grpo"},
            (*keys, "algorithm.norm_adv_by_std_in_grpo"),
        )
    words, ours = _ESTIMATORS.get(estimator, (f"verl's {estimator}", {}))
    if estimator == "gae":
        ours = {"credit": {"name": "gae_token", "discount": settings.number("algorithm.gamma"), "lam": settings.number("algorithm.lam")},
                "shape": ["whiten"]}  # fmt: skip
    return ObjectivePart(
        words, ours, keys, "our `gpg` counts the groups that differ" if estimator == "gpg" else ""
    )


def _loss(settings: Settings) -> ObjectivePart:
    mode = _mode(settings)
    low, high = settings.number(f"{ACTOR}.clip_ratio_low"), settings.number(f"{ACTOR}.clip_ratio_high")
    low, high, dual = (
        0.2 if low is None else low,
        0.2 if high is None else high,
        settings.number(f"{ACTOR}.clip_ratio_c"),
    )
    keys = (f"{ACTOR}.policy_loss.loss_mode", f"{ACTOR}.clip_ratio_low", f"{ACTOR}.clip_ratio_high")
    span = f"[1 − {low:g}, 1 + {high:g}]"
    match mode:
        case "vanilla":
            return ObjectivePart(f"the clipped surrogate of each token, its ratio in {span}, at most {dual:g}·|A| where A < 0",
                        {"loss": [{"name": "clip", "low": low, "high": high, "dual": dual}]}, (*keys, f"{ACTOR}.clip_ratio_c"))  # fmt: skip
        case "gspo":
            return ObjectivePart(f"the clipped surrogate by the geometric mean of a sequence's ratios, in {span}",
                        {"loss": [{"name": "gspo", "low": low, "high": high}]}, keys)  # fmt: skip
        case "cispo":
            return ObjectivePart(
                f"−sg[clip(ρ, {1 - low:g}, {1 + high:g})]·A·log π",
                {"loss": [{"name": "cispo", "low": low, "high": high}]},
                keys,
            )
        case "geo_mean":
            return ObjectivePart(
                "the geometric mean of a sequence's clipped ratios (GMPO)",
                {"loss": ["gmpo"]},
                keys,
                "our clip is one number in log space",
            )
        case "sapo" | "clip_cov" | "kl_cov":
            return ObjectivePart(f"verl's {mode}", {"loss": [mode]}, keys)
        case "gpg" | "reinforce":
            return ObjectivePart("−A·log π, without a ratio", {"loss": [{"name": "clip", "low": 1.0, "high": 1e6, "dual": None}]}, keys,
                        "our `clip` keeps a ratio, which is 1 on the first step")  # fmt: skip
        case _:
            return ObjectivePart(f"verl's {mode}", {}, keys)


def _others(settings: Settings) -> Iterator[ObjectivePart]:
    entropy = settings.number(f"{ACTOR}.entropy_coeff")
    if entropy:
        yield ObjectivePart(
            f"an entropy bonus of {entropy:g}",
            {"loss": [{"name": "entropy", "weight": entropy}]},
            (f"{ACTOR}.entropy_coeff",),
        )
    if settings.on(f"{ACTOR}.use_kl_loss"):
        kind = _KL.get(str(settings.get(f"{ACTOR}.kl_loss_type")).rstrip("+"), "other")
        weight = settings.number(f"{ACTOR}.kl_loss_coef") or 0.0
        ours: dict[str, Json] = (
            {"loss": [{"name": "kl", "estimator": kind, "weight": weight}]}
            if kind != "other" and weight
            else {}
        )
        yield ObjectivePart(
            f"{weight:g} times {kind} of the policy against the reference",
            ours,
            (f"{ACTOR}.use_kl_loss", f"{ACTOR}.kl_loss_type"),
        )
    if settings.on("algorithm.use_kl_in_reward"):
        kind = str(settings.get("algorithm.kl_penalty"))
        what = (
            "log π/π_ref"
            if _KL.get(kind) == "k1"
            else f"the estimator {_KL.get(kind, kind)} of the policy against the reference"
        )
        yield ObjectivePart(f"{settings.number('algorithm.kl_ctrl.kl_coef') or 0.0:g} times {what} is taken from the reward of each token", {},
                   ("algorithm.use_kl_in_reward", "algorithm.kl_penalty"))  # fmt: skip
    if settings.on("algorithm.filter_groups.enable"):
        yield ObjectivePart("groups without differences are replaced by further ones (by recipe/dapo's trainer: main_ppo does not read this key)",
                   {"filter": "informative"}, ("algorithm.filter_groups.enable",), "for the replacement set rollout.refill")  # fmt: skip
    if _correction(settings):
        yield ObjectivePart(
            f"the gap between engine and trainer: {_correction(settings)}",
            {},
            ("algorithm.rollout_correction.rollout_is",),
        )


def _kl(settings: Settings) -> Kl | None:
    if settings.on(f"{ACTOR}.use_kl_loss"):
        kind = str(settings.get(f"{ACTOR}.kl_loss_type"))
        weight = settings.number(f"{ACTOR}.kl_loss_coef") or 0.0
        # a plus sign: the value of this estimator with the gradient of k2
        return (
            Kl(
                weight,
                "k2" if kind.endswith("+") else _KL.get(kind, "other"),
                "loss",
                f"{ACTOR}.kl_loss_type",
            )
            if weight
            else None
        )
    if settings.on("algorithm.use_kl_in_reward"):
        kind = _KL.get(str(settings.get("algorithm.kl_penalty")).rstrip("+"), "other")
        return Kl(
            settings.number("algorithm.kl_ctrl.kl_coef") or 0.0, kind, "reward", "algorithm.use_kl_in_reward"
        )
    return None


def _correction(settings: Settings) -> str:
    at = "algorithm.rollout_correction"
    level, cap = settings.get(f"{at}.rollout_is"), settings.number(f"{at}.rollout_is_threshold")
    rejects = settings.get(f"{at}.rollout_rs")
    said = (
        [f"ratios of each {level}, cut at {cap:g}"] if level and cap and not _clipped_bypass(settings) else []
    )
    said += [f"rejection by {rejects}"] if rejects else []
    old = settings.number(f"{ACTOR}.tis_imp_ratio_cap")
    return ", ".join(said + ([f"ratios of each token, cut at {old:g}"] if old and old > 0 else []))


def _clipped_bypass(settings: Settings) -> bool:
    """Say whether the clipped ratio is to the engine, so that no further ratio is taken."""
    return settings.on(_BYPASS) and _mode(settings) == "vanilla"


def _our_correction(settings: Settings) -> Json:
    at = "algorithm.rollout_correction"
    level, cap = settings.get(f"{at}.rollout_is"), settings.number(f"{at}.rollout_is_threshold")
    if not level or not cap or _clipped_bypass(settings):
        return "none"
    return {"name": "tis", "cap": cap} | ({"level": "trajectory"} if level == "sequence" else {})


def _steps(settings: Settings) -> float | None:
    keys = ("data.train_batch_size", f"{ACTOR}.ppo_mini_batch_size", f"{ACTOR}.ppo_epochs")
    batch, mini, epochs = (settings.number(key) for key in keys)
    if not batch or not mini or epochs is None:
        return None
    return epochs * max(1.0, batch / mini)


def _without_effect(settings: Settings, estimator: str) -> Iterator[tuple[str, str]]:
    yield from _clips_without_effect(settings)
    if estimator != "gae":
        for key in settings.given:
            if key == "algorithm.lam" or (key == "algorithm.gamma" and estimator != "reinforce_plus_plus"):
                yield key, f"adv_estimator {estimator} does not read it"
            elif key.startswith("critic.") and not settings.on("critic.enable"):
                yield key, f"adv_estimator {estimator} has no critic"
    if settings.gives("algorithm.norm_adv_by_std_in_grpo") and not estimator.startswith("grpo"):
        yield "algorithm.norm_adv_by_std_in_grpo", f"adv_estimator {estimator} does not read it"
    if settings.off(f"{ACTOR}.use_kl_loss"):
        for key in (f"{ACTOR}.kl_loss_coef", f"{ACTOR}.kl_loss_type"):
            if settings.gives(key):
                yield key, "use_kl_loss is off"
    elif settings.number(f"{ACTOR}.kl_loss_coef") == 0:
        yield f"{ACTOR}.use_kl_loss", "kl_loss_coef is 0"
    if settings.off("algorithm.use_kl_in_reward"):
        for key in settings.given:
            if key.startswith("algorithm.kl_ctrl.") or key == "algorithm.kl_penalty":
                yield key, "use_kl_in_reward is off"


def _clips_without_effect(settings: Settings) -> Iterator[tuple[str, str]]:
    mode, chosen = _mode(settings), f"{ACTOR}.policy_loss.loss_mode"
    if settings.on(_BYPASS) and settings.gives(chosen):
        yield chosen, "rollout_correction.bypass_mode chooses the loss by its loss_type"
    others = settings.on(f"{ACTOR}.use_kl_loss") or settings.number(f"{ACTOR}.entropy_coeff")  # which read it
    aggregate = f"{ACTOR}.loss_agg_mode"
    if (
        mode in _WHOLE
        and not others
        and settings.gives(aggregate)
        and settings.get(aggregate) != "seq-mean-token-mean"
    ):
        yield aggregate, f"loss_mode {mode} takes the mean by trajectory whatever it says"
    if mode in _NO_CLIP:
        for key in settings.given:
            if key.startswith(f"{ACTOR}.clip_ratio"):
                yield key, f"loss_mode {mode} does not read it"
    if settings.gives(f"{ACTOR}.clip_ratio") and mode not in _NO_CLIP:
        both = all(settings.number(f"{ACTOR}.clip_ratio_{end}") is not None for end in ("low", "high"))
        if both and not settings.gives(f"{ACTOR}.clip_ratio_low", f"{ACTOR}.clip_ratio_high"):
            yield (
                f"{ACTOR}.clip_ratio",
                "clip_ratio_low and clip_ratio_high have defaults of their own (0.2), which are taken",
            )
    if (
        _steps(settings) == 1
        and mode in ("vanilla", "gspo", "geo_mean", "cispo")
        and not _played(settings)
        and not _asynchronous(settings)
    ):
        for key in settings.given:
            if key.startswith(f"{ACTOR}.clip_ratio"):
                yield (
                    key,
                    "there is one optimizer step on each batch, and π_old is computed by the trainer: the ratio is 1",
                )


TRAINER = OtherTrainer("verl", "verl, with the defaults of 2026-01-29", read, choose)
