"""Signals that tell turns apart by their words: a network written anew, trained by torch's own descent."""

from __future__ import annotations

import dataclasses
import functools
import math
import random
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from learned import scene
from measured import Part, measured, near, of_turns
from plain import reference, refuses
from torch import Tensor

from turnwise.agents.core import Episode, Outcome, Turn
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message, Messages
from turnwise.errors import RunError
from turnwise.registry import get_component
from turnwise.tasks.core import Task, derive_rng
from turnwise.tools.core import ToolCall
from turnwise.trainers.check.small_policy import signal_setup
from turnwise.trainers.core import Group
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.learn.collate import TrainingBatch, collate

WORDS = ("go", "look", "Red", "kite", "north", "buy", "fox")
SEED = 3
NOTHING: Any = None  # they look at nothing but the episodes


def wordy(one: Episode, rng: random.Random, some: Sequence[str] = WORDS) -> Episode:
    """The episode with words, calls and rewards drawn by chance."""

    def drawn() -> str:
        return rng.choice([" ", ", ", "!"]).join(rng.choices(some, k=rng.randrange(5)))

    def turn(was: Turn) -> Turn:
        calls = tuple(
            ToolCall(rng.choice(["find", "go"]), {"x": drawn(), "n": rng.randrange(3)})
            for _ in range(rng.randrange(2))
        )
        told = [Message("user", drawn()) for _ in range(rng.randrange(3))]
        reward = round(rng.uniform(-1, 1), 3)
        return dataclasses.replace(
            was, reply=was.reply._replace(message=Message("assistant", drawn(), tool_calls=calls)),
            observation=Messages(told), reward=reward, rewards={"outcome": reward},
        )  # fmt: skip

    first = one.trajectory
    turns = tuple(turn(was) for was in first.turns)
    return dataclasses.replace(one, trajectories={first.agent: dataclasses.replace(first, turns=turns)})


@functools.cache
def batches() -> list[tuple[TrainingBatch, list[Group]]]:
    found: list[tuple[TrainingBatch, list[Group]]] = []
    for seed in range(3):
        rng = random.Random(f"wordy {seed}")
        groups: list[Group] = [[wordy(one, rng, WORDS[seed:]) for one in group] for group in scene()[1]]
        if seed == 0:  # nobody solved anything
            groups = [[dataclasses.replace(one, end=EndReason.FAILED) for one in group] for group in groups]
        found.append((collate(groups), groups))
    return found


@functools.cache
def shown() -> tuple[str, list[Episode]]:
    """A log, and what is in it: solved, failed, and what was not played to its end."""
    path = Path(tempfile.mkdtemp(prefix="turnwise-shown-")) / "episodes.jsonl"
    found: list[Episode] = []
    with EpisodeLog(path) as log:
        for i, (end, outcome) in enumerate(
            [
                (EndReason.SOLVED, Outcome.OK),
                (EndReason.FAILED, Outcome.OK),
                (EndReason.SOLVED, Outcome.INFRA_ERROR),
                (EndReason.SOLVED, Outcome.OK),
            ]
        ):
            rng = random.Random(f"shown {i}")
            one = wordy(episode([0.0] * (2 + i), end=end), rng)
            found.append(dataclasses.replace(one, outcome=outcome, task=Task("turnwise/Shop-v0", "?")))
            log.append(found[-1])
    return str(path), found


def missing(make: Callable[[str], Any], name: str, *, solved: bool = False) -> None:
    """A log that is not there, or has nothing that could be learned from, is named."""
    batch, groups = batches()[1]
    folder = Path(shown()[0]).parent
    bad = folder / f"{name}.jsonl"
    bad.unlink(missing_ok=True)
    with EpisodeLog(bad) as log:
        log.append(dataclasses.replace(shown()[1][1 if solved else 2]))
    for path in (folder / "none.jsonl", bad):
        said = refuses(lambda path=path: measured(make(str(path)), NOTHING, batch, groups), RunError)
        assert str(path) in said
        assert f"signal '{name}'" in said
        assert ("solved" in said.splitlines()[0]) == solved


def words(turn: Turn) -> list[float]:
    """Told and said words apart, each once, and of length 1 together."""
    x = [0.0] * 256
    told = turn.observation[-1].content if len(turn.observation) else ""
    said = turn.action.content
    for call in turn.action.tool_calls:
        said += f" {call.name}" + "".join(f" {value}" for value in call.arguments.values())
    for side, text in (("told", told), ("said", said)):
        for word in re.split(r"\W+", text.lower()):
            if word:
                x[crc32(f"{side} {word}".encode()) % 256] = 1.0
    length = math.sqrt(sum(x))
    return [a / length for a in x] if length else x


def rows_of(episodes: Sequence[Episode]) -> Tensor:
    return torch.tensor(
        [words(turn) for one in episodes for turn in one.trajectory.turns], dtype=torch.float64
    ).view(-1, 256)


class Net(torch.nn.Module):
    """v·tanh(W·x + b) + c in float64, its weights drawn from a seed."""

    def __init__(self, hidden: int, learning_rate: float, spectral: bool = False, seed: int = SEED) -> None:
        super().__init__()
        drawn = torch.Generator().manual_seed(seed)
        self.into = torch.nn.Linear(256, hidden, dtype=torch.float64)
        self.out = torch.nn.Linear(hidden, 1, dtype=torch.float64)
        with torch.no_grad():
            self.into.weight.copy_(torch.randn(hidden, 256, dtype=torch.float64, generator=drawn) / 16)
            self.out.weight.copy_(
                torch.randn(1, hidden, dtype=torch.float64, generator=drawn) / math.sqrt(hidden)
            )
            self.into.bias.zero_()
            self.out.bias.zero_()
        self.spectral = spectral
        self.optimizer = torch.optim.SGD(self.parameters(), lr=learning_rate)

    def forward(self, x: Tensor) -> Tensor:
        w, v = self.into.weight, self.out.weight
        if self.spectral:
            w, v = w / torch.linalg.svdvals(w)[0], v / torch.linalg.svdvals(v)[0]
        return (torch.tanh(x @ w.T + self.into.bias) @ v.T + self.out.bias)[:, 0]

    def steep(self, x: Tensor) -> Tensor:
        x = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(self(x).sum(), x, create_graph=True)
        return slope.pow(2).sum(1).sqrt()

    def take(self, loss: Tensor) -> float:
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def split(values: Sequence[float], groups: Sequence[Group]) -> list[list[float]]:
    left = iter(values)
    return [[next(left) for _ in one.trajectory.turns] for group in groups for one in group]


def setup_of(name: str) -> Any:
    return dataclasses.replace(signal_setup(get_component("signal", name)), seed=SEED)


def through(make: Part, name: str, **given: Any) -> Any:
    """A signal on each batch in turn; the last one is asked of another that goes on from a checkpoint."""
    signal, kept = make(setup_of(name), **given), None
    for n, (batch, groups) in enumerate(batches()):
        if n == 2:
            signal = make(setup_of(name), **given)
            signal.restore(kept)
        found = measured(signal, NOTHING, batch, groups)
        kept = signal.state()
        yield batch, groups, found
    empty = [[dataclasses.replace(one, trajectories={"agent": dataclasses.replace(one.trajectory, turns=())}) for one in groups[0]]]  # fmt: skip
    nothing = measured(signal, NOTHING, collate(empty), empty)
    assert nothing.turn[name].shape == (len(empty[0]), 0)


@reference(
    "signal", "orpo", path=["a log"], updates=[2, 0], penalty=["chi2", "kl"], coefficient=[1.0, -1.0], most=[0.3, -1.0],
    trim=[0.2, 0.5, -0.1], hidden=[3, 0], steps=[2, 0], learning_rate=[0.1, -0.5],
    also=[
        {"path": "a log", "trim": 0.35, "steps": 3}, {"path": "a log", "penalty": "kl", "most": 0.05}, {"path": "a log", "updates": 3},
        {"path": "a log", "learning_rate": 0.0, "coefficient": 2.0, "steps": 1},
    ],
)  # fmt: skip
def orpo(
    make: Part, path: str = "", updates: int = 1, penalty: str = "sqrt_chi2", coefficient: float = 0.1, most: float = 10.0,
    trim: float = 0.01, hidden: int = 32, steps: int = 20, learning_rate: float = 0.5,
) -> None:  # fmt: skip
    """−coefficient·std(base rewards)·penalty(d), d = log of current over base."""
    if min(coefficient, most, trim, learning_rate) < 0 or trim >= 0.5 or min(updates, hidden, steps) < 1:
        said = refuses(lambda: make(setup_of("orpo")))
        assert "signal 'orpo'" in said
        return
    given = {}
    if path:
        given = {"path": shown()[0]}
        missing(lambda path: make(setup_of("orpo"), path=path), "orpo")
    assert make(setup_of("orpo")).trim == trim
    base = [one for one in shown()[1] if one.outcome is Outcome.OK] if path else []
    net = Net(hidden, learning_rate)
    for n, (batch, groups, found) in enumerate(through(make, "orpo", **given)):
        played = [one for group in groups for one in group]
        if not path and n < updates:
            base += played
            assert not found.turn["orpo"].any()
            of_turns(found.turn["orpo"], batch)
            assert not found.metrics
            continue
        x, y = rows_of(played), rows_of(base)
        was = 0.0
        for _ in range(steps):
            was = net.take(torch.log1p(torch.exp(-net(x))).mean() + torch.log1p(torch.exp(net(y))).mean())
        assert math.isclose(found.metrics["orpo_loss"], was, rel_tol=1e-9)
        d = net(x).tolist()
        more = [math.exp(a) - 1 for a in d]
        assert math.isclose(found.metrics["orpo_chi2"], sum(more) / len(more), rel_tol=1e-9, abs_tol=1e-12)
        inner = sorted(more)
        for _ in range(math.floor(trim * len(more))):
            inner = inner[1:-1]
        middle = sum(inner) / len(inner)
        charged = d if penalty == "kl" else more
        if penalty == "sqrt_chi2" and middle > 0:
            charged = [a / math.sqrt(middle) for a in more]
        rewards = [turn.reward for one in base for turn in one.trajectory.turns]
        mean = sum(rewards) / len(rewards)
        scale = coefficient * math.sqrt(sum((r - mean) ** 2 for r in rewards) / len(rewards))
        wanted = [-scale * max(-most, min(most, a)) for a in charged]
        near(of_turns(found.turn["orpo"], batch), split(wanted, groups), f"penalty {n}", 1e-8)


@reference(
    "signal", "gail", path=["a log"], penalty=[0.0, 200.0, -1.0], spectral=[True], low=[1.0, 1.3, -0.1], high=[0.8],
    hidden=[3, 0], steps=[2, 0], learning_rate=[0.5, -0.1],
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


@reference(
    "signal", "causal_rm", label=["thumb"], path=["a log"], missed=[0.3, -0.1], false=[0.25, -0.1], least=[0.5, 1.0, 0.0, 1.1],
    hidden=[3, 0], steps=[2, 0], learning_rate=[0.1, -0.5],
    also=[
        {"path": "a log", "missed": 0.1, "false": 0.2}, {"missed": 0.5, "false": 0.5}, {"label": "thumb", "missed": 0.2, "learning_rate": 0.2},
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
        assert "signal 'causal_rm'" in refuses(lambda: make(setup_of("causal_rm")))
        return
    given = {}
    if path:
        given = {"path": feedback()[0]}
        missing(lambda path: make(setup_of("causal_rm"), path=path), "causal_rm")
    f, e = Net(hidden, learning_rate), Net(hidden, learning_rate, seed=SEED + 1)
    signal, kept = make(setup_of("causal_rm"), **given), None
    for n, share in enumerate((0.0, 0.5, 1.0, 0.6)):
        groups = labelled(batches()[min(n, 2)][1], n, share)
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
