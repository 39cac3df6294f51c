"""The public names: a sorted list, each importable, each documented."""

import asyncio
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, get_args

import pytest

import turnwise
from turnwise.errors import TurnwiseError
from turnwise.scaffold import scaffold


def test_the_list_is_sorted_and_complete():
    assert turnwise.__all__ == sorted(turnwise.__all__)
    assert len(set(turnwise.__all__)) == len(turnwise.__all__)
    assert set(turnwise.__all__) == set(turnwise._HOME_OF)
    assert dir(turnwise) == turnwise.__all__


@pytest.mark.parametrize("name", turnwise.__all__)
def test_every_name_is_there_and_documented(name):
    thing = getattr(turnwise, name)
    assert thing is getattr(importlib.import_module(turnwise._HOME_OF[name]), name)
    assert inspect.getdoc(thing) or get_args(thing)


def turnwises(thing: Any) -> bool:
    return not isinstance(thing, ModuleType) and (getattr(thing, "__module__", "") or "").startswith(
        "turnwise"
    )


def types_in(annotations: Iterable[Any], names: Mapping[str, Any]) -> set[str]:
    """Our types that annotations name."""
    texts = (each if isinstance(each, str) else inspect.formatannotation(each) for each in annotations)
    words = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}
    return {word for word in words if turnwises(names.get(word)) and not isinstance(names[word], TypeVar)}


def types_of(function: Any) -> set[str]:
    signature = inspect.signature(inspect.unwrap(function))
    given = [parameter.annotation for parameter in signature.parameters.values()]
    return types_in([*given, signature.return_annotation], inspect.unwrap(function).__globals__)


def types_of_class(cls: type) -> Iterator[str]:
    """Our types in a class's fields and public methods."""
    yield from types_in(inspect.get_annotations(cls).values(), vars(importlib.import_module(cls.__module__)))
    for name, member in vars(cls).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if inspect.isfunction(function) and turnwises(function) and (name[0] != "_" or name == "__init__"):
            yield from types_of(function)


FUNCTIONS = [name for name in turnwise.__all__ if inspect.isfunction(getattr(turnwise, name))]
CLASSES = [name for name in turnwise.__all__ if inspect.isclass(getattr(turnwise, name))]
EXPLAINED = {
    "Recipe": "docs/recipes.md explains its sections",
    "Comparison": "docs/comparing.md explains its parts",
    "WorkerPool": "what it holds is its own",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_types_of_a_function_are_public(name):
    assert types_of(getattr(turnwise, name)) <= set(turnwise.__all__)


@pytest.mark.parametrize("name", [name for name in CLASSES if name not in EXPLAINED])
def test_the_types_of_a_class_are_public(name):
    assert {*types_of_class(getattr(turnwise, name))} - {"State"} <= set(turnwise.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_typed_and_documented(name):
    function = inspect.unwrap(getattr(turnwise, name))
    signature, said = inspect.signature(function), inspect.getdoc(function)
    assert all(parameter.annotation is not parameter.empty for parameter in signature.parameters.values())
    described = said.partition("Args:")[2]
    for parameter in signature.parameters:
        assert re.search(rf"^    {parameter}: ", described, re.MULTILINE), parameter
    assert signature.return_annotation is not signature.empty
    assert ("Returns:" in said) == (signature.return_annotation != "None")


@pytest.mark.parametrize("name", ["evaluate", "replay", "rollout", "train"])
def test_where_a_loop_runs_the_coroutine_is_named(name):
    async def notebook():
        getattr(turnwise, name)("shop/easy", "scripted:gold")

    with pytest.raises(TurnwiseError, match=rf"await turnwise\.{name}_async"):
        asyncio.run(notebook())


def test_the_coroutines_do_the_same():
    async def notebook():
        played = await turnwise.rollout_async("shop/easy", "scripted:gold", split="test", episodes=2)
        found = await turnwise.evaluate_async("shop/easy", "scripted:gold", episodes=2)
        return played, found, await turnwise.replay_async(played.records)

    played, found, replayed = asyncio.run(notebook())
    assert [episode.success for episode in played] == [True, True] == [found.success == 1.0] * 2
    assert [episode.task.id for episode in played] == list(found.results)
    assert replayed.ok


def test_rollouts_of_tasks(tmp_path):
    tasks = list(turnwise.suite_tasks(turnwise.get_suite("shop/easy"), turnwise.Split.TRAIN, 2))
    played = turnwise.rollout(tasks, "scripted:gold", k=2, log=tmp_path / "episodes.jsonl.zst")
    assert [episode.task for episode in played] == [tasks[0], tasks[0], tasks[1], tasks[1]]
    assert len({episode.seed for episode in played}) == 4
    loaded = turnwise.load_episodes(tmp_path)
    assert {episode.seed for episode in loaded} == {episode.seed for episode in played}
    assert isinstance(loaded[:2], turnwise.Episodes)
    table = loaded.to_arrow()
    assert set(table["policy"].to_pylist()) == {"scripted:gold"}
    assert table.num_rows == sum(len(episode.trajectory.turns) for episode in loaded)
    pandas = pytest.importorskip("pandas")
    assert isinstance(loaded.to_pandas(), pandas.DataFrame)


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ([], {}, "0 tasks with k=1 cannot be played"),
        (["a task"], {}, "'a task' is a str and no task"),
        ("shop/eazy", {}, "There is no suite 'shop/eazy'"),
        ("shop/easy", {"split": "tset"}, "There is no split 'tset'"),
        ("shop/easy", {"episodes": 0}, "0 episodes with k=1 cannot be played"),
    ],
)
def test_what_cannot_be_rolled_out_is_refused(given, options, said):
    with pytest.raises(TurnwiseError, match=said):
        turnwise.rollout(given, "scripted:gold", **options)


def test_without_pandas_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(TurnwiseError, match=r"'pandas' is not installed(.|\n)*turnwise\[logs\]"):
        turnwise.rollout("shop/easy", "scripted:gold").to_pandas()


def test_a_recipe_without_a_name_needs_a_folder():
    with pytest.raises(TurnwiseError, match=r"no name for its run's folder(.|\n)*out="):
        turnwise.train({"suite": "shop/quick", "model": {"path": "some/model"}})


def test_the_reference_is_up_to_date():
    from turnwise.api_page import SECTIONS, page

    assert sorted(name for names in SECTIONS.values() for name in names) == turnwise.__all__
    kept = Path(__file__).parents[1] / "docs" / "api.md"
    assert kept.read_text("utf-8") == page(), "run `python -m turnwise.api_page`"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Environment'"):
        _ = turnwise.Environment


@pytest.mark.slow
def test_importing_has_no_side_effects():
    program = (
        "import os, random, signal, sys, warnings, logging\n"
        "before = (dict(os.environ), random.getstate(), signal.getsignal(signal.SIGINT), list(warnings.filters),\n"
        "          list(logging.getLogger().handlers), sys.stdout)\n"
        "import turnwise\n"
        "for name in turnwise.__all__: getattr(turnwise, name)\n"
        "after = (dict(os.environ), random.getstate(), signal.getsignal(signal.SIGINT), list(warnings.filters),\n"
        "         list(logging.getLogger().handlers), sys.stdout)\n"
        "same = [a == b for a, b in zip(before, after)]\n"
        "same[3] = True\n"  # gymnasium adds its own warning filters
        "assert all(same), same"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_id_of_an_environment_is_a_suite_of_what_its_generator_makes():
    found = turnwise.evaluate("turnwise/Calc-v0", "scripted:gold", episodes=2)
    assert (found.suite, found.success) == ("turnwise/Calc-v0", 1.0)
    with pytest.raises(TurnwiseError, match="Did you mean 'turnwise/Calc-v0'"):
        turnwise.get_suite("turnwise/Clac-v0")


def test_a_suite_of_a_package_that_is_not_installed_keeps_the_hint_beside_a_near_name():
    with pytest.raises(TurnwiseError, match=r"(?s)household/easy.*pip install -e"):
        turnwise.get_suite("warehouse/easy")
    with pytest.raises(TurnwiseError) as told:
        turnwise.get_suite("shop/eazy")
    assert "pip install" not in str(told.value)


def test_a_new_environment_does_not_take_the_name_of_a_suite_that_there_is(tmp_path):
    with pytest.raises(TurnwiseError, match="There is a suite 'shop/easy' already"):
        scaffold("shop", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_policy_of_a_file_is_missed_in_that_file(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def act(history):\n    return 'x'\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TurnwiseError, match=r"no policy in mine\.py called 'acts'"):
        turnwise.make_policy("mine.py:acts")
