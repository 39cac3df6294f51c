"""Back ends that isolate; one that does not work here is skipped and said, and fails where CI requires it."""

import os

import pytest

from turnwise.tools.sandbox.registry import get_backend


@pytest.fixture(params=["bubblewrap", "docker"])
def backend(request):
    status = get_backend(request.param).status()
    if not status.ok:
        told = f"{request.param}: {status.detail}. {status.remedy}"
        if "TURNWISE_REQUIRE_SANDBOXES" in os.environ:
            pytest.fail(told)
        pytest.skip(told)
    return get_backend(request.param)
