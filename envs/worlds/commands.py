"""Commands in plain words, and the base class of environments that are acted in with them."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, NamedTuple, TypeVar

from turnwise.envs.acting import check_number
from turnwise.envs.core import AgentEnv, EndReason, RewardKind, Step, Transition
from turnwise.envs.messages import Image, Message, Messages
from turnwise.tasks.core import Json, Task
from turnwise.tools.core import ToolCall, ToolError, find_tool, tool
from turnwise.tools.notations import read_written

State = TypeVar("State")

_WORD = re.compile(r"[a-z]+|\d+")
_TAGGED = re.compile(r"<(action|command|answer|act)>(.*?)(?:</\1>|$)", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(
    r"<(think|thinking|planning|explore|reflection|monitor)>.*?(?:</\1>|$)", re.DOTALL | re.IGNORECASE
)
_LABEL = re.compile(r"^\W*(?:action|command|act|next|i)\s*[:>]", re.IGNORECASE)
_LABELLED = re.compile(r"\W{0,9}(?:action|command)\s*:", re.IGNORECASE)
_FENCE = re.compile(r"```\w*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_FILLER_TEXT = "the a an my some please then now i will ll should let me to of"
_FILLERS = frozenset(_FILLER_TEXT.split())
_LONGEST = 300  # characters of a command
_LONGEST_TEXT = 20_000  # characters of a message, thoughts included
_MOST_HINTS = 200  # commands that a hint lists


def act(command: str) -> str:
    """Do one thing, said in plain words."""
    return command


def spoken(action: Message, fillers: frozenset[str] = _FILLERS) -> tuple[str, ...]:
    """The words of the command in a message, in lower case and without fillers.

    A command is the argument of the tool ``act`` in any notation, what stands between ``<action>`` tags, or the last
    line that is not empty. Thoughts between ``<think>`` tags (or RLVMR's ``<planning>``, ``<explore>``, …) and a
    label such as ``Action:`` are left out.

    >>> spoken(Message("assistant", "Where is it? I look.\\nAction: Go to the Fridge1."))
    ('go', 'fridge', '1')
    >>> spoken(Message("assistant", "<think>go up?</think><action>take mug 2</action>"))
    ('take', 'mug', '2')

    Raises:
        ToolError: there is no command, or more than one.
    """
    check_number(len(action.tool_calls), 1)
    line = _argument(action.tool_calls[0]) if action.tool_calls else _line(action.content)
    if len(line) > _LONGEST:
        raise ToolError(f"A command has at most {_LONGEST} characters.")
    words = _words(line, fillers)
    if not words:
        raise ToolError("No command found. Write one, such as: look.")
    return words


@functools.lru_cache(maxsize=4096)  # the same commands are said again and again
def _words(line: str, fillers: frozenset[str]) -> tuple[str, ...]:
    return tuple([word for word in _WORD.findall(line.lower()) if word not in fillers])


def _argument(call: ToolCall) -> str:
    return find_tool(TOOLS, call.name).validate(call)["command"]


def without_thoughts(text: str) -> str:
    """What is said in a text: without thoughts between tags, and only what stands in the last action tag if any.

    >>> without_thoughts("<think>hm</think> Good morning. How are you?")
    'Good morning. How are you?'

    Raises:
        ToolError: the text is too long to be looked at.
    """
    if len(text) > _LONGEST_TEXT:
        raise ToolError(f"A message has at most {_LONGEST_TEXT} characters.")
    if "<" in text:
        text = _THOUGHT.sub("", text)
        tagged = _TAGGED.findall(text)
        if tagged:
            text = tagged[-1][1]
    return text.strip()


def _line(text: str) -> str:
    """The command in a text: what a call of ``act`` says, or its last line."""
    text = without_thoughts(text)
    if any(sign in text for sign in "([{<`"):
        text = "\n".join(_FENCE.findall(text)) or text
        found = read_written(text, TOOLS).calls
        check_number(len(found), 1)
        if found:
            called = found[0]
            # {"action": "go north"} has the form of a call whose name is the command.
            return called.name if " " in called.name or not called.arguments else _argument(called)
    elif "\n" in text:
        check_number(sum(map(bool, map(_LABELLED.match, text.split("\n")))), 1)
    text = text.strip().rpartition("\n")[2]
    return _LABEL.sub("", text) if ":" in text or ">" in text else text


TOOLS = (tool(act),)


class CommandAnswer(NamedTuple, Generic[State]):
    """What a command did: the next state, what is said of it, and whether it is over."""

    state: State
    text: str
    end: EndReason | None = None


class CommandEnv(AgentEnv[State]):
    """An environment whose actions are commands in plain words, and whose outcome is 1 when it is solved.

    Subclasses define :meth:`begin`, :meth:`opening`, :meth:`obey`, and the rest of ``AgentEnv``. The task
    option ``commands`` says who is told what can be done: nobody (``hidden``), ``info["details"]`` (``info``)
    or the policy (``shown``). The constructor's ``grounding`` is paid for a command that can be carried out
    (SPA-RL, arXiv 2505.20732) and leads to a state of the episode that is new: a reward for steps as such, so it
    changes what is optimal, but looking about again earns nothing.
    """

    tools = TOOLS
    blocking: ClassVar[bool] = False

    def __init__(
        self, *, shaping: float = 0.0, grounding: float = 0.0, render_mode: str | None = None
    ) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.grounding = grounding
        if grounding:
            self.reward_components = {**self.reward_components, "grounding": RewardKind.STEP}

    def begin(self, task: Task) -> State:
        """The first state."""
        raise NotImplementedError

    def opening(self, state: State) -> tuple[str, str]:
        """The system message and the first observation."""
        raise NotImplementedError

    def obey(self, state: State, words: Sequence[str]) -> CommandAnswer[State]:
        """What a command does.

        Raises:
            ToolError: it means nothing here.
        """
        raise NotImplementedError

    def images(self, state: State) -> tuple[Image, ...]:
        """Pictures that go with an observation; none unless a subclass draws some."""
        return ()

    def initial(self, task: Task) -> tuple[State, Messages]:
        state = self.begin(task)
        system, text = self.opening(state)
        if task.options.get("commands") == "shown":
            text = f"{text}\n{self._hint(state)}"
        return state, Messages((Message("system", system), Message("user", text, images=self.images(state))))

    def transition(self, state: State, action: Message) -> Transition[State]:
        after, text, end = self.obey(state, spoken(action))
        shown = self.task.options.get("commands", "hidden")
        details: dict[str, Json] = {}
        if shown != "hidden" and end is None:
            if shown == "shown":
                text = f"{text}\n{self._hint(after)}"
            details = {"commands": list(self.admissible(after))}
        rewards = {"outcome": float(end is EndReason.SOLVED)} if end else {}
        rewards |= self._grounded(state, after)
        seen = self.images(after)
        if not seen:
            return Transition(after, text, rewards, end, details)
        role, call = ("tool", action.tool_calls[0].id) if action.tool_calls else ("user", "")
        told = Messages((Message(role, text, tool_call_id=call, images=seen),))
        return Transition(after, told, rewards, end, details)

    def looked_at(self, state: State) -> str:
        """What ``grounding`` takes for one and the same state."""
        return self.state_key(state)

    def step(self, action: Message | str) -> Step:
        if not self.grounding:
            return super().step(action)
        before = self.now
        key = self.looked_at(before.state)
        step = super().step(action)
        self._snapshot = self.now._replace(seen=before.seen | {key})
        return step

    def _grounded(self, state: State, after: State) -> dict[str, float]:
        """What ``grounding`` pays for coming from one state to another."""
        if not self.grounding:
            return {}
        key = self.looked_at(after)
        new = key != self.looked_at(state) and key not in self.now.seen
        return {"grounding": self.grounding * new}

    def _hint(self, state: State) -> str:
        return "commands : " + " , ".join(list(self.admissible(state))[:_MOST_HINTS]) + " ."


World = TypeVar("World")


class WorldCache(Generic[World]):
    """Worlds of tasks: built once, then shared by a group's episodes; the oldest are forgotten."""

    def __init__(self, build: Callable[[Task], World], most: int = 2048) -> None:
        self._build, self._most = build, most
        self._kept: dict[str, World] = {}
        self._lock = threading.Lock()

    def __call__(self, task: Task) -> World:
        found = self._kept.get(task.id)
        if found is None:
            found = self._build(task)
            with self._lock:
                self._kept[task.id] = found
                if len(self._kept) > self._most:
                    del self._kept[next(iter(self._kept))]
        return found
