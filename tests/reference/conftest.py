"""References and the tests of this folder import each other by name; the connections of judges end with each test."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def judges_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A judge's policy is kept as long as the process; here each has a server, and so a thread and connections, of its own."""
    from turnwise.agents.core import Policy
    from turnwise.trainers.kit import asking

    made: list[Policy] = []
    make = asking.make_policy

    def kept(spec: str) -> Policy:
        made.append(make(spec))
        return made[-1]

    monkeypatch.setattr(asking, "make_policy", kept)
    yield
    for policy in made:
        policy.close()
        asking._answers.pop(id(policy), None)
    asking._made.cache_clear()
