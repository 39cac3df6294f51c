"""One shape for environment families: a job that a standard name covers carries that name, in every family."""

import ast
import re
from pathlib import Path

import pytest

ENVS = Path(__file__).resolve().parents[2] / "envs"
STANDARD = ("env", "tasks", "state", "actions", "render", "solver", "knobs", "vocabulary")
FAMILIES = sorted(str(env.parent.relative_to(ENVS)) for env in ENVS.rglob("env.py"))


def words(family):
    """The words of a family's package docstring."""
    text = ast.get_docstring(ast.parse((ENVS / family / "__init__.py").read_text("utf-8"))) or ""
    return set(re.findall(r"\w+", text.lower()))


def modules(family):
    folder = ENVS / family
    inside = [path.parent.name for path in folder.glob("*/__init__.py")]
    return {*inside, *(path.stem for path in folder.glob("*.py"))} - {"__init__"}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_package_docstring_names_every_module(family):
    assert not modules(family) - words(family)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_standard_module_that_is_missing_is_spoken_of(family):
    """In a line of the package docstring: why there is none, or where that job is done."""
    assert not set(STANDARD) - modules(family) - words(family)
