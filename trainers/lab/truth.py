"""Episodes whose true advantages are known: exactly on small processes, by forking elsewhere.

What a turn was worth is A(s, a) = E[return from here on | s, a] − E[return from here on | s]. On the processes of
:mod:`turnwise.trainers.lab.processes` both are sums; in an environment they are means over fresh rollouts from
the states before and after the turn, with a standard error.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from turnwise.agents.core import Episode, Policy
from turnwise.agents.rollout import Request
from turnwise.errors import TurnwiseError
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.judge.gold import gold
from turnwise.trainers.kit.groups import reverse_cumsum
from turnwise.trainers.lab.exact import Paths, Process, batch_of, paths, value_of_state
from turnwise.trainers.lab.processes import PROCESSES, lopsided, made_up, signals
from turnwise.trainers.lab.text_value import text_values
from turnwise.trainers.learn.collate import collate, collate_turns
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.signal.answers import solutions
from turnwise.trainers.signal.matched import shares
from turnwise.trainers.signal.sampled import logp_and_tokens
from turnwise.trainers.signal.validity import accepted
from turnwise.trainers.strategy.runner import (
    Cost,
    Plan,
    RecordedMoments,
    RolloutRunner,
    RunnerResult,
    TurnPoint,
    plan_groups,
)
from turnwise.trainers.strategy.tree import grow, labelled
from turnwise.trainers.strategy.vine import Values, fork_values, value_of


@dataclass(frozen=True)
class TrueAdvantageBatch:
    """A batch with the true advantage of each of its turns.

    Attributes:
        source: ``process`` or the suite's name.
        stage: of the policy.
        turns: the batch, with every signal that could be measured.
        truth_BK: the true advantages.
        error_BK: their standard errors, 0 where they are exact.
        cost: environment steps and tokens of the episodes themselves.
        fork_cost: of the forks that the signal ``fork_value`` took.
        exact: on a process, all its trajectories; else None.
        index_B: which of them each trajectory is.
        episodes: in an environment, what was played, in the order of the batch.
    """

    source: str
    stage: str
    turns: TurnBatch
    truth_BK: Tensor
    error_BK: Tensor
    cost: Cost
    fork_cost: Cost
    exact: Paths | None = None
    index_B: Tensor | None = None
    episodes: tuple[Episode, ...] = ()

    @property
    def reliability(self) -> float:
        """The share of the measured truth's variance that is not measurement error, in [0, 1]."""
        mask_BK = self.turns.mask_BK
        variance = self.truth_BK[mask_BK].var().item()
        return max(0.0, 1 - (self.error_BK[mask_BK] ** 2).mean().item() / variance) if variance > 0 else 0.0


# --- processes ------------------------------------------------------------------------------------

STAGES = {"start": 0, "middle": 20, "late": 80}
"""Steps of exact gradient ascent that the policy has behind it."""


def process_batches(groups: int, size: int, vine_forks: int, seed: int) -> Iterator[TrueAdvantageBatch]:
    """An batch per process and stage; values are exact, those of ``fork_value`` means of ``vine_forks`` rollouts."""
    for process in PROCESSES:
        logits_SA = lopsided(process)
        made = 0
        for stage, steps in STAGES.items():
            for _ in range(steps - made):
                logits_SA = logits_SA + paths(process, logits_SA).policy_gradient()
            made = steps
            yield _process_batch(process, logits_SA, stage, (groups, size, vine_forks, seed))


def _process_batch(
    process: Process, logits_SA: Tensor, stage: str, sizes: tuple[int, int, int, int]
) -> TrueAdvantageBatch:
    groups, size, vine_forks, seed = sizes
    p = paths(process, logits_SA)
    generator = torch.Generator().manual_seed(seed)
    index_B = torch.multinomial(p.probability_N.detach(), groups * size, True, generator=generator)
    group_B = torch.arange(groups).repeat_interleave(size)
    batch = batch_of(p, index_B, group_B, signals(p))
    forked_BK, fork_steps = _process_forks(p, batch, vine_forks, generator)
    batch = dataclasses.replace(batch, signals={**batch.signals, "fork_value": forked_BK})
    batch = without(batch, made_up())
    truth_BK = true_advantages(p)[index_B]
    cost = Cost(steps=int(batch.mask_BK.sum()))
    return TrueAdvantageBatch(
        "processes", f"{process.name}, {stage}", batch, truth_BK, torch.zeros_like(truth_BK), cost, Cost(steps=fork_steps), p, index_B
    )  # fmt: skip


def without(batch: TurnBatch, names: Collection[str]) -> TurnBatch:
    """The batch without these signals of turns and of tokens."""

    def kept(signals: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: x for name, x in signals.items() if name not in names}

    tokens = batch.tokens and dataclasses.replace(batch.tokens, signals=kept(batch.tokens.signals))
    return dataclasses.replace(batch, signals=kept(batch.signals), tokens=tokens)


def _process_forks(p: Paths, batch: TurnBatch, forks: int, generator: torch.Generator) -> tuple[Tensor, int]:
    """Mean return of ``forks`` fresh rollouts from the state before each turn, (B, K), and the steps they took.

    What may follow state s at turn k are the rests of the trajectories that are in s at turn k, as likely as
    these are among each other.
    """
    rest_NK = reverse_cumsum(p.reward_NK)
    left_NK = reverse_cumsum(p.mask_NK.double())
    state_BK = batch.state_BK - 1
    value_BK, steps = torch.zeros_like(batch.reward_BK), 0
    for k in range(batch.mask_BK.shape[1]):
        for state in state_BK[batch.mask_BK[:, k], k].unique().tolist():
            here_B = batch.mask_BK[:, k] & (state_BK[:, k] == state)
            chance_N = p.probability_N.detach() * (p.mask_NK[:, k] & (p.state_NK[:, k] == state))
            drawn = torch.multinomial(chance_N, int(here_B.sum()) * forks, True, generator=generator)
            value_BK[here_B, k] = rest_NK[drawn, k].view(-1, forks).mean(1)
            steps += int(left_NK[drawn, k].sum())
    return value_BK, steps


def true_advantages(p: Paths) -> Tensor:
    """A(s_k, a_k) of every turn of every trajectory, given the turns that are left, (N, K).

    >>> from turnwise.trainers.kit.toy_batches import rounded
    >>> from turnwise.trainers.lab.processes import CHAIN
    >>> p = paths(CHAIN, torch.zeros(3, 2))
    >>> rounded(true_advantages(p))[0]  # 0.3 + 0.3955 − ½(0.3 + 0.3955 + 0.3), then 0.1 − 0.3955
    [0.19775, -0.2955]
    """
    logp_SA = p.logits_SA.detach().log_softmax(-1)
    truth_NK = torch.zeros_like(p.reward_NK)
    for n, k in p.mask_NK.nonzero().tolist():
        state, action, left = int(p.state_NK[n, k]), int(p.action_NK[n, k]), p.process.horizon - k
        q = sum(
            b.probability * (b.reward + (0.0 if b.state is None else value_of_state(p.process, logp_SA, b.state, left - 1)))
            for b in p.process.branches[state, action]
        )  # fmt: skip
        truth_NK[n, k] = q - p.value_NK[n, k]
    return truth_NK


# --- environments ---------------------------------------------------------------------------------


def suite_batch(
    suite: str,
    policy: Policy,
    *,
    groups: int,
    size: int,
    forks: int,
    vine_forks: int,
    seed: int,
    branch_at: tuple[int, ...] = (),
) -> TrueAdvantageBatch:
    """Play ``groups`` tasks ``size`` times each, and fork every state ``forks`` times for the truth.

    Verdicts are those of the judge ``gold``. The ``vine_forks`` behind the signal ``fork_value`` are others, so that they do not know the truth's errors.
    With ``branch_at`` the episodes are trees that branch in two at these turns.

    Raises:
        TurnwiseError: an episode or all forks of a state failed.
    """

    runner = RolloutRunner(policy, as_is)
    source = f"{suite}, trees" if branch_at else suite
    plan = plan_groups(suite, groups, size, seed, 0)
    return asyncio.run(
        _forked(source, policy, runner, _grown(runner, plan, branch_at), forks, vine_forks, env_options=None)
    )


def logged_batch(
    source: str,
    policy: Policy,
    groups: Sequence[Sequence[Episode]],
    *,
    forks: int,
    vine_forks: int,
    env_options: Mapping[str, Any] | None = None,
) -> TrueAdvantageBatch:
    """The same of groups that were played before, by this policy: each is played again as it is recorded, and forked.

    Raises:
        TurnwiseError: an episode or all forks of a state failed, or an episode does not play again as it is recorded.
    """
    moments = {
        (one.task.id, one.seed): TurnPoint(one, len(one.trajectory.turns))
        for group in groups
        for one in group
    }
    again = RolloutRunner(RecordedMoments(moments), as_is, env_options=env_options)
    return asyncio.run(_forked(source, policy, again, _again(again, groups), forks, vine_forks, env_options))


async def _forked(
    source: str,
    policy: Policy,
    runner: RolloutRunner,
    played: Awaitable[tuple[list[list[RunnerResult]], list[list[Episode]]]],
    forks: int,
    vine_forks: int,
    env_options: Mapping[str, Any] | None,
) -> TrueAdvantageBatch:
    """Return the batch that was played, with the true advantages by forks on which the policy goes on."""
    truth, vine = (RolloutRunner(policy, as_is, env_options=env_options) for _ in range(2))
    grown, episodes = await played
    known = await fork_values(truth, grown, forks, "truth")
    measured = await fork_values(vine, grown, vine_forks, "vine")
    batch = with_gold(await gold(episodes))
    value_BK, _ = _on_turns(measured, grown, batch)
    turns = dataclasses.replace(batch, signals={**batch.signals, "fork_value": value_BK})
    truth_BK, error_BK = _one_step(*_on_turns(known, grown, batch), batch)
    flat = tuple(episode for group in episodes for episode in group)
    return TrueAdvantageBatch(
        source, policy.name, turns, truth_BK, error_BK, runner.cost, vine.cost, episodes=flat
    )


async def _again(
    runner: RolloutRunner, groups: Sequence[Sequence[Episode]]
) -> tuple[list[list[RunnerResult]], list[list[Episode]]]:
    """Recorded episodes with their branch points, which are reached by playing them once more."""
    requests = [Request(one.task, one.seed) for group in groups for one in group]
    reached = iter(await runner(requests, branch_points=True))
    grown = [[_on_record(one, next(reached)) for one in group] for group in groups]
    return grown, [[*group] for group in groups]


def _on_record(episode: Episode, played: RunnerResult) -> RunnerResult:
    found = [
        TurnPoint(episode, turn).at(played.branch_point(turn))
        for turn in range(len(episode.trajectory.turns))
    ]
    if None in found:
        raise TurnwiseError(
            f"An episode of task {episode.task.id} does not play again as it is recorded: turn {found.index(None) + 1} "
            "begins in another state.",
            "Measure with the version of the environment that the run was made with.",
        )
    return RunnerResult(episode, tuple(point for point in found if point is not None))


async def _grown(
    runner: RolloutRunner, plan: Plan, branch_at: tuple[int, ...]
) -> tuple[list[list[RunnerResult]], list[list[Episode]]]:
    """Play a plan; return the results with their branch points, and the same episodes with what the strategy gives."""
    if branch_at:
        forest = await grow(runner, plan, 2, branch_at)
        full = 2 ** len(branch_at)
        labels = [[labelled(leaf, leaves, full) for leaf in leaves] for leaves in forest]
        return [[leaf.played for leaf in leaves] for leaves in forest], labels
    trunk = iter(await runner([r for group in plan for r in group], branch_points=True))
    grown = [[next(trunk) for _ in group] for group in plan]
    return grown, [[played.episode for played in group] for group in grown]


def with_signals(groups: Sequence[Sequence[Episode]]) -> TurnBatch:
    """The batch in float64 with what can be measured on any episodes: sampled tokens, and values of texts."""
    with_tokens = all(t.reply.logprobs for group in groups for e in group for t in e.trajectory.turns)
    whole = collate(groups) if with_tokens else None
    batch = whole.turns if whole else collate_turns(groups)
    said = logp_and_tokens(whole) if whole else {}
    value_BK, last_B = text_values(groups, batch)
    found = {**batch.signals, **said, "value": value_BK, "last_value": last_B}
    doubles = {name: value.double() for name, value in found.items()}
    return dataclasses.replace(batch, reward_BK=batch.reward_BK.double(), signals=doubles)


def with_gold(groups: Sequence[Sequence[Episode]]) -> TurnBatch:
    """:func:`with_signals`, and what gold knows: whether actions were accepted, and how much of them was wanted."""
    batch = with_signals(groups)
    named_B = torch.tensor(shares(groups, solutions(groups)), dtype=torch.float64)
    known = {"matched": named_B[:, None] * batch.mask_BK, "valid": accepted(groups, batch.mask_BK).double()}
    return dataclasses.replace(batch, signals={**batch.signals, **known})


def _on_turns(
    values: Values, groups: Sequence[Sequence[RunnerResult]], batch: TurnBatch
) -> tuple[Tensor, Tensor]:
    """Values and standard errors by turn, (B, K) each."""
    value_BK, error_BK = torch.zeros_like(batch.reward_BK), torch.zeros_like(batch.reward_BK)
    b = 0
    for group in groups:
        for played in group:
            episode = played.episode
            for k in range(len(episode.trajectory.turns)):
                found = value_of(values, group[0], played, k)
                if found is None or not episode.outcome.counts:
                    raise TurnwiseError(
                        f"An episode of task {episode.task.id} or its forks failed: {episode.error}",
                        "Repair the cause; a fault is no reward.",
                    )
                value_BK[b, k], error_BK[b, k] = found
            b += 1
    return value_BK, error_BK


def _one_step(value_BK: Tensor, error_BK: Tensor, batch: TurnBatch) -> tuple[Tensor, Tensor]:
    """r_k + V(s_{k+1}) − V(s_k), and its standard error."""
    mask_BK = batch.mask_BK
    after_BK = torch.cat([value_BK[:, 1:], torch.zeros_like(value_BK[:, :1])], 1)
    noise_BK = torch.cat([error_BK[:, 1:], torch.zeros_like(error_BK[:, :1])], 1)
    truth_BK = (batch.reward_BK + after_BK - value_BK) * mask_BK
    return truth_BK, (noise_BK**2 + error_BK**2).sqrt() * mask_BK
