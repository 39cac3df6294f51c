"""DAPO's soft overlong punishment: long replies cost something before they are cut."""

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import Turns, replace_turns, with_part


@component("reward", "soft_overlong", paper="2503.14476")
def soft_overlong(group: Group, *, limit: int = 256, buffer: int = 64, cost: float = 1.0) -> Group:
    """A reply of more than ``limit`` − ``buffer`` tokens costs something, at the ``limit`` the full ``cost``.

    Paid beside all else as the component ``overlong``: −c·min(1, (ℓ − (L − B))/B) for ℓ > L − B, and 0 up to there, with ℓ the
    reply's tokens. DAPO (Yu et al. 2025), eq. 13, where a reply is the whole answer; here it is one turn's, memories among them, and the
    turn itself pays. A reply that is cut pays in full where L is `sampling.max_tokens`.

    Worked by hand: L = 100, B = 20: 80 tokens cost 0, 85 cost ¼, 100 and more cost 1.

    >>> from turnwise.trainers.kit.toy_batches import episode, with_tokens
    >>> played = with_tokens(episode([0, 0, 0, 1]), [80, 85, 100, 120])
    >>> [turn.reward for turn in soft_overlong([played], limit=100, buffer=20)[0].trajectory.turns]
    [0.0, -0.25, -1.0, 0.0]

    Raises:
        RecipeError: the buffer is no part of the limit, or the cost is below 0.
    """
    not_below_zero("reward 'soft_overlong'", cost=cost)
    if not 1 <= buffer <= limit:
        raise RecipeError(
            f"reward 'soft_overlong': buffer={buffer} is no part of the limit of {limit} tokens.",
            "Set it between 1 and limit; limit is the recipe's sampling.max_tokens.",
        )

    def charge(turns: Turns) -> Turns:
        beyond = [max(0, len(turn.reply.action_ids) - (limit - buffer)) for turn in turns]
        return [
            with_part(turn, "overlong", -cost * min(1.0, n / buffer))
            for turn, n in zip(turns, beyond, strict=True)
        ]

    return [replace_turns(one, charge) for one in group]
