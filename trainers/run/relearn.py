"""Learning a run again from its episode log: the same weights, bit for bit, without playing.

What an update trains on is in the log: every episode as it was played, with the engine's log-probabilities and the
versions of the weights that sampled each token, in the order in which they were consumed. Everything else an update
needs is derived from the recipe's seed and the update's number, or from what earlier updates left (an optimizer's moments,
a part's memory). The learner's arithmetic is deterministic, so that doing it again gives the same bits, whether the run
played ahead of its learner or not, and however often it was killed.

Two things are compared on the way: each turn's advantage with the one in the log, and the weights and the optimizer with
those of every checkpoint that is still there.

What it cannot do, it refuses: a run whose log lacks updates (such as one that kept the newest alone, ``log.keep``), whose model, teacher or stored source is gone, or whose
sampler no longer draws the tasks that were played. On another processor, or with another number of threads, sums may be
rounded otherwise; this is said when the weights differ.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch
from pydantic import BaseModel

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.log.records import Record
from turnwise.agents.workers.pool import WorkerPool, workers_for
from turnwise.errors import RunError
from turnwise.tasks.core import Json
from turnwise.trainers.core import Group
from turnwise.trainers.learn.team import Alone
from turnwise.trainers.proposer.core import SUITE, ProposerContext
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.recipe.schema import Recipe, Rollout
from turnwise.trainers.recipe.text import read_text
from turnwise.trainers.report.records import RECIPE, json_lines
from turnwise.trainers.run.again import replayed
from turnwise.trainers.run.checkpoint import TRAINER, file_hashes, same_trainer, save_checkpoint, saved_steps
from turnwise.trainers.run.circumstances import STARTED, differences_since
from turnwise.trainers.run.collect import CollectedGroups, assembled
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.door import opened
from turnwise.trainers.run.lesson import LearnedUpdate, Lessons
from turnwise.trainers.run.proposing import proposed
from turnwise.trainers.run.ranks import share_of_threads
from turnwise.trainers.run.resources import find_source
from turnwise.trainers.run.session import TrainingSession
from turnwise.trainers.run.small import ensure_model
from turnwise.trainers.run.stop import Stop
from turnwise.trainers.run.warm import imitate
from turnwise.trainers.sampler.core import GroupRequest
from turnwise.trainers.sampler.mixture import Mixture
from turnwise.trainers.strategy.runner import Cost


def weight_files(names: Iterable[str]) -> list[str]:
    """The files of a checkpoint that must come out again: weights (large ones in several), and what the trainer holds.

    >>> weight_files(["model/config.json", "trainer.safetensors", "model/model-00002-of-00002.safetensors", "model/model-00001-of-00002.safetensors"])
    ['model/model-00001-of-00002.safetensors', 'model/model-00002-of-00002.safetensors', 'trainer.safetensors']
    """
    return sorted(
        name
        for name in {*names}
        if name == TRAINER or (name.startswith("model/") and name.endswith(".safetensors"))
    )


class Relearned(NamedTuple):
    """Result of learning a run again.

    Attributes:
        run: its folder.
        updates: how many were learned again.
        equal: the updates after which a checkpoint of the run has the same bits.
        advantages: how many turns' advantages were compared with the log, all of them equal.
        sha256: of the weights after the last update.
        seconds: that it took.
    """

    run: Path
    updates: int
    equal: tuple[int, ...]
    advantages: int
    sha256: str
    seconds: float

    def to_json(self) -> dict[str, Json]:
        """One JSON object."""
        return {
            **self._asdict(),
            "run": str(self.run),
            "equal": [*self.equal],
            "seconds": round(self.seconds, 1),
        }


async def relearn_async(
    path: Path, *, out: Path | None = None, log: Callable[[str], None] = lambda line: None
) -> Relearned:
    """Learn a run again and compare.

    Args:
        path: the run's folder, which is only read.
        out: where its last checkpoint is written anew; nowhere unless given.
        log: receives a line about each comparison.

    Raises:
        RunError: it cannot be learned again, for the reason that is named, or came out otherwise.
    """
    began, run = time.monotonic(), RunDirectory(path)
    recipe, rows = _recipe_of(path), _updates_of(path)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnwise-relearn-")))
        workers = stack.enter_context(workers_for(recipe.rollout.env_workers))
        again = _Again(recipe, run, RunDirectory(out or folder / "again"), workers, log)
        stack.callback(again.close)
        await again.begin()
        by_update = _by_update(run.episodes, len(rows), recipe.log.keep, again.playless)
        for update, records in enumerate(by_update):
            await again.update(update, records, rows[update])
    return Relearned(
        path, len(rows), tuple(again.equal), again.advantages, again.sha256, time.monotonic() - began
    )


def relearn(path: Path, **options: Any) -> Relearned:
    """:func:`relearn_async` for callers that have no event loop."""
    return asyncio.run(relearn_async(path, **options))


class _Again:
    """A learner that takes the way of a run once more."""

    def __init__(
        self,
        recipe: Recipe,
        run: RunDirectory,
        own: RunDirectory,
        workers: WorkerPool | None,
        log: Callable[[str], None],
    ) -> None:
        self.recipe, self.run, self.own, self.workers, self.log = recipe, run, own, workers, log
        self.options, self.mixture = opened(recipe), Mixture(recipe.suites, recipe.seed)
        self.lessons = Lessons(recipe, self.mixture)
        if self.options.session.roles.staleness:  # its learner worked in a thread of its own
            self.lessons.beside = ThreadPoolExecutor(1, "turnwise-learner")
        self.threads = torch.get_num_threads()
        self.steps = saved_steps(run.checkpoints)
        self.equal: list[int] = []
        self.advantages = 0
        self.sha256 = ""

    @property
    def playless(self) -> set[int]:
        """Updates of phases that play nothing, and learn from sources alone."""
        return {
            update
            for phase in self.lessons.phases
            for update in range(phase.first, phase.end)
            if not phase.recipe.rollout.groups and not phase.recipe.proposer
        }

    async def begin(self) -> None:
        """Load the model, take the warm start, and compare with the checkpoint before the first update."""
        found = find_source(self.recipe.model)
        if found is None and self.run.model.exists():
            found = str(self.run.model)
        self.own.path.mkdir(parents=True, exist_ok=True)
        if (self.run.path / STARTED).is_file():  # its clock
            shutil.copyfile(self.run.path / STARTED, self.own.path / STARTED)
        self.session = TrainingSession(
            opened(self.lessons.recipe).session,
            self.own,
            ensure_model(self.options.scratch, self.own, found, self.log),
        )
        if self.options.warm is not None:
            nothing: Callable[..., None] = lambda *_: None
            await imitate(
                self.options.warm,
                self.session,
                self.mixture,
                self.workers,
                done=0,
                stop=Stop(self.log),
                save=nothing,
                note=nothing,
                log=self.log,
            )
            self.session.begin(opened(self.lessons.recipe).session, 0)
        self._compare(0)

    async def update(self, update: int, records: Sequence[Record], row: Mapping[str, Any]) -> None:
        """Learn from an update's records; ``row`` has the metrics that schedules go by."""
        now = self.lessons.prepare(self.session, update)
        self._as_many(int(row.get("learners", 1)))
        played = await _played(now.rollout, now.most_groups, self.lessons, update, records)
        lesson = await self.lessons.learn(self.session, update, played, self.workers)
        self._check_advantages(update, played, lesson, records)
        self.lessons.seen(row)
        self._compare(update + 1)

    def close(self) -> None:
        """Let the learner's thread go."""
        torch.set_num_threads(self.threads)
        if isinstance(self.lessons.beside, ThreadPoolExecutor):
            self.lessons.beside.shutdown()

    def _as_many(self, learners: int) -> None:
        """Learn as so many learners did: the same shares, with the threads that each of them had."""
        if learners == self.session.learner.team.size:
            return
        self.session.learner.team = Alone(learners)
        torch.set_num_threads(self.threads)
        torch.set_num_threads(share_of_threads(learners))
        if isinstance(
            self.lessons.beside, ThreadPoolExecutor
        ):  # a thread keeps the number that it began with
            self.lessons.beside.shutdown()
            self.lessons.beside = ThreadPoolExecutor(1, "turnwise-learner")

    def _check_advantages(
        self, update: int, played: CollectedGroups, lesson: LearnedUpdate, records: Sequence[Record]
    ) -> None:
        found = played.advantages(lesson.result)
        places = [(number, i) for number, group in enumerate(played.played) for i in range(len(group))]
        for place, record in zip(places, records, strict=True):
            own = {name: tuple(row) for name, row in found.get(place, {}).items() if row}
            if own != dict(record.advantages):
                raise RunError(
                    f"Update {update + 1} of {self.run.path} gives other advantages than its log has, first in group "
                    f"{place[0]}: from there on it is another run. {self._why()}",
                    "Learn it again with the code and on the machine that it was made with.",
                )
            self.advantages += sum(map(len, own.values()))

    def _compare(self, step: int) -> None:
        """With the checkpoint after ``step`` updates, where there is one."""
        if step not in self.steps:
            return
        session = self.session
        kept = self.lessons.stateful(session)
        path = save_checkpoint(
            self.own.checkpoints, step, session.learner, kept, session.tokenizer, session.chat_format, {}
        )
        ours, theirs = file_hashes(path), file_hashes(self.run.checkpoint(step))
        different = [name for name in weight_files([*ours, *theirs]) if ours.get(name) != theirs.get(name)]
        if different == [TRAINER] and same_trainer(path, self.run.checkpoint(step), session.learner):
            different = []  # the run held parts, in files of their own
        if different:
            raise RunError(
                f"After update {step} {different[0]} came out otherwise than in {self.run.checkpoint(step)}. {self._why()}",
                "Learn it again with the code and on the machine that it was made with.",
            )
        self.equal.append(step)
        model = [ours[name] for name in weight_files(ours) if name != TRAINER]
        self.sha256 = model[0] if len(model) == 1 else hashlib.sha256("".join(model).encode()).hexdigest()
        self.log(f"after update {step}: the same bits as the run's checkpoint")

    def _why(self) -> str:
        """Say in a sentence what is known of why."""
        differs = differences_since(
            self.run.path, [*self.mixture.envs, *self.recipe.proposed_envs], self.options.session.roles.device
        )
        later = ", ".join(f"{name} ({value} now)" for name, value in _not_said(self.recipe))
        if later:
            differs.append(f"settings came that its {RECIPE} does not say: {later}")
        return (
            f"Since then, {'; '.join(differs)}."
            if differs
            else "Nothing about this machine is known to have changed."
        )


async def _played(
    rollout: Rollout, most: int, lessons: Lessons, update: int, records: Sequence[Record]
) -> CollectedGroups:
    """An update's groups as they were consumed.

    Raises:
        RunError: they are not of the tasks that the sampler draws and the proposers make for it.
    """
    groups: dict[int, list[Episode]] = {}
    for record in records:
        groups.setdefault(record.group or 0, []).append(record.episode)
    logged = [groups[number] for number in sorted(groups)]
    made = {record.group for record in records if record.suite.startswith(SUITE)}
    played = [groups[number] for number in sorted(groups) if number not in made]
    requests: list[GroupRequest] = []
    rounds: list[int] = []
    while len(requests) < len(played):
        count = min(rollout.groups, most - len(requests))
        asked = lessons.sampler.plan(update, len(requests), count)
        asked = replayed(lessons.sampler, update, asked, played[len(requests) :][: len(asked)])
        requests += asked
        rounds.append(len(asked))

    async def from_the_log(asked: Sequence[GroupRequest], first: int) -> list[Group]:
        return list(logged[first : first + len(asked)])

    see = ProposerContext(lessons.recipe.seed, update, tuple(played), lessons.pool.known(update))
    further, _ = await proposed(lessons.parts, see, rollout.group_size, from_the_log)
    requests += further
    drawn = [request.task.id for request in requests]
    if drawn != [group[0].task.id for group in logged]:
        raise RunError(
            f"Update {update + 1} was played on other tasks than its sampler draws and its proposers make now.",
            "The suite, the sampler or a proposer has changed since; learn the run again with the code that it was made with.",
        )
    return assembled(rollout, lessons.parts, logged, Cost(), requests, rounds)


def _recipe_of(path: Path) -> Recipe:
    file = path / RECIPE
    if not file.is_file():
        raise RunError(f"There is no run in {path}: {RECIPE} is missing.", "Give the folder of a run.")
    return check_recipe(read_text(file.read_text("utf-8"), str(file))[0])


def _not_said(recipe: BaseModel, inside: str = "") -> Iterator[tuple[str, object]]:
    """Settings that a run's recipe does not say, and their values here: a run writes them all, so that these came after it."""
    for name in type(recipe).model_fields:
        value = getattr(recipe, name)
        if name not in recipe.model_fields_set:
            if value is not None:
                yield inside + name, value
        elif isinstance(value, BaseModel):
            yield from _not_said(value, f"{inside}{name}.")


def _updates_of(path: Path) -> list[dict[str, Any]]:
    """The metrics of the updates that were made, in order.

    Raises:
        RunError: there is none, or one is missing.
    """
    rows = [row for row in json_lines(path / "metrics.jsonl", []) if row.get("phase") == "rl"]
    if not rows:
        raise RunError(f"{path} has made no update.", "There is nothing to learn again.")
    if [row["update"] for row in rows] != [*range(1, len(rows) + 1)]:
        raise RunError(f"metrics.jsonl of {path} lacks updates.", "Put it back from a copy.")
    return rows


def _by_update(path: Path, updates: int, keep: int | str, playless: Collection[int]) -> list[list[Record]]:
    """The records of each update, in the order in which they were consumed; ``keep`` is the recipe's ``log.keep``.

    Raises:
        RunError: an update has none, and is not one of those that play nothing.
    """
    found: list[list[Record]] = [[] for _ in range(updates)]
    for record in LogReader(path) if path.exists() else ():
        if record.update is not None and 0 < record.update <= updates:
            found[record.update - 1].append(record)
    absent = next(
        (update for update, records in enumerate(found) if not records and update not in playless), None
    )
    if absent is not None and keep != "all" and absent < updates - int(keep):
        raise RunError(
            f"{path} holds the episodes of its newest {keep} updates alone (log.keep), and learning again begins with "
            f"update {absent + 1}.",
            "Train with log.keep: all where a run is to be learned again.",
        )
    if absent is not None:
        raise RunError(
            f"{path} has no episode of update {absent + 1}: a damaged log was set aside, or cut out.",
            "Put the whole log back; what lacks episodes cannot be learned again.",
        )
    return found
