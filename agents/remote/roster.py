"""The file that lists engines, which is read again while a run goes on: engines join it, and leave it."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import NamedTuple

from turnwise.agents.remote.client import parse_url
from turnwise.errors import EngineError

GONE_S = 1.0
"""So long an address is missing before its engine leaves: whoever rewrites a file in place empties it for a moment."""
_logger = logging.getLogger(__name__)


class RosterChange(NamedTuple):
    """The URLs that came into a list of engines, and those that went."""

    joined: list[str]
    left: list[str]


class Roster:
    """A file with the URLs of engines, one a line; lines that begin with # are remarks.

    Args:
        path: of the file; empty: there is none.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._listed: dict[str, float] = {}  # when each was last seen, by the monotonic clock
        self._told: set[str] = set()

    def first(self) -> list[str]:
        """What the file lists at the start; nothing where it cannot be read yet.

        Raises:
            EngineError: a line is no engine's URL.
        """
        return self._note([parse_url(line) for line in self._lines() or ()]).joined

    def look(self) -> RosterChange:
        """What has changed since the last look. A file that cannot be read changes nothing, nor does a line that is no URL."""
        lines = self._lines()
        if lines is None:
            return RosterChange([], [])
        urls: list[str] = []
        for line in lines:
            try:
                urls.append(parse_url(line))
            except EngineError as error:
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
            lines = Path(self._path).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return None
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]
