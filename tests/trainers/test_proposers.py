"""Tasks that are made while a run trains: played in the update that makes them, kept in checkpoints, learned again from the log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise import registry
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.code import triples
from turnwise.envs.code.triples import ENV, SEED
from turnwise.envs.registry import get_suite, suite_task
from turnwise.errors import RecipeError, RunError
from turnwise.registry import component
from turnwise.tasks.core import Split, Task
from turnwise.trainers.proposer.azr_solve import azr_solve
from turnwise.trainers.proposer.core import PooledTask, ProposedTasks, ProposerContext, TaskProposal
from turnwise.trainers.recipe.explain import explain_recipe
from turnwise.trainers.recipe.load import check_recipe
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.relearn import relearn

SHOP = {"suite": "shop/quick", "model": {"path": "Qwen/Qwen3-0.6B"}}
CLOCK = ("seconds", "_per_second")
LONG = {
    "layers": 1,
    "width": 64,
    "heads": 2,
    "init": "random",
    "vocab_size": 300,
    "context": 512,
    "text_episodes": 10,
}


@pytest.fixture
def own() -> Iterator[Any]:
    """Register proposers that are gone after the test."""
    added: list[str] = []

    def register(name: str, target: Any, **said: Any) -> None:
        added.append(name)
        component("proposer", name, **said)(target)

    yield register
    for name in added:
        registry._components.pop(("proposer", name), None)


def returning(see: ProposerContext, *, most: int = 1) -> list[TaskProposal]:
    """Give the oldest tasks of the pool again, and a new one that goes by how the update went."""
    solved = sum(one.success for group in see.played for one in group)
    fresh = Task(
        "test/Letters-v0", f"Letters of update {see.update}, after {solved} ({see.rng().random():.3f})."
    )
    return [*(TaskProposal(one.task, episodes=2) for one in see.pool[:most]), TaskProposal(fresh, weight=0.5)]


def recipe_of(letters: dict[str, Any], **changes: Any) -> dict[str, Any]:
    made = {
        "warm_start": None,
        "updates": 4,
        "checkpoint": {"every": 1, "keep": 9},
        "evaluate": {"every": 4, "dev": 2, "test": 2},
    }
    return {**letters, **made, "model": {"scratch": LONG}, **changes}


def rows_of(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if not k.endswith(CLOCK)} for line in lines]


def played_in(run: Path) -> list[tuple[Any, ...]]:
    records = LogReader(run / "episodes.jsonl.zst")
    return [(one.update, one.group, one.suite, one.episode.task.id) for one in records]


def parts_of(run: Path, step: int) -> dict[str, Any]:
    return json.loads((run / f"checkpoints/step-{step:06d}/state.json").read_text())["parts"]


@pytest.mark.slow
@pytest.mark.parametrize("staleness", [0, 1])
def test_a_run_whose_pool_grows_is_resumed_and_learned_again(
    own: Any, letters: dict[str, Any], tmp_path: Path, staleness: int
) -> None:
    """It is killed after its second update; pool, tasks and weights are then those of the run that was not."""
    own("returning", returning)
    proposers = [{"name": "returning", "keep": 2}, {"name": "rise", "share": 0.3, "balanced": False}]
    recipe = recipe_of(letters, proposer=proposers, scale={"staleness": staleness})

    def stop(line: str) -> None:
        if "2/4" in line:
            raise KeyError(line)

    with pytest.raises(KeyError):
        train(recipe, out=tmp_path / "run", preflight=False, log=stop)
    assert [row["update"] for row in parts_of(tmp_path / "run", 2)["pool"]["tasks"]] == [0, 1]
    train(recipe, out=tmp_path / "run", preflight=False, resume=True, log=lambda line: None)
    played = played_in(tmp_path / "run")
    groups = {(update, group): suite for update, group, suite, _ in played}
    counts = Counter(suite for (update, _), suite in groups.items() if update == 4)
    said = "12 + 6 episodes, of which a third is asked about"
    assert counts == {"test/letters": 3, "pool:returning": 2, "pool:rise": 5}, said
    last = rows_of(tmp_path / "run")[-2]
    assert {"success/pool:rise", "success/test/letters", "groups_proposed", "pool"} <= last.keys()
    assert (last["tasks_new"], last["groups_proposed"]) == (3, 7)
    assert relearn(tmp_path / "run").equal[-1] == 4
    if staleness:  # its tokens depend on the clock
        return
    train(recipe, out=tmp_path / "whole", preflight=False, log=lambda line: None)
    assert played == played_in(tmp_path / "whole")
    assert rows_of(tmp_path / "whole") == rows_of(tmp_path / "run")
    assert parts_of(tmp_path / "whole", 4) == parts_of(tmp_path / "run", 4)


@pytest.mark.slow
def test_a_run_may_play_what_its_proposers_make_alone(
    own: Any, letters: dict[str, Any], tmp_path: Path
) -> None:
    """Absolute Zero has no other tasks. What the policy plays of its suite is not told, since it plays none."""
    own("returning", returning)
    recipe = recipe_of(letters, proposer=[{"name": "returning", "keep": 2}], updates=2)
    recipe |= {"rollout": {**letters["rollout"], "groups": 0}, "evaluate": {"every": 2, "dev": 2, "test": 2}}
    train(recipe, out=tmp_path / "run", preflight=False, log=lambda line: None)
    assert [(u, g, s) for u, g, s, _ in dict.fromkeys(played_in(tmp_path / "run"))] == [
        (1, 0, "pool:returning"), (2, 0, "pool:returning"), (2, 1, "pool:returning")
    ]  # fmt: skip
    for row in (one for one in rows_of(tmp_path / "run") if one["phase"] == "rl"):
        assert "success/pool:returning" in row
        assert "success" not in row
        assert row["tasks_new"] == 0
    assert relearn(tmp_path / "run").equal[-1] == 2


def test_an_update_is_shown_what_is_old_enough_whatever_is_played_ahead() -> None:
    """With staleness s the play of update u begins once update u − s − 1 was learned, and may see no more than that."""
    for staleness in (0, 1, 3):
        pool = ProposedTasks({"mine": 2, "yours": 0}, staleness)
        for update in range(8):
            shown = {one.update for one in pool.known(update)}
            assert shown == {u for u in (update - staleness - 2, update - staleness - 1) if u >= 0}
            pool.add(
                update, [PooledTask(Task("a", f"{by} {update}"), by, update) for by in ("mine", "yours")]
            )
            later = ProposedTasks({"mine": 2, "yours": 0}, staleness)
            later.restore(pool.state())
            for ahead in range(update + 1, update + 2 + staleness):
                assert later.known(ahead) == pool.known(ahead)
        assert len(pool) <= 2 + staleness


def test_no_task_on_which_the_run_is_evaluated_is_ever_proposed(
    own: Any, letters: dict[str, Any], tmp_path: Path
) -> None:
    """Neither plainly nor as the task around which another world is."""
    suite = get_suite("test/letters")
    dev, test = suite_task(suite, Split.DEV, 0), suite_task(suite, Split.TEST, 1)
    for task, split in (
        (dev, "dev"),
        (Task("test/Letters-v0", "told", {"around": [{"deep": test.to_json()}]}), "test"),
    ):
        own("leaking", lambda see, task=task: [TaskProposal(task)] if see.played else [])
        with pytest.raises(
            RunError, match=f"proposer 'leaking' gives task .* of test/letters's {split} split"
        ):
            train(
                recipe_of(letters, proposer=["leaking"]),
                out=tmp_path / split,
                preflight=False,
                log=lambda line: None,
            )
        registry._components.pop(("proposer", "leaking"))


def test_a_proposer_may_ask_whether_a_task_is_held_out_and_leave_it_out(
    own: Any, letters: dict[str, Any], tmp_path: Path
) -> None:
    """Else what a policy happens to say could stop its own run."""
    tasks = [suite_task(get_suite("test/letters"), split, 0) for split in (Split.DEV, Split.TRAIN)]
    own(
        "careful", lambda see: [TaskProposal(task) for task in tasks if see.played and not see.held_out(task)]
    )
    recipe = recipe_of(letters, proposer=["careful"], updates=1, evaluate={"every": 1, "dev": 2, "test": 2})
    train(recipe, out=tmp_path / "run", preflight=False, log=lambda line: None)
    made = {task for _, _, suite, task in played_in(tmp_path / "run") if suite == "pool:careful"}
    assert made == {tasks[1].id}


@pytest.mark.usefixtures("sandboxed")
def test_what_the_policy_proposes_is_not_solved_where_the_run_is_evaluated_on_it() -> None:
    task = suite_task(get_suite("triples:propose"), Split.TRAIN, 0)
    played = [run_episodes([Request(task, n) for n in range(3)], scripted("demonstrator"))]
    made = azr_solve(ProposerContext(0, 0, played))
    assert len(made) == 3
    left = azr_solve(ProposerContext(0, 0, played, held_out=lambda one: one.id == made[0].task.id))
    assert left == made[1:]


def test_proposers_that_fit_no_recipe_are_refused_when_it_is_read(own: Any) -> None:
    own("returning", returning)
    for changes, said in (
        ({"proposer": ["rise", {"name": "rise", "share": 0.5}]}, "'rise' is named twice"),
        ({"proposer": [{"name": "rise", "share": 0}]}, "share=0 is no share"),
        ({"proposer": [{"name": "rise", "keep": -1}]}, "keep"),
        ({"proposer": ["raise"]}, "Did you mean 'rise'"),
        ({"proposer": ["rise"], "rollout": {"env_options": {"hidden": 3}}}, "hidden"),
        ({"proposer": ["rise"], "agent": {"command": ["true"]}}, "a program"),
    ):
        with pytest.raises(RecipeError, match=said):
            check_recipe({**SHOP, **changes})
    told = explain_recipe(check_recipe({**SHOP, "proposer": [{"name": "returning", "keep": 3}, "rise"]}))
    assert "proposer: rise(share=0.125, balanced=True)  [arXiv 2505.13445]" in told
    assert (
        "proposer returning makes of what was played, in groups of their own; they are kept for 3 later updates"
        in told
    )


@pytest.mark.parametrize(
    "given",
    [["a task"], [TaskProposal(Task("a", "b"), episodes=-1)], [TaskProposal(Task("a", "b"), weight=0.0)]],
)
def test_what_is_no_proposal_is_refused_with_the_proposers_name(
    own: Any, letters: dict[str, Any], tmp_path: Path, given: Any
) -> None:
    own("odd", lambda see: given if see.played else [])
    with pytest.raises(RunError, match=r"proposer 'odd' gives .* in update 1"):
        train(
            recipe_of(letters, proposer=["odd"]), out=tmp_path / "run", preflight=False, log=lambda line: None
        )


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_a_run_in_which_the_policy_proposes_and_solves_is_learned_again(
    letters: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A random model proposes nothing that runs, so that some of what it says is taken for the triple of the identity."""

    def some(text: str) -> dict[str, str]:
        return {"python": SEED.program, "input": repr(len(text) % 2), "output": "1"} if len(text) % 3 else {}

    monkeypatch.setattr(triples, "blocks", some)
    scratch = {**LONG, "context": 1024}
    proposers = ["azr_propose", {"name": "azr_solve", "keep": 5}]
    parts = {"reward": "absolute_zero", "credit": "trr", "filter": "any", "updates": 3}
    parts["evaluate"] = {"every": 3, "dev": 2, "test": 2}
    recipe = recipe_of(letters, proposer=proposers, model={"scratch": scratch}, **parts)
    train(recipe, out=tmp_path / "run", preflight=False, log=lambda line: None)
    records = [r for r in LogReader(tmp_path / "run" / "episodes.jsonl.zst") if r.episode.task.env == ENV]
    roles = {(r.suite, r.episode.task.options["role"]) for r in records}
    assert {("pool:azr_propose", "propose deduction"), ("pool:azr_propose", "propose abduction")} < roles
    assert any(suite == "pool:azr_solve" for suite, _ in roles)
    shown = [r.episode.task.prompt for r in records if r.update == 3 and r.suite == "pool:azr_propose"]
    assert any("```input\n1\n```" in one or "```input\n0\n```" in one for one in shown), (
        "what was accepted before is shown"
    )
    kept = json.loads((tmp_path / "run/checkpoints/step-000003/state.json").read_text())["parts"]["pool"][
        "tasks"
    ]
    assert {row["by"] for row in kept} == {"azr_solve"}
    assert relearn(tmp_path / "run").equal[-1] == 3
