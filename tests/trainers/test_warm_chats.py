"""A warm start from chats that somebody wrote down."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import turnwise
from turnwise.agents.log.chats import write_chats
from turnwise.agents.policies.model import DemonstrationPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, rollout
from turnwise.agents.tokens.renderer import Renderer
from turnwise.errors import RunError
from turnwise.trainers.guide.toy import toy_model
from turnwise.trainers.learn.chats import Chats, read_chats
from turnwise.trainers.learn.collate import collate_rows
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.run.door import opened
from turnwise.trainers.run.small import heard


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    from transformers import AutoTokenizer

    return Renderer(AutoTokenizer.from_pretrained(toy_model()))


def chat(*said: str, **more: Any) -> dict[str, Any]:
    """A chat in which a user and an assistant speak in turn."""
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)], **more}


def written(folder: Path, *rows: Any) -> Path:
    """A file with these rows."""
    path = folder / "chats.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("suite", ["calc/easy", "shop/quick"])
def test_a_log_written_as_chats_is_shown_with_the_tokens_of_its_demonstration(
    suite: str, renderer: Renderer, tmp_path: Path
) -> None:
    log = tmp_path / "episodes.jsonl.zst"
    turnwise.rollout(suite, "scripted:gold", episodes=3, log=log)
    write_chats(log, tmp_path / "chats.jsonl")
    requests = [Request(episode.task, episode.seed) for episode in turnwise.load_episodes(log)]
    policy = DemonstrationPolicy(scripted("gold"), renderer)
    played = [said for e in asyncio.run(rollout(requests, policy)) for said in e.trajectories.values()]
    shown = [Chats(tmp_path / "chats.jsonl", renderer, 10**6, 0)._fitting(place) for place in range(3)]
    tokens = lambda one: [(t.reply.prompt_ids, t.reply.action_ids, t.reply.parent) for t in one.turns]
    assert sorted(map(tokens, shown)) == sorted(map(tokens, played))


def test_three_forms_are_one_chat(renderer: Renderer, tmp_path: Path) -> None:
    path = written(
        tmp_path,
        chat("hi", "yes ."),
        {"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yes ."}]},
        {"prompt": "hi", "completion": "yes ."},
        {
            "prompt": [{"role": "user", "content": "hi"}],
            "completion": [{"role": "assistant", "content": "yes ."}],
        },
    )
    assert len({*read_chats(path)}) == 1


def test_a_message_of_weight_0_is_read_and_not_learned(renderer: Renderer, tmp_path: Path) -> None:
    row = chat("hi", "wrong .", "no", "right .")
    row["messages"][1]["weight"] = 0
    (shown,) = Chats(written(tmp_path, row), renderer, 10**6, 0).batch(0, 1)
    rows = collate_rows([shown])
    learned = rows.token_RT[0][rows.mask_RT[0]].tolist()
    assert tuple(learned) == shown.turns[1].reply.action_ids


def test_all_chats_are_shown_before_one_is_shown_again(renderer: Renderer, tmp_path: Path) -> None:
    path = written(tmp_path, *(chat("hi", f"number {n}") for n in range(5)))
    chats = Chats(path, renderer, 10**6, 0)
    said = [one.turns[0].action.content for one in chats.batch(0, 10)]
    assert len({*said[:5]}) == len({*said[5:]}) == 5
    assert said[:5] != said[5:]
    assert [one.turns[0].action.content for one in Chats(path, renderer, 10**6, 0).batch(3, 4)] == said[3:7]


def test_a_chat_that_does_not_fit_is_named_and_another_is_shown(
    renderer: Renderer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path, chat("hi", "word " * 300), chat("hi", "short"))
    shown = Chats(path, renderer, 100, 0).batch(0, 2)
    assert [one.turns[0].action.content for one in shown] == ["short", "short"]
    assert "chat 1 of" in caplog.text
    with pytest.raises(RunError, match=r"None of the 2 chats .* fits into 2 tokens"):
        Chats(path, renderer, 2, 0).batch(0, 1)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("{", "it is no JSON"),
        ([1], "it is no object"),
        ({"text": "hi"}, "it has no messages, conversations, or prompt and completion; its keys: text"),
        ({"messages": []}, "messages is no list of messages"),
        (chat("hi"), "no message is an assistant's"),
        ({"messages": [{"role": "assistant", "content": "hi"}]}, r"messages\[0\] is an assistant's, and follows nothing"),
        ({"messages": [{"role": "bot", "content": "hi"}]}, r"messages\[0\].role is 'bot'"),
        ({"messages": [{"role": "user", "content": 3}]}, r"messages\[0\].content"),
        ({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "weight": 2}]}, "weight"),
        ({"conversations": [{"from": "bot", "value": "hi"}]}, "a conversation's part is from one of"),
        (chat("hi", "yes", tools=[{"type": "retrieval"}]), "tools"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_chat_is_named(row: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=rf"Line 2 of .*chats.jsonl is no chat: .*{why}"):
        read_chats(written(tmp_path, chat("hi", "yes"), row))


def test_a_file_without_chats_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no chat"):
        read_chats(written(tmp_path, ""))
    with pytest.raises(RunError, match="cannot be read"):
        read_chats(tmp_path / "none.jsonl")


def test_a_recipe_says_what_it_imitates(tmp_path: Path) -> None:
    path = str(written(tmp_path, chat("hi", "yes")))
    assert f"32 chats of {path}" in turnwise.explain(
        load_recipe("shop-quick", {"warm_start": {"chats": path, "episodes": 32}})
    )


def test_a_model_made_from_nothing_hears_its_chats_too(tmp_path: Path) -> None:
    path = written(tmp_path, chat("hi", "zugzwang zugzwang ."), chat("hi", "zugzwang ."))
    told = {"warm_start.chats": str(path), "model.scratch.text_episodes": 2}
    plain, both = (
        [*heard(opened(load_recipe("shop-quick", changes)).scratch)]
        for changes in ({"model.scratch.text_episodes": 2}, told)
    )
    assert both == [*plain, "hi", "zugzwang zugzwang .", "hi", "zugzwang ."]
