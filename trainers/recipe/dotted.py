"""A recipe's keys with one of them changed, by its dotted name."""

from __future__ import annotations

import difflib
from typing import Any

from turnwise.errors import RecipeError
from turnwise.registry import components
from turnwise.trainers.recipe.part import Part
from turnwise.trainers.recipe.schema import Recipe, plain


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
    if len(path) == 1 and path[0] in ("judge", "reward") and not isinstance(old, list):
        old = [old]
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
    if names.count(key) > 1:
        raise RecipeError(
            f"The recipe names {where}.{key} {names.count(key)} times.",
            f"Set all of {where} anew (--set '{where}=[…]').",
        )
    if not rest:
        raise RecipeError(f"{where}.{key} is a part.", f"Set one of its options: {where}.{key}.OPTION=VALUE.")
    index = names.index(key)
    return [*parts[:index], _changed(parts[index], rest, value, [*path, key]), *parts[index + 1 :]]


def _default(path: list[str]) -> Any:
    """Return the default of a key that the file leaves out, if that is parts."""
    default: Any = Recipe.model_fields[path[0]].default if path[0] in Recipe.model_fields else None
    for key in path[1:]:
        default = getattr(default, key, None)
    parts = isinstance(default, Part) or (isinstance(default, list) and default)
    return plain(default) if parts else {}
