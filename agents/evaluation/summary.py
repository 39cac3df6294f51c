"""Evaluations as terminal tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from turnwise.agents.evaluation.comparison import SuccessDifference, paired_difference
from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.agents.evaluation.programs import program_lines
from turnwise.agents.evaluation.replies import cause_lines
from turnwise.agents.evaluation.statistics import Interval

_BIASED = (
    "The bound: success if every episode that was left out had failed, and if every one had been solved. Where"
    " failures depend on what the policy does, the figures of the episodes that count are biased."
)


def percent(share: float | None) -> str:
    """A share as people read it.

    >>> percent(0.4349), percent(1.0), percent(None)
    ('43.5 %', '100.0 %', '–')
    """
    return "–" if share is None else f"{100 * share:.1f} %"


def percent_interval(interval: Interval) -> str:
    """
    >>> percent_interval(Interval(0.3512, 1.0))
    '35.1 … 100.0 %'
    """
    low, high = interval
    return f"{100 * low:.1f} … {100 * high:.1f} %" if math.isfinite(high - low) else "unknown (one task)"


def verdict(comparison: SuccessDifference) -> Text:
    """The difference between two policies as one plain sentence, in colour."""
    low, high = (100 * end for end in comparison.interval)
    interval = f"{low:+.1f} … {high:+.1f}" if math.isfinite(high - low) else "unknown"
    colour = "yellow"
    if comparison.significant:
        colour = "green" if comparison.difference > 0 else "red"
    return Text.assemble(
        (comparison.verdict, f"bold {colour}"),
        f": {100 * comparison.difference:+.1f} points, 95 % interval {interval} ({comparison.test}).",
    )


def evaluation_table(evaluation: Evaluation) -> Table:
    """One evaluation: each figure with its 95 % interval, and how the episodes ended."""
    table = Table(
        title=Text(f"{evaluation.suite} · {evaluation.split} · {evaluation.policy}"),
        title_justify="left",
        box=SIMPLE_HEAD,
    )
    table.add_column("")
    table.add_column("value", justify="right")
    table.add_column("95 % interval", justify="right")
    counting = evaluation.episodes - evaluation.excluded
    success = "success"
    if evaluation.headline:
        success = "success, of such replies"
    if evaluation.bounded:
        table.add_row(Text("success, a bound", style="red"), percent_interval(evaluation.success_bound), "")
        success = f"of the {counting} that count"
    table.add_row(success, percent(evaluation.success), percent_interval(evaluation.success_interval))
    low, high = evaluation.mean_score_interval
    score = f"{low:.3f} … {high:.3f}" if math.isfinite(high - low) else "unknown (one task)"
    table.add_row("mean score", f"{evaluation.mean_score:.3f}", score)
    if evaluation.k > 1:
        for row in _pass_rows(evaluation):
            table.add_row(*row)
    table.add_row("turns per episode", f"{evaluation.turns:.1f}", "")
    for row in _search_rows(evaluation):
        table.add_row(*row)
    for row in _usage_rows(evaluation):
        table.add_row(*row)
    table.add_section()
    for end, count in sorted(evaluation.ends.items(), key=lambda item: -item[1]):
        table.add_row(Text(f"ended: {end}"), str(count), percent(count / counting))
    for outcome, count in evaluation.outcomes.items():
        if count and outcome not in ("ok", "limit"):
            table.add_row(Text(f"left out: {outcome}", style="red"), str(count), "")
    runs = f"{evaluation.tasks} tasks" + (f" × {evaluation.k} runs" if evaluation.k > 1 else "")
    played = Text(f"{evaluation.episodes} episodes ({runs}), {evaluation.seconds:.1f} s")
    table.caption = Text("\n").join([played, *_failures(evaluation)])
    if len(_failures(evaluation)):
        table.caption_justify = "left"
        table.caption_style = "none"
    return table


def _search_rows(evaluation: Evaluation) -> list[tuple[str, Text, str]]:
    """Lines on a search: its forks that a deployment could not have, and its cost."""
    search = evaluation.search
    if not search.episodes:
        return []
    unit = "words" if search.words else "tokens"
    sampled = f"{search.tokens:,.0f} + {search.scorer_tokens:,.0f} of {search.budget:,.0f}"
    return [
        ("search", Text(search.label, style="yellow"), ""),
        (f"{unit} sampled per episode, policy + scorer", Text(sampled), ""),
        (
            "tries, states, steps per episode",
            Text(f"{search.tries:.1f}, {search.nodes:.1f}, {search.steps:.1f}"),
            "",
        ),
    ]


def _pass_rows(evaluation: Evaluation) -> list[tuple[Text, str, str]]:
    """pass@k and pass^k: a bound first where runs are missing, and of how many tasks the figure is."""
    rows: list[tuple[Text, str, str]] = []
    for name, value, interval, bound in evaluation.passes:
        if bound is not None:
            rows.append((Text(f"{name}, a bound", style="red"), percent_interval(bound), ""))
            name = f"of {evaluation.pass_tasks} of {evaluation.tasks} tasks"
        rows.append((Text(name), percent(value), percent_interval(interval) if interval else ""))
    return rows


def _failures(evaluation: Evaluation) -> list[Text]:
    """Why episodes were left out, what went wrong with replies, and what that means for success."""
    said = [Text(f"{cause}", style="red") for cause in evaluation.causes]
    if evaluation.bounded:
        said.append(Text(_BIASED))
    lines = [evaluation.headline] if evaluation.headline else cause_lines(evaluation.said)
    said += [Text(line, style="red") for line in lines]
    said += [Text(line, style="yellow") for line in program_lines(evaluation.programs)]
    said += [Text(note, style="yellow") for note in evaluation.notes]
    return [*said, Text(f"Stopped: {evaluation.stopped}", style="yellow")] if evaluation.stopped else said


def _usage_rows(evaluation: Evaluation) -> list[tuple[str, str, str]]:
    """Make the rows of what the replies took, as far as it is told."""
    usage = evaluation.said.usage
    told = [
        ("tokens read", usage.prompt),
        ("tokens sampled", usage.completion),
        ("of these, thoughts", usage.reasoning),
    ]
    rows = [(name, f"{value:,}", "") for name, value in told if value]
    return [*rows, ("cost", f"{usage.cost:.4g}", "")] if usage.cost is not None else rows


def comparison_table(rows: Sequence[tuple[str, str, Evaluation]]) -> Table:
    """Evaluations of the same tasks under each other, each with its name and its mode (sampled, greedy).

    The last name is compared with the first, mode by mode: sampled with sampled, greedy with greedy. Where no
    mode was played under both names there is no verdict.
    """
    table = Table(box=SIMPLE_HEAD)
    for heading in ("", "success", "95 % interval", "score", "turns", "episodes"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, mode, evaluation in rows:
        table.add_row(Text(f"{name} ({mode})"), *_figures(evaluation))
    said = [
        Text(f"{name} ({mode}): {cause}", style="red")
        for name, mode, evaluation in rows
        for cause in evaluation.causes[:1]
    ]
    said += [Text(_BIASED)] if any(evaluation.bounded for _, _, evaluation in rows) else []
    said += [
        Text.assemble(
            f"{mode}, {last} against {first}: ", verdict(paired_difference(before.results, after.results))
        )
        for mode, (first, before), (last, after) in pairs(rows)
    ]
    if said:
        table.caption = Text("\n").join(said)
        table.caption_justify = "left"
        table.caption_style = "none"
    return table


def evaluations_table(evaluations: Sequence[Evaluation]) -> Table:
    """Evaluations of several policies on several suites; on each suite the others are compared with the first policy."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    costs = any(one.said.usage.cost is not None for one in evaluations)
    headings = (
        "suite",
        "policy",
        "success",
        "95 %",
        "score",
        "turns",
        "episodes",
        *(["cost"] if costs else []),
    )
    for heading in headings:
        name = heading in ("suite", "policy")
        table.add_column(
            heading,
            justify="left" if name else "right",
            overflow="fold",
            no_wrap=not name,
            min_width=12 if name else None,
        )
    called = _without_addresses(evaluations)
    by_suite: dict[str, list[Evaluation]] = {}
    for one in evaluations:
        by_suite.setdefault(one.suite, []).append(one)
    said: list[Text] = []
    for suite, found in by_suite.items():
        for one in found:
            cost = one.said.usage.cost
            told = ["–" if cost is None else f"{cost:.4g}"] if costs else []
            table.add_row(Text(suite), Text(called[one.policy]), *_figures(one), *told)
            said += [Text.assemble(f"{suite}, {called[one.policy]}: ", line) for line in _failures(one)]
        for one in found[1:]:
            if not found[0].results.keys() & one.results.keys():
                continue
            against = Text(f"{suite}, {called[one.policy]} against {called[found[0].policy]}: ")
            said.append(against.append(verdict(paired_difference(found[0].results, one.results))))
    if said:
        table.caption = Text("\n").join(said)
        table.caption_justify = "left"
        table.caption_style = "none"
    return table


def _without_addresses(evaluations: Sequence[Evaluation]) -> dict[str, str]:
    """Return what each policy is called in a table: its name without the address behind it, where these differ."""
    short = {one.policy: one.policy.partition("@")[0] for one in evaluations}
    return short if len({*short.values()}) == len(short) else {name: name for name in short}


def _figures(evaluation: Evaluation) -> list[Text | str]:
    """Success, its interval, score, turns and episodes, as cells."""
    bounded, left_out = evaluation.bounded, evaluation.excluded
    success = percent_interval(evaluation.success_bound) if bounded else percent(evaluation.success)
    return [
        Text(success, style="red" if bounded else ""),
        percent_interval(evaluation.success_interval),
        f"{evaluation.mean_score:.3f}",
        f"{evaluation.turns:.1f}",
        Text.assemble(
            str(evaluation.episodes - left_out), (f" ({left_out} left out)" if left_out else "", "red")
        ),
    ]


def pairs(
    rows: Sequence[tuple[str, str, Evaluation]],
) -> list[tuple[str, tuple[str, Evaluation], tuple[str, Evaluation]]]:
    """The pairs that may be compared: in each mode, the evaluation of the first name and that of the last."""
    names = list(dict.fromkeys(name for name, _, _ in rows))
    found = {(name, mode): evaluation for name, mode, evaluation in rows}
    modes = dict.fromkeys(mode for _, mode, _ in rows)
    if len(names) < 2:
        return []
    first, last = names[0], names[-1]
    return [
        (mode, (first, found[first, mode]), (last, found[last, mode]))
        for mode in modes
        if (first, mode) in found and (last, mode) in found
    ]
