"""What one environment does costs its episode alone, in threads as far as Python allows and in worker processes."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.execution.calls import Fault
from turnwise.agents.execution.threads import stuck
from turnwise.agents.rollout import Limits, Request, run_episodes
from turnwise.agents.workers.pool import WorkerPool
from turnwise.envs.registry import suite_task
from turnwise.errors import DeadlineError
from turnwise.tasks.core import Split, Suite
from turnwise.tools.sandbox import cgroups
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.reap import reap

pytestmark = pytest.mark.slow


INNOCENT = 6
SOON = Limits(step_s=0.4)
NEVER = Limits(step_s=600)


def told(episode: Episode) -> list[object]:
    """All that an episode is, without the time it took."""
    turns = [
        (turn.observation, turn.action, turn.reward, turn.state_key) for turn in episode.trajectory.turns
    ]
    return [episode.task, episode.seed, episode.outcome, episode.end, turns, episode.trajectory.final]


def play(
    hazards: ModuleType,
    hazard: str,
    workers: int | WorkerPool,
    limits: Limits,
    *,
    mark: str = "",
    env: str = "",
) -> tuple[Episode, list[Episode]]:
    """The episode with the hazard, and innocent ones beside it."""
    env = env or hazards.ENV
    tasks = [hazards.task("nothing", salt, env=env) for salt in range(INNOCENT)]
    tasks.insert(2, hazards.task(hazard, 99, env=env, mark=mark))
    requests = [Request(task, seed) for seed, task in enumerate(tasks)]
    episodes = run_episodes(requests, hazards.Counter(), limits=limits, env_workers=workers)
    return episodes[2], [*episodes[:2], *episodes[3:]]


HANGS = [("spin", 0), ("sleep", 0), ("spin", 2), ("sleep", 2), ("hold_the_lock", 2)]


@pytest.mark.parametrize(("hazard", "workers"), HANGS, ids=[f"{h}-{w}" for h, w in HANGS])
def test_a_hang_costs_its_episode_alone(
    hazards: ModuleType, monkeypatch: pytest.MonkeyPatch, hazard: str, workers: int
) -> None:
    monkeypatch.setattr("turnwise.agents.workers.worker.SILENCE_S", 1.5)
    episode, others = play(hazards, hazard, workers, SOON)
    assert episode.outcome is Outcome.INFRA_ERROR
    assert "step() of HazardEnv took more than 0.4 s" in episode.error
    assert len(episode.trajectory.turns) == hazards.AT  # what was played before is kept
    assert [other.outcome for other in others] == [Outcome.OK] * INNOCENT


def test_a_pure_hang_on_the_event_loop_is_interrupted(hazards: ModuleType) -> None:
    episode, others = play(hazards, "spin", 0, SOON, env=hazards.PURE)
    assert episode.outcome is Outcome.INFRA_ERROR
    assert "hazards.py" in episode.error  # the line
    assert [other.outcome for other in others] == [Outcome.OK] * INNOCENT


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("hazard", ["hang_once", "fail_once"])
def test_a_step_that_fails_once_is_repeated_and_nothing_else_differs(
    hazards: ModuleType, tmp_path: Path, hazard: str, workers: int
) -> None:
    episode, others = play(hazards, hazard, workers, SOON, mark=str(tmp_path / "mark"))
    calm, calm_others = play(hazards, hazard, 0, SOON, mark=str(tmp_path / "mark"))  # it is there already
    assert (episode.outcome, episode.metrics["repeated_steps"]) == (Outcome.OK, 1.0)
    assert told(episode) == told(calm)
    assert "repeated_steps" not in calm.metrics
    assert [told(other) for other in others] == [told(other) for other in calm_others]


SIGNALS = [  # in `make test` each of Python's once, and each place once
    pytest.param(error, env, workers, marks=() if i == j else pytest.mark.full)
    for i, error in enumerate([StopIteration, GeneratorExit, asyncio.CancelledError])
    for j, (env, workers) in enumerate([("PURE", 0), ("ENV", 0), ("ENV", 1)])
]
ENDS = [
    ("os_exit", Outcome.ENV_ERROR, "ended its process with code 7"),
    ("segfault", Outcome.ENV_ERROR, "SIGSEGV"),
    ("print", Outcome.ENV_ERROR, "printed more than"),
    ("exit", Outcome.ENV_ERROR, "SystemExit"),
    ("raise", Outcome.ENV_ERROR, "KeyError"),
    ("fail", Outcome.INFRA_ERROR, "The disk is away"),
]


@pytest.mark.parametrize(("hazard", "outcome", "message"), ENDS, ids=[row[0] for row in ENDS])
def test_an_end_costs_its_episode_alone(
    hazards: ModuleType, hazard: str, outcome: Outcome, message: str
) -> None:
    episode, others = play(hazards, hazard, 2, NEVER)
    assert (episode.outcome, [other.outcome for other in others]) == (outcome, [Outcome.OK] * INNOCENT)
    assert message in episode.error


def test_a_process_that_is_killed_from_outside_costs_nothing(hazards: ModuleType, tmp_path: Path) -> None:
    episode, others = play(hazards, "killed_once", 2, NEVER, mark=str(tmp_path / "mark"))
    assert {each.outcome for each in (episode, *others)} == {Outcome.OK}


def test_a_flood_costs_its_episode_alone(hazards: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnwise.agents.workers.process.FLOOD_BYTES", 4 << 20)
    episode, others = play(hazards, "flood", 1, NEVER)
    assert not episode.outcome.counts
    assert [other.outcome for other in others] == [Outcome.OK] * INNOCENT


def test_who_is_suspected_wrongly_goes_on_and_who_did_it_is_found(hazards: ModuleType) -> None:
    """Two crashes at once in one process: every suspect is tried alone."""
    tasks = [hazards.task(h, salt) for salt, h in enumerate(["segfault", "nothing", "segfault", "nothing"])]
    requests = [Request(task, seed) for seed, task in enumerate(tasks)]
    episodes = run_episodes(requests, hazards.Counter(), env_workers=1, limits=NEVER)
    assert [e.outcome for e in episodes] == [
        Outcome.ENV_ERROR, Outcome.OK, Outcome.ENV_ERROR, Outcome.OK
    ]  # fmt: skip


@pytest.mark.parametrize(("times", "outcome"), [(8, Outcome.OK), (9, Outcome.INFRA_ERROR)])
def test_what_others_do_to_its_process_costs_an_episode_no_retry(
    hazards: ModuleType, monkeypatch: pytest.MonkeyPatch, times: int, outcome: Outcome
) -> None:
    """Several culprits may share a process with it, one after the other; only so often, lest it go on for ever."""
    sound, left = hazards.PureHazardEnv.initial, iter(range(times))

    def initial(self: object, task: object) -> object:
        if next(left, None) is not None:
            raise Fault(Outcome.INFRA_ERROR, "its process was ended for another call in it", innocent=True)
        return sound(self, task)

    monkeypatch.setattr(hazards.PureHazardEnv, "initial", initial)
    request = Request(hazards.task("nothing", env=hazards.PURE), 0)
    (episode,) = run_episodes([request], hazards.Counter(), retries=0)
    assert episode.outcome is outcome


@pytest.mark.parametrize(("error", "env", "workers"), SIGNALS)
def test_signals_of_python_are_an_environments_mistake(
    hazards: ModuleType, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], env: str, workers: int
) -> None:
    """Futures and coroutines take them for something else: an evaluation hung, or ended, for them."""
    episode, others = play(hazards, error.__name__, workers, NEVER, env=getattr(hazards, env))
    assert episode.outcome is Outcome.ENV_ERROR
    assert error.__name__ in episode.error
    assert [other.outcome for other in others] == [Outcome.OK] * INNOCENT


def test_a_worker_leaves_no_process(hazards: ModuleType) -> None:
    mark = str(time.monotonic_ns() % 10**6)
    play(hazards, "spawn_and_exit", 2, NEVER, mark=mark)
    left = [
        p.pid
        for p in psutil.process_iter(["cmdline"])
        if p.info["cmdline"] == ["sleep", str(3600 + int(mark))]
    ]
    assert left == []
    assert [c.pid for c in psutil.Process().children(recursive=True) if _is_worker(c)] == []


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "turnwise.agents.workers" in process.cmdline()
    except (
        psutil.NoSuchProcess,
        psutil.ZombieProcess,
    ):  # it has ended; another test's may not be waited for yet
        return False


@pytest.mark.usefixtures("sandboxed")
def test_a_worker_leaves_no_sandbox(
    hazards: ModuleType, tmp_path: Path, working: Callable[[str], Backend]
) -> None:
    working("bubblewrap")
    mark = tmp_path / "owner"
    episode, _ = play(hazards, "hold_a_sandbox_and_exit", 1, NEVER, mark=str(mark))
    assert "ended its process" in episode.error
    owner = int(mark.read_text())
    for _ in range(300):  # the pool answers first and removes what was left in a thread of its own
        if not cgroups_of(owner):
            break
        time.sleep(0.1)
    assert not cgroups_of(owner)
    assert reap(owner) == []  # processes and folders are gone too


def cgroups_of(owner: int) -> list[str]:
    return [str(group) for group in cgroups.leftovers() if cgroups.owner_of(group) == str(owner)]


PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit that it is ignored
sys.path.insert(0, {folder!r})
import hazards
from turnwise.agents.rollout import Limits, Request, run_episodes
hazards.register_hazards()
tasks = [hazards.task("sleep", mark={mark!r}), hazards.task("nothing")]
episodes = run_episodes([Request(t, 0) for t in tasks], hazards.Counter(), limits=Limits(step_s=0.3), env_workers={workers})
print([e.outcome.value for e in episodes])
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_a_process_with_a_hung_step_ends(workers: int) -> None:
    program = PROGRAM.format(folder=str(Path(__file__).parent), workers=workers, mark="")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "['infra_error', 'ok']\n"), done.stderr


@pytest.mark.parametrize(
    "how", ["SIGKILL", *(pytest.param(name, marks=pytest.mark.full) for name in ("SIGTERM", "SIGINT"))]
)
def test_a_killed_parent_leaves_no_worker(hazards: ModuleType, tmp_path: Path, how: str) -> None:
    mark = tmp_path / "mark"
    program = PROGRAM.format(folder=str(Path(__file__).parent), workers=2, mark=str(mark)).replace(
        "0.3", "1e6"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    while not mark.exists():  # until the step hangs
        assert parent.poll() is None
        time.sleep(0.01)
    children = psutil.Process(parent.pid).children(recursive=True)
    assert len(children) > 2  # the process beside, a keeper, a worker …
    parent.send_signal(signal.Signals[how])
    parent.wait()
    while not all(map(gone, children)):  # the test's own time limit bounds this
        time.sleep(0.05)


def gone(process: psutil.Process) -> bool:
    """A zombie that nobody has buried yet is gone too."""
    try:
        return process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return True


def test_healthy_slow_steps_are_not_taken_for_hung_ones(
    hazards: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many more calls at once than the default executor has threads; none waits for a place."""
    together = threading.Barrier(96)

    class Together(hazards.HazardEnv):  # type: ignore[misc, name-defined]
        def transition(self, state, action):
            if state == 0:
                together.wait(timeout=120)  # passes only if all 96 run at the same time
            return super().transition(state, action)

    monkeypatch.setattr(hazards, "Together", Together, raising=False)
    from turnwise.envs.registry import register

    register("turnwise-test/Together-v0", "hazards:Together", "waits for the others")
    tasks = [hazards.task("nothing", salt, env="turnwise-test/Together-v0") for salt in range(96)]
    episodes = run_episodes(
        [Request(task, 0) for task in tasks], hazards.Counter(), concurrency=96, limits=NEVER
    )
    assert {episode.outcome for episode in episodes} == {Outcome.OK}


def test_a_dead_worker_is_told_with_the_episodes_it_held(
    hazards: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    requests = [Request(hazards.task("os_exit", 0), 0, key=(7, 4, 2, 1))]
    with caplog.at_level(logging.WARNING):
        run_episodes(requests, hazards.Counter(), env_workers=1, limits=NEVER)
    assert "(7, 4, 2, 1)" in caplog.text


def test_calls_left_behind_are_counted_and_stop_the_run(
    hazards: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from turnwise.errors import RunError

    monkeypatch.setattr("turnwise.agents.execution.threads.MAX_STUCK", stuck() + 2)
    tasks = [hazards.task("sleep", salt) for salt in range(4)]
    with pytest.raises(RunError, match=r"rollout\.env_workers"):
        run_episodes([Request(task, 0) for task in tasks], hazards.Counter(), limits=SOON)


def test_a_task_that_is_never_made_is_told_with_its_line(
    hazards: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spin(cls: object, rng: object, split: object) -> None:
        while True:
            pass

    monkeypatch.setattr("turnwise.envs.registry.GENERATE_S", 0.2)
    monkeypatch.setattr(hazards.HazardEnv, "generate", classmethod(spin))
    with pytest.raises(
        DeadlineError, match=r"generate\(\) of turnwise-test/Hazard-v0 .*test_hazards.py:\d+ in spin"
    ):
        suite_task(Suite("test/hazard", hazards.ENV, "x"), Split.TRAIN, 0)
