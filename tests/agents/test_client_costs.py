"""``turnwise bench client``: the canned engine plays what was written, and the counts of work are the same on every machine."""

from __future__ import annotations

import asyncio
import gc
import json
import math
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwise.agents.bench import client
from turnwise.agents.bench.client import ClientWorkload, TalkKind, bench_client, kind_renderer, talk
from turnwise.agents.core import Episode
from turnwise.agents.execution.calls import ReplyTimer
from turnwise.agents.execution.garbage import SELDOM
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.envs.shop.tasks import world_of
from turnwise.tasks.core import Json, Split, Task, text_encoder

SMALL = ClientWorkload(tasks=1, group=2, concurrency=2, turns=16, words=8, said=3, vocabulary=600)


def test_a_conversation_with_the_canned_engine_is_the_one_that_was_written() -> None:
    kind = TalkKind("chatml", "calls")
    made = kind_renderer(kind)
    first, again = talk(kind, made, SMALL, 1), talk(kind, kind_renderer(kind), SMALL, 1)
    assert first.prompts == again.prompts
    assert first.work == again.work  # counts do not depend on the clock
    asked = made.tokenizer.decode([*first.prompts[3]])
    assert "<tool_response>" in asked
    assert "look" in asked.partition("<tool_call>")[0] or asked.count("<|im_start|>") == 2


def test_figures_name_every_kind_and_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SUITES", ("functioncall/single",))
    monkeypatch.setattr(client, "KINDS", (TalkKind("thinking", "thoughts"),))
    figures = bench_client(repeats=1, workload=SMALL)
    assert {"functioncall/single", "functioncall/single: encoded"} <= set(figures)
    assert {"thinking, thoughts: growth", "thinking, thoughts: guarded at 12"} <= set(figures)
    assert all(figure.value > 0 for figure in figures.values())


def test_no_episode_is_written_as_text_when_all_were_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """`asyncio.run` writes what its task returned, to name a handler of Ctrl-C that it replaces."""

    written: list[Episode] = []
    monkeypatch.setattr(Episode, "__repr__", lambda episode: written.append(episode) or "an episode")
    tasks = suite_tasks(get_suite("calc/bare"), Split.TRAIN, 1)
    assert len(run_episodes([Request(task, 0) for task in tasks], scripted("gold"))) == 1
    assert not written


def test_all_replies_of_an_episode_wait_under_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[str] = []
    call_at = asyncio.BaseEventLoop.call_at
    monkeypatch.setattr(
        asyncio.BaseEventLoop,
        "call_at",
        lambda loop, when, callback, *args, **more: (
            rung.append(callback.__name__) or call_at(loop, when, callback, *args, **more)
        ),
    )
    (task,) = suite_tasks(get_suite("shop/easy"), Split.TRAIN, 1)
    (episode,) = run_episodes([Request(task, 0)], scripted("gold"))
    assert len(episode.trajectory.turns) > 2
    assert rung.count("_ring") == 1


def test_each_reply_has_its_own_time_under_the_timer_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    async def reply(timer: ReplyTimer, seconds: float) -> None:
        with timer:
            now[0] += seconds
            for _ in range(3):
                await asyncio.sleep(0)

    async def play() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
        timer = ReplyTimer(10.0)
        await reply(timer, 6.0)
        await reply(timer, 6.0)  # it rings, and this one has time left
        with pytest.raises(TimeoutError):
            await reply(timer, 11.0)
        await reply(timer, 9.0)
        timer.close()

    asyncio.run(play())


def test_python_searches_for_cycles_as_before_when_all_were_played() -> None:
    before = gc.get_threshold()
    seen: list[int] = []
    tasks = suite_tasks(get_suite("calc/bare"), Split.TRAIN, 1)
    run_episodes(
        [Request(task, 0) for task in tasks],
        scripted("gold"),
        on_episode=lambda *_: seen.append(gc.get_threshold()[0]),
    )
    assert seen == [SELDOM]
    assert gc.get_threshold() == before


def test_episodes_of_a_task_share_a_shop_for_as_long_as_they_are_in_it() -> None:
    (task,) = suite_tasks(get_suite("shop/easy"), Split.TRAIN, 1)
    world = world_of(task)
    assert world_of(Task.from_json(task.to_json())) is world
    gone = weakref.ref(world)
    del world
    gc.collect()
    assert gone() is None


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_the_encoder_that_is_made_once_writes_what_json_writes(value: Json) -> None:
    forms: list[dict[str, Any]] = [{"separators": (",", ":")}, {"sort_keys": True, "ensure_ascii": False}]
    for options in forms:
        assert text_encoder(**options)(value) == json.dumps(value, **options)


def test_the_encoder_that_is_made_once_refuses_what_json_refuses() -> None:
    ring: list[Json] = []
    ring.append(ring)
    for value, told in ((ring, "Circular"), (math.nan, "not JSON compliant"), (object(), "serializable")):
        for _ in range(2):  # the first leaves nothing behind
            with pytest.raises((ValueError, TypeError), match=told):
                text_encoder(allow_nan=False)(value)
