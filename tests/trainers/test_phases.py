"""Phases of one run, and resets: each begins anew what it says, is checked as a recipe, and survives being killed."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file

from turnwise.errors import RecipeError, RunError
from turnwise.trainers.recipe.explain import explain_recipe
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.recipe.phases import phase_at, phases_of
from turnwise.trainers.report.records import read_run
from turnwise.trainers.run.lesson import Lessons
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.relearn import relearn
from turnwise.trainers.sampler.mixture import Mixture

DPO = {"name": "dpo", "updates": 2, "set": {"credit": "grpo", "loss": ["dpo"], "optimizer.minibatches": 1}}
RLVR = {
    "name": "rlvr",
    "updates": 3,
    "set": {
        "credit": "gae_token",
        "loss": ["clip", {"name": "kl", "weight": 0.05}],
        "reward": "verified",
        "rollout.groups": 2,
        "schedule": {"optimizer.learning_rate": {"name": "linear", "to": 0.001}},
    },
}
SFT = {
    "name": "sft",
    "updates": 1,
    "set": {"rollout.groups": 0, "source": [{"name": "demonstrations", "episodes": 3}]},
}
CLOCK = ("seconds", "tokens_per_second")


def recipe(letters: dict[str, Any], *phases: dict[str, Any], **changes: Any) -> dict[str, Any]:
    shared = {key: value for key, value in letters.items() if key not in ("updates", "loss")}
    return {**shared, "phases": [*phases], "checkpoint": {"every": 1, "keep": 9}, **changes}


def carried_out(data: dict[str, Any], out: Path, *, resume: bool = False) -> Any:
    return train(data, out=out, resume=resume, preflight=False, log=lambda line: None)


def rows(out: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if not k.endswith(CLOCK)} for row in found if row["phase"] == "rl"]


def bits(out: Path, step: int) -> dict[str, bytes]:
    folder = out / f"checkpoints/step-{step:06d}"
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def cut_back(whole: Path, out: Path, step: int) -> Path:
    """The run as a kill leaves it that came before the next update after ``step`` was saved."""
    shutil.copytree(whole, out, symlinks=True)
    for later in out.glob("checkpoints/step-*"):
        if int(later.name.removeprefix("step-")) > step:
            shutil.rmtree(later)
    return out


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """A run of three phases that nothing happened to."""
    import sys

    import yaml

    sys.path.insert(0, str(Path(__file__).parents[1]))
    try:
        from letters import RECIPE, register_letters
    finally:
        sys.path.pop(0)
    register_letters()
    data = recipe(yaml.safe_load(RECIPE), SFT, DPO, RLVR)
    out = tmp_path_factory.mktemp("phases") / "run"
    carried_out(data, out)
    return data, out


@pytest.mark.slow
def test_each_phase_optimises_its_own_objective(whole: tuple[dict[str, Any], Path]) -> None:
    data, out = whole
    found = rows(out)
    assert [row["update"] for row in found] == [1, 2, 3, 4, 5, 6]
    assert "source/demonstrations/nll" in found[0]
    assert all("pairs" in row for row in found[1:3])
    assert all("value_error" in row and "kl_reference" in row for row in found[3:])
    assert not any("value_error" in row for row in found[:3])
    assert found[3]["kl_reference"] == pytest.approx(0, abs=1e-6), (
        "the reference is the policy as the phase begins"
    )
    assert found[5]["kl_reference"] > 0
    rates = [row["schedule/optimizer.learning_rate"] for row in found[3:]]
    assert rates == pytest.approx([0.003, 0.002, 0.001]), "a schedule counts the updates of its phase"
    begun = load_file(out / "start/update-000003/model.safetensors")
    before = load_file(out / "checkpoints/step-000003/model/model.safetensors")
    assert all(torch.equal(begun[name], before[name]) for name in before)
    assert [row["dev_success"] is not None for row in found if row["update"] in (1, 3, 6)] == [True] * 3
    assert read_run(out).phases() == [("sft", 0), ("dpo", 1), ("rlvr", 3)]
    assert (out / "report.html").read_text().count("rlvr") >= 2
    assert load_recipe(data).updates == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "step", [pytest.param(1, marks=pytest.mark.full), 2, 3, pytest.param(4, marks=pytest.mark.full)]
)
def test_a_run_killed_within_and_between_phases_is_the_same_run(
    whole: tuple[dict[str, Any], Path], tmp_path: Path, step: int
) -> None:
    data, done = whole
    out = cut_back(done, tmp_path / "run", step)
    carried_out(data, out, resume=True)
    assert rows(out) == rows(done)
    for later in range(step, 7):
        assert bits(out, later) == bits(done, later), later


@pytest.mark.slow
def test_a_run_of_phases_is_learned_again_from_its_log(whole: tuple[dict[str, Any], Path]) -> None:
    assert asyncio.run(_relearned(whole[1])) == (0, 1, 2, 3, 4, 5, 6)


async def _relearned(out: Path) -> tuple[int, ...]:
    from turnwise.trainers.run.relearn import relearn_async

    return (await relearn_async(out)).equal


@pytest.mark.slow
def test_adapters_are_merged_into_what_the_next_phase_begins_from(
    letters: dict[str, Any], tmp_path: Path
) -> None:
    letters["model"]["lora"] = {"rank": 2}
    data = recipe(letters, DPO, RLVR | {"updates": 2})
    carried_out(data, tmp_path / "whole")
    out = cut_back(tmp_path / "whole", tmp_path / "run", 3)
    carried_out(data, out, resume=True)
    assert bits(out, 4) == bits(tmp_path / "whole", 4)


RESETS = {"optimizer.resets": {"name": "prorl", "patience": 0, "most": 0, "every": 2}}


@pytest.mark.slow
@pytest.mark.parametrize("lora", [None, {"rank": 2}], ids=["full", "lora"])
def test_a_reset_forgets_the_moments_and_takes_the_policy_for_its_reference(
    letters: dict[str, Any], tmp_path: Path, lora: Any
) -> None:
    letters["model"]["lora"] = lora
    data = {**letters, "loss": ["clip", {"name": "kl", "weight": 0.1}], "schedule": RESETS, "updates": 5}
    data["checkpoint"], data["optimizer"] = {"every": 1, "keep": 9}, {"learning_rate": 0.01}
    carried_out(data, tmp_path / "whole")
    found = rows(tmp_path / "whole")
    assert [row["schedule/optimizer.resets"] for row in found] == [0, 0, 1, 1, 2]
    kl = [row["kl_reference"] for row in found]
    assert [x == pytest.approx(0, abs=1e-6) for x in kl] == [True, False, True, False, True]
    steps = [
        json.loads((tmp_path / f"whole/checkpoints/step-00000{n}/state.json").read_text())["learner_steps"]
        for n in range(1, 6)
    ]
    assert steps == [1, 2, 1, 2, 1], "the moments and the warm-up began anew"
    for step in (2, 3):
        out = cut_back(tmp_path / "whole", tmp_path / f"run{step}", step)
        carried_out(data, out, resume=True)
        assert bits(out, 5) == bits(tmp_path / "whole", 5), step
    assert relearn(tmp_path / "whole").equal[-1] == 5


@pytest.mark.slow
def test_the_best_policy_of_an_earlier_phase_is_judged_in_its_own(
    letters: dict[str, Any], tmp_path: Path
) -> None:
    """Of the first phase, whose learner has another shape than the last one's."""
    still = RLVR | {
        "set": RLVR["set"] | {"optimizer.learning_rate": 1e-12, "schedule": {}}
    }  # never better than before
    data = recipe(letters, DPO, still)
    result = carried_out(data, tmp_path / "run")
    assert result.best_update == 2
    assert (tmp_path / "run/best").resolve().name == f"step-{result.best_update:06d}"
    assert len(result.evaluations) == 4


@pytest.mark.slow
def test_a_policy_to_compare_with_that_is_gone_is_named(
    whole: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    out = cut_back(whole[1], tmp_path / "run", 5)
    shutil.rmtree(out / "start/update-000003")
    with pytest.raises(RunError, match="update-000003 is missing"):
        carried_out(whole[0], out, resume=True)


def test_no_phase_plays_a_task_of_another(letters: dict[str, Any]) -> None:
    few = {"name": "few", "updates": 3, "set": {"rollout.groups": 1, "optimizer.minibatches": 1}}
    made = load_recipe(recipe(letters, SFT, DPO, RLVR, few, rollout={**letters["rollout"], "groups": 5}))
    assert [phase.tasks for phase in phases_of(made)] == [0, 0, 10, 16]
    lessons, indices = Lessons(made, Mixture(made.suites, made.seed)), list[int]()
    for update in range(made.updates):
        lessons.go_to(update + 1)
        indices += [one.index for one in lessons.sampler.plan(update, 0, lessons.recipe.rollout.groups)]
    assert indices == [*range(19)], "new tasks, and none is left out"


def test_a_recipe_without_phases_is_one(letters: dict[str, Any]) -> None:
    (only,) = phases_of(load_recipe(letters))
    assert (only.name, only.first, only.end) == ("", 0, 5)


def test_phases_are_recipes_of_their_own(letters: dict[str, Any]) -> None:
    made = load_recipe(recipe(letters, SFT, DPO, RLVR))
    phases = phases_of(made)
    assert [(phase.first, phase.end) for phase in phases] == [(0, 1), (1, 3), (3, 6)]
    assert [phase.recipe.filter.name for phase in phases] == ["informative", "informative", "any"]
    assert [phase.recipe.warm_start is None for phase in phases] == [False, True, True]
    assert [phase_at(phases, update).name for update in (0, 1, 2, 3, 9)] == [
        "sft",
        "dpo",
        "dpo",
        "rlvr",
        "rlvr",
    ]
    import yaml

    assert load_recipe(yaml.safe_load(made.to_yaml())) == made


def test_a_phase_may_name_an_algorithm(letters: dict[str, Any]) -> None:
    dapo = {
        "name": "rl",
        "updates": 2,
        "set": {"algorithm": "dapo", "reduce": "fixed_length", "loss.clip.high": 0.3},
    }
    dapo["set"]["optimizer.minibatches"] = 2
    (phase,) = phases_of(load_recipe(recipe(letters, dapo)))
    assert (phase.recipe.credit.name, phase.recipe.reduce.name) == ("grpo", "fixed_length")
    assert phase.recipe.loss[0].options["high"] == 0.3


def test_explain_tells_each_phase_and_a_part_once(letters: dict[str, Any]) -> None:
    text = explain_recipe(load_recipe(recipe(letters, DPO, RLVR)))
    first, second = text.split("Phase 2 of 2: rlvr (updates 3 to 5)")
    assert "Phase 1 of 2: dpo (updates 1 to 2)" in first
    assert "π_ref  the model after the warm start, frozen" in first
    assert "π_ref  the model as the phase begins, frozen" in second
    assert "strategy: chain() (above)" in second
    assert "test tasks judge it" not in first


@pytest.mark.parametrize(
    ("phases", "changes", "said"),
    [
        ([DPO, DPO], {}, "phase 'dpo' is named twice"),
        ([DPO], {"updates": 7}, "updates is 7, and the phases have 2 together"),
        ([DPO | {"set": {"model.path": "x"}}], {}, "phase 'dpo' sets 'model.path', which a run has once"),
        ([DPO | {"set": {"rollout.group": 2}}], {}, "Did you mean 'rollout.groups'"),
        ([DPO | {"set": {"loss": ["dqo"]}}], {}, "phase 'dpo': There is no loss 'dqo'"),
        ([DPO | {"set": {"optimizer.learning_rate": "fast"}}], {}, "phase 'dpo': .*'optimizer.learning_rate' must be a number"),
        ([DPO | {"set": {"loss": ["distill"]}}], {}, "phase 'dpo': .*there is no teacher"),
        ([DPO | {"set": {"algorithm": "dap"}}], {}, "phase 'dpo': There is no algorithm 'dap'(.|\n)*Did you mean 'dapo'"),
        ([DPO | {"name": "a b"}], {}, "'phases.0.name' cannot be 'a b'"),
        ([DPO | {"updates": 0}], {}, "'phases.0.updates' cannot be 0"),
        ([DPO | {"zzz": 0}], {}, "unknown key 'phases.0.zzz'"),
        ([RLVR | {"set": RLVR["set"] | {"rollout.groups": 0}}], {}, "phase 'rlvr': rollout.groups 0 plays nothing"),
    ],
)  # fmt: skip
def test_phases_that_cannot_be_are_refused(
    letters: dict[str, Any], phases: list[dict[str, Any]], changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(RecipeError, match=said.replace(".0.", r"\.0\.")):
        load_recipe(recipe(letters, *phases, **changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"optimizer": {"resets": 1}}, "optimizer.resets 1 can have no effect"),
        (
            {"schedule": {"optimizer.resets": {"name": "prorl", "patience": 0, "most": 0}}},
            "name no time for a reset",
        ),
    ],
)
def test_resets_that_cannot_be_are_refused(
    letters: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(RecipeError, match=said):
        load_recipe({**letters, **changes})
