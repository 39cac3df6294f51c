"""What a campaign has found so far: Markdown, JSON and a picture for each setting; what was not run says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from campaigning.cells import candidate, read_cell
from campaigning.plan import START, Cell, Plan
from campaigning.told import told
from turnwise.agents.evaluation.comparison import p_text
from turnwise.agents.evaluation.statistics import Estimate
from turnwise.agents.evaluation.summary import percent
from turnwise.durable import write_whole
from turnwise.trainers.compare.candidates import Candidate, Contender, Measure
from turnwise.trainers.compare.comparison import Comparison, Contrast, MeasureComparison, compare_contenders
from turnwise.trainers.compare.plots import write_plot
from turnwise.trainers.compare.table import points, points_interval, share_interval

SCREEN, CONFIRM = "screen", "confirm"
NOT_RUN = "not run"
_TIMED = (
    "Seconds are those at work on updates (playing, learning, publishing, validating); starts, warm starts and the time "
    "between two sessions are left out."
)


class Choice(NamedTuple):
    """What screening says of a method."""

    method: str
    confirmed: bool
    why: str


class Block(NamedTuple):
    """One stage of one setting: the cells that there are, and the comparison of those that are whole."""

    stage: str
    seeds: Sequence[int]
    states: Mapping[str, Sequence[str]]  # method → what its cells say: "", "not run", "failed: …"
    comparison: Comparison | None
    alone: Mapping[
        str, str
    ] = {}  # method → success before and after, seed by seed, where there is nothing to compare with
    told: Sequence[Mapping[str, str]] = ()  # what else the plan asks, a row for each method


def block(plan: Plan, setting: str, stage: str, cells: Path) -> Block:
    """A stage with all methods that belong to it; only methods with every seed of the stage are compared."""
    seeds = plan.screen.seeds if stage == SCREEN else plan.confirm.seeds
    methods = plan.methods_of(setting)
    if stage == CONFIRM:
        chosen = {choice.method for choice in choices(plan, setting, cells) if choice.confirmed}
        begun = {m for m in methods if any(read_cell(plan, Cell(setting, m, s), cells) for s in _more(plan))}
        methods = [m for m in methods if m == methods[0] or m in chosen or m in begun]
    found = {m: [read_cell(plan, Cell(setting, m, seed), cells) for seed in seeds] for m in methods}
    states = {m: [_state(data) for data in rows] for m, rows in found.items()}
    whole = [m for m in methods if not any(states[m])]
    comparison, others = None, methods
    if methods[0] in whole and len(whole) > 1:
        sides = _alike([Contender(m, tuple(_sides(plan, found[m]))) for m in whole])
        others = [m for m in whole if m not in {side.label for side in sides}]
        comparison = compare_contenders(sides) if len(sides) > 1 else None
    alone = {m: _alone(seeds, found[m]) for m in (methods if comparison is None else others)}
    return Block(stage, seeds, states, comparison, alone, told(plan, found))


def _alike(sides: Sequence[Contender]) -> list[Contender]:
    """The base, and those that were evaluated on what it was, without curves that are of other suites than its own."""
    base, *others = sides
    of = base.members[0].dev
    found = [side for side in others if {*side.measures} & {*base.measures}]
    return [base, *(_without_other_curves(side, of) for side in found)]


def _without_other_curves(side: Contender, of: Measure | None) -> Contender:
    members = (one if one.dev == of else replace(one, curve=()) for one in side.members)
    return Contender(side.label, tuple(members))


def _sides(plan: Plan, rows: Sequence[dict[str, Any] | None]) -> Iterator[Candidate]:
    return (candidate(data, wall_time=plan.wall_time) for data in rows if data)


def _alone(seeds: Sequence[int], rows: Sequence[Mapping[str, Any] | None]) -> str:
    """Test success of each seed, before and after, in the modes that were judged."""
    told: list[str] = []
    for seed, data in zip(seeds, rows, strict=True):
        if data is None or data["failed"]:
            continue
        found: dict[Measure, list[str]] = {}
        for row in data["evaluations"]:
            of = Measure(row["suite"], row["split"], row["mode"])
            found.setdefault(of, []).append(percent(row["success"]))
        several = len({measure.suite for measure in found}) > 1
        figures = [f"{_heading(of, several)} {' → '.join(shares)}" for of, shares in found.items()]
        told.append(f"seed {seed}: {', '.join(figures)} ({60 * data['machine_hours']:.1f} min)")
    return "; ".join(told)


def choices(plan: Plan, setting: str, cells: Path) -> list[Choice]:
    """Which methods are to be confirmed: not excluded to be better than the base and among the best so far, or asked for.

    Empty as long as the screen lacks a cell that has not failed.
    """
    screened = block(plan, setting, SCREEN, cells)
    base, *methods = screened.states
    waiting = [m for m, states in screened.states.items() if NOT_RUN in states]
    if waiting or screened.comparison is None:
        return []
    contrasts = {contrast.other: contrast for contrast in screened.comparison.measures[0].contrasts}
    ranked = sorted(contrasts.values(), key=lambda c: -c.difference.difference)
    open_ones = [c.other for c in ranked if c.difference.interval.high > 0]
    found = [Choice(base, True, "the base")]
    for method in methods:
        if method in plan.confirm.also:
            found.append(Choice(method, True, "the plan asks for it"))
            continue
        if screened.alone.get(method):
            found.append(Choice(method, False, f"evaluated on nothing that {base} was"))
            continue
        if method not in contrasts:
            found.append(Choice(method, False, "its run failed"))
            continue
        interval = points_interval(contrasts[method].difference.interval)
        if method not in open_ones:
            found.append(Choice(method, False, f"excluded to be better than {base}: {interval} points"))
        elif open_ones.index(method) >= plan.confirm.top:
            found.append(Choice(method, False, f"not among the best {plan.confirm.top}: {interval} points"))
        else:
            found.append(Choice(method, True, f"not excluded to be better than {base}: {interval} points"))
    return found


def so_far(plan: Plan, setting: str, cells: Path) -> tuple[int, int, str]:
    """Of the screen of a setting: how many cells were run, of how many, and what they say, the base first."""
    one = block(plan, setting, SCREEN, cells)
    states = [state for every in one.states.values() for state in every]
    said = [f"`{method}` {_shortly(one, method)}" for method in one.states]
    waiting = [
        f"`{method}`" for method, every in one.states.items() if all(state == NOT_RUN for state in every)
    ]
    if len(waiting) == len(one.states):
        return 0, len(states), NOT_RUN
    told = [line for line, method in zip(said, one.states, strict=True) if f"`{method}`" not in waiting]
    return (
        sum(state != NOT_RUN for state in states),
        len(states),
        "; ".join([*told, *([f"{', '.join(waiting)} {NOT_RUN}"] if waiting else [])]),
    )


def _shortly(one: Block, method: str) -> str:
    """A method's success after training, sampled, and its difference from the base, or why there is none."""
    failed = [state for state in one.states[method] if state]
    if failed:
        return failed[0]
    if one.comparison is None:
        return one.alone[method]
    measure = one.comparison.measures[0]
    standing = next(standing for standing in measure.standings if standing.label == method)
    contrast = next((c for c in measure.contrasts if c.other == method), None)
    if contrast is None:
        return percent(standing.success.mean)
    found = contrast.difference
    verdict = "significant" if contrast.significant else "not significant"
    return f"{points(found.difference)} points [{points_interval(found.interval)}], {verdict}"


def write_report(plan: Plan, name: str, cells: Path, into: Path) -> str:
    """Write ``into``.md, .json and a picture for each setting that has one; returns the Markdown."""
    lines = [f"# {name}", "", plan.about.strip(), ""]
    data: dict[str, Any] = {"name": name, "about": plan.about, "settings": {}}
    for setting in plan.settings:
        blocks = [block(plan, setting, stage, cells) for stage in (SCREEN, CONFIRM)]
        chosen = choices(plan, setting, cells)
        lines += [f"## {setting}", "", _about(plan, setting), ""]
        for one in blocks if _more(plan) else blocks[:1]:  # where no seed is left, the screen says all
            lines += [*_section(one, chosen if _more(plan) else ()), ""]
        lines += [_made_on(plan, setting, cells), ""]
        drawn = next((one.comparison for one in reversed(blocks) if one.comparison), None)
        if drawn is not None:
            picture = write_plot(drawn, into.with_name(f"{into.name}-{setting}.svg"))
            lines += [f"![learning curves and differences]({picture.name})", ""]
        data["settings"][setting] = {
            "choices": [choice._asdict() for choice in chosen],
            **{one.stage: _as_data(one) for one in blocks},
        }
    text = "\n".join(lines).rstrip() + "\n"
    into.parent.mkdir(parents=True, exist_ok=True)
    write_whole(into.with_name(f"{into.name}.md"), text)
    write_whole(into.with_name(f"{into.name}.json"), json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    return text


def _more(plan: Plan) -> list[int]:
    return [seed for seed in plan.confirm.seeds if seed not in plan.screen.seeds]


def _state(data: Mapping[str, Any] | None) -> str:
    if data is None:
        return NOT_RUN
    return f"failed: {data['failed'].rstrip('.')}" if data["failed"] else ""


def _about(plan: Plan, setting: str) -> str:
    asked = plan.settings[setting]
    changes = ", ".join(f"`{key}: {value}`" for key, value in asked.changes.items())
    start = " Every method begins from one common warm start." if asked.shared_start else ""
    placed = "".join(
        f" `{m}` runs on `{plan.placement[m]}`." for m in plan.methods_of(setting) if m in plan.placement
    )
    timed = f" {_TIMED}" if plan.wall_time else ""
    return f"Recipe `{asked.recipe}`{f' with {changes}' if changes else ''}; base `{asked.base}`.{start}{placed}{timed}"


def _section(one: Block, chosen: Sequence[Choice]) -> list[str]:
    title = {SCREEN: "Screened", CONFIRM: "Confirmed"}[one.stage]
    over = "tasks: nothing is said of other seeds" if len(one.seeds) < 2 else "seeds"
    seeds = ", ".join(map(str, one.seeds))
    lines = [f"**{title}** with seed{'s' if len(one.seeds) > 1 else ''} {seeds}; intervals over {over}.", ""]
    measures = one.comparison.measures if one.comparison else ()
    costs = one.comparison.costs if one.comparison else ()
    headings = ["method"]
    several = len({measure.measure.suite for measure in measures}) > 1
    for measure in measures:
        headings += [f"{_heading(measure.measure, several)}: before", "after", "minus base"]
    headings += [f"dev at {cost.budget:,.0f} {cost.unit}" for cost in costs] or ["result"]
    lines += [_row(headings), _row(["---"] * len(headings))]
    for method, states in one.states.items():
        said = "; ".join(f"seed {s}: {state}" for s, state in zip(one.seeds, states, strict=True) if state)
        if all(state == NOT_RUN for state in states):
            said = NOT_RUN
        if one.comparison is None:
            cells = ["; ".join(filter(None, (one.alone[method], said)))]
        else:
            said = said or one.alone.get(method, "")
            cells = [said] + [""] * (len(headings) - 2) if said else _cells(one, method)
        lines.append(_row([f"`{method}`", *cells]))
    if one.told:
        lines += ["", _row(list(one.told[0])), _row(["---"] * len(one.told[0]))]
        lines += [_row(list(row.values())) for row in one.told]
    if one.stage == SCREEN and chosen:
        lines += [
            "",
            *(f"- `{c.method}` is {'' if c.confirmed else 'not '}to be confirmed: {c.why}." for c in chosen),
        ]
    if one.comparison is not None and one.comparison.notes:
        lines += ["", *(f"- {note}." for note in one.comparison.notes)]
    return lines


def _heading(measure: Measure, several: bool) -> str:
    """The mode, and the suite where there are several."""
    return f"{measure.suite} {measure.mode}" if several else measure.mode


def _cells(one: Block, method: str) -> list[str]:
    comparison = one.comparison
    assert comparison is not None
    cells: list[str] = []
    for measure in comparison.measures:
        cells += _measured(measure, method)
    for cost in comparison.costs:
        standing = next((s for s in cost.standings if s.label == method), None)
        cells.append(
            _estimate(standing.success) if standing and standing.success else "not validated by then"
        )
    return cells


def _measured(measure: MeasureComparison, method: str) -> list[str]:
    standing = next((s for s in measure.standings if s.label == method), None)
    if standing is None:
        return ["–", "–", "–"]
    contrast = next((c for c in measure.contrasts if c.other == method), None)
    before = percent(standing.before.mean) if standing.before else "–"
    return [before, _estimate(standing.success), _difference(contrast) if contrast else "(base)"]


def _estimate(estimate: Estimate) -> str:
    return f"{percent(estimate.mean)} [{share_interval(estimate)}]"


def _difference(contrast: Contrast) -> str:
    difference = contrast.difference
    verdict = "significant" if contrast.significant else "not significant"
    return (
        f"{points(difference.difference)} [{points_interval(difference.interval)}], {verdict} "
        f"({difference.method}, Holm: {p_text(contrast.adjusted_p)})"
    )


def _made_on(plan: Plan, setting: str, cells: Path) -> str:
    """Machine, load and hours of all cells of a setting."""
    every = sorted({*plan.screen.seeds, *plan.confirm.seeds})
    named = [Cell(setting, START, 0)] if plan.settings[setting].shared_start else []
    named += [Cell(setting, method, seed) for method in plan.methods_of(setting) for seed in every]
    found = [data for cell in named if (data := read_cell(plan, cell, cells)) is not None]
    if not found:
        return f"No cell of {setting} was run."
    machines = dict.fromkeys(f"{d['machine']['cpu']}, {d['machine']['cores']} cores" for d in found)
    sessions = [session for data in found for session in data["sessions"]]
    loads = [session["load_during"]["mean"] for session in sessions if session["load_during"]["samples"]]
    before = [session["load_before"][0] for session in sessions]
    hours = sum(data["machine_hours"] for data in found)
    timed = [session["cpu_seconds"] for session in sessions if "cpu_seconds" in session]
    cpu = f" ({sum(timed):,.0f} CPU-seconds in {len(timed)} of the sessions)" if timed else ""
    plans = ", ".join(dict.fromkeys(f"`{data['plan']}`" for data in found if "plan" in data))
    planned = f"; plan {plans}, now `{plan.hash}`" if plans else ""
    commits = ", ".join(dict.fromkeys(f"`{session['commit']}`" for session in sessions))
    return (
        f"{len(found)} cells in {len(sessions)} sessions, {hours:.2f} machine-hours{cpu} on {'; '.join(machines)}; load before "
        f"{min(before):.1f} to {max(before):.1f}, during {min(loads):.1f} to {max(loads):.1f}; commit {commits}{planned}."
    )


def _as_data(one: Block) -> dict[str, Any]:
    found = one.comparison.to_json() if one.comparison else None
    if found is not None:
        for measure in found["measures"]:  # which tasks these were can be computed from the cells
            for contrast in measure["contrasts"]:
                contrast |= {name: len(contrast[name]) for name in ("won", "lost", "tied")}
    return {
        "seeds": list(one.seeds),
        "states": dict(one.states),
        "comparison": found,
        "alone": dict(one.alone),
        **({"told": list(one.told)} if one.told else {}),
    }


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
