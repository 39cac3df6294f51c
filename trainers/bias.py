"""The bias of every credit rule, measured: ``python -m turnwise.trainers.bias > docs/credit-bias.md``.

What is declared beside each rule is set against the exact gradients of :mod:`turnwise.trainers.processes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import asin, degrees
from typing import NamedTuple

from turnwise.trainers.exact import Bias, compare, expected_update, paths
from turnwise.trainers.processes import PROCESSES, STOPPING, lopsided, signals
from turnwise.trainers.registry import Component, components, get_component

GROUP = 3


class Measured(NamedTuple):
    """One rule on all processes."""

    entry: Component
    bias: dict[str, Bias]  # by process
    variance: dict[str, float]  # by process, of the update scaled to the gradient's length


def measure(entry: Component, n: int = GROUP) -> Measured:
    """Bias and variance of a rule with its default options, for groups of ``n``."""
    bias: dict[str, Bias] = {}
    variance: dict[str, float] = {}
    for process in PROCESSES:
        p = paths(process, lopsided(process))
        update = expected_update(entry.build({}), p, n, signals(p))
        bias[process.name] = compare(update.mean_SA, p.policy_gradient())
        variance[process.name] = update.variance / max(bias[process.name].scale ** 2, 1e-12)
    return Measured(entry, bias, variance)


def table(rows: Iterable[Measured], reference: Measured) -> str:
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
    """What the per-turn-index construction gets wrong, as numbers: the pull towards going on."""
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
    return "| | ∂ log-odds of going on at the first turn | off by |\n|---|---|---|\n" + "\n".join(lines)


def report() -> str:
    """The page."""
    rows = [measure(entry) for entry in components("credit")]
    reference = next(row for row in rows if row.entry.name == "rloo")
    processes = "\n".join(f"- **{process.name}**: {process.about}." for process in PROCESSES)
    return f"""# How biased is each credit rule?

Written by `python -m turnwise.trainers.bias`; tests/contract/test_unbiased.py holds each rule to its declaration.

On five decision processes small enough to list every trajectory, the expected update of each rule over
groups of {GROUP} is a finite sum. It is compared with the exact gradient of the expected return.

{processes}

Per process: the angle between expected update and gradient, in degrees; 0 is right up to a factor.
*Scale*: that factor, smallest and largest over the processes; a rule whose scale differs reweights tasks.
*Noise*: variance of the update, scaled to the gradient's length, relative to `rloo`; mean over processes.
Rules that are biased may still learn faster; what they climb is just not (only) the expected return.
Signals are exact (values, entropies) or made up (judges, implicit rewards, memory). A step of a process is one
token here; the tests also read two as one turn. `spo_chain` is `vine` unless some action is all but certain,
which the tests see to.

{table(rows, reference)}

## The stopping-time bias

Centring rewards per turn index and summing them is what one writes first. The baseline then has as many
terms as the trajectory goes on to play: each turn that is played is charged the mean reward of that turn, and
stopping saves the charge. On **stopping**, where going on is right:

{stopping_bias()}

`turn_index` indeed learns to leave in the two-turn toy of tests/learn/test_toy.py, with every seed tried,
where the others learn to stay (so does `pure`, whose objective asks for it).
"""


def _degrees(bias: Bias) -> str:
    if bias.angle < 1e-9:
        return "0" if bias.scale > 0 else "none"
    angle = degrees(asin(min(bias.angle, 1.0)))
    angle = angle if bias.scale > 0 else 180 - angle
    return f"{angle:.1f}" if angle > 0.05 else f"{angle:.2f}"


if __name__ == "__main__":
    print(report(), end="")
