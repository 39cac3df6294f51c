"""Grades: how near an answer comes to what is known, from 0 to 1 (τ: from −1); None where it is no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from turnwise.envs.judging.actions import choice, numbers, verdicts_of
from turnwise.envs.judging.drawing import words
from turnwise.envs.judging.verdicts import STRONGEST
from turnwise.tasks.core import Json


def _yes(answer: str, truth: Json) -> float | None:
    found = choice(answer, ("yes", "no"))
    return float((found == "yes") is truth) if found else None


def _side(answer: str, truth: Json) -> float | None:
    """A or B as a word of its own, in capitals where there are others: "a" is a word too.

    >>> [_side(said, "A") for said in ("A", "a", "B, since it is a better one", "a draw", "A or B")]
    [1.0, 1.0, 0.0, None, None]
    """
    found = answer.upper() if answer.upper() in ("A", "B") else choice(answer, ("A", "B"), exactly=True)
    return float(found == truth) if found else None


def brier(answer: str, truth: Json) -> float | None:
    """1 − (said − true)², of one number from 0 to 1.

    >>> brier("0.5", 1.0), brier("1", 1.0), brier("7", 1.0)
    (0.75, 1.0, None)
    """
    found = numbers(answer)
    return 1.0 - (found[0] - truth) ** 2 if len(found) == 1 and 0 <= found[0] <= 1 else None


def strength(answer: str, truth: Json) -> float | None:
    """1 for the very strength, ½ for the right side, 0 else (Think-RM, Hong et al. 2025).

    >>> [strength(said, -3) for said in ("-3", "-1", "2", "0", "9")]
    [1.0, 0.5, 0.0, 0.0, None]
    """
    found = numbers(answer)
    if len(found) != 1 or found[0] != int(found[0]) or abs(found[0]) > STRONGEST:
        return None
    return 1.0 if found[0] == truth else 0.5 if found[0] * truth > 0 else 0.0


def kendall(answer: str, truth: Json) -> float | None:
    """Kendall's τ between scores and what is true, over the pairs that differ in truth (URPO, Lu et al. 2025); a tie counts 0.

    >>> [round(kendall(said, [3, 2, 1, 0]), 4) for said in ("3 1 2 0", "0 1 2 3", "3 2 1 0")]
    [0.6667, -1.0, 1.0]
    >>> kendall("0 1", [1, 0]), kendall("1", [1, 0])
    (-1.0, None)
    """
    found = numbers(answer)
    if len(found) != len(truth):
        return None
    signs = [
        _sign((found[i] - found[j]) * (truth[i] - truth[j]))
        for i, j in combinations(range(len(truth)), 2)
        if truth[i] != truth[j]
    ]
    return sum(signs) / len(signs)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _number(answer: str, truth: Json) -> float | None:
    found = numbers(answer)
    return float(found[0] == truth) if len(found) == 1 else None


def chained(answer: str, truth: Json) -> float | None:
    """1 where every verdict is right, on each act and last on all; 0 with any that is wrong (ThinkPRM, Khalifa et al. 2025).

    >>> truth = [True, False, False]
    >>> [chained(said, truth) for said in ("yes no no", "yes, no, yes", "yes no", "yes and no")]
    [1.0, 0.0, None, None]
    """
    found = verdicts_of(answer)
    return float(found == truth) if found is not None and len(found) == len(truth) else None


def same_act(answer: str, truth: Json) -> float | None:
    """1 where the words are the same (UI-Shift, Gao et al. 2025: the parsed action).

    >>> same_act("GO mug 1 .", "go mug 1"), same_act("go mug 2", "go mug 1"), same_act("", "go")
    (1.0, 0.0, None)
    """
    found = words(answer)
    return float(found == words(truth)) if found else None


def filled(answer: str, truth: Json) -> float | None:
    """The share of the hidden acts that is right (MR-RLVR); as many are said as are hidden.

    >>> round(filled("go a | take b | put c", ["go a", "take b", "put d"]), 4), filled("go a", ["go a", "take b"])
    (0.6667, None)
    """
    found = answer.split("|")
    if len(found) != len(truth):
        return None
    return sum(words(a) == words(b) for a, b in zip(found, truth, strict=True)) / len(truth)


def ordered(answer: str, truth: Sequence[int]) -> float | None:
    """1 − Σ|i − place| / ⌊n²/2⌋, a permutation's distance from the right order (MR-RLVR).

    >>> ordered("3 1 2 4", [1, 2, 3, 4]), ordered("1 2 3 4", [1, 2, 3, 4]), ordered("1 1 2 3", [1, 2, 3, 4])
    (0.5, 1.0, None)
    """
    found = numbers(answer)
    if sorted(found) != sorted(map(float, truth)):
        return None
    moved = sum(abs(found.index(one) - place) for place, one in enumerate(truth))
    return 1.0 - moved / (len(truth) ** 2 // 2)


def begins(answer: str, truth: Json) -> float | None:
    """1 where the reference begins with what is said, at least with its first segment (RLPT; the words, not their sense).

    >>> truth = {"words": "hold mug 1 go sink".split(), "least": 3}
    >>> [begins(said, truth) for said in ("hold mug 1 .", "hold mug 1 . go", "hold", "hold cup 1", "")]
    [1.0, 1.0, 0.0, 0.0, None]
    """
    found = words(answer)
    if not found:
        return None
    return float(len(found) >= truth["least"] and truth["words"][: len(found)] == found)


GRADES: Mapping[str, Callable[[str, Json], float | None]] = {
    "verdict": _yes, "cut": _yes, "score": brier, "pair": _side, "strength": strength, "rank": kendall, "step": _yes, "first": _number, "chain": chained,
    "inverse": same_act, "fill": filled, "order": ordered, "next": begins, "middle": begins,
}  # fmt: skip
