"""Requirements for credit rules, on batches drawn from the small exact processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from turnwise.errors import RecipeError
from turnwise.registry import Component
from turnwise.requirements import BrokenRequirement, NotTested, Requirements, require
from turnwise.trainers.check.bias import bias_is_as_declared, points_uphill, unbiased_within_turns
from turnwise.trainers.check.options import EVERY_PART, SEEDS, variants
from turnwise.trainers.core import Credit, TokenCredit, TokenView, TurnBatch, TurnTree
from turnwise.trainers.kit.token_credit import on_turns
from turnwise.trainers.lab.exact import paths
from turnwise.trainers.lab.processes import PROCESSES, lopsided, signals


def turns(seed: int, *, dtype: torch.dtype = torch.float64) -> TurnBatch:
    """A batch drawn from the processes: groups of several sizes, met states, singletons, equal returns."""
    generator = torch.Generator().manual_seed(seed)
    process = PROCESSES[seed % len(PROCESSES)]
    logits_SA = lopsided(process)
    p = paths(process, logits_SA if seed % 2 else torch.zeros_like(logits_SA))  # also: all equally likely
    sizes = [1, 3, 4, 2][: 1 + seed % 4] if seed else [5]
    group_B = torch.cat([torch.full((size,), g) for g, size in enumerate(sizes)])
    index_B = torch.randint(len(p.reward_NK), (len(group_B),), generator=generator)
    index_B[group_B == 2] = index_B[0]  # a group whose trajectories are all the same
    measured = {name: value[index_B].to(dtype) for name, value in signals(p).items()}
    return TurnBatch(
        p.reward_NK[index_B].to(dtype),
        p.mask_NK[index_B],
        group_B,
        p.cut_N[index_B],
        p.state_NK[index_B] + 1,
        {name: value for name, value in measured.items() if not name.startswith("token_")},
        spoken(p.mask_NK[index_B], p.action_NK[index_B], measured, generator),
        branching(p.mask_NK[index_B], generator),
    )


def branching(mask_BK: Tensor, generator: torch.Generator) -> TurnTree:
    """Conversations that go on from any turn before, that begin anew, or that such a turn calls for."""
    before_BK = torch.arange(mask_BK.shape[1]).expand(mask_BK.shape)
    any_BK = (torch.rand(mask_BK.shape, generator=generator) * before_BK).long()
    any_BK[:, :1] = -1
    kind_BK = torch.randint(4, mask_BK.shape, generator=generator)
    return TurnTree(
        torch.where(kind_BK < 2, before_BK - 1, torch.where(kind_BK == 2, any_BK, -1)),
        torch.where(kind_BK == 3, any_BK, -1),
    )


def spoken(
    mask_BK: Tensor, action_BK: Tensor, measured: dict[str, Tensor], generator: torch.Generator
) -> TokenView:
    """Rows of tokens for these turns: one to three each, with prompts between, some trajectories in two rows."""
    rows: list[tuple[int, list[tuple[int, int]]]] = []  # (trajectory, [(turn or -1, id)])
    for b in range(len(mask_BK)):
        for k in range(int(mask_BK[b].sum())):
            if k == 0 or (b % 3 == 0 and k == 1):
                rows.append((b, []))
            count = 1 + int(torch.randint(3, (1,), generator=generator))
            rows[-1][1].extend([(-1, 9), *((k, int(action_BK[b, k]) + 10 * i) for i in range(count))])
    T = max(len(row) for _, row in rows)
    turn_RT = torch.tensor([[k for k, _ in row] + [-1] * (T - len(row)) for _, row in rows])
    token_RT = torch.tensor([[i for _, i in row] + [0] * (T - len(row)) for _, row in rows])
    owner_R = torch.tensor([b for b, _ in rows])
    named = {name: value for name, value in measured.items() if name.startswith("token_")}
    of_turns = {name: x[owner_R[:, None], turn_RT.clamp(min=0)] for name, x in named.items()}
    noise_RT = torch.rand(turn_RT.shape, generator=generator).to(next(iter(named.values())).dtype)
    return TokenView(
        token_RT,
        turn_RT >= 0,
        turn_RT,
        owner_R,
        {
            name: (x + 0.1 * noise_RT * (name != "token_planning")) * (turn_RT >= 0)
            for name, x in of_turns.items()
        },
    )


def mapped(
    batch: TurnBatch, change: Callable[[Tensor], Tensor], *, kept_B: Tensor | None = None
) -> TurnBatch:
    """``change`` applied to every tensor of the turns; tokens of the trajectories ``kept_B``, in their order."""
    view = batch.tokens
    assert view is not None
    if kept_B is not None:
        place_B = torch.full((len(batch.group_B),), -1).index_put((kept_B,), torch.arange(len(kept_B)))
        owner_R = place_B[view.trajectory_R]
        row_M = owner_R.argsort(stable=True)
        row_M = row_M[owner_R[row_M] >= 0]
        cut = {name: value[row_M] for name, value in view.signals.items()}
        view = TokenView(view.token_RT[row_M], view.mask_RT[row_M], view.turn_RT[row_M], owner_R[row_M], cut)
    return TurnBatch(
        change(batch.reward_BK),
        change(batch.mask_BK),
        change(batch.group_B),
        change(batch.truncated_B),
        change(batch.state_BK),
        {name: change(value) for name, value in batch.signals.items()},
        view,
        None if batch.tree is None else TurnTree(*map(change, batch.tree)),
    )


def given(credit: Callable[[TurnBatch], Any], batch: TurnBatch) -> Tensor:
    """The rule's credit per turn; of a token-level rule after what is required of it: finite, and zero off the mask."""
    found = credit(batch)
    if isinstance(found, TokenCredit):
        assert batch.tokens is not None
        require(found.advantage_RT.shape == batch.tokens.mask_RT.shape, "Its advantages are not (R, T).")
        require(found.advantage_RT.isfinite().all(), "A token's advantage is not finite.")
        require(
            not found.advantage_RT[~batch.tokens.mask_RT].any(), "A token that was not sampled gets some."
        )
    return on_turns(found, batch)


def same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, atol=1e-9)


def _each(entry: Component) -> Iterator[tuple[str, Credit, TurnBatch]]:
    for said, credit in variants(entry):
        for seed in SEEDS:
            yield f"({said}, batch {seed})", credit, turns(seed)


def is_finite_and_zero_off_the_mask(entry: Component) -> None:
    """An advantage (B, K) of the rewards' type for each turn, finite, 0 where there is no turn; its input stays."""
    for said, credit in variants(entry):
        for seed in SEEDS:
            for dtype in (torch.float64, torch.float32):
                _check_advantage(credit, turns(seed, dtype=dtype), f"({said}, batch {seed}, {dtype})")


def _check_advantage(credit: Credit, batch: TurnBatch, at: str) -> None:
    kept = mapped(batch, torch.clone)
    advantage_BK = given(credit, batch)
    require(advantage_BK.shape == batch.reward_BK.shape, f"Its advantages are not (B, K) {at}.")
    require(advantage_BK.dtype == batch.reward_BK.dtype, f"They are of the type {advantage_BK.dtype} {at}.")
    require(advantage_BK.isfinite().all(), f"An advantage is not finite {at}.")
    require(not advantage_BK[~batch.mask_BK].any(), f"Where there is no turn is an advantage {at}.")
    same_signals = all(torch.equal(kept.signals[name], value) for name, value in batch.signals.items())
    require(torch.equal(kept.reward_BK, batch.reward_BK) and same_signals, f"It changes its input {at}.")


def order_does_not_matter(entry: Component) -> None:
    """The same trajectories in another order get the same advantages."""
    for number, (at, credit, batch) in enumerate(_each(entry)):
        order_B = torch.randperm(len(batch.group_B), generator=torch.Generator().manual_seed(number))
        shuffled = mapped(batch, lambda x, order_B=order_B: x[order_B], kept_B=order_B)
        require(same(given(credit, shuffled), given(credit, batch)[order_B]), f"They change {at}.")


def padding_does_not_matter(entry: Component) -> None:
    """Padding, where there are no turns and no tokens, is not looked at."""
    for at, credit, batch in _each(entry):
        advantage_BK = given(credit, _padded(batch))
        require(same(advantage_BK[:, :-3], given(credit, batch)), f"Padding changes advantages {at}.")
        require(not advantage_BK[:, -3:].any(), f"Padding gets an advantage {at}.")


def _padded(batch: TurnBatch) -> TurnBatch:
    def widen(x: Tensor) -> Tensor:
        if x.dim() < 2:
            return x
        fill = 0 if x is batch.reward_BK or x is batch.mask_BK else 7
        return pad(x, (0, 3), value=fill)

    padded = mapped(batch, widen)
    view = padded.tokens
    assert view is not None
    wider = {name: pad(x, (0, 2), value=7) for name, x in view.signals.items()}
    tokens = TokenView(
        pad(view.token_RT, (0, 2), value=5),
        pad(view.mask_RT, (0, 2)),
        pad(view.turn_RT, (0, 2), value=-1),
        view.trajectory_R,
        wider,
    )
    return dataclasses.replace(padded, tokens=tokens)


def names_do_not_matter(entry: Component) -> None:
    """Groups and states are told apart, and their numbers mean nothing."""
    for at, credit, batch in _each(entry):
        renamed = dataclasses.replace(
            batch,
            group_B=torch.tensor([11, 3, 7, 0])[batch.group_B],
            state_BK=-5 * batch.state_BK - 2**40,
        )
        require(same(given(credit, renamed), given(credit, batch)), f"Their numbers change something {at}.")


def sees_branches_if_it_says_so(entry: Component) -> None:
    """Branches, the tree of turns, change the credit of rules that declare ``branches``, and of no other."""
    seen = False
    for at, credit, batch in _each(entry):
        chain = dataclasses.replace(batch, tree=None)
        differs = not same(given(credit, chain), given(credit, batch))
        require(entry.branches or not differs, f"It sees branches: declare branches=True {at}.")
        seen = seen or differs
    require(seen or not entry.branches, "It declares to see branches and sees none.")


def groups_do_not_leak(entry: Component) -> None:
    """Only rules that say so (with "batch" in their bias) look beyond the group."""
    if "batch" in entry.bias:
        raise NotTested("It declares to look at the whole batch.")
    credit = entry.build({})
    for seed in SEEDS:
        batch = turns(seed)
        alone_BK = torch.zeros_like(batch.reward_BK)
        for group in batch.group_B.unique():
            mine_B = batch.group_B == group
            mine = mapped(batch, lambda x, mine_B=mine_B: x[mine_B], kept_B=mine_B.nonzero()[:, 0])
            alone_BK[mine_B] = given(credit, mine)
        require(same(given(credit, batch), alone_BK), 'It looks beyond the group: say "batch" in its bias.')


def names_the_signals_that_it_needs(entry: Component) -> None:
    """Without signals it works if it needs none, and otherwise says which one is missing."""
    batch, credit = turns(1), entry.build({})
    bare = TurnBatch(batch.reward_BK, batch.mask_BK, batch.group_B, batch.truncated_B, batch.state_BK)
    needs = entry.needs_with({})
    if not needs:
        require(same(given(credit, bare), given(credit, batch)), "It looks at signals and declares none.")
        return
    try:
        credit(bare)
    except RecipeError as error:
        require(any(need in str(error) for need in needs), f"It does not name what is missing: {error}")
        return
    raise BrokenRequirement("It declares needs and works without them.")


REQUIREMENTS: dict[str, Requirements] = {
    "credit": {
        **EVERY_PART,
        "finite, and zero where there is no turn": is_finite_and_zero_off_the_mask,
        "the order does not matter": order_does_not_matter,
        "padding does not matter": padding_does_not_matter,
        "names of groups and states do not matter": names_do_not_matter,
        "it sees branches if it says so": sees_branches_if_it_says_so,
        "groups do not leak": groups_do_not_leak,
        "names the signals that it needs": names_the_signals_that_it_needs,
        "the bias is as declared": bias_is_as_declared,
        "unbiased also where turns have several tokens": unbiased_within_turns,
        "an update points uphill": points_uphill,
    }
}
