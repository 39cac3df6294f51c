"""Environments on other hosts: the same episodes, whichever host dies, comes, leaves, freezes or is not one of ours."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import shutil
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest
from answers import wait_for
from hosts import Between, Host

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.rollout import Limits, Request, run_episodes
from turnwise.agents.workers.hosted import WorkerHosts, parse_address
from turnwise.agents.workers.pool import WorkerPool
from turnwise.agents.workers.sealed import GREETING
from turnwise.errors import EngineError, EnvError, RunError, TurnwiseError

pytestmark = pytest.mark.slow
NEVER = Limits(step_s=600)
Hosts = Callable[..., Host]


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("0123456789abcdef0123456789abcdef")
    return path


@pytest.fixture
def host(token_file: Path, hazards: ModuleType) -> Iterator[Hosts]:
    """``host()``: one more host, which finds the hazards as the run does."""
    with contextlib.ExitStack() as stack:

        def start(**given: Any) -> Host:
            made = Host(**{"token_file": token_file, **given})
            stack.callback(made.close)
            return made

        yield start


class Play(threading.Thread):
    """Episodes that are played meanwhile."""

    def __init__(
        self, hazards: ModuleType, requests: Sequence[Request], pool: WorkerPool, **given: Any
    ) -> None:
        super().__init__(daemon=True)
        self.told: Counter[int] = Counter()
        self._play = lambda: run_episodes(
            requests,
            hazards.Counter(),
            env_workers=pool,
            on_episode=lambda index, _: self.told.update([index]),
            **{"limits": NEVER, **given},
        )
        self._found: list[Episode] = []
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._found = self._play()
        except BaseException as error:  # noqa: BLE001 (raised where the episodes are asked for)
            self._error = error

    def end(self) -> list[Episode]:
        self.join(120)
        assert not self.is_alive(), "it hangs"
        if self._error is not None:
            raise self._error
        return self._found


def told(episodes: Sequence[Episode]) -> list[object]:
    """All that episodes are, without the time that they took."""
    return [
        (
            e.task,
            e.seed,
            e.outcome,
            e.end,
            [(t.observation, t.action, t.reward, t.state_key) for t in e.trajectory.turns],
        )
        for e in episodes
    ]


def requests_of(hazards: ModuleType, hazard: str, tmp_path: Path, innocent: int = 5) -> list[Request]:
    """One episode with a hazard, and others beside it."""
    tasks = [hazards.task("nothing", salt) for salt in range(innocent)]
    tasks.insert(2, hazards.task(hazard, 99, mark=str(tmp_path / "mark")))
    return [Request(task, seed) for seed, task in enumerate(tasks)]


def pool_of(token_file: Path, *hosts: Host | Between, **given: Any) -> WorkerPool:
    return WorkerPool(WorkerHosts([one.address for one in hosts], token_file=str(token_file), **given))


def lives(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def hung_at(mark: Path, *hosts: Host) -> Host:
    """The host whose process hangs in a step."""
    wait_for(lambda: mark.exists() and bool(mark.read_text()))
    (found,) = (one for one in hosts if int(mark.read_text()) in one.family)
    return found


def test_episodes_on_hosts_are_those_of_this_process(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path
):
    requests = requests_of(hazards, "raise", tmp_path)
    here = run_episodes(requests, hazards.Counter())
    first, second = host(processes=2), host()
    with pool_of(token_file, first, second, envs=[hazards.ENV]) as pool:
        assert told(run_episodes(requests, hazards.Counter(), env_workers=pool)) == told(here)
        wait_for(lambda: len(pool.workers()) == 3)  # all that they offer
        assert {worker.place for worker in pool.workers()} == {first.address, second.address}
    wait_for(lambda: len(first.family) == 1)  # the run has left, and nothing of it stays


@pytest.mark.parametrize(
    ("hazard", "outcome", "said"),
    [
        ("spin", Outcome.INFRA_ERROR, "took more than 0.4 s"),
        ("hold_the_lock", Outcome.INFRA_ERROR, "took more than 0.4 s and let nothing else run"),
        ("os_exit", Outcome.ENV_ERROR, "ended its process with code 7"),
        ("segfault", Outcome.ENV_ERROR, "was ended by SIGSEGV"),
        ("killed_once", Outcome.OK, ""),
    ],
)
def test_what_an_environment_does_on_a_host_costs_its_episode_alone(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    hazard: str, outcome: Outcome, said: str,
):  # fmt: skip
    monkeypatch.setattr("turnwise.agents.workers.worker.SILENCE_S", 1.5)
    limits = Limits(step_s=0.4) if outcome is Outcome.INFRA_ERROR else NEVER
    with pool_of(token_file, host(processes=2)) as pool:
        episodes = Play(hazards, requests_of(hazards, hazard, tmp_path), pool, limits=limits).end()
    assert episodes[2].outcome is outcome
    assert said in episodes[2].error
    assert [e.outcome for e in [*episodes[:2], *episodes[3:]]] == [Outcome.OK] * 5


def test_a_host_that_dies_in_the_middle_of_a_step_changes_no_episode_and_is_used_again(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path
):
    requests, mark = requests_of(hazards, "hang_once", tmp_path), tmp_path / "mark"
    mark.write_text("passed")  # here nothing hangs: what would have been
    here = run_episodes(requests, hazards.Counter())
    mark.unlink()
    hosts = host(), host()
    with pool_of(token_file, *hosts) as pool:
        playing = Play(hazards, requests, pool)
        struck = hung_at(mark, *hosts)
        had = struck.end()
        assert told(playing.end()) == told(here)
        assert playing.told == dict.fromkeys(range(6), 1)  # none twice
        wait_for(lambda: not any(map(lives, had)))
        struck.start()
        wait_for(lambda: {worker.place for worker in pool.workers()} == {one.address for one in hosts})
        again = run_episodes(requests, hazards.Counter(), env_workers=pool)
        assert told(again) == told(here)


@pytest.mark.full
def test_hosts_that_die_one_after_the_other_lose_nothing(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path
):
    """Each of six episodes hangs once, and the host where it hangs is killed and started again."""
    marks = [tmp_path / f"mark-{n}" for n in range(6)]
    requests = [Request(hazards.task("hang_once", n, mark=str(m)), n) for n, m in enumerate(marks)]
    for mark in marks:
        mark.write_text("passed")
    here = run_episodes(requests, hazards.Counter())
    for mark in marks:
        mark.unlink()
    hosts = host(), host()
    with pool_of(token_file, *hosts) as pool:
        playing = Play(hazards, requests, pool, concurrency=1)
        for mark in marks:
            struck = hung_at(mark, *hosts)
            struck.end()
            struck.start()
        assert told(playing.end()) == told(here)
        assert playing.told == dict.fromkeys(range(6), 1)


def test_a_host_that_is_told_to_end_blames_nobody(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path
):
    requests, hosts = requests_of(hazards, "hang_once", tmp_path, innocent=2), (host(), host())
    with pool_of(token_file, *hosts) as pool:
        playing = Play(hazards, requests, pool, retries=0)
        hung_at(tmp_path / "mark", *hosts).send(signal.SIGTERM)
        assert [e.outcome for e in playing.end()] == [Outcome.OK] * 3


def test_a_host_that_is_frozen_is_given_up_and_used_again(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("turnwise.agents.workers.hosted.LOST_LOOKS", 3)
    requests, hosts = requests_of(hazards, "hang_once", tmp_path, innocent=2), (host(), host())
    with pool_of(token_file, *hosts) as pool:
        playing = Play(hazards, requests, pool, retries=0)
        frozen = hung_at(tmp_path / "mark", *hosts)
        frozen.send(signal.SIGSTOP)
        assert [e.outcome for e in playing.end()] == [Outcome.OK] * 3
        frozen.send(signal.SIGCONT)
        wait_for(lambda: {worker.place for worker in pool.workers()} == {one.address for one in hosts})


def test_hosts_join_a_running_run_and_leave_it(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path
):
    listed, first, second = tmp_path / "hosts.txt", host(), host()
    listed.write_text(f"# hosts\n{first.address}\nnonsense\n".replace("nonsense\n", ""))
    with pool_of(token_file, file=str(listed)) as pool:
        playing = Play(hazards, requests_of(hazards, "hang_once", tmp_path, innocent=2), pool)
        assert hung_at(tmp_path / "mark", first, second) is first
        listed.write_text(f"{second.address}\nno address\n")  # a line that is none is passed over
        wait_for(lambda: any(worker.place == second.address for worker in pool.workers()))
        requests = [Request(hazards.task("nothing", n), n) for n in range(4)]
        wait_for(lambda: not any(worker.usable for worker in pool.workers() if worker.place == first.address))
        assert all(e.success for e in run_episodes(requests, hazards.Counter(), env_workers=pool))
        first.end()  # with what it still had in hand, which goes on elsewhere
        assert [e.outcome for e in playing.end()] == [Outcome.OK] * 3


@pytest.mark.full
def test_a_host_that_freezes_when_it_has_left_is_given_up(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("turnwise.agents.workers.hosted.LOST_LOOKS", 3)
    listed, first, second = tmp_path / "hosts.txt", host(), host()
    listed.write_text(first.address)
    with pool_of(token_file, file=str(listed)) as pool:
        playing = Play(hazards, requests_of(hazards, "hang_once", tmp_path, innocent=2), pool, retries=0)
        assert hung_at(tmp_path / "mark", first, second) is first
        listed.write_text(second.address)
        wait_for(lambda: not any(worker.usable for worker in pool.workers() if worker.place == first.address))
        first.send(signal.SIGSTOP)
        assert [e.outcome for e in playing.end()] == [Outcome.OK] * 3
        wait_for(lambda: {worker.place for worker in pool.workers()} == {second.address})


def test_a_host_that_leaves_keeps_what_it_has_in_hand_and_ends_then(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path
):
    go, listed, first = tmp_path / "mark", tmp_path / "hosts.txt", host()
    listed.write_text(first.address)
    with pool_of(token_file, file=str(listed)) as pool:
        env = pool.make(hazards.ENV, {}, 0)
        env.ask_now("reset", seed=0, options={"task": hazards.task("nothing", mark=str(go))})
        listed.write_text("")
        wait_for(lambda: not any(worker.usable for worker in pool.workers()))
        assert env.gold(3) == "step 3"
        env.close()
        wait_for(lambda: len(first.family) == 1)


def test_another_token_is_refused_and_named_and_waits_for_nobody(
    hazards: ModuleType, host: Hosts, tmp_path: Path
):
    other = tmp_path / "other"
    other.write_text("another-token-of-16-characters")
    made = host()
    with pool_of(other, made) as pool, pytest.raises(RunError, match=f"{made.address} has another token"):
        pool.make(hazards.ENV, {}, 0)
    assert len(made.family) == 1  # nothing was started


@contextlib.contextmanager
def pretender(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """The address of something that is no host of ours, and says this to whoever comes."""

    def serve(door: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                end, _ = door.accept()
                with end:
                    answer(end)

    with socket.create_server(("127.0.0.1", 0)) as door:
        thread = threading.Thread(target=serve, args=(door,), daemon=True)
        thread.start()
        yield f"127.0.0.1:{door.getsockname()[1]}"
        door.shutdown(socket.SHUT_RDWR)
        thread.join(60)


class Bomb:
    """Leaves a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_nothing_of_a_stranger_is_unpickled(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path
):
    made, mark = host(), tmp_path / "gone-off"
    bomb = pickle.dumps(Bomb(mark))
    name, _, port = made.address.rpartition(":")
    for lead in (b"", b"x" * 64, b"x" * 64 + len(bomb).to_bytes(8, "little")):
        with socket.create_connection((name, int(port)), 10) as end:
            assert end.recv(len(GREETING)) == GREETING
            end.sendall(lead + bomb)
            with contextlib.suppress(OSError):  # it hung up already
                end.shutdown(socket.SHUT_WR)
                while end.recv(4096):
                    pass
    assert not mark.exists()
    assert len(made.family) == 1
    with pool_of(token_file, made) as pool:  # and it serves whoever has the token
        assert pool.make(hazards.ENV, {}, 0).gold(1) == "step 1"


def test_a_run_unpickles_nothing_of_a_host_without_the_token(
    token_file: Path, hazards: ModuleType, tmp_path: Path
):
    mark = tmp_path / "gone-off"

    def answer(end: socket.socket) -> None:
        end.sendall(GREETING + b"n" * 32)
        end.recv(64)
        data = pickle.dumps(Bomb(mark))
        end.sendall(b"+" + b"m" * 32 + b"t" * 32 + len(data).to_bytes(8, "little") + data)

    with pretender(answer) as address:
        hosts = WorkerHosts([address], token_file=str(token_file))
        with WorkerPool(hosts) as pool, pytest.raises(RunError, match="has another token"):
            pool.make(hazards.ENV, {}, 0)
    assert not mark.exists()


def test_something_else_that_listens_there_is_named(hazards: ModuleType, token_file: Path):
    said = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with pretender(lambda end: end.sendall(said)) as address:
        hosts = WorkerHosts([address], token_file=str(token_file))
        with WorkerPool(hosts) as pool, pytest.raises(RunError, match="is no `turnwise serve-workers`"):
            pool.make(hazards.ENV, {}, 0)


@pytest.mark.parametrize("what", [pytest.param("cut", marks=pytest.mark.full), "changed"])
def test_frames_that_are_cut_or_changed_on_their_way_are_no_answers(
    hazards: ModuleType,
    host: Hosts,
    token_file: Path,
    tmp_path: Path,
    what: str,
    caplog: pytest.LogCaptureFixture,
):
    """Once, in the middle of an answer; the next connection is left alone."""
    requests = requests_of(hazards, "nothing", tmp_path)
    passed, struck = [0], list[int]()

    def change(data: bytes) -> bytes | None:
        passed[0] += len(data)
        if struck or passed[0] < 6000 or len(data) < 300:
            return data
        struck.append(len(data))
        middle = len(data) // 2
        return None if what == "cut" else data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]

    between = Between(host().address, change)
    with contextlib.closing(between), pool_of(token_file, between) as pool, caplog.at_level(logging.WARNING):
        episodes = Play(hazards, requests, pool).end()
    assert struck
    assert told(episodes) == told(run_episodes(requests, hazards.Counter()))
    said = "is gone with its host" if what == "cut" else "a frame was changed on its way"
    assert said in caplog.text


def test_a_host_of_other_code_is_refused_with_what_differs(
    hazards: ModuleType, host: Hosts, token_file: Path
):
    other = "import turnwise.agents.workers.agreement as a; own = a.code; a.code = lambda: own(('tasks',))"
    with pool_of(token_file, host(before=[other])) as pool:
        said = r"Turnwise's code is \w+ here and \w+ there: install the same version on both"
        with pytest.raises(RunError, match=said):
            pool.make(hazards.ENV, {}, 0)


def test_a_host_of_another_environment_is_left_out_and_one_that_fits_serves(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):  # fmt: skip
    folder = tmp_path / "other"
    folder.mkdir()
    shutil.copy(str(hazards.__file__), folder / "hazards.py")
    with (folder / "hazards.py").open("a") as file:
        file.write("# changed\n")
    with monkeypatch.context() as other:
        other.setattr(sys, "path", [str(folder), *sys.path])
        changed = host()
    listed = tmp_path / "hosts.txt"
    listed.write_text(changed.address)
    with caplog.at_level(logging.WARNING), pool_of(token_file, file=str(listed), envs=[hazards.ENV]) as pool:
        with pytest.raises(RunError, match=r"Hazard-v0 has another source here \(\w+\) than in the run"):
            pool.make(hazards.ENV, {}, 0)
        fits = host()
        listed.write_text(f"{changed.address}\n{fits.address}\n")
        wait_for(lambda: any(worker.place == fits.address for worker in pool.workers()))
        assert pool.make(hazards.ENV, {}, 0).worker.place == fits.address


def test_without_any_host_a_run_ends_when_its_patience_does(hazards: ModuleType, token_file: Path):
    with socket.create_server(("127.0.0.1", 0)) as door:
        address = f"127.0.0.1:{door.getsockname()[1]}"
    hosts = WorkerHosts([address], token_file=str(token_file), patience_s=0.5)
    with (
        WorkerPool(hosts) as pool,
        pytest.raises(RunError, match=f"No host of environments serves.*{address}"),
    ):
        pool.make(hazards.ENV, {}, 0)


def test_a_killed_run_leaves_nothing_on_a_host(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path
):
    made, mark = host(), tmp_path / "mark"
    if (pid := os.fork()) == 0:
        try:
            requests = [Request(hazards.task("hang_once", mark=str(mark)), 0)]
            with pool_of(token_file, made) as pool:
                run_episodes(requests, hazards.Counter(), limits=NEVER, env_workers=pool)
        finally:
            os._exit(1)
    hung_at(mark, made)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_for(lambda: len(made.family) == 1)


def test_options_that_an_environment_refuses_end_the_run(hazards: ModuleType, host: Hosts, token_file: Path):
    with pool_of(token_file, host()) as pool, pytest.raises(EnvError, match="colour"):
        pool.make(hazards.ENV, {"colour": 1}, 0)


@pytest.mark.parametrize(
    ("address", "said"),
    [("node7", "is no address"), (":8800", "is no address"), ("node7:x", "is no address")],
)
def test_an_address_that_is_none_is_refused(address: str, said: str):
    with pytest.raises(TurnwiseError, match=said):
        parse_address(address)


def test_hosts_without_a_token_are_refused(tmp_path: Path):
    with pytest.raises(RunError, match="no token"):
        WorkerPool(WorkerHosts(["127.0.0.1:1"]))
    with pytest.raises(EngineError, match="cannot be read"):
        WorkerPool(WorkerHosts(["127.0.0.1:1"], token_file=str(tmp_path / "none")))


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="namespaces need root and `ip`")
def test_a_host_behind_a_cable_that_is_pulled_is_given_up_and_used_again(
    hazards: ModuleType, host: Hosts, token_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    kills: Any,
):  # fmt: skip
    """A partition: nothing passes and nothing is refused, neither side hears that the other is gone."""
    monkeypatch.setattr("turnwise.agents.workers.hosted.LOST_LOOKS", 3)
    with contextlib.closing(kills.Cable(17, tmp_path)) as cable:
        far, near = host(inside=cable.inside, address=cable.host), host()
        listed = tmp_path / "hosts.txt"
        listed.write_text(far.address)
        with pool_of(token_file, file=str(listed)) as pool:
            requests = requests_of(hazards, "hang_once", tmp_path, innocent=2)
            playing = Play(hazards, requests, pool, retries=0)
            assert hung_at(tmp_path / "mark", far) is far
            listed.write_text(f"{far.address}\n{near.address}\n")
            cable.pull()
            assert [e.outcome for e in playing.end()] == [Outcome.OK] * 3
            cable.plug()
            wait_for(lambda: far.address in {worker.place for worker in pool.workers()})
