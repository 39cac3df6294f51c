"""Requirements of sandboxes: every check of the conformance suite, or a reason for not claiming it."""

from __future__ import annotations

from collections.abc import Callable

from turnwise.registry import Component
from turnwise.requirements import NotTested, Requirements, require, says_what_it_is
from turnwise.tools.sandbox.checks import CHECKS, laboratory, run_check
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.registry import get_backend


def _working(entry: Component) -> Backend:
    backend = get_backend(entry.name, unsafe=True)
    status = backend.status()
    if not status.ok:
        raise NotTested(f"It does not work here: {status.detail}. {status.remedy}")
    return backend


def declares_what_it_lacks(entry: Component) -> str:
    """``lacks`` names checks of the suite with reasons; who declares to isolate lacks none."""
    lacks = get_backend(entry.name, unsafe=True).lacks
    require(set(lacks) <= set(CHECKS), f"There are no checks {sorted(set(lacks) - set(CHECKS))}.")
    require(all(lacks.values()), "A reason is missing.")
    require(not (entry.isolates and lacks), "It declares to isolate, and to lack checks.")
    return f"{len(lacks)} of {len(CHECKS)} checks are not claimed"


def _group(group: str) -> Callable[[Component], str]:
    def test(entry: Component) -> str:
        with laboratory(_working(entry)) as lab:
            found = [run_check(lab, check) for check in CHECKS.values() if check.group == group]
        failed = [f"{outcome.check.name}: {outcome.detail}" for outcome in found if outcome.result == "FAIL"]
        require(not failed, "; ".join(failed))
        return f"{sum(outcome.result == 'pass' for outcome in found)} of {len(found)} checks pass"

    test.__doc__ = f"Each check of the group {group!r} passes, or is among those that it declares to lack."
    return test


REQUIREMENTS: dict[str, Requirements] = {
    "sandbox": {
        "says what it is": says_what_it_is,
        "declares what it lacks": declares_what_it_lacks,
        **{f"conforms: {group}": _group(group) for group in dict.fromkeys(c.group for c in CHECKS.values())},
    }
}
