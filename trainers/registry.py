"""The one registry of training parts: a seam, a name, a plain function.

A part's options are its keyword-only parameters, checked when a recipe is built; what it needs (a
value head, a reference model) is declared beside it. One paper, one function, one short file::

    @component("credit", "rloo", paper="2402.14740")
    def rloo(batch: TurnBatch, *, scale: float = 1.0) -> Tensor: ...
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

import pydantic

from turnwise.errors import NotFoundError, RecipeError

SEAMS = ("strategy", "judge", "reward", "filter", "credit", "correction", "loss", "reduce")
"""In the order in which a batch passes them; each is a folder of ``trainers/``."""

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Component:
    """A registered part."""

    seam: str
    name: str
    function: Callable[..., Any]
    paper: str  # arXiv id, or "" for what has no paper
    needs: tuple[str, ...]  # signals that the run must measure: "value", "reference", …
    bias: str  # credit, reduce: "unbiased", "biased: why", "changes the objective: to what"
    gives: tuple[str, ...] = ()  # strategy, judge: signals that it measures
    only_measures: bool = False  # strategy: nothing else is different, so it is idle where nobody needs them

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return inspect.cleandoc(self.function.__doc__ or "").partition("\n")[0]

    @property
    def options(self) -> dict[str, Any]:
        """Option names with their defaults."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}

    def build(self, options: Mapping[str, Any]) -> Callable[..., Any]:
        """The function with its options fixed.

        Raises:
            RecipeError: an option is unknown or of the wrong type.
        """
        known = self.options
        hints = get_type_hints(self.function)
        checked: dict[str, Any] = {}
        for name, value in options.items():
            if name not in known:
                error = NotFoundError(f"option of {self.seam} {self.name!r} called", name, known)
                raise RecipeError(error.cause, error.remedy)
            try:
                checked[name] = pydantic.TypeAdapter(hints[name]).validate_python(value)
            except pydantic.ValidationError as error:
                raise RecipeError(
                    f"{self.seam} {self.name!r}: {name}={value!r}: {error.errors()[0]['msg']}.",
                    f"Its default is {known[name]!r}.",
                ) from None
        return functools.partial(self.function, **checked)


_components: dict[tuple[str, str], Component] = {}


def component(
    seam: str,
    name: str,
    *,
    paper: str = "",
    needs: tuple[str, ...] = (),
    bias: str = "",
    gives: tuple[str, ...] = (),
    only_measures: bool = False,
) -> Callable[[Function], Function]:
    """Register a function as a part of ``seam``; it stays an ordinary function.

    Raises:
        RecipeError: the seam is unknown, the name is taken, or a credit rule or reducer does not state its bias.
    """
    if seam not in SEAMS:
        raise RecipeError(f"There is no seam {seam!r}.", f"Seams: {', '.join(SEAMS)}.")
    if seam in ("credit", "reduce") and bias.partition(":")[0] not in (
        "unbiased",
        "biased",
        "changes the objective",
    ):
        raise RecipeError(
            f"{seam} {name!r} does not state its bias.", 'Say bias="unbiased" or "biased: why".'
        )

    def enter(function: Function) -> Function:
        entry = Component(seam, name, function, paper, needs, bias, gives, only_measures)
        taken = _components.get((seam, name))
        if taken is not None and _home(taken.function) != _home(function):
            raise RecipeError(f"{seam} {name!r} is taken by {_home(taken.function)}.", "Choose another name.")
        _components[seam, name] = entry
        return function

    return enter


def components(seam: str) -> list[Component]:
    """All parts of a seam, by name."""
    _load(seam)
    return sorted((c for (s, _), c in _components.items() if s == seam), key=lambda c: c.name)


def get_component(seam: str, name: str) -> Component:
    """The part of this name.

    Raises:
        NotFoundError: there is none; the nearest is named.
    """
    _load(seam)
    if (seam, name) not in _components:
        raise NotFoundError(seam, name, (n for s, n in _components if s == seam))
    return _components[seam, name]


def _home(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


@functools.cache
def _load(seam: str) -> None:
    package = importlib.import_module(f"turnwise.trainers.{seam}")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"turnwise.trainers.{seam}.{module.name}")
