"""``gymnasium.make`` knows our ids and those of installed packages, whatever is imported first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = '''
from turnwise import AgentEnv, EndReason, Task, Transition, register

class Coin(AgentEnv):
    """A coin."""
    @classmethod
    def generate(cls, rng, split, **knobs):
        return Task("mini/Coin-v0", "Heads or tails?", {"n": rng.random()})
    def initial(self, task):
        return 0, task.prompt
    def transition(self, state, action):
        return Transition(1, "Right.", {"outcome": 1.0}, EndReason.SOLVED)
    def gold(self, state):
        return "heads"

def enter():
    register("mini/Coin-v0", "mini_plugin:Coin", "A coin.")
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("site")
    (base / "mini_plugin.py").write_text(PLUGIN)
    about = base / "mini_plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mini-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[turnwise.plugins]\nmini = mini_plugin:enter\n")
    return base


@pytest.mark.parametrize(
    "order",
    [
        "import gymnasium, turnwise",
        "import turnwise, gymnasium",
        "from turnwise import Task; import gymnasium",
    ],
)
def test_gymnasium_makes_what_is_installed_in_either_order_of_imports(site: Path, order: str) -> None:
    program = (
        f"{order}\nfor name in ('mini/Coin-v0', 'turnwise/Calc-v0'): print(gymnasium.make(name).spec.id)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True
    )
    assert done.stdout.split() == ["mini/Coin-v0", "turnwise/Calc-v0"]


def test_a_package_that_is_imported_first_is_no_broken_plugin(site: Path) -> None:
    program = "import gymnasium, mini_plugin, turnwise\nprint(turnwise.make('mini/Coin-v0').reset(seed=0)[0])"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True
    )
    assert done.stdout.strip() == "user: Heads or tails?"
    assert "left out" not in done.stderr
