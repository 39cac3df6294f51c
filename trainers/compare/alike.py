"""Only like is compared with like: what differs in how two candidates were played is said, and refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json
from turnwise.trainers.compare.candidates import Candidate, Contender, Measure

_WORDS = {
    "episode_s": "limit of an episode",
    "episode_tokens": "tokens of an episode",
    "max_tokens": "tokens of a message",
}
_MOST = 6


class UnlikeError(TurnwiseError):
    """Error raised when the candidates that were named are not comparable."""


def refuse(problems: Sequence[str]) -> UnlikeError:
    """One error that names every difference."""
    shown = "; ".join(problems[:_MOST]) + ("; …" if len(problems) > _MOST else "")
    return UnlikeError(
        f"Unlike is not compared with unlike: {shown}.",
        "Evaluate both alike, or say it aloud with --allow-unlike (allow_unlike=True).",
    )


def no_measure(base: Contender, other: Contender) -> str:
    """Why two contenders share nothing that could be compared."""

    def played(side: Contender) -> str:
        return ", ".join(map(str, side.measures)) or "nothing that all of its runs share"

    return f"{base.label} was played on {played(base)}, {other.label} on {played(other)}"


def played_otherwise(measure: Measure, contenders: Sequence[Contender]) -> list[str]:
    """List, in words, how members were played otherwise than the first one."""
    members = [(side, evaluation) for side in contenders for evaluation in side.evaluations(measure)]
    if not members:
        return []
    base, first = members[0]
    found = [
        f"{name} of {side.label} is {value} (of {base.label}: {known})"
        for side, evaluation in members[1:]
        for name, known, value in _differing(first.conditions, evaluation.conditions)
    ]
    return list(dict.fromkeys(found))


def curves_otherwise(members: Sequence[tuple[str, Candidate]]) -> list[str]:
    """The same of learning curves."""
    (base, first), *others = members
    found = [
        f"{name} of {label} is {value} (of {base}: {known})"
        for label, member in others
        for name, known, value in (
            _differing(first.dev_conditions, member.dev_conditions)
            if first.dev == member.dev
            else [("what the learning curve is of", f"{first.dev}", f"{member.dev}")]
        )
    ]
    return list(dict.fromkeys(found))


def other_sources(contenders: Sequence[Contender]) -> list[str]:
    """Said, not refused: a changed comment changes the hash of an environment's source too."""
    members = [(side.label, member.source) for side in contenders for member in side.members if member.source]
    if not members:
        return []
    base, known = members[0]
    found = dict.fromkeys(label for label, source in members if source != known)
    return [f"the environment's source was another one for {label} than for {base}" for label in found]


def _differing(first: Mapping[str, Json], second: Mapping[str, Json]) -> list[tuple[str, str, str]]:
    """List the conditions that both recorded and that differ; a condition that only one recorded is not known to differ."""
    return [
        (_WORDS.get(name, name), _short(first[name]), _short(second[name]))
        for name in first
        if name in second and None not in (first[name], second[name]) and first[name] != second[name]
    ]


def _short(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]
