"""Layers as values: encoding, digests, joining."""

from __future__ import annotations

import io
import struct
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwise.errors import TurnwiseError
from turnwise.tools.sandbox.backends.docker import DockerBackend
from turnwise.tools.sandbox.core import Backend, Root, SandboxImage
from turnwise.tools.sandbox.files import Entry, Layer, digest_of, encode
from turnwise.tools.sandbox.live import _joined
from turnwise.tools.sandbox.seccomp import compiled

PATHS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map("/".join)


@given(st.dictionaries(st.sampled_from(["a", "b/c", "b/d", "ž", "x y"]), st.binary(max_size=40)))
def test_files_come_back(files: dict[str, bytes]) -> None:
    layer = Layer.of(files)
    assert {path: layer.read(path) for path in files} == files
    assert Layer(layer.blob).entries == layer.entries


@pytest.mark.parametrize("path", ["", "/etc/x", "../x", "a/../../x", "a//b", "./a", "a\0b"])
def test_paths_that_lead_away_are_refused(path: str) -> None:
    with pytest.raises(TurnwiseError, match="cannot hold"):
        Layer.of({path: "x"})


def test_from_folder_copies_links_and_leaves_git_out(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("1")
    (tmp_path / "away").symlink_to("/etc/passwd")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("secret")
    layer = Layer.from_folder(tmp_path)
    assert [(entry.path, entry.kind) for entry in layer.entries] == [
        ("work/a", "folder"), ("work/a/x.py", "file"), ("work/away", "link"),
    ]  # fmt: skip
    assert b"secret" not in layer.blob
    assert b"root:" not in layer.blob


def test_from_tar_unpacks_nothing_and_stays_inside(tmp_path) -> None:
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w") as made:
        for name, kind, target in [
            ("top", tarfile.DIRTYPE, ""), ("top/a", tarfile.REGTYPE, ""), ("top/l", tarfile.SYMTYPE, "/etc/passwd"),
            ("top/h", tarfile.LNKTYPE, "top/a"), ("top/../../out", tarfile.REGTYPE, ""),
            ("top/dev", tarfile.CHRTYPE, ""),
        ]:  # fmt: skip
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = kind, target, 2 if kind == tarfile.REGTYPE else 0
            made.addfile(member, io.BytesIO(b"hi") if member.size else None)
    with tarfile.open(archive) as opened:
        layer = Layer.from_tar(opened)
    assert [(entry.path, entry.kind) for entry in layer.entries] == [
        ("work/a", "file"), ("work/h", "file"), ("work/l", "link"),
    ]  # fmt: skip
    assert (layer.read("a"), layer.read("h")) == (b"hi", b"hi")


def test_files_of_an_image(isolated: Backend) -> None:
    if not isinstance(isolated, DockerBackend):
        return
    docker = isolated
    layer = docker.files_of(Root(), "/etc")
    assert b"agent" in layer.read("passwd")
    with docker.start(SandboxImage(layers=(layer,))) as sandbox:
        assert b"agent" in sandbox.read("passwd")


def test_digest_ignores_times_and_layering() -> None:
    one = SandboxImage.of({"a": "1", "b": "2"})
    two = SandboxImage.of({"a": "0"}).with_files({"b": "2"}).with_files({"a": "1"})
    assert one.digest == two.digest
    assert one.digest != SandboxImage.of({"a": "1", "b": "3"}).digest


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["file", "gone", "folder"]), PATHS, st.binary(max_size=3)), max_size=6
)


def _state(layers: tuple[Layer, ...]) -> dict[str, bytes | None]:
    """What unpacking a stack leaves, by the rule of the supervisor, as an independent simple model."""
    state: dict[str, bytes | None] = {}
    for layer in layers:
        for entry in layer.entries:
            old = state.get(entry.path)
            if entry.kind != "folder" or old is not None:
                state = {
                    path: data for path, data in state.items() if not f"{path}/".startswith(f"{entry.path}/")
                }
            if entry.kind != "gone":
                state[entry.path] = layer.contents.get(entry.path, b"") if entry.kind == "file" else None
    return state


@pytest.mark.slow
@given(st.lists(OPERATIONS, min_size=13, max_size=16))
def test_joining_layers_changes_nothing(stacks: list) -> None:
    layers = []
    known: dict[str, str] = {}
    for operations in stacks:
        rows: dict[str, tuple[Entry, bytes]] = {}
        gone: dict[str, tuple[Entry, bytes]] = {}
        for kind, path, data in operations:  # what a capture could hold: parents are folders
            full = f"work/{path}"
            parents = [full.rsplit("/", depth)[0] for depth in range(1, full.count("/"))]
            if any(known.get(parent) != "folder" for parent in parents):
                continue
            if kind == "gone" or known.get(full) not in (None, kind):
                gone[full] = (Entry(full, "gone"), b"")
                for below in [other for other in known if f"{other}/".startswith(f"{full}/")]:
                    known.pop(below)
                    rows.pop(below, None)
            if kind != "gone":
                known[full] = kind
                rows[full] = (
                    Entry(full, kind, size=len(data), segments=((0, len(data)),) if data else ()),
                    data,
                )
                if kind == "folder":
                    rows[full] = (Entry(full, "folder", 0o755), b"")
        layers.append(
            Layer(encode([*[gone[path] for path in sorted(gone)], *[rows[path] for path in sorted(rows)]]))
        )
    joined = _joined(tuple(layers))
    assert len(joined) == 2
    assert _state(joined) == _state(tuple(layers))
    assert digest_of(joined) == digest_of(layers)


def _run_filter(program: bytes, number: int, arch: int, argument: int = 0) -> int:
    """The kernel's classic BPF machine, as far as the filter uses it."""
    data = struct.pack("<IIQ6Q", number, arch, 0, argument, 0, 0, 0, 0, 0)
    code = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    at = loaded = 0
    while True:
        kind, yes, no, value = code[at]
        at += 1
        if kind == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif kind == 0x06:
            return value
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[kind]
            at += yes if holds else no


def test_filter_by_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    program, x86 = compiled(), 0xC000003E
    allow, deny, kill, missing, family = 0x7FFF0000, 0x00050001, 0x80000000, 0x00050026, 0x00050061
    assert _run_filter(program, 0, x86) == allow  # read
    assert _run_filter(program, 165, x86) == deny  # mount
    assert _run_filter(program, 0, 0x40000003) == kill  # the 32-bit numbering
    assert _run_filter(program, 0x40000000, x86) == missing  # x32
    assert _run_filter(program, 435, x86) == missing  # clone3
    assert _run_filter(program, 56, x86, 17) == allow  # fork
    assert _run_filter(program, 56, x86, 0x10000000 | 17) == deny  # fork into a user namespace
    assert [_run_filter(program, 41, x86, n) for n in (1, 2, 10, 16)] == [allow] * 4
    assert [_run_filter(program, 41, x86, n) for n in (0, 3, 17, 38, 40)] == [family] * 5
