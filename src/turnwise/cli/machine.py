"""The verbs about this machine: bench, doctor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from turnwise.cli.answer import Answer, Json, table

if TYPE_CHECKING:
    from rich.console import Console


def bench(what: str, name: str = "", /) -> Answer:
    """Measure how fast something is here, each figure with its spread.

    Args:
        what: env (with the environment's id), rollout, sandbox (with a back end, or all), train or credit.
        name: The environment's id, such as turnwise/Shop-v0, or the back end.
    """
    from turnwise.errors import NotFoundError, TurnwiseError
    from turnwise.machine import describe

    match what:
        case "env":
            if not name:
                raise TurnwiseError("Which environment?", "turnwise bench env turnwise/Shop-v0")
            from turnwise.envs.bench import bench_env

            figures = bench_env(name)
        case "rollout":
            from turnwise.agents.bench import bench_rollout

            figures = bench_rollout()
        case "sandbox":
            from turnwise.tools.sandbox.bench import bench_sandboxes

            figures = bench_sandboxes([name] if name else ())
        case "train":
            from turnwise.trainers.bench import bench_train

            figures = bench_train()
        case "credit":
            from turnwise.trainers.bench_credit import bench_credit

            figures = bench_credit()
        case _:
            raise NotFoundError("benchmark", what, ("env", "rollout", "sandbox", "train", "credit"))
    machine = describe()
    rows: dict[str, Json] = {key: dict(figure._asdict()) for key, figure in figures.items()}
    value = {"name": f"{what} {name}".strip(), "machine": machine, "figures": rows}

    def show(console: Console) -> None:
        table([{"figure": key, **row} for key, row in rows.items()])(console)
        console.print(", ".join(f"{key} {said}" for key, said in machine.items() if said), style="dim")

    return Answer(value, show)


def doctor() -> Answer:
    """Say what this machine has and lacks, and how to get it."""
    from turnwise.doctor import Finding, examine

    findings = examine()
    sick = [finding for finding in findings if finding.needed and not finding.ok]

    def show(console: Console) -> None:
        for finding in findings:
            console.print(_line(finding))
        console.print("Something is missing." if sick else "Ready.", style="red" if sick else "green")

    def _line(finding: Finding) -> str:
        from rich.markup import escape

        mark = (
            "[green]✓[/green]" if finding.ok else "[red]✗[/red]" if finding.needed else "[yellow]–[/yellow]"
        )
        remedy = f"\n    → {finding.remedy}" if finding.remedy else ""
        return f"{mark} {finding.name:9} {escape(finding.detail)}{escape(remedy)}"

    value = {"ok": not sick, "findings": [finding.to_json() for finding in findings]}
    return Answer(value, show, code=1 if sick else 0)


VERBS: dict[str, Callable[..., Answer]] = {"bench": bench, "doctor": doctor}
