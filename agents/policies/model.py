"""A language model as a policy: an engine that samples tokens, behind a renderer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from turnwise.agents.core import Engine, History, Reply, Sampling, Trajectory
from turnwise.agents.renderer import Renderer
from turnwise.agents.template import ToolsFormat
from turnwise.envs.core import End
from turnwise.envs.messages import Message
from turnwise.tasks.core import digest
from turnwise.tools.core import Tool

HABITS = "turnwise.json"
"""Beside a model that Turnwise trained: how it was spoken to, so that it is evaluated in the same way."""


def write_habits(folder: Path, tools_format: str) -> None:
    """Note in a model's folder how tools were shown to it."""
    (folder / HABITS).write_text(json.dumps({"tools_format": tools_format}) + "\n", "utf-8")


def read_habits(folder: str | Path) -> ToolsFormat:
    """How tools were shown to this model in training; ``auto`` for a model that is not ours."""
    path = Path(folder) / HABITS
    return json.loads(path.read_text("utf-8"))["tools_format"] if path.is_file() else "auto"


class ModelPolicy:
    """Plays episodes with exact tokens (T1): what the engine is given is what it sampled before, plus
    the tokens of the new observation.

    ``history.token_ids`` grows by each turn's prompt and action; it is written only after the engine has
    answered, so that a turn that was cancelled or failed can be played again.
    """

    def __init__(
        self, engine: Engine, renderer: Renderer, sampling: Sampling | None = None, *, name: str = "model"
    ) -> None:
        self.engine = engine
        self.renderer = renderer
        self.sampling = sampling or Sampling()
        self.name = name

    @property
    def version(self) -> int:
        return self.engine.version

    async def act(self, history: History) -> Reply:
        new, fresh = self._prompt(history)
        prompt = [*new] if fresh else [*history.token_ids, *new]
        room = self.engine.context_length - len(prompt)
        if room < 1:
            return Reply(Message("assistant", ""), version=self.version, end=End.TOKEN_LIMIT)
        done = await self.engine.generate(
            prompt,
            self.sampling._replace(max_tokens=min(self.sampling.max_tokens, room)),
            stop_ids=self.renderer.stop_ids,
            seed=sampling_seed(history),
        )
        prompt.extend(done.token_ids)
        history.token_ids = prompt
        message = self.renderer.parse(done.token_ids)
        rewritten = fresh and bool(history.turns)
        return Reply(message, new, done.token_ids, done.logprobs, done.version, rewritten)

    def close(self) -> None:
        self.engine.close()

    def _prompt(self, history: History) -> tuple[tuple[int, ...], bool]:
        """The tokens to be added, and whether they are all there is."""
        last = history.turns[-1].reply.action_ids if history.turns else ()
        messages = history.messages()
        if not last or not history.token_ids:  # the first turn, or the last one was played by another policy
            return self.renderer.start(messages, history.tools), True
        extension = self.renderer.extend(messages, len(history.observation), last[-1], history.tools)
        return extension.ids, extension.fresh


def sampling_seed(history: History) -> int:
    """A seed in [0, 2⁶³) of this turn of this episode alone."""
    return int(digest("sampling", history.task.id, history.seed, len(history.turns)), 16) >> 1


def with_tokens(trajectory: Trajectory, renderer: Renderer, tools: Sequence[Tool] = ()) -> Trajectory:
    """A demonstration as if a model had said it: each reply gets its prompt and action tokens.

    The prompt tokens are those that :class:`ModelPolicy` would show a model that said the same. Log-
    probabilities are left empty, for nothing was sampled.
    """
    said: list[Message] = []
    turns = list(trajectory.turns)
    last_id: int | None = None
    for index, turn in enumerate(turns):
        said.extend(turn.observation)
        if index == 0:
            prompt, fresh = renderer.start(said, tools), False
        else:
            prompt, fresh = renderer.extend(said, len(turn.observation), last_id, tools)
        action = renderer.reply_ids(turn.action)
        last_id = action[-1]
        reply = turn.reply._replace(prompt_ids=prompt, action_ids=action, logprobs=(), fresh=fresh)
        turns[index] = replace(turn, reply=reply)
        said.append(turn.action)
    return replace(trajectory, turns=tuple(turns))
