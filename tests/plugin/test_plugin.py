"""A third party's environment in a package of its own: found, checked, evaluated, without touching ours."""

import ast
import json

import pytest

from turnwise.envs.registry import env_entries
from turnwise.errors import TurnwiseError
from turnwise.scaffold import names

ENV, SUITE = "word-chain/WordChain-v0", "word-chain/easy"
MAIN = "from turnwise.cli import main; main()"


def turnwise(plugin, *arguments):
    done = plugin.run("-c", MAIN, *arguments, "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


def test_it_is_found_where_it_is_installed_and_only_there(plugin):
    assert ENV in [row["name"] for row in turnwise(plugin, "list", "envs")]
    assert SUITE in [row["name"] for row in turnwise(plugin, "list", "suites")]
    assert ENV not in [entry.name for entry in env_entries()]


def test_it_passes_the_check_as_it_was_scaffolded(plugin):
    card = turnwise(plugin, "check", ENV)
    assert card["ok"], card


def test_its_own_test_passes(plugin):
    done = plugin.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(plugin.source / "tests"))
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_it_is_evaluated(plugin):
    gold = turnwise(plugin, "eval", SUITE, "--policy", "scripted:gold", "--episodes", "50")
    assert (gold["success"], gold["mean_score"], gold["outcomes"]["ok"]) == (1.0, 1.0, 50)
    null = turnwise(plugin, "eval", SUITE, "--policy", "scripted:null", "--episodes", "10")
    assert null["success"] == 0.0


def test_gymnasium_makes_it_after_turnwise_is_imported(plugin):
    program = (
        "import gymnasium, turnwise.envs.registry as r; r.env_entries()\n"
        f"env = gymnasium.make({ENV!r}); print(env.reset(seed=0)[0])"
    )
    assert "The number lies between" in plugin.run("-c", program).stdout


def test_the_environment_has_at_most_thirty_lines(plugin):
    source = (plugin.source / "turnwise_word_chain" / "__init__.py").read_text()
    (cls,) = [
        node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == "WordChain"
    ]
    lines = [line for line in source.splitlines()[cls.lineno - 1 : cls.end_lineno] if line.strip()]
    assert len(lines) <= 30


def test_a_plugin_that_fails_names_itself(plugin, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "turnwise_bad.py").write_text("def register_all():\n    raise RuntimeError('out of order')\n")
    info = broken / "turnwise_bad-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: turnwise-bad\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[turnwise.plugins]\nbad = turnwise_bad:register_all\n")
    program = f"import sys; sys.path.insert(0, {str(broken)!r}); {MAIN}"
    done = plugin.run("-c", program, "list", "envs")
    assert done.returncode == 1
    assert "The plugin 'bad'" in done.stderr
    assert "out of order" in done.stderr
    assert len(done.stderr.splitlines()) <= 5


@pytest.mark.parametrize("name", ["", "1st", "a/b", "../up", "class", "ü"])
def test_senseless_names_are_refused(name):
    with pytest.raises(TurnwiseError, match="no name for a package"):
        names(name)


RECIPE = """
suite: word-chain/easy
model:
  scratch: {layers: 2, width: 128, heads: 4, vocab_size: 320, context: 512, text_episodes: 20}
sampling: {max_tokens: 12, tools: none}
engine: {kind: torch}
warm_start: {demonstrator: gold, episodes: 320, batch_size: 16}
rollout: {groups: 2, group_size: 4}
filter: any
optimizer: {learning_rate: 1.0e-4}
updates: 2
evaluate: {every: 2, dev: 8, test: 8}
"""


def test_it_is_trained_on(plugin, tmp_path):
    recipe, run = tmp_path / "word-chain.yaml", tmp_path / "run"
    recipe.write_text(RECIPE)
    result = turnwise(plugin, "train", str(recipe), "--out", str(run))
    assert [row["name"] for row in result["evaluations"]] == ["warm start"] * 2 + ["after RL"] * 2
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    warm = [row["action_nll"] for row in metrics if row["phase"] == "warm_start"]
    assert warm[-1] < 0.7 * warm[0], "imitation of the gold agent taught nothing"
    assert sum(row["phase"] == "rl" for row in metrics) == 2
    assert "word-chain/easy" in (run / "report.html").read_text()
