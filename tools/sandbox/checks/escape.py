"""Checks of the kernel's doors: namespaces, devices, settings, other processes."""

from __future__ import annotations

from turnwise.tools.sandbox.checks.core import Lab, check
from turnwise.tools.sandbox.checks.files import same

_CALL = """
import ctypes, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
number = int(sys.argv[1])
result = libc.syscall(number, *[int(word) for word in sys.argv[2:]])
print(result, ctypes.get_errno())
"""
_DENIED = ("1", "13", "38", "95", "97")  # EPERM EACCES ENOSYS EOPNOTSUPP EAFNOSUPPORT


def _denied(lab: Lab, *words: int) -> None:
    result = lab.py(_CALL, *[str(word) for word in words])
    parts = result.out.split()
    assert parts, f"system call {words[0]} ended the program: {result.exit_code}"
    assert parts[0] == "-1", f"system call {words[0]} was allowed"
    assert parts[1] in _DENIED, f"system call {words[0]} got as far as error {parts[1]}"


@check("escape", "commands run as a user who is not root, without capabilities or a way to get any", 51)
def no_privileges(lab: Lab) -> None:
    status = dict(line.split(":\t", 1) for line in lab.sh("cat /proc/self/status").out.splitlines())
    assert "0" not in status["Uid"].split(), status["Uid"]
    assert "0" not in status["Gid"].split(), status["Gid"]
    for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        same(int(status[kind], 16), 0)
    same((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))


@check("escape", "the user is nobody on the host: no group of its own, no root in a user namespace", 51)
def real_user(lab: Lab) -> None:
    words = lab.sh("cat /proc/self/uid_map; id -G").out.split()
    same(words[:3], ["0", "0", "4294967295"])
    assert int(words[3]) >= 1000, words


@check("escape", "no program gives its caller another user", 51)
def no_setuid(lab: Lab) -> None:
    same(lab.sh("find / -xdev -perm /6000 -type f 2>/dev/null").out, "")
    same(lab.sh("cp $(command -v id) .; chmod u+s id; ./id -u").out.strip() == "0", False)


@check("escape", "no new namespaces: unshare, setns, clone, user namespaces", 51)
def namespaces(lab: Lab) -> None:
    for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000):
        _denied(lab, 272, flag)
    _denied(lab, 308, 0, 0)
    _denied(lab, 56, 0x10000000 | 17, 0, 0, 0, 0)
    assert lab.sh("unshare -Ur true").exit_code != 0


@check("escape", "no mounts, old way or new; no chroot, no pivot_root", 51)
def mounts(lab: Lab) -> None:
    for number in (165, 166, 155, 161, 428, 429, 430, 432):
        _denied(lab, number, 0, 0, 0, 0, 0)


@check("escape", "no BPF, perf, keys, userfaultfd, io_uring, kexec, modules", 51)
def kernel_doors(lab: Lab) -> None:
    for number in (321, 298, 248, 250, 323, 425, 246, 175, 313, 310):
        _denied(lab, number, 0, 0, 0, 0, 0)


@check("escape", "no shared memory, queues or semaphores that would outlive a command", 60)
def state_outside_of_files(lab: Lab) -> None:
    for words in ((29, 0, 4096, 0o1600), (68, 0, 0o1600), (64, 0, 1, 0o1600)):
        result = lab.py(_CALL, *[str(word) for word in words])
        same(result.out.split()[0], "-1")
    program = "import ctypes, os; c = ctypes.CDLL(None); print(c.mq_open(b'/q', os.O_CREAT | os.O_RDWR, 0o600, None))"
    same(lab.py(program).out.strip(), "-1")


@check("escape", "process 1 cannot be traced, read or looked into", 58)
def supervisor_closed(lab: Lab) -> None:
    for name in ("environ", "mem", "maps", "stack"):
        assert lab.sh(f"head -c1 /proc/1/{name}").exit_code != 0, name
    for name in ("cwd", "root", "exe", "fd/0", "ns/net"):
        assert lab.sh(f"readlink /proc/1/{name}").exit_code != 0, name
    _denied(lab, 101, 16, 1, 0, 0)


@check("escape", "other processes of the machine are not there to be seen", 51, 58)
def processes_apart(lab: Lab) -> None:
    with lab.start() as other:
        del other
        assert len(lab.sh("ls -d /proc/[0-9]*").out.split()) <= 4


@check("escape", "the root is read-only", 51, 77)
def root_read_only(lab: Lab) -> None:
    for folder in (
        "/",
        "/etc",
        "/usr/bin",
        "/usr/lib/python3",
        "/root",
        "/var",
        "/run",
        "/home",
        "/dev",
        "/sys",
    ):
        assert lab.sh(f"touch {folder}/x").exit_code != 0, folder
    program = (
        "import os\nfor here, folders, _ in os.walk('/'):\n"
        "    folders[:] = [f for f in folders if here != '/' or f not in ('proc', 'work', 'tmp')]\n"
        "    if here.startswith(('/dev/shm', '/dev/mqueue', '/dev/pts')): continue\n"
        "    if os.access(here, os.W_OK): print(here)\n"
    )
    same(lab.py(program).out, "")


@check("escape", "no devices but the harmless ones; none can be made", 51)
def devices(lab: Lab) -> None:
    program = (
        "import os, stat\nfor here, _, files in os.walk('/dev'):\n"
        "    for name in files:\n"
        "        path = os.path.join(here, name); mode = os.stat(path).st_mode\n"
        "        if stat.S_ISBLK(mode) or stat.S_ISCHR(mode): print(path)\n"
    )
    harmless = ("null", "zero", "full", "random", "urandom", "tty", "console", "ptmx")
    allowed = {f"/dev/{name}" for name in harmless}
    found = {
        path
        for path in lab.py(program).out.split()
        if not path.startswith(("/dev/pts/", "/dev/fd", "/dev/std"))
    }
    same(found <= allowed, True)
    result = lab.py("import os\nfor m in (0o20666, 0o60666): os.mknod('node', m, os.makedev(1, 1))")
    same((result.exit_code, "PermissionError" in result.err), (1, True))


@check("escape", "settings of the kernel cannot be changed", 51)
def kernel_settings(lab: Lab) -> None:
    for path in (
        "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory",
        "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe", "/proc/1/oom_score_adj",
    ):  # fmt: skip
        assert lab.sh(f"echo 0 > {path}").exit_code != 0, path


@check("escape", "control groups cannot be changed or left", 39, 51)
def control_groups(lab: Lab) -> None:
    script = "find /sys/fs/cgroup -writable -type f 2>/dev/null | head -3"
    same(lab.sh(script).out, "")
    for path in (
        "memory/memory.limit_in_bytes",
        "pids/pids.max",
        "memory.max",
        "release_agent",
        "cgroup.procs",
    ):
        assert lab.sh(f"echo 0 > /sys/fs/cgroup/{path}").exit_code != 0, path


@check("escape", "kernel messages and memory are closed", 51)
def kernel_messages(lab: Lab) -> None:
    assert lab.sh("dmesg").exit_code != 0
    for path in ("/dev/mem", "/dev/kmem", "/proc/kcore", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/vda"):
        assert lab.sh(f"head -c1 {path} | grep -q .").exit_code != 0, path
