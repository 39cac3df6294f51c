"""The bias of every credit rule, measured: ``python -m turnwise.trainers.lab.bias > docs/credit-bias.md``.

What is declared beside each rule is set against the exact gradients of :mod:`turnwise.trainers.lab.processes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from turnwise.registry import Component, components, get_component
from turnwise.trainers.lab.exact import Bias, compare, expected_update, paths
from turnwise.trainers.lab.processes import PROCESSES, STOPPING, lopsided, signals

GROUP = 3


class RuleBias(NamedTuple):
    """One rule on all processes."""

    entry: Component
    bias: dict[str, Bias]  # by process
    variance: dict[str, float]  # by process, of the update scaled to the gradient's length


def measure(entry: Component, n: int = GROUP) -> RuleBias:
    """Bias and variance of a rule with its default options, or of a shape over ``rloo``, for groups of ``n``."""
    bias: dict[str, Bias] = {}
    variance: dict[str, float] = {}
    credit, base = entry.build({}), get_component("credit", "rloo").build({})
    for process in PROCESSES:
        p = paths(process, lopsided(process))
        rule = (lambda batch: credit(base(batch), batch)) if entry.kind == "shape" else credit
        update = expected_update(rule, p, n, signals(p))
        bias[process.name] = compare(update.mean_SA, p.policy_gradient())
        variance[process.name] = update.variance / max(bias[process.name].scale ** 2, 1e-12)
    return RuleBias(entry, bias, variance)


def table(rows: Iterable[RuleBias], reference: RuleBias) -> str:
    """A Markdown table: angle to the exact gradient per process, spread of the scale, noise."""
    names = [process.name for process in PROCESSES]
    head = ["rule", *names, "scale", "noise", "declared"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        scales = [row.bias[name].scale for name in names]
        low, high = f"{min(scales):.2f}", f"{max(scales):.2f}"
        usable = [name for name in names if row.bias[name].scale > 0.1]  # elsewhere it is all noise
        noise = sum(row.variance[name] / reference.variance[name] for name in usable) / len(usable)
        cells = [
            f"`{row.entry.name}`",
            *(_degrees(row.bias[name]) for name in names),
            low if low == high else f"{low} – {high}",
            f"{noise:.2f}",
            row.entry.bias,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def stopping_bias() -> str:
    """The error of baselines per turn index: the expected change of the log-odds of continuing."""
    p = paths(STOPPING, lopsided(STOPPING))
    exact = p.policy_gradient()[0, 1].item()
    found = {
        name: expected_update(get_component("credit", name).build({}), p, GROUP, signals(p)).mean_SA
        for name in ("turn_index", "grpo_process", "return_to_go")
    }
    lines = [f"| exact gradient | {exact:+.6f} | |"]
    lines += [
        f"| `{name}` | {update[0, 1].item():+.6f} | {update[0, 1].item() - exact:+.6f} |"
        for name, update in found.items()
    ]
    return "| | ∂ log-odds of continuing at the first turn | error |\n|---|---|---|\n" + "\n".join(lines)


def report() -> str:
    """The page."""
    rows = [measure(entry) for entry in components("credit")]
    shapes = [measure(entry) for entry in components("shape")]
    reference = next(row for row in rows if row.entry.name == "rloo")
    processes = "\n".join(f"- **{process.name}**: {process.about}." for process in PROCESSES)
    return f"""# How biased is each credit rule?

This page is written by `python -m turnwise.trainers.lab.bias`; `tests/contract/test_parts.py` compares each rule with its
declaration.

On five decision processes small enough to list every trajectory, the expected update of each rule over
groups of {GROUP} is a finite sum. It is compared with the exact gradient of the expected return.

{processes}

Each process has a column with the angle between the expected update and the gradient, in degrees; with 0 the update is
right up to a factor. *Scale* is that factor, smallest and largest over the processes; a rule whose scale differs between
processes reweights tasks. *Noise* is the variance of the update, scaled to the gradient's length and relative to `rloo`, as a
mean over processes. A biased rule may still learn faster, but what it maximises is not (only) the expected return.
Signals are exact (values, entropies) or made up (judges, implicit rewards, statistics of earlier updates). A step of a process
is one token here; the tests also treat two steps as one turn. `spo_chain` equals `vine` unless some action is nearly certain,
a case that the tests cover separately.

{table(rows, reference)}

## Shapes

Each over `rloo`, which alone is exact: what is seen is the shape's own. With one token to a turn and one group, `earl`, `gpg`
and others have nothing to do; the contract tests look at more.

{table(shapes, reference)}

## The stopping-time bias

The obvious first idea is to subtract the mean reward of each turn index and to sum what is left. The baseline then has
as many terms as the trajectory has turns to come: each turn that is played is charged the mean reward of that turn, and
stopping avoids the charge. On **stopping**, where continuing is right:

{stopping_bias()}

In the two-turn toy problem of `tests/learn/test_toy.py`, `turn_index` indeed learns to leave with every seed tried (and so
does `pure`, whose objective asks for it), while the other rules learn to stay.
"""


def _degrees(bias: Bias) -> str:
    if bias.angle < 1e-9:
        return "0" if bias.scale > 0 else "none"
    return f"{bias.degrees:.1f}" if bias.degrees > 0.05 else f"{bias.degrees:.2f}"


if __name__ == "__main__":
    print(report(), end="")
