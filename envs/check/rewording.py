"""Gold in other words: a file of rewordings applied to the gold policy's messages.

Each line of the file is an object with ``gold``, one of gold's own wordings with names in braces for what changes, and
``template``, another way to say it with the same names or fewer; ``message``, where given, says which message it is, and
``domain`` where it is said: in tasks with another option of this name the words would mean something else ("Done." is
"The passenger's name is corrected." in one domain only).
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from turnwise.envs import baselines
from turnwise.envs.baselines import Script, ScriptMoment
from turnwise.envs.messages import Message
from turnwise.errors import TurnwiseError
from turnwise.texts import read_json_lines

_SLOT = re.compile(r"\{(\w+)\}")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class RewordedMessage(NamedTuple):
    """A way that gold says something, and others to say the same."""

    pattern: re.Pattern[str]
    others: tuple[str, ...]
    domain: str = ""  # the only one where it is said; "" is everywhere


class Rewording:
    """Rewordings by gold's wordings. ``said`` and ``reworded`` count the messages of words that were played."""

    def __init__(self, messages: list[RewordedMessage]) -> None:
        self.messages = messages
        self.said = 0
        self.reworded = 0

    def script(self) -> Script:
        """Gold, whose words are said otherwise wherever there is a rewording; calls stay as they are."""

        def play(now: ScriptMoment) -> Message | str:
            action = baselines.gold(now)
            text = action if isinstance(action, str) else action.content
            if not text or (isinstance(action, Message) and action.tool_calls):
                return action
            self.said += 1
            other = self._other(text, now)
            self.reworded += other is not None
            return action if other is None else other

        return play

    def _other(self, text: str, now: ScriptMoment) -> str | None:
        """The whole message in other words, or each of its sentences that has a rewording; None where nothing has."""
        whole = self._one(text, now)
        if whole is not None:
            return whole
        sentences = _SENTENCE.split(text)
        others = [self._one(one, now) for one in sentences]
        if not any(others):
            return None
        return " ".join(other or one for other, one in zip(others, sentences, strict=True))

    def _one(self, text: str, now: ScriptMoment) -> str | None:
        here = now.env.task.options.get("domain", "")
        for one in self.messages:
            if one.domain in ("", here) and (found := one.pattern.fullmatch(text)):
                values = found.groupdict()
                fitting = [other for other in one.others if set(_SLOT.findall(other)) <= values.keys()]
                if fitting:
                    return now.rng.choice(fitting).format(**values)
        return None


_FORM = 'Write lines {"gold": "…", "template": "…"}.'


def load_rewordings(path: Path) -> Rewording:
    """The rewordings of a file.

    Raises:
        TurnwiseError: it cannot be read, or a line lacks ``gold`` or ``template``.
    """
    others: dict[tuple[str, str], list[str]] = defaultdict(list)
    try:
        for _, row in read_json_lines(path, _FORM):
            others[row["gold"], row.get("domain", "")].append(row["template"])
    except (KeyError, TypeError, AttributeError) as error:
        raise TurnwiseError(f"{path} is no file of rewordings: {error!r}.", _FORM) from None
    # Those with most fixed text first, so that a wording with few words does not take another's place.
    ordered = sorted(others.items(), key=lambda item: -len(_SLOT.sub("", item[0][0])))
    return Rewording(
        [RewordedMessage(_pattern(gold), tuple(said), domain) for (gold, domain), said in ordered]
    )


def _pattern(gold: str) -> re.Pattern[str]:
    """A wording in which each name in braces stands for some text, the same text wherever it stands again."""
    parts: list[str] = []
    seen: set[str] = set()
    for place, part in enumerate(_SLOT.split(gold)):
        if place % 2 == 0:
            parts.append(re.escape(part))
        else:
            parts.append(f"(?P={part})" if part in seen else f"(?P<{part}>.+?)")
            seen.add(part)
    return re.compile("".join(parts), re.DOTALL)
