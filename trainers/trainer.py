"""The training run: warm start, then reinforcement, looked at on dev, judged on test.

The trainer knows no algorithm by name. One update is::

    sample tasks → roll out → judge → reward → filter → credit → Σ weight · reduce(loss) → step → sync weights

All chance is derived from (seed, update), so a run resumed from a checkpoint is the run that was never
interrupted.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from turnwise.agents.evaluate import Evaluation, evaluate_async
from turnwise.agents.log import EpisodeLog
from turnwise.agents.parquet import to_parquet
from turnwise.agents.policies.registry import make_policy
from turnwise.envs.registry import get_suite
from turnwise.tasks.core import Split
from turnwise.trainers.checkpoint import (
    Loaded,
    load_newest,
    prune,
    read_state,
    remove_after,
    restore,
    save_checkpoint,
    verify,
)
from turnwise.trainers.explain import explain_recipe
from turnwise.trainers.learn import learn
from turnwise.trainers.outcome import Judged, Progress, Result, update_line
from turnwise.trainers.parts import build_parts
from turnwise.trainers.recipe import load_recipe
from turnwise.trainers.rollouts import describe, limits_of, log_sample, sample
from turnwise.trainers.run import Run, open_run
from turnwise.trainers.schema import Recipe
from turnwise.trainers.setup import Studio, open_studio
from turnwise.trainers.stop import Stop
from turnwise.trainers.sync import push_weights
from turnwise.trainers.warm_start import warm_start

Say = Callable[[str], None]
AFTER = "after RL"
MODES = ("sampled", "greedy")


def train(
    source: str | Path,
    out: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    resume: bool = False,
    *,
    say: Say | None = None,
) -> Result:
    """Train by a recipe (a name or a YAML file) into ``out`` and write its report.

    Ctrl-C finishes the update, saves and stops; a second one stops at once.

    Raises:
        RecipeError: the recipe is not right.
        RunError: the directory is in use or holds another run, or the run cannot go on.
    """
    recipe = load_recipe(source, overrides)
    name = Path(source).stem if str(source).endswith((".yaml", ".yml")) else str(source)
    path = Path(out) if out is not None else Path("runs") / name
    with open_run(path, recipe, explain_recipe(recipe), resume=resume) as run, asyncio.Runner() as runner:
        return runner.run(_train(recipe, run, resume, say or _print))


async def _train(recipe: Recipe, run: Run, resume: bool, say: Say) -> Result:
    from turnwise.trainers.report import write_report

    started = time.monotonic()
    with Stop(say) as stop:
        loaded = load_newest(run.checkpoints) if resume else None
        trainer = Trainer(recipe, run, stop, say)
        trainer.tidy(loaded)
        if trainer.complete:
            say(f"the run in {run.path} is complete")
        else:
            with open_studio(recipe, run, say) as studio:
                await trainer.run_all(studio, loaded)
            if run.episodes.exists():
                to_parquet(run.episodes)
    say(f"report: {write_report(run.path)}")
    judged = tuple(trainer.judged.values())
    interrupted = not trainer.complete
    return Result(run.path, judged, trainer.progress.best_update, interrupted, time.monotonic() - started)


class Trainer:
    """Carries out a recipe in a run's directory."""

    studio: Studio

    def __init__(self, recipe: Recipe, run: Run, stop: Stop, say: Say) -> None:
        self.recipe, self.run, self.stop, self.say = recipe, run, stop, say
        self.suite = get_suite(recipe.suite)
        self.parts = build_parts(recipe)
        self.opponents = {name: make_policy(spec) for name, spec in recipe.rollout.opponents.items()}
        self.examiners = {name: make_policy(spec) for name, spec in recipe.evaluate.opponents.items()}
        self.progress = Progress()
        self.saved = -1  # the update after which the newest checkpoint was written
        self.before = "warm start" if recipe.warm_start else "before"
        self.judged: dict[tuple[str, str], Judged] = {}

    @property
    def complete(self) -> bool:
        """Whether all updates were made and judged."""
        done = self.saved == self.recipe.updates
        return done and all((name, mode) in self.judged for name in (self.before, AFTER) for mode in MODES)

    def tidy(self, loaded: Loaded | None) -> None:
        """Bring the directory to where ``loaded`` was saved; without it, to the beginning."""
        if loaded is None:
            self.run.clear()
            return
        for note in loaded.notes:
            self.say(f"skipped a damaged checkpoint: {note}")
        self.progress = Progress.from_state(loaded.state)
        self.saved = self.progress.update
        remove_after(self.run.checkpoints, self.progress.update)
        self.run.forget_after(self.progress.update)
        self._point_best()
        for row in self.run.evaluations():
            name, mode = str(row["name"]), str(row["mode"])
            self.judged[name, mode] = Judged(name, mode, Evaluation.from_json(row))

    async def run_all(self, studio: Studio, loaded: Loaded | None) -> None:
        """Everything from the warm start to the verdict on test, as far as it is still to be done."""
        self.studio = studio
        if loaded is not None:
            restore(loaded.path, studio.learner, loaded.state)
            self.say(f"resumed after update {self.progress.update}")
        elif self.recipe.warm_start is not None and not await self._warm_start():
            self.say("stopped in the warm start, of which nothing is saved; --resume begins anew")
            return
        studio.start_engine()
        self._sync()
        if loaded is None:
            self._save()
        if self.progress.update == 0:
            await self._judge(self.before)
        options = self.recipe.rollout.env_options
        with EpisodeLog(self.run.episodes, policy=str(self.run.path), env_options=options) as log:
            while self.progress.update < self.recipe.updates and not self.stop.asked:
                await self._update(log)
        if self.saved != self.progress.update:
            self._save()
        if not self.stop.asked:
            await self._judge_best()
        if self.stop.asked and not self.complete:
            self.say(f"stopped after update {self.progress.update}; go on with --resume")

    async def _warm_start(self) -> bool:
        """True if it came to its end."""
        options, recipe = self.recipe.warm_start, self.recipe
        assert options is not None
        began = time.monotonic()
        self.say(f"warm start: {options.episodes} episodes of scripted:{options.demonstrator}")

        def on_step(step: int, steps: int, metrics: Mapping[str, float]) -> bool:
            self.run.log_metrics(step, "warm_start", metrics)
            if (step - 1) % max(1, steps // 8) == 0 or step == steps:
                self.say(
                    f"  step {step:4d}/{steps}  nll per action token {metrics['action_nll']:.3f}"
                    f"  {time.monotonic() - began:5.0f} s"
                )
            return not self.stop.asked

        learner, renderer, env_options = self.studio.learner, self.studio.renderer, recipe.rollout.env_options
        await warm_start(learner, renderer, self.suite, options, recipe.seed, on_step, env_options)
        if self.stop.asked:
            return False
        self.studio.begin_reinforcement()
        return True

    async def _update(self, log: EpisodeLog) -> None:
        """One update; the loop of the module's first lines."""
        began = time.monotonic()
        update = self.progress.update
        policy = self.studio.policy
        played = await sample(self.recipe, self.suite, policy, self.parts, update, self.opponents)
        rolled_out = time.monotonic()
        metrics: dict[str, Any] = describe(played)
        advantages, learned_metrics = learn(self.studio, self.parts, played, self.progress.past, update)
        metrics |= learned_metrics
        learned = time.monotonic()
        log_sample(log, update, played, advantages)
        self.progress.update = update + 1
        self.progress.tokens += int(metrics["tokens"])
        self.progress.failed += played.failed
        metrics |= self._sync()
        metrics |= {"rollout_seconds": rolled_out - began, "learn_seconds": learned - rolled_out}
        last = self.progress.update == self.recipe.updates
        if last or self.progress.update % self.recipe.evaluate.every == 0:
            metrics |= await self._look()
        metrics["seconds"] = time.monotonic() - began
        metrics["tokens_per_second"] = metrics["tokens"] / metrics["seconds"]
        self.run.log_metrics(self.progress.update, "rl", metrics)
        self.studio.write_scalars(self.progress.update, metrics)
        best = self.progress.best_update == self.progress.update
        if last or best or self.progress.update % self.recipe.checkpoint.every == 0:
            self._save()
        self.say(update_line(self.progress.update, self.recipe.updates, metrics))

    async def _look(self) -> dict[str, Any]:
        """The policy on dev; the best checkpoint is chosen by this alone."""
        found = await self._evaluate("sampled", Split.DEV, self.recipe.evaluate.dev)
        if found.success > self.progress.best_score:
            self.progress.best_score, self.progress.best_update = found.success, self.progress.update
        return {
            "dev_success": found.success,
            "dev_success_interval": found.to_json()["success_interval"],
            "dev_score": found.mean_score,
        }

    async def _judge_best(self) -> None:
        """Load what was best on dev and judge it on test."""
        best, learner = self.run.checkpoint(self.progress.best_update), self.studio.learner
        if self.progress.best_update != self.progress.update:
            problem = verify(best)
            if problem is None:
                restore(best, learner, read_state(best))
                self._sync()
            else:
                self.say(f"the best checkpoint cannot be used, so the last one is judged: {problem}")
                self.progress.best_update = self.progress.update
                self._point_best()
        await self._judge(AFTER)

    async def _judge(self, name: str) -> None:
        """Evaluate on test, sampled and greedily, unless that was done before a resume."""
        for mode in MODES:
            if (name, mode) in self.judged or self.stop.asked:
                continue
            found = await self._evaluate(mode, Split.TEST, self.recipe.evaluate.test)
            self.run.log_evaluation(self.progress.update, name, mode, found.to_json(results=True))
            low, high = found.success_interval
            self.say(
                f"{name}, {mode:7s}: test success {found.success:.3f} [{low:.3f}, {high:.3f}]"
                f"  score {found.mean_score:.3f}  turns {found.turns:.1f}"
            )
            self.judged[name, mode] = Judged(name, mode, found)

    async def _evaluate(self, mode: str, split: Split, tasks: int) -> Evaluation:
        found = await evaluate_async(
            self.suite,
            self.studio.policy if mode == "sampled" else self.studio.greedy,
            split=split,
            episodes=tasks,
            seed=self.recipe.seed,
            concurrency=self.recipe.rollout.concurrency,
            limits=limits_of(self.recipe),
            env_options=self.recipe.rollout.env_options,
            opponents=self.examiners,
        )
        self._sync()  # empties the engine's cache of prefixes: a resumed run begins with an empty one too
        return found

    def _sync(self) -> dict[str, float]:
        report = push_weights(self.studio.learner.model, self.studio.engine, self.progress.update)
        return {"sync_seconds": report.seconds, "canary_gap": report.max_logp_gap}

    def _save(self) -> None:
        """Write a checkpoint; the best so far and the newest ones stay."""
        save_checkpoint(
            self.run.checkpoints,
            self.progress.update,
            self.studio.learner,
            self.studio.tokenizer,
            self.studio.habits,
            dataclasses.asdict(self.progress),
        )
        self.saved = self.progress.update
        self._point_best()
        best = self.run.checkpoint(self.progress.best_update).name
        prune(self.run.checkpoints, self.recipe.checkpoint.keep, best)

    def _point_best(self) -> None:
        if self.run.checkpoint(self.progress.best_update).exists():
            self.run.point_best(self.progress.best_update)


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
