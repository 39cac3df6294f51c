"""Checks of reading, writing, listing and removing files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from turnwise.tools.sandbox.checks.core import Lab, check
from turnwise.tools.sandbox.core import MIB, PathError

_ALL_BYTES = bytes(range(256))


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """Require that what is done in here is refused with a :class:`PathError`."""
    try:
        yield
    except PathError:
        return
    raise AssertionError("it was not refused")


def same(found: object, wanted: object) -> None:
    """Fail, showing both, unless they are equal."""
    assert found == wanted, f"{str(found)[:200]!r} instead of {str(wanted)[:200]!r}"


@check("files", "any bytes come back as they were written")
def file_round_trip(lab: Lab) -> None:
    lab.sandbox.write("a.bin", _ALL_BYTES * 40)
    same(lab.sandbox.read("a.bin"), _ALL_BYTES * 40)
    lab.sandbox.write("empty", b"")
    same(lab.sandbox.read("empty"), b"")


@check("files", "8 MiB come back as they were written")
def file_large(lab: Lab) -> None:
    data = _ALL_BYTES * (8 * MIB // 256)
    lab.sandbox.write("large.bin", data)
    same(lab.sandbox.read("large.bin") == data, True)


@check("files", "writing makes the folders that are missing")
def file_makes_folders(lab: Lab) -> None:
    lab.sandbox.write("a/b/c.txt", "x")
    same([item.path for item in lab.sandbox.list(depth=3)], ["a", "a/b", "a/b/c.txt"])


@check("files", "writing replaces the whole file and keeps its mode")
def file_replaced(lab: Lab) -> None:
    lab.sandbox.write("run.sh", "#!/bin/sh\necho long text\n", mode=0o755)
    lab.sandbox.write("run.sh", "#!/bin/sh\necho b\n")
    same(lab.sandbox.exec(["./run.sh"]).stdout, b"b\n")


@check("files", "writing where a link is replaces the link, not what it leads to", 48)
def file_not_through_link(lab: Lab) -> None:
    lab.sh("echo keep > target; ln -s target link; ln -s /etc away")
    lab.sandbox.write("link", "new")
    same(lab.sandbox.read("target"), b"keep\n")
    same(lab.sandbox.read("link"), b"new")


@check("files", "a missing file and a folder are refused")
def file_missing(lab: Lab) -> None:
    with refused():
        lab.sandbox.read("nothing.txt")
    lab.sandbox.write("d/a", "x")
    with refused():
        lab.sandbox.read("d")
    with refused():
        lab.sandbox.write("d", "x")


@check("files", "a pipe and a device are refused at once", 48)
def file_not_regular(lab: Lab) -> None:
    lab.sh("mkfifo pipe; ln -s /dev/zero zero")
    for name in ("pipe", "zero"):
        with refused():
            lab.sandbox.read(name)


@check("files", "reading stops at its limit", 45)
def file_read_limit(lab: Lab) -> None:
    lab.sandbox.write("a", b"x" * 10_000)
    same(len(lab.sandbox.read("a", limit=100)), 100)


@check("files", "an unreadable file is refused")
def file_unreadable(lab: Lab) -> None:
    lab.sh("echo x > a; chmod 000 a")
    with refused():
        lab.sandbox.read("a")


@check("files", "names with blanks, line ends, quotes, dashes and any letters work", 48)
def file_odd_names(lab: Lab) -> None:
    for name in ("a b", "a\nb", "-rf", "'\"$(x)`", "žluť☃", ".hidden", "x" * 200):
        lab.sandbox.write(name, name)
        same(lab.sandbox.read(name).decode(), name)
    lab.sh("touch $'bad\\xff'")
    same(len(lab.sandbox.list()), 8)


@check("files", "a NUL in a name, and a name that is too long, are refused", 48)
def file_bad_names(lab: Lab) -> None:
    for name in ("a\0b", "y" * 300, ""):
        with refused():
            lab.sandbox.write(name, "x")


@check("files", "listings are sorted, as deep as asked, and follow no links", 48)
def list_order(lab: Lab) -> None:
    lab.sh("mkdir -p b/c; touch b/c/x a; ln -s .. b/up; ln -s / root")
    found = lab.sandbox.list(depth=9)
    same([item.path for item in found], ["a", "b", "b/c", "b/c/x", "b/up", "root"])
    same([item.kind for item in found], ["file", "folder", "folder", "file", "link", "link"])


@check("files", "listings stop at their limit", 41)
def list_limit(lab: Lab) -> None:
    lab.sh("touch f{1..1500}")
    same(len(lab.sandbox.list(limit=50)), 50)


@check("files", "removing takes whole folders, also locked ones, and links without their targets", 48)
def remove_tree(lab: Lab) -> None:
    lab.sh("mkdir -p a/b keep; touch a/b/c keep/x; chmod 000 a/b; ln -s keep link")
    lab.sandbox.remove("a")
    lab.sandbox.remove("link")
    same([item.path for item in lab.sandbox.list(depth=2)], ["keep", "keep/x"])
    with refused():
        lab.sandbox.remove("a")
    with refused():
        lab.sandbox.remove(lab.sandbox.workdir)


def _outside(lab: Lab, write: Callable[[str], None]) -> None:
    name = f"turnwise-escape-{lab.canary[-8:]}"
    for path in (f"../../../../../../etc/{name}", f"/etc/{name}", f"root/etc/{name}", f"/usr/{name}"):
        with refused():
            write(path)
    assert not Path("/etc", name).exists(), "it was written on the host"
    assert not Path("/usr", name).exists(), "it was written on the host"


@check("files", "no path leads out of the sandbox when writing: .., absolute, through a link", 48)
def escape_by_writing(lab: Lab) -> None:
    lab.sh("ln -s / root")
    _outside(lab, lambda path: lab.sandbox.write(path, "x"))


@check("files", "no path leads out of the sandbox when reading: .., absolute, link, /proc", 48, 58)
def escape_by_reading(lab: Lab) -> None:
    secret = lab.home / "secret.txt"
    lab.sh(f"ln -s {secret} link; ln -s {lab.home} home")
    ways = (f"../../../../../../../..{secret}", f"{secret}", "link", "home/secret.txt")
    for path in (*ways, f"/proc/self/root{secret}", f"/proc/1/root{secret}", f"/proc/self/cwd/../..{secret}"):
        with refused():
            lab.sandbox.read(path)
    with refused():
        lab.sandbox.list(str(lab.home))


@check("files", "no path leads out of the sandbox when removing", 48)
def escape_by_removing(lab: Lab) -> None:
    lab.sh(f"ln -s {lab.home} home")
    for path in (f"{lab.home}/secret.txt", f"../../../../../../..{lab.home}/secret.txt", "home/secret.txt"):
        with refused():
            lab.sandbox.remove(path)
    same((lab.home / "secret.txt").read_text(), lab.canary)


@check("files", "what does not fit is refused, and the old file stays whole", 41)
def file_too_large(lab: Lab) -> None:
    lab.sandbox.write("a", "old")
    with refused():
        lab.sandbox.write("a", b"x" * (20 * MIB))
    same(lab.sandbox.read("a"), b"old")
