"""TRL's GRPO and RLOO: keywords of GRPOConfig, or the same as a YAML file or on a command line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json
from turnwise.trainers.others.core import (
    Kl,
    Limit,
    ObjectivePart,
    OtherObjective,
    OtherTrainer,
    Settings,
    thinking_model,
    truncations,
)
from turnwise.trainers.others.reading import (
    calls,
    dotted,
    notebook_source,
    options,
    options_of,
    text_of,
    yaml_tree,
)

GRPO: dict[str, Json] = {
    "num_generations": 8, "max_completion_length": 512, "temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": None, "use_vllm": False,
    "beta": 0.0, "num_iterations": 1, "epsilon": 0.2, "delta": None, "epsilon_high": None, "importance_sampling_level": "token",
    "scale_rewards": "group", "loss_type": "dapo", "mask_truncated_completions": False, "sync_ref_model": False,
    "top_entropy_quantile": 1.0, "entropy_coef": 0.0, "use_adaptive_entropy": False, "vllm_importance_sampling_correction": True,
    "vllm_importance_sampling_mode": "sequence_mask", "vllm_importance_sampling_clip_max": 3.0, "gradient_accumulation_steps": 1,
    "use_bias_correction_kl": False, "multi_objective_aggregation": "sum_then_normalize", "learning_rate": 1e-6,
}  # fmt: skip
RLOO: dict[str, Json] = {
    "num_generations": 2, "max_completion_length": 512, "temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": None, "use_vllm": False,
    "beta": 0.05, "num_iterations": 1, "epsilon": 0.2, "epsilon_high": None, "normalize_advantages": False,
    "mask_truncated_completions": False, "sync_ref_model": False, "gradient_accumulation_steps": 1, "learning_rate": 1e-6,
}  # fmt: skip
ASYNC: dict[str, Json] = {
    "num_generations": 8, "max_completion_length": 2048, "temperature": 1.0, "epsilon": 0.2, "epsilon_high": None,
    "gradient_accumulation_steps": 1, "learning_rate": 1e-6, "max_staleness": 4,
    "loss_type": "dapo", "scale_rewards": "group", "num_iterations": 1, "importance_sampling_level": "token",
}  # fmt: skip
"""Defaults of the day that the trainer's title says, as far as they are read here; the last line is what AsyncGRPOTrainer always does."""
_DEFAULTS = {"GRPOConfig": GRPO, "RLOOConfig": RLOO, "AsyncGRPOConfig": ASYNC}
_WEIGHTING: dict[str, Literal["sequence", "fixed", "local"]] = {
    "grpo": "sequence",
    "sapo": "sequence",
    "dr_grpo": "fixed",
    "bnpo": "local",
    "luspo": "fixed",
}
_CONFIGS = ("GRPOConfig", "RLOOConfig", "AsyncGRPOConfig")
_OTHERS = (
    "SFTConfig",
    "DPOConfig",
    "KTOConfig",
    "RewardConfig",
    "GKDConfig",
    "PPOConfig",
    "ORPOConfig",
    "CPOConfig",
)
_OPTIONS = {
    *GRPO,
    *RLOO,
    "model_name_or_path",
    "steps_per_generation",
    "max_tool_calling_iterations",
    "chat_template_kwargs",
}


def read(file: Path) -> Settings:
    """Read a program that makes a GRPOConfig or RLOOConfig, a notebook, a shell script, or a YAML file for the command line."""
    unknown, kind = dict[str, str](), "GRPOConfig"
    if file.suffix in (".py", ".ipynb"):
        source = notebook_source(file) if file.suffix == ".ipynb" else text_of(file)
        found = [*calls(source, _CONFIGS, file)]
        kind, given, unknown = found[0] if found else _from_docstring(source, file)
    elif file.suffix in (".sh", ".md", ".txt", ".bash"):
        given, unknown = options(file)
        kind = (
            "RLOOConfig" if "rloo" in text_of(file).lower() and "grpo" not in text_of(file).lower() else kind
        )
    else:
        given = dict(dotted(yaml_tree(file)))
        kind = "RLOOConfig" if "normalize_advantages" in given else kind
    if not any(key in _OPTIONS for key in (*given, *unknown)) and file.suffix not in (".py", ".ipynb"):
        raise TurnwiseError(
            f"{file} has no setting of GRPOConfig or RLOOConfig.",
            remedy="Give the program that makes it, or the YAML file or script with its arguments; imitation and preferences are not read.",
        )
    return Settings(file, {**given, "config": kind}, unknown, _DEFAULTS[kind])


def _from_docstring(source: str, file: Path) -> tuple[str, dict[str, Json], dict[str, str]]:
    """Settings of the command in the first lines of a program whose configuration is parsed from the command line."""
    texts = [
        ast.get_docstring(ast.parse(source)) or "",
        *(line for line in source.splitlines() if line.startswith("#")),
    ]
    parsed = any(name in source for name in _CONFIGS)
    if not parsed:
        others = [name for name in _OTHERS if name in source]
        raise TurnwiseError(
            f"{file} makes no GRPOConfig or RLOOConfig" + (f", but a {others[0]}." if others else "."),
            remedy="Give a program that trains by reinforcement.",
        )
    words = " ".join(texts).replace("\\", " ").split()
    given, unknown = options_of(words, {})
    unknown["all others"] = "parsed from the command line"
    return "RLOOConfig" if "RLOOConfig" in source else "GRPOConfig", given, unknown


def choose(settings: Settings) -> OtherObjective:
    """Return the choices of TRL's settings."""
    rloo, behind = settings.get("config") == "RLOOConfig", settings.get("config") == "AsyncGRPOConfig"
    scaled, age = _scaled(settings, rloo), settings.number("max_staleness")
    loss = str(settings.get("loss_type"))
    steps = _steps(settings)
    return OtherObjective(
        trainer=TRAINER.title,
        advantage=_advantage(settings, rloo, scaled),
        loss=_rloo_loss(settings) if rloo else _loss(settings, loss),
        weights=ObjectivePart("the sum over a trajectory's tokens, then the mean over trajectories", {"reduce": "fixed_length"}, ("config",),
                     "fixed_length divides by a constant besides") if rloo else _weights(loss, settings),
        others=tuple(_others(settings)),
        group_size=settings.number("num_generations"),
        scaled=scaled,
        weighting="fixed" if rloo else "local" if behind else _WEIGHTING.get(loss, "tokens"),
        steps=steps,
        kl=_kl(settings, rloo),
        truncated=tuple(truncations(settings, "top_p", "top_k", "min_p")),
        masks_cut="mask_truncated_completions" if settings.on("mask_truncated_completions") else "",
        stale=Limit("max_staleness", age) if behind and age is not None else None,
        corrected="the ratio of the loss is to the engine's own log-probabilities" if behind else _correction(settings) if not rloo else "",
        correction=_our_correction(settings) if not rloo else "none",
        drops_whole=_drops(settings) if not rloo else None,
        asynchronous=behind,
        turns=next((key for key in ("max_tool_calling_iterations", "tools", "environment_factory", "rollout_func") if settings.gives(key)), ""),
        thinks=thinking_model(settings.get("model_name_or_path"), settings.get("model")),
        adapters="use_peft" if settings.on("use_peft") and settings.on("use_vllm") else "",
        without_effect=tuple(_without_effect(settings, steps, loss, rloo)),
        by_code=(
            "the reward functions (`reward_funcs`), and what they pay for an episode whose environment failed",
            "the chat template: whether the thinking of earlier turns stays in the prompt",
        ),
    )  # fmt: skip


def _scaled(settings: Settings, rloo: bool) -> Literal["group", "batch", "no"]:
    if rloo:
        return "batch" if settings.on("normalize_advantages") else "no"
    said = str(settings.get("scale_rewards")).lower()
    return {"group": "group", "true": "group", "batch": "batch"}.get(said, "no")  # type: ignore[return-value]


def _advantage(settings: Settings, rloo: bool, scaled: str) -> ObjectivePart:
    if rloo:
        ours: dict[str, Json] = {"credit": "rloo"} | ({"shape": ["whiten"]} if scaled == "batch" else {})
        words = "the return minus the mean return of the group's others"
        return ObjectivePart(
            words + (", standardised over the batch" if scaled == "batch" else ""),
            ours,
            ("normalize_advantages",),
        )
    keys = ("scale_rewards", "num_generations")
    if settings.get("multi_objective_aggregation") == "normalize_then_sum":
        words = "each reward minus its group's mean, divided by its group's standard deviation; their weighted sum, standardised over the batch (GDPO)"
        return ObjectivePart(words, {}, ("multi_objective_aggregation",))
    if scaled == "group":
        behind = settings.get("config") == "AsyncGRPOConfig"
        added = "1e-8 (that of the group, with n in its denominator)" if behind else "1e-4"
        return ObjectivePart(
            f"the return minus the group's mean, divided by the group's standard deviation + {added}",
            {"credit": "grpo"},
            keys[1:] if behind else keys,
        )
    if scaled == "batch":
        return ObjectivePart(
            "the return minus the group's mean, divided by the batch's standard deviation + 1e-4",
            {"credit": "lite_ppo"},
            keys,
        )
    return ObjectivePart("the return minus the group's mean", {"credit": "dr_grpo"}, keys)


def _loss(settings: Settings, loss: str) -> ObjectivePart:
    low, high, dual = (settings.number(key) for key in ("epsilon", "epsilon_high", "delta"))
    low = 0.2 if low is None else low
    high = low if high is None else high
    sequence = settings.get("importance_sampling_level") == "sequence"
    keys = ("loss_type", "epsilon", "epsilon_high")
    if loss == "cispo":
        return ObjectivePart(
            f"−sg[min(ρ, {high:g})]·A·log π",
            {"loss": [{"name": "cispo", "low": 1.0, "high": high - 1.0}]},
            keys,
        )
    if loss == "sapo":
        return ObjectivePart(
            "a smooth gate on the ratio in place of the clip (SAPO)", {"loss": ["sapo"]}, keys
        )
    if loss in ("luspo", "vespo"):
        ours: dict[str, Json] = (
            {"loss": [{"name": "luspo", "low": low, "high": high}]} if loss == "luspo" else {}
        )
        return ObjectivePart(f"a loss of whole sequences ({loss.upper()})", ours, keys)
    if sequence:
        return ObjectivePart(f"the clipped surrogate by the geometric mean of a sequence's ratios, in [1 − {low:g}, 1 + {high:g}]",
                    {"loss": [{"name": "gspo", "low": low, "high": high}]}, (*keys, "importance_sampling_level"))  # fmt: skip
    return ObjectivePart(f"the clipped surrogate of each token, its ratio in [1 − {low:g}, 1 + {high:g}]",
                {"loss": [{"name": "clip", "low": low, "high": high, "dual": dual}]}, (*keys, "delta"),
                "`delta` bounds the ratio where A < 0, as our `dual` does" if dual else "")  # fmt: skip


def _rloo_loss(settings: Settings) -> ObjectivePart:
    low, high = settings.number("epsilon"), settings.number("epsilon_high")
    low = 0.2 if low is None else low
    high = low if high is None else high
    words = f"the clipped surrogate by the product of a sequence's ratios, in [1 − {low:g}, 1 + {high:g}]"
    return ObjectivePart(
        words,
        {"loss": [{"name": "clip", "low": low, "high": high}]},
        ("epsilon",),
        "`clip` has the ratios of single tokens",
    )


def _weights(loss: str, settings: Settings) -> ObjectivePart:
    match loss:
        case "grpo" | "sapo":
            return ObjectivePart(
                "the mean over a trajectory's tokens, then over trajectories",
                {"reduce": "sequence_mean"},
                ("loss_type",),
            )
        case "dr_grpo":
            length = settings.number("max_completion_length") or 512
            return ObjectivePart(f"the sum over tokens divided by trajectories × {length:g}", {"reduce": {"name": "fixed_length", "length": int(length)}},
                        ("loss_type", "max_completion_length"))  # fmt: skip
        case "luspo" if settings.get("importance_sampling_level") == "sequence":
            return ObjectivePart("a trajectory's length, then the mean over trajectories", {}, ("loss_type",))
        case "luspo":  # with ratios of single tokens
            return ObjectivePart(
                "a trajectory's length, then the mean over all places, padding too", {}, ("loss_type",)
            )
        case "bnpo":
            return ObjectivePart("the mean over the tokens of each micro-batch", {}, ("loss_type",))
        case _ if settings.get("config") == "AsyncGRPOConfig":
            return ObjectivePart(
                "the mean over the tokens of each micro-batch of all devices",
                {"reduce": "token_mean"},
                ("config",),
            )
        case _:
            return ObjectivePart(
                "the sum over tokens divided by the number of sampled tokens of the generation",
                {"reduce": "token_mean"},
                ("loss_type",),
            )


def _others(settings: Settings) -> Iterator[ObjectivePart]:
    quantile, entropy = settings.number("top_entropy_quantile"), settings.number("entropy_coef")
    if quantile is not None and quantile < 1:
        yield ObjectivePart(f"only the {quantile:.0%} of tokens with the highest entropy carry the policy's loss", {"loss": [{"name": "high_entropy", "share": quantile}]},
                   ("top_entropy_quantile",))  # fmt: skip
    if entropy:
        yield ObjectivePart(
            f"an entropy bonus of {entropy:g}",
            {"loss": [{"name": "entropy", "weight": entropy}]},
            ("entropy_coef",),
        )
    found = _kl(settings, settings.get("config") == "RLOOConfig")
    if found:
        where = "in the loss" if found.place == "loss" else "of the whole trajectory, in the reward"
        plain_k3 = found.place == "loss" and not found.weighted
        ours: dict[str, Json] = (
            {"loss": [{"name": "kl", "estimator": "k3", "weight": found.coefficient}]} if plain_k3 else {}
        )
        yield ObjectivePart(
            f"{found.coefficient:g} times {found.estimator} of the policy against the reference, {where}",
            ours,
            ("beta",),
        )
    if _correction(settings):
        yield ObjectivePart(
            f"the gap between vLLM and trainer: {_correction(settings)}",
            {},
            ("vllm_importance_sampling_mode",),
        )


def _kl(settings: Settings, rloo: bool) -> Kl | None:
    beta = settings.number("beta") or 0.0
    if beta <= 0:
        return None
    return Kl(
        beta,
        "k1" if rloo else "k3",
        "reward" if rloo else "loss",
        "beta",
        settings.on("use_bias_correction_kl"),
    )


def _correction(settings: Settings) -> str:
    if not (settings.on("use_vllm") and settings.on("vllm_importance_sampling_correction")):
        return ""
    mode, cap = str(settings.get("vllm_importance_sampling_mode")), settings.number(*_CAPS)
    level, _, how = mode.partition("_")
    does = "dropped above" if how == "mask" else "cut at"
    return (
        f"ratios of {'whole completions' if level == 'sequence' else 'single tokens'}, {does} {cap:g}"
        if cap
        else f"ratios ({mode})"
    )


_CAPS = ("vllm_importance_sampling_cap", "vllm_importance_sampling_clip_max")
"""The first is the older name, which goes before the other."""


def _our_correction(settings: Settings) -> Json:
    cap = settings.number(*_CAPS)
    if not _correction(settings) or not cap:
        return "none"
    level, _, how = str(settings.get("vllm_importance_sampling_mode")).partition("_")
    bounds = (
        {"name": "mis", "low": settings.number("vllm_importance_sampling_clip_min") or 0.0, "high": cap}
        if how == "mask"
        else {"name": "tis", "cap": cap}
    )
    return bounds | ({"level": "trajectory"} if level == "sequence" else {})


def _drops(settings: Settings) -> Limit | None:
    cap = settings.number(*_CAPS)
    whole = settings.get("vllm_importance_sampling_mode") == "sequence_mask"
    return (
        Limit("vllm_importance_sampling_clip_max", cap) if _correction(settings) and whole and cap else None
    )


def _steps(settings: Settings) -> float | None:
    """Optimizer steps on one generation."""
    rounds, accumulated = settings.number("num_iterations"), settings.number("gradient_accumulation_steps")
    slices = settings.number("steps_per_generation")
    if settings.gives("generation_batch_size") or rounds is None or accumulated is None:
        return None
    return max(1.0, rounds * (slices or accumulated) / accumulated)


_CLIPS = ("epsilon", "epsilon_high", "delta")


def _on_policy(settings: Settings, steps: float | None) -> bool:
    """Say whether each generation ends with an optimizer step, so that no ratio has moved."""
    accumulated = settings.number("gradient_accumulation_steps")
    slices = (settings.number("steps_per_generation") or accumulated or 0) * (
        settings.number("num_iterations") or 0
    )
    return bool(steps == 1 and accumulated and slices and accumulated % slices == 0)


def _without_effect(
    settings: Settings, steps: float | None, loss: str, rloo: bool
) -> Iterator[tuple[str, str]]:
    if settings.get("config") == "AsyncGRPOConfig":  # its ratio is to the engine, which it always has
        return
    unread = {"cispo": ("delta",), "sapo": _CLIPS, "vespo": _CLIPS}.get(loss, ())
    if loss == "cispo" and settings.number("epsilon_high") is not None:
        unread = ("epsilon", "delta")
    for key in _CLIPS:
        if settings.gives(key) and key in unread:
            yield key, f"loss_type {loss} does not read it"
        elif (
            settings.gives(key) and not rloo and _on_policy(settings, steps) and loss != "cispo"
        ):  # which caps a ratio of 1, too
            yield (
                key,
                "there is one optimizer step on each generation, and the trainer's own log-probabilities are π_old: the ratio is 1",
            )
    if (
        settings.gives("scale_rewards")
        and settings.get("multi_objective_aggregation") == "normalize_then_sum"
    ):
        yield "scale_rewards", "multi_objective_aggregation normalize_then_sum does not read it"
    if settings.off("use_vllm"):
        for key in settings.given:
            if key.startswith("vllm_"):
                yield key, "use_vllm is off"
    elif settings.off("vllm_importance_sampling_correction") and not rloo:
        for key in settings.given:
            if key.startswith("vllm_importance_sampling_") and key != "vllm_importance_sampling_correction":
                yield key, "vllm_importance_sampling_correction is off"
    if settings.number("beta") == 0:
        for key in (
            "ref_model_mixup_alpha",
            "ref_model_sync_steps",
            "use_bias_correction_kl",
        ):
            if settings.on(key):
                yield key, "beta is 0, so that there is no reference"


TRAINER = OtherTrainer("trl", "TRL, with the defaults of 2026-07-24", read, choose)
