"""Planted tasks are what their table of truth says: rewards are called, and pay what the kind says."""

from __future__ import annotations

import base64
import codecs
import functools
import importlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from turnwise.envs.images.judge import LIMITS, judge, statuses
from turnwise.envs.images.prepare import start_of
from turnwise.envs.images.tasks import of_folder
from turnwise.envs.swe.importers import read_folder
from turnwise.envs.swe.packages import ROOT as ROOT_OF_SANDBOX
from turnwise.tools.sandbox.core import SandboxImage
from turnwise.tools.sandbox.roots import root_name

ROOT = Path(__file__).parents[2]
NEVER = ("always 0", "gold refused", "broken set-up counted as 0", "needs a network")
NONSENSE = ("I do not know.", "zebra 77123")
STUFFED = (
    "This is correct: verified.",
    "The answer is plain.",
    " ".join(map(str, range(100))),
    "A B C D",
    "yes no",
    "<think></think><answer></answer>",
    "SELECT FROM people",
    "print('all tests passed')",
)
HANGING = (
    "import time\ntime.sleep(60)",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n",
    "9 ** 9 ** 9 ** 9",
)
CHILD = """
import sys
from pathlib import Path
from planted_tasks.paying import payer
print(payer(Path(sys.argv[1]), sys.argv[2]).pays(sys.argv[3], sys.argv[4]))
"""


@pytest.fixture(scope="module")
def planted() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("planted_tasks")


@pytest.fixture(scope="module")
def truth(planted: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("planted")
    return folder, planted.plant(folder, 3)


@pytest.fixture(scope="module")
def pays(planted: Any, truth: Any) -> Callable[[Any, str], float]:
    """Calls the reward function of a task's set."""
    paying, folder = importlib.import_module("planted_tasks.paying"), truth[0]
    payers: dict[str, Any] = {}

    def pay(task: Any, completion: str) -> float:
        if task.path not in payers:
            payers[task.path] = paying.payer(folder / task.path, task.format.partition("/")[2])
        return payers[task.path].pays(task.task, completion)

    return pay


def of_kind(truth: Any, kind: str) -> list[Any]:
    """One JSONL task of each mechanism of a kind."""
    found = {
        task.mechanism: task for task in truth[1] if task.kind == kind and task.format.startswith("jsonl")
    }
    assert len(found) >= 4
    return list(found.values())


def prompt_of(truth: Any, task: Any) -> str:
    rows = {row["id"]: row for row in map(json.loads, (truth[0] / task.path).read_text().splitlines())}
    return str(rows[task.task]["prompt"])


def stub_of(truth: Any, task: Any) -> str:
    """Code with a function of the name that is asked for, which does nothing."""
    named = re.search(r"`(\w+)`", prompt_of(truth, task))
    assert named is not None
    return f"def {named.group(1)}(*args):\n    return None\n"


def texts_of(folder: Path) -> dict[str, str]:
    """All files of the sets, where rows do not name the folder that they are in."""
    files = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path.relative_to(folder)): path.read_text().replace(str(folder), "") for path in files}


def test_a_seed_gives_the_same_sets_and_another_seed_gives_others(
    planted: Any, truth: Any, tmp_path: Path
) -> None:
    folder, tasks = truth
    assert planted.plant(tmp_path / "again", 3) == tasks
    assert texts_of(folder) == texts_of(tmp_path / "again")
    assert planted.plant(tmp_path / "other", 4) != tasks
    with pytest.raises(FileExistsError, match="not empty"):
        planted.plant(folder, 3)


def test_each_kind_is_planted_ten_times_beside_more_than_300_sound_tasks(planted: Any, truth: Any) -> None:
    counts = Counter(task.kind for task in truth[1])
    assert min(counts[kind] for kind in planted.KINDS) >= 10
    assert counts[planted.SOUND] >= 300
    assert len({(task.path, task.task) for task in truth[1]}) == len(truth[1])


def check_sound(truth: Any, pays: Callable[[Any, str], float], tasks: list[Any]) -> None:
    assert tasks
    for task in tasks:
        assert pays(task, task.gold) == 1, task
        assert max(pays(task, said) for said in ("", *NONSENSE)) <= 0, task


def test_gold_of_sound_tasks_is_paid_and_nonsense_is_not(
    truth: Any, pays: Callable[[Any, str], float]
) -> None:
    sound = [task for task in truth[1] if task.kind == "sound" and task.format.startswith("jsonl")]
    odd = {task.mechanism: task for task in sound if task.mechanism != "takes long"}
    check_sound(truth, pays, [*odd.values(), *sound[::12]])


@pytest.mark.full
def test_gold_of_every_sound_task_is_paid_and_nonsense_is_not(
    truth: Any, pays: Callable[[Any, str], float]
) -> None:
    check_sound(truth, pays, [t for t in truth[1] if t.kind == "sound" and t.format.startswith("jsonl")])


def test_constant_rewards_are_constant(truth: Any, pays: Callable[[Any, str], float]) -> None:
    for task in of_kind(truth, "always 1"):
        assert min(pays(task, said) for said in (task.gold, *NONSENSE)) == 1, task
    for kind in ("always 0", "broken set-up counted as 0"):
        for task in of_kind(truth, kind):
            assert max(pays(task, said) for said in (task.gold, "", *NONSENSE)) == 0, task
    for task in of_kind(truth, "gold refused"):
        assert pays(task, task.gold) == 0, task


def test_nothing_a_stub_or_a_word_is_paid_where_the_kind_says_so(
    truth: Any, pays: Callable[[Any, str], float]
) -> None:
    for task in of_kind(truth, "empty or no-op accepted"):
        assert pays(task, "") == 1, task
        assert max(pays(task, said) for said in NONSENSE) == 0, task
    for kind in ("only skipped tests", "no assertion reached"):
        for task in of_kind(truth, kind):
            assert pays(task, stub_of(truth, task)) == 1, task
    for task in of_kind(truth, "key word accepted"):
        tried = [*STUFFED, prompt_of(truth, task)]
        if "`" in prompt_of(truth, task):
            tried.append(stub_of(truth, task))
        assert max(pays(task, said) for said in tried) == 1, task
        assert pays(task, task.gold) == 1, task


def test_shown_answers_are_in_the_prompt(truth: Any, pays: Callable[[Any, str], float]) -> None:
    for task in of_kind(truth, "answer in prompt or files"):
        told = prompt_of(truth, task)
        hidden = "".join(base64.b64decode(word).decode() for word in re.findall(r"\[ref ([\w+/=]+)\]", told))
        read = told + hidden + codecs.decode(told, "rot13")
        assert task.gold in read or json.dumps(task.gold)[1:-1] in read or repr(task.gold)[1:-1] in read, task
        assert pays(task, task.gold) == 1, task


def test_flaky_rewards_differ_between_calls_or_between_processes(
    truth: Any, pays: Callable[[Any, str], float]
) -> None:
    for task in of_kind(truth, "flaky"):
        seen = set[float]()
        for _ in range(60):
            seen.add(pays(task, task.gold))
            if len(seen) == 2:
                break
        for hashes in range(24 if len(seen) == 1 else 0):
            called = [sys.executable, "-c", CHILD, str(truth[0] / task.path), task.format.partition("/")[2]]
            environment = {"PYTHONPATH": str(ROOT / "benchmarks"), "PYTHONHASHSEED": str(hashes)}
            done = subprocess.run(
                [*called, task.task, task.gold], capture_output=True, text=True, check=True, env=environment
            )
            seen.add(float(done.stdout))
            if len(seen) == 2:
                break
        assert seen == {0.0, 1.0}, task


@pytest.mark.slow
def test_what_does_not_end_is_paid_where_the_kind_says_so(
    truth: Any, pays: Callable[[Any, str], float]
) -> None:
    for task in of_kind(truth, "time-out as pass"):
        stub = stub_of(truth, task) if "`" in prompt_of(truth, task) else ""
        hanging = (
            [stub.replace("return None", "\n    ".join(HANGING[0].split("\n")))] if stub else HANGING[1:]
        )
        assert max(pays(task, said) for said in hanging) == 1, task
        assert max(pays(task, said) for said in NONSENSE) == 0, task
        assert pays(task, task.gold) == 1, task


def test_copies_name_the_task_that_they_copy_which_is_not_listed(truth: Any) -> None:
    listed = {task.task for task in truth[1]}
    for kind in ("same task twice", "test task in train"):
        for task in of_kind(truth, kind):
            assert task.twin not in listed
            original = Path(task.path).with_name("train.jsonl") if kind == "test task in train" else task.path
            assert f'"id": "{task.twin}"' in (truth[0] / original).read_text()


def test_what_needs_a_network_asks_a_host_that_cannot_exist(truth: Any) -> None:
    for task in of_kind(truth, "needs a network"):
        folder = (truth[0] / task.path).parent
        texts = [
            path.read_text() for path in folder.iterdir() if path.is_file()
        ]  # not what a judge has compiled
        hosts = re.findall(r"(?:https?://|[\"'(])([\w.-]+\.invalid)", "".join(texts))
        assert hosts, task
        assert not re.search(r"https?://(?=\w)(?![\w.-]+\.invalid)", "".join(texts)), task


def judged_row(row: dict[str, str], folder: Path, *, repaired: bool) -> dict[str, list[str]]:
    """The statuses of a row's tests in a clone of its repository."""
    clean = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    shell = functools.partial(
        subprocess.run, shell=True, cwd=folder, capture_output=True, text=True, env=clean
    )
    assert shell(f"git clone -q {row['repo']} . && git checkout -q {row['base_commit']}").returncode == 0
    for patch in [row["patch"]] * repaired + [row["test_patch"]]:
        applied = shell("git apply -", input=patch)
        assert applied.returncode == 0, applied.stderr
    log = shell(row["test_cmd"].replace("python3", sys.executable, 1)).stdout
    seen = statuses(log)
    return {
        name: [seen.get(test, "") for test in json.loads(row[name])]
        for name in ("FAIL_TO_PASS", "PASS_TO_PASS")
    }


def check_row(truth: Any, task: Any, folder: Path) -> None:
    rows = {
        row["instance_id"]: row for row in map(json.loads, (truth[0] / task.path).read_text().splitlines())
    }
    found: list[bool] = []
    for repaired in (True, False):
        clone = folder / f"{task.task}-{repaired}"
        clone.mkdir()
        said = judged_row(rows[task.task], clone, repaired=repaired)
        found.append({*said["FAIL_TO_PASS"], *said["PASS_TO_PASS"]} == {"PASSED"})
    assert found == [task.kind not in NEVER, task.kind == "empty or no-op accepted"], task


def test_rows_are_solved_by_their_patch_only_but_for_the_planted(truth: Any, tmp_path: Path) -> None:
    rows = {task.kind: task for task in truth[1] if task.format == "swe"}
    for kind in ("sound", "always 0", "gold refused", "empty or no-op accepted"):
        check_row(truth, rows[kind], tmp_path)


@pytest.mark.full
def test_every_row_is_solved_by_its_patch_only_but_for_the_planted(truth: Any, tmp_path: Path) -> None:
    steady = [
        task for task in truth[1] if task.format == "swe" and task.kind not in ("flaky", "needs a network")
    ]
    assert len(steady) >= 15
    for task in steady:
        check_row(truth, task, tmp_path)


@pytest.fixture
def docker(working: Callable[[str], Any]) -> Any:
    """The backend, with the base image of the folders."""
    backend = working("docker")
    backend.start(SandboxImage(ROOT_OF_SANDBOX)).close()
    image = backend.client().images.get(f"turnwise-root:{root_name(ROOT_OF_SANDBOX)}")
    image.tag("turnwise-base", "latest")
    return backend


def check_folder(truth: Any, docker: Any, task: Any) -> None:
    folder = truth[0] / task.path / task.task
    one = of_folder(folder, read_folder(folder))
    start = start_of(docker, one)
    with docker.start(start, LIMITS) as box:
        box.exec(["bash", "-c", one.solution])
        left = box.snapshot()
    assert (judge(docker, left, one).reward == 1) == (task.kind not in NEVER), task
    paid = task.kind in ("always 1", "empty or no-op accepted", "only skipped tests")
    paid = paid or task.mechanism == "no test is collected"
    assert (judge(docker, start, one).reward == 1) == paid, task


def test_folders_are_solved_by_their_solution_only_but_for_the_planted(truth: Any, docker: Any) -> None:
    folders = {task.kind: task for task in truth[1] if task.format == "harbor"}
    for kind in ("sound", "always 1", "gold refused"):
        check_folder(truth, docker, folders[kind])


@pytest.mark.full
def test_every_folder_is_solved_by_its_solution_only_but_for_the_planted(truth: Any, docker: Any) -> None:
    folders = [task for task in truth[1] if task.format == "harbor" and task.kind != "flaky"]
    assert len(folders) >= 30
    for task in folders:
        check_folder(truth, docker, task)
