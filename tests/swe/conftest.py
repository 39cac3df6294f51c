"""Backends that isolate; one that does not work here is skipped and said, and fails where CI requires it."""

import pytest

collect_ignore = ["folders"]  # task folders, whose tests are for the agent's work


@pytest.fixture(params=["bubblewrap", "docker"])
def backend(request, working):
    return working(request.param)
