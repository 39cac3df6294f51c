"""One laboratory per backend for the whole session; a backend that does not work here is skipped, and said."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from turnwise.tools.sandbox.checks import Lab, laboratory
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.registry import backend_names


@pytest.fixture(scope="session", params=backend_names())
def lab(request: pytest.FixtureRequest, working: Callable[[str], Backend]) -> Iterator[Lab]:
    with laboratory(working(request.param)) as made:
        yield made


@pytest.fixture(params=backend_names())
def backend(request: pytest.FixtureRequest, working: Callable[[str], Backend]) -> Backend:
    return working(request.param)


@pytest.fixture(params=[name for name in backend_names() if name != "process"])
def isolated(request: pytest.FixtureRequest, working: Callable[[str], Backend]) -> Backend:
    return working(request.param)


@pytest.fixture
def closing() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack
