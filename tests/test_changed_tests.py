"""What `make test CHANGED=1` chooses: never less than a change reaches, and not everything."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
FILES = {
    "src/turnwise/__init__.py": 'OFFERED = {"make": "turnwise.envs.registry", "train": "turnwise.trainers.loop"}\n',
    "src/turnwise/registry.py": "from turnwise.kinds import KINDS\n",
    "src/turnwise/kinds.py": 'KINDS = {"credit": ComponentKind("About.", "turnwise.trainers.credit", "turnwise.trainers.check")}\n',
    "src/turnwise/blame.py": "import turnwise\nHERE = turnwise.__file__\n",
    "tasks/__init__.py": "",
    "tasks/core.py": "",
    "tasks/suites/shop.yaml": "shop/quick:\n  env: turnwise/Shop-v0\n",
    "tasks/suites/grid.yaml": "grid/small:\n  env: turnwise/Grid-v0\n",
    "envs/__init__.py": "",
    "envs/core.py": "from turnwise.tasks.core import Task\nfrom turnwise.blame import HERE\n",
    "envs/registry.py": 'import importlib\nfrom turnwise.envs.core import Env\nimportlib.import_module("turnwise.envs.builtin")\n',
    "envs/builtin.py": 'ENVS = {"turnwise/Shop-v0": ("turnwise.envs.shop.env:Shop"), "turnwise/Grid-v0": (\n    "turnwise.envs.grid.env:Grid",)}\n',
    "envs/shop/__init__.py": "",
    "envs/shop/env.py": "from turnwise.envs.core import Env\nfrom turnwise.envs.shop.render import page\n",
    "envs/shop/render.py": 'from importlib.resources import files\nPAGE = files("turnwise.envs.shop") / "page.html"\n',
    "envs/shop/words.py": "",
    "envs/shop/page.html": "<p>",
    "envs/grid/__init__.py": "",
    "envs/grid/env.py": "from turnwise.envs.core import Env\n",
    "trainers/__init__.py": "",
    "trainers/check.py": "",
    "trainers/loop.py": "from turnwise.kinds import KINDS\n",
    "trainers/credit/__init__.py": "",
    "trainers/credit/rloo.py": '""">>> 1\n"""\n',
    "trainers/credit/grpo.py": "from turnwise.trainers.kit import mean\n",
    "trainers/kit.py": "",
    "trainers/recipe/presets/shop-quick.yaml": "suite: shop/quick\ncredit: grpo\n",
    "scripts/draw.py": "",
    "docs/page.md": "",
    "pyproject.toml": "",
    "tests/conftest.py": "def model():\n    from turnwise.trainers import loop\n\n\ndef other():\n    return 1\n",
    "tests/test_docs.py": 'PAGES = ["docs"]\n',
    "tests/test_words.py": "from turnwise.envs.shop import words\n",
    "tests/test_shop.py": 'SUITE = "shop/quick"\n',
    "tests/test_grid.py": 'from turnwise.envs.registry import make\nENV = make("turnwise/Grid-v0")\n',
    "tests/test_all_envs.py": "from turnwise.envs.registry import env_entries\nALL = env_entries()\n",
    "tests/test_rules.py": 'from turnwise.registry import components\nRULES = components("credit")\n',
    "tests/test_rloo.py": 'RULE = get_component("credit", "rloo")\n',
    "tests/test_gold.py": 'SAID = "the rloo of another text"\n',
    "tests/test_recipe.py": 'RECIPE = "shop-quick"\n',
    "tests/test_model.py": "def test_it(model): ...\n",
    "tests/test_api.py": "import turnwise\nturnwise.train()\n",
    "tests/test_draw.py": 'PROGRAM = "draw.py"\n',
    "tests/test_plain.py": "import json\n",
}
ENVS = {"test_all_envs", "test_api", "test_grid", "test_shop", "test_recipe"}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """scripts/changed_tests.py, which is no module of the package."""
    spec = importlib.util.spec_from_file_location("changed_tests", ROOT / "scripts" / "changed_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def chosen(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``chosen("envs/core.py")``: the tests, and the modules with doctests, that this change reaches in the small tree."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "HOUSE", ())

    def choose(*changed: str) -> set[str]:
        found = script.targets(script.Tree([*FILES, *changed]), changed)
        return {"everything"} if found == script.WHOLE else {Path(name.rstrip("]")).stem for name in found}

    return choose


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("envs/core.py", ENVS),
        ("envs/shop/env.py", {"test_shop", "test_recipe", "test_all_envs"}),
        ("envs/shop/render.py", {"test_shop", "test_recipe", "test_all_envs"}),
        ("envs/shop/page.html", {"test_shop", "test_recipe", "test_all_envs"}),
        ("envs/shop/words.py", {"test_words"}),
        ("envs/shop/__init__.py", {"test_shop", "test_recipe", "test_all_envs", "test_words"}),
        ("envs/grid/env.py", {"test_grid", "test_all_envs"}),
        ("tasks/core.py", ENVS),
        ("tasks/suites/shop.yaml", {"test_shop", "test_recipe"}),
        ("tasks/suites/grid.yaml", {"everything"}),  # nobody names a suite of it
        ("src/turnwise/blame.py", ENVS),
        ("trainers/loop.py", {"test_model", "test_api"}),
        ("trainers/credit/rloo.py", {"rloo", "test_rloo", "test_rules"}),
        ("trainers/credit/grpo.py", {"test_recipe", "test_rules"}),
        ("trainers/kit.py", {"test_recipe", "test_rules"}),
        ("trainers/recipe/presets/shop-quick.yaml", {"test_recipe"}),
        ("scripts/draw.py", {"test_draw"}),
        ("docs/page.md", {"test_docs"}),
        ("tests/test_plain.py", {"test_plain"}),
        ("pyproject.toml", {"everything"}),
        ("tests/conftest.py", {"everything"}),
        ("envs/shop/new.bin", {"test_shop", "test_recipe", "test_all_envs"}),  # beside what looks for files
        ("new.bin", {"everything"}),
    ],
)
def test_a_change_reaches(chosen, changed: str, expected: set[str]) -> None:
    assert chosen(changed) == expected


@pytest.mark.parametrize(
    ("changed", "nearest"),
    [
        ("tests/test_shop.py", {"test_shop"}),  # itself
        ("envs/shop/words.py", {"test_words"}),  # one step
        ("trainers/kit.py", {"test_rules"}),  # two
        ("src/turnwise/blame.py", {"test_all_envs", "test_grid"}),  # three; other tests are farther
        ("docs/page.md", {"test_docs"}),
        ("LICENSE", set()),
    ],
)
def test_the_nearest_tests_are_found_at_any_distance(chosen, script, changed: str, nearest: set[str]) -> None:
    found = script.Tree(FILES).nearest_tests(changed)
    assert {Path(name).stem for name in found} == nearest


def test_several_changes_reach_what_each_of_them_does(chosen) -> None:
    assert chosen("envs/shop/words.py", "scripts/draw.py") == {"test_words", "test_draw"}
    assert chosen() == set()


def test_tests_of_the_whole_house_are_always_chosen(script: ModuleType) -> None:
    """What looks at every file of the repository depends on all of them, and none is forgotten."""
    looks = re.compile(r"(\(ROOT / \w+\)|\(ROOT / \"(trainers|tests|src)|ENVS)\.rglob\(|\"ls-files\"")
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if looks.search(path.read_text("utf-8")) and path != Path(__file__)
    }
    assert found <= set(script.HOUSE)
    assert all((ROOT / name).exists() for name in script.HOUSE)
