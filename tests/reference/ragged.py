"""Random ragged batches in plain lists, and the same as the trainer's tensors.

Groups of one to six, episodes of one to five turns, rewards that are zero, equal, of 0 and 1, or dense, limits that
cut, states that are met again, trajectories in several rows, tokens that were not sampled.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch

from turnwise.trainers.core import TokenView, TurnBatch, TurnTree

Rows: TypeAlias = list[list[float]]

JUNK = -7.0
"""What stands where there is no turn and no sampled token: nothing may read it."""
KINDS = ["outcome"] * 4 + ["dense"] * 4 + ["sparse"] * 3 + ["none", "equal"]

OF_TURNS = {  # name → the least and the most of it
    "value": (-0.5, 1.2), "fork_value": (-0.5, 1.2), "information": (-1, 1), "implicit": (-0.3, 0.3), "entropy": (0, 2),
    "progress": (0, 1), "principle": (0, 1),
}  # fmt: skip
OF_TOKENS = {"token_value": (-0.5, 1.2), "token_entropy": (0, 2), "token_implicit": (-0.3, 0.3)}


@dataclass
class Ragged:
    """Trajectories of several groups.

    Attributes:
        rewards: turn by turn.
        group: of each trajectory.
        truncated: True where a limit cut it.
        states: before each turn.
        turns: signals of turns, by name.
        whole: signals of trajectories, by name.
        ids: the sampled tokens of each turn.
        tokens: signals of sampled tokens, by name: trajectory, turn, token.
        parents: the turn that each goes on from, -1 for none.
        callers: the turn that called for each one that goes on from none, -1 for nobody knows.
        role: of each trajectory, where there are several.
        memory: 1 for turns that were written for later contexts, where there are any.
    """

    rewards: Rows
    group: list[int]
    truncated: list[bool]
    states: list[list[int]]
    turns: dict[str, Rows] = field(default_factory=dict[str, Rows])
    whole: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    ids: list[list[list[int]]] = field(default_factory=list[list[list[int]]])
    tokens: dict[str, list[Rows]] = field(default_factory=dict[str, list[Rows]])
    parents: list[list[int]] = field(default_factory=list[list[int]])
    callers: list[list[int]] = field(default_factory=list[list[int]])
    role: list[int] = field(default_factory=list[int])
    memory: Rows = field(default_factory=Rows)

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def returns(self) -> list[float]:
        return [sum(row) for row in self.rewards]

    def peers(self, i: int) -> list[int]:
        """The trajectories of i's group, i among them."""
        return [j for j in range(len(self)) if self.group[j] == self.group[i]]

    def batch(self) -> TurnBatch:
        """As the trainer's tensors, in float64."""
        return TurnBatch(
            reward_BK=padded(self.rewards),
            mask_BK=padded([[1.0] * len(row) for row in self.rewards]).bool(),
            group_B=torch.tensor(self.group),
            truncated_B=torch.tensor(self.truncated),
            state_BK=padded(self.states, fill=JUNK).long(),
            signals={name: padded(rows, fill=JUNK) for name, rows in self.turns.items()}
            | {name: torch.tensor(x, dtype=torch.float64) for name, x in self.whole.items()},
            tokens=self._view(),
            tree=TurnTree(padded(self.parents, fill=JUNK).long(), padded(self.callers, fill=JUNK).long()),
            role_B=torch.tensor(self.role) if self.role else None,
            memory_BK=padded(self.memory).bool() if self.memory else None,
        )

    def places(self) -> list[tuple[int, int, int]]:
        """Trajectory, turn and number of each sampled token, in the order in which the rows hold them."""
        return [
            (b, k, n)
            for b, row in enumerate(self.ids)
            for k, turn in enumerate(row)
            for n in range(len(turn))
        ]

    def _view(self) -> TokenView:
        """Every third trajectory begins a new row at its second turn; each turn comes after one prompt token."""
        rows: list[list[tuple[int, int, int]]] = []
        for b, row in enumerate(self.ids):
            for k, turn in enumerate(row):
                if k == 0 or (k == 1 and b % 3 == 0):
                    rows.append([])
                rows[-1] += [(b, -1, 0), *((b, k, n) for n in range(len(turn)))]

        def of(read: dict[str, Any], name: str) -> torch.Tensor:
            of_rows = [[JUNK if k < 0 else read[name][b][k][n] for b, k, n in row] for row in rows]
            return padded(of_rows, fill=JUNK)

        turn_RT = padded([[float(k) for _, k, _ in row] for row in rows], fill=-1).long()
        return TokenView(
            token_RT=of({"ids": self.ids}, "ids").long(),
            mask_RT=turn_RT >= 0,
            turn_RT=turn_RT,
            trajectory_R=torch.tensor([row[0][0] for row in rows], dtype=torch.long),
            signals={name: of(self.tokens, name) for name in self.tokens},
        )


def padded(rows: Rows | list[list[int]], fill: float = 0.0) -> torch.Tensor:
    width = max((len(row) for row in rows), default=0)
    full = [[*row, *[fill] * (width - len(row))] for row in rows]
    return torch.tensor(full, dtype=torch.float64).reshape(len(rows), width)


def ragged(seed: int) -> Ragged:
    """The batch of this number; batch 0 is one group."""
    rng = random.Random(f"ragged {seed}")
    sizes = [4] if seed == 0 else [rng.choice([1, 2, 3, 4, 5, 6]) for _ in range(rng.choice([2, 3, 4]))]
    group = [g for g, size in enumerate(sizes) for _ in range(size)]
    lengths = [rng.randint(1, 5) for _ in group]
    kind = [rng.choice(KINDS) for _ in sizes]
    found = Ragged(
        rewards=[_rewards(rng, kind[g], n) for g, n in zip(group, lengths, strict=True)],
        group=group,
        truncated=[rng.random() < 0.3 for _ in group],
        states=[
            [10 * g, *(10 * g + rng.randint(0, 2) for _ in range(n - 1))]
            for g, n in zip(group, lengths, strict=True)
        ],
        ids=[[[rng.randint(0, 2) for _ in range(rng.randint(1, 4))] for _ in range(n)] for n in lengths],
    )
    _measure(rng, found)
    if seed in EDGES:
        EDGES[seed](found)
    _branch(found)
    if seed % 4:
        roles = random.Random(f"roles {seed}")
        found.role = [roles.randrange(3) for _ in found.group]
    if seed % 5:
        written = random.Random(f"written {seed}")
        found.memory = [[float(written.random() < 0.4) for _ in row] for row in found.rewards]
    return found


def _branch(found: Ragged) -> None:
    """Every other trajectory is a chain; in the others a turn goes on from any before it, or begins, called for or not."""
    rng = random.Random(f"branched {found.rewards}")
    for b, row in enumerate(found.rewards):
        found.parents.append([k - 1 for k in range(len(row))])
        found.callers.append([-1] * len(row))
        for k in range(1, len(row) if b % 2 else 0):
            kind, before = (
                rng.choice(["goes on", "goes on", "from", "called", "called", "alone"]),
                rng.randrange(k),
            )
            if kind != "goes on":
                found.parents[b][k] = before if kind == "from" else -1
                found.callers[b][k] = before if kind == "called" else -1


def _rewards(rng: random.Random, kind: str, n: int) -> list[float]:
    if kind == "dense":
        return [round(rng.uniform(-1, 1), 3) for _ in range(n)]
    if kind == "sparse":
        return [rng.choice([0.0, 0.0, 0.5, 1.0]) for _ in range(n)]
    last = {"outcome": float(rng.random() < 0.5), "none": 0.0, "equal": 0.7}[kind]
    return [0.0] * (n - 1) + [last]


def _measure(rng: random.Random, found: Ragged) -> None:
    lengths = [len(row) for row in found.rewards]
    for name, (low, high) in OF_TURNS.items():
        found.turns[name] = [[rng.uniform(low, high) for _ in range(n)] for n in lengths]
    for name in ("wrong", "valid"):
        found.turns[name] = [[float(rng.random() < 0.5) for _ in range(n)] for n in lengths]
    for name in ("standing", "matched"):
        found.turns[name] = [[rng.choice([0.0, 0.25, 0.5, 1.0])] * n for n in lengths]
    found.turns["r3_spread"] = [[3 * g % 4 / 4] * n for g, n in zip(found.group, lengths, strict=True)]
    found.turns["against_one"] = [[float(5 * i % 3) - 1.0] * n for i, n in enumerate(lengths)]
    found.turns["preference"] = [[float(7 * i % 5) - 2.0] * n for i, n in enumerate(lengths)]
    found.turns["tokens"] = [[float(len(turn)) for turn in row] for row in found.ids]
    found.turns["logp"] = [[-sum(rng.uniform(0, 1.5) for _ in turn) for turn in row] for row in found.ids]
    found.turns["edge"], found.turns["leaf_weight"] = _grown(found)
    found.whole = {
        "last_value": [rng.uniform(-0.5, 1.2) for _ in lengths],
        **{
            name: _of_groups(rng, found.group, low, high)
            for name, (low, high) in {"past_mean": (0, 1), "past_std": (0, 0.6)}.items()
        },
        "past_visits": [float(round(x)) for x in _of_groups(rng, found.group, 0, 3)],
        "answer": [float((7 * i + len(row)) % 3) for i, row in enumerate(found.rewards)],
    }
    for name, (low, high) in OF_TOKENS.items():
        found.tokens[name] = [[[rng.uniform(low, high) for _ in turn] for turn in row] for row in found.ids]
    found.tokens["token_planning"] = [
        [[float(rng.random() < 0.4) for _ in turn] for turn in row] for row in found.ids
    ]
    said = [[[rng.uniform(-3, 0) for _ in turn] for turn in row] for row in found.ids]
    found.tokens["token_logp"] = said
    found.tokens["token_teacher_logp"] = [
        [[p + rng.choice([0.0, 0.03, 0.15, 1.0]) * rng.gauss(0, 1) for p in turn] for turn in row]
        for row in said
    ]
    other = random.Random(f"measured later {found.rewards}")  # whatever came before is drawn as it was
    found.turns["rank_drive"] = [[other.uniform(-0.4, 0.8) for _ in range(n)] for n in lengths]
    found.tokens["token_disagreement"] = [
        [[other.random() for _ in turn] for turn in row] for row in found.ids
    ]
    found.turns["tag"] = [[float(other.randrange(4)) for _ in range(n)] for n in lengths]
    found.turns["tag_reward"] = [[float(other.random() < 0.5) for _ in range(n)] for n in lengths]
    found.turns["long_logp"] = [[x - 900 for x in row] for row in found.turns["logp"]]
    thinking = random.Random(f"thinking {found.rewards}")
    for name in ("rlp", "rlbff"):
        found.turns[name] = [[thinking.uniform(-0.3, 0.7) for _ in range(n)] for n in lengths]
    found.tokens["token_thought"] = [
        [[float(n < thinking.randrange(3)) for n in range(len(turn))] for turn in row] for row in found.ids
    ]
    floor = thinking.choice([0.0, 0.3, 0.6])
    found.turns["spread_floor"] = [[floor] * n for n in lengths]
    helped = random.Random(f"helped {found.rewards}")
    found.turns["foreign"] = [
        [float(any_ and helped.random() < 0.7) for _ in range(n)]
        for n, any_ in ((n, helped.random() < 0.4) for n in lengths)
    ]
    left = random.Random(f"left early {found.rewards}")
    for name, least, most in (("exit_trunk", 3, 5), ("exit_at", 0, 3)):
        found.turns[name] = [[float(left.randint(least, most))] * n for n in lengths]
    found.turns["exit_segment"] = [[float(left.randint(-1, 3)) for _ in range(n)] for n in lengths]


def _grown(found: Ragged) -> tuple[Rows, Rows]:
    """Some pairs of a group share their first turns: the number of the edge, and the weight of the leaf."""
    rng = random.Random(f"grown {found.rewards}")
    edge = [[0.0] * len(row) for row in found.rewards]
    number = 0
    for i in range(0, len(found) - 1, 2):
        j, most = i + 1, min(len(found.rewards[i]), len(found.rewards[i + 1]))
        if found.group[i] == found.group[j] and rng.random() < 0.7:
            for k in range(rng.randint(0, most - 1)):
                number += 1
                edge[i][k] = edge[j][k] = float(number)
    weight = [rng.uniform(0.2, 2) for _ in found.rewards]
    return edge, [[w] * len(row) for w, row in zip(weight, found.rewards, strict=True)]


def _of_groups(rng: random.Random, group: list[int], low: float, high: float) -> list[float]:
    of = {g: rng.uniform(low, high) for g in sorted(set(group))}
    return [of[g] for g in group]


def _of_turns(found: Ragged) -> list[list[list[Any]]]:
    """All that has a row for each trajectory and in it something for each turn."""
    return [found.rewards, found.states, found.ids, *found.turns.values(), *found.tokens.values()]


def _sure(found: Ragged) -> None:
    """One group is without any entropy, the others have it unequally; one trajectory ends where others go on."""
    for rows in _of_turns(found):
        rows[2] = rows[2][:1]
    found.states[0][:2], found.states[1][:2], found.states[2] = [0, -20], [0, 2], [0]
    for i, row in enumerate(found.turns["entropy"]):
        scale = 0.0 if found.group[i] == 0 else 10.0 if i % 3 == 0 else 0.1
        found.turns["entropy"][i] = [scale * x for x in row]


def _alike(found: Ragged) -> None:
    """Nothing differs: entropies, returns, what was said."""
    found.turns["entropy"] = [[0.5] * len(row) for row in found.rewards]
    found.rewards = [[0.0] * (len(row) - 1) + [0.5 + 3e-8 * i] for i, row in enumerate(found.rewards)]
    found.states = [
        [10 * g + (9 if k == 0 and i == 4 else k) for k in range(len(row))]
        for i, (g, row) in enumerate(zip(found.group, found.rewards, strict=True))
    ]
    found.turns["logp"] = [[-0.125 * n for n in row] for row in found.turns["tokens"]]
    found.turns["matched"] = [[0.0] * len(row) for row in found.rewards]
    found.turns["progress"] = found.turns["implicit"] = [[0.0] * len(row) for row in found.rewards]
    found.whole["past_std"] = [0.0] * len(found)
    found.tokens["token_implicit"] = [[[0.0] * len(turn) for turn in row] for row in found.ids]


def _extreme(found: Ragged) -> None:
    """Returns far above 1 and below 0, values beyond [0, 1], everyone on the same way but for the start."""
    found.states = [
        [10 * g + (9 if k == 0 and i % 3 == 0 else k) for k in range(len(row))]
        for i, (g, row) in enumerate(zip(found.group, found.rewards, strict=True))
    ]
    found.rewards = [
        [(3.0 if i % 2 else -2.0) * (x + 0.1) for x in row] for i, row in enumerate(found.rewards)
    ]
    found.turns["value"] = [[3 * x - 1 for x in row] for row in found.turns["value"]]


def _solved(found: Ragged) -> None:
    """Outcomes of 0 and 1, and of the smallest success that a rule is told, up to rounding; two states."""
    rng = random.Random("solved")
    found.states = [[rng.randint(0, 1) for _ in row] for row in found.rewards]
    found.rewards = [
        [0.0] * (len(row) - 1) + [(0.0, 1.0 - 1e-7, 0.4 - 1e-7)[i % 3]] for i, row in enumerate(found.rewards)
    ]


def _single(found: Ragged) -> None:
    """Every trajectory is one turn of one token."""
    for rows in _of_turns(found):
        rows[:] = [row[:1] for row in rows]
    found.ids = [[row[0][:1]] for row in found.ids]
    found.tokens = {name: [[row[0][:1]] for row in rows] for name, rows in found.tokens.items()}
    found.turns["tokens"] = [[1.0] for _ in found.rewards]
    found.turns["wrong"] = [[float(i % 2 == 0)] for i in range(len(found))]


def _lonely(found: Ragged) -> None:
    """One trajectory of one turn of one token is the whole batch."""
    _single(found)
    found.rewards[0] = [0.5]
    _first(found, 1)


def _first(found: Ragged, count: int) -> None:
    """Only so many trajectories."""
    signals = (*found.turns.values(), *found.whole.values(), *found.tokens.values())
    for each in (found.rewards, found.group, found.truncated, found.states, found.ids, *signals):
        del each[count:]


def _pair(found: Ragged) -> None:
    """Two trajectories of one turn of one token."""
    _single(found)
    found.rewards[:2], found.group[:2] = [[0.5], [1.0]], [0, 0]
    _first(found, 2)


def _crossing(found: Ragged) -> None:
    """Two trajectories whose tokens are the same at other places and turns, which must not be taken for conflicts."""
    _first(found, 2)
    found.group[:] = [0, 0]
    found.ids = [[[0, 0, 1, 2], [0, 1]], [[0, 0, 2, 2], [1, 1]]]
    _resize(found)


def _apart(found: Ragged) -> None:
    """Two tasks of one trajectory each, one of them with many turns, and the same token throughout."""
    _first(found, 2)
    found.group[:] = [0, 1]
    found.ids = [[[1], [1], [1], [1], [1]], [[1], [1]]]
    _resize(found)


def _resize(found: Ragged) -> None:
    """Everything of turns and tokens as many times as there are turns and tokens; outcomes 1 and 0."""
    several: list[list[list[Any]]] = [found.rewards, found.states, *found.turns.values()]
    for rows in several:
        rows[:] = [
            [row[k % len(row)] for k in range(len(said))] for row, said in zip(rows, found.ids, strict=True)
        ]
    found.rewards = [[0.0] * (len(row) - 1) + [float(i == 0)] for i, row in enumerate(found.rewards)]
    found.turns["tokens"] = [[float(len(turn)) for turn in row] for row in found.ids]
    found.tokens = {
        name: [[[rows[b][0][0]] * len(turn) for turn in row] for b, row in enumerate(found.ids)]
        for name, rows in found.tokens.items()
    }


def _rounded(found: Ragged) -> None:
    """Returns that are equal but for rounding: of all, or of two kinds, one of them the higher."""
    found.rewards = [
        [0.0] * (len(row) - 1) + [float(g > 0 and i % 2 == 0) + 1e-12 * i]
        for i, (g, row) in enumerate(zip(found.group, found.rewards, strict=True))
    ]


EDGES = {
    5: _sure,
    6: _alike,
    7: _extreme,
    8: _solved,
    9: _single,
    10: _lonely,
    11: _pair,
    12: _crossing,
    13: _apart,
    14: _rounded,
}
"""Batches in which something is at its edge."""
