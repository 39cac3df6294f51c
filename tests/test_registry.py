"""Where plugins are looked for, and how often: every lookup of an environment asks for them."""

from __future__ import annotations

import importlib.metadata
import sys
from importlib.metadata import entry_points
from pathlib import Path

import gymnasium
import pytest

from turnwise import blame
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import Request, run_episodes
from turnwise.blame import installed_plugins
from turnwise.envs import registry
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.envs.sources import WRAP, load_class
from turnwise.errors import EnvError, TurnwiseError
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


SEVERAL = """
from turnwise import AgentEnv, EndReason, Suite, Task, Transition, register, register_suite

class Twice(AgentEnv[int]):
    @classmethod
    def generate(cls, rng, split, *, size=1):
        return Task("two/Twice-v0", f"Size {size}.", {"size": size, "split": str(split)})

    def initial(self, task):
        return 0, task.prompt

    def transition(self, state, action):
        return Transition(state, "Done.", {"outcome": 1.0}, EndReason.SOLVED)

    def gold(self, state):
        return "go"

register("two/Twice-v0", "twice:Twice", "Two sizes.")
register_suite(Suite("two/small", "two/Twice-v0", "Small", {"size": 1}))
register_suite(Suite("two/large", "two/Twice-v0", "Large", {"size": 9}))
"""


def test_of_a_file_with_several_suites_one_is_named_and_none_is_taken_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_suite("sort/4")  # what is ours is registered for good
    for name in ("_envs", "_suites"):
        monkeypatch.setattr(registry, name, dict(getattr(registry, name)))
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "twice.py"
    file.write_text(SEVERAL)
    with pytest.raises(EnvError) as told:
        get_suite(str(file))
    assert told.value.cause == f"{file} has several suites: two/large, two/small."
    assert told.value.remedy == f"Name one: {file}:two/large."
    assert get_suite(f"{file}:two/small").knobs == {"size": 1}
    with pytest.raises(TurnwiseError, match="Did you mean 'two/small'"):
        get_suite(f"{file}:two/smal")
    gymnasium.registry.pop("two/Twice-v0")


def test_a_class_of_gymnasium_that_is_registered_is_told_how_to_be_wrapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    file = tmp_path / "plain.py"
    file.write_text("import gymnasium\n\n\nclass Corridor(gymnasium.Env):\n    pass\n")
    with pytest.raises(EnvError, match=r"is no turnwise\.AgentEnv") as told:
        get_suite(f"{file}:Corridor")
    assert told.value.remedy == WRAP


def test_who_names_a_class_that_is_not_there_is_told_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from turnwise.envs.craft.env import CraftEnv\n\n\nclass Sums(CraftEnv):\n    pass\n"
    )
    (tmp_path / "none.py").write_text("x = 1\n")
    for file, name, remedy in (
        ("mine.py", "Sum", "Did you mean 'Sums'?"),
        ("mine.py", "Qwertz", "Environments in it: Sums."),
        ("none.py", "Qwertz", "Environments in it: none."),
    ):
        with pytest.raises(EnvError) as refused:
            load_class(f"{tmp_path / file}:{name}")
        assert refused.value.remedy == remedy
