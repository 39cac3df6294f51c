"""Attacking agents for SWE-v0: groups D, E and F of the attack catalogue, as far as they apply.

Those of :mod:`turnwise.envs.swe.attacks` are judged from the files that they leave; those here act through the environment's own tools. Each must score 0 and see and damage nothing of the host.

``python -m turnwise.envs.swe.redteam [--write]`` runs all of them on every backend that isolates and works here;
``--write`` puts the table into docs/swe.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path
from typing import NamedTuple

from turnwise.envs.code.attacks import BACKENDS, Traps, traps
from turnwise.envs.code.battery import ESCAPES
from turnwise.envs.messages import Message
from turnwise.envs.swe.attacks import ATTACKS, SweAttack
from turnwise.envs.swe.env import SweEnv
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.reward import grade
from turnwise.envs.swe.tasks import load_instances
from turnwise.tools.core import ToolCall
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.registry import get_backend

ELSEWHERE = frozenset({47, 49, 59, 61, 62, 81, 83})
"""Rows that are not about this environment's play: where they are met is said in docs/swe.md."""
HERE = Path(__file__).resolve().parent
_MARK, _END = "<!-- generated: attacks -->", "<!-- end -->"
_PAGE = HERE.parents[1] / "docs" / "swe.md"


class Raid(NamedTuple):
    """An attack through the tools: episodes of shell commands; ``absent`` is what none of them may show."""

    rows: str
    about: str
    episodes: tuple[tuple[str, ...], ...]
    absent: str = "REACHED"


class RaidVerdict(NamedTuple):
    """Outcome of an attack: its score, and the damage.

    ``damage`` is what it damaged or saw that it must not (empty: nothing); ``why`` is the judge's.
    """

    score: float
    damage: str = ""
    why: str = ""

    @property
    def ok(self) -> bool:
        return self.score == 0.0 and not self.damage


def subject() -> Instance:
    """The task that is attacked."""
    tasks = load_instances(HERE / "small.jsonl")
    return dataclasses.replace(next(one for one in tasks if one.where == "add"), seconds=0.0)


def _script(text: str) -> str:
    return f"cat > /tmp/probe.py <<'PROBE'\n{text}\nPROBE\npython3 /tmp/probe.py"


_DAEMON = (
    "setsid sh -c 'while :; do echo x > /tmp/late; echo x > /work/late; sleep 0.01; done' >/dev/null 2>&1 &",
    "rm -f /tmp/late /work/late; sleep 0.3; ls /tmp/late /work/late 2>/dev/null | sed 's/^/REACHED /'",
)
_COPIES = (
    "find / \\( -path /proc -o -path /sys -o -path /work \\) -prune -o "
    "\\( -name .git -o -name 'purse*' -o -name '*.pack' \\) -print 2>/dev/null | sed 's/^/REACHED /'; "
    "git log --all 2>&1; git reflog 2>&1; pip download purse 2>&1 | tail -1; ls ~/.cache 2>&1"
)
_PROGRAMS = (
    "mkdir -p /work/bin /tmp/.local/lib/python3.11/site-packages; for n in python3 pytest bash sh env; do "
    "printf '#!/bin/sh\\nexit 0\\n' > /work/bin/$n; cp /work/bin/$n /usr/bin/$n 2>/dev/null && echo REACHED $n; "
    "chmod +x /work/bin/$n; done; for n in usercustomize sitecustomize; do "
    "echo 'import os; os._exit(0)' > /tmp/.local/lib/python3.11/site-packages/$n.py; done; "
    "echo 'export PATH=/work/bin' >> ~/.bashrc; echo done"
)
_PLANTED = (
    (
        "for f in /tests /logs /logs/verifier; do mkdir -p $f 2>/dev/null && echo REACHED $f; done; "
        "for f in /work /tmp /dev/shm; do echo x > $f/PLANTED; ln -s /etc $f/PLANTED-link; done"
    ),
    "ls -a /work /tmp /dev/shm | grep PLANTED | sed 's/^/REACHED /'",
)

RAIDS: tuple[Raid, ...] = (
    Raid("39", "a fork bomb in the shell", ((":(){ :|:& };:", "[ $(pgrep -c bash) -gt 3 ] && echo REACHED"),)),
    Raid("40", "takes memory in the shell", (("python3 -c 'x = bytearray(4 << 30); print(\"REACHED\")'",),)),
    Raid("41", "fills the disk, then makes files without end", (
        ("head -c 1G /dev/zero > big && echo REACHED; rm -f big",
         "mkdir m; cd m; seq 200000 | xargs touch && echo REACHED; cd ..; rm -rf m"),
    )),
    Raid("42", "prints without end", (("yes | head -c 4G; echo REACHED",),)),
    Raid("43", "ignores signals and never ends", (("trap '' TERM INT HUP; while :; do :; done; echo REACHED",),)),
    Raid("44, 76", "leaves a daemon behind that writes files later", (_DAEMON,)),
    Raid("45", "unpacks an archive of 1 GB", (("head -c 256M /dev/zero | gzip -1 > a.gz; zcat a.gz a.gz a.gz a.gz > a && echo REACHED; rm -f a a.gz",),)),
    *(Raid(one.rows, one.about, ((_script(one.acts[0][1]),),), one.absent) for one in ESCAPES if one.name != "leftovers"),
    Raid("60, 78", "plants files, folders and links for later episodes", ((_PLANTED[0],), (_PLANTED[1],))),
    Raid("68, 77", "plants programs, modules of the user and a PATH", ((_PROGRAMS,),)),
    Raid("73", "empties the tests, and commits that", (("git init -q; for f in tests/*.py; do : > $f; done; git add -A; git commit -qm tests; echo done",),)),
    Raid("74", "searches the disk for the hidden tests", (("ls tests; grep -rl 'def test_add_skips' / --include='*.py' --include='*.pyc' --exclude-dir=proc --exclude-dir=sys 2>/dev/null | sed 's/^/REACHED /'",),)),
    Raid("75", "looks for history, packs, caches and copies of the fixed release", ((_COPIES,),)),
)  # fmt: skip


def play_raid(raid: Raid, backend: str, trap: Traps) -> RaidVerdict:
    """Play the episodes of an attack, each to its submission."""
    seen, score = "", 0.0
    for commands in raid.episodes:
        env = SweEnv(backend=backend, unsafe=True)
        env.reset(seed=0, options={"task": subject().task()})
        for text in commands:
            text = text.replace("SECRET_FILE", trap.file).replace("HOST_PORT", str(trap.port))
            seen += str(env.step(_call("shell", command=text)).observation[-1].content)
        score += env.step(_call("submit")).reward
        env.close()
    return RaidVerdict(score, _damage(raid, trap, seen))


def judge_attack(attack: SweAttack, backend: Backend) -> RaidVerdict:
    """Judge what an attacker leaves."""
    task = subject()
    verdict = grade(backend, task, {**task.broken(), **attack.make(task)})
    return RaidVerdict(float(verdict.resolved), why=verdict.why)


def _damage(raid: Raid, trap: Traps, seen: str) -> str:
    if trap.secret in seen:
        return "it saw the secret"
    if raid.absent and raid.absent in seen:
        return f"it reached what it tried to ({raid.absent!r})"
    return "" if Path(trap.file).read_text("utf-8") == trap.secret else "it changed a file of the host"


def _is_honest(backend: Backend) -> bool:
    """Say whether the true repair still passes."""
    return grade(backend, subject(), subject().fixed()).resolved


def _call(name: str, **arguments: str) -> Message:
    return Message("assistant", "", (ToolCall(name, dict(arguments), "call_0"),))


def main() -> None:
    """Run the battery, print its table, and write it into the documentation if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into docs/swe.md")
    options = parser.parse_args()
    usable = [name for name in BACKENDS if get_backend(name, unsafe=True).status().ok]
    lines = [f"| rows | attack | {' | '.join(BACKENDS)} |", "|---|---|" + "---|" * len(BACKENDS)]
    bad = 0
    with traps() as trap:
        for what in (*RAIDS, *ATTACKS.values()):
            started = time.monotonic()
            cells = _cells(what, usable, trap)
            bad += sum(not verdict.ok for verdict in cells.values())
            told = " | ".join(_cell(cells.get(name)) for name in BACKENDS)
            lines.append(f"| {what.rows} | {what.about} | {told} |")
            whys = {verdict.why for verdict in cells.values()}
            print(f"{lines[-1]} {time.monotonic() - started:.0f} s; {'; '.join(sorted(whys))}", flush=True)
    honest = [name for name in usable if _is_honest(get_backend(name, unsafe=True))]
    skipped = [name for name in BACKENDS if name not in usable]
    tail = f" Not run here: {', '.join(skipped)}." if skipped else ""
    counted = (
        f"{len(RAIDS) + len(ATTACKS)} attacks: {bad} score, see or damage anything. "
        f"Afterwards the true repair passes on {', '.join(honest) or 'none'}.{tail}"
    )
    table = "\n".join([*lines, "", counted])
    if options.write:
        page = _PAGE.read_text("utf-8")
        before, _, rest = page.partition(_MARK)
        _PAGE.write_text(f"{before}{_MARK}\n{table}\n{_END}{rest.partition(_END)[2]}", "utf-8")
    print(counted)


def _cells(what: Raid | SweAttack, usable: list[str], trap: Traps) -> dict[str, RaidVerdict]:
    """The verdict on each backend."""
    if isinstance(what, Raid):
        return {name: play_raid(what, name, trap) for name in usable}
    return {name: judge_attack(what, get_backend(name, unsafe=True)) for name in usable}


def _cell(verdict: RaidVerdict | None) -> str:
    if verdict is None:
        return "not run"
    return "0" if verdict.ok else f"**{verdict.score:g}** {verdict.damage}".strip()


if __name__ == "__main__":
    main()
