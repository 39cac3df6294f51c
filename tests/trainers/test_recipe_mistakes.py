"""Mistakes in recipes: each is named where it stands, with its remedy, and in no library's words."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))
try:
    from recipe_mistakes import MISTAKES, Mistake, hear, page
finally:
    sys.path.pop(0)

FOREIGN = re.compile(
    r"pydantic|Input should|valid dictionary|validation error|instance of|Unexpected|report it", re.IGNORECASE
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.text[-60:].strip())
def test_each_mistake_gets_its_message(mistake: Mistake, tmp_path: Path) -> None:
    said = hear(mistake, tmp_path)
    assert all(part in said for part in mistake.cause), said
    remedies = said.partition("→")[2]
    assert all(part in remedies for part in mistake.remedy), said
    assert not FOREIGN.search(said), said
    assert max(map(len, said.splitlines())) < 400


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    kept = Path(__file__).parents[2] / "docs" / "recipe-mistakes.md"
    assert kept.read_text("utf-8") == page(), "run `python tests/trainers/recipe_mistakes.py`"
