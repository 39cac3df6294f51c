"""A moment of a conversation, and what stays the same during an episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from turnwise.envs.messages import Message
from turnwise.envs.toolworld.database import Cell, Database, changes
from turnwise.envs.toolworld.domain import Domain, carry_out
from turnwise.envs.toolworld.mind import StageMind, UserState
from turnwise.envs.toolworld.story import PlanStep, Stage, Story
from turnwise.tasks.core import canonical


class ToolWorldCase:
    """Constant part of an episode: the domain, the story, the first and the last database."""

    __slots__ = (
        "_goal", "base", "domain", "marks", "planned", "played", "records", "story", "target", "task_id",
    )  # fmt: skip

    def __init__(self, domain: Domain, story: Story, base: Database, task_id: str, played: bool) -> None:
        self.domain, self.base, self.task_id = domain, base, task_id
        self.played = played  # the user is another agent or a language model
        goal, stages = base, list[Stage]()
        for stage in story.stages:
            done = carry_out(self.domain, goal, story.customer, stage.plan)
            stages.append(stage._replace(plan=done.plan, quiet=done.db == goal))
            goal = done.db
        self.target: Database = goal
        self._goal: Mapping[Cell, str] | None = None
        self.story = story._replace(stages=tuple(stages))
        # how each planned call is recorded when it was made (ToolState.done)
        self.records = tuple(
            tuple(
                (step.name, canonical(step.arguments) if step.kind == "call" else "") for step in stage.plan
            )
            for stage in stages
        )
        steps = (step for stage in stages for step in stage.plan)
        self.planned: tuple[PlanStep, ...] = tuple(step for step in steps if step.kind == "call")
        tells = sum(len(stage.tells) for stage in story.stages)
        self.marks = tells + len(self.planned)

    @property
    def goal(self) -> Mapping[Cell, str]:
        """Return what the last database has that the first has not; only what measures progress asks for it."""
        if self._goal is None:
            self._goal = changes(self.base, self.target)
        return self._goal

    def __repr__(self) -> str:
        return f"Case({self.task_id})"


class ToolState(NamedTuple):
    """An immutable moment. ``done`` are calls that succeeded, ``best`` what planned calls have earned so far.

    ``closed`` says how the conversation ended: ``content``, ``left`` (the user's patience) or a tool's name. The
    fields from ``current_agent`` on matter only where the user is played.
    """

    case: ToolWorldCase
    db: Database
    user: UserState
    verified: frozenset[str]
    broken: tuple[str, ...]
    done: frozenset[tuple[str, str]]
    best: tuple[float, ...]
    calls: int = 0
    closed: str = ""
    current_agent: str = "agent"
    pending: str = ""  # what the agent said and the user has not answered
    opened: bool = True  # the user has said what they want
    acted: frozenset[str] = frozenset()  # deeds since the agent spoke
    talk: tuple[Message, ...] = ()  # the conversation as a language model sees it that plays the user


def begin(case: ToolWorldCase) -> ToolState:
    """The first moment; a user who is played speaks first."""
    later = range(1, len(case.story.stages)) if case.story.together else ()
    user = UserState(patience=case.story.patience, aside=tuple(StageMind(number) for number in later))
    first = ToolState(case, case.base, user, frozenset(), (), frozenset(), (-1.0,) * len(case.planned))
    return first._replace(current_agent="user", opened=False) if case.played else first
