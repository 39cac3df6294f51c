"""``turnwise check ENV``: does an environment keep the contract, clause by clause (E1–E9)?

Works on any registered environment, ours or a third party's. Each clause is a function in
:mod:`turnwise.envs.clauses`; what it raises is a broken clause too, never a crash of the checker.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from turnwise.envs.clauses import core, laws, play
from turnwise.envs.live import LiveEnv
from turnwise.envs.registry import env_class
from turnwise.tasks.core import Json

CLAUSES: Mapping[str, tuple[str, core.Clause]] = {
    "E1": ("Ledger", laws.ledger),
    "E2": ("Ends", laws.ends),
    "E3": ("Determinism", laws.determinism),
    "E4": ("Fork", laws.fork),
    "E5": ("State key", laws.state_key),
    "E6": ("Gold and floor", play.gold_and_floor),
    "E7": ("Bad actions", play.bad_actions),
    "E8": ("Observations", play.observations),
    "E9": ("Plugin", play.plugin),
}
"""Each clause's number, its name and its test."""


class Clause(NamedTuple):
    """One clause's verdict, and what was seen."""

    ok: bool
    detail: str


@dataclass(frozen=True)
class CheckReport:
    """An environment's card."""

    env: str
    clauses: Mapping[str, Clause]

    @property
    def ok(self) -> bool:
        return all(clause.ok for clause in self.clauses.values())

    def to_json(self) -> dict[str, Json]:
        clauses = {name: clause._asdict() for name, clause in self.clauses.items()}
        return {"env": self.env, "ok": self.ok, "clauses": clauses}

    def __str__(self) -> str:
        lines = [
            f"{'✓' if clause.ok else '✗'} {name} {clause.detail}" for name, clause in self.clauses.items()
        ]
        return "\n".join([f"{self.env}: {'ok' if self.ok else 'BROKEN'}", *lines])


def check_env(
    name: str, *, tasks: int = 0, only: Collection[str] = (), on_clause: Callable[[], None] = lambda: None
) -> CheckReport:
    """Test every clause of the contract on a registered environment, or ``only`` some.

    ``tasks`` is how many tasks of each split the gold script and the floor agents play; without it 50, or 10 where
    a world outside of the process takes its time. ``on_clause`` is called after each clause.

    Raises:
        NotFoundError: no environment has this id.
    """
    cls = env_class(name)
    subject = core.Subject(name, cls, tasks or (10 if issubclass(cls, LiveEnv) else 50))
    verdicts: dict[str, Clause] = {}
    for clause, (_, test) in CLAUSES.items():
        if clause in only or not only:
            verdicts[clause] = _judge(test, subject)
            on_clause()
    return CheckReport(name, verdicts)


def _judge(test: core.Clause, subject: core.Subject) -> Clause:
    try:
        return Clause(True, test(subject))
    except core.Broken as broken:
        return Clause(False, str(broken))
    except Exception as error:  # noqa: BLE001 (an environment may raise anything)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
        text = str(error).replace("\n", " ")[:300]
        return Clause(False, f"{type(error).__name__} at {where}: {text}")
