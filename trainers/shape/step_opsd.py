"""Within each turn, credit goes to the tokens that hindsight finds more likely, or less; its sign and sum stay."""

from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import RowMask, TokenCredit, TurnBatch
from turnwise.trainers.kit.token_credit import on_tokens, token_signal, tokens_of
from turnwise.trainers.kit.tokens import unit_mean, units


@component(
    "shape",
    "step_opsd",
    paper="2605.27140",
    needs=("token_teacher_logp", "token_logp"),
    bias="biased: tokens of a turn share its advantage unequally",
)
def step_opsd(
    credit: Tensor | TokenCredit, batch: TurnBatch, *, clip: float = 0.2, mix: float = 0.5
) -> TokenCredit:
    """A·((1 − mix) + mix·w), w = exp(sgn(A)·g) clipped to 1 ± clip and divided by its mean over the turn.

    g = log q − log π of each sampled token: q is the teacher (`teacher: hindsight`, which knows what the environment answered),
    π the policy before the update. A token that hindsight finds likelier gets more of a good turn's credit and less of a bad
    one's blame; what a turn gets in all is as before. StepOPSD (Zhang et al. 2026) by its abstract: segments of single
    steps, rescored under hindsight, gaps → sign-preserving shaping with a normalised budget for each step; the exponential,
    and the constants, are ours. SERL (2605.19447) has the same principle, reward for the direction and feedback for the size.

    Worked by hand: A = 1, gaps 0.1 and −0.1, clip 0.2: e^±0.1 = 1.105171 and 0.904837, mean 1.005004; halfway from 1:
    1.049834 and 0.950166.

    >>> import torch
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> signals = {"token_teacher_logp": [[-1.0, -1.2]], "token_logp": [[-1.1, -1.1]]}
    >>> batch = turn_batch([[1]], tokens=[[[7, 8]]], token_signals=signals)
    >>> rounded(step_opsd(torch.tensor([[1.0]]), batch).advantage_RT)
    [[1.049834, 0.950166]]

    Raises:
        RecipeError: ``clip`` is not between 0 and 1, or ``mix`` is no share.
    """
    if not 0 < clip < 1 or not 0 <= mix <= 1:
        raise RecipeError(
            f"shape 'step_opsd': clip={clip}, mix={mix} could turn a sign.",
            "Give 0 < clip < 1 and 0 ≤ mix ≤ 1.",
        )
    view = tokens_of(batch)
    gap_RT = token_signal(batch, "token_teacher_logp") - token_signal(batch, "token_logp")
    A_RT = on_tokens(credit, batch)
    weight_RT = (A_RT.sign() * gap_RT).exp().clamp(1 - clip, 1 + clip) * view.mask_RT
    unit_RT, n = units(RowMask(view.mask_RT, view.turn_RT, view.trajectory_R), "turn")
    share_RT = weight_RT / unit_mean(weight_RT, unit_RT, n).clamp(min=1e-9)
    return TokenCredit(A_RT * ((1 - mix) + mix * share_RT) * view.mask_RT)
