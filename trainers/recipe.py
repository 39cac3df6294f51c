"""A recipe: every choice of a training run, as YAML, checked as a whole before anything starts.

Parts are named (``credit: rloo``) or named with options (``credit: {name: gae, lam: 0.95}``). What is
unknown, does not fit together or would change nothing is refused, with the nearest name or the remedy.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pydantic
import yaml

from turnwise.errors import NotFoundError, RecipeError
from turnwise.trainers.effects import check_effects
from turnwise.trainers.fit import check_fit
from turnwise.trainers.schema import Optimizer, Part, Recipe, Section, plain

__all__ = ["Optimizer", "Recipe", "check_recipe", "load_recipe", "recipe_names"]


def load_recipe(source: str | Path, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """Read a recipe by name or path, change it by dotted keys, check it.

    Raises:
        NotFoundError: there is no such recipe.
        RecipeError: a key or part is unknown, ill-typed, does not fit or has no effect.
    """
    try:
        data = yaml.safe_load(_text(source))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        said = " ".join(str(getattr(error, "problem", None) or error).split())
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise RecipeError(f"{source} is no YAML: {said}{where}.", "Mend the file.") from None
    if not isinstance(data, dict):
        raise RecipeError(
            f"{source} is no recipe.", "A recipe is a YAML mapping; see `turnwise list recipes`."
        )
    for key, value in (overrides or {}).items():
        data = _changed(data, key.split("."), value, [])
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
    check_fit(recipe)
    check_effects(recipe)
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
        old = {"name": old}
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


def _readable(error: pydantic.ValidationError) -> RecipeError:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = _known_keys(first["loc"][:-1])
        near = difflib.get_close_matches(str(first["loc"][-1]), known, n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(known)}."
        return RecipeError(f"The recipe has an unknown key {where!r}.", remedy)
    if first["type"] == "missing":
        return RecipeError(
            f"The recipe has no {where!r}.", "It is needed; docs/recipes.md explains every key."
        )
    given = f" ({str(first['input'])[:60]!r} is given)" if where else ""
    return RecipeError(
        f"The recipe's {where!r} is not right: {first['msg']}{given}.", "docs/recipes.md explains every key."
    )


def _known_keys(path: tuple[int | str, ...]) -> list[str]:
    section: type[Section] = Recipe
    for key in path:
        annotation = section.model_fields[str(key)].annotation
        found = [
            c for c in (annotation, *get_args(annotation)) if isinstance(c, type) and issubclass(c, Section)
        ]
        section = found[0]
    return list(section.model_fields)
