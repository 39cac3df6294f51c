"""Pays what a judge, a process model or any other signal says of each turn."""

from statistics import mean
from typing import Literal

from turnwise.agents.core import Turn
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import Turns, replace_turns, signal_of, with_part


@component("reward", "from_signal", asks=("signal",))
def from_signal(
    group: Group,
    *,
    signal: str = "principle",
    weight: float = 1.0,
    component: str = "",
    form: Literal["each", "gain", "last", "mean"] = "each",
    solved: bool = False,
) -> Group:
    """A signal becomes a reward component of its own, named ``component`` (the signal's name unless given).

    With q_k what the signal says of turn k, turn k earns weight·q_k (``each``), weight·(q_k − q_{k−1}) with
    q_{−1} = 0 (``gain``: what a turn added, which sums to weight·q of the last turn), or the last turn alone
    earns weight·q of itself (``last``), or weight times the mean of all q (``mean``). With ``solved`` this is paid where the task was
    solved, else 0, so that nothing pays a pretty failure: with ``mean`` it is Posterior-GRPO, R + success·q̄. What the environment
    paid stays.

    Worked by hand: q = 0.25, 0.75 and an outcome of 1, weight 2:

    >>> from turnwise.trainers.kit.reward_edits import with_signals
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> group = [with_signals(episode([0, 1]), [{"principle": 0.25}, {"principle": 0.75}])]
    >>> [turn.reward for turn in from_signal(group, weight=2.0)[0].trajectory.turns]
    [0.5, 2.5]
    >>> [turn.reward for turn in from_signal(group, weight=2.0, form="gain")[0].trajectory.turns]
    [0.5, 2.0]
    >>> [turn.reward for turn in from_signal(group, form="mean")[0].trajectory.turns]
    [0.0, 1.5]
    >>> [turn.reward for turn in from_signal(group, solved=True)[0].trajectory.turns]  # it is no success
    [0.0, 1.0]
    >>> from turnwise.envs.core import EndReason
    >>> ends = {1: EndReason.SOLVED, 0: EndReason.FAILED}
    >>> played = [with_signals(episode([o], end=ends[o], parts={"format": [1]}), [{"principle": t}]) for o, t in [(1, 0.8), (0, 0.9), (1, 0.3)]]
    >>> [one.trajectory.total_reward for one in from_signal(played, form="mean", solved=True)]  # Posterior-GRPO's numbers
    [2.8, 1.0, 2.3]
    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(grpo(turn_batch([[2.8], [1.0], [2.3]])), 4)
    [[0.8251], [-1.1121], [0.287]]
    >>> from_signal(group, form="last")[0].trajectory.turns[1].rewards["principle"]
    0.75

    Raises:
        RecipeError: a turn has no such signal.
    """
    name = component or signal

    def pay(turns: Turns) -> list[Turn]:
        q = [signal_of(turn, signal) for turn in turns]
        if form == "gain":
            q = [x - before for x, before in zip(q, [0.0, *q][: len(q)], strict=True)]
        elif form == "last":
            q = [0.0] * (len(q) - 1) + q[-1:]
        elif form == "mean" and q:
            q = [0.0] * (len(q) - 1) + [mean(q)]
        return [with_part(turn, name, weight * x) for turn, x in zip(turns, q, strict=True)]

    def nothing(turns: Turns) -> list[Turn]:
        return [with_part(turn, name, 0.0) for turn in turns]

    return [replace_turns(e, pay if e.success or not solved else nothing) for e in group]
