"""The watchdog's second process: it ends its parent when that has not run any Python code for too long.

Started by :func:`turnwise.watchdog.guard`, which explains it, with ``PID FD REMEDY [dump]``. Time is counted in looks,
not read from a clock, so that a parent which was stopped together with this process (Ctrl-Z, a sleeping laptop) is not
taken for a hung one.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import sys
import time

LOOK_S = 0.25


def main(parent: int, page: mmap.mmap, remedy: str, dump: bool) -> None:
    """Look at the parent's beats until it is gone."""
    last, silent = -1, 0
    while os.getppid() == parent:
        time.sleep(LOOK_S)
        beats, seconds, length = struct.unpack_from("<QdI", page, 0)
        silent = silent + 1 if seconds and beats == last else 0
        last = beats
        if silent * LOOK_S > seconds and _state(parent) not in "TtZX":
            name = bytes(page[20 : 20 + length]).decode("utf-8", "replace")
            if dump:
                os.kill(parent, signal.SIGUSR2)
                time.sleep(LOOK_S)
            print(
                f"\n{name or 'Something'} has held the whole process for {seconds:.0f} s in C code that lets no "
                f"other thread run, so it ends here{' (the line is shown above)' if dump else ''}.\n→ {remedy}",
                file=sys.stderr,
                flush=True,
            )
            os.kill(parent, signal.SIGKILL)
            return


def _state(pid: int) -> str:
    """The process's state as Linux gives it; ``T`` is stopped, by Ctrl-Z or a debugger, ``Z`` is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "?"


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which may take time to end
    main(int(sys.argv[1]), mmap.mmap(int(sys.argv[2]), mmap.PAGESIZE), sys.argv[3], sys.argv[4:] == ["dump"])
