"""Small batches written by hand, in float64: for doctests, tests and trying things out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from turnwise.agents.core import Episode, Outcome, Reply, Trajectory, Turn
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message, Messages, ToolCall
from turnwise.tasks.core import Json, Task, derive_rng
from turnwise.trainers.core import RowMask, TokenBatch, TokenView, TurnBatch, TurnTree, WholeBatch

Rows: TypeAlias = Sequence[Sequence[float]]

OF_TRAJECTORIES = frozenset({"last_value", "past_visits", "past_mean", "past_std"})
"""Signals that have one number for each trajectory, not for each turn."""


def turn_batch(
    rewards: Rows,
    group: Sequence[int] | None = None,
    *,
    states: Sequence[Sequence[int]] | None = None,
    truncated: Sequence[bool] | None = None,
    signals: Mapping[str, Rows | Sequence[float]] | None = None,
    tokens: Sequence[Sequence[Sequence[int]]] | None = None,
    token_signals: Mapping[str, Rows] | None = None,
    parents: Sequence[Sequence[int]] | None = None,
    callers: Sequence[Sequence[int]] | None = None,
    role: Sequence[int] | None = None,
    memory: Rows | None = None,
) -> TurnBatch:
    """One list of turn rewards per trajectory.

    Without ``group`` all trajectories belong together; without ``states`` all states differ. Signals
    are per turn (lists of lists) or per trajectory (one list). ``tokens`` are the sampled ids of each turn, a
    trajectory's in one row, and ``token_signals`` one list per such row.
    ``parents`` and ``callers`` are those of a :class:`TurnTree`; ``role`` is that of each trajectory;
    ``memory`` is 1 for turns that the policy wrote for later contexts.
    """
    fresh = [[1000 * b + k for k in range(len(row))] for b, row in enumerate(rewards)]
    return TurnBatch(
        reward_BK=_padded(rewards),
        mask_BK=_padded([[1] * len(row) for row in rewards]).bool(),
        group_B=torch.tensor(group if group is not None else [0] * len(rewards)),
        truncated_B=torch.tensor(truncated if truncated is not None else [False] * len(rewards)),
        state_BK=_padded(states if states is not None else fresh).long(),
        signals={name: _padded(rows) for name, rows in (signals or {}).items()},
        tokens=None if tokens is None else _token_view(tokens, token_signals or {}),
        tree=None
        if parents is None or callers is None
        else TurnTree(_padded(parents).long(), _padded(callers).long()),
        memory_BK=None if memory is None else _padded(memory).bool(),
        role_B=None if role is None else torch.tensor(role),
    )


def toy_turns(
    needs: Collection[str],
    *,
    group: Sequence[int] = (0, 0, 0, 1, 1, 1),
    drawn: Sequence[Sequence[float]] | None = None,
    positive: bool = False,
    alike: bool = False,
    memory: Rows | None = None,
) -> TurnBatch:
    """Trajectories in groups, with numbers for all these signals: to try out a rule or a filter.

    There are six whose rewards are drawn by chance, unless they are given (``drawn``). Signals are below 0, or ``positive``;
    ``alike``: they say the same of every turn. ``memory`` is as in :func:`turn_batch`.
    """
    rng = derive_rng("alone")
    rewards = drawn or [[rng.uniform(-1, 1) for _ in range(n)] for n in (1, 2, 3, 4, 2, 3)]
    measured = {
        name: [[-0.5 if alike else rng.uniform(-1, 0) + positive for _ in row] for row in rewards]
        for name in sorted(needs)
    }
    return turn_batch(
        rewards,
        group,
        signals={
            name: [row[-1] for row in x] if name in OF_TRAJECTORIES else x
            for name, x in measured.items()
            if not name.startswith("token_")
        },
        tokens=[[[k] for k in range(len(row))] for row in rewards],
        token_signals={name: x for name, x in measured.items() if name.startswith("token_")},
        memory=memory,
    )


def _token_view(tokens: Sequence[Sequence[Sequence[int]]], signals: Mapping[str, Rows]) -> TokenView:
    ids = [[token for turn in row for token in turn] for row in tokens]
    of = [[k for k, turn in enumerate(row) for _ in turn] for row in tokens]
    mask_RT = _padded([[1] * len(row) for row in ids]).bool()
    turn_RT = _padded(of).long().masked_fill(~mask_RT, -1)
    measured = {name: _padded(rows) for name, rows in signals.items()}
    return TokenView(_padded(ids).long(), mask_RT, turn_RT, torch.arange(len(ids)), measured)


def token_batch(
    logp: Rows,
    advantage: Rows | None = None,
    *,
    old_logp: Rows | None = None,
    behaviour_logp: Rows | None = None,
    reference_logp: Rows | None = None,
    entropy: Rows | None = None,
    turn: Sequence[Sequence[int]] | None = None,
    trajectory: Sequence[int] | None = None,
    group: Sequence[int] | None = None,
) -> TokenBatch:
    """One list of token log-probabilities per row, all of them sampled.

    What is left out is: no advantage and no entropy (0), no staleness (old and behaviour log-probabilities
    equal ``logp``), one turn and one trajectory per row, one group. ``logp`` and ``entropy`` are leaves
    that carry gradient.
    """
    n = len(logp)
    zeros = [[0.0] * len(row) for row in logp]
    mask_RT = _padded([[1] * len(row) for row in logp]).bool()
    turn_RT = _padded(turn if turn is not None else zeros).long()
    return TokenBatch(
        logp_RT=_padded(logp).requires_grad_(),
        old_logp_RT=_padded(old_logp or logp),
        behaviour_logp_RT=_padded(behaviour_logp or old_logp or logp),
        entropy_RT=_padded(entropy or zeros).requires_grad_(),
        advantage_RT=_padded(advantage or zeros),
        mask_RT=mask_RT,
        turn_RT=turn_RT.masked_fill(~mask_RT, -1),
        trajectory_R=torch.tensor(trajectory if trajectory is not None else list(range(n))),
        group_R=torch.tensor(group if group is not None else [0] * n),
        reference_logp_RT=_padded(reference_logp) if reference_logp is not None else None,
    )


def whole_batch(
    logp: Rows,
    advantage: Rows | None = None,
    *,
    success: Sequence[int] | None = None,
    reward: Rows | None = None,
    weight: Sequence[float] | None = None,
    group: Sequence[int] | None = None,
    **tokens: Any,
) -> WholeBatch:
    """A minibatch of such rows; ``tokens`` as in :func:`token_batch`, and per trajectory success, rewards and weight.

    What is left out is: no success, one turn with the success as its reward, weight 1, one group. The reducer gives
    each token the weight 1 / number of tokens.
    """
    rows = token_batch(logp, advantage, **tokens)
    n = int(rows.trajectory_R.max()) + 1
    success_B = torch.tensor(success if success is not None else [0] * n).bool()
    reward_BK = _padded(reward) if reward is not None else success_B.double()[:, None]
    return WholeBatch(
        logp_RT=rows.logp_RT,
        entropy_RT=rows.entropy_RT,
        old_logp_RT=rows.old_logp_RT,
        behaviour_logp_RT=rows.behaviour_logp_RT,
        advantage_RT=rows.advantage_RT,
        mask_RT=rows.mask_RT,
        turn_RT=rows.turn_RT,
        weight_RT=rows.mask_RT / rows.mask_RT.sum().double(),
        trajectory_R=rows.trajectory_R,
        group_B=torch.tensor(group if group is not None else [0] * n),
        reward_BK=reward_BK,
        return_B=reward_BK.sum(1),
        success_B=success_B,
        weight_B=_padded(weight if weight is not None else [1.0] * n),
        reference_logp_RT=rows.reference_logp_RT,
    )


def row_mask(turns: Sequence[Sequence[int]], trajectory: Sequence[int] | None = None) -> RowMask:
    """The turn of each token, row by row; -1 for a token that was not sampled."""
    width = max(len(row) for row in turns)
    turn_RT = torch.tensor([[*row, *[-1] * (width - len(row))] for row in turns])
    trajectory_R = torch.tensor(trajectory if trajectory is not None else list(range(len(turns))))
    return RowMask(turn_RT >= 0, turn_RT, trajectory_R)


def episode(
    outcome: Sequence[float],
    *,
    parts: Mapping[str, Sequence[float]] | None = None,
    details: Sequence[Mapping[str, Json]] | None = None,
    end: EndReason = EndReason.FAILED,
) -> Episode:
    """An episode whose turns earned these outcomes, and these other reward components; with these details."""
    observation, reply = Messages((Message("user", "?"),)), Reply(Message("assistant", "!"))
    turns: list[Turn] = []
    for k, score in enumerate(outcome):
        reward_components = {
            "outcome": float(score),
            **{name: paid[k] for name, paid in (parts or {}).items()},
        }
        told = details[k] if details else {}
        turns.append(
            Turn(
                observation, reply, sum(reward_components.values()), reward_components, f"s{k}", details=told
            )
        )
    cut = Outcome.LIMIT if end.truncated else Outcome.OK
    return Episode(Task("by_hand", "?"), 0, {"agent": Trajectory(tuple(turns))}, cut, end)


def with_tokens(one: Episode, lengths: Sequence[int]) -> Episode:
    """The episode with messages of so many tokens."""
    return _with_replies(one, [lambda r, n=n: r._replace(action_ids=(7,) * n) for n in lengths])


def with_calls(one: Episode, calls: Sequence[Sequence[tuple[str, Mapping[str, Json]]]]) -> Episode:
    """The episode with these tool calls, name and arguments, turn by turn."""
    said = [tuple(ToolCall(name, dict(given)) for name, given in turn) for turn in calls]
    return _with_replies(
        one, [lambda r, c=c: r._replace(message=dataclasses.replace(r.message, tool_calls=c)) for c in said]
    )


def with_words(one: Episode, words: Sequence[str]) -> Episode:
    """The episode with these words as its messages."""
    return _with_replies(
        one, [lambda r, w=w: r._replace(message=dataclasses.replace(r.message, content=w)) for w in words]
    )


def _with_replies(one: Episode, changes: Sequence[Callable[[Reply], Reply]]) -> Episode:
    side = one.trajectory
    turns = tuple(
        dataclasses.replace(turn, reply=change(turn.reply))
        for turn, change in zip(side.turns, changes, strict=True)
    )
    return dataclasses.replace(one, trajectories={side.agent: dataclasses.replace(side, turns=turns)})


def rounded(x: Tensor, digits: int = 6) -> list[list[float]]:
    """Nested lists of rounded numbers."""
    scale = 10**digits
    return ((x.detach().double() * scale).round() / scale + 0.0).tolist()


def _padded(rows: Rows | Sequence[float]) -> Tensor:
    width = max((len(row) for row in rows if isinstance(row, Sequence)), default=0)
    full = [[*row, *[0.0] * (width - len(row))] if isinstance(row, Sequence) else row for row in rows]
    return torch.tensor(full, dtype=torch.float64)
