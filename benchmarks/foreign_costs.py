"""What our adapters cost beside the packages alone: steps, resets, forks and memory; foreign-costs.json has all rows.

    python benchmarks/foreign_costs.py reasoning-gym:chain_sum …     # measures these; with no name, all

The same recorded acts are played by the package's own interface (foreign_alone.py, a process in the world's interpreter) and by our
environment (a process of the same interpreter and this one), in turn and in the same seconds. Both sides have one process of
the package. Processor seconds are those of all processes together, Java's too; a ratio is the median of the rounds' ratios,
its spread the distance of the smallest from the largest.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from turnwise.envs.core import AgentEnv, EndReason, Step
from turnwise.envs.foreign import named
from turnwise.envs.foreign.env import ForeignEnv
from turnwise.envs.foreign.live import LiveWorld, WorldProgram
from turnwise.envs.foreign.state import read_answer
from turnwise.envs.messages import Message
from turnwise.envs.offered.verifiers_package import write_verifiers_package
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.machine import describe
from turnwise.tasks.core import Split, Task

FILE = Path(__file__).with_name("foreign-costs.json")
ALONE = Path(__file__).with_name("foreign_alone.py")
ROUNDS = 5
BOUND, LEAST_MS = 0.10, 1.0
"""What an adapter may cost: a tenth of a step, or a millisecond."""
_PACKED = 200  # tasks of a package of verifiers


class Case(NamedTuple):
    """A suite, and how many of its test tasks a round plays; where nobody knows gold, what is ``said`` in turn, or gold of ``ours``.

    A suite of ours goes out by another's protocol and comes back by our adapter of it. ``stock`` names the package as whoever installs it has it,
    where our side sets something else.
    """

    suite: str
    episodes: int
    said: tuple[str, ...] = ()
    ours: str = ""
    stock: str = ""


_GUESSES = tuple(
    f"[{a} {b} {c} {d}]" for a, b, c, d in ((1, 2, 3, 4), (2, 3, 4, 5), (6, 5, 4, 3), (1, 3, 5, 2))
)
CASES = (
    Case("reasoning-gym:chain_sum", 300),
    Case("reasoning-gym:sokoban", 6),
    Case("textarena:Mastermind-v0", 30, _GUESSES),
    Case("textworld-express:coin", 10),
    Case("textworld-express:cookingworld", 6),
    Case("scienceworld:find-plant", 3),
    Case("bfcl:simple_python", 100),
    Case("bfcl:multi_turn_base", 20),
    Case("tau2:airline", 6, stock="tau2-stock"),
    Case("tau2:telecom", 3, stock="tau2-stock"),
    Case("openenv:shop/easy", 20, ours="shop/easy"),
    Case("verifiers:shop/easy", 20, ours="shop/easy"),
)


class Spent(NamedTuple):
    """Seconds by the clock and of all processors."""

    wall: float = 0.0
    cpu: float = 0.0

    def and_also(self, other: Spent) -> Spent:
        return Spent(self.wall + other.wall, self.cpu + other.cpu)


class Played(NamedTuple):
    """What episodes took: their beginnings, their steps, and what they were paid."""

    resets: Spent
    steps: Spent
    paid: tuple[float, ...]


class Recorded(NamedTuple):
    """An episode as it was played once: as messages for us, as JSON for the package."""

    task: Task
    messages: tuple[Message | str, ...]
    acts: tuple[Any, ...]


class Processes:
    """Processor seconds and memory of a process and of all that it started."""

    def __init__(self, pid: int) -> None:
        one = psutil.Process(pid)
        self._all = [one, *one.children(recursive=True)]

    def cpu(self) -> float:
        """Seconds so far, by the scheduler's own count of each thread."""
        spent = 0
        for process in self._all:
            for thread in Path(f"/proc/{process.pid}/task").iterdir():
                with contextlib.suppress(OSError):
                    spent += int((thread / "schedstat").read_text().split()[0])
        return spent / 1e9

    def megabytes(self) -> float:
        return sum(process.memory_full_info().pss for process in self._all) / 2**20


def record(env: AgentEnv[Any], case: Case, task: Task) -> Recorded:
    """Play an episode once, by gold or by what the case says, and keep what was done."""
    env.reset(options={"task": task})
    said: list[Message | str] = []
    end: str | None = None
    with _knowing(env, case, task) as knowing:
        while end is None:
            said.append(case.said[len(said) % len(case.said)] if case.said else knowing.gold(knowing.state))
            end = env.step(said[-1]).info.get("end")
            if knowing is not env:
                knowing.step(said[-1])
    assert end != EndReason.TURN_LIMIT, f"{task.id} was not played to its end"
    return Recorded(task, tuple(said), tuple(json.loads(act) for act in env.state.acts))


@contextlib.contextmanager
def _knowing(env: AgentEnv[Any], case: Case, task: Task) -> Iterator[AgentEnv[Any]]:
    """The environment that knows gold: this one, or the same task of the suite of ours that came by way of others."""
    if not case.ours:
        yield env
        return
    suite, number = get_suite(case.ours), task.options.get("seed", task.options.get("index"))
    with contextlib.closing(make(suite.env)) as twin:
        twin.reset(options={"task": suite_task(suite, Split.TRAIN, number)})
        yield twin


def play_ours(env: ForeignEnv, episodes: Sequence[Recorded]) -> Played:
    """Play by our environment; this process's seconds count too."""
    resets, steps, paid = Spent(), Spent(), list[float]()
    theirs = Processes(_pid(env))

    def timed(do: Callable[[], float]) -> tuple[float, Spent]:
        """Read the scheduler's counts outside of what is timed."""
        other = theirs.cpu()
        own, began = time.process_time(), time.perf_counter()
        said = do()
        wall, own = time.perf_counter() - began, time.process_time() - own
        return said, Spent(wall, own + theirs.cpu() - other)

    def begun(task: Task) -> float:
        env.reset(options={"task": task})
        return 0.0

    for episode in episodes:
        _, reset = timed(functools.partial(begun, episode.task))
        said, stepped = timed(lambda each=episode: sum(paid_by(env.step(one)) for one in each.messages))
        paid.append(said)
        resets, steps = resets.and_also(reset), steps.and_also(stepped)
    return Played(resets, steps, tuple(round(one, 6) for one in paid))


def paid_by(step: Step) -> float:
    """All that a step paid, also to the agent that did not act: of two, the first is paid for the episode."""
    others = step.info.get("rewards_to", {}).values()
    return float(step.reward) + sum(sum(rewards.values()) for rewards in others)


def play_alone(live: LiveWorld, package: str, episodes: Sequence[Recorded]) -> Played:
    """Play by the package's own interface, and read its clocks inside of it."""
    resets, steps, paid = Spent(), Spent(), list[float]()
    for episode in episodes:
        resets = resets.and_also(
            _asked(live, "open", options={**episode.task.options, "package": package})[0]
        )
        spent, said = _asked(live, "step", act={"acts": list(episode.acts)})
        steps = steps.and_also(spent)
        paid.append(said.rewards["outcome"])
    return Played(resets, steps, tuple(round(one, 6) for one in paid))


def _asked(live: LiveWorld, do: str, **more: Any) -> tuple[Spent, Any]:
    said = read_answer(live.ask(do, **more))
    return Spent(float(said.details["wall"]), float(said.details["cpu"])), said


def forks(env: ForeignEnv, live: LiveWorld, package: str, episode: Recorded) -> dict[str, float]:
    """A fork in the middle of an episode and its first step, beside a reset and the same steps of the package alone, in ms."""
    depth = len(episode.messages) // 2
    env.reset(options={"task": episode.task})
    for message in episode.messages[:depth]:
        env.step(message)
    made, stepped, alone = list[float](), list[float](), list[float]()
    for repeat in range(ROUNDS + 1):  # the first starts a second process
        began = time.perf_counter()
        twin = env.fork()
        forked = time.perf_counter()
        twin.step(episode.messages[depth])
        done = time.perf_counter()
        opened, _ = _asked(live, "open", options={**episode.task.options, "package": package})
        played, _ = _asked(live, "step", act={"acts": list(episode.acts[: depth + 1])})
        twin.close()
        if repeat:
            made.append(forked - began)
            stepped.append(done - forked)
            alone.append(opened.wall + played.wall)
            twin = None
    return {
        "fork_depth": depth,
        "fork_us": round(1e6 * statistics.median(made), 1),
        "fork_stepped_ms": round(1e3 * statistics.median(stepped), 2),
        "replayed_alone_ms": round(1e3 * statistics.median(alone), 2),
    }


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """One row: rounds of the package alone and of ours, in turn.

    Raises:
        SystemExit: the two are not paid the same for the same acts.
    """
    with _suite(case) as suite_name:
        suite, package = get_suite(suite_name), suite_name.partition(":")[0]
        env, load = make(suite.env), os.getloadavg()[0]
        assert isinstance(env, ForeignEnv)
        program = env.program()
        asked = WorldProgram(program.python, str(ALONE), program.start, program.deadline)
        live, stock = LiveWorld(asked), LiveWorld(asked)
        with contextlib.closing(env), contextlib.closing(live), contextlib.closing(stock):
            tasks = [suite_task(suite, Split.TEST, index) for index in range(case.episodes)]
            episodes = [record(env, case, task) for task in tasks]
            play_alone(live, package, episodes[:1])
            pairs: list[tuple[Played, Played]] = []
            stocked: list[Played] = []
            for _ in range(rounds):
                pairs.append((play_alone(live, package, episodes), play_ours(env, episodes)))
                stocked += [play_alone(stock, case.stock, episodes)] if case.stock else []
            if any(alone.paid != ours.paid for alone, ours in pairs):
                raise SystemExit(f"{case.suite}: alone {pairs[0][0].paid}, ours {pairs[0][1].paid}")
            megabytes = (Processes(live.pid or 0).megabytes(), Processes(_pid(env)).megabytes())
            forked = forks(env, live, package, episodes[-1])
    steps = sum(len(episode.acts) for episode in episodes)
    return {
        **row_of(pairs, steps, len(episodes)), **stock_of(stocked, steps, len(episodes)), **forked, "alone_mb": round(megabytes[0], 1), "ours_mb": round(megabytes[1], 1),
        "rounds": rounds, "paid": round(sum(pairs[0][0].paid), 3), "load_before": round(load, 1),
    }  # fmt: skip


def row_of(pairs: Sequence[tuple[Played, Played]], steps: int, episodes: int) -> dict[str, Any]:
    """Medians over rounds; an adapter keeps its bound by processor seconds, which a busy machine leaves as they are."""
    row: dict[str, Any] = {"episodes": episodes, "steps": steps}
    for part, count in (("steps", steps), ("resets", episodes)):
        for kind in ("wall", "cpu"):
            alone = [getattr(getattr(one, part), kind) / count for one, _ in pairs]
            ours = [getattr(getattr(two, part), kind) / count for _, two in pairs]
            ratios = [b / a for a, b in zip(alone, ours, strict=True)]
            name = f"{part[:-1]}_{kind}"
            row |= {
                f"{name}_alone_ms": round(1e3 * statistics.median(alone), 4),
                f"{name}_ours_ms": round(1e3 * statistics.median(ours), 4),
                f"{name}_more_ms": round(
                    1e3 * statistics.median(b - a for a, b in zip(alone, ours, strict=True)), 4
                ),
                f"{name}_ratio": round(statistics.median(ratios), 3),
                f"{name}_spread": round(max(ratios) - min(ratios), 3),
            }
    row["steps_s_alone"] = round(1e3 / row["step_wall_alone_ms"], 1)
    row["steps_s_ours"] = round(1e3 / row["step_wall_ours_ms"], 1)
    row["within"] = row["step_cpu_ratio"] <= 1 + BOUND or row["step_cpu_more_ms"] <= LEAST_MS
    return row


def stock_of(played: Sequence[Played], steps: int, episodes: int) -> dict[str, float]:
    """The package as it is installed, in ms; nothing where that is what is measured anyway."""
    if not played:
        return {}
    step, reset = (
        statistics.median(getattr(one, part).cpu / count for one in played)
        for part, count in (("steps", steps), ("resets", episodes))
    )
    return {"step_cpu_stock_ms": round(1e3 * step, 4), "reset_cpu_stock_ms": round(1e3 * reset, 4)}


@contextlib.contextmanager
def _suite(case: Case) -> Iterator[str]:
    """The suite as it is made: OpenEnv needs a server of ours meanwhile, verifiers a package of ours and the command that plays it."""
    world = case.suite.partition(":")[0]
    with contextlib.ExitStack() as opened:
        if world == "openenv":
            yield f"openenv:{opened.enter_context(_served(case.ours))}"
        elif world == "verifiers":
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
            write_verifiers_package(case.ours, folder / "package", _PACKED)
            _command(folder / "bin")
            yield f"verifiers:{folder / 'package'}"
        else:
            yield case.suite


@contextlib.contextmanager
def _served(suite: str) -> Iterator[str]:
    command = [sys.executable, "-m", "turnwise", "serve-openenv", suite, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            yield next(line for line in server.stderr if line.startswith("ready: ")).split()[1]
        finally:
            server.terminate()


def _command(folder: Path) -> None:
    """Put a `turnwise` that is this one first on the path of all processes to come."""
    folder.mkdir()
    path = os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))
    (folder / "turnwise").write_text(
        f'#!/bin/sh\nPYTHONPATH="{path}" exec {sys.executable} -m turnwise "$@"\n'
    )
    (folder / "turnwise").chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def _pid(env: ForeignEnv) -> int:
    return env.borrowed().pid or 0


def kept() -> dict[str, Any]:
    return json.loads(FILE.read_text("utf-8")) if FILE.is_file() else {"suites": {}, "not_run": {}}


def keep(suite: str, row: Mapping[str, Any] | str) -> None:
    """Put a row, or the reason why there is none, in the place of an older one."""
    found = kept()
    if isinstance(row, str):
        found["not_run"][suite] = row
    else:
        found["not_run"].pop(suite, None)
        found["suites"][suite] = {**row, "date": str(datetime.date.today()), "commit": _commit()}
    found["suites"] = dict(sorted(found["suites"].items()))
    FILE.write_text(json.dumps({"machine": describe(), **found}, indent=1) + "\n", "utf-8")


def _commit() -> str:
    said = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return said.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="*")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    ready = {world.name: world for world in named.worlds() if world.ready and not world.needs}
    for case in CASES:
        world = case.suite.partition(":")[0]
        if given.suites and case.suite not in given.suites:
            continue
        if world not in ready:
            keep(case.suite, f"its world is not on this machine: turnwise worlds add {world}")
            continue
        row = measure(case, given.rounds)
        keep(case.suite, row)
        print(case.suite, json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
