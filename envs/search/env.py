"""``turnwise/Search-v0``: find the answer to a question, or that there is none."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar, Literal

from turnwise.envs.core import AgentEnv, EndReason, Guard, RewardKind, Snapshot, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.planted import nonce
from turnwise.envs.search import actions, answers, solver
from turnwise.envs.search.knobs import knobs_of
from turnwise.envs.search.render import noted, system_message
from turnwise.envs.search.reward import PARTS, check_parts, facts_at_answer, final_rewards, judgement
from turnwise.envs.search.state import Quest, SearchState, entities_named, quest_of
from turnwise.envs.search.tasks import draw_task
from turnwise.tasks.core import Json, Split, Task


class SearchEnv(AgentEnv[SearchState]):
    """Search, read, cite and answer, over generated worlds, corpus files or a retrieval server.

    Args:
        outcome: what the score is: exact match, F1 or contained match.
        parts: further reward components with their weights (:mod:`turnwise.envs.search.reward`).
        server: address of a server that speaks Search-R1's ``/retrieve``; "" searches the task's own library.
        shaping: weight of the potential, the share of the gold passages that were read.
    """

    tools = actions.TOOLS
    turn_limit = 20
    calls_per_turn: ClassVar[int | None] = 1
    max_trivial_score: ClassVar[float] = 0.2
    blocking: ClassVar[bool] = False
    observation_limit = 12_000
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        f"{passages}_passages": {"passages": passages, "worlds": 1, "hops": [1, 3]}
        for passages in (1_000, 100_000)
    }

    guarded_options: ClassVar[Mapping[str, Guard]] = {
        "server": Guard("sends what the agent searches for to an address")
    }
    guarded_tasks: ClassVar[Mapping[str, Guard]] = {
        "library.path": Guard("names a file that is read and searched")
    }

    def __init__(
        self, *, outcome: Literal["em", "f1", "sub_em"] = "em", parts: Mapping[str, float] | None = None,
        server: str = "", shaping: float = 0.0, render_mode: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.outcome: Literal["em", "f1", "sub_em"] = outcome
        self.parts = check_parts(parts or {})
        self.server = server
        self.reward_components: Mapping[str, RewardKind] = {
            **self.reward_components,
            **{name: PARTS[name] for name in self.parts},
        }
        if server:
            self.blocking = True  # pyright: ignore[reportAttributeAccessIssue] (of this instance alone)

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, knobs_of(knobs))

    @classmethod
    def impossible(cls, task: Task, rng: Random) -> Task:
        """The same question, whose only right answer is a word that stands nowhere."""
        gold = {**task.gold, "answers": [nonce(rng)], "rivals": []}
        return Task(task.env, task.prompt, task.options, gold)

    def initial(self, task: Task) -> tuple[SearchState, Messages]:
        quest = self._take(task)
        system = system_message(quest)
        return SearchState(quest), Messages((Message("system", system), Message("user", task.prompt)))

    def restore(self, snapshot: Snapshot[SearchState]) -> None:
        self._take(snapshot.task)
        super().restore(snapshot)

    def _take(self, task: Task) -> Quest:
        """Return a task's quest; from here on the tools are those that its library has."""
        quest = quest_of(task, self.server)
        self.tools = actions.offered(quest.layout)
        return quest

    def transition(self, state: SearchState, action: Message) -> Transition[SearchState]:
        named = entities_named(action.content, state.question)
        if named - set(state.named):
            state = state._replace(named=tuple(sorted({*state.named, *named})))
        call = actions.read_call(action, self.tools)
        if call.name == "answer":
            return self._answered(state, actions.answer_text(call))
        done = actions.perform(state, call)
        return Transition(done.state, done.text, self._step_rewards(state, done))

    def refused(self, state: SearchState, action: Message, why: str) -> Transition[SearchState]:
        """Bad actions are remembered: some reward components ask for well-formed episodes."""
        return Transition(state._replace(malformed=state.malformed + 1), why)

    def gold(self, state: SearchState) -> str:
        """Find and read every gold passage, cite it if that is paid for, and answer."""
        return solver.gold(state, cite="citations" in self.parts)

    def needs(self, state: SearchState) -> Sequence[str]:
        return solver.needed(state)

    def demonstrate(self, state: SearchState, rng: Random) -> str:
        """Looks up what the question names, takes any name off the first page, and goes on or answers with it."""
        return solver.demonstrate(state, rng)

    def potential(self, state: SearchState) -> float:
        """The share of the gold passages that were read, as if the answer were one more; of answered questions it is all."""
        evidence = state.question.evidence
        read = len(set(evidence) & set(state.seen)) / (len(evidence) + 1)
        return (state.served + read) / len(state.quest.questions)

    def admissible(self, state: SearchState) -> Sequence[str]:
        return actions.possible(state)

    def state_key(self, state: SearchState) -> str:
        where = (
            state.quest.task.id,
            state.query,
            state.first,
            state.opened,
            state.seen,
            state.cited,
            state.unjudged,
            *((state.served,) if len(state.quest.questions) > 1 else ()),
        )
        return hashlib.blake2b(repr(where).encode(), digest_size=8).hexdigest()

    def _step_rewards(self, before: SearchState, done: actions.Done) -> dict[str, float]:
        paid: dict[str, float] = {}
        if "search_cost" in self.parts:
            paid["search_cost"] = -self.parts["search_cost"] * (done.state.searches - before.searches)
        if "judge" in self.parts and done.judged is not None:
            paid["judge"] = self.parts["judge"] * judgement(before, done.judged)
        return paid

    def _answered(self, state: SearchState, text: str) -> Transition[SearchState]:
        question = state.question
        if (
            state.quest.task.options["library"]["type"] == "world"
        ):  # published questions keep their exact match
            text = answers.bare(text, question.text)
        if state.quest.task.options.get("judged") == "squad":
            verdict = answers.squad_judge(text, question.answers)
        else:
            verdict = answers.judge(text, question.answers, question.rivals)
        score: float = getattr(verdict, self.outcome)
        facts = facts_at_answer(state, verdict, right=score == 1.0)
        rewards = final_rewards(self.parts, facts)
        details: dict[str, Json] = {
            **verdict._asdict(),
            "form": question.form,
            "answer": text,
            "abstained": answers.abstains(text),
            "answerable": question.answerable,
            "evidence_recall": facts.recall,
            "entities": facts.entities,
            "rubric": facts.rubric,
            "searches": facts.searches,
            "malformed": facts.malformed,
            "read": list(state.seen),
            "cited": list(state.cited),
            "evidence": list(question.evidence),
        }
        if state.served + 1 < len(state.quest.questions):
            told = noted(state, right=score == 1.0)
            return Transition(state.answered(score), told, rewards, details=details)
        mean = (state.scored + score) / len(state.quest.questions)
        end = EndReason.SOLVED if mean == 1.0 else EndReason.FAILED
        return Transition(state, "Noted.", {"outcome": mean, **rewards}, end, details)
