"""Temporally abstracted values: a learned value is asked only every few turns."""

from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import following, signal


@component(
    "credit",
    "ota",
    paper="2505.12737",
    needs=("value",),
    bias="biased: discounted option by option, and as far as the value is wrong",
)
def ota(batch: TurnBatch, *, turns: int = 3, discount: float = 0.99) -> Tensor:
    """Rewards of the next ``turns`` turns and the value of the state after them, minus the value of the state before.

    A_k = Σ_{j=k}^{m−1} r_j + γ·V(s_m) − V(s_k), m = min(k + turns, K), V = 0 after the last turn: an option of several turns is
    discounted once, so that the horizon of V is that much shorter; one of memories alone takes no time and is not. With one turn it
    is ``gae`` with λ = 0. OTA (Ahn et al. 2025, for offline goals; we read the abstract alone). Ours: the advantage that goes with its value, whose
    target is A + V. Its value leans to the best of what others did by `signals: [{name: value, expectile: 0.7}]`, over stored
    episodes that join the groups (`source: {name: stored, join: true}`); a task's goal is in its text, which V reads.

    Worked by hand with −0.1 a turn and a goal 100 turns away: with options of ten turns V = −(1 − 0.99¹⁰)/0.01 = −9.5618 (with
    −1 for each of 100 steps −63.3968), and no first turn of an option is better than it should be.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> worth = [-(1 - 0.99 ** (10 - k / 10)) / 0.01 for k in range(100)]
    >>> batch = turn_batch([[-0.1] * 100], signals={"value": [worth]})
    >>> round(worth[0], 4), set(rounded(ota(batch, turns=10).abs()[:, ::10], 6)[0])
    (-9.5618, {0.0})
    >>> rounded(ota(turn_batch([[0, 1, 1]], signals={"value": [[0.3, 0.5, 0.7]]}), turns=2, discount=0.5))
    [[1.05, 1.5, 0.3]]

    Raises:
        RecipeError: an option has no turn.
    """
    if turns < 1:
        raise RecipeError(f"credit 'ota': an option of {turns} turns never ends.", "Give turns: 1 or more.")
    value_BK = signal(batch, "value") * batch.mask_BK
    paid_BK = batch.reward_BK
    nothing_B = paid_BK.new_zeros(len(paid_BK))
    earned_BK, after_BK = paid_BK, value_BK
    for _ in range(min(turns, paid_BK.shape[1])):
        after_BK = following(after_BK, nothing_B, batch.mask_BK)
    acts_BK = batch.acts_BK.to(paid_BK.dtype)
    passed_BK = acts_BK
    for _ in range(min(turns, paid_BK.shape[1]) - 1):
        earned_BK = paid_BK + following(earned_BK, nothing_B, batch.mask_BK)
        passed_BK = acts_BK + following(passed_BK, nothing_B, batch.mask_BK)
    return earned_BK + after_BK.where(passed_BK == 0, discount * after_BK) - value_BK
