"""Episodes → tensors: one row of tokens per branch, one entry per turn."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.agents.core import Episode, Trajectory
from turnwise.errors import RunError
from turnwise.trainers.core import Group, TokenView, TurnBatch

LARGEST = torch.finfo(torch.float32).max
"""Of rewards and signals: beyond it float32 knows only infinity."""


class TokenRows(NamedTuple):
    """Token sequences, right-padded with 0 to the longest. Axes: R row, T token, B trajectory, K turn.

    Attributes:
        token_RT: exactly the ids that the engine was given and sampled.
        mask_RT: True where the policy sampled the token.
        turn_RT: the turn of a sampled token, -1 elsewhere.
        behaviour_logp_RT: the engine's log-probability of a sampled token, 0 elsewhere.
        length_R: tokens of the row without padding.
        trajectory_R: whose row it is.
        state_row_BK, state_position_BK: where turn k's last prompt token lies: the state before acting.
    """

    token_RT: Tensor
    mask_RT: Tensor
    turn_RT: Tensor
    behaviour_logp_RT: Tensor
    length_R: Tensor
    trajectory_R: Tensor
    state_row_BK: Tensor
    state_position_BK: Tensor

    def select(self, row_R: Tensor) -> TokenRows:
        """Some rows, cut to the longest of them (state positions stay those of the whole)."""
        longest = int(self.length_R[row_R].max()) if len(row_R) else 0
        token, mask, turn, logp = (x[row_R, :longest] for x in self[:4])
        return TokenRows(token, mask, turn, logp, self.length_R[row_R], self.trajectory_R[row_R], *self[6:])


class TrainingBatch(NamedTuple):
    """The same episodes twice: turn by turn for credit rules, token by token for losses; and which solved their task."""

    turns: TurnBatch
    rows: TokenRows
    success_B: Tensor


class _Row(NamedTuple):
    """A row in the making."""

    tokens: list[int]
    turns: list[int]
    logps: list[float]


def collate(groups: Sequence[Group]) -> TrainingBatch:
    """Tensors of all episodes of all groups, in order: of their first trajectories.

    The episodes' outcomes must count. What several agents did is taken apart before (``perspectives``).
    """
    episodes = [episode for group in groups for episode in group]
    rows = collate_rows([episode.trajectory for episode in episodes])
    view = TokenView(rows.token_RT, rows.mask_RT, rows.turn_RT, rows.trajectory_R)
    success_B = torch.tensor([episode.success for episode in episodes], dtype=torch.bool)
    return TrainingBatch(dataclasses.replace(collate_turns(groups), tokens=view), rows, success_B)


def collate_turns(groups: Sequence[Group]) -> TurnBatch:
    """The turn side of :func:`collate`, which episodes without tokens have too.

    Raises:
        RunError: a reward or a signal is no number that a tensor can hold.
    """
    trajectories: list[Trajectory] = []
    group_B: list[int] = []
    truncated_B: list[bool] = []
    for index, group in enumerate(groups):
        for episode in group:
            _refuse_infinite(episode)
            trajectories.append(episode.trajectory)
            group_B.append(index)
            truncated_B.append(episode.end is not None and episode.end.truncated)
    return _turns(trajectories, group_B, truncated_B)


def collate_rows(trajectories: Sequence[Trajectory]) -> TokenRows:
    """The token side of :func:`collate`. A turn whose prompt is ``fresh`` starts a new row.

    Raises:
        RunError: a turn was not sampled by a model.
    """
    n, most = len(trajectories), max((len(t.turns) for t in trajectories), default=0)
    state_row_BK = torch.zeros(n, most, dtype=torch.long)
    state_position_BK = torch.zeros(n, most, dtype=torch.long)
    rows: list[_Row] = []
    owner: list[int] = []
    for b, trajectory in enumerate(trajectories):
        for k, turn in enumerate(trajectory.turns):
            reply = turn.reply
            if k == 0 or reply.fresh:
                rows.append(_Row([], [], []))
                owner.append(b)
            row, prompt, action = rows[-1], reply.prompt_ids, reply.action_ids
            if not action or not (row.tokens or prompt) or len(reply.logprobs) not in (0, len(action)):
                raise RunError(
                    f"Turn {k + 1} of an episode has {len(row.tokens) + len(prompt)} prompt tokens, "
                    f"{len(action)} sampled ones and {len(reply.logprobs)} log-probabilities.",
                    "Train on episodes that a model played; `DemonstrationPolicy` makes demonstrations such.",
                )
            row.tokens.extend(prompt)
            row.turns.extend([-1] * len(prompt))
            row.logps.extend([0.0] * len(prompt))
            state_row_BK[b, k], state_position_BK[b, k] = len(rows) - 1, len(row.tokens) - 1
            row.tokens.extend(action)
            row.turns.extend([k] * len(action))
            row.logps.extend(reply.logprobs or [0.0] * len(action))
    return _padded(rows, owner, state_row_BK, state_position_BK)


def micro_batches(rows: TokenRows, most: int, row_M: Tensor | None = None) -> Iterator[Tensor]:
    """Indices of rows of like length, together at most ``most`` tokens with padding, longest first.

    Rows of one trajectory may be in several; a row that is too long by itself is alone.

    Args:
        rows: of a batch.
        most: tokens of a micro-batch.
        row_M: which rows; all if None.
    """
    length_R = rows.length_R.tolist()
    chosen = range(len(length_R)) if row_M is None else row_M.tolist()
    batch: list[int] = []
    for row in sorted(chosen, key=lambda row: (-length_R[row], row)):
        if batch and (len(batch) + 1) * length_R[batch[0]] > most:
            yield torch.tensor(batch)
            batch = []
        batch.append(row)
    if batch:
        yield torch.tensor(batch)


def _padded(rows: list[_Row], owner: list[int], state_row_BK: Tensor, state_position_BK: Tensor) -> TokenRows:
    longest = max((len(row.tokens) for row in rows), default=0)
    token_RT = torch.zeros(len(rows), longest, dtype=torch.long)
    turn_RT = torch.full((len(rows), longest), -1, dtype=torch.long)
    logp_RT = torch.zeros(len(rows), longest)
    for r, row in enumerate(rows):
        n = len(row.tokens)
        token_RT[r, :n] = torch.tensor(row.tokens, dtype=torch.long)
        turn_RT[r, :n] = torch.tensor(row.turns, dtype=torch.long)
        logp_RT[r, :n] = torch.tensor(row.logps)
    length_R = torch.tensor([len(row.tokens) for row in rows], dtype=torch.long)
    owner_R = torch.tensor(owner, dtype=torch.long)
    return TokenRows(
        token_RT, turn_RT >= 0, turn_RT, logp_RT, length_R, owner_R, state_row_BK, state_position_BK
    )


def _refuse_infinite(episode: Episode) -> None:
    for number, turn in enumerate(episode.trajectory.turns, 1):
        for name, value in (("reward", turn.reward), *turn.signals.items()):
            if not abs(value) <= LARGEST:
                raise RunError(
                    f"Turn {number} of an episode of {episode.task.env} (task {episode.task.id}) has a {name} of "
                    f"{value:g}, with which nothing can be computed.",
                    f"Fix the environment (`turnwise check {episode.task.env}`), or the part of the recipe that "
                    "gives it (reward, judge, rollout.strategy).",
                )


def _turns(trajectories: Sequence[Trajectory], group_B: list[int], truncated_B: list[bool]) -> TurnBatch:
    n, most = len(trajectories), max((len(t.turns) for t in trajectories), default=0)
    reward_BK = torch.zeros(
        n, most, dtype=torch.float64
    )  # in float32 equal returns would differ from their mean
    mask_BK = torch.zeros(n, most, dtype=torch.bool)
    state_BK = torch.zeros(n, most, dtype=torch.long)
    for b, trajectory in enumerate(trajectories):
        for k, turn in enumerate(trajectory.turns):
            reward_BK[b, k], mask_BK[b, k] = turn.reward, True
            # 63 bits of a hash, whatever the environment's keys look like: equal states, equal numbers.
            hashed = hashlib.blake2b(turn.state_key.encode(), digest_size=8).digest()
            state_BK[b, k] = int.from_bytes(hashed) >> 1
    signals = {
        name: torch.zeros(n, most, dtype=torch.float64)
        for t in trajectories
        for turn in t.turns
        for name in turn.signals
    }
    for b, trajectory in enumerate(trajectories):
        for k, turn in enumerate(trajectory.turns):
            for name, value in turn.signals.items():
                signals[name][b, k] = value
    return TurnBatch(reward_BK, mask_BK, torch.tensor(group_B), torch.tensor(truncated_B), state_BK, signals)


def plain_rows(texts: Sequence[Sequence[int]], scored_from: Sequence[int]) -> TokenRows:
    """Rows of token ids that no episode holds; each is scored from a position on.

    >>> plain_rows([[5, 6, 7], [8]], [1, 1]).mask_RT.tolist()
    [[False, True, True], [False, False, False]]
    """
    longest = max((len(text) for text in texts), default=0)
    token_RT = torch.zeros(len(texts), longest, dtype=torch.long)
    mask_RT = torch.zeros(len(texts), longest, dtype=torch.bool)
    for r, (text, start) in enumerate(zip(texts, scored_from, strict=True)):
        token_RT[r, : len(text)] = torch.tensor(text, dtype=torch.long)
        mask_RT[r, start : len(text)] = True
    length_R = torch.tensor([len(text) for text in texts], dtype=torch.long)
    nowhere = torch.zeros(len(texts), 0, dtype=torch.long)
    turn_RT = torch.where(mask_RT, 0, -1)
    return TokenRows(
        token_RT, mask_RT, turn_RT, torch.zeros(mask_RT.shape), length_R, torch.arange(len(texts)), nowhere, nowhere
    )  # fmt: skip
