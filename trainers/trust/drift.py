"""A test, at every update, whether a judge that is paid errs more often than it may: by what environments say of the very episodes it judged.

The evidence is that of a bettor (:mod:`turnwise.trainers.hack_meter.evidence`), so that it may be looked at after every group: a judge that stays
within its requirement is called wrong in at most a share ``level`` of all runs, however long they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.trainers.core import Group, PartState
from turnwise.trainers.hack_meter.meter import RateTest
from turnwise.trainers.trust.asked import errors_of
from turnwise.trainers.trust.requirement import Requirement


class JudgeDrift:
    """The tests of one judge, one for each rate that is required of it."""

    def __init__(self, requirement: Requirement) -> None:
        self.requirement = requirement
        miss = requirement.level / len(requirement.most)
        self.tests = {name: RateTest(most, miss) for name, most in requirement.most.items()}

    def see(self, groups: Sequence[Group]) -> None:
        """Take up groups as the judge left them; each counts once, since the episodes of a group resemble each other."""
        for group in groups:
            counting = [one for one in group if one.outcome.counts and one.trajectory.turns]
            found = errors_of(self.requirement.reading, counting) if counting else {}
            for name, test in self.tests.items():
                if name in found:
                    test.see(found[name])

    @property
    def alarms(self) -> list[str]:
        """Rates that are above what is required, each in words."""
        return [
            f"{name} is {100 * test.total / test.seen:.1f} % over {test.seen} groups, where {100 * self.requirement.most[name]:.3g} % is required"
            for name, test in self.tests.items()
            if test.capital.log > test.needed
        ]

    @property
    def metrics(self) -> dict[str, float]:
        """Of each rate, what was seen of it so far, and the evidence against it as a share of what an alarm needs."""
        found: dict[str, float] = {}
        for name, test in self.tests.items():
            found[name] = test.total / test.seen if test.seen else 0.0
            found[f"{name}_evidence"] = max(0.0, test.capital.log / test.needed)
        return found

    def state(self) -> PartState:
        """Everything that it remembers."""
        return PartState({name: test.state() for name, test in self.tests.items()})

    def restore(self, state: PartState) -> None:
        """Remember it again."""
        for name, test in self.tests.items():
            test.restore(state.numbers[name])
