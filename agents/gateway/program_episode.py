"""An episode that a program plays: its talk with the policy and its actions in the environment, as turns in order.

The program drives, and so does the loop that plays episodes (:mod:`turnwise.agents.rollout`). A :class:`ProgramEpisode` joins them:
whatever the program does is an event, the loop takes one event after the other, and the environment's answer to an action
goes back to the program that waits for it.

A reply of the policy is a turn. An action belongs to the newest reply that called for it, by the name and the arguments of
the call, and to the newest reply of all where none did; its rewards are that turn's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from turnwise.agents.core import PREVIOUS, ROOT, History, MemoryMark, Outcome, Policy, Reply, Served, after
from turnwise.agents.execution.calls import Fault
from turnwise.agents.gateway.actions import ActResult, offered
from turnwise.agents.gateway.sessions import AgentSession, SessionLimits
from turnwise.agents.gateway.update_lock import UpdateLock
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message, Messages
from turnwise.errors import RunError
from turnwise.tools.core import ToolCall, ToolError, ToolSpec


class _Action(NamedTuple):
    message: Message
    answer: asyncio.Future[ActResult]
    reply: int | None = None  # of the session, for which it was expressly played


class _Ended(NamedTuple):
    end: EndReason
    fault: Fault | RunError | None = None


class _Pending(NamedTuple):
    """An action that is being played, and how much of the observation was there before it."""

    action: _Action
    seen: int
    turn: int | None  # None: none, the policy said nothing yet


class ProgramEpisode:
    """An episode in the making, and the session of the program that plays it.

    Args:
        policy: replies to the program.
        history: of the episode, before its first turn.
        limits: of the session.
        update_lock: what holds the session's requests back.
        plain_words: whether the program is offered plain words beside the environment's tools.
        acts_are_turns: each action is a turn, because the program brings a model of its own and asks ours nothing.

    Attributes:
        acts: actions in the environment.
        by_call, by_time: of these, those that belong to a reply that called for them, and to the newest one.
    """

    def __init__(
        self,
        policy: Policy,
        history: History,
        limits: SessionLimits | None = None,
        update_lock: UpdateLock | None = None,
        *,
        plain_words: bool = False,
        acts_are_turns: bool = False,
    ) -> None:
        self.session = AgentSession(
            policy,
            history.task,
            history.env,
            seed=history.seed,
            limits=limits,
            update_lock=update_lock,
            heard=self._hear,
            plain_turn=self._plain,
        )
        self.history, self._plain_words = history, plain_words
        self._acts_are_turns = acts_are_turns
        self.messages = [*history.observation]
        self.instructions = "\n\n".join(message.content for message in history.observation)
        self.pictures = tuple(image for message in history.observation for image in message.images)
        self.session.shown.update(self.pictures)
        self.by_call = self.by_time = 0
        self.acts = 0
        self._events: asyncio.Queue[Reply | _Action | _Ended] = asyncio.Queue()
        self._pending: _Pending | None = None
        self._places: list[int] = []  # of each reply of the session, its turn
        self._calls: list[tuple[int, ToolCall]] = []  # that nobody carried out yet, with their turns
        self._over = ""

    @property
    def played(self) -> bool:
        """True if the program was given a reply of the policy, or acted."""
        return self.acts > 0 or self.session.counts.replies > 0

    def specs(self) -> Sequence[ToolSpec]:
        """The tools by which the program acts in the environment."""
        return offered(self.history.tools, self._plain_words)

    async def act(self, action: Message, reply: int | None = None) -> ActResult:
        """Play an action of the program's; with ``reply`` for that one of the session's.

        Raises:
            ToolError: the episode is over.
        """
        if self._over:
            raise ToolError(self._over)
        self.session.touch()
        self.acts += 1
        event = _Action(action, asyncio.get_running_loop().create_future(), reply)
        self._events.put_nowait(event)
        return await event.answer

    def stop(self, end: EndReason, fault: Fault | RunError | None = None) -> None:
        """The program is gone; what it did before counts, unless the policy failed it."""
        if fault is None and self.session.fault:
            fault = Fault(Outcome.INFRA_ERROR, f"the policy failed: {self.session.fault}")
        self._events.put_nowait(_Ended(end, fault))

    async def next(self) -> Reply:
        """Wait for the next event of the episode, as the loop takes it.

        Raises:
            Fault: what the program stood on failed.
            RunError: no program can play.
        """
        self._settle(None)
        event = await self._events.get()
        match event:
            case Reply():
                return self._placed(event)
            case _Action() if self._acts_are_turns:
                self._pending = _Pending(event, 0, len(self.history.turns))
                return Reply(event.message)
            case _Action():
                turn = self._turn_of(event.message) if event.reply is None else self._places[event.reply]
                self._pending = _Pending(event, len(self.history.observation), turn)
                return Reply(event.message, of=ROOT if turn is None else after(turn))
            case _Ended():
                if event.fault is not None:
                    raise event.fault
                served = self.session.cut_said if event.end is self.session.cut else Served()
                return Reply(Message("assistant", ""), end=event.end, served=served)

    def over(self, end: EndReason | None) -> list[Reply]:
        """The episode is over: whoever waits is told; the replies that are not yet among its turns."""
        why = f"The episode is over: {end}." if end else "The episode is over: it failed."
        self._over = self._over or why
        self.session.close(why)
        self._settle(end)
        left: list[Reply] = []
        while not self._events.empty():
            event = self._events.get_nowait()
            if isinstance(event, _Action) and not event.answer.done():
                event.answer.set_exception(ToolError(why))
            elif isinstance(event, Reply):
                left.append(event)
        base = len(self.history.turns)
        self.history.metrics["requests_refused"] = self.session.counts.refused
        return [self._placed(reply, base + n) for n, reply in enumerate(left)]

    def _plain(self, told: Sequence[Message]) -> History | None:
        """The episode before its next turn, where these are all the words that were exchanged in it."""
        here = self.history.messages()
        same = len(told) == len(here) and all(map(_same_words, told, here))
        return self.history if same and self._pending is None else None

    def _hear(self, reply: Reply) -> None:
        self._events.put_nowait(reply)

    def _placed(self, reply: Reply, turn: int | None = None) -> Reply:
        """A reply of the session as a turn: parents are turns."""
        turn = len(self.history.turns) if turn is None else turn
        extended = reply.parent.turn(len(self._places))
        found = None if extended is None else self._places[extended]
        self._places.append(turn)
        self._calls += [(turn, call) for call in reply.message.tool_calls]
        caller = None if reply.caller is None else self._places[reply.caller]
        continues = None if reply.continues is None else self._places[reply.continues]
        if reply.continues is not None and self.session.is_summary(reply.continues):
            self._mark_memory(self._places[reply.continues])
        parent = PREVIOUS if turn == 0 or found == turn - 1 else ROOT if found is None else after(found)
        return reply._replace(parent=parent, caller=caller, continues=continues, silent=True)

    def _mark_memory(self, turn: int) -> None:
        """A turn was written for the contexts after it, as shows when the program has told it."""
        turns = self.history.turns
        if turn < len(turns):
            turns[turn] = replace(turns[turn], reply=turns[turn].reply._replace(memory=MemoryMark()))

    def _turn_of(self, action: Message) -> int | None:
        """The turn that an action belongs to; None: to none, the policy said nothing yet."""
        call = action.tool_calls[0] if action.tool_calls else None
        for n in reversed(range(len(self._calls))):
            turn, asked = self._calls[n]
            if call is not None and (asked.name, asked.arguments) == (call.name, call.arguments):
                del self._calls[n]
                self.by_call += 1
                return turn
        self.by_time += 1
        if self._places:
            return self._places[-1]
        return len(self.history.turns) - 1 if self.history.turns else None

    def _settle(self, end: EndReason | None) -> None:
        """Tell the program what its action came to."""
        if self._pending is None:
            return
        (action, seen, turn), self._pending = self._pending, None
        if action.answer.done():
            return
        bad = self._bad_action(turn)
        if bad is None:
            action.answer.set_exception(ToolError(self._over or "The action failed."))
            return
        new = Messages(self.history.observation[0 if turn is None else seen :])
        text = "\n".join(message.content for message in new)
        images = tuple(image for message in new for image in message.images)
        self.session.shown.update(images)
        action.answer.set_result(ActResult(text, bad, end, images))

    def _bad_action(self, turn: int | None) -> bool | None:
        """Say whether the environment refused the newest action of a turn; None: it was not played."""
        turns = self.history.turns
        if self._acts_are_turns and turn is not None:
            return turns[turn].bad_action if turn < len(turns) else None
        played = turns[-1 if turn is None else turn].acts if turns else None
        return played[-1].bad_action if played else None


def _same_words(one: Message, other: Message) -> bool:
    """Say whether two messages say the same; the ids of calls are each API's own."""
    calls = [[(call.name, call.arguments) for call in message.tool_calls] for message in (one, other)]
    said = [(message.role, message.content.strip(), message.images) for message in (one, other)]
    return said[0] == said[1] and calls[0] == calls[1]
