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
from turnwise.tasks.core import Task
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
