"""The code in a page of documentation: files that it names, commands that it shows, recipes that it prints.

A block with a title is a file (```python title="my_env.py"); a block ``console`` holds commands behind ``$ ``, and one without a
language, or lines that are set in by four spaces, hold commands where the first line is one. A block that is not run stands behind a comment
that says why: ``<!-- not run: it needs a GPU -->``; where only some lines are not, the comment names words of theirs:
``<!-- not run (--browse, vllm:): they need a person, and vLLM -->``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_COMMAND = r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:turnwise|python|pip|git|make|ssh|docker|sudo|apt-get|export|\.venv/bin/\S+) \S"
_WHY = r"(<!-- not run[^>]*-->\n+)?"
_SET_IN = re.compile(rf"{_WHY}((?:^    {_COMMAND}.*\n)(?:^    .*\n)*)", re.MULTILINE)
_LISTED = re.compile(r"<!-- not run \(([^)]+)\): ")
_BLOCK = re.compile(
    r"(<!-- not run[^>]*-->\n+)?^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


class Block(NamedTuple):
    """A fenced block: its language, the file that it is (or ""), its text, and why it is not run (or "")."""

    language: str
    title: str
    text: str
    why_not: str

    @property
    def commands(self) -> list[str]:
        """The commands of a block ``console``, without their ``$ `` and comments."""
        lines = self.text.replace("\\\n", " ").splitlines() if self.language == "console" else []
        return [re.split(r"\s{2,}#", line[2:])[0].strip() for line in lines if line.startswith("$ ")]


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    for why, language, title, text in _BLOCK.findall(page.read_text("utf-8")):
        yield Block(language, title, text, why.strip())


def is_commands(block: Block) -> bool:
    """Whether a block holds commands."""
    return block.language in ("", "console") and not block.title and bool(re.match(_COMMAND, block.text))


class Commands(NamedTuple):
    """Commands that stand together, as they are typed, and why some of them are not run (or "")."""

    lines: tuple[str, ...]
    why_not: str

    def runs(self, line: str) -> bool:
        """Whether a line is to be run: nothing is said against it."""
        listed = _LISTED.match(self.why_not)
        return not any(word in line for word in listed[1].split(", ")) if listed else not self.why_not


def commands(page: Path) -> Iterator[Commands]:
    """The commands of a page, in order: of fenced blocks, and of lines that are set in."""
    text = page.read_text("utf-8")
    for block in blocks(page):
        if is_commands(block):
            yield Commands(_typed(block.text, "$ " if block.language == "console" else ""), block.why_not)
    for why, inside in _SET_IN.findall(_BLOCK.sub("", text)):
        yield Commands(_typed(re.sub(r"^    ", "", inside, flags=re.MULTILINE)), why.strip())


def _typed(text: str, behind: str = "") -> tuple[str, ...]:
    """The lines of a block without comments, each whole; of an answer that is shown, none."""
    lines = text.replace("\\\n", " ").splitlines()
    marked = behind or ("$ " if any(line.startswith("$ ") for line in lines) else "")
    return tuple(
        re.split(r"\s{2,}#|\s+# ", line.removeprefix(marked))[0].strip()
        for line in lines
        if line.strip() and line.startswith(marked)
    )


def write_file(block: Block, folder: Path) -> None:
    """Write the file that a block is."""
    place = folder / block.title
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(block.text, "utf-8")
