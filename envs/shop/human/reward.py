"""Shop-R1's reward of a predicted action (Zhang et al. 2025, arXiv 2507.17842).

A prediction is paid in layers, each only where the one before holds::

    format   0.5 if the answer can be read (else nothing at all)
    type     0.3 if the type of action is right
    presence click: 0.2 if a name is given;  type_and_submit: 0.1 for a name and 0.1 for a text
    text     click: D·R(name);  type_and_submit: 0.1·R(name) + D·R(text);  terminate: nothing

R is ROUGE-L (F1 over words) and D the difficulty scale: naming the very thing among hundreds is what is hard. The
paper's D of 1000 makes everything else vanish; it is an option here. Its fifth part, the self-certainty of the
rationale, is a property of the policy's own probabilities: the signal `self_certainty`, which a recipe pays.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

from turnwise.envs.shop.human.actions import HumanAct

_WORDS = re.compile(r"\w+")


class Layers(NamedTuple):
    """The parts of a prediction's reward."""

    format: float = 0.0
    type: float = 0.0
    presence: float = 0.0
    text: float = 0.0


def layers(predicted: HumanAct, done: HumanAct, scale: float) -> Layers:
    """The reward of a prediction that could be read; ``scale`` is D.

    >>> layers(HumanAct("click", "red scarf"), HumanAct("click", "red wool scarf large"), 10.0)
    Layers(format=0.5, type=0.3, presence=0.2, text=6.666666666666666)
    """
    if predicted.type != done.type:
        return Layers(0.5)
    match done.type:
        case "click":
            text = scale * rouge_l(predicted.name, done.name)
            return Layers(0.5, 0.3, 0.2 * bool(predicted.name), text)
        case "type_and_submit":
            presence = 0.1 * bool(predicted.name) + 0.1 * bool(predicted.text)
            text = 0.1 * rouge_l(predicted.name, done.name) + scale * rouge_l(predicted.text, done.text)
            return Layers(0.5, 0.3, presence, text)
        case "terminate":
            return Layers(0.5, 0.3)


def rouge_l(predicted: str, reference: str) -> float:
    """F1 of the longest common subsequence of words, in lower case.

    >>> rouge_l("a b c d", "b d"), rouge_l("x", "y"), rouge_l("", "y")
    (0.6666666666666666, 0.0, 0.0)
    """
    one, two = _WORDS.findall(predicted.lower()), _WORDS.findall(reference.lower())
    common = LCSseq.similarity(one, two)
    return 2 * common / (len(one) + len(two)) if common else 0.0


def same(predicted: HumanAct, done: HumanAct) -> bool:
    """Say whether a prediction is exactly right, but for case and spaces."""
    return [" ".join(part.lower().split()) for part in predicted] == [
        " ".join(part.lower().split()) for part in done
    ]
