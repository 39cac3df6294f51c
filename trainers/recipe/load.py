"""A recipe: every choice of a training run, as YAML, checked as a whole before anything starts.

Parts are named (``credit: rloo``) or named with options (``credit: {name: gae, lam: 0.95}``). What is
unknown, does not fit together or would change nothing is refused, with the nearest name or the remedy.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import pydantic

from turnwise.errors import NotFoundError, RecipeError
from turnwise.registry import components
from turnwise.trainers.recipe.algorithms import Algorithm, expand, get_algorithm, settle
from turnwise.trainers.recipe.compatible import misfits, missing
from turnwise.trainers.recipe.errors import explain_invalid, where, without
from turnwise.trainers.recipe.no_effect import useless
from turnwise.trainers.recipe.part import Part
from turnwise.trainers.recipe.problems import RecipeProblem, refuse
from turnwise.trainers.recipe.schema import Optimizer, Recipe, plain
from turnwise.trainers.recipe.text import Places, read_text

__all__ = ["Optimizer", "Recipe", "check_recipe", "load_recipe", "recipe_names"]


RecipeLike: TypeAlias = str | Path | Mapping[str, Any] | Recipe
"""A recipe: the name of one that comes with Turnwise, a YAML file's path, a mapping of its keys, or itself."""


def load_recipe(source: RecipeLike, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """Read a recipe, change it by dotted keys, check it.

    >>> load_recipe("shop-quick", {"updates": 20, "loss.clip.high": 0.28}).updates
    20

    Args:
        source: a name, the path of a YAML file, a mapping, or a recipe.
        overrides: keys with their new values, such as ``{"loss.clip.high": 0.28}``.

    Returns:
        The recipe, every key with its value.

    Raises:
        NotFoundError: there is no recipe of this name.
        RecipeError: a key or part is unknown, ill-typed, does not fit or has no effect.
    """
    data, places = _read(source)
    changes, problems = dict(overrides or {}), list[RecipeProblem]()
    if "algorithm" in changes:
        data, places["algorithm"] = {**data, "algorithm": changes.pop("algorithm")}, "--set"
    algorithm = _algorithm(data, places, problems)
    if algorithm is not None:
        data, added = expand(data, algorithm)
        places |= dict.fromkeys(added, f"algorithm: {algorithm.name}")
    for key, value in changes.items():
        try:
            data, places[key] = changed(data, key, value), "--set"
        except RecipeError as error:
            problems.append(RecipeProblem(error.cause, error.remedy))
    return _checked(data if algorithm is None else settle(data, algorithm), places, problems)


def check_recipe(data: Mapping[str, Any]) -> Recipe:
    """The recipe that ``data`` describes.

    Raises:
        RecipeError: see :func:`load_recipe`.
    """
    return load_recipe(data)


def _algorithm(data: dict[str, Any], places: Places, problems: list[RecipeProblem]) -> Algorithm | None:
    """The algorithm that a recipe names; one that there is not is a problem, and taken out of ``data``."""
    name = data.get("algorithm")
    if name is None:
        return None
    try:
        return get_algorithm(name, where("algorithm", places))
    except RecipeError as error:
        problems.append(RecipeProblem(error.cause, error.remedy))
        del data["algorithm"]
        return None


def _checked(data: Mapping[str, Any], places: Places, problems: list[RecipeProblem]) -> Recipe:
    """The recipe, if there are no problems; those that follow from others are left for later."""
    recipe: Recipe | None = None
    try:
        recipe = Recipe.model_validate(data)
    except pydantic.ValidationError as error:
        problems += explain_invalid(error, places)
        with contextlib.suppress(pydantic.ValidationError):
            recipe = Recipe.model_validate(without(data, error))
    if recipe is None:
        refuse(problems)
        raise AssertionError("what cannot be validated has problems")
    problems += missing(recipe, lambda key: where(key, places))
    if not problems:
        recipe = completed(recipe)
        problems += [*misfits(recipe), *useless(recipe)]
    refuse(problems)
    return recipe


def completed(recipe: Recipe) -> Recipe:
    """The recipe with the filter that it leaves out: what a learned signal enters has no advantage of 0 to be dropped."""
    if "filter" in recipe.model_fields_set or not any(chosen.entry.learns for chosen in recipe.sources):
        return recipe
    return recipe.model_copy(update={"filter": Part(name="any")})


def recipe_names() -> list[str]:
    """The recipes that come with Turnwise."""
    folder = files("turnwise.trainers.recipe") / "presets"
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


def _read(source: RecipeLike) -> tuple[dict[str, Any], dict[str, str]]:
    """A recipe's keys, and the places at which a file gives them."""
    if isinstance(source, Recipe):
        return plain(source), {}
    if isinstance(source, Mapping):
        return dict(source), {}
    return read_text(_text(source), str(source))


def _text(source: str | Path) -> str:
    path = Path(source)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise RecipeError(
                f"There is no recipe file {path}.", "Check the path, or see `turnwise list recipes`."
            )
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RecipeError(f"{path} is no YAML: it cannot be read ({error}).", "Fix the file.") from None
    if str(source) not in recipe_names():
        raise NotFoundError("recipe", str(source), recipe_names())
    return (files("turnwise.trainers.recipe") / "presets" / f"{source}.yaml").read_text("utf-8")


def changed(data: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A recipe's keys with what a dotted one leads to replaced.

    Parts are opened by option (``credit.lam``), those of a list by name (``loss.clip.high``). The key of a schedule is
    dotted itself: what follows ``schedule.`` is one key.

    Raises:
        RecipeError: it leads nowhere.
    """
    first, _, rest = key.partition(".")
    return _changed(data, [first, rest] if first == "schedule" and rest else key.split("."), value, [])


def _changed(old: Any, keys: list[str], value: Any, path: list[str]) -> Any:
    """``old`` with what the dotted key leads to replaced.

    Parts are opened by option (``credit.lam``), losses by name (``loss.clip.high``).
    """
    if not keys:
        return value
    key, *rest = keys
    if old is None:
        old = _default(path) if path else {}
    if isinstance(old, str):
        old = {"path" if path == ["model"] else "name": old}
    if isinstance(old, list):
        return _changed_in_list(old, keys, value, path)
    if not isinstance(old, dict):
        raise RecipeError(f"{'.'.join(path)!r} is a value and has no key {key!r}.", "Set the value itself.")
    return {**old, key: _changed(old.get(key), rest, value, [*path, key])}


def _changed_in_list(parts: list[Any], keys: list[str], value: Any, path: list[str]) -> list[Any]:
    key, *rest = keys
    where = ".".join(path)
    names = [part.get("name") if isinstance(part, dict) else part for part in parts]
    if key not in names:
        near = difflib.get_close_matches(key, [str(name) for name in names], n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else f"It has: {', '.join(map(str, names))}."
        if where == "loss" and key in [entry.name for entry in components("loss")]:
            remedy = f"Give all of them: --set 'loss=[{', '.join(map(str, names))}, {{name: {key}, weight: 0.01}}]'."
        raise RecipeError(f"The recipe has no {where}.{key}.", remedy)
    if not rest:
        raise RecipeError(f"{where}.{key} is a part.", f"Set one of its options: {where}.{key}.OPTION=VALUE.")
    index = names.index(key)
    return [*parts[:index], _changed(parts[index], rest, value, [*path, key]), *parts[index + 1 :]]


def _default(path: list[str]) -> Any:
    """What a key that the file leaves out stands for, if parts do."""
    default: Any = Recipe.model_fields[path[0]].default if path[0] in Recipe.model_fields else None
    for key in path[1:]:
        default = getattr(default, key, None)
    parts = isinstance(default, Part) or (isinstance(default, list) and default)
    return plain(default) if parts else {}
