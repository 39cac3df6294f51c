"""In how many directions a trajectory's hidden states point, and whether that grows more than usual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group, PartState
from turnwise.trainers.kit.stand_in import wave
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.passes import PassPart, before_tokens
from turnwise.trainers.signal.core import Measured, Reading, Signal, SignalContext, SignalSetup


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"rank_drive": 0.3 * wave(p)}


@component(
    "signal",
    "effective_rank",
    paper="2509.23808",
    gives=("rank_drive",),
    reads=("forward pass", "memory"),
    stand_in=_stand_in,
)
class EffectiveRank(Signal):
    """w·tanh(ER) + (1 − w)·tanh(ERV), each against what is usual: for the shape `verl`, the same at each turn.

    ER is exp(entropy of the shares of the singular values) of the centred hidden states from which the trajectory's tokens were
    drawn; ERV how much it is above the mean of shorter prefixes, ERA how fast that grows, both meaned over prefixes. Prefixes
    end with each turn, or after every ``stride`` tokens (40 there). What is usual is a moving mean of the batches' means (new
    ones count ``alpha``), of which x is off by (x − usual)/|usual|, at most 5; w = σ(2·that of ERA). In the first update, where
    nothing is usual, 0. VERL (Huang et al. 2025). Ours: states before tokens, prefixes by turns, and of a prefix of more than
    ``most`` tokens as many evenly spread ones. All hidden states of the batch's tokens are kept until it is done.

    Metric: ``effective_rank``, the mean of ER.

    Worked by hand: ER 12 (usual 10), ERV 0.5 (0.4), ERA 0.06 (0.05): w = 0.5987.

    >>> [round(directions(torch.tensor(x)), 4) for x in ([[1.0, 0], [-1, 0], [0, 1], [0, -1]], [[2.0, 0], [-2, 0], [0, 1], [0, -1]])]
    [2.0, 1.8899]
    >>> directions(torch.tensor([[1.0, 0]])), round(directions(torch.tensor([[1.0, 0], [2, 0], [3, 0]])), 4)
    (0.0, 1.0)
    >>> directions(torch.ones(3, 2)), [round(drive(Growth(*x), Growth(1, 1, 1)), 8) for x in ((100, 0, 0), (-100, 0, -100))]
    (1.0, [-0.55161781, -0.76160497])
    >>> round(drive(Growth(1e-8, 0, 0), Growth(0, 1, 1)), 8)
    -0.58002566
    >>> round(drive(Growth(12, 0.5, 0.06), Growth(10, 0.4, 0.05)), 4)
    0.2165

    Raises:
        RecipeError: a prefix would have no token more than the one before, or never more than one direction.
    """

    def __init__(
        self, setup: SignalSetup, *, stride: int | None = None, most: int = 256, alpha: float = 0.3
    ) -> None:
        if (stride is not None and stride < 1) or most < 3:
            raise RecipeError(
                f"signal 'effective_rank': with stride={stride} and most={most} nothing can be compared.",
                "Give stride: 1 or more, and most: 3 or more.",
            )
        self.stride, self.most, self.alpha = stride, most, alpha
        self._usual: Growth | None = None

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Reading:
        rows, of_row = batch.rows, dict[int, Tensor]()

        def read(seen: PassPart) -> None:
            pieces = before_tokens(seen.rows, seen.hidden_RTD).cpu().split(seen.rows.mask_RT.sum(1).tolist())
            of_row.update(zip(seen.index_N.tolist(), pieces, strict=True))

        def done() -> Measured:
            found: list[Growth] = []
            for b in range(len(batch.turns.group_B)):
                own = [r for r, owner in enumerate(rows.trajectory_R.tolist()) if owner == b]
                turns = [rows.turn_RT[r][rows.mask_RT[r]] for r in own]
                if not any(map(len, turns)):
                    found.append(NOTHING)
                    continue
                turn_N, state_ND = torch.cat(turns), torch.cat([of_row[r] for r in own])
                order_N = turn_N.argsort(stable=True)
                found.append(self._growth(state_ND[order_N], turn_N[order_N]))
            return self._told(found, batch.turns.mask_BK)

        return Reading(read, done)

    def _growth(self, state_ND: Tensor, turn_N: Tensor) -> Growth:
        """Of one trajectory, from the states before its tokens in order."""
        n = len(turn_N)
        if self.stride is None:
            ends = turn_N.unique(return_counts=True)[1].cumsum(0).tolist()
        else:
            ends = [*range(self.stride, n, self.stride), n]
        rank_J = torch.tensor([directions(self._spread(state_ND[:end])) for end in ends], dtype=torch.float64)
        before_J = rank_J.cumsum(0)[:-1] / torch.arange(1, len(rank_J))
        gained_J = rank_J[1:] - before_J
        return Growth(rank_J[-1].item(), _mean(gained_J), _mean(gained_J.diff()))

    def _spread(self, state_ND: Tensor) -> Tensor:
        n = len(state_ND)
        return state_ND if n <= self.most else state_ND[torch.arange(self.most) * n // self.most]

    def _told(self, found: Sequence[Growth], mask_BK: Tensor) -> Measured:
        known = found or [NOTHING]
        now = Growth(*(sum(x) / len(known) for x in zip(*known, strict=True)))
        usual = self._usual
        drives = [0.0 if usual is None else drive(one, usual) for one in found]
        self._usual = (
            now
            if usual is None
            else Growth(*(self.alpha * x + (1 - self.alpha) * m for x, m in zip(now, usual, strict=True)))
        )
        drive_BK = torch.tensor(drives, dtype=torch.float64)[:, None] * mask_BK
        return Measured({"rank_drive": drive_BK}, metrics={"effective_rank": now.rank})

    def state(self) -> PartState:
        return PartState({"usual": self._usual and [*self._usual]})

    def restore(self, state: PartState) -> None:
        usual = state.numbers["usual"]
        self._usual = Growth(*usual) if isinstance(usual, list) else None  # pyright: ignore[reportArgumentType]


class Growth(NamedTuple):
    """Directions of a trajectory's states, how many more than of its prefixes, and how fast that grows."""

    rank: float
    gained: float
    faster: float


NOTHING = Growth(0.0, 0.0, 0.0)


def directions(state_ND: Tensor) -> float:
    """The effective rank of some states around their mean: 0 of fewer than two."""
    if len(state_ND) < 2:
        return 0.0
    size_J = torch.linalg.svdvals((state_ND - state_ND.mean(0)).double())
    share_J = size_J / size_J.sum().clamp(min=1e-12)
    return float(torch.special.entr(share_J).sum().exp())


def drive(one: Growth, usual: Growth) -> float:
    """Return the worth of a trajectory's figures against the usual ones, between −1 and 1."""
    off = torch.tensor(one, dtype=torch.float64) - torch.tensor(usual, dtype=torch.float64)
    rank, gained, faster = (off / torch.tensor(usual, dtype=torch.float64).abs().clamp(min=1e-8)).clamp(-5, 5)
    share = (2 * faster).sigmoid()
    return float(share * rank.tanh() + (1 - share) * gained.tanh())


def _mean(x_J: Tensor) -> float:
    return float(x_J.mean()) if len(x_J) else 0.0
