"""What is claimed of suites, on a sample: gold solves, baselines do not, splits share nothing (benchmarks/suites.json)."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from turnwise.envs.baselines import TRIVIAL_BASELINES
from turnwise.envs.check.horizon import horizon_suites
from turnwise.envs.check.survey import suites_of, survey
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.live import LiveEnv
from turnwise.envs.registry import env_class, get_suite, register, register_suite, suite_tasks, suites
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Split, Suite, Task

WORLDS = ["household", "grid", "craft", "lab"]
COMMITTED = Path(__file__).parents[2] / "benchmarks" / "suites.json"


@pytest.mark.slow
@pytest.mark.parametrize("suite", suites_of(WORLDS), ids=lambda suite: suite.name)
def test_gold_solves_and_splits_share_nothing(suite):
    tasks = 20 if suite.name in FEWER else 60
    found = survey(suite, gold=15, baselines=6, tasks=tasks)
    assert (found.played, found.gold, found.worst, found.compared, found.shared) == (15, 1.0, 1.0, tasks, 0)
    assert found.different > 0.8 * tasks


class Sizes(NamedTuple):
    """How many tasks of a suite were played, and how many drawn and compared."""

    played: int
    compared: int


FEWER = {
    "grid/sokoban-hard": Sizes(60, 240),  # a level takes a fifteenth of a second to draw
    **{suite.name: Sizes(60, 300) for suite in horizon_suites()},
    "household/day-15": Sizes(240, 1200),
    "household/day-30": Sizes(120, 600),  # days of orders, as those with horizon
    "household/day-100": Sizes(60, 300),
}


def test_the_committed_survey_is_about_the_suites_that_there_are():
    committed = json.loads(COMMITTED.read_text("utf-8"))
    assert committed["ok"]
    found = {row["suite"] for row in committed["suites"]}
    assert found <= {suite.name for suite in suites()}
    own = [suite for suite in suites() if suite.env.startswith("turnwise/")]
    quick = {suite.name for suite in own if not issubclass(env_class(suite.env), LiveEnv)}
    assert found >= quick, f"survey them: python benchmarks/suites.py {' '.join(quick - found)}"
    for row in committed["suites"]:
        least = FEWER.get(row["suite"], Sizes(1000, 10_000))
        assert row["played"] >= least.played
        assert row["compared"] >= least.compared
        assert (row["worst"], row["shared"]) == (1.0, 0)
        assert row["baseline_tasks"] >= least.played
        assert row["baselines"].keys() == TRIVIAL_BASELINES.keys()
        assert (
            max(got["success"] for got in row["baselines"].values()) == row["best_baseline"] <= row["bound"]
        )


class Leaky(AgentEnv[int]):
    """Its splits share tasks, and its gold fails on some."""

    @classmethod
    def generate(cls, rng, split, **knobs):
        return Task("turnwise-test/Sharing-of-tasks-v0", "Go.", {"n": rng.randrange(4)})

    def initial(self, task):
        return task.options["n"], "Go."

    def transition(self, state, action):
        solved = state > 0
        return Transition(
            state, "Done.", {"outcome": float(solved)}, EndReason.SOLVED if solved else EndReason.FAILED
        )

    def gold(self, state):
        return "go"


def test_a_survey_sees_what_is_wrong():
    register("turnwise-test/Sharing-of-tasks-v0", f"{__name__}:Leaky", "Leaks.")
    register_suite(Suite("leaky/some", "turnwise-test/Sharing-of-tasks-v0", "Four tasks in all."))
    found = survey(suites_of(["leaky"])[0], gold=30, baselines=9, tasks=30)
    assert (found.worst, found.different, found.shared) == (0.0, 4, 8)
    assert 0 < found.gold < 1
    assert found.best_baseline == found.baselines["null"].success > found.bound == 0.1
    assert [bad.ok for bad in (found, found._replace(worst=1.0, shared=0))] == [False, False]
    assert found._replace(worst=1.0, shared=0, best_baseline=0.1).ok


@pytest.mark.parametrize(("n", "ok"), [(5, True), (1000, False)])
def test_a_baseline_is_judged_by_its_interval(n, ok):
    """One of five may be luck where 10 % are allowed; 200 of 1000 are not."""
    found = survey(suites_of(["sort/4"])[0], gold=3, baselines=3, tasks=30)
    assert found._replace(best_baseline=0.2, baseline_tasks=n, bound=0.1).ok is ok


def test_what_is_refused():
    with pytest.raises(NotFoundError, match="Did you mean 'lab'"):
        suites_of(["labb"])
    with pytest.raises(NotFoundError, match="Did you mean 'lab/easy'"):
        suites_of(["lab/eazy"])
    with pytest.raises(TurnwiseError, match="every split"):
        survey(suites_of(["lab/easy"])[0], gold=2)
    assert [suite.name for suite in suites_of(["turnwise/Lab-v0"])] == [
        "lab/easy",
        "lab/horizon-100",
        "lab/horizon-200",
        "lab/horizon-30",
        "lab/long",
        "lab/standard",
    ]
    assert len(Split) == 3


@pytest.mark.slow
def test_a_suite_that_says_its_size_repeats_there():
    assert {suite.env for suite in suites() if suite.size} >= {"turnwise/Games-v0", "turnwise/Grid-v0"}
    suite = get_suite("games/connect4-small")
    assert suite.size
    assert len({task.id for task in suite_tasks(suite, Split.TRAIN, 2000)}) == suite.size
