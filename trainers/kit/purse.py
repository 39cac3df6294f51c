"""Cost of the questions that a judge asks, and the limits at which a run stops."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from turnwise.agents.core import Usage
from turnwise.errors import RunError

if TYPE_CHECKING:  # a judge is asked where torch is not installed, too
    from turnwise.trainers.core import PartState


class PurseLimits(NamedTuple):
    """The most that a judge may use in a run; None: any amount."""

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


@dataclass
class JudgeUse:
    """Counts of what judges used.

    Attributes:
        questions: that were asked.
        known: of them, those whose answer was known from before.
        tokens: read and written, as far as they are told.
        cost: as far as it is told.
        seconds: waited for answers.
    """

    questions: int = 0
    known: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    @property
    def metrics(self) -> dict[str, float]:
        """As a run's metrics; nothing where nothing was asked.

        >>> JudgeUse().metrics, sorted(JudgeUse(questions=1, tokens=3).metrics)
        ({}, ['judge_cost', 'judge_known', 'judge_questions', 'judge_tokens'])
        """
        told = {"questions": self.questions, "known": self.known, "tokens": self.tokens, "cost": self.cost}
        return {f"judge_{name}": float(x) for name, x in told.items()} if self.questions else {}


@dataclass
class JudgePurse:
    """A judge's use in a whole run, which checkpoints keep where it has limits."""

    judge: str
    limits: PurseLimits = field(default_factory=PurseLimits)
    used: JudgeUse = field(default_factory=JudgeUse)

    def check(self) -> None:
        """Refuse another question where a limit is reached.

        Raises:
            RunError: with the limit.
        """
        for name, most in self.limits._asdict().items():
            spent = getattr(self.used, name)
            if most is not None and spent >= most:
                raise RunError(
                    f"The judge {self.judge!r} has used {spent:.6g} of its budget of {most:.6g} {name}, and the run stops: without its "
                    "verdicts nothing would be paid.",
                    f"Start another run with a larger judge.budget.{name}, fewer episodes, or a cheaper judge; what was saved can be evaluated.",
                )

    def state(self) -> PartState:
        """Everything that it remembers."""
        from turnwise.trainers.core import PartState  # which imports torch

        return PartState(asdict(self.used))

    def restore(self, state: PartState) -> None:
        """Remember it again."""
        self.used = JudgeUse(**state.numbers)


class _Charged(NamedTuple):
    purse: JudgePurse
    also: JudgeUse


_NOTHING = Usage()
_NOW: ContextVar[_Charged | None] = ContextVar("judge purse", default=None)


@contextlib.contextmanager
def charged(purse: JudgePurse, also: JudgeUse) -> Iterator[None]:
    """Charge what is asked inside to a judge's purse, and to the counts of an update."""
    token = _NOW.set(_Charged(purse, also))
    try:
        yield
    finally:
        _NOW.reset(token)


def may_ask() -> None:
    """Refuse another question where a limit is reached.

    Raises:
        RunError: with the limit.
    """
    if (now := _NOW.get()) is not None:
        now.purse.check()


def charge(usage: Usage = _NOTHING, *, questions: int = 0, known: int = 0, seconds: float = 0.0) -> None:
    """Count what was used, if anybody counts."""
    now = _NOW.get()
    for use in (now.purse.used, now.also) if now is not None else ():
        use.questions += questions
        use.known += known
        use.tokens += (usage.prompt or 0) + (usage.completion or 0)
        use.cost += usage.cost or 0.0
        use.seconds += seconds
