"""Messages of libraries go to a file beside what is made, and to the terminal only where they are errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIBRARIES = {
    "vllm": logging.INFO,
    "transformers": logging.INFO,
    "torch": logging.WARNING,  # parts of torch write to the terminal by handlers of their own, which a lower level would wake
    "peft": logging.INFO,
    "ray": logging.INFO,
    "accelerate": logging.INFO,
}
"""The least level of each library's messages that are kept."""
_open: list[logging.Handler] = []
_levels: dict[logging.Logger | logging.Handler, int] = {}
"""The levels that were changed, as they were."""


@contextmanager
def libraries_to(file: Path) -> Iterator[None]:
    """Let the libraries' messages within go to a file, which is made with the first; their own handlers tell errors alone.

    What they configure when they are imported stands in the way of this: whoever imports one within calls :func:`follow`.
    """
    handler = logging.FileHandler(file, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    _open.append(handler)
    follow()
    try:
        yield
    finally:
        _open.remove(handler)
        for logger in map(logging.getLogger, LIBRARIES):
            logger.removeHandler(handler)
        while not _open and _levels:
            one, level = _levels.popitem()
            one.setLevel(level)
        handler.close()


def follow() -> None:
    """Attach the files that are open to the libraries' loggers as these are now."""
    for name, level in LIBRARIES.items() if _open else ():
        logger = logging.getLogger(name)
        for one in logger.handlers:
            if one not in _open:
                _set(one, max(one.level, logging.ERROR))
        _set(logger, level)
        for one in _open:
            logger.addHandler(one)


def _set(one: logging.Logger | logging.Handler, level: int) -> None:
    if one.level != level:
        _levels[one] = one.level
        one.setLevel(level)
