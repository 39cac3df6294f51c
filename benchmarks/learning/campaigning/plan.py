"""What a campaign is to find out: settings × methods × seeds, read from YAML."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from turnwise.errors import TurnwiseError
from turnwise.trainers.run.placement import parse_placement

START = "start"
"""The name of the cell in which a setting's common warm start is made."""
Way: TypeAlias = Literal["first", "last", "mean", "sum", "min", "max", "fall", "count"]
"""How a metric is told; ``fall`` is its greatest value less its last, ``count`` the number of updates that have it."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Setting(_Section):
    """One recipe with its changes, and the method that the others are compared with."""

    recipe: str
    base: str
    changes: dict[str, Any] = {}
    shared_start: bool = False
    """Whether the recipe's warm start is made once, and every method begins from it with every seed."""
    methods: list[str] = []
    """Which methods are tried in it; all unless given."""


class Screen(_Section):
    """The first stage: every method, few seeds."""

    seeds: list[int] = Field(default=[0], min_length=1)


class Confirm(_Section):
    """The second stage: what the first one left, with more seeds."""

    seeds: list[int] = Field(default=[0, 1, 2], min_length=2)
    top: int = Field(default=3, ge=0)
    """How many of those that may be better than the base."""
    also: list[str] = []
    """Methods that get more seeds whatever the first stage found: those whose differences are the question."""


class After(_Section):
    """What is asked of each run when it is done, of its best checkpoint; 0 leaves a question out."""

    pass_at: int = Field(default=0, ge=0)
    """k of pass@k on dev; the entropy of what is sampled there is told turn by turn."""
    tasks: int = Field(default=100, ge=1)
    """How many dev tasks are played, each k times."""
    demonstrations: int = Field(default=0, ge=0)
    """How many of the demonstrations that a warm start shows first are read, before and after reinforcement: their nll."""
    demonstrator: str = "demonstrator"
    """Whose they are."""
    verdicts: int = Field(default=0, ge=0)
    """On how many dev tasks it is asked of its own attempts whether they are solved, before and after reinforcement."""

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Committed cells and hashes of plans are older than the question about verdicts."""
        said = dump(self)
        return said if self.verdicts else {key: value for key, value in said.items() if key != "verdicts"}

    @property
    def asks(self) -> bool:
        return bool(self.pass_at or self.demonstrations or self.verdicts)


class Plan(_Section):
    """A campaign."""

    about: str
    settings: dict[str, Setting]
    methods: dict[str, dict[str, Any]]
    placement: dict[str, str] = {}
    """Where a method's engines and environments are, in the words of `turnwise train --on`; in the run's process unless given."""
    wall_time: bool = False
    """Whether methods are compared at equal wall time as well: only of use where each cell has the same machine to itself."""
    metrics: dict[str, list[Way]] = {}
    """Metrics of the updates (``metrics.jsonl``) that a cell keeps, each with how the report tells it."""
    area_steps: int = Field(default=0, ge=0)
    """Environment steps over which the report takes the mean of success on dev, the area under its curve; 0 leaves it out."""
    after: After = After()
    screen: Screen = Screen()
    confirm: Confirm = Confirm()

    @field_validator("placement")
    @classmethod
    def _places_are_places(cls, placement: dict[str, str]) -> dict[str, str]:
        for method, place in placement.items():
            try:
                parse_placement(place)
            except TurnwiseError as error:
                raise ValueError(f"{method}: {error.cause} {error.remedy}") from None
        return placement

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        for name, setting in self.settings.items():
            for method in (setting.base, *setting.methods):
                if method not in self.methods:
                    raise ValueError(f"settings.{name} names the method {method!r}, which is not in methods")
        for where, names in (("placement", self.placement), ("confirm.also", self.confirm.also)):
            for method in names:
                if method not in self.methods:
                    raise ValueError(f"{where} names the method {method!r}, which is not in methods")
        if START in self.methods:
            raise ValueError(f"no method may be called {START!r}")
        return self

    @property
    def hash(self) -> str:
        """The plan in twelve letters: what is tried, with which seeds, and what is asked; not the words about it."""
        said = json.dumps(self.model_dump(mode="json", exclude={"about"}), sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()[:12]

    def methods_of(self, setting: str) -> list[str]:
        """The methods that are tried in a setting, its base first."""
        base, named = self.settings[setting].base, self.settings[setting].methods or list(self.methods)
        return [base, *(method for method in named if method != base)]


class Cell(NamedTuple):
    """One training run of a campaign."""

    setting: str
    method: str
    seed: int

    def __str__(self) -> str:
        return f"{self.setting}/{self.method}/{self.seed}"

    def folder(self, runs: Path) -> Path:
        """Its run's folder."""
        return runs / self.setting / f"{self.method}-{self.seed}"

    def file(self, cells: Path) -> Path:
        """Where its result is committed."""
        return cells / self.setting / self.method / f"{self.seed}.json"


def read_plan(path: Path) -> Plan:
    """Read a plan.

    Raises:
        TurnwiseError: it is not there, or not right; each mistake is named.
    """
    try:
        data = yaml.safe_load(path.read_text("utf-8"))
        return Plan.model_validate(data)
    except OSError as error:
        raise TurnwiseError(
            f"The plan {path} cannot be read: {error.strerror}.", "Give a YAML file."
        ) from None
    except yaml.YAMLError as error:
        raise TurnwiseError(f"{path} is no YAML: {error}", "Repair it.") from None
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or path.name}: {e['msg']}" for e in error.errors())
        raise TurnwiseError(f"{path} is no plan: {wrong}.", "benchmarks/README.md shows one.") from None


def asked_of(plan: Plan, cell: Cell) -> dict[str, Any]:
    """What a cell is the answer to; a committed result of the same name must have been asked the same."""
    setting = plan.settings[cell.setting]
    changes = {**setting.changes, **({} if cell.method == START else plan.methods[cell.method])}
    place = plan.placement.get(cell.method, "")
    return {
        "recipe": setting.recipe,
        "changes": changes,
        "seed": cell.seed,
        "shared_start": setting.shared_start,
        **({"placement": place} if place else {}),
    }


def start_of(setting: str, runs: Path) -> Path:
    """The model from which every method of a setting begins, where the warm start is shared."""
    return Cell(setting, START, 0).folder(runs).resolve() / "checkpoints" / "step-000000" / "model"


def overrides_of(plan: Plan, cell: Cell, runs: Path) -> Mapping[str, Any]:
    """What a cell changes in its recipe."""
    asked = asked_of(plan, cell)
    if cell.method == START:
        return {**asked["changes"], "seed": cell.seed, "updates": 0, "evaluate.test": 1, "evaluate.dev": 1}
    begun = (
        {"model": {"path": str(start_of(cell.setting, runs))}, "warm_start": None}
        if asked["shared_start"]
        else {}
    )
    own = {
        key: value
        for key, value in asked["changes"].items()
        if not (begun and key.partition(".")[0] in ("model", "warm_start"))
    }
    changes = {**own, **begun, "seed": cell.seed}
    return {
        **changes,
        **({"checkpoint.keep": _all_of(asked)} if plan.after.demonstrations or plan.after.verdicts else {}),
    }


def _all_of(asked: Mapping[str, Any]) -> int:
    """How many checkpoints a run writes at most: what its first one finds likely is asked when it is done."""
    from turnwise.trainers.recipe.load import load_recipe

    recipe = load_recipe(asked["recipe"], asked["changes"])
    return 2 + recipe.updates // recipe.checkpoint.every + recipe.updates // recipe.evaluate.every
