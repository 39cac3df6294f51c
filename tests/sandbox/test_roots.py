"""Roots with Python packages are built over roots that have some of them already, and share their files."""

from pathlib import Path

import pytest

from turnwise.tools.sandbox import roots
from turnwise.tools.sandbox.core import Root, SandboxError

PIP = ("one==1", "two==2", "three==3")


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A cache where building writes down what is unpacked or added, and over what."""
    monkeypatch.setenv("TURNWISE_CACHE", str(tmp_path))
    made: list[tuple[str, ...]] = []

    def unpack(apt, folder):
        made.append(("unpacked", *apt))
        folder.mkdir()

    def add(base, folder, packages):
        made.append((base.name, *packages))
        if "stubborn" in packages[:1]:
            raise SandboxError("It does not fit what is there.", "")
        folder.mkdir()

    monkeypatch.setattr(roots, "_unpack", unpack)
    monkeypatch.setattr(roots, "_add_python", add)
    return made


def test_a_root_is_built_over_the_one_that_lacks_least(built):
    plain, most = roots.root_name(Root()), roots.root_name(Root(pip=PIP[:2]))
    roots.build_root(Root(pip=PIP[:2]))
    assert built == [("unpacked",), (plain, *PIP[:2])]
    roots.build_root(Root(pip=PIP))
    roots.build_root(Root(apt=("gcc",), pip=PIP))  # what else it has is different: nothing of it is there
    assert built[2:] == [(most, PIP[2]), ("unpacked", "gcc"), (roots.root_name(Root(apt=("gcc",))), *PIP)]


def test_what_does_not_fit_is_chosen_anew_with_all_the_rest(built):
    roots.build_root(Root(pip=PIP))
    roots.build_root(Root(pip=(*PIP, "stubborn")))
    assert built[2:] == [
        (roots.root_name(Root(pip=PIP)), "stubborn"),
        (roots.root_name(Root()), *PIP, "stubborn"),
    ]


def test_what_cannot_be_had_at_all_says_so_and_leaves_nothing(built):
    with pytest.raises(SandboxError, match="does not fit"):
        roots.build_root(Root(pip=("stubborn",)))
    assert roots.built_root(Root(pip=("stubborn",))) is None


def test_adding_to_a_root_leaves_the_other_as_it_is(tmp_path, monkeypatch):
    """Both share their files, so none may be written over."""
    base, made = tmp_path / "base", tmp_path / "made"
    there = base / "usr/local/lib/python3.11/dist-packages"
    (there / "two-2.0.dist-info").mkdir(parents=True)
    (there / "two-2.0.dist-info/METADATA").write_text("Name: two\nVersion: 2.0\n")
    (there / "two.py").write_text("old")
    asked: list[str] = []
    run = roots._run

    def fake(command, *, stdin=None):
        if command[0] == "chroot":
            return "3.11\n"
        if "pip" in command:
            fresh = Path(command[command.index("--target") + 1])
            asked.append(Path(command[command.index("--constraint") + 1]).read_text())
            fresh.mkdir()
            (fresh / "two.py").write_text("new")
            (fresh / "three.py").write_text("new")
            return ""
        return run(command, stdin=stdin)

    monkeypatch.setattr(roots, "_run", fake)
    roots._add_python(base, made, ["three"])
    own = made / "usr/local/lib/python3.11/dist-packages"
    assert asked == ["two==2.0\n"]
    assert [(own / name).read_text() for name in ("two.py", "three.py")] == ["old", "new"]
    assert (there / "two.py").read_text() == "old"
    assert not (there / "three.py").exists()
    assert (own / "two.py").stat().st_ino == (there / "two.py").stat().st_ino
