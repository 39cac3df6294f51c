"""A fork server: a small process that starts agents' programs, and ends each with all that it started; it knows only the standard library.

It is run by its path, ``python fork_server.py FD [MODULE …]``, and imports the modules. Each message on the socket FD carries a
descriptor: a lease. A fork of this process keeps it, and runs one program after the other: a job comes with the descriptors of
the program's standard input, output and errors, and is answered with its exit code. When the lease says so, or its other end is
closed, for whatever reason, the program is ended. Whatever a program leaves behind becomes a child of its supervisor (it is a
"subreaper"), also what began a session of its own, and is killed before the next job begins.
"""

# No `from turnwise …` here: agents bring interpreters of their own.
import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import types

STREAMS = 3
HEADER = struct.Struct("!cIQ")
"""Of a message on a lease: its kind, the number of the job, and the length of what follows."""
JOB, END = b"j", b"e"
END_S = 10.0
NOT_FOUND = 127
_SUBREAPER = 36
_LIBC = ctypes.CDLL(None)
_CODE: "dict[tuple[str, int, int, int, int], types.CodeType]" = {}


def main(number: int, modules: "list[str]") -> None:
    """Start what is asked for, until the socket is closed."""
    # Else an agent's `import mcp` would find the module beside this one.
    sys.path[0] = os.path.dirname(os.__file__)
    for name in modules:
        importlib.import_module(name)
    if modules:
        importlib.import_module("encodings.idna")  # which whoever connects to a host imports
    control = socket.socket(fileno=number)
    gc.freeze()  # so that forks share what is loaded
    woken = adopt()
    supervisors: set[int] = set()
    there = either(control.fileno(), woken)
    while True:
        ready = {descriptor for descriptor, _ in there.poll()}
        if woken in ready:
            os.read(woken, 4096)
            bury(supervisors)
        if control.fileno() not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        if not data:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            try:
                supervise(socket.socket(fileno=descriptors[0]))
            finally:
                os._exit(0)
        supervisors.add(pid)
        for one in descriptors:
            os.close(one)


def either(*descriptors: int) -> "select.poll":
    """Poll for any that can be read or is closed; not select(), which knows none above 1,023, and these keep the number that they have in the parent."""
    there = select.poll()
    for descriptor in descriptors:
        there.register(descriptor, select.POLLIN)
    return there


def adopt() -> int:
    """Become the parent of all that descendants leave behind; a descriptor that can be read when a child has ended."""
    with contextlib.suppress(AttributeError):  # elsewhere than on Linux only groups are ended
        _LIBC.prctl(_SUBREAPER, 1, 0, 0, 0)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return woken


def bury(supervisors: "set[int]") -> None:
    """Forget the programs' supervisors that have ended; where one was killed, end what it kept."""
    ended = reaped()
    supervisors.difference_update(pid for pid, _ in ended)
    if any(os.WIFSIGNALED(status) for _, status in ended):
        end_descendants(supervisors)


def supervise(lease: socket.socket) -> None:
    """Run programs until the lease is closed, or one leaves behind what would not end."""
    os.setsid()
    woken, left = adopt(), 0
    while not left and (given := received(lease)) is not None:
        kind, number, body, streams = given
        if kind == END:  # of a job that has ended
            continue
        job = json.loads(body)
        code = compiled(job["cwd"], job["argv"][0]) if job["fork"] else None
        program = os.fork()
        if program == 0:
            become(job, code, streams)
        for one in streams:
            os.close(one)
        code = wait(program, lease, woken, number)
        left = end_all(program)
        with contextlib.suppress(OSError):
            lease.sendall(json.dumps({"code": code, "left": left}).encode() + b"\n")


def received(lease: socket.socket) -> "tuple[bytes, int, bytes, list[int]] | None":
    """The next message: its kind, the job's number, what it says, and descriptors; None: the lease is closed."""
    header, streams, _, _ = socket.recv_fds(lease, HEADER.size, STREAMS)
    if len(header) < HEADER.size:
        return None
    kind, number, length = HEADER.unpack(header)
    body = b""
    while len(body) < length:
        part = lease.recv(min(1 << 20, length - len(body)))
        if not part:
            return None
        body += part
    return kind, number, body, streams


def wait(program: int, lease: socket.socket, woken: int, number: int) -> int:
    """The program's exit code (minus the signal's number where one ended it); -9 where the lease ended it first."""
    there = either(lease.fileno(), woken)
    while True:
        ready = {descriptor for descriptor, _ in there.poll()}
        if lease.fileno() in ready:
            given = received(lease)
            if given is None or given[1] == number:
                return -signal.SIGKILL
            continue
        os.read(woken, 4096)
        for pid, status in reaped():
            if pid == program:
                return os.waitstatus_to_exitcode(status)


def reaped() -> "list[tuple[int, int]]":
    """The children that have ended."""
    found: list[tuple[int, int]] = []
    with contextlib.suppress(ChildProcessError):
        while (one := os.waitpid(-1, os.WNOHANG))[0]:
            found.append(one)
    return found


def childless() -> bool:
    """Return whether no child is left, which for a subreaper means no descendant."""
    reaped()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def end_all(program: int) -> int:
    """Kill the program's group and all descendants; how many would not end."""
    with contextlib.suppress(OSError):
        os.killpg(program, signal.SIGKILL)
    return (
        0 if childless() else end_descendants(set())
    )  # to look through /proc takes longer than most programs' starts


def end_descendants(but: "set[int]") -> int:
    """Kill all descendants but these children and what they started; how many would not end."""
    deadline = time.monotonic() + END_S
    while True:
        left = descendants(os.getpid(), but)
        if not left and (but or childless()):
            return 0
        if time.monotonic() > deadline:
            return len(left)
        stopped: set[int] = set()
        while new := left - stopped:  # what is stopped forks no more
            send(new, signal.SIGSTOP)
            stopped |= new
            left = descendants(os.getpid(), but)
        send(stopped, signal.SIGKILL)
        time.sleep(0.001)


def send(pids: "set[int]", number: int) -> None:
    """Signal them all."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def descendants(pid: int, but: "set[int]") -> "set[int]":
    """All processes that a process started, and that these did, without some; those that have ended are none."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError):
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                state, parent = stat.read().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                parents.setdefault(int(parent), []).append(int(name))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        new = [one for one in parents.get(waiting.pop(), []) if one not in but]
        found.update(new)
        waiting += new
    return found


def compiled(folder: str, path: str) -> "types.CodeType | None":
    """A script's code, compiled once for all programs of this supervisor as long as the file is the same; None: it is no script."""
    try:
        with open(os.path.join(folder, path), "rb") as file:
            stat = os.fstat(file.fileno())
            key = (path, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)
            if key not in _CODE:
                _CODE.clear()
                _CODE[key] = compile(file.read(), path, "exec")
    except Exception:  # noqa: BLE001 (the program meets it too, and says what it is)
        return None
    return _CODE[key]


def become(job: "dict[str, object]", code: "types.CodeType | None", streams: "list[int]") -> None:
    """Be the program."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, one in enumerate(streams):
        os.dup2(one, number)
    os.closerange(STREAMS, 4096)
    argv, env = job["argv"], job["env"]
    assert isinstance(argv, list)
    assert isinstance(env, dict)
    try:
        os.chdir(str(job["cwd"]))
        if job["fork"]:
            run_script(argv, env, code)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error}\n".encode())
    os._exit(NOT_FOUND)


def run_as_main(path: str, code: "types.CodeType | None") -> None:
    """Run a file as ``__main__``; :func:`runpy.run_path` does the same in ten times the time."""
    if code is None:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec")
    sys.modules["__main__"] = module = types.ModuleType("__main__")
    module.__file__ = path
    exec(code, module.__dict__)  # noqa: S102 (it is the program that is to be run)


def run_script(argv: "list[str]", env: "dict[str, str]", code: "types.CodeType | None") -> None:
    """Run a script of Python in this fork, with what is imported already, and exit as Python would."""
    os.environ.clear()
    os.environ.update(env)
    sys.argv, sys.path[0] = argv, os.path.dirname(os.path.abspath(argv[0]))
    if "random" in sys.modules:
        sys.modules["random"].seed()
    status = 0
    try:
        run_as_main(argv[0], code)
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
        if status == 1 and left.code != 1:
            sys.stderr.write(f"{left.code}\n")
    except BaseException:  # noqa: BLE001 (as the interpreter does)
        traceback.print_exc()
        status = 1
    with contextlib.suppress(Exception):
        # It tells the workers of thread pools to end, and waits for all threads: whoever only waits, waits for ever.
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
