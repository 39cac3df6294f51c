"""``turnwise/Simulated-v0``: questions whose searches are answered by an agent, from what it remembers (SSRL)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import ClassVar, NamedTuple

from turnwise.envs.core import Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import env_class, get_suite
from turnwise.envs.roles.around import AroundEnv, Moment, act_of, suite_around, words_of
from turnwise.envs.search.actions import read_call, write
from turnwise.envs.search.answers import UNKNOWN
from turnwise.envs.search.env import SearchEnv
from turnwise.envs.search.knobs import knobs_of
from turnwise.envs.search.state import SearchState
from turnwise.errors import EnvError
from turnwise.tasks.core import Suite, Task, digest
from turnwise.tools.core import Tool, ToolCall, ToolError
from turnwise.tools.thoughts import without_thoughts

ENV = "turnwise/Simulated-v0"
AGENT, ENGINE = "agent", "engine"
OFFERED = ("search", "answer")
"""The tools that are left; all others look at passages, of which there are none."""
LONGEST = 2000
"""Characters of a result that the agent reads."""
RULES = "You are a search engine without an index. Write what is known about the query, in a few sentences."
RECALLS = 0.7
"""The chance that the demonstrator answers with what a result says."""


class SimulatedState(NamedTuple):
    """The moment within, who moves, the query that waits for a result, and the results so far."""

    moment: Moment
    rules: str
    mover: str = AGENT
    query: str = ""
    results: tuple[str, ...] = ()


class SimulatedEnv(AroundEnv[SimulatedState]):
    """An agent searches and answers; an engine writes every result, and the world within judges the answer alone.

    SSRL (Fan et al. 2025): a policy writes the results of its own searches, whose tokens are not learned: ``rollout.opponents: {engine: self}``. The
    suite within has the questions, and where the results come from a library instead, which is how what was learned is tested. Where the pages of
    that suite are tags, a result stands between <information> and </information>.
    """

    agents = (AGENT, ENGINE)
    registered: ClassVar[str] = ENV
    default_suite: ClassVar[str] = "search/quick"
    max_trivial_score: ClassVar[float] = 1.0
    one_outcome: ClassVar[bool] = True
    copies: ClassVar[str] = "What must be said is in the prompts of the world within, as far as it is there."

    def initial(self, task: Task) -> tuple[SimulatedState, Messages]:
        moment, seen, rules = self.enter(task, 0)
        return SimulatedState(moment, rules), seen

    def current_agent(self, state: SimulatedState) -> str:
        return state.mover

    def system_for(self, agent: str) -> str:
        return self.rules if agent == AGENT else RULES

    def tools_for(self, agent: str) -> tuple[Tool, ...]:
        world = self.here
        if agent == ENGINE or world is None:
            return ()
        return tuple(one for one in world.tools_for("agent") if one.spec.name in OFFERED)

    def transition(self, state: SimulatedState, action: Message) -> Transition[SimulatedState]:
        if state.mover == ENGINE:
            return self._found(state, action)
        call = read_call(action, self.tools_for(AGENT))
        if call.name == "search":
            query = _query(call)
            return Transition(state._replace(mover=ENGINE, query=query), f"Query : {query}")
        done = self.played(state.moment, action).or_refuse()
        after = state._replace(moment=done.moment)
        return Transition(after, done.seen, done.paid, done.end, done.details, {ENGINE: done.paid})

    def _found(self, state: SimulatedState, action: Message) -> Transition[SimulatedState]:
        """Hand over what the engine writes."""
        text = " ".join(without_thoughts(act_of(action)).split())[:LONGEST] or "nothing ."
        tagged = _inner(self.world(state.moment).state).quest.layout.pages == "tags"
        shown = f"<information>\n{text}\n</information>" if tagged else text
        after = state._replace(mover=AGENT, query="", results=(*state.results, text))
        return Transition(after, shown)

    def gold(self, state: SimulatedState) -> str:
        """Search once for what the world's own solution looks up, then answer; the engine shows what that world finds."""
        world = self.world(state.moment)
        inner = _inner(world.state)
        if state.mover == ENGINE:
            return self._true_result(state)
        if not state.results and (queries := inner.question.queries or (inner.question.text,)):
            return write("search", queries[0], _compact(inner))
        return write("answer", inner.question.answers[0], _compact(inner))

    def _true_result(self, state: SimulatedState) -> str:
        compact = _compact(_inner(self.world(state.moment).state))
        seen = words_of(
            self.played(state.moment, Message("assistant", write("search", state.query, compact))).seen
        )
        return seen.removeprefix("<information>\n").removesuffix("\n</information>").strip() or "nothing ."

    def demonstrate(self, state: SimulatedState, rng: Random) -> str:
        """The agent answers with what a result says as often as not, else that it does not know; the engine as gold does."""
        inner = _inner(self.world(state.moment).state)
        if state.mover == ENGINE or not state.results:
            return self.gold(state)
        told = any(answer in result for answer in inner.question.answers for result in state.results)
        return (
            self.gold(state) if told and rng.random() < RECALLS else write("answer", UNKNOWN, _compact(inner))
        )

    def admissible(self, state: SimulatedState) -> Sequence[str]:
        if state.mover == ENGINE:
            return ("nothing .",)
        compact = _compact(_inner(self.world(state.moment).state))
        return (write("search", "it", compact), write("answer", UNKNOWN, compact))

    def state_key(self, state: SimulatedState) -> str:
        return digest(self.key(state.moment), state.mover, state.query, [*state.results])


def _inner(state: object) -> SearchState:
    """The state within.

    Raises:
        EnvError: it is of another world.
    """
    if not isinstance(state, SearchState):
        raise EnvError("The world within is no search.", "Name a suite of turnwise/Search-v0.")
    return state


def _compact(state: SearchState) -> bool:
    return state.quest.layout.pages == "compact"


def _query(call: ToolCall) -> str:
    """The words of a search.

    Raises:
        ToolError: there are none.
    """
    query = " ".join(str(call.arguments.get("query", "")).split())[:LONGEST]
    if not query:
        raise ToolError("A search needs words to look for.")
    return query


def simulated_suite(path: str) -> Suite:
    """The suite that ``simulated:SUITE`` is.

    >>> simulated_suite("search/quick").knobs
    {'suite': 'search/quick'}

    Raises:
        EnvError: the suite within asks no questions, or its pages offer more than a search.
    """
    inner = get_suite(path)
    if not issubclass(env_class(inner.env), SearchEnv) or knobs_of(inner.knobs).pages == "full":
        raise EnvError(
            f"simulated:{path} has no searches that an agent could answer, or other tools beside them.",
            "Name a suite of turnwise/Search-v0 whose pages are compact or tags: search/quick, searchqa:PATH.",
        )
    return suite_around("simulated", ENV, path, f"Questions of {path}, whose searches an agent answers.")
