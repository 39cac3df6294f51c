"""The glossary leads somewhere: every recipe key, part and command that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")

from turnwise.cli.app import app
from turnwise.registry import components
from turnwise.trainers.recipe.docs import recipe_docs

PAGE = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text("utf-8")
ROWS = [line.strip("|").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
TERMS = [row for row in ROWS if row[0].strip() != "the field's term"]
KEYS = set(re.findall(r"^\| `([\w.]+)` \|", recipe_docs(), re.MULTILINE))
FIELD = (
    "GRPO", "PPO", "MDP", "observation space", "action space", "advantage", "value function", "importance ratio",
    "process reward", "outcome reward", "rollout", "trajectory", "episode", "credit assignment", "curriculum", "KL",
    "reference model", "behaviour policy", "off-policy correction", "LoRA", "KV cache", "prefix cache", "checkpoint",
    "reward hacking", "verifier", "behaviour cloning",
)  # fmt: skip


def test_the_fields_terms_are_there() -> None:
    assert len(TERMS) >= 60
    terms = " ".join(row[0] for row in TERMS)
    assert not [term for term in FIELD if term not in terms]


@pytest.mark.parametrize("row", TERMS, ids=lambda row: row[0].strip())
def test_a_term_leads_to_something_that_exists(row: list[str]) -> None:
    assert len(row) == 3
    _, meaning, where = row
    assert meaning.strip().endswith("."), "what it is called here is a sentence"
    named = re.findall(r"`([^`]+)`", where)
    assert named or "](" in where, "a term that leads nowhere"
    assert not [name for name in named if not _exists(name)]


def test_names_that_do_not_exist_are_found() -> None:
    assert not _exists("rollout.gruops")
    assert not _exists("credit: gropo")
    assert not _exists("turnwise trian")


def _exists(name: str) -> bool:
    if name.startswith("turnwise "):
        return name.split()[1] in set(app)
    if ": " in name:
        seam, _, part = name.partition(": ")
        return part in {entry.name for entry in components(seam)}
    return name in KEYS
