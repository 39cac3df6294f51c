"""One more learner of a run (:mod:`turnwise.trainers.run.ranks`): ``python -m turnwise.trainers.run.rank FD``, or of a world."""

from __future__ import annotations

import asyncio
import importlib
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

import torch

from turnwise.envs.registry import env_entries, register, register_suite, suites
from turnwise.errors import TurnwiseError
from turnwise.plain_yaml import read_yaml
from turnwise.trainers.learn.mesh import MeshSeat, SharedCall
from turnwise.trainers.learn.ranks import Meeting, Rank
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.run.checkpoint import read_state, restore
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.door import opened
from turnwise.trainers.run.lesson import Lessons
from turnwise.trainers.run.ranks import READY, RankOrder, RankStart, RunRecipe, divided_among
from turnwise.trainers.run.session import TrainingSession
from turnwise.trainers.sampler.mixture import Mixture


def main(descriptor: int) -> int:
    """Learn what the first learner sends until it closes the connection; the exit code."""
    with Connection(descriptor) as connection:
        try:
            learn_beside(Pipe(connection))
        except TurnwiseError as error:
            print(f"{type(error).__name__}: {' '.join(str(error).split())}", flush=True)
            return 1
    return 0


class Orders(Protocol):
    """The first learner, as another one sees it."""

    def receive(self) -> Any:
        """Return what it says next; None where it has ended."""
        ...

    def send(self, frame: object) -> None:
        """Tell it something."""
        ...


class Pipe(NamedTuple):
    """The first learner, of the same machine."""

    end: Connection

    def receive(self) -> Any:
        try:
            return self.end.recv()
        except (EOFError, ConnectionError):
            return None

    def send(self, frame: object) -> None:
        self.end.send(frame)


def learn_beside(orders: Orders, meeting: Meeting | None = None) -> None:
    """Learn what the first learner sends until it ends.

    Args:
        orders: the first learner.
        meeting: where learners find one another; None: as the first one says.

    Raises:
        TurnwiseError: the run cannot be learned here, or another learner is gone.
    """
    start: RankStart | None = orders.receive()
    if start is None:
        return
    torch.set_num_threads(start.threads)
    asyncio.run(
        _learn(orders, start, _prepared(start), meeting or Meeting.in_file(start.meeting, start.size))
    )


def _prepared(start: RankStart) -> Recipe:
    """The recipe, once everything that it names is known here too."""
    known = {entry.name for entry in env_entries()}
    for entry in start.envs:
        if entry.name not in known:
            register(entry.name, entry.entry_point, entry.about)
    named = {suite.name for suite in suites()}
    for suite in start.suites:
        if suite.name not in named:
            register_suite(suite)
    for module in start.modules:
        importlib.import_module(module)
    return check_recipe(read_yaml(start.recipe))


async def _learn(orders: Orders, start: RankStart, recipe: Recipe, meeting: Meeting) -> None:
    lessons = Lessons(recipe, Mixture(recipe.suites, recipe.seed))
    session = TrainingSession(opened(recipe).session, RunDirectory(start.run), start.source)
    state, divided = read_state(start.checkpoint), recipe.scale.weights == "sharded"
    parts = lessons.stateful(session)
    restore(start.checkpoint, session.learner, parts, state, moments=not divided)
    orders.send(READY)
    team = Rank(start.rank, start.size, meeting, patience_s=start.patience_s)
    whole = RunRecipe(start.recipe, start.size, recipe.device, list(recipe.suites), divided)
    with divided_among(team, meeting, whole, start.patience_s) as mesh:
        session.join(team, mesh)
        if mesh is not None:
            restore(start.checkpoint, session.learner, lessons.stateful(session), state)
        if recipe.scale.staleness:  # as the first learner, which works in a thread of its own
            lessons.beside = ThreadPoolExecutor(1, "turnwise-learner")
        await _follow(orders, lessons, session)


async def _follow(orders: Orders, lessons: Lessons, session: TrainingSession) -> None:
    """Do what the first learner says until it ends."""
    while True:
        order: RankOrder | SharedCall | None = orders.receive()
        if order is None:
            return
        if not isinstance(order, RankOrder):
            order.carried_out(MeshSeat(session.learner, lessons.stateful(session)))
            continue
        if order.seen is not None:
            lessons.seen(order.seen)
        lessons.prepare(session, order.update)
        await lessons.learn(session, order.update, order.played)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
