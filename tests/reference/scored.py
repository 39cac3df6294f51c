"""Signals of the sampled tokens' own log-probabilities, under the policy and under the reference."""

from __future__ import annotations

from measured import Part, context, logp_of, measured, near, near_tokens, of_turns, scene, tokens_of
from plain import reference

from turnwise.trainers.check.small_policy import small_model


@reference("signal", "token_logp")
def token_logp(signal: Part) -> None:
    batch, groups = scene()
    see = context("token_logp")
    found = measured(signal, see, batch, groups)
    assert set(found.token) == {"token_logp"}
    assert not found.turn
    near_tokens(found.token["token_logp"], logp_of(see.learner.model, batch), "token")


@reference("signal", "reference_kl")
def reference_kl(signal: Part) -> None:
    """log π − log π_ref of each token; of a turn their sum."""
    batch, groups = scene()
    see = context("reference_kl")
    found = measured(signal, see, batch, groups)
    assert set(found.token) == {"token_reference_kl"}
    assert set(found.turn) == {"reference_kl"}
    now, then = logp_of(see.learner.model, batch), logp_of(small_model(1), batch)
    gaps = {at: x - then[at] for at, x in now.items()}
    assert max(map(abs, gaps.values())) > 0.5
    near_tokens(found.token["token_reference_kl"], gaps, "token")
    places = tokens_of(batch)
    turns = [
        [sum(gaps[at] for at in places[b, k]) for k in range(int(n))]
        for b, n in enumerate(batch.turns.length_B.tolist())
    ]
    near(of_turns(found.turn["reference_kl"], batch), turns, "turn")
