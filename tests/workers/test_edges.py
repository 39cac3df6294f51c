"""What stands around the calls of environments: making and closing them, forks, exits, what crosses processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from turnwise import watchdog
from turnwise.agents.core import History, Outcome, Reply
from turnwise.agents.execution.calls import Fault
from turnwise.agents.execution.threads import in_thread
from turnwise.agents.rollout import Limits, Request, rollout, run_episodes
from turnwise.agents.workers.pool import WorkerPool
from turnwise.envs.registry import register
from turnwise.errors import EnvError, RunError

NEVER = Limits(step_s=600)


class Stop(BaseException):
    """Ends a rollout, as Ctrl-C does."""


def made_and_closed(folder: Path) -> tuple[set[str], dict[str, int]]:
    made = {path.stem for path in folder.glob("*.made")}
    return made, {path.stem: len(path.read_text()) for path in folder.glob("*.closed")}


@pytest.mark.parametrize("workers", [0, 1])
def test_each_environment_is_closed_once(hazards: ModuleType, tmp_path: Path, workers: int) -> None:
    requests = [Request(hazards.task("nothing", i, env=hazards.CLOSING), i) for i in range(4)]
    options = {"folder": str(tmp_path)}
    run_episodes(requests, hazards.Counter(), concurrency=2, env_options=options, env_workers=workers)
    made, closed = made_and_closed(tmp_path)
    assert made
    assert closed == dict.fromkeys(made, 1)


@pytest.mark.parametrize("workers", [0, 1])
def test_each_environment_is_closed_once_when_the_rollout_is_cut_short(
    hazards: ModuleType, tmp_path: Path, workers: int
) -> None:
    class Waits(hazards.Counter):  # type: ignore[misc, name-defined]
        """Ends the run once both others wait for ever."""

        waiting = 0

        async def act(self, history: History) -> Reply:
            if history.seed:
                Waits.waiting += 1
                await asyncio.Event().wait()
            while Waits.waiting < 2:
                await asyncio.sleep(0.01)
            raise Stop

    requests = [Request(hazards.task("nothing", i, env=hazards.CLOSING), i) for i in range(3)]
    with pytest.raises(Stop):
        run_episodes(requests, Waits(), env_options={"folder": str(tmp_path)}, env_workers=workers)
    made, closed = made_and_closed(tmp_path)
    assert len(made) == 3
    assert closed == dict.fromkeys(made, 1)


def test_the_start_of_a_process_is_no_part_of_a_deadline(hazards: ModuleType) -> None:
    limits = Limits(reset_s=0.2)  # no process starts so quickly
    (episode,) = run_episodes(
        [Request(hazards.task("nothing"), 0)], hazards.Counter(), limits=limits, env_workers=1
    )
    assert episode.outcome is Outcome.OK, episode.error


@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_no_exception_costs_its_episode_alone(hazards: ModuleType, workers: int) -> None:
    tasks = [hazards.task("odd"), hazards.task("nothing"), hazards.task("odd", env=hazards.PURE)]
    requests = [Request(task, i) for i, task in enumerate(tasks)]
    episodes = run_episodes(requests, hazards.Counter(), limits=NEVER, env_workers=workers)
    assert [e.outcome for e in episodes] == [Outcome.ENV_ERROR, Outcome.OK, Outcome.ENV_ERROR]
    assert "Odd" in episodes[0].error


def test_an_environment_that_stops_an_iteration_when_it_is_made_hangs_nothing(hazards: ModuleType) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        run_episodes([Request(hazards.task("nothing", env=hazards.UNMADE), 0)], hazards.Counter())


def test_a_process_that_an_environment_forks_ends_itself_alone(hazards: ModuleType, tmp_path: Path) -> None:
    task = hazards.task("fork_then_killed_once", mark=str(tmp_path / "mark"))
    (episode,) = run_episodes([Request(task, 0)], hazards.Counter(), limits=NEVER, env_workers=1, retries=0)
    assert episode.outcome is Outcome.OK, episode.error


def test_standard_output_is_whole_in_a_worker(hazards: ModuleType) -> None:
    requests = [Request(hazards.task("use_stdout"), 0)]
    (episode,) = run_episodes(requests, hazards.Counter(), limits=NEVER, env_workers=1)
    assert episode.outcome is Outcome.OK, episode.error


def test_what_cannot_be_read_costs_its_call_alone(hazards: ModuleType) -> None:
    with WorkerPool(1) as pool:
        env = pool.make(hazards.OPEN, {}, 0)
        env.ask_now("reset", seed=0, options={"task": hazards.task("nothing", env=hazards.OPEN)})
        with pytest.raises(Fault, match="cannot be read outside its worker"):
            env.trap()
        with pytest.raises(Fault, match="no such module here"):
            env.gold(hazards.Trap(os.getpid()))
        assert (env.gold(3), env.board, env.system, env.turn_limit) == ("step 3", "at 0", "Count.", 7)
        assert not pool.workers()[0].ended


def test_a_class_that_no_other_process_finds_is_named(
    hazards: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hazards.OpenEnv, "__module__", "__main__")
    requests = [Request(hazards.task("nothing", env=hazards.OPEN), 0)]
    with pytest.raises(EnvError, match="script or a notebook"):
        run_episodes(requests, hazards.Counter(), env_workers=1)


def test_a_closed_pool_starts_nothing(hazards: ModuleType) -> None:
    pool = WorkerPool(1)
    pool.close()
    with pytest.raises(RunError, match="is closed"):
        pool.make(hazards.ENV, {}, 0)


def test_modules_beside_the_working_directory_are_not_taken_for_the_standard_library(
    hazards: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "socket.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    (episode,) = run_episodes([Request(hazards.task("nothing"), 0)], hazards.Counter(), env_workers=1)
    assert episode.outcome is Outcome.OK, episode.error


def test_environments_see_the_variables_of_their_parent(
    hazards: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/only/this")
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    with WorkerPool(1) as pool:
        env = pool.make(hazards.OPEN, {}, 0)
        assert env.variables() == dict(os.environ)


def test_keys_of_states_with_sets_agree_among_processes(hazards: ModuleType) -> None:
    state = frozenset({"a", "b", "c", "d", "e"})
    with WorkerPool(2) as pool:
        envs = [pool.make(hazards.OPEN, {}, i) for i in range(2)]
        assert envs[0].worker is not envs[1].worker
        assert envs[0].state_key(state) == envs[1].state_key(state)


def test_a_forked_process_has_threads_and_workers_of_its_own(hazards: ModuleType) -> None:
    requests = [Request(hazards.task("nothing"), 0)]
    run_episodes(requests, hazards.Counter())  # leaves an idle thread
    run_episodes(requests, hazards.Counter(), env_workers=1)  # and the one that starts processes

    def in_child() -> None:
        for workers in (0, 1):
            (episode,) = run_episodes(requests, hazards.Counter(), env_workers=workers)
            assert episode.outcome is Outcome.OK

    child = multiprocessing.get_context("fork").Process(target=in_child)
    child.start()
    child.join(60)
    hung = child.is_alive()
    child.kill()
    assert (hung, child.exitcode) == (False, 0)


def test_guards_that_begin_together_start_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "_page", None)
    monkeypatch.setattr(watchdog, "_guards", [])
    together, before = threading.Barrier(4), set(psutil.Process().children())

    def hold() -> None:
        together.wait()
        with watchdog.guard(600):
            together.wait()

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (started,) = set(psutil.Process().children()) - before
    started.kill()
    started.wait()


async def _cancelled_while_it_is_made(hazards: ModuleType, folder: Path) -> None:
    requests = [Request(hazards.task("nothing", env=hazards.CLOSING), 0)]
    playing = asyncio.create_task(rollout(requests, hazards.Counter(), env_options={"folder": str(folder)}))
    while not list(folder.glob("*.begun")):
        await asyncio.sleep(0.01)
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    (folder / "go").touch()
    while not made_and_closed(folder)[1]:
        await asyncio.sleep(0.01)


def test_an_environment_that_nobody_waits_for_any_more_is_closed(
    hazards: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hazards.ClosingEnv, "waits", True)
    asyncio.run(_cancelled_while_it_is_made(hazards, tmp_path))
    made, closed = made_and_closed(tmp_path)
    assert closed == dict.fromkeys(made, 1)


NOWHERE = """
import os, sys, tempfile
sys.path.insert(0, {folder!r})
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
import hazards
from turnwise.agents.rollout import Request, run_episodes
hazards.register_hazards()
for workers in (0, 1):
    (episode,) = run_episodes([Request(hazards.task("nothing"), 0)], hazards.Counter(), env_workers=workers)
    assert episode.success, episode.error
"""


def test_a_working_directory_that_is_gone_keeps_nothing_from_playing() -> None:
    program = NOWHERE.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


KEEPER = """
import os, signal, subprocess, sys
from turnwise.agents.workers.keeper import keep
keep(2)
subprocess.Popen([sys.executable, "-c", "print('up', flush=True); import time; time.sleep(3600)"])
os._exit(5)
"""


@pytest.mark.slow
def test_a_keeper_that_is_told_to_end_twice_still_ends_what_was_left() -> None:
    with subprocess.Popen([sys.executable, "-c", KEEPER], stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == b"up\n"
        while not (under := psutil.Process(keeper.pid).children(recursive=True)):
            pass  # a list that is taken while the worker ends may miss both
        orphan = under[-1]
        while orphan.ppid() != keeper.pid:  # until the worker has ended
            pass
        keeper.send_signal(signal.SIGTERM)
        assert keeper.stdout.read() == b""  # nobody is left to hold it
        assert keeper.wait() == 5


def test_threads_are_used_again() -> None:
    async def names() -> set[str]:
        return {await in_thread("x", 60, lambda: str(threading.get_ident())) for _ in range(20)}

    assert len(asyncio.run(names())) == 1


def test_an_environment_registered_after_its_worker_began(hazards: ModuleType) -> None:
    with WorkerPool(1) as pool:
        run_episodes([Request(hazards.task("nothing"), 0)], hazards.Counter(), env_workers=pool)
        register("turnwise-test/Later-v0", "hazards:HazardEnv", "came later")
        (episode,) = run_episodes(
            [Request(hazards.task("nothing", env="turnwise-test/Later-v0"), 0)],
            hazards.Counter(),
            env_workers=pool,
        )
    assert episode.outcome is Outcome.OK, episode.error


@pytest.mark.parametrize("workers", [0, 1])
def test_options_that_an_environment_refuses_end_the_run(hazards: ModuleType, workers: int) -> None:
    with pytest.raises((TypeError, EnvError), match="colour"):
        run_episodes(
            [Request(hazards.task("nothing"), 0)],
            hazards.Counter(),
            env_workers=workers,
            env_options={"colour": 1},
        )
