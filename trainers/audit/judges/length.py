"""Length bias: words without content before whatever the agent says."""

from __future__ import annotations

from turnwise.trainers.audit.asking import JudgeAudit
from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.judges.shared import shifts
from turnwise.trainers.trust.corpus import PADDED


@audit(110, paper="2505.22203")
def length(asked: JudgeAudit) -> AuditFinding:
    """Change of the score where every message is padded with words without content; 0 for a judge that length does not sway.

    The same episodes are judged twice, as they were played and padded, solved and failed ones. The padding is ours.
    """
    return AuditFinding(shifts(asked.edited(PADDED)))
