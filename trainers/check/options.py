"""Requirements for every part: it says what it is, has an example, and knows its options."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

from turnwise.errors import RecipeError
from turnwise.registry import Component
from turnwise.requirements import BrokenRequirement, example_works, require, says_what_it_is

SEEDS = range(6)


def variants(entry: Component) -> Iterator[tuple[str, Callable[..., Any]]]:
    """A part as it is, and with each named choice or switch set to each of its other values."""
    yield "with its defaults", entry.build({})
    hints = typing.get_type_hints(entry.target.__init__ if inspect.isclass(entry.target) else entry.target)
    for option, default in entry.options.items():
        hint = hints[option]
        choices = (True, False) if hint is bool else typing.get_args(hint)
        for choice in (c for c in choices if isinstance(c, str | bool) and c != default):
            yield f"with {option}={choice}", entry.build({option: choice})


def knows_its_options(entry: Component) -> None:
    """Its defaults are of the type that it declares; what it does not know, or of another type, is refused."""
    _refuses(entry, {"nonsense": 1}, "no option")
    for option, default in entry.options.items():
        entry.build({option: default})
        _refuses(entry, {option: object()}, option)


def _refuses(entry: Component, options: dict[str, object], named: str) -> None:
    try:
        entry.build(options)
    except RecipeError as error:
        require(named in str(error), f"It refuses {options} and does not name {named!r}: {error}")
        return
    raise BrokenRequirement(f"It accepts the option {options}.")


EVERY_PART = {
    "says what it is": says_what_it_is,
    "its example works": example_works,
    "knows its options": knows_its_options,
}
