"""Make validated bug-fixing tasks: ``turnwise swe build --tasks 500``.

For each package: its suite is run several times (what is not stable is left out) and once with coverage; then bugs
are drawn on lines that tests run, and kept where some tests fail with them, again and again, and the rest pass.
What is done is written line by line, so that the command goes on where it was interrupted.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from turnwise.envs.swe.draw import Drawing, Tally
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.packages import get_package
from turnwise.errors import InfraError, TurnwiseError
from turnwise.tasks.core import Json
from turnwise.tools.sandbox.core import Backend


class Made(NamedTuple):
    """Result of a command for one package.

    It holds how many tests count, seconds and CPU seconds of a run, and what became of bugs.

    ``total`` counts tasks of earlier commands as well; ``problem`` says why there are none.
    """

    package: str
    tests: int = 0
    suite_seconds: float = 0.0
    suite_cpu: float = 0.0
    tally: Tally = Tally()
    total: int = 0
    problem: str = ""


class Built(NamedTuple):
    """Result of a command: ``cpu`` of all its processes, ``seconds`` of wall time."""

    packages: tuple[Made, ...]
    seconds: float
    cpu: float

    @property
    def total(self) -> int:
        return sum(made.total for made in self.packages)

    def to_json(self) -> dict[str, Json]:
        """As ``--json`` prints it."""
        rows: dict[str, Json] = {}
        for made in self.packages:
            row: dict[str, Json] = {**made._asdict(), "tally": dict(made.tally._asdict())}
            rows[str(row.pop("package"))] = row
        real = sum(made.total > 0 for made in self.packages)
        return {
            "tasks": self.total,
            "packages_with_tasks": real,
            "seconds": round(self.seconds),
            "cpu": round(self.cpu),
        } | {"packages": rows}


class _Package:
    """The tasks of one package, and their file."""

    def __init__(self, name: str, known: Sequence[Instance], out: Path, *, hard: bool, files: int) -> None:
        self.name, self.known, self.out, self.hard, self.files = name, list(known), out, hard, files
        self.drawing: Drawing | None = None
        self.problem = ""
        self.is_done = False

    def work(self, backend: Backend, count: int, seed: int, deadline: float) -> None:
        """Have ``count`` tasks, if that can be."""
        missing = count - len(self.known)
        if missing <= 0 or self.is_done or time.monotonic() > deadline:
            return
        since, before = time.monotonic(), len(self.known)
        try:
            for made in self.start(backend, seed).draw(missing, deadline):
                self.known.append(made)
                with self.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(made.to_json()) + "\n")
        except (TurnwiseError, InfraError) as error:
            self.problem = str(error)
        self.is_done = len(self.known) < count and time.monotonic() < deadline
        told = self.problem or _told(self.drawing.tally if self.drawing else Tally())
        took = f"+{len(self.known) - before} in {time.monotonic() - since:.0f} s"
        print(f"✓ {self.name} {took}: {told}", file=sys.stderr, flush=True)

    def start(self, backend: Backend, seed: int) -> Drawing:
        """Measure the package, if that has not been done."""
        if self.drawing is None:
            self.drawing = Drawing(
                backend,
                get_package(self.name),
                seed=seed,
                known=self.known,
                hard=self.hard,
                files=self.files,
            )
        return self.drawing

    def cost(self, backend: Backend, seed: int) -> float:
        """CPU seconds of a run of its suite; without end where it does not run."""
        try:
            return self.start(backend, seed).base.cpu
        except (TurnwiseError, InfraError) as error:
            self.problem, self.is_done = str(error), True
            return float("inf")

    def made(self) -> Made:
        if self.drawing is None:
            return Made(self.name, total=len(self.known), problem=self.problem)
        base = self.drawing.base
        times = round(base.seconds, 2), round(base.cpu, 2)
        tally = self.drawing.tally._replace(cpu=round(self.drawing.tally.cpu, 1))
        return Made(self.name, len(base.passing), *times, tally, len(self.known), self.problem)


def build(
    backend: Backend,
    names: Sequence[str],
    tasks: int,
    out: Path,
    *,
    seed: int = 0,
    workers: int = 2,
    minutes: float = 1e9,
    hard: bool = False,
    files: int = 1,
) -> Built:
    """Write tasks of these packages to ``out`` until it has ``tasks`` or the time is up, as many of each as can be.

    What ``out`` holds already is kept and counted. Each package gives a quarter of an equal share, if it has so many
    bugs; the rest comes from the half of them whose suites are quickest. ``hard``: only what no scripted localiser finds;
    ``files``: in how many a bug is, at least.

    Raises:
        TurnwiseError: another command writes to ``out``.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(f"{out}.lock", timeout=0):
            return _build(backend, names, tasks, out, seed, workers, minutes, hard=hard, files=files)
    except Timeout:
        raise TurnwiseError(
            f"Another command writes tasks to {out}.", "Wait for it, or name another --out."
        ) from None


def _build(
    backend: Backend,
    names: Sequence[str],
    tasks: int,
    out: Path,
    seed: int,
    workers: int,
    minutes: float,
    *,
    hard: bool,
    files: int,
) -> Built:
    since, spent = time.monotonic(), _cpu()
    deadline = since + 60 * minutes
    known, least = _known(out), -(-tasks // (4 * len(names)))
    of = [
        _Package(name, [one for one in known if one.package == name], out, hard=hard, files=files)
        for name in names
    ]
    with ThreadPoolExecutor(workers) as pool:
        while (missing := tasks - sum(len(one.known) for one in of)) > 0:
            going = [one for one in of if not one.is_done]
            if not going or time.monotonic() > deadline:
                break
            each, group = least, [one for one in going if len(one.known) < least]
            if not group:
                group = sorted(going, key=lambda one: one.cost(backend, seed))[: max(len(of) // 2, 1)]
                each = _level([len(one.known) for one in group], missing)
            list(pool.map(lambda one: one.work(backend, each, seed, deadline), group))  # noqa: B023 (done when the next begins)
    return Built(tuple(one.made() for one in of), time.monotonic() - since, _cpu() - spent)


def _level(counts: Sequence[int], missing: int) -> int:
    """To how many each is filled up, so that at least ``missing`` come in."""
    level = min(counts)
    while sum(max(level - count, 0) for count in counts) < missing:
        level += 1
    return level


def _known(out: Path) -> list[Instance]:
    text = out.read_text("utf-8") if out.exists() else ""
    whole = text.split("\n")[:-1]  # a last line that was cut short is made again
    out.write_text("".join(f"{line}\n" for line in whole), "utf-8")
    return [Instance.from_json(json.loads(line)) for line in whole]


def _told(tally: Tally) -> str:
    counts = {name: value for name, value in tally._asdict().items() if name != "cpu" and value}
    return ", ".join(f"{value} {name}" for name, value in counts.items()) + f"; {tally.cpu:.0f} s of CPU"


def _cpu() -> float:
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
