"""The confidence that an agent tells beside its answer."""

import re

from turnwise.trainers.kit.reward_edits import Turns

CONFIDENCE = re.compile(r"<confidence>\s{0,20}([0-9.]{1,20})\s{0,20}</confidence>", re.IGNORECASE)


def told_confidence(turns: Turns) -> float | None:
    """The number in `<confidence>…</confidence>` that was told last, which has no sign; None where none was, or one above 1.

    >>> from turnwise.trainers.kit.toy_batches import episode, with_words
    >>> said = ["<confidence>0.9</confidence>", "<confidence> .2 </confidence>", "I am done."]
    >>> told_confidence(with_words(episode([0, 0, 0]), said).trajectory.turns)
    0.2
    >>> told_confidence(with_words(episode([0]), ["<confidence>7</confidence>"]).trajectory.turns) is None
    True
    """
    for turn in reversed(turns):
        found = CONFIDENCE.findall(turn.action.content)
        if found:
            try:
                q = float(found[-1])
            except ValueError:
                return None
            return q if q <= 1 else None
    return None
