"""A filter of system calls, as the kernel's bytecode: a deny-list that the supervisor puts on itself and its children.

What is denied is what containers have been escaped with (new namespaces, mounts, tracing, keys, BPF, io_uring),
sockets that no namespace holds back (those of virtual machines), and state outside of files (System V and POSIX
queues, shared memory). In Docker it comes on top of Docker's own profile, which allows some of these.
"""

from __future__ import annotations

import platform
import struct

from turnwise.errors import MissingDependencyError

_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 0x00050001, 0x00050026, 0x00050061
_FAMILIES = (1, 2, 10, 16)  # unix, IPv4, IPv6, netlink; vsock would reach the host of a virtual machine
_NAMESPACES = 0x7E020000  # CLONE_NEW{USER,NS,PID,NET,IPC,UTS,CGROUP}

# From the kernel's tables (arch/x86/entry/syscalls/syscall_64.tbl; include/uapi/asm-generic/unistd.h).
_X86 = {
    "audit": 0xC000003E,
    "clone": 56,
    "clone3": 435,
    "socket": 41,
    "denied": (
        29, 30, 31, 67,  # shmget shmat shmctl shmdt
        64, 65, 66, 220,  # semget semop semctl semtimedop
        68, 69, 70, 71,  # msgget msgsnd msgrcv msgctl
        240, 241, 242, 243, 244, 245,  # mq_*
        101, 103, 134, 135, 136, 139,  # ptrace syslog uselib personality ustat sysfs
        153, 154, 155, 156, 161, 163,  # vhangup modify_ldt pivot_root _sysctl chroot acct
        165, 166, 167, 168, 169,  # mount umount2 swapon swapoff reboot
        172, 173, 174, 175, 176, 177, 178, 179, 180,  # iopl … nfsservctl: modules and other relics
        212, 237, 238, 239, 246, 248, 249, 250, 256, 272, 279,  # numa, kexec, keys, migrate, unshare, move_pages
        298, 300, 301, 303, 304, 308, 310, 311, 312, 313,  # perf, fanotify, handles, setns, process_vm, kcmp, modules
        320, 321, 323, 425, 426, 427,  # kexec_file bpf userfaultfd io_uring
        428, 429, 430, 431, 432, 433, 442, 467,  # open_tree … mount_setattr, open_tree_attr
    ),
}  # fmt: skip
_ARM = {
    "audit": 0xC00000B7,
    "clone": 220,
    "clone3": 435,
    "socket": 198,
    "denied": (
        194, 195, 196, 197, 190, 191, 192, 193, 186, 187, 188, 189,  # shm sem msg
        180, 181, 182, 183, 184, 185,  # mq_*
        117, 116, 92, 58, 41, 51, 89, 39, 40, 224, 225, 142, 104, 105, 106, 97, 217, 218, 219, 235, 236, 237,
        238, 239, 241, 262, 263, 264, 265, 268, 270, 271, 272, 273, 294, 280, 282, 425, 426, 427, 428, 429,
        430, 431, 432, 433, 442, 467,
    ),
}  # fmt: skip
_TABLES = {"x86_64": _X86, "aarch64": _ARM}


def compiled() -> bytes:
    """The filter as ``struct sock_filter[]``.

    Raises:
        MissingDependencyError: there is no table of this processor's system calls here.
    """
    table = _TABLES.get(platform.machine())
    if table is None:
        raise MissingDependencyError(
            f"Sandboxes do not know the system calls of {platform.machine()}.", f"Use {' or '.join(_TABLES)}."
        )
    program = [
        (_LOAD, 0, 0, 4),  # the architecture: another numbering would pass the list by
        (_EQUAL, 1, 0, table["audit"]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),  # the number of the call
        (_AT_LEAST, 0, 1, 0x40000000),  # x32, a second numbering on x86
        (_RETURN, 0, 0, _ENOSYS),
        (_EQUAL, 0, 1, table["clone3"]),  # its flags lie in memory; without it, C libraries use clone
        (_RETURN, 0, 0, _ENOSYS),
    ]
    for number in table["denied"]:
        program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _EPERM)]
    families = [(_EQUAL, len(_FAMILIES) - place, 0, family) for place, family in enumerate(_FAMILIES)]
    program += [
        (_EQUAL, 0, len(_FAMILIES) + 3, table["socket"]),
        (_LOAD, 0, 0, 16),  # its family
        *families,
        (_RETURN, 0, 0, _EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 3, table["clone"]),
        (_LOAD, 0, 0, 16),  # its flags
        (_ANY_BIT, 0, 1, _NAMESPACES),
        (_RETURN, 0, 0, _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)
