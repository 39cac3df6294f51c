"""True worth of turns, beside what each credit rule gave them: one group of a batch, to be looked at.

``turnwise credit-quality --out`` writes these groups as a page of their own; with ``--run`` they are episodes of the run, are kept in its
directory (``true-turns.json``) and shown in its report and by ``turnwise view``.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import pydantic
from jinja2 import StrictUndefined, Template
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

from turnwise.errors import TurnwiseError

TRUE_TURNS = "true-turns.json"


class _Frozen(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")


class TrueTurn(_Frozen):
    """A turn: its true advantage with the standard error, and the advantage that each rule gave it."""

    saw: str
    action: str
    reward: float
    truth: float
    error: float
    given: dict[str, float]


class TrueEpisode(_Frozen):
    """One sibling."""

    number: int
    total_reward: float
    end: str
    turns: tuple[TrueTurn, ...]

    def largest(self, rule: str) -> float:
        """The largest absolute advantage that a rule gave here, which gets the full colour."""
        return max((abs(turn.given[rule]) for turn in self.turns), default=0.0)


class RuleNote(_Frozen):
    """A rule, and its correlation with the truth on the whole batch (0 where either is constant).

    ``column``: it stands in the table of an episode; the others only in the overview below it. ``like``: rules that
    are no better and gave these turns nearly the same, up to a factor.
    """

    name: str
    correlation: float
    column: bool = True
    like: tuple[str, ...] = ()


class TrueGroup(_Frozen):
    """Some episodes of one task.

    Attributes:
        source: the suite.
        stage: the policy that played and went on from the forks.
        forks: rollouts from the state before each turn.
        reliability: the share of the measured truth's variance over the batch that is not measurement error.
        rules: best correlation first.
    """

    source: str
    stage: str
    task_id: str
    goal: str
    forks: int
    reliability: float
    rules: tuple[RuleNote, ...]
    episodes: tuple[TrueEpisode, ...]

    @property
    def columns(self) -> list[RuleNote]:
        """The rules in the table of an episode."""
        return [rule for rule in self.rules if rule.column]

    @property
    def largest(self) -> float:
        """The largest true advantage with its error: the full length of the bars."""
        return max((abs(t.truth) + 2 * t.error for e in self.episodes for t in e.turns), default=0.0)


class _Groups(_Frozen):
    groups: tuple[TrueGroup, ...]


def save_groups(groups: Sequence[TrueGroup], path: Path) -> Path:
    """Write groups as JSON; :func:`load_groups` reads them."""
    path.write_text(_Groups(groups=tuple(groups)).model_dump_json() + "\n", "utf-8")
    return path


def load_groups(path: Path) -> tuple[TrueGroup, ...]:
    """Read what :func:`save_groups` wrote; nothing where there is no such file.

    Raises:
        TurnwiseError: the file is damaged.
    """
    if not path.exists():
        return ()
    try:
        return _Groups.model_validate_json(path.read_bytes()).groups
    except pydantic.ValidationError as error:
        raise TurnwiseError(
            f"{path} is damaged: {error.errors()[0]['msg']}.",
            "Remove it, or write it anew: `turnwise credit-quality --run`.",
        ) from None


def section(groups: Sequence[TrueGroup]) -> Markup:
    """The groups as a section of a page with the report's style."""
    return Markup(_template("true_turns.html.j2").render(groups=groups))


def page(groups: Sequence[TrueGroup]) -> str:
    """The groups as a page of their own, which has no script and loads nothing."""
    css = Markup((files("turnwise.trainers.report") / "report.css").read_text("utf-8"))
    return _template("true_turns_page.html.j2").render(css=css, section=section(groups))


def _template(name: str) -> Template:
    environment = SandboxedEnvironment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string((files("turnwise.trainers.report") / name).read_text("utf-8"))
