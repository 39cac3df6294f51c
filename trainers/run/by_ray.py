"""Learners that Ray places: the command that starts them holds no tensor, looks after them, and starts them again.

Each learner is a ``turnwise train`` of its own, told its number as torchrun would tell it (:mod:`turnwise.trainers.run.world`); the first
one is the run. When a learner is lost, all are started again, and go on from the newest checkpoint.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.agents.remote.gpus import share_gpus
from turnwise.agents.remote.ray_actors import ADDRESS, ANSWER_S, END_S, LOOK_S, START_S, RayCluster, said
from turnwise.agents.remote.ray_commands import CommandActor, CommandState
from turnwise.errors import EngineError, RunError
from turnwise.trainers.report.records import EVALUATIONS, json_lines
from turnwise.trainers.run.progress import CheckpointEvaluation, TrainingResult
from turnwise.trainers.run.stop import Stop

MOST_RESTARTS = 3
"""Number of times that learners are started again before a run is given up, which goes on by ``--resume``."""
_AFTER_S = 5.0  # within which a learner's end shows that the first one was told of


def train_by_ray(
    arguments: Sequence[str],
    learners: int,
    *,
    beside: int = 0,
    device: str = "auto",
    log: Callable[[str], None],
) -> TrainingResult:
    """Run ``turnwise train`` wherever Ray finds room for its learners, until the run ends. Ctrl-C is passed on to it.

    Args:
        arguments: of ``turnwise train``; the run's folder and the recipe are seen by every machine under the same name.
        learners: how many.
        beside: processors that the run asks Ray for itself, which a cluster made here has too.
        device: the recipe's; each learner has a GPU where the cluster has any, unless this is ``cpu``.
        log: called with each line that the run says, and with what becomes of learners.

    Returns:
        What it came to, by its own account and its folder.

    Raises:
        MissingDependencyError: Ray is not installed.
        EngineError: there is no such cluster, or it has no room.
        RunError: the run says that it cannot go on, or learners were lost too often.
    """
    cluster = RayCluster.join(learners + beside, share_gpus(device, learners=0).free)
    gpus = 1 if device != "cpu" and cluster.ray.cluster_resources().get("GPU", 0) else 0
    try:
        with Stop(log) as stop:
            for number in range(MOST_RESTARTS):
                out, lost = _attempt(cluster, learners, gpus, arguments, stop, log)
                if not lost or stop.asked:
                    break
                log(f"{lost}: all learners start again ({number + 1} of {MOST_RESTARTS})")
                arguments = [*arguments, *(["--resume"] if "--resume" not in arguments else [])]
            else:
                out, lost = _attempt(cluster, learners, gpus, arguments, stop, log)
    finally:
        cluster.leave()
    if lost:
        raise RunError(f"{lost}, and learners are not started again.", "Go on with --resume.")
    return _result(out)


def _attempt(
    cluster: RayCluster,
    learners: int,
    gpus: int,
    arguments: Sequence[str],
    stop: Stop,
    log: Callable[[str], None],
) -> tuple[str, str]:
    """From the learners' start to their end: what the first one wrote to standard output, and what was lost."""
    attempt = _Attempt(cluster, learners, gpus)
    try:
        attempt.begin(arguments)
        lost = attempt.follow(stop, log)
    except cluster.ray.exceptions.RayActorError:
        lost = "a learner is gone before it has begun"
    finally:
        attempt.close()
    return attempt.out, lost


class _Attempt:
    """The learners from one start to their end.

    Args:
        cluster: where they are to be.
        learners: how many.
        gpus: how many each has.
    """

    def __init__(self, cluster: RayCluster, learners: int, gpus: int) -> None:
        self._cluster, self._ray, self._gpus = cluster, cluster.ray, gpus
        actor = self._ray.remote(CommandActor).options(num_cpus=1, num_gpus=gpus, max_restarts=0)
        self._actors: list[Any] = [actor.remote() for _ in range(learners)]
        self._seen = [0] * learners
        self.out = ""

    def begin(self, words: Sequence[str]) -> None:
        """Start them where Ray has placed them.

        Raises:
            EngineError: there is no room for all of them.
        """
        placed = [actor.meeting.remote() for actor in self._actors]
        ready, waiting = self._ray.wait(placed, num_returns=len(placed), timeout=START_S)
        if waiting:
            count = len(placed)
            raise EngineError(
                f"{len(waiting)} of {count} learners have no place after {START_S:.0f} s. They take {count} CPUs and "
                f"{count * self._gpus} GPUs, and Ray has {said(self._ray.available_resources())} free.",
                "Ask for fewer, or give the cluster more.",
            )
        host, port = self._ray.get(ready[ready.index(placed[0])])
        joining: dict[str, str] = {ADDRESS: self._ray.get_runtime_context().gcs_address}
        given = ["train", *words, "--with-parent", "--json"]
        begun = [
            actor.begin.remote(
                "turnwise", given, {**joining, **_variables(rank, len(placed), host, port)}, os.getcwd()
            )
            for rank, actor in enumerate(self._actors)
        ]
        self._ray.get(begun)

    def follow(self, stop: Stop, log: Callable[[str], None]) -> str:
        """Pass on what they say until the first one ends; what was lost, in words, if something was."""
        told, until = False, float("inf")
        while True:
            states = self._states()
            for rank, state in enumerate(states):
                self._pass_on(rank, state, log)
            lost = [_lost(rank, state) for rank, state in enumerate(states)]
            if any(lost):
                return next(filter(None, lost))
            first = states[0]
            if first is not None and first.code is not None:
                until = min(until, time.monotonic() + _AFTER_S)
                over = all(state is not None and state.code is not None for state in states)
                if first.code == 0 or over or time.monotonic() > until:
                    return ""
            if stop.asked and not told:
                told = True
                self._actors[0].tell.remote(int(signal.SIGTERM))
            time.sleep(LOOK_S)

    def close(self) -> None:
        """End them all."""
        ended = [actor.close.remote() for actor in self._actors]
        self._ray.wait(ended, num_returns=len(ended), timeout=END_S)
        for actor in self._actors:
            self._ray.kill(actor)

    def _states(self) -> list[CommandState | None]:
        """Ask how each learner is; None for one that is gone with its actor."""
        asked = [actor.state.remote(seen) for actor, seen in zip(self._actors, self._seen, strict=True)]
        found: list[CommandState | None] = []
        for rank, one in enumerate(asked):
            try:
                state: CommandState = self._ray.get(one, timeout=ANSWER_S)
            except self._ray.exceptions.RayTaskError:  # of ours
                raise
            except self._ray.exceptions.RayError:
                found.append(None)
                continue
            self._seen[rank] += len(state.said)
            found.append(state)
        return found

    def _pass_on(self, rank: int, state: CommandState | None, log: Callable[[str], None]) -> None:
        for out, line in state.said if state is not None else ():
            if not out:
                log(f"learner {rank}: {line}" if rank else line)
            elif not rank:
                self.out += f"{line}\n"


def _result(out: str) -> TrainingResult:
    """The result that a run has printed as JSON; its evaluations, task for task, are in its folder.

    Raises:
        RunError: it has printed an error.
    """
    try:
        said = json.loads(out)
    except ValueError as error:
        raise RunError("The run ended without a word.", "Look at its lines above.") from error
    if "error" in said:
        raise RunError(said["cause"], said["remedy"])
    run = Path(said["run"])
    logged = {(row["name"], row["mode"], row["suite"]): row for row in json_lines(run / EVALUATIONS, [])}
    evaluations = tuple(
        CheckpointEvaluation(
            row["name"], row["mode"], Evaluation.from_json(logged[row["name"], row["mode"], row["suite"]])
        )
        for row in said["evaluations"]
    )
    return TrainingResult(
        run, evaluations, said["best_update"], said["learned"], said["interrupted"], said["seconds"]
    )


def _lost(rank: int, state: CommandState | None) -> str:
    """Say in words what was lost of a learner; empty if nothing was."""
    if state is None:
        return f"learner {rank} is gone with its machine or its actor"
    if state.code is not None and state.code < 0:
        return f"learner {rank} was ended by {signal.Signals(-state.code).name}"
    return ""


def _variables(rank: int, size: int, host: str, port: int) -> Mapping[str, str]:
    """Return the environment variables that tell a learner its place; each sees its own GPU alone, so it is the only one of its machine."""
    if size == 1:
        return {}
    told = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_PORT": port}
    return {"MASTER_ADDR": host, **{name: str(value) for name, value in told.items()}}
