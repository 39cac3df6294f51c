"""News of a changelog about a repair, in the words of who ran into it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from turnwise.envs.swe.sdists import Unpacked

_COMMON = frozenset(("test", "tests", "error", "assert", "with"))

_LONGEST = 300  # characters of an entry that is about one thing


def told_by(older: Unpacked, newer: Unpacked, where: str, words: Sequence[str]) -> str:
    """Return the entry that the newer changelog adds about these words; empty where nothing fits.

    It comes without marks and numbers.

    Two words must fit; the name of the function counts as one more.
    """
    seen = {word for text in words for word in _words(text)}
    best: tuple[int, str] = (1, "")
    for path, data in newer.files.items():
        if "/" in path or not re.match(r"(change|history|news)", path, re.IGNORECASE):
            continue
        known = set(older.files.get(path, b"").decode("utf-8", "replace").splitlines())
        for line in _entries(data.decode("utf-8", "replace"), known):
            shared = len(_words(line) & seen) + (len(where) > 3 and where in line)
            if shared > best[0] and len(line) <= _LONGEST:
                best = shared, line
    text = re.sub(
        r":\w+:`~?\.?([^`<]*[A-Za-z][^`<]*?)(\s*<[^>`]*>)?`", r"`\1`", best[1]
    )  # a role and its name
    text = re.sub(r"\[?\(?#\d+\)?\]?(\([^)]*\))?|:\w+:`[^`]*`", "", text)
    text = re.sub(r"\(\s*[,;\s]*\)|(?<=\s)[,;](?=\s|$)", "", " ".join(text.split()))
    return re.sub(r"^(fix(e[sd])?|repair(s|ed)?)\b:?\s*", "", text, flags=re.IGNORECASE).strip(" .:;,(")


def _entries(text: str, known: Collection[str]) -> Iterator[str]:
    """Entries of a list that are new, with the lines that go on with them, without their marks."""
    entry: list[str] = []
    for line in [*text.splitlines(), ""]:
        begins = line.lstrip().startswith(("- ", "* ", "+ "))
        if (begins or not line.strip()) and entry:
            yield " ".join(entry)
            entry = []
        if begins and line not in known:
            entry = [line.lstrip("-*+ \t")]
        elif entry:
            entry.append(line.strip())


def _words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Za-z]{4,}", text)} - _COMMON
