"""A run whose environments are on hosts that die and come back is the run without them."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from hosts import Host

from turnwise.agents.log.episode_log import LogReader
from turnwise.errors import RecipeError, RunError
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.run.loop import train


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    from letters import RECIPE, register_letters

    register_letters()
    return yaml.safe_load(RECIPE) | {"updates": 3, "evaluate": {"every": 3, "dev": 2, "test": 2}}


@pytest.fixture
def hosts(letters: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Host]]:
    """Two, on which an episode takes a moment to begin, so that some are in the making at any time."""
    (tmp_path / "token").write_text("0123456789abcdef0123456789abcdef")
    with contextlib.ExitStack() as stack:
        with monkeypatch.context() as slow:
            slow.setenv("LETTERS_PAUSE", "0.05")
            found = [Host(tmp_path / "token") for _ in range(2)]
        for host in found:
            stack.callback(host.close)
        yield found


class Strikes(threading.Thread):
    """Kills each host in turn, as soon as the run has a process there, and starts it again; until told to stop.

    More and more rarely, so that a run comes to its end on a slow machine too.
    """

    def __init__(self, hosts: list[Host]) -> None:
        super().__init__(daemon=True)
        self._hosts, self._over, self.count = hosts, threading.Event(), 0

    def run(self) -> None:
        while not self._over.wait(0.1 * (1 + self.count)):
            host = self._hosts[self.count % 2]
            if len(host.family) < 3:  # itself, a keeper and its worker
                continue
            host.end(signal.SIGKILL)
            host.start()
            self.count += 1

    def stop(self) -> None:
        self._over.set()
        self.join(60)


@pytest.mark.slow
def test_a_run_whose_hosts_are_killed_has_every_episode_once_and_as_without(
    letters: dict[str, Any], hosts: list[Host], tmp_path: Path
):
    train(letters, out=tmp_path / "here", preflight=False, log=lambda line: None)
    scale = {"worker_hosts": [host.address for host in hosts], "token_file": str(tmp_path / "token")}
    strikes = Strikes(hosts)
    strikes.start()
    train(letters | {"scale": scale}, out=tmp_path / "there", preflight=False, log=lambda line: None)
    strikes.stop()
    assert strikes.count
    here, there = (list(LogReader(tmp_path / out / "episodes.jsonl.zst")) for out in ("here", "there"))
    played = [sorted((r.update, r.episode.task.id, r.episode.seed) for r in found) for found in (here, there)]
    assert played[0] == played[1]
    assert len(set(played[1])) == len(there) == 36
    assert all(record.episode.outcome.counts for record in there)
    first = [
        {
            r.episode.seed: [(t.reply.action_ids, t.reward, t.state_key) for t in r.episode.trajectory.turns]
            for r in found
            if r.update == 1
        }
        for found in (here, there)
    ]
    assert first[0] == first[1]


@pytest.mark.slow
def test_a_run_whose_hosts_all_refuse_it_ends_at_once_with_the_cause(
    letters: dict[str, Any], hosts: list[Host], tmp_path: Path
):
    other = tmp_path / "other"
    other.write_text("another-token-of-16-characters")
    scale = {"worker_hosts": [hosts[0].address], "token_file": str(other)}
    with pytest.raises(RunError, match="has another token"):
        train(letters | {"scale": scale}, out=tmp_path / "run", preflight=False, log=lambda line: None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scale.worker_hosts": ["node7:8800"]}, "no token is named"),
        ({"scale.worker_hosts": ["node7"], "scale.token_file": "t"}, "'node7' is no address"),
        (
            {"scale.worker_hosts_file": "h", "scale.token_file": "t", "rollout.env_workers": 2},
            "Leave one of them out",
        ),
    ],
)
def test_hosts_that_a_recipe_cannot_have_are_refused(changes: dict[str, Any], said: str):
    with pytest.raises(RecipeError, match=said):
        load_recipe("shop-quick", changes)
