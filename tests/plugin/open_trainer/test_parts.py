"""What the package's author runs."""

import pytest

from turnwise.registry import get_component
from turnwise.requirements import NotTested, requirements

NAMES = {
    "signal": "promise", "shape": "halved", "sampler": "counting", "guide": "again", "source": "fading",
    "teacher": "slow", "loss": "margin", "schedule": "shrinking",
}  # fmt: skip
ALL = [(kind, name) for kind in NAMES for name in requirements(kind)]


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_what_is_required(kind: str, name: str) -> None:
    try:
        requirements(kind)[name](get_component(kind, NAMES[kind]))
    except NotTested as reason:
        pytest.skip(str(reason))
