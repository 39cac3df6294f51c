"""The training run: warm start, then reinforcement, validated on dev, judged on test.

The trainer knows no algorithm by name. One update is::

    sample tasks → roll out → guide → judge → signals → reward → credit → filter → shape → Σ weight · reduce(loss) → step → sync

All chance is derived from (seed, update), so a run resumed from a checkpoint is the run that was never
interrupted.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.core import Policy
from turnwise.agents.evaluation.evaluate import Evaluation, evaluate_async
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.log.parquet import to_parquet
from turnwise.agents.policies.command import ProgramPolicy, program_of
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.workers.pool import WorkerPool, workers_for
from turnwise.blocking import blocking
from turnwise.errors import RunError
from turnwise.tasks.core import Split, Suite
from turnwise.trainers.core import Stateful
from turnwise.trainers.learn.sync import push_weights
from turnwise.trainers.learn.warm_start import warm_start
from turnwise.trainers.recipe.algorithms import departures
from turnwise.trainers.recipe.explain import explain_recipe
from turnwise.trainers.recipe.load import RecipeLike, load_recipe
from turnwise.trainers.recipe.schema import Recipe, WarmStart, plain
from turnwise.trainers.run.checkpoint import (
    LoadedCheckpoint,
    load_newest,
    prune,
    read_state,
    remove_after,
    restore,
    save_checkpoint,
    verify,
)
from turnwise.trainers.run.circumstances import note_start
from turnwise.trainers.run.collect import CollectedGroups, collect, describe, limits_of, log_groups, visits
from turnwise.trainers.run.directory import RunDirectory, open_run
from turnwise.trainers.run.parts import build_parts
from turnwise.trainers.run.progress import CheckpointEvaluation, RunProgress, TrainingResult, update_line
from turnwise.trainers.run.ready import make_ready
from turnwise.trainers.run.schedules import Schedules
from turnwise.trainers.run.session import TrainingSession, imitation, open_session
from turnwise.trainers.run.stop import Stop
from turnwise.trainers.run.suites import weighted_mean
from turnwise.trainers.run.update import UpdateResult, update_policy
from turnwise.trainers.run.vacuous import Vacuous, refuse_more, refuse_unplayed, vacuous
from turnwise.trainers.sampler.mixture import Mixture

Log = Callable[[str], None]
AFTER = "after RL"
MODES = ("sampled", "greedy")


async def train_async(
    recipe: RecipeLike,
    /,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    preflight: bool = True,
    allow_changed_env: bool = False,
    log: Callable[[str], None] | None = None,
    **overrides: Any,
) -> TrainingResult:
    """Train by a recipe and write the run's report.

    Ctrl-C finishes the update, saves and stops; a second one stops at once::

        turnwise.train("shop-quick", updates=20, **{"rollout.groups": 4, "loss.clip.high": 0.28})

    Args:
        recipe: the name of one that comes with Turnwise, the path of a YAML file, a mapping, or a :class:`Recipe`.
        out: the run's folder; ``runs/NAME`` unless given, which a mapping or a :class:`Recipe` needs.
        resume: go on where the run in that folder stopped; without one there it begins.
        preflight: play and measure a few scripted episodes before anything is spent, and refuse a run that they show
            to be in vain.
        allow_changed_env: resume although the environment's source has changed since the run was started.
        log: called with each line about the run; standard error unless given.
        overrides: keys of the recipe with their values; dotted ones as ``**{"rollout.groups": 4}``.

    Returns:
        The run's folder and its evaluations on test.

    Raises:
        RecipeError: the recipe is not right.
        RunError: the directory is in use or holds another run, or the run cannot go on.
    """
    checked = load_recipe(recipe, overrides)
    path = folder_of(recipe) if out is None else Path(out)
    log = log or _print
    for line in departures(checked):
        log(f"algorithm {checked.algorithm}: {line}")
    with open_run(path, checked, explain_recipe(checked), resume=resume) as run:
        return await _train(checked, run, _Ask(resume, preflight, allow_changed_env), log)


train = blocking(train_async)


def folder_of(recipe: RecipeLike) -> Path:
    """The default directory of a run: ``runs/NAME``.

    Raises:
        RunError: the recipe is not named.
    """
    if isinstance(recipe, (str, Path)):
        return Path("runs") / Path(recipe).name.removesuffix(".yaml").removesuffix(".yml")
    raise RunError("A recipe that is no file has no name for its run's folder.", 'Give one: out="runs/NAME".')


class _Ask(NamedTuple):
    """How a run is to be started."""

    resume: bool
    preflight: bool
    allow_changed_env: bool


async def _train(recipe: Recipe, run: RunDirectory, ask: _Ask, log: Log) -> TrainingResult:
    from turnwise.trainers.report.page import write_report

    started = time.monotonic()
    with Stop(log) as stop:
        loaded = _newest(run, log) if ask.resume else None
        trainer = Trainer(recipe, run, stop, log)
        trainer.tidy(loaded)
        if trainer.complete:
            log(f"the run in {run.path} is complete")
        else:
            differs = note_start(
                run.path, trainer.mixture.envs, recipe.device, allow_changed_env=ask.allow_changed_env
            )
            if differs:
                log(differs)
            source = await make_ready(recipe, run, ask.preflight and loaded is None, log)
            with (
                open_session(recipe, run, source) as session,
                workers_for(recipe.rollout.env_workers) as workers,
            ):
                trainer.workers = workers
                await trainer.run_all(session, loaded)
    log(f"report: {write_report(run.path)}")
    if run.episodes.exists():
        to_parquet(run.episodes)
    judged, done = tuple(trainer.judged.values()), trainer.progress
    seconds = time.monotonic() - started
    return TrainingResult(run.path, judged, done.best_update, done.learned, not trainer.complete, seconds)


def _newest(run: RunDirectory, log: Log) -> LoadedCheckpoint | None:
    """The newest whole checkpoint; before the first update the newest one of the warm start."""
    loaded = load_newest(run.checkpoints)
    if loaded is not None:
        return loaded
    try:
        return load_newest(run.warm)
    except RunError as error:
        log(f"{error.cause} The warm start begins anew.")
        return None


class _Lesson(NamedTuple):
    """What an update came to; why it taught nothing, if so; and how long the sources took."""

    result: UpdateResult
    nothing: Vacuous | None
    source_seconds: float


class Trainer:
    """Carries out a recipe in a run's directory."""

    session: TrainingSession
    workers: WorkerPool | None = None  # that hold the environments; None: this process does

    def __init__(self, recipe: Recipe, run: RunDirectory, stop: Stop, log: Log) -> None:
        self.recipe, self.run, self.stop, self.log = recipe, run, stop, log
        self.mixture = Mixture(recipe.suites, recipe.seed)
        self.parts = build_parts(recipe)
        self.schedules = Schedules(recipe)
        self.opponents = {name: make_policy(spec) for name, spec in recipe.rollout.opponents.items()}
        self.examiners = {name: make_policy(spec) for name, spec in recipe.evaluate.opponents.items()}
        self.progress = RunProgress()
        self.warmed_up = 0  # steps of the warm start before a resume
        self.saved = -1  # the update after which the newest checkpoint was written
        self.before = "warm start" if recipe.warm_start else "before"
        self.judged: dict[tuple[str, str, str], CheckpointEvaluation] = {}

    @property
    def complete(self) -> bool:
        """Whether all updates were made and the test evaluation is done."""
        done = self.saved == self.recipe.updates
        return done and all(
            (name, mode, suite) in self.judged
            for name in (self.before, AFTER)
            for mode in MODES
            for suite in self.recipe.suites
        )

    @property
    def stateful(self) -> dict[str, Stateful]:
        """The parts that learn or remember, by KIND/NAME: what checkpoints keep beside the learner."""
        session, recipe = self.session, self.recipe
        found: dict[str, Stateful] = {f"sampler/{recipe.rollout.sampler.name}": session.sampler}
        if recipe.teacher is not None and session.teaching is not None:
            found[f"teacher/{recipe.teacher.name}"] = session.teaching.teacher
        if recipe.schedule:
            found["schedule"] = self.schedules
        return {**found, **session.signals.stateful, **self.parts.stateful}

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
        self.saved = self.progress.update
        remove_after(self.run.checkpoints, self.progress.update)
        for note in self.run.forget_after(self.progress.update):
            self.log(note)
        self._point_best()
        for row in self.run.evaluations():
            found = CheckpointEvaluation(str(row["name"]), str(row["mode"]), Evaluation.from_json(row))
            self.judged[found.name, found.mode, found.evaluation.suite] = found

    async def run_all(self, session: TrainingSession, loaded: LoadedCheckpoint | None) -> None:
        """Do whatever is still to be done, from the warm start to the evaluation on the test split."""
        self.session = session
        if loaded is not None:
            restore(loaded.path, session.learner, self.stateful, loaded.state)
        if self.saved >= 0:
            self.log(f"resumed after update {self.progress.update}")
        elif self.recipe.warm_start is not None and not await self._warm_start(self.recipe.warm_start):
            self.log("stopped in the warm start; go on with --resume")
            return
        session.start_engine()
        self._sync()
        if self.saved < 0:
            self._save()
        self.run.end_warm_start()
        if self.progress.update == 0:
            await self._judge(self.before)
        options = self.recipe.rollout.env_options
        with EpisodeLog(self.run.episodes, policy=str(self.run.path), env_options=options) as episode_log:
            while self.progress.update < self.recipe.updates and not self.stop.asked:
                await self._update(episode_log)
        if self.saved != self.progress.update:
            self._save()
        if not self.stop.asked:
            await self._judge_best()
        if self.stop.asked and not self.complete:
            self.log(f"stopped after update {self.progress.update}; go on with --resume")

    async def _warm_start(self, options: WarmStart) -> bool:
        """True if it came to its end."""
        began, again = time.monotonic(), f", after step {self.warmed_up}" if self.warmed_up else ""
        self.log(f"warm start: {options.episodes} episodes of scripted:{options.demonstrator}{again}")
        session = self.session

        def on_step(step: int, steps: int, metrics: Mapping[str, float]) -> bool:
            self.run.log_metrics(step, "warm_start", metrics)
            if (step - 1) % max(1, steps // 8) == 0 or step == steps:
                self.log(
                    f"  step {step:4d}/{steps}  nll per action token {metrics['action_nll']:.3f}"
                    f"  {time.monotonic() - began:5.0f} s"
                )
            if self.stop.asked or step == steps or step % options.checkpoint_every == 0:
                state = {"warm_start_steps": step}
                self._write(self.run.warm, step, state)
                prune(self.run.warm, 1, None)
            return not self.stop.asked

        env_options, seed = self.recipe.rollout.env_options, self.recipe.seed
        await warm_start(
            session.learner,
            session.renderer,
            self.mixture,
            imitation(options),
            seed,
            on_step,
            env_options,
            env_workers=self.workers or 0,
            done=self.warmed_up,
            limits=limits_of(self.recipe.rollout),
        )
        if self.stop.asked:
            return False
        session.begin_reinforcement()
        return True

    async def _update(self, episode_log: EpisodeLog) -> None:
        """One update; the loop of the module's first lines."""
        began = time.monotonic()
        update = self.progress.update
        recipe = self._recipe_at(update)
        played = await collect(
            recipe.rollout,
            self.session.sampler,
            self._player(self.session.policy),
            self.parts,
            recipe.seed,
            update,
            self.opponents,
            self.workers,
        )
        rolled_out = time.monotonic()
        result, nothing, source_seconds = await self._learn(recipe, update, played)
        self.session.sampler.seen(update, visits(played, result))
        metrics: dict[str, Any] = {**describe(played, result), **result.metrics}
        learned = time.monotonic()
        log_groups(episode_log, update, played, result)
        self.progress.update = update + 1
        self.progress.tokens += int(metrics["tokens"])
        self.progress.failed += played.failed
        self.progress.learned += nothing is None
        idle = nothing is not None and not nothing.mastered
        self.progress.vacuous = self.progress.vacuous + 1 if idle else 0
        metrics |= self._sync()
        metrics |= {
            "rollout_seconds": rolled_out - began,
            "source_seconds": source_seconds,
            "learn_seconds": learned - rolled_out - source_seconds,
            **self.schedules.values,
        }
        self.schedules.seen(metrics)
        last = self.progress.update == self.recipe.updates
        if last or self.progress.update % self.recipe.evaluate.every == 0:
            metrics |= await self._validate()
        metrics["seconds"] = time.monotonic() - began
        metrics["tokens_per_second"] = metrics["tokens"] / metrics["seconds"]
        self.run.log_metrics(self.progress.update, "rl", metrics)
        self.session.write_scalars(self.progress.update, metrics)
        best = self.progress.best_update == self.progress.update
        if last or best or self.progress.update % self.recipe.checkpoint.every == 0:
            self._save()
        why = nothing.why if nothing else ""
        self.log(update_line(self.progress.update, self.recipe.updates, metrics, why))
        if nothing is not None and not last:
            refuse_more(nothing, self.progress.vacuous, recipe.rollout.max_vacuous)

    async def _learn(self, recipe: Recipe, update: int, played: CollectedGroups) -> _Lesson:
        """Learn from what was played, and from what the sources give beside it."""
        began, session = time.monotonic(), self.session
        see = session.source_context(self.mixture, self.workers)
        drawn = [await source.draw(see, update) for source in self.parts.sources]
        source_seconds = time.monotonic() - began
        result = update_policy(
            session.signal_context(),
            session.signals,
            self.parts,
            played.training,
            seed=recipe.seed,
            update=update,
            weights=played.training_weights,
            drawn=drawn,
            teaching=session.teaching,
        )
        nothing = None
        if not any(draw.shown or draw.joined for draw in drawn):
            nothing = vacuous(played, result, filter_name=recipe.filter.name, credit_name=recipe.credit.name)
        return _Lesson(result, nothing, source_seconds)

    def _recipe_at(self, update: int) -> Recipe:
        """The recipe with the numbers that it has for this update, which its parts and the session take."""
        if not self.recipe.schedule:
            return self.recipe
        recipe = self.schedules.at(update)
        self.parts = build_parts(recipe).remembering(self.parts)
        self.session.take(recipe)
        return recipe

    async def _validate(self) -> dict[str, Any]:
        """The policy on dev; the best checkpoint is chosen by this alone, by the weighted mean where suites are several."""
        shares = self.mixture.shares
        dev = self.recipe.evaluate.dev
        found = [await self._evaluate(suite, "sampled", Split.DEV, dev) for suite, _ in shares]
        mean = weighted_mean(found, [share for _, share in shares])
        if mean.success > self.progress.best_score:
            self.progress.best_score, self.progress.best_update = mean.success, self.progress.update
        each = {f"dev_success/{one.suite}": one.success for one in found} if len(found) > 1 else {}
        return {
            "dev_success": mean.success,
            "dev_success_interval": [x if math.isfinite(x) else None for x in mean.success_interval],
            "dev_score": mean.mean_score,
            **each,
        }

    async def _judge_best(self) -> None:
        """Load what was best on dev and judge it on test."""
        best, learner = self.run.checkpoint(self.progress.best_update), self.session.learner
        if self.progress.best_update != self.progress.update:
            problem = verify(best)
            if problem is None:
                restore(best, learner, self.stateful, read_state(best))
                self._sync()
            else:
                self.log(f"the best checkpoint cannot be used, so the last one is judged: {problem}")
                self.progress.best_update = self.progress.update
                self._point_best()
        await self._judge(AFTER)

    async def _judge(self, name: str) -> None:
        """Evaluate on test, sampled and greedily, unless that was done before a resume."""
        several = len(self.mixture.shares) > 1
        for mode in MODES:
            for suite, _ in self.mixture.shares:
                if (name, mode, suite.name) in self.judged or self.stop.asked:
                    continue
                found = await self._evaluate(suite, mode, Split.TEST, self.recipe.evaluate.test)
                self.run.log_evaluation(self.progress.update, name, mode, found.to_json(results=True))
                low, high = found.success_interval
                on = f" on {suite.name}" if several else ""
                self.log(
                    f"{name}, {mode:7s}: test success {found.success:.3f} [{low:.3f}, {high:.3f}]"
                    f"  score {found.mean_score:.3f}  turns {found.turns:.1f}{on}"
                )
                self.judged[name, mode, suite.name] = CheckpointEvaluation(name, mode, found)
            if several and not self.stop.asked:
                self._tell_mean(name, mode)

    def _tell_mean(self, name: str, mode: str) -> None:
        """Say the weighted mean of an evaluation on several suites."""
        found = [self.judged[name, mode, suite.name].evaluation for suite, _ in self.mixture.shares]
        mean = weighted_mean(found, [share for _, share in self.mixture.shares])
        low, high = mean.success_interval
        self.log(
            f"{name}, {mode:7s}: test success {mean.success:.3f} [{low:.3f}, {high:.3f}]"
            f"  score {mean.mean_score:.3f}  in the weighted mean of {len(found)} suites"
        )

    def _player(self, policy: Policy) -> Policy:
        """Who plays episodes: the policy itself, or the recipe's program, which talks to it."""
        agent = self.recipe.agent
        return policy if agent is None else ProgramPolicy(policy, program_of(plain(agent), "agent"))

    async def _evaluate(self, suite: Suite, mode: str, split: Split, tasks: int) -> Evaluation:
        found = await evaluate_async(
            suite,
            self._player(self.session.policy if mode == "sampled" else self.session.greedy),
            split=split,
            episodes=tasks,
            seed=self.recipe.seed,
            concurrency=self.recipe.rollout.concurrency,
            limits=limits_of(self.recipe.rollout),
            env_options=self.recipe.rollout.env_options,
            env_workers=self.workers or 0,
            opponents=self.examiners,
            max_failed=self.recipe.rollout.max_failed,
        )
        refuse_unplayed(found, self.session.engine.context_length)
        self._sync()  # empties the engine's cache of prefixes: a resumed run begins with an empty one too
        return found

    def _sync(self) -> dict[str, float]:
        report = push_weights(self.session.learner.model, self.session.engine, self.progress.update)
        return {"sync_seconds": report.seconds, "canary_gap": report.max_logp_gap}

    def _save(self) -> None:
        """Write a checkpoint; the best so far and the newest ones stay."""
        self._write(self.run.checkpoints, self.progress.update, dataclasses.asdict(self.progress))
        self.saved = self.progress.update
        self._point_best()
        best = self.run.checkpoint(self.progress.best_update).name
        prune(self.run.checkpoints, self.recipe.checkpoint.keep, best)

    def _write(self, folder: Path, step: int, state: Mapping[str, Any]) -> None:
        session = self.session
        save_checkpoint(
            folder, step, session.learner, self.stateful, session.tokenizer, session.chat_format, state
        )

    def _point_best(self) -> None:
        if self.run.checkpoint(self.progress.best_update).exists():
            self.run.point_best(self.progress.best_update)


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
