"""Stored episodes of scripts and of other models are learned from in this run's tokens."""

from __future__ import annotations

import asyncio
import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest

torch = pytest.importorskip("torch")

import turnwise
from turnwise.agents.core import Act, Episode
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.policies.model import DemonstrationPolicy
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import Request, run_episodes
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import RunError
from turnwise.tasks.core import Split
from turnwise.trainers.guide.toy import untrained_policy
from turnwise.trainers.source.conditioned import Conditioned
from turnwise.trainers.source.core import SourceContext
from turnwise.trainers.source.rendering import ToolsOfTasks, fits, own_trajectories, rendered
from turnwise.trainers.source.stored import Stored
from turnwise.trainers.source.toy import example_context

SUITES = ("shop/quick", "toolworld/quick", "household/easy", "functioncall/quick")


def requests(suite: str, count: int = 3) -> list[Request]:
    return [Request(task, 7) for task in suite_tasks(get_suite(suite), Split.TRAIN, count)]


def tokens(episode: Episode) -> list[tuple[object, ...]]:
    return [(t.reply.prompt_ids, t.reply.action_ids, t.reply.parent) for t in episode.trajectory.turns]


@pytest.mark.parametrize("suite", SUITES)
def test_a_scripts_episodes_are_rendered_as_its_demonstrations_are(suite: str) -> None:
    renderer = untrained_policy().renderer
    script = make_policy("scripted:gold")
    plain = run_episodes(requests(suite), script)
    demonstrated = run_episodes(requests(suite), DemonstrationPolicy(script, renderer))
    tools = ToolsOfTasks({})
    for one, wanted in zip(plain, demonstrated, strict=True):
        assert not fits(one, renderer)
        assert tokens(rendered(one, renderer, tools, "")) == tokens(wanted)
        assert fits(wanted, renderer)


def test_what_was_played_under_another_instruction_is_rendered_anew() -> None:
    renderer = untrained_policy().renderer
    (request,) = requests("shop/quick", 1)
    (plain,) = run_episodes([request], DemonstrationPolicy(make_policy("scripted:gold"), renderer))
    asked = renderer.instructed("Aim high.")
    assert fits(plain, renderer)
    assert not fits(plain, asked)
    told = rendered(plain, asked, ToolsOfTasks({}), "")
    assert fits(told, asked)
    (wanted,) = run_episodes([request], DemonstrationPolicy(make_policy("scripted:gold"), asked))
    assert tokens(told) == tokens(wanted)


def test_agents_without_tokens_are_left_out_where_another_has_them() -> None:
    (request,) = requests("games/kuhn-self", 1)
    renderer = untrained_policy().renderer
    random = make_policy("scripted:random")
    (scripted,) = run_episodes([request], random)
    first, second = scripted.trajectories
    assert set(own_trajectories(scripted).trajectories) == {first, second}
    (episode,) = run_episodes([request], {first: DemonstrationPolicy(random, renderer), second: random})
    assert set(own_trajectories(episode).trajectories) == {first}


def test_what_one_agent_did_is_not_played_again_without_the_other_or_its_program(tmp_path: Path) -> None:
    """Their records would be told another return than they had: that of actions that nobody took."""
    renderer = untrained_policy().renderer
    random = make_policy("scripted:random")
    (game,), (shopping,) = requests("games/kuhn-self", 1), requests("shop/quick", 1)
    names = list(run_episodes([game], random)[0].trajectories)
    policies = {names[0]: DemonstrationPolicy(random, renderer), names[1]: random}
    (against_script,) = run_episodes([game], policies)
    (alone,) = run_episodes([shopping], DemonstrationPolicy(random, renderer))
    first = alone.trajectory.turns[0]
    turns = (replace(first, acts=(Act(first.action, 0, 0),)), *alone.trajectory.turns[1:])
    by_program = replace(alone, trajectories={"agent": replace(alone.trajectory, turns=turns)})
    see = example_context("shop/quick")
    see = replace(see, renderer=see.renderer.instructed("Return: 1.0"))
    refused = ("beside it, or a program", "a program wrote the prompts")
    for number, one in enumerate((against_script, by_program)):
        with EpisodeLog(tmp_path / f"{number}.jsonl") as log:
            log.append(one)
        with pytest.raises(RunError, match=refused[number]):
            asyncio.run(Conditioned(path=str(log.path), chances=1)(see, 0))
    assert asyncio.run(Conditioned(path=str(tmp_path / "0.jsonl"))(see, 0)).shown
    with pytest.raises(RunError, match="a program wrote the prompts"):
        asyncio.run(Conditioned(path=str(tmp_path / "1.jsonl"))(see, 0))


def test_what_a_program_asked_is_learned_from_as_it_was_or_not_at_all(tmp_path: Path) -> None:
    """Its messages are in no observation: rendered anew, the model would learn to answer what it was never asked."""
    policy = untrained_policy()
    with turnwise.gateway(policy) as served:
        for number in (0, 1, 0):
            with served.session(f"Task {number}.") as one:
                said = asked(one, {"role": "user", "content": f"Words of the program's own {number}."})
                more = {"role": "user", "content": "And more of them."}
                asked(one, {"role": "user", "content": f"Words of the program's own {number}."}, said, more)
                one.reward(1.0)
                one.end(solved=True)
    with EpisodeLog(tmp_path / "own.jsonl") as log:
        for episode in served.episodes:
            log.append(episode)
    stored = Stored(path=str(log.path), join=True, groups=2)
    see = replace(example_context("shop/quick"), renderer=policy.renderer)
    joined = sorted(asyncio.run(stored(see, 0)).joined, key=len)
    assert [[one.task.prompt for one in group] for group in joined] == [["Task 1."], ["Task 0."] * 2]
    first, second, third = map(tokens, served.episodes)
    assert [[tokens(one) for one in group] for group in joined] == [[second], [first, third]]
    text = policy.renderer.tokenizer.decode(served.episodes[0].trajectory.turns[0].reply.prompt_ids)
    assert "Words of the program's own 0." in text
    for other in (see.renderer.instructed("Aim high."), other_template(see.renderer)):
        with pytest.raises(RunError, match="a program wrote the prompts"):
            asyncio.run(Stored(path=str(log.path), join=True, groups=2)(replace(see, renderer=other), 0))


def asked(session: Any, *messages: dict[str, str]) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {session.key}", "Content-Type": "application/json"}
    body = json.dumps({"messages": messages, "max_tokens": 8}).encode()
    with urlopen(HttpRequest(f"{session.base_url}/chat/completions", body, headers)) as answer:
        return json.load(answer)["choices"][0]["message"]


def other_template(renderer: Renderer) -> Renderer:
    tokenizer = copy.deepcopy(renderer.tokenizer)
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}reply:"
    return Renderer(tokenizer, tools_format="none")


def test_the_rendering_is_told_and_has_no_log_probabilities(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with EpisodeLog(tmp_path / "episodes.jsonl") as log:
        for one in run_episodes(requests("shop/quick"), make_policy("scripted:gold")):
            log.append(one)
    see: SourceContext = example_context("shop/quick")
    with caplog.at_level("WARNING"):
        drawn = asyncio.run(Stored(path=str(log.path), join=True, groups=9)(see, 0))
    assert "3 of 3 episodes are not in this model's tokens" in caplog.text
    turns = [turn for group in drawn.joined for one in group for turn in one.trajectory.turns]
    assert turns
    assert all(turn.reply.action_ids and not turn.reply.logprobs for turn in turns)
