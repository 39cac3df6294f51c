"""RLCR: an answer comes with how sure its author is, and is paid by a proper score of both."""

from typing import Literal

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.confidence import told_confidence
from turnwise.trainers.kit.reward_edits import Turns, has_answer, paid_instead, paid_on_last, replace_turns


@component("reward", "rlcr", paper="2507.16806", reads=("rewards", "words"))
def rlcr(group: Group, *, form: Literal["paper", "code"] = "paper") -> Group:
    """Success is paid, less the square of its distance from the confidence that was told (the Brier score); nothing else is paid.

    With y = 1 for a solved task and q what stands in `<confidence>q</confidence>` of the last message that has it, R = y − (y − q)²
    (``paper``, Damani et al. 2025), or ½·F + ½·y + ½·(1 − (y − q)²) with F = 1 where there are an answer and a confidence in 0…1, and 0
    in all three terms where not (``code``). The best q is the probability of being right. Ours: in the paper's form an episode without a
    confidence is taken to have told the wrong extreme, so R = y − 1. `sampling.instruction` must ask for it. `turnwise audit log`
    tells the calibration of what was said: ECE, Brier score, AUROC.

    Worked by hand: (y, q) = (1, 0.9), (0, 0.9), (0, 0.2), (1, 0.5).

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode, with_words
    >>> ends = {1: EndReason.SOLVED, 0: EndReason.FAILED}
    >>> group = [with_words(episode([0], end=ends[y]), [f"<confidence>{q}</confidence>"]) for y, q in [(1, 0.9), (0, 0.9), (0, 0.2), (1, 0.5)]]
    >>> [round(one.trajectory.total_reward, 6) for one in rlcr(group)]
    [0.99, -0.81, -0.04, 0.75]
    >>> [round(one.trajectory.total_reward, 6) for one in rlcr(group, form="code")]
    [1.495, 0.595, 0.98, 1.375]
    """

    def pay(episode: Episode, turns: Turns) -> Turns:
        y, q = float(episode.success), told_confidence(turns)
        if form == "paper":
            return paid_on_last(paid_instead(turns, y), "brier", -1.0 if q is None else -((y - q) ** 2))
        if q is None or not has_answer(episode, turns):
            return paid_instead(turns, 0.0)
        paid = paid_on_last(paid_instead(turns, 0.5 * y), "brier", 0.5 * (1 - (y - q) ** 2))
        return paid_on_last(paid, "format", 0.5)

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]
