"""The interface that a web application must have so that agents can be trained on it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from turnwise.tasks.core import Task


class Visit(Protocol):
    """One agent's stay at a web application, with server state that no other visit sees or changes.

    ``state`` is an immutable description of the server's state for judging; ``capture`` and ``revive`` copy all of
    it (they may return the same value).
    """

    @property
    def origin(self) -> str:
        """``http://127.0.0.1:PORT``."""
        ...

    @property
    def cookies(self) -> Mapping[str, str]:
        """Cookies that the browser must send so that the server knows the visit."""
        ...

    @property
    def state(self) -> Any: ...

    def capture(self) -> object: ...

    def revive(self, captured: Any) -> None: ...

    def close(self) -> None: ...


class Site(Protocol):
    """A web application."""

    @abstractmethod
    def begin(self, task: Task) -> Visit:
        """A new visit with the task's initial state.

        Raises:
            InfraError: the application does not start.
        """
        ...
