"""Episodes → tensors: one row of tokens per branch, one entry per turn."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.agents.core import Trajectory
from turnwise.errors import RunError
from turnwise.trainers.core import Group, TokenView, TurnBatch


class Rows(NamedTuple):
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

    def select(self, row_R: Tensor) -> Rows:
        """Some rows, cut to the longest of them (state positions stay those of the whole)."""
        longest = int(self.length_R[row_R].max()) if len(row_R) else 0
        token, mask, turn, logp = (x[row_R, :longest] for x in self[:4])
        return Rows(token, mask, turn, logp, self.length_R[row_R], self.trajectory_R[row_R], *self[6:])


class Batch(NamedTuple):
    """The same episodes twice: turn by turn for credit rules, token by token for losses."""

    turns: TurnBatch
    rows: Rows


class _Row(NamedTuple):
    """A row in the making."""

    tokens: list[int]
    turns: list[int]
    logps: list[float]


def collate(groups: Sequence[Group]) -> Batch:
    """Tensors of all episodes of all groups, in order: of their first trajectories.

    The episodes' outcomes must count. What several agents did is taken apart before (``perspectives``).
    """
    trajectories = [episode.trajectory for group in groups for episode in group]
    rows = collate_rows(trajectories)
    view = TokenView(rows.token_RT, rows.mask_RT, rows.turn_RT, rows.trajectory_R)
    return Batch(dataclasses.replace(collate_turns(groups), tokens=view), rows)


def collate_turns(groups: Sequence[Group]) -> TurnBatch:
    """The turn side of :func:`collate`, which episodes without tokens have too."""
    trajectories: list[Trajectory] = []
    group_B: list[int] = []
    truncated_B: list[bool] = []
    for index, group in enumerate(groups):
        for episode in group:
            trajectories.append(episode.trajectory)
            group_B.append(index)
            truncated_B.append(episode.end is not None and episode.end.truncated)
    return _turns(trajectories, group_B, truncated_B)


def collate_rows(trajectories: Sequence[Trajectory]) -> Rows:
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
                    "Train on episodes that a model played; `ShownPolicy` makes demonstrations such.",
                )
            row.tokens.extend(prompt)
            row.turns.extend([-1] * len(prompt))
            row.logps.extend([0.0] * len(prompt))
            state_row_BK[b, k], state_position_BK[b, k] = len(rows) - 1, len(row.tokens) - 1
            row.tokens.extend(action)
            row.turns.extend([k] * len(action))
            row.logps.extend(reply.logprobs or [0.0] * len(action))
    return _padded(rows, owner, state_row_BK, state_position_BK)


def micro_batches(rows: Rows, most: int, row_M: Tensor | None = None) -> Iterator[Tensor]:
    """Indices of rows of like length, together at most ``most`` tokens with padding, longest first.

    A trajectory's rows stay together; one that is too long by itself is alone.

    Args:
        rows: of a batch.
        most: tokens of a micro-batch.
        row_M: which rows; all if None.
    """
    length_R, owner_R = rows.length_R.tolist(), rows.trajectory_R.tolist()
    of: dict[int, list[int]] = defaultdict(list)
    for row in range(len(length_R)) if row_M is None else row_M.tolist():
        of[owner_R[row]].append(row)
    longest_first = sorted((max(length_R[row] for row in own), own) for own in of.values())[::-1]
    batch: list[int] = []
    longest = 0
    for length, own in longest_first:
        if batch and (len(batch) + len(own)) * longest > most:
            yield torch.tensor(batch)
            batch = []
        longest = longest if batch else length
        batch.extend(own)
    if batch:
        yield torch.tensor(batch)


def _padded(rows: list[_Row], owner: list[int], state_row_BK: Tensor, state_position_BK: Tensor) -> Rows:
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
    return Rows(token_RT, turn_RT >= 0, turn_RT, logp_RT, length_R, owner_R, state_row_BK, state_position_BK)


def _turns(trajectories: Sequence[Trajectory], group_B: list[int], truncated_B: list[bool]) -> TurnBatch:
    n, most = len(trajectories), max((len(t.turns) for t in trajectories), default=0)
    reward_BK = torch.zeros(n, most)
    mask_BK = torch.zeros(n, most, dtype=torch.bool)
    state_BK = torch.zeros(n, most, dtype=torch.long)
    for b, trajectory in enumerate(trajectories):
        for k, turn in enumerate(trajectory.turns):
            reward_BK[b, k], mask_BK[b, k] = turn.reward, True
            # 63 bits of a hash, whatever the environment's keys look like: equal states, equal numbers.
            hashed = hashlib.blake2b(turn.state_key.encode(), digest_size=8).digest()
            state_BK[b, k] = int.from_bytes(hashed) >> 1
    signals = {name: torch.zeros(n, most) for t in trajectories for turn in t.turns for name in turn.signals}
    for b, trajectory in enumerate(trajectories):
        for k, turn in enumerate(trajectory.turns):
            for name, value in turn.signals.items():
                signals[name][b, k] = value
    return TurnBatch(reward_BK, mask_BK, torch.tensor(group_B), torch.tensor(truncated_B), state_BK, signals)
