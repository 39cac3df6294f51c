"""The text after a reply, put together without rendering: what an append-only template writes around messages is a frame.

A frame holds for turns of one form: who speaks after the reply, with which white space around, and whether the reply says or calls
something. That a template writes what messages say as it stands, and decides nothing by it, is no theorem about a stranger's program.
So a frame is tried when it is made, with other words and with these, and again at each power of two of its uses; a message that holds
a string which the template's source looks for is rendered whole. Where a later trial fails, all is rendered from there on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from turnwise.agents.tokens.encoding import plain
from turnwise.agents.tokens.template import ChatTemplate
from turnwise.agents.tokens.template_options import words_looked_for
from turnwise.envs.messages import Message, Messages

Whole: TypeAlias = Callable[[Message, Sequence[Message]], str | None]
"""Renders the text after a reply, up to where the next one begins; None where what stands is rewritten."""

MOST_FRAMES = 256
_TAGS = ("<think>", "</think>")  # that templates look for in replies: with and without are two forms
_ODD = (
    "aA \"q\" 'r' \\n \\ & < > <b> {x: [1, 2]} {{ y }} {% z %} | é 中 🙂\n\ntwo  spaces\t# - * `c` $1.50, end"
)
_logger = logging.getLogger(__name__)


class TurnForm(NamedTuple):
    """A form of turn: features of the reply, and of each message after it."""

    calls: tuple[str, ...]
    says: bool
    tags: tuple[bool, ...]
    new: tuple[
        tuple[str, str, str, str], ...
    ]  # role, id of the call that it answers, white space before and after


class TurnFrame:
    """What a template writes around the messages after a reply."""

    __slots__ = ("pieces", "uses")

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces, self.uses = pieces, 0

    def around(self, words: Sequence[str]) -> str:
        """The text with these words in it."""
        parts = [self.pieces[0]]
        for word, after in zip(words, self.pieces[1:], strict=True):
            parts += (word, after)
        return "".join(parts)


class TailFrames:
    """Texts after replies under an append-only template.

    Args:
        template: whose words are guarded, and whose source is looked into.
        source: of the template.
        whole: renders such a text.
    """

    def __init__(self, template: ChatTemplate, source: str, whole: Whole) -> None:
        self._template, self._whole = template, whole
        self._frames: dict[TurnForm, TurnFrame | None] = {}  # None: of this form each turn is rendered
        looked = words_looked_for(source)
        self._inside = looked.inside
        self._inside_reply = tuple(word for word in looked.inside if word not in _TAGS)
        self._equal = frozenset(looked.equal)
        self._trusted = looked.known
        self._names_count = False  # what the template writes after a call depends on which call it is

    def tail(self, reply: Message, new: Sequence[Message]) -> str | None:
        """The text after a reply; None where what stands is rewritten."""
        if not self._trusted or (form := self._form(reply, new)) is None:
            return self._whole(reply, new)
        words = [self._template.guarded(message.content.strip()) for message in new]
        if form not in self._frames:
            return self._tried(form, reply, new, words)
        if (frame := self._frames[form]) is None:
            return self._whole(reply, new)
        text = frame.around(words)
        frame.uses += 1
        if frame.uses & (frame.uses - 1) == 0 and not _same(text, whole := self._whole(reply, new)):
            self._trusted = False
            _logger.warning(
                "The chat template writes a message in another way than it wrote %d of the same form. Prompts can lack that; from "
                "here on each turn is rendered.",
                frame.uses,
            )
            return whole
        return text

    def _form(self, reply: Message, new: Sequence[Message]) -> TurnForm | None:
        """The form of a turn; None where it must be rendered."""
        said = reply.content
        if reply.images or _holds_any(said, self._inside_reply):
            return None
        told: list[tuple[str, str, str, str]] = []
        for message in new:
            content = message.content
            core = content.strip()
            if not core or message.images or message.tool_calls or message.role == "assistant":
                return None
            if core in self._equal or _holds_any(core, self._inside):
                return None
            begin = content.index(core)
            told.append((message.role, message.tool_call_id, content[:begin], content[begin + len(core) :]))
        calls: tuple[str, ...] = ()
        if self._template.writes_call(reply):
            last = reply.tool_calls[-1]
            named = (last.name, last.id) if self._names_count else ()
            calls = (str(len(reply.tool_calls)), *named)
        tags = tuple(tag in said for tag in _TAGS)
        return TurnForm(calls, bool(said.strip()), tags, tuple(told))

    def _tried(
        self, form: TurnForm, reply: Message, new: Sequence[Message], words: Sequence[str]
    ) -> str | None:
        """Render the text, and keep its frame where that gives the same for these and for other words."""
        if (text := self._whole(reply, new)) is None:
            return None
        if form.calls and not self._names_count:
            other = replace(reply.tool_calls[-1], name="turnwise_other", id="call_77")
            if self._whole(replace(reply, tool_calls=(*reply.tool_calls[:-1], other)), new) != text:
                self._names_count = True
                return text
        frame = self._found(form, reply, new)
        if frame is not None and not _same(frame.around(words), text):
            frame = None
        if len(self._frames) >= MOST_FRAMES:
            self._frames.clear()
        self._frames[form] = frame
        return text

    def _found(self, form: TurnForm, reply: Message, new: Sequence[Message]) -> TurnFrame | None:
        """The frame of a form; None where a message is changed, left out, repeated or moved."""
        marks = [f"turnwiseframe{number}turnwise" for number in range(len(new))]
        rest = self._whole(reply, _saying(new, form, marks)) or ""
        pieces = list[str]()
        for mark in marks:
            if rest.count(mark) != 1:
                return None
            before, _, rest = rest.partition(mark)
            pieces.append(before)
        frame = TurnFrame((*pieces, rest))
        odd = [f"{_ODD} {number}" for number in range(len(new))]
        written = self._whole(reply, _saying(new, form, odd))
        return frame if _same(frame.around(list(map(self._template.guarded, odd))), written) else None


def _saying(new: Sequence[Message], form: TurnForm, words: Sequence[str]) -> Messages:
    """The messages with other words between the same white space."""
    return Messages(
        replace(message, content=f"{before}{word}{after}")
        for message, (_, _, before, after), word in zip(new, form.new, words, strict=True)
    )


def _same(one: str, other: str | None) -> bool:
    """Say whether two guarded texts are tokenised alike."""
    return other is not None and (one == other or plain(one) == plain(other))


def _holds_any(text: str, words: Sequence[str]) -> bool:
    """Say whether one of some words stands in a text; found one by one, because a pattern of them all takes five times as long."""
    return any(word in text for word in words)
