"""A recipe: every choice of a training run, as YAML, checked as a whole before anything starts.

Parts are named (``credit: rloo``) or named with options (``credit: {name: gae, lam: 0.95}``). What is
unknown, does not fit together or would change nothing is refused, with the nearest name or the remedy.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import yaml
from pydantic import Field

from turnwise.errors import NotFoundError, RecipeError
from turnwise.trainers.registry import Component, get_component

Positive = Annotated[int, Field(gt=0)]


class Part(pydantic.BaseModel):
    """A component by name, with options; ``weight`` is for losses."""

    model_config = pydantic.ConfigDict(extra="allow", frozen=True)
    name: str
    weight: float = 1.0

    @pydantic.model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    def component(self, seam: str) -> Component:
        return get_component(seam, self.name)

    def build(self, seam: str) -> Callable[..., Any]:
        """The function with its options fixed; raises RecipeError where they do not fit."""
        return self.component(seam).build(self.options)


class Section(pydantic.BaseModel):
    """A part of the recipe that knows all its keys."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class Scratch(Section):
    """A small model made from nothing, its tokeniser trained on the suite's own text."""

    layers: Positive = 3
    width: Positive = 128
    heads: Positive = 4
    vocab_size: Positive = 512
    context: Positive = 512
    init: Literal["random", "induction"] = "induction"
    text_episodes: Positive = 200


class Lora(Section):
    """Low-rank adapters instead of all weights (Hu et al. 2021, 2106.09685)."""

    rank: Positive = 16
    alpha: Positive = 32
    targets: list[str] | Literal["all-linear"] = "all-linear"


class Model(Section):
    """Which model is trained: a Hugging Face id or folder, or one from scratch."""

    path: str | None = None
    scratch: Scratch | None = None
    lora: Lora | None = None


class EngineOptions(Section):
    """Which engine samples, and its size."""

    kind: Literal["vllm", "torch"] = "vllm"
    max_sequences: Positive = 128
    context_length: int = 0
    options: dict[str, Any] = {}


class SamplingOptions(Section):
    temperature: Annotated[float, Field(gt=0)] = 1.0
    max_tokens: Positive = 256
    tools: Literal["auto", "template", "text", "none"] = "auto"


class WarmStart(Section):
    """Supervised learning on episodes that a scripted agent plays."""

    demonstrator: str = "gold"
    episodes: Positive = 4000
    batch_size: Positive = 16
    learning_rate: float = 1e-3
    observation_weight: Annotated[float, Field(ge=0, le=1)] = 0.1


class Rollout(Section):
    """How many episodes an update is made of."""

    groups: Positive = 16
    group_size: Positive = 8
    concurrency: Positive = 128
    episode_tokens: Positive | None = None
    generate_s: float = 300.0
    step_s: float = 60.0
    env_options: dict[str, Any] = {}
    max_failed: Annotated[float, Field(ge=0, le=1)] = 0.25


class Optimizer(Section):
    """AdamW, with a linear warm-up and a constant rate after it."""

    learning_rate: float = 1e-6
    warmup: int = 0
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    epochs: Positive = 1
    minibatches: Positive = 1
    micro_tokens: Positive = 16384


class Evaluate(Section):
    """When the policy is looked at, and on how much. The checkpoint is chosen on dev alone."""

    every: Positive = 10
    dev: Positive = 100
    test: Positive = 300


class Checkpoint(Section):
    every: Positive = 10
    keep: Positive = 2


class Recipe(Section):
    """A training run."""

    about: str = ""
    suite: str
    seed: int = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    model: Model
    engine: EngineOptions = EngineOptions()
    sampling: SamplingOptions = SamplingOptions()
    warm_start: WarmStart | None = None
    rollout: Rollout = Rollout()
    reward: Part = Part(name="as_is")
    filter: Part = Part(name="informative")
    credit: Part = Part(name="return_to_go")
    correction: Part = Part(name="tis")
    loss: list[Part] = [Part(name="clip")]
    reduce: Part = Part(name="token_mean")
    optimizer: Optimizer = Optimizer()
    updates: int = 100
    evaluate: Evaluate = Evaluate()
    checkpoint: Checkpoint = Checkpoint()

    @property
    def needs(self) -> frozenset[str]:
        """The signals that the parts ask for."""
        parts = [(self.credit, "credit"), *((part, "loss") for part in self.loss)]
        return frozenset(need for part, seam in parts for need in part.component(seam).needs)

    def to_yaml(self) -> str:
        return yaml.safe_dump(
            self.model_dump(mode="json", exclude_none=True), sort_keys=False, allow_unicode=True
        )


MEASURED = frozenset({"value", "reference", "logp", "tokens", "entropy"})
"""Signals that the trainer can measure."""


def load_recipe(source: str | Path, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """Read a recipe by name or path, change it by dotted keys, check it.

    Raises:
        NotFoundError: there is no such recipe.
        RecipeError: a key or part is unknown, ill-typed, does not fit or has no effect.
    """
    data = yaml.safe_load(_text(source))
    if not isinstance(data, dict):
        raise RecipeError(
            f"{source} is no recipe.", "A recipe is a YAML mapping; see `turnwise list recipes`."
        )
    for key, value in (overrides or {}).items():
        _override(data, key.split("."), value)
    return check_recipe(data)


def check_recipe(data: Mapping[str, Any]) -> Recipe:
    """The recipe that ``data`` describes.

    Raises:
        RecipeError: see :func:`load_recipe`.
    """
    try:
        recipe = Recipe.model_validate(data)
    except pydantic.ValidationError as error:
        raise _readable(error) from None
    _check_parts(recipe)
    _check_effects(recipe)
    return recipe


def recipe_names() -> list[str]:
    """The recipes that come with Turnwise."""
    folder = files("turnwise.trainers") / "recipes"
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


def _text(source: str | Path) -> str:
    path = Path(source)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise RecipeError(
                f"There is no recipe file {path}.", "Check the path, or see `turnwise list recipes`."
            )
        return path.read_text("utf-8")
    if str(source) not in recipe_names():
        raise NotFoundError("recipe", str(source), recipe_names())
    return (files("turnwise.trainers") / "recipes" / f"{source}.yaml").read_text("utf-8")


def _override(data: dict[str, Any], keys: list[str], value: Any) -> None:
    """Set a dotted key; losses are addressed by name (``loss.clip.high``), parts by option."""
    here: Any = data
    for depth, key in enumerate(keys[:-1]):
        if isinstance(here, list):
            names = [part["name"] if isinstance(part, dict) else part for part in here]
            found = names.index(key) if key in names else None
            if found is None:
                raise RecipeError(
                    f"The recipe has no {'.'.join(keys[: depth + 1])!r}.", "Add it to the file first."
                )
            if isinstance(here[found], str):
                here[found] = {"name": here[found]}
            here = here[found]
            continue
        if isinstance(here.get(key), str):
            here[key] = {"name": here[key]}
        here = here.setdefault(key, {})
        if here is None:
            raise RecipeError(f"{key!r} is null in the recipe.", "Give the whole section in the file.")
    here[keys[-1]] = value


def _check_parts(recipe: Recipe) -> None:
    from turnwise.envs.registry import get_suite

    get_suite(recipe.suite)
    for seam in ("reward", "filter", "credit", "correction", "reduce"):
        getattr(recipe, seam).build(seam)
    for part in recipe.loss:
        part.build("loss")
    missing = recipe.needs - MEASURED
    if missing:
        raise RecipeError(
            f"Parts of this recipe need {sorted(missing)}, which this trainer does not measure.",
            f"It measures {sorted(MEASURED)}; choose other parts.",
        )
    if (recipe.model.path is None) == (recipe.model.scratch is None):
        raise RecipeError(
            "A model is either loaded or made.", "Give exactly one of model.path and model.scratch."
        )


def _check_effects(recipe: Recipe) -> None:
    """Refuse what would silently change nothing."""
    steps = recipe.optimizer.epochs * recipe.optimizer.minibatches
    for index, part in enumerate(recipe.loss):
        if part.weight == 0:
            raise RecipeError(f"loss {part.name!r} has weight 0.", "Remove it from the recipe.")
        clips = {"low", "high", "dual"} & set(part.options)
        if part.name == "clip" and clips and steps == 1:
            raise RecipeError(
                f"loss 'clip': {', '.join(sorted(clips))} can have no effect: with one step per batch the ratio is 1.",
                "Set optimizer.minibatches or optimizer.epochs above 1, or remove the option.",
            )
        if part.name in {other.name for other in recipe.loss[:index]}:
            raise RecipeError(f"loss {part.name!r} stands twice.", "Keep one of them.")
    if recipe.rollout.group_size == 1 and recipe.filter.name == "informative":
        raise RecipeError(
            "filter 'informative' drops every group of one.", "Use filter: any, or a group_size above 1."
        )


def _readable(error: pydantic.ValidationError) -> RecipeError:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = _known_keys(first["loc"][:-1])
        near = difflib.get_close_matches(str(first["loc"][-1]), known, n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(known)}."
        return RecipeError(f"The recipe has an unknown key {where!r}.", remedy)
    return RecipeError(
        f"The recipe's {where!r} is not right: {first['msg']}.", "See docs/recipes.md for every key."
    )


def _known_keys(path: tuple[int | str, ...]) -> list[str]:
    model: Any = Recipe
    for key in path:
        annotation = model.model_fields[key].annotation
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        model = next(c for c in candidates if isinstance(c, type) and issubclass(c, pydantic.BaseModel))
    return list(model.model_fields)
