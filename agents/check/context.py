"""Requirements of context managers: pure functions that keep task and newest answer in sight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from turnwise.agents.contexts.core import ContextView, Look, TokenCounter, look
from turnwise.agents.core import History, Reply, Turn
from turnwise.envs.core import AgentEnv, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.registry import Component
from turnwise.requirements import Requirements, require, says_what_it_is
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolCall

TURNS = 60
LETTERS = TokenCounter(lambda messages: sum(len(one.content) for one in messages), lambda tools: 0)
HEAD = Messages([Message("system", "Play."), Message("user", "Find the key of the third door.")])


class _Rooms(AgentEnv[int]):
    """Tells of a room in each turn; nothing of it is played here."""

    def initial(self, task: Task) -> tuple[int, str]:
        return 0, task.prompt

    def transition(self, state: int, action: Message) -> Transition[int]:
        return Transition(state + 1, _room(state))


class _TalkMoment(NamedTuple):
    """A turn of a long conversation: what stood before it, its context, and what the policy said before."""

    history: History
    view: ContextView


def _room(number: int) -> str:
    return f"Room {number}: " + "chairs and tables " * 9


def _long(manager: Look) -> Iterator[_TalkMoment]:
    """A long conversation, turn by turn, in which the policy writes a memory wherever it is asked for one."""
    history, number = History(_Rooms(), Task("check/Rooms-v0", "Find the key."), 0, HEAD), 0
    while number < TURNS:
        view = look(manager, history, LETTERS)
        yield _TalkMoment(history, view)
        call = ToolCall("look", {"at": number}, f"call_{number}")
        said = Message("assistant", f"Of {number}.") if view.asked else Message("assistant", "", (call,))
        reply = view.placed(Reply(said), len(history.turns), fresh=not view.extends)
        if reply.memory is not None:
            history.note(reply, "")
            continue
        history.turns.append(Turn(history.observation, reply, 0.0, {}, ""))
        history.observation = Messages([Message("tool", _room(number), tool_call_id=call.id)])
        number += 1


def is_pure(entry: Component) -> str:
    """A conversation that is told once more, as after a resume or a fork, gives the same context."""
    manager, looked = entry.build({}), 0
    for moment in _long(manager):
        again = History(
            moment.history.env,
            moment.history.task,
            0,
            moment.history.observation,
            turns=[*moment.history.turns],
        )
        found = look(manager, again, LETTERS)
        require(
            found == moment.view, f"Turn {len(again.turns) + 1} has another context when it is told again."
        )
        looked += 1
    return f"{looked} contexts"


def keeps_the_task(entry: Component) -> str:
    """Every context begins with the words of the system message and of the task."""
    for moment in _long(entry.build({})):
        begin = moment.view.messages[: len(HEAD)]
        same = all(one.content.startswith(other.content) for one, other in zip(begin, HEAD, strict=False))
        require(
            len(begin) == len(HEAD) and same, f"Turn {len(moment.history.turns) + 1} is not shown the task."
        )
    return f"{TURNS} actions"


def keeps_the_newest(entry: Component) -> str:
    """The environment's last answer stands in the context."""
    for moment in _long(entry.build({})):
        newest = [one for one in moment.history.observation if one not in HEAD]
        missing = [one.content for one in newest if one not in moment.view.messages]
        require(not missing, f"Turn {len(moment.history.turns) + 1} is not shown {missing[:1]}.")
    return f"{TURNS} actions"


def forgets(entry: Component) -> str:
    """A conversation that grows is not shown whole for ever, unless the policy must ask for that by a tool."""
    *_, last = _long(entry.build({}))
    said = sum(len(one.content) for one in last.history.messages())
    shown = sum(len(one.content) for one in last.view.messages)
    require(shown < said or last.view.own, f"After {TURNS} actions all {said} letters are shown.")
    return f"{shown} of {said} letters"


REQUIREMENTS: dict[str, Requirements] = {
    "context": {
        "says what it is": says_what_it_is,
        "is pure": is_pure,
        "keeps the task": keeps_the_task,
        "keeps the newest answer": keeps_the_newest,
        "forgets": forgets,
    }
}
