"""Choice of the next action: gold, and an imperfect scripted policy."""

from __future__ import annotations

from random import Random

from turnwise.envs.search.actions import write
from turnwise.envs.search.answers import UNKNOWN
from turnwise.envs.search.inquiry import answer_line, question_line
from turnwise.envs.search.render import ToldFact, asked_about, candidates, facts_of
from turnwise.envs.search.state import SearchState, passage_at

_REMEMBERS = 0.9  # how often `demonstrate` knows what an earlier answer was
_HEED = 0.35  # how often `demonstrate` looks at which fact was asked for


def gold(state: SearchState, *, cite: bool = False) -> str:
    """Find and read every gold passage, ``cite`` it where that is paid for, and answer."""
    question = state.question
    compact = state.quest.layout.pages == "compact"
    verb = "semantic_search" if state.quest.layout.semantic else "search"
    for at, position in enumerate(question.evidence):
        if position in state.seen:
            continue
        query = question.queries[min(at, len(question.queries) - 1)]
        if state.query != f"{verb}: {query}":
            return write(verb, query, compact)
        return write("open", str(position), compact)
    if not question.evidence and not state.query:
        return write(verb, question.queries[0] if question.queries else question.text, compact)
    if cite:
        for position in question.evidence:
            if position not in state.cited:
                return write("cite", str(position), compact)
    if cite and (missing := [e[0] for i, e in enumerate(question.entities) if i not in state.named]):
        return f"{', '.join(missing)}\n{write('answer', question.answers[0], compact)}"
    return write("answer", question.answers[0], compact)


def needed(state: SearchState) -> tuple[str, ...]:
    """The lines that say all that the next action of a solution rests on, but for what always stands beside the task."""
    questions = state.quest.questions
    if len(questions) == 1 or state.served >= len(questions):
        return ()
    question = state.question
    lines = [answer_line(number, questions[number]) for number in question.refers]
    lines.append(question_line(state.served, len(questions), question.text) if state.served else "")
    unread = [position for position in question.evidence if position not in state.seen]
    read = question.evidence[: question.evidence.index(unread[0])] if unread else question.evidence
    lines += [passage_at(state, position).text.splitlines()[-1] for position in read]
    if unread and state.results:
        lines.append(f"[{unread[0]}] " if unread[0] in state.shown else "")
    return tuple(filter(None, lines))


def demonstrate(state: SearchState, rng: Random) -> str:
    """An imperfect scripted policy: looks up what the question names, takes any name off the first page, and goes on
    or answers with it. On compact pages it quotes the fact first, knows how many steps it takes, and heeds one time
    in three which of the facts on a page was asked for."""
    question = state.question
    compact = state.quest.layout.pages == "compact"
    if question.refers and rng.random() < _REMEMBERS:
        return gold(state)
    if not state.query:
        return write("search", rng.choice(asked_about(question.text, compact)), compact)
    if not state.results:
        return write("answer", UNKNOWN, compact)
    if compact:
        relation, value = _fact_taken(state, rng)
        verb = "search" if state.searches < question.hops else "answer"
        return f"{relation} {value} \n{write(verb, value, compact)}"
    if state.opened < 0 and state.quest.layout.pages == "full":
        best = state.shown[0] if rng.random() < 0.7 else rng.choice(state.shown)
        return write("open", str(best), compact)
    names = candidates(state) or [UNKNOWN]
    again = state.searches < question.hops and rng.random() < 0.7
    return write("search" if again else "answer", rng.choice(names), compact)


def _fact_taken(state: SearchState, rng: Random) -> ToldFact:
    """Any fact of the page; at times the reader heeds which one was asked for."""
    facts = facts_of(passage_at(state, state.results[0]))
    asked = set(sum(state.question.entities[state.searches : state.searches + 1], ()))
    heeded = [fact for fact in facts if fact.value in asked] if rng.random() < _HEED else []
    return rng.choice(heeded or facts)
