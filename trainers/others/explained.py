"""Explain a configuration of another trainer: its objective, what is known of it, settings without effect, and ours that mean the same."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Json
from turnwise.trainers.others import nemo, prime_rl, trl, verl
from turnwise.trainers.others.core import OtherObjective, OtherTrainer, Settings
from turnwise.trainers.others.statements import Statement, statements

TRAINERS: dict[str, OtherTrainer] = {one.TRAINER.name: one.TRAINER for one in (trl, verl, prime_rl, nemo)}
WIDTH = 110


class Explained(NamedTuple):
    """A configuration of another trainer, explained."""

    settings: Settings
    choices: OtherObjective
    statements: list[Statement]

    @property
    def without_effect(self) -> list[tuple[str, str]]:
        """Settings that the file itself gives and that change nothing."""
        return [
            one for one in dict.fromkeys(self.choices.without_effect) if one[0] not in self.settings.below
        ]

    @property
    def unknown(self) -> dict[str, str]:
        """Settings that matter here and that the file leaves open."""
        settings = self.settings
        return {
            key: said
            for key, said in settings.unknown.items()
            if key in settings.defaults or key.startswith("**") or "." not in key or "/" in key
        }

    @property
    def recipe(self) -> dict[str, Json]:
        """The keys of a recipe of ours that mean the same, as far as there are any."""
        return ours(self.choices)


def explain_other(trainer: str, file: Path) -> Explained:
    """Explain a configuration file of another trainer.

    Args:
        trainer: ``trl``, ``verl``, ``prime-rl`` or ``nemo``.
        file: a YAML or TOML file, a shell script, a program or a notebook, as the trainer's examples have them.

    Raises:
        TurnwiseError: no such trainer, or the file is none of its configurations for reinforcement.
    """
    if trainer not in TRAINERS:
        raise NotFoundError("trainer whose configurations are read, called", trainer, TRAINERS)
    known = TRAINERS[trainer]
    settings = known.read(file)
    choices = known.choose(settings)
    return Explained(settings, choices, statements(choices))


def ours(choices: OtherObjective) -> dict[str, Json]:
    """The parts of a recipe that mean the same; losses stand in one list, and without options that one optimizer step makes idle."""
    recipe, losses = dict[str, Json](), list[Json]()
    several = choices.steps is not None and choices.steps > 1
    for part in choices.parts:
        for key, value in part.ours.items():
            if key == "loss" and isinstance(value, list):
                losses += [loss if several else without_clips(loss) for loss in value]
            else:
                recipe[key] = value
    whole = any(name_of(loss) in WHOLE for loss in losses)
    correction = choices.correction
    if whole and isinstance(correction, dict):  # one ratio for a trajectory is corrected as a whole
        correction = {**correction, "level": "trajectory"}
    recipe |= {"loss": losses, "correction": correction}
    if choices.group_size and choices.group_size > 1:
        recipe["rollout.group_size"] = int(choices.group_size)
    if choices.tasks:
        recipe["rollout.groups"] = int(choices.tasks)
    if several and choices.steps and choices.steps == int(choices.steps):
        recipe["optimizer.minibatches"] = int(choices.steps)
    return recipe


WITH_BIAS = "Measured on the recipe that means the same, with groups of 4 and one optimizer step:"


def as_recipe(found: Explained) -> dict[str, Any]:
    """The recipe that means the same, on a small suite, with groups of 4: for the bias of its first step.

    Raises:
        TurnwiseError: the advantage or the loss has no part here.
    """
    missing = [part.words for part in found.choices.parts[:2] if not part.ours]
    if missing or not found.choices.learns:
        raise TurnwiseError(
            f"No part here does the same as: {missing[0] if missing else found.choices.advantage.words}.",
            "Leave out --bias.",
        )
    left = {
        key: value
        for key, value in found.recipe.items()
        if key not in ("rollout.groups", "optimizer.minibatches")
    }
    losses: list[Any] = [without_clips(loss) for loss in left["loss"]]
    return nested({"suite": "sort/4", "model.scratch": {}, **left, "loss": losses, "rollout.group_size": 4})


CLIPS = frozenset({"low", "high", "dual", "clip"})
WHOLE = frozenset({"gspo", "gmpo", "luspo"})


def name_of(loss: Json) -> str:
    return loss["name"] if isinstance(loss, dict) else str(loss)


def without_clips(loss: Json) -> Json:
    """A loss without its bounds on the ratio, which is 1 where each batch has one step.

    >>> without_clips({"name": "clip", "low": 0.2, "dual": None}), without_clips({"name": "kl", "weight": 0.1})
    ('clip', {'name': 'kl', 'weight': 0.1})
    """
    if not isinstance(loss, dict):
        return loss
    left = {key: value for key, value in loss.items() if key not in CLIPS and key != "divergence"}
    return left if len(left) > 1 else left["name"]


def text_of(found: Explained) -> str:
    """The explanation as `turnwise explain FILE --from TRAINER` prints it."""
    choices, settings = found.choices, found.settings
    lines = [f"{settings.file}: a configuration of {choices.trainer}", ""]
    if not choices.learns:
        return "\n".join([*lines, f"No reinforcement: {choices.advantage.words}."]) + "\n"
    lines += ["Objective (descended): Σ_t w_t·ℓ_t, over the tokens that the policy sampled", ""]
    lines += _paragraph("A", choices.advantage.words, choices.advantage.keys)
    lines += _paragraph("ℓ_t", choices.loss.words, choices.loss.keys)
    lines += _paragraph("w_t", choices.weights.words, choices.weights.keys)
    for part in choices.others:
        lines += _paragraph("and", part.words, part.keys)
    for title, kind in (
        ("Loses something silently", "trap"),
        ("Moves the expected step", "bias"),
        ("Good to know", "note"),
    ):
        said = [statement for statement in found.statements if statement.kind == kind]
        lines += ["", title] if said else []
        for statement in said:
            lines += _bullet(statement.text, statement.keys)
    if found.without_effect:
        lines += ["", "Settings without effect"]
        lines += [
            line
            for key, reason in found.without_effect
            for line in _bullet(f"{key} = {settings.get(key)}: {reason}.", ())
        ]
    lines += ["", "Left to code, so that nothing can be said of it here"]
    lines += [line for what in choices.by_code for line in _bullet(f"{what}.", ())]
    lines += [line for key, said in found.unknown.items() for line in _bullet(f"{key}: {said}", ())]
    return "\n".join([*lines, "", *_recipe(found)]) + "\n"


def _recipe(found: Explained) -> list[str]:
    """The lines of a recipe of ours, and where it is not quite the same."""
    lines = ["The same in a recipe of Turnwise, as far as there are parts for it"]
    text = yaml.safe_dump(
        nested(found.recipe), sort_keys=False, allow_unicode=True, default_flow_style=None, width=WIDTH
    )
    lines += [f"  {line}" for line in text.splitlines()]
    for part in found.choices.parts:
        if not part.ours:
            lines += _bullet(f"no part of ours: {part.words}.", ())
        if part.differs:
            lines += _bullet(f"{part.differs}.", ())
    if found.choices.truncated:
        lines += _bullet("sampling is not truncated here.", ())
    return lines


def nested(keys: Mapping[str, Json]) -> dict[str, Any]:
    """Dotted keys as nested mappings.

    >>> nested({"credit": "grpo", "rollout.group_size": 8})
    {'credit': 'grpo', 'rollout': {'group_size': 8}}
    """
    tree: dict[str, Any] = {}
    for key, value in keys.items():
        *above, last = key.split(".")
        at = tree
        for name in above:
            at = at.setdefault(name, {})
        at[last] = value
    return tree


def to_json(found: Explained) -> dict[str, Json]:
    """The explanation as one JSON value."""
    choices = found.choices
    return {
        "trainer": choices.trainer,
        "file": str(found.settings.file),
        "objective": [{"words": part.words, "keys": [*part.keys]} for part in choices.parts]
        if choices.learns
        else [],
        "statements": [{"kind": one.kind, "text": one.text, "keys": [*one.keys]} for one in found.statements],
        "without_effect": [{"key": key, "reason": reason} for key, reason in found.without_effect],
        "by_code": [*choices.by_code],
        "unknown": found.unknown,
        "recipe": found.recipe,
    }


def _paragraph(symbol: str, words: str, keys: Iterable[str]) -> list[str]:
    return textwrap.wrap(
        f"{words}{_from(keys)}", WIDTH, initial_indent=f"  {symbol:<5}", subsequent_indent=" " * 7
    )


def _bullet(text: str, keys: Iterable[str]) -> list[str]:
    return textwrap.wrap(f"{text}{_from(keys)}", WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _from(keys: Iterable[str]) -> str:
    named = [*dict.fromkeys(keys)]
    return f"  [{', '.join(named)}]" if named else ""
