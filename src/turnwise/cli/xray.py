"""Options of `turnwise audit tasks`: how a set of tasks is read and judged, what it costs, and when it fails."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult
from turnwise.errors import NotFoundError, TurnwiseError

if TYPE_CHECKING:
    from turnwise.console import SafeConsole
    from turnwise.trainers.audit.registry import AuditReport
    from turnwise.trainers.audit.xray.core import ProbedSet, TaskSet, XTask
    from turnwise.trainers.audit.xray.options import XrayOptions

Words = Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)]


def key_values(options: Sequence[str], what: str, example: str) -> dict[str, str]:
    """Texts such as KEY=VALUE as a mapping.

    Raises:
        TurnwiseError: one has no sign of equality.
    """
    found: dict[str, str] = {}
    for text in options:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise TurnwiseError(f"{text!r} is no {what}.", f"Write it as KEY=VALUE: {example}.")
        found[name.strip()] = value.strip()
    return found


OF_FORMS = ("--reward", "--columns", "--with", "--args")
"""Options that have an effect on some formats of task sets, which say so (``TaskSet.uses``)."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class XrayAsked:
    """Options by which `audit tasks` reads a set and judges it.

    Attributes:
        reward: tasks: FILE.py:function, which judges rows.
        columns: tasks: prompt=NAME and answer=NAME, the columns of rows.
        with_: tasks: Python packages that the judge imports.
        args: tasks: KEY=VALUE for load_environment of a verifiers environment.
        against: tasks: the training set, in which no task of this one may be.
        n: tasks: Only so many, drawn by --seed.
        seed: tasks: Of the draw.
        split: tasks: Of a suite: train, dev or test.
        accept: tasks: The score from which an answer counts as accepted.
        seconds: tasks: A verdict may take so long.
        unsafe: tasks: Judge without a sandbox. Only for code that you trust.
        dry_run: tasks: Only say what it would cost.
        fail_on: tasks: Kinds of defect (or any) with which the exit code is 1.
    """

    reward: str = ""
    columns: Words = None
    with_: Annotated[list[str] | None, Parameter(name="--with", negative=(), consume_multiple=True)] = None
    args: Words = None
    against: Annotated[str, Parameter(name=("--against", "--train"))] = ""
    n: int = 0
    seed: int = 0
    split: Literal["train", "dev", "test"] = "test"
    accept: float = 0.5
    seconds: float = 10.0
    unsafe: Annotated[bool, Parameter(negative=())] = False
    dry_run: Annotated[bool, Parameter(negative=())] = False
    fail_on: Words = None

    @property
    def options(self) -> XrayOptions:
        """As the readers of tasks take them."""
        from turnwise.tasks.core import Split
        from turnwise.trainers.audit.xray.options import XrayOptions

        arguments = {
            name: _json(text)
            for name, text in key_values(self.args or (), "argument", "--args difficulty=2").items()
        }
        return XrayOptions(self.reward, key_values(self.columns or (), 'column', '--columns prompt=question'), self.with_ or (), arguments, self.n, self.seed, self.accept,
                           self.seconds, Split(self.split), self.unsafe)  # fmt: skip

    def given(self) -> dict[str, object]:
        """Options that were given, by their names."""
        return {
            f"--{f.name.strip('_').replace('_', '-')}": getattr(self, f.name)
            for f in fields(self)
            if getattr(self, f.name) != f.default
        }

    def opened(self, path: str) -> tuple[TaskSet, Sequence[XTask]]:
        """The set, and the tasks of the one that it is held against; nothing of a stranger's rows or folders is run."""
        from turnwise.tasks.core import Split
        from turnwise.trainers.audit.xray.reading import read_tasks

        check_kinds(self.fail_on or ())
        if self.n < 0 or not self.seconds > 0:
            raise TurnwiseError(
                f"--n is {self.n} and --seconds {self.seconds:g}.",
                "Give a number of tasks, and of seconds above 0.",
            )
        found = read_tasks(path, self.options)
        given = self.given()
        if idle := [name for name in OF_FORMS if name in given and name not in found.uses]:
            raise TurnwiseError(
                f"{', '.join(idle)} has no effect on {found.path}: {found.form}.",
                f"Leave it out. Options that have one: {', '.join(found.uses) or 'none of ' + ', '.join(OF_FORMS)}.",
            )
        training = self.options._replace(split=Split.TRAIN, n=0)
        return found, read_tasks(self.against, training).tasks if self.against else ()

    def cost(self, path: str) -> VerbResult:
        """The price of judging."""
        from turnwise.trainers.audit.xray.reading import chosen

        found, _ = self.opened(path)
        cost = found.cost(len(chosen(found.tasks, self.options)))
        said = f"{found.form}: {cost}"
        value = {
            "subject": "tasks",
            "of": [found.path],
            "cost": {**cost._asdict(), "said": said},
            "broken": [one._asdict() for one in found.broken],
        }

        def show(console: SafeConsole) -> None:
            console.print(said)
            for note in left_out(found):
                console.print(note)

        return VerbResult(value, show)

    def probe(self, path: str) -> ProbedSet:
        """Read and judge a set; what it takes is said before."""
        from turnwise.trainers.audit.xray.reading import chosen, probe_set

        found, other = self.opened(path)
        print(
            f"{found.form}: {found.cost(len(chosen(found.tasks, self.options)))}", file=sys.stderr, flush=True
        )
        return probe_set(found, self.options, other, self.against)


NO_XRAY = XrayAsked()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def check_kinds(kinds: Sequence[str]) -> set[str]:
    """The kinds of defect that are meant.

    Raises:
        NotFoundError: there is no such kind.
    """
    from turnwise.trainers.audit.registry import audits_of

    known = {name for name in audits_of("tasks") if name != "bounds"} if kinds else set[str]()
    for name in kinds:
        if name not in known | {"any"}:
            raise NotFoundError("kind of defect", name, known | {"any"})
    return known if "any" in kinds else {*kinds}


def failed(report: AuditReport, kinds: Sequence[str]) -> int:
    """The exit code: 1 where a task has a defect of one of these kinds."""
    told = [
        row for name in check_kinds(kinds) & {*report.findings} for row in report.findings[name].data["tasks"]
    ]
    return int(any(row["severity"] == "defect" for row in told))


def left_out(source: TaskSet) -> list[str]:
    """Notes on rows or folders that are no tasks."""
    if not source.broken:
        return []
    notes = [f"{len(source.tasks)} of {source.total} rows or folders could be read; left out:"]
    notes += [f"{one.cause} → {one.remedy}" for one in source.broken[:20]]
    return notes + ([f"and {len(source.broken) - 20} more"] if len(source.broken) > 20 else [])


def notes_of(probed: ProbedSet) -> list[str]:
    """Notes on what an X-ray did not see: rows that are no tasks, tasks that could not be judged, and why."""
    source = probed.source
    notes = [*source.notes, *probed.notes, *left_out(source)]
    reasons = Counter(one.unjudged for one in probed.tasks if one.unjudged)
    notes += [
        f"{n} of {len(probed.tasks)} tasks could not be judged: {why}" for why, n in reasons.most_common(8)
    ]
    return notes
