"""A signal that learns from labels of which some are wrong and some are not there, by torch's own descent."""

from __future__ import annotations

import dataclasses
import functools
import math
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from discerning import NOTHING, SEED, Net, batches, missing, rows_of, setup_of, shown
from measured import Part, measured, near, of_turns
from plain import reference, refuses

from turnwise.agents.core import Episode, Outcome, Turn
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import collate


def labelled(groups: Sequence[Group], seed: int, share: float) -> list[Group]:
    """Some episodes have a label on some of their turns, two of them under other names."""
    rng = random.Random(f"labels {seed}")

    def of(one: Episode) -> Episode:
        given = rng.random() < share

        def said(turn: Turn) -> Turn:
            told = {
                name: rng.choice([0.0, 0.3, 0.5, 1.0])
                for name in ("principle", "thumb")
                if given and rng.random() < 0.8
            }
            return dataclasses.replace(turn, signals=told)

        first = one.trajectory
        return dataclasses.replace(
            one, trajectories={first.agent: dataclasses.replace(first, turns=tuple(map(said, first.turns)))}
        )

    return [[of(one) for one in group] for group in groups]


@functools.cache
def feedback() -> tuple[str, list[Episode]]:
    path = Path(tempfile.mkdtemp(prefix="turnwise-feedback-")) / "episodes.jsonl"
    (some,) = labelled([[*shown()[1], *shown()[1]]], 9, 0.7)
    gone = dataclasses.replace(
        some[0], trajectories={"agent": dataclasses.replace(some[0].trajectory, turns=())}
    )
    some = [*some, gone]
    with EpisodeLog(path) as log:
        for one in some:
            log.append(one)
    return str(path), some


def rare() -> list[Group]:
    """Many episodes that are alike, one of which has a label."""
    first = labelled([batches()[0][1][0][:1]], 1, 0.0)[0][0]
    turns = tuple(
        dataclasses.replace(turn, signals={"principle": 1.0, "thumb": 0.0}) for turn in first.trajectory.turns
    )
    one = dataclasses.replace(
        first, trajectories={first.trajectory.agent: dataclasses.replace(first.trajectory, turns=turns)}
    )
    return [[one, *[first] * 39]]


@reference(
    "signal", "causal_rm", label=["thumb"], path=["a log"], missed=[0.3, -0.1], false=[0.25, -0.1], least=[0.5, 1.0, 0.0, 1.1],
    hidden=[3, 0, 1], steps=[2, 0], learning_rate=[0.1, -0.5],
    also=[
        {"path": "a log", "missed": 0.1, "false": 0.2}, {"missed": 0.5, "false": 0.5}, {"missed": 0.7, "false": 0.4}, {"missed": 0.4, "false": 0.7}, {"label": "thumb", "missed": 0.2, "learning_rate": 0.2},
        {"label": "nobody's"},
    ],
)  # fmt: skip
def causal_rm(
    make: Part, label: str = "principle", path: str = "", missed: float = 0.0, false: float = 0.0, least: float = 0.05,
    hidden: int = 32, steps: int = 20, learning_rate: float = 0.5,
) -> None:  # fmt: skip
    """Noise-corrected cross-entropy over labels, each over its chance to be there; σ(f) of every episode."""
    wrong = (
        min(missed, false, learning_rate) < 0
        or missed + false >= 1
        or least <= 0
        or least > 1
        or min(hidden, steps) < 1
    )
    if wrong:
        said = refuses(lambda: make(setup_of("causal_rm")))
        given_ = f"missed={missed:g}, false={false:g}, least={least:g}, hidden={hidden}, steps={steps}."
        assert "signal 'causal_rm'" in said
        assert min(missed, false, learning_rate) < 0 or given_ in said
        return
    given = {}
    if path:
        given = {"path": feedback()[0]}
        missing(lambda path: make(setup_of("causal_rm"), path=path), "causal_rm")
    f, e = Net(hidden, learning_rate), Net(hidden, learning_rate, seed=SEED + 1)
    signal, kept = make(setup_of("causal_rm"), **given), None
    for n, share in enumerate((0.0, 0.5, 1.0, 0.6, 0.0)):
        if n == 4 and missed + false:  # a single label that may be wrong is followed without end
            break
        groups = labelled(batches()[min(n, 2)][1], n, share) if n < 4 else rare()
        gone = dataclasses.replace(
            groups[0][0], trajectories={"agent": dataclasses.replace(groups[0][0].trajectory, turns=())}
        )
        groups = [[*groups[0], gone], *groups[1:]]
        batch = collate(groups)
        if n == 3:
            signal = make(setup_of("causal_rm"), **given)
            signal.restore(kept)
        found = measured(signal, NOTHING, batch, groups)
        kept = signal.state()
        played = [one for group in groups for one in group]
        learned = [one for one in feedback()[1] if one.outcome is Outcome.OK] if path else played
        learned = [one for one in learned if one.trajectory.turns]
        x = torch.stack([rows_of([one]).sum(0) / len(one.trajectory.turns) for one in learned])
        told = [[t.signals[label] for t in one.trajectory.turns if label in t.signals] for one in learned]
        seen = [i for i, some in enumerate(told) if some]
        assert ("causal_rm_loss" in found.metrics) == bool(seen)
        if seen:
            chance = torch.ones(len(x), dtype=torch.float64)
            if len(seen) < len(x):
                is_there = torch.tensor([1.0 if some else 0.0 for some in told], dtype=torch.float64)
                for _ in range(steps):
                    p = torch.sigmoid(e(x))
                    e.take(-(is_there * p.log() + (1 - is_there) * (1 - p).log()).mean())
                chance = torch.sigmoid(e(x)).detach()
            was = 0.0
            for _ in range(steps):
                p, terms = torch.sigmoid(f(x)), []
                for i in seen:
                    good, bad = -p[i].log(), -(1 - p[i]).log()
                    if sum(told[i]) / len(told[i]) >= 0.5:
                        cost = (1 - false) * good - missed * bad
                    else:
                        cost = (1 - missed) * bad - false * good
                    terms.append(cost / (1 - false - missed) / max(least, chance[i].item()) / len(x))
                was = f.take(torch.stack(terms).sum())
            assert math.isclose(found.metrics["causal_rm_loss"], was, rel_tol=1e-8, abs_tol=1e-10)
            assert found.metrics["causal_rm_labelled"] == len(seen) / len(x)
        wanted: list[list[float]] = []
        for one in played:
            k = len(one.trajectory.turns)
            wanted.append([torch.sigmoid(f(rows_of([one]).sum(0, keepdim=True) / k)).item()] * k if k else [])
        near(of_turns(found.turn["causal_rm"], batch), wanted, f"chance {n}", 1e-8)
