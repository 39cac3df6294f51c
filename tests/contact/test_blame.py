"""Planted faults of every side: the right party is blamed in each."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import planted_engines
import planted_http
import planted_mcp
import planted_programs
import planted_worlds
import pytest
from blame import Fault, check_blame, judged
from raw_server import RawServer, serve_raw

import turnwise
from turnwise import Limits
from turnwise.agents.policies.served.policy import OpenAIPolicy
from turnwise.agents.tokens.renderer import Renderer

ALL = [
    *planted_http.SERVERS,
    *planted_http.MODELS,
    *planted_http.FULL,
    *planted_http.NEITHER,
    *planted_worlds.FAULTS,
    *planted_engines.FAULTS,
    *planted_programs.FAULTS,
    *planted_mcp.FAULTS,
]


@pytest.fixture(scope="module")
def wire() -> Iterator[RawServer]:
    with serve_raw() as server:
        yield server


def named(fault: Fault) -> str:
    return fault.what


def over_http(fault: Fault, wire: RawServer) -> Any:
    """Play against a server that does this from its second request on, with short waits."""
    policy = OpenAIPolicy(
        "m", wire.at(planted_http.later(fault.how)), attempts=2, timeout_s=1.0, longest_wait_s=0.01
    )
    try:
        return judged(policy, limits=Limits(generate_s=5.0))
    finally:
        policy.close()


@pytest.mark.parametrize("fault", planted_http.SERVERS, ids=named)
def test_what_a_server_or_the_network_does_is_infrastructure(fault: Fault, wire: RawServer):
    check_blame(fault, over_http(fault, wire))


@pytest.mark.parametrize("fault", [*planted_http.MODELS, *planted_http.FULL], ids=named)
def test_what_a_model_says_counts(fault: Fault, wire: RawServer):
    check_blame(fault, over_http(fault, wire))


@pytest.mark.parametrize("fault", planted_http.NEITHER, ids=named)
def test_a_limit_or_a_refusal_is_named_and_no_silent_zero(fault: Fault, wire: RawServer):
    check_blame(fault, over_http(fault, wire))


@pytest.mark.parametrize("fault", planted_worlds.FAULTS, ids=named)
def test_what_a_world_does_is_its_authors_and_names_the_place(fault: Fault):
    limits = Limits(step_s=0.3 if fault.how == "takes too long" else 20.0)
    check_blame(fault, judged("scripted:gold", planted_worlds.suite_of(fault), limits=limits))


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return planted_engines.renderer()


@pytest.mark.parametrize("fault", planted_engines.FAULTS, ids=named)
def test_an_engine_that_fails_or_lies_is_infrastructure_and_what_its_model_says_counts(
    fault: Fault, renderer: Renderer
):
    policy = planted_engines.policy(fault, renderer)
    limits = Limits(generate_s=0.5 if fault.how is None else 20.0)
    check_blame(fault, judged(policy, limits=limits))


@pytest.mark.slow
@pytest.mark.parametrize("fault", planted_programs.FAULTS, ids=named)
def test_a_program_is_blamed_for_what_it_did_and_not_for_what_it_could_not_begin(
    fault: Fault, tmp_path: Path, wire: RawServer
):
    command, model = planted_programs.policy(fault, tmp_path, wire)
    check_blame(fault, judged(functools.partial(turnwise.make_policy, command, model=model)))


@pytest.mark.slow
@pytest.mark.parametrize("fault", planted_mcp.FAULTS, ids=named)
def test_every_answer_of_an_mcp_server_is_an_answer_and_what_is_none_is_infrastructure(fault: Fault):
    verdict = judged(planted_mcp.agent, planted_mcp.suite_of(fault))
    check_blame(fault, verdict)
    if fault.party == "agent":
        assert verdict.episode is not None
        assert planted_mcp.ANSWERS[fault.how] in str(verdict.episode.trajectory.turns[1].observation)


def test_there_are_twenty_faults_of_each_side_at_least():
    sides = Counter("neither" if one.party in ("author", "unbegun") else one.party for one in ALL)
    assert min(sides.values()) >= 20
    assert len({(one.what, one.party) for one in ALL}) == len(ALL)
