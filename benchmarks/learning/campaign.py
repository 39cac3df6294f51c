"""A campaign: method × setting × seed, cell by cell, within a budget of machine-hours; it goes on where it stopped.

    python benchmarks/learning/campaign.py screen benchmarks/learning/plans/shop-short.yaml --budget 2.5
    python benchmarks/learning/campaign.py confirm benchmarks/learning/plans/shop-short.yaml --budget 2.5
    python benchmarks/learning/campaign.py report benchmarks/learning/plans/shop-short.yaml

``screen`` trains every method with few seeds; ``confirm`` trains with more of them what the screen did not exclude to be
better than the setting's base; ``report`` writes the table, in which a cell that was not run says so. A cell is a run's
folder under ``--runs``, resumed by the same command, and one committed JSON file under ``--cells``. Machine-hours are
hours by the clock in which one cell had the machine. Ctrl-C, a spent budget and even a kill lose nothing but the update
that was being made.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from campaigning.carry_out import (
    FAILED,
    REFUSED,
    REFUSED_CODE,
    STOPPED,
    Sessions,
    carry_out,
    command_of,
    hear_interrupts,
    train_cell,
)
from campaigning.cells import read_cell, write_cell
from campaigning.plan import START, Cell, Plan, read_plan, start_of
from campaigning.table import CONFIRM, SCREEN, choices, write_report

from turnwise.errors import NotFoundError, RecipeError, TurnwiseError

HERE = Path(__file__).resolve().parent
_PAUSED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    options = read_options(arguments)
    try:
        plan = read_plan(options.plan)
        if options.stage == "one":
            return train_cell(plan, Cell(options.setting, options.method, options.seed), options.runs)
        if options.stage == "report":
            print(write_report(plan, options.plan.stem, options.cells, options.into))
            return 0
        waiting = cells_of(plan, options.stage, options.cells, options.setting)
        return run_all(plan, waiting, options)
    except TurnwiseError as error:
        print(f"{error.cause}\n→ {error.remedy}", file=sys.stderr)
        return REFUSED_CODE if isinstance(error, RecipeError) else 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        return _PAUSED


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    stages = parser.add_subparsers(dest="stage", required=True)
    for name, about in (
        (SCREEN, "train every method with few seeds"),
        (CONFIRM, "train with more seeds what the screen left"),
        ("report", "write the table"),
        ("one", "train one cell in this process"),
    ):
        stage = stages.add_parser(name, help=about)
        stage.add_argument("plan", type=Path)
        if name == "one":
            stage.add_argument("setting")
            stage.add_argument("method")
            stage.add_argument("seed", type=int)
        stage.add_argument("--runs", type=Path, help="where runs go; runs/PLAN unless given")
        stage.add_argument("--cells", type=Path, default=HERE / "cells", help="where results are committed")
        if name in (SCREEN, CONFIRM):
            stage.add_argument(
                "--budget", type=float, default=float("inf"), help="machine-hours of this call"
            )
            stage.add_argument("--retry", action="store_true", help="run again what failed")
            stage.add_argument("--setting", action="append", help="this setting alone; may be repeated")
        stage.add_argument("--into", type=Path, help="the report's files without their ending")
    options = parser.parse_args(arguments)
    options.runs = options.runs or Path("runs") / options.plan.stem
    options.into = options.into or HERE / options.plan.stem
    return options


def cells_of(plan: Plan, stage: str, cells: Path, only: Sequence[str] | None = None) -> list[Cell]:
    """The cells of a stage, seed by seed, so that a spent budget leaves comparable ones.

    Args:
        only: settings to play. Processes that play different settings share a folder of runs.

    Raises:
        TurnwiseError: a setting is unknown, or was not screened yet and is to be confirmed.
    """
    found: list[Cell] = []
    for name in only or ():
        if name not in plan.settings:
            raise NotFoundError("setting", name, plan.settings)
    for setting in only or plan.settings:
        methods, seeds = plan.methods_of(setting), plan.screen.seeds
        if stage == CONFIRM:
            chosen = choices(plan, setting, cells)
            if not chosen:
                print(f"{setting} is not screened yet, and left out", file=sys.stderr)
                continue
            methods, seeds = [c.method for c in chosen if c.confirmed], plan.confirm.seeds
        found += [Cell(setting, START, 0)] if plan.settings[setting].shared_start else []
        found += [Cell(setting, method, seed) for seed in seeds for method in methods]
    if stage == CONFIRM and not found:
        raise TurnwiseError("No setting is screened yet.", "Run `campaign.py screen` with this plan first.")
    return found


def run_all(plan: Plan, waiting: Sequence[Cell], options: argparse.Namespace) -> int:
    """Carry out what has no result yet, until the budget is spent."""
    hear_interrupts()
    began = time.monotonic()
    for cell in waiting:
        known = read_cell(plan, cell, options.cells)
        if (
            known is not None
            and not (known["failed"] and options.retry)
            and not lacks_start(plan, cell, waiting, options)
        ):
            continue
        left = options.budget * 3600 - (time.monotonic() - began)
        if left <= 0:
            return _paused(cell)
        ended = carry_out(cell, command_of(options.plan, cell, options.runs), options.runs, left)
        folder = cell.folder(options.runs)
        print(f"{cell}: {ended} after {Sessions(folder).seconds:.0f} s in all", flush=True)
        if ended == STOPPED:
            return _paused(cell)
        failed = last_words(folder) if ended in (FAILED, REFUSED) else ""
        if ended == REFUSED:
            raise TurnwiseError(f"The recipe of {cell} is refused: {failed}", "Repair the plan and go on.")
        if failed and cell.method == START:
            raise TurnwiseError(f"The start of {cell.setting} failed: {failed}", "Repair it and go on.")
        if known is None or known["failed"]:  # a start that was made again has its result
            write_cell(plan, cell, options.runs, options.cells, failed)
    return 0


def lacks_start(plan: Plan, cell: Cell, waiting: Sequence[Cell], options: argparse.Namespace) -> bool:
    """Whether a cell is a start that others are yet to begin from, and whose model is not here: results are committed, models are
    not. Made again on another kind of processor, it may differ in the last bits of its weights."""
    others = (one for one in waiting if one.setting == cell.setting and one.method != START)
    return (
        cell.method == START
        and not start_of(cell.setting, options.runs).is_dir()
        and any(read_cell(plan, one, options.cells) is None for one in others)
    )


def _paused(cell: Cell) -> int:
    print(f"the budget is spent before {cell} is done; the same command goes on", file=sys.stderr)
    return _PAUSED


def last_words(folder: Path) -> str:
    """Why a run failed: the end of its log."""
    lines = folder.with_name(f"{folder.name}.log").read_text("utf-8", errors="replace").strip().splitlines()
    said = [line for line in lines if not line.startswith("→")]
    return said[-1][:300] if said else "it said nothing"


if __name__ == "__main__":
    sys.exit(main())
