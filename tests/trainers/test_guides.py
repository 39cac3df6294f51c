"""Groups are played again with help: who chose what is known, and each action is learned under the right prompt."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turnwise import registry
from turnwise.agents.core import ROOT, Completion, Sampling
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.rollout import BranchPoint, Request, rollout
from turnwise.agents.tokens.renderer import Renderer
from turnwise.agents.tokens.telling import told_below
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.tasks.core import Split
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.prefix import prefix
from turnwise.trainers.guide.told import ToldPolicy
from turnwise.trainers.guide.toy import played_with, untrained_policy
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.relearn import relearn
from turnwise.trainers.run.schedules import CLOCK
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import Cost, RolloutRunner, TurnPoint, plan_groups

FORGETS = """\
{%- for message in messages %}
{{- '<|' + message.role + '|>' + ('.' if message.role == 'assistant' and not loop.last else message.content) }}
{%- if message.role == 'assistant' %}{{ '<|end|>' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""


class Witness:
    """An engine that remembers what it was given."""

    def __init__(self, engine: TorchEngine) -> None:
        self.engine, self.version, self.context_length = engine, 0, engine.context_length
        self.prompts: list[tuple[int, ...]] = []

    async def generate(self, prompt_ids: Any, sampling: Any, *, stop_ids: Any, seed: int) -> Completion:
        self.prompts.append(tuple(prompt_ids))
        return await self.engine.generate(prompt_ids, sampling, stop_ids=stop_ids, seed=seed)

    def close(self) -> None:
        self.engine.close()


def figures(run: Path) -> list[dict[str, Any]]:
    """What each update measured, clocks aside."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if not k.endswith(CLOCK)} for row in rows if row["phase"] == "rl"]


@pytest.fixture
def guide_of_moments() -> Iterator[str]:
    component("guide", "from_the_middle")(from_the_middle)
    yield "from_the_middle"
    del registry._components["guide", "from_the_middle"]


@pytest.mark.parametrize("template", [None, FORGETS], ids=["extends", "rewrites"])
def test_a_hinted_action_is_sampled_with_the_hint_and_learned_without_it(
    small_model: Path, template: str | None
) -> None:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(small_model)
    if template:
        tokenizer.chat_template = template
    engine = Witness(TorchEngine(small_model, device="cpu", context_length=512, max_sequences=8))
    model = ModelPolicy(engine, Renderer(tokenizer, tools_format="none"), Sampling(max_tokens=6))
    (task,) = suite_tasks(get_suite("shop/quick"), Split.TRAIN, 1)
    policy = ToldPolicy("guide/hint", model, lambda history: "Hint: buy nothing")
    (episode,) = asyncio.run(rollout([Request(task, 3)], policy))
    turns = episode.trajectory.turns
    assert len(turns) > 1
    said: list[int] = []
    conversation: list[Message] = []
    for k, (turn, prompt) in enumerate(zip(turns, engine.prompts, strict=True)):
        conversation += turn.observation
        alone = k == 0 or turn.reply.parent == ROOT
        assert alone == (k == 0 or template is not None)
        said = [*turn.reply.prompt_ids] if alone else [*said, *turn.reply.prompt_ids]
        assert tuple(said) == prompt, "what is logged is what the engine was given"
        if alone:
            assert prompt == model.renderer.start(told_below(conversation, "Hint: buy nothing"))
            assert turn.reply.scored_ids == model.renderer.start(conversation)
        said += turn.reply.action_ids
        conversation.append(turn.action)
    rows = collate([[episode]]).rows
    plain = turns[0].reply.scored_ids or ()
    assert tuple(rows.token_RT[0, : len(plain)].tolist()) == plain
    assert "buy nothing" not in tokenizer.decode(rows.token_RT[0].tolist())
    told = rows.behaviour_logp_RT[rows.mask_RT].tolist()
    assert told == pytest.approx([x for turn in turns for x in turn.reply.logprobs])


@pytest.mark.parametrize("length", [0.2, 0.5, 1.0, "random"])
def test_the_demonstrators_turns_are_read_and_the_policys_are_learned(length: Any) -> None:
    plain, guided = played_with(prefix, "shop/quick", groups=3, size=2, length=length)
    for before, group in zip(plain, guided, strict=True):
        counts = {sum(bool(turn.reply.source) for turn in episode.trajectory.turns) for episode in group}
        assert len(counts) == 1, "one prefix for a group"
        (k,) = counts
        assert k in ({1, 2, 3} if length == "random" else {max(1, min(3, round(4 * length)))})
        openings = {tuple(str(turn.action) for turn in episode.trajectory.turns[:k]) for episode in group}
        assert len(openings) == 1
        assert [episode.task.id for episode in before] == [episode.task.id for episode in group]
    batch = collate(guided)
    assert batch.sources == ("guide/prefix",)
    read = batch.weight_BK == 0
    assert int(read.sum()) == sum(bool(t.reply.source) for g in guided for e in g for t in e.trajectory.turns)
    learned = torch.zeros_like(read)
    rows = batch.rows
    owner_RT = rows.trajectory_R[:, None].expand_as(rows.turn_RT)
    learned[owner_RT[rows.mask_RT], rows.turn_RT[rows.mask_RT]] = True
    assert not (learned & read).any()
    assert (learned | read | ~batch.turns.mask_BK).all()


def test_groups_that_somebody_solved_stay() -> None:
    from turnwise.envs.core import EndReason

    async def after_a_success(player: Any, groups: Any, **options: Any) -> Any:
        solved = [[dataclasses.replace(groups[0][0], end=EndReason.SOLVED), *groups[0][1:]], *groups[1:]]
        found = await prefix(player, solved, **options)
        return [[*found[0]], [*found[1]], [*solved[0]]]

    plain, (kept, helped, solved) = played_with(after_a_success, "shop/quick", groups=2, size=2)
    assert kept == solved
    assert helped != plain[1]
    _, (again, _, _) = played_with(after_a_success, "shop/quick", groups=2, size=2, where="all")
    assert again != kept


async def from_the_middle(player: GuidePlayer, groups: Sequence[Group], *, turn: int = 1) -> list[Group]:
    """Every episode is played again from before one of its turns, where it has as many; its beginning is read."""
    wanted = [
        (n, TurnPoint(e, turn))
        for n, group in enumerate(groups)
        for e in group
        if len(e.trajectory.turns) > turn
    ]
    found = await player.moments([moment for _, moment in wanted])
    starts: dict[int, list[BranchPoint]] = {}
    for (number, _), point in zip(wanted, found, strict=True):
        assert point is not None
        starts.setdefault(number, []).append(point)
    played = await player.go_on(starts, player.policy)
    return [
        [*played.get(n, ()), *(e for e in group if len(e.trajectory.turns) <= turn)]
        for n, group in enumerate(groups)
    ]


def test_a_guide_plays_on_from_a_moment_of_an_episode() -> None:
    """What came before it is that episode's, to the token; what comes after has chance of its own; rows say all of it."""
    policy = untrained_policy()
    runner = RolloutRunner(policy, as_is)
    player = GuidePlayer(runner, policy, {}, 0, 0)

    async def run() -> tuple[list[Group], list[Group], Cost, Cost]:
        plain = await chain(runner, plan_groups("shop/quick", 2, 3))
        before = dataclasses.replace(runner.cost)
        return plain, await from_the_middle(player, plain, turn=2), before, runner.cost

    plain, guided, before, after = asyncio.run(run())
    pairs = [pair for old, new in zip(plain, guided, strict=True) for pair in zip(old, new, strict=True)]
    rests: list[int] = []
    for old, new in pairs:
        turns = new.trajectory.turns
        assert turns[:2] == old.trajectory.turns[:2]
        assert turns[2].observation == old.trajectory.turns[2].observation
        assert turns[2].state_key == old.trajectory.turns[2].state_key
        rests.append(sum(len(t.reply.prompt_ids) + len(t.reply.action_ids) for t in turns[2:]))
    assert any(old.trajectory.turns[2].reply != new.trajectory.turns[2].reply for old, new in pairs)
    assert after.tokens - before.tokens == after.fork_tokens == sum(rests), (
        "what came before was neither read nor sampled again"
    )
    assert after.steps - before.steps == after.fork_steps + 2 * len(pairs), "its actions were made once more"
    old, new = collate(plain).rows, collate(guided).rows
    for b, (turns_of, _) in enumerate(pairs):
        n = sum(len(t.reply.prompt_ids) + len(t.reply.action_ids) for t in turns_of.trajectory.turns[:2])
        for mine, theirs in (
            (old.token_RT, new.token_RT),
            (old.mask_RT, new.mask_RT),
            (old.behaviour_logp_RT, new.behaviour_logp_RT),
        ):
            assert torch.equal(mine[b, :n], theirs[b, :n])


def test_a_moment_that_does_not_come_again_is_none() -> None:
    policy = untrained_policy()
    runner = RolloutRunner(policy, as_is)

    async def run() -> list[BranchPoint | None]:
        ((episode,),) = await chain(runner, plan_groups("shop/quick", 1, 1))
        turns = list(episode.trajectory.turns)
        turns[1] = dataclasses.replace(turns[1], state_key="another")
        changed = dataclasses.replace(episode.trajectory, turns=tuple(turns))
        other = dataclasses.replace(episode, trajectories={changed.agent: changed})
        return await runner.moments(
            [
                TurnPoint(episode, 1),
                TurnPoint(other, 1),
                TurnPoint(episode, len(turns)),
                TurnPoint(episode, 0),
            ]
        )

    reached, changed, beyond, first = asyncio.run(run())
    assert reached is not None
    assert first is not None
    assert [len(reached.turns), len(first.turns)] == [1, 0]
    assert changed is None
    assert beyond is None


@pytest.mark.slow
def test_a_run_whose_guide_plays_on_from_moments_is_resumed_and_learned_again(
    letters: dict[str, Any], tmp_path: Path, guide_of_moments: str
) -> None:
    """The weights of a run that was never stopped, to the bit, and those that its log gives."""
    recipe = {
        **letters,
        "warm_start": None,
        "guide": [guide_of_moments],
        "updates": 3,
        "checkpoint": {"every": 1},
    }
    train(recipe, out=tmp_path / "whole", preflight=False, log=lambda line: None)

    def stop(line: str) -> None:
        if "2/3" in line:
            raise KeyError(line)

    with pytest.raises(KeyError):
        train(recipe, out=tmp_path / "run", preflight=False, log=stop)
    train(recipe, out=tmp_path / "run", preflight=False, resume=True, log=lambda line: None)
    one, other = (figures(tmp_path / name) for name in ("whole", "run"))
    assert one == other
    assert all(row["guide_tokens"] > 0 for row in one)
    assert relearn(tmp_path / "run").equal[-1] == 3


@pytest.mark.slow
def test_a_share_of_the_groups_is_helped() -> None:
    helped = 0
    for seed in range(10):
        plain, guided = played_with(prefix, "shop/quick", groups=4, size=1, seed=seed, share=0.25)
        helped += sum(a != b for a, b in zip(plain, guided, strict=True))
    mean, deviation = 0.25 * 40, math.sqrt(40 * 0.25 * 0.75)
    assert abs(helped - mean) < 4 * deviation
    with pytest.raises(RecipeError, match=r"share=1.5 is no part of a whole"):
        played_with(prefix, "shop/quick", groups=1, size=1, share=1.5)


def test_what_is_shown_is_the_success_without_help() -> None:
    from turnwise.trainers.run.progress import update_line

    metrics = {
        "success": 0.9,
        "success_unguided": 0.25,
        "informative": 1.0,
        "tokens_per_second": 1.0,
        "seconds": 1.0,
    }
    assert "success 0.250" in update_line(1, 2, metrics, "")
    del metrics["success_unguided"]
    assert "success 0.900" in update_line(1, 2, metrics, "")
