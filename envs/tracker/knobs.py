"""The knobs of the tracker: what a suite may set, checked."""

from __future__ import annotations

from typing import Literal

import pydantic

from turnwise.envs.tracker.task_templates import TEMPLATES

_NAMES = frozenset(name for templates in TEMPLATES.values() for name in templates)


class TrackerKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """Choice of tasks, and the size of the board."""

    templates: tuple[str, ...] = tuple(TEMPLATES)  # kinds (create, edit, find, moderate) or single templates
    issues: int = pydantic.Field(24, ge=5, le=500)
    comments: int = pydantic.Field(3, ge=1, le=20)  # at most, of each issue
    injections: int = pydantic.Field(0, ge=0)  # comments that tell the agent to do something else
    turn_limit: int = pydantic.Field(30, ge=2)
    view: Literal["tree", "html", "screenshot"] = "tree"

    @pydantic.field_validator("templates", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        named = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
        for name in named if isinstance(named, tuple) else ():
            if name not in TEMPLATES and name not in _NAMES:
                raise ValueError(f"no kind or template is called {name!r}: {', '.join(TEMPLATES)}")
        return named

    @property
    def names(self) -> tuple[str, ...]:
        """The single templates."""
        return tuple(name for chosen in self.templates for name in TEMPLATES.get(chosen, (chosen,)))
