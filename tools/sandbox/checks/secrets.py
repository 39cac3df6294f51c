"""Checks of secrets: what is on the host is not in the sandbox."""

from __future__ import annotations

import os
import platform

from turnwise.tools.sandbox.checks.core import Lab, check
from turnwise.tools.sandbox.checks.files import same


@check("secrets", "variables of the host are not seen: tokens, keys, proxies", 57)
def environment(lab: Lab) -> None:
    result = lab.sh("env")
    assert lab.canary not in result.out
    names = {line.split("=", 1)[0] for line in result.out.splitlines()}
    allowed = [
        "PATH",
        "HOME",
        "TMPDIR",
        "USER",
        "LOGNAME",
        "LANG",
        "PYTHONDONTWRITEBYTECODE",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "LC_CTYPE",
    ]
    same(names - set(allowed), set())


@check("secrets", "no process shows the host's variables or command lines", 58)
def other_processes(lab: Lab) -> None:
    result = lab.sh("cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'")
    assert lab.canary not in result.out


@check("secrets", "files of the host are not there: its home folder, its projects", 58)
def host_files(lab: Lab) -> None:
    result = lab.sh(
        f"cat {lab.home}/secret.txt {os.getcwd()}/pyproject.toml {os.path.expanduser('~')}/.bashrc"
    )
    same((result.stdout, result.exit_code != 0), (b"", True))
    same(lab.sh("ls -A /home /root /mnt /media /srv 2>/dev/null | grep -v :").out.strip(), "")


@check("secrets", "no file in the sandbox holds the canary", 58, 59)
def canary_search(lab: Lab) -> None:
    found = lab.sh(
        f"grep -rlF --exclude-dir=proc --exclude-dir=sys {lab.canary} /etc /work /tmp /dev/shm /run /var 2>/dev/null"
    )
    same(found.out, "")


@check("secrets", "the host's name and users are not seen", 58)
def host_identity(lab: Lab) -> None:
    same(lab.sh("uname -n").out.strip(), "sandbox")
    assert lab.sh("cat /etc/hostname").out.strip() != platform.node()
    names = [line.split(":")[0] for line in lab.sh("cat /etc/passwd").out.splitlines()]
    assert len(names) <= 25, names


@check("secrets", "no repository of the host is around the working folder", 58, 75)
def no_repository(lab: Lab) -> None:
    assert lab.sh("git rev-parse --show-toplevel").exit_code != 0


@check("secrets", "errors of the sandbox show no path of the host", 37)
def error_texts(lab: Lab) -> None:
    from turnwise.tools.sandbox.core import PathError

    for path in ("nothing", "/etc/shadow", "a\0b"):
        try:
            lab.sandbox.read(path)
            said = ""
        except PathError as error:
            said = str(error)
        assert said, f"{path!r} was read"
        for private in (str(lab.home), os.getcwd(), "site-packages", ".cache"):
            assert private not in said, said
