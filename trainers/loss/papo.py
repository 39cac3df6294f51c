"""PAPO: what the policy says shall depend on what it saw."""

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import bounded, token_mean

CAP = 10.0  # of one token's divergence, so that a few tokens cannot be farmed


@component(
    "loss",
    "papo",
    objective="KL(π ‖ π without the observations): that the policy depends on what it sees",
    slope="own",
    paper="2507.06448",
    needs=("token_teacher_logp",),
)
def papo(batch: TokenBatch, *, surprise: float = 2.5) -> TokenLoss:
    """−(e^x − x − 1) + c·(−log π): x = log π(token | without the observations) − log π(token), c = ``surprise``.

    The first part, the k3 estimate of KL(π ‖ π_blind), is raised: tokens shall be unlikely to who saw nothing. The second
    keeps the policy from raising it by mere confusion. PAPO (Wang et al. 2025), eq. 4 and 6, where a picture is masked; here
    `teacher: blind` reads the same tokens with every observation but the task replaced. Add it to a policy loss with
    ``weight`` 0.02, as there: then ``surprise``·``weight`` is their η, 0.05. The divergence of a token is at most 10, and
    the blind policy has no gradient. Left out: the entropy of the blind policy.

    Metric: ``depends`` (mean divergence, in nats).

    Worked by hand with log π = −0.5 and −1.5 without: x = −1, e^−1 + 1 − 1 = 0.367879; −0.367879 + 2.5·0.5.

    >>> import dataclasses
    >>> import torch
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> blind = {"token_teacher_logp": torch.tensor([[-1.5]])}
    >>> rounded(papo(dataclasses.replace(token_batch([[-0.5]]), signals=blind)).loss_RT)
    [[0.882121]]

    Raises:
        RecipeError: there is no teacher.
    """
    if "token_teacher_logp" not in batch.signals:
        raise RecipeError("The loss 'papo' needs a teacher.", "Set the recipe's `teacher: blind`.")
    x_RT = bounded(batch.signals["token_teacher_logp"] - batch.logp_RT, batch.mask_RT)
    depends_RT = (x_RT.exp() - x_RT - 1).clamp(max=CAP)
    loss_RT = (-depends_RT - surprise * batch.logp_RT) * batch.mask_RT
    return TokenLoss(loss_RT, {"depends": token_mean(depends_RT, batch.mask_RT)})
