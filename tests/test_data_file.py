"""Tables that ship as YAML: read once, checked against their type, refused with the place of the fault."""

from __future__ import annotations

import subprocess
import sys
from typing import NamedTuple

import pytest

from turnwise import data_file as module
from turnwise.data_file import data_file, text_file
from turnwise.envs.wordings import Wordings
from turnwise.errors import FileError


class Thing(NamedTuple):
    price: float
    said: Wordings
    tags: tuple[str, ...] = ()


@pytest.fixture
def table(monkeypatch):
    texts = {}
    module._checked.cache_clear()
    monkeypatch.setattr(module, "_text", lambda package, name: texts[name])

    def read(text, kind=dict[str, Thing]):
        name = f"table {len(texts)}"
        texts[f"{name}.yaml"] = text
        return data_file("a.package", name, kind)

    return read


def test_a_table_becomes_named_tuples_and_wordings(table):
    found = table(
        "mug: {price: 3, said: [a, b, c, d], tags: [blue]}\nrug: {price: 4.5, said: {train: [a], dev: [b], test: [c, d]}}"
    )
    assert found["mug"] == Thing(3.0, Wordings(("a", "b"), ("c",), ("d",)), ("blue",))
    assert found["rug"].said == Wordings(("a",), ("b",), ("c", "d"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mug: {price: 3, said: [a, b]}", "mug › said.*2 wordings are too few"),
        ("mug: {price: cheap, said: [a, b, c]}", "mug › price.*'cheap'"),
        ("mug: {price: 3, said: [a, b, no]}", "mug › said.*not False"),
        ("mug: {price: 3, said: {train: [a], dev: [b]}}", "mug › said.*no wording of test"),
        ("mug: {price: 3}", "mug › said.*required"),
        ("mug: {price: 3, said: [a, b, c], tag: [blue]}", "mug › tag"),
        ("mug: [", "is no YAML"),
    ],
)
def test_a_table_of_another_shape_is_refused_with_its_place(table, text, said):
    with pytest.raises(FileError, match=f"a.package: table 0.yaml.*{said}"):
        table(text)


def test_a_file_that_is_missing_is_named():
    with pytest.raises(FileError, match=r"turnwise\.envs: nothing\.yaml cannot be read"):
        data_file("turnwise.envs", "nothing", dict[str, str])
    with pytest.raises(FileError, match=r"turnwise\.envs: nothing\.md cannot be read"):
        text_file("turnwise.envs", "nothing.md")


def test_importing_environments_reads_no_table():
    program = (
        "import turnwise.data_file as module\n"
        "module._text = None\n"
        "import turnwise.envs.shop.env, turnwise.envs.functioncall.env, turnwise.envs.search.env, turnwise.envs.toolworld.env"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
