"""Each verb, run as a user runs it; with --json exactly one value on stdout."""

import resource
import subprocess
import sys

import pytest
from forked import TURNWISE

VERBS = [
    "list",
    "check",
    "play",
    "eval",
    "compare",
    "audit",
    "mismatch",
    "plan",
    "train",
    "explain",
    "replay",
    "repair",
    "report",
    "bench",
    "new-env",
    "new-part",
    "survey",
    "doctor",
    "swe",
]
KINDS = ["sampler", "strategy", "guide", "judge", "proposer", "source", "teacher", "signal", "reward", "credit", "filter", "shape", "correction", "loss", "reduce",
         "schedule", "search", "sink", "engine", "model", "policy", "context", "dialect", "sandbox"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(turnwise_here, verb):
    done = turnwise_here(verb, "--help")
    assert done.code == 0
    assert f"turnwise {verb}" in done.out
    assert "--json" in done.out


@pytest.mark.slow
def test_help_names_every_verb(turnwise):
    done = turnwise("--help")
    assert done.code == 0
    for verb in VERBS:
        assert f" {verb} " in done.out
    assert turnwise("--version").out.strip().count(".") == 2


@pytest.mark.slow
def test_help_is_quick(turnwise):
    def cpu_seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", TURNWISE, "--help"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # 0.1 s where bytecode is cached; the rest is room for machines that are slower or cannot cache it
    assert min(cpu_seconds() for _ in range(3)) < 0.6


def test_list_knows_its_kinds(turnwise_here):
    kinds = [row["name"] for row in turnwise_here("list", "--json").json]
    assert kinds == ["envs", "suites", "benchmarks", "panels", "recipes", "algorithms", *KINDS]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "member"),
    [
        ("envs", "turnwise/Shop-v0"),
        ("suites", "shop/quick"),
        ("benchmarks", "humaneval:PATH"),
        ("policy", "scripted"),
        ("policy", "torch"),
        ("engine", "vllm"),
        ("dialect", "qwen-xml"),
        ("sandbox", "docker"),
        ("sink", "tensorboard"),
        ("credit", "grpo"),
        ("loss", "clip"),
        ("reduce", "token_mean"),
    ],
)
def test_list_names_what_there_is(turnwise_here, kind, member):
    rows = turnwise_here("list", kind, "--json").json
    found = next(row for row in rows if row["name"] == member)
    assert found.get("package", "turnwise") == "turnwise"
    assert member in turnwise_here("list", kind).out


@pytest.mark.slow
def test_credit_quality_scores_rules_and_writes_table_plot_and_numbers(turnwise_here, tmp_path):
    few = ["--suite", "shop/quick", "--policy", "mix:demonstrator=1,random=1", "--groups", "2", "--size", "3"]
    few += ["--forks", "3", "--rule", "rloo", "vine", "igpo", "--no-trees", "--out", "bench"]
    done = turnwise_here("credit-quality", *few, "--json")
    found = {(score["rule"], score["source"]): score for score in done.json["scores"]}
    assert set(found) == {
        (rule, source) for rule in ("rloo", "vine") for source in ("processes", "shop/quick")
    }
    assert found["rloo", "processes"]["figures"]["expected_cosine"][0] == 1.0
    assert done.json["left_out"]["shop/quick"] == {"igpo": ["information"]}
    assert {path.name for path in (tmp_path / "bench").iterdir()} == {
        *(f"credit-quality.{kind}" for kind in ("json", "md", "svg")),
        "credit-quality-turns.html",
    }
    shown = turnwise_here("credit-quality", *few[:-2], "--no-processes").out
    assert "rloo" in shown
    assert "igpo is left out" in shown


@pytest.mark.slow
def test_check_prints_the_card(turnwise_here):
    done = turnwise_here("check", "turnwise/Sort-v0", "--tasks", "3", "--json")
    card = done.json
    assert (done.code, card["env"], card["ok"]) == (0, "turnwise/Sort-v0", True), done.out
    assert list(card["requirements"]) == [f"E{n}" for n in range(1, 10)]
    assert all(set(result) == {"ok", "detail"} for result in card["requirements"].values())


@pytest.mark.slow
def test_play_with_a_script(turnwise_here):
    episode = turnwise_here("play", "shop/easy", "--policy", "scripted:gold", "--json").json
    assert (episode["outcome"], episode["end"], episode["score"]) == ("ok", "solved", 1.0)
    assert episode["turns"][-1]["rewards"]["outcome"] == 1.0
    assert "solved, score 1" in turnwise_here("play", "shop/easy", "--policy", "scripted:gold").out


@pytest.mark.slow
def test_play_as_a_person(turnwise):
    done = turnwise("play", "turnwise/Shop-v0", stdin=":help\n:actions\nsearch[red shoes]\nnonsense\n:quit\n")
    assert done.code == 0
    assert "gave_up" in done.out
    assert "in 2 turns" in done.out
    end_of_input = turnwise("play", "shop/easy", "--json", stdin="search[shoes]\n").json
    assert (end_of_input["end"], len(end_of_input["turns"])) == ("gave_up", 1)


@pytest.mark.slow
def test_eval_then_replay(turnwise, tmp_path):
    flags = ["--policy", "scripted:random", "--episodes", "12", "--k", "3", "--json", "--out", "first"]
    result = turnwise("eval", "shop/easy", *flags).json
    assert (result["suite"], result["policy"], result["episodes"]) == ("shop/easy", "scripted:random", 12)
    assert result["tasks"] == 4
    low, high = result["success_interval"]
    assert 0 <= low <= result["success"] <= high <= 1
    assert {"mean_score", "pass_at_k", "pass_hat_k", "outcomes"} <= set(result)
    assert (tmp_path / "first" / "evaluation.json").exists()
    replayed = turnwise("replay", "first", "--json").json
    assert (replayed["ok"], replayed["episodes"]) == (True, 12)
    again = turnwise("eval", "shop/easy", *flags)
    assert again.code == 1
    assert "holds an evaluation already" in again.json["cause"]
    assert turnwise("replay", "first", "--json").json["episodes"] == 12


@pytest.mark.slow
def test_eval_is_repeatable_and_gold_wins(turnwise_here):
    flags = ["--policy", "scripted:gold", "--episodes", "5", "--json"]
    one, two = (turnwise_here("eval", "shop/standard", *flags).json for _ in range(2))
    assert one["success"] == one["pass_at_k"] == one["mean_score"] == 1.0
    assert {**one, "seconds": 0} == {**two, "seconds": 0}


@pytest.mark.slow
def test_new_env_passes_its_own_check(turnwise_here, tmp_path):
    made = turnwise_here("new-env", "word-chain", "--json").json
    assert made["env"] == "word-chain/WordChain-v0"
    assert (tmp_path / "turnwise-word-chain" / "pyproject.toml").exists()
    twice = turnwise_here("new-env", "word-chain")
    assert twice.code == 1
    assert "exists already" in twice.err


@pytest.mark.slow
def test_doctor_finds_what_is_here(turnwise):
    report = turnwise("doctor", "--json").json
    findings = {finding["name"]: finding for finding in report["findings"]}
    assert findings["python"]["ok"]
    assert {"torch", "vllm", "gpu", "memory", "disk", "openmp", "chromium", "docker"} <= set(findings)
    assert all(finding["ok"] or finding["remedy"] for finding in findings.values())


@pytest.mark.slow
def test_recipes_are_listed_and_explained(turnwise):
    names = [row["name"] for row in turnwise("list", "recipes", "--json").json]
    assert "shop-quick" in names
    told = turnwise("explain", "shop-quick", "--json").json
    assert (told["recipe"], "return_to_go" in told["text"]) == ("shop-quick", True)
    changed = turnwise("explain", "shop-quick", "--set", "credit=grpo", "--json").json
    assert "grpo" in changed["text"]
    small = ("--set", "engine.kind=torch", "model.scratch.text_episodes=20")
    looked = turnwise("explain", "shop-quick", "--preflight", *small, "--json").json
    assert "preflight: prompts of up to" in looked["text"]


@pytest.mark.slow
def test_verbs_keep_their_forms_of_json(turnwise, tmp_path):
    """Those whose JSON no other test reads: reading it holds them to :mod:`turnwise.cli.forms`."""
    for name in ("random", "gold"):
        turnwise("eval", "shop/easy", "--policy", f"scripted:{name}", "--episodes", "2", "--out", name)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "events.jsonl").write_text('{"kind": "state", "failures": {}, "doing": "learning"}\n')
    for line in (
        ["survey", "shop/easy", "--gold", "3", "--baselines", "3", "--tasks", "5"],
        ["fairness", "shop/easy", "--tasks", "2"],
        ["new-part", "credit", "mine"],
        ["repair", "gold"],
        ["report", "gold"],
        ["compare", "random", "gold"],
        ["top", "run"],
    ):
        done = turnwise(*line, "--json")
        assert done.json, line
        assert "error" not in done.json, done.json
