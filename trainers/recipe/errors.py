"""Mistakes in a recipe's keys and values, in the recipe's own words."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, get_args

import pydantic
import pydantic_core
import yaml

from turnwise.trainers.recipe.coming_from import foreign_argument
from turnwise.trainers.recipe.part import Part
from turnwise.trainers.recipe.problems import RecipeProblem
from turnwise.trainers.recipe.schema import Recipe, Section, plain
from turnwise.trainers.recipe.text import Places
from turnwise.type_words import listed, wanted_kind

DOCS = "docs/recipes.md explains every key."
_EXAMPLES = {
    "model": "model: {path: Qwen/Qwen3-0.6B}",
    "engine": "engine: {kind: torch}",
    "warm_start": "warm_start: {demonstrator: gold, episodes: 4000}",
    "loss": "loss: [clip]",
    "sinks": "sinks: [tensorboard]",
    "suite": "suite: shop/quick (`turnwise list suites`)",
    "credit": "credit: gae, or credit: {name: gae, lam: 0.95}",
}
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("{} or more", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


_OF_NUMBERS = {*_BOUNDS, "float_type", "float_parsing", "finite_number", "int_type", "int_parsing"}


def where(key: str, places: Places) -> str:
    """Say where a key, or what it belongs to, was given: `` (line 7)``; empty where that is not known."""
    while key and key not in places:
        key = key.rpartition(".")[0]
    return f" ({places[key]})" if key else ""


def explain_invalid(
    error: pydantic.ValidationError, places: Places, data: Any = None
) -> Iterator[RecipeProblem]:
    """One problem for each key that is unknown, missing or ill-typed; of ``data`` the keys inside of plain values are named too."""
    seen: set[str] = set()
    for detail in error.errors(include_url=False):
        loc = _in_recipe(detail["loc"], data)
        key = ".".join(map(str, loc))
        if key not in seen:
            seen.add(key)
            yield _problem(detail, loc, key, where(key, places))


def without(data: Any, error: pydantic.ValidationError) -> dict[str, Any]:
    """``data`` without the keys that ``error`` complains about, so that the others can be checked."""
    left = copy.deepcopy(data)
    for detail in error.errors(include_url=False):
        inside: Any = left
        *path, last = _in_recipe(detail["loc"], data) or [""]
        for step in path:
            inside = inside.get(step) if isinstance(inside, dict) else None
        if isinstance(inside, dict) and _leaf(path) and detail["type"] in _OF_NUMBERS:
            inside[last] = 1  # so that the name which has the number is looked at too
        elif isinstance(inside, dict):
            inside.pop(last, None)
    return left


def _problem(detail: Any, loc: Sequence[int | str], key: str, place: str) -> RecipeProblem:
    kind, given = detail["type"], _shown(detail["input"])
    example = _as_list(loc, detail) or _example(_leaf(loc) or loc)
    if kind in ("extra_forbidden", "invalid_key"):
        return RecipeProblem(f"The recipe has an unknown key {key!r}{place}.", _remedy_for_key(loc))
    if kind == "missing":
        if loc[-1] == "name":
            part = ".".join(map(str, loc[:-1]))
            return RecipeProblem(
                f"{part!r} has options and no name{place}.", f"Write {loc[0]}: {{name: …, …}}."
            )
        return RecipeProblem(f"The recipe has no {key!r}.", f"Give it, such as {example}; {DOCS}")
    wanted = wanted_kind(detail) if kind not in _BOUNDS and kind != "literal_error" else ""
    field = _field(_leaf(loc) or loc)
    if wanted == "a mapping" and field is None:
        wanted = "a name, or a mapping with a name"
    if wanted == "a number" and isinstance(field, _Leaf) and type(field.default) is int:
        wanted = "a whole number"
    if wanted and wanted != "something else":
        return RecipeProblem(
            f"The recipe's {key!r} must be {wanted}, and {given} is given{place}.", f"Write {example}; {DOCS}"
        )
    if kind == "literal_error":
        known = [str(choice) for choice in _choices(field)]
        near = difflib.get_close_matches(str(detail["input"]), known, n=1, cutoff=0.8)
        meant = f" (did you mean {near[0]}?)" if near else ""
        remedy = f"Write one of {', '.join(known)}{meant}."
        return RecipeProblem(f"The recipe's {key!r} cannot be {given}{place}.", remedy)
    if kind in _BOUNDS:
        words, name = _BOUNDS[kind]
        bound = f"{detail['ctx'][name]:g}"
        words = words.format(bound) if "{}" in words else f"{words} {bound}"
        return RecipeProblem(f"The recipe's {key!r} cannot be {given}{place}.", f"It must be {words}; {DOCS}")
    return RecipeProblem(f"The recipe's {key!r} cannot be {given}{place}.", f"Write {example}; {DOCS}")


def _in_recipe(loc: Sequence[int | str], data: Any) -> list[int | str]:
    """A place as the recipe has it: without the branches of a type that may be several things."""
    path: list[int | str] = []
    inside: Any = data
    for step in loc:
        held = isinstance(inside, Mapping) and step in inside
        is_branch = not held and isinstance(step, str) and bool(_leaf(path))
        if step == "[key]" or (is_branch and not isinstance(inside, Mapping)):
            break
        if not is_branch:
            path.append(step)
            inside = inside[step] if held else None
    return path


def _leaf(path: Sequence[int | str]) -> Sequence[int | str]:
    """The key of a plain value that stands at this place or around it; empty where there is none."""
    return next((path[:end] for end in range(1, len(path) + 1) if isinstance(_field(path[:end]), _Leaf)), ())


class _Leaf:
    """A key that holds a plain value."""

    def __init__(self, annotation: Any, default: Any) -> None:
        self.annotation, self.default = annotation, default


def _field(path: Sequence[int | str]) -> type[Section] | _Leaf | None:
    """Return the section or value that stands at a place of a recipe; None inside of parts and options, and where there is nothing."""
    section: type[Section] | _Leaf | None = Recipe
    for key in path:
        if not (isinstance(section, type) and key in section.model_fields):
            return None
        field = section.model_fields[str(key)]
        kinds = [k for k in (field.annotation, *get_args(field.annotation)) if isinstance(k, type)]
        if (
            any(issubclass(k, Part) for k in kinds)
            or field.annotation == Recipe.model_fields["loss"].annotation
        ):
            return None
        found = [k for k in kinds if issubclass(k, Section)]
        section = found[0] if found else _Leaf(field.annotation, field.default)
    return section


def _choices(field: Any) -> Sequence[Any]:
    return get_args(field.annotation) if isinstance(field, _Leaf) else ()


def _as_list(loc: Sequence[int | str], detail: Mapping[str, Any]) -> str:
    """A text where a list is wanted, as the list of its words."""
    given = detail["input"]
    if wanted_kind(detail) != "a list" or not isinstance(given, str) or not loc:
        return ""
    return f"{loc[-1]}: {listed(given)}"


def _example(loc: Sequence[int | str]) -> str:
    """Show how a key may be written."""
    key = str(loc[-1]) if loc else ""
    if len(loc) == 1 and key in _EXAMPLES:
        return _EXAMPLES[key]
    if loc and str(loc[0]) in ("loss",):
        return _EXAMPLES["loss"]
    field = _field(loc)
    if isinstance(field, _Leaf):
        default = plain(field.default)
        known = default not in (
            None,
            "",
            pydantic_core.PydanticUndefined,
        )  # a key that must be given has no default
        return f"{key}: {_flow(default)}" if known else f"{key}: …"
    if field is not None:
        first, inner = next((name, f) for name, f in field.model_fields.items() if not f.is_required())
        return f"{key}: {{{first}: {_flow(plain(inner.default))}}}"
    return f"{key}: …"


def _remedy_for_key(loc: Sequence[int | str]) -> str:
    key = str(loc[-1])
    if (here := foreign_argument(key)) is not None:
        return here.message
    homes = [path for path in known_keys() if path.rpartition(".")[2] == key]
    if homes:
        return f"It is called {' or '.join(homes)}."
    section = _field(loc[:-1])
    known = list(section.model_fields) if isinstance(section, type) else []
    near = difflib.get_close_matches(key, known, n=1)
    if near:
        return f"Did you mean {near[0]!r}?"
    far = difflib.get_close_matches(key, [path.rpartition(".")[2] for path in known_keys()], n=1, cutoff=0.75)
    if far:
        return f"Did you mean {next(path for path in known_keys() if path.endswith(far[0]))}?"
    return f"Known here: {', '.join(known)}."


def known_keys() -> list[str]:
    """All dotted keys of a recipe."""
    return list(_keys(Recipe, ""))


def _keys(section: type[Section], prefix: str) -> Iterator[str]:
    for key in section.model_fields:
        yield f"{prefix}{key}"
        inner = _field([*prefix.removesuffix(".").split("."), key] if prefix else [key])
        if isinstance(inner, type):
            yield from _keys(inner, f"{prefix}{key}.")


def _shown(value: Any) -> str:
    """A value as YAML has it, short enough for a message."""
    return repr(value[:60]) if isinstance(value, str) else _flow(_brief(value))[:60]


def _brief(value: Any, depth: int = 3) -> Any:
    """The beginning of a value, which may be of any size."""
    if isinstance(value, dict):
        return {key: _brief(item, depth - 1) for key, item in islice(value.items(), 8)} if depth else "…"
    if isinstance(value, (list, tuple)):
        return [_brief(item, depth - 1) for item in value[:8]] if depth else "…"
    return value[:60] if isinstance(value, str) else value


def _flow(value: Any) -> str:
    text = yaml.safe_dump(plain(value), default_flow_style=True, allow_unicode=True, width=10_000)
    return text.strip().removesuffix("...").strip()
