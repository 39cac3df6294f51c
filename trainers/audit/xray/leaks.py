"""Answers that a prompt or a file gives away: by a marker beside them, or since the whole solution stands there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from turnwise.trainers.audit.xray.core import XTask, quoted
from turnwise.trainers.audit.xray.given_away import (
    answered_before,
    codes_of,
    commented,
    decoded,
    marked_option,
)

_MARKED = re.compile(
    r"(?:\b(?:(?:the|correct|right|final|expected|reference|gold|true|model|sample)[ _-]+)*(?:answers?|solutions?|gold|ground[ _-]?truth|expected(?:[ _-]output)?|"
    r"target|answer[ _-]key|key|result|hint|label|output|spoiler|solution key|correct)\b[\"'*`)\]]*\s*(?:is|are|=|:|->|=>|→|\)|])+\s*|####\s*|\\boxed\{|<answer>|<solution>|<!--\s*|\(ref\.?:?\s*|\[gold\s*[=:]\s*)"
    r"[\"'*`(\[]*(?=(?P<told>[^\n]{1,300}))",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:(?:\d{1,3}[.):]|(?:you|we|one|it|this|that|should|must|will|would|gets?|find|obtain|have|is|are|be|comes?|out|to|equals?|the|an?|answer|result|number|value|just|simply)\b)\s+)+",
    re.IGNORECASE,
)
"""Words with which an answer may begin behind a marker: "you should get", or its number in a key."""
_NUMBER = re.compile(r"^\d{1,3}[.)]\s+")
_NEAR_MARK = re.compile(
    r"\b(?:ref|reference|spoiler|hint|answers?|solutions?|key|gold|expected|target|truth)\b[^\n.?]{0,40}$",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:\s*(?:-->|</answer>|</solution>|\}|\)|\]|[\"'*`]|\.(?=\s|$)|;|,(?=\s)).*$|\s+$)", re.DOTALL
)
_CODE = re.compile(r"[\w.\"'=(){}\[\]:+*/<>-]{2,}")


def told_answers(task: XTask) -> list[str]:
    """Texts behind a marker such as "answer:" in the prompt, at most eight.

    >>> told_answers(XTask("a", "a:1", "What is 2 + 2? (answer: 4)"))
    ['4']
    """
    return _told(task.prompt, 8)


def _told(prompt: str, most: int) -> list[str]:
    found: list[str] = []
    for match in _MARKED.finditer(prompt[:200_000]):
        told = match.group("told").strip()
        numbered = _NUMBER.sub("", told)
        for text in (_TAIL.sub("", numbered, count=1).strip(), told):
            if text and text not in found and not text.endswith("?") and len(found) < most:
                found.append(text)
                break
    return found


def shown(task: XTask) -> str:
    """Say where the right answer of a task in words is shown; "" where it is not."""
    core = task.core
    if not core:
        return ""
    for told in _told(task.prompt, 40):
        if _same(told, core):
            return f"the prompt says {quoted(told, 80)!r} behind a marker, which is the answer"
    if told := _coded(task.prompt, core) or _earlier(task, core) or _otherwise(task.prompt, core):
        return told
    flat, inside = _flat(core), _flat(task.prompt)
    if len(flat) >= 60 and flat in inside:
        return f"the whole answer stands in the prompt: {quoted(core, 100)!r}"
    for path, text in task.visible.items():
        if len(flat) >= 4 and flat in _flat(text):
            return f"the answer stands in {path}: {quoted(core, 80)!r}"
    return ""


def _otherwise(prompt: str, core: str) -> str:
    """Say if a comment, a turn, a mark on an option or a pasted solution gives the answer away."""
    flat = _flat(core)
    if any(_flat(told) == flat for told in commented(prompt)):
        return f"a comment in the prompt is the answer: {quoted(core, 80)!r}"
    if told := answered_before(prompt, core):
        return f"the question is answered in the prompt: {quoted(told, 80)!r}"
    if told := marked_option(prompt, core):
        return f"the right option alone is marked: {quoted(told, 80)!r}"
    if len(solution_lines(core)) >= 2 and shares(core, prompt) == 1.0:
        return f"every line of the solution stands in the prompt: {quoted(core, 80)!r}"
    return ""


def _coded(prompt: str, core: str) -> str:
    """Say if the prompt in code tells the answer behind a marker, or holds it in code behind one.

    A marker is asked for, since a task may be to read or to make such code.
    """
    for how, text in decoded(prompt):
        if any(_same(told, core) for told in _told(text, 40)):
            return f"the prompt tells the answer in {how}: {quoted(core, 60)!r}"
    for how, text in codes_of(core).items():
        if len(text) < 2 or text == core:
            continue
        for match in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", prompt):
            if _NEAR_MARK.search(prompt, max(0, match.start() - 80), match.start()):
                return f"the answer stands in the prompt in {how}: {quoted(text, 60)!r}"
    return ""


def _earlier(task: XTask, core: str) -> str:
    """Say if a message of the assistant in the prompt holds the answer."""
    prompt = task.row.get("prompt")
    wanted = re.compile(rf"(?<!\w){re.escape(_flat(core))}(?!\w)")
    for message in prompt if isinstance(prompt, list) else ():
        said = (
            message.get("content")
            if isinstance(message, dict) and message.get("role") == "assistant"
            else None
        )
        if isinstance(said, str) and wanted.search(_flat(said)):
            return f"a message before the question holds the answer: {quoted(said, 80)!r}"
    return ""


def plain_in_prompt(task: XTask) -> bool:
    """Say if an answer in words, not a number or a choice, stands in the prompt somewhere."""
    core = _flat(task.core)
    return (
        len(core) >= 5
        and not re.fullmatch(r"[\d.,/ %$-]+", core)
        and re.search(rf"(?<!\w){re.escape(core)}(?!\w)", _flat(task.prompt)) is not None
    )


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())


def _same(told: str, core: str) -> bool:
    """Say if what stands behind a marker is the answer, also behind words such as "you should get"."""
    return _begins(told, core) or _begins(_LEAD.sub("", told, count=1) if _LEAD.match(told) else "", core)


def _begins(told: str, core: str) -> bool:
    one, other = (re.sub(r"[^\w.+-]+", " ", _flat(x)).strip(" .") for x in (told, core))
    return bool(other) and (
        one == other or (len(other) >= 1 and one.startswith(other + " ") and len(one) < len(other) + 25)
    )


def solution_lines(text: str) -> set[str]:
    """The lines of a solution that say something."""
    kept = (" ".join(line.split()) for line in text.split("\n"))
    skip = ("#", "import ", "from ", "set -", "cd ", "mkdir", "EOF", "}", "{", "//", "echo Done")
    return {line for line in kept if len(line) >= 6 and not line.startswith(skip) and _CODE.search(line)}


def shares(made: str, text: str) -> float:
    """The share of a solution's lines that stand in a text."""
    lines = solution_lines(made)
    there = {" ".join(line.split()) for line in text.split("\n")}
    whole = " ".join(text.split())
    return sum(line in there or line in whole for line in lines) / len(lines) if lines else 0.0


def marked_in(made: str, texts: Iterator[tuple[str, str]]) -> str:
    """The file in which a short product stands behind a marker; "" where it stands in none."""
    value = made.strip()
    if not value or len(value) > 400:
        return ""
    for path, text in texts:
        for match in _MARKED.finditer(text[:200_000]):
            if _same(_TAIL.sub("", match.group("told").strip(), count=1), value) or _same(
                match.group("told"), value
            ):
                return path
    return ""
