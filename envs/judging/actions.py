"""The answer in a message."""

from __future__ import annotations

import re

MARK = "answer:"
TAIL = 80
"""Characters at the end of a message in which an answer must begin, so that only the last one counts (RM-R1)."""
_LONGEST = 4000
_VERDICT = re.compile(r"\b(?:yes|no)\b", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def said(message: str) -> str:
    """The answer of a message: what follows the last ``answer:``, else its last line.

    >>> said("It found the mug.\\nAnswer: yes."), said("yes"), said("answer: no, or rather\\nanswer: yes"), said("")
    ('yes', 'yes', 'yes', '')
    """
    text = message[-_LONGEST:].strip()
    at = text.lower().rfind(MARK)
    found = text[at + len(MARK) :] if at >= 0 else text.rpartition("\n")[2]
    return found.strip().strip("*`").strip().removesuffix(".").strip()


def is_marked(message: str) -> bool:
    """Say whether a message ends with one marked answer.

    >>> is_marked("Fine.\\nanswer: yes"), is_marked("yes"), is_marked("answer: yes\\n" + "so it is " * 20)
    (True, False, False)
    """
    return MARK in message.rstrip()[-TAIL:].lower()


def choice(answer: str, offers: tuple[str, ...], *, exactly: bool = False) -> str:
    """Return which of these words an answer has; empty where it has none of them, or more than one.

    >>> choice("Yes", ("yes", "no")), choice("yes no", ("yes", "no")), choice("a draw", ("A", "B"), exactly=True)
    ('yes', '', '')
    """
    said = re.findall(r"\w+", answer[:_LONGEST])
    found = {
        one for word in said for one in offers if word == one or (not exactly and word.lower() == one.lower())
    }
    return found.pop() if len(found) == 1 else ""


def before_last_verdict(message: str, verdicts: int) -> str | None:
    """A message up to the last of so many verdicts, yes or no; None where its answer has another number of them, or other words.

    >>> before_last_verdict("It looks first. answer: yes no , no .", 3), before_last_verdict("answer: yes no", 3)
    ('It looks first. answer: yes no ,', None)
    """
    each = verdicts_of(said(message))
    if each is None or len(each) != verdicts:
        return None
    *_, last = _VERDICT.finditer(message)
    return message[: last.start()].rstrip()


def verdicts_of(answer: str) -> list[bool] | None:
    """The verdicts of an answer, True for yes; None where it has another word.

    >>> verdicts_of("Yes, no"), verdicts_of("yes and no")
    ([True, False], None)
    """
    words = re.findall(r"\w+", answer[:_LONGEST].lower())
    return [word == "yes" for word in words] if {"yes", "no"}.issuperset(words) else None


def numbers(answer: str) -> list[float]:
    """The numbers of an answer.

    >>> numbers("3, -1 and 0.5"), numbers("none")
    ([3.0, -1.0, 0.5], [])
    """
    return [float(one) for one in _NUMBER.findall(answer.replace("−", "-")[:_LONGEST])]
