"""Fairness: the measurement sees what is unfair, and what is committed is what is true of the suites."""
# pyright: reportArgumentType=false, reportOptionalMemberAccess=false
# pyright: reportOptionalSubscript=false

import importlib.util
import json
from pathlib import Path

import pytest

from turnwise.envs import baselines
from turnwise.envs.check.fairness import Fairness, fairness
from turnwise.envs.check.rewording import load_rewordings
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.live import LiveEnv
from turnwise.envs.registry import env_class, get_suite, register, register_suite, rivals_of, suites
from turnwise.envs.rivals import Rivals, of_script, one_word
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Suite, Task

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "benchmarks" / "fairness.json"
QUICK = sorted(
    {
        suite.env: suite.name
        for suite in suites()
        if suite.env.startswith("turnwise/") and not issubclass(env_class(suite.env), LiveEnv)
    }.values()
)


class Gullible(AgentEnv[int]):
    """Solved by saying yes, by a word of the task, or by please in a sentence."""

    @classmethod
    def generate(cls, rng, split, **knobs):
        return Task("gullible/Gullible-v0", "Open sesame.", {"n": rng.randrange(10**6), "split": split})

    def initial(self, task):
        return 0, "Go."

    def transition(self, state, action):
        solved = action.content.lower() in ("yes", "open sesame.", "please open 7.")
        end = EndReason.SOLVED if solved else EndReason.FAILED
        return Transition(state, "Done.", {"outcome": float(solved)}, end)

    def gold(self, state):
        return "Please open 7."

    def demonstrate(self, state, rng):
        return "no"


WEAK = Rivals(
    of_script(lambda now: now.env.task.prompt),
    one_word("yes"),
    {"strong": one_word("yes"), "weak": of_script(baselines.demonstrator)},
)
register("gullible/Gullible-v0", f"{__name__}:Gullible", "Says yes.", rivals=f"{__name__}:WEAK")


@pytest.fixture
def rewordings(tmp_path):
    def write(*templates):
        file = tmp_path / "some.jsonl"
        file.write_text("\n".join(json.dumps({"gold": "Please open {n}.", "template": t}) for t in templates))
        return file

    return write


def test_what_is_unfair_is_named(rewordings):
    suite = Suite("gullible/standard", "gullible/Gullible-v0", "Unfair.")
    register_suite(suite)
    found = fairness(suite, tasks=20, reworded=rewordings("Would you open number {n}?"))
    said = " / ".join(found.shortcomings)
    for part in ("'yes' solves 1.00", "keyword agent solves 1.00", "scan without a model solves 1.00",
                 "weak (0.00) gets less than strong", "strong is as good as gold", "other words gets 0.00"):  # fmt: skip
        assert part in said, part
    assert "silence" not in said
    assert "'hm'" not in said
    assert found.reworded.reworded == found.reworded.said == 20
    assert Fairness.from_json(found.to_json()) == found


def test_a_scan_may_solve_what_is_not_called_hard(rewordings):
    found = fairness(Suite("gullible/easy", "gullible/Gullible-v0", "x"), tasks=20)
    assert not any("scan" in one for one in found.shortcomings)
    kept = found._replace(words={"hm": found.silence}, keyword=found.silence)
    assert kept._replace(ladder={"gold": found.ladder["gold"]}).shortcomings == []


def test_rewordings_keep_what_changes(rewordings):
    rewording = load_rewordings(rewordings("Open {n}, would you?"))
    assert rewording.messages[0].pattern.fullmatch("Please open 12.")["n"] == "12"
    with pytest.raises(TurnwiseError, match="template"):
        load_rewordings(rewordings().parent / "none.jsonl")


@pytest.mark.slow
def test_a_rewording_is_said_in_its_domain_alone(tmp_path):
    file = tmp_path / "some.jsonl"
    file.write_text(json.dumps({"gold": "Done.", "domain": "airline", "template": "The name is corrected."}))
    apps = fairness(get_suite("toolworld/apps"), tasks=3, reworded=file)
    assert apps.reworded is None
    assert "in other words" not in " / ".join(apps.shortcomings)


def test_an_environment_without_rivals_is_played_by_the_general_ones():
    assert list(rivals_of("turnwise/Household-v0").ladder) == ["random", "demonstrator"]
    assert rivals_of("gullible/Gullible-v0") is WEAK


@pytest.mark.parametrize("name", QUICK)
def test_every_family_can_be_measured(name):
    found = fairness(get_suite(name), tasks=2)
    assert found.ladder["gold"].success == 1.0
    assert list(found.ladder)[-1] == "gold"


def test_every_suite_that_can_be_measured_quickly_has_a_committed_row():
    rows = json.loads(COMMITTED.read_text("utf-8"))["suites"]
    own = [suite for suite in suites() if suite.env.startswith("turnwise/")]
    quick = {suite.name for suite in own if not issubclass(env_class(suite.env), LiveEnv)}
    missing = quick - {row["suite"] for row in rows}
    assert not missing, f"measure them: python benchmarks/fairness.py {' '.join(sorted(missing))}"
    for row in rows:
        assert row["tasks"] >= (
            60 if row["suite"] in quick else 6
        )  # a browser's or a sandbox's steps are slow
        assert Fairness.from_json(row).shortcomings == row["shortcomings"]


def test_the_page_is_that_of_the_committed_rows():
    spec = importlib.util.spec_from_file_location("fairness_benchmark", ROOT / "benchmarks" / "fairness.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    said = module.page(json.loads(COMMITTED.read_text("utf-8")))
    assert (ROOT / "docs" / "fairness.md").read_text("utf-8") == said, "run: python benchmarks/fairness.py"
