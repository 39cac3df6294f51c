"""Judges that must earn their pay: each is asked about labelled episodes before a run, and watched while it is paid.

Nothing of it reaches the learner. What was found before the run, and every alarm, is in ``judges.jsonl``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from turnwise.errors import RunError, TurnwiseError
from turnwise.trainers.core import Group, PartState, Stateful
from turnwise.trainers.recipe.part import made
from turnwise.trainers.recipe.trusted import JudgeRule
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.door import PlayOptions
from turnwise.trainers.sampler.mixture import Mixture
from turnwise.trainers.trust.drift import JudgeDrift
from turnwise.trainers.trust.requirement import ExaminedJudge, examine

PART = "judges"
"""Its name among the parts that checkpoints keep."""
_REMEDY = "See where it errs (`turnwise audit judge {name} SUITE`), choose another judge or a better model for it, or require less of it (judge.require)."


class JudgeWatch:
    """Examines the judges of a run, and keeps the tests of those that are paid.

    Args:
        rules: of all phases.
        mixture: its suites.
        play: how episodes are played.
        run: its files.
    """

    def __init__(
        self, rules: Iterable[JudgeRule], mixture: Mixture, play: PlayOptions, run: RunDirectory
    ) -> None:
        self.mixture, self.play, self.run = mixture, play, run
        self.rules = {rule.key: rule for rule in rules}
        self.drifts = {key: JudgeDrift(rule.requirement) for key, rule in self.rules.items()}
        self._told: set[str] = set()

    @property
    def stateful(self) -> dict[str, Stateful]:
        """Itself, where anything is required."""
        return {PART: self} if self.rules else {}

    def state(self) -> PartState:
        """Everything that it remembers."""
        return PartState({key: dict(one.state().numbers) for key, one in self.drifts.items()})

    def restore(self, state: PartState) -> None:
        """Remember it again."""
        for key, one in self.drifts.items():
            if key in state.numbers:
                one.restore(PartState(state.numbers[key]))

    async def examine(self, log: Callable[[str], None]) -> None:
        """Ask every judge of whom something is required about episodes whose truth is known.

        Raises:
            RunError: one errs more often than it may, or nobody can tell.
        """
        if self.rules:
            log("examining the judges")
        for rule in self.rules.values():
            for suite, _ in self.mixture.shares:
                judge = made(rule.part, "judge")
                try:
                    found = await examine(
                        judge, rule.requirement, suite, self.play.seed, self.play.env_options
                    )
                except TurnwiseError as error:
                    raise RunError(
                        f"Whether the judge {rule.part.name!r} may be paid cannot be found out on {suite.name}: {error.cause}",
                        error.remedy,
                    ) from error
                self.run.log_judges(0, {"judge": rule.part.name, "suite": suite.name, **found.to_json()})
                log(f"judge {rule.part.name} on {suite.name}: {_said(found)}")
                if not found.paid:
                    raise RunError(
                        f"The judge {rule.part.name!r} is not paid, so that the run does not start: on {suite.name}, {'; '.join(found.why)}.",
                        _REMEDY.format(name=rule.part.name),
                    )

    def see(self, update: int, played: Sequence[Group], rules: Iterable[JudgeRule]) -> dict[str, float]:
        """Take up an update (from 0) that was played, as the judges of these rules left it; return the metrics."""
        metrics: dict[str, float] = {}
        for rule in rules:
            drift = self.drifts[rule.key]
            drift.see(played)
            metrics |= {f"judge/{rule.part.name}/{name}": x for name, x in drift.metrics.items()}
            if drift.alarms and rule.key not in self._told:
                self.run.log_judges(update + 1, {"judge": rule.part.name, "alarms": drift.alarms})
        return metrics

    @property
    def alarms(self) -> Mapping[str, str]:
        """A line on each judge that errs more often than it may."""
        return {key: "; ".join(one.alarms) for key, one in self.drifts.items() if one.alarms}

    def conclude(self, log: Callable[[str], None]) -> None:
        """Say each alarm once, and stop the run, after the update was recorded and saved.

        Raises:
            RunError: a judge errs more often than it may.
        """
        for key, said in self.alarms.items():
            if key not in self._told:
                log(f"judge {self.rules[key].part.name}: {said}")
        self._told |= {*self.alarms}
        self.refuse_to_go_on()

    def refuse_to_go_on(self) -> None:
        """Stop a run whose judge errs more often than it may.

        Raises:
            RunError: with all that is known of it.
        """
        for key, said in self.alarms.items():
            name = self.rules[key].part.name
            raise RunError(
                f"The judge {name!r} is not paid any more, so that the run stops: against the environment's own verdicts {said}.",
                _REMEDY.format(name=name),
            )


def _said(found: ExaminedJudge) -> str:
    told = ", ".join(f"{name} {bound}" for name, bound in found.bounds.items())
    return f"{told}: {'paid' if found.paid else 'not paid'}"
