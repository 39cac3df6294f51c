"""A stranger's package: a part for every seam that the trainer leaves open, most of which learn or remember."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from turnwise import Group, component
from turnwise.trainers.core import PartState, ScheduleMoment, TokenCredit, TurnBatch, WholeBatch, WholeLoss
from turnwise.trainers.guide.core import GuidePlayer, is_unsolved
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.heads import Gap
from turnwise.trainers.learn.passes import PassPart, states
from turnwise.trainers.sampler.core import GroupRequest, Sampler, SamplerSetup, SeenGroup
from turnwise.trainers.signal.core import Measured, Reading, Signal, SignalContext, SignalSetup
from turnwise.trainers.source.core import SourceContext, SourceDraw
from turnwise.trainers.source.demonstrations import demonstrations
from turnwise.trainers.teacher.core import GIVES, Teacher, TeacherSetup


@component("signal", "promise", gives=("promise",), reads=("forward pass", "outcomes"), learns=True)
class Promise(Signal):
    """The chance of success from each turn, by a linear head that is fitted to outcomes.

    >>> Promise.__name__
    'Promise'
    """

    def __init__(self, setup: SignalSetup) -> None:
        self.module = self._head = nn.Linear(setup.width, 1).to(setup.device)
        nn.init.zeros_(self._head.weight)
        nn.init.zeros_(self._head.bias)
        self.seen = 0

    def _at(self, seen: PassPart, batch: TrainingBatch) -> tuple[Tensor, Tensor]:
        where_BK, hidden_ND = states(seen.rows, seen.index_N, batch.turns.mask_BK, seen.hidden_RTD)
        return where_BK, self._head(hidden_ND.detach().float())[:, 0].sigmoid()

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Reading:
        found_BK = torch.zeros(batch.turns.mask_BK.shape)
        self.seen += len(batch.success_B)

        def read(seen: PassPart) -> None:
            where_BK, chance_N = self._at(seen, batch)
            found_BK[where_BK] = chance_N.cpu()

        return Reading(
            read, lambda: Measured({"promise": found_BK}, metrics={"promise_seen": float(self.seen)})
        )

    def gaps(self, seen: PassPart, batch: TrainingBatch, credit: Tensor | TokenCredit) -> Iterator[Gap]:
        where_BK, chance_N = self._at(seen, batch)
        aim_BK = batch.success_B[:, None].expand(where_BK.shape).float()
        yield Gap("promise_error", chance_N - aim_BK[where_BK].to(chance_N.device), "turns")

    def state(self) -> PartState:
        return PartState({"seen": self.seen})

    def restore(self, state: PartState) -> None:
        self.seen = int(state.numbers["seen"])  # pyright: ignore[reportArgumentType]


@component("shape", "halved", bias="changes the objective: failures count half")
def halved(credit: Tensor | TokenCredit, batch: TurnBatch) -> Tensor | TokenCredit:
    """Half of what is below 0.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(halved(torch.tensor([[1.0, -1.0]]), turn_batch([[0, 0]])))
    [[1.0, -0.5]]
    """
    x = credit if isinstance(credit, Tensor) else credit.advantage_RT
    x = torch.where(x < 0, x / 2, x)
    return x if isinstance(credit, Tensor) else TokenCredit(x)


@component("sampler", "counting")
class Counting(Sampler):
    """New tasks, more of them skipped the more was solved: its memory is a count.

    >>> from turnwise.trainers.sampler.core import example_setup
    >>> [asked.index for asked in Counting(example_setup()).plan(0, 0, 3)]
    [0, 1, 2]
    """

    def __init__(self, setup: SamplerSetup) -> None:
        super().__init__(setup)
        self.solved = 0

    def plan(self, update: int, played: int, groups: int) -> list[GroupRequest]:
        first = self.setup.first_new(update) + 1000 * self.solved + played
        return [self.setup.request(first + i) for i in range(groups)]

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        self.solved += sum(episode.success for group in groups for episode in group.episodes)

    def state(self) -> PartState:
        return PartState({"solved": self.solved})

    def restore(self, state: PartState) -> None:
        self.solved = int(state.numbers["solved"])  # pyright: ignore[reportArgumentType]


@component("guide", "again")
async def again(player: GuidePlayer, groups: Sequence[Group]) -> list[Group]:
    """Groups that nobody solved are played once more.

    >>> again.__name__
    'again'
    """
    more = await player({n: group for n, group in enumerate(groups) if is_unsolved(group)}, player.policy)
    return [more.get(n, group) for n, group in enumerate(groups)]


@component("source", "fading")
class Fading:
    """Demonstrations, one fewer each time it is asked.

    >>> Fading(episodes=3).episodes
    3
    """

    def __init__(self, *, episodes: int = 3) -> None:
        self.episodes, self.asked = episodes, 0

    async def __call__(self, see: SourceContext, update: int) -> SourceDraw:
        left, self.asked = self.episodes - self.asked, self.asked + 1
        return await demonstrations(see, update, episodes=left) if left > 0 else SourceDraw()

    def state(self) -> PartState:
        return PartState({"asked": self.asked})

    def restore(self, state: PartState) -> None:
        self.asked = int(state.numbers["asked"])  # pyright: ignore[reportArgumentType]


@component("teacher", "slow", gives=GIVES)
class Slow(Teacher):
    """A running mean of the policy's weights.

    >>> Slow.__name__
    'Slow'
    """

    def __init__(self, setup: TeacherSetup, *, decay: float = 0.5) -> None:
        self.model: Any = setup.copy_policy()
        self.decay = decay

    @torch.no_grad()
    def learned(self, policy: nn.Module) -> None:
        for mine, theirs in zip(self.model.parameters(), policy.parameters(), strict=True):
            mine.lerp_(theirs.to(mine.dtype), 1 - self.decay)

    def state(self) -> PartState:
        return PartState(tensors={name: x.contiguous() for name, x in self.model.named_parameters()})

    @torch.no_grad()
    def restore(self, state: PartState) -> None:
        for name, x in self.model.named_parameters():
            x.copy_(state.tensors[name])


@component("loss", "margin", whole=True, slope="own", needs=("token_teacher_logp",))
class Margin:
    """Sampled tokens are pulled to the teacher's log-probability, against a running mean of the gap.

    >>> Margin().mean
    0.0
    """

    def __init__(self, *, decay: float = 0.9) -> None:
        self.mean, self.decay = 0.0, decay

    def __call__(self, batch: WholeBatch) -> WholeLoss:
        gap_N = (batch.signals["token_teacher_logp"] - batch.logp_RT)[batch.mask_RT]
        loss = ((gap_N - self.mean) ** 2).sum() / max(1, len(gap_N)) + 0 * batch.logp_RT.sum()
        now = float(gap_N.detach().mean()) if len(gap_N) else 0.0
        self.mean = self.decay * self.mean + (1 - self.decay) * now
        return WholeLoss(loss, {"margin": loss.detach()})

    def state(self) -> PartState:
        return PartState({"mean": self.mean})

    def restore(self, state: PartState) -> None:
        self.mean = float(state.numbers["mean"])  # pyright: ignore[reportArgumentType]


@component("schedule", "shrinking")
def shrinking(now: ScheduleMoment, *, by: float = 0.9) -> float:
    """A share of what it was in the update before.

    >>> shrinking(ScheduleMoment(1, 9, first=1.0, last=0.5))
    0.45
    """
    return now.last * by if now.update else now.first
