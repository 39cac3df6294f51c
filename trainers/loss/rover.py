"""The value of the uniform policy, read off the policy's own ratios: no critic, no reference model."""

import torch

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, token_mean


@component(
    "loss",
    "rover",
    objective="the values of the uniform policy, to which Q_t = ρ·(log π − log π_old) is fitted",
    paper="2509.24981",
    slope="-c·A",
    needs=("token_mean_logp",),
)
def rover(batch: TokenBatch, *, rho: float = 1.0, successor: float = 1.0) -> TokenLoss:
    """(Q_t − y_t)²: Q_t = ρ·(log π − log π_old), y_t = A + c·ρ·(m_{t+1} − m^old_{t+1}), constant.

    m is the mean over the vocabulary of log π at the next token of the same turn, c is ``successor``. ROVER (He et al. 2025):
    where what follows a token is certain and only the end pays, the value of the policy that acts uniformly says which
    tokens may lead to success, so the target looks at the successor under it. A is the trajectory's centred return, as credit
    `dr_grpo` gives it (`grpo` divides by the deviation, as their script for mathematics does). Ours: m is not looked at beyond
    the last token of a turn, where the environment chooses what comes next. Refused are advantages of both signs within
    a trajectory: the recursion has one outcome at its end. In a random world it is a heuristic: its mean is over the policy's choices alone.

    Metrics: ``bellman`` (mean squared difference), ``kl_old``.

    Worked by hand with returns 1 and 0: A = 0.5 on two tokens of one turn, log-ratios 0.2 and 0; three words, whose logits
    before the second token are 1, 0, 0 now and were 0, 0, 0: m = (1 − 3·1.551445)/3 = −1.218111, m^old = −log 3, so that
    y = 0.5 − 0.119499, 0.5 and the mean of (0.2 − 0.380501)² and 0.25 is 0.14129.

    >>> from dataclasses import replace
    >>> from turnwise.trainers.kit.toy_batches import token_batch
    >>> batch = token_batch([[-0.8, -1.0]], [[0.5, 0.5]], old_logp=[[-1.0, -1.0]])
    >>> m = torch.tensor([[-1.0, -1.098612]]), torch.tensor([[-1.0, -1.218111]])
    >>> found = rover(replace(batch, signals={"token_mean_logp": m[0]}, mean_logp_RT=m[1]))
    >>> round(found.loss_RT.mean().item(), 5)
    0.14129

    Raises:
        RecipeError: a trajectory has advantages of both signs.
    """
    mask_RT, old_RT = batch.mask_RT, batch.signals["token_mean_logp"]
    _refuse_both_signs(batch)
    now_RT = old_RT if batch.mean_logp_RT is None else batch.mean_logp_RT
    goes_on_RT = torch.zeros_like(mask_RT)
    goes_on_RT[:, :-1] = batch.turn_RT[:, :-1] == batch.turn_RT[:, 1:]
    next_RT = torch.roll(now_RT - old_RT, -1, 1)
    log_ratio_RT = log_ratio(batch)
    target_RT = batch.advantage_RT + successor * rho * next_RT * goes_on_RT
    loss_RT = (rho * log_ratio_RT - target_RT) ** 2 * mask_RT
    return TokenLoss(
        loss_RT, {"bellman": token_mean(loss_RT, mask_RT), "kl_old": k3_of_old(log_ratio_RT, mask_RT)}
    )


def _refuse_both_signs(batch: TokenBatch) -> None:
    """Advantages of both signs within a trajectory: corrections, which are weights, give none."""
    given_N, whose_N = batch.advantage_RT[batch.mask_RT], batch.trajectory_R[:, None].expand_as(batch.mask_RT)
    whose_N = whose_N[batch.mask_RT]
    if bool(torch.isin(whose_N[given_N > 0], whose_N[given_N < 0]).any()):
        raise RecipeError(
            "loss 'rover' asks for one outcome per trajectory, its centred return, and here turns of one have advantages of both "
            "signs.",
            "Set credit: dr_grpo, and leave shapes out that turn a sign.",
        )
