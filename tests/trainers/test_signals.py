"""What sampled tokens say about turns, from episodes as they are recorded."""

import dataclasses
import math

import pytest

from turnwise.agents.core import PREVIOUS, ROOT, Episode, Reply
from turnwise.envs.messages import Message
from turnwise.trainers.kit.reward_edits import replace_turns
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.signal.sampled import logp_and_tokens


def spoken(turns: list[list[float]], *, fresh: bool = False) -> Episode:
    """An episode whose turns sampled tokens of these probabilities."""

    def speak(played):
        replies = [
            Reply(
                Message("assistant", "!"),
                (1, 2),
                tuple(range(len(p))),
                tuple(map(math.log, p)),
                parent=ROOT if fresh else PREVIOUS,
            )
            for p in turns
        ]
        return [dataclasses.replace(turn, reply=r) for turn, r in zip(played, replies, strict=True)]

    return replace_turns(episode([0.0] * len(turns)), speak)


@pytest.mark.parametrize("fresh", [False, True])
def test_tokens_are_summed_per_turn_whatever_row_they_are_in(fresh: bool) -> None:
    batch = collate([[spoken([[0.5, 0.25], [0.125]], fresh=fresh), spoken([[0.5]], fresh=fresh)]])
    found = logp_and_tokens(batch)
    assert found["tokens"].tolist() == [[2, 1], [1, 0]]
    assert found["logp"].tolist() == [
        pytest.approx([math.log(0.125), math.log(0.125)]),
        pytest.approx([math.log(0.5), 0.0]),
    ]
