"""A recipe is taken apart at the door of a run; behind it rooms are given the values that they use."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parent.parent
_SPEC = importlib.util.spec_from_file_location("recipe_keys", ROOT / "scripts" / "recipe_keys.py")
assert _SPEC is not None
assert _SPEC.loader is not None
keys = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(keys)

MOST_TAKERS = 12
MOST_READERS = 5


def test_few_functions_of_a_run_take_a_whole_recipe() -> None:
    found = keys.takers()
    assert "opened" in {one.split()[-1] for one in found}
    assert len(found) <= MOST_TAKERS, "\n".join(found)


def test_a_key_is_read_by_name_in_few_files() -> None:
    found = keys.reads()
    assert "trainers/run/door.py" in found["rollout.env_options"]
    assert not {key: files for key, files in found.items() if len(files) > MOST_READERS}


def test_reads_are_seen_through_sections_variables_and_types(tmp_path: Path) -> None:
    room = tmp_path / "trainers" / "run"
    room.mkdir(parents=True)
    (room / "some.py").write_text(
        "def f(recipe):\n    scale, model = recipe.scale, self.recipe.model\n    scale.staleness\n    model.lora.rank\n"
        "async def g(options: Rollout | None, other):\n    options.groups\n    other.seed\n    model.path\n"
        "def h(self, *, given: list[Recipe]): ...\n"
    )
    assert keys.reads(tmp_path) == {
        key: ["trainers/run/some.py"] for key in ("model.lora.rank", "rollout.groups", "scale.staleness")
    }
    assert keys.takers(tmp_path) == ["trainers/run/some.py:9 h"]
