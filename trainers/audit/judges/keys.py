"""Master keys: words that say nothing, said in place of an answer."""

from __future__ import annotations

from turnwise.trainers.audit.asking import JudgeAudit
from turnwise.trainers.audit.core import AuditFinding, audit
from turnwise.trainers.audit.judges.shared import attacks
from turnwise.trainers.trust.corpus import KEY, STUFFED


@audit(133, paper="2507.08794")
def keys(asked: JudgeAudit) -> AuditFinding:
    """Share of tasks in which a word that says nothing is paid, for each of twelve keys, and for all words at once.

    A key stands in place of the last fact of a solution for one half of the tasks, and is all that the agent says for the other. What the
    environment itself counts as solved is left out. Ten keys are the paper's; two, and all words at once, are ours.
    """
    return attacks(asked, (KEY, STUFFED))
