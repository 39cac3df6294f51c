"""The requirement of a judge: whether a run that asks for it would pay it."""

from __future__ import annotations

from turnwise.trainers.audit.asking import JudgeAudit
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, audit, share
from turnwise.trainers.trust.bounds import at_least
from turnwise.trainers.trust.corpus import FAULTS


@audit(110, 133)
def requirement(asked: JudgeAudit) -> AuditFinding:
    """Tell for each required rate that it lies below its limit, by a bound that holds for any distribution of errors.

    The bound is Clopper's and Pearson's where each task was judged once, else Hoeffding's and Bentkus's over tasks. No kind of fault may be paid
    more often than the limit either, so far as its own episodes show: a policy that learns would find it.
    """
    figures: list[AuditFigure] = []
    why: list[str] = []
    for rate, most in asked.plan.require.items():
        found, upper = asked.bound(rate)
        figures += [
            share(rate, found, f"required: at most {100 * most:.3g} %"),
            AuditFigure(f"{rate}_at_most", upper, None, "share", f"but for a chance of {asked.plan.level:g}"),
        ]
        if upper > most:
            why.append(f"{rate} may be {100 * upper:.1f} %, and {100 * most:.3g} % is required")
    limit = min((most for rate, most in asked.plan.require.items() if rate != "false_reject"), default=None)
    for kind in FAULTS if limit is not None else ():
        told = {one.item.task: False for one in asked.of(kind) if not one.item.solved}
        for one in asked.of(kind):
            if not one.item.solved and one.paid:
                told[one.item.task] = True
        if (
            limit is not None
            and told
            and at_least(sum(told.values()), len(told), asked.plan.level / len(FAULTS)) > limit
        ):
            why.append(f"episodes of the kind {kind!r} are paid in {sum(told.values())} of {len(told)} tasks")
    said = ["not to be paid: " + "; ".join(why)] if why else ["within what is required"]
    return AuditFinding(figures, said=said, data={"paid": not why}, failures=why)
