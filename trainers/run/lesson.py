"""The learning half of a run: from the episodes of an update to new weights, update after update.

Nothing here plays with the policy that is trained, so that a run can be learned again from its log
(:mod:`turnwise.trainers.run.relearn`).
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import NamedTuple, TypeVar

from turnwise.agents.workers.pool import WorkerPool
from turnwise.trainers.core import Stateful
from turnwise.trainers.kit.meter import PartMeter, tokens_added
from turnwise.trainers.learn.model import deterministic
from turnwise.trainers.proposer.core import ProposedTasks
from turnwise.trainers.recipe.compatible import make_sampler
from turnwise.trainers.recipe.phases import RunPhase, phase_at, phases_of
from turnwise.trainers.recipe.schema import LOGGED, Recipe
from turnwise.trainers.run.collect import CollectedGroups, visits
from turnwise.trainers.run.door import opened
from turnwise.trainers.run.parts import build_parts
from turnwise.trainers.run.proposing import pooled
from turnwise.trainers.run.schedules import Schedules
from turnwise.trainers.run.session import TrainingSession
from turnwise.trainers.run.update import UpdateResult, update_policy
from turnwise.trainers.run.vacuous import Vacuous, vacuous
from turnwise.trainers.sampler.mixture import Mixture
from turnwise.trainers.source.core import SourceDraw

T = TypeVar("T")
RESETS = "schedule/optimizer.resets"
"""The metric of the number whose change is a reset."""


class LearnedUpdate(NamedTuple):
    """Result of an update; why it taught nothing, if so; and what the sources took and the sampler reports, as metrics."""

    result: UpdateResult
    nothing: Vacuous | None
    sources: Mapping[str, float]
    sampled: Mapping[str, float] = {}


class Lessons:
    """The parts of a recipe and its scheduled numbers, phase by phase, with what they remember from update to update.

    Args:
        recipe: of the run.
        mixture: its suites.

    Attributes:
        phase: the present one.
        now: its recipe with the numbers that it has for the present update.
        sampler: which tasks its updates have.
        pool: the tasks that its proposers made.
        beside: where the learner works while others play; None: here, and nothing else goes on.
    """

    def __init__(self, recipe: Recipe, mixture: Mixture) -> None:
        self.mixture, self.phases = mixture, phases_of(recipe)
        self.beside: Executor | None = None
        self.go_to(0)

    @property
    def recipe(self) -> Recipe:
        """That of the present phase."""
        return self.phase.recipe

    def go_to(self, updates: int) -> None:
        """Stand where so many updates were made, at the end of a phase if its last one was; nothing is remembered."""
        self._enter(phase_at(self.phases, max(0, updates - 1)))

    def _enter(self, phase: RunPhase) -> None:
        self.phase, self.now = phase, phase.recipe
        self.parts = build_parts(phase.recipe)
        self.sampler = make_sampler(phase.recipe, self.mixture, phase.first, phase.tasks)
        self.schedules = Schedules(phase.recipe, phase.first)
        keep = {part.name: part.keep for part in phase.recipe.proposer}
        self.pool = ProposedTasks(keep, phase.recipe.scale.staleness)

    def stateful(self, session: TrainingSession) -> dict[str, Stateful]:
        """The parts that learn or remember, by KIND/NAME: what checkpoints keep beside the learner."""
        recipe = self.recipe
        found: dict[str, Stateful] = {f"sampler/{recipe.rollout.sampler.name}": self.sampler}
        if recipe.teacher is not None and session.teaching is not None:
            found[f"teacher/{recipe.teacher.name}"] = session.teaching.teacher
        if recipe.schedule:
            found["schedule"] = self.schedules
        if recipe.proposer:
            found["pool"] = self.pool
        return {**found, **session.signals.stateful, **self.parts.stateful}

    def prepare(self, session: TrainingSession, update: int) -> Recipe:
        """The recipe with the numbers that it has for this update, which its parts and the session take.

        With the first update of a later phase the session begins anew.
        """
        phase = phase_at(self.phases, update)
        if phase is not self.phase:
            self._enter(phase)
            session.begin(opened(phase.recipe).session, update)
        if self.recipe.schedule:
            resets = self.schedules.values.get(RESETS)
            self.now = self.schedules.at(update)
            self.parts = build_parts(self.now).remembering(self.parts)
            session.take(opened(self.now).session)
            if self.schedules.values.get(RESETS) != resets:
                session.renew(update)
        return self.now

    async def learn(
        self,
        session: TrainingSession,
        update: int,
        played: CollectedGroups,
        workers: WorkerPool | None = None,
    ) -> LearnedUpdate:
        """Learn from what was played, and from what the sources give beside it."""
        recipe, meter, drawn = self.now, PartMeter(), list[SourceDraw]()
        see = session.source_context(self.mixture, workers, played.played)
        with meter.of("source", lambda: sum(map(_brought, drawn))):
            for source in self.parts.sources:
                drawn.append(await source.draw(see, update))
        work = functools.partial(
            update_policy,
            session.signal_context(),
            session.signals,
            self.parts,
            played.training,
            seed=recipe.seed,
            update=update,
            weights=played.training_weights,
            drawn=drawn,
            teaching=session.teaching,
            logged=LOGGED if recipe.log.entropy else "",
        )
        with deterministic(session.device, recipe.optimizer.deterministic):
            result = await apart(self.beside, work)
        self.sampler.seen(update, visits(played, result))
        self.pool.add(update, pooled(played.requests, update))
        nothing = None
        if not any(draw.shown for draw in drawn):  # what is imitated always teaches
            nothing = vacuous(played, result, filter_name=recipe.filter.name, credit_name=recipe.credit.name)
        name = recipe.rollout.sampler.name
        sampled = {f"{name}/{key}": float(value) for key, value in self.sampler.figures().items()}
        if recipe.proposer:
            sampled["pool"] = float(len(self.pool))
        return LearnedUpdate(result, nothing, meter.metrics, sampled)

    def seen(self, metrics: Mapping[str, object]) -> None:
        """Told the metrics of an update, by which schedules may go, and samplers by success on dev."""
        self.schedules.seen(metrics)
        if isinstance(dev := metrics.get("dev_success"), int | float):
            self.sampler.evaluated(float(dev))


def _brought(draw: SourceDraw) -> int:
    return tokens_added([*draw.shown, *(one for group in draw.joined for one in group)])


async def apart(beside: Executor | None, work: Callable[[], T]) -> T:
    """The result of some work, done in ``beside`` while the event loop goes on; here where that is None."""
    if beside is None:
        return work()
    return await asyncio.get_running_loop().run_in_executor(beside, work)
