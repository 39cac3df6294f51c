"""Token-level and judged rules against numpy written from the formulas alone, to rtol 1e-5."""

import numpy as np
import pytest

from turnwise.registry import get_component
from turnwise.trainers.kit.token_credit import on_tokens, on_turns
from turnwise.trainers.kit.toy_batches import turn_batch


def z(x) -> np.ndarray:
    x = np.asarray(x, float)
    return (x - x.mean()) / (x.std(ddof=1) + 1e-6)


def given(name: str, batch, **options):
    """What a rule gives, or a shape over a rule ("grpo gtpo")."""
    rule, *shapes = name.split()
    if not shapes:
        return get_component("credit", rule).build(options)(batch)
    return get_component("shape", shapes[0]).build(options)(
        get_component("credit", rule).build({})(batch), batch
    )


def tokens_of(name: str, batch, **options) -> np.ndarray:
    return on_tokens(given(name, batch, **options), batch)[batch.tokens.mask_RT].numpy()


def turns_of(name: str, batch, **options) -> np.ndarray:
    return on_turns(given(name, batch, **options), batch)[batch.mask_BK].numpy()


def backwards(r, v, discount: float, lam: float) -> np.ndarray:
    out, a = np.zeros(len(r)), 0.0
    for i in reversed(range(len(r))):
        a = r[i] + discount * (v[i + 1] if i + 1 < len(r) else 0) - v[i] + discount * lam * a
        out[i] = a
    return out


def close(found, expected) -> None:
    np.testing.assert_allclose(found, np.concatenate([np.ravel(x) for x in expected]), rtol=1e-5, atol=1e-9)


V = np.arange(1, 11) / 10
TEN = turn_batch([[1, 1]], tokens=[[[0] * 5, [0] * 5]], token_signals={"token_value": [V.tolist()]})


def test_gae_of_tokens() -> None:
    paid = np.array([0, 0, 0, 0, 1, 0, 0, 0, 0, 1.0])
    close(tokens_of("gae_token", TEN, discount=0.9, lam=0.95), [backwards(paid, V, 0.9, 0.95)])


@pytest.mark.parametrize("lam", [1.0, 0.9])
def test_bilevel_gae_on_ragens_example(lam: float) -> None:
    high = backwards([1, 1], V[[4, 9]], 0.95, lam) + V[[4, 9]]
    if lam == 1.0:
        assert high.tolist() == pytest.approx([1.95, 1.0])
    parts = [
        backwards([0, 0, 0, 0, paid], part, 1.0, lam) for paid, part in zip(high, (V[:5], V[5:]), strict=True)
    ]
    close(tokens_of("gae_bilevel", TEN, lam=lam), parts)


def test_prime() -> None:
    q = [np.array([0.4, 0.2, -0.1]) * 0.05, np.array([-0.2, -0.4]) * 0.05]
    batch = turn_batch(
        [[0, 1], [0]],
        tokens=[[[1, 2], [3]], [[1, 2]]],
        token_signals={"token_implicit": [x.tolist() for x in q]},
    )
    most = max(np.abs(x[::-1].cumsum()).max() for x in q) + 1e-6
    r = [x / most for x in q]
    means = sum(x.mean() for x in r)
    step = [2 * x - means for x in r]
    paid = [5 * x for x in step]
    paid[0][-1] += 5
    paid[1][-1] -= 5
    summed = np.concatenate([x[::-1].cumsum()[::-1] for x in paid])
    close(tokens_of("prime", batch), [(summed - summed.mean()) / np.sqrt(summed.var(ddof=1) + 1e-8)])


def test_judged_rules() -> None:
    batch = turn_batch(
        [[0, 1], [0, 0], [0, 0], [0, 1]],
        signals={
            "wrong": [[0, 1], [1, 0], [1, 1], [0, 0]],
            "tokens": [[2, 2], [2, 1], [3, 1], [1, 2]],
            "standing": [[x, x] for x in (1 / 3, 2 / 3, 0.0, 1.0)],
            "matched": [[x, x] for x in (0.75, 0.25, 0.5, 0.0)],
            "principle": [[0.8, 0.4], [0.5, 0], [1, 0], [0, 0]],
            "progress": [[0.1, 0.3], [0.2, 0], [0, 0.1], [0.4, 0.4]],
            "valid": [[1, 0], [1, 1], [0, 1], [1, 1]],
        },
    )
    score = z([1, 0, 0, 1])
    close(
        turns_of("grpo tp_grpo", batch),
        [[score[0], score[0] - 0.5], [score[1], 0], [score[2]] * 2, [score[3]] * 2],
    )
    close(turns_of("arena", batch), [np.repeat(z([1 / 3, 2 / 3, 0, 1]), 2)])
    close(turns_of("e_grpo", batch), [np.repeat(z([1, 0.1, 0.2, 1]), 2)])
    paid = np.array([2, 2, 1, 1, -1, -1, 0, -1, -1, -1, -1, 2, 2, 2], float)
    each = z(paid)
    close(turns_of("capo", batch), [each[[0, 2, 4, 6, 7, 10, 11, 12]]])
    go = np.array([[0.8, 1], [0.5 - 1, 0], [1 - 1, 0], [0, 1]])
    go = go[:, ::-1].cumsum(1)[:, ::-1]
    close(turns_of("ppr", batch), [go - (go.sum(0) - go) / 3])
    spa = np.array([[0.1, 0.3], [0.2, 0], [0, 0.1], [0.4, 0.4]]) + 0.5 * np.array(
        [[1, 0], [1, 1], [0, 1], [1, 1]]
    )
    spa = spa[:, ::-1].cumsum(1)[:, ::-1]
    close(turns_of("spa", batch), [spa - (spa.sum(0) - spa) / 3])


def test_dcpo_on_its_third_visit() -> None:
    """All succeed, after visits with means 1/4 and 1/2: μ̄ = 0.5833, σ̄ = 0.5401; the paper's formula worked by hand."""
    past = {"past_visits": [2.0] * 4, "past_mean": [0.375] * 4, "past_std": [0.3072916667**0.5] * 4}
    found = turns_of("dcpo", turn_batch([[1]] * 4, signals=past))
    mean = (2 * 0.375 + 1) / 3
    std = np.sqrt((2 * 0.3072916667 + 0 + 2 / 3 * (1 - 0.375) ** 2) / 3)
    close(found, [[(1 - mean) / std / 3] * 4])
    assert found[0] == pytest.approx(0.2572, abs=1e-4)


def test_shared_tokens_and_entropy_gates() -> None:
    entropy = [[0.01, 0.9, 0.3, 0.05], [1.2, 0.02, 0.6, 0.1], [0.03], [0.4]]
    batch = turn_batch(
        [[1], [0], [0], [1]],
        tokens=[[[1, 2, 3, 5]], [[1, 2, 4, 5]], [[7]], [[8]]],
        token_signals={"token_entropy": entropy, "token_planning": [[1, 0, 0, 1], [0, 1, 0, 0], [1], [0]]},
    )
    score = z([1, 0, 0, 1])
    factors = ([2, 2, 1, 2], [0, 0, 1, 0], [1], [1])
    close(
        tokens_of("grpo gtpo", batch),
        [(s - 0.1 * np.mean(h)) * np.array(f) for s, h, f in zip(score, entropy, factors, strict=True)],
    )
    kept = [np.array(h) >= np.quantile(h, 0.8) for h in entropy]
    close(tokens_of("grpo earl", batch), [s * k for s, k in zip(score, kept, strict=True)])
    close(tokens_of("dr_grpo hicra", batch), [[0.6, 0.5, 0.5, 0.6], [-0.5, -0.4, -0.5, -0.5], [-0.4], [0.5]])
