"""The training run: warm start, then reinforcement, looked at on dev, judged on test.

The trainer knows no algorithm by name. One update is::

    sample tasks → roll out → reward → filter → credit → Σ weight · reduce(loss) → step → sync weights

All chance is derived from (seed, update), so a run resumed from a checkpoint is the run that was never
interrupted.
"""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.core import Episode
from turnwise.agents.evaluate import Evaluation, evaluate_async
from turnwise.agents.log import EpisodeLog
from turnwise.agents.rollout import Limits, Request, rollout
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import RunError
from turnwise.tasks.core import Json, Split, derive_rng
from turnwise.trainers.checkpoint import load_newest, prune, read_state, restore, save_checkpoint
from turnwise.trainers.collate import collate
from turnwise.trainers.core import Group
from turnwise.trainers.parts import Parts, build_parts
from turnwise.trainers.recipe import load_recipe
from turnwise.trainers.run import Run, open_run
from turnwise.trainers.schema import Recipe
from turnwise.trainers.setup import Studio, open_studio
from turnwise.trainers.sync import push_weights
from turnwise.trainers.warm_start import warm_start

Say = Callable[[str], None]


class Result(NamedTuple):
    """What a run came to."""

    path: Path
    evaluations: tuple[tuple[str, str, Evaluation], ...]  # (name, mode, evaluation)
    best_update: int
    interrupted: bool
    seconds: float

    def to_json(self) -> dict[str, Json]:
        rows = [{"name": name, "mode": mode, **found.to_json()} for name, mode, found in self.evaluations]
        return {
            "run": str(self.path),
            "best_update": self.best_update,
            "interrupted": self.interrupted,
            "seconds": round(self.seconds, 1),
            "evaluations": rows,
        }


@dataclasses.dataclass
class Progress:
    """The counters of a run: all that a checkpoint must remember beside weights and optimizer."""

    update: int = 0
    best_update: int = 0
    best_score: float = -1.0
    tokens: int = 0
    failed: int = 0

    def to_json(self) -> dict[str, Json]:
        return dataclasses.asdict(self)


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
        RecipeError: the recipe is not right. RunError: the directory is in use, or holds another run.
    """
    from turnwise.trainers.explain import explain_recipe

    recipe = load_recipe(source, overrides)
    name = Path(source).stem if str(source).endswith((".yaml", ".yml")) else str(source)
    path = Path(out) if out is not None else Path("runs") / name
    with open_run(path, recipe, explain_recipe(recipe), resume=resume) as run, asyncio.Runner() as runner:
        return runner.run(_train(recipe, run, resume, say or _print))


async def _train(recipe: Recipe, run: Run, resume: bool, say: Say) -> Result:
    started = time.monotonic()
    with open_studio(recipe, run, say) as studio:
        trainer = Trainer(recipe, run, studio, say)
        found = await trainer.run_all(resume)
    from turnwise.trainers.report import write_report

    say(f"report: {write_report(run.path)}")
    return Result(
        run.path, tuple(found), trainer.progress.best_update, trainer.stopping, time.monotonic() - started
    )


class Trainer:
    """Carries out a recipe in an opened studio (model, tokeniser, renderer, engine)."""

    def __init__(self, recipe: Recipe, run: Run, studio: Studio, say: Say) -> None:
        self.recipe, self.run, self.studio, self.say = recipe, run, studio, say
        self.suite = get_suite(recipe.suite)
        self.parts: Parts = build_parts(recipe)
        self.progress = Progress()
        self.stopping = False
        self.limits = Limits(
            generate_s=recipe.rollout.generate_s,
            step_s=recipe.rollout.step_s,
            episode_tokens=recipe.rollout.episode_tokens or float("inf"),
        )

    async def run_all(self, resume: bool) -> list[tuple[str, str, Evaluation]]:
        """Everything from the warm start to the verdict on test."""
        with self._graceful_stop():
            resumed = await self._begin(resume)
            before = (
                [] if resumed else await self._judge("warm start" if self.recipe.warm_start else "before", 0)
            )
            with EpisodeLog(
                self.run.episodes, policy=str(self.run.path), env_options=self._env_options
            ) as log:
                while self.progress.update < self.recipe.updates and not self.stopping:
                    await self._update(log)
            if self.stopping:
                self._save()
                self.say(f"stopped after update {self.progress.update}; go on with --resume")
                return before
            return before + await self._judge_best()

    async def _begin(self, resume: bool) -> bool:
        """Start anew or from the newest checkpoint; True where reinforcement had begun."""
        loaded = load_newest(self.run.checkpoints) if resume else None
        learner = self.studio.learner
        if loaded is not None:
            for note in loaded.notes:
                self.say(f"skipped a damaged checkpoint: {note}")
            restore(loaded.path, learner, loaded.state)
            fields = {field.name for field in dataclasses.fields(Progress)}
            self.progress = Progress(**{key: value for key, value in loaded.state.items() if key in fields})
            self.run.forget_after(self.progress.update)
            self.say(f"resumed after update {self.progress.update}")
        elif self.recipe.warm_start is not None:
            await self._warm_start()
        self.studio.start_engine()
        self._sync()
        if loaded is None:
            self._save()
        return loaded is not None

    async def _warm_start(self) -> None:
        options = self.recipe.warm_start
        assert options is not None
        began = time.monotonic()
        steps = options.episodes // options.batch_size
        self.say(f"warm start: {options.episodes} episodes of scripted:{options.demonstrator}")

        def on_step(step: int, metrics: Mapping[str, float]) -> None:
            self.run.log_metrics(step, "warm_start", metrics)
            if step % max(1, steps // 8) == 0 or step == steps - 1:
                self.say(
                    f"  step {step + 1:4d}/{steps}  nll per action token {metrics['action_nll']:.3f}"
                    f"  {time.monotonic() - began:5.0f} s"
                )

        learner = self.studio.learner
        await warm_start(learner, self.studio.renderer, self.suite, options, self.recipe.seed, on_step)
        learner.reset_optimizer()

    async def _update(self, log: EpisodeLog) -> None:
        """One update; the loop of the module's first lines."""
        began = time.monotonic()
        update = self.progress.update
        groups = await self._sample(update)
        rolled_out = time.monotonic()
        kept = [group for group in groups if self.parts.filter(group)]
        metrics = _describe(groups, kept)
        advantages: dict[int, list[float]] = {}
        if kept:
            batch = collate(kept)
            batch = self.studio.measure(batch, self.recipe.needs)
            advantage_BK = self.parts.credit(batch.turns)
            order = list(range(len(batch.turns.group_B)))
            derive_rng("minibatches", self.recipe.seed, update).shuffle(order)
            metrics |= self.studio.learner.update(batch, advantage_BK, self.parts.objective, order=order)
            flat = [id(episode) for group in kept for episode in group]
            lengths = batch.turns.length_B.tolist()
            advantages = {e: a[:n] for e, a, n in zip(flat, advantage_BK.tolist(), lengths, strict=True)}
        learned = time.monotonic()
        for index, group in enumerate(groups):
            for episode in group:
                log.append(episode, update=update, group=index, advantages=advantages.get(id(episode), ()))
        log.flush()
        self.progress.update = update + 1
        self.progress.tokens += int(metrics["tokens"])
        metrics |= self._sync()
        metrics |= {"rollout_seconds": rolled_out - began, "learn_seconds": learned - rolled_out}
        if (
            self.progress.update % self.recipe.evaluate.every == 0
            or self.progress.update == self.recipe.updates
        ):
            metrics |= await self._look()
        if self.progress.update % self.recipe.checkpoint.every == 0:
            self._save()
        metrics["seconds"] = time.monotonic() - began
        metrics["tokens_per_second"] = metrics["tokens"] / metrics["seconds"]
        self.run.log_metrics(self.progress.update, "rl", metrics)
        self.studio.write_scalars(self.progress.update, metrics)
        self._say_update(metrics)

    async def _sample(self, update: int) -> list[Group]:
        """Groups of episodes on fresh training tasks, rewarded; a group with a fault in it is dropped.

        Raises:
            RunError: more episodes failed than the recipe accepts.
        """
        options = self.recipe.rollout
        tasks = suite_tasks(self.suite, Split.TRAIN, options.groups, start=update * options.groups)
        requests = [
            Request(task, derive_rng("episode", self.recipe.seed, update, g, i).getrandbits(62))
            for g, task in enumerate(tasks)
            for i in range(options.group_size)
        ]
        episodes = await rollout(
            requests,
            self.studio.policy,
            concurrency=options.concurrency,
            limits=self.limits,
            env_options=self._env_options,
        )
        failed = [episode for episode in episodes if not episode.outcome.counts]
        self.progress.failed += len(failed)
        if len(failed) > options.max_failed * len(episodes):
            raise RunError(
                f"{len(failed)} of {len(episodes)} episodes failed in update {update}: {failed[0].error}",
                "Repair the cause and resume; `rollout.max_failed` is the share that is accepted.",
            )
        size = options.group_size
        groups = [episodes[i : i + size] for i in range(0, len(episodes), size)]
        whole = [group for group in groups if all(episode.outcome.counts for episode in group)]
        return [self.parts.reward(group) for group in whole]

    async def _look(self) -> dict[str, Any]:
        """The policy on dev; the best checkpoint is chosen by this alone."""
        found = await self._evaluate("sampled", Split.DEV, self.recipe.evaluate.dev)
        metrics: dict[str, Any] = {
            "dev_success": found.success,
            "dev_success_interval": list(found.success_interval),
        }
        metrics["dev_score"] = found.mean_score
        if found.success > self.progress.best_score:
            self.progress.best_score, self.progress.best_update = found.success, self.progress.update
            self._save()
            self.run.point_best(self.progress.update)
        return metrics

    async def _judge_best(self) -> list[tuple[str, str, Evaluation]]:
        """Load what was best on dev and judge it on test."""
        best = self.run.checkpoint(self.progress.best_update)
        if best.exists() and self.progress.best_update != self.progress.update:
            restore(best, self.studio.learner, read_state(best))
            self._sync()
        self._save()
        return await self._judge("after RL", self.progress.best_update)

    async def _judge(self, name: str, update: int) -> list[tuple[str, str, Evaluation]]:
        rows: list[tuple[str, str, Evaluation]] = []
        for mode in ("sampled", "greedy"):
            found = await self._evaluate(mode, Split.TEST, self.recipe.evaluate.test)
            self.run.log_evaluation(name, mode, {"update": update, **found.to_json(results=True)})
            low, high = found.success_interval
            self.say(
                f"{name}, {mode:7s}: test success {found.success:.3f} [{low:.3f}, {high:.3f}]"
                f"  score {found.mean_score:.3f}  turns {found.turns:.1f}"
            )
            rows.append((name, mode, found))
        return rows

    async def _evaluate(self, mode: str, split: Split, tasks: int) -> Evaluation:
        policy = self.studio.policy if mode == "sampled" else self.studio.greedy
        return await evaluate_async(
            self.suite,
            policy,
            split=split,
            episodes=tasks,
            seed=self.recipe.seed,
            concurrency=self.recipe.rollout.concurrency,
            limits=self.limits,
            env_options=self._env_options,
        )

    def _sync(self) -> dict[str, float]:
        report = push_weights(self.studio.learner.model, self.studio.engine, self.progress.update)
        return {"sync_seconds": report.seconds, "canary_gap": report.max_logp_gap}

    def _save(self) -> None:
        save_checkpoint(
            self.run.checkpoints,
            self.progress.update,
            self.studio.learner,
            self.studio.tokenizer,
            self.studio.tools_format,
            self.progress.to_json(),
        )
        prune(self.run.checkpoints, self.recipe.checkpoint.keep, f"step-{self.progress.best_update:06d}")

    def _say_update(self, metrics: Mapping[str, Any]) -> None:
        dev = f"  dev {metrics['dev_success']:.3f}" if "dev_success" in metrics else ""
        self.say(
            f"  update {self.progress.update:3d}/{self.recipe.updates}  success {metrics['success']:.3f}"
            f"  entropy {metrics.get('entropy', float('nan')):.3f}  informative groups {metrics['informative']:.2f}"
            f"  {metrics['tokens_per_second']:5.0f} tok/s  {metrics['seconds']:4.1f} s{dev}"
        )

    @property
    def _env_options(self) -> dict[str, Any]:
        return self.recipe.rollout.env_options

    def _graceful_stop(self) -> Any:
        return GracefulStop(self)


class GracefulStop:
    """The first Ctrl-C (or SIGTERM) lets the update finish; the second one interrupts."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        import threading

        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _stop(self, number: int, _: object) -> None:
        if self._trainer.stopping:
            raise KeyboardInterrupt
        self._trainer.stopping = True
        self._trainer.say("stopping after this update (again to stop at once)")


def _describe(groups: Sequence[Group], kept: Sequence[Group]) -> dict[str, Any]:
    """What the rollouts came to."""
    episodes: list[Episode] = [episode for group in groups for episode in group]
    n = max(1, len(episodes))
    sampled = [turn.reply for e in episodes for turn in e.trajectory.turns]
    return {
        "reward": sum(e.trajectory.ret for e in episodes) / n,
        "success": sum(e.success for e in episodes) / n,
        "turns": sum(len(e.trajectory.turns) for e in episodes) / n,
        "bad_actions": sum(t.bad_action for e in episodes for t in e.trajectory.turns) / max(1, len(sampled)),
        "informative": len(kept) / max(1, len(groups)),
        "groups_dropped": 0.0,
        "tokens": sum(len(r.prompt_ids) + len(r.action_ids) for r in sampled),
        "tokens_sampled": sum(len(r.action_ids) for r in sampled),
    }


def _print(line: str) -> None:
    import sys

    print(line, file=sys.stderr, flush=True)
