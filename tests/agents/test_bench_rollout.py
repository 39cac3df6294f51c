"""The benchmarks of episodes and of the gateway run, and do the same work on both sides."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from turnwise.agents.bench.rollout import of_a_model

SMALL = """
import json
from turnwise.agents.bench.rollout import RolloutWorkload, bench_rollout
small = RolloutWorkload(tasks=2, group=2, concurrency=4, max_sequences=4, new_tokens=4)
print(json.dumps(bench_rollout(repeats=2, workload=small, engines=(1,))))
"""


GATEWAY = """
import json
from turnwise.agents.bench.gateway import GatewayWorkload, bench_gateway
small = GatewayWorkload(sessions=12, replies=2, new_tokens=4, max_sequences=4)
print(json.dumps(bench_gateway(repeats=1, workload=small)))
"""


def measured(program: str) -> dict[str, list[float]]:
    """In a process of its own: the session's engine is the only one that this one can have."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("concurrency", [1, 9, 64, 256])
def test_a_model_plays_as_many_episodes_at_once_as_asked(concurrency: int) -> None:
    load = of_a_model(concurrency)
    assert load.max_sequences == load.concurrency == concurrency
    assert concurrency <= load.tasks * load.group < concurrency + load.group


@pytest.mark.slow
@pytest.mark.full  # a benchmark, at its smallest
@pytest.mark.usefixtures("vllm")
def test_figures_are_of_the_same_tokens() -> None:
    figures = measured(SMALL)
    here = {"rollout", "raw", "share_of_raw", "share_of_raw_processor", "client"}
    elsewhere = {f"{name}_1_elsewhere" for name in (*here, "engines", "stall")}
    assert set(figures) == here | elsewhere
    assert all(value > 0 and spread >= 0 for value, _, spread in figures.values())


@pytest.mark.slow
@pytest.mark.full  # a benchmark, at its smallest
@pytest.mark.usefixtures("vllm")
def test_the_gateway_and_the_engine_alone_sample_the_same_tokens() -> None:
    """The benchmark refuses to answer where they do not."""
    figures = measured(GATEWAY)
    assert {"gateway", "engine_alone", "share_of_engine", "added_latency_12_sessions"} <= set(figures)
    assert figures["added_latency_one_session"][0] > 0  # a reply by HTTP cannot be there before the engine's
