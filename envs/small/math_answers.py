r"""Answers of MATH as they were published: the last ``\boxed{}``, compared as texts after small differences of writing are taken away."""

from __future__ import annotations

import re

_BOX = re.compile(r"\\f?boxed\s*")
_DROPPED = ("\n", "\\!", "\\left", "\\right", "^{\\circ}", "^\\circ", "\\$", "\\%", "%")
_UNITS = "\\text{ "
_BARE_ROOT = re.compile(r"\\sqrt(?!\{)(.)")
_BARE_FRACTION = re.compile(r"\\frac(?:([^{}\\\s])|(\{[^{}]*\}))(?:([^{}\\\s])|(\{[^{}]*\}))")
_SLASH = re.compile(r"(-?\d+)/(-?\d+)")
_NAMED = re.compile(r"[^=]{1,2}=([^=]*)")
_LONGEST = 1000  # characters; an answer that is longer is compared as it stands


def boxed(text: str) -> str | None:
    r"""Return the content of the last ``\boxed{}``; None where there is none that closes.

    >>> boxed(r"So \boxed{1}, or \boxed{\frac{1}{2}}."), boxed(r"\boxed{1"), boxed("1")
    ('\\frac{1}{2}', None, None)
    """
    last = None
    for last in _BOX.finditer(text):  # noqa: B007 (the last one is wanted)
        pass
    if last is None or text[last.end() : last.end() + 1] != "{":
        return None
    depth = 0
    for at in range(last.end(), len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[last.end() + 1 : at]
    return None


def math_equal(said: str, answer: str) -> bool:
    r"""Say whether two answers are written the same, but for what MATH's own comparison takes away.

    >>> math_equal(r"\dfrac12", "1/2"), math_equal("x = 5", "5"), math_equal("0.5", r"\frac{1}{2}"), math_equal("2", "3")
    (True, True, True, False)
    """
    return math_normalise(said) == math_normalise(answer)


def math_normalise(text: str) -> str:
    r"""An answer without line breaks, spaces, degrees, percent and dollar signs, units on the right, and a name before ``=``.

    >>> math_normalise(r"90^\circ"), math_normalise(r"5\text{ cm}"), math_normalise(r"\sqrt3 + .5"), math_normalise(r"\tfrac{3}4")
    ('90', '5', '\\sqrt{3}+0.5', '\\frac{3}{4}')
    """
    if len(text) > _LONGEST:
        return text
    for part in _DROPPED:
        text = text.replace(part, "")
    text = text.replace("\\\\", "\\").replace("tfrac", "frac").replace("dfrac", "frac")
    text = text.partition(_UNITS)[0]
    text = text.replace(" .", " 0.").replace("{.", "{0.")
    text = f"0{text}" if text.startswith(".") else text
    if named := _NAMED.fullmatch(text.strip().replace(" ", "")):
        text = named[1]
    text = _BARE_ROOT.sub(r"\\sqrt{\1}", text).replace(" ", "")
    text = _BARE_FRACTION.sub(_braced, text)
    text = "\\frac{1}{2}" if text == "0.5" else text
    whole = _SLASH.fullmatch(text)
    return f"\\frac{{{whole[1]}}}{{{whole[2]}}}" if whole else text


def _braced(found: re.Match[str]) -> str:
    parts = (found[1] or found[2][1:-1], found[3] or found[4][1:-1])
    return "\\frac{{{}}}{{{}}}".format(*parts)
