"""Options of `turnwise audit judge` and `turnwise audit env`: how much is played, how a verdict is read, and what is required."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnwise.cli.xray import key_values
from turnwise.errors import TurnwiseError

if TYPE_CHECKING:
    from turnwise.trainers.audit.asking import AuditPlan, JudgeAudit
    from turnwise.trainers.trust.corpus import KnownEpisodes

Words = Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)]
OF_ENV = ("--tasks",)
"""Options that `audit env` takes too."""
SUITE = "shop/quick"
"""The suite on whose tasks a judge is audited unless another is named."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TrustAsked:
    """Options by which a judge, or an environment's own reward, is asked about episodes whose truth is known.

    Attributes:
        tasks: judge, env: So many tasks of the suite.
        faults: judge: So many episodes of each task that are no solutions, drawn from all kinds; 0: every one.
        forks: judge: From every state of a few episodes, for true advantages; 0 leaves rank agreement out.
        writers: judge: Policies whose episodes are judged beside, for self-preference.
        require: judge: KEY=VALUE: rates that it may have at most (false_accept, false_reject, error); the exit code is 1 outside of them.
        signal: judge: The signal that is paid; else the first that it gives.
        fold: judge: From turns to episodes: mean, last or min.
        threshold: judge: The score above which an episode counts as paid.
    """

    tasks: int = 60
    faults: int = 12
    forks: int = 64
    writers: Words = None
    require: Words = None
    signal: str = ""
    fold: str = "mean"
    threshold: float = 0.5

    def given(self) -> dict[str, object]:
        """Options that were given, by their names."""
        return {f"--{f.name}": True for f in fields(self) if getattr(self, f.name) != f.default}

    @property
    def plan(self) -> AuditPlan:
        """The size of an audit of a judge.

        Raises:
            TurnwiseError: a requirement is no number.
        """
        from turnwise.trainers.audit.asking import AuditPlan

        told = key_values(self.require or (), "requirement", "--require false_accept=0.02")
        try:
            require = {name: float(value) for name, value in told.items()}
        except ValueError:
            raise TurnwiseError(
                f"--require {' '.join(self.require or ())} has what is no number.",
                "Write --require false_accept=0.02.",
            ) from None
        plan = AuditPlan(self.tasks, self.faults, self.forks, tuple(self.writers or ()))
        return plan._replace(require=require) if require else plan

    def judge(self, paths: tuple[str, str], policy: str) -> JudgeAudit:
        """Ask a judge, by its name and a suite's."""
        from turnwise.trainers.audit.asking import audit_judge

        return audit_judge(
            *paths, self.plan, policy=policy, signal=self.signal, fold=self.fold, threshold=self.threshold
        )

    def env(self, suite: str) -> KnownEpisodes:
        """Play what may be mistaken for solutions of a suite's tasks."""
        from turnwise.trainers.trust.corpus import suite_corpus

        if self.tasks < 1:
            raise TurnwiseError(f"--tasks is {self.tasks}.", "Give 1 or more.")
        return suite_corpus(suite, self.tasks)


NO_TRUST = TrustAsked()
