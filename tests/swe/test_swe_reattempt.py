"""Agent-RLVR's loop on SWE-v0: an attempt, the report of what failed, and another that is learned as if nothing had been told."""

import asyncio
import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

import turnwise.envs.swe
from turnwise.agents.core import Completion, Sampling
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.swe.guidance import report
from turnwise.envs.swe.tasks import load_instances
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.reattempt import reattempt
from turnwise.trainers.guide.toy import toy_model
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_episodes

pytestmark = pytest.mark.usefixtures("sandboxed")
HERE = Path(turnwise.envs.swe.__file__).resolve().parent
TASK = next(one for one in load_instances(HERE / "small.jsonl") if one.where == "add")


class Careless:
    """An engine that hands in without a look, unless it is told what failed: then it writes the true repair first."""

    version, context_length = 0, 100_000

    def __init__(self, tokenizer, stop):
        self.tokenizer, self.stop = tokenizer, stop
        self.prompts = []

    async def generate(self, prompt_ids, sampling, *, stop_ids, seed):
        text = self.tokenizer.decode(list(prompt_ids))
        self.prompts.append(text)
        said = {"name": "submit", "arguments": {}}
        if "<guidance>" in text and "Wrote" not in text:
            fixed = TASK.fixed()[TASK.edit.path].decode()
            said = {"name": "create", "arguments": {"path": TASK.edit.path, "text": fixed}}
        ids = self.tokenizer.encode(
            f"<tool_call>\n{json.dumps(said)}\n</tool_call>", add_special_tokens=False
        )
        return Completion((*ids, self.stop), (-0.5,) * (len(ids) + 1), stopped=True)

    def close(self):
        """Nothing is held."""


@pytest.fixture
def model():
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(toy_model())
    renderer = Renderer(tokenizer, tools_format="none")
    engine = Careless(tokenizer, next(iter(renderer.stop_ids)))
    return ModelPolicy(engine, renderer, Sampling(max_tokens=100_000))


def test_what_failed_is_told_and_the_reattempt_is_learned_as_if_it_were_not(model):
    runner = RolloutRunner(model, as_is)

    async def run():
        played = await chain(runner, plan_episodes([TASK.task()], 2))
        return played, await reattempt(GuidePlayer(runner, model, {}, 0, 0), played)

    ((first, _),), (again,) = asyncio.run(run())
    assert not first.success
    assert first.trajectory.turns[-1].details["verdict"] == "nothing was changed"
    told = report(TASK, first.trajectory.turns[-1].details)
    assert "nothing was changed" in told
    assert TASK.fail_to_pass[0] in told
    assert f"`{TASK.where}` in {TASK.edit.path}" in told
    assert TASK.edit.old not in told
    assert [one.success for one in again] == [True, True]
    assert {one.task.id for one in again} == {first.task.id}
    assert f"<guidance>\n{told}\n</guidance>" in model.engine.prompts[-1]
    rows = collate([again]).rows
    learned = model.engine.tokenizer.decode(rows.token_RT[0].tolist())
    assert "<guidance>" not in learned
    assert told not in learned
    assert first.trajectory.turns[0].observation[-1].content in learned
    assert rows.mask_RT[0].sum() == sum(len(turn.reply.action_ids) for turn in again[0].trajectory.turns)


def test_who_never_submitted_is_told_so():
    assert "It never submitted." in report(TASK, {})
