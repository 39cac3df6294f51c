"""prime-rl: its rl.toml, or the orchestrator's and the trainer's alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json
from turnwise.trainers.others.core import (
    Limit,
    ObjectivePart,
    OtherObjective,
    OtherTrainer,
    Settings,
    Truncated,
    thinking_model,
)
from turnwise.trainers.others.reading import toml_settings

O = "orchestrator"
DEFAULTS: dict[str, Json] = {
    f"{O}.algo.type": "grpo", f"{O}.group_size": 1, f"{O}.max_off_policy_steps": 8, f"{O}.train.filter_zero_advantages": True,
    f"{O}.train.sampling.temperature": 1.0, "trainer.loss.type": "default", "trainer.loss.dppo_mask_low": 0.2,
    "trainer.loss.dppo_mask_high": 0.2, "trainer.loss.adv_tau": 1.0, "trainer.loss.kl_tau": 1e-3, "trainer.loss.ipo_threshold": 0.1,
    f"{O}.algo.length_penalty.num_output_tokens_weight": 0.25, f"{O}.algo.length_penalty.num_input_tokens_weight": 0.1,
    f"{O}.algo.length_penalty.num_turns_weight": 0.1,
}  # fmt: skip
_ALGORITHMS: dict[str, tuple[str, dict[str, Json]]] = {
    "grpo": ("the reward minus the group's mean", {"credit": "dr_grpo"}),
    "echo": ("the reward minus the group's mean, and cross-entropy on the answers of tools", {"credit": "dr_grpo"}),
    "max_rl": ("the reward minus the group's mean, divided by the group's mean", {"credit": "maxrl"}),
    "rae": ("the reward minus a running mean of the agent's own rewards", {}),
    "hierarchical_grpo": ("the reward minus the mean of the same role", {}),
}  # fmt: skip


def read(file: Path) -> Settings:
    """Read rl.toml, or orch.toml alone, whose keys are put under `orchestrator`."""
    found = toml_settings(file)
    given = dict(found.given)
    sections = {key.split(".")[0] for key in given}
    if "orchestrator" not in sections:
        if not sections & {"train", "group_size", "algo", "max_off_policy_steps"} or "data" in sections:
            raise TurnwiseError(
                f"{file} has no [orchestrator], nor its keys.",
                remedy="Give prime-rl's rl.toml or orch.toml; sft.toml trains by imitation.",
            )
        given = {f"{O}.{key}": value for key, value in given.items()}
    return Settings(file, given, {}, DEFAULTS)


def choose(settings: Settings) -> OtherObjective:
    """Return the choices of prime-rl's settings; where sources have algorithms of their own, those of the first."""
    kind = str(settings.get(f"{O}.train.source.0.algo.type", f"{O}.algo.type"))
    words, ours = _ALGORITHMS.get(kind, (f"none: algorithm `{kind}` learns by distillation", {}))
    group = settings.number(f"{O}.train.source.0.group_size", f"{O}.group_size")
    penalised = [
        key for key in settings.given if f"{O}.algo.length_penalty" in key or ".algo.length_penalty." in key
    ]
    return OtherObjective(
        trainer=TRAINER.title,
        advantage=ObjectivePart(words, ours, (f"{O}.algo.type", f"{O}.group_size")),
        loss=_loss(settings),
        weights=ObjectivePart("the mean over the tokens that are left of the batch", {"reduce": "token_mean"}, (f"{O}.train.filter_zero_advantages",)),
        others=tuple(_others(settings)),
        group_size=group,
        centred=kind in ("grpo", "echo", "max_rl", "hierarchical_grpo"),
        alone="zero" if kind in ("grpo", "echo", "max_rl") else "",
        weighting="tokens",
        steps=1.0,
        kl=None,
        truncated=tuple(_truncated(settings)),
        zero_groups=(f"{O}.train.filter_zero_advantages", False) if settings.on(f"{O}.train.filter_zero_advantages") else None,
        stale=Limit(f"{O}.max_off_policy_steps", settings.number(f"{O}.max_off_policy_steps") or 0.0),
        corrected="the ratio of trainer to engine itself is the ratio of the loss",
        asynchronous=True,
        length=tuple(penalised[:1]),
        turns=next((key for key in settings.given if key.startswith(f"{O}.train.source.") and ".env." in key), ""),
        thinks=thinking_model(settings.get("model.name", f"{O}.model.name")),
        adapters=next((key for key in settings.given if ".lora." in key and key.endswith("rank")), ""),
        without_effect=tuple(_without_effect(settings, kind)),
        by_code=(
            "the reward: rubrics of the verifiers environment, and what they pay for an episode whose environment failed",
            "the renderer: whether the thinking of earlier turns stays in the prompt, and into how many rows an episode falls",
        ),
        learns=kind in _ALGORITHMS,
    )  # fmt: skip


def _loss(settings: Settings) -> ObjectivePart:
    kind = settings.get("trainer.loss.type")
    if kind == "custom":
        return ObjectivePart(
            f"a loss of one's own, {settings.get('trainer.loss.import_path')}",
            {},
            ("trainer.loss.import_path",),
        )
    if kind == "ipo":
        return ObjectivePart(
            f"−{_tau(settings)}A·ρ where |π − π_engine| is at most {settings.number('trainer.loss.ipo_threshold'):g}, else 0 (IPO)",
            {},
            ("trainer.loss.type",),
        )
    low, high = settings.number("trainer.loss.dppo_mask_low"), settings.number("trainer.loss.dppo_mask_high")
    return ObjectivePart(
        f"−{_tau(settings)}A·ρ with ρ = π/π_engine, 0 where π moved from π_engine by more than {high:g} upwards (A > 0) or {low:g} downwards (A < 0)",
        {"loss": [{"name": "dppo", "divergence": "tv", "low": low, "high": high}]},
        ("trainer.loss.dppo_mask_low", "trainer.loss.dppo_mask_high"),
        "ours bounds the ratio besides (`cap`), and measures from the policy that played",
    )


def _tau(settings: Settings) -> str:
    tau = settings.number("trainer.loss.adv_tau")
    return "" if tau is None or tau == 1 else f"{tau:g}·"


def _others(settings: Settings) -> Iterator[ObjectivePart]:
    tau = settings.number("trainer.loss.kl_tau")
    if tau and settings.get("trainer.loss.type") != "custom":
        yield ObjectivePart(
            f"{tau:g} times (log π/π_engine)² of every token, which holds π near the engine's policy, not near a reference",
            {},
            ("trainer.loss.kl_tau",),
        )


def _truncated(settings: Settings) -> Iterator[Truncated]:
    for key, value in settings.given.items():
        name = key.rpartition(".")[2]
        if (
            ".train" not in key
            or ".sampling." not in key
            or not isinstance(value, int | float)
            or isinstance(value, bool)
        ):
            continue
        if (name == "top_p" and 0 < value < 1) or (name in ("top_k", "min_p") and value > 0):
            yield Truncated(key, float(value), same_in_training=False)


def _without_effect(settings: Settings, kind: str) -> Iterator[tuple[str, str]]:
    if kind not in _ALGORITHMS:
        for key in settings.given:
            if key.startswith("trainer.loss.dppo_mask") or key == f"{O}.train.filter_zero_advantages":
                yield key, f"algorithm `{kind}` has no advantages"
    if settings.get("trainer.loss.type") == "ipo":
        for key in settings.given:
            if key.startswith("trainer.loss.dppo_mask"):
                yield key, "trainer.loss.type is ipo"


TRAINER = OtherTrainer("prime-rl", "prime-rl, with the defaults of 2026-08-21", read, choose)
