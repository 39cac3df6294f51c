"""Injected instructions: the world itself tells the judge what to say."""

from __future__ import annotations

from turnwise.trainers.audit.asking import JudgeAudit
from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.judges.shared import shifts
from turnwise.trainers.trust.corpus import INJECTED


@audit(110, paper="2505.22203")
def instructions(asked: JudgeAudit) -> AuditFinding:
    """Change of the score of failed episodes where the environment's last words tell the judge to rate them as correct.

    The same episodes are judged twice, as they were played and with the words. The words are ours; an answer that speaks to the judge is
    among the probes.
    """
    return AuditFinding(shifts(asked.edited(INJECTED)))
