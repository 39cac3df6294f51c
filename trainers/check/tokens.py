"""Requirements for corrections and reducers, on rows of tokens."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor
from torch.nn.functional import pad

from turnwise.registry import Component, get_component
from turnwise.requirements import Requirements, require
from turnwise.trainers.check.options import EVERY_PART, SEEDS, variants
from turnwise.trainers.core import Reduce, RowMask, TokenBatch, TurnBatch
from turnwise.trainers.kit.toy_batches import row_mask
from turnwise.trainers.lab.exact import compare, expected_update, in_words, paths
from turnwise.trainers.lab.processes import PROCESSES, lopsided

ROWS = row_mask([[0, 0, -1, 1], [0, -1, 1, 1], [2, 2], [-1], [0, 1, 2]], trajectory=[0, 1, 1, 2, 3])


def same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, atol=1e-9)


def tokens(seed: int, *, stale: float = 0.0, extreme: bool = False) -> TokenBatch:
    """Rows of several lengths, some of the tokens not sampled, one row fully masked."""
    g = torch.Generator().manual_seed(seed)
    R, T = 5, 7
    mask_RT = torch.rand(R, T, generator=g) < 0.7
    mask_RT[3] = False
    old_RT = -torch.rand(R, T, generator=g, dtype=torch.float64) * (300 if extreme else 3) * mask_RT
    noise_RT = torch.randn(3, R, T, generator=g, dtype=torch.float64) * mask_RT
    logp_RT = (old_RT + (200 if extreme else stale) * noise_RT[0]).clamp(max=0) * mask_RT
    return TokenBatch(
        logp_RT=logp_RT.requires_grad_(),
        old_logp_RT=old_RT,
        behaviour_logp_RT=(old_RT + stale * noise_RT[1]) * mask_RT,
        entropy_RT=(torch.rand(R, T, generator=g, dtype=torch.float64) * mask_RT).requires_grad_(),
        advantage_RT=torch.randn(R, T, generator=g, dtype=torch.float64) * mask_RT,
        mask_RT=mask_RT,
        turn_RT=(torch.arange(T).expand(R, T) // 3).masked_fill(~mask_RT, -1),
        trajectory_R=torch.tensor([0, 1, 1, 2, 3]),
        group_R=torch.tensor([0, 0, 0, 1, 1]),
        reference_logp_RT=(logp_RT.detach() + stale * noise_RT[2]) * mask_RT,
    )


def correction_weights(entry: Component) -> None:
    """Weights ≥ 0 without gradient, 0 where no token was sampled, 1 where engine and trainer agree."""
    for said, correction in variants(entry):
        for seed in SEEDS:
            at, agreed = f"({said}, batch {seed})", tokens(seed)
            ones = same(correction(agreed), agreed.mask_RT.double())
            require(ones, f"Where engine and trainer agree a weight is not 1 {at}.")
            for batch in (tokens(seed, stale=1.0), tokens(seed, stale=1000.0)):
                weight_RT = correction(batch)
                require(
                    weight_RT.isfinite().all() and (weight_RT >= 0).all(), f"A weight is not in [0, ∞) {at}."
                )
                require(not weight_RT.requires_grad, f"The weights carry gradient {at}.")
                require(not weight_RT[~batch.mask_RT].any(), f"A token that was not sampled has weight {at}.")
                blind = dataclasses.replace(
                    batch,
                    logp_RT=batch.old_logp_RT,
                    entropy_RT=0 * batch.old_logp_RT,
                    advantage_RT=0 * batch.old_logp_RT,
                )
                require(
                    torch.equal(correction(blind), weight_RT),
                    f"It reads more than old and behaviour log-probabilities, which is all that is there {at}.",
                )


def reducer_weights(entry: Component) -> None:
    """A weight above 0 for each sampled token and 0 for all others; an empty batch divides by nothing."""
    for said, reduce in variants(entry):
        weight_RT = reduce(ROWS)
        require(weight_RT.shape == ROWS.mask_RT.shape, f"The weights are not (R, T) ({said}).")
        require((weight_RT[ROWS.mask_RT] > 0).all(), f"A sampled token has no weight ({said}).")
        require(not weight_RT[~ROWS.mask_RT].any(), f"A token that was not sampled has weight ({said}).")
        require(not reduce(row_mask([[-1, -1]])).any(), f"An empty batch divides by nothing ({said}).")


def rows_do_not_matter(entry: Component) -> None:
    """Order, padding, empty rows, and how a trajectory is cut into rows change no weight."""
    for said, reduce in variants(entry):
        weight_RT = reduce(ROWS)
        order_R = torch.tensor([3, 1, 4, 0, 2])
        require(
            same(reduce(RowMask(*(x[order_R] for x in ROWS))), weight_RT[order_R]),
            f"The order does ({said}).",
        )
        padded = RowMask(pad(ROWS.mask_RT, (2, 1)), pad(ROWS.turn_RT, (2, 1), value=-1), ROWS.trajectory_R)
        require(same(reduce(padded)[:, 2:-1], weight_RT), f"Padding does ({said}).")
        kept_R = ROWS.mask_RT.any(1)
        require(
            same(reduce(RowMask(*(x[kept_R] for x in ROWS))), weight_RT[kept_R]), f"Empty rows do ({said})."
        )
        whole = reduce(row_mask([[0, 0, 1], [0, 1, 1]]))
        split = reduce(row_mask([[0, 0, 1], [0, 1], [1]], trajectory=[0, 1, 1]))
        cut = same(whole[0], split[0]) and same(whole[1].sum(), split[1:].sum())
        require(cut, f"How a trajectory is cut into rows does ({said}).")


def bias_of_the_denominator(entry: Component) -> str:
    """Under this denominator an unbiased credit rule stays so, or not, as ``bias`` says; one token per turn."""
    reduce = entry.build({})
    found = {}
    for process in PROCESSES:
        p = paths(process, lopsided(process))
        update = expected_update(lambda batch: _reduced(reduce, batch), p, 2, {})
        found[process.name] = compare(update.mean_SA, p.policy_gradient())
    scales = [bias.scale for bias in found.values()]
    crooked = max(bias.angle for bias in found.values()) > 1e-3 or max(scales) - min(scales) > 1e-3
    even = found["chain"].angle < 1e-6
    require(even, "Where all trajectories are equally long, more than a factor is lost.")
    right = "biased: why" if crooked else "unbiased"
    require(
        crooked == entry.bias.startswith("biased"),
        f'Beside the policy gradient the expected update is {in_words(found)}. Declare bias="{right}".',
    )
    return f"{entry.bias.partition(':')[0]}, as declared"


def _reduced(reduce: Reduce, batch: TurnBatch) -> Tensor:
    rloo = get_component("credit", "rloo").build({})
    turn_BK = torch.arange(batch.mask_BK.shape[1]).expand_as(batch.mask_BK)
    rows = RowMask(batch.mask_BK, turn_BK.masked_fill(~batch.mask_BK, -1), torch.arange(len(batch.group_B)))
    return rloo(batch) * reduce(rows)


REQUIREMENTS: dict[str, Requirements] = {
    "correction": {**EVERY_PART, "weights of at least 0, and 1 where nothing differs": correction_weights},
    "reduce": {
        **EVERY_PART,
        "a weight for each sampled token": reducer_weights,
        "how rows are arranged does not matter": rows_do_not_matter,
        "the bias is as declared": bias_of_the_denominator,
    },
}
