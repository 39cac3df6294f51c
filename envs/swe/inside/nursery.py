# ruff: noqa: ANN001, ANN201, ANN204 (runs in sandboxes, alone)
"""Runs a suite again and again, each time with some files changed, in children of a process that has pytest loaded.

For making tasks only: unlike a repair, a drawn bug does not set out to deceive. After each run, files that changed
are put back, files that are new and processes that are left are removed. (In the sandbox, as ``python3 -s -P -c``.)
"""

import contextlib
import gc
import json
import os
import resource
import shutil
import signal
import sys
import time
import types


class Files:
    """Contents of a folder at the start, and its return to them."""

    def __init__(self, top):
        self.top, self.kept = top, {}
        for path in self.paths():
            with open(path, "rb") as file:
                self.kept[path] = (file.read(), self.look(path))

    def paths(self):
        return [os.path.join(here, name) for here, _, names in os.walk(self.top) for name in names]

    def look(self, path):
        about = os.lstat(path)
        return about.st_ino, about.st_ctime_ns, about.st_mode, about.st_size, about.st_mtime_ns

    def change(self, path, text):
        """Write one file, and remove what was compiled from it: its size and time may be what they were."""
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
        folder, stem = os.path.join(os.path.dirname(path), "__pycache__"), os.path.basename(path)[:-2]
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if name.startswith(stem):
                os.remove(os.path.join(folder, name))

    def put_back(self):
        for here, folders, names in os.walk(self.top, topdown=False):
            for name in names:
                if os.path.join(here, name) not in self.kept:
                    os.remove(os.path.join(here, name))
            for name in folders:
                path = os.path.join(here, name)
                if os.path.islink(path):
                    os.remove(path)
                elif not os.listdir(path) and not any(kept.startswith(path + "/") for kept in self.kept):
                    os.rmdir(path)
        for path, (data, seen) in self.kept.items():
            if not os.path.lexists(path) or self.look(path) != seen:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(data)
                os.chmod(path, seen[2] & 0o777)
                os.utime(path, ns=(seen[4], seen[4]))
                self.kept[path] = (data, self.look(path))


def child(suite, spec, job):
    """Never returns."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (job["cpu"], job["cpu"] + 1))
    plugin, code = suite.run({**spec, **job})
    plugin.finish(code, [])
    os._exit(0)


def attend(pid, seconds):
    """Wait for a child; how it ended, and what it used of the processor."""
    deadline, ended = time.monotonic() + seconds, "exit"
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            ended = "timeout"
            os.kill(pid, signal.SIGKILL)
            _, status, usage = os.wait4(pid, 0)
            break
        time.sleep(0.005)
    if os.WIFSIGNALED(status):
        ended = "timeout"
    return ended, usage.ru_utime + usage.ru_stime


def kill_others():
    """End every process of the sandbox but this one, its parent and the first."""
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid(), os.getppid()):
            with contextlib.suppress(OSError):
                os.kill(int(name), signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def preload():
    """Import what every run would."""
    import _pytest.config  # pyright: ignore[reportMissingImports] (in the sandbox only)

    for name in (
        *(f"_pytest.{name}" for name in _pytest.config.default_plugins),
        "pytest_mock",
        "unittest.mock",
    ):
        with contextlib.suppress(ImportError):
            __import__(name)


def empty(folder):
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.remove(path)


def main():
    asked = json.loads(sys.stdin.buffer.read())
    sys.stdin = open(os.devnull)  # noqa: SIM115 (to the end)
    suite = types.ModuleType("suite")
    exec(asked["suite"], suite.__dict__)  # noqa: S102 (our own program)
    preload()
    files, spec, started = Files(os.getcwd()), asked["spec"], time.monotonic()
    gc.freeze()
    for at, job in enumerate(asked["jobs"]):
        if time.monotonic() - started > asked["seconds"]:
            break
        since = time.monotonic()
        for path, text in job.pop("changes").items():
            files.change(path, text)
        pid = os.fork()
        if pid == 0:
            try:
                child(suite, {**spec, "channel": asked["channel"]}, job)
            finally:
                os._exit(1)
        ended, cpu = attend(pid, job["seconds"])
        kill_others()
        for folder in ("/tmp", "/dev/shm"):
            empty(folder)
        files.put_back()
        row = {"kind": "job", "at": at, "ended": ended, "seconds": time.monotonic() - since, "cpu": cpu}
        os.write(asked["channel"], ("\n" + spec["mark"] + json.dumps(row) + "\n").encode())


if __name__ == "__main__":
    main()
