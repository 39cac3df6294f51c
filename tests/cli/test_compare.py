"""``turnwise compare``: like with like, by task, by seed, at equal cost; what is missing is said."""

import functools
import json
import re
from pathlib import Path

import pytest
import yaml
from scipy import stats

from turnwise.agents.evaluation.comparison import difference_over_seeds, unpaired_difference
from turnwise.agents.evaluation.evaluate import Evaluation, evaluate
from turnwise.agents.evaluation.folder import open_folder
from turnwise.agents.evaluation.statistics import Estimate, Interval
from turnwise.agents.policies.registry import make_policy
from turnwise.errors import TurnwiseError
from turnwise.trainers.compare.alike import UnlikeError
from turnwise.trainers.compare.comparison import compare
from turnwise.trainers.compare.knobs import levels_of
from turnwise.trainers.compare.plots import write_plot

SUITE = "household/medium"
RECIPE = {"suite": SUITE, "seed": 0, "updates": 4, "sampling": {"temperature": 1.0, "max_tokens": 16}}


def played(gold: float, *, episodes: int = 40, split: str = "test", suite: str = SUITE) -> Evaluation:
    """A policy of this skill, really played."""
    return evaluate(suite, make_policy(f"mix:gold={gold},null={1 - gold}"), episodes=episodes, split=split)


@functools.cache
def weak() -> Evaluation:
    return played(0.2)


@functools.cache
def fair() -> Evaluation:
    return played(0.35)


@functools.cache
def strong() -> Evaluation:
    return played(0.99)


def run_folder(
    path: Path,
    after: Evaluation | None,
    dev: tuple[float, ...] = (0.2, 0.4),
    *,
    seed: int = 0,
    tokens: float = 100.0,
    **recipe: object,
) -> Path:
    """What a run of four updates leaves behind, validated after every second one."""
    path.mkdir(parents=True)
    (path / "recipe.yaml").write_text(yaml.safe_dump(RECIPE | {"seed": seed} | recipe))
    rows = [
        {"update": update, "phase": "rl", "steps": 10.0, "tokens": tokens, "seconds": 1.0}
        | (
            {"dev_success": dev[update // 2 - 1], "dev_success_interval": [0.1, 0.6]}
            if update % 2 == 0
            else {}
        )
        for update in range(1, 2 * len(dev) + 1)
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    verdicts = [("before", weak()), *([("after RL", after)] if after else [])]
    (path / "evaluations.jsonl").write_text(
        "".join(
            json.dumps({"update": 0, "name": name, "mode": mode, **found.to_json(results=True)}) + "\n"
            for name, found in verdicts
            for mode in ("sampled", "greedy")
        )
    )
    best = path / "checkpoints" / f"step-{2 * len(dev):06d}"
    best.mkdir(parents=True)
    (path / "best").symlink_to(best)
    return path


def evaluation_folder(path: Path, found: Evaluation, **asked: object) -> Path:
    """What ``eval --out`` leaves behind of a model's evaluation."""
    asked = {"suite": found.suite, "policy": "vllm:m", "temperature": 1.0, **asked}
    with open_folder(path, asked, resume=False) as folder:
        folder.write(found, interrupted=False)
    return path


@pytest.mark.slow
def test_evaluations_are_paired_by_task(turnwise, tmp_path):
    for name, skill in (("weak", 0.2), ("strong", 0.99)):
        policy = f"mix:gold={skill},null={1 - skill}"
        assert turnwise("eval", SUITE, "--policy", policy, "--episodes", "40", "--out", name).code == 0
    (one,) = turnwise("compare", "weak", "strong", "--json").json["measures"]
    (contrast,) = one["contrasts"]
    difference = contrast["difference"]
    results = [
        json.loads((tmp_path / n / "evaluation.json").read_text())["results"] for n in ("weak", "strong")
    ]
    won = [task for task in results[0] if results[0][task] < results[1][task]]
    assert contrast["won"] == won
    assert len(contrast["won"]) + len(contrast["lost"]) + len(contrast["tied"]) == 40 == difference["n"]
    gain = (len(contrast["won"]) - len(contrast["lost"])) / 40
    assert difference["difference"] == pytest.approx(gain)
    assert (difference["method"], difference["unit"]) == ("McNemar", "tasks")
    assert difference["interval"][0] < gain < difference["interval"][1]


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_terminal_says_it_aloud(turnwise, tmp_path, columns):
    evaluation_folder(tmp_path / "a", weak())
    evaluation_folder(tmp_path / "b", fair())
    evaluation_folder(tmp_path / "c", weak())
    done = turnwise("compare", "a", "b", "c", env={"COLUMNS": columns})
    said = " ".join(done.out.split())
    assert "c against a: The difference is not significant: 0.0 points" in said
    assert "with Holm's adjustment over 2 comparisons" in said
    assert f"won {len([t for t in weak().results if weak().results[t] < fair().results[t]])} tasks" in said
    assert "goals[0][0]: clean" in said
    assert max(map(len, done.out.splitlines())) <= int(columns)


def test_the_baseline_is_the_first_or_the_one_that_is_named(tmp_path):
    a, b = evaluation_folder(tmp_path / "a", weak()), evaluation_folder(tmp_path / "b", strong())
    there, back = compare(a, b), compare(a, b, baseline=b)
    assert (there.base, back.base) == ("a", "b")
    one, other = (c.measures[0].contrasts[0] for c in (there, back))
    assert one.difference.difference == -other.difference.difference
    assert one.won == other.lost


def test_a_json_file_and_an_evaluation_in_memory_are_sources_too(tmp_path):
    (tmp_path / "figures.json").write_text(json.dumps(weak().to_json()))
    found = compare(tmp_path / "figures.json", strong())
    difference = found.measures[0].contrasts[0].difference
    assert difference.method == "Newcombe's interval, not paired"
    assert difference.significant == (not difference.interval.low <= 0 <= difference.interval.high)
    assert any("has no results per task" in note for note in found.notes)


UNLIKE = {
    "sampled with greedy": ({"temperature": 0.0}, fair, "sampled.*greedy"),
    "another split": ({}, lambda: played(0.9, split="dev"), "household/medium · dev"),
    "another suite": ({}, lambda: played(0.9, suite="household/easy"), "household/easy"),
    "another temperature": ({"temperature": 0.5}, fair, "temperature of b is 0.5"),
    "another limit": ({"episode_s": 3.0, "max_tokens": 8}, fair, "tokens of a message of b is 8"),
    "other options": ({"env_options": {"shaping": 1}}, fair, "env_options"),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", UNLIKE)
def test_unlike_is_refused_unless_it_is_said_aloud(tmp_path, how):
    asked, found, words = UNLIKE[how]
    a = evaluation_folder(tmp_path / "a", weak(), max_tokens=16, env_options={})
    b = evaluation_folder(tmp_path / "b", found(), **{"max_tokens": 16, "env_options": {}, **asked})
    with pytest.raises(UnlikeError, match=words) as refused:
        compare(a, b)
    assert "--allow-unlike" in refused.value.remedy
    allowed = compare(a, b, allow_unlike=True)
    assert allowed.measures[0].contrasts[0].other == "b"
    assert any(note.startswith("Unlike: ") for note in allowed.notes)


def test_a_script_is_like_any_mode(tmp_path):
    evaluation_folder(tmp_path / "greedy", fair(), temperature=0.0)
    evaluation_folder(tmp_path / "script", strong(), policy="scripted:gold", temperature=1.0)
    (one,) = compare(tmp_path / "script", tmp_path / "greedy").measures
    assert one.measure.mode == "greedy"


def test_runs_stand_with_before_and_after_and_at_equal_cost(tmp_path):
    a = run_folder(tmp_path / "a", fair(), (0.2, 0.4, 0.5))
    b = run_folder(tmp_path / "b", strong(), (0.3, 0.6), tokens=140.0)
    found = compare(a, b)
    assert [one.measure.mode for one in found.measures] == ["sampled", "greedy"]
    standing = found.measures[0].standings[1]
    assert standing.before is not None
    assert (standing.before.mean, standing.success.mean) == (weak().success, strong().success)
    start = found.measures[0].contrasts[0].start
    assert start is not None
    assert start.difference == 0
    costs = {cost.unit: cost for cost in found.costs}
    # b ends after 4 updates, 40 steps, 560 tokens; a had then been validated after 4 of its 6 updates (400 tokens).
    assert {unit: cost.budget for unit, cost in costs.items()} == {"updates": 4, "steps": 40, "tokens": 560}
    tokens = [s.success.mean for s in costs["tokens"].standings if s.success]
    assert tokens == [0.4, 0.6]


@pytest.mark.slow
def test_groups_are_compared_over_their_seeds(turnwise, tmp_path):
    for seed in range(3):
        run_folder(tmp_path / f"a-{seed}", (weak(), fair(), weak())[seed], seed=seed)
        run_folder(tmp_path / f"b-{seed}", (fair(), strong(), strong())[seed], seed=seed)
    (tmp_path / "a-0.log").write_text("not a run")
    found = turnwise("compare", "a-*", "b-*", "--json").json
    contrast = found["measures"][0]["contrasts"][0]
    by_hand = difference_over_seeds(
        {0: weak().success, 1: fair().success, 2: weak().success},
        {0: fair().success, 1: strong().success, 2: strong().success},
    )
    assert contrast["difference"] == by_hand.to_json()
    assert [row["seed"] for row in contrast["seeds"]] == [0, 1, 2]
    assert found["contenders"][0]["members"] == ["a-0", "a-1", "a-2"]
    said = " ".join(turnwise("compare", "a-*", "b-*").out.split())
    assert "paired t test over 3 seeds" in said


def test_other_seeds_are_compared_without_pairs(tmp_path):
    for seed in range(2):
        run_folder(tmp_path / f"a-{seed}", (weak(), fair())[seed], seed=seed)
        run_folder(tmp_path / f"b-{seed}", (fair(), strong())[seed], seed=seed + 5)
    found = compare(f"{tmp_path}/a-*", f"{tmp_path}/b-*")
    assert found.measures[0].contrasts[0].difference.method == "Welch's t test"


def test_one_run_against_a_group_says_that_it_is_over_tasks(tmp_path):
    run_folder(tmp_path / "a", weak())
    for seed in range(2):
        run_folder(tmp_path / f"b-{seed}", strong(), seed=seed)
    found = compare(tmp_path / "a", f"{tmp_path}/b-*")
    assert found.measures[0].contrasts[0].difference.unit == "tasks"
    assert any("over tasks, not over seeds" in note for note in found.notes)


def test_checkpoints_are_named_by_update_best_or_path(tmp_path):
    run = run_folder(tmp_path / "a", strong())
    found = compare(f"{run}@0", f"{run}@best")
    assert [s.success.mean for s in found.measures[0].standings] == [weak().success, strong().success]
    same = compare(f"{run}@0", run / "checkpoints" / "step-000004")
    assert same.measures[0].contrasts[0].difference == found.measures[0].contrasts[0].difference
    on_dev = compare(f"{run}@2", f"{run}@4")
    assert [one.measure.split for one in on_dev.measures] == ["dev"]
    assert any("was not played on test" in note and "turnwise eval" in note for note in on_dev.notes)
    with pytest.raises(TurnwiseError, match=r"not evaluated after update 3 \(validated after: 2, 4\)"):
        compare(f"{run}@3", f"{run}@4")


def test_a_run_that_is_not_finished_is_compared_by_its_curve(tmp_path):
    a, b = run_folder(tmp_path / "a", None), run_folder(tmp_path / "b", strong())
    found = compare(a, b)
    assert not found.measures
    assert [cost.unit for cost in found.costs] == ["updates", "steps", "tokens"]
    assert write_plot(found, tmp_path / "curves.svg").read_text().count("<svg") == 1
    assert any("is not finished: 4 of 4 updates, no verdict on test" in note for note in found.notes)


WRONG = {
    "one side": (["a"], "nothing to compare a with"),
    "a typing mistake": (["a", "bb"], "There is no bb"),
    "an empty folder": (["a", "empty"], "neither a run nor an evaluation"),
    "a pattern without matches": (["a", "z-*"], "Nothing matches 'z-\\*'"),
    "an evaluation that was killed": (["a", "killed"], "is not finished"),
    "other JSON": (["a", "other.json"], "is no evaluation"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_compared_is_one_clear_error(turnwise, tmp_path, what):
    sources, words = WRONG[what]
    evaluation_folder(tmp_path / "a", weak())
    (tmp_path / "b").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / "asked.json").write_text("{}")
    (tmp_path / "other.json").write_text('{"a": 1}')
    done = turnwise("compare", *sources)
    assert done.code == 1
    assert done.err.count("→") == 1
    assert re.search(words, done.err), done.err


@pytest.mark.slow
def test_page_and_pictures_hold_everything(turnwise, tmp_path):
    run_folder(tmp_path / "a", weak())
    run_folder(tmp_path / "b<i>", strong(), (0.3, 0.6))
    done = turnwise("compare", "a", "b<i>", "--out", "page.html", "--plot", "plot.png", "--json")
    assert done.json["written"] == ["plot.png", "page.html"]
    page = (tmp_path / "page.html").read_text()
    assert "b&lt;i&gt;" in page
    assert "<i>" not in page.replace("<i ", "")
    assert page.count("<svg") == 2
    assert all(task in page for task in weak().results)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert turnwise("compare", "a", "b<i>", "--plot", "plot.gif").err.startswith("--plot plot.gif is neither")


def test_knobs_are_what_differs_between_the_tasks_of_a_suite():
    levels, missing = levels_of(SUITE, "test", weak().results)
    assert not missing
    assert set(levels["goals[0][0]"]) == set(weak().results)
    assert not any("seed" in knob for knob in levels)
    assert levels_of("no/suite", "test", weak().results)[1].startswith("By knob: There is no suite")
    assert "1 of 41 tasks are not what" in levels_of(SUITE, "test", [*weak().results, "gone"])[1]


def test_p_values_without_pairs_agree_with_the_interval():
    a = Estimate(0.5, Interval(0.45, 0.55), 400, 400)
    for mean, low, high in ((0.6, 0.55, 0.65), (0.56, 0.5, 0.62), (0.5, 0.4, 0.6), (0.2, 0.1, 0.3)):
        found = unpaired_difference(a, Estimate(mean, Interval(low, high), 100, 100))
        assert found.significant == (not found.interval.low <= 0 <= found.interval.high)


def test_welch_agrees_with_scipy():
    a, b = {0: 0.3, 1: 0.35, 2: 0.5}, {5: 0.6, 6: 0.62}
    known = stats.ttest_ind([*b.values()], [*a.values()], equal_var=False)
    found = difference_over_seeds(a, b)
    assert found.p_value == pytest.approx(known.pvalue)
    assert found.interval == pytest.approx(known.confidence_interval(0.95))


def test_seeds_that_do_not_differ_say_nothing_of_their_spread():
    found = difference_over_seeds({0: 0.5, 1: 0.5}, {0: 0.6, 1: 0.6})
    assert found.p_value == 1.0
    assert found.interval == (-float("inf"), float("inf"))


COINS = '''
from typing import NamedTuple
from turnwise import AgentEnv, EndReason, Task, Transition


class State(NamedTuple):
    coins: int


class Coins(AgentEnv[State]):
    """Say how many coins there are."""

    system, turn_limit = "Say a number.", 1

    @classmethod
    def generate(cls, rng, split, coins=0):
        coins = coins or rng.randint(1, 2)
        return Task("me/Coins-v0", f"{coins} coins, {split} {rng.randrange(10**6)}", {"coins": coins})

    def initial(self, task):
        return State(task.options["coins"]), task.prompt

    def transition(self, state, action):
        solved = action.content == str(state.coins)
        return Transition(state, "So.", {"outcome": float(solved)}, EndReason.SOLVED if solved else EndReason.FAILED)

    def gold(self, state):
        return str(state.coins)
'''


def test_an_environment_in_a_file_is_sorted_by_its_knobs_where_the_file_is_named(turnwise, tmp_path):
    (tmp_path / "coins.py").write_text(COINS)
    for name in ("gold", "null"):
        told = turnwise("eval", "coins.py", "--policy", f"scripted:{name}", "--episodes", "40", "--out", name)
        assert told.code == 0, told.err
    without = turnwise("compare", "gold", "null", "--json").json
    assert without["notes"] == ["By knob: There is no suite 'me/Coins-v0'; name its file with --env"]
    (measure,) = turnwise("compare", "gold", "null", "--env", "coins.py", "--json").json["measures"]
    (contrast,) = measure["contrasts"]
    assert {knob["level"] for knob in contrast["knobs"] if knob["knob"] == "coins"} == {"1", "2"}
