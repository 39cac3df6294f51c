"""A credit rule of your own: rewards → an advantage for each turn, tried on episodes and used in a recipe.

Run it: ``python examples/own_credit_rule.py`` (training itself needs torch)
"""

import torch
from torch import Tensor

import turnwise
from turnwise import TurnBatch


@turnwise.component(
    "credit", "late", bias="biased: turns before the last one are credited half of the return"
)
def late(batch: TurnBatch, *, share: float = 0.5) -> Tensor:
    """The return minus the mean of its group; turns before the last one get a share of it."""
    groups = torch.nn.functional.one_hot(batch.group_B).float()
    mean_B = groups @ (groups.T @ batch.return_B / groups.sum(0))
    advantage_BK = (batch.return_B - mean_B)[:, None] * batch.mask_BK
    last_BK = torch.arange(batch.mask_BK.shape[1]) == batch.length_B[:, None] - 1
    return torch.where(last_BK, advantage_BK, share * advantage_BK)


if __name__ == "__main__":
    # By hand: two episodes of one task, the first one succeeds in its second turn.
    rewards = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    played = torch.tensor([[True, True], [True, False]])
    batch = TurnBatch(rewards, played, torch.tensor([0, 0]), torch.tensor([False, False]), torch.zeros(2, 2))
    print(late(batch).tolist())  # [[0.25, 0.5], [-0.5, 0.0]]

    # A recipe names it like any other; its options are the function's keyword-only parameters.
    text = turnwise.explain("shop-quick", credit={"name": "late", "share": 0.2})
    print("\n".join(line for line in text.splitlines() if "late" in line))
