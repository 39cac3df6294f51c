"""Runs that would be in vain are refused in the first seconds, with cause and remedy, and nothing else is."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from turnwise.agents.models import hub
from turnwise.errors import MissingDependencyError, RecipeError, RunError, TurnwiseError
from turnwise.registry import components, get_component
from turnwise.tools.core import tool
from turnwise.trainers.recipe.load import check_recipe, load_recipe, recipe_names
from turnwise.trainers.recipe.schema import Scratch
from turnwise.trainers.run import preflight
from turnwise.trainers.run.door import opened
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.ready import beginning, rehearse
from turnwise.trainers.run.resources import check_disk
from turnwise.trainers.run.shapes import scratch_model


@pytest.fixture
def look(letters: dict[str, Any], tmp_path: Path) -> Any:
    """Rehearse the letters recipe with changes by dotted keys."""
    file = tmp_path / "letters.yaml"

    def rehearsed(**changes: Any) -> str:
        file.write_text(yaml.safe_dump(letters))
        recipe = load_recipe(file, {key.replace("__", "."): value for key, value in changes.items()})
        return rehearse(recipe, tmp_path)

    return rehearsed


@pytest.mark.parametrize("name", recipe_names())
def test_shipped_recipes_pass(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    changes: dict[str, Any] = {"engine.kind": "torch", "engine.options": {}}
    if path := load_recipe(name).model.path:
        request.getfixturevalue(path)  # a model of that name, or a skip where its package is not installed
    else:
        changes["model.scratch.text_episodes"] = 20
    said = rehearse(load_recipe(name, changes), tmp_path)
    assert "longer than the context" not in said
    assert "checkpoints of about" in said


GOLD = get_component("judge", "gold")


@pytest.mark.parametrize("entry", components("reward"), ids=lambda entry: entry.name)
def test_every_reward_can_be_looked_at(look: Any, entry: Any) -> None:
    measured = {name for signal in components("signal") for name in signal.gives}
    said = entry.needs_with({}) - measured
    judges = [judge.name for judge in components("judge") if judge.name != "gold" and said & {*judge.gives}]
    asked = {"judge": "gold" if said <= {*GOLD.gives} else judges} if said else {}
    short = {"limit": 6, "buffer": 2}  # the recipe's replies have no more tokens
    fitted = {name: value for name, value in short.items() if name in entry.options}
    assert "solve 4 of 4" in look(reward={"name": entry.name, **fitted}, **asked)


def test_tools_that_are_longer_than_the_context(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit's run: every episode would end at the token limit before its first turn."""
    from letters import Letters

    @tool
    def write(letters: str) -> str:
        return letters

    write.spec.parameters["properties"]["letters"]["description"] = "Some letters, please. " * 60
    monkeypatch.setattr(Letters, "tools", (write,))
    with pytest.raises(RecipeError) as caught:
        look(sampling__tools="auto")
    assert "Not one episode could begin" in caught.value.cause
    assert "for the tools, and the context holds 128" in caught.value.cause
    assert "Set model.scratch.context to" in caught.value.remedy
    look(sampling__tools="none")


@pytest.mark.parametrize(
    ("changes", "cause", "remedy"),
    [
        (
            {"model__scratch__context": 16},
            "Not one episode could begin: what the model",
            "scratch.context to",
        ),
        ({"engine__context_length": 16}, "the context holds 16", "model.scratch.context"),
        (
            {"model__scratch__context": 24},
            "fits into the context of 24 tokens: the shortest takes",
            "or more",
        ),
        (
            {"sampling__max_tokens": 1},
            "tokens or more, and sampling.max_tokens is 1",
            "Set sampling.max_tokens to",
        ),
    ],
    ids=str,
)
def test_what_is_too_short(look: Any, changes: dict[str, Any], cause: str, remedy: str) -> None:
    with pytest.raises(RecipeError) as caught:
        look(**{"sampling__max_tokens": 6, **changes})
    assert cause in caught.value.cause
    assert remedy in caught.value.remedy


def test_several_causes_are_told_at_once(look: Any) -> None:
    with pytest.raises(RecipeError, match=r"2 mistakes:\n1\. Not one(.|\n)*\n2\. In every episode"):
        look(model__scratch__context=16, sampling__max_tokens=1)


def test_an_environment_that_fails_is_named(
    letters: dict[str, Any], small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from letters import Letters

    recipe = check_recipe({**letters, "warm_start": None, "model": {"path": str(small_model)}})

    played = Letters.transition

    def broken(self: Any, state: Any, action: Any) -> Any:
        return played(self, state, action) if state.turn == 0 else 1 / 0

    monkeypatch.setattr(Letters, "transition", broken)
    with pytest.raises(
        TurnwiseError, match=r"episodes of scripted:gold fail .*division by zero .*test_preflight\.py:\d+"
    ):
        rehearse(recipe, tmp_path)


def test_a_turn_limit_below_gold(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from letters import Letters

    monkeypatch.setattr(Letters, "turn_limit", 2)
    with pytest.raises(RecipeError, match=r"turn limit of 2 ends every episode of scripted:gold"):
        look()


def test_a_rule_that_gives_nothing_for_what_the_environment_pays(
    look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether turns are paid is the environment's: seen where scripts play it, if the recipe's reward leaves it as it is."""
    from letters import Letters

    from turnwise import EndReason

    look(credit="pure")
    played = Letters.transition

    def at_the_end(self: Any, state: Any, action: Any) -> Any:
        step = played(self, state, action)
        done = float(step.end is EndReason.SOLVED)
        return step._replace(rewards={"outcome": done})

    monkeypatch.setattr(Letters, "transition", at_the_end)
    look()
    with pytest.raises(RecipeError, match=r"credit 'pure' gives \(nearly\) nothing .* from 0 to 1"):
        look(credit="pure")


def test_rewards_that_do_not_differ(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from letters import Letters, State

    from turnwise import EndReason, Transition

    def always(self: Any, state: Any, action: Any) -> Any:
        return Transition(State(3), "", {"outcome": 0.5}, EndReason.FAILED)

    monkeypatch.setattr(Letters, "transition", always)
    with pytest.raises(
        RecipeError, match=r"nothing to learn from: .* same in each of 4 tasks \(0\.5, (.|\n)*rewards"
    ):
        look()


def test_a_reward_that_pays_failure_and_not_success(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from letters import Letters

    from turnwise import EndReason

    look()
    played = Letters.transition

    def turned_around(self: Any, state: Any, action: Any) -> Any:
        step = played(self, state, action)
        return step._replace(rewards={"outcome": float(step.end is EndReason.FAILED)})

    monkeypatch.setattr(Letters, "transition", turned_around)
    with pytest.raises(RecipeError, match=r"Failure pays better than success: in each of 4 .*\(1 against 0 "):
        look()


def test_an_environment_without_gold_is_not_condemned(
    letters: dict[str, Any], small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from letters import Letters

    monkeypatch.delattr(Letters, "gold")
    recipe = check_recipe({**letters, "warm_start": None, "model": {"path": str(small_model)}})
    assert "were not checked" in rehearse(recipe, tmp_path)


def test_a_slow_environment_is_not_waited_for(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from letters import Letters

    go_on, reset = threading.Event(), Letters.initial
    alone = threading.main_thread()

    def slow(self: Any, task: Any) -> Any:
        if threading.current_thread() is not alone and self.waits:
            go_on.wait(60)
        return reset(self, task)

    monkeypatch.setattr(Letters, "initial", slow)
    monkeypatch.setattr(Letters, "waits", False, raising=False)
    heard = preflight._play

    async def play(*args: Any) -> Any:
        monkeypatch.setattr(Letters, "waits", True)
        monkeypatch.setattr(Letters, "blocking", True)
        try:
            return await heard(*args)
        finally:
            go_on.set()

    monkeypatch.setattr(preflight, "_play", play)
    monkeypatch.setattr(preflight, "PATIENCE", 0.2)
    assert "were not checked" in look()


@pytest.mark.slow
def test_a_run_is_the_same_with_and_without(letters: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "letters.yaml"
    file.write_text(yaml.safe_dump(letters))
    said: list[str] = []
    for looked in (True, False):
        train(file, out=tmp_path / f"{looked}", updates=2, preflight=looked, log=said.append)
    kept = [
        tmp_path / f"{looked}/checkpoints/step-000002/model/model.safetensors" for looked in (True, False)
    ]
    assert kept[0].read_bytes() == kept[1].read_bytes()
    assert sum(line.startswith("preflight:") for line in said) == 1


@pytest.mark.slow
def test_a_refused_run_leaves_nothing_and_does_not_stand_in_the_way(
    letters: dict[str, Any], tmp_path: Path
) -> None:
    file, kept = tmp_path / "letters.yaml", tmp_path / "run" / "notes.txt"
    file.write_text(yaml.safe_dump(letters))
    kept.parent.mkdir()
    kept.write_text("mine")
    for out in ("run", "other"):
        with pytest.raises(RecipeError, match="Not one episode"):
            train(file, out=tmp_path / out, log=print, **{"model.scratch.context": 16})
    assert sorted(tmp_path.rglob("*")) == sorted([file, kept.parent, kept])
    train(file, out=tmp_path / "run", log=print, updates=0)
    assert (tmp_path / "run/report.html").exists()


# --- the machine -------------------------------------------------------------------------------------


def test_an_engine_that_is_not_installed(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(MissingDependencyError, match=r"vllm is not installed(.|\n)*engine\.kind=torch"):
        look(engine__kind="vllm")


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("./nothing/here", "no model folder ./nothing/here"),
        (".", "holds no model"),
        ("a b", "no model folder a b"),
    ],
)
def test_a_model_folder_that_is_not_there(look: Any, path: str, cause: str) -> None:
    with pytest.raises(TurnwiseError, match=cause):
        look(model={"path": path}, warm_start=None)


def test_a_model_folder_that_cannot_be_read(
    letters: dict[str, Any], small_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for file in small_model.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    recipe = check_recipe({**letters, "warm_start": None, "model": {"path": str(folder)}, "sampling": {}})
    rehearse(recipe, tmp_path)
    (folder / "model.safetensors").write_bytes(b"\x80\x04pickled?")
    with pytest.raises(RunError, match=r"weights in .*model\.safetensors cannot be read"):
        rehearse(recipe, tmp_path)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04\x95junk")
    file = tmp_path / "letters.yaml"
    file.write_text(recipe.to_yaml())
    with pytest.raises(TurnwiseError, match=r"The model .* cannot be loaded(.|\n)*safetensors"):
        train(file, out=tmp_path / "run", log=print)
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(TurnwiseError, match=r"The model .* cannot be loaded"):
        rehearse(recipe, tmp_path)


def test_a_model_that_begins_with_nothing_and_no_warm_start_is_told(letters: dict[str, Any]) -> None:
    scratch = {"model": {"scratch": {"layers": 2, "width": 128, "heads": 4}}}
    bare = {key: value for key, value in letters.items() if key != "warm_start"} | scratch
    assert "random weights and no warm start" in beginning(opened(check_recipe(bare)))
    warm = {"warm_start": {"episodes": 32, "demonstrator": "gold"}}
    assert not beginning(opened(check_recipe(bare | warm)))


def test_checkpoints_that_do_not_fit_on_the_disk(letters: dict[str, Any], tmp_path: Path) -> None:
    huge = {"layers": 400, "width": 32768, "heads": 256, "init": "random", "context": 128}
    recipe = check_recipe({**letters, "model": {"scratch": huge}})
    with pytest.raises(RunError, match=r"Checkpoints of \d+\.\d GiB each do not fit(.|\n)*checkpoint\.keep"):
        check_disk(opened(recipe).disk, tmp_path / "runs" / "new", None)


@pytest.mark.slow
def test_how_large_checkpoints_are_is_estimated_well(letters: dict[str, Any], tmp_path: Path) -> None:
    scratch = Scratch(layers=2, width=128, heads=4, vocab_size=512)
    letters["model"] = {"scratch": scratch.model_dump()}
    file = tmp_path / "letters.yaml"
    file.write_text(yaml.safe_dump(letters))
    train(file, out=tmp_path / "run", log=print, updates=1, **{"evaluate.every": 1})
    saved = tmp_path / "run/checkpoints/step-000001"
    size = sum(path.stat().st_size for path in saved.rglob("*") if path.is_file())
    assert 12 * scratch_model(scratch).shape.weights == pytest.approx(size, rel=0.1)
    assert "MiB" in check_disk(opened(load_recipe(file)).disk, tmp_path, str(saved / "model"))


# --- Hugging Face, played by a server on this machine ---------------------------------------------------


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Let the Hub be a server of our own that answers so; None: it takes the call and says nothing."""
    from huggingface_hub import constants

    opened: list[Any] = []

    def start(status: int | None) -> None:
        if status is None:
            listener = socket.create_server(("127.0.0.1", 0))
            opened.append(listener.close)
            port = listener.getsockname()[1]
        else:

            class Handler(BaseHTTPRequestHandler):
                def do_GET(self) -> None:
                    self.send_response(status)
                    self.send_header("X-Error-Code", "RepoNotFound" if status == 404 else "")
                    self.end_headers()
                    self.wfile.write(b'{"id": "some/model", "modelId": "some/model"}')

                def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
                    pass

            server = HTTPServer(("127.0.0.1", 0), Handler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            opened.extend((server.shutdown, server.server_close))
            port = server.server_port
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield start
    for close in opened:
        close()


@pytest.mark.slow
def test_a_hub_that_does_not_answer_costs_seconds(look: Any, answers: Any) -> None:
    answers(None)
    began = time.monotonic()
    with pytest.raises(
        TurnwiseError, match=r"'some/model' is not in this machine's cache, and Hugging Face cannot"
    ):
        look(model={"path": "some/model"}, warm_start=None)
    assert time.monotonic() - began < 30, "its own client would take a minute"


def test_what_the_hub_says_is_passed_on(answers: Any) -> None:
    answers(404)
    with pytest.raises(TurnwiseError, match=r"knows no model 'some/model'"):
        hub.reach("some/model")
    answers(503)
    with pytest.raises(TurnwiseError, match=r"cannot be reached: .*503"):
        hub.reach("some/model")
    answers(200)
    assert hub.reach("some/model") == "some/model"


def test_a_cached_copy_is_used_where_the_hub_is_silent(
    answers: Any, small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    home = tmp_path / "models--some--model"
    copy = home / "snapshots" / "abc"
    copy.mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("abc")
    answers(503)
    for file in sorted(small_model.iterdir()):
        with pytest.raises(TurnwiseError, match="not in this machine's cache"):
            hub.reach("some/model")
        (copy / file.name).write_bytes(file.read_bytes())
    assert hub.reach("some/model") == str(copy)


def test_a_list_under_which_failure_pays_better_is_refused(look: Any) -> None:
    """Whichever part of it turns the outcome around; the message names them all."""
    with pytest.raises(RecipeError, match="Failure pays better than success") as caught:
        look(reward=["success", {"name": "noisy", "rate": 1.0}])
    assert "(success, noisy)" in str(caught.value)


def test_a_recipe_that_a_judge_alone_pays_is_not_said_to_pay_nothing(look: Any) -> None:
    """What a judge would pay a script is not known, and the parts that weigh it would pay 0."""
    alone = {"name": "weighted", "weights": {"outcome": 0.0, "principle": 1.0}}
    assert "solve 4 of 4" in look(judge="gold", reward=["from_signal", alone])
    with pytest.raises(RecipeError, match="nothing to learn from"):
        look(reward=[alone])


def test_a_reward_of_words_that_no_script_says_is_not_said_to_pay_nothing(look: Any) -> None:
    """Nobody here tells a confidence, without which RLCR's code pays 0; a policy will be asked for one."""
    assert "solve 4 of 4" in look(reward={"name": "rlcr", "form": "code"})
