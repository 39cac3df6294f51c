"""The right answers of a batch's tasks, which signals about gold read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, cast

from turnwise.agents.core import Episode
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.messages import Message
from turnwise.errors import RunError
from turnwise.tools.thoughts import left_open
from turnwise.trainers.kit.thoughts import Decode, thought_length, tokens_within


def solutions(
    groups: Sequence[Sequence[Episode]], env_options: Mapping[str, Any] | None = None
) -> list[tuple[Message, ...]]:
    """The actions of the gold policy on the task of each group, from its start.

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


class AnswerCut(NamedTuple):
    """Tokens of a reply that stand for reasoning, and those of the right answer that follow them; ``led`` are those of the tag that were kept."""

    kept: int
    answer: tuple[int, ...]
    led: tuple[int, ...] = ()


def answer_cut(
    episode: Episode, solution: Sequence[Message], said: Sequence[int], renderer: Renderer, tag: str = ""
) -> AnswerCut | None:
    """The right answer in place of what a reply says after its thoughts, or after the last ``tag`` in it; None where it has none.

    Behind a tag stands what gold's last act says behind it. Where a token reaches beyond the tag, it is told anew with the answer.

    Raises:
        RunError: gold's last act has no such tag.
    """
    decode: Decode = cast(Any, renderer.tokenizer).decode
    if not tag:
        opened = left_open(decode(list(renderer.opening)))
        return AnswerCut(thought_length(said, decode, opened), answer_ids(episode, solution[-1:], renderer))
    act = solution[-1].content
    if tag not in act:
        raise RunError(
            f"Gold's last act on task {episode.task.id} has no {tag!r}: {act[:100]!r}.",
            "Name a tag behind which it answers, or leave it out: then an answer begins after the thoughts.",
        )
    text = decode(list(said))
    if tag not in text:
        return None
    end = text.rindex(tag) + len(tag)
    kept = tokens_within(said, decode, end)
    begun = text[len(decode(list(said[:kept]))) : end]
    led = renderer.rest_ids(tag.removesuffix(begun))[:-1] if len(begun) < len(tag) else ()
    return AnswerCut(kept, renderer.rest_ids(begun + act[act.rindex(tag) + len(tag) :]), led)


def answer_ids(episode: Episode, solution: Sequence[Message], renderer: Renderer) -> tuple[int, ...]:
    """Tokens of the right answer: the task's ``gold`` where that is a text, else all that gold says and does."""
    gold = episode.task.gold
    first = gold[0] if isinstance(gold, list) and gold else gold
    said = [Message("assistant", first)] if isinstance(first, str) and first else solution
    return tuple(token for message in said for token in renderer.reply_ids(message))
