"""The pages on threats and on the audit name tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", ["threat-model", "lab-notes/audit-of-1c6d7ce"])
def test_every_test_that_the_page_names_exists(page: str):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    named = set(re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", text))
    assert len(named) > 15
    for path, test in named:
        assert (ROOT / path).exists(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), test
