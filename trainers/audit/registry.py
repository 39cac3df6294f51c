"""Every audit by its subject, found by its file; options by their names; one pass over all of a subject."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Json
from turnwise.trainers.audit.core import MARK, Audit, AuditFinding

SUBJECTS: Mapping[str, str] = {
    "run": "training",
    "log": "logs",
    "eval": "evaluations",
    "tasks": "task_sets",
    "judge": "judges",
    "env": "rewards",
}
"""Sub-commands, and the folder in which the audits of each lie."""


_SPOKEN: Mapping[str, str] = {"eval": "evaluations", "tasks": "tasks", "env": "an environment"}


class NotMeasured(NamedTuple):
    """An audit that could not be made: what is missing, and how it is had."""

    name: str
    cause: str
    remedy: str


@dataclass(frozen=True)
class AuditReport:
    """All findings about a subject, by audit, and what could not be measured."""

    subject: str
    of: Sequence[str]
    findings: Mapping[str, AuditFinding]
    refused: Sequence[NotMeasured]
    notes: Sequence[str] = ()

    @property
    def failures(self) -> list[str]:
        """Every reason for an exit code of 1 that findings have told."""
        return [said for finding in self.findings.values() for said in finding.failures]

    @property
    def by_urgency(self) -> list[tuple[str, AuditFinding]]:
        """Findings by their names, those first that ask for a correction."""
        return sorted(self.findings.items(), key=lambda item: -item[1].pressing)

    def to_json(self) -> dict[str, Json]:
        """One JSON object."""
        return {
            "subject": self.subject,
            "of": [*self.of],
            "findings": {name: finding.to_json() for name, finding in self.findings.items()},
            "not_measured": [refusal._asdict() for refusal in self.refused],
            "notes": [*self.notes],
        }


@functools.cache
def audits_of(subject: str) -> Mapping[str, Audit]:
    """The audits of a subject by name.

    >>> audits_of("eval")["support"].rows
    (116,)
    """
    if subject not in SUBJECTS:
        raise NotFoundError("audit of", subject, SUBJECTS)
    package = importlib.import_module(f"turnwise.trainers.audit.{SUBJECTS[subject]}")
    found: dict[str, Audit] = {}
    for entry in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{entry.name}")
        made = getattr(getattr(module, entry.name, None), MARK, None)
        if isinstance(made, Audit):
            found[entry.name] = made
    return found


def options_of(audit: Audit) -> dict[str, Any]:
    """The options that an audit takes, with their defaults."""
    found = inspect.signature(audit.find).parameters.values()
    return {p.name: p.default for p in found if p.kind is inspect.Parameter.KEYWORD_ONLY}


def audit_all(
    subject: str,
    played: object,
    of: Sequence[str],
    *,
    measures: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> AuditReport:
    """Make the audits of a subject: those that are named, or all that can be made of what is there.

    Raises:
        TurnwiseError: an audit or option has no such name, or one that was asked for by name lacks what it needs, or all do.
    """
    chosen = asked_audits(subject, measures, options or {})
    findings: dict[str, AuditFinding] = {}
    refused: list[NotMeasured] = []
    for one, given in chosen:
        try:
            findings[one.name] = one.find(played, **given)
        except TurnwiseError as error:
            if measures:
                raise
            refused.append(NotMeasured(one.name, error.cause, error.remedy))
    if not findings:
        raise TurnwiseError(
            f"Nothing could be measured of {', '.join(of)}: {refused[0].cause}", refused[0].remedy
        )
    return AuditReport(subject, of, findings, refused, notes)


def asked_audits(
    subject: str, measures: Sequence[str], options: Mapping[str, str]
) -> list[tuple[Audit, dict[str, Any]]]:
    """The audits that are asked for, each with its options; a subject need not be read for that.

    Raises:
        TurnwiseError: an audit or option has no such name, or an option's value is none.
    """
    known = audits_of(subject)
    for name in measures:
        if name not in known:
            raise NotFoundError(f"audit of {_SPOKEN.get(subject, f'a {subject}')}", name, known)
    chosen = [known[name] for name in dict.fromkeys(measures)] or [
        one for one in known.values() if not one.named
    ]
    given = _read_options(chosen, options)
    return [(one, given[one.name]) for one in chosen]


def _read_options(chosen: Sequence[Audit], options: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    takes = {one.name: options_of(one) for one in chosen}
    every = {name for found in takes.values() for name in found}
    for name in options:
        if name not in every:
            raise NotFoundError("option of these audits", name, every)
    return {
        audit: {
            name: _typed(name, options[name], default) for name, default in found.items() if name in options
        }
        for audit, found in takes.items()
    }


def _typed(name: str, text: str, default: object) -> object:
    """An option's text as its default is typed.

    >>> _typed("k", "3", 0), _typed("score", "return", "")
    (3, 'return')
    """
    try:
        return int(text) if isinstance(default, int) else float(text) if isinstance(default, float) else text
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise TurnwiseError(
            f"The option {name} is {text!r}, which is not {kind}.", f"Write {name}={default}."
        ) from None
