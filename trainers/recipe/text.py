"""A recipe's text, read with the places of its keys: YAML forgets them, and messages need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from turnwise.errors import RecipeError
from turnwise.plain_yaml import YamlRefused, read_yaml_text
from turnwise.trainers.recipe.problems import RecipeProblem, refuse

Places = Mapping[str, str]
"""Dotted keys, and where each was given: ``line 7``, or ``--set``."""


def read_text(text: str, source: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The mapping that a YAML text stands for, and the places of its keys.

    Raises:
        RecipeError: it is no YAML, no mapping, or gives a key twice.
    """
    try:
        node, data = read_yaml_text(text)
    except YamlRefused as error:
        raise RecipeError(
            f"{source} cannot be a recipe: {error}.", "Write each value out, and none so large."
        ) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise RecipeError(
            f"{source} is no YAML{where}: {_in_words(error)}.",
            "Fix that line: its indentation, quotes and brackets.",
        ) from None
    if not isinstance(data, dict):
        what = "it is empty" if data is None else "it holds no mapping"
        raise RecipeError(
            f"{source} is no recipe: {what}.",
            "A recipe is a YAML mapping with at least `suite` and `model`; see `turnwise list recipes`.",
        )
    places: dict[str, str] = {}
    refuse(_walk(node, "", places, set()), source)
    return data, places


def _in_words(error: Exception) -> str:
    said = str(getattr(error, "problem", None) or error)
    if "'\\t'" in said:
        return "a tab stands where spaces have to"
    if "mapping values" in said:
        return "a second colon on one line; a text with a colon needs quotes"
    if "alias" in said or "tag" in said:
        return "it names something that a recipe cannot hold"
    return "it does not go on as the lines before it began"


def _walk(node: Any, path: str, places: dict[str, str], above: set[int]) -> Iterator[RecipeProblem]:
    """Note the places of all keys below a node; keys that are given twice."""
    if not isinstance(node, yaml.MappingNode) or id(node) in above:
        return
    for key, value in node.value:
        name = f"{path}.{key.value}".strip(".")
        line = f"line {key.start_mark.line + 1}"
        if name in places:
            yield RecipeProblem(
                f"The recipe gives {name!r} twice: {places[name]} and {line}.", "Keep one of them."
            )
        places[name] = line
        yield from _walk(value, name, places, above | {id(node)})
