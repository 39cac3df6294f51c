"""The command that audits runs, episode logs and evaluations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult
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
    html: Path | None = None,
) -> VerbResult:
    """Audit what was learned: `audit run RUN`, `audit log LOG`, `audit eval START AFTER ...`, by measures with intervals.

    For example: `turnwise audit eval evals/start evals/after --html audit.html`.

    Args:
        subject: run (a training run's folder), log (an episode log, or the folder that holds one) or eval (evaluations, the start first).
        paths: run: one folder or several of one method, log: one, eval: folders of `eval --out`, evaluation.json, RUN, RUN@best, RUN@40.
        measure: Only these, and an error where one lacks what it needs; else all that can be made.
        options: KEY=VALUE: options of the measures, such as k=16 or score=principle (docs/how-to/audit.md has them all).
        judge: log: this judge labels the turns first (`turnwise list judge`), for measures that rank by its signals.
        judge_policy: log: the policy that the judge asks, where it asks one.
        allow_unlike: eval: also what was played otherwise (limits, options of the environment).
        html: A page (.html) that holds everything.
    """
    if subject not in READERS:
        raise NotFoundError("audit of", subject, READERS)
    if not paths:
        raise TurnwiseError(f"Nothing is named to audit a {subject} of.", f"turnwise audit {subject} PATH")
    _only(subject, "log", {"--judge": judge, "--judge-policy": judge_policy})
    _only(subject, "eval", {"--allow-unlike": allow_unlike})
    asked = AskedAudit(paths, measure or (), _pairs(options or ()), (judge, judge_policy), allow_unlike)
    report = READERS[subject](asked)
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

    return VerbResult(report.to_json() | {"written": [str(path) for path in written]}, show)


def _only(subject: str, where: str, given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value and subject != where:
            raise TurnwiseError(
                f"{name} is of `audit {where}`, and has no effect on `audit {subject}`.", "Leave it out."
            )


def _pairs(options: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in options:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise TurnwiseError(f"{text!r} is no option of a measure.", "Write it as KEY=VALUE: --set k=16.")
        found[name.strip()] = value.strip()
    return found


class AskedAudit(NamedTuple):
    """The paths that an audit is of, and how it is made."""

    paths: Sequence[str]
    measures: Sequence[str]
    options: Mapping[str, str]
    judge: tuple[str, str]
    allow_unlike: bool

    def of(self, subject: str, played: Any, labels: Sequence[str], notes: Sequence[str] = ()) -> AuditReport:
        """Make the measures of what was read."""
        from turnwise.trainers.audit.registry import audit_all

        return audit_all(subject, played, labels, measures=self.measures, options=self.options, notes=notes)


def _of_log(asked: AskedAudit) -> AuditReport:
    from turnwise.trainers.audit.reading import read_log

    if len(asked.paths) > 1:
        raise TurnwiseError(f"`audit log` takes one log, not {len(asked.paths)}.", "Audit them one by one.")
    played = read_log(Path(asked.paths[0]))
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


Reader = Callable[[AskedAudit], "AuditReport"]
READERS: Mapping[str, Reader] = {"run": _of_runs, "log": _of_log, "eval": _of_evaluations}
"""How each subject is read; the audits of it lie in its folder of trainers/audit/."""
VERBS: dict[str, Callable[..., VerbResult]] = {"audit": audit}
