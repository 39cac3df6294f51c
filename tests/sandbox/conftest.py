"""One laboratory per back end for the whole session; a back end that does not work here is skipped, and said."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import pytest

from turnwise.tools.sandbox.checks import Lab, laboratory
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.registry import BACKENDS, get_backend


def working(name: str) -> Backend:
    """The back end, or a skip with the reason; a failure where the machine is said to have it (CI)."""
    status = get_backend(name).status()
    if not status.ok:
        told = f"{name}: {status.detail}. {status.remedy}"
        if "TURNWISE_REQUIRE_SANDBOXES" in os.environ:
            pytest.fail(told)
        pytest.skip(told)
    return get_backend(name)


@pytest.fixture(scope="session", params=list(BACKENDS))
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with laboratory(working(request.param)) as made:
        yield made


@pytest.fixture(params=list(BACKENDS))
def backend(request: pytest.FixtureRequest) -> Backend:
    return working(request.param)


@pytest.fixture(params=[name for name in BACKENDS if name != "process"])
def isolated(request: pytest.FixtureRequest) -> Backend:
    return working(request.param)


@pytest.fixture
def closing() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack
