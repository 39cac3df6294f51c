"""How stories are drawn: requests one after the other, each on the world that the ones before left behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import Domain
from turnwise.envs.toolworld.story import PlanStep, Stage
from turnwise.errors import EnvError
from turnwise.tools.core import ToolCall, ToolError

Item = TypeVar("Item")


class Draft:
    """A story in the making: the world as it will be, the customer, what he knows, what was used already."""

    def __init__(
        self, domain: Domain, rng: Random, db: Database, *, paraphrase: bool, changes: float
    ) -> None:
        self.domain, self.rng, self.db, self.base = domain, rng, db, db
        self.customer = ""
        self.facts: dict[str, str] = {}
        self.used: set[str] = set()  # keys that a request is about already
        self.patch: list[
            tuple[str, str, Mapping[str, Any]]
        ] = []  # (table, key, fields) of this task's own world
        self._paraphrase, self._changes = paraphrase, changes

    @property
    def changes_mind(self) -> bool:
        """Whether the user shall change his mind in the request that is being drawn."""
        return self.rng.random() < self._changes

    def words(self, *ways: str) -> str:
        """One of several ways to say the same; the first where users do not paraphrase."""
        return self.rng.choice(ways) if self._paraphrase else ways[0]

    def free(self, items: Sequence[Item], key: Callable[[Item], str]) -> Item | None:
        """One of the items whose key no request is about yet; it is marked as used."""
        left = [item for item in items if key(item) not in self.used]
        if not left:
            return None
        item = self.rng.choice(left)
        self.used.add(key(item))
        return item

    def override(self, table: str, key: str, **fields: Any) -> None:
        """Change the world in which the task begins; only before the first request is carried out."""
        self.patch.append((table, key, fields))
        self.db = self.base = self.base.update(table, key, **fields)

    def apply(self, stage: Stage) -> None:
        """Carry out the stage's plan, so that the next request is drawn on what it leaves."""
        self.db = carry_out(self.domain, self.db, self.customer, stage.plan)


def carry_out(domain: Domain, db: Database, customer: str, plan: Sequence[PlanStep]) -> Database:
    """The database after a plan.

    Raises:
        EnvError: a step of it fails, or breaks the policy: the plan is no solution.
    """
    deeds = {deed.name: deed for deed in domain.deeds}
    for step in plan:
        if step.kind == "guide":
            db = deeds[step.name].does(db, customer).db
        if step.kind != "call":
            continue
        made = domain.act(step.name)
        if made is None:
            raise EnvError(f"A plan calls {step.name!r}, which {domain.name} has not.", "Repair the plan.")
        try:
            arguments = made.tool.validate(ToolCall(step.name, step.arguments))
            broken = domain.rules(db, step.name, arguments)
            db = made.run(db, arguments).db
        except ToolError as error:
            raise EnvError(f"A plan's call of {step.name} fails: {error}", "Repair the plan.") from None
        if broken:
            raise EnvError(f"A plan's call of {step.name} breaks {', '.join(broken)}.", "Repair the plan.")
    return db
