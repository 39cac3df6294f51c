"""GSPO whose trajectories count by their length, so that long ones do not count less per token."""

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import of_trajectory, token_count
from turnwise.trainers.loss.gspo import sequence_surrogate


@component("loss", "luspo", paper="2602.05261", whole=True, slope="-c·A")
def luspo(batch: WholeBatch, *, low: float = 2e-3, high: float = 2.5e-3) -> WholeLoss:
    """GSPO's loss of each trajectory times its number of sampled tokens.

    L = Σ_t w_t·n_i·max(−s_t·A_t, −clip(s_t, 1 − low, 1 + high)·A_t), with s_t as in ``gspo`` and n_i the sampled tokens of
    the trajectory. Length-Unbiased Sequence Policy Optimization 2026. With `reduce: sequence_mean` it is the paper's; that is
    the same as ``gspo`` with `reduce: {name: fixed_length, length: 1}`.

    Metrics: as ``gspo``.

    Worked by hand with GSPO's bounds and ratios: (2·(−1.000300) + 4·1.001001)/2 = 1.001701.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> ratios = [[4e-4, 2e-4], [2e-3, 0, 1e-3, 1e-3]]
    >>> batch = whole_batch(ratios, [[1, 1], [-1] * 4], old_logp=[[0, 0], [0] * 4])
    >>> batch.weight_RT[:] = batch.mask_RT / batch.mask_RT.sum(1, keepdim=True) / 2
    >>> round(luspo(batch, low=3e-4, high=4e-4).loss.item(), 6)
    1.001701
    """
    loss_RT, metrics = sequence_surrogate(batch, low, high, "trajectory")
    return WholeLoss((batch.weight_RT * of_trajectory(token_count(batch), batch) * loss_RT).sum(), metrics)
