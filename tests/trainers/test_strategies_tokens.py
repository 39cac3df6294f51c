"""Forks of a model's episodes: the tokens of what is shared are the parent's, and the engine read the same (T1, T2)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from turnwise.agents.core import ROOT, Completion, Episode, Sampling
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.models.small import build_small_model
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import run_episodes
from turnwise.agents.tokens.renderer import Renderer
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.learn.warm_start import texts
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups
from turnwise.trainers.strategy.tree import tree
from turnwise.trainers.strategy.vine import vine

PLAN = plan_groups("shop/quick", 2, 4, 0)


class Listening(TorchEngine):
    """Remembers every prompt that it was given, with its answer."""

    def __init__(self, model: str, **options: Any) -> None:
        super().__init__(model, **options)
        self.heard: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()

    async def generate(self, prompt_ids, sampling, *, stop_ids, seed) -> Completion:
        done = await super().generate(prompt_ids, sampling, stop_ids=stop_ids, seed=seed)
        self.heard.add((tuple(prompt_ids), done.token_ids))
        return done


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> ModelPolicy:
    from transformers import AutoTokenizer

    folder: Path = tmp_path_factory.mktemp("model")
    shown = run_episodes([r for group in PLAN for r in group], scripted("demonstrator"))
    build_small_model(folder, texts([e.trajectory for e in shown]), layers=2, width=128, context=1024)
    engine = Listening(str(folder), context_length=1024, max_sequences=16)
    renderer = Renderer(AutoTokenizer.from_pretrained(folder), tools_format="none")
    return ModelPolicy(engine, renderer, Sampling(1.0, 1.0, 12))


def whole(episode: Episode) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """What the engine must have been given, and answered, at each turn."""
    read: list[int] = []
    turns = []
    for turn in episode.trajectory.turns:
        read = [*turn.reply.prompt_ids] if turn.reply.parent == ROOT else [*read, *turn.reply.prompt_ids]
        turns.append((tuple(read), turn.reply.action_ids))
        read.extend(turn.reply.action_ids)
    return turns


@pytest.mark.slow
@pytest.mark.parametrize("at", [(1, 3), "entropy"])
def test_leaves_are_what_the_engine_read_and_said(policy: ModelPolicy, at) -> None:
    runner = RolloutRunner(policy, as_is)
    groups = asyncio.run(tree(runner, [[*g, *g] for g in PLAN], at=at))
    engine = policy.engine
    assert isinstance(engine, Listening)
    for group in groups:
        assert len(group) == 8
        for episode in group:
            assert {*whole(episode)} <= engine.heard
        branched = {tuple(t.signals["edge"] for t in e.trajectory.turns) for e in group}
        assert any(any(edges) for edges in branched)
    rows = collate(groups).rows
    for r in range(0, len(rows.token_RT), 5):  # the trainer would compute the same log-probabilities
        ids = rows.token_RT[r, : rows.length_R[r]].tolist()
        scored = (0.0, *engine.score([ids])[0])
        for t in rows.mask_RT[r].nonzero().flatten().tolist():
            assert rows.behaviour_logp_RT[r, t].item() == pytest.approx(scored[t], abs=1e-3)


@pytest.mark.slow
def test_shared_turns_are_sampled_once(policy: ModelPolicy) -> None:
    runner = RolloutRunner(policy, as_is)
    groups = asyncio.run(tree(runner, PLAN, at=(2,)))
    distinct = sum(
        len(
            {
                (k, t.signals["edge"] or -n)
                for n, e in enumerate(group, 1)
                for k, t in enumerate(e.trajectory.turns)
            }
        )
        for group in groups
    )
    assert runner.cost.steps == distinct
    assert runner.cost.steps < sum(len(e.trajectory.turns) for group in groups for e in group)


@pytest.mark.slow
def test_vine_leaves_the_models_episodes_as_they_are(policy: ModelPolicy) -> None:
    plain = run_episodes([r for group in PLAN for r in group], policy)
    runner = RolloutRunner(policy, as_is)
    groups = asyncio.run(vine(runner, PLAN, forks=1))
    measured = [episode for group in groups for episode in group]
    assert [whole(e) for e in measured] == [whole(e) for e in plain]
    assert runner.cost.fork_tokens_sampled > 0
    turns = collate(groups).turns
    assert turns.signals["fork_value"].shape == turns.mask_BK.shape
