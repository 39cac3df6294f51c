"""Named environments: what is asked for is made whole or not at all, and its lock file makes it again."""

from __future__ import annotations

import pytest

from turnwise.cli.worlds import worlds
from turnwise.envs.benchmarks import BENCHMARKS
from turnwise.envs.builtin import FORMS
from turnwise.envs.foreign import named
from turnwise.envs.registry import get_suite
from turnwise.errors import MissingDependencyError, NotFoundError, TurnwiseError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNWISE_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # nothing is asked of an index
    return tmp_path


def package(folder, version="1.0"):
    """A package of one module, as a folder that pip installs from without an index."""
    folder.mkdir()
    name = f"onemodule-{version}.dist-info"
    import zipfile

    wheel = folder / f"onemodule-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("onemodule.py", f"VERSION = {version!r}\n")
        made.writestr(f"{name}/METADATA", f"Metadata-Version: 2.1\nName: onemodule\nVersion: {version}\n")
        made.writestr(f"{name}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{name}/RECORD", "")
    return wheel


@pytest.mark.full
def test_a_world_is_made_listed_made_again_from_its_lock_and_removed(tmp_path):
    wheel = package(tmp_path / "wheels")
    made = named.add("mine", requires=(str(wheel),))
    assert made.ready
    assert "onemodule" in (made.folder / named.LOCK).read_text()
    assert named.python_of("mine") == str(made.folder / "bin" / "python")
    with pytest.raises(TurnwiseError, match="is there already"):
        named.add("mine", requires=(str(wheel),))
    lock = tmp_path / "lock.txt"
    lock.write_text(f"onemodule @ file://{wheel}\n")
    assert named.add("again", lock=lock).ready
    assert {"mine", "again"} <= {each.name for each in named.worlds() if each.ready}
    assert worlds("remove", "mine").value["removed"] == "mine"
    assert not made.folder.exists()


@pytest.mark.full
def test_what_cannot_be_installed_leaves_nothing_behind(cache):
    with pytest.raises(TurnwiseError, match="cannot be made"):
        named.add("mine", requires=("no-such-package-anywhere==1",))
    assert not (cache / "worlds" / "mine").exists()


def test_an_unfinished_world_is_not_there(cache):
    (cache / "worlds" / "reasoning-gym" / "bin").mkdir(parents=True)
    assert not next(each for each in named.worlds() if each.name == "reasoning-gym").ready
    with pytest.raises(MissingDependencyError, match="turnwise worlds add reasoning-gym"):
        get_suite("reasoning-gym:chain_sum")


@pytest.mark.parametrize("name", ["../up", "", ".hidden", "a/b"])
def test_a_name_never_leads_out_of_the_folder(name):
    with pytest.raises(TurnwiseError):
        named.add(name, requires=("x",))
    with pytest.raises(NotFoundError):
        named.remove(name)


def test_a_wrong_word_is_answered_with_the_near_one():
    with pytest.raises(NotFoundError, match="textarena"):
        named.add("textareno")
    with pytest.raises(NotFoundError, match="list"):
        worlds("lst")
    assert {row["name"] for row in worlds("list").value} >= {"reasoning-gym", "scienceworld"}


def test_each_form_of_a_benchmark_says_where_it_comes_from() -> None:
    ours = {
        "impossible",
        "canary",
        "judging",
        "advised",
        "pair",
        "refined",
        "simulated",
        "triples",
    }  # forms of suites that are here
    assert BENCHMARKS.keys() == FORMS.keys() - ours
    for form, known in BENCHMARKS.items():
        assert all(each.name.startswith(f"{form}:") and all(each) for each in known)
    for name in named.CATALOGUE:
        assert BENCHMARKS[name][0].source == f"turnwise worlds add {name}"
