"""Whether a repair is one, judged where the agent never was: a fresh sandbox, with the tests as they were.

Of what the agent leaves, only files of the package itself are taken. Tests, conftest.py, configuration, new modules
beside the package and everything that ran before stay behind. SWE-bench's rules then decide: every
``fail_to_pass`` passes, every ``pass_to_pass`` passes or is skipped, a missing test has failed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import NamedTuple

from turnwise.envs.swe.guard import suspicions
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.suite import NO_ANSWER, Run, run_suite, start
from turnwise.errors import VerifierError
from turnwise.tools.sandbox.core import Backend, SandboxError

_F2P = ("pass", "xfail")
_P2P = ("pass", "xfail", "skip")


class Verdict(NamedTuple):
    """What the tests say. ``failed`` and ``broken`` are the tests of the two lists that do not pass; ``why``: a word."""

    resolved: bool
    failed: tuple[str, ...]
    broken: tuple[str, ...]
    why: str
    seconds: float = 0.0


def accepted(instance: Instance, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The repository that is judged: as it was, but for the package's own files, which are the agent's."""
    package = instance.source
    kept = {path: data for path, data in instance.fixed().items() if not package.is_source(path)}
    return kept | {path: data for path, data in files.items() if _is_taken(instance, path)}


def grade(backend: Backend, instance: Instance, files: Mapping[str, bytes], *, guard: bool = True) -> Verdict:
    """Judge the files that an agent leaves (by path, regular files only).

    Raises:
        VerifierError: no judgement could be made, and it was not the code's doing: the true repair fails as well.
        SandboxError: no sandbox can be started.
    """
    judged, broken, fixed = accepted(instance, files), instance.broken(), instance.fixed()
    everything = Verdict(False, instance.fail_to_pass, (), "nothing was changed")
    if judged == broken:
        return everything
    if guard and (found := suspicions(broken, judged, fixed)):
        return everything._replace(why=f"suspicious: {', '.join(found[:5])}")
    run = _run(backend, instance, judged)
    verdict = _verdict(instance, run)
    if not run.complete and judged != fixed:
        control = _verdict(instance, _run(backend, instance, fixed))
        if not control.resolved:
            raise VerifierError(
                f"The tests of {instance.package} do not run: {verdict.why}; nor do they with the true repair.",
                "Look at the machine (memory, load); `turnwise doctor` says whether sandboxes work.",
            )
    if not run.complete and judged == fixed:
        raise VerifierError(
            f"The true repair could not be judged: {verdict.why}.", "Is the machine very busy?"
        )
    return verdict


def _verdict(instance: Instance, run: Run) -> Verdict:
    def lacking(names: tuple[str, ...], good: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if name not in run.tests or run.tests[name].status not in good)

    failed, broken = lacking(instance.fail_to_pass, _F2P), lacking(instance.pass_to_pass, _P2P)
    if not run.answered:
        why = "the tests gave no answer"
    elif run.timed_out:
        why = "the tests took too long"
    elif not run.complete:
        why = "the tests did not come to their end"
    elif run.tampered:
        why = f"forged: {run.tampered}"
    elif failed or broken:
        why = f"{len(failed)} of {len(instance.fail_to_pass)} still fail, {len(broken)} others fail now"
    else:
        why = "all tests pass"
    good = run.complete and not run.tampered and not failed and not broken
    return Verdict(good, failed, broken, why, run.seconds)


def _run(backend: Backend, instance: Instance, files: Mapping[str, bytes]) -> Run:
    """Run the suite. Where two sandboxes fail over it, that is the answer: the true repair tells whose doing it was."""
    for _ in range(2):
        with start(backend, files) as sandbox, contextlib.suppress(SandboxError):
            return run_suite(sandbox, instance.source, seconds=10 + 10 * instance.seconds)
    return NO_ANSWER


def _is_taken(instance: Instance, path: str) -> bool:
    package = instance.source
    compiled = path.endswith((".pyc", ".so", ".pth")) or "__pycache__" in path
    return package.is_source(path) and not compiled
