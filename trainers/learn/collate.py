"""Episodes → tensors: one row of tokens per branch, one entry per turn."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.agents.core import Episode, Reply, Trajectory
from turnwise.errors import RunError
from turnwise.trainers.core import NO_TURN, Group, TeacherTop, TokenView, TurnBatch, TurnTree

LARGEST = torch.finfo(torch.float32).max
"""Of rewards and signals: beyond it float32 knows only infinity."""


class TokenRows(NamedTuple):
    """Token sequences, right-padded with 0 to the longest. Axes: R row, T token, B trajectory, K turn.

    Attributes:
        token_RT: exactly the ids that the engine was given and sampled.
        mask_RT: True where the token is one that was chosen, not read: by the policy, or by a source to learn from.
        turn_RT: the turn of such a token, -1 elsewhere.
        behaviour_logp_RT: the log-probability with which it was sampled; 0 where it is unknown, and elsewhere.
        known_RT: True where that is known.
        source_RT: who chose the token, as 1 + its place in ``TrainingBatch.sources``; 0: the policy.
        length_R: tokens of the row without padding.
        trajectory_R: whose row it is.
        state_row_BK, state_position_BK: where turn k's last prompt token lies: the state before acting.
    """

    token_RT: Tensor
    mask_RT: Tensor
    turn_RT: Tensor
    behaviour_logp_RT: Tensor
    known_RT: Tensor
    source_RT: Tensor
    length_R: Tensor
    trajectory_R: Tensor
    state_row_BK: Tensor
    state_position_BK: Tensor

    def select(self, row_R: Tensor) -> TokenRows:
        """Some rows, cut to the longest of them (state positions stay those of the whole)."""
        longest = int(self.length_R[row_R].max()) if len(row_R) else 0
        token, mask, turn, logp, known, source = (x_RT[row_R, :longest] for x_RT in self[:6])
        length_M, owner_M = self.length_R[row_R], self.trajectory_R[row_R]
        return TokenRows(token, mask, turn, logp, known, source, length_M, owner_M, *self[8:])


class TrainingBatch(NamedTuple):
    """The same episodes twice: turn by turn for credit rules, token by token for losses.

    Attributes:
        turns: what credit rules see.
        rows: what losses see.
        success_B: whose task was solved.
        weight_BK: the weights of the turns (``Turn.weight``), beside those of the filter.
        sources: who chose turns that the policy did not choose; ``rows.source_RT`` counts them from 1.
        top: what a teacher would say at each sampled token's place, where a loss needs it.
    """

    turns: TurnBatch
    rows: TokenRows
    success_B: Tensor
    weight_BK: Tensor
    sources: tuple[str, ...] = ()
    top: TeacherTop | None = None


class _Row(NamedTuple):
    """A row in the making."""

    tokens: list[int]
    turns: list[int]
    logps: list[float]
    known: list[bool]
    sources: list[int]

    def add(self, tokens: Sequence[int], turn: int, logps: Sequence[float] = (), source: int = 0) -> None:
        """Add tokens of one turn, or read ones (turn -1)."""
        n = len(tokens)
        self.tokens.extend(tokens)
        self.turns.extend([turn] * n)
        self.logps.extend(logps or [0.0] * n)
        self.known.extend([bool(logps)] * n)
        self.sources.extend([source] * n)


def collate(groups: Sequence[Group]) -> TrainingBatch:
    """Tensors of all episodes of all groups, in order: of their first trajectories.

    The episodes' outcomes must count. What several agents did is taken apart before (``perspectives``).
    """
    episodes = [episode for group in groups for episode in group]
    trajectories = [episode.trajectory for episode in episodes]
    sources = tuple(sorted({turn.reply.source for one in trajectories for turn in one.turns} - {""}))
    rows = collate_rows(trajectories, sources)
    view = TokenView(rows.token_RT, rows.mask_RT, rows.turn_RT, rows.trajectory_R)
    success_B = torch.tensor([episode.success for episode in episodes], dtype=torch.bool)
    turns = dataclasses.replace(collate_turns(groups), tokens=view)
    weight_BK = torch.ones(turns.mask_BK.shape, dtype=torch.float64)
    for b, one in enumerate(trajectories):
        for k, turn in enumerate(one.turns):
            weight_BK[b, k] = turn.weight
    return TrainingBatch(turns, rows, success_B, weight_BK, sources)


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
    turns = _turns(trajectories, group_B, truncated_B)
    return dataclasses.replace(turns, role_B=roles_of(groups))


def roles_of(groups: Sequence[Group]) -> Tensor:
    """Number the parts that first trajectories play, in order of appearance, (B,): environment, option ``role`` of the task, agent.

    >>> from turnwise.tasks.core import Task
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> plain = episode([1.0])
    >>> asks, solves = (dataclasses.replace(plain, task=Task("triples", "?", {"role": role})) for role in ("ask", "solve"))
    >>> roles_of([[plain, plain], [asks, solves], [solves]]).tolist()
    [0, 0, 1, 2, 2]
    """
    numbers: dict[tuple[str, str, str], int] = {}
    found = [
        numbers.setdefault(
            (one.task.env, str(one.task.options.get("role", "")), one.trajectory.agent), len(numbers)
        )
        for group in groups
        for one in group
    ]
    return torch.tensor(found, dtype=torch.long)


def rewards_of(groups: Sequence[Group]) -> Tensor:
    """Return the rewards of the turns of all first trajectories, (B, K), 0 where there is no turn.

    Raises:
        RunError: one is no number that a tensor can hold.
    """
    episodes = [episode for group in groups for episode in group]
    for episode in episodes:
        _refuse_infinite(episode)
    return _rewards([episode.trajectory for episode in episodes])


def collate_rows(trajectories: Sequence[Trajectory], sources: Sequence[str] = ()) -> TokenRows:
    """The token side of :func:`collate`.

    A turn that extends the end of a row goes on with it; one that extends another place, or nothing, begins a row. What
    a row has in common with an earlier one is read there and not learned again. Turns of another source with weight 0
    are read, too.

    Raises:
        RunError: a turn has no tokens, or extends one that is not there.
    """
    n, most = len(trajectories), max((len(t.turns) for t in trajectories), default=0)
    state_row_BK = torch.zeros(n, most, dtype=torch.long)
    state_position_BK = torch.zeros(n, most, dtype=torch.long)
    rows: list[_Row] = []
    owner: list[int] = []
    for b, trajectory in enumerate(trajectories):
        ends: list[tuple[int, int]] = []  # of each turn's action: the row, and the place after it
        for k, turn in enumerate(trajectory.turns):
            reply = turn.reply
            if turn.acts and not reply.action_ids:  # a program acted before the policy said anything
                ends.append((0, 0))
                continue
            prompt = reply.prompt_ids if reply.scored_ids is None else reply.scored_ids
            r = _row_of(reply, k, ends, rows)
            if r == len(owner):
                owner.append(b)
            row, action = rows[r], reply.action_ids
            if not action or not (row.tokens or prompt) or len(reply.logprobs) not in (0, len(action)):
                raise RunError(
                    f"Turn {k + 1} of an episode has {len(row.tokens) + len(prompt)} prompt tokens, "
                    f"{len(action)} sampled ones and {len(reply.logprobs)} log-probabilities.",
                    "Train on episodes that a model played; `DemonstrationPolicy` makes demonstrations such.",
                )
            row.add(prompt, -1)
            state_row_BK[b, k], state_position_BK[b, k] = r, len(row.tokens) - 1
            source = sources.index(reply.source) + 1 if reply.source in sources else 0
            is_read = bool(reply.source) and turn.weight == 0
            row.add(action, -1 if is_read else k, reply.logprobs, source)
            ends.append((r, len(row.tokens)))
    return _padded(rows, owner, state_row_BK, state_position_BK)


def _row_of(reply: Reply, k: int, ends: Sequence[tuple[int, int]], rows: list[_Row]) -> int:
    """The row that turn k goes on with; a new one where no row ends where it begins."""
    parent = reply.parent.turn(k)
    if parent is not None and not 0 <= parent < k:
        raise RunError(
            f"Turn {k + 1} of an episode extends turn {parent + 1}, which is not before it.",
            "Repair the policy that played it (`Reply.parent` counts turns from 0).",
        )
    row = _Row([], [], [], [], [])
    if parent is not None:
        r, end = ends[parent]
        if end == len(rows[r].tokens):
            return r
        row.add(rows[r].tokens[:end], -1)
    rows.append(row)
    return len(rows) - 1


PASS = 256
"""Cost of a forward pass by itself, in tokens: below that padding is cheaper than another pass."""


def micro_batches(rows: TokenRows, most: int, row_M: Tensor | None = None) -> Iterator[Tensor]:
    """Cut rows into micro-batches of like length, longest first, such that the fewest tokens are computed.

    A micro-batch costs its tokens with padding, at most ``most``, and :data:`PASS` more. Rows of one trajectory may be in
    several; a row that is too long by itself is alone.

    Args:
        rows: of a batch.
        most: tokens of a micro-batch.
        row_M: which rows; all if None.
    """
    length_R = rows.length_R.tolist()
    chosen = range(len(length_R)) if row_M is None else row_M.tolist()
    order = sorted(chosen, key=lambda row: (-length_R[row], row))
    ends = _cheapest([length_R[row] for row in order], most)
    for begin, end in zip([0, *ends], ends, strict=False):
        yield torch.tensor(order[begin:end])


def _cheapest(lengths: Sequence[int], most: int) -> list[int]:
    """Return where to cut rows, the longest first, so that the sum of all micro-batches' costs is least: their ends, in order.

    >>> _cheapest([900, 100, 100, 90], 4000), _cheapest([100, 99, 98], 4000), _cheapest([5, 5, 5], 10)
    ([1, 4], [3], [1, 3])
    """
    cost, last = [0], [0]  # of the first rows; where their last micro-batch begins
    for end in range(1, len(lengths) + 1):
        options: list[tuple[int, int]] = []
        for begin in range(end - 1, -1, -1):
            tokens = (end - begin) * lengths[begin]
            if tokens > most and begin < end - 1:
                break
            options.append((cost[begin] + tokens + PASS, begin))
        best, begin = min(options)
        cost.append(best)
        last.append(begin)
    ends: list[int] = []
    end = len(lengths)
    while end:
        ends.append(end)
        end = last[end]
    return ends[::-1]


def _padded(rows: list[_Row], owner: list[int], state_row_BK: Tensor, state_position_BK: Tensor) -> TokenRows:
    longest = max((len(row.tokens) for row in rows), default=0)
    token_RT = torch.zeros(len(rows), longest, dtype=torch.long)
    turn_RT = torch.full((len(rows), longest), -1, dtype=torch.long)
    logp_RT = torch.zeros(len(rows), longest)
    known_RT = torch.zeros(len(rows), longest, dtype=torch.bool)
    source_RT = torch.zeros(len(rows), longest, dtype=torch.long)
    for r, row in enumerate(rows):
        n = len(row.tokens)
        token_RT[r, :n] = torch.tensor(row.tokens, dtype=torch.long)
        turn_RT[r, :n] = torch.tensor(row.turns, dtype=torch.long)
        logp_RT[r, :n] = torch.tensor(row.logps)
        known_RT[r, :n] = torch.tensor(row.known, dtype=torch.bool)
        source_RT[r, :n] = torch.tensor(row.sources, dtype=torch.long)
    length_R = torch.tensor([len(row.tokens) for row in rows], dtype=torch.long)
    owner_R = torch.tensor(owner, dtype=torch.long)
    mask_RT = turn_RT >= 0
    return TokenRows(
        token_RT, mask_RT, turn_RT, logp_RT * mask_RT, known_RT & mask_RT, source_RT * mask_RT, length_R, owner_R,
        state_row_BK, state_position_BK,
    )  # fmt: skip


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


def _rewards(trajectories: Sequence[Trajectory]) -> Tensor:
    most = max((len(one.turns) for one in trajectories), default=0)
    # In float32 equal returns would differ from their mean.
    reward_BK = torch.zeros(len(trajectories), most, dtype=torch.float64)
    for b, one in enumerate(trajectories):
        for k, turn in enumerate(one.turns):
            reward_BK[b, k] = turn.reward
    return reward_BK


def _turns(trajectories: Sequence[Trajectory], group_B: list[int], truncated_B: list[bool]) -> TurnBatch:
    reward_BK = _rewards(trajectories)
    n, most = reward_BK.shape
    mask_BK = torch.zeros(n, most, dtype=torch.bool)
    memory_BK = torch.zeros(n, most, dtype=torch.bool)
    state_BK = torch.zeros(n, most, dtype=torch.long)
    for b, trajectory in enumerate(trajectories):
        for k, turn in enumerate(trajectory.turns):
            mask_BK[b, k] = True
            memory_BK[b, k] = turn.kind == "memory"
            # 63 bits of a hash, whatever the environment's keys look like: equal states, equal numbers.
            # Before writing a memory the policy decides something else than before acting: another state of the decision.
            key = turn.state_key if turn.kind == "action" else f"{turn.state_key} {turn.kind}"
            hashed = hashlib.blake2b(key.encode(), digest_size=8).digest()
            state_BK[b, k] = int.from_bytes(hashed) >> 1
    tree = TurnTree(torch.full((n, most), NO_TURN), torch.full((n, most), NO_TURN))
    for b, trajectory in enumerate(trajectories):
        for k, reply in enumerate(turn.reply for turn in trajectory.turns):
            parent, caller = reply.parent.turn(k), reply.caller
            parent = reply.continues if parent is None else parent
            tree.parent_BK[b, k] = NO_TURN if parent is None else parent
            tree.caller_BK[b, k] = NO_TURN if caller is None else caller
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
    return TurnBatch(
        reward_BK,
        mask_BK,
        torch.tensor(group_B, dtype=torch.long),
        torch.tensor(truncated_B, dtype=torch.bool),
        state_BK,
        signals,
        tree=tree,
        memory_BK=memory_BK,
    )


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
        token_RT, mask_RT, turn_RT, torch.zeros(mask_RT.shape), torch.zeros_like(mask_RT), torch.zeros_like(token_RT),
        length_R, torch.arange(len(texts)), nowhere, nowhere,
    )  # fmt: skip
