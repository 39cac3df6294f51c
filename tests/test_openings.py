"""Docstrings begin with a verb or a noun, and not with a question word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("tasks", "tools", "envs", "agents", "trainers", "src/turnwise")
MOST = 0.5
"""Per cent of a package's public docstrings: some tools of environments are told to agents in such words."""

QUESTION_WORDS = frozenset(["What", "Who", "Whether", "How", "Which", "Whose", "Where"])
_OF_A_FILE = re.compile(r'\A(?:#[^\n]*\n)*r?"""\s*(\S*)')
_OF_A_DEFINITION = re.compile(
    r"^ *(?:async )?(?:def|class) [a-zA-Z]\w*[^\n]*"
    r"(?:\n(?! *(?:async )?(?:def|class) )[^\n]*)*?"  # a signature of several lines
    r'(?<=:)(?: *#[^\n]*)?\n\s*r?"""\s*(\S*)',
    re.MULTILINE,
)


def openings(source: str) -> list[str]:
    """The first word of each public docstring; a pattern finds them ten times as fast as a parser."""
    return [found.strip(".,:;") for found in (*_OF_A_FILE.findall(source), *_OF_A_DEFINITION.findall(source))]


@pytest.mark.parametrize("package", PACKAGES)
def test_few_docstrings_begin_with_a_question_word(package: str) -> None:
    found = {path: openings(path.read_text("utf-8")) for path in sorted((ROOT / package).rglob("*.py"))}
    words = [word for some in found.values() for word in some]
    assert len(words) > 5
    asking = [
        str(path.relative_to(ROOT)) for path, some in found.items() for word in some if word in QUESTION_WORDS
    ]
    assert len(asking) <= MOST * len(words) / 100, (
        f'begin with a verb or a noun ("Return the …"): {asking[:20]}'
    )


def test_openings_are_found() -> None:
    source = '''"""What a file is."""
class One:
    """Whether it is."""

    def two(
        self, other: int = 1,
    ) -> int:  # fmt: skip
        r"""Return it."""

    def _hidden(self):
        """Who cares."""

    def bare(self):
        return {1:
            2}

async def three():
    """``x`` or how."""
'''
    assert openings(source) == ["What", "Whether", "Return", "``x``"]
