"""Read-only root file systems for sandboxes: Debian's packages, unpacked; cached by the hash of their recipe.

Packages are fetched and verified by apt and only unpacked: none of their scripts run, which takes seconds where
debootstrap takes minutes. What those scripts would have done and sandboxes need is done in :func:`_finish`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import distributions
from pathlib import Path
from typing import IO

from filelock import FileLock

from turnwise.cache_folder import cache_folder
from turnwise.errors import MissingDependencyError
from turnwise.tools.sandbox.core import Root, SandboxError

AGENT = 10_001
"""The user and group of a root's own ``/etc/passwd``. Each sandbox runs as one of its own (see ``uids``)."""

_RECIPE = 4  # raise when what is built changes
_BASE = (
    "base-files", "bash", "coreutils", "dash", "diffutils", "file", "findutils", "git", "grep", "gzip",
    "less", "libc-bin", "mawk", "netbase", "patch", "procps", "python3", "ripgrep", "sed", "tar", "tzdata",
    "unzip", "util-linux", "xz-utils",
)  # fmt: skip
_USELESS = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "usr/share/lintian",
    "boot",
)


def root_name(root: Root) -> str:
    """The hash of a root's recipe."""
    links = [sorted(root.links)] if root.links else []
    recipe = json.dumps([_RECIPE, sorted({*_BASE, *root.apt}), sorted(root.pip), *links])
    return hashlib.sha256(recipe.encode()).hexdigest()[:16]


def built_root(root: Root) -> Path | None:
    """Return the folder of this root if it has been built."""
    folder = cache_folder("sandboxes", "roots") / root_name(root)
    return folder if folder.is_dir() else None


def build_root(root: Root) -> Path:
    """The folder of a root, built where it is not cached (10 to 40 s, by the network; a few where a root with most
    of its Python packages is there).

    Raises:
        MissingDependencyError: this machine cannot build one.
        SandboxError: a package could not be had.
    """
    if root.reference:
        raise SandboxError(
            f"{root.reference!r} is a Docker image.", "Use the docker backend, or a Root of packages."
        )
    folder = cache_folder("sandboxes", "roots") / root_name(root)
    if folder.is_dir():
        return folder
    if os.geteuid() != 0 or shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise MissingDependencyError(
            "Sandbox roots are built by root on Debian or Ubuntu.",
            "Use the docker backend with Root(reference='python:3.11-slim'), or run as root on Debian.",
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as temporary:
                made = Path(temporary, "root")
                _build(root, made)
                made.rename(folder)
    return folder


def _build(root: Root, made: Path) -> None:
    if root.links:
        return _add_links(build_root(replace(root, links=())), made, root.links)
    there, base = _nearest(root)
    if base is None:
        return _unpack(root.apt, made)
    try:
        _add_python(base, made, root.pip[there:])
    except SandboxError:  # what is to be added may not fit what is there: then all of it is chosen anew
        if not there:
            raise
        shutil.rmtree(made, ignore_errors=True)
        _add_python(build_root(Root(apt=root.apt)), made, root.pip)
    return None


def _nearest(root: Root) -> tuple[int, Path | None]:
    """The longest beginning of a root's Python packages of which a root is there, and that root; none if it has no packages."""
    for there in range(len(root.pip) - 1, 0, -1):
        if base := built_root(Root(apt=root.apt, pip=root.pip[:there])):
            return there, base
    return 0, build_root(Root(apt=root.apt)) if root.pip else None


def _unpack(apt: Sequence[str], made: Path) -> None:
    for name in ("bin", "sbin", "lib", "lib64"):
        (made / "usr" / name).mkdir(parents=True)
        (made / name).symlink_to(f"usr/{name}")
    for package in _download(sorted({*_BASE, *apt})):
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as archive:
            _run(["tar", "-x", "--keep-directory-symlink", "-C", str(made)], stdin=archive.stdout)
    _finish(made)


def _download(packages: Sequence[str]) -> list[str]:
    """The packages and all that they depend on, as if nothing were installed; apt checks their signatures."""
    store, nothing = cache_folder("sandboxes", "packages"), cache_folder("sandboxes", "packages", "none")
    for folder in (store, nothing):
        (folder / "partial").mkdir(parents=True, exist_ok=True)
    (store / "no-packages").touch()
    common = ["apt-get", "-o", f"Dir::State::status={store / 'no-packages'}", "-o", "APT::Sandbox::User=root"]
    common += ["-o", "Debug::NoLocking=1", "--no-install-recommends", "-qq", "-y", "install"]
    # Asked for what an empty cache would fetch: apt names no file that it has.
    listing = [*common, "-o", f"Dir::Cache::archives={nothing}", "--print-uris", *packages]
    fetching = [*common, "-o", f"Dir::Cache::archives={store}", "--download-only", *packages]
    try:
        listed = _run(listing)
        _run(fetching)
    except SandboxError:  # the machine's lists of packages are missing or old
        _run(["apt-get", "-qq", "update"])
        listed = _run(listing)
        _run(fetching)
    return [str(store / line.split()[1]) for line in listed.splitlines() if line.startswith("'")]


def _finish(made: Path) -> None:
    """Do what maintainer scripts would have done."""
    for name in _USELESS:
        shutil.rmtree(made / name, ignore_errors=True)
    for name in ("work", "tmp", "proc", "dev", "sys", "run", "root", "home", "var/tmp"):
        (made / name).mkdir(parents=True, exist_ok=True)
    etc = made / "etc"
    (etc / "passwd").write_text(passwd(AGENT))
    (etc / "group").write_text(group_file(AGENT))
    (etc / "hosts").write_text("127.0.0.1 localhost sandbox\n::1 localhost\n")
    (etc / "hostname").write_text("sandbox\n")
    (etc / "resolv.conf").write_text("")
    (etc / "gitconfig").write_text(
        "[safe]\n\tdirectory = *\n[user]\n\tname = agent\n\temail = agent@localhost\n"
    )
    for name, target in (("awk", "mawk"), ("python", "python3"), ("pager", "less")):
        link = made / "usr" / "bin" / name
        if not link.exists() and (made / "usr" / "bin" / target).exists():
            link.symlink_to(target)
    _run(["find", str(made), "-xdev", "-type", "f", "-perm", "/6000", "-exec", "chmod", "a-s", "{}", "+"])
    _run(["chroot", str(made), "/usr/sbin/ldconfig"])
    libraries = [str(path.relative_to(made)) for path in (made / "usr/lib").glob("python3*") if path.is_dir()]
    _run(["chroot", str(made), "python3", "-m", "compileall", "-q", *[f"/{path}" for path in libraries]])


def passwd(uid: int) -> str:
    """``/etc/passwd`` of a sandbox whose commands have this number."""
    return (
        f"root:x:0:0:root:/root:/bin/sh\nagent:x:{uid}:{uid}:agent:/tmp:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/:/bin/false\n"
    )


def group_file(gid: int) -> str:
    """``/etc/group`` of a sandbox whose commands have this number."""
    return f"root:x:0:\nagent:x:{gid}:\nnogroup:x:65534:\n"


def _add_python(base: Path, made: Path, packages: Sequence[str]) -> None:
    """A root with more Python packages than ``base``, with which it shares its files: roots are never written to."""
    _run(["cp", "-al", str(base), str(made)])
    version = _run(
        ["chroot", str(made), "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    )
    target = f"/usr/local/lib/python{version.strip()}/dist-packages"
    Path(f"{made}{target}").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q"]
    command += ["--python-version", version.strip(), "--only-binary", ":all:", "--no-compile"]
    with tempfile.TemporaryDirectory(dir=made.parent) as temporary:
        known, fresh = Path(temporary, "known.txt"), Path(temporary, "fresh")
        there = (f"{one.name}=={one.version}\n" for one in distributions(path=[f"{made}{target}"]))
        known.write_text("".join(sorted(there)))
        _run([*command, "--constraint", str(known), "--target", str(fresh), *packages])
        _run(["cp", "-an", f"{fresh}/.", f"{made}{target}"])  # what is there already stays
    _run(["chroot", str(made), "python3", "-m", "compileall", "-q", target])


def _add_links(base: Path, made: Path, links: Sequence[str]) -> None:
    """A root with folders that lead into the working folder; its files are those of ``base``."""
    _run(["cp", "-al", str(base), str(made)])
    for name in links:
        place = made / name
        if place.is_dir() and not place.is_symlink() and not any(place.iterdir()):
            place.rmdir()
        if not place.exists():
            place.symlink_to(f"work/{name}")


def _run(command: Sequence[str], *, stdin: IO[bytes] | None = None) -> str:
    done = subprocess.run(command, stdin=stdin, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise SandboxError(
            f"`{' '.join(command)[:120]}` failed: {said[-1][:200] if said else 'no message'}.",
            "Check the network (`apt-get update` must work) and the disk, then try again.",
        )
    return done.stdout.decode(errors="replace")
