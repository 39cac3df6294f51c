"""The warm start of a run: imitation of a scripted agent, saved and told step by step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from turnwise.agents.workers.pool import WorkerPool
from turnwise.trainers.learn.warm_start import warm_start
from turnwise.trainers.run.door import WarmOptions
from turnwise.trainers.run.session import TrainingSession
from turnwise.trainers.run.stop import Stop
from turnwise.trainers.sampler.mixture import Mixture


async def imitate(
    options: WarmOptions,
    session: TrainingSession,
    mixture: Mixture,
    workers: WorkerPool | None,
    *,
    done: int,
    stop: Stop,
    save: Callable[[int], None],
    note: Callable[[int, Mapping[str, float]], None],
    log: Callable[[str], None],
) -> None:
    """Take the steps of the recipe's warm start, or those until it is stopped.

    Args:
        options: whom it imitates, and how.
        session: whose learner imitates.
        mixture: the suites whose tasks are shown.
        workers: processes that hold the environments; None: this one does.
        done: steps that were taken before a resume.
        stop: when asked, the step in hand is the last.
        save: writes a checkpoint after a step.
        note: receives the metrics of each step.
        log: receives a line now and then.
    """
    play, imitation = options.play, options.imitation
    began, again = time.monotonic(), f", after step {done}" if done else ""
    log(f"warm start: {imitation.episodes} {imitation.shown}{again}")

    def on_step(step: int, steps: int, metrics: Mapping[str, float]) -> bool:
        note(step, metrics)
        if (step - 1) % max(1, steps // 8) == 0 or step == steps:
            log(
                f"  step {step:4d}/{steps}  nll per action token {metrics['action_nll']:.3f}"
                f"  {time.monotonic() - began:5.0f} s"
            )
        if stop.asked or step == steps or step % options.checkpoint_every == 0:
            save(step)
        return not stop.asked

    await warm_start(
        session.learner,
        session.renderer,
        mixture,
        imitation,
        play.seed,
        on_step,
        play.env_options,
        env_workers=workers or 0,
        done=done,
        limits=play.limits,
        context=session.context,
    )
