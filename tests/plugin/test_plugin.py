"""A third party's environment in a package of its own: found, checked, evaluated, without touching ours."""

import ast
import json

import pytest
from forked import PYTEST, TURNWISE

from turnwise.envs.registry import env_entries
from turnwise.errors import TurnwiseError
from turnwise.scaffold import names

pytestmark = pytest.mark.slow


ENV, SUITE = "word-chain/WordChain-v0", "word-chain/easy"


def turnwise(plugin, *arguments):
    done = plugin.run(TURNWISE, *arguments, "--json")
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
    done = plugin.run(PYTEST, "-q", "-p", "no:cacheprovider", str(plugin.source / "tests"))
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
    assert "The number lies between" in plugin.run(program).stdout


def test_the_environment_has_at_most_thirty_lines(plugin):
    source = (plugin.source / "turnwise_word_chain" / "__init__.py").read_text()
    (cls,) = [
        node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == "WordChain"
    ]
    lines = [line for line in source.splitlines()[cls.lineno - 1 : cls.end_lineno] if line.strip()]
    assert len(lines) <= 30


def install(folder, name, source, entry="register_all"):
    """A package in a folder of its own, as pip would lay it out; the line that finds it."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[turnwise.plugins]\n{name} = {name}:{entry}\n")
    return f"import sys; sys.path.insert(0, {str(folder)!r}); {TURNWISE}"


BROKEN = {
    "raises": (
        "def register_all():\n    raise RuntimeError('out of order')\n",
        "RuntimeError: out of order",
        2,
    ),
    "needs": ("import no_such_library\ndef register_all(): ...\n", "No module named 'no_such_library'", 1),
    "syntax": ("def register_all(:\n", "SyntaxError", 1),
    "leaves": ("import sys\nsys.exit(3)\n", "SystemExit: 3", 2),
    "double": (
        f"from turnwise import register\ndef register_all():\n    register({ENV!r}, 'other:Other', 'Other.')\n",
        f"The environment id {ENV!r} is taken by turnwise_word_chain:WordChain. → Choose another id.",
        3,
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plugin_is_left_out_by_name_and_takes_nothing_else_along(plugin, tmp_path, kind):
    source, cause, line = BROKEN[kind]
    program = install(tmp_path / "broken", "zz_bad", source)
    done = plugin.run(program, "list", "envs", "--json")
    assert done.returncode == 0, done.stderr
    assert {ENV, "turnwise/Shop-v0"} <= {row["name"] for row in json.loads(done.stdout)}
    assert done.stderr.count("The plugin 'zz_bad' (zz_bad:register_all) is left out: ") == 1
    assert cause in done.stderr
    assert f"broken/zz_bad.py:{line}" in done.stderr
    assert "Repair or uninstall that package." in done.stderr


def test_what_a_broken_plugin_would_have_had_names_it(plugin, tmp_path):
    program = install(tmp_path / "broken", "zz_bad", BROKEN["raises"][0])
    done = plugin.run(
        "import warnings; warnings.simplefilter('ignore')\n" + program,
        "eval",
        "bad/easy",
        "--policy",
        "scripted:gold",
    )
    assert done.returncode == 1
    assert "There is no suite 'bad/easy'." in done.stderr
    assert "it comes with a plugin that failed to load: 'zz_bad' (RuntimeError: out of order" in done.stderr
    done = plugin.run(program, "eval", SUITE, "--policy", "scripted:gold", "--episodes", "3")
    assert done.returncode == 0, done.stderr


def test_an_unknown_environment_says_how_one_is_found(plugin):
    done = plugin.run(TURNWISE, "check", "library/Desk-v0")
    assert "There is no environment 'library/Desk-v0'." in done.stderr
    assert "pip install -e ." in done.stderr
    assert "'turnwise.plugins'" in done.stderr


FALLS = """from turnwise import AgentEnv, Task, register

class Own(AgentEnv[int]):
    def __init__(self, **options):
        raise OSError("no such data")

    @classmethod
    def generate(cls, rng, split):
        return Task("own/Own-v0", "Go.")

    def initial(self, task):
        return 0, "Go."

    def transition(self, state, action):
        raise KeyError

def register_all():
    register("own/Own-v0", "zz_own:Own", "Falls.")
"""


def test_an_error_in_a_plugin_is_its_own_bug(plugin, tmp_path):
    """Nobody is asked to report to us what a plugin does."""
    program = install(tmp_path / "own", "zz_own", FALLS)
    done = plugin.run(program, "play", "own/Own-v0", "--policy", "scripted:null")
    assert done.returncode == 1
    assert "OSError at own/zz_own.py:5: no such data" in done.stderr
    assert "please report it" not in done.stderr


def test_what_is_not_installed_is_checked_played_and_evaluated_by_its_file(plugin, tmp_path):
    source = plugin.source / "turnwise_word_chain" / "__init__.py"
    alone = tmp_path / "code.py"  # a name that Python's own library has too
    alone.write_text(source.read_text().replace("word-chain/", "alone/"))
    for name in (str(alone), f"{alone}:WordChain"):
        card = turnwise(plugin, "check", name)
        assert (card["env"], card["ok"]) == ("alone/WordChain-v0", True), card
    assert turnwise(plugin, "play", str(alone), "--policy", "scripted:gold")["score"] == 1.0
    gold = turnwise(plugin, "eval", str(alone), "--policy", "scripted:gold", "--episodes", "8")
    assert (gold["success"], gold["suite"]) == (1.0, "alone/WordChain-v0")
    assert turnwise(plugin, "check", str(source))["env"] == ENV
    assert turnwise(plugin, "check", "turnwise_word_chain:WordChain")["env"] == ENV


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
