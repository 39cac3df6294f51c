"""The README's examples are run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

README = Path(__file__).parents[1] / "README.md"
EVALUATING = README.parent / "docs" / "evaluating.md"


def blocks(language, page=README):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def test_the_environment_is_short_and_passes_the_check(tmp_path):
    (source, _) = blocks("python")
    assert len(re.search(r"class Guess.*?\n(?=\nregister)", source, re.DOTALL)[0].strip().splitlines()) <= 25
    (tmp_path / "my_module.py").write_text(source)
    program = (
        "import my_module\nfrom turnwise.envs.check.command import check_env\nreport = check_env('me/Guess-v0', tasks=20)\n"
        "print([(name, result.detail) for name, result in report.requirements.items() if not result.ok])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_the_recipe_is_one():
    pytest.importorskip("torch")
    from turnwise.trainers.recipe.explain import explain_recipe
    from turnwise.trainers.recipe.load import check_recipe

    (text,) = blocks("yaml")
    assert "return_to_go" in explain_recipe(check_recipe(yaml.safe_load(text)))


@pytest.mark.slow
def test_the_evaluation_runs():
    (_, source) = blocks("python")
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("1.0 Interval("), done.stdout + done.stderr


@pytest.mark.slow
def test_the_examples_of_evaluating_run():
    source = "\n".join(blocks("python", EVALUATING))
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("1.0 Interval("), done.stdout + done.stderr
    assert "The difference is significant: +" in done.stdout
