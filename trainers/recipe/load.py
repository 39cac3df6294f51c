"""A recipe: every choice of a training run, as YAML, checked as a whole before anything starts.

Parts are named (``credit: rloo``) or named with options (``credit: {name: gae, lam: 0.95}``). What is
unknown, does not fit together or would change nothing is refused, with the nearest name or the remedy.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import pydantic

from turnwise.envs.sources import load_module, look_here
from turnwise.errors import EnvError, NotFoundError, RecipeError
from turnwise.trainers.recipe.algorithms import Algorithm, expand, get_algorithm, settle
from turnwise.trainers.recipe.compatible import misfits
from turnwise.trainers.recipe.dotted import changed
from turnwise.trainers.recipe.equal_groups import losing_equal_groups
from turnwise.trainers.recipe.errors import explain_invalid, where, without
from turnwise.trainers.recipe.names import missing
from turnwise.trainers.recipe.no_effect import useless
from turnwise.trainers.recipe.part import as_list
from turnwise.trainers.recipe.phases import completed, wrong_contents, wrong_phases
from turnwise.trainers.recipe.problems import RecipeProblem, refuse
from turnwise.trainers.recipe.schema import Optimizer, Recipe, plain
from turnwise.trainers.recipe.text import Places, read_text

__all__ = ["Optimizer", "Recipe", "check_recipe", "load_recipe", "recipe_names"]


_BY_ALGORITHM = "algorithm: "  # before its name, as the place of the keys that it sets
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
    if "imports" in changes:
        data, places["imports"] = {**data, "imports": changes.pop("imports")}, "--set"
    data = _with_imports(data)
    if "algorithm" in changes:
        data, places["algorithm"] = {**data, "algorithm": changes.pop("algorithm")}, "--set"
    algorithm = _algorithm(data, places, problems)
    if algorithm is not None:
        data, added = expand(data, algorithm)
        places |= dict.fromkeys(added, f"{_BY_ALGORITHM}{algorithm.name}")
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


def _with_imports(data: dict[str, Any]) -> dict[str, Any]:
    """Import what holds parts of the author's own; files are named by absolute paths from here on, so that a run finds them again.

    What is no list of names is left to the schema.

    Raises:
        RecipeError: a file or module is not there, or cannot be imported.
    """
    named: list[Any] = as_list(data.get("imports", []))
    if not named or not all(isinstance(each, str) for each in named):
        return data
    found = [str(Path(each).absolute()) if each.endswith(".py") else each for each in named]
    look_here()
    for each in found:
        try:
            load_module(each)
        except EnvError as error:
            raise RecipeError(f"imports: {error.cause}", error.remedy) from error
    return {**data, "imports": found}


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
        problems += explain_invalid(error, places, data)
        with contextlib.suppress(pydantic.ValidationError):
            recipe = Recipe.model_validate(without(data, error))
    if recipe is None:
        refuse(problems)
        raise AssertionError("what cannot be validated has problems")
    problems += missing(recipe, lambda key: where(key, places))
    problems += wrong_phases(recipe)
    if recipe.phases and not problems:
        problems += wrong_contents(recipe, _unfit)
    elif not problems:
        problems += _misfitting(recipe)
    refuse(_with_origins(problems, places))
    return completed(recipe)


def _with_origins(problems: Iterable[RecipeProblem], places: Places) -> Iterator[RecipeProblem]:
    """The problems; where one is of keys that the algorithm sets, and not the recipe, it says so."""
    own = {key: place for key, place in places.items() if place.startswith(_BY_ALGORITHM)}
    for cause, remedy in problems:
        of = [key for key in own if re.search(rf"(?<![\w.]){re.escape(key)} [\d'.]", cause)]
        said = (
            f" The algorithm {own[of[0]].removeprefix(_BY_ALGORITHM)!r} sets {' and '.join(of)}."
            if of
            else ""
        )
        yield RecipeProblem(cause + said, remedy)


def _unfit(recipe: Recipe) -> list[RecipeProblem]:
    """Problems with a recipe whose keys are right: what does not exist, else what does not fit."""
    return [*missing(recipe, lambda key: "")] or _misfitting(recipe)


def _misfitting(recipe: Recipe) -> list[RecipeProblem]:
    whole = completed(recipe)
    return [*misfits(whole), *losing_equal_groups(whole), *useless(whole)]


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
    if path.is_file():
        raise RecipeError(
            f"{path} is no recipe: recipes are YAML, and end in .yaml.",
            f"Of another trainer, it is explained by `turnwise explain {path} --from trl|verl|prime-rl|nemo`.",
        )
    if str(source) not in recipe_names():
        raise NotFoundError("recipe", str(source), recipe_names())
    return (files("turnwise.trainers.recipe") / "presets" / f"{source}.yaml").read_text("utf-8")
