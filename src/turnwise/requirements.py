"""Requirements of every component of a kind, as tests that run on any of them: ours, a plugin's, or one in a file.

Each kind (:data:`turnwise.kinds.KINDS`) names the module with its ``REQUIREMENTS``: what is required, in words, and
the function that tests it. ``turnwise check KIND/NAME`` and our own tests run the same functions.
"""

from __future__ import annotations

import doctest
import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from turnwise.blame import describe
from turnwise.kinds import KINDS
from turnwise.registry import Component

Requirements: TypeAlias = Mapping[str, Callable[[Component], str | None]]
"""By what is required: the test, which may return what it saw and raises :class:`BrokenRequirement`."""


class BrokenRequirement(Exception):
    """A component does not do what is required of its kind; the text says what was seen."""


class NotTested(Exception):
    """A requirement cannot be tested here; the text says why."""


def require(holds: object, otherwise: str) -> None:
    """Raise :class:`BrokenRequirement` unless ``holds``."""
    if not holds:
        raise BrokenRequirement(otherwise)


class TestedRequirement(NamedTuple):
    """Result of a requirement's test: whether it is met (None: it could not be tested), and what was seen."""

    ok: bool | None
    detail: str


@dataclass(frozen=True)
class ComponentReport:
    """Findings about one component, requirement by requirement."""

    kind: str
    name: str
    package: str
    results: Mapping[str, TestedRequirement]

    @property
    def ok(self) -> bool:
        return all(result.ok is not False for result in self.results.values())

    def to_json(self) -> dict[str, Any]:
        results = {name: result._asdict() for name, result in self.results.items()}
        about = {"kind": self.kind, "name": self.name, "package": self.package}
        return {**about, "ok": self.ok, "requirements": results}


def requirements(kind: str) -> Requirements:
    """Return the requirements of a kind."""
    return importlib.import_module(KINDS[kind].tests).REQUIREMENTS[kind]


def check_component(entry: Component) -> ComponentReport:
    """Test every requirement of its kind on a component; what one of them raises is its own result."""
    results = {name: _result(test, entry) for name, test in requirements(entry.kind).items()}
    return ComponentReport(entry.kind, entry.name, entry.package, results)


def _result(test: Callable[[Component], str | None], entry: Component) -> TestedRequirement:
    try:
        return TestedRequirement(True, test(entry) or "")
    except NotTested as why:
        return TestedRequirement(None, str(why))
    except BrokenRequirement as broken:
        return TestedRequirement(False, str(broken))
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a component may raise anything)
        return TestedRequirement(False, describe(error))


def says_what_it_is(entry: Component) -> None:
    """A first line that says what it does."""
    require(len(entry.summary) > 10, "Its docstring's first line does not say what it is.")


def example_works(entry: Component) -> str:
    """Its docstring has an example, and the example gives what it says."""
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(verbose=False)
    names = vars(sys.modules[entry.module])
    examples = [test for test in finder.find(entry.target, entry.name, globs=dict(names)) if test.examples]
    require(examples, "Its docstring has no example (>>> …) with numbers worked out by hand.")
    said: list[str] = []
    for test in examples:
        runner.run(test, out=said.append)
    require(not runner.failures, " ".join(said[0].split())[:500] if said else "")
    return f"{runner.tries} lines"
