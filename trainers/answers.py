"""What the right answer of a task is, how likely the policy finds it, and how much of it was named."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.renderer import Renderer
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.messages import Message
from turnwise.errors import RunError
from turnwise.trainers.collate import Batch
from turnwise.trainers.readings import plain_rows

if TYPE_CHECKING:
    from turnwise.trainers.learner import Learner


def solutions(
    groups: Sequence[Sequence[Episode]], env_options: Mapping[str, Any] | None = None
) -> list[tuple[Message, ...]]:
    """What gold does on the task of each group, from its beginning.

    Raises:
        RunError: the environment has no gold, or it failed.
    """
    requests = [Request(group[0].task, group[0].seed) for group in groups]
    with ThreadPoolExecutor(1) as pool:  # the caller may itself run in an event loop
        episodes = pool.submit(run_episodes, requests, scripted("gold"), env_options=env_options).result()
    for episode in episodes:
        if not episode.outcome.counts or not episode.trajectory.turns:
            raise RunError(
                f"The gold solution of task {episode.task.id} could not be played: {episode.error[:200]}",
                "Choose a credit rule that needs no right answers, or give the environment its gold.",
            )
    return [tuple(turn.action for turn in episode.trajectory.turns) for episode in episodes]


def answer_ids(episode: Episode, solution: Sequence[Message], renderer: Renderer) -> tuple[int, ...]:
    """Tokens of the right answer: the task's ``gold`` where that is a text, else all that gold says and does."""
    gold = episode.task.gold
    first = gold[0] if isinstance(gold, list) and gold else gold
    said = [Message("assistant", first)] if isinstance(first, str) and first else solution
    return tuple(token for message in said for token in renderer.reply_ids(message))


def information(
    learner: Learner,
    batch: Batch,
    groups: Sequence[Sequence[Episode]],
    answers: Sequence[Sequence[int]],
    context: int,
) -> Tensor:
    """How much likelier each turn made the right answer, in nats per token of it, (B, K), on the CPU.

    s_k = mean log-probability of the answer's tokens, put where the policy would speak at turn k; a turn's
    information is s_{k+1} − s_k (IGPO, Wang et al. 2025). The last turn is followed by no other and gets 0. One
    sequence per turn goes through the model; contexts that leave no room for the answer are cut at their beginning.
    """
    rows, mask_BK = batch.rows, batch.turns.mask_BK
    answer_B = [answer for group, answer in zip(groups, answers, strict=True) for _ in group]
    where = mask_BK.nonzero().tolist()
    texts: list[list[int]] = []
    for b, k in where:
        end = int(rows.state_position_BK[b, k]) + 1
        before = rows.token_RT[rows.state_row_BK[b, k], :end].tolist()
        texts.append([*before[-max(1, context - len(answer_B[b])) :], *answer_B[b]][:context])
    starts = [max(1, len(text) - len(answer_B[b])) for text, (b, _) in zip(texts, where, strict=True)]
    asked = plain_rows(texts, starts)
    logp_N = learner.score(asked).sum(1) / asked.mask_RT.sum(1).clamp(min=1)
    score_BK = torch.zeros(mask_BK.shape)
    score_BK[mask_BK] = logp_N
    next_BK = torch.cat([score_BK[:, 1:], torch.zeros_like(score_BK[:, :1])], 1)
    followed_BK = torch.cat([mask_BK[:, 1:], torch.zeros_like(mask_BK[:, :1])], 1)
    return (next_BK - score_BK) * followed_BK


def matched(groups: Sequence[Sequence[Episode]], plans: Sequence[Sequence[Message]]) -> list[float]:
    """The share of the solution's entities that each episode's agent names, whatever it does with them."""
    shares: list[float] = []
    for group, plan in zip(groups, plans, strict=True):
        wanted = {entity for message in plan for entity in entities(message)}
        for episode in group:
            said = "\n".join(_text(turn.action) for turn in episode.trajectory.turns).lower()
            shares.append(sum(entity in said for entity in wanted) / max(1, len(wanted)))
    return shares


def entities(message: Message) -> set[str]:
    """What an action is about: values given to tools; of a text what stands in brackets, else all of it.

    >>> sorted(entities(Message("assistant", "click[B012]"))), sorted(entities(Message("assistant", "go north")))
    (['b012'], ['go north'])
    """
    values = [str(value) for call in message.tool_calls for value in call.arguments.values()]
    if not values:
        values = re.findall(r"\[(.+?)\]", message.content) or [message.content]
    return {value.strip().lower() for value in values if len(value.strip()) > 1}


def _text(message: Message) -> str:
    called = (str(value) for call in message.tool_calls for value in call.arguments.values())
    return "\n".join([message.content, *called])
