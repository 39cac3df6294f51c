"""Where plugins are looked for, and how often: every lookup of an environment asks for them."""

from __future__ import annotations

import importlib.metadata
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from turnwise import blame
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import Request, run_episodes
from turnwise.blame import installed_plugins
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.tasks.core import Split


def test_episodes_read_the_metadata_of_installed_packages_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading it takes 20 ms, and an episode asks several times."""
    read = list[str]()

    def counted(group: str) -> importlib.metadata.EntryPoints:
        read.append(group)
        return entry_points(group=group)

    blame._plugins_on.cache_clear()
    monkeypatch.setattr(blame, "entry_points", counted)
    suite = get_suite("sort/4")
    tasks = list(suite_tasks(suite, Split.TRAIN, 4))
    requests = [Request(task, seed) for seed, task in enumerate(tasks)]
    assert all(e.success for e in run_episodes(requests, make_policy("scripted:gold")))
    make(suite.env).close()
    assert read == ["turnwise.plugins"]


def test_what_a_new_path_brings_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "found_later-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: found-later\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[turnwise.plugins]\nlater = found_later\n")
    assert "later" not in {entry.name for entry in installed_plugins()}
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "later" in {entry.name for entry in installed_plugins()}
