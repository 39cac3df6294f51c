"""The command that audits runs, episode logs, evaluations, sets of tasks, judges and environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult
from turnwise.cli.trust import NO_TRUST, OF_ENV, SUITE, TrustAsked
from turnwise.cli.xray import NO_XRAY, XrayAsked, failed, key_values, notes_of
from turnwise.errors import NotFoundError, TurnwiseError

if TYPE_CHECKING:
    from turnwise.console import SafeConsole
    from turnwise.trainers.audit.registry import AuditReport

Words = Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)]
Options = Annotated[list[str] | None, Parameter(name="--set", negative=(), consume_multiple=True)]


def audit(
    subject: str,
    /,
    *paths: str,
    measure: Words = None,
    options: Options = None,
    judge: str = "",
    judge_policy: str = "",
    allow_unlike: Annotated[bool, Parameter(negative=())] = False,
    xray: XrayAsked = NO_XRAY,
    trust: TrustAsked = NO_TRUST,
    html: Path | None = None,
) -> VerbResult:
    """Audit what was learned (`audit run RUN`, `audit log LOG`, `audit eval START AFTER ...`), what is learned from (`audit tasks PATH`), or what pays
    for it (`audit judge NAME SUITE`, `audit env SUITE`).

    For example: `turnwise audit judge principles shop/quick --judge-policy openai:MODEL --html card.html`.

    Args:
        subject: run (a training run's folder), log (an episode log, or the folder that holds one), eval (evaluations, the start first), tasks, judge or env.
        paths: run: one folder or several of one method, log: one, eval: folders of `eval --out`, evaluation.json, RUN, RUN@best, RUN@40, tasks: one
            file of rows, folder of tasks, verifiers environment or suite, judge: its name and a suite, env: a suite or an environment.
        measure: Only these, and an error where one lacks what it needs; else all that can be made.
        options: KEY=VALUE: options of the measures, such as k=16 or score=principle (docs/how-to/audit.md has them all).
        judge: log: this judge labels the turns first (`turnwise list judge`), for measures that rank by its signals.
        judge_policy: log, judge: the policy that the judge asks, where it asks one.
        allow_unlike: eval: also what was played otherwise (limits, options of the environment).
        xray: How tasks are read and judged.
        trust: How a judge is asked.
        html: A page (.html) that holds everything.
    """
    if subject not in READERS:
        raise NotFoundError("audit of", subject, READERS)
    if not paths:
        raise TurnwiseError(f"Nothing is named to audit a {subject} of.", f"turnwise audit {subject} PATH")
    asked = AskedAudit(
        paths,
        measure or (),
        key_values(options or (), "option of a measure", "--set k=16"),
        (judge, judge_policy),
        allow_unlike,
        xray,
        trust,
    )
    asked.check(subject)
    _check_answer(subject, asked, html)
    if subject == "tasks" and xray.dry_run:
        return xray.cost(asked.one("tasks"))
    return _shown(READERS[subject](asked), html, xray.fail_on or ())


def _check_answer(subject: str, asked: AskedAudit, html: Path | None) -> None:
    """Refuse measures and a page that cannot be had, before anything is read or judged."""
    from turnwise.trainers.audit.registry import asked_audits

    asked_audits(subject, asked.measures, asked.options)
    if html is not None:
        from turnwise.trainers.audit.page import check_place

        check_place(html)


def _shown(report: AuditReport, html: Path | None, fail_on: Sequence[str]) -> VerbResult:
    written: list[Path] = []
    if html is not None:
        from turnwise.trainers.audit.page import write_page

        written.append(write_page(report, html))

    def show(console: SafeConsole) -> None:
        from turnwise.trainers.audit.page import renderables

        for part in renderables(report):
            console.print(part)
        for path in written:
            console.print(f"wrote {path}")

    found = failed(report, fail_on) or int(bool(report.failures))
    return VerbResult(report.to_json() | {"written": [str(path) for path in written]}, show, found)


def _only(subject: str, where: Sequence[str], given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value and subject not in where:
            raise TurnwiseError(
                f"{name} is of `audit {where[0]}`, and has no effect on `audit {subject}`.", "Leave it out."
            )


class AskedAudit(NamedTuple):
    """The paths that an audit is of, and how it is made."""

    paths: Sequence[str]
    measures: Sequence[str]
    options: Mapping[str, str]
    judge: tuple[str, str]
    allow_unlike: bool
    xray: XrayAsked
    trust: TrustAsked

    def check(self, subject: str) -> None:
        """Refuse options that have no effect on a subject.

        Raises:
            TurnwiseError: one of them was given.
        """
        judge, policy = self.judge
        _only(subject, ("log",), {"--judge": judge})
        _only(subject, ("log", "judge"), {"--judge-policy": policy})
        _only(subject, ("eval",), {"--allow-unlike": self.allow_unlike})
        _only(subject, ("tasks",), self.xray.given())
        for name, value in self.trust.given().items():
            _only(subject, ("judge", "env") if name in OF_ENV else ("judge",), {name: value})

    def one(self, subject: str) -> str:
        """The only path.

        Raises:
            TurnwiseError: there are several.
        """
        if len(self.paths) > 1:
            raise TurnwiseError(
                f"`audit {subject}` takes one path, not {len(self.paths)}.", "Audit them one by one."
            )
        return self.paths[0]

    def of(self, subject: str, played: Any, labels: Sequence[str], notes: Sequence[str] = ()) -> AuditReport:
        """Make the measures of what was read."""
        from turnwise.trainers.audit.registry import audit_all

        return audit_all(subject, played, labels, measures=self.measures, options=self.options, notes=notes)

    @property
    def judge_and_suite(self) -> tuple[str, str]:
        """The judge's name, and the suite on whose tasks it is asked.

        Raises:
            TurnwiseError: more is named.
        """
        if len(self.paths) > 2:
            raise TurnwiseError(
                f"`audit judge` takes a judge and a suite, not {len(self.paths)} names.",
                "Audit them one by one.",
            )
        return self.paths[0], self.paths[1] if len(self.paths) > 1 else SUITE


def _of_log(asked: AskedAudit) -> AuditReport:
    from turnwise.trainers.audit.reading import read_log

    played = read_log(Path(asked.one("log")))
    if asked.judge[0]:
        from turnwise.trainers.audit.judged import judged

        played = judged(played, *asked.judge)
    return asked.of("log", played, asked.paths)


def _of_evaluations(asked: AskedAudit) -> AuditReport:
    from turnwise.trainers.audit.reading import read_sides

    played = read_sides(asked.paths, allow_unlike=asked.allow_unlike)
    return asked.of("eval", played, [side.label for side in played.sides], (played.measure,))


def _of_runs(asked: AskedAudit) -> AuditReport:
    from turnwise.trainers.audit.running import read_runs

    return asked.of("run", read_runs(asked.paths), asked.paths)


def _of_tasks(asked: AskedAudit) -> AuditReport:
    probed = asked.xray.probe(asked.one("tasks"))
    return asked.of("tasks", probed, [probed.source.path], notes_of(probed))


def _of_judge(asked: AskedAudit) -> AuditReport:
    name, suite = asked.judge_and_suite
    found = asked.trust.judge((name, suite), asked.judge[1])
    said = f"{found.judge} by {found.reading.signal!r}{f', which asks {found.asks}' if found.asks else ''}, on {len(found.judged)} episodes of {suite}"
    lost = [f"{found.corpus.lost} episodes could not be played"] if found.corpus.lost else []
    return asked.of("judge", found, [name, suite], [said, *lost])


def _of_env(asked: AskedAudit) -> AuditReport:
    suite = asked.one("env")
    found = asked.trust.env(suite)
    lost = [f"{found.lost} episodes could not be played"] if found.lost else []
    return asked.of("env", found, [suite], [f"{len(found.items)} episodes of {suite}", *lost])


Reader = Callable[[AskedAudit], "AuditReport"]
READERS: Mapping[str, Reader] = {
    "run": _of_runs,
    "log": _of_log,
    "eval": _of_evaluations,
    "tasks": _of_tasks,
    "judge": _of_judge,
    "env": _of_env,
}
"""How each subject is read; the audits of it lie in its folder of trainers/audit/."""
VERBS: dict[str, Callable[..., VerbResult]] = {"audit": audit}
