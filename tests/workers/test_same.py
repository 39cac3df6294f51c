"""Where environments run changes nothing but who survives whom."""

from __future__ import annotations

from types import ModuleType

import pytest

from turnwise.agents.core import Outcome
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import BranchPoint, Request, fork, run_episodes
from turnwise.agents.workers.pool import WorkerPool
from turnwise.envs.registry import env_class, suite_tasks, suites
from turnwise.tasks.core import Split

IN_MEMORY = sorted(
    {s.env: s for s in suites() if not env_class(s.env).blocking}.values(), key=lambda s: s.name
)


@pytest.fixture(scope="module")
def pool():
    with WorkerPool(2) as made:
        yield made


def told(episodes):
    return [
        (
            e.outcome,
            e.error,
            e.end,
            {
                agent: [(t.observation, t.action, t.reward, dict(t.rewards), t.state_key) for t in one.turns]
                for agent, one in e.trajectories.items()
            },
        )
        for e in episodes
    ]


@pytest.mark.slow
@pytest.mark.parametrize("suite", IN_MEMORY, ids=lambda suite: suite.env)
@pytest.mark.parametrize("script", ["gold", "random"])
def test_episodes_are_the_same_in_a_worker(pool: WorkerPool, suite, script: str) -> None:
    requests = [Request(task, seed) for seed, task in enumerate(suite_tasks(suite, Split.DEV, 2))]
    here = run_episodes(requests, scripted(script))
    there = run_episodes(requests, scripted(script), env_workers=pool)
    assert told(here) == told(there)
    assert all(e.outcome.counts for e in here)


def test_moments_leave_their_process(pool: WorkerPool, hazards: ModuleType) -> None:
    kept: list[BranchPoint] = []
    (first,) = run_episodes(
        [Request(hazards.task("nothing", env=hazards.PURE), 5)],
        hazards.Counter(),
        env_workers=(own := WorkerPool(2)),
        on_branch_point=lambda _, moment: kept.append(moment),
    )
    again = run_episodes(
        [Request(m.task, m.seed, m) for m in kept] + [fork(kept[1], 1)], hazards.Counter(), env_workers=own
    )
    own.close()
    assert {e.outcome for e in again} == {Outcome.OK}
    assert told(again[:-1]) == told([first] * len(kept))  # the same seed from any moment on: the same episode
    assert told(again[-1:]) != told([first])  # a fork has chance of its own
