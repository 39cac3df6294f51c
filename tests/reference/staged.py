"""Rewards for stages on the way: states in plain lists, in groups and in a log of demonstrations."""

from __future__ import annotations

import dataclasses
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from plain import Refused, agree, reference, refuses

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.envs.core import EndReason
from turnwise.errors import RunError
from turnwise.tasks.core import Task
from turnwise.trainers.kit.toy_batches import episode

ENV = "turnwise/Shop-v0"


class Walk(NamedTuple):
    """States in which an episode acted, what it was paid there, its task, whether it was solved and counts."""

    states: list[str]
    paid: list[float]
    task: str
    solved: bool
    counts: bool

    def made(self) -> Episode:
        one = episode(self.paid, end=EndReason.SOLVED if self.solved else EndReason.FAILED)
        turns = tuple(
            dataclasses.replace(turn, state_key=key)
            for turn, key in zip(one.trajectory.turns, self.states, strict=True)
        )
        return dataclasses.replace(
            one,
            task=Task(ENV, self.task),
            trajectories={"agent": dataclasses.replace(one.trajectory, turns=turns)},
            outcome=Outcome.OK if self.counts else Outcome.INFRA_ERROR,
        )


def walks(rng: random.Random, count: int, tasks: str) -> list[Walk]:
    found: list[Walk] = []
    for _ in range(count):
        task, n = rng.choice(tasks), rng.choice([0, 1, 2, 4, 6, 7])
        states = [f"{task}0", *(f"{task}{rng.randrange(5)}" for _ in range(n))][:n]
        if n and rng.random() < 0.15:
            states[0] = f"{task}{rng.randrange(5)}"
        paid = [round(rng.uniform(-1, 1), 3) for _ in states]
        found.append(Walk(states, paid, task, n > 0 and rng.random() < 0.6, rng.random() < 0.85))
    return found


def wanted_by(demonstrations: list[Walk], share: float) -> list[str]:
    every = sorted({state for one in demonstrations for state in one.states})
    begins = [one.states[0] for one in demonstrations if one.states]
    n = len(demonstrations)
    return [s for s in every if s not in begins and sum(s in d.states for d in demonstrations) >= share * n]


def staged_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(40):
            rng = random.Random(f"stages {seed}")
            log = Path(folder) / f"{seed}.jsonl"
            shown = walks(rng, 12, "ab")
            with EpisodeLog(log) as written:
                for one in shown:
                    written.append(one.made())
            group = walks(rng, 5, rng.choice("abc"))
            logged = "path" in getattr(part, "keywords", {})
            given = {"path": str(log)} if logged else {}
            try:
                wanted = formula(group, shown)
            except Refused:
                refuses(lambda group=group: part([one.made() for one in group]))
                return
            for walk, one, paid in zip(
                group, part([one.made() for one in group], **given), wanted, strict=True
            ):
                assert len(one.trajectory.turns) == len(paid)
                for turn, a, x in zip(one.trajectory.turns, walk.paid, paid, strict=True):
                    agree(turn.rewards["milestones"], x, f"{seed} {walk}")
                    agree(turn.reward, a + x, f"{seed} {walk}")
            if logged:
                with EpisodeLog(log) as written:  # what is added is seen
                    for key in "xyz":
                        written.append(Walk(["q", key], [0, 1], group[0].task, True, True).made())
                one = Walk(["q", "r", "z"], [0.0, 0.0, 0.0], group[0].task, False, True)
                known = [*shown, *(Walk(["q", key], [0, 1], group[0].task, True, True) for key in "xyz")]
                (paid,) = formula([one], known)
                (found,) = part([one.made()], **given)
                assert [turn.rewards["milestones"] for turn in found.trajectory.turns] == paid
        if "path" in getattr(part, "keywords", {}):
            empty = Path(folder) / "failed.jsonl"
            with EpisodeLog(empty) as written:
                written.append(Walk(["a0", "a1"], [0, 0], "a", False, True).made())
                written.append(Walk(["a0", "a1"], [0, 1], "a", True, False).made())
            for path in (empty, Path(folder) / "none.jsonl"):
                said = refuses(
                    lambda path=path: part([Walk(["a0"], [0.0], "a", True, True).made()], path=str(path)),
                    RunError,
                )
                assert str(path) in said


@reference(
    "reward", "milestones", law=staged_law, path=["a log"], weight=[2.0, -0.5], share=[0.5, 0.0, 1.5],
    also=[{"path": "a log", "share": 0.4}, {"path": "a log", "weight": 0.0}],
)  # fmt: skip
def milestones(
    group: list[Walk], shown: list[Walk], path: str = "", weight: float = 0.5, share: float = 1.0
) -> list[list[float]]:
    if weight < 0 or not 0 < share <= 1:
        raise Refused
    known = [
        one for one in (shown if path else group) if one.solved and one.counts and one.task == group[0].task
    ]
    wanted = wanted_by(known, share)
    found: list[list[float]] = []
    for one in group:
        paid = [0.0 for _ in one.states]
        for state in wanted:
            places = [k for k, key in enumerate(one.states) if key == state]
            if places and places[0] > 0:
                paid[places[0] - 1] = weight / len(wanted)
        found.append(paid)
    return found
