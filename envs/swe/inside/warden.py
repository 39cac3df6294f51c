# ruff: noqa: ANN001, ANN201 (runs in sandboxes, alone)
"""Runs a test suite in a process of its own and answers for it (in the sandbox, as ``python3 -I -c``).

It alone knows the nonce that makes an answer count: the tests' process never has it, cannot trace this one, and
its output goes nowhere. What that process says about tests comes through a pipe, as lines that begin with its own mark.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time

_MOST = 24 * 2**20  # bytes that a suite may say


def main():
    asked = json.loads(sys.stdin.buffer.read())
    ctypes.CDLL(None).prctl(4, 0)  # not dumpable: nobody of the same user may look into this process
    for path, text in asked["files"].items():
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    reading, writing = os.pipe()
    # Not -I: that would have Python ignore the hash seed.
    program = [sys.executable, "-s", "-P", "-c", asked["child"]]
    environment = {**os.environ, **asked["env"]}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    child = subprocess.Popen(program, stdin=subprocess.PIPE, env=environment, pass_fds=(writing,), **quiet)
    os.close(writing)
    spec = dict(asked["spec"], channel=writing)
    said, ended = b"", "exit"
    assert child.stdin is not None
    try:
        child.stdin.write(json.dumps(spec).encode())
        child.stdin.close()
        said, ended = listen(child, reading, time.monotonic() + asked["seconds"])
    except BrokenPipeError:
        pass
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    answer = {"ended": ended, "code": child.wait(), "said": said.decode("utf-8", "replace")}
    answer["cpu"] = sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    sys.stdout.write(asked["nonce"] + json.dumps(answer))
    sys.stdout.flush()


def listen(child, reading, deadline):
    os.set_blocking(reading, False)
    parts, size = [], 0
    while True:
        done = child.poll() is not None
        ready = select.select(
            [reading], [], [], 0 if done else min(0.2, max(0, deadline - time.monotonic()))
        )[0]
        part = os.read(reading, 1 << 20) if ready else None
        if part:
            parts.append(part)
            size += len(part)
        if size > _MOST:
            return b"".join(parts), "flood"
        if part == b"" or (done and not ready):
            child.wait()
            return b"".join(parts), "exit"
        if time.monotonic() > deadline:
            return b"".join(parts), "timeout"


if __name__ == "__main__":
    main()
