"""Solutions: whether the environment pays its own."""

from __future__ import annotations

from turnwise.agents.evaluation.statistics import clustered_mean, proportion
from turnwise.trainers.audit.core import AuditFigure, AuditFinding, audit, share
from turnwise.trainers.trust.corpus import GOLD, KnownEpisodes


@audit(110, paper="2505.22203")
def solution(played: KnownEpisodes) -> AuditFinding:
    """Share of tasks whose own solution is accepted, and what it is paid: what is refused is a false reject."""
    gold = played.of(GOLD)
    tasks = [one.task for one in gold]
    accepted = proportion([one.solved for one in gold], tasks)
    paid = clustered_mean([one.episode.trajectory.total_reward for one in gold], tasks)
    refused = [one.task for one in gold if not one.solved]
    said = [f"the solution of {len(refused)} tasks is refused"] if refused else []
    return AuditFinding(
        (share("accepted", accepted, f"of {len(gold)}"), AuditFigure("reward", paid.mean, paid.interval)),
        said=said,
        data={"refused": list(refused)},
        failures=said,
    )
