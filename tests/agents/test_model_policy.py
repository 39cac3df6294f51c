"""A model as a policy: what it asks its engine, and what it does when it cannot go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from turnwise.agents.core import PREVIOUS, ROOT, Completion, History, Outcome, Reply, Sampling
from turnwise.agents.engines.recorded import RecordedEngine
from turnwise.agents.models.small import train_tokenizer
from turnwise.agents.policies.model import ModelPolicy, sampling_seed
from turnwise.agents.rollout import rollout_episode
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.errors import EngineError
from turnwise.tasks.core import Task

TASK = Task("test/Count-v0", "Count.")


class CountEnv(AgentEnv[int]):
    """Counts the turns aloud; the third "stop" ends it."""

    blocking = False

    def initial(self, task: Task) -> tuple[int, str]:
        return 0, task.prompt

    def transition(self, state: int, action: Message) -> Transition[int]:
        end = EndReason.SOLVED if action.content == "stop" else None
        return Transition(state + 1, f"turn {state + 1}", {"outcome": float(end is not None)}, end)


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer(train_tokenizer(["Count. turn 1 go stop"] * 4, vocab_size=300), tools_format="none")


def said(renderer: Renderer, *texts: str) -> list[tuple[int, ...]]:
    return [renderer.reply_ids(Message("assistant", text)) for text in texts]


def test_an_episode(renderer: Renderer) -> None:
    engine = RecordedEngine(said(renderer, "go", "go", "stop"), version=4)
    policy = ModelPolicy(engine, renderer, Sampling(0.5, 0.9, 20), name="it")
    episode = asyncio.run(rollout_episode(CountEnv(), policy, TASK, seed=1))
    assert (episode.outcome, episode.end, episode.score) == (Outcome.OK, EndReason.SOLVED, 1.0)
    turns = episode.trajectory.turns
    assert [turn.action for turn in turns] == [Message("assistant", text) for text in ("go", "go", "stop")]
    assert [turn.reply.versions for turn in turns] == [((0, 4),)] * 3
    assert all(asked.sampling == Sampling(0.5, 0.9, 20) for asked in engine.asked)
    assert all(asked.stop_ids == renderer.stop_ids for asked in engine.asked)
    text = renderer.tokenizer.decode([*engine.asked[-1].prompt_ids])
    assert text == (
        "<|user|>Count.<|assistant|>go<|end|><|user|>turn 1<|assistant|>go<|end|><|user|>turn 2<|assistant|>"
    )


def test_seeds_differ_by_task_episode_and_turn_and_repeat(renderer: Renderer) -> None:
    def seeds(task: Task, seed: int) -> list[int]:
        engine = RecordedEngine(said(renderer, "go", "go", "stop"))
        asyncio.run(rollout_episode(CountEnv(), ModelPolicy(engine, renderer), task, seed=seed))
        return [asked.seed for asked in engine.asked]

    runs = [seeds(TASK, 1), seeds(TASK, 2), seeds(Task("test/Count-v0", "Go."), 1)]
    assert len({seed for run in runs for seed in run}) == 9
    assert all(0 <= seed < 2**63 for run in runs for seed in run)
    assert seeds(TASK, 1) == runs[0]


def test_a_full_context_ends_the_episode_as_a_limit(renderer: Renderer) -> None:
    first, more = len(renderer.start([Message("user", "Count.")])), len(said(renderer, "go")[0])
    engine = RecordedEngine(said(renderer, "go", "go", "go"), context_length=first + more + 3)
    episode = asyncio.run(rollout_episode(CountEnv(), ModelPolicy(engine, renderer), TASK, seed=1))
    assert (episode.outcome, episode.end) == (Outcome.LIMIT, EndReason.TOKEN_LIMIT)
    assert len(episode.trajectory.turns) == 1
    assert len(engine.asked) == 1
    assert engine.asked[0].sampling.max_tokens == more + 3


def test_room_for_one_token_is_used(renderer: Renderer) -> None:
    prompt = renderer.start([Message("user", "Count.")])
    for room, asked in ((1, 1), (0, 0)):
        engine = RecordedEngine(said(renderer, "go"), context_length=len(prompt) + room)
        history = History(CountEnv(), TASK, 0, Messages((Message("user", "Count."),)))
        reply = asyncio.run(ModelPolicy(engine, renderer).act(history))
        assert len(engine.asked) == asked
        assert len(reply.action_ids) == room
        assert (reply.end is EndReason.TOKEN_LIMIT) == (room == 0)


def test_a_turn_whose_engine_failed_can_be_played_again(renderer: Renderer) -> None:
    class Failing(RecordedEngine):
        async def generate(self, *args: object, **more: object) -> Completion:
            raise EngineError("gone", "start it again")

    env = CountEnv()
    observation, _ = env.reset(seed=0, options={"task": TASK})
    history = History(env, TASK, 0, observation)
    with pytest.raises(EngineError):
        asyncio.run(ModelPolicy(Failing([]), renderer).act(history))
    assert history.token_ids == []
    engine = RecordedEngine(said(renderer, "go"))
    reply = asyncio.run(ModelPolicy(engine, renderer).act(history))
    assert history.token_ids == [*reply.prompt_ids, *reply.action_ids]


def test_turns_of_another_policy_are_read_as_a_prompt(renderer: Renderer) -> None:
    env = CountEnv()
    observation, _ = env.reset(seed=0, options={"task": TASK})
    history = History(env, TASK, 0, observation)
    history.add(Reply(Message("assistant", "expert")), env.step("expert"), "")
    engine = RecordedEngine(said(renderer, "go", "go"))
    policy = ModelPolicy(engine, renderer)
    first = asyncio.run(policy.act(history))
    assert first.parent == ROOT  # these prompt tokens are all there is
    assert engine.asked[0].prompt_ids == renderer.start(history.messages())
    history.add(first, env.step("go"), "")
    second = asyncio.run(policy.act(history))
    assert second.parent == PREVIOUS
    assert engine.asked[1].prompt_ids == (*first.prompt_ids, *first.action_ids, *second.prompt_ids)
    history.add(second, env.step("go"), "")
    history.add(Reply(Message("assistant", "expert")), env.step("expert"), "")
    history.token_ids = [1, 2, 3]  # whatever stood, the expert's turn is not in it
    engine = RecordedEngine(said(renderer, "go"))
    assert asyncio.run(ModelPolicy(engine, renderer).act(history)).parent == ROOT


def test_seed_is_of_the_history(renderer: Renderer) -> None:
    history = History(CountEnv(), TASK, 5, Messages())
    assert sampling_seed(history) == sampling_seed(History(CountEnv(), TASK, 5, Messages()))


def test_import_is_light() -> None:
    import subprocess
    import sys

    code = (
        "import sys, turnwise.agents.tokens.renderer, turnwise.agents.policies.model, turnwise.agents.models.small;"
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path.cwd()).returncode == 0
