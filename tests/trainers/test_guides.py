"""Groups are played again with help: who chose what is known, and each action is learned under the right prompt."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turnwise.agents.core import NO_PARENT, Completion, Sampling
from turnwise.agents.engines.torch import TorchEngine
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.rollout import Request, rollout
from turnwise.agents.tokens.renderer import Renderer
from turnwise.agents.tokens.telling import told_below
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import RecipeError
from turnwise.tasks.core import Split
from turnwise.trainers.guide.prefix import prefix
from turnwise.trainers.guide.told import ToldPolicy
from turnwise.trainers.guide.toy import played_with
from turnwise.trainers.learn.collate import collate

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
        alone = k == 0 or turn.reply.parent == NO_PARENT
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
    import dataclasses

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
