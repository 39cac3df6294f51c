"""Parts in a recipe: a component by name, with its options and whatever a kind of part says beside."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import pydantic
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from turnwise.errors import RecipeError
from turnwise.registry import Component, get_component
from turnwise.trainers.kit.payer import Payer, RewardInRow


def _no_bool(value: Any) -> Any:
    """To Python true is 1, so `updates: yes` would be a single update."""
    if isinstance(value, bool):
        raise PydanticCustomError("float_type", "true and false are no numbers")
    return value


Number = Annotated[float, BeforeValidator(_no_bool), Field(allow_inf_nan=False)]
Whole = Annotated[int, BeforeValidator(_no_bool)]
Count = Annotated[Whole, Field(gt=0)]
Rate = Annotated[Number, Field(gt=0)]
Scheduled = Annotated[Number, Field(ge=0)]
"""A rate or a weight that a schedule may take down to 0; without one 0 is refused as without effect."""
Share = Annotated[Number, Field(ge=0, le=1)]


REMEMBER = ("guide", "judge")
"""Kinds whose parts are functions or, where they remember, classes that are called as functions are."""


class Part(pydantic.BaseModel):
    """A component by name, with its options."""

    model_config = pydantic.ConfigDict(extra="allow", frozen=True)
    name: str

    @pydantic.model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    def component(self, seam: str) -> Component:
        return get_component(seam, self.name)

    def needs(self, seam: str) -> frozenset[str]:
        """The signals that it asks for."""
        return self.component(seam).needs_with(self.options)

    def build(self, seam: str) -> Callable[..., Any]:
        """The function with its options fixed; raises RecipeError where they do not fit."""
        return self.component(seam).build(self.options)


def payer_of(parts: Sequence[Part]) -> Payer:
    """The rewards of a recipe, to be paid one after the other; raises RecipeError where options do not fit."""
    return Payer(
        [RewardInRow(part.name, part.build("reward"), part.component("reward").whole) for part in parts]
    )


def as_list(value: Any) -> Any:
    """Return a value that stands alone as a list of it."""
    return value if isinstance(value, (list, tuple)) else [value]


def needs_of(parts: Sequence[Part], seam: str) -> frozenset[str]:
    """The signals that several parts of a kind ask for."""
    return frozenset[str]().union(*(part.needs(seam) for part in parts))


def departing(part: Part, seam: str) -> dict[str, Any]:
    """The options that the recipe gives the part and that are not its own."""
    own = part.component(seam).options
    return {name: value for name, value in part.options.items() if name not in own or own[name] != value}


def made(part: Part, seam: str) -> Callable[..., Any]:
    """The part's function, or a new object where it is a class, because it remembers; raises RecipeError where options do not
    fit."""
    built = part.build(seam)
    if not inspect.isclass(part.component(seam).target):
        return built
    one = built()
    if seam in REMEMBER and not all(hasattr(one, name) for name in ("__call__", "state", "restore")):
        raise RecipeError(
            f"{seam} {part.name!r} is a class without __call__, state and restore, so that a run that is resumed would have "
            "forgotten what it knew.",
            f"Write them, or make it a function (docs/extending/{seam}.md).",
        )
    return one


class LossPart(Part):
    """A loss with its weight in the sum."""

    weight: Number = 1.0

    @property
    def whole(self) -> bool:
        """True if it is a function of whole minibatches."""
        return self.component("loss").whole

    def make(self) -> Callable[..., Any]:
        """The loss, which is an object where it remembers; raises RecipeError where options do not fit."""
        return made(self, "loss")


class GuidePart(Part):
    """A guide, and how the tokens that it had a hand in are learned; as all others, if nothing is said."""

    loss: list[LossPart] | None = None
    correction: Part | None = None

    def make(self) -> Callable[..., Any]:
        """The guide, which is an object where it remembers; raises RecipeError where options do not fit."""
        return made(self, "guide")


class SourcePart(GuidePart):
    """A source, how its tokens are learned, and their weight; shown ones by ``nll`` if nothing is said."""

    weight: Scheduled = 1.0

    def make(self) -> Callable[..., Any]:
        """The source, which is an object where it remembers; raises RecipeError where options do not fit."""
        return made(self, "source")


class ProposerPart(Part):
    """A proposer, and for how many later updates its tasks are kept in the pool."""

    keep: Annotated[Whole, Field(ge=0)] = 0


class TeacherPart(Part):
    """A teacher, and how many of its likeliest tokens losses are told."""

    top: Annotated[Whole, Field(ge=0)] = 0


InRow = Annotated[list[Part], BeforeValidator(as_list), Field(min_length=1)]
"""Parts one after the other; one alone may be written without the brackets."""
