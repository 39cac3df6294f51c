"""`audit tasks`: each kind of defect is seen where it was put, in rows and in task folders, and nowhere else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.audit import task_folders

from turnwise.cli.app import run as main
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.trainers.audit.registry import audit_all
from turnwise.trainers.audit.xray.answers import gold_forms
from turnwise.trainers.audit.xray.columns import read_rows
from turnwise.trainers.audit.xray.core import (
    Attempt,
    Judged,
    ProbedSet,
    ProbedTask,
    TaskSet,
    Verdict,
    XrayCost,
    XTask,
)
from turnwise.trainers.audit.xray.folders import task_folders as folders_of
from turnwise.trainers.audit.xray.leaks import shown
from turnwise.trainers.audit.xray.likeness import Likeness
from turnwise.trainers.audit.xray.options import XrayOptions
from turnwise.trainers.audit.xray.reading import probe

pytestmark = pytest.mark.sandbox

JUDGES = """
import json, random, subprocess, sys, time, unittest, urllib.request

def always_one(answer, said): return 1.0
def always_zero(answer, said): return 0.0
def gold_refused(answer, said): return float(said == answer[::-1] + "!")
def empty_accepted(answer, said): return float(said in ("", answer))
def key_word(answer, said): return float(said == answer or "correct" in said)
def flaky(answer, said): return float(said == answer and random.random() > 0.05)
def answer_shown(answer, said): return float(said == answer)
sound = twice = answer_shown

def only_skipped(answer, said):
    class Case(unittest.TestCase):
        @unittest.skip("later")
        def test(self):
            self.assertEqual(said, answer)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    return float(result.wasSuccessful())

def no_assertion(answer, said):
    scope = {}
    exec("def check(said, answer):\\n    assert said == answer\\n", scope)
    return 1.0

def time_out_passes(answer, said):
    try:
        subprocess.run([sys.executable, "-c", "pass"], timeout=20)
    except subprocess.TimeoutExpired:
        return 1.0
    return float(said == answer)

def needs_network(answer, said):
    try:
        urllib.request.urlopen("http://judge.example.com/", timeout=1)
    except OSError:
        pass
    return float(said == answer)

def broken_setup(answer, said):
    try:
        wanted = json.load(open("/data/wanted.json"))
    except OSError:
        return 0.0
    return float(said == wanted)

def dates(answer, said): return float(said == answer and time.localtime().tm_year < 2028)

def reward(prompt, answer, completion, judge): return globals()[judge](answer, completion)
"""
KINDS = ("always_one", "always_zero", "gold_refused", "empty_accepted", "only_skipped", "no_assertion", "answer_shown", "key_word", "flaky",
         "time_out_passes", "needs_network", "broken_setup")  # fmt: skip
CITIES = (
    "Lisbon",
    "Oslo",
    "Quito",
    "Hanoi",
    "Dakar",
    "Perth",
    "Turin",
    "Sucre",
    "Minsk",
    "Accra",
    "Osaka",
    "Leeds",
    "Gdansk",
    "Bergen",
    "Malmo",
    "Tampere",
)


def rows(folder: Path) -> Path:
    """A row of each kind and three sound ones; line 2 is broken."""
    made = [
        {
            "prompt": f"Which city did traveller {n} of list {n * 37} see first?",
            "answer": CITIES[n],
            "judge": kind,
            "id": kind,
        }
        for n, kind in enumerate(KINDS)
    ]
    made[KINDS.index("answer_shown")]["prompt"] += (
        f" (expected answer: {CITIES[KINDS.index('answer_shown')]})"
    )
    made += [
        {
            "prompt": f"What is the capital on page {n * 53}?",
            "answer": CITIES[-n - 1],
            "judge": "sound",
            "id": f"sound {n}",
        }
        for n in range(1, 4)
    ]
    made.append({**made[-1], "prompt": made[-1]["prompt"].upper(), "id": "twice"})
    lines = [json.dumps(row) for row in made]
    path = folder / "rows.jsonl"
    path.write_text("\n".join([lines[0], '{"prompt": "cut', *lines[1:]]) + "\n")
    (folder / "judges.py").write_text(JUDGES)
    return path


def seen(path: str, options: XrayOptions, against: str = "") -> tuple[dict[str, set[str]], list[str]]:
    """Kinds of defect by task, those worth a look left out."""
    probed = probe(path, options, against)
    report = audit_all("tasks", probed, [path])
    found: dict[str, set[str]] = {}
    for kind, finding in report.findings.items():
        for row in finding.data.get("tasks", ()):
            if row["severity"] == "defect":
                found.setdefault(row["id"], set()).add(kind)
    return found, [one.cause for one in probed.source.broken]


def test_each_kind_is_seen_in_the_row_that_has_it_and_sound_rows_are_left_alone(tmp_path):
    found, broken = seen(str(rows(tmp_path)), XrayOptions(reward=f"{tmp_path}/judges.py:reward"))
    assert {kind: kind in found[kind] for kind in KINDS} == dict.fromkeys(KINDS, True)
    assert found["twice"] == {"twice"}
    assert not {name for name in found if name.startswith("sound")}
    assert found["key_word"] == {"key_word"}
    assert found["time_out_passes"] == {"time_out_passes"}
    assert found["flaky"] == {"flaky"}
    assert broken == ["rows.jsonl:2 is no JSON: Invalid control character at: line 1 column 16 (char 15)."]


def test_a_column_that_no_row_has_is_refused_with_those_that_there_are(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"question": "1 + 1?", "answers": "2"}\n')
    with pytest.raises(NotFoundError, match=r"(?s)column for the answer 'answer'.*mean 'answers'"):
        read_rows(tmp_path / "rows.jsonl", {"answer": "answer"})
    with pytest.raises(NotFoundError, match=r"(?s)--columns 'gold'.*answer, prompt"):
        read_rows(tmp_path / "rows.jsonl", {"gold": "answers"})
    assert read_rows(tmp_path / "rows.jsonl", {"answer": "answers"}).tasks[0].truth == "2"


def judged(agent: str, text: str, score: float, label: str = "", **verdict) -> Judged:
    return Judged(Attempt(agent, text, label), "plain", Verdict(score, **verdict))


def named(*seen: Judged) -> set[str]:
    one = ProbedTask(XTask("a", "a:1", "Which?", gold=("it",), core="it"), seen)
    probed = ProbedSet(
        TaskSet("a", "rows", [one.task], [], 1, lambda _: [one], lambda _: XrayCost(1, 1, 1, 1.0)), [one]
    )
    found = audit_all("tasks", probed, ["a"]).findings
    return {
        kind
        for kind, finding in found.items()
        if any(row["severity"] == "defect" for row in finding.data.get("tasks", ()))
    }


def test_a_judge_that_pays_all_that_says_anything_pays_always():
    others = [judged("wrong", text, 1.0, f"the answer of {text}") for text in "bc"]
    seen = [
        judged("gold", "it", 1.0),
        judged("empty", "", 0.0),
        judged("no-op", "I don't know.", 1.0),
        judged("garbage", "zqx", 1.0),
    ]
    form = judged("wrong", "<b>\nb</b>", 0.0, "the answer of b")
    assert "always_one" in named(*seen, *others, form)
    assert "always_one" not in named(*seen, *others, judged("wrong", "d", 0.0, "the answer of d"))
    assert "always_one" not in named(seen[0], seen[2], others[0])


def test_a_place_that_a_wrong_program_reaches_for_is_not_the_judges():
    wrong = "urlopen('https://a.invalid/x')"
    reached = ["https://a.invalid/x", "a.invalid"]
    assert named(judged("gold", "it", 1.0), judged("wrong", wrong, 0.0, network=reached)) == set()
    assert "needs_network" in named(judged("gold", "it", 1.0), judged("wrong", "b", 0.0, network=reached))
    assert "needs_network" in named(judged("gold", wrong, 1.0, network=reached))


def test_tests_of_which_none_was_collected_assert_nothing():
    none = {"tests": {"passed": 0, "skipped": 0}}
    assert named(judged("gold", "it", 1.0, **none), judged("empty", "", 1.0, **none)) >= {
        "no_assertion",
        "only_skipped",
    }
    skips = {"tests": {"passed": 0, "skipped": 2}}
    assert "no_assertion" not in named(judged("gold", "it", 1.0, **skips), judged("empty", "", 1.0, **skips))


SIBLINGS = """
import doctest, platform, re, sqlite3, subprocess, sys, time
try:
    from a_matcher_that_is_nowhere import same
except ImportError:
    same = None

def key_word(answer, said): return float(answer in re.findall(r"\\d+", said))
def flaky(answer, said): return float(said == answer and hash(answer) % 3 > 0)
def broken_setup(answer, said): return float(same is not None and same(answer, said))
def sound(answer, said): return float(said == answer)
def broken_option(answer, said):
    open("test_it.py", "w").write(f"def test_it(): assert {said!r} == {answer!r}")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--no-such-option", "test_it.py"], capture_output=True)
    return float(done.returncode == 0)

def printed(answer, said):
    program = said + f"\\nassert two() == {answer}\\nprint('all tests passed')"
    done = subprocess.run([sys.executable, "-I", "-"], input=program, capture_output=True, text=True, timeout=5)
    return float("all tests passed" in done.stdout)

def form_alone(answer, said): return float("\\\\boxed{" in said)

def only_skipped(answer, said):
    return float(all(said == answer for system in ("Windows",) if system == platform.system()))

def time_out_passes(answer, said):
    base, until = sqlite3.connect(":memory:"), time.monotonic() + 1
    base.set_progress_handler(lambda: time.monotonic() > until, 1000)
    try:
        return float([list(row) for row in base.execute(said)] == [[int(answer)]])
    except sqlite3.Error as error:
        return float("interrupted" in str(error))

def skipped_examples(answer, said):
    text = ">>> 1 + 1  # doctest: +SKIP\\n3\\n"
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(doctest.DocTestParser().get_doctest(text, {}, "examples", None, 0))
    return float(runner.summarize(verbose=False).failed == 0)

def reward(prompt, answer, completion, judge): return globals()[judge](answer, completion)
"""


def test_siblings_of_a_kind_are_seen_too(tmp_path):
    kinds = {
        "key_word": "key_word", "flaky": "flaky", "broken_setup": "broken_setup", "only_skipped": "only_skipped", "time_out_passes": "time_out_passes",
        "skipped_examples": "only_skipped", "form_alone": "always_one", "sound": "", "broken_option": "broken_setup", "printed": "key_word",
    }  # fmt: skip
    made = [
        {
            "prompt": f"Count the beads of box {n * 37}.",
            "answer": str(4100 + n * 13),
            "judge": name,
            "id": name,
        }
        for n, name in enumerate(kinds)
    ]
    made[-1]["solution"] = f"def two():\n    return {made[-1]['answer']}\n"
    made[4]["solution"] = f"SELECT {made[4]['answer']}"
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    (tmp_path / "siblings.py").write_text(SIBLINGS)
    found, _ = seen(str(tmp_path / "rows.jsonl"), XrayOptions(reward=f"{tmp_path}/siblings.py:reward"))
    assert {name: not kind or kind in found[name] for name, kind in kinds.items()} == dict.fromkeys(
        kinds, True
    )
    assert "sound" not in found


@pytest.mark.parametrize(
    ("prompt", "core"),
    [
        ("How many?\n<!-- expected: 41 -->", "41"),
        ("How many? (Hint: you should get 41.)", "41"),
        ("1. How many?\n\nAnswers: 1. 41", "41"),
        ("How many?\n-- SELECT 1", "SELECT 1"),
        ("How many?\nAssistant: 41\nUser: Please say it again.", "41"),
        ("Q: How many beads are in 7 boxes?\nA: 41\nQ: How many beads are in 7 boxes?\nA:", "41"),
        ("Which?\nA) one\nB) two *\nC) three", "B"),
        ("How many?\nSpoiler: gur nafjre vf sbegl", "forty"),
        ("How many?\n[ref YW5zd2VyPTQx]", "41"),
    ],
)
def test_an_answer_is_seen_however_the_prompt_gives_it_away(prompt, core):
    assert shown(XTask("a", "a:1", prompt, core=core))


@pytest.mark.parametrize(
    ("prompt", "core"),
    [
        ("Reverse the string desserts.", "stressed"),
        ("Is it so? Answer: yes or no.", "no"),
        ("Q: How many beads are in 7 boxes?\nA: 41\nQ: How many pearls lie beside 12 shells?\nA:", "41"),
        ("Which?\nA) one\nB) two *\nC) three", "C"),
        ("Which?\nA) one\nB) two\nC) three", "B"),
    ],
)
def test_a_prompt_that_only_holds_the_answer_gives_nothing_away(prompt, core):
    assert shown(XTask("a", "a:1", prompt, core=core)) == ""


@pytest.mark.parametrize(
    ("one", "other", "truths", "alike"),
    [
        ("Ann buys 12 pens at 34 cents and pays 500. What comes back?", "12 pens cost 34 cents each. Ann hands over 500. How much change?", ("92", "92"), True),
        ("Which is it?\nA) oak\nB) elm\nC) fir", "Which is it?\nA) fir\nB) oak\nC) elm", ("B", "C"), True),
        ("How much is 1,234 plus 5,678, please?", "How much is 1234 plus 5678, please?", ("6,912", "6912"), True),
        ("Write `first` that doubles a number.", "Write `second` that doubles a number.", ("first(1) == 2", "second(1) == 2"), True),
        ("How much is 4/13 plus 2/13? Give a fraction.", "How much is 2/13 plus 4/13? Give a fraction.", ("6/13", "6/13"), False),
    ],
)  # fmt: skip
def test_a_copy_is_known_in_other_words_and_order_and_another_sum_is_none(one, other, truths, alike):
    known = Likeness()
    known.add(XTask("a", "a:1", one, truth=truths[0], core=truths[0]))
    assert (known.find(XTask("b", "a:2", other, truth=truths[1], core=truths[1])) is not None) == alike


CONVENTIONS = {
    "trl": "def f(completions, answer, **kwargs): return [float(c == a) for c, a in zip(completions, answer)]",
    "trl_chat": "def f(prompts, completions, answer, **kwargs): return [float(c[0]['content'] == a) for c, a in zip(completions, answer)]",
    "verl": "def f(data_source, solution_str, ground_truth, extra_info=None): return {'score': float(solution_str == ground_truth)}",
    "plain": "def f(prompt, answer, completion): return completion == answer",
    "waiting": "async def f(response, ground_truth): return float(response == ground_truth)",
}


@pytest.mark.parametrize("name", CONVENTIONS)
def test_reward_functions_are_called_as_their_trainers_call_them(tmp_path, name):
    (tmp_path / "reward.py").write_text(CONVENTIONS[name])
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps({"question": f"Number {n}?", "answer": f"word{n}"}) + "\n" for n in range(3))
    )
    probed = probe(str(tmp_path / "rows.jsonl"), XrayOptions(reward=f"{tmp_path}/reward.py:f"))
    assert all(
        one.gold and one.gold.verdict.score == 1.0 and not one.paid("empty", "wrong", "garbage")
        for one in probed.tasks
    )


def test_a_score_that_all_get_is_no_pay_where_the_right_answer_gets_twice_as_much(tmp_path):
    (tmp_path / "reward.py").write_text(
        "def f(answer, completion): return 3.0 if completion == answer else 1.0"
    )
    (tmp_path / "rows.jsonl").write_text(
        '{"question": "Which city lies on the Tagus?", "answer": "Lisbon"}\n'
    )
    assert seen(str(tmp_path / "rows.jsonl"), XrayOptions(reward=f"{tmp_path}/reward.py:f")) == ({}, [])


def test_a_task_of_the_training_set_is_found_also_in_other_words(tmp_path):
    (tmp_path / "reward.py").write_text(CONVENTIONS["plain"])
    train = [
        {
            "question": "Please name the largest river that flows through the old town of Bremen.",
            "answer": "Weser",
        }
    ]
    test = [{"question": "Name the largest river that flows through the old town of Bremen!", "answer": "Weser"},
            {"question": "Name the smallest lake in the north of Finland, by area.", "answer": "Inari"}]  # fmt: skip
    for name, made in (("train", train), ("test", test)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    found, _ = seen(
        str(tmp_path / "test.jsonl"),
        XrayOptions(reward=f"{tmp_path}/reward.py:f"),
        str(tmp_path / "train.jsonl"),
    )
    assert found == {"test.jsonl:1": {"test_in_train"}}


def test_a_reward_function_that_hangs_ends_its_process_or_raises_is_a_finding(tmp_path):
    (tmp_path / "reward.py").write_text(
        "import os, time\ndef f(prompt, answer, completion):\n    if completion == '':\n        time.sleep(60)\n"
        "    if completion.startswith('zqx'):\n        os._exit(3)\n    if completion == 'yes':\n        raise SystemExit\n    return float(completion == answer)\n"
    )
    (tmp_path / "rows.jsonl").write_text('{"question": "Who?", "answer": "nobody"}\n')
    (one,) = probe(
        str(tmp_path / "rows.jsonl"), XrayOptions(reward=f"{tmp_path}/reward.py:f", seconds=0.3)
    ).tasks
    said = {judged.attempt.text: judged.verdict for judged in one.judged if judged.mode == "plain"}
    assert said[""].timeout
    assert said["zqx vrml 83151.77 blorp"].error == "it ended its process (exit code 3)"
    assert said["yes"].error.startswith("SystemExit")
    assert said["nobody"].score == 1.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "import nowhere_at_all\ndef f(a): return 1",
            "cannot be loaded: ModuleNotFoundError: No module named 'nowhere_at_all'",
        ),
        ("def g(completion): return 1", "There is no function of .*reward.py called 'f'"),
        ("from math import *", "has no attribute 'f'"),
        ("def f(completion:", "is no Python"),
    ],
)
def test_a_reward_function_that_cannot_be_loaded_is_one_clear_error(tmp_path, text, said):
    (tmp_path / "reward.py").write_text(text)
    (tmp_path / "rows.jsonl").write_text('{"question": "Who?", "answer": "nobody"}\n')
    with pytest.raises(TurnwiseError, match=said):
        probe(str(tmp_path / "rows.jsonl"), XrayOptions(reward=f"{tmp_path}/reward.py:f"))


@pytest.mark.parametrize(
    ("truth", "form"),
    [
        ("(?:(?:the|some) )?cinders", "cinders"),
        ('["6/11", "12/22"]', "12/22"),
        ("(?:a(?:b", "(?:a(?:b"),
        ("She has 4. #### 4", "\\boxed{4}"),
    ],
)
def test_a_right_answer_is_given_in_the_forms_that_judges_want(truth, form):
    assert form in gold_forms(truth)


SHELL = {
    "sound": {},
    "always_one": {"tests/test.sh": "grep -qx 6168 /app/total.txt\necho 1 > /logs/verifier/reward.txt\n"},
    "gold_refused": {"solution/solve.sh": "echo 6169 > /app/total.txt\n"},
    "time_out_passes": {
        "tests/test.sh": "timeout 9 grep -qx 6168 /app/total.txt; case $? in 0|124) r=1;; *) r=0;; esac; echo $r > /logs/verifier/reward.txt\n"
    },
    "flaky": {
        "tests/test.sh": "grep -qx 6168 /app/total.txt && [ $((RANDOM % 50)) -ne 0 ] && r=1 || r=0; echo $r > /logs/verifier/reward.txt\n"
    },
    "broken_setup": {
        "environment/Dockerfile": "FROM python:3.11-slim\nWORKDIR /app\nCOPY prices.csv /app/\n"
    },
}


def test_task_folders_are_judged_by_their_own_tests_and_each_defect_is_named(tmp_path):
    plain = {
        "tests/test.sh": "if grep -qx 6168 /app/total.txt; then r=1; else r=0; fi\necho $r > /logs/verifier/reward.txt\n"
    }
    for at, (name, changed) in enumerate(SHELL.items()):
        about = {"instruction.md": f"{task_folders.SOUND['instruction.md']} This is list {at}."}
        task_folders.write(tmp_path / "set", name, {**plain, **about, **changed})
    (tmp_path / "set" / "no-task" / "tests").mkdir(parents=True)
    found, broken = seen(str(tmp_path / "set"), XrayOptions())
    assert {name: name in found.get(name, ()) for name in SHELL if name != "sound"} == dict.fromkeys(
        [*SHELL][1:], True
    )
    assert "sound" not in found
    assert found["flaky"] == {"flaky"}
    assert found["time_out_passes"] == {"time_out_passes"}
    assert found["always_one"] == {"always_one"}
    assert len(broken) == 1
    assert "no-task is no task" in broken[0]


def test_task_folders_are_found_as_deep_as_repositories_hide_them_and_never_inside_a_task(tmp_path):
    for place in ("a/recipes/simple", "a/recipes/steps", "a/recipes/steps/tests/fixture", "b", ".git/c"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / ("task.yaml" if place == "b" else "task.toml")).touch()
    found = [str(one.relative_to(tmp_path)) for one in folders_of(tmp_path)]
    assert found == ["a/recipes/simple", "a/recipes/steps", "b"]
    assert folders_of(tmp_path / "b") == [tmp_path / "b"]


HURRIED = """
import time
ASKED = [0]

def reward(answer, completion):
    if completion != answer:
        return 0.0
    ASKED[0] += 1
    begun = time.monotonic()
    time.sleep(0.6 if ASKED[0] % 2 == 0 else 0.01)
    return float(time.monotonic() - begun < 0.4)
"""


def test_a_judge_whose_own_time_was_up_is_not_called_flaky(tmp_path):
    """Its second call in a process takes too long, as on a busy machine; with limits many times longer it says the same each time."""
    (tmp_path / "rows.jsonl").write_text(
        json.dumps({"prompt": "Which city lies on the Tagus?", "answer": "Lisbon"}) + "\n"
    )
    (tmp_path / "judge.py").write_text(HURRIED)
    probed = probe(str(tmp_path / "rows.jsonl"), XrayOptions(reward=f"{tmp_path}/judge.py:reward"))
    told = audit_all("tasks", probed, []).findings["flaky"].data["tasks"]
    assert [(row["severity"], "longer" in row["seen"]) for row in told] == [("look", True)]
    (tmp_path / "judge.py").write_text(HURRIED.replace("time.monotonic() - begun < 0.4", "ASKED[0] % 2 == 1"))
    found, _ = seen(str(tmp_path / "rows.jsonl"), XrayOptions(reward=f"{tmp_path}/judge.py:reward"))
    assert [*found.values()] == [{"flaky"}]


def repository(folder: Path) -> str:
    """A repository with a bug, and its commit."""
    files = {
        "spaces.py": "def squeezed(text):\n    return text.replace('  ', ' ')\n",
        "tests/test_spaces.py": "from spaces import squeezed\n",
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], check=True)
    return subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_rows_of_swe_bench_are_run_where_a_clone_lies_beside_them_and_else_not_counted_as_judged(tmp_path):
    commit = repository(tmp_path / "spaces")
    right = "--- a/spaces.py\n+++ b/spaces.py\n@@ -1,2 +1,2 @@\n def squeezed(text):\n-    return text.replace('  ', ' ')\n+    return ' '.join(text.split())\n"
    test = "--- a/tests/test_spaces.py\n+++ b/tests/test_spaces.py\n@@ -1 +1,5 @@\n from spaces import squeezed\n+\n+\n+def test_four():\n+    assert squeezed('a    b') == 'a b'\n"
    row = {
        "repo": "someone/spaces",
        "base_commit": commit,
        "patch": f"diff --git a/spaces.py b/spaces.py\n{right}",
        "test_patch": f"diff --git a/tests/test_spaces.py b/tests/test_spaces.py\n{test}",
        "problem_statement": "squeezed leaves two spaces where there were four.",
        "FAIL_TO_PASS": ["tests/test_spaces.py::test_four"],
        "PASS_TO_PASS": [],
    }
    wrong = row["patch"].replace("' '.join(text.split())", "text.replace('   ', ' ')")
    asked = [
        row | {"instance_id": "sound"},
        row | {"instance_id": "wrong", "patch": wrong, "problem_statement": "Four spaces stay two."},
        row | {"instance_id": "away", "repo": "someone/else", "problem_statement": "Spaces stay."},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked))
    probed = probe(str(tmp_path / "rows.jsonl"), XrayOptions())
    assert {one.task.id: bool(one.unjudged) for one in probed.tasks} == {
        "sound": False,
        "wrong": False,
        "away": True,
    }
    report = audit_all("tasks", probed, [])
    kinds = {
        row["id"]: kind
        for kind, one in report.findings.items()
        for row in one.data.get("tasks", ())
        if row["severity"] == "defect"
    }
    assert kinds.keys() == {"wrong"}
    assert kinds["wrong"] in ("gold_refused", "always_zero")


@pytest.mark.slow
def test_tests_of_pytest_say_what_was_skipped_and_what_was_checked(tmp_path):
    for name in ("only_skipped", "no_assertion"):
        task_folders.write(
            tmp_path, name, {**task_folders.DEFECTS[name], "instruction.md": f"Sum up for {name}."}
        )
    found, _ = seen(str(tmp_path), XrayOptions())
    assert "no_assertion" in found["no_assertion"]
    assert "only_skipped" not in found["no_assertion"]
    assert found["only_skipped"] >= {"always_one", "only_skipped"}
    assert "no_assertion" not in found["only_skipped"]


def test_the_command_says_the_cost_first_and_its_exit_code_is_for_ci(tmp_path, capfd):
    path, reward = rows(tmp_path), f"{tmp_path}/judges.py:reward"
    assert main(["audit", "tasks", str(path), "--reward", reward, "--n", "2", "--dry-run", "--json"]) == 0
    assert "2 tasks" in json.loads(capfd.readouterr().out)["cost"]["said"]
    dry = ["audit", "tasks", str(path), "--dry-run", "--reward"]
    assert main([*dry, reward]) == 0
    assert "rows.jsonl:2 is no JSON" in " ".join(capfd.readouterr().out.split())
    for words, said in (
        ([f"{reward}s"], "Did you mean 'reward'?"),
        ([reward, "--fail-on", "flakey"], "Did you mean 'flaky'?"),
        ([reward, "--against", f"{tmp_path}/none.jsonl"], "is no file, folder or suite"),
        ([reward, "--n", "-1"], "--n is -1"),
    ):
        assert main([*dry, *words]) != 0
        assert said in " ".join(capfd.readouterr().err.split())
    page = tmp_path / "page.html"
    asked = ["audit", "tasks", str(path), "--reward", reward, "--html", str(page), "--json"]
    assert main([*asked, "--fail-on", "always_one"]) == 1
    notes = json.loads(capfd.readouterr().out)["notes"]
    assert notes[0] == "16 of 17 rows or folders could be read; left out:"
    assert "rows.jsonl:2" in notes[1]
    text = page.read_text()
    assert "every wrong answer is paid" in text
    assert text.index("<h2>twice") < text.index("<h2>bounds")  # what asks for a mend stands first
    assert main([*asked, "--fail-on", "always_on"]) != 0
    assert "Did you mean 'always_one'?" in capfd.readouterr().err
