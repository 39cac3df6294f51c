"""The code in a page of documentation: files that it names, commands that it shows, recipes that it prints.

A block with a title is a file (```python title="my_env.py"); a block ``console`` holds commands behind ``$ ``. A block that is
not run stands behind a comment that says why: ``<!-- not run: it needs a GPU -->``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_BLOCK = re.compile(
    r"(<!-- not run: [^>]+-->\n+)?^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE
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


def write_file(block: Block, folder: Path) -> None:
    """Write the file that a block is."""
    place = folder / block.title
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(block.text, "utf-8")
