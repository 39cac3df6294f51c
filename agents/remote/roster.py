"""A file that lists servers, which is read again while a run goes on: engines, or hosts of environments, join it and leave it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from turnwise.errors import TurnwiseError
from turnwise.texts import lines_of

GONE_S = 1.0
"""So long an address is missing before its server leaves: whoever rewrites a file in place empties it for a moment."""
_logger = logging.getLogger(__name__)


class RosterChange(NamedTuple):
    """The addresses that came into a list of servers, and those that went."""

    joined: list[str]
    left: list[str]


class Roster:
    """A file with the addresses of servers, one a line; lines that begin with # are remarks.

    Args:
        path: of the file; empty: there is none.
        parse: an address from a line; raises TurnwiseError where it is none.
    """

    def __init__(self, path: str, parse: Callable[[str], str]) -> None:
        self._path, self._parse = path, parse
        self._listed: dict[str, float] = {}  # when each was last seen, by the monotonic clock
        self._told: set[str] = set()

    def first(self) -> list[str]:
        """Read the addresses that the file lists at the start; none where it cannot be read yet.

        Raises:
            TurnwiseError: a line is no address.
        """
        return self._note([self._parse(line) for line in self._lines() or ()]).joined

    def look(self) -> RosterChange:
        """Read the changes since the last look. A file that cannot be read changes nothing, nor does a line that is no
        address."""
        lines = self._lines()
        if lines is None:
            return RosterChange([], [])
        urls: list[str] = []
        for line in lines:
            try:
                urls.append(self._parse(line))
            except TurnwiseError as error:
                if line not in self._told:
                    self._told.add(line)
                    _logger.warning("%s: %s", self._path, error)
        return self._note(urls)

    def _note(self, urls: list[str]) -> RosterChange:
        now = time.monotonic()
        joined = [url for url in dict.fromkeys(urls) if url not in self._listed]
        self._listed |= dict.fromkeys(urls, now)
        left = [url for url, seen in self._listed.items() if now - seen > GONE_S]
        for url in left:
            del self._listed[url]
        return RosterChange(joined, left)

    def _lines(self) -> list[str] | None:
        """The file's lines; None where it cannot be read, as while it is being replaced, or on a folder that is away."""
        if not self._path:
            return None
        try:
            lines = lines_of(Path(self._path).read_bytes().decode().removeprefix("\ufeff"))
        except (OSError, UnicodeDecodeError):
            return None
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]
