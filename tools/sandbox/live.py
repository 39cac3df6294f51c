"""A sandbox behind a supervisor: all backends share it, and differ in what surrounds the supervisor."""

from __future__ import annotations

import builtins
import json
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turnwise.tools.sandbox.channel import Supervisor
from turnwise.tools.sandbox.core import (
    MIB,
    Backend,
    Ended,
    ExecResult,
    FileInfo,
    Sandbox,
    SandboxError,
    SandboxImage,
    SandboxLimits,
)
from turnwise.tools.sandbox.files import Entry, Layer, encode
from turnwise.tools.sandbox.seccomp import compiled

_STACK = 12  # layers of a snapshot; above it they are joined into one
PATHS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LiveSandbox(Sandbox):
    """See :class:`turnwise.tools.sandbox.core.Sandbox`. ``destroy`` frees what the backend made; it runs once,
    also when the sandbox is forgotten or the interpreter ends."""

    def __init__(
        self,
        backend: Backend,
        image: SandboxImage,
        limits: SandboxLimits,
        supervisor: Supervisor,
        *,
        environment: Mapping[str, str],
        workdir: str,
        destroy: Callable[[], None],
    ) -> None:
        self.image, self.limits, self.workdir = SandboxImage(image.root, (), image.env), limits, workdir
        self.backend, self._supervisor, self._environment = backend, supervisor, dict(environment)
        self._finish = weakref.finalize(self, _close, supervisor, destroy)

    def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float | None = None,
        output: int | None = None,
    ) -> ExecResult:
        limits = self.limits
        seconds = min(limits.seconds, timeout if timeout is not None else limits.seconds)
        asked: dict[str, Any] = {
            "argv": [str(word) for word in argv],
            "cwd": cwd,
            "env": {**self._environment, **self.image.env, **(env or {})},
            "output": output if output is not None else limits.output,
            "flood": limits.flood,
            "seconds": seconds,
        }
        if not asked["argv"]:
            raise ValueError("exec needs a program")
        header, payload = self._supervisor.ask("run", stdin, timeout=seconds, **asked)
        return _result(header, payload)

    def read(self, path: str, *, limit: int = 16 * MIB) -> bytes:
        return self._supervisor.ask("read", path=path, limit=limit, offset=0).payload

    def write(self, path: str, data: str | bytes, *, mode: int | None = None) -> None:
        raw = data.encode() if isinstance(data, str) else data
        self._supervisor.ask("write", raw, path=path, mode=mode)

    def list(self, path: str = "", *, depth: int = 1, limit: int = 1000) -> tuple[FileInfo, ...]:
        rows = json.loads(self._supervisor.ask("list", path=path, depth=depth, limit=limit).payload)
        return tuple(FileInfo(*row) for row in rows)

    def remove(self, path: str) -> None:
        self._supervisor.ask("remove", path=path)

    def snapshot(self) -> SandboxImage:
        answer = self._supervisor.ask("capture")
        if answer.header["entries"]:
            layers = (*self.image.layers, Layer(answer.payload))
            self.image = SandboxImage(self.image.root, _joined(layers), self.image.env)
        return self.image

    def restore(self, image: SandboxImage) -> None:
        if image.root != self.image.root:
            raise SandboxError(
                f"This sandbox has the root {self.image.root}, the image {image.root}.",
                "Start a sandbox from the image instead.",
            )
        self._supervisor.ask("clear")
        self.fill(image)

    def fill(self, image: SandboxImage) -> None:
        """Unpack the layers of an image into empty folders."""
        for layer in image.layers:
            self._supervisor.ask("apply", layer.blob)
        self._supervisor.ask("agree")
        self.image = image

    def fork(self) -> Sandbox:
        return self.backend.start(self.snapshot(), self.limits)

    def close(self) -> None:
        self._finish()


def start_live(
    backend: Backend, image: SandboxImage, limits: SandboxLimits, make: Callable[[], LiveSandbox]
) -> LiveSandbox:
    """A sandbox from ``make``, filled; freed again where that fails."""
    sandbox = make()
    try:
        sandbox.fill(image)
    except BaseException:
        sandbox.close()
        raise
    return sandbox


def settings(
    folders: Mapping[str, str], limits: SandboxLimits, *, isolated: bool, **more: builtins.object
) -> str:
    """Write the settings that a supervisor is sent at its start."""
    rlimits = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": limits.file_size, "RLIMIT_NOFILE": 1024}
    extra = more.pop("rlimits", {})
    assert isinstance(extra, dict)
    told = {
        "owner": os.getpid(),
        "folders": folders,
        "isolated": isolated,
        "rlimits": {**rlimits, **extra},
        **more,
    }
    return json.dumps({**told, "filter": compiled().hex() if isolated else ""})


def _close(supervisor: Supervisor, destroy: Callable[[], None]) -> None:
    supervisor.close()
    destroy()


def _result(header: Mapping[str, Any], payload: bytes) -> ExecResult:
    parts, at = [], 0
    for length in header["parts"]:
        parts.append(payload[at : at + length])
        at += length
    out, err = header["totals"]
    stdout, stderr = _stream(parts[0], parts[1], out), _stream(parts[2], parts[3], err)
    cut = out > len(parts[0]) + len(parts[1]) or err > len(parts[2]) + len(parts[3])
    ended = Ended[header["ended"].upper()]
    return ExecResult(header["code"], stdout, stderr, ended, out, err, cut, header["seconds"])


def _stream(head: bytes, tail: bytes, total: int) -> bytes:
    left_out = total - len(head) - len(tail)
    return head + (f"\n[… {left_out} bytes left out …]\n".encode() if left_out else b"") + tail


def _joined(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The same files in fewer layers, once there are many: the first stays as it is, for it is shared."""
    if len(layers) <= _STACK:
        return layers
    rows: dict[tuple[str, bool], tuple[Entry, bytes]] = {}  # by path; what is gone comes before what is there
    for layer in layers[1:]:
        for entry in layer.entries:
            if entry.kind == "gone":
                for key in [key for key in rows if f"{key[0]}/".startswith(f"{entry.path}/")]:
                    del rows[key]
            content = layer.contents[entry.path] if entry.kind == "file" else b""
            rows[entry.path, entry.kind != "gone"] = (entry, content)
    return (layers[0], Layer(encode(rows[key] for key in sorted(rows))))
