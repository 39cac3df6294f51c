"""Tests that share what is dear run in one worker."""

from __future__ import annotations

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="there are no workers")
def test_workers_hear_of_groups(request: pytest.FixtureRequest) -> None:
    """pytest-xdist writes a test's group into its id; with a pytest that forbids it, files are torn apart in silence."""
    assert request.node.nodeid.endswith("@tests/test_groups.py")
