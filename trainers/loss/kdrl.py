"""KL to a teacher at the tokens that the policy sampled: distillation beside reinforcement."""

from typing import Literal

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import token_mean
from turnwise.trainers.loss.kl import k2, k3


@component(
    "loss",
    "kdrl",
    objective="KL(π ‖ teacher), on the policy's own samples",
    slope="own",
    paper="2506.02208",
    needs=("token_teacher_logp",),
)
def kdrl(batch: TokenBatch, *, estimator: Literal["k2", "k3"] = "k2") -> TokenLoss:
    """½x² (``k2``), or e^−x + x − 1 (``k3``), with x = log π − log q of each sampled token, q the teacher.

    On the policy's own samples the slope of k2 is that of the reverse KL(π ‖ q), and that of k3 is the forward KL(q ‖ π)'s.
    KDRL (Xu et al. 2025), eq. 8 to 10: k2 beside GRPO, with a ``weight`` that falls (a schedule). Needs only the teacher's
    log-probability of the sampled token; the loss `distill` looks at more of the vocabulary and has less noise. Where an
    estimate grows beyond 10 nats it goes on along its tangent, as in the loss `kl` (ours): a token to which the teacher objects
    most has the largest slope, and a bounded one. Clip and advantages are not used.

    Metric: ``kl_teacher`` (k3 estimate of KL(π ‖ q)).

    Worked by hand with x = 0.5: 0.125 and e^−0.5 − 0.5 = 0.106531; with log q = −.2, −1, −3 and log π = −.5, −.8, −1 half the
    squares are 0.045, 0.02 and 2; and a weight that falls from 0.2 to 0.002 in 100 updates is 0.101 after 50.

    >>> import dataclasses
    >>> import torch
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> batch = dataclasses.replace(token_batch([[-1.0]]), signals={"token_teacher_logp": torch.tensor([[-1.5]])})
    >>> rounded(kdrl(batch).loss_RT), rounded(kdrl(batch, estimator="k3").loss_RT)
    ([[0.125]], [[0.106531]])
    >>> told = {"token_teacher_logp": torch.tensor([[-0.2, -1, -3]])}
    >>> rounded(kdrl(dataclasses.replace(token_batch([[-0.5, -0.8, -1]]), signals=told)).loss_RT)
    [[0.045, 0.02, 2.0]]
    >>> from turnwise.trainers.core import ScheduleMoment
    >>> from turnwise.trainers.schedule.linear import linear
    >>> [round(linear(ScheduleMoment(n, 200, 0.2, 0.2), to=0.002, over=100), 4) for n in (0, 50, 100)]
    [0.2, 0.101, 0.002]

    Raises:
        RecipeError: there is no teacher.
    """
    if "token_teacher_logp" not in batch.signals:
        raise RecipeError("The loss 'kdrl' needs a teacher.", "Set the recipe's `teacher`.")
    x_RT = (batch.logp_RT - batch.signals["token_teacher_logp"]).masked_fill(~batch.mask_RT, 0.0)
    loss_RT = k2(x_RT) if estimator == "k2" else k3(x_RT)
    return TokenLoss(loss_RT, {"kl_teacher": token_mean(k3(x_RT), batch.mask_RT)})
