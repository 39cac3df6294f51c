"""The processes that play episodes on from a fork, and what they have said so far."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import statistics
import sys
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from turnwise.errors import TurnwiseError
from turnwise.trainers.view.forking import (
    Arm,
    ForkAnswer,
    ForkEpisode,
    ForkMoment,
    ForkProblem,
    ForkQuestion,
    read_answer,
)

AT_ONCE = 2
"""Processes that play at a time."""

WAITING = 4
"""Questions that wait for one of them; more are refused."""

_KEPT = 50
_SECONDS = 600.0
_LONGEST_LINE = 64_000_000


class ForkOrigin(NamedTuple):
    """Of which episode of which place a job is."""

    place: str
    episode: int
    played: float  # what the episode earned from that turn on


@dataclass
class ForkJob:
    """A question, and its answers as they come."""

    id: str
    question: ForkQuestion
    origin: ForkOrigin
    answers: list[ForkAnswer] = field(default_factory=list[ForkAnswer])
    state: str = "waiting"  # "playing", "done", "stopped"
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """True if more is to come."""
        return self.state in ("waiting", "playing")

    @property
    def problem(self) -> ForkProblem | None:
        """Why there is no answer."""
        return next((answer for answer in self.answers if isinstance(answer, ForkProblem)), None)

    @property
    def moment(self) -> ForkMoment | None:
        """Answer that shows where the episode was forked; None before it came."""
        return next((answer for answer in self.answers if isinstance(answer, ForkMoment)), None)

    def episodes(self, arm: Arm) -> list[ForkEpisode]:
        """List the results of one arm so far."""
        return [answer for answer in self.answers if isinstance(answer, ForkEpisode) and answer.arm == arm]

    def returns(self, arm: Arm) -> ArmReturns:
        """The returns from the fork on of the continuations that count."""
        values = [episode.to_go for episode in self.episodes(arm) if episode.counts]
        error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
        solved = sum(episode.end == "solved" for episode in self.episodes(arm))
        return ArmReturns(values, statistics.fmean(values) if values else None, error, solved)


class ArmReturns(NamedTuple):
    """Returns from the fork on, with their mean and its standard error, and how many were solved."""

    values: list[float]
    mean: float | None
    error: float | None
    solved: int


class ForkJobs:
    """All questions of this server; old answers are forgotten."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, ForkJob] = OrderedDict()
        self._places = asyncio.Semaphore(AT_ONCE)

    def ask(self, question: ForkQuestion, origin: ForkOrigin) -> ForkJob:
        """Start a process, or wait for the end of another.

        Raises:
            TurnwiseError: too many are waiting.
        """
        if sum(job.running for job in self._jobs.values()) >= AT_ONCE + WAITING:
            raise TurnwiseError(
                f"{AT_ONCE + WAITING} questions are being answered already.", "Wait for one, or stop one."
            )
        job = ForkJob(secrets.token_urlsafe(9), question, origin)
        self._jobs[job.id] = job
        while len(self._jobs) > _KEPT:
            oldest = next((one for one in self._jobs.values() if not one.running), None)
            if oldest is None:
                break
            del self._jobs[oldest.id]
        job.task = asyncio.get_running_loop().create_task(self._run(job))
        return job

    def get(self, name: str) -> ForkJob | None:
        """A job by its id."""
        return self._jobs.get(name)

    def all(self) -> list[ForkJob]:
        """All jobs, newest first."""
        return [*reversed(self._jobs.values())]

    async def stop(self, job: ForkJob) -> None:
        """End a job's process; what it has said stays."""
        if job.task is not None and job.running:
            job.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await job.task

    async def close(self) -> None:
        """End all of them."""
        for job in self._jobs.values():
            await self.stop(job)

    async def _run(self, job: ForkJob) -> None:
        try:
            async with self._places, asyncio.timeout(_SECONDS):
                job.state = "playing"
                await _play(job)
            job.state = "done"
        except TimeoutError:
            job.answers.append(
                ForkProblem(
                    cause=f"It took longer than {_SECONDS:.0f} s.", remedy="Ask for fewer continuations."
                )
            )
            job.state = "done"
        except asyncio.CancelledError:
            job.state = "stopped"
        finally:
            job.seconds = time.monotonic() - job.began


async def _play(job: ForkJob) -> None:
    """The process of one question, from start to end; it is killed where this is cancelled."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "turnwise.trainers.view.forking",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        limit=_LONGEST_LINE, start_new_session=True, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    errors = asyncio.get_running_loop().create_task(_last(process.stderr))
    try:
        process.stdin.write(job.question.model_dump_json().encode())
        process.stdin.close()
        async for line in process.stdout:
            job.answers.append(read_answer(line))
        code = await process.wait()
        said = await errors
        if code and job.problem is None:
            job.answers.append(
                ForkProblem(
                    cause=f"The process that played ended with code {code}. {said}", remedy="Ask again."
                )
            )
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        errors.cancel()


async def _last(stream: asyncio.StreamReader) -> str:
    """The end of what a process wrote to its errors."""
    kept = b""
    while chunk := await stream.read(65_536):
        kept = (kept + chunk)[-2000:]
    lines = kept.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
