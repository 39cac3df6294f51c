"""Stand-ins of providers, all behind one server for a session, and a small desk that is solved by tools."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from desk import register_desk
from fakes import Fakes, serve_fakes


@pytest.fixture(scope="session", autouse=True)
def desk() -> None:
    """The suites of the desk are known."""
    register_desk()


@pytest.fixture(scope="session")
def fakes() -> Iterator[Fakes]:
    """One server on the loopback interface that stands in for every provider of `providers/`."""
    with serve_fakes() as served:
        yield served
