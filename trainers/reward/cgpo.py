"""CGPO: a score counts only where every constraint is kept, and less the further the policy strays."""

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import Turns, paid_instead, replace_turns, signal_of


@component("reward", "cgpo", needs=("reference_kl",), asks=("score", "passes"), reads=("rewards",))
def cgpo(
    group: Group, *, score: str = "par", passes: str = "rlbff", threshold: float = 0.5, most: float = 5.0
) -> Group:
    """max(1 − Σ log(π/π_ref)/``most``, 0)·s on the last turn where all judges pass, else 0; nothing else is paid.

    s is the signal ``score`` of the last turn: with the judge `par` it is σ(r − r̄) against a stored response, the calibrated reward of CGPO.
    The constraints are kept where ``passes`` is at least ``threshold`` there: with the judge `rlbff` and `combine: min` those are as many as
    it has principles. The log-ratio is summed over the trajectory, and ``most`` is KL_max. This is CRPG (constrained policy gradient with a
    mixture of judges); its advantage takes the mean of the batch away, `credit: dr_grpo` that of the group. Left out: CODPO, CRRAFT, a
    KL_max for each task.

    Worked by hand: σ(1) = .7311 three times, log-ratios 2, 8, 1, the last without a pass; then less their mean.

    >>> from turnwise.trainers.credit.dr_grpo import dr_grpo
    >>> from turnwise.trainers.kit.reward_edits import with_signals
    >>> from turnwise.trainers.kit.toy_batches import episode, rounded, turn_batch
    >>> seen = [(0.7311, 0.5, 2.0), (0.7311, 1.0, 8.0), (0.7311, 0.4, 1.0)]
    >>> group = [with_signals(episode([0]), [{"par": s, "rlbff": p, "reference_kl": k}]) for s, p, k in seen]
    >>> paid = [round(one.trajectory.total_reward, 4) for one in cgpo(group)]
    >>> paid, rounded(dr_grpo(turn_batch([[x] for x in paid])), 4)
    ([0.4387, 0.0, 0.0], [[0.2925], [-0.1462], [-0.1462]])

    Raises:
        RecipeError: ``most`` is not above 0, or a turn has no such signal.
    """
    if most <= 0:
        raise RecipeError(f"reward 'cgpo': most={most:g} leaves no room to stray.", "Give it above 0 (5).")

    def pay(turns: Turns) -> Turns:
        if not turns or signal_of(turns[-1], passes) < threshold:
            return paid_instead(turns, 0.0)
        strayed = sum(signal_of(turn, "reference_kl") for turn in turns)
        return paid_instead(turns, max(1 - strayed / most, 0.0) * signal_of(turns[-1], score))

    return [replace_turns(one, pay) for one in group]
