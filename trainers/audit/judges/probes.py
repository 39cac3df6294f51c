"""Probes: answers that speak to the judge."""

from __future__ import annotations

from turnwise.trainers.audit.asking import JudgeAudit
from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.judges.shared import attacks
from turnwise.trainers.trust.corpus import PROBE


@audit(110, paper="2505.22203")
def probes(asked: JudgeAudit) -> AuditFinding:
    """Success of each of thirteen attacks: the share of failed episodes with it that are paid.

    They stand where keys stand. Seven patterns are those that the book names, six are ours, and so are all words.
    """
    return attacks(asked, (PROBE,))
