"""A signal that tells an expert's turns from the policy's, with a slope by torch's own gradients."""

from __future__ import annotations

import math

import torch
from discerning import SEED, Net, missing, rows_of, setup_of, shown, split, through
from measured import Part, near, of_turns
from plain import reference, refuses

from turnwise.agents.core import Outcome
from turnwise.envs.core import EndReason
from turnwise.tasks.core import derive_rng


@reference(
    "signal", "gail", path=["a log"], penalty=[0.0, 200.0, -1.0], spectral=[True], low=[1.0, 1.3, -0.1], high=[0.8],
    hidden=[3, 0, 1], steps=[2, 0], learning_rate=[0.5, -0.1],
    also=[{"path": "a log", "spectral": True, "penalty": 1.0}, {"path": "a log", "learning_rate": 0.3, "steps": 4}, {"low": 0.9, "high": 0.9}],
)  # fmt: skip
def gail(
    make: Part, path: str = "", penalty: float = 10.0, spectral: bool = False, low: float = 0.7, high: float = 1.2,
    hidden: int = 32, steps: int = 20, learning_rate: float = 0.1,
) -> None:  # fmt: skip
    """−log(1 − σ(D) + 1e-8) after cross-entropy with drawn labels and 10·max(0, slope − 1)² between."""
    if min(penalty, low, learning_rate) < 0 or low > high or min(hidden, steps) < 1:
        said = refuses(lambda: make(setup_of("gail")))
        assert "signal 'gail'" in said
        return
    given = {}
    if path:
        given = {"path": shown()[0]}
        missing(lambda path: make(setup_of("gail"), path=path), "gail", solved=True)
    expert = (
        [one for one in shown()[1] if one.outcome is Outcome.OK and one.end is EndReason.SOLVED]
        if path
        else []
    )
    net, seen = Net(hidden, learning_rate, spectral), 0
    for n, (batch, groups, found) in enumerate(through(make, "gail", **given)):
        played = [one for group in groups for one in group]
        expert += [] if path else [one for one in played if one.end is EndReason.SOLVED]
        if not expert:
            assert n == 0
            assert not found.turn["gail"].any()
            of_turns(found.turn["gail"], batch)
            assert not found.metrics
            continue
        x, y = rows_of(played), rows_of(expert)
        was = 0.0
        for step in range(steps):
            rng = derive_rng("gail", SEED, seen, step)
            labels = torch.tensor([rng.uniform(low, high) for _ in y], dtype=torch.float64)
            partners = [rng.randrange(len(y)) for _ in x]
            shares = [rng.random() for _ in x]
            between = torch.stack(
                [u * y[j] + (1 - u) * x[i] for i, (u, j) in enumerate(zip(shares, partners, strict=True))]
            )
            good, bad = torch.sigmoid(net(y)), torch.sigmoid(net(x))
            cross = -(labels * good.log() + (1 - labels) * (1 - good).log()).mean() - (1 - bad).log().mean()
            over = torch.relu(net.steep(between) - 1)
            was = net.take(cross + penalty * (over * over).mean())
        seen += 1
        assert math.isclose(found.metrics["gail_loss"], was, rel_tol=1e-8)
        wanted = [-math.log((1 / (1 + math.exp(a)) if a < 300 else 0.0) + 1e-8) for a in net(x).tolist()]
        near(of_turns(found.turn["gail"], batch), split(wanted, groups), f"reward {n}", 1e-8)
