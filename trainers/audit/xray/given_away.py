"""Answers that a prompt gives away otherwise than behind a marker: in code, in a comment, in an earlier turn, by a mark on an option."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Iterator

_BASE64 = re.compile(r"(?<![\w+/=])[A-Za-z0-9+/_-]{6,4000}={0,2}(?![\w+/=])")
_HEX = re.compile(r"(?<!\w)(?:[0-9a-fA-F]{2}){4,2000}(?!\w)")
_COMMENT = re.compile(r"(?:<!--|--|#|//|/\*|\{#|%)[ \t]*(?P<told>[^\n]{1,2000})")
_END = re.compile(r"\s*(?:-->|\*/|#\})\s*$")
_TURN = re.compile(
    r"^[ \t>*]*(?P<who>assistant|ai|bot|chatbot|model|gpt|answer|a|response|output|reply)[ \t*]*:[ \t*]*(?P<told>[^\n]{1,300})$",
    re.IGNORECASE | re.MULTILINE,
)
_OPTION = re.compile(r"^[ \t]*(?P<lead>[*>✓✔✅☑_ \t]{0,6}|\[x\][ \t]*)\(?(?P<letter>[A-Ha-h1-8])[).:][ \t*]*(?P<text>[^\n]{1,300})$", re.MULTILINE)  # fmt: skip
_MARKED = re.compile(r"(?:[*✓✔✅☑]+|<-+|←|\((?:correct|right|true|answer|x)\)|\[x\])[ \t]*$", re.IGNORECASE)
_SAME = 0.75


def decoded(prompt: str) -> Iterator[tuple[str, str]]:
    """Texts that a prompt holds in code, each with the code's name: rot 13, backwards, base 64, hexadecimal digits."""
    prompt = prompt[:100_000]
    yield "rot 13", codecs.encode(prompt, "rot13")
    yield "backwards", prompt[::-1]
    for match in _BASE64.finditer(prompt):
        text = match.group().rstrip("=").translate(str.maketrans("-_", "+/"))
        if told := _text(base64.b64decode, text + "=" * (-len(text) % 4)):
            yield "base 64", told
    for match in _HEX.finditer(prompt):
        if told := _text(bytes.fromhex, match.group()):
            yield "hexadecimal digits", told


def _text(decode: Callable[[str], bytes], coded: str) -> str:
    try:
        told = decode(coded).decode()
    except (binascii.Error, ValueError):
        return ""
    return told if told.isprintable() else ""


def codes_of(core: str) -> dict[str, str]:
    """An answer in code, by the code's name."""
    return {
        "base 64": base64.b64encode(core.encode()).decode().rstrip("="),
        "rot 13": codecs.encode(core, "rot13"),
        "backwards": core[::-1],
        "hexadecimal digits": core.encode().hex(),
    }


def commented(prompt: str) -> Iterator[str]:
    """The contents of a prompt's comments, one a line."""
    for match in _COMMENT.finditer(prompt[:200_000]):
        yield _END.sub("", match.group("told")).strip()


def answered_before(prompt: str, core: str) -> str:
    """The turn of a written conversation that answers the very question which the prompt then asks again; "" where there is none."""
    for match in _TURN.finditer(prompt[:200_000]):
        told = match.group("told").strip().strip("*").rstrip(".").casefold()
        if told != core.strip().rstrip(".").casefold():
            continue
        before, after = prompt[: match.start()], prompt[match.end() :]
        if before.strip() and _asks_no_more(before, after):
            return match.group().strip()
    return ""


def _asks_no_more(before: str, after: str) -> bool:
    """Say if what comes after an answer is the question before it once more, or no question of its own."""
    known, new = ({*re.findall(r"\w+", one.casefold())} for one in (before, after))
    numbers = {one for one in new if one.isdigit()}
    if not numbers <= known:
        return False
    return len(new & known) >= _SAME * len(new) or (len(new) <= 10 and "?" not in after)


def marked_option(prompt: str, core: str) -> str:
    """The option that alone among a question's options bears a mark, and is the answer; "" where there is none."""
    options = [*_OPTION.finditer(prompt[:50_000])]
    marked = [one for one in options if one.group("lead").strip() or _MARKED.search(one.group("text"))]
    if len(options) < 3 or len(marked) != 1:
        return ""
    text = _MARKED.sub("", marked[0].group("text")).strip(" \t*")
    right = core.strip().strip("().").casefold()
    return (
        marked[0].group().strip() if right in (marked[0].group("letter").casefold(), text.casefold()) else ""
    )
