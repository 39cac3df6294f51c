"""Checks of running programs: how they are started, fed, and how they end."""

from __future__ import annotations

import sys

from turnwise.tools.sandbox.checks.core import Lab, check
from turnwise.tools.sandbox.checks.files import same
from turnwise.tools.sandbox.core import Ended


@check("programs", "exit codes are reported")
def exec_exit_codes(lab: Lab) -> None:
    for code in (0, 3, 255):
        result = lab.sh(f"exit {code}")
        same((result.exit_code, result.ended, result.ok), (code, Ended.EXIT, code == 0))


@check("programs", "a death by signal n is exit code 128 + n")
def exec_signals(lab: Lab) -> None:
    same([lab.sh(f"kill -{n} $$").exit_code for n in (9, 15, 6)], [137, 143, 134])


@check("programs", "no such program is exit code 127; one that may not run is 126")
def exec_no_program(lab: Lab) -> None:
    same(lab.sandbox.exec(["no-such-program"]).exit_code, 127)
    lab.sandbox.write("plain.txt", "x")
    same(lab.sandbox.exec(["./plain.txt"]).exit_code, 126)


@check("programs", "stdout and stderr are kept apart")
def exec_streams(lab: Lab) -> None:
    result = lab.sh("echo out; echo err >&2; echo more")
    same((result.stdout, result.stderr), (b"out\nmore\n", b"err\n"))


@check("programs", "a megabyte of stdin arrives, and ends")
def exec_stdin(lab: Lab) -> None:
    same(lab.sandbox.exec(["wc", "-c"], stdin=b"x" * 1_000_000).stdout.strip(), b"1000000")
    same(lab.sandbox.exec(["cat"]).stdout, b"")


@check("programs", "stdin that nobody reads does not hold a program up")
def exec_stdin_unread(lab: Lab) -> None:
    same(lab.sandbox.exec(["true"], stdin=b"x" * 1_000_000).exit_code, 0)
    same(lab.sh("exec 0<&-; sleep 0.1; echo done", stdin=b"x" * 300_000).stdout, b"done\n")


@check("programs", "cwd is relative to the working folder; a missing one is exit code 126")
def exec_cwd(lab: Lab) -> None:
    lab.sandbox.write("a/b/x", "")
    same(lab.sandbox.exec(["pwd"], cwd="a/b").out.strip(), f"{lab.sandbox.workdir}/a/b")
    same(lab.sandbox.exec(["pwd"], cwd="nowhere").exit_code, 126)


@check("programs", "arguments reach the program as they are: no shell reads them")
def exec_arguments(lab: Lab) -> None:
    words = ["a b", "$(id)", "`id`", ";ls", "*", "", "ž\n☃"]
    program = "import sys; sys.stdout.write('\\0'.join(sys.argv[1:]))"
    same(lab.py(program, *words).out.split("\0"), words)


@check("programs", "given variables are seen, for that command only", 57)
def exec_variables(lab: Lab) -> None:
    same(lab.sandbox.exec(["sh", "-c", "echo $SHOWN"], env={"SHOWN": "yes"}).out, "yes\n")
    same(lab.sandbox.exec(["sh", "-c", "echo $SHOWN"]).out, "\n")


@check("programs", "HOME, TMPDIR and the working folder can be written to")
def exec_home(lab: Lab) -> None:
    same(lab.sh("touch $HOME/a $TMPDIR/b ./c && ls ~").exit_code, 0)


@check("programs", "output that is no text arrives byte by byte", 35)
def exec_binary_output(lab: Lab) -> None:
    same(lab.py("import os; os.write(1, bytes(range(256)))").stdout, bytes(range(256)))


@check("programs", "a file that was written with its mode runs")
def exec_written_program(lab: Lab) -> None:
    lab.sandbox.write("go", "#!/usr/bin/env python3\nprint(6 * 7)\n", mode=0o755)
    same(lab.sandbox.exec(["./go"]).stdout, b"42\n")


@check("programs", "what one command writes, the next one reads")
def exec_files_stay(lab: Lab) -> None:
    lab.sh("echo 1 > a; echo 2 > $HOME/b")
    same(lab.sh("cat a $HOME/b").stdout, b"1\n2\n")


@check("programs", "a program of the same name in the working folder is not taken for the real one", 68, 77)
def exec_path(lab: Lab) -> None:
    for name in ("python3", "ls"):
        lab.sandbox.write(name, "#!/bin/sh\necho fooled\n", mode=0o755)
    same(lab.sandbox.exec(["python3", "-c", "print(1)"]).stdout, b"1\n")
    assert "fooled" not in lab.sandbox.exec(["ls"]).out


@check("programs", "programs of the root cannot be replaced", 77)
def exec_root_programs(lab: Lab) -> None:
    result = lab.sh(
        "for p in bash python3 git; do echo x > $(command -v $p); rm -f $(command -v $p); done; python3 -V"
    )
    same((result.exit_code, result.err.count("Read-only") >= 3), (0, True))


@check("programs", "printing what looks like the supervisor's answer changes nothing", 71)
def exec_forged_answer(lab: Lab) -> None:
    forged = '\\0\\0\\0\\x20{"ended": "exit", "code": 0}'
    result = lab.sh(f"printf '{forged}'; for fd in 3 4 5 6 7 8 9; do printf '{forged}' >&$fd; done; exit 9")
    same(result.exit_code, 9)


@check("programs", "there is no terminal to type into", 52)
def exec_no_terminal(lab: Lab) -> None:
    program = (
        "import fcntl, os, termios\n"
        "try: fd = os.open('/dev/tty', os.O_RDWR)\n"
        "except OSError: fd = 0\n"
        "try: fcntl.ioctl(fd, termios.TIOCSTI, b'x'); print('typed')\n"
        "except OSError: print('no')\n"
    )
    same(lab.py(program).stdout, b"no\n")


@check("programs", "a hundred commands in a row leave no descriptor or zombie behind")
def exec_hundred(lab: Lab) -> None:
    for _ in range(100):
        lab.sandbox.exec(["true"], stdin=b"x")
    same(lab.sh("ls /proc/self/fd | wc -l").out.strip(), "4")
    if sys.platform == "linux":
        same("Z" in lab.py(_STATES).out, False)


_STATES = """
import os
me, states = os.getpid(), []
for name in os.listdir('/proc'):
    if name.isdigit():
        try: state, parent = open(f'/proc/{name}/stat').read().rsplit(')', 1)[1].split()[:2]
        except OSError: continue
        if int(parent) == os.getppid(): states.append(state)
print(*states)
"""
