"""Reads a Dockerfile as far as it can be carried out in a sandbox: what it copies, its variables, its folder and its commands."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
_NAME = re.compile(r"\$\{?(\w+)\}?")


class DockerStep(NamedTuple):
    """An instruction; ``body`` is what stands in its here-document."""

    word: str
    rest: str
    body: str = ""


class ReadDockerfile(NamedTuple):
    """A Dockerfile as it is read: its base, its steps in order, its working folder and its variables at the end."""

    base: str
    steps: tuple[DockerStep, ...]
    several: bool


def read_dockerfile(text: str) -> ReadDockerfile:
    """The steps of a Dockerfile.

    >>> read_dockerfile("FROM python:3.11\\nWORKDIR /app\\nRUN a && \\\\\\n  b").steps[1]
    DockerStep(word='RUN', rest='a &&    b', body='')
    """
    steps = [*_steps(text)]
    bases = [
        step.rest.split()[-1 if step.rest.split()[0].startswith("--") else 0]
        for step in steps
        if step.word == "FROM" and step.rest
    ]
    return ReadDockerfile(
        bases[0] if bases else "", tuple(step for step in steps if step.word != "FROM"), len(bases) > 1
    )


def _steps(text: str) -> Iterator[DockerStep]:
    lines = iter(text.replace("\r\n", "\n").split("\n"))
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        whole = line.strip()
        while whole.endswith("\\"):
            more = next(lines, "")
            if more.lstrip().startswith("#"):
                continue
            whole = f"{whole[:-1]} {more.rstrip()}"
        word, _, rest = whole.partition(" ")
        body: list[str] = []
        if word.upper() in ("RUN", "COPY", "ADD") and (mark := _HEREDOC.search(rest)):
            for more in lines:
                if more.strip() == mark.group(1):
                    break
                body.append(more)
        yield DockerStep(word.upper(), rest.strip(), "\n".join(body) + "\n" if body else "")


def words(rest: str) -> list[str]:
    """The words of COPY or ADD without its options, in either form.

    >>> words("--chown=me a b /app/"), words('["a b", "/app"]')
    (['a', 'b', '/app/'], ['a b', '/app'])
    """
    if rest.startswith("["):
        try:
            return [str(word) for word in json.loads(rest)]
        except ValueError:
            return []
    try:
        return [word for word in shlex.split(rest) if not word.startswith("--")]
    except ValueError:
        return [word for word in rest.split() if not word.startswith("--")]


def assignments(rest: str) -> Iterator[tuple[str, str]]:
    """Names and values of ENV or ARG.

    >>> dict(assignments('A=1 B="x y"')), dict(assignments("PATH /bin")), dict(assignments("V"))
    ({'A': '1', 'B': 'x y'}, {'PATH': '/bin'}, {})
    """
    if "=" not in rest.split(" ", 1)[0]:
        name, _, value = rest.partition(" ")
        if value:
            yield name, value.strip()
        return
    try:
        pairs = shlex.split(rest)
    except ValueError:
        pairs = rest.split()
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if sign:
            yield name, value


def filled(text: str, variables: dict[str, str]) -> str:
    """A text with its variables filled in."""
    return _NAME.sub(lambda found: variables.get(found.group(1), ""), text)
