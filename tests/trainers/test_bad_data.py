"""An objective whose data lacks what it needs is refused, before anything is played where that can be known then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from turnwise import evaluate
from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.agents.models.loading import load_tokenizer
from turnwise.errors import RecipeError
from turnwise.trainers.guide.toy import toy_model
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.loop import train
from turnwise.trainers.source.toy import example_log
from turnwise.trainers.teacher.core import TeacherSetup
from turnwise.trainers.teacher.model import ModelTeacher

BARE: dict[str, Any] = {"suite": "shop/quick", "model": {"scratch": {}}}


@pytest.mark.parametrize("loss", ["dpo", "ipo", "cpl", "prdp", "disco"])
@pytest.mark.parametrize(
    "change",
    [
        {"rollout": {"group_size": 1}, "credit": "gae", "loss": ["LOSS"]},
        {"source": [{"name": "demonstrations", "loss": ["LOSS"]}]},
        {"source": [{"name": "stored", "path": "somewhere", "loss": ["LOSS"]}]},
    ],
    ids=["group of one", "demonstrations", "stored"],
)
def test_pairs_without_a_loser_are_refused(loss: str, change: dict[str, Any]) -> None:
    given = {key: _with(value, loss) for key, value in change.items()}
    with pytest.raises(RecipeError, match=f"loss '{loss}' compares the trajectories of a group"):
        check_recipe({**BARE, "correction": "none", **given})


def _with(value: Any, loss: str) -> Any:
    if isinstance(value, list):
        return [_with(one, loss) for one in value]
    if isinstance(value, dict):
        return {key: _with(one, loss) for key, one in value.items()}
    return loss if value == "LOSS" else value


def test_losses_that_need_no_pair_may_be_shown_single_episodes() -> None:
    for loss in ("nll", "ift", "kto"):
        check_recipe({**BARE, "source": [{"name": "demonstrations", "loss": [loss]}]})


def test_a_teacher_of_another_vocabulary_is_refused_before_it_is_loaded() -> None:
    tokenizer = load_tokenizer(toy_model())
    n = len(tokenizer.get_vocab())

    def load(path: str) -> Any:
        raise AssertionError("It was loaded.")

    class Other:
        def get_vocab(self) -> dict[str, int]:
            return {token: number + 1 for token, number in tokenizer.get_vocab().items()}

    with pytest.raises(RecipeError, match=f"has another vocabulary than the policy: {n} of {n} tokens"):
        ModelTeacher(TeacherSetup(load, lambda: None, Other()), path=str(toy_model()))  # pyright: ignore
    loaded: list[str] = []
    ModelTeacher(TeacherSetup(loaded.append, lambda: None, tokenizer), path=str(toy_model()))  # pyright: ignore
    assert loaded == [str(toy_model())]


def test_a_correction_of_a_log_without_probabilities_is_refused_with_the_recipe(tmp_path: Path) -> None:
    """As soon as the log is there; before that nobody can know."""
    log = tmp_path / "episodes.jsonl"
    source = {"name": "stored", "path": str(log), "join": True, "correction": "tis"}

    def check(**more: Any) -> None:
        check_recipe({**BARE, "source": [{**source, **more}]})

    check()
    evaluate("shop/quick", "scripted:gold", episodes=2, split="train", log=log)
    with pytest.raises(
        RecipeError, match="'stored' joins tokens whose log-probabilities nobody kept"
    ) as refused:
        check()
    assert "'tis' asks for them" in str(refused.value)
    check(correction="none")
    check(join=False)
    check(path=str(example_log()), correction="none")
    with pytest.raises(RecipeError, match="nobody kept"):  # its second group has no tokens
        check(path=str(example_log()))
    sampled = tmp_path / "sampled.jsonl"
    with EpisodeLog(sampled, policy="toy") as whole:
        for record in [*LogReader(example_log())][:2]:
            whole.append(record.episode)
    check(path=str(sampled))
    log.write_bytes(sampled.read_bytes())
    check()  # what was written since counts


@pytest.mark.slow
def test_a_correction_of_tokens_whose_probabilities_nobody_kept_is_refused(
    letters: dict[str, Any], tmp_path: Path
) -> None:
    """The log of a scripted agent has no tokens, so that no ratio to its policy can be known."""
    said: list[str] = []
    log = tmp_path / "episodes.jsonl.zst"
    evaluate("test/letters", "scripted:gold", episodes=4, split="train", log=log)
    source = {"name": "stored", "path": str(log), "groups": 2, "join": True}
    shared = {**letters, "updates": 1, "evaluate": {"every": 1, "dev": 2, "test": 2}, "warm_start": None}

    def run(out: str, **more: Any) -> Any:
        recipe = {**shared, "source": [{**source, **more}]}
        return train(recipe, out=tmp_path / out, preflight=False, log=said.append)

    with pytest.raises(RecipeError, match="joins tokens whose log-probabilities nobody kept"):
        run("corrected", correction="tis")
    other = (
        tmp_path / "other.jsonl"
    )  # sampled, and by a model with another tokeniser, which is known when it is read
    with EpisodeLog(other, policy="toy") as kept:
        for record in [*LogReader(example_log())][:2]:
            kept.append(record.episode)
    with pytest.raises(RecipeError, match="or another tokeniser"):
        run("other", path=str(other), correction="tis")
    run("plain")


def test_rover_refuses_credit_that_gives_turns_their_own_outcome() -> None:
    with pytest.raises(RecipeError, match="loss 'rover' asks for one outcome per trajectory"):
        check_recipe({**BARE, "loss": ["rover"]})
    assert check_recipe({**BARE, "loss": ["rover"], "credit": "dr_grpo"}).needs == {"token_mean_logp"}
