"""Laws that every registered training part obeys; a new part is tested by being registered."""

import dataclasses
import itertools
import typing

import pytest
import torch
from torch import Tensor

from turnwise.envs.core import End
from turnwise.errors import RecipeError
from turnwise.trainers.by_hand import episode, row_mask
from turnwise.trainers.core import RowMask, TokenBatch, TokenCredit, TokenView, TurnBatch
from turnwise.trainers.exact import compare, expected_update, paths
from turnwise.trainers.processes import PROCESSES, lopsided, signals
from turnwise.trainers.registry import SEAMS, Component, components, get_component
from turnwise.trainers.token_credit import on_turns

SEEDS = range(6)


def variants(seam: str) -> list:
    """Every part as it is, and with each named choice or switch set to each of its other values."""
    found = []
    for entry in components(seam):
        found.append(pytest.param(entry.build({}), id=entry.name))
        hints = typing.get_type_hints(entry.function)
        for option, default in entry.options.items():
            hint = hints[option]
            choices = (True, False) if hint is bool else typing.get_args(hint)
            for choice in (c for c in choices if isinstance(c, str | bool) and c != default):
                built = entry.build({option: choice})
                found.append(pytest.param(built, id=f"{entry.name}-{option}={choice}"))
    return found


# --- every part -----------------------------------------------------------------------------------

EVERY = [pytest.param(c, id=f"{c.seam}-{c.name}") for seam in SEAMS for c in components(seam)]


@pytest.mark.parametrize("entry", EVERY)
def test_says_what_it_is(entry: Component) -> None:
    doc = entry.function.__doc__ or ""
    assert len(entry.summary) > 10
    assert ">>>" in doc, "a doctest with numbers worked out by hand"
    assert entry.function.__module__.endswith(entry.seam + "." + entry.function.__module__.split(".")[-1])


@pytest.mark.parametrize("entry", EVERY)
def test_refuses_unknown_and_wrong_options(entry: Component) -> None:
    with pytest.raises(RecipeError, match="no option"):
        entry.build({"nonsense": 1})
    for option, default in entry.options.items():
        entry.build({option: default})
        with pytest.raises(RecipeError, match=option):
            entry.build({option: object()})


# --- credit ---------------------------------------------------------------------------------------

CREDITS = variants("credit")


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
    )


def spoken(mask_BK: Tensor, action_BK: Tensor, measured, generator: torch.Generator) -> TokenView:
    """Rows of tokens for these turns: one to three each, with prompts between, some trajectories in two rows."""
    rows = []  # (trajectory, [(turn or -1, id)])
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


def mapped(batch: TurnBatch, change, *, kept_B: Tensor | None = None) -> TurnBatch:
    """``change`` applied to every tensor of the turns; tokens of the trajectories ``kept_B``, in their order."""
    view = batch.tokens
    if kept_B is not None:
        place_B = torch.full((len(batch.group_B),), -1).index_put((kept_B,), torch.arange(len(kept_B)))
        owner_R = place_B[view.trajectory_R]
        row_M = owner_R.argsort(stable=True)
        row_M = row_M[owner_R[row_M] >= 0]
        cut = {name: value[row_M] for name, value in view.signals.items()}
        view = TokenView(view.token_RT[row_M], view.mask_RT[row_M], view.turn_RT[row_M], owner_R[row_M], cut)
    return TurnBatch(
        *(change(x) for x in (batch.reward_BK, batch.mask_BK, batch.group_B)),
        *(change(x) for x in (batch.truncated_B, batch.state_BK)),
        {name: change(value) for name, value in batch.signals.items()},
        view,
    )


def given(credit, batch: TurnBatch) -> Tensor:
    """The rule's credit per turn; of a token-level rule after its law: finite, and zero off the mask."""
    found = credit(batch)
    if isinstance(found, TokenCredit):
        assert found.advantage_RT.shape == batch.tokens.mask_RT.shape
        assert found.advantage_RT.isfinite().all()
        assert not found.advantage_RT[~batch.tokens.mask_RT].any()
    return on_turns(found, batch)


def same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("credit", CREDITS)
def test_credit_is_finite_and_zero_off_the_mask(credit, seed: int) -> None:
    for dtype in (torch.float64, torch.float32):
        batch = turns(seed, dtype=dtype)
        kept = mapped(batch, torch.clone)
        advantage_BK = given(credit, batch)
        assert advantage_BK.shape == batch.reward_BK.shape
        assert advantage_BK.dtype == dtype
        assert advantage_BK.isfinite().all()
        assert not advantage_BK[~batch.mask_BK].any()
        assert torch.equal(kept.reward_BK, batch.reward_BK), "it changed its input"
        assert all(torch.equal(kept.signals[name], value) for name, value in batch.signals.items())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("credit", CREDITS)
def test_credit_does_not_depend_on_order(credit, seed: int) -> None:
    batch = turns(seed)
    order_B = torch.randperm(len(batch.group_B), generator=torch.Generator().manual_seed(seed))
    shuffled = mapped(batch, lambda x: x[order_B], kept_B=order_B)
    assert same(given(credit, shuffled), given(credit, batch)[order_B])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("credit", CREDITS)
def test_credit_does_not_depend_on_padding(credit, seed: int) -> None:
    batch = turns(seed)

    def pad(x: Tensor) -> Tensor:
        if x.dim() < 2:
            return x
        fill = 0 if x is batch.reward_BK or x is batch.mask_BK else 7
        return torch.nn.functional.pad(x, (0, 3), value=fill)

    padded = mapped(batch, pad)
    view = padded.tokens
    wider = {name: torch.nn.functional.pad(x, (0, 2), value=7) for name, x in view.signals.items()}
    padded = dataclasses.replace(
        padded,
        tokens=TokenView(
            torch.nn.functional.pad(view.token_RT, (0, 2), value=5),
            torch.nn.functional.pad(view.mask_RT, (0, 2)),
            torch.nn.functional.pad(view.turn_RT, (0, 2), value=-1),
            view.trajectory_R,
            wider,
        ),
    )
    advantage_BK = given(credit, padded)
    assert same(advantage_BK[:, :-3], given(credit, batch))
    assert not advantage_BK[:, -3:].any()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("credit", CREDITS)
def test_credit_does_not_depend_on_the_names_of_groups_and_states(credit, seed: int) -> None:
    batch = turns(seed)
    renamed = TurnBatch(
        batch.reward_BK,
        batch.mask_BK,
        torch.tensor([11, 3, 7, 0])[batch.group_B],
        batch.truncated_B,
        -5 * batch.state_BK - 2**40,
        batch.signals,
        batch.tokens,
    )
    assert same(given(credit, renamed), given(credit, batch))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("entry", components("credit"), ids=lambda c: c.name)
def test_credit_does_not_leak_between_groups(entry: Component, seed: int) -> None:
    """Only rules that say so look beyond the group."""
    batch, credit = turns(seed), entry.build({})
    alone_BK = torch.zeros_like(batch.reward_BK)
    for group in batch.group_B.unique():
        mine_B = batch.group_B == group
        mine = mapped(batch, lambda x, mine_B=mine_B: x[mine_B], kept_B=mine_B.nonzero()[:, 0])
        alone_BK[mine_B] = given(credit, mine)
    if "batch" not in entry.bias:
        assert same(given(credit, batch), alone_BK), 'it looks beyond the group: say "batch" in its bias'


@pytest.mark.parametrize("entry", components("credit"), ids=lambda c: c.name)
def test_credit_without_its_signal_says_so(entry: Component) -> None:
    batch = turns(1)
    bare = TurnBatch(batch.reward_BK, batch.mask_BK, batch.group_B, batch.truncated_B, batch.state_BK)
    if not entry.needs:
        assert same(entry.build({})(bare), entry.build({})(batch))
        return
    with pytest.raises(RecipeError, match="|".join(entry.needs)):
        entry.build({})(bare)


# --- losses ---------------------------------------------------------------------------------------

LOSSES = variants("loss")


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


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_loss_is_finite_and_zero_off_the_mask(loss, seed: int, extreme: bool) -> None:
    batch = tokens(seed, stale=0.5, extreme=extreme)
    loss_RT, metrics = loss(batch)
    assert loss_RT.shape == batch.mask_RT.shape
    assert loss_RT.isfinite().all()
    assert not loss_RT[~batch.mask_RT].any()
    for name, metric in metrics.items():
        assert metric.dim() == 0, name
        assert metric.isfinite(), name
        assert not metric.requires_grad, name
    loss_RT.sum().backward()
    for leaf in (batch.logp_RT, batch.entropy_RT):
        if leaf.grad is not None:
            assert leaf.grad.isfinite().all()
            assert not leaf.grad[~batch.mask_RT].any()


def no_gradient(batch: TokenBatch) -> tuple[Tensor, Tensor]:
    return torch.zeros_like(batch.logp_RT), torch.zeros_like(batch.logp_RT)


FRESH_GRADIENTS = {  # by name: (∂/∂logp, ∂/∂entropy) at zero staleness, for what is no policy gradient
    "kl": no_gradient,  # the reference is the policy itself
    "entropy": lambda batch: (torch.zeros_like(batch.logp_RT), -batch.mask_RT.double()),
}


@pytest.mark.parametrize("entry", components("loss"), ids=lambda c: c.name)
def test_gradient_at_zero_staleness(entry: Component) -> None:
    """Law 2: d loss / d logp = −A unless the loss is listed as doing something else."""
    for seed in SEEDS:
        batch = tokens(seed)
        entry.build({})(batch).loss_RT.sum().backward()
        expected = FRESH_GRADIENTS.get(entry.name, lambda b: (-b.advantage_RT, torch.zeros_like(b.logp_RT)))
        for leaf, gradient_RT in zip((batch.logp_RT, batch.entropy_RT), expected(batch), strict=True):
            found_RT = leaf.grad if leaf.grad is not None else torch.zeros_like(leaf)
            assert same(found_RT, gradient_RT)


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_kl_descends_what_it_says(estimator: str) -> None:
    """On average over the policy's own tokens: k1, k2 → ∇KL(π‖ref), k3 → ∇KL(ref‖π)."""
    logits = torch.tensor([0.3, -0.5, 1.1], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([0.5, 0.2, -0.4], dtype=torch.float64).log_softmax(-1)
    logp = logits.log_softmax(-1)
    mask = torch.ones(3, 1, dtype=torch.bool)
    zeros = torch.zeros(3, 1, dtype=torch.float64)
    batch = TokenBatch(
        logp[:, None], zeros, zeros, zeros, zeros, mask, zeros.long(),
        torch.arange(3), torch.zeros(3).long(), reference[:, None],
    )  # fmt: skip
    loss = get_component("loss", "kl").build({"estimator": estimator})(batch).loss_RT[:, 0]
    (found,) = torch.autograd.grad((logp.exp().detach() * loss).sum(), logits, retain_graph=True)
    forward = (reference.exp() * (reference - logp)).sum()
    reverse = (logp.exp() * (logp - reference)).sum()
    (expected,) = torch.autograd.grad(forward if estimator == "k3" else reverse, logits)
    assert torch.allclose(found, expected)
    if estimator != "k2":  # and they estimate KL(π‖ref) without bias
        assert (logp.exp() * loss).sum().item() == pytest.approx(reverse.item())


def test_clip_stops_the_gradient_outside_the_trust_region_only_where_it_helps() -> None:
    from math import log

    from turnwise.trainers.by_hand import token_batch

    ratios, advantages = [1.5, 1.5, 0.5, 0.5, 4.0], [1.0, -1.0, 1.0, -1.0, -1.0]
    batch = token_batch([[log(r) for r in ratios]], [advantages], old_logp=[[0.0] * 5])
    loss_RT, metrics = get_component("loss", "clip").build({"high": 0.28})(batch)
    loss_RT.sum().backward()
    assert batch.logp_RT.grad is not None
    assert batch.logp_RT.grad.tolist() == [pytest.approx([0.0, 1.5, -0.5, 0.0, 0.0])]
    shares = [metrics[name].item() for name in ("clip_low", "clip_high", "clip_dual")]
    assert shares == pytest.approx([0.2, 0.2, 0.2])


# --- corrections ----------------------------------------------------------------------------------

CORRECTIONS = variants("correction")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_correction_weights(correction, seed: int) -> None:
    agreed, apart = tokens(seed), tokens(seed, stale=1.0)
    assert same(correction(agreed), agreed.mask_RT.double()), "1 where engine and trainer agree"
    for batch in (apart, tokens(seed, stale=1000.0)):
        weight_RT = correction(batch)
        assert weight_RT.isfinite().all()
        assert (weight_RT >= 0).all()
        assert not weight_RT.requires_grad
        assert not weight_RT[~batch.mask_RT].any()


def test_truncation_caps_and_masking_drops() -> None:
    batch = tokens(1, stale=2.0)
    ratio_RT = (batch.old_logp_RT - batch.behaviour_logp_RT).exp()
    tis_RT = get_component("correction", "tis").build({"cap": 1.5})(batch)
    mis_RT = get_component("correction", "mis").build({"low": 0.8, "high": 1.25})(batch)
    assert tis_RT.max() == 1.5
    kept_RT = batch.mask_RT & (ratio_RT >= 0.8) & (ratio_RT <= 1.25)
    assert torch.equal(mis_RT != 0, kept_RT)


# --- reducers -------------------------------------------------------------------------------------

REDUCERS = variants("reduce")
ROWS = row_mask([[0, 0, -1, 1], [0, -1, 1, 1], [2, 2], [-1], [0, 1, 2]], trajectory=[0, 1, 1, 2, 3])


@pytest.mark.parametrize("reduce", REDUCERS)
def test_reducer_weights(reduce) -> None:
    weight_RT = reduce(ROWS)
    assert weight_RT.shape == ROWS.mask_RT.shape
    assert (weight_RT[ROWS.mask_RT] > 0).all()
    assert not weight_RT[~ROWS.mask_RT].any()
    nothing = row_mask([[-1, -1]])
    assert not reduce(nothing).any(), "an empty batch divides by nothing"


@pytest.mark.parametrize("reduce", REDUCERS)
def test_reducer_depends_on_neither_order_nor_padding_nor_empty_rows(reduce) -> None:
    weight_RT = reduce(ROWS)
    order_R = torch.tensor([3, 1, 4, 0, 2])
    assert same(reduce(RowMask(*(x[order_R] for x in ROWS))), weight_RT[order_R])
    padded = RowMask(
        torch.nn.functional.pad(ROWS.mask_RT, (2, 1)),
        torch.nn.functional.pad(ROWS.turn_RT, (2, 1), value=-1),
        ROWS.trajectory_R,
    )
    assert same(reduce(padded)[:, 2:-1], weight_RT)
    kept_R = ROWS.mask_RT.any(1)
    assert same(reduce(RowMask(*(x[kept_R] for x in ROWS))), weight_RT[kept_R])


@pytest.mark.parametrize("reduce", REDUCERS)
def test_reducer_does_not_care_how_a_trajectory_is_cut_into_rows(reduce) -> None:
    whole = reduce(row_mask([[0, 0, 1], [0, 1, 1]]))
    split = reduce(row_mask([[0, 0, 1], [0, 1], [1]], trajectory=[0, 1, 1]))
    assert same(whole[0], split[0])
    assert same(whole[1].sum(), split[1:].sum())


@pytest.mark.parametrize("name", ["token_mean", "turn_mean", "sequence_mean"])
def test_means_sum_to_one(name: str) -> None:
    assert get_component("reduce", name).build({})(ROWS).sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize("entry", components("reduce"), ids=lambda c: c.name)
def test_bias_of_the_denominator_is_as_declared(entry: Component) -> None:
    """Law 3 for reducers: an unbiased credit under this denominator, one token per turn."""
    reduce, rloo = entry.build({}), get_component("credit", "rloo").build({})

    def reduced(batch: TurnBatch) -> Tensor:
        turn_BK = torch.arange(batch.mask_BK.shape[1]).expand_as(batch.mask_BK)
        rows = RowMask(
            batch.mask_BK, turn_BK.masked_fill(~batch.mask_BK, -1), torch.arange(len(batch.group_B))
        )
        return rloo(batch) * reduce(rows)

    found = {}
    for process in PROCESSES:
        p = paths(process, lopsided(process))
        found[process.name] = compare(expected_update(reduced, p, 2, {}).mean_SA, p.policy_gradient())
    scales = [bias.scale for bias in found.values()]
    crooked = max(bias.angle for bias in found.values()) > 1e-3 or max(scales) - min(scales) > 1e-3
    assert found["chain"].angle < 1e-6, "where all trajectories are equally long, only a factor is lost"
    assert crooked == entry.bias.startswith("biased"), found


# --- filters and rewards --------------------------------------------------------------------------

EPISODES = [
    episode([0.0, 0.25, 0.5], end=End.FAILED),
    episode([1.0], end=End.SOLVED),
    episode([], end=End.TOKEN_LIMIT),
    episode([0.0, 0.0], end=End.TURN_LIMIT),
    episode([0.5, 0.5], parts={"cost": [-0.1, -0.1], "progress": [0.8, 0.3]}, end=End.SOLVED),
    episode([0.0, 0.0], parts={"cost": [-0.1, -0.1], "progress": [0.8, 0.3]}),
]


@pytest.mark.parametrize("keep", variants("filter"))
def test_filter_does_not_depend_on_order(keep) -> None:
    answers = {keep(list(order)) for order in itertools.permutations(EPISODES)}
    assert len(answers) == 1
    assert isinstance(answers.pop(), bool)
    assert keep([]) is False
    assert keep([EPISODES[0], EPISODES[1]]) is True


@pytest.mark.parametrize("reward", variants("reward"))
def test_reward_is_pure_and_keeps_the_ledger(reward) -> None:
    before = [repr(e) for e in EPISODES]
    changed = reward(EPISODES)
    assert [repr(e) for e in EPISODES] == before
    assert len(changed) == len(EPISODES)
    for old, new in zip(EPISODES, changed, strict=True):
        assert (new.task, new.seed, new.end, new.outcome) == (old.task, old.seed, old.end, old.outcome)
        assert len(new.trajectory.turns) == len(old.trajectory.turns)
        for turn, was in zip(new.trajectory.turns, old.trajectory.turns, strict=True):
            assert turn.reward == pytest.approx(sum(turn.rewards.values()))
            assert set(was.rewards) <= set(turn.rewards), "a part of the ledger was lost"
    reordered = reward(EPISODES[::-1])
    assert [repr(e) for e in reordered] == [repr(e) for e in changed][::-1]
