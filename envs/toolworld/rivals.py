"""Service agents that understand nothing: telegrams and tools by their words, and every fact that was seen tried in turn."""

from __future__ import annotations

import itertools
import re
from collections import Counter

from turnwise.envs import baselines, rivals
from turnwise.envs.baselines import Script, ScriptMoment
from turnwise.envs.messages import Message
from turnwise.envs.rivals import Rivals, guessed, is_spoken, of_script, tool_by_words, tool_words, words_of
from turnwise.tools.core import Tool, ToolCall

TELEGRAMS = ("number? name? e-mail? PIN? birthday?", "shall I?", "sure", "done", "sorry")
"""Messages that solved whole tasks by the rules when users understood key words alone (the first audit)."""
_MONEY = re.compile(r"\$\d+(?:\.\d+)?")


def keyword() -> Script:
    """Says telegrams, one after the other, and between them calls the tool that shares most words with what was said."""
    said: Counter[str] = Counter()
    telegrams = itertools.cycle(TELEGRAMS)
    general = rivals.keyword()

    def play(now: ScriptMoment) -> Message | str:
        if is_spoken(now) or not now.env.tools:
            return general(now)
        if now.observation[-1].role == "tool" or now.turn % 2 == 0:
            return next(telegrams)
        return tool_by_words(now, said)

    return play


def scan() -> Script:
    """Asks for all facts, calls each reading tool with what it heard, offers the request in the user's own words, acts, reports.

    It tries the tools in the order of the words that they share with all that the user said.
    """
    heard: list[str] = []
    called: Counter[str] = Counter()
    general = rivals.scan()

    def play(now: ScriptMoment) -> Message | str:
        if is_spoken(now) or not now.env.tools:
            return general(now)
        last = now.observation[-1]
        heard.append(last.content)
        if now.turn == 0:
            return (
                "Could you tell me your name, your number, your e-mail address, your PIN and your birthday?"
            )
        if last.role == "tool" and now.turn % 4 == 3:
            return f"Done. It costs {(_MONEY.findall(last.content) or ['nothing'])[0]}."
        if now.turn % 4 == 1:
            return f"Shall I do this for you: {heard[0][:300]}"
        tool = _next(now, " ".join(heard[-6:]), called)
        called[tool.spec.name] += 1
        arguments = guessed(tool, " ".join(reversed(heard[-6:])))
        return Message("assistant", "", (ToolCall(tool.spec.name, arguments, f"call_{now.turn}"),))

    return play


def _next(now: ScriptMoment, text: str, called: Counter[str]) -> Tool:
    said = words_of(text)
    return min(
        now.env.tools, key=lambda one: (called[one.spec.name], -len(tool_words(one) & said), one.spec.name)
    )


RIVALS = Rivals(
    keyword,
    scan,
    {
        "random": of_script(baselines.random),
        "scan": scan,
        "demonstrator": of_script(baselines.demonstrator),
    },
)
