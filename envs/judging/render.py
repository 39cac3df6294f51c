"""Episodes as text: what was seen, and what was done, line by line."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.envs.judging.drawing import AttemptPart
from turnwise.envs.judging.recorded import Recorded


def played(part: AttemptPart) -> str:
    """The task and the turns of a part, numbered from 1.

    >>> from turnwise.envs.judging.recorded import RecordedTurn
    >>> turns = (RecordedTurn("find it", "look", None), RecordedTurn("a box", "open box", None))
    >>> print(played(AttemptPart(Recorded("e", "t", turns, "empty", 0.0, False), 2)))
    find it
    1 > look
    a box
    2 > open box
    """
    return "\n".join(block(part.episode, k) for k in range(part.turns))


def block(episode: Recorded, k: int, act: str = "") -> str:
    """Return the observation before turn k, from 0, and the act there, or ``act`` in its place."""
    turn = episode.turns[k]
    return f"{turn.seen}\n{k + 1} > {act or turn.act}".lstrip("\n")


def beside(parts: Sequence[AttemptPart], names: Sequence[str]) -> str:
    """Attempts at one task, each under its name; what all of them saw first is said once."""
    seen = parts[0].episode.turns[0].seen
    alike = all(part.episode.turns[0].seen == seen for part in parts)
    shown = [played(part).removeprefix(f"{seen}\n") if alike else played(part) for part in parts]
    told = "\n\n".join(f"{name} :\n{text}" for name, text in zip(names, shown, strict=True))
    return f"{seen}\n\n{told}" if alike else told
