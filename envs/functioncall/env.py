"""``turnwise/FunctionCall-v0``: calling functions for a user, over data that they change.

A message with calls carries them out; a message without calls is said to the user. Once it reports that a request is
done, the request is judged: by the data, which must be as the request wants it, and by what was told, where something
was asked. So what no function does must be refused, and a value that was left out must be asked for. Beside that
verdict stands another, by the calls (``details``): whether those that change something are the wanted ones.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from turnwise.envs.core import AgentEnv, EndReason, RewardKind, Snapshot, Transition
from turnwise.envs.functioncall import render
from turnwise.envs.functioncall.actions import FailingCall, InvalidCall, UserReply, say, use
from turnwise.envs.functioncall.knobs import FunctionCallKnobs
from turnwise.envs.functioncall.reading import ReadMessage, read
from turnwise.envs.functioncall.reward import nearness
from turnwise.envs.functioncall.solver import DECLINE, imperfect_message, next_message, progress
from turnwise.envs.functioncall.state import Conversation, FunctionCallState, begin, conversation_of
from turnwise.envs.functioncall.tasks import draw_task
from turnwise.envs.functioncall.verdict import calls_left, remaining
from turnwise.envs.messages import Message, Messages
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.tasks.core import Json, Split, Task, digest
from turnwise.tools.core import ToolCall, ToolError

_PARTS = ("names", "parameters", "values")


class FunctionCallEnv(AgentEnv[FunctionCallState]):
    """Function calling. ``toolrl`` weighs ToolRL's parts (format, names, parameters, values), ``equivalence`` the
    share of requests whose calls were the wanted ones.

    ToolRL's parts are paid by how far a message comes beyond the best of its round, so repeating earns nothing.
    """

    system = render.SYSTEM
    blocking: ClassVar[bool] = False
    copies: ClassVar[str] = "the request names the arguments"
    max_trivial_score: ClassVar[float] = 0.05
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {"single": {}, "multi": {"rounds": [4, 4]}}

    def __init__(
        self,
        *,
        shaping: float = 0.0,
        toolrl: float = 0.0,
        equivalence: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.toolrl, self.equivalence = toolrl, equivalence
        if toolrl:
            parts = dict.fromkeys(("format", *_PARTS), RewardKind.STEP)
            self.reward_components = {**self.reward_components, **parts}
        if equivalence:
            self.reward_components = {**self.reward_components, "equivalence": RewardKind.STEP}

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, check_knobs(FunctionCallKnobs, knobs, "function calling"))

    def initial(self, task: Task) -> tuple[FunctionCallState, str]:
        talk = self._take(task)
        return begin(talk, task), task.prompt

    def restore(self, snapshot: Snapshot[FunctionCallState]) -> None:
        self._take(snapshot.task)
        super().restore(snapshot)

    def _take(self, task: Task) -> Conversation:
        """Offer the task's functions: as tools, or in the system message where calls are written as text."""
        talk = conversation_of(task)
        self.tools = talk.tools if talk.dialect == "native" and not talk.compact else ()
        return talk

    def system_for(self, agent: str) -> str:
        return render.system(conversation_of(self.task))

    def transition(self, state: FunctionCallState, action: Message) -> Transition[FunctionCallState]:
        talk = conversation_of(self.task)
        said = read(action, talk.tools)
        if not said.calls:
            return self._heard(talk, state, say(talk, state, said.text))
        if talk.dialect not in ("native", said.dialect):
            raise ToolError(render.HOW[talk.dialect])
        return self._called(talk, state, said, "tool" if action.tool_calls else "user")

    def _called(
        self, talk: Conversation, state: FunctionCallState, said: ReadMessage, role: str
    ) -> Transition[FunctionCallState]:
        told: list[Message] = []
        after, valid = state, True
        for call in said.calls:
            try:
                result, after = use(talk, after, call)
                text = render.result(talk, result)
            except FailingCall as error:
                text, after = f"error: {error}", error.state
            except ToolError as error:
                text, valid = f"error: {error}", valid and not isinstance(error, InvalidCall)
            told.append(Message("tool" if role == "tool" else "user", text, tool_call_id=call.id))
        rewards, after = self._nearness(talk, state, after, said.calls, valid)
        if role == "user":
            told = [Message("user", "\n".join(one.content for one in told))]
        return Transition(after, Messages(told), rewards, details=calls_left(talk, state, after.made))

    def _heard(
        self, talk: Conversation, state: FunctionCallState, reply: UserReply
    ) -> Transition[FunctionCallState]:
        rewards: dict[str, float] = {}
        if reply.end is not None:
            rewards["outcome"] = float(reply.end is EndReason.SOLVED)
        details = calls_left(talk, state, state.made)
        if reply.verdict is not None:
            details["verdict"] = dict(reply.verdict._asdict())
            if self.equivalence:
                rewards["equivalence"] = self.equivalence * reply.verdict.calls / len(talk.rounds)
        return Transition(reply.state, reply.text, rewards, reply.end, details)

    # --- reward ----------------------------------------------------------------------------------

    def _nearness(
        self,
        talk: Conversation,
        before: FunctionCallState,
        after: FunctionCallState,
        calls: Sequence[ToolCall],
        valid: bool,
    ) -> tuple[dict[str, float], FunctionCallState]:
        """ToolRL's parts of a message with calls, beyond the best of the round so far."""
        if not self.toolrl:
            return {}, after
        wanted = talk.rounds[before.round].wanted
        open_ = set(remaining(before.made, wanted))
        made = [one.call for n, one in enumerate(wanted) if n not in open_]
        now = nearness([*made, *calls], [one.call for one in wanted])
        best = max(now, before.best, key=sum)
        parts = {
            name: self.toolrl * (new - old) for name, new, old in zip(_PARTS, best, before.best, strict=True)
        }
        first = valid and bool(wanted) and not before.valid
        after = after._replace(best=best, valid=before.valid or first)
        return {"format": self.toolrl * first, **parts}, after

    # --- agents ----------------------------------------------------------------------------------

    def gold(self, state: FunctionCallState) -> Message:
        talk = conversation_of(self.task)
        return render.written(talk, next_message(talk, state))

    def demonstrate(self, state: FunctionCallState, rng: Random) -> Message:
        talk = conversation_of(self.task)
        return render.written(talk, imperfect_message(talk, state, rng))

    def potential(self, state: FunctionCallState) -> float:
        return progress(conversation_of(self.task), state)

    def admissible(self, state: FunctionCallState) -> Sequence[str]:
        return [DECLINE, "Done.", "What is missing?"]

    def state_key(self, state: FunctionCallState) -> str:
        now = state
        return _key(
            now.task, now.patience, now.data.key, now.round, now.expired, now.asked, now.doubted, now.valid, now.made, now.read, now.failed,
            now.best,
        )  # fmt: skip


@functools.lru_cache(maxsize=8192)
def _key(*parts: Any) -> str:
    """A group's episodes come by the same states."""
    *plain, made, read, failed, best = parts
    return digest(*plain, list(made), sorted(read), sorted(failed), list(best))
