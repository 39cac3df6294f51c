"""The commands about this machine: bench, doctor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from turnwise.cli.answer import Json, VerbResult, table

if TYPE_CHECKING:
    from turnwise.console import SafeConsole
    from turnwise.envs.bench.memory import BenchmarkFigure
    from turnwise.tools.sandbox.bench import SandboxFigure

    MeasuredFigure = BenchmarkFigure | SandboxFigure


_BENCHMARKS = (
    "env", "rollout", "client", "env-workers", "gateway", "sandbox", "train", "update", "prefix", "async",
    "credit",
)  # fmt: skip


_OF_A_MODEL = ("rollout", "train", "update")


def bench(what: str, name: str = "", /, *, model: str = "", concurrency: int = 0) -> VerbResult:
    """Measure how fast something is here, each figure with its spread.

    For example: `turnwise bench env turnwise/Shop-v0`.

    Args:
        what: env (with the environment's id), rollout, client, env-workers, gateway, sandbox (with a backend, or all), train, update
            and prefix (with a run, of its last update too), async or credit.
        name: The environment's id, such as turnwise/Shop-v0, the backend, or the run.
        model: The model that rollout plays, train learns, and update does both with, such as smollm2 or a folder. A tiny one with
            random weights unless given.
        concurrency: Episodes that rollout plays at once with a model: 64 unless given.
    """
    from turnwise.errors import TurnwiseError
    from turnwise.machine import describe

    if concurrency and not (what == "rollout" and model and concurrency > 0):
        raise TurnwiseError(
            "--concurrency is the episodes at once of `bench rollout` with a model.",
            "turnwise bench rollout --model smollm2 --concurrency 256",
        )
    if model and what not in _OF_A_MODEL:
        raise TurnwiseError(f"`bench {what}` takes no model.", "turnwise bench rollout --model smollm2")
    figures = _measured(what, name, model, concurrency)
    machine = describe()
    rows: dict[str, Json] = {key: dict(figure._asdict()) for key, figure in figures.items()}
    value = {
        "name": " ".join(
            filter(None, (what, name, model, f"--concurrency {concurrency}" if concurrency else ""))
        ),
        "machine": machine,
        "figures": rows,
    }

    def show(console: SafeConsole) -> None:
        table([{"figure": key, **row} for key, row in rows.items()])(console)
        console.print(", ".join(f"{key} {said}" for key, said in machine.items() if said), style="dim")

    return VerbResult(value, show)


def _measured(what: str, name: str, model: str, concurrency: int) -> Mapping[str, MeasuredFigure]:
    """Run a benchmark.

    Raises:
        NotFoundError: there is none of this name.
    """
    from turnwise.agents.models.finding import find_model
    from turnwise.errors import NotFoundError, TurnwiseError

    match what:
        case "env":
            if not name:
                raise TurnwiseError("Which environment?", "turnwise bench env turnwise/Shop-v0")
            from turnwise.envs.bench.memory import bench_env

            return bench_env(name)
        case "rollout":
            from turnwise.agents.bench.rollout import bench_rollout, of_a_model

            if model:
                load = of_a_model(concurrency or 64)
                return bench_rollout(repeats=3, workload=load, engines=(), model=find_model(model))
            return bench_rollout()
        case "client":
            from turnwise.agents.bench.client import bench_client

            return bench_client()
        case "env-workers":
            from turnwise.agents.bench.workers import bench_workers

            return bench_workers()
        case "gateway":
            from turnwise.agents.bench.gateway import bench_gateway

            return bench_gateway()
        case "sandbox":
            from turnwise.tools.sandbox.bench import bench_sandboxes

            return bench_sandboxes([name] if name else ())
        case "train":
            from turnwise.trainers.bench.train import bench_train, of_a_model

            if model:
                return bench_train(repeats=3, workload=of_a_model(find_model(model)))
            return bench_train()
        case "update":
            from turnwise.trainers.bench.update import bench_update, of_a_model

            if model:
                return bench_update(name, workload=of_a_model(find_model(model)))
            return bench_update(name)
        case "prefix":
            from turnwise.trainers.bench.prefix import bench_prefix

            return bench_prefix(name)
        case "async":
            from turnwise.trainers.bench.overlap import bench_overlap

            return bench_overlap()
        case "credit":
            from turnwise.trainers.bench.credit import bench_credit

            return bench_credit()
        case _:
            raise NotFoundError("benchmark", what, _BENCHMARKS)


def doctor() -> VerbResult:
    """Say what this machine has and lacks, and how to get it.

    For example: `turnwise doctor`.
    """
    from turnwise.doctor import Finding, examine

    findings = examine()
    sick = [finding for finding in findings if finding.needed and not finding.ok]

    def show(console: SafeConsole) -> None:
        for heading, group in groupby(findings, key=lambda finding: finding.group):
            console.print(heading, style="bold")
            for finding in group:
                _show(console, finding)
        console.print("Something is missing." if sick else "Ready.", style="red" if sick else "green")

    def _show(console: SafeConsole, finding: Finding) -> None:
        mark, style = ("✓", "green") if finding.ok else ("✗", "red") if finding.needed else ("–", "yellow")
        remedy = f"\n    → {finding.remedy}" if finding.remedy else ""
        console.print(mark, style=style, end="")
        console.print(f" {finding.name:11} {finding.detail}{remedy}")

    value = {"ok": not sick, "findings": [finding.to_json() for finding in findings]}
    return VerbResult(value, show, code=1 if sick else 0)


VERBS: dict[str, Callable[..., VerbResult]] = {"bench": bench, "doctor": doctor}
