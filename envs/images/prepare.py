"""The image that a task starts from: one that the daemon has, or one that is built from the task's folder, without a network.

Nothing is pulled: what is not there is named, with what to do. To each image two links are added, ``/tests`` and ``/logs``, which lead
to ``/tmp``, since a container's own root is read-only here.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from turnwise.envs.images.tasks import ImageTask
from turnwise.envs.swe.importers import services_beside
from turnwise.errors import EnvError, InfraError
from turnwise.tools.sandbox.backends.docker import DockerBackend
from turnwise.tools.sandbox.core import Root, SandboxImage
from turnwise.tools.sandbox.files import Layer

_RECIPE = 1  # raise when what is added changes
_LINKS = {"tests": "/tmp/tests", "logs": "/tmp/logs"}
_FROM = re.compile(r"^\s*FROM\s+(?:--platform=\S+\s+)?(\S+)(?:\s+AS\s+(\S+))?", re.IGNORECASE | re.MULTILINE)


def start_of(backend: DockerBackend, task: ImageTask) -> SandboxImage:
    """The files that a task begins with, in its image.

    Raises:
        InfraError: the image is not there and cannot be built.
        EnvError: the task needs other containers beside this one.
    """
    reference = _linked(backend, _base(backend, task))
    about = backend.client().images.get(reference).attrs["Config"]
    named = task.workdir or about.get("WorkingDir") or ""
    workdir = named if named.strip("/") else "/app"
    variables = dict(word.split("=", 1) for word in about.get("Env") or () if not word.startswith("PATH="))
    root = Root(reference=reference, workdir=workdir)
    return SandboxImage(root, (_files(backend, root),), {**variables, "TEST_DIR": "/tests"})


def _base(backend: DockerBackend, task: ImageTask) -> str:
    """The task's own image."""
    if not task.context:
        return _there(backend, task.reference)
    context = Path(task.context)
    file = context / "Dockerfile"
    if not file.is_file():
        raise InfraError(f"{context} has no Dockerfile any more.", "Put the task's folder back.")
    if beside := services_beside(context):
        raise EnvError(
            f"The task of {context} needs other containers beside its own: {', '.join(beside)}.",
            f"One container is played here. Harbor plays it: harbor run -p {context.parent}",
        )
    tag = f"turnwise-task:{_digest(context)}"
    if _has(backend, tag):
        return tag
    stages: set[str] = {"scratch"}
    for base, name in _FROM.findall(file.read_text("utf-8")):
        if base not in stages:
            _there(backend, base)
        stages.add(name)
    from docker.errors import BuildError, DockerException

    try:
        backend.client().images.build(path=str(context), tag=tag, network_mode="none", rm=True, pull=False)
    except BuildError as error:
        raise InfraError(
            f"{file} does not build here: {str(error)[:300]}.",
            "There is no network in a build: take a base that has what its RUN lines fetch, or load the built image and name it.",
        ) from None
    except DockerException as error:
        raise InfraError(
            f"{file} could not be built: {str(error)[:300]}.", "Run `turnwise doctor`."
        ) from None
    return tag


def _there(backend: DockerBackend, reference: str) -> str:
    if not _has(backend, reference):
        raise InfraError(
            f"There is no image {reference!r} on this machine.",
            f"Get it where there is a network (docker pull {reference}; docker save), then: docker load.",
        )
    return reference


def _has(backend: DockerBackend, reference: str) -> bool:
    from docker.errors import ImageNotFound

    try:
        return bool(backend.client().images.get(reference))
    except ImageNotFound:
        return False


def _digest(context: Path) -> str:
    found = hashlib.sha256(str(_RECIPE).encode())
    for path in sorted(context.rglob("*")):
        if path.is_file():
            found.update(f"{path.relative_to(context)}\0{path.stat().st_mode}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def _linked(backend: DockerBackend, reference: str) -> str:
    """The image with the two links, made once."""
    client = backend.client()
    key = hashlib.sha256(f"{_RECIPE} {client.images.get(reference).id}".encode()).hexdigest()[:16]
    tag = f"turnwise-linked:{key}"
    if _has(backend, tag):
        return tag
    with backend.container(reference) as container:
        container.put_archive("/", _links(container))
        container.commit(repository="turnwise-linked", tag=key)
    return tag


def _links(container: Any) -> bytes:
    """An archive of the links, but for those whose place is taken."""
    from docker.errors import NotFound

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, target in _LINKS.items():
            try:
                container.get_archive(f"/{name}")
            except NotFound:
                about = tarfile.TarInfo(name)
                about.type, about.linkname = tarfile.SYMTYPE, target
                archive.addfile(about)
    return buffer.getvalue()


@lru_cache(maxsize=8)
def _files(backend: DockerBackend, root: Root) -> Layer:
    """Return the files in the image's working folder."""
    from docker.errors import NotFound

    try:
        return backend.files_of(root, root.workdir)
    except NotFound:
        return Layer.of({})
