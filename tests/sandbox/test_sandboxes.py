"""Forks as a property, what stays behind, pools, sweeps, the interface's edges."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tools.sandbox.bench import leftovers
from turnwise.tools.sandbox.core import Backend, Ended, Image, Limits, PathError, Root, Sandbox, SandboxError
from turnwise.tools.sandbox.docker import DockerBackend
from turnwise.tools.sandbox.pool import Pool
from turnwise.tools.sandbox.process import ProcessBackend
from turnwise.tools.sandbox.registry import BACKENDS, get_backend, isolated_backend

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
        sandbox.exec(["bash", "-c", f"mkdir -p d/e; {word.replace('-- ', '', 0)}"]).exit_code
        for word in words
    ]
    return codes, sandbox.snapshot().digest


@given(before=st.lists(STEPS, max_size=6), after=st.lists(STEPS, max_size=4))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_restore_then_act_equals_act(backend: Backend, before: list, after: list) -> None:
    """Clause E4 for live worlds: the same actions from a fork, a return and the original give the same files."""
    # A write into a pipe that nobody reads ends at its deadline.
    with backend.start(Image.of({"a": "1", "d/a": "2"}), Limits(seconds=1)) as sandbox:
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
        with backend.start(Image.of({"a": str(number)})) as sandbox:
            assert sandbox.exec(["sh", "-c", "(setsid sleep 60 &); cat a"]).out == str(number)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(episode, range(12)))
    assert leftovers(backend) <= before


def test_forgotten_sandboxes_are_closed(backend: Backend) -> None:
    before = leftovers(backend)
    sandbox = backend.start(Image())
    assert leftovers(backend) > before
    del sandbox
    assert leftovers(backend) <= before


_DYING = """
import os, sys
from turnwise.tools.sandbox.core import Image
from turnwise.tools.sandbox.registry import BACKENDS, get_backend
sandboxes = [get_backend(sys.argv[1]).start(Image()) for _ in range(2)]
print(os.getpid(), flush=True)
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_owner_left_is_swept(backend: Backend) -> None:
    command = [sys.executable, "-c", _DYING, backend.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -9
    fresh = BACKENDS[backend.name]()
    fresh.start(Image()).close()  # a back end's first start sweeps
    assert leftovers(backend, int(done.stdout)) == set()


@pytest.mark.parametrize("backend", ["docker"], indirect=True)
def test_a_container_that_ends_between_two_looks_is_no_error(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = DockerBackend()
    before = set(fresh.leftovers())  # the first look also sweeps
    sandbox, api = backend.start(Image()), fresh._connect().api
    look = api.containers

    def listed(*args: object, **kwargs: object) -> object:
        found = look(*args, **kwargs)
        sandbox.close()
        return found

    monkeypatch.setattr(api, "containers", listed)
    assert set(fresh.leftovers()) <= before
    assert fresh.sweep() == 0


def test_sandboxes_at_once_do_not_meet(backend: Backend) -> None:
    ready = threading.Barrier(4, timeout=60)

    def play(number: int) -> str:
        with backend.start(Image()) as sandbox:
            sandbox.write("mine", str(number))
            ready.wait()
            return sandbox.exec(["sh", "-c", "cat mine; ls -A"]).out

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(play, range(4))) == [f"{number}mine\n" for number in range(4)]


def test_a_sandbox_started_in_a_thread_outlives_it(backend: Backend, closing: contextlib.ExitStack) -> None:
    made: list[Sandbox] = []
    thread = threading.Thread(target=lambda: made.append(backend.start(Image())))
    thread.start()
    thread.join()
    sandbox = closing.enter_context(made[0])
    assert sandbox.exec(["echo", "here"]).out == "here\n"


def test_pool_hands_each_out_once(backend: Backend, closing: contextlib.ExitStack) -> None:
    pool = Pool(backend, size=2)
    closing.callback(pool.close)
    pool.warm(Root())
    first = closing.enter_context(pool.start(Image.of({"a": "1"})))
    second = closing.enter_context(pool.start(Image()))
    first.write("b", "x")
    assert [item.path for item in second.list()] == []
    twin = closing.enter_context(first.fork())
    assert twin.exec(["cat", "a", "b"]).out == "1x"


def test_pool_replaces_what_died_waiting(closing: contextlib.ExitStack) -> None:
    pool = Pool(ProcessBackend(trusted=True), size=1)
    closing.callback(pool.close)
    pool.warm(Root())
    waiting = pool._ready[Root(), Limits()][0]
    waiting._supervisor.broken = "a test broke it"
    assert closing.enter_context(pool.start(Image())).exec(["true"]).ok


def test_process_asks_whether_the_code_is_trusted() -> None:
    with pytest.raises(TurnwiseError, match="isolates nothing"):
        ProcessBackend().start(Image())


def test_isolated_backend_never_is_process() -> None:
    with contextlib.suppress(TurnwiseError):
        assert isolated_backend().name in ("bubblewrap", "docker")


def test_unknown_backend() -> None:
    with pytest.raises(NotFoundError, match="bubblewrap"):
        get_backend("bubblewarp")


def test_other_root_is_refused(backend: Backend, closing: contextlib.ExitStack) -> None:
    sandbox = closing.enter_context(backend.start(Image()))
    with pytest.raises(SandboxError, match="root"):
        sandbox.restore(Image(Root(apt=("gcc",))))


def test_a_broken_sandbox_says_so_and_its_episode_is_infrastructure(isolated: Backend) -> None:
    """The supervisor is killed from outside, as a failing machine would."""
    import psutil

    mark = f"{20 + os.getpid() / 1e7:.7f}"
    with isolated.start(Image()) as sandbox, ThreadPoolExecutor(1) as threads:
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
    sandbox = closing.enter_context(backend.start(Image(env={"MODE": "test"})))
    result = sandbox.exec(["sh", "-c", "echo $MODE; printf '\\377' >&2; exit 2"])
    assert (result.out, result.err, result.exit_code, result.ok) == ("test\n", "�", 2, False)
    assert (result.ended, result.timed_out, result.oom, result.truncated) == (Ended.EXIT, False, False, False)
    with pytest.raises(PathError, match="No such file"):
        sandbox.read("missing")
