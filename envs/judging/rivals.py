"""Judges that understand nothing: words that attempt and task share, the longest, the first; and the ladder of ever surer ones."""

from __future__ import annotations

import re

from turnwise.envs import baselines
from turnwise.envs.baselines import Script, ScriptMoment
from turnwise.envs.judging.drawing import words
from turnwise.envs.rivals import Rivals, of_script

_SIDES = re.compile(r"^([A-H]) :$", re.MULTILINE)


def _sides(text: str) -> list[str]:
    """The attempts that are shown beside each other; the text itself where there is one."""
    shown = text.rpartition("\n\n")[0]  # without the question
    return _SIDES.split(shown)[2::2] or [shown]


def _answer(now: ScriptMoment, scores: list[float]) -> str:
    """The answer of whoever scores attempts so: the best of several, or yes where the last words of one are told again."""
    ask = now.env.task.options["ask"]
    if ask in ("pair", "strength"):
        better = scores[0] >= scores[1]
        return f"answer: {('A' if better else 'B') if ask == 'pair' else (3 if better else -3)}"
    if ask == "rank":
        return "answer: " + " ".join(str(sorted(scores).index(score)) for score in scores)
    if ask in ("verdict", "step", "score"):
        yes = scores[0] > 0
        return f"answer: {int(yes) if ask == 'score' else 'yes' if yes else 'no'}"
    if ask == "first":
        return f"answer: {int(scores[0])}"
    return f"answer: {_sides(now.env.task.prompt)[-1].strip().rpartition(chr(10))[2]}"  # the last line that is shown


def keyword() -> Script:
    """Counts the words of the last act that the task has too."""

    def play(now: ScriptMoment) -> str:
        scores: list[float] = []
        for side in _sides(now.env.task.prompt):
            acts = re.findall(r"^\d+ > (.*)$", side, re.MULTILINE)
            wanted = set(words(now.env.task.prompt.partition("\n")[0]))
            last = words(acts[-1])[1:] if acts else []
            scores.append(float(len(wanted & set(last))))
        return _answer(now, scores)

    return play


def longest(now: ScriptMoment) -> str:
    """Takes the longest attempt for the best, and long ones for solved."""
    sides = _sides(now.env.task.prompt)
    return _answer(now, [float(len(side)) - (600 if len(sides) == 1 else 0) for side in sides])


RIVALS = Rivals(
    keyword=keyword,
    scan=of_script(longest),
    ladder={"random": of_script(baselines.random), "demonstrator": of_script(baselines.demonstrator)},
)
