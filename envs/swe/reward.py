"""Judges a fix in fresh processes, which the agent never saw, with the original tests and with their twins.

Of what the agent leaves, only files of the package itself are taken. Tests, conftest.py, configuration, new modules
beside the package and everything that ran before stay behind. Every ``fail_to_pass`` and ``pass_to_pass`` test must pass,
a missing one has failed; every twin must fail (:mod:`turnwise.envs.swe.rounds`); and most probes must come to what they
come to with the true repair (:mod:`turnwise.envs.swe.probes`). No text of the change is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from random import SystemRandom
from typing import NamedTuple, TypeVar

from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.probes import agreeing
from turnwise.envs.swe.rounds import SuiteRound, draw_rounds
from turnwise.envs.swe.suite import NO_ANSWER, SuiteRun, run_suite, start
from turnwise.errors import VerifierError
from turnwise.tools.sandbox.core import Backend, Sandbox, SandboxError, SandboxImage

_T = TypeVar("_T")
LEAST_SECONDS = 10.0
"""Seconds that the tests of a task may take, besides ten times what they take when they pass."""


class RepairVerdict(NamedTuple):
    """The tests' verdict. ``failed`` and ``broken``: tests of the two lists that do not pass, or that prove nothing.

    ``why`` is a word; ``cpu`` is what all runs took of the processor, in seconds.
    """

    resolved: bool
    failed: tuple[str, ...]
    broken: tuple[str, ...]
    why: str
    seconds: float = 0.0
    cpu: float = 0.0


class _Outcome(NamedTuple):
    """Outcome of a round.

    ``wrong`` tests do not pass; ``proofless`` ones pass as their twins, which nobody may.
    """

    run: SuiteRun
    wrong: frozenset[str]
    proofless: frozenset[str]

    @property
    def is_good(self) -> bool:
        return self.run.complete and not self.run.tampered and not self.wrong and not self.proofless


def accepted(instance: Instance, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The repository that is judged: as it was, but for the package's own files, which are the agent's."""
    package = instance.source
    kept = {path: data for path, data in instance.fixed().items() if not package.is_source(path)}
    return kept | {path: data for path, data in files.items() if _is_taken(instance, path)}


def grade(
    backend: Backend, instance: Instance, files: Mapping[str, bytes], *, count: bool = False
) -> RepairVerdict:
    """Judge the files that an agent leaves (by path, regular files only).

    ``count``: go on where the verdict stands already, so that ``failed`` and ``broken`` are complete.

    Raises:
        VerifierError: no judgement could be made, and it was not the code's doing: the true repair fails as well.
        SandboxError: no sandbox can be started.
    """
    judged, fixed = accepted(instance, files), dict(instance.fixed())
    if judged == instance.broken():
        return RepairVerdict(False, instance.fail_to_pass, (), "nothing was changed")
    bits = {"bits": 1} if instance.probes else {}  # what is compared outside needs no luck to be ruled out
    rounds = draw_rounds(
        instance.twins, instance.fail_to_pass, instance.pass_to_pass, fixed, SystemRandom(), **bits
    )
    with _Judge(backend, instance) as judge:
        outcomes: list[_Outcome] = []
        for one in rounds:
            outcomes.append(judge.play(one, judged))
            if not outcomes[-1].run.complete or not (count or outcomes[-1].is_good):
                break
        verdict = _verdict(instance, outcomes)
        if verdict.resolved and instance.probes:
            agreed = judge.agreeing(judged)
            if 2 * agreed <= len(instance.probes):
                why = f"forged: for other inputs than the tests', {agreed} of {len(instance.probes)} values are right"
                verdict = verdict._replace(resolved=False, failed=instance.fail_to_pass, why=why)
        if not outcomes[-1].run.complete:
            _blame(instance, judge, verdict, is_fixed=judged == fixed)
    return verdict


def _blame(instance: Instance, judge: _Judge, verdict: RepairVerdict, *, is_fixed: bool) -> None:
    """A suite that does not come to its end is the code's doing, if it does with the true repair.

    Raises:
        VerifierError: it does not.
    """
    if is_fixed:
        raise VerifierError(
            f"The true repair could not be judged: {verdict.why}.", "Is the machine very busy?"
        )
    plain = draw_rounds((), instance.fail_to_pass, instance.pass_to_pass, {}, SystemRandom())
    control = _verdict(instance, [judge.play(plain[0], dict(instance.fixed()))])
    if not control.resolved:
        raise VerifierError(
            f"The tests of {instance.package} do not run: {verdict.why}; nor do they with the true repair.",
            "Look at the machine (memory, load); `turnwise doctor` says whether sandboxes work.",
        )


class _Judge(contextlib.AbstractContextManager["_Judge"]):
    """One sandbox, in which nothing of one run reaches the next: processes are ended, files put back."""

    def __init__(self, backend: Backend, instance: Instance) -> None:
        self._backend, self._instance = backend, instance
        self._box: Sandbox | None = None

    def __exit__(self, *_: object) -> None:
        self._close()

    def play(self, one: SuiteRound, files: Mapping[str, bytes]) -> _Outcome:
        """Run a round with these files."""
        contents = {**files, **{path: text.encode() for path, text in one.texts.items()}}
        seconds = LEAST_SECONDS + 10 * self._instance.seconds
        source = self._instance.source
        run = self._within(contents, lambda box: run_suite(box, source, only=one.only, seconds=seconds))
        return _compared(one, run or NO_ANSWER)

    def agreeing(self, files: Mapping[str, bytes]) -> int:
        """Count the task's probes that these files answer as the true repair does."""
        instance = self._instance
        return self._within(files, lambda box: agreeing(box, instance.source, instance.probes)) or 0

    def _within(self, contents: Mapping[str, bytes], act: Callable[[Sandbox], _T]) -> _T | None:
        """Do something in the sandbox, or in another where that fails; None where two fail over it.

        That is an answer: the true repair tells whose doing it was.
        """
        for _ in range(2):
            is_fresh = self._box is None
            box = self._box = self._box or start(self._backend, self._instance.source, contents)
            try:
                if not is_fresh:
                    box.restore(SandboxImage.of(dict(contents), root=self._instance.source.root))
                return act(box)
            except SandboxError:
                self._close()
        return None

    def _close(self) -> None:
        if self._box is not None:
            self._box.close()
            self._box = None


def _compared(one: SuiteRound, run: SuiteRun) -> _Outcome:
    wrong: set[str] = set()
    proofless: set[str] = set()
    for name, (test, fails) in one.expected.items():
        status = run.tests[name].status if name in run.tests else ""
        if not fails and status != "pass":
            wrong.add(test)
        if fails and status not in ("fail", "error"):
            proofless.add(test)
    return _Outcome(run, frozenset(wrong), frozenset(proofless))


def _verdict(instance: Instance, outcomes: Sequence[_Outcome]) -> RepairVerdict:
    def lacking(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if any(name in one.wrong | one.proofless for one in outcomes))

    failed, broken = lacking(instance.fail_to_pass), lacking(instance.pass_to_pass)
    last = next((one for one in outcomes if not one.run.complete or one.run.tampered), outcomes[-1]).run
    proofless = frozenset[str]().union(*(one.proofless for one in outcomes))
    if not last.answered:
        why = "the tests gave no answer"
    elif last.timed_out:
        why = "the tests took too long"
    elif not last.complete:
        why = "the tests did not come to their end"
    elif last.tampered:
        why = f"forged: {last.tampered}"
    elif any(one.wrong for one in outcomes):
        why = f"{len(failed)} of {len(instance.fail_to_pass)} still fail, {len(broken)} others fail now"
    elif proofless:
        why = f"forged: {len(proofless)} tests pass whatever they expect"
    else:
        why = "all tests pass"
    seconds, cpu = (sum(getattr(one.run, name) for one in outcomes) for name in ("seconds", "cpu"))
    return RepairVerdict(all(one.is_good for one in outcomes), failed, broken, why, seconds, cpu)


def _is_taken(instance: Instance, path: str) -> bool:
    package = instance.source
    compiled = path.endswith((".pyc", ".so", ".pth")) or "__pycache__" in path
    return package.is_source(path) and not compiled
