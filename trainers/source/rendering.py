"""Stored episodes for a model other than the one that played them: their messages in the tokens of this run's model.

What a scripted policy, a person or a server said has no tokens, and those of another tokeniser or chat template mean
nothing here. Both are rendered anew, as demonstrations are; how likely the new tokens were then, nobody knows.

What a program sent to the policy stands in the tokens of its prompts and nowhere else, so that its episodes are used as
they are, or refused.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from turnwise.agents.core import PREVIOUS, ROOT, Episode, Trajectory, Turn
from turnwise.agents.tokens.encoding import plain
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.messages import Message
from turnwise.envs.trust import make_for
from turnwise.errors import RunError
from turnwise.tools.core import Tool

LOOKED_AT = 2
"""Turns of an episode that are compared with this run's tokens: the first prompt, and how a reply is followed."""

_logger = logging.getLogger(__name__)


class ToolsOfTasks:
    """The tools that an agent of an episode had, asked of its environment once for each task."""

    def __init__(self, env_options: Mapping[str, Any]) -> None:
        self._options = env_options
        self._known: dict[tuple[str, str], Sequence[Tool]] = {}

    def __call__(self, episode: Episode, agent: str) -> Sequence[Tool]:
        place = episode.task.id, agent
        if place not in self._known:
            env = make_for(episode.task, self._options)
            try:
                env.reset(seed=episode.seed, options={"task": episode.task})
                self._known[place] = env.tools_for(agent)
            finally:
                env.close()
        return self._known[place]


class Rendering:
    """Brings the episodes of a log into this model's tokens, and counts those for which it had to."""

    def __init__(self, renderer: Renderer, env_options: Mapping[str, Any], path: str) -> None:
        self._renderer, self._tools, self._path = renderer, ToolsOfTasks(env_options), path
        self._anew, self._all = 0, 0

    def __call__(self, episode: Episode) -> Episode:
        self._all += 1
        if fits(episode, self._renderer):
            return episode
        self._anew += 1
        return rendered(episode, self._renderer, self._tools, self._path)

    def tell(self) -> None:
        """Say how many were rendered anew, if any were."""
        if self._anew:
            _logger.warning(
                "%s: %d of %d episodes are not in this model's tokens and were rendered anew.",
                self._path,
                self._anew,
                self._all,
            )


def own_trajectories(episode: Episode) -> Episode:
    """The episode without agents that never acted, or that carry no tokens where others do: somebody else played them."""
    acted = {name: one for name, one in episode.trajectories.items() if one.turns}
    sampled = {name: one for name, one in acted.items() if any(turn.reply.action_ids for turn in one.turns)}
    return replace(episode, trajectories=sampled or acted)


def fits(episode: Episode, renderer: Renderer) -> bool:
    """Say whether an episode's tokens are of this tokeniser, chat template and instruction; False where a turn has none."""
    return all(_fits(one, renderer) for one in episode.trajectories.values())


def rendered(episode: Episode, renderer: Renderer, tools_of: ToolsOfTasks, path: str) -> Episode:
    """The episode, of the log at ``path``, with the tokens that this run's model would have been given and would have said.

    Raises:
        RunError: a program stood between the policy and the environment.
    """
    if any(turn.acts is not None for one in episode.trajectories.values() for turn in one.turns):
        raise RunError(
            f"{path}: a program wrote the prompts of an episode, and nothing but their tokens, of another model, is known.",
            "Name a log of a model with this run's tokeniser, chat template and sampling.instruction.",
        )
    return replace(
        episode,
        trajectories={
            name: _rendered(one, renderer, tools_of(episode, name))
            for name, one in episode.trajectories.items()
        },
    )


def _fits(trajectory: Trajectory, renderer: Renderer) -> bool:
    if any(not turn.reply.action_ids for turn in trajectory.turns):
        return False
    if any(turn.acts is not None for turn in trajectory.turns):
        return all(
            _fits_program(turn, k == 0, renderer) for k, turn in enumerate(trajectory.turns[:LOOKED_AT])
        )
    said: list[Message] = []
    instruction = [Message("user", renderer.instruction)]
    for k, turn in enumerate(trajectory.turns[:LOOKED_AT]):
        said.extend(turn.observation)
        reply = turn.reply
        if not _says(renderer, reply.action_ids, [turn.action]):
            return False
        follows = k > 0 and reply.parent == PREVIOUS
        if not follows and not _says(renderer, reply.prompt_ids, [*turn.observation, *instruction]):
            return False
        if follows:
            last = trajectory.turns[k - 1].reply.action_ids[-1]
            extension = renderer.extend(said, len(turn.observation), last)
            if not extension.fresh and extension.ids != reply.prompt_ids:
                return False
        said.append(turn.action)
    return True


def _fits_program(turn: Turn, first: bool, renderer: Renderer) -> bool:
    """Say whether a turn that a program asked for is of this tokeniser and template; what it asked is in no message."""
    told = [Message("user", renderer.instruction)] if first else []
    ids = turn.reply.prompt_ids
    return (
        ids[len(ids) - len(renderer.opening) :] == renderer.opening
        and _says(renderer, ids, told)
        and _says(renderer, turn.reply.action_ids, [turn.action])
    )


def _says(renderer: Renderer, ids: Sequence[int], messages: Sequence[Message]) -> bool:
    """Say whether the tokens exist here and decode to a text with the words and the calls of the messages."""
    words = [word for one in messages for word in (one.content, *(call.name for call in one.tool_calls))]
    if max(ids, default=0) >= len(renderer.tokenizer):
        return False
    text = "".join(plain(str(renderer.tokenizer.decode(list(ids)))).split())
    return all("".join(plain(word).split()) in text for word in words)


def _rendered(trajectory: Trajectory, renderer: Renderer, tools: Sequence[Tool]) -> Trajectory:
    said: list[Message] = []
    turns: list[Turn] = []
    last: int | None = None
    for turn in trajectory.turns:
        said.extend(turn.observation)
        ids, fresh = renderer.start(said, tools) if last is None else (), last is None
        if last is not None:
            ids, fresh = renderer.extend(said, len(turn.observation), last, tools)
        action = renderer.reply_ids(turn.action)
        last = action[-1]
        reply = turn.reply._replace(
            prompt_ids=ids,
            action_ids=action,
            logprobs=(),
            versions=(),
            parent=ROOT if fresh and turns else PREVIOUS,
            scored_ids=None,
        )
        turns.append(replace(turn, reply=reply))
        said.append(turn.action)
    return Trajectory(tuple(turns), trajectory.agent, trajectory.final)
