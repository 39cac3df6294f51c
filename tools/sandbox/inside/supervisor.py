"""Process 1 of a sandbox: runs commands and handles files on behalf of the host, over its stdin and stdout.

It runs *inside*, as the sandbox's own user, so a path can lead nowhere that the model's commands could not
go themselves. They cannot kill it (process 1 takes no signals from its own namespace), trace it or read its
memory (it is not dumpable). It needs nothing but Python's standard library, 3.8 or newer, because it is
handed as source to the Python of whatever root it starts in. When its stdin ends, it ends, and with it all
processes of the sandbox: nothing is left behind even if the host's process is killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys

from turnwise.tools.sandbox.inside import commands, files
from turnwise.tools.sandbox.inside.frames import FOLDERS, SETTINGS, Refused, alone, answer, receive

OPERATIONS = {
    "run": commands.run,
    "read": files.read,
    "write": files.write,
    "list": files.list_folder,
    "remove": files.remove,
    "capture": files.capture,
    "clear": files.clear,
    "apply": files.apply,
    "agree": files.agree,
}


def main() -> None:
    os.umask(0o022)
    SETTINGS.update(json.loads(sys.argv[1]))
    FOLDERS.update(SETTINGS["folders"])
    become_unreachable()
    os.chdir(FOLDERS["work"])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN if alone() else signal.SIG_DFL)
    answer({"ok": True, "pid": os.getpid(), "python": sys.version.split()[0]})
    while True:
        header, payload = receive()
        try:
            OPERATIONS[header["op"]](header, payload)
        except Refused as error:
            answer({"refused": str(error)})
        except OSError as error:
            answer({"refused": f"{str(header.get('path', ''))[:200]}: {error.strerror or error}"})
        except (ValueError, MemoryError) as error:  # such as a NUL in a name
            answer({"refused": f"{type(error).__name__}: {error}"[:300]})


def become_unreachable() -> None:
    """Drop root where it has it, forbid new privileges, and become untraceable."""
    libc = ctypes.CDLL(None, use_errno=True)
    SETTINGS["prctl"] = libc.prctl
    SETTINGS["oom"] = open_oom_counter()
    uid = SETTINGS.get("uid")
    if uid is not None:
        for capability in range(41):
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())  # the inheritable ones too
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if SETTINGS["isolated"]:
        install_filter(libc)
        libc.prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    else:
        libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans become ours


def install_filter(libc: ctypes.CDLL) -> None:
    """Forbid system calls from here on; without the filter nothing may run."""
    program = ctypes.create_string_buffer(bytes.fromhex(SETTINGS["filter"]))
    count = (len(program) - 1) // 8

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    described = Program(count, ctypes.addressof(program))
    if libc.prctl(22, 2, ctypes.byref(described), 0, 0) != 0:  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        os._exit(1)


def open_oom_counter() -> int:
    """Open the file in which the kernel counts whom it killed for memory; -1 where it does not say."""
    if SETTINGS["isolated"]:
        for path in ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"):
            try:
                return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue
    return -1
