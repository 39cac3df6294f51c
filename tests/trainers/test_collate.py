"""Episodes become rows of exactly the engine's tokens, whatever branches they have."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from turnwise.agents.core import PREVIOUS, ROOT, Completion, Episode, Reply, Sampling, Trajectory, Turn, after
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.rollout import Request, rollout
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import RunError
from turnwise.tasks.core import Split
from turnwise.trainers.kit.reward_edits import replace_turns
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.learn.collate import TokenRows, collate, collate_rows, collate_turns, micro_batches

REWRITES = """\
{%- for message in messages %}
{{- '<|' + message.role + '|>' + ('.' if message.role == 'assistant' and not loop.last else message.content) }}
{%- if message.role == 'assistant' %}{{ '<|end|>' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""
"""Forgets what the agent said once it was answered."""


class Witness:
    """An engine that remembers every call."""

    def __init__(self, engine: TorchEngine) -> None:
        self.engine, self.version, self.context_length = engine, 0, engine.context_length
        self.calls: list[tuple[list[int], Completion]] = []

    async def generate(self, prompt_ids: Any, sampling: Any, *, stop_ids: Any, seed: int) -> Completion:
        done = await self.engine.generate(prompt_ids, sampling, stop_ids=stop_ids, seed=seed)
        self.calls.append((list(prompt_ids), done))
        return done

    def close(self) -> None:
        self.engine.close()


def play(folder: Path, template: str | None = None, n: int = 4) -> tuple[list[Episode], Witness]:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    if template:
        tokenizer.chat_template = template
    engine = Witness(TorchEngine(folder, device="cpu", context_length=512, max_sequences=8))
    policy = ModelPolicy(engine, Renderer(tokenizer, tools_format="none"), Sampling(max_tokens=6))
    requests = [
        Request(task, i) for i, task in enumerate(suite_tasks(get_suite("shop/quick"), Split.TRAIN, n))
    ]
    return asyncio.run(rollout(requests, policy)), engine


@pytest.mark.parametrize("template", [None, REWRITES], ids=["extends", "rewrites"])
def test_rows_hold_exactly_what_the_engine_was_given(small_model: Path, template: str | None) -> None:
    episodes, engine = play(small_model, template)
    batch = collate([episodes])
    rows = batch.rows
    fresh = sum(turn.reply.parent == ROOT for e in episodes for turn in e.trajectory.turns)
    assert bool(fresh) == bool(template)
    assert len(rows.length_R) == len(episodes) + fresh
    calls = {tuple(prompt): done for prompt, done in engine.calls}
    seen = 0
    for b, one in enumerate(episodes):
        for k in range(len(one.trajectory.turns)):
            r, position = int(rows.state_row_BK[b, k]), int(rows.state_position_BK[b, k])
            assert rows.trajectory_R[r] == b
            prompt = tuple(rows.token_RT[r, : position + 1].tolist())
            done = calls[prompt]
            action = slice(position + 1, position + 1 + len(done.token_ids))
            assert tuple(rows.token_RT[r, action].tolist()) == done.token_ids
            assert rows.behaviour_logp_RT[r, action].tolist() == pytest.approx(done.logprobs)
            assert rows.mask_RT[r, action].all()
            assert (rows.turn_RT[r, action] == k).all()
            seen += len(done.token_ids)
    assert seen == int(rows.mask_RT.sum()) > 0
    assert int(batch.turns.mask_BK.sum()) == len(engine.calls)


def told(*turns: tuple[int, int, bool], end: EndReason = EndReason.FAILED) -> Episode:
    """An episode of turns (prompt tokens, action tokens, fresh)."""
    replies = [
        Reply(Message("assistant", "!"), (7,) * p, (8,) * a, (-0.5,) * a, parent=ROOT if fresh else PREVIOUS)
        for p, a, fresh in turns
    ]
    return replace_turns(
        episode([0.0] * len(turns), end=end),
        lambda played: [dataclasses.replace(t, reply=r) for t, r in zip(played, replies, strict=True)],
    )


def test_a_fresh_turn_begins_a_row_and_padding_is_nothing() -> None:
    batch = collate([[told((3, 2, False), (1, 1, False), (9, 2, True)), told((2, 1, True))]])
    rows = batch.rows
    assert rows.length_R.tolist() == [7, 11, 3]
    assert rows.trajectory_R.tolist() == [0, 0, 1]
    assert rows.turn_RT[0].tolist() == [-1, -1, -1, 0, 0, -1, 1, *[-1] * 4]
    assert rows.turn_RT[1].tolist() == [*[-1] * 9, 2, 2]
    assert rows.state_row_BK.tolist() == [[0, 0, 1], [2, 0, 0]]
    assert rows.state_position_BK.tolist() == [[2, 5, 8], [1, 0, 0]]
    assert not rows.mask_RT[0, 7:].any()
    assert rows.token_RT[2, 3:].sum() == rows.behaviour_logp_RT[2, 3:].sum() == 0
    part = rows.select(torch.tensor([2, 0]))
    assert part.token_RT.shape == (2, 7)
    assert part.trajectory_R.tolist() == [1, 0]


def with_replies(found: Episode, *changes: dict[str, Any], weights: Sequence[float] = ()) -> Episode:
    """An episode whose replies are changed, turn by turn, and which has these weights."""

    def change(played: Sequence[Turn]) -> list[Turn]:
        given = zip(played, changes, weights or [1.0] * len(changes), strict=True)
        return [dataclasses.replace(t, reply=t.reply._replace(**new), weight=w) for t, new, w in given]

    return replace_turns(found, change)


def test_a_turn_may_extend_any_turn_before_it() -> None:
    """Turn 2 goes on after turn 0, turn 3 after turn 1: what they share is read again, and learned once."""
    found = told((2, 1, False), (1, 2, False), (3, 1, False), (1, 1, False))
    rows = collate([[with_replies(found, {}, {}, {"parent": after(0)}, {"parent": after(1)})]]).rows
    assert rows.length_R.tolist() == [8, 7]
    assert rows.turn_RT[0].tolist() == [-1, -1, 0, -1, 1, 1, -1, 3]
    assert rows.turn_RT[1].tolist() == [-1, -1, -1, -1, -1, -1, 2, -1]
    assert rows.token_RT[1, :7].tolist() == [7, 7, 8, 7, 7, 7, 8]
    assert rows.state_row_BK.tolist() == [[0, 0, 1, 0]]
    assert rows.state_position_BK.tolist() == [[1, 3, 5, 6]]
    with pytest.raises(RunError, match=r"Turn 2 of an episode extends turn 2, which is not before it"):
        collate([[with_replies(told((1, 1, False), (1, 1, False)), {}, {"parent": after(1)})]])


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(-1, 5)), min_size=1, max_size=7))
def test_each_sampled_token_is_learned_once_after_all_that_stood_before_it(shape: list[Any]) -> None:
    """Whatever turn a turn extends, its row holds exactly the tokens from the root to it."""
    parents = [min(parent, k - 1) if k else -1 for k, (_, _, parent) in enumerate(shape)]
    found = told(*((p, a, False) for p, a, _ in shape))
    change = [
        {"parent": after(at) if at >= 0 else ROOT, "action_ids": (100 + k,) * a}
        for k, (at, (_, a, _)) in enumerate(zip(parents, shape, strict=True))
    ]
    (tree,) = [with_replies(found, *change)]
    rows = collate([[tree]]).rows
    whole: list[list[int]] = []
    for k, ((prompt, action, _), parent) in enumerate(zip(shape, parents, strict=True)):
        before = whole[parent] if parent >= 0 else []
        whole.append([*before, *[7] * prompt, *[100 + k] * action])
        r, position = int(rows.state_row_BK[0, k]), int(rows.state_position_BK[0, k])
        assert rows.token_RT[r, : position + 1 + action].tolist() == whole[k]
        assert int((rows.turn_RT == k).sum()) == action


def test_an_action_is_learned_under_the_prompt_that_it_is_scored_under() -> None:
    rows = collate([[with_replies(told((4, 2, False), (1, 1, False)), {"scored_ids": (5,)}, {})]]).rows
    assert rows.token_RT.tolist() == [[5, 8, 8, 7, 8]]
    assert rows.state_position_BK.tolist() == [[0, 3]]
    assert rows.behaviour_logp_RT.tolist() == [[0, -0.5, -0.5, 0, -0.5]]


def test_what_others_chose_is_read_or_learned_by_its_weight() -> None:
    shown = [{"source": "gold", "logprobs": ()}, {"source": "gold", "logprobs": ()}, {}]
    found = with_replies(told(*[(1, 2, False)] * 3), *shown, weights=[0.0, 0.5, 1.0])
    batch = collate([[found, told((1, 1, False))]])
    rows = batch.rows
    assert batch.sources == ("gold",)
    assert rows.turn_RT[0].tolist() == [-1, -1, -1, -1, 1, 1, -1, 2, 2]
    assert rows.source_RT[0].tolist() == [0, 0, 0, 0, 1, 1, 0, 0, 0]
    assert rows.known_RT[0].tolist() == [False] * 7 + [True] * 2
    assert batch.weight_BK.tolist() == [[0, 0.5, 1], [1, 1, 1]]
    assert rows.select(torch.tensor([1])).source_RT.tolist() == [[0, 0]]


def test_turns_know_group_limit_and_state() -> None:
    long = told((1, 1, False), (1, 1, False), end=EndReason.TURN_LIMIT)
    batch = collate([[told((1, 1, False)), long], [long]])
    assert batch.turns.group_B.tolist() == [0, 0, 1]
    assert batch.turns.truncated_B.tolist() == [False, True, True]
    assert batch.turns.length_B.tolist() == [1, 2, 2]
    states = batch.turns.state_BK
    assert (states[1] == states[2]).all()
    assert states[1, 0] != states[1, 1]
    assert (states >= 0).all()


def test_trajectories_without_turns_have_no_rows() -> None:
    none = told()
    batch = collate([[none, told((2, 1, False))], [none]])
    assert batch.turns.mask_BK.tolist() == [[False], [True], [False]]
    assert batch.rows.trajectory_R.tolist() == [1]
    empty = collate([[none]])
    assert empty.turns.reward_BK.shape == (1, 0)
    assert empty.rows.token_RT.shape == (0, 0)
    assert list(micro_batches(empty.rows, 100)) == []
    assert collate([]).turns.reward_BK.shape == (0, 0)


def test_what_no_model_sampled_is_refused() -> None:
    with pytest.raises(RunError, match="0 sampled"):
        collate_rows([told((3, 0, False)).trajectory])
    with pytest.raises(RunError, match="0 prompt tokens"):
        collate_rows([told((0, 3, False)).trajectory])
    broken = told((1, 2, False)).trajectory
    reply = broken.turns[0].reply._replace(logprobs=(-1.0,))
    with pytest.raises(RunError, match="1 log-probabilities"):
        collate_rows([Trajectory((dataclasses.replace(broken.turns[0], reply=reply),))])


@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5), st.booleans()), max_size=4), max_size=8
    ),
    st.integers(1, 60),
)
def test_micro_batches_share_rows_out_within_their_limit(turns: list[Any], most: int) -> None:
    rows: TokenRows = collate_rows([told(*own).trajectory for own in turns])
    parts = [part.tolist() for part in micro_batches(rows, most)]
    assert sorted(row for part in parts for row in part) == list(range(len(rows.length_R)))
    for part in parts:
        assert len(part) * max(int(rows.length_R[row]) for row in part) <= most or len(part) == 1


@pytest.mark.parametrize("value", [1e39, -1e308, math.inf, math.nan])
@pytest.mark.parametrize("signal", [False, True])
def test_what_no_tensor_can_hold_names_its_episode(value: float, signal: bool) -> None:
    good, bad = episode([0.0, 1.0]), episode([0.0, 1.0 if signal else value])
    if signal:
        first, last = bad.trajectory.turns
        turns = (first, dataclasses.replace(last, signals={"reward": value}))
        bad = dataclasses.replace(
            bad, trajectories={"agent": dataclasses.replace(bad.trajectory, turns=turns)}
        )
    with pytest.raises(RunError, match=rf"Turn 2 of an episode of .*task {bad.task.id}.* has a reward of"):
        collate_turns([[good, bad]])
