"""A program for an interpreter with inspect_ai, pettingzoo and Turnwise's own packages: gold plays, and inspect's log is read back."""
# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from inspect_ai import eval as evaluate
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, ModelAPI, ModelOutput, modelapi
from inspect_ai.tool import ToolCall as TheirCall

from turnwise.envs.messages import Message
from turnwise.envs.offered.inspect_task import inspect_task
from turnwise.envs.offered.pettingzoo_env import aec_env
from turnwise.envs.offered.session import OfferedEpisode
from turnwise.tasks.core import Split
from turnwise.tools.core import ToolCall


@modelapi(name="gold")
class Gold(ModelAPI):
    """Plays each episode's gold solution, which it finds by playing what was said before."""

    async def count_tokens(self, input: Any, *_: Any, **__: Any) -> int:
        return 1

    async def generate(self, input: list[Any], tools: list[Any], *_: Any, **__: Any) -> ModelOutput:
        await asyncio.sleep(0)
        suite = self.model_name
        asked = next(said.text for said in input if said.role == "user")
        index = next(i for i in range(4) if opening(suite, i) == asked)
        episode = OfferedEpisode(suite, index, Split.TEST)
        for said in input:
            if said.role == "assistant":
                calls = tuple(ToolCall(c.function, c.arguments, c.id) for c in said.tool_calls or ())
                episode.play(Message("assistant", said.text, calls))
        gold = episode.env.gold(episode.env.state)
        told = gold if isinstance(gold, Message) else Message("assistant", gold)
        calls = [
            TheirCall(id=f"c{len(input)}_{n}", function=c.name, arguments=dict(c.arguments))
            for n, c in enumerate(told.tool_calls)
        ]
        return ModelOutput(
            model="gold",
            choices=[
                ChatCompletionChoice(
                    message=ChatMessageAssistant(content=told.content, tool_calls=calls or None)
                )
            ],
        )


def opening(suite: str, index: int) -> str:
    episode = OfferedEpisode(suite, index, Split.TEST)
    return next(message.content for message in episode.opening if message.role == "user")


def played_by_turns(suite: str) -> dict[str, float]:
    """What each agent of PettingZoo's loop earns in 20 episodes."""
    env, earned = aec_env(suite), dict[str, float]()
    for seed in range(20):
        env.reset(seed=seed)
        for agent in env.agent_iter(500):
            heard, reward, terminated, truncated, _ = env.last()
            assert env.observation_space(agent).contains(heard)
            earned[agent] = earned.get(agent, 0.0) + reward
            env.step(None if terminated or truncated else env.env.gold(env.env.state))
        assert env.agents == []
    return earned


def main() -> None:
    found = {}
    for suite in ("shop/easy", "toolworld/retail", "household/easy"):
        (log,) = evaluate(inspect_task(suite, 4), model=f"gold/{suite}", log_dir=sys.argv[1], display="none")
        assert log.status == "success", log.error
        again = read_eval_log(log.location)
        found[suite] = [
            [next(iter(sample.scores.values())).as_float(), sample.metadata["end"], len(sample.messages)]
            for sample in again.samples
        ]
    sums = {
        suite: played_by_turns(suite) for suite in ("games/tictactoe", "dialogue/bargain-two", "shop/easy")
    }
    print(json.dumps({"sums": sums, "logs": len(list_eval_logs(sys.argv[1])), "found": found}))


if __name__ == "__main__":
    main()
