"""Forks as a property, what stays behind, pools, sweeps, the interface's edges."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnwise.envs.registry import make
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tools.sandbox.backends.docker import DockerBackend
from turnwise.tools.sandbox.backends.process import ProcessBackend
from turnwise.tools.sandbox.bench import leftovers
from turnwise.tools.sandbox.core import (
    Backend,
    Ended,
    PathError,
    Root,
    Sandbox,
    SandboxError,
    SandboxImage,
    SandboxLimits,
)
from turnwise.tools.sandbox.pool import Pool
from turnwise.tools.sandbox.registry import get_backend, isolated_backend, make_backend
from turnwise.tools.sandbox.uids import COUNT, FIRST

NAMES = st.sampled_from(["a", "b", "d/a", "d/e/f", "$HOME/h", "odd name", "-x"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["mkdir -p", "rm -rf", "touch", "mkfifo", "chmod 500", "chmod 755"]), NAMES),
    st.tuples(st.sampled_from(["ln -sfn nowhere", "ln -sfn .. ", "cp -rT /etc/hosts", "mv -T a"]), NAMES),
    st.tuples(
        st.sampled_from(["echo one >", "echo more >>", "head -c 5000 /dev/zero >", "truncate -s 9000"]), NAMES
    ),
)


def act(sandbox: Sandbox, steps: list[tuple[str, str]]) -> tuple[list[int], str]:
    """Do steps; exit codes and the digest of what came of it."""
    words = [f'{verb} -- "{name}"' if ">" not in verb else f'{verb} "{name}"' for verb, name in steps]
    codes = [
        sandbox.exec(["bash", "-c", f'mkdir -p d/e; [ -p "{name}" ] || {word}']).exit_code
        for word, (_, name) in zip(words, steps, strict=True)
    ]
    return codes, sandbox.snapshot().digest


@pytest.mark.slow
@given(before=st.lists(STEPS, max_size=6), after=st.lists(STEPS, max_size=4))
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_restore_then_act_equals_act(backend: Backend, before: list, after: list) -> None:
    """Requirement E4 for live worlds: the same actions from a fork, a return and the original give the same files."""
    with backend.start(SandboxImage.of({"a": "1", "d/a": "2"}), SandboxLimits(seconds=240)) as sandbox:
        act(sandbox, before)
        moment = sandbox.snapshot()
        with sandbox.fork() as twin:
            assert twin.snapshot().digest == moment.digest
            expected = act(sandbox, after)
            assert act(twin, after) == expected
        sandbox.restore(moment)
        assert sandbox.snapshot().digest == moment.digest
        assert act(sandbox, after) == expected


def test_nothing_is_left_behind(backend: Backend) -> None:
    before = leftovers(backend)

    def episode(number: int) -> None:
        with backend.start(SandboxImage.of({"a": str(number)})) as sandbox:
            assert sandbox.exec(["sh", "-c", "(setsid sleep 60 &); cat a"]).out == str(number)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(episode, range(12)))
    assert leftovers(backend) <= before


def test_forgotten_sandboxes_are_closed(backend: Backend) -> None:
    before = leftovers(backend)
    sandbox = backend.start(SandboxImage())
    assert leftovers(backend) > before
    del sandbox
    assert leftovers(backend) <= before


_DYING = """
import os, sys
from turnwise.tools.sandbox.core import SandboxImage
from turnwise.tools.sandbox.registry import get_backend
sandboxes = [get_backend(sys.argv[1], unsafe=True).start(SandboxImage()) for _ in range(2)]
print(os.getpid(), flush=True)
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_owner_left_is_swept(backend: Backend) -> None:
    command = [sys.executable, "-c", _DYING, backend.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -9
    fresh = make_backend(backend.name, unsafe=True)
    fresh.start(SandboxImage()).close()  # a backend's first start sweeps
    assert leftovers(backend, int(done.stdout)) == set()


@pytest.mark.parametrize("backend", ["docker"], indirect=True)
def test_a_container_that_ends_between_two_looks_is_no_error(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = DockerBackend()
    own = f"turnwise-{os.getpid()}-"  # other processes start and stop theirs at any time
    before = set(fresh.leftovers())  # the first look also sweeps
    sandbox, api = backend.start(SandboxImage()), fresh._connect().api
    look = api.containers

    def listed(*args: object, **kwargs: object) -> object:
        found = look(*args, **kwargs)
        sandbox.close()
        return found

    monkeypatch.setattr(api, "containers", listed)
    assert {name for name in fresh.leftovers() if name.startswith(own)} <= before
    assert [name for name in fresh.sweep() if name.startswith(own)] == []


def test_sandboxes_at_once_do_not_meet(backend: Backend) -> None:
    ready = threading.Barrier(4, timeout=240)

    def play(number: int) -> str:
        with backend.start(SandboxImage()) as sandbox:
            sandbox.write("mine", str(number))
            ready.wait()
            return sandbox.exec(["sh", "-c", "cat mine; ls -A"]).out

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(play, range(4))) == [f"{number}mine\n" for number in range(4)]


def test_a_sandbox_started_in_a_thread_outlives_it(backend: Backend, closing: contextlib.ExitStack) -> None:
    made: list[Sandbox] = []
    thread = threading.Thread(target=lambda: made.append(backend.start(SandboxImage())))
    thread.start()
    thread.join()
    sandbox = closing.enter_context(made[0])
    assert sandbox.exec(["echo", "here"]).out == "here\n"


def test_pool_hands_each_out_once(backend: Backend, closing: contextlib.ExitStack) -> None:
    pool = Pool(backend, size=2)
    closing.callback(pool.close)
    pool.warm(Root())
    first = closing.enter_context(pool.start(SandboxImage.of({"a": "1"})))
    second = closing.enter_context(pool.start(SandboxImage()))
    first.write("b", "x")
    assert [item.path for item in second.list()] == []
    twin = closing.enter_context(first.fork())
    assert twin.exec(["cat", "a", "b"]).out == "1x"


def test_pool_replaces_what_died_waiting(closing: contextlib.ExitStack) -> None:
    pool = Pool(ProcessBackend(unsafe=True), size=1)
    closing.callback(pool.close)
    pool.warm(Root())
    waiting = pool._ready[Root(), SandboxLimits()][0]
    waiting._supervisor.broken = "a test broke it"
    assert closing.enter_context(pool.start(SandboxImage())).exec(["true"]).ok


def until(condition: Callable[[], bool]) -> None:
    """Wait; what never comes hangs the test."""
    while not condition():
        time.sleep(0.01)


def test_pool_keeps_as_many_as_were_missed(closing: contextlib.ExitStack) -> None:
    pool = Pool(ProcessBackend(unsafe=True), size=2)
    closing.callback(pool.close)
    closing.enter_context(pool.start(SandboxImage()))
    until(lambda: pool.waiting() == 1)
    for _ in range(4):
        closing.enter_context(pool.start(SandboxImage()))
    until(lambda: pool.waiting() in (1, 2))
    pool.close()
    until(lambda: not pool._filling)
    assert pool.waiting() == 0


def test_pool_starts_none_where_memory_is_short(
    closing: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Pool(ProcessBackend(unsafe=True))
    closing.callback(pool.close)
    monkeypatch.setattr("turnwise.tools.sandbox.pool._SPARE", 1 << 60)
    assert closing.enter_context(pool.start(SandboxImage())).exec(["true"]).ok
    assert not pool._filling
    assert pool.waiting() == 0


@pytest.mark.slow
def test_a_forked_child_has_a_pool_of_its_own(closing: contextlib.ExitStack) -> None:
    pool = Pool(ProcessBackend(unsafe=True), size=1)
    closing.callback(pool.close)
    pool.warm(Root())
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            with pool.start(SandboxImage.of({"a": "child"})) as sandbox:
                said = sandbox.exec(["cat", "a"]).out
            pool.close()
            gc.collect()
            os._exit(0 if said == "child" else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert pool.waiting() == 1
    assert (
        closing.enter_context(pool.start(SandboxImage.of({"a": "parent"}))).exec(["cat", "a"]).out == "parent"
    )


@pytest.mark.parametrize(
    "use",
    [
        ProcessBackend,
        lambda: ProcessBackend(unsafe="yes"),  # type: ignore[arg-type]
        lambda: get_backend("process"),
        lambda: make("turnwise/Code-v0", backend="process"),
        lambda: make("turnwise/SWE-v0", backend="process"),
    ],
)
def test_what_isolates_nothing_is_refused_until_one_says_unsafe(use: Callable[[], object]) -> None:
    with pytest.raises(TurnwiseError, match=r"(?s)isolates nothing.*unsafe"):
        use()


def test_unsafe_in_words_admits_it_with_a_warning_once() -> None:
    make("turnwise/Code-v0", backend="process", unsafe=True).close()
    backend = ProcessBackend(unsafe=True)
    with pytest.warns(RuntimeWarning, match="isolates nothing"):
        backend.start(SandboxImage()).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        backend.start(SandboxImage()).close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to drop")
def test_processes_of_root_run_as_nobody_in_particular(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    with ProcessBackend(unsafe=True).start(SandboxImage.of({"a": "1"})) as sandbox:
        said = sandbox.exec(
            ["sh", "-c", "id -u; id -G; cat a; grep NoNewPrivs /proc/self/status"]
        ).out.split()
        assert FIRST <= int(said[0]) < FIRST + COUNT
        assert said[1:] == [said[0], "1NoNewPrivs:", "1"]
        assert not sandbox.exec(["cat", str(secret)]).ok
        assert not sandbox.exec(["cat", "/proc/1/environ"]).ok
        assert sandbox.exec(["sh", "-c", "echo 2 > a; mkdir b; echo 3 > $TMPDIR/c"]).ok


def test_isolated_backend_never_is_process() -> None:
    with contextlib.suppress(TurnwiseError):
        assert isolated_backend().name in ("bubblewrap", "docker")


def test_unknown_backend() -> None:
    with pytest.raises(NotFoundError, match="bubblewrap"):
        get_backend("bubblewarp")


def test_other_root_is_refused(backend: Backend, closing: contextlib.ExitStack) -> None:
    sandbox = closing.enter_context(backend.start(SandboxImage()))
    with pytest.raises(SandboxError, match="root"):
        sandbox.restore(SandboxImage(Root(apt=("gcc",))))


def test_a_broken_sandbox_says_so_and_its_episode_is_infrastructure(isolated: Backend) -> None:
    """The supervisor is killed from outside, as a failing machine would."""
    import psutil

    mark = f"{20 + os.getpid() / 1e7:.7f}"
    with isolated.start(SandboxImage()) as sandbox, ThreadPoolExecutor(1) as threads:
        running = threads.submit(sandbox.exec, ["sleep", mark])
        found: list[psutil.Process] = []
        while not found and not running.done():
            found = [
                one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", mark]
            ]
        found[0].parent().kill()
        with pytest.raises(SandboxError, match="gone"):
            running.result()
        with pytest.raises(SandboxError, match="gone"):
            sandbox.exec(["true"])


def test_result_reads_well(backend: Backend, closing: contextlib.ExitStack) -> None:
    sandbox = closing.enter_context(backend.start(SandboxImage(env={"MODE": "test"})))
    result = sandbox.exec(["sh", "-c", "echo $MODE; printf '\\377' >&2; exit 2"])
    assert (result.out, result.err, result.exit_code, result.ok) == ("test\n", "�", 2, False)
    assert (result.ended, result.timed_out, result.oom, result.truncated) == (Ended.EXIT, False, False, False)
    with pytest.raises(PathError, match="No such file"):
        sandbox.read("missing")
