"""Parts of one's own in a file that a recipe names: found, named in errors, and watched over a resume."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from turnwise import registry
from turnwise.errors import RecipeError, TurnwiseError
from turnwise.registry import get_component, modules_of_others
from turnwise.trainers.recipe.load import check_recipe, load_recipe
from turnwise.trainers.recipe.schema import plain
from turnwise.trainers.run.circumstances import differences_since, note_start
from turnwise.trainers.search.value_scorer import _refuse_paid_progress

RULE = '''
from torch import Tensor
from turnwise import TurnBatch, component
from turnwise.trainers.kit.groups import returns_to_go


@component("credit", "{name}", bias="unbiased")
def rule(batch: TurnBatch, *, scale: float = 1.0) -> Tensor:
    """The rewards from each turn on."""
    return scale * returns_to_go(batch)
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    known, root = registry._components, tmp_path.resolve()
    for key in [key for key, entry in known.items() if Path(entry.file).is_relative_to(root)]:
        del known[key]  # other tests go over all there are


def written(folder: Path, name: str) -> Path:
    file = folder / f"{name}.py"
    file.write_text(RULE.format(name=name))
    return file


def test_a_rule_is_found_in_the_file_that_the_recipe_names(here: Path) -> None:
    file = written(here, "rule_of_a_file")
    (here / "mine.yaml").write_text(
        "suite: shop/quick\nmodel: {scratch: {}}\nimports: [rule_of_a_file.py]\n"
        "credit: {name: rule_of_a_file, scale: 0.5}\n"
    )
    recipe = load_recipe("mine.yaml")
    assert recipe.credit.name == "rule_of_a_file"
    assert recipe.imports == [str(file)]
    assert check_recipe(plain(recipe)) == recipe, "as a run's own file and its other processes read it"
    assert get_component("credit", "rule_of_a_file").file == str(file.resolve())
    assert not [one for one in modules_of_others() if one.startswith("rule_of_a_file")], "no name elsewhere"


def test_a_file_is_named_on_the_command_line_too(here: Path) -> None:
    written(here, "rule_of_a_change")
    changes = {"imports": "rule_of_a_change.py", "credit": "rule_of_a_change"}
    assert load_recipe("shop-quick", changes).credit.name == "rule_of_a_change"


@pytest.mark.parametrize(
    ("imports", "said"),
    [
        (["rule_of_a_fiel.py"], "There is no file .*rule_of_a_fiel.py.\n→ Did you mean .*rule_of_a_file.py"),
        (["no_such_module"], "There is no module 'no_such_module'"),
        (["broken.py"], r"broken.py cannot be imported: ZeroDivisionError.*broken.py:2"),
        ([3], "imports"),
    ],
)
def test_what_cannot_be_imported_is_told_with_its_place(here: Path, imports: object, said: str) -> None:
    written(here, "rule_of_a_file")
    (here / "broken.py").write_text("x = 1\ny = 1 / 0\n")
    with pytest.raises(RecipeError, match=said):
        load_recipe("shop-quick", {"imports": imports})


def test_an_unknown_part_is_told_where_it_may_be() -> None:
    with pytest.raises(RecipeError, match=r"imports: \[my_file.py\]"):
        load_recipe("shop-quick", {"credit": "zzzzzz"})


def test_a_resume_says_that_a_rule_has_changed(here: Path) -> None:
    file = written(here, "rule_that_changes")
    load_recipe("shop-quick", {"imports": [file.name]})
    note_start(here, ["turnwise/Shop-v0"], "cpu")
    assert differences_since(here, ["turnwise/Shop-v0"], "cpu") == []
    file.write_text(file.read_text() + "\n# another\n")
    (said,) = differences_since(here, ["turnwise/Shop-v0"], "cpu")
    assert said.startswith("parts of one's own")
    assert "rule_that_changes.py" in said


def test_a_value_is_refused_that_was_learned_on_early_pay_by_a_part_of_ones_own(here: Path) -> None:
    (here / "own_pay.py").write_text(
        "from turnwise import component\nfrom turnwise.trainers.reward.as_is import as_is\n\n\n"
        '@component("reward", "own_pay")\ndef own_pay(groups):\n    """The environment\'s own."""\n    return as_is(groups)\n'
    )
    folder = here / "run" / "best" / "model"
    folder.mkdir(parents=True)
    (here / "run" / "recipe.yaml").write_text(f"imports: ['{here}/own_pay.py']\nreward: own_pay\n")
    _refuse_paid_progress(folder)
    shaped = "rollout: {env_options: {shaping: 1.0}}\n"
    (here / "run" / "recipe.yaml").write_text(f"imports: ['{here}/own_pay.py']\nreward: own_pay\n{shaped}")
    with pytest.raises(TurnwiseError, match="shaping"):
        _refuse_paid_progress(folder)
