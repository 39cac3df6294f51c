"""A conversation that grows under a template which may rewrite what stands: a turn renders its end alone.

What such a template does to old messages settles: a thought goes when the next question comes, a system message moves on to the last
one. Messages in the middle, whose text settled, are therefore left out of what is rendered, and their text is put back where they stood.
That this is the text of the whole is no theorem about a stranger's program, so it is tried: when a window is chosen, whenever a turn
is of another kind than the one before (a question after results, a thought after none), and at each power of two of the turns. The whole
is rendered so seldom that a conversation costs what its length does. Where a trial fails, all is rendered in every turn.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator, Sequence
from typing import NamedTuple

from turnwise.agents.tokens.encoding import EncodedText
from turnwise.agents.tokens.shared import shared_ending
from turnwise.agents.tokens.template import ChatTemplate, Entry
from turnwise.envs.messages import Message
from turnwise.tools.core import Tool
from turnwise.tools.thoughts import without_thoughts

LEAST, KEPT, MOST = 6, 2, 4
"""Replies from which on there is a window; those that stand at its end when it is chosen; and when a later one is chosen."""

_logger = logging.getLogger(__name__)


class TextWindow(NamedTuple):
    """Messages that need not be rendered: from ``start`` to ``end``, the text before them, and theirs."""

    start: int
    end: int
    before: str
    left_out: str


class TurnKind(NamedTuple):
    """Features by which templates decide about old messages: who spoke, and whether the reply calls or thinks."""

    roles: tuple[str, ...]
    calls: bool
    thinks: bool


class GrowingChat:
    """The text of a conversation between its turns.

    Attributes:
        text: of all messages so far, up to where the next reply begins.
        encoded: the last text of which all tokens were asked for.
    """

    def __init__(self, template: ChatTemplate) -> None:
        self.template = template
        self.text = ""
        self.encoded: EncodedText | None = None
        self._before = ""  # the text when the last reply began
        self._messages: list[Message] = []
        self._entries: list[Entry] = []
        self._tools: Sequence[Tool] = ()
        self._replies: list[int] = []  # where they stand
        self._window: TextWindow | None = None
        self._kind: TurnKind | None = None
        self._trusted = True

    def begin(self, messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        """The text of a conversation, whatever stood before."""
        if self._is(messages, tools):
            return self.text
        self._messages, self._entries, self._replies = [], [], []
        self._window, self._kind, self._before, self._trusted = None, None, "", True
        self._tools = tools
        with self._or_nothing():
            self._take(messages)
            self.text = self._rendered(self._entries)
        return self.text

    def advance(self, messages: Sequence[Message], reply: int, tools: Sequence[Tool]) -> tuple[str, str]:
        """The text when the reply at this place began, and that of all messages, of which those after it are new."""
        if self._is(messages, tools) and self._replies[-1:] == [reply]:
            return self._before, self.text
        if not self._is(messages[:reply], tools):
            self.begin(messages[:reply], tools)
        self._before = self.text
        kind = TurnKind(
            tuple(message.role for message in messages[reply + 1 :]),
            bool(messages[reply].tool_calls),
            without_thoughts(messages[reply].content) != messages[reply].content,
        )
        alike, self._kind = kind == self._kind, kind
        with self._or_nothing():
            self._take(messages[reply:])
            self._grow(alike)
        return self._before, self.text

    def ending(self, stand_in: Entry, reply: int) -> str:
        """The text with another reply at this place, or its end alone."""
        entries = [*self._entries[:reply], stand_in, *self._entries[reply + 1 :]]
        return self._rendered(self._shortened(entries) if self._window is not None else entries)

    @contextlib.contextmanager
    def _or_nothing(self) -> Generator[None]:
        """Keep nothing of a conversation that the template refuses."""
        try:
            yield
        except BaseException:
            self._messages = []
            raise

    def _is(self, messages: Sequence[Message], tools: Sequence[Tool]) -> bool:
        return bool(self._messages) and self._messages == messages and self._tools == tools

    def _take(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if message.role == "assistant":
                self._replies.append(len(self._messages))
            self._messages.append(message)
            self._entries.append(self.template.entry(message))

    def _grow(self, alike: bool) -> None:
        turns = len(self._replies)
        expected = self._expected() if alike else None
        if expected is not None and turns & (turns - 1):
            self.text = expected
            if self._window is not None and self._window.end <= self._replies[-MOST - 1]:
                self._choose_window()
            return
        self.text = self._rendered(self._entries)
        if expected is not None and expected != self.text:
            self._trusted, self._window = False, None
            _logger.warning(
                "The chat template rewrote what had settled after %d turns. Prompts since turn %d can lack that; from here on "
                "this conversation is rendered whole in each turn.",
                turns,
                turns // 2,
            )
        self._choose_window()

    def _expected(self) -> str | None:
        """The text by the window; None where there is none, or it does not hold any more."""
        if self._window is None:
            return None
        short, before = self._rendered(self._shortened(self._entries)), self._window.before
        if not short.startswith(before):
            return None
        return before + self._window.left_out + short[len(before) :]

    def _choose_window(self) -> None:
        self._window = None
        if len(self._replies) < LEAST or not self._trusted:
            return
        start, end = self._replies[0] + 1, self._replies[-KEPT - 1] + 1
        short = self._rendered([*self._entries[:start], *self._entries[end:]])
        at, length = len(short) - shared_ending(self.text, short), len(self.text) - len(short)
        settled = self.text[: at + length]
        if length >= 0 and short[:at] == self.text[:at] and self._before.startswith(settled):
            self._window = TextWindow(start, end, settled[:at], settled[at:])

    def _shortened(self, entries: Sequence[Entry]) -> list[Entry]:
        assert self._window is not None
        return [*entries[: self._window.start], *entries[self._window.end :]]

    def _rendered(self, entries: Sequence[Entry]) -> str:
        return self.template.render_entries(entries, self._tools)
