"""``turnwise check ENV``: does an environment meet each requirement of the contract (E1–E9)?

Works on any registered environment, ours or a third party's. Each requirement is tested by a function in
:mod:`turnwise.envs.check`; what it raises breaks the requirement too, never a crash of the checker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from turnwise.blame import FIX, describe, place, remedy
from turnwise.envs.check import core, play, requirements
from turnwise.envs.check.stray_state import diagnose
from turnwise.envs.check.walks import GIVEN
from turnwise.envs.live import LiveEnv
from turnwise.envs.registry import env_class, get_suite, is_suite, resolve
from turnwise.errors import DeadlineError, TurnwiseError
from turnwise.tasks.core import Json

REQUIREMENTS: Mapping[str, tuple[str, core.RequirementTest]] = {
    "E1": ("Reward components", requirements.reward_components),
    "E2": ("Ends", requirements.ends),
    "E3": ("Determinism", requirements.determinism),
    "E4": ("Fork", requirements.fork),
    "E5": ("State key", requirements.state_key),
    "E6": ("Gold and baselines", play.gold_and_baselines),
    "E7": ("Bad actions", play.bad_actions),
    "E8": ("Observations", play.observations),
    "E9": ("Plugin", play.plugin),
}
"""Each requirement's number, its name and its test."""


class RequirementResult(NamedTuple):
    """One requirement's verdict, and what was seen."""

    ok: bool
    detail: str


@dataclass(frozen=True)
class CheckReport:
    """The result of checking an environment, requirement by requirement."""

    env: str
    requirements: Mapping[str, RequirementResult]
    unseen: Sequence[str] = ()
    """Matters that could not be looked at, each with its reason."""

    @property
    def ok(self) -> bool:
        return all(result.ok for result in self.requirements.values())

    def to_json(self) -> dict[str, Json]:
        results = {name: result._asdict() for name, result in self.requirements.items()}
        return {"env": self.env, "ok": self.ok, "requirements": results, "unseen": list(self.unseen)}

    def __str__(self) -> str:
        lines = [
            f"{'✓' if result.ok else '✗'} {name} {result.detail}"
            for name, result in self.requirements.items()
        ]
        unseen = [f"– not seen: {each}" for each in self.unseen]
        return "\n".join([f"{self.env}: {'ok' if self.ok else 'BROKEN'}", *lines, *unseen])


def check_env(
    name: str,
    *,
    tasks: int = 0,
    quick: bool = False,
    only: Collection[str] = (),
    on_requirement: Callable[[], None] = lambda: None,
) -> CheckReport:
    """Test every requirement of the contract on an environment, or ``only`` some.

    ``name`` is its id, or where it is written (``path/to/file.py[:Class]`` or ``module:Class``), or a suite of it, which alone
    is played then (``harbor:FOLDER``).
    ``tasks`` is how many tasks of each split the gold script and the trivial baselines play; without it 50, or 10 where
    a world outside of the process takes its time. A ``quick`` check plays one task where the whole one plays several, and says
    what it left out. ``on_requirement`` is called after each requirement.

    Raises:
        NotFoundError: no environment has this id.
    """
    played = name if is_suite(name) else resolve(name)
    name = get_suite(played).env if is_suite(played) else played
    cls = env_class(name)
    slow = issubclass(cls, LiveEnv) or cls.fork_cost.dear
    few = core.QUICK if quick else core.FEW
    subject = core.Subject(name, cls, tasks or (3 if quick else 10 if slow else 50), played, few, [])
    if quick:
        subject.missed(f"all: each requirement was tested on {few} task; E6 on {subject.tasks} of each split")
    verdicts: dict[str, _Verdict] = {}
    for requirement, (_, test) in REQUIREMENTS.items():
        if requirement in only or not only:
            hung = next((verdict for verdict in verdicts.values() if verdict.hung), None)
            verdicts[requirement] = hung or _judge(test, subject)
            on_requirement()
    return CheckReport(played, _said_once(verdicts), tuple(subject.unseen))


class _Verdict(NamedTuple):
    """A requirement's verdict, and what breaks it: equal causes are reported once."""

    ok: bool
    detail: str
    cause: str = ""
    hung: bool = False  # then no other requirement is tested: each would hang as long


def _judge(test: core.RequirementTest, subject: core.Subject) -> _Verdict:
    try:
        return _Verdict(True, test(subject))
    except core.Broken as broken:
        raised = broken.__cause__
        if raised is not None:
            return _Verdict(False, str(broken), _cause(raised, subject))
        kept = diagnose(subject) if broken.unsteady else ""
        said = (
            f"{broken}: {kept}" if kept else f"{broken}. → {broken.remedy}" if broken.remedy else str(broken)
        )
        return _Verdict(False, said, kept or str(broken))
    except DeadlineError as error:
        return _Verdict(False, describe(error, subject.cls), str(error), hung=True)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (an environment may raise anything)
        said = describe(error, subject.cls)
        if isinstance(error, TurnwiseError):
            return _Verdict(False, said, _cause(error, subject))
        given = next((note for note in getattr(error, "__notes__", ()) if note.startswith(GIVEN)), "")
        fix = remedy(error)
        if given and fix == FIX:
            fix = "Mend that line, or raise ToolError(…) there if such an action means nothing."
        return _Verdict(False, f"{given and f'{given} raises '}{said} → {fix}", _cause(error, subject))


def _cause(error: BaseException, subject: core.Subject) -> str:
    """Return the key by which errors count as one: the message if it is Turnwise's, or the kind and the line."""
    if isinstance(error, TurnwiseError):
        return str(error)
    return f"{type(error).__name__} {place(error, subject.cls)}"


def _said_once(verdicts: Mapping[str, _Verdict]) -> dict[str, RequirementResult]:
    """The results; where one cause breaks several requirements, the first says it and names the others."""
    reported: dict[str, str] = {}
    also: dict[str, list[str]] = {}
    for requirement, verdict in verdicts.items():
        first = reported.setdefault(verdict.cause or requirement, requirement)
        also.setdefault(first, []).append(requirement)
    return {
        requirement: RequirementResult(
            verdict.ok, _detail(requirement, verdict, reported[verdict.cause or requirement], also)
        )
        for requirement, verdict in verdicts.items()
    }


def _detail(requirement: str, verdict: _Verdict, first: str, also: Mapping[str, Sequence[str]]) -> str:
    if requirement != first:
        return f"broken by the same cause as {first}"
    others = ", ".join(also[first][1:])
    return f"{verdict.detail} (also breaks {others})" if others else verdict.detail
