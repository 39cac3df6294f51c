"""VeriFree's other half: the likelihood of a whole answer is raised, and not its logarithm."""

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.tokens import token_mean, unit_sum, units


@component(
    "loss",
    "verifree",
    objective="the likelihood of what each turn says, weighed by its advantage",
    paper="2505.21493",
    whole=True,
    slope="-c·A",
)
def verifree(batch: WholeBatch) -> WholeLoss:
    """−R·A·log π of each token, R = Π π over the tokens of its turn, constant: the slope of −A·R itself, by the reducer's weights.

    R·∇log π(y | reasoning), the half of VeriFree's gradient (Zhou et al. 2025) that makes the right answer y likelier where it is likely
    already; A is 1 for what the source `verifree` shows. After reasoning that leads elsewhere R is small, and little is learned; by
    cross-entropy (`nll`) the answer would be learned there most of all.

    Metric: ``answer_likelihood``, the mean of R over the tokens that have an advantage.

    Worked by hand with π = ½ and ⅕ in one turn, R = .1: .1·(.693147 + 1.609438) = .230259.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[log(0.5), log(0.2)]], [[1, 1]])
    >>> batch.weight_RT[:] = 1
    >>> round(verifree(batch).loss.item(), 6)
    0.230259
    """
    likelihood_RT = unit_sum(batch.logp_RT.detach(), *units(batch, "turn")).exp()
    loss_RT = -likelihood_RT * batch.advantage_RT * batch.logp_RT
    return WholeLoss(
        (batch.weight_RT * loss_RT).sum(),
        {"answer_likelihood": token_mean(likelihood_RT, batch.advantage_RT != 0)},
    )
