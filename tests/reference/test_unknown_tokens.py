"""Tokens that nobody sampled: where their log-probability is unknown, the policy's own stands for it."""

import copy
import dataclasses

import pytest
from measured import context, measured, scene

from turnwise.registry import get_component
from turnwise.trainers.check.small_policy import signal_setup


@pytest.mark.slow
def test_a_copy_of_the_policy_implies_no_reward_for_tokens_of_unknown_log_probability() -> None:
    """β·log φ/π with φ = π is 0; as certainties (log π = 0) scripted tokens were charged β·log φ."""
    batch, groups = scene()
    rows = batch.rows
    unknown = rows._replace(behaviour_logp_RT=rows.behaviour_logp_RT * 0, known_RT=rows.known_RT & False)
    entry, see = get_component("signal", "implicit_turns"), context("implicit_turns")
    setup = dataclasses.replace(signal_setup(entry), copy_policy=lambda: copy.deepcopy(see.learner.model))
    implied_BK = measured(entry.build({})(setup), see, batch._replace(rows=unknown), groups).turn["implicit"]
    assert implied_BK.abs().max() < 1e-5
