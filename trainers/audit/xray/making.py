"""Carries out a Dockerfile in a sandbox, as far as that can be done without Docker."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from turnwise.tools.sandbox.core import MIB, ExecResult, SandboxImage
from turnwise.trainers.audit.xray.core import quoted
from turnwise.trainers.audit.xray.dockerfile import DockerStep, ReadDockerfile, assignments, filled, words

_OTHERS = re.compile(
    r"permission denied|read-only file system|operation not permitted|command not found|unable to locate|not found$",
    re.IGNORECASE | re.MULTILINE,
)
_PLAIN = re.compile(
    r"^(?:docker\.io/)?(?:library/)?(?:python|debian|ubuntu|bash|buildpack-deps)(?::|$)|ghcr\.io/laude-institute/t-bench/(?:python|ubuntu)"
)


class StartedTask(NamedTuple):
    """The image that a task begins with; ``setup`` says how it breaks, ``unjudged`` why it cannot be made here. ``tests`` are the places of the
    files whose checks count."""

    image: SandboxImage | None
    cwd: str
    variables: Mapping[str, str]
    setup: str = ""
    unjudged: str = ""
    tests: Sequence[str] = ("/work/tests",)


class _Desk(Protocol):
    """The sandbox in which a Dockerfile is carried out."""

    def put(self, found: Mapping[str, bytes], into: str) -> ExecResult: ...

    def shell(self, script: str, cwd: str, variables: Mapping[str, str], seconds: float) -> ExecResult: ...

    def asked_network(self) -> list[dict[str, Any]]: ...


class DockerfileSteps:
    """A Dockerfile as it is carried out."""

    def __init__(self, desk: _Desk, context: Path, built: ReadDockerfile) -> None:
        self._desk, self._context, self._built = desk, context, built
        self.cwd, self.variables, self._fetched = "/app", dict[str, str](), False

    def carry_out(self, step: DockerStep) -> StartedTask | None:
        """Do one step; what hinders it, if anything does."""
        if step.word == "WORKDIR":
            asked = filled(step.rest, self.variables).strip("\"'")
            self.cwd = asked if asked.startswith("/") else f"{self.cwd.rstrip('/')}/{asked}"
            self.cwd = self.cwd if self.cwd.strip("/") else "/app"
            return self._ran("true", "WORKDIR")
        if step.word in ("ENV", "ARG"):
            self.variables.update(
                (name, filled(value, self.variables))
                for name, value in assignments(step.rest)
                if name != "PATH"
            )
        if step.word in ("COPY", "ADD"):
            return self._copy(step)
        if step.word == "RUN":
            return self._ran(step.body or _command(step.rest), f"RUN {quoted(step.rest, 80)}")
        return None

    def _copy(self, step: DockerStep) -> StartedTask | None:
        if "--from=" in step.rest:
            return self._cannot("it copies from another image")
        *sources, to = [filled(word, self.variables) for word in words(step.rest)] or ["", ""]
        if to in (".", "./", ""):
            to = f"{self.cwd}/"
        elif not to.startswith("/"):
            to = f"{self.cwd}/{to}"
        if step.body:
            return self._written({Path(to).name: step.body.encode()}, str(Path(to).parent))
        for source in sources:
            if "://" in source:
                self._fetched = True
                continue
            found = (
                sorted(self._context.glob(source.strip("/").removeprefix("./")))
                if source.strip("./")
                else [self._context]
            )
            if not found:
                return StartedTask(
                    None,
                    self.cwd,
                    self.variables,
                    setup=f"the Dockerfile copies {source}, which is not in {self._context.name}/",
                )
            for one in found:
                as_folder = to.endswith("/") or len(sources) > 1 or len(found) > 1 or one.is_dir()
                where, name = (to, one.name) if as_folder else (str(Path(to).parent), Path(to).name)
                if said := self._written(_below(one, name), where):
                    return said
        return None

    def _written(self, found: Mapping[str, bytes], into: str) -> StartedTask | None:
        done = self._desk.put(found, into)
        return None if done.ok else self._cannot(f"its Dockerfile writes to {into}")

    def _ran(self, script: str, what: str) -> StartedTask | None:
        done = self._desk.shell(f"set -o pipefail\n{script}", self.cwd, self.variables, 120.0)
        asked = self._desk.asked_network()
        self._fetched = self._fetched or any("net" in one or "install" in one for one in asked)
        if done.ok or self._fetched:
            return None
        said = quoted((done.err or done.out)[-300:], 200)
        if _OTHERS.search(done.err) and not (
            _PLAIN.match(self._built.base) and "command not found" in done.err
        ):
            return self._cannot(f"{what} ends with {done.exit_code}: {said}")
        return StartedTask(
            None,
            self.cwd,
            self.variables,
            setup=f"{what} of the Dockerfile ends with {done.exit_code}: {said or 'nothing said'}",
        )

    def _cannot(self, why: str) -> StartedTask:
        return StartedTask(
            None, self.cwd, self.variables, unjudged=f"its image cannot be made here without Docker: {why}"
        )


def _command(rest: str) -> str:
    if rest.startswith("["):
        return shlex.join(words(rest))
    return re.sub(r"^(?:--\S+\s+)+", "", rest)


def _below(one: Path, name: str) -> dict[str, bytes]:
    if one.is_dir():
        return {
            str(path.relative_to(one)): path.read_bytes()
            for path in sorted(one.rglob("*"))
            if path.is_file() and path.stat().st_size < 16 * MIB
        }
    return {name: one.read_bytes()}
