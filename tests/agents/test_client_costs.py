"""``turnwise bench client``: the canned engine plays what was written, and the counts of work are the same on every machine."""

from __future__ import annotations

import pytest

from turnwise.agents.bench import client
from turnwise.agents.bench.client import ClientWorkload, TalkKind, bench_client, kind_renderer, talk
from turnwise.agents.core import Episode
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.tasks.core import Split

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
