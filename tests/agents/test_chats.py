"""Chats out of a log: what the agent saw and said, up to its last words, as chat templates read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import turnwise
from turnwise.agents.log.chats import write_chats
from turnwise.errors import TurnwiseError


def test_a_chat_is_the_episode_up_to_the_last_action_with_the_tools(tmp_path: Path) -> None:
    log = tmp_path / "episodes.jsonl.zst"
    turnwise.rollout("functioncall/failing", "mix:gold=0.5,random=0.5", episodes=8, log=log)
    episodes = turnwise.load_episodes(log)
    found = write_chats(log, tmp_path / "chats.jsonl", solved=True)
    rows = [json.loads(line) for line in (tmp_path / "chats.jsonl").read_text().split("\n") if line]
    solved = [episode for episode in episodes if episode.success]
    assert 0 < len(solved) < 8
    assert (found.written, found.unwanted) == (len(rows), 8 - len(solved)) == (len(solved), 8 - len(solved))
    for row, episode in zip(rows, solved, strict=True):
        roles = [message["role"] for message in row["messages"]]
        assert roles.count("assistant") == len(episode.trajectory.turns)
        assert (roles[0], roles[-1]) == ("system", "assistant")
        assert row["messages"][-1]["content"] == episode.trajectory.turns[-1].action.content
    calls = [call for row in rows for m in row["messages"] for call in m.get("tool_calls", ())]
    assert all(isinstance(call["function"]["arguments"], dict) for call in calls)
    answered = {m["tool_call_id"] for row in rows for m in row["messages"] if m["role"] == "tool"}
    assert answered <= {call["id"] for call in calls}


def test_nothing_to_write_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    log = tmp_path / "episodes.jsonl.zst"
    turnwise.rollout("shop/easy", "scripted:null", episodes=2, log=log)
    with pytest.raises(TurnwiseError, match="holds no chat to write: 2 episodes are not wanted"):
        write_chats(log, tmp_path / "chats.jsonl", solved=True)
    assert not (tmp_path / "chats.jsonl").exists()
    assert write_chats(log, tmp_path / "chats.jsonl").written == 2
