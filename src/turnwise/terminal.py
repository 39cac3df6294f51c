"""Makes foreign text harmless on a terminal: it is shown, and no control character takes effect.

Models, worlds, servers and task files are not trusted with the terminal: an escape sequence in an observation
could write to the clipboard, rename the window or hide what came before. So the process's own ``sys.stdout`` and
``sys.stderr`` are replaced by a :class:`Guarded` stream, through which prints, warnings, log lines and tracebacks
pass without anyone having to remember it. Colours are written past it by :class:`turnwise.console.SafeConsole`.
"""

from __future__ import annotations

import io
import json
import re
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from turnwise.secrets import redact

_INVISIBLE = (  # what is drawn as nothing, or turns what stands around it: format characters, fillers, tags
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{_INVISIBLE}]")


def visible(text: str) -> str:
    """Text in which nothing but line ends and tabs moves the cursor, and nothing is invisible.

    >>> print(visible("red \\x1b[31m, hidden \\u200b, right to left \\u202e, half a pair \\ud800"))
    red ␛[31m, hidden \\u200b, right to left \\u202e, half a pair \\ud800
    """
    return _UNSAFE.sub(_shown, text.replace("\r\n", "\n"))


def json_line(value: Any) -> str:
    """One line of JSON for a program or a terminal: what :func:`visible` would show stands there escaped.

    >>> json_line({"said": "größer \\x1b[31m \\x9b \\U000e0041"})
    '{"said": "größer \\\\u001b[31m \\\\u009b \\\\udb40\\\\udc41"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)  # C0 is escaped by JSON itself
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text)


class Guarded:
    """A text stream on which foreign text is shown, never obeyed, and keys are hidden. All else is the stream's own.

    A carriage return stays where it can only overwrite a line that began with one, as progress bars do.

    Attributes:
        raw: the stream itself, for what Turnwise writes with colours.
        above: while a bar is shown, what prints a whole line above it.
    """

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw
        self.above: Callable[[str], None] | None = None
        self._begun = ""  # a line that waits for its end, to be printed above a bar
        self._fresh = True  # the line is empty, or is a bar's
        self._lock = threading.RLock()

    def write(self, text: str) -> int:
        with self._lock:
            bar = self._fresh and text.startswith("\r") and not text.startswith("\r\n")
            shown = visible(redact(text[1:] if bar else text))
            head, newline, tail = shown.rpartition("\n")
            if newline or shown:
                self._fresh = not tail or (bar and not newline)
            if self.above is None:
                self.raw.write(f"\r{shown}" if bar else shown)
            else:
                self._print_above(self.above, head if newline else None, tail, bar)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def settle(self) -> None:
        """Write what waits for the end of its line; the bar is gone."""
        with self._lock:
            self.above, begun, self._begun = None, self._begun, ""
            if begun:
                self.raw.write(begun)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)

    def _print_above(self, above: Callable[[str], None], whole: str | None, rest: str, bar: bool) -> None:
        begun = "" if bar else self._begun
        if whole is not None:
            self._begun = ""
            above(begun + whole)
            begun = ""
        self._begun = begun + rest


def guard() -> Callable[[], None]:
    """Guard standard output and standard error, where they are not; what undoes it is returned."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # no text is worth a UnicodeEncodeError
    sys.stdout, sys.stderr = map(_guarded, before)

    def undo() -> None:
        sys.stdout, sys.stderr = before

    return undo


def hand_over(text: str) -> None:
    """Say on standard error what holds a key for the person who reads it: the one thing in which none is hidden."""
    stream: Any = sys.stderr
    raw = stream.raw if isinstance(stream, Guarded) else stream
    print(visible(text), file=raw, flush=True)


def _guarded(stream: Any) -> Any:
    return stream if stream is None or isinstance(stream, Guarded) else Guarded(stream)


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)  # ␛ for ESC, and so on
    return "␡" if code == 0x7F else ascii(match[0])[1:-1]
