"""A policy that is told something under which it does not learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from turnwise.agents.core import PREVIOUS, ROOT, History, Reply
from turnwise.agents.policies.model import ModelPolicy, prompt_of
from turnwise.agents.tokens.telling import told_below
from turnwise.envs.messages import Messages, without_guidance


@dataclass
class ToldPolicy:
    """A model that reads more at the end of the first message; its replies say under which prompt they are learned.

    That is the prompt without what it was told, and without what the environment put between the marks of help
    (:func:`turnwise.envs.messages.guidance`). ``told`` says what an episode's policy is told; the empty text is nothing.
    ``History.token_ids`` stay those without help. One that ``keeps`` what it was told learns under that prompt itself.
    """

    name: str
    model: ModelPolicy
    told: Callable[[History], str]
    keeps: bool = False

    @property
    def version(self) -> int:
        return self.model.version

    async def act(self, history: History) -> Reply:
        renderer, plain = self.model.renderer, _without_help(history)
        (scored, alone, _), (read, rewritten, _) = prompt_of(plain, renderer), prompt_of(history, renderer)
        is_whole = alone or rewritten
        if self.keeps:
            return await self._act_as_told(history, read, is_whole)
        if is_whole:
            scored = renderer.start(plain.messages(), history.tools)
            read = renderer.start(told_below(history.messages(), self.told(history)), history.tools)
        context = [*read] if is_whole else [*read_so_far(history), *read]
        reply = await self.model.reply(
            history, context, scored if is_whole else (*history.token_ids, *scored)
        )
        return reply._replace(
            prompt_ids=read,
            scored_ids=scored if scored != read else None,
            parent=ROOT if is_whole and history.turns else PREVIOUS,
            source=self.name,
        )

    async def _act_as_told(self, history: History, read: tuple[int, ...], is_whole: bool) -> Reply:
        """What it was told stands in the prompt that it learns under."""
        if is_whole:
            read = self.model.renderer.start(
                told_below(history.messages(), self.told(history)), history.tools
            )
        context = [*read] if is_whole else [*history.token_ids, *read]
        reply = await self.model.reply(history, context, context)
        parent = ROOT if is_whole and history.turns else PREVIOUS
        return reply._replace(prompt_ids=read, parent=parent, source=self.name)

    def close(self) -> None:
        """The maker of the model closes it."""


def read_so_far(history: History) -> Sequence[int]:
    """Return the tokens that the model read and said, as it was told, from the last prompt that stands alone."""
    context: list[int] = []
    for turn in history.turns:
        if turn.reply.parent == ROOT:
            context = []
        context += (*turn.reply.prompt_ids, *turn.reply.action_ids)
    return context


def _without_help(history: History) -> History:
    """The episode as it would have been read without the marks of help and what stands between them."""
    turns = [replace(turn, observation=_stripped(turn.observation)) for turn in history.turns]
    return replace(history, observation=_stripped(history.observation), turns=turns)


def _stripped(messages: Messages) -> Messages:
    return Messages(replace(one, content=without_guidance(one.content)) for one in messages)
