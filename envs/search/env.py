"""``turnwise/Search-v0``: find the answer to a question, or that there is none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar, Literal

from turnwise.envs.core import AgentEnv, End, Kind, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.search import acts, answers
from turnwise.envs.search.answers import UNKNOWN
from turnwise.envs.search.knobs import draw_task, knobs_of
from turnwise.envs.search.rewards import PARTS, check_parts, facts_at_answer, final_rewards, judgement
from turnwise.envs.search.state import (
    SearchState,
    Told,
    asked_about,
    candidates,
    entities_named,
    facts_of,
    passage_at,
    quest_of,
)
from turnwise.tasks.core import Json, Split, Task

_SYSTEM = {
    "compact": "search[x] or answer[x] .",
    "tags": (
        "Answer the question. Think between <think> and </think>. To look something up, write <search> query "
        "</search>; what is found comes back between <information> and </information>. When you know the answer, "
        "write it between <answer> and </answer>, as short as possible; write unknown if no passage tells it."
    ),
    "full": (
        "Answer the question by searching a library about a world that you do not know. Each turn, write one action: "
        "search[words], {semantic}filter[words], count[words], open[number or title], find[words] in the open "
        "passage, cite[number] what your answer rests on, judge[yes or no] whether the latest results help, or "
        "answer[text], which ends the episode. Pages may be out of date, and names may be shared: look at the "
        "dates. Answer as short as possible, and answer[unknown] if no page tells it."
    ),
}
_HEED = 0.35  # how often the hasty reader looks at which fact was asked for
_MANY = 12  # answers and queries that `admissible` lists of each kind


class SearchEnv(AgentEnv[SearchState]):
    """Search, read, cite and answer, over generated worlds, corpus files or a retrieval server.

    Args:
        outcome: what the score is: exact match, F1 or contained match.
        parts: further parts of the ledger with their weights (:mod:`turnwise.envs.search.rewards`).
        server: address of a server that speaks Search-R1's ``/retrieve``; "" searches the task's own library.
        shaping: weight of the potential, the share of the gold passages that were read.
    """

    tools = acts.TOOLS
    turn_limit = 20
    floor: ClassVar[float] = 0.2
    blocking: ClassVar[bool] = False
    observation_limit = 12_000
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        f"{passages}_passages": {"passages": passages, "worlds": 1, "hops": [1, 3]}
        for passages in (1_000, 100_000)
    }

    def __init__(
        self, *, outcome: Literal["em", "f1", "sub_em"] = "em", parts: Mapping[str, float] | None = None,
        server: str = "", shaping: float = 0.0, render_mode: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.outcome: Literal["em", "f1", "sub_em"] = outcome
        self.parts = check_parts(parts or {})
        self.server = server
        self.ledger: Mapping[str, Kind] = {**self.ledger, **{name: PARTS[name] for name in self.parts}}
        if server:
            self.blocking = True  # pyright: ignore[reportAttributeAccessIssue] (of this instance alone)

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, knobs_of(knobs))

    def initial(self, task: Task) -> tuple[SearchState, Messages]:
        quest = quest_of(task, self.server)
        semantic = "semantic_search[text], " if quest.layout.semantic else ""
        system = _SYSTEM[quest.layout.pages].format(semantic=semantic)
        return SearchState(quest), Messages((Message("system", system), Message("user", task.prompt)))

    def transition(self, state: SearchState, action: Message) -> Transition[SearchState]:
        named = entities_named(action.content, state.quest.question)
        if named - set(state.named):
            state = state._replace(named=tuple(sorted({*state.named, *named})))
        call = acts.read_call(action)
        if call.name == "answer":
            return self._answered(state, acts.answer_text(call))
        done = acts.perform(state, call)
        return Transition(done.state, done.text, self._step_rewards(state, done))

    def refused(self, state: SearchState, action: Message, why: str) -> Transition[SearchState]:
        """Bad actions are remembered: some parts of the ledger ask for well-formed episodes."""
        return Transition(state._replace(malformed=state.malformed + 1), why)

    def gold(self, state: SearchState) -> str:
        """Find and read every gold passage, cite it if that is paid for, and answer."""
        question, cite = state.quest.question, "citations" in self.parts
        compact = state.quest.layout.pages == "compact"
        verb = "semantic_search" if state.quest.layout.semantic else "search"
        for at, position in enumerate(question.evidence):
            if position in state.seen:
                continue
            query = question.queries[min(at, len(question.queries) - 1)]
            if state.query != f"{verb}: {query}":
                return _written(verb, query, compact)
            return _written("open", str(position), compact)
        if not question.evidence and not state.query:
            return _written(verb, question.queries[0] if question.queries else question.text, compact)
        if cite:
            for position in question.evidence:
                if position not in state.cited:
                    return _written("cite", str(position), compact)
        if cite and (missing := [e[0] for i, e in enumerate(question.entities) if i not in state.named]):
            return f"{', '.join(missing)}\n{_written('answer', question.answers[0], compact)}"
        return _written("answer", question.answers[0], compact)

    def demonstrate(self, state: SearchState, rng: Random) -> str:
        """A hasty reader: looks up what the question names, takes any name off the first page, and goes on or
        answers with it. On compact pages it quotes the fact first, knows how many steps it takes, and heeds one
        time in three which of the facts on a page was asked for."""
        question = state.quest.question
        compact = state.quest.layout.pages == "compact"
        if not state.query:
            return _written("search", rng.choice(asked_about(question.text, compact)), compact)
        if not state.results:
            return _written("answer", UNKNOWN, compact)
        if compact:
            relation, value = _fact_taken(state, rng)
            verb = "search" if state.searches < question.hops else "answer"
            return f"{relation} {value} \n{_written(verb, value, compact)}"
        if state.opened < 0 and state.quest.layout.pages == "full":
            best = state.shown[0] if rng.random() < 0.7 else rng.choice(state.shown)
            return _written("open", str(best), compact)
        names = candidates(state) or [UNKNOWN]
        again = state.searches < question.hops and rng.random() < 0.7
        return _written("search" if again else "answer", rng.choice(names), compact)

    def potential(self, state: SearchState) -> float:
        """The share of the gold passages that were read, as if the answer were one more."""
        evidence = state.quest.question.evidence
        return len(set(evidence) & set(state.seen)) / (len(evidence) + 1)

    def admissible(self, state: SearchState) -> Sequence[str]:
        compact = state.quest.layout.pages == "compact"
        names = candidates(state) if state.query or state.opened >= 0 else []
        asked = asked_about(state.quest.question.text, compact)
        found = [("search", name) for name in dict.fromkeys((*asked, *names[:_MANY]))]
        if state.quest.layout.pages == "full":
            found += [("open", str(position)) for position in state.shown]
        found += [("answer", name) for name in dict.fromkeys((*names[:_MANY], UNKNOWN))]
        return [_written(verb, name, compact) for verb, name in found]

    def state_key(self, state: SearchState) -> str:
        where = (
            state.quest.task.id,
            state.query,
            state.first,
            state.opened,
            state.seen,
            state.cited,
            state.unjudged,
        )
        return hashlib.blake2b(repr(where).encode(), digest_size=8).hexdigest()

    def _step_rewards(self, before: SearchState, done: acts.Done) -> dict[str, float]:
        paid: dict[str, float] = {}
        if "search_cost" in self.parts:
            paid["search_cost"] = -self.parts["search_cost"] * (done.state.searches - before.searches)
        if "judge" in self.parts and done.judged is not None:
            paid["judge"] = self.parts["judge"] * judgement(before, done.judged)
        return paid

    def _answered(self, state: SearchState, text: str) -> Transition[SearchState]:
        question = state.quest.question
        verdict = answers.judge(text, question.answers, question.rivals)
        score: float = getattr(verdict, self.outcome)
        facts = facts_at_answer(state, verdict, right=score == 1.0)
        rewards = {"outcome": score, **final_rewards(self.parts, facts)}
        details: dict[str, Json] = {
            **verdict._asdict(),
            "form": question.form,
            "abstained": answers.abstains(text),
            "answerable": question.answerable,
            "evidence_recall": facts.recall,
            "entities": facts.entities,
            "rubric": facts.rubric,
            "searches": facts.searches,
            "malformed": facts.malformed,
        }
        return Transition(state, "Noted.", rewards, End.SOLVED if score == 1.0 else End.FAILED, details)


def _fact_taken(state: SearchState, rng: Random) -> Told:
    """Any fact of the page; at times the reader heeds which one was asked for."""
    facts = facts_of(passage_at(state, state.results[0]))
    asked = set(sum(state.quest.question.entities[state.searches : state.searches + 1], ()))
    heeded = [fact for fact in facts if fact.value in asked] if rng.random() < _HEED else []
    return rng.choice(heeded or facts)


def _written(verb: str, argument: str, compact: bool) -> str:
    # With a space before the bracket a word is the same token as on a page (agents/policies/small.py).
    return f"{verb}[{argument} ]" if compact else f"{verb}[{argument}]"
