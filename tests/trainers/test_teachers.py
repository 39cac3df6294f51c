"""What teachers read: the same sampled tokens, under contexts that know more, or less."""

from __future__ import annotations

import dataclasses
import logging

import pytest

torch = pytest.importorskip("torch")

from turnwise.agents.core import Episode
from turnwise.envs.core import EndReason
from turnwise.registry import get_component
from turnwise.trainers.check.teacher import made, scene
from turnwise.trainers.learn.collate import TokenRows

BATCH, GROUPS, SEE = scene()


def texts(rows: TokenRows) -> list[str]:
    """Each row as text."""
    return [
        SEE.renderer.tokenizer.decode(row[:n].tolist())
        for row, n in zip(rows.token_RT, rows.length_R.tolist(), strict=True)
    ]


def read(name: str, groups: list[list[Episode]] | None = None) -> TokenRows:
    teacher = made(get_component("teacher", name))
    rows = teacher.rows(SEE, BATCH, groups or GROUPS)
    assert torch.equal(rows.token_RT[rows.mask_RT], BATCH.rows.token_RT[BATCH.rows.mask_RT])
    return rows


def words(text: str) -> str:
    return " ".join(text.split())


def test_hindsight_knows_the_answer_to_each_reply_and_the_end() -> None:
    rows = read("hindsight")
    turns = [(episode, k) for episode in GROUPS[0] for k in range(len(episode.trajectory.turns))]
    assert len(rows.length_R) == len(turns)
    for text, (episode, k) in zip(texts(rows), turns, strict=True):
        played = episode.trajectory.turns
        shown = words(text[: text.rindex("After your reply")]), words(text[text.rindex("After your reply") :])
        if k + 1 < len(played):
            answer = words(" ".join(message.content for message in played[k + 1].observation))[:60]
            assert answer in shown[1]
            assert "The task will be" not in shown[1]
        else:
            assert "The task will be failed" in shown[1]


def test_a_reply_whose_told_conversation_is_too_long_is_read_as_it_was_sampled(caplog) -> None:
    """So that one long episode neither ends a run nor teaches anything."""
    whole = read("hindsight")
    longest = int(whole.length_R.max())
    teacher, turns = made(get_component("teacher", "hindsight")), []
    with caplog.at_level(logging.WARNING):
        rows = teacher.rows(dataclasses.replace(SEE, context=longest - 1), BATCH, GROUPS)
    for b, episode in enumerate(GROUPS[0]):
        turns += [(b, k) for k in range(len(episode.trajectory.turns))]
    own, played = 0, BATCH.rows
    for n, (b, k) in enumerate(turns):
        row = rows.token_RT[n, : int(rows.length_R[n])].tolist()
        if int(whole.length_R[n]) == longest:
            end = (
                int((played.turn_RT[b] == k).nonzero().max()) + 1
            )  # no chat template rewrote: one row a trajectory
            assert row == played.token_RT[b, :end].tolist()
            own += 1
        else:
            assert row == whole.token_RT[n, : int(whole.length_R[n])].tolist()
    assert 0 < own < len(turns)
    assert f"{own} of {len(turns)} replies as the policy did" in caplog.text
    assert torch.equal(rows.token_RT[rows.mask_RT], BATCH.rows.token_RT[BATCH.rows.mask_RT])


def test_the_blind_one_sees_the_task_and_no_answer() -> None:
    rows = read("blind")
    task = words(GROUPS[0][0].trajectory.turns[0].observation[-1].content)[:40]
    answers = [
        words(message.content)[:40]
        for episode in GROUPS[0]
        for turn in episode.trajectory.turns[1:]
        for message in turn.observation
    ]
    for text in map(words, texts(rows)):
        assert task in text
        assert not [answer for answer in answers if len(answer) > 20 and answer in text]
    assert sum("(not shown)" in text for text in texts(rows)) == len(rows.length_R) - len(GROUPS[0])


def test_a_peer_is_shown_to_failures_alone() -> None:
    """A success of the group is told to the other; without one the teacher reads what the policy read."""
    same = read("peer")
    assert torch.equal(same.token_RT, BATCH.rows.token_RT)
    winner, loser = GROUPS[0]
    won = dataclasses.replace(winner, end=EndReason.SOLVED)
    rows = read("peer", [[won, loser]])
    shown = [words(text) for text in texts(rows)]
    action = words(str(won.trajectory.turns[0].action))[:30]
    told = {
        int(b)
        for b, text in zip(rows.trajectory_R, shown, strict=True)
        if "An attempt that succeeded" in text
    }
    assert told == {1}
    assert any(
        action in text[text.index("An attempt that succeeded") :] for text in shown if "succeeded" in text
    )
