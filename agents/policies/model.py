"""A language model as a policy: an engine that samples tokens, behind a renderer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from turnwise.agents.contexts.core import ContextView, look, make_context
from turnwise.agents.contexts.recollection import NOTHING, noted, recollection
from turnwise.agents.core import (
    Completion,
    Engine,
    Finish,
    History,
    Policy,
    Reply,
    Sampling,
    Served,
    VersionSpan,
    lie_in,
)
from turnwise.agents.execution.calls import script_in_env
from turnwise.agents.models.vocabulary import end_ids
from turnwise.agents.policies.scoring import NEITHER, GivenReply, ScoredTokens, YesNo
from turnwise.agents.tokens.renderer import Renderer
from turnwise.agents.tokens.template import ToolsFormat
from turnwise.envs.baselines import foreseen
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.errors import EngineError, TurnwiseError
from turnwise.tasks.core import Json, derive_rng, digest
from turnwise.tools.core import Tool

CHAT_FORMAT_FILE = "turnwise.json"
"""Beside a model that Turnwise trained: how it was prompted, so that it is evaluated in the same way."""


class ChatFormat(NamedTuple):
    """The form of a model's prompts in training; the defaults are for a model that is not ours."""

    tools_format: ToolsFormat = "auto"
    max_tokens: int = Sampling().max_tokens  # of one message
    instruction: str = ""  # below the first message of every episode
    template: Mapping[str, Json] = MappingProxyType({})  # what the chat template is given
    clock: str = ""  # the time that it is told, as ISO 8601 writes it; "": whatever time it is
    context: Mapping[str, Json] = MappingProxyType({})  # its context manager: `name`, and options


def write_chat_format(folder: Path, chat_format: ChatFormat) -> None:
    """Write the chat format into a model's folder."""
    (folder / CHAT_FORMAT_FILE).write_text(
        json.dumps(
            chat_format._asdict()
            | {"template": dict(chat_format.template), "context": dict(chat_format.context)}
        )
        + "\n",
        "utf-8",
    )


def read_chat_format(folder: str | Path) -> ChatFormat:
    """Read the chat format from a model's folder."""
    path = Path(folder) / CHAT_FORMAT_FILE
    return ChatFormat(**json.loads(path.read_text("utf-8"))) if path.is_file() else ChatFormat()


def make_renderer(tokenizer: Any, model: str | Path | None, chat_format: ChatFormat) -> Renderer:
    """The renderer of a model as it is prompted: its own end tokens, the template's options, a clock that stands.

    ``model`` is None where there are no files yet that could name end tokens.

    Raises:
        TurnwiseError: the template knows no such option, or is told an impossible time.
    """
    try:
        clock = datetime.fromisoformat(chat_format.clock) if chat_format.clock else None
    except ValueError:
        raise TurnwiseError(
            f"The clock of {model} is {chat_format.clock!r}.", "Write a time such as 2026-11-26T09:00:00."
        ) from None
    return Renderer(
        tokenizer,
        tools_format=chat_format.tools_format,
        options=chat_format.template,
        instruction=chat_format.instruction,
        ends=end_ids(model) if model is not None else (),
        clock=clock,
        context=make_context(chat_format.context),
    )


_STOPPED, _CUT = Served(Finish.STOP), Served(Finish.LENGTH)


class ModelPolicy:
    """Plays episodes with exact tokens (T1): what the engine is given is what it sampled before, plus
    the tokens of the new observation.

    ``history.token_ids`` grows by each turn's prompt and action; it is written only after the engine has
    answered, so that a turn that was cancelled or failed can be played again.

    Attributes:
        in_flight: answers that are being sampled now.
        sampled: tokens that were sampled so far.
    """

    def __init__(
        self, engine: Engine, renderer: Renderer, sampling: Sampling | None = None, *, name: str = "model"
    ) -> None:
        self.engine = engine
        self.renderer = renderer
        self.sampling = sampling or Sampling()
        self.name = name
        self.in_flight = self.sampled = 0

    @property
    def version(self) -> int:
        return self.engine.version

    async def act(self, history: History) -> Reply:
        new, fresh, view = prompt_of(history, self.renderer)
        # A long prompt that is all new is copied once, for the history: each copy of 30,000 tokens takes some 0.1 ms.
        prompt = new if fresh else [*history.token_ids, *new]
        reply = await self._sample(history, prompt, None, view.tools, new)
        if reply.end is None and fresh:
            history.token_ids = [*new, *reply.action_ids]
        elif reply.end is None:
            history.token_ids += new
            history.token_ids += reply.action_ids
        return view.placed(reply, len(history.turns), fresh=fresh)

    async def reply(
        self, history: History, prompt: Sequence[int], kept: Sequence[int], max_tokens: int | None = None
    ) -> Reply:
        """Sample an action after ``prompt``; what stands before it in the history from now on is ``kept``.

        The reply lacks the tokens of its prompt. Where there is no room for an action it says that the episode ends.
        ``max_tokens`` may be fewer than the policy's own.
        """
        reply = await self._sample(history, prompt, max_tokens, history.tools)
        if reply.end is None:
            history.token_ids = [*kept, *reply.action_ids]
        return reply

    async def _sample(
        self,
        history: History,
        prompt: Sequence[int],
        max_tokens: int | None,
        tools: Sequence[Tool],
        new: tuple[int, ...] = (),
    ) -> Reply:
        """:meth:`reply`, of which the history is not told; its prompt's tokens are noted as ``new``."""
        room = self.engine.context_length - len(prompt)
        if room < 1:
            spans = (VersionSpan(0, self.version),)
            full = Served(Finish.CONTEXT)
            return Reply(
                Message("assistant", ""), new, versions=spans, end=EndReason.TOKEN_LIMIT, served=full
            )
        most = min(self.sampling.max_tokens, room, max_tokens or room)
        sampling = self.sampling
        if most != sampling.max_tokens:
            sampling = sampling._replace(max_tokens=most)
        seed = sampling_seed(history)
        self.in_flight += 1
        try:
            done = await self.engine.generate(prompt, sampling, stop_ids=self.renderer.stop_ids, seed=seed)
        finally:
            self.in_flight -= 1
        self.sampled += len(done.token_ids)
        self._refuse_lies(done, most)
        message = self.renderer.parse(done.token_ids, tools, prompt)
        served = _STOPPED if done.stopped else _CUT
        return Reply(message, new, done.token_ids, done.logprobs, done.versions, served=served)

    async def score(self, replies: Sequence[GivenReply]) -> list[tuple[float, ...]]:
        """The log-probability of each token of each reply, as the policy would have said it.

        Raises:
            EngineError: one is too long for the context, or the engine cannot score.
        """
        texts = [
            ScoredTokens(
                self.renderer.start(one.messages), self.renderer.reply_ids(Message("assistant", one.text))
            )
            for one in replies
        ]
        return await self.score_tokens(texts)

    async def yes_no(self, questions: Sequence[str | GivenReply]) -> list[YesNo]:
        """Chances that the answer to each question begins with yes, and with no; :data:`NEITHER` to one without room.

        A reply that was begun goes on with either word. The first token counts in which the two replies differ.

        Raises:
            EngineError: the engine cannot score.
        """
        pairs = [self._either_answer(question) for question in questions]
        fits = [len(yes.prompt) + len(yes.reply) <= self.engine.context_length for yes, _ in pairs]
        texts = [one for pair, room in zip(pairs, fits, strict=True) if room for one in pair]
        found = iter([told[-1] for told in await self.score_tokens(texts)])
        return [YesNo(next(found), next(found)) if room else NEITHER for room in fits]

    def _either_answer(self, question: str | GivenReply) -> tuple[ScoredTokens, ScoredTokens]:
        """Replies of yes and of no, up to the first token in which they differ."""
        given = GivenReply([Message("user", question)], "") if isinstance(question, str) else question
        prompt = self.renderer.start(given.messages)
        words = (f"{given.text} yes", f"{given.text} no") if given.text else ("Yes", "No")
        yes, no = (self.renderer.reply_ids(Message("assistant", said)) for said in words)
        differ = next(n for n, (a, b) in enumerate(zip(yes, no, strict=False), 1) if a != b)
        return ScoredTokens(prompt, yes[:differ]), ScoredTokens(prompt, no[:differ])

    async def score_tokens(self, texts: Sequence[ScoredTokens]) -> list[tuple[float, ...]]:
        """The log-probability of each token of some replies, each after the tokens of its prompt, at temperature 1.

        Raises:
            EngineError: one is too long for the context, or the engine cannot score.
        """
        scores = getattr(self.engine, "score", None)
        if scores is None:
            raise EngineError(
                f"The engine {type(self.engine).__name__} of {self.name} cannot score: it only samples.",
                "Use one that can (torch, vllm, remote), or a judge that is asked in words.",
            )
        longest = max((len(one.prompt) + len(one.reply) for one in texts), default=0)
        if longest > self.engine.context_length:
            raise EngineError(
                f"A text of {longest} tokens does not fit a context of {self.engine.context_length}.",
                "Raise context_length, or score a shorter one.",
            )
        found = await asyncio.to_thread(scores, [(*one.prompt, *one.reply) for one in texts]) if texts else []
        return [tuple(told[-len(one.reply) :]) for told, one in zip(found, texts, strict=True)]

    def _refuse_lies(self, done: Completion, most: int) -> None:
        """Refuse an answer that no engine can have sampled, to which ``most`` tokens were asked for.

        Raises:
            EngineError: it is one.
        """
        told = ""
        if not 0 < len(done.token_ids) <= most:
            told = f"{len(done.token_ids)} tokens came where 1 to {most} were asked for"
        vocabulary = getattr(self.engine, "vocabulary", 0) or self.renderer.most_tokens
        if told := told or lie_in(done.token_ids, done.logprobs, self.renderer.stop_ids, vocabulary):
            raise EngineError(
                f"The engine {type(self.engine).__name__} gave what nobody can have sampled: {told}.",
                "It is not used. If it goes on, its weights may be no numbers any more, or its code has a bug.",
            )

    def close(self) -> None:
        self.engine.close()


class DemonstrationPolicy:
    """The policy that a warm start imitates: each reply carries the tokens that :class:`ModelPolicy` would have been
    given and would have said. Log-probabilities are left empty, for nothing was sampled.

    Each line of a memory is left out with the chance ``forgets``.
    """

    def __init__(self, policy: Policy, renderer: Renderer, forgets: float = 0.0) -> None:
        self.policy = policy
        self.renderer = renderer
        self.forgets = forgets
        self.name = policy.name

    @property
    def version(self) -> int:
        return self.policy.version

    async def act(self, history: History) -> Reply:
        new, fresh, view = prompt_of(history, self.renderer)
        reply = await self._memory(history, view) or await self.policy.act(history)
        if reply.end is not None:
            return reply
        said = self.renderer.reply_ids(reply.message)
        history.token_ids = [*new, *said] if fresh else [*history.token_ids, *new, *said]
        reply = reply._replace(prompt_ids=new, action_ids=tuple(said), logprobs=())
        return view.placed(reply, len(history.turns), fresh=fresh)

    async def _memory(self, history: History, view: ContextView) -> Reply | None:
        """A memory that holds, of what is shown, the lines on which the rest of the solution rests; None: it acts."""
        if not view.asked and view.write is None:
            return None
        told = await script_in_env(history.env, foreseen, history.observation, "foreseen")
        needed = str(told).splitlines()
        if view.write is None:
            head = history.turns[0].said if history.turns else history.observation
            kept = self._kept(recollection(view, head, needed), history)
            return Reply(Message("assistant", kept or NOTHING))
        text = self._kept(noted(history, needed), history)
        return Reply(view.write(text)) if text else None

    def _kept(self, text: str, history: History) -> str:
        """The lines of a memory that are not left out."""
        if not self.forgets:
            return text
        rng = derive_rng("forgets", history.task.id, history.seed, len(history.turns))
        return "\n".join(line for line in text.splitlines() if rng.random() >= self.forgets)

    def close(self) -> None:
        self.policy.close()


class NextPrompt(NamedTuple):
    """The tokens to be added before the next reply, whether they are all there is, and the context that they write."""

    ids: tuple[int, ...]
    fresh: bool
    view: ContextView


def prompt_of(history: History, renderer: Renderer) -> NextPrompt:
    """The prompt of the next turn, as the renderer's context manager lets the policy see the conversation."""
    last = history.turns[-1].reply.action_ids if history.turns else ()
    view = look(renderer.context, history, renderer.measure)
    kept = history.rendered = renderer.conversation(history.rendered)
    if not last or not history.token_ids or not view.extends:
        # the first turn, the last one was played by another policy, or a context manager rewrote what stood
        return NextPrompt(renderer.start(view.messages, view.tools, kept), True, view)
    extension = renderer.extend(view.messages, view.new, last[-1], view.tools, kept)
    return NextPrompt(extension.ids, extension.fresh, view)


def sampling_seed(history: History) -> int:
    """A seed in [0, 2⁶³) of this turn of this episode alone."""
    return int(digest("sampling", history.task.id, history.seed, len(history.turns)), 16) >> 1
