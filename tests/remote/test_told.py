"""What a run tells of each engine elsewhere, second by second, and how ``top`` and the viewer show it."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from answers import PROMPTS, wait_for

from turnwise.agents.core import Completion, Sampling
from turnwise.agents.engines.torch import TorchEngine
from turnwise.cli.top import picture
from turnwise.console import SafeConsole
from turnwise.trainers.report.events import live_run
from turnwise.trainers.run.events import Events
from turnwise.trainers.view.run import now_shown

Fleet = Callable[..., Any]
TOKENS = 40


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnwise.trainers.run.events.STATE_S", 0.1)


def play(folder: Path, remote: Any, prompts: list[list[int]]) -> list[Completion]:
    """Sample while the run tells of it."""
    events, policy = Events(folder), SimpleNamespace(in_flight=0, sampled=0)

    async def one(prompt: list[int], seed: int) -> Completion:
        policy.in_flight += 1
        done = await remote.generate(prompt, Sampling(max_tokens=TOKENS), stop_ids=(), seed=seed)
        policy.in_flight -= 1
        policy.sampled += len(done.token_ids)
        return done

    async def together() -> list[Completion]:
        async with events.ticking([policy], remote.health):
            return list(await asyncio.gather(*(one(prompt, n) for n, prompt in enumerate(prompts))))

    events.tell("start", update=0, updates=1, staleness=0, episodes=4)
    return asyncio.run(together())


def states(folder: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] == "state"]


def shown(folder: Path) -> str:
    console = SafeConsole(file=io.StringIO(), width=200)
    console.print(picture(folder, live_run(folder)))
    return console.file.getvalue()


def test_the_tokens_of_each_engine_are_told_as_they_come(
    served: Any, fleet: Fleet, tmp_path: Path, quick: None
):
    servers = [served(), served()]
    remote = fleet(*(server.url for server in servers))
    found = play(tmp_path, remote, PROMPTS * 4)
    rows = states(tmp_path)
    sampled = {server.name: 0.0 for server in servers}
    for before, row in itertools.pairwise(rows):
        for name, engine in row["engines"].items():
            sampled[name] += engine["tokens_per_second"] * (row["time"] - before["time"])
    assert sum(sampled.values()) == pytest.approx(sum(len(one.token_ids) for one in found), rel=0.1)
    by_answers = {row.name: row.tokens for row in remote.health()}
    assert sampled == pytest.approx(by_answers, rel=0.1)
    assert max(sum(e["in_flight"] for e in row["engines"].values()) for row in rows) > 1
    assert {name: engine["answers"] for name, engine in rows[-1]["engines"].items()} == {
        row.name: row.answers for row in remote.health()
    }


def test_an_engine_that_is_out_is_told_with_its_cause_and_one_with_older_weights_with_its_lag(
    served: Any, fleet: Fleet, alone: TorchEngine, tmp_path: Path, quick: None
):
    good, bad = served(), served()
    remote = fleet(good.url, bad.url)
    for version in (1, 2, 3):
        remote.load_weights(((name, tensor + 0.02 * version) for name, tensor in alone.tensors()), version)
        if version == 1:
            bad.close()
    wait_for(lambda: any("absent" in row.cause for row in remote.health()))
    play(tmp_path, remote, PROMPTS)
    Events(tmp_path).tell("published", version=3, stall=0.1)
    by_name = {engine.name: engine for engine in live_run(tmp_path).engines}
    out, serves = by_name[bad.name], by_name[good.name]
    assert (serves.serving, serves.lag, serves.version, serves.failures) == (True, 0, 3, ())
    assert serves.stall > 0
    assert not out.serving
    assert out.lag == 2
    assert dict(out.failures)["dead"] >= 1
    said = shown(tmp_path)
    assert f"{good.name}" in said
    assert "weights 3" in said
    assert "weights 1 (2 behind)" in said
    assert "out: absent: " in said
    assert "1 × dead" in said


def test_top_and_the_viewer_say_what_was_told_and_no_more(tmp_path: Path):
    (tmp_path / "events.jsonl").write_text(
        json.dumps({"time": 1.0, "kind": "published", "version": 7, "stall": 0.01})
        + "\n"
        + json.dumps(
            {
                "time": 2.0,
                "kind": "state",
                "in_flight": 9,
                "engines": {
                    "a:1\x1b[2J": {
                        "serving": False,
                        "version": 6,
                        "in_flight": 4,
                        "answers": 3,
                        "tokens_per_second": 12.4,
                        "stall": 0.25,
                        "failures": {"wedged": 2},
                        "cause": "wedged: <b>nothing",
                    }
                },
            }
        )
        + "\n"
    )
    said = shown(tmp_path)
    assert "\x1b[2J" not in said
    assert (
        "out: wedged: <b>nothing  4 in hand  12 tok/s  weights 6 (1 behind)  stall 250 ms  failed 2 × wedged"
        in said
    )
    assert "5 answers wait for an engine" in said
    now = now_shown(tmp_path)
    assert now is not None
    (engine,) = now.engines
    assert (engine.lag, engine.in_flight, engine.failures) == (1, 4, (("wedged", 2),))
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "events.jsonl").write_text('{"kind": "state", "engines": {"a:1": 3}}\n')
    assert now_shown(damaged) is None
