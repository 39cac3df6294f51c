"""DRM: the quality of the reasoning, in three dimensions, as an advantage beside that of the answer."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_z, over_turns, signal


@component(
    "credit", "drm", asks=("confidence", "length", "relevance", "coherence"),
    bias="changes the objective: to confidence, relevance and coherence of the reasoning too",
)  # fmt: skip
def drm(
    batch: TurnBatch,
    *,
    confidence: str = "logp",
    length: str = "tokens",
    relevance: str = "rlbff",
    coherence: str = "principle",
    weights: tuple[float, float, float] = (0.3, 0.4, 0.3),
    alike: bool = False,
) -> torch.Tensor:
    """z(R) + z(w₁·confidence + w₂·relevance + w₃·coherence), z over the group; given to every turn.

    Confidence is the mean log-probability of a trajectory's sampled tokens, or, as in the paper, of those of its reasoning alone:
    `credit: {name: drm, confidence: thought_logp, length: thought_tokens}`. Relevance and coherence are signals of turns, such as those of
    the judges `rlbff` and `principles`, in the mean over its turns. The advantage of the reasoning is found by itself and added to that
    of the answer, so that neither drowns the other (DRM). With ``alike`` each of the three is brought to one scale by z before the sum
    (ours), since a log-probability has another than a judge. The paper finds the weights by a search on a validation set, which is
    `turnwise audit log --measure weights`; the defaults are ours, as are judges in place of a reranker and an outcome model.

    Worked by hand: .3·(−.2) + .4·.8 + .3·.5 = .41, before z.

    >>> three = [torch.tensor([x]) for x in (-0.2, 0.8, 0.5)]
    >>> round(mixed(three, (0.3, 0.4, 0.3)).item(), 4)
    0.41
    """
    turns_B = batch.length_B.clamp(min=1)

    def total(name: str) -> torch.Tensor:
        return (signal(batch, name) * batch.mask_BK).sum(-1)

    confidence_B = total(confidence) / total(length).clamp(min=1)
    three = [confidence_B, total(relevance) / turns_B, total(coherence) / turns_B]
    if alike:
        three = [group_z(x_B, batch.group_B) for x_B in three]
    reasoning_B = group_z(mixed(three, weights), batch.group_B)
    return over_turns(group_z(batch.return_B, batch.group_B) + reasoning_B, batch)


def mixed(three: list[torch.Tensor], weights: tuple[float, float, float]) -> torch.Tensor:
    """The weighted sum of the dimensions."""
    return torch.stack([w * x for w, x in zip(weights, three, strict=True)]).sum(0)
