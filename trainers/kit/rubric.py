"""Rubrics: the criteria of a task, which of them an episode meets, and what that is worth."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pydantic

from turnwise.agents.core import Episode
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import rollout_episode
from turnwise.envs.registry import make
from turnwise.errors import EnvError
from turnwise.tasks.core import Task
from turnwise.trainers.kit.asking import ask, judge_policy, transcript
from turnwise.trainers.kit.forms import CRITERIA

KEY = "rubrics"
"""The task's option that holds its criteria."""
QUESTION = """\
Below are an attempt of an agent at a task and a list of criteria. Say of each criterion whether the attempt meets it.

{transcript}

Criteria:
{criteria}

End with one line for each criterion: `CRITERION n: yes` or `CRITERION n: no`."""
_ANSWER = re.compile(
    r"^[^\w\n>]*CRITERION[ \t]+(\d{1,6})[^\w\n]*:[^\w\n]*(yes|no)\b", re.MULTILINE | re.IGNORECASE
)


class Criterion(NamedTuple):
    """A criterion and its points, which may be negative; ``check`` where no judge is needed to say whether it is met."""

    text: str
    points: float = 1.0
    check: Callable[[Episode], bool] | None = None


class _Written(pydantic.BaseModel):
    criterion: str
    points: pydantic.FiniteFloat = 1.0


_RUBRIC = pydantic.TypeAdapter(list[_Written])


async def rubrics_of(tasks: Sequence[Task]) -> dict[str, list[Criterion]]:
    """The criteria of each task, by its id: those of its option ``rubrics``, else what its own solution does.

    The option is a list of {criterion, points}. Without it there is a point for each act of the solution, met where the agent does
    the same, and one where the task is solved.

    Raises:
        EnvError: a task's criteria cannot be read.
    """
    found: dict[str, list[Criterion]] = {}
    for task in tasks:
        if task.id not in found:
            found[task.id] = _own(task) if KEY in task.options else await _solution(task)
    return found


def _own(task: Task) -> list[Criterion]:
    try:
        return [Criterion(one.criterion, one.points) for one in _RUBRIC.validate_python(task.options[KEY])]
    except pydantic.ValidationError as error:
        raise EnvError(
            f"Task {task.id}: its option {KEY} is no list of criteria: {error.errors()[0]['msg']}.",
            f'Write {KEY}: [{{"criterion": "It names the price.", "points": 1}}].',
        ) from None


async def _solution(task: Task) -> list[Criterion]:
    shown = await rollout_episode(make(task.env), scripted("gold"), task, seed=0)
    acts = dict.fromkeys(str(turn.action) for turn in shown.trajectory.turns) if shown.success else {}
    return [
        *(Criterion(f"The agent does: {act}", check=lambda e, act=act: act in _acts(e)) for act in acts),
        Criterion("The task is solved.", check=lambda e: e.success),
    ]


def _acts(episode: Episode) -> set[str]:
    return {str(turn.action) for turn in episode.trajectory.turns}


def score(rubric: Sequence[Criterion], met: Sequence[bool]) -> float:
    """The points of the criteria that are met, over all positive points; 0 where there are none.

    Worked by hand: points 5, 3, −4, 7 of which the first three are met, the third alone, and a rubric that only takes away.

    >>> rubric = [Criterion("", points) for points in (5, 3, -4, 7)]
    >>> round(score(rubric, [True, True, True, False]), 4), round(score(rubric, [False, False, True, False]), 4), score(rubric[2:3], [True])
    (0.2667, -0.2667, 0.0)
    """
    most = sum(max(0.0, one.points) for one in rubric)
    return sum(one.points for one, is_met in zip(rubric, met, strict=True) if is_met) / most if most else 0.0


async def marks(
    episodes: Sequence[Episode], rubrics: Mapping[str, Sequence[Criterion]], policy: str
) -> list[list[bool]]:
    """Which criteria each episode meets; a judge (a policy's spec) is asked of those that have no check."""
    asked = [[c for c in rubrics[one.task.id] if c.check is None] for one in episodes]
    questions = [
        QUESTION.format(transcript=transcript(one), criteria=as_list(criteria))
        for one, criteria in zip(episodes, asked, strict=True)
        if criteria
    ]
    answers = iter(await ask(judge_policy(policy), questions, form=CRITERIA) if questions else [])
    found: list[list[bool]] = []
    for one, criteria in zip(episodes, asked, strict=True):
        said = iter(read(next(answers), len(criteria)) if criteria else [])
        found.append([next(said) if c.check is None else c.check(one) for c in rubrics[one.task.id]])
    return found


def as_list(criteria: Sequence[Criterion]) -> str:
    """The criteria as numbered lines."""
    return "\n".join(f"{n}. {one.text}" for n, one in enumerate(criteria, 1))


def read(answer: str, n: int) -> list[bool]:
    """Of n criteria, those that a judge's answer calls met; of one that is named twice, the later line counts.

    >>> read("**Criterion 1**: Yes\\nCRITERION 3: no\\nCRITERION 4: yes\\nCRITERION 3: yes", 3)
    [True, False, True]
    """
    said = {int(number): word.lower() == "yes" for number, word in _ANSWER.findall(answer)}
    return [said.get(k, False) for k in range(1, n + 1)]
