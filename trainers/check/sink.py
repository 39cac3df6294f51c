"""Requirements for sinks: they take the figures of a run's updates."""

from __future__ import annotations

import tempfile
from pathlib import Path

from turnwise.errors import MissingDependencyError
from turnwise.registry import Component
from turnwise.requirements import NotTested, Requirements, require, says_what_it_is

FIGURES = {
    "reward": 0.5,
    "dev_success_interval": [0.1, 0.9],
    "tokens": 12,
    "vacuous": "every group was alike",
}


def takes_figures(entry: Component) -> None:
    """Updates with figures of any type, closing at once, and going on where an earlier process stopped."""
    with tempfile.TemporaryDirectory(prefix="turnwise-sink-") as folder:
        try:
            entry.build({})(Path(folder), 0).close()
        except MissingDependencyError as lack:
            raise NotTested(str(lack)) from lack
        for begin in (0, 2):
            sink = entry.build({})(Path(folder), begin)
            for update in (begin + 1, begin + 2):
                given = dict(FIGURES)
                sink.write(update, given)
                require(given == FIGURES, "It changes the figures.")
            sink.close()


REQUIREMENTS: dict[str, Requirements] = {
    "sink": {"says what it is": says_what_it_is, "takes figures": takes_figures}
}
