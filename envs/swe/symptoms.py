"""Issues of people who cannot show their code: what comes out, what should, and what it was about; no call, no test."""

from __future__ import annotations

import re
from collections.abc import Mapping

from turnwise.envs.swe.issue import said_of
from turnwise.envs.swe.packages import Package
from turnwise.envs.swe.suite import TestResult
from turnwise.envs.swe.twins import function_of

_MOST, _LEAST, _LONGEST = 3, 24, 12  # symptoms, characters of one that says enough, lines of one
_DULL = re.compile(r"assert (False|None|True)\b|^assert [\w.]+\($|^$|NotImplementedError")


def write_symptoms(package: Package, failures: Mapping[str, TestResult]) -> str:
    """An issue that shows what failing checks said, and names what they are about; empty where they say too little.

    A reader learns values, not where they come from: neither the test's code nor a function's name as it is written.
    """
    names = sorted(failures, key=lambda name: (len(failures[name].detail), name))
    seen: set[str] = set()
    shown: list[str] = []
    for name in names:
        said = "\n".join(said_of(failures[name].detail).splitlines()[:_LONGEST])
        if function_of(name) in seen or len(said) < _LEAST or _DULL.search(said.partition("\n")[0]):
            continue
        seen.add(function_of(name))
        shown.append(f"{len(shown) + 1}. {_about(name)}:\n\n```\n{said}\n```")
        if len(shown) == _MOST:
            break
    if not shown:
        return ""
    first = next(name for name in names if function_of(name) in seen)
    opening = (
        f"Since a change to {package.name} {package.version} some of what we do with it goes wrong. The code that "
        "calls it is not ours to show; our checks print what came out and what should have:"
    )
    parts = [f"# {package.name}: wrong result ({_about(first)})", opening, *shown]
    more = len({function_of(name) for name in failures}) - len(shown)
    if more > 0:
        parts.append(f"{more} other checks fail as well.")
    return "\n\n".join([*parts, "All of them passed before, and nothing else may change."])


def _about(test: str) -> str:
    """A test in words: ``tests/test_spans.py::TestMerge::test_touching[3-4]`` is about spans, merge, touching (3-4)."""
    path, *names = test.partition("[")[0].split("::")
    case = test.partition("[")[2].removesuffix("]")
    stem = path.rpartition("/")[2].removesuffix(".py")
    words = [_words(part) for part in (stem, *names)]
    told = ", ".join(word for word in words if word)
    return f"{told} ({case[:60]})" if case else told


def _words(name: str) -> str:
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", name)
    return " ".join(word for word in parted.lower().split() if word not in ("test", "tests"))
