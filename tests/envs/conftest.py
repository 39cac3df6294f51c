"""What tests of environments share: one sample of each tool world's tasks."""

import pytest

from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.tasks.core import Split


@pytest.fixture(scope="session")
def sample():
    """The first tasks of a suite and split, drawn once: ``sample("toolworld/retail", Split.TEST, 60)``."""
    drawn = {}

    def tasks(name, split=Split.TRAIN, count=60):
        kept = drawn.setdefault((name, split), [])
        if len(kept) < count:
            kept[:] = suite_tasks(get_suite(name), split, count)
        return kept[:count]

    return tasks
