"""The environment contract: messages in, messages out, named reward components, ends with names.

An environment is a :class:`gymnasium.Env` written as a pure function. Its author defines the first
state (:meth:`AgentEnv.initial`) and what an action changes (:meth:`AgentEnv.transition`); states are
immutable values, so a snapshot is a reference and a fork costs microseconds. The base class keeps the
rest of the contract (E1–E9 in docs/architecture.md): the reward components sum to the reward, shaping is
potential-based, bad actions become observations, chance is drawn from (task, seed, turn).
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, Generic

import gymnasium
import numpy as np
from gymnasium.utils import seeding

from turnwise.blame import AuthorError, written_at
from turnwise.envs import planted, returned
from turnwise.envs.messages import Message, Messages
from turnwise.envs.spaces import MessageSpace, MessagesSpace
from turnwise.envs.steps import (
    EndReason,
    ForkCost,
    Guard,
    Info,
    RewardKind,
    Snapshot,
    State,
    Step,
    Transition,
)
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Task, derive_rng
from turnwise.tools.core import Tool, ToolCall, ToolError

NOT_CARRIED_OUT, CARRIED_OUT = "Not carried out.", "Carried out."
"""Answers to a call where another call of the same message is answered with all there is to say."""

__all__ = [
    "AgentEnv", "EndReason", "ForkCost", "Guard", "Info", "RewardKind", "Snapshot", "Step", "Transition", "tool_specs",
]  # fmt: skip


class AgentEnv(gymnasium.Env[Messages, Message | str], Generic[State]):
    """A multi-turn environment for language-model agents.

    Subclasses define :meth:`generate`, :meth:`initial`, :meth:`transition`, :meth:`gold`, and these:
    """

    system: str = ""  # the system message: rules and how to act
    tools: tuple[Tool, ...] = ()
    agents: tuple[str, ...] = ("agent",)  # of the current task; the first is the one that is evaluated
    reward_components: Mapping[str, RewardKind] = {"outcome": RewardKind.OUTCOME}
    turn_limit: int = 30
    max_trivial_score: ClassVar[float] = 0.1  # the most that any trivial baseline may succeed (E6)
    # of suites with another one: a match is won by one of two
    max_trivial_scores: ClassVar[Mapping[str, float]] = {}
    one_outcome: ClassVar[bool] = (
        False  # True: all agents win together, so that the first one's success is everybody's
    )
    copies: ClassVar[str] = ""  # why the prompt holds what must be said, where that is the task (E8)
    words_end: ClassVar[str] = ""  # why words without a call end the episode, where there are tools (E7)
    # False: no solution is known, and the checker plays without one; a task's option of this name goes before it
    gold_known: ClassVar[bool] = True
    calls_end: ClassVar[str] = ""  # why a call with wrong arguments ends the episode (E7)
    gold_varies: ClassVar[str] = ""  # why gold may be another solution in another process (E3)
    fork_cost: ClassVar[ForkCost] = ForkCost.FREE  # of going on a second time from a moment of an episode
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        "": {}
    }  # workload → knobs (envs/bench/memory.py)
    # of the options, and of what a task's options hold, that which a log may not set by itself (envs/trust.py)
    guarded_options: ClassVar[Mapping[str, Guard]] = {}
    guarded_tasks: ClassVar[Mapping[str, Guard]] = {}
    blocking: ClassVar[bool] = True  # False: steps are short and pure, and run on the event loop
    calls_per_turn: ClassVar[int | None] = None  # that a turn takes; 1: servers are asked for no more
    observation_limit: int = 20_000  # characters; the rest is cut with a visible marker (E8)
    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (gymnasium's declaration)
    shaping: float = 0.0  # weight of γΦ(s′) − Φ(s); needs ``potential``
    _snapshot: Snapshot[State] | None = None
    _generator: np.random.Generator | None = None

    # --- what an author writes -------------------------------------------------------------------

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        """A new task. Tasks of different splits must differ whatever ``rng`` is."""
        raise _missing(cls, "generate(rng, split, **knobs)", "Write it, a classmethod that returns a Task.")

    def initial(self, task: Task) -> tuple[State, str | Messages]:
        """The first state and the first observation."""
        raise _missing(type(self), "initial(task)", "Write it: return state, observation.")

    def transition(self, state: State, action: Message) -> Transition[State]:
        """Return the result of ``action`` in ``state``.

        Must not change ``state``; chance comes from :meth:`rng`.

        Raises:
            ToolError: the action means nothing here; its text becomes the observation (E7).
        """
        raise _missing(type(self), "transition(state, action)", "Write it: return Transition(state, …).")

    def refused(self, state: State, action: Message, why: str) -> Transition[State]:
        """Answer a bad action and do nothing else, unless a subclass remembers or charges it."""
        return Transition(state, why)

    def gold(self, state: State) -> Message | str:
        """The next action of a solution that scores 1, from any state where one exists (E6)."""
        if not self.knows_gold(self.task):
            raise EnvError(
                f"{type(self).__name__} knows no solution of this task (gold_known = False).",
                "Play it with another policy, such as scripted:random; nothing can be learned from gold here.",
            )
        remedy = "Write it: the next action of a solution that scores 1 (E6, and warm starts imitate it)."
        raise _missing(type(self), "gold(state)", remedy)

    def needs(self, state: State) -> Sequence[str]:
        """Lines of observations that say all that the next action of the solution rests on; empty where nobody says.

        What the environment told before the first action is left out: it stands in every context (docs/horizon.md).
        """
        return ()

    @classmethod
    def knows_gold(cls, task: Task) -> bool:
        """Return whether :meth:`gold` solves ``task``."""
        return bool(task.options.get("gold_known", cls.gold_known))

    def recorded(self, task: Task) -> Sequence[Message | str]:
        """The actions of an episode that was played before, for the checker where no gold is known."""
        return ()

    def demonstrate(self, state: State, rng: Random) -> Message | str:
        """The next action of a mediocre agent, for warm starts that leave something to be learned."""
        return self.gold(state)

    def potential(self, state: State) -> float | None:
        """Φ(s), how far the task has come; None where the environment has no such measure."""
        return None

    def admissible(self, state: State) -> Sequence[str]:
        """Some or all actions that mean something in ``state``; for baselines and for people."""
        return ()

    def state_key(self, state: State) -> str:
        """A stable hash of what matters for deciding in ``state`` (E5)."""
        return hashlib.blake2b(repr(state).encode(), digest_size=8).hexdigest()

    @classmethod
    def failure_report(cls, task: Task, details: Mapping[str, Json]) -> str:
        """Return what is told of a failed attempt before ``task`` is attempted again.

        The text is empty where there is nothing to tell.

        Args:
            task: that was attempted.
            details: of the attempt's last turn.
        """
        return ""

    @classmethod
    def impossible(cls, task: Task, rng: Random) -> Task | None:
        """Return the same task made unsolvable: judged as any other, and no honest episode of it is paid (envs/planted.py).

        None where the family has none such; then nothing that an agent does has an effect.
        """
        return None

    # --- several agents, who take turns (all methods above speak of the one who moves) ------------

    def current_agent(self, state: State) -> str:
        """Return the agent that moves in ``state``."""
        return self.agents[0]

    def system_for(self, agent: str) -> str:
        """The system message of an agent."""
        return self.system

    def tools_for(self, agent: str) -> tuple[Tool, ...]:
        """The tools of an agent, in the current episode."""
        return self.tools

    # --- gymnasium -------------------------------------------------------------------------------

    def __init__(self, *, shaping: float = 0.0, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.shaping = shaping
        if shaping:
            self.reward_components = {**self.reward_components, "progress": RewardKind.POTENTIAL}
        self.observation_space = MessagesSpace()
        self.action_space = MessageSpace()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Messages, dict[str, Any]]:
        """Begin ``options["task"]``, or a training task drawn from ``seed``."""
        if seed is None:
            seed = int(self.np_random.integers(2**62))
        else:
            self._generator, self._np_random_seed = None, seed
        task = (options or {}).get("task")
        if task is None:
            task = self.generate(derive_rng(type(self).__name__, "reset", seed), Split.TRAIN)
        task = returned.check_task(type(self), task)
        state, observation = returned.check_start(self, self.initial(task))
        if mark := planted.mark_of(task.options):
            observation = planted.offered(mark, observation)
        self._snapshot = Snapshot(task, seed, state, 0, None)
        observation = returned.clean(self, observation, "initial")
        messages = self._address(self.current_agent(state), self._messages(observation))
        return messages, dict(self._info({}, None, False, {}))

    @property
    def _np_random(self) -> np.random.Generator | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Gymnasium's generator. Our environments draw from :meth:`rng`, so that it is made when somebody looks at it."""
        if self._generator is None and self._np_random_seed not in (None, -1):
            self._generator, _ = seeding.np_random(self._np_random_seed)
        return self._generator

    @_np_random.setter
    def _np_random(self, value: np.random.Generator | None) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._generator = value

    def step(self, action: Message | str) -> Step:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Play one turn."""
        now = self._require_episode()
        if now.end is not None:
            raise EnvError(f"step() after the episode ended ({now.end}).", "Call reset() first.")
        message = Message("assistant", action) if isinstance(action, str) else action.alone()
        bad_action, method = False, "transition"
        try:
            if message.malformed and self.tools:
                raise ToolError(message.malformed)
            mark = planted.mark_of(now.task.options)
            done = mark and planted.answered(mark, now.state, message)
            if not done and message.tool_calls and not self.tools_for(self.current_agent(now.state)):
                raise ToolError(
                    f"There is no tool {message.tool_calls[0].name[:80]!r}: there are no tools here."
                )
            change = done or self.transition(now.state, message)
        except ToolError as error:
            bad_action, method = True, "refused"
            change = self.refused(now.state, message, str(error))
        returned.check_change(self, change, method)
        said = returned.clean(self, change.observation, method, message)
        end = change.end
        if end is None and now.turn + 1 >= self._turn_limit(now.task):
            end = EndReason.TURN_LIMIT
        rewards = self._components(now.state, change, end)
        self._snapshot = Snapshot(now.task, now.seed, change.state, now.turn + 1, end, now.addressed)
        ended, truncated = end is not None, end is not None and end.truncated
        info = self._info(rewards, end, bad_action, change.details)
        if len(self.agents) == 1:
            observation = self._messages(said, message.tool_calls, bad_action)
        else:
            observation = self._to_others(now.state, change._replace(observation=said), message, info)
        return Step(observation, sum(rewards.values()), ended and not truncated, truncated, info)

    def cut(self, end: EndReason) -> Mapping[str, float]:
        """End the episode from outside (a token or time limit); what the last turn's reward still lacks."""
        now = self._require_episode()
        self._snapshot = now._replace(end=end)
        return {"progress": -self.shaping * self._potential(now.state)} if self.shaping else {}

    @property
    def now(self) -> Snapshot[State]:
        """This moment, to be looked at; :meth:`snapshot` is what can be returned to."""
        return self._require_episode()

    @property
    def agent(self) -> str:
        """The agent that moves now."""
        return self.current_agent(self._require_episode().state)

    # --- fork contract (E4) ----------------------------------------------------------------------

    def snapshot(self) -> Snapshot[State]:
        """This moment of the episode. States are immutable, so this copies nothing."""
        return self._require_episode()

    def restore(self, snapshot: Snapshot[State]) -> None:
        """Return to a moment of any episode of this environment."""
        self._snapshot = snapshot

    def fork(self, *, seed: int | None = None) -> AgentEnv[State]:
        """A second environment at this moment; a new ``seed`` gives it other chance from here on."""
        twin = copy.copy(self)
        twin._np_random = None
        if seed is not None:
            twin._snapshot = self._require_episode()._replace(seed=seed)
        return twin

    # --- for subclasses --------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The current state."""
        return self._require_episode().state

    @property
    def task(self) -> Task:
        """The current task."""
        return self._require_episode().task

    def rng(self, *names: Json) -> Random:
        """Chance for this turn, a function of (task, seed, turn, names) and nothing else (E3)."""
        now = self._require_episode()
        return derive_rng(type(self).__name__, now.task.id, now.seed, now.turn, *names)

    def within_limit(self, text: str) -> str:
        """Return a text as far as an observation may be long, and how much was cut (E8)."""
        cut = len(text) - self.observation_limit
        return f"{text[: self.observation_limit]}\n[… {cut} characters cut]" if cut > 0 else text

    # --- inside ----------------------------------------------------------------------------------

    def _to_others(self, state: State, change: Transition[State], action: Message, info: Info) -> Messages:
        """Address what was seen to the one who moves next, and tell the others what is theirs."""
        moved, ended = self.current_agent(state), info.get("end") is not None
        agent = moved if ended else self.current_agent(change.state)
        bad = info.get("bad_action", False)
        calls = action.tool_calls if agent == moved else ()
        observation = self._address(agent, self._messages(change.observation, calls, bad))
        messages_to: dict[str, Messages] = {}
        due = dict(change.messages_to)
        if agent != moved and action.tool_calls:
            due.setdefault(moved, Messages())
        for name, said in due.items():
            said = returned.clean(self, said, "transition", action)
            calls = action.tool_calls if name == moved and agent != moved else ()
            messages_to[name] = self._address(name, self._messages(said, calls, bad))
        for name, rewards in change.rewards_to.items():
            returned.check_rewards(self, rewards)
            if name not in self.agents or name == moved:
                raise EnvError(
                    f"{type(self).__name__} paid {name!r} as another agent.", "Name one of `agents`."
                )
        info |= {"agent": agent, "rewards_to": dict(change.rewards_to), "messages_to": messages_to}
        return observation

    def _address(self, agent: str, messages: Messages) -> Messages:
        """The messages, after the agent's system message if it never had it."""
        now = self._require_episode()
        if agent in now.addressed:
            return messages
        self._snapshot = now._replace(addressed=now.addressed | {agent})
        system = self.system_for(agent)
        return Messages((Message("system", system), *messages)) if system else messages

    def _require_episode(self) -> Snapshot[State]:
        if self._snapshot is None:
            raise EnvError("The environment has no episode yet.", "Call reset() first.")
        return self._snapshot

    def _turn_limit(self, task: Task) -> int:
        return task.options.get("turn_limit", self.turn_limit)

    def _components(self, state: State, change: Transition[State], end: EndReason | None) -> dict[str, float]:
        rewards = dict(change.rewards)
        if self.shaping and len(self.agents) > 1:
            raise EnvError("Shaping is for one agent.", "Leave `shaping` at 0 where several agents play.")
        if self.shaping:
            # Φ is 0 at every end, else stopping early or stalling would earn what the task did not.
            after = 0.0 if end is not None else self._potential(change.state)
            rewards["progress"] = self.shaping * (after - self._potential(state))
        returned.check_rewards(self, rewards)
        return rewards

    def _potential(self, state: State) -> float:
        return returned.check_potential(self, self.potential(state))

    def _messages(
        self, observation: str | Messages, calls: Sequence[ToolCall] = (), bad_action: bool = False
    ) -> Messages:
        """Return the observation as messages.

        Each call is answered by its id: many servers refuse a history where one is not.
        """
        if isinstance(observation, Messages):
            answered = {message.tool_call_id for message in observation if message.role == "tool"}
            open_calls = [call for call in calls if call.id not in answered]
            return (
                Messages((*_brief_answers(open_calls, bad_action), *observation))
                if open_calls
                else observation
            )
        observation = self.within_limit(observation)
        if calls:
            answer = Message("tool", observation, tool_call_id=calls[-1].id)
            rest = [call for call in calls[:-1] if call.id != calls[-1].id]
            return Messages((*_brief_answers(rest, bad_action), answer))
        return Messages((Message("user", observation),))

    def _info(
        self,
        rewards: Mapping[str, float],
        end: EndReason | None,
        bad_action: bool,
        details: Mapping[str, Json],
    ) -> Info:
        now = self._require_episode()
        return {
            "rewards": rewards,
            "end": end,
            "state_key": returned.check_key(self, self.state_key(now.state)),
            "task_id": now.task.id,
            "turn": now.turn,
            "bad_action": bad_action,
            "details": dict(details),  # the default is one shared object
        }


def _brief_answers(calls: Iterable[ToolCall], bad_action: bool) -> Iterator[Message]:
    """Answers to calls of which nothing more is said; one for each id."""
    for name in dict.fromkeys(call.id for call in calls if call.id):
        yield Message("tool", NOT_CARRIED_OUT if bad_action else CARRIED_OUT, tool_call_id=name)


def _missing(cls: type, method: str, remedy: str) -> AuthorError:
    return AuthorError(f"{cls.__name__} does not define {method}.", remedy, written_at(cls))


def tool_specs(tools: Iterable[Tool]) -> list[dict[str, Json]]:
    """The tools as chat templates and OpenAI-compatible servers expect them."""
    return [tool.spec.to_json() for tool in tools]
