"""Errors that a user can act on: each says what is wrong and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from turnwise.secrets import redact


class TurnwiseError(Exception):
    """A problem with its cause and its remedy, each one sentence or two.

    >>> print(TurnwiseError("No suite 'shop/eazy'.", "Did you mean 'shop/easy'?"))
    No suite 'shop/eazy'.
    → Did you mean 'shop/easy'?
    """

    def __init__(self, cause: str, remedy: str) -> None:
        self.cause = redact(cause)  # errors end up in logs and reports, and quote what servers say
        self.remedy = redact(remedy)
        super().__init__(self.cause, self.remedy)

    def __str__(self) -> str:
        return f"{self.cause}\n→ {self.remedy}"


class NotFoundError(TurnwiseError):
    """A name that nothing is registered under."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=1)
        listed = ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
        remedy = f"Did you mean {near[0]!r}?" if near else f"Known: {listed or 'none'}."
        super().__init__(f"There is no {kind} {name!r}.", remedy)


class EnvError(TurnwiseError):
    """An environment broke its contract (a fault of its author, never of the policy)."""


class FileError(EnvError):
    """A file of tasks, questions or settings cannot be read as what it should be; file and line are named."""


class RecipeError(TurnwiseError):
    """A recipe whose parts are unknown, do not fit together or have no effect."""


class MissingDependencyError(TurnwiseError):
    """A library or device that was asked for is not there."""


class VerifierError(TurnwiseError):
    """A judgement could not be made; the episode is masked, not scored 0."""


class InfraError(TurnwiseError):
    """Failure of something that an environment stands on: a container, a browser, a server. The episode is played again."""


class DeadlineError(InfraError):
    """A call took longer than it may."""


class EngineError(TurnwiseError):
    """The engine that samples tokens failed, or runs other weights than it should."""


class PictureError(EngineError):
    """A model's server refuses a picture of the conversation, and takes another in its place."""


class WishRefusedError(EngineError):
    """A model's server refuses what an agent's program asks for, by its name."""

    def __init__(self, cause: str, remedy: str, parameter: str) -> None:
        super().__init__(cause, remedy)
        self.parameter = parameter


class RunError(TurnwiseError):
    """A run cannot start, go on or be resumed."""
