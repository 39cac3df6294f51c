"""Recipes from beginning to end, on a model of one layer and an environment of three turns."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")

from safetensors.torch import load_file

from turnwise.agents.contexts.core import make_context
from turnwise.agents.core import Episode, Outcome
from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.agents.models.small import train_tokenizer
from turnwise.agents.policies.model import ChatFormat, read_chat_format
from turnwise.agents.replay import replay
from turnwise.agents.tokens.renderer import Renderer
from turnwise.errors import EngineError, RecipeError, RunError
from turnwise.tasks.core import Split
from turnwise.trainers.core import Group
from turnwise.trainers.learn import warm_start, whole
from turnwise.trainers.learn.collate import TokenRows
from turnwise.trainers.recipe.load import check_recipe, load_recipe
from turnwise.trainers.run import collect, judging, trainer
from turnwise.trainers.run.collect import AgentGroup, CollectedGroups, describe, log_groups
from turnwise.trainers.run.door import opened
from turnwise.trainers.run.loop import train
from turnwise.trainers.run.parts import Parts, build_parts
from turnwise.trainers.run.update import UpdateResult
from turnwise.trainers.sampler.mixture import Mixture
from turnwise.trainers.strategy.runner import Cost


class Runs:
    """Trains in a folder and reads what came of it."""

    def __init__(self, folder: Path, recipe: dict[str, Any]) -> None:
        self.folder, self.recipe = folder, recipe
        self.said: list[str] = []

    def __call__(
        self, *, resume: bool = False, out: str = "run", preflight: bool = True, **changes: Any
    ) -> Any:
        file = self.folder / "letters.yaml"
        file.write_text(yaml.safe_dump(self.recipe))
        dotted = {key.replace("__", "."): value for key, value in changes.items()}
        said = self.said.append
        return train(file, out=self.folder / out, resume=resume, preflight=preflight, log=said, **dotted)

    def rows(self, phase: str = "rl", out: str = "run") -> list[dict[str, Any]]:
        lines = (self.folder / out / "metrics.jsonl").read_text().splitlines()
        return [row for row in map(json.loads, lines) if row["phase"] == phase]

    def weights(self, step: int, out: str = "run") -> dict[str, Any]:
        return load_file(self.folder / out / f"checkpoints/step-{step:06d}/model/model.safetensors")


@pytest.fixture
def runs(tmp_path: Path, letters: dict[str, Any]) -> Runs:
    letters |= {"updates": 2, "checkpoint": {"every": 1, "keep": 9}}
    return Runs(tmp_path, letters)


@pytest.mark.slow
def test_gae_learns_values_beside_the_policy(runs: Runs) -> None:
    changes = {
        "credit": {"name": "gae", "lam": 0.95},
        "filter": "any",
        "optimizer__learning_rate": 1e-4,
        "optimizer__value_learning_rate": 0.01,
    }
    result = runs(rollout__group_size=1, rollout__groups=12, updates=10, **changes)
    assert [judged.name for judged in result.evaluations] == ["warm start"] * 2 + ["after RL"] * 2
    saved = load_file(runs.folder / "run/checkpoints/step-000010/trainer.safetensors")
    assert any(name.startswith("parameter/1/") for name in saved)
    records = list(LogReader(runs.folder / "run/episodes.jsonl.zst"))
    assert any(len(set(record.given)) > 1 for record in records), "turns of one episode differ"

    def first_turns(updates: tuple[int, ...]) -> float:
        found = [record.given[0] for record in records if record.update in updates]
        return sum(found) / len(found)

    assert first_turns((1,)) > 0.05, "V begins at 0, so the advantage is the return"
    assert abs(first_turns((9, 10))) < 0.5 * first_turns((1,)), "V has come to expect the return"
    assert all(row["value_error"] > 0 for row in runs.rows())


@pytest.mark.slow
@pytest.mark.parametrize(
    "lora", [None, pytest.param({"rank": 4}, marks=pytest.mark.full)], ids=["full", "lora"]
)
def test_kl_compares_with_the_policy_after_the_warm_start(runs: Runs, lora: Any) -> None:
    loss = ["clip", {"name": "kl", "weight": 0.01}]
    runs(loss=loss, model__lora=lora, updates=3, optimizer__minibatches=1, optimizer__learning_rate=0.01)
    start = load_file(runs.folder / "run/start/update-000000/model.safetensors")
    made = load_file(runs.folder / "run/model/model.safetensors")
    assert any(not torch.equal(start[name], made[name]) for name in made), "the warm start trained nothing"
    first = runs.weights(0)
    assert all(torch.allclose(start[name], first[name], atol=1e-6) for name in start)
    kl = [row["kl_reference"] for row in runs.rows()]
    assert kl[0] == pytest.approx(0, abs=1e-6)
    assert kl[1] > 1e-7
    assert kl[2] > 1e-7

    # A resumed run compares with the same reference, though the first checkpoint is gone.
    whole = runs.weights(3)
    (runs.folder / "run/checkpoints/step-000003").rename(runs.folder / "kept")
    runs(
        resume=True,
        loss=loss,
        model__lora=lora,
        updates=3,
        optimizer__minibatches=1,
        optimizer__learning_rate=0.01,
    )
    assert [row["kl_reference"] for row in runs.rows()] == kl
    assert all(torch.equal(tensor, whole[name]) for name, tensor in runs.weights(3).items())


@pytest.mark.slow
def test_a_warm_start_imitates_the_chats_of_a_file(runs: Runs) -> None:
    row = {"messages": [{"role": "user", "content": "say"}, {"role": "assistant", "content": "b a"}]}
    (runs.folder / "chats.jsonl").write_text(json.dumps(row) + "\n")
    chats = {
        "chats": str(runs.folder / "chats.jsonl"),
        "episodes": 96,
        "batch_size": 4,
        "learning_rate": 0.02,
    }
    runs(warm_start=chats, updates=0)
    nll = [row["action_nll"] for row in runs.rows("warm_start")]
    assert len(nll) == 24
    assert nll[-1] < 0.5 * nll[0], "one chat is learned"
    assert any("96 chats of" in line for line in runs.said)


@pytest.mark.slow
def test_adapters_train_without_a_reference_too(runs: Runs) -> None:
    runs(model__lora={"rank": 2})
    assert not (runs.folder / "run/start").exists()
    assert all(row["grad_norm"] > 0 and row["canary_gap"] < 1e-4 for row in runs.rows())
    before, after = runs.weights(0), runs.weights(2)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all("_proj" in name for name in changed)


@pytest.mark.slow
def test_a_loaded_model_trains_without_a_warm_start(runs: Runs, small_model: Path) -> None:
    result = runs(
        model={"path": str(small_model)},
        warm_start=None,
        sampling__max_tokens=8,
        loss=["clip", "kl"],
        optimizer__precision="bfloat16",
        optimizer__minibatches=1,
    )
    assert [judged.name for judged in result.evaluations] == ["before"] * 2 + ["after RL"] * 2
    first, second = (row["kl_reference"] for row in runs.rows())
    assert 0 <= first < 1e-3
    assert second > 0
    assert not (runs.folder / "run/start").exists()
    assert all(0 < row["engine_gap"] < 0.1 for row in runs.rows()), "bfloat16 against the engine's float32"


@pytest.mark.slow
def test_a_warm_start_alone(runs: Runs) -> None:
    result = runs(updates=0)
    assert result.best_update == 0
    assert [j.evaluation.success for j in result.evaluations[:2]] == [
        j.evaluation.success for j in result.evaluations[2:]
    ]
    assert (runs.folder / "run/best/model/config.json").exists()
    kept = read_chat_format(runs.folder / "run/best/model")
    assert kept == ChatFormat("none", 6), "its template asks for no time, so none is kept"
    nll = [row["action_nll"] for row in runs.rows("warm_start")]
    assert len(nll) == 2


@pytest.mark.slow
def test_the_best_on_dev_is_judged_and_the_last_is_kept(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([0.5, 0.9, 0.9, 0.2])
    played = judging.evaluate_async

    async def scored(suite: Any, policy: Any, **options: Any) -> Any:
        found = await played(suite, policy, **options)
        if options["split"] == "dev":
            object.__setattr__(found, "success", next(scores))
        return found

    monkeypatch.setattr(judging, "evaluate_async", scored)
    judged: list[dict[str, Any]] = []
    pushed = trainer.push_weights

    def push(model: Any, engine: Any, version: int, **more: Any) -> Any:
        judged.append({name: t.clone() for name, t in whole.checkpoint_tensors(model)})
        return pushed(model, engine, version, **more)

    monkeypatch.setattr(trainer, "push_weights", push)
    result = runs(updates=4, evaluate__every=1, checkpoint={"every": 9, "keep": 1})
    assert result.best_update == 2
    assert (runs.folder / "run/best").resolve().name == "step-000002"
    kept = sorted(path.name for path in (runs.folder / "run/checkpoints").iterdir())
    assert kept == ["step-000002", "step-000004"]
    best, last = runs.weights(2), runs.weights(4)
    assert all(torch.equal(judged[-1][name], best[name]) for name in best)
    assert any(not torch.equal(best[name], last[name]) for name in best)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run(runs: Runs) -> None:
    once = {"updates": 1, "evaluate__every": 1, "preflight": False}
    for out, more in (("a", {}), ("b", {}), ("c", {"seed": 4})):
        runs(out=out, **once, model__lora={"rank": 2}, credit="gae", filter="any", **more)
    a, b, c = (runs.weights(1, out) for out in "abc")
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert any(not torch.equal(a[name], c[name]) for name in a)


@pytest.mark.slow
def test_logged_episodes_replay_though_rewards_were_replaced(runs: Runs) -> None:
    runs(reward="success")
    report = replay(runs.folder / "run/episodes.jsonl.zst")
    assert report.ok, str(report)
    assert report.episodes == 24


@pytest.mark.slow
def test_an_update_from_which_nothing_can_be_learned(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """All groups dropped, or no episode with a single turn: the run goes on, and says so."""

    def nothing(
        parts: Parts, played: Sequence[Group], cost: Cost, opponents: Collection[str]
    ) -> CollectedGroups:
        return CollectedGroups(played, [AgentGroup(n, "agent", None) for n in range(len(played))], cost)

    monkeypatch.setattr(collect, "split_by_agent", nothing)
    runs(out="dropped")
    for row in runs.rows(out="dropped"):
        assert (row["groups_dropped"], row["informative"], row["success"]) == (3, 0, 0)
        assert "grad_norm" not in row
    first, last = (runs.weights(step, "dropped") for step in (0, 2))
    assert all(torch.equal(first[name], last[name]) for name in first)
    monkeypatch.undo()


def test_prompts_that_never_fit_stop_the_run(runs: Runs) -> None:
    """They are turnless episodes, not errors, so that nothing else would stop it."""
    with pytest.raises(RunError, match=r"None of 6 episodes .*context of 16 tokens(.|\n)*context_length"):
        runs(filter="any", warm_start=None, engine__context_length=16, preflight=False)
    assert not (runs.folder / "run/metrics.jsonl").exists()


@pytest.mark.slow
def test_a_changed_environment_is_not_resumed_unasked(runs: Runs) -> None:
    runs(updates=1, evaluate__every=1)
    folder = runs.folder / "run"
    started = json.loads((folder / "started.json").read_text())
    assert (started[0]["environment"]["entry"], len(started)) == ("letters:Letters", 1)
    (folder / "checkpoints/step-000001").rename(runs.folder / "kept")
    started[0]["environment"]["source"] = "another"
    started[0]["threads"] = 99
    (folder / "started.json").write_text(json.dumps(started))
    with pytest.raises(RunError, match="--allow-changed-env"):
        runs(updates=1, evaluate__every=1, resume=True)
    file = runs.folder / "letters.yaml"
    changes = {"updates": 1, "evaluate.every": 1}
    train(file, out=folder, resume=True, allow_changed_env=True, log=runs.said.append, **changes)
    assert any("threads of torch 99, now" in line and "environment's source" in line for line in runs.said)
    whole = load_file(runs.folder / "kept/model/model.safetensors")
    assert all(torch.equal(tensor, whole[name]) for name, tensor in runs.weights(1).items())


def same_for_all(self: Any, state: Any, action: Any) -> Any:
    """A transition of Letters that pays the same whatever is said."""
    from letters import State

    from turnwise import EndReason, Transition

    return Transition(
        State(3, 0.0), "", {"outcome": self.paid}, EndReason.SOLVED if self.paid == 1 else EndReason.FAILED
    )


@pytest.mark.slow
def test_stored_episodes_that_teach_nothing_stop_the_run_too(runs: Runs, tmp_path: Path) -> None:
    """Each of another task, so that no other member of its group is there to compare it with."""
    runs(rollout__groups=2, preflight=False)
    one_of_each = {
        record.group: record.episode for record in LogReader(runs.folder / "run/episodes.jsonl.zst")
    }
    with EpisodeLog(tmp_path / "alone.jsonl") as log:
        for episode in one_of_each.values():
            log.append(episode)
    source = [{"name": "stored", "path": str(log.path), "join": True}]
    with pytest.raises(RunError, match="each of the 2 groups is one episode, and filter informative"):
        runs(
            updates=4, rollout__groups=0, rollout__max_vacuous=2, source=source, out="alone", preflight=False
        )


@pytest.mark.slow
def test_updates_that_teach_nothing_stop_the_run(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    from letters import Letters

    monkeypatch.setattr(Letters, "transition", same_for_all)
    monkeypatch.setattr(Letters, "paid", 0.0, raising=False)
    stopped = (
        r"Nothing was learned in 2 updates in a row: in each of the 3 groups all episodes earned the same"
    )
    with pytest.raises(RunError, match=rf"{stopped}(.|\n)*group_size(.|\n)*max_vacuous: 0"):
        runs(updates=6, rollout__max_vacuous=2, preflight=False)
    assert [row["update"] for row in runs.rows()] == [1, 2]
    lines = [line for line in runs.said if line.startswith("  update")]
    assert all("nothing was learned: in each of the 3 groups" in line for line in lines)
    assert all("nan" not in line for line in lines)
    with pytest.raises(RunError, match="Nothing was learned in 3 updates"):
        runs(updates=6, rollout__max_vacuous=3, filter="any", out="filtered", preflight=False)
    assert not runs(updates=3, rollout__max_vacuous=0, out="on", preflight=False).interrupted

    monkeypatch.setattr(Letters, "paid", 1.0)
    assert not runs(updates=3, rollout__max_vacuous=1, out="mastered", preflight=False).interrupted
    assert "nothing was learned: all 12 episodes were solved" in runs.said[-6]


@pytest.mark.slow
def test_a_run_stops_when_too_much_fails_and_goes_on_when_it_is_fixed(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    from letters import Letters

    working, calls = Letters.transition, [0]

    def broken(self: Any, state: Any, action: Any) -> Any:
        calls[0] += 1
        if calls[0] > 120:
            raise ZeroDivisionError("the sandbox burned down")
        return working(self, state, action)

    with monkeypatch.context() as patch:
        patch.setattr(Letters, "transition", broken)
        with pytest.raises(RunError, match=r"episodes failed in update \d+: .*burned down(.|\n)*max_failed"):
            runs(updates=6, preflight=False)
    result = runs(updates=6, resume=True)
    assert not result.interrupted
    assert [row["update"] for row in runs.rows()] == [1, 2, 3, 4, 5, 6]
    assert len(result.evaluations) == 4


@pytest.mark.slow
def test_failed_episodes_are_counted_and_logged_without_advantages(
    runs: Runs, tmp_path: Path, letters: dict[str, Any]
) -> None:
    runs(out="played")
    records = [r for r in LogReader(runs.folder / "played/episodes.jsonl.zst") if r.update == 1]
    groups: list[list[Episode]] = [[r.episode for r in records if r.group == g] for g in range(3)]
    failed = groups[1][2]
    groups[1][2] = type(failed)(
        failed.task, failed.seed, failed.trajectories, Outcome.INFRA_ERROR, None, "engine down"
    )
    found = collect.split_by_agent(build_parts(check_recipe(letters)), groups, Cost())
    assert [(agent_group.number, agent_group.members) for agent_group in found.usable] == [
        (0, (0, 1, 2, 3)), (1, (0, 1, 3)), (2, (0, 1, 2, 3))
    ]  # fmt: skip
    rest = [e for g in groups for e in g if e.outcome.counts]
    advantages = [[float(i)] * len(e.trajectory.turns) for i, e in enumerate(rest)]
    result = UpdateResult(found.training, [1.0] * 10 + [0.0], advantages)
    metrics = describe(found, result)
    assert (metrics["groups_dropped"], metrics["episodes_failed"]) == (0, 1)
    assert metrics["success"] == sum(e.success for e in rest) / 11
    with EpisodeLog(tmp_path / "log.jsonl") as log:
        log_groups(log, 0, found, result)
    written = list(LogReader(tmp_path / "log.jsonl"))
    assert [r.group for r in written] == [0] * 4 + [1] * 4 + [2] * 4
    assert [r.given[:1] for r in written] == [
        (0,),
        (1,),
        (2,),
        (3,),
        (4,),
        (5,),
        (),
        (6,),
        (7,),
        (8,),
        (9,),
        (),  # of weight 0
    ]
    assert written[6].episode.outcome is Outcome.INFRA_ERROR


def test_an_engine_with_other_weights_stops_the_run(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    from turnwise.agents.engines.torch import TorchEngine

    load = TorchEngine.load_weights

    def stale(self: Any, weights: Any, version: int, **more: Any) -> None:
        broken = [(name, t * 0 if version and "down_proj" in name else t) for name, t in weights]
        load(self, broken, version, **more)

    monkeypatch.setattr(TorchEngine, "load_weights", stale)
    with pytest.raises(EngineError, match="other weights"):
        runs(optimizer__learning_rate=0.01)
    assert runs.rows() == []


@pytest.mark.slow
def test_what_cannot_start_leaves_no_run_behind(runs: Runs) -> None:
    if not torch.cuda.is_available():
        with pytest.raises(Exception, match="GPU"):
            runs(device="cuda")
    with pytest.raises(RecipeError, match=r"model\.scratch\.vocab_size"):
        runs(model__scratch__vocab_size=10)
    assert not runs(updates=0).interrupted


def test_a_demonstrator_that_fails_is_named(letters: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from letters import Letters

    monkeypatch.setattr(Letters, "gold", lambda self, state: 1 / 0)
    with pytest.raises(
        RunError, match=r"scripted:gold can demonstrate nothing in test/letters(.|\n)*division"
    ):
        asyncio.run(warm_start.demonstrations(Mixture({"test/letters": 1}, 0), "gold", 0, 4, 0))


@pytest.mark.slow
def test_training_with_environments_in_workers(runs: Runs) -> None:
    """The same warm start to the bit; then replies are batched as environments answer, which rounds differently."""
    once = {"updates": 1, "evaluate__every": 1, "preflight": False}
    runs(out="here", **once)
    runs(out="there", **once, rollout__env_workers=2)
    here, there = runs.weights(0, "here"), runs.weights(0, "there")
    assert all(torch.equal(here[name], there[name]) for name in here)
    records = [list(LogReader(runs.folder / f"{out}/episodes.jsonl.zst")) for out in ("here", "there")]
    first = [[r.episode.trajectory.turns[0] for r in read if r.update == 1] for read in records]
    assert [t.reply.action_ids for t in first[0]] == [t.reply.action_ids for t in first[1]]
    for one, other in zip(*first, strict=True):
        assert one.reply.logprobs == pytest.approx(other.reply.logprobs, abs=1e-5)
    assert all(r.episode.outcome.counts for r in records[1])


def test_demonstrations_that_fail_are_told(
    letters: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from letters import Letters

    from turnwise.envs.registry import get_suite, suite_tasks

    suite, sound = get_suite("test/letters"), Letters.initial
    first = next(iter(suite_tasks(suite, Split.TRAIN, 1, start=warm_start.WARM_START_TASKS)))
    monkeypatch.setattr(Letters, "initial", lambda self, task: 1 / 0 if task == first else sound(self, task))
    shown = asyncio.run(warm_start.demonstrations(Mixture({suite.name: 1}, 0), "gold", 0, 4, 0))
    assert len(shown) == 3
    assert "1 of 4 demonstrations failed, and are left out: 1 × env_error" in caplog.text
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("forgets", [0.0, 1.0])
def test_a_warm_start_forgets_as_its_recipe_says(forgets: float) -> None:
    memory = {"name": "summary", "tokens": 256, "ask": "memory :", "said": "memory :"}
    changes = {"suite": "household/day-15", "sampling.context": memory, "warm_start.forgets": forgets}
    options = opened(load_recipe("household-medium", changes)).warm
    assert options is not None
    mixture = Mixture({"household/day-15": 1}, 0)
    told = asyncio.run(warm_start.demonstrations(mixture, "gold", 0, 4, 0))
    tokenizer = train_tokenizer([*warm_start.texts(told)], vocab_size=512)
    renderer = Renderer(tokenizer, tools_format="none", context=make_context(memory))
    shown: list[TokenRows] = []
    learner: Any = SimpleNamespace(supervise=lambda rows, *_: shown.append(rows) or {})
    asyncio.run(
        warm_start.warm_start(
            learner, renderer, mixture, options.imitation, 0, lambda *_: False, None,
            env_workers=0, limits=None, done=0, context=384,
        )
    )  # fmt: skip
    (rows,) = shown
    assert ("order" in tokenizer.decode(rows.token_RT[rows.mask_RT])) == (forgets == 0)


def test_demonstrations_keep_the_recipes_deadlines(
    letters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from turnwise.trainers.recipe.load import check_recipe
    from turnwise.trainers.run.door import opened
    from turnwise.trainers.run.small import heard

    asked: list[Any] = []

    async def rollout(requests: Any, policy: Any, **options: Any) -> Any:
        asked.append(options["limits"])
        return await real(requests, policy, **options)

    real = warm_start.rollout
    monkeypatch.setattr(warm_start, "rollout", rollout)
    recipe = check_recipe(letters | {"rollout": {"step_s": 7.0, "reset_s": 8.0}})
    scratch = opened(recipe).scratch
    assert scratch is not None
    assert list(heard(scratch))
    assert [(limits.step_s, limits.reset_s) for limits in asked] == [(7.0, 8.0)]
