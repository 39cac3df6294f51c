"""Searchers that understand nothing: they look up what a question names and answer with what they see.

Both read only what is shown. ``keyword`` answers with a name off the first page. ``scan`` looks up everything that the
question names, reads what comes first, and answers with the name, number or year that it met most often and that is
of the kind that the question asks for.
"""

from __future__ import annotations

import re
from collections import Counter

from turnwise.envs import baselines
from turnwise.envs.baselines import Script, ScriptMoment
from turnwise.envs.rivals import Rivals, of_script
from turnwise.envs.search.actions import write
from turnwise.envs.search.answers import UNKNOWN
from turnwise.envs.search.render import asked_about, candidates

_YEAR = re.compile(r"\b(year|when)\b", re.IGNORECASE)
_MANY = re.compile(r"\b(how many|population|number of|count)\b", re.IGNORECASE)


def keyword() -> Script:
    """Looks up the first name of the question, and answers with the first other name that it sees."""

    def play(now: ScriptMoment) -> str:
        compact, asked = _asked(now)
        if not now.turn:
            return write("search", asked[0], compact)
        seen = [name for name in candidates(now.env.state) if name not in asked]
        return write("answer", seen[0] if seen else UNKNOWN, compact)

    return play


def scan() -> Script:
    """Looks up every name of the question and the question itself, reads, and answers with what it met most often."""
    met: Counter[str] = Counter()
    opened: set[int] = set()
    looked: set[str] = set()

    def play(now: ScriptMoment) -> str:
        compact, asked = _asked(now)
        state, question = now.env.state, now.env.task.prompt
        if now.turn:
            met.update(name for name in candidates(state) if name not in asked)
        left = now.env.task.options["turn_limit"] - now.turn
        if left > 1 and state.quest.layout.pages == "full":
            new = [position for position in state.shown if position not in opened]
            if new and len(opened) < 3 * len(looked):
                opened.add(new[0])
                return write("open", str(new[0]), compact)
        queries = [one for one in (*asked, question) if one not in looked]
        if left > 1 and queries:
            looked.add(queries[0])
            return write("search", queries[0], compact)
        kind = _YEAR.search(question) or _MANY.search(question)
        fitting = [name for name, _ in met.most_common() if bool(kind) == name.replace(",", "").isdecimal()]
        return write("answer", fitting[0] if fitting else UNKNOWN, compact)

    return play


def _asked(now: ScriptMoment) -> tuple[bool, list[str]]:
    compact = now.env.state.quest.layout.pages == "compact"
    return compact, asked_about(now.env.task.prompt, compact)


RIVALS = Rivals(
    keyword, scan, {"random": of_script(baselines.random), "demonstrator": of_script(baselines.demonstrator)}
)
