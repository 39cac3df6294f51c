"""Configurations of other trainers: their settings, and the choices that they come to, in one vocabulary.

Each trainer has a module that turns its settings into :class:`OtherObjective`; everything that is said of a configuration
(:mod:`turnwise.trainers.others.statements`) is said of those, so that no statement knows a trainer by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from turnwise.tasks.core import Json


@dataclass(frozen=True)
class Settings:
    """Settings of a configuration, by their dotted keys.

    Attributes:
        file: where they stand.
        given: those that the file gives, with the files that it is based on.
        unknown: those that are set by code or by a variable from outside, each with its expression.
        defaults: those of the trainer.
        below: those that come from a file on which this one is based, and that it leaves as they are.
    """

    file: Path
    given: Mapping[str, Json]
    unknown: Mapping[str, str] = field(default_factory=dict[str, str])
    defaults: Mapping[str, Json] = field(default_factory=dict[str, Json])
    below: frozenset[str] = frozenset()

    def get(self, *keys: str) -> Any:
        """Return the value of the first of the keys that the file gives, else the first default; None where code decides."""
        for key in keys:
            if key in self.given:
                return self.given[key]
            if key in self.unknown:
                return None
        return next((self.defaults[key] for key in keys if key in self.defaults), None)

    def number(self, *keys: str) -> float | None:
        """Return a number, also one written as text; None where there is none, or where it is not in the file.

        >>> Settings(Path("a"), {"lr": "1e-6", "on": True}).number("lr"), Settings(Path("a"), {"on": True}).number("on")
        (1e-06, None)
        """
        value = self.get(*keys)
        if isinstance(value, bool) or value is None:
            return None
        try:
            return float(value)
        except (TypeError, ValueError):
            return None

    def on(self, *keys: str) -> bool:
        """Say whether a switch is on, however it is written.

        >>> Settings(Path("a"), {"x": "True"}).on("x"), Settings(Path("a"), {"x": "null"}).on("x")
        (True, False)
        """
        value = self.get(*keys)
        return value.strip().lower() in ("true", "1", "yes", "on") if isinstance(value, str) else bool(value)

    def off(self, *keys: str) -> bool:
        """Say whether a switch is known to be off: neither on, nor decided by code.

        >>> Settings(Path("a"), {}, {"x": "args.x"}).off("x"), Settings(Path("a"), {"x": False}).off("x")
        (False, True)
        """
        return not self.on(*keys) and not (set(keys) & self.unknown.keys())

    def gives(self, *keys: str) -> bool:
        """Say whether one of the keys is given by the file."""
        return any(key in self.given for key in keys)


class ObjectivePart(NamedTuple):
    """A part of the objective.

    Attributes:
        words: the part in words, with its formula.
        ours: the keys of a recipe of ours that mean the same; empty where nothing here does.
        keys: the settings from which it follows.
        differs: where ours is not quite the same.
    """

    words: str
    ours: Mapping[str, Json] = {}
    keys: tuple[str, ...] = ()
    differs: str = ""


class Kl(NamedTuple):
    """A penalty for leaving the reference: its coefficient, estimator, where it stands and by which key."""

    coefficient: float
    estimator: Literal["k1", "k2", "k3", "other"]
    place: Literal["loss", "reward"]
    key: str
    weighted: bool = False
    """The estimator is multiplied by the importance ratio, so that its gradient is that of its expected value."""


class Truncated(NamedTuple):
    """A sampling option that cuts tokens off, and whether the trainer's own log-probabilities are cut alike."""

    key: str
    value: float
    same_in_training: bool


class Limit(NamedTuple):
    """A limit with its key."""

    key: str
    value: float


@dataclass(frozen=True)
class OtherObjective:
    """The choices that a configuration comes to.

    Attributes:
        trainer: its name, with the day of the defaults that are taken.
        advantage, loss, weights, others: the parts of the objective.
        group_size: episodes of a task; None where the file does not say.
        tasks: tasks of a batch of play; None where the file does not say.
        centred: the group's mean is subtracted.
        alone: the advantage where a group has one episode; "" where the trainer refuses it, or where it means nothing.
        scaled: by which standard deviation advantages are divided.
        one_number: all tokens of a trajectory have the same advantage.
        weighting: the denominator of the loss.
        steps: optimizer steps on one batch of play, as far as the file says.
        ratio_free: the loss has no ratio of policies.
        kl: the penalty for leaving the reference.
        truncated: sampling options that cut tokens off.
        masks_cut: the key by which trajectories that hit a limit carry no loss while their reward counts in the mean of the group.
        zero_groups: the key by which groups without advantage are left out, and whether others are played in their place.
        stale: the age at which play is dropped.
        corrected: the correction of the gap between engine and trainer in words; "" where there is none.
        correction: our correction that does the same.
        drops_whole: the correction drops whole trajectories by the product of their tokens' ratios.
        asynchronous: play goes on while the learner works.
        length: what is paid or charged for length, by key.
        turns: the key by which several turns are played.
        thinks: the model's name says that it thinks before it answers.
        adapters: the key by which low-rank adapters are trained.
        without_effect: settings that the file gives and that change nothing, each with its reason.
        by_code: what the file leaves to code.
        learns: False where no reinforcement is configured (imitation, preferences, distillation); then only words are said.
    """

    trainer: str
    advantage: ObjectivePart
    loss: ObjectivePart
    weights: ObjectivePart
    others: tuple[ObjectivePart, ...] = ()
    group_size: float | None = None
    tasks: float | None = None
    centred: bool = True
    alone: Literal["zero", "reward", ""] = ""
    scaled: Literal["group", "batch", "no"] = "no"
    one_number: bool = True
    weighting: Literal["tokens", "sequence", "fixed", "local"] = "tokens"
    steps: float | None = None
    ratio_free: bool = False
    kl: Kl | None = None
    truncated: tuple[Truncated, ...] = ()
    masks_cut: str = ""
    zero_groups: tuple[str, bool] | None = None
    stale: Limit | None = None
    corrected: str = ""
    correction: Json = "none"
    drops_whole: Limit | None = None
    asynchronous: bool = False
    length: tuple[str, ...] = ()
    turns: str = ""
    thinks: str = ""
    adapters: str = ""
    without_effect: tuple[tuple[str, str], ...] = ()
    by_code: tuple[str, ...] = ()
    learns: bool = True

    @property
    def parts(self) -> tuple[ObjectivePart, ...]:
        return (self.advantage, self.loss, self.weights, *self.others)


class OtherTrainer(NamedTuple):
    """A trainer whose configurations are read.

    Attributes:
        name: as it is given to ``--from``.
        title: with the day of the version whose defaults are taken.
        read: its files into settings.
        choose: the settings into choices.
    """

    name: str
    title: str
    read: Callable[[Path], Settings]
    choose: Callable[[Settings], OtherObjective]


def thinking_model(*names: Any) -> str:
    """The first of the models whose name says that it thinks; "" where none does.

    >>> thinking_model(None, "Qwen/Qwen3-4B-Thinking-2507"), thinking_model("meta-llama/Llama-3.1-8B-Instruct")
    ('Qwen/Qwen3-4B-Thinking-2507', '')
    """
    marks = (
        "thinking",
        "qwen3",
        "deepseek-r1",
        "qwq",
        "reason",
        "glm-4.5",
        "glm-5",
        "minimax",
        "nemotron-3",
        "gpt-oss",
    )
    for name in names:
        text = str(name or "").lower()
        if any(mark in text for mark in marks) and "instruct" not in text and "coder" not in text:
            return str(name)
    return ""


def truncations(
    settings: Settings, top_p: str, top_k: str, min_p: str, *, same: bool = False
) -> Iterator[Truncated]:
    """Yield the sampling options that cut tokens off.

    >>> [*truncations(Settings(Path("a"), {"p": 0.95, "k": -1}), "p", "k", "m")]
    [Truncated(key='p', value=0.95, same_in_training=False)]
    """
    p, k, least = settings.number(top_p), settings.number(top_k), settings.number(min_p)
    if p is not None and 0 < p < 1:
        yield Truncated(top_p, p, same)
    if k is not None and k > 0:
        yield Truncated(top_k, k, same)
    if least is not None and least > 0:
        yield Truncated(min_p, least, same)
