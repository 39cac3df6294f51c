"""Evaluations of a run: on dev between updates, which choose the best checkpoint; on test before and after."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from turnwise.agents.evaluation.evaluate import Evaluation, evaluate_async
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.workers.pool import WorkerPool
from turnwise.tasks.core import Split, Suite
from turnwise.trainers.run.directory import RunDirectory
from turnwise.trainers.run.door import JudgeOptions
from turnwise.trainers.run.progress import CheckpointEvaluation, RunProgress
from turnwise.trainers.run.session import TrainingSession
from turnwise.trainers.run.stop import Stop
from turnwise.trainers.run.suites import weighted_mean
from turnwise.trainers.run.vacuous import refuse_unplayed
from turnwise.trainers.sampler.mixture import Mixture

AFTER = "after RL"
MODES = ("sampled", "greedy")


class Judging:
    """Evaluates the policy of a run and remembers what was found.

    Args:
        options: on how many tasks it evaluates, and how they are played.
        run: the run's files.
        mixture: its suites.
        stop: when asked, nothing further is evaluated.
        log: receives a line about each evaluation.
    """

    workers: WorkerPool | None = None
    refresh: Callable[[], object] = staticmethod(lambda: None)
    """Empties the engine's cache of prefixes after an evaluation: a resumed run begins with an empty one too."""

    def __init__(
        self,
        options: JudgeOptions,
        run: RunDirectory,
        mixture: Mixture,
        stop: Stop,
        log: Callable[[str], None],
    ) -> None:
        self.options, self.run, self.mixture, self.stop, self.log = options, run, mixture, stop, log
        self.examiners = {name: make_policy(spec) for name, spec in options.opponents.items()}
        self.judged: dict[tuple[str, str, str], CheckpointEvaluation] = {}

    @property
    def complete(self) -> bool:
        """True if all evaluations on test were made."""
        return all(
            (name, mode, suite.name) in self.judged
            for name in (self.options.before, AFTER)
            for mode in MODES
            for suite, _ in self.mixture.shares
        )

    def remember(self) -> None:
        """Take up the evaluations on test that the run's files hold."""
        for row in self.run.evaluations():
            found = CheckpointEvaluation(str(row["name"]), str(row["mode"]), Evaluation.from_json(row))
            self.judged[found.name, found.mode, found.evaluation.suite] = found

    async def validate(self, session: TrainingSession, progress: RunProgress) -> dict[str, Any]:
        """The policy on dev; the best checkpoint is chosen by this alone, by the weighted mean where suites are several."""
        shares, dev = self.mixture.shares, self.options.dev
        found = [await self._evaluate(session, suite, "sampled", Split.DEV, dev) for suite, _ in shares]
        mean = weighted_mean(found, [share for _, share in shares])
        if mean.success > progress.best_score:
            progress.best_score, progress.best_update = mean.success, progress.update
        each = {f"dev_success/{one.suite}": one.success for one in found} if len(found) > 1 else {}
        return {
            "dev_success": mean.success,
            "dev_success_interval": [x if math.isfinite(x) else None for x in mean.success_interval],
            "dev_score": mean.mean_score,
            **each,
        }

    async def judge(self, session: TrainingSession, update: int, name: str) -> None:
        """Evaluate on test, sampled and greedily, unless that was done before a resume."""
        several = len(self.mixture.shares) > 1
        for mode in MODES:
            for suite, _ in self.mixture.shares:
                if (name, mode, suite.name) in self.judged or self.stop.asked:
                    continue
                found = await self._evaluate(session, suite, mode, Split.TEST, self.options.test)
                self.run.log_evaluation(update, name, mode, found.to_json(results=True))
                self._tell(name, mode, found, f" on {suite.name}" if several else "")
                self.judged[name, mode, suite.name] = CheckpointEvaluation(name, mode, found)
            if several and not self.stop.asked:
                all_ = [self.judged[name, mode, suite.name].evaluation for suite, _ in self.mixture.shares]
                mean = weighted_mean(all_, [share for _, share in self.mixture.shares])
                low, high = mean.success_interval
                self.log(
                    f"{name}, {mode:7s}: test success {mean.success:.3f} [{low:.3f}, {high:.3f}]"
                    f"  score {mean.mean_score:.3f}  in the weighted mean of {len(all_)} suites"
                )

    def _tell(self, name: str, mode: str, found: Evaluation, on: str) -> None:
        low, high = found.success_interval
        self.log(
            f"{name}, {mode:7s}: test success {found.success:.3f} [{low:.3f}, {high:.3f}]"
            f"  score {found.mean_score:.3f}  turns {found.turns:.1f}{on}"
        )

    async def _evaluate(
        self, session: TrainingSession, suite: Suite, mode: str, split: Split, tasks: int
    ) -> Evaluation:
        play = self.options.play
        found = await evaluate_async(
            suite,
            session.player(session.policy if mode == "sampled" else session.greedy),
            split=split,
            episodes=tasks,
            seed=play.seed,
            concurrency=play.concurrency,
            limits=play.limits,
            env_options=play.env_options,
            env_workers=self.workers or 0,
            opponents=self.examiners,
            max_failed=play.max_failed,
        )
        refuse_unplayed(found, session.engine.context_length)
        self.refresh()
        return found
