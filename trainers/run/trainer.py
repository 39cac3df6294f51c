"""The loop of a run: play, learn, publish the weights, and now and then evaluate and save.

The trainer knows no algorithm by name. One update is::

    sample tasks → roll out → guide → judge → propose → signals → reward → credit → filter → shape → Σ weight · reduce(loss) → step → sync

All chance is derived from (seed, update), so a run resumed from a checkpoint is the run that was never
interrupted. With ``scale.staleness`` later updates are played meanwhile (:mod:`turnwise.trainers.run.ahead`).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from turnwise.agents.core import Kv, Policy
from turnwise.agents.execution.admission import Admission
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.workers.pool import WorkerPool
from turnwise.tasks.core import Json
from turnwise.trainers.core import Stateful
from turnwise.trainers.kit.asking import SELF
from turnwise.trainers.learn.sync import push_weights
from turnwise.trainers.recipe.phases import phase_at
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.recipe.trusted import judge_rules, rules_of_phases
from turnwise.trainers.run.ahead import PlayAhead
from turnwise.trainers.run.alarms import alarm
from turnwise.trainers.run.beside import BesideEvaluation
from turnwise.trainers.run.checkpoint import (
    LoadedCheckpoint,
    read_state,
    remove_after,
    restore,
    verify,
)
from turnwise.trainers.run.collect import CollectedGroups, collect, log_groups
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.door import WarmOptions, opened
from turnwise.trainers.run.events import Events
from turnwise.trainers.run.hacks import PART, HackWatch
from turnwise.trainers.run.judging import AFTER, Judging
from turnwise.trainers.run.lesson import Lessons, apart
from turnwise.trainers.run.one_update import RunUpdate
from turnwise.trainers.run.progress import RunProgress, update_line
from turnwise.trainers.run.ranks import Ranks, RunRecipe, other_learners
from turnwise.trainers.run.saving import KeptRun, Saving
from turnwise.trainers.run.session import TrainingSession
from turnwise.trainers.run.stop import Stop
from turnwise.trainers.run.trusted import JudgeWatch
from turnwise.trainers.run.vacuous import refuse_more
from turnwise.trainers.run.warm import imitate
from turnwise.trainers.run.world import Gathering
from turnwise.trainers.sampler.mixture import Mixture

Log = Callable[[str], None]


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
        self._made: dict[str, Policy] = {}
        self.opponents = self._opponents_of(recipe.rollout.opponents)
        self.judging = Judging(self.options.judge, run, self.mixture, stop, log)
        self.events = Events(run.path)
        self.progress = RunProgress()
        self.started = -1  # the update whose policy the run compares with; -1: the model's own
        self.warmed_up = 0  # steps of the warm start before a resume
        self.saving = Saving(self.options.keep, run, log)
        plant = self.options.plant
        self.hacks = HackWatch(plant, self.mixture, run, self.opponents) if plant else None
        self.trusted = JudgeWatch(rules_of_phases(recipe), self.mixture, play, run)
        self._unfinished: BesideEvaluation | None = None

    def _opponents_of(self, given: Mapping[str, str]) -> dict[str, Policy]:
        """The policies of agents that are not trained; those that the policy itself plays are played as the others are."""
        specs = {name: spec for name, spec in given.items() if spec != SELF}
        for spec in specs.values():
            if spec not in self._made:
                self._made[spec] = make_policy(spec)
        return {name: self._made[spec] for name, spec in specs.items()}

    @property
    def complete(self) -> bool:
        """True if all updates were made and the test evaluation is done."""
        return self.saving.saved == self.recipe.updates and self.judging.complete

    @property
    def stateful(self) -> dict[str, Stateful]:
        """Parts that checkpoints keep beside the learner."""
        own = {PART: self.hacks.meter} if self.hacks else {}
        return {**self.lessons.stateful(self.session), **own, **self.trusted.stateful}

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
        self.saving.saved, self.started = self.progress.update, int(loaded.state["started"])
        self.lessons.go_to(self.progress.update)
        remove_after(self.run.checkpoints, self.progress.update)
        for note in self.run.forget_after(self.progress.update):
            self.log(note)
        self.saving.point_best(self.progress)
        self.judging.remember()

    async def run_all(self, session: TrainingSession, loaded: LoadedCheckpoint | None) -> None:
        """Do whatever is still to be done, from the warm start to the evaluation on the test split."""
        self.session = session
        if loaded is None:
            await self.trusted.examine(self._stage)
        else:
            # The moments of divided weights are restored once they are divided, in parts.
            moments = self.saving.saved < 0 or not self.options.session.roles.divided
            restore(loaded.path, session.learner, self.stateful, loaded.state, moments=moments)
        if self.saving.saved >= 0:
            self.log(f"resumed after update {self.progress.update}")
            if self.hacks:
                self.hacks.refuse_to_go_on()
            self.trusted.refuse_to_go_on()
        elif self.options.warm is not None and not await self._warm_start(self.options.warm):
            self.log("stopped in the warm start; go on with --resume")
            return
        self._stage("starting the engine")
        session.start_engine()
        self.judging.refresh = self._sync
        self._sync()
        if self.saving.saved < 0:
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
            if self.saving.saved != self.progress.update:
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
            self.saving.save_warm_start(step, self._kept)

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
                    self.saving.delete_old(episode_log, self.events)
                await self._finish()
                self.saving.delete_old(episode_log, self.events)
            finally:
                if self._unfinished is not None:
                    self._unfinished.cancel()

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        """With the recipe's other learners, which begin where this one is: at its newest checkpoint."""
        session, run = self.session, self.run
        if self.progress.update == self.recipe.updates:
            yield
            return
        begin = run.checkpoint(self.saving.saved)
        recipe, roles = self.recipe, self.options.session.roles
        whole = RunRecipe(recipe.to_yaml(), roles.learners, roles.device, list(recipe.suites), roles.divided)
        others = other_learners(whole, run.path, self.session.source, begin, gathering=self.gathering)
        with others as self.ranks:
            if self.ranks is not None:
                divided = " and hold a part of the weights each" if self.ranks.mesh is not None else ""
                self.log(f"{self.ranks.team.size} learners take every step together{divided}")
                session.join(self.ranks.team, self.ranks.mesh)
                if self.ranks.mesh is not None:
                    restore(begin, session.learner, self.stateful, read_state(begin))
            with self.ranks.named() if self.ranks is not None else contextlib.nullcontext():
                yield
        self.ranks = None
        if session.leave():  # whole again, to be judged
            last = run.checkpoint(self.saving.saved)
            restore(last, session.learner, self.stateful, read_state(last), moments=False)

    @contextlib.asynccontextmanager
    async def _playing(self, end: int) -> AsyncIterator[PlayAhead[CollectedGroups]]:
        """Play the updates before ``end``, ahead of the learner by as many as the recipe says; evaluations go on beside."""
        recipe, first, play_as = self.recipe, self.progress.update, self.options.session.play
        places = Admission(play_as.concurrency, self.session.policy)
        rollout = phase_at(self.lessons.phases, first).recipe.rollout
        episodes = rollout.groups * rollout.group_size
        self.events.tell(
            "start", update=first, updates=recipe.updates, staleness=self.staleness, episodes=episodes
        )

        async def play(update: int) -> CollectedGroups:
            player, parts = self.session.player(self.session.policy), self.lessons.parts
            played = await collect(
                self.lessons.now.rollout,
                self.lessons.sampler,
                player,
                parts,
                play_as.seed,
                update,
                self._opponents_of(self.lessons.now.rollout.opponents),
                self.workers,
                places,
                self.events.watch(update, episodes),
                self.lessons.pool.known(update),
            )
            if self.hacks is None:
                return played
            return played._replace(
                planted=await self.hacks.play(player, parts, update, episodes, self.workers, places)
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
        update = RunUpdate(self.progress.update, self.lessons, self.session, ahead)
        self.events.doing = "waiting"
        await update.play()
        lag = update.lag
        self._now("learning", update=update.number + 1, waited=update.waited, lag=lag.mean, lag_most=lag.most)
        if not self.staleness:
            self.session.rest_engine()
        await update.learn(self.ranks, self.workers)
        await self._finish()
        log_groups(episode_log, update.number, update.played, update.lesson.result)
        update.count(self.progress)
        if self.hacks is not None:
            update.metrics |= self.hacks.see(
                update.number, self.lessons.parts.reward, update.played, update.lesson.result
            )
        update.metrics |= self.trusted.see(
            update.number, update.played.played, judge_rules(self.lessons.recipe)
        )
        await update.publish(self._push)
        self.events.tell("published", version=self.progress.update, stall=update.metrics["sync_seconds"])
        await self._evaluate(update)

    async def _evaluate(self, update: RunUpdate) -> None:
        """Evaluate after an update if that is due: beside the next one where the run plays ahead, and has a next one."""
        due = self._ends or self.progress.update % self.recipe.evaluate.every == 0
        if due and self.staleness and not self._ends:
            self._seen(update.metrics)
            beside = BesideEvaluation(update, self.saving, self.lessons.beside)
            await beside.begin(self._kept, self._validate)
            self._unfinished = beside
            return
        if due:
            self.events.doing = "evaluating"
            update.metrics |= await self._validate()
        self._seen(update.metrics)
        await self._conclude(update)

    @property
    def _ends(self) -> bool:
        """True if the update that was learned is the last one of its phase."""
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

    async def _finish(self) -> None:
        """Wait for the evaluation of the update before."""
        beside, self._unfinished = self._unfinished, None
        if beside is not None:
            await beside.finish(self.progress, lambda: self.session.engine.version)
            await self._conclude(beside.update)

    async def _conclude(self, update: RunUpdate) -> None:
        """Record an update, and save it if that is due."""
        update.end()
        done, metrics, nothing = self.progress, update.metrics, update.nothing
        self.run.log_metrics(done.update, "rl", metrics)
        shown = {name: metrics[name] for name in ("seconds", "success") if name in metrics}
        self.events.tell("update", update=done.update, **shown)
        self.session.write_scalars(done.update, metrics)
        due = self._ends or done.best_update == done.update or self.saving.due(done.update)
        due = due or bool((self.hacks and self.hacks.stops) or self.trusted.alarms)
        if due and self.saving.saved != done.update:
            self.events.doing = "saving"
            await apart(self.lessons.beside, self._save)
        self.log(update_line(done.update, self.recipe.updates, metrics, nothing.why if nothing else ""))
        if said := alarm(self.lessons.recipe, metrics):
            self.log(said)
        if self.hacks:
            self.hacks.conclude(self.log)
        self.trusted.conclude(self.log)
        if nothing is not None and done.update < self.recipe.updates:
            refuse_more(nothing, done.vacuous, self.recipe.rollout.max_vacuous)

    def _now(self, doing: str, **values: Json) -> None:
        """Tell what the learner begins."""
        self.events.doing = doing
        self.events.tell(doing, **values)

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
                self.saving.point_best(self.progress)
        await self.judging.judge(self.session, self.progress.update, AFTER)

    def _push(self) -> dict[str, float]:
        """Publish the weights, under requests in flight where something plays ahead."""
        return self._sync(self.recipe.scale.kv if self.staleness else None)

    def _sync(self, kv: Kv | None = None) -> dict[str, float]:
        report = push_weights(self.session.learner.model, self.session.engine, self.progress.update, kv=kv)
        return {"sync_seconds": report.seconds, "canary_gap": report.max_logp_gap}

    @property
    def _kept(self) -> KeptRun:
        return KeptRun(self.session, self.stateful, self.progress)

    def _save(self) -> None:
        self.saving.save(self._kept)
