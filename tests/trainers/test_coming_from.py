"""What other trainers' arguments are called here: every key is one, every example is a recipe's, the page is current."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import yaml

from turnwise.errors import RecipeError
from turnwise.trainers.recipe.coming_from import TRAINERS, counterpart, page
from turnwise.trainers.recipe.errors import known_keys
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.recipe.synonyms import PARTS, SYNONYMS

BARE = {"suite": "shop/quick", "model": {"path": "some/model"}, "optimizer": {"minibatches": 2}}
ALL = {f"{name}: {argument}": counterpart(argument, given)
       for name, (_, arguments) in TRAINERS.items() for argument, given in arguments.items()}  # fmt: skip
ALL |= SYNONYMS
NOTES = {here.note for here in ALL.values()} | set(PARTS.values())
EXAMPLES = sorted({text for note in NOTES for text in re.findall(r"`([a-z_]+: [^`…]+)`", note)})


def test_every_key_that_is_named_is_one() -> None:
    known = {*known_keys(), "--out", "--resume"}
    assert not {argument: here.keys for argument, here in ALL.items() if not set(here.keys) <= known}
    assert not [argument for argument, here in ALL.items() if not here.keys and not here.note]


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_a_recipes(text: str) -> None:
    given = yaml.safe_load(text)
    data = {key: {**BARE.get(key, {}), **value} if isinstance(value, dict) and key in BARE else value
            for key, value in given.items()}  # fmt: skip
    check_recipe({**BARE, **data})


def test_a_name_that_is_a_key_of_ours_has_no_synonym() -> None:
    assert not set(SYNONYMS) & {key for key in known_keys() if "." not in key}


@pytest.mark.parametrize(("name", "least"), [("TRL", 40), ("verl", 60), ("verifiers", 25)])
def test_most_arguments_have_a_counterpart(name: str, least: int) -> None:
    found = [counterpart(argument, given) for argument, given in TRAINERS[name][1].items()]
    assert sum(bool(here.keys) for here in found) >= least


def test_the_arguments_of_trl_are_those_that_it_has() -> None:
    trl = pytest.importorskip("trl")
    names = {field.name for field in dataclasses.fields(trl.GRPOConfig)}
    others = {
        "model",
        "train_dataset",
        "eval_dataset",
        "reward_funcs",
        "tools",
        "peft_config",
        "environment_factory",
    }
    assert set(TRAINERS["TRL"][1]) <= names | others


def test_a_message_says_what_the_page_says() -> None:
    with pytest.raises(RecipeError, match=r"It is called sampling.max_tokens. It is of one turn"):
        check_recipe({**BARE, "max_completion_length": 512})


def test_the_page_is_up_to_date() -> None:
    kept = Path(__file__).parents[2] / "docs" / "coming-from.md"
    assert kept.read_text("utf-8") == page(), "run `python -m turnwise.trainers.recipe.coming_from`"


FOREIGN = {
    "report_to": "wandb", "nnodes": 2, "n_gpus_per_node": 4, "deepspeed": "zero3.json", "num_batches_ahead": 1,
    "vllm_server_base_url": "http://127.0.0.1:8000", "vllm_mode": "server", "chat_template_kwargs": {}, "run_name": "first",
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_every_name_of_the_page_at_the_top_of_a_recipe_is_answered_with_the_pages_words(name: str) -> None:
    with pytest.raises(RecipeError) as told:
        check_recipe({**BARE, name: FOREIGN[name]})
    here = next(here for argument, here in ALL.items() if argument.split(": ")[-1].rpartition(".")[2] == name)
    assert here.message in str(told.value)


def test_no_answer_denies_what_there_is() -> None:
    said = " ".join(here.message for here in ALL.values())
    for gone in (
        "one process on one machine",
        "no server mode",
        "runs in the trainer's process",
        "stays what it is",
    ):
        assert gone not in said
    assert "sinks: [tensorboard, wandb]" in said
    assert "scale: {learners: 4}" in said
