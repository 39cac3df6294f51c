"""What a recipe says of guides, sources and filters holds, or is refused: no loss, weight, correction or log is taken in vain."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import RecipeError, RunError
from turnwise.registry import components
from turnwise.tasks.core import Split
from turnwise.trainers.guide.toy import played_with
from turnwise.trainers.learn.collate import collate
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.run.parts import build_parts
from turnwise.trainers.source.core import SourceDraw
from turnwise.trainers.source.held_out import HeldOut
from turnwise.trainers.source.toy import example_context, example_log

SUITE = "shop/quick"
FINER: dict[str, Any] = {"name": "tis", "level": "token"}
EXACT: dict[str, Any] = {"name": "tis", "level": "trajectory"}


def recipe(**keys: Any) -> Recipe:
    return check_recipe({"suite": SUITE, "model": {"path": "x"}, "sampling": {"max_tokens": 16}, **keys})


def stored(**options: Any) -> list[dict[str, Any]]:
    return [{"name": "stored", "path": str(example_log()), **options}]


def nothing_played(**keys: Any) -> Recipe:
    return recipe(rollout={"groups": 0}, **keys)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"loss": ["dpo"]}, "loss 'dpo' can do nothing"),
        ({"loss": ["clip", {"name": "kl", "weight": 5}]}, "loss 'clip', loss 'kl' can do nothing"),
        ({"credit": "gae"}, "credit 'gae' can do nothing"),
        ({"filter": {"name": "ranked", "keep": "best"}}, "filter 'ranked' can do nothing"),
        ({"shape": ["whiten"]}, "shape 'whiten' can do nothing"),
        ({"algorithm": "online_dpo"}, "algorithm 'online_dpo'"),
    ],
)
def test_what_is_said_of_played_episodes_is_refused_where_there_are_none(
    keys: dict[str, Any], said: str
) -> None:
    with pytest.raises(RecipeError, match=said) as refused:
        nothing_played(**keys, source=stored())
    assert "join: true" in refused.value.remedy


def test_what_is_shown_alone_is_imitated_where_nothing_else_is_said() -> None:
    assert nothing_played(source=stored())
    # A recipe that comes with a loss of its own, and says how what is shown is learned.
    assert nothing_played(source=stored(loss=["nll"]), loss=["clip", {"name": "entropy", "weight": 0.002}])
    assert nothing_played(source=stored(join=True), loss=["dpo"])
    with pytest.raises(RecipeError, match="loss 'dpo' can do nothing"):
        nothing_played(source=stored(loss=["nll"]), loss=["dpo"])


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"source": stored(join=True, weight=0.01)}, "source 'stored' has a weight of its own"),
        ({"source": stored(join=True, loss=["nll"])}, "source 'stored' has a loss of its own"),
        (
            {
                "source": stored(join=True),
                "schedule": {"source.stored.weight": {"name": "linear", "to": 0.5}},
            },
            "source 'stored' has a weight of its own",
        ),
        ({"guide": [{"name": "hint", "loss": ["nll"]}]}, "guide 'hint' has a loss of its own"),
    ],
)
def test_a_loss_of_the_whole_leaves_no_weight_and_no_loss_to_parts_of_it(
    keys: dict[str, Any], said: str
) -> None:
    with pytest.raises(RecipeError, match=said) as refused:
        recipe(loss=["dpo"], credit="grpo", **keys)
    assert "a loss of tokens" in refused.value.remedy
    recipe(credit="grpo", loss=["clip"], **keys)


def test_a_source_that_joins_has_no_loss_of_the_whole() -> None:
    with pytest.raises(
        RecipeError, match="joins what was played, and its loss 'ift' is of whole minibatches"
    ):
        recipe(source=stored(join=True, loss=["ift"]))
    recipe(source=stored(loss=["ift"]))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"guide": [{"name": "hint", "correction": FINER}]},
            "correction 'tis' of guide 'hint' weighs each token",
        ),
        (
            {"source": stored(join=True, correction=FINER)},
            "correction 'tis' of source 'stored' weighs each token",
        ),
    ],
)
def test_no_correction_of_a_guide_or_a_source_is_finer_than_the_losss_ratio(
    keys: dict[str, Any], said: str
) -> None:
    with pytest.raises(RecipeError, match=said) as refused:
        recipe(loss=["gspo"], correction=EXACT, **keys)
    assert "level: trajectory" in str(refused.value)


@pytest.mark.parametrize(
    ("keys", "who"),
    [
        ({"loss": ["dpo"], "guide": [{"name": "hint", "correction": EXACT}]}, "guide 'hint'"),
        ({"loss": ["dpo"], "source": stored(join=True, correction=EXACT)}, "source 'stored'"),
        ({"source": stored(loss=["kto"], correction=EXACT, solved=False)}, "source 'stored'"),
    ],
)
def test_a_correction_is_refused_where_its_tokens_losses_do_not_look_at_advantages(
    keys: dict[str, Any], who: str
) -> None:
    with pytest.raises(RecipeError, match=f"correction 'tis' of {who} weighs advantages"):
        recipe(credit="grpo", **keys)


@pytest.mark.parametrize("name", ["demonstrations", "relift"])
def test_what_a_script_says_has_no_correction(name: str) -> None:
    with pytest.raises(RecipeError, match=f"source '{name}' gives what a script says"):
        recipe(source=[{"name": name, "correction": "tis"}])
    recipe(source=[{"name": name, "correction": "none"}])


@pytest.mark.parametrize("given", [{"loss": ["luffy"]}, {"correction": "none"}])
def test_a_guide_whose_tokens_are_only_read_says_nothing_of_how_they_are_learned(
    given: dict[str, Any],
) -> None:
    with pytest.raises(RecipeError, match=r"guide 'prefix' has a .* read and not learned"):
        recipe(guide=[{"name": "prefix", **given}])


def test_the_sources_of_scripts_are_all_known() -> None:
    """Whoever can be told which script plays gives what a script says."""
    ours = [one for one in components("source") if one.package == "turnwise"]
    assert [one.name for one in ours if one.scripted] == [
        one.name for one in ours if "demonstrator" in one.options
    ]


@pytest.mark.slow
def test_the_guides_whose_tokens_are_only_read_are_all_known() -> None:
    for entry in (one for one in components("guide") if one.package == "turnwise"):
        guide = entry.target() if isinstance(entry.target, type) else entry.target
        _, guided = played_with(guide, SUITE, groups=1, size=2)
        rows = collate(guided).rows
        helped = any(turn.reply.source for group in guided for one in group for turn in one.trajectory.turns)
        learned = bool((rows.source_RT[rows.mask_RT] > 0).any())
        assert not helped or learned == (not entry.only_read), entry.name


@pytest.mark.parametrize("loss", ["dpo", "kto", "nft", "pacs", "cpl", "disco", "reg_grpo"])
def test_weights_of_groups_and_trajectories_are_refused_where_no_loss_looks_at_them(loss: str) -> None:
    with pytest.raises(RecipeError, match=f"refill weighs groups.*loss '{loss}'"):
        recipe(loss=[loss], credit="grpo", rollout={"groups": 4, "refill": {"informative": 4, "most": 16}})
    with pytest.raises(RecipeError, match=f"filter 'ranked' weighs trajectories, and loss '{loss}'"):
        recipe(loss=[loss], credit="grpo", filter={"name": "ranked", "keep": "power"})
    recipe(loss=[loss], credit="grpo", filter={"name": "ranked", "keep": "best_worst"})


def write_log(folder: Path, split: Split, *, count: int = 2, policy: str = "gold") -> Path:
    folder.mkdir()
    path = folder / "episodes.jsonl"
    tasks = list(suite_tasks(get_suite(SUITE), split, count))
    with EpisodeLog(path, policy=f"scripted:{policy}") as log:
        for episode in run_episodes([Request(task, 1) for task in tasks], scripted(policy)):
            log.append(episode)
    return path


def sources_of(path: Path) -> list[dict[str, Any]]:
    """Every source that learns from a log."""
    return [
        {"name": "stored", "path": str(path)},
        {"name": "conditioned", "path": str(path)},
        {"name": "thought_dropout", "path": str(path)},
        {"name": "improved", "path": str(path), "over": str(path)},
    ]


def draw(part: dict[str, Any], dev: int = 2, test: int = 2) -> SourceDraw:
    import asyncio
    from dataclasses import replace

    keys: dict[str, Any] = {"instruction": "Return: 1.0"} if part["name"] == "conditioned" else {}
    made = recipe(
        source=[part],
        sampling={"max_tokens": 16, **keys},
        evaluate={"dev": dev, "test": test},
    )
    see = example_context(SUITE)
    see = replace(see, renderer=see.renderer.instructed(keys.get("instruction", "")))
    return asyncio.run(build_parts(made).sources[0].draw(see, 0))


@pytest.mark.parametrize("name", ["stored", "conditioned", "thought_dropout", "improved"])
@pytest.mark.parametrize("split", [Split.DEV, Split.TEST])
def test_nothing_is_learned_from_tasks_that_the_run_is_evaluated_on(
    name: str, split: Split, tmp_path: Path
) -> None:
    path = write_log(tmp_path / "log", split)
    (part,) = [one for one in sources_of(path) if one["name"] == name]
    with pytest.raises(
        RunError, match=f"2 of the 2 episodes of .* are of tasks of {SUITE}'s {split} split"
    ) as refused:
        draw(part)
    assert f"turnwise eval {SUITE} --split train" in refused.value.remedy


def test_training_tasks_and_those_that_no_evaluation_plays_are_learned_from(tmp_path: Path) -> None:
    train = write_log(tmp_path / "train", Split.TRAIN)
    assert len(draw({"name": "stored", "path": str(train)}).shown) == 2
    failed = write_log(tmp_path / "failed", Split.TEST, policy="echo")  # not solved, so not learned from
    with pytest.raises(RunError, match="no solved episode"):
        draw({"name": "stored", "path": str(failed)})


def test_what_somebody_else_played_needs_no_task_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """No task is made for a log of another environment: it may have none to make."""
    (task,) = suite_tasks(get_suite("calc/easy"), Split.TEST, 1)
    monkeypatch.setattr("turnwise.trainers.source.held_out.suite_tasks", pytest.fail)
    assert HeldOut((SUITE,), 100, 300).owner_of(task) is None


def test_a_log_that_an_evaluation_wrote_says_so_before_the_run(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    shutil.copy(example_log(), path)
    asked = path.with_name("asked.json")
    for said, refused in (
        ({"suite": SUITE, "split": "test"}, True),
        ({"suite": SUITE, "split": "dev"}, True),
        ({"suite": SUITE, "split": "train"}, False),
        ({"suite": "shop/easy", "split": "test"}, False),
        ({"asked": "nothing"}, False),
    ):
        asked.write_text(json.dumps(said))
        if not refused:
            recipe(source=[{"name": "stored", "path": str(path)}])
            continue
        with pytest.raises(RecipeError, match=f"shop/quick's {said['split']} split") as error:
            recipe(source=[{"name": "stored", "path": str(path)}])
        assert "--split train" in error.value.remedy
