"""YAML of strangers is data of bounded size, wherever it is read."""

from __future__ import annotations

import datetime
import random
import re
from pathlib import Path

import pytest
import yaml

from turnwise import plain_yaml
from turnwise.agents.policies.command import read_program
from turnwise.cli.training import overrides
from turnwise.envs.swe.packages import read_packages
from turnwise.errors import TurnwiseError
from turnwise.plain_yaml import read_yaml, read_yaml_text
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.view.places import ViewedPlace, read_recipe

ROOT = Path(__file__).parents[1]


def aliases(levels: int = 10, width: int = 10, inner: str = "x") -> str:
    """A text of some hundred bytes that stands for ``width ** levels`` values."""
    lines = [f"a0: &a0 [{', '.join([inner] * width)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, levels)]
    return "\n".join(lines)


def merges(levels: int = 10, width: int = 10) -> str:
    """The same by merge keys, which are made when the mapping is."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * width)}]}}" for n in range(1, levels)]
    return "\n".join(lines)


BOMBS = {
    "aliases": aliases(),
    "merges": merges(),
    "self": "a: &a [*a]",
    "self in a mapping": "a: &a {b: {c: *a}}",
    "deep": "[" * 900,
    "deep mapping": "{a: " * 900,
    "hexadecimal": f"x: 0x{'f' * 20_000}",
    "decimal": f"x: {'9' * 20_000}",
    "base 60": f"x: {':'.join(['59'] * 20_000)}",
    "float": f"x: 1.{'0' * 20_000}",
    "date": "x: 2001-99-99",
    "no timestamp": "x: !!timestamp y",
    "no truth value": "x: !!bool y",
    "no number": "x: !!int y",
    "python": "x: !!python/object/apply:os.system [id]",
    "two documents": "a: 1\n---\nb: 2",
    "a list as a key": "? [1]\n: 2",
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS.keys())
@pytest.mark.parametrize("quick", [False, True])
def test_what_nobody_writes_is_refused_before_anything_is_made_of_it(text, quick):
    with pytest.raises(yaml.YAMLError):
        read_yaml(text, quick=quick)


def test_what_people_write_is_read_as_before(monkeypatch):
    text = "a: &a {x: [1, 0x1f, 1e3, ~, yes, 2001-12-14], y: 'z'}\nb: {<<: *a, y: 2}\nc: [*a, *a]\n"
    data = read_yaml(text)
    assert data == yaml.safe_load(text) == read_yaml(text, quick=True)
    assert data["a"]["x"][-1] == datetime.date(2001, 12, 14)
    assert data["c"][0] is data["c"][1]
    assert read_yaml("") is None
    monkeypatch.setattr(plain_yaml, "MOST_VALUES", 1000)
    assert len(read_yaml(f"[{'1,' * 999}]")) == 999
    with pytest.raises(yaml.YAMLError, match="stands for more than 1000 values"):
        read_yaml(f"[{'1,' * 1000}]")
    node = read_yaml_text("a:\n  b: 1").node
    assert isinstance(node, yaml.MappingNode)
    assert node.value[0][1].start_mark.line == 1


def test_every_reader_of_yaml_refuses_it_by_name(tmp_path):
    file = tmp_path / "recipe.yaml"
    for text in (BOMBS[name] for name in ("aliases", "self", "hexadecimal", "date", "python")):
        file.write_text(text)
        with pytest.raises(TurnwiseError, match=re.escape(str(file))):
            load_recipe(file)
        with pytest.raises(TurnwiseError, match=re.escape(str(file))):
            read_program(str(file))
        with pytest.raises(TurnwiseError, match="packages"):
            read_packages(text, "packages")
        with pytest.raises(TurnwiseError, match="--set"):
            overrides([f"x={text}"])
        assert read_recipe(ViewedPlace("", "run", tmp_path, "")) == ("", {})


def test_a_value_of_any_size_is_shown_by_its_beginning(tmp_path):
    file = tmp_path / "recipe.yaml"
    file.write_text(aliases(levels=4) + "\nsuite: shop/quick\n")
    with pytest.raises(TurnwiseError, match="unknown key 'a0'") as caught:
        load_recipe(file)
    assert len(str(caught.value)) < 5000


def test_random_texts_are_read_or_refused():
    rng = random.Random(3)
    parts = ["a: ", "&x ", "*x", "<<: ", "[", "]", "{", "}", ", ", "\n", "  ", "- ", "? ", ": ", "!!", "int ", "set ",
             "omap ", "timestamp ", "0x", "9" * 40, "1:2", "2001-01-01", "'", '"', "|", ">", "%", "---", "\t", "é", "#"]  # fmt: skip
    for number in range(1500):
        text = "".join(rng.choices(parts, k=rng.randrange(1, 24)))
        for quick in (False, True) if number % 3 == 0 else (False,):
            try:
                read_yaml(text, quick=quick)
            except yaml.YAMLError:
                continue


def test_nothing_else_reads_yaml():
    reads = re.compile(r"yaml\.(safe_load|load|full_load|compose|unsafe_load)\w*\(")
    folders = ("src/turnwise", "envs", "agents", "trainers", "tools", "tasks")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 500
    assert [str(file) for file in files if reads.search(file.read_text("utf-8"))] == []
