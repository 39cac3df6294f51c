"""Messages of libraries go to a file beside what is made, and to the terminal only where they are errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

LIBRARIES = ("vllm", "transformers", "torch", "peft", "ray", "accelerate")
_open: list[logging.Handler] = []


class _Before(NamedTuple):
    """A logger as it was, with the levels of its handlers."""

    logger: logging.Logger
    level: int
    handlers: list[tuple[logging.Handler, int]]


@contextmanager
def libraries_to(file: Path) -> Iterator[None]:
    """Let the libraries' messages within go to a file, which is made with the first; their own handlers tell errors alone.

    What they configure when they are imported stands in the way of this: whoever imports one within calls :func:`follow`.
    """
    handler = logging.FileHandler(file, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    before = [_kept(logging.getLogger(name)) for name in LIBRARIES]
    _open.append(handler)
    follow()
    try:
        yield
    finally:
        _open.remove(handler)
        for one in before:
            one.logger.removeHandler(handler)
            one.logger.setLevel(one.level)
            for known, level in one.handlers:
                known.setLevel(level)
        handler.close()


def follow() -> None:
    """Attach the files that are open to the libraries' loggers as these are now."""
    for logger in map(logging.getLogger, LIBRARIES if _open else ()):
        for one in logger.handlers:
            if one not in _open:
                one.setLevel(max(one.level, logging.ERROR))
        logger.setLevel(logging.INFO)
        for one in _open:
            logger.addHandler(one)


def _kept(logger: logging.Logger) -> _Before:
    return _Before(logger, logger.level, [(one, one.level) for one in logger.handlers])
