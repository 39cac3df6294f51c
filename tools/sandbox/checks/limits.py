"""Checks of limits: bombs go off inside, and the sandbox and the host go on."""

from __future__ import annotations

from dataclasses import replace

from turnwise.tools.sandbox.checks.core import SMALL, Lab, check
from turnwise.tools.sandbox.checks.files import same
from turnwise.tools.sandbox.core import Ended, SandboxImage


def _alive(lab: Lab) -> None:
    same(lab.sandbox.exec(["echo", "alive"]).stdout, b"alive\n")


def _stored(lab: Lab, folder: str) -> int:
    """The bytes of the files in a folder."""
    return sum(item.size for item in lab.sandbox.list(folder))


@check("limits", "output is cut in the middle with a visible marker, and counted", 35, 42)
def output_cut(lab: Lab) -> None:
    result = lab.sh("seq 1 100000; seq 1 100000 >&2")
    assert result.truncated
    same((result.stdout_bytes, result.stderr_bytes), (588895, 588895))
    for kept in (result.out, result.err):
        assert kept.startswith("1\n2\n"), kept[:20]
        assert kept.endswith("99999\n100000\n"), kept[-20:]
        assert "bytes left out" in kept
        assert len(kept) < SMALL.output + 100


@check("limits", "a program that writes without end is killed: stdout", 42)
def output_flood(lab: Lab) -> None:
    same(lab.sandbox.exec(["yes"]).ended, Ended.FLOOD)
    _alive(lab)


@check("limits", "a program that writes without end is killed: stderr, from many children", 42)
def output_flood_children(lab: Lab) -> None:
    result = lab.sh("for i in 1 2 3 4; do (setsid yes >&2 &) done; sleep 600")
    same(result.ended, Ended.FLOOD)
    _alive(lab)


@check("limits", "a memory bomb is killed, and reported as such", 40)
def memory_bomb(lab: Lab) -> None:
    result = lab.py("x = []\nwhile True: x.append(bytearray(1 << 20))")
    same((result.ended, result.exit_code), (Ended.MEMORY, 137))
    _alive(lab)


@check("limits", "a memory bomb of many processes is killed", 40)
def memory_bomb_children(lab: Lab) -> None:
    program = (  # sixteen processes of 64 MiB; whoever hears of the death of a child ends too
        "import os, time\nchildren = 0\n"
        "for _ in range(4): children = children + 1 if os.fork() else 0\n"
        "x = bytearray(64 << 20)\n"
        "if children: os.wait(); os._exit(1)\n"
        "time.sleep(600)"
    )
    result = lab.py(program)
    same(result.ended, Ended.MEMORY)
    _alive(lab)


@check("limits", "a process cannot take more memory than is allowed")
def memory_of_process(lab: Lab) -> None:
    result = lab.py("x = bytearray(1 << 30); print(len(x))")
    same("1073741824" in result.out, False)
    _alive(lab)


@check("limits", "a fork bomb is bounded, and over when its time is up", 39)
def fork_bomb(lab: Lab) -> None:
    result = lab.sh(":(){ :|:& };: ; sleep 60", timeout=1)
    same(result.ended in (Ended.TIMEOUT, Ended.EXIT), True)
    _alive(lab)


@check("limits", "the limit of processes binds", 39)
def process_limit(lab: Lab) -> None:
    program = (
        "import os, time\nn = 0\n"
        "try:\n"
        "    while n < 100:\n"
        "        if os.fork() == 0: time.sleep(600); os._exit(0)\n"
        "        n += 1\n"
        "except OSError: pass\n"
        "print(n)"
    )
    count = int(lab.py(program).out)
    assert 10 <= count <= SMALL.processes, count
    _alive(lab)


@check("limits", "threads count as processes", 39)
def thread_limit(lab: Lab) -> None:
    program = (
        "import threading, time, os\nn = 0\n"
        "try:\n"
        "    for _ in range(100): threading.Thread(target=time.sleep, args=(600,), daemon=True).start(); n += 1\n"
        "except RuntimeError: pass\n"
        "print(n, flush=True); os._exit(0)"
    )
    assert int(lab.py(program).out) <= SMALL.processes
    _alive(lab)


@check("limits", "the working folder cannot be filled beyond its size", 41)
def disk_fill(lab: Lab) -> None:
    lab.sh("for i in 1 2 3 4; do head -c 8M /dev/zero > f$i; done")
    assert _stored(lab, ".") <= SMALL.disk
    _alive(lab)


@check("limits", "/tmp and /dev/shm cannot be filled beyond their size", 41)
def scratch_fill(lab: Lab) -> None:
    for folder in ("/tmp", "/dev/shm"):
        lab.sh(f"for i in 1 2 3; do head -c 4M /dev/zero > {folder}/f$i; done")
        assert 0 < _stored(lab, folder) <= SMALL.scratch
    _alive(lab)


@check("limits", "a file cannot grow beyond its limit, sparse ones included", 41)
def file_size(lab: Lab) -> None:
    program = (
        "import os\nf = open('a', 'wb')\n"
        "try: os.ftruncate(f.fileno(), 1 << 40); print('grown')\n"
        "except OSError: print('refused')"
    )
    same(lab.py(program).out.strip() in ("refused", ""), True)
    _alive(lab)


@check("limits", "files cannot be made without end", 41)
def inode_storm(lab: Lab) -> None:
    lab.py("for i in range(20000): open(f'f{i}', 'w').close()")
    count = len(lab.sandbox.list(limit=20_000))
    assert 1000 < count <= SMALL.inodes, count
    _alive(lab)


@check("limits", "folders nested too deep for any path do no harm", 41)
def deep_folders(lab: Lab) -> None:
    lab.py("import os\nfor i in range(1500): os.mkdir('d' * 50); os.chdir('d' * 50)")
    lab.sandbox.snapshot()
    lab.sandbox.restore(SandboxImage())
    same(lab.sandbox.list(), ())


@check("limits", "an archive that unpacks to gigabytes stops at the size of the folder", 45)
def archive_bomb(lab: Lab) -> None:
    lab.sh("head -c 11M /dev/zero | gzip > a.gz; for i in 1 2 3; do gzip -dc a.gz > b$i; done; rm b*; ls")
    lab.py(
        "import gzip, shutil\nfor i in range(9): shutil.copyfileobj(gzip.open('a.gz'), open(f'c{i}', 'wb'))"
    )
    assert _stored(lab, ".") <= SMALL.disk
    _alive(lab)


@check("limits", "spinning processes get no more than their share of the processor", 43)
def cpu_share(lab: Lab) -> None:
    spin = "import os\nos.fork()\nwhile True: pass"
    with lab.start(limits=replace(SMALL, cpus=0.2)) as sandbox:
        sandbox.exec(["python3", "-c", spin], timeout=2)
        work = "import time\nt = time.monotonic()\nwhile time.process_time() < 0.2: pass\nprint(time.monotonic() - t)"
        used = sandbox.exec(["python3", "-c", work])
        assert float(used.out) > 0.5, used.out  # 0.2 s of work at a fifth of a processor takes 1 s


@check("limits", "descriptors are limited, and cores are not dumped")
def descriptors(lab: Lab) -> None:
    program = "import resource as r; print(r.getrlimit(r.RLIMIT_NOFILE)[1], r.getrlimit(r.RLIMIT_CORE)[1])"
    same(lab.py(program).out.split(), ["1024", "0"])
