"""Thoughts in a model's text: where they stand, and that a call inside one is only weighed, not made.

A thought stands between tags. It begins at its opening tag, or at the beginning of the text where only the closing tag is
there: then the prompt ended in the opening one, or the server kept it. Tags inside a call's arguments are data.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolSpec

Read: TypeAlias = Callable[[str, Sequence[ToolSpec]], ParsedText]
"""Reads calls out of a text of which nothing is a thought."""

_NAMES = (
    "think", "thinking", "seed:think", "thought", "reasoning", "planning", "explore", "reflection", "monitor",
)  # fmt: skip
_CLOSED_BY = {f"<{name}>": f"</{name}>" for name in _NAMES} | {
    "[think]": "[/think]",
    "<|start_thinking|>": "<|end_thinking|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|channel|>analysis<|message|>": "<|end|>",
    "<|channel>thought\n": "<channel|>",
    "◁think▷": "◁/think▷",
}
"""Tag that closes a thought, by the tag that opens it, in small letters."""
_UNMISTAKABLE = frozenset(
    ("</think>", "</thinking>", "</seed:think>", "[/think]", "<|end_thinking|>", "◁/think▷")
)
"""Closing tags that end a thought although none was opened in the text."""
_TAG = re.compile("|".join(map(re.escape, (*_CLOSED_BY, *_CLOSED_BY.values()))), re.IGNORECASE)
_LEFT_OPEN = re.compile(rf"(?:{'|'.join(map(re.escape, _CLOSED_BY))})\s*+\Z", re.IGNORECASE)
_LONGEST = 64  # characters of an opening tag and the white space after it
_TRIED = 16  # tags that turn out to be data in a call, in one text
_MARKS = tuple(map(chr, range(0x10FF00, 0x10FF40)))  # of no script: one of them stands for a thought


class _Span(NamedTuple):
    begin: int
    end: int


def left_open(prompt: str) -> str:
    """The opening tag in which a prompt ends, with the white space after it; "" if it ends in none.

    >>> left_open("<|im_start|>assistant\\n<think>\\n"), left_open("<think>\\n\\n</think>\\n\\n")
    ('<think>\\n', '')
    """
    found = _LEFT_OPEN.search(prompt[-_LONGEST:])
    return found[0] if found else ""


def ends_a_tag(end: str) -> bool:
    """Return whether an opening tag that begins before this end of a prompt may end in it.

    >>> ends_a_tag("ink>\\n"), ends_a_tag(""), ends_a_tag("<|im_start|>assistant\\n")
    (True, True, False)
    """
    stripped = end.rstrip().lower()
    return any(tag.rstrip().endswith(stripped) for tag in _CLOSED_BY if len(tag) > len(stripped))


def closing(opened: str) -> str:
    """The tag that closes what this opening tag opens.

    >>> closing("<think>\\n")
    '</think>'
    """
    tag = _TAG.match(opened)
    assert tag is not None, opened
    closes = _CLOSED_BY[tag[0].lower()]
    return closes.upper() if tag[0].isupper() else closes


def without_thoughts(text: str) -> str:
    """Return what a text says beside its thoughts.

    >>> without_thoughts("<think>click[buy]?</think> click[red]"), without_thoughts("click[buy]?\\n</think>\\nclick[red]")
    (' click[red]', '\\nclick[red]')
    """
    thoughts = _places(text)
    return "".join(text[one.begin : one.end] for one in _between(thoughts, len(text))) if thoughts else text


def leading_thoughts(text: str) -> int:
    """Return how many characters the thoughts have with which a text begins; all of it where the last one never ends.

    >>> leading_thoughts("<think>up?</think>go up"), leading_thoughts("go <think>up?</think>"), leading_thoughts("<think>up")
    (18, 0, 9)
    """
    places = _places(text)
    first = _leading(text, places)
    return places[first - 1].end if first else 0


def begins_with_a_thought(text: str) -> bool:
    """Return whether a text, which may hold tags as data, is a thought at first: opened there, or closed by a tag alone on
    its line.

    >>> begins_with_a_thought("<think>Hm"), begins_with_a_thought("Hm\\n</think>\\nx = 1"), begins_with_a_thought("x = '</think>'")
    (True, True, False)
    """
    opens = _TAG.match(text.lstrip()[:_LONGEST])
    return bool(opens and opens[0].lower() in _CLOSED_BY) or any(
        line.strip().lower() in _UNMISTAKABLE for line in text.split("\n")
    )


def read_beside_thoughts(
    read: Read, text: str, specs: Sequence[ToolSpec] = (), opened: str = ""
) -> ParsedText:
    """The calls of a text that stand in no thought. Thoughts stay in the content, as they are.

    ``opened`` is the opening tag in which the prompt ended: it is put before the text, and into the content.

    >>> from turnwise.tools.dialects.hermes import HERMES
    >>> HERMES.parse('<think>I could <tool_call>{"name": "buy"}</tool_call>.</think> No.').calls
    ()
    """
    text = opened + text
    thoughts = _places(text, lambda part: read(part, specs).error is not None, sure=bool(opened))
    if not thoughts:
        return read(text, specs)
    first, last = _leading(text, thoughts), _trailing(text, thoughts)
    begin = _after_blanks(text, thoughts[first - 1].end) if first else 0
    end = len(text[: thoughts[last].begin].rstrip()) if last < len(thoughts) else len(text)
    inner = thoughts[first:last]
    mark = next((one for one in _MARKS if one not in text), "")
    parts = [text[max(one.begin, begin) : min(one.end, end)] for one in _between(inner, len(text))]
    rest = mark.join(parts) if begin < end else ""
    parsed = read(rest, specs)
    if not parsed.calls and parsed.content == rest:
        return ParsedText(text, (), parsed.error)
    said = parsed.content.split(mark) if mark else [parsed.content]
    hidden = [text[one.begin : one.end] for one in inner]
    whole = "".join(itertools.chain(*itertools.zip_longest(said, hidden[: len(said) - 1], fillvalue="")))
    return parsed._replace(content=f"{text[:begin]}{whole}{text[end:]}".strip())


def _after_blanks(text: str, place: int) -> int:
    return len(text) - len(text[place:].lstrip())


def _places(
    text: str, in_call: Callable[[str], bool] = lambda part: False, *, sure: bool = False
) -> list[_Span]:
    """Find the thoughts of a text; the last may be cut.

    ``in_call`` tells whether a text leaves a call open; ``sure`` that the text begins with a thought, whatever that says.
    """
    found: list[_Span] = []
    begin, closes, tried = 0, "", 0
    for tag in _TAG.finditer(text):
        name = tag[0].lower()
        done = found[-1].end if found else 0
        if closes:
            if name == closes:
                found.append(_Span(begin, tag.end()))
                closes = ""
        elif name not in _CLOSED_BY and name not in _UNMISTAKABLE:
            continue
        elif not (sure and not tag.start()) and tried < _TRIED and in_call(text[done : _seen(tag)]):
            tried += 1
            if name not in _CLOSED_BY and in_call(text[done:]):
                found.append(_Span(done, tag.end()))  # what looked like a call never becomes one
        elif name in _CLOSED_BY:
            begin, closes = tag.start(), _CLOSED_BY[name]
        else:
            found.append(_Span(done, tag.end()))
    return [*found, _Span(begin, len(text))] if closes else found


def _seen(tag: re.Match[str]) -> int:
    """Up to where a text is looked at to see if a tag belongs to a call: an opening tag may itself be a call's."""
    return tag.end() if tag[0].lower() in _CLOSED_BY else tag.start()


def _between(places: Sequence[_Span], length: int) -> list[_Span]:
    """Return the spans before, between and after these places."""
    begins, ends = [0, *(one.end for one in places)], [*(one.begin for one in places), length]
    return [_Span(begin, end) for begin, end in zip(begins, ends, strict=True)]


def _leading(text: str, places: Sequence[_Span]) -> int:
    """Count the thoughts that the text begins with."""
    gaps = _between(places, len(text))
    return next((n for n, gap in enumerate(gaps) if text[gap.begin : gap.end].strip()), len(places))


def _trailing(text: str, places: Sequence[_Span]) -> int:
    """The number of the first of the thoughts with which the text ends."""
    gaps = _between(places, len(text))
    left = next((n for n, gap in enumerate(reversed(gaps)) if text[gap.begin : gap.end].strip()), len(places))
    return max(len(places) - left, _leading(text, places))
