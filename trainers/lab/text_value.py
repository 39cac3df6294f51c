"""The value of a state read off its text: a linear model, learned on other tasks' episodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.envs.messages import Messages
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import returns_to_go

WIDTH = 256
FOLDS = 4


def text_values(
    groups: Sequence[Sequence[Episode]], batch: TurnBatch, *, ridge: float = 10.0
) -> tuple[Tensor, Tensor]:
    """V(s_k) of every turn, (B, K), and of what each trajectory observed last, (B,).

    A ridge regression of the return-to-go on the words of the newest observation (hashed) and the number of
    the turn. Groups are cut into folds; each fold's values are learned on the others, so that no value knows
    the return of its own group.
    """
    episodes = [(g, episode) for g, group in enumerate(groups) for episode in group]
    states = [_states(episode) for _, episode in episodes]  # one more than turns
    target_BK = returns_to_go(batch)
    value_BK, last_B = torch.zeros_like(batch.reward_BK), torch.zeros_like(batch.reward_BK[:, 0])
    for fold in range(min(FOLDS, len(groups))):
        seen = [b for b, (g, _) in enumerate(episodes) if g % FOLDS != fold]
        x = np.concatenate([states[b][:-1] for b in seen]) if seen else np.zeros((1, WIDTH + 2))
        y = (
            np.concatenate([target_BK[b][: len(states[b]) - 1].numpy() for b in seen])
            if seen
            else np.zeros(1)
        )
        weight = _fit(x, y, ridge)
        for b, (g, _) in enumerate(episodes):
            if g % FOLDS == fold:
                found = torch.from_numpy(states[b] @ weight).to(value_BK.dtype)
                value_BK[b, : len(found) - 1], last_B[b] = found[:-1], found[-1]
    return value_BK, last_B


def _fit(x: NDArray[np.float64], y: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    penalty = ridge * np.eye(x.shape[1])
    penalty[0, 0] = 1e-6  # the constant is not held back
    return np.asarray(np.linalg.solve(x.T @ x + penalty, x.T @ y), dtype=np.float64)


def _states(episode: Episode) -> NDArray[np.float64]:
    """Features of the state before each turn, and of the last one."""
    trajectory = episode.trajectory
    told = [*(turn.observation for turn in trajectory.turns), trajectory.final]
    return np.stack([_features(messages, k) for k, messages in enumerate(told)])


def _features(messages: Messages, turn: int) -> NDArray[np.float64]:
    x = np.zeros(WIDTH + 2)
    x[0], x[1] = 1.0, turn / 10
    for word in set(re.findall(r"\w+", str(messages).lower())):
        x[2 + crc32(word.encode()) % WIDTH] = 1.0
    return x
