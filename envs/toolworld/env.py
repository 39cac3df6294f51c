"""``turnwise/ToolWorld-v0``: help a user with tools, as far as the policy allows."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from turnwise.envs.acting import MOST_CALLS, calls_or_words
from turnwise.envs.core import AgentEnv, EndReason, Guard, RewardKind, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.toolworld import reward, solver
from turnwise.envs.toolworld.actions import as_text, hear, hear_user, use, user_tools, words_of, write_call
from turnwise.envs.toolworld.cases import case_of, domain_of
from turnwise.envs.toolworld.knobs import knobs_of
from turnwise.envs.toolworld.mind import StageMind
from turnwise.envs.toolworld.proposals import PROPOSE, put, tools_with
from turnwise.envs.toolworld.speech.proposing import Proposal
from turnwise.envs.toolworld.spoken import GREETING, answer
from turnwise.envs.toolworld.state import ToolState, ToolWorldCase, begin
from turnwise.envs.toolworld.tasks import draw_task
from turnwise.envs.toolworld.users import STOP, respond, script
from turnwise.envs.worlds.commands import WorldCache
from turnwise.envs.worlds.speaking import default_spec
from turnwise.envs.worlds.speaking.speaker import Speaker, check_player, is_spec, player
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool

_case: WorldCache[ToolWorldCase] = WorldCache(case_of)
_played: WorldCache[ToolWorldCase] = WorldCache(functools.partial(case_of, played=True))
_HOW = (
    "Each turn, either call tools or write to the user, not both. What you write goes to the user as it is. "
    "The conversation ends when the user is content or leaves, or when you transfer it."
)


@functools.lru_cache(maxsize=8192)
def _listed(things: frozenset[Any]) -> str:
    """In an order that no process chooses. (Sets keep their hash, and seldom change from step to step.)"""
    return repr(sorted(things))


@functools.lru_cache(maxsize=8192)
def _told(proposal: Proposal) -> str:
    named = proposal.named
    return f"[{_listed(proposal.actions)}, {_listed(named.values)}, {_listed(named.money)}]"


def _aside(mind: StageMind) -> str:
    flags = mind._replace(agreed=(), offered=Proposal(), priced=frozenset(), paid=frozenset())
    sets = (*map(_told, mind.agreed), _told(mind.offered), _listed(mind.priced), _listed(mind.paid))
    return f"{flags} {' '.join(sets)}"


class _DomainTools:
    """The tools of the current task's domain; of the default one where there is no task."""

    def __get__(self, env: ToolWorldEnv | None, cls: type[ToolWorldEnv]) -> tuple[Tool, ...]:
        now = env._snapshot if env is not None else None
        if env is None or now is None:
            return domain_of("desk").tools
        return tools_with(now.state.case.domain, proposals=env.propose)


class ToolWorldEnv(AgentEnv[ToolState]):
    """A service desk: a user with a wish, tools over a database, and a policy.

    Args:
        shaping: weight of progress towards the goal's database and facts (potential-based).
        call_rewards: weight of ToolRL's three parts: a valid call, the right tool, the right arguments; each
            planned call pays once.
        violation_cost: charged for each rule of the policy that a call breaks.
        propose: offer the tool ``propose(action, arguments, cost)``, which asks the user for a yes bound to just that.
        user: who plays the user, whatever the task says: ``scripted``, ``agent`` (another agent), or a language model
            behind a server, ``openai:MODEL@URL``, ``vllm:MODEL`` or ``recorded:FILE`` (worlds/speaking).
        record: the file in which a language model's answers are kept, so that forks and replays find them; the default is
            in the cache folder.
    """

    tools = _DomainTools()  # pyright: ignore[reportAssignmentType]
    turn_limit = 30
    max_trivial_score: ClassVar[float] = 0.15
    blocking: ClassVar[bool] = False
    reward_components: Mapping[str, RewardKind] = {
        "outcome": RewardKind.OUTCOME,
        "violation": RewardKind.COST,
    }
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        "quick": {"domains": ["desk"], "requests": 1, "paraphrase": False, "brief": 0, "size": 6},
        "retail": {"domains": ["retail"]},
        "telecom": {"domains": ["telecom"]},
        "apps": {"domains": ["apps"], "requests": 1},
    }

    guarded_options: ClassVar[Mapping[str, Guard]] = {
        "user": Guard("says who plays the user, and at which address", words=True),
        "record": Guard("names the file that answers are read from and written to"),
    }
    guarded_tasks: ClassVar[Mapping[str, Guard]] = {
        "domain": Guard("names a folder whose files are read, or whose code is run", words=True),
        "user": Guard("says at which address a model plays the user", words=True),
    }

    def __init__(
        self,
        *,
        shaping: float = 0.0,
        call_rewards: float = 0.0,
        violation_cost: float = 0.1,
        propose: bool = False,
        user: str = "",
        record: str = "",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.propose = propose
        self.user = check_player(user, "user")
        self.record = record
        if is_spec(user) or (not user and default_spec()):
            self.blocking = True  # pyright: ignore[reportAttributeAccessIssue] (of this instance alone)
        self.call_rewards, self.violation_cost = call_rewards, violation_cost
        if call_rewards:
            self.reward_components = {
                **self.reward_components,
                **dict.fromkeys(("valid", "tool", "arguments"), RewardKind.STEP),
            }

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, knobs_of(knobs))

    # --- who plays -------------------------------------------------------------------------------

    @property
    def agents(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The agent; and the user, where the user is another agent."""
        now = self._snapshot
        played = now is not None and (self.user or now.task.options["user"]) == "agent"
        return ("agent", "user") if played else ("agent",)

    def _speaker(self, task: Task) -> Speaker | None:
        """The language model that plays the user, if one does."""
        return player(self.user or task.options["user"], self.record, "user")

    def current_agent(self, state: ToolState) -> str:
        return state.current_agent

    def system_for(self, agent: str) -> str:
        case = self.state.case
        if agent == "user":
            return script(case.domain, case.story)
        return case.domain.policy if case.domain.compact else f"{case.domain.policy}\n\n{_HOW}"

    def tools_for(self, agent: str) -> tuple[Tool, ...]:
        domain = self.state.case.domain
        return user_tools(domain) if agent == "user" else tools_with(domain, proposals=self.propose)

    # --- play ------------------------------------------------------------------------------------

    def initial(self, task: Task) -> tuple[ToolState, str]:
        user = self.user or task.options["user"]
        if user == "scripted":
            return begin(case := _case(task)), case.story.opening
        state = begin(_played(task))
        speaker = self._speaker(task)
        if speaker is None:
            return state, GREETING
        turn = answer(speaker, state)
        return turn.state, turn.text

    def transition(self, state: ToolState, action: Message) -> Transition[ToolState]:
        if state.current_agent == "user":
            return self._user_turn(state, action)
        calls = calls_or_words(action, self.tools_for("agent"), MOST_CALLS).calls
        if self.propose and any(call.name == PROPOSE.spec.name for call in calls):
            return self._propose(state, calls)
        if calls:
            return self._use(state, calls, told_apart=bool(action.tool_calls))
        after, said = hear(state, words_of(action))
        return self._to_user(state, after, said)

    def _propose(self, state: ToolState, calls: Sequence[ToolCall]) -> Transition[ToolState]:
        """Put a proposal to the user, whose words are the tool's result."""
        if len(calls) > 1:
            raise ToolError("Propose one thing at a time, and wait for the answer.")
        made = put(state, calls[0])
        if not state.case.played:
            return self._then(state, made.state, made.text)
        return self._to_user(state, made.state, made.asked)

    def _to_user(self, state: ToolState, after: ToolState, said: str) -> Transition[ToolState]:
        """Pass what was said to a user who is another agent, or let the language model answer it."""
        speaker = self._speaker(self.task) if after.current_agent == "user" else None
        if speaker is None:
            return self._then(state, after, said)
        turn = answer(speaker, after)
        details: dict[str, Json] = {"repairs": list(turn.repairs)} if turn.repairs else {}
        return self._then(state, turn.state, turn.text, details=details)

    def _use(self, state: ToolState, calls: Sequence[ToolCall], *, told_apart: bool) -> Transition[ToolState]:
        """Carry out calls one after the other; what fails is told, and raised where it was the only one."""
        now, results = state, list[str]()
        extra: dict[str, float] = {}
        for call in calls:
            try:
                now, result = use(now, call, extra)
                results.append(as_text(result))
            except ToolError as error:
                if len(calls) == 1:
                    raise
                results.append(str(error))
            if now.closed:
                break
        if told_apart and len(calls) > 1:
            room = self.observation_limit // len(results)
            told = [
                Message("tool", r[:room], tool_call_id=c.id) for r, c in zip(results, calls, strict=False)
            ]
            return self._then(state, now, Messages(told), extra)
        return self._then(state, now, "\n".join(results), extra)

    def _user_turn(self, state: ToolState, action: Message) -> Transition[ToolState]:
        """A user who is another agent says something, or does something with their device."""
        domain = state.case.domain
        if calls := calls_or_words(action, user_tools(domain), 1).calls:
            (call,) = calls
            find_tool(user_tools(domain), call.name).validate(call)
            deed = next(deed for deed in domain.deeds if deed.name == call.name)
            done = deed.does(state.db, state.case.story.customer)
            acted = state.acted | {deed.name}
            return Transition(state._replace(db=done.db, acted=acted), str(done.result))
        after = hear_user(state, text := words_of(action))
        if after.closed:
            verdict = self._verdict(after)
            end = EndReason.SOLVED if verdict.outcome else EndReason.FAILED
            paid = {"agent": {"outcome": verdict.outcome}}
            return Transition(
                after, text, {}, end, verdict._asdict(), rewards_to=paid, messages_to={"agent": text}
            )
        return Transition(after, text.replace(STOP, "").strip() or "…")

    def _then(
        self,
        before: ToolState,
        after: ToolState,
        told: str | Messages,
        extra: Mapping[str, float] | None = None,
        *,
        details: Mapping[str, Json] = {},
    ) -> Transition[ToolState]:
        rewards: dict[str, float] = {}
        broken = len(after.broken) - len(before.broken)
        if broken and self.violation_cost:
            rewards["violation"] = -self.violation_cost * broken
        if self.call_rewards and extra:
            rewards |= {name: self.call_rewards * value for name, value in extra.items()}
        details = {**details, "broken": list(after.broken)} if broken else details
        if not after.closed:
            return Transition(after, told, rewards, None, details)
        verdict = self._verdict(after)
        end = EndReason.SOLVED if verdict.outcome else EndReason.FAILED
        return Transition(
            after, told, {**rewards, "outcome": verdict.outcome}, end, {**details, **verdict._asdict()}
        )

    def _verdict(self, state: ToolState) -> reward.ToolWorldVerdict:
        case = state.case
        tells = sum(len(stage.tells) for stage in case.story.stages)
        content = state.closed != "left"
        return reward.ToolWorldVerdict(
            state.db.mark == case.target.mark and content, len(state.user.told) == tells, not state.broken
        )

    # --- what is known about it ------------------------------------------------------------------

    def gold(self, state: ToolState) -> Message | str:
        if state.current_agent == "user":
            return self._gold_user(state)
        return self._write(state, solver.next_step(state))

    def demonstrate(self, state: ToolState, rng: Random) -> Message | str:
        """Knows the procedure but not the data: mixes customers' things up, forgets to ask for a yes."""
        if state.current_agent == "user":
            return self._gold_user(state)
        return self._write(state, solver.imperfect_step(state, rng))

    def potential(self, state: ToolState) -> float:
        """The share of the goal's cells, facts and calls that are right, less what is wrong."""
        case = state.case
        marks = len(state.user.told) + sum(share >= 1 for share in state.best)
        return reward.progress(case.base, case.goal, state.db, marks, case.marks)

    def admissible(self, state: ToolState) -> Sequence[str]:
        return solver.offers(state)

    def state_key(self, state: ToolState) -> str:
        user = state.user
        plain = (
            state.case.task_id, state.db.mark, user.stage, user.patience, user.consent, user.twisted, user.insisted, user.served,
            user.corrected, user.answered, user.doubts, user.puzzled, user.over, state.calls, state.closed, state.current_agent, state.opened, state.broken, state.best,
            state.pending,
        )  # fmt: skip
        what = (
            repr(plain), *map(_told, user.agreed), _told(user.offered), _listed(user.revealed), _listed(user.told), _listed(user.did),
            _listed(state.verified), _listed(state.done), _listed(state.acted), *map(repr, state.talk), *map(_aside, user.aside),
            _listed(user.priced), _listed(user.paid),
        )  # fmt: skip
        return hashlib.blake2b("\n".join(what).encode(), digest_size=8).hexdigest()

    def _write(self, state: ToolState, step: Any) -> Message | str:
        if step.kind == "call":
            compact = state.case.domain.compact
            return write_call(step.name, step.arguments, compact=compact, thought=step.text)
        return step.text

    def _gold_user(self, state: ToolState) -> Message | str:
        case = state.case
        if not state.opened:
            return case.story.opening
        answer = respond(case.domain, case.story, state.user, state.db, state.pending)
        for name in sorted(answer.user.did - state.user.did - state.acted):
            return Message("assistant", "", (ToolCall(name, {}, "call_0"),))
        return f"{answer.text} {STOP}" if answer.user.over or not answer.user.patience else answer.text
