"""Reads and writes the sandbox's files, and turns folders into layers and back. Part of the supervisor.

The encoding of layers is that of ``turnwise.tools.sandbox.files``.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import struct

from turnwise.tools.sandbox.inside.frames import FOLDERS, Refused, answer, resolve

KNOWN: dict = {}  # entry's path → what it was when host and sandbox last agreed
LONGEST = 4000  # bytes of a path
NOT_FOLLOWED = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def read(header: dict, _: bytes) -> None:
    fd = os.open(resolve(header["path"]), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Refused(f"{header['path'][:200]}: not a file")
        file.seek(header["offset"])
        answer({"size": os.fstat(fd).st_size}, file.read(header["limit"]))


def write(header: dict, payload: bytes) -> None:
    """Write beside the file, then rename: never through a link, and whole or not at all."""
    path = resolve(header["path"])
    if os.path.isdir(path) and not os.path.islink(path):
        raise Refused(f"{header['path'][:200]}: is a folder")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    mode = header["mode"]
    if mode is None:
        with contextlib.suppress(OSError):
            mode = stat.S_IMODE(os.lstat(path).st_mode) if not os.path.islink(path) else None
    beside = os.path.join(os.path.dirname(path), ".turnwise-write")
    with contextlib.suppress(FileNotFoundError):
        remove_tree(beside)
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOT_FOLLOWED, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(payload)
            os.fchmod(fd, (0o644 if mode is None else mode) & 0o777)
        os.rename(beside, path)
    except OSError:
        os.unlink(beside)
        raise
    answer({"ok": True})


def list_folder(header: dict, _: bytes) -> None:
    top = resolve(header["path"])
    rows: list = []
    walk(top, "", header["depth"], header["limit"], rows)
    answer({"ok": True, "more": len(rows) > header["limit"]}, json.dumps(rows[: header["limit"]]).encode())


def walk(folder: str, prefix: str, depth: int, limit: int, rows: list) -> None:
    for name in sorted(os.listdir(folder)):
        if len(rows) > limit:
            return
        path = os.path.join(folder, name)
        about = os.lstat(path)
        kind = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
        said = kind.get(stat.S_IFMT(about.st_mode), "other")
        rows.append([prefix + name, said, about.st_size, stat.S_IMODE(about.st_mode)])
        if said == "folder" and depth > 1:
            with contextlib.suppress(PermissionError):
                walk(path, prefix + name + "/", depth - 1, limit, rows)


def remove(header: dict, _: bytes) -> None:
    path = resolve(header["path"])
    if path.rstrip("/") in FOLDERS.values():
        raise Refused(f"{header['path'][:200]}: the folder itself stays")
    remove_tree(path)
    answer({"ok": True})


def remove_tree(path: str) -> None:
    """Remove whatever is there, folders without permissions included; links are not followed."""
    try:
        os.unlink(path)
        return
    except OSError as error:
        if error.errno not in (errno.EISDIR, errno.EPERM):
            raise
    for command in (["chmod", "-R", "u+rwx", "--", path], ["rm", "-rf", "--", path]):
        # rm copes with folders nested deeper than Python's recursion and the kernel's paths allow
        os.waitpid(os.posix_spawn("/bin/" + command[0], command, {}), 0)
    if os.path.lexists(path):
        raise Refused(f"{path}: could not be removed")


# Layers.


def real(path: str) -> str:
    """Return the path at which an entry lies. Its parents are folders of our own making, so no link leads away."""
    folder, _, rest = path.partition("/")
    return os.path.join(FOLDERS[folder], rest) if rest else FOLDERS[folder]


def scan() -> dict:
    """All entries: path → (kind, inode, ctime, mode, size). Nobody can forge a ctime."""
    found: dict = {}
    waiting = list(FOLDERS)
    while waiting:
        folder = waiting.pop()
        top = real(folder)
        try:
            entries = list(os.scandir(top))
        except PermissionError:
            os.chmod(top, 0o700)
            entries = list(os.scandir(top))
        for item in entries:
            about = item.stat(follow_symlinks=False)
            path = f"{folder}/{item.name}"
            if len(os.fsencode(path)) > LONGEST:
                continue  # the kernel takes no such path; it is lost to snapshots
            kind = stat.S_IFMT(about.st_mode)
            if kind == stat.S_IFDIR:
                waiting.append(path)
                found[path] = (kind, about.st_ino, 0, about.st_mode, 0)
            elif kind in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFIFO):
                found[path] = (kind, about.st_ino, about.st_ctime_ns, about.st_mode, about.st_size)
    return found


def capture(header: dict, _: bytes) -> None:
    """Answer with a layer of what changed since host and sandbox last agreed."""
    now = scan()
    rows, data = [], []
    gone = [path for path in KNOWN if path not in now]
    for path in sorted(gone):
        if path.rpartition("/")[0] not in KNOWN or path.rpartition("/")[0] in now:
            rows.append([path, "gone", 0, 0, 0, [], ""])
    for path in sorted(now):
        old = KNOWN.get(path)
        if now[path] == old:
            continue
        if old is not None and (old[0] != now[path][0]):
            rows.append([path, "gone", 0, 0, 0, [], ""])
        row, content = encode(path)
        rows.append(row)
        data.append(content)
    KNOWN.clear()
    KNOWN.update(now)
    index = json.dumps(rows, separators=(",", ":")).encode()
    answer({"entries": len(rows)}, b"".join([struct.pack(">I", len(index)), index, *data]))


def encode(path: str) -> tuple:
    """The row and the bytes of one entry."""
    full = real(path)
    about = os.lstat(full)
    mode = stat.S_IMODE(about.st_mode)
    head = [about.st_mtime_ns, about.st_size]
    if stat.S_ISLNK(about.st_mode):
        return [path, "link", mode, head[0], 0, [], os.readlink(full)], b""
    if stat.S_ISDIR(about.st_mode):
        return [path, "folder", mode, head[0], 0, [], ""], b""
    if stat.S_ISFIFO(about.st_mode):
        return [path, "fifo", mode, head[0], 0, [], ""], b""
    if not mode & 0o400:
        os.chmod(full, mode | 0o400)
    fd = os.open(full, os.O_RDONLY | NOT_FOLLOWED)
    with open(fd, "rb") as file:
        segments, parts = [], []
        for start, length in holes_left_out(fd, about):
            file.seek(start)
            segments.append([start, length])
            parts.append(file.read(length))
    if not mode & 0o400:
        os.chmod(full, mode)
    return [path, "file", mode, *head, segments, ""], b"".join(parts)


def holes_left_out(fd: int, about: os.stat_result) -> list:
    """The (start, length) of a file's data; a terabyte of nothing is nothing."""
    if about.st_blocks * 512 >= about.st_size:
        return [(0, about.st_size)] if about.st_size else []
    found, at = [], 0
    with contextlib.suppress(OSError):  # ENXIO: no more data
        while at < about.st_size:
            start = os.lseek(fd, at, os.SEEK_DATA)
            at = os.lseek(fd, start, os.SEEK_HOLE)
            found.append((start, at - start))
    return found


def clear(_: dict, __: bytes) -> None:
    """Empty all folders."""
    for home in FOLDERS.values():
        os.chmod(home, 0o755)
        for name in os.listdir(home):
            remove_tree(os.path.join(home, name))
    answer({"ok": True})


def apply(_: dict, blob: bytes) -> None:
    """Make the changes that a layer holds. Modes of folders come last, since they may forbid writing."""
    (length,) = struct.unpack_from(">I", blob)
    offset = 4 + length
    view = memoryview(blob)
    folders = []
    for path, kind, mode, mtime, size, segments, target in json.loads(blob[4:offset]):
        full = real(path)
        if kind == "gone":
            with contextlib.suppress(FileNotFoundError):
                remove_tree(full)
            continue
        if kind == "folder":
            with contextlib.suppress(FileExistsError):
                os.mkdir(full, 0o700)
            folders.append((full, mode, mtime))
            continue
        with contextlib.suppress(FileNotFoundError):
            remove_tree(full)
        if kind == "link":
            os.symlink(target, full)
            os.utime(full, ns=(mtime, mtime), follow_symlinks=False)
            continue
        if kind == "fifo":
            os.mkfifo(full, mode)
            continue
        fd = os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOT_FOLLOWED, 0o600)
        for start, count in segments:
            done = 0
            while done < count:
                done += os.pwrite(fd, view[offset + done : offset + count], start + done)
            offset += count
        if not segments or sum(segments[-1]) != size:
            os.ftruncate(fd, size)
        os.fchmod(fd, mode)
        os.utime(fd, ns=(mtime, mtime))
        os.close(fd)
    for full, mode, mtime in reversed(folders):
        os.chmod(full, mode)
        os.utime(full, ns=(mtime, mtime))
    answer({"ok": True})


def agree(_: dict, __: bytes) -> None:
    """From here on, `capture` counts changes."""
    KNOWN.clear()
    KNOWN.update(scan())
    answer({"ok": True})
