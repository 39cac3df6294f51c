"""The loop of a run: play, learn, publish the weights, and now and then evaluate and save.

The trainer knows no algorithm by name. One update is::

    sample tasks → roll out → guide → judge → signals → reward → credit → filter → shape → Σ weight · reduce(loss) → step → sync

All chance is derived from (seed, update), so a run resumed from a checkpoint is the run that was never
interrupted. With ``scale.staleness`` later updates are played meanwhile (:mod:`turnwise.trainers.run.ahead`).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.core import Kv
from turnwise.agents.execution.admission import Admission
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.workers.pool import WorkerPool
from turnwise.tasks.core import Json
from turnwise.trainers.core import Stateful
from turnwise.trainers.learn.sync import push_weights
from turnwise.trainers.learn.team import Alone
from turnwise.trainers.recipe.phases import phase_at
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.run.ahead import PlayAhead, check_lag, lag_of
from turnwise.trainers.run.alarms import alarm
from turnwise.trainers.run.checkpoint import (
    LoadedCheckpoint,
    begin_checkpoint,
    prune,
    read_state,
    remove_after,
    restore,
    save_checkpoint,
    started_at,
    verify,
)
from turnwise.trainers.run.collect import CollectedGroups, collect, describe, log_groups
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.door import WarmOptions, opened
from turnwise.trainers.run.events import Events
from turnwise.trainers.run.judging import AFTER, Judging
from turnwise.trainers.run.lesson import LearnedUpdate, Lessons, apart
from turnwise.trainers.run.progress import RunProgress, update_line
from turnwise.trainers.run.ranks import Ranks, RunRecipe, other_learners
from turnwise.trainers.run.session import TrainingSession
from turnwise.trainers.run.stop import Stop
from turnwise.trainers.run.vacuous import Vacuous, refuse_more
from turnwise.trainers.run.warm import imitate
from turnwise.trainers.run.world import Gathering
from turnwise.trainers.sampler.mixture import Mixture

Log = Callable[[str], None]


class _Done(NamedTuple):
    """An update that was learned: its figures, when it began, and why it taught nothing, if so."""

    metrics: dict[str, Any]
    began: float
    nothing: Vacuous | None


class _Unfinished(NamedTuple):
    """An update whose evaluation goes on while the next is learned, with the checkpoint that waits for what it finds."""

    done: _Done
    evaluation: asyncio.Task[dict[str, Any]]
    checkpoint: contextlib.ExitStack
    counters: dict[str, Json]


class Trainer:
    """Carries out a recipe in a run's directory."""

    session: TrainingSession
    workers: WorkerPool | None = None  # that hold the environments; None: this process does
    ranks: Ranks | None = None  # the other learners; None: there is one
    gathering: Gathering | None = None  # where they are, if something else has started them

    def __init__(self, recipe: Recipe, run: RunDirectory, stop: Stop, log: Log) -> None:
        self.recipe, self.run, self.stop, self.log = recipe, run, stop, log
        self.options = opened(recipe)
        play, roles = self.options.session.play, self.options.session.roles
        self.mixture, self.staleness = Mixture(recipe.suites, play.seed), roles.staleness
        self.lessons = Lessons(recipe, self.mixture)
        self.opponents = {name: make_policy(spec) for name, spec in recipe.rollout.opponents.items()}
        self.judging = Judging(self.options.judge, run, self.mixture, stop, log)
        self.events = Events(run.path)
        self.progress = RunProgress()
        self.started = -1  # the update whose policy the run compares with; -1: the model's own
        self.warmed_up = 0  # steps of the warm start before a resume
        self.saved = -1  # the update after which the newest checkpoint was written
        self._deleted = (
            0  # the updates of whose episodes nothing is left, where the recipe keeps the newest alone
        )
        self._unfinished: _Unfinished | None = None

    @property
    def complete(self) -> bool:
        """Whether all updates were made and the test evaluation is done."""
        return self.saved == self.recipe.updates and self.judging.complete

    @property
    def stateful(self) -> dict[str, Stateful]:
        """What checkpoints keep beside the learner."""
        return self.lessons.stateful(self.session)

    def tidy(self, loaded: LoadedCheckpoint | None) -> None:
        """Reset the directory to the state of the checkpoint ``loaded``; without it, to the beginning."""
        for note in loaded.notes if loaded else ():
            self.log(f"skipped a damaged checkpoint: {note}")
        if loaded is None:
            self.run.clear()
        elif loaded.path.parent == self.run.warm:
            self.warmed_up = int(loaded.state["warm_start_steps"])
            remove_after(self.run.warm, self.warmed_up)
            self.run.forget_after_warm_step(self.warmed_up)
        else:
            self._go_back_to(loaded)

    def _go_back_to(self, loaded: LoadedCheckpoint) -> None:
        self.progress = RunProgress.from_state(loaded.state)
        self.saved, self.started = self.progress.update, int(loaded.state["started"])
        self.lessons.go_to(self.progress.update)
        remove_after(self.run.checkpoints, self.progress.update)
        for note in self.run.forget_after(self.progress.update):
            self.log(note)
        self._point_best()
        self.judging.remember()

    async def run_all(self, session: TrainingSession, loaded: LoadedCheckpoint | None) -> None:
        """Do whatever is still to be done, from the warm start to the evaluation on the test split."""
        self.session = session
        if loaded is not None:
            restore(loaded.path, session.learner, self.stateful, loaded.state)
        if self.saved >= 0:
            self.log(f"resumed after update {self.progress.update}")
        elif self.options.warm is not None and not await self._warm_start(self.options.warm):
            self.log("stopped in the warm start; go on with --resume")
            return
        self._stage("starting the engine")
        session.start_engine()
        self.judging.refresh = self._sync
        self._sync()
        if self.saved < 0:
            self._save()
        self.run.end_warm_start()
        if self.progress.update == 0:
            self._stage("evaluating the policy before reinforcement")
            await self.judging.judge(session, 0, self.judging.options.before)
        options = self.options.session.play.env_options
        with (
            self._together(),
            EpisodeLog(self.run.episodes, policy=str(self.run.path), env_options=options) as episode_log,
        ):
            health = getattr(session.engine, "health", tuple)  # engines elsewhere tell how each is
            async with self.events.ticking([session.policy, session.greedy], health):
                while self.progress.update < self.recipe.updates and not self.stop.asked:
                    await self._phase(episode_log)
        if self.saved != self.progress.update:
            self._save()
        if not self.stop.asked:
            await self._judge_best()
        if self.stop.asked and not self.complete:
            self.log(f"stopped after update {self.progress.update}; go on with --resume")

    def _stage(self, doing: str) -> None:
        """Say in the terminal and to `turnwise top` what is done before the updates begin."""
        self.events.stage(doing)
        self.log(doing)

    async def _warm_start(self, options: WarmOptions) -> bool:
        """True if it came to its end."""
        self.events.stage("warm start")

        def note(step: int, metrics: Mapping[str, Any]) -> None:
            self.run.log_metrics(step, "warm_start", metrics)
            self.events.stage(f"warm start, step {step}")

        def save(step: int) -> None:
            self._write(self.run.warm, step, {"warm_start_steps": step})
            prune(self.run.warm, 1, None)

        await imitate(
            options,
            self.session,
            self.mixture,
            self.workers,
            done=self.warmed_up,
            stop=self.stop,
            save=save,
            note=note,
            log=self.log,
        )
        if self.stop.asked:
            return False
        self.session.begin(opened(self.lessons.recipe).session, 0)
        return True

    async def _phase(self, episode_log: EpisodeLog) -> None:
        """The updates of the present phase; nothing of the next one is played before it begins."""
        phase = phase_at(self.lessons.phases, self.progress.update)
        if phase.name:
            self.log(f"phase {phase.name}: updates {phase.first + 1} to {phase.end}")
        async with self._playing(phase.end) as ahead:
            try:
                while self.progress.update < phase.end and not self.stop.asked:
                    await self._update(ahead, episode_log)
                    self._delete_old(episode_log)
                await self._finish()
                self._delete_old(episode_log)
            finally:
                if self._unfinished is not None:
                    self._unfinished.evaluation.cancel()

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        """With the recipe's other learners, which begin where this one is: at its newest checkpoint."""
        learner, run = self.session.learner, self.run
        if self.progress.update == self.recipe.updates:
            yield
            return
        begin = run.checkpoint(self.saved)
        recipe, roles = self.recipe, self.options.session.roles
        whole = RunRecipe(recipe.to_yaml(), roles.learners, roles.device, list(recipe.suites))
        others = other_learners(whole, run.path, self.session.source, begin, gathering=self.gathering)
        with others as self.ranks:
            if self.ranks is not None:
                self.log(f"{self.ranks.team.size} learners take every step together")
                learner.team = self.ranks.team
            yield
        self.ranks, learner.team = None, Alone()

    @contextlib.asynccontextmanager
    async def _playing(self, end: int) -> AsyncIterator[PlayAhead[CollectedGroups]]:
        """Who plays for the updates before ``end``, ahead of the learner by as many as the recipe says; evaluations go on
        beside."""
        recipe, first, play_as = self.recipe, self.progress.update, self.options.session.play
        places = Admission(play_as.concurrency, self.session.policy)
        rollout = phase_at(self.lessons.phases, first).recipe.rollout
        episodes = rollout.groups * rollout.group_size
        self.events.tell(
            "start", update=first, updates=recipe.updates, staleness=self.staleness, episodes=episodes
        )

        async def play(update: int) -> CollectedGroups:
            return await collect(
                self.lessons.now.rollout,
                self.lessons.sampler,
                self.session.player(self.session.policy),
                self.lessons.parts,
                play_as.seed,
                update,
                self.opponents,
                self.workers,
                places,
                self.events.watch(update, episodes),
            )

        ahead = PlayAhead(
            play,
            staleness=self.staleness,
            first=first,
            updates=end,
            on_event=self.events.changed,
        )
        if not self.staleness:
            async with ahead:
                yield ahead
            return
        self.judging.refresh = lambda: None  # what is in flight goes on with the weights that it has
        with ThreadPoolExecutor(1, "turnwise-learner") as self.lessons.beside:
            async with ahead:
                yield ahead
        self.lessons.beside, self.judging.refresh = None, self._sync

    async def _update(self, ahead: PlayAhead[CollectedGroups], episode_log: EpisodeLog) -> None:
        """One update; the loop of the module's first lines."""
        began, update = time.monotonic(), self.progress.update
        self.lessons.prepare(self.session, update)
        self.events.doing = "waiting"
        ahead.published(update)
        played, waited = await ahead.take(update)
        lag = lag_of(played.training, update)
        check_lag(lag, self.staleness, update)
        rolled_out = time.monotonic()
        self._now("learning", update=update + 1, waited=waited, lag=lag.mean, lag_most=lag.most)
        if self.ranks is not None:
            self.ranks.learn(update, played)
        lesson = await self.lessons.learn(self.session, update, played, self.workers)
        learned = time.monotonic()
        await self._finish()
        result, nothing, of_sources = lesson
        metrics: dict[str, Any] = {**describe(played, result), **result.metrics}
        log_groups(episode_log, update, played, result)
        self._count(update, metrics, played, lesson)
        metrics |= await apart(self.lessons.beside, self._push)
        self.events.tell("published", version=self.progress.update, stall=metrics["sync_seconds"])
        if self.staleness:
            ahead.published(self.progress.update)
            metrics |= {"waited_seconds": waited, "lag": lag.mean, "lag_most": float(lag.most)}
            metrics["drift"] = float(self.lessons.now.steps - 1)
        metrics |= {
            "rollout_seconds": rolled_out - began,
            "learn_seconds": learned - rolled_out - of_sources["source_seconds"],
            **of_sources,
            **self.lessons.schedules.values,
        }
        done = _Done(metrics, began, nothing)
        if not self._ends and self.progress.update % self.recipe.evaluate.every:
            self._seen(metrics)
            await self._conclude(done)
        elif self.staleness and not self._ends:
            self._seen(metrics)
            self._unfinished = await self._evaluated_beside(done)
        else:
            self.events.doing = "evaluating"
            metrics |= await self._validate()
            self._seen(metrics)
            await self._conclude(done)

    @property
    def _ends(self) -> bool:
        """Whether the update that was learned is the last one of its phase."""
        return self.progress.update == self.lessons.phase.end

    def _seen(self, metrics: dict[str, Any]) -> None:
        """Tell the schedules, those of all learners, what an update measured."""
        if self.ranks is not None:
            metrics["learners"] = self.ranks.team.size
            self.ranks.seen(metrics)
        self.lessons.seen(metrics)

    async def _validate(self) -> dict[str, Any]:
        """The policy on dev."""
        found = await self.judging.validate(self.session, self.progress)
        self.events.tell("evaluated", update=self.progress.update, dev_success=found["dev_success"])
        return found

    async def _evaluated_beside(self, done: _Done) -> _Unfinished:
        """Begin an evaluation that goes on while the next update is learned; the checkpoint is of what is evaluated."""
        session, kept, checkpoint = self.session, self.stateful, contextlib.ExitStack()

        def write() -> dict[str, Json]:
            chat = session.tokenizer, session.chat_format
            begun = begin_checkpoint(self.run.checkpoints, self.progress.update, session.learner, kept, *chat)
            return checkpoint.enter_context(begun)

        counters = await apart(self.lessons.beside, write)
        counters["started"] = session.started
        done.metrics["seconds"] = time.monotonic() - done.began
        return _Unfinished(
            done, asyncio.get_running_loop().create_task(self._validate()), checkpoint, counters
        )

    async def _finish(self) -> None:
        """Wait for the evaluation of the update before: until it ends, the engine keeps the weights that it names."""
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is None:
            return
        done, evaluation, checkpoint, counters = unfinished
        began = time.monotonic()
        done.metrics.update(await evaluation)
        done.metrics["dev_version"] = self.session.engine.version
        done.metrics["evaluation_waited_seconds"] = time.monotonic() - began
        counters.update(dataclasses.asdict(self.progress))
        await apart(self.lessons.beside, checkpoint.close)
        self._saved()
        await self._conclude(done)

    async def _conclude(self, done: _Done) -> None:
        """Record an update, and save it if that is due."""
        metrics, last = done.metrics, self.progress.update == self.recipe.updates
        metrics.setdefault("seconds", time.monotonic() - done.began)
        metrics["tokens_per_second"] = metrics["tokens"] / metrics["seconds"]
        self.run.log_metrics(self.progress.update, "rl", metrics)
        shown = {name: metrics[name] for name in ("seconds", "success") if name in metrics}
        self.events.tell("update", update=self.progress.update, **shown)
        self.session.write_scalars(self.progress.update, metrics)
        best = self.progress.best_update == self.progress.update
        due = self._ends or best or self.progress.update % self.recipe.checkpoint.every == 0
        if due and self.saved != self.progress.update:
            self.events.doing = "saving"
            await apart(self.lessons.beside, self._save)
        why = done.nothing.why if done.nothing else ""
        self.log(update_line(self.progress.update, self.recipe.updates, metrics, why))
        if said := alarm(self.lessons.recipe, metrics):
            self.log(said)
        if done.nothing is not None and not last:
            refuse_more(done.nothing, self.progress.vacuous, self.recipe.rollout.max_vacuous)

    def _now(self, doing: str, **values: Json) -> None:
        """Tell what the learner begins."""
        self.events.doing = doing
        self.events.tell(doing, **values)

    def _count(
        self, update: int, metrics: Mapping[str, Any], played: CollectedGroups, lesson: LearnedUpdate
    ) -> None:
        """Bring the run's counters up to date."""
        done, nothing = self.progress, lesson.nothing
        done.update = update + 1
        done.tokens += int(metrics["tokens"])
        done.failed += played.failed
        done.learned += nothing is None
        idle = nothing is not None and not nothing.mastered
        done.vacuous = done.vacuous + 1 if idle else 0

    async def _judge_best(self) -> None:
        """Load what was best on dev and judge it on test."""
        best = self.run.checkpoint(self.progress.best_update)
        if self.progress.best_update != self.progress.update:
            problem = verify(best)
            if problem is None:
                state = read_state(best)
                self.lessons.go_to(self.progress.best_update)
                self.session.resume_from(opened(self.lessons.recipe).session, int(state["started"]))
                restore(best, self.session.learner, self.stateful, state)
                self._sync()
            else:
                self.log(f"the best checkpoint cannot be used, so the last one is judged: {problem}")
                self.progress.best_update = self.progress.update
                self._point_best()
        await self.judging.judge(self.session, self.progress.update, AFTER)

    def _push(self) -> dict[str, float]:
        """Publish the weights, under requests in flight where something plays ahead."""
        return self._sync(self.recipe.scale.kv if self.staleness else None)

    def _sync(self, kv: Kv | None = None) -> dict[str, float]:
        report = push_weights(self.session.learner.model, self.session.engine, self.progress.update, kv=kv)
        return {"sync_seconds": report.seconds, "canary_gap": report.max_logp_gap}

    def _save(self) -> None:
        """Write a checkpoint; the best so far and the newest ones stay."""
        state = {**dataclasses.asdict(self.progress), "started": self.session.started}
        self._write(self.run.checkpoints, self.progress.update, state)
        self._saved()

    def _saved(self) -> None:
        """Told that the newest checkpoint is whole."""
        self.saved = self.progress.update
        self._point_best()
        best = self.run.checkpoint(self.progress.best_update).name
        prune(self.run.checkpoints, self.recipe.checkpoint.keep, best)
        self.run.keep_started(started_at(self.run.checkpoints))

    def _delete_old(self, episode_log: EpisodeLog) -> None:
        """Delete what was logged of updates that the recipe does not keep; those before the newest checkpoint count."""
        keep = self.recipe.log.keep
        if keep == "all" or (before := self.saved - keep) <= self._deleted:
            return
        self._deleted = before
        gone = episode_log.delete_first(lambda record: record.update is not None and record.update <= before)
        self.events.delete_before(before)
        if gone:
            self.log(f"deleted {gone} episodes of updates up to {before} (log.keep: {keep})")

    def _write(self, folder: Path, step: int, state: Mapping[str, Any]) -> None:
        session = self.session
        save_checkpoint(
            folder, step, session.learner, self.stateful, session.tokenizer, session.chat_format, state
        )

    def _point_best(self) -> None:
        if self.run.checkpoint(self.progress.best_update).exists():
            self.run.point_best(self.progress.best_update)
