"""The verbs of those who add something: check, new-part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from turnwise.cli.answer import VerbResult
from turnwise.cli.environments import show_card

if TYPE_CHECKING:
    from turnwise.console import SafeConsole
    from turnwise.registry import Component
    from turnwise.requirements import ComponentReport


def check(what: str, /, *, tasks: int = 0, quick: bool = False) -> VerbResult:
    """Test an environment against each requirement of the contract (E1-E9), or a component against what its kind requires.

    For example: `turnwise check my_env.py --tasks 20`.

    Args:
        what: An environment's id (turnwise/Shop-v0), a suite (harbor:FOLDER), a component (credit/grpo, engine/torch, ...), or where either is
            written, installed or not: path/to/file.py, path/to/file.py:Name or module:Name.
        tasks: Environments: how many tasks of each split the gold script and the trivial baselines play; without it
            50, or 10 where a browser or a sandbox takes its time.
        quick: Environments: play one task where the whole check plays several, and say what was left out.
    """
    found = _components(what)
    return _check_components(found) if found else _check_env(what, tasks, quick)


def _components(what: str) -> list[Component]:
    """The components that are meant; none where it is an environment."""
    from turnwise.envs.registry import is_suite
    from turnwise.envs.sources import environments_in, is_source, module_at
    from turnwise.kinds import KINDS
    from turnwise.registry import components_in, get_component

    kind, _, name = what.partition("/")
    if kind in KINDS and name:
        return [get_component(kind, name)]
    if not is_source(what) or is_suite(what):
        return []
    where, _, wanted = what.rpartition(":") if not what.endswith(".py") else (what, "", "")
    module = module_at(where)
    if wanted in environments_in(module) or (not wanted and environments_in(module)):
        return []
    target = getattr(module, wanted, None)
    return [entry for entry in components_in(module) if not wanted or entry.target is target]


def _check_components(found: Sequence[Component]) -> VerbResult:
    from turnwise.cli.progress import ProgressLine
    from turnwise.requirements import check_component

    reports: list[ComponentReport] = []
    with ProgressLine("check", len(found)) as progress:
        for entry in found:
            reports.append(check_component(entry))
            progress.advance()
    ok = all(report.ok for report in reports)
    value = {"ok": ok, "components": [report.to_json() for report in reports]}

    def show(console: SafeConsole) -> None:
        for report in reports:
            _show_report(console, report)

    return VerbResult(value, show, code=0 if ok else 1)


def _show_report(console: SafeConsole, report: ComponentReport) -> None:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    marks = {True: Text("✓", "green"), False: Text("✗", "red"), None: Text("–", "yellow")}
    card = Table(box=None, show_header=False, padding=(0, 1))
    for name, result in report.results.items():
        card.add_row(marks[result.ok], name, result.detail)
    verdict = ("does what is required", "green") if report.ok else ("does not do what is required", "red")
    title = Text.assemble(f"{report.kind}/{report.name} ({report.package}) ", verdict)
    console.print(Panel(card, title=title, title_align="left"))


def _check_env(name: str, tasks: int, quick: bool) -> VerbResult:
    from turnwise.cli.progress import ProgressLine
    from turnwise.envs.check.command import REQUIREMENTS, check_env

    with ProgressLine(f"check {name}", len(REQUIREMENTS)) as progress:
        report = check_env(name, tasks=tasks, quick=quick, on_requirement=progress.advance)
    return VerbResult(
        report.to_json(), lambda console: show_card(console, report), code=0 if report.ok else 1
    )


def new_part(kind: str, name: str, /, *, out: Path = Path()) -> VerbResult:
    """Start a package of your own with a component that passes `turnwise check`.

    For example: `turnwise new-part credit my-rule`.

    Args:
        kind: What it is: credit, loss, engine, policy, ... (`turnwise list`).
        name: Under which it is found, such as my-rule.
        out: The folder in which the package's folder is made.
    """
    from turnwise.scaffold import scaffold_part

    made, written = scaffold_part(kind, name, out)
    root = out / made.distribution

    def show(console: SafeConsole) -> None:
        for path in written:
            console.print(f"wrote {path}")
        console.print(f"Next: pip install -e {root} && turnwise check {kind}/{made.name}")

    value = {
        "name": made.distribution,
        "component": f"{kind}/{made.name}",
        "files": [str(p) for p in written],
    }
    return VerbResult(value, show)


VERBS: dict[str, Callable[..., VerbResult]] = {"check": check, "new-part": new_part}
