"""Tasks that bring an image are played to the end: five folders in the published formats, rows on an image that is built here."""

import difflib
import io
import json
import tarfile
from pathlib import Path

import pytest

from turnwise.agents.log.episode_log import read_episodes
from turnwise.cli.app import run as run_verb
from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import walk
from turnwise.envs.images.judge import judge, statuses
from turnwise.envs.images.prepare import start_of
from turnwise.envs.images.tasks import image_task_of
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.envs.swe.packages import ROOT
from turnwise.errors import EnvError, InfraError, TurnwiseError
from turnwise.tasks.core import Split
from turnwise.tools.sandbox.core import SandboxImage
from turnwise.tools.sandbox.roots import root_name

FOLDERS = Path(__file__).parent / "folders"
BROKEN, RIGHT = "def double(x):\n    return x + x + x\n", "def double(x):\n    return x + x\n"
TESTS = "from mint import double\n\n\ndef test_none():\n    assert double(0) == 0\n"
NEW_TESTS = f"{TESTS}\n\ndef test_two():\n    assert double(2) == 4\n"


@pytest.fixture
def docker(working):
    """The backend, with an image ``turnwise-base`` that has Python and pytest."""
    backend = working("docker")
    backend.start(SandboxImage(ROOT)).close()  # imports the root
    backend.client().images.get(f"turnwise-root:{root_name(ROOT)}").tag("turnwise-base", "latest")
    return backend


def tasks_of(name):
    suite = get_suite(name)
    return list(suite_tasks(suite, Split.TEST, suite.size or 0))


@pytest.mark.parametrize(
    "folder", [f"{path.parent.name}/{path.name}" for path in sorted(FOLDERS.glob("*/*"))]
)
def test_a_task_folder_is_solved_by_its_solution_only(docker, folder):
    (task,) = tasks_of(f"harbor:{FOLDERS / folder}")
    env = make(task.env)
    assert walk(env, task, "gold").success
    env.close()
    untouched = judge(docker, start_of(docker, image_task_of(task)), image_task_of(task))
    assert untouched.reward == 0


def test_a_fork_of_a_container_goes_its_own_way(docker):
    (task,) = tasks_of(f"harbor:{FOLDERS / 'harbor' / 'rotate'}")
    env = make(task.env)
    env.reset(options={"task": task})
    env.step("shell[echo one > note]")
    other = env.fork()
    other.step("shell[echo two > note]")
    assert "one" in str(env.step("shell[cat note]")[0])
    assert "two" in str(other.step("shell[cat note]")[0])
    env.close()
    other.close()


@pytest.mark.slow
def test_the_contract_on_a_folder(docker):
    report = check_env(f"harbor:{FOLDERS / 'harbor' / 'rotate'}", tasks=1, only=["E6", "E9"])
    assert report.ok, str(report)


def test_an_environment_of_named_tasks_says_so():
    with pytest.raises(EnvError, match="no tasks of its own"):
        make("turnwise/Image-v0").reset(seed=0)


def test_a_folder_of_folders_is_a_suite_in_order_and_rewards_may_be_partial(docker):
    tasks = tasks_of(f"harbor:{FOLDERS / 'harbor'}")
    assert [Path(task.options["context"]).parent.name for task in tasks] == ["greeting", "report", "rotate"]
    start, task = start_of(docker, image_task_of(tasks[1])), image_task_of(tasks[1])
    half = judge(docker, start.with_files({"report.json": '{"errors": 3}'}), task)
    assert (half.reward, half.why) == (0.5, "the test script gave 0.5")
    silent = judge(docker, start, task._replace(judge="echo nothing"))
    assert (silent.reward, silent.why) == (0.0, "the test script gave no reward: 'nothing'")


def diff(path, before, after):
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return f"diff --git a/{path} b/{path}\n" + "".join(lines)


@pytest.fixture
def testbed(docker):
    """An image as SWE-bench's are: a repository in /testbed at the commit before the repair, which its history has."""
    files = {
        "Dockerfile": "FROM turnwise-base:latest\nWORKDIR /testbed\nCOPY repo /testbed\n"
        "RUN git init -q . && git add . && git commit -q -m one && git rm -q mint.py && git commit -q -m later "
        "&& git checkout -q HEAD~1\n",
        "repo/mint.py": BROKEN,
        "repo/tests/test_mint.py": TESTS,
        "repo/conftest.py": "",
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, text in files.items():
            about = tarfile.TarInfo(path)
            about.size = len(text)
            archive.addfile(about, io.BytesIO(text.encode()))
    buffer.seek(0)
    image, _ = docker.client().images.build(
        fileobj=buffer, custom_context=True, tag="turnwise-testbed:latest", network_mode="none", rm=True
    )
    return image


ROW = {
    "instance_id": "someone__mint-1", "repo": "someone/mint", "image_name": "turnwise-testbed:latest",
    "problem_statement": "double(2) is 6.", "base_commit": "x",
    "patch": diff("mint.py", BROKEN, RIGHT), "test_patch": diff("tests/test_mint.py", TESTS, NEW_TESTS),
    "FAIL_TO_PASS": '["tests/test_mint.py::test_two"]', "PASS_TO_PASS": '["tests/test_mint.py::test_none"]',
}  # fmt: skip


@pytest.mark.usefixtures("testbed")
def test_rows_are_played_in_their_image_without_its_history(docker, tmp_path):
    worse = RIGHT.replace("x + x", "x * x * x")
    smith = {
        **ROW,
        "patch": diff("mint.py", BROKEN, worse),
        "FAIL_TO_PASS": ["tests/test_mint.py::test_none"],
        "PASS_TO_PASS": [],
    }
    smith |= {"patch": diff("mint.py", BROKEN, BROKEN.replace("x + x + x", "1 / x"))}
    del smith["test_patch"]
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(ROW) + "\n" + json.dumps(smith) + "\n")
    for task in tasks_of(f"swebench:{file}"):
        env = make(task.env)
        assert walk(env, task, "gold").success
        env.reset(options={"task": task})
        said = env.step("shell[git log --oneline --all; git status --short; ls]")[0]
        assert str(said).count("as it is") == 1
        assert "later" not in str(said)
        reward, details = env.step("submit[]")[1], env.now
        assert reward == 0, details
        env.close()


def test_a_row_of_swe_gym_is_played_in_the_image_that_is_published_under_its_name(docker, testbed, tmp_path):
    image = "xingyaoww/sweb.eval.x86_64.someone_s_mint-1"
    testbed.tag(image, "latest")
    gym = {name: value for name, value in ROW.items() if name != "image_name"} | {
        "hints_text": "", "created_at": "2024-01-01", "version": "1.0",
        "FAIL_TO_PASS": ["tests/test_mint.py::test_two"], "PASS_TO_PASS": ["tests/test_mint.py::test_none"],
    }  # fmt: skip
    file = tmp_path / "gym.jsonl"
    file.write_text(json.dumps(gym))
    try:
        (task,) = tasks_of(f"swebench:{file}")
        env = make(task.env)
        assert walk(env, task, "gold").success
        env.close()
        untouched = judge(docker, start_of(docker, image_task_of(task)), image_task_of(task))
        assert untouched.reward == 0
    finally:
        docker.client().images.remove(f"{image}:latest")


@pytest.mark.parametrize(("policy", "solved"), [("gold", 1.0), ("null", 0.0)])
def test_folders_are_evaluated_by_the_command(docker, policy, solved, tmp_path):
    suite = f"harbor:{FOLDERS / 'harbor'}"
    arguments = [
        "eval",
        suite,
        "--policy",
        f"scripted:{policy}",
        "--episodes",
        "3",
        "--out",
        str(tmp_path / "eval"),
    ]
    assert run_verb(arguments) == 0
    told = json.loads((tmp_path / "eval" / "evaluation.json").read_text("utf-8"))
    assert told["success"] == solved, told
    episodes = list(read_episodes(tmp_path / "eval" / "episodes.jsonl.zst"))
    assert {Path(one.task.options["context"]).parent.name for one in episodes} == {
        "greeting",
        "report",
        "rotate",
    }
    assert {one.success for one in episodes} == {solved == 1.0}


def test_what_is_not_there_is_named(docker, tmp_path):
    missing = tmp_path / "task"
    for path, text in {
        "task.toml": "",
        "instruction.md": "Do it.",
        "environment/Dockerfile": "FROM nobody/has:this\n",
    }.items():
        (missing / path).parent.mkdir(parents=True, exist_ok=True)
        (missing / path).write_text(text)
    (task,) = tasks_of(f"harbor:{missing}")
    with pytest.raises(InfraError, match="no image 'nobody/has:this'"):
        start_of(docker, image_task_of(task))


def test_a_path_of_the_wrong_kind_says_so(tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW))
    (tmp_path / "empty").mkdir()
    for name, why in (
        (f"harbor:{tmp_path / 'rows.jsonl'}", "is a file, not a task's folder"),
        (f"harbor:{tmp_path}", "is no task and holds none: .*here: empty, rows.jsonl"),
        (f"harbor:{tmp_path / 'gone'}", "it does not exist"),
        (f"swebench:{tmp_path}", "is a folder, not a file of rows"),
    ):
        with pytest.raises(TurnwiseError, match=why):
            get_suite(name)


def test_logs_are_read_as_swe_bench_reads_them():
    log = "tests/a.py ..\nPASSED tests/a.py::test_x[a b]\nFAILED tests/a.py::test_y - assert 1 == 2\nXFAIL tests/a.py::test_z - why\n"
    assert statuses(log) == {
        "tests/a.py::test_x[a b]": "PASSED",
        "tests/a.py::test_y": "FAILED",
        "tests/a.py::test_z": "XFAIL",
    }
    assert statuses("test_a (m.T)\nWhat it is for. ... ok\ntest_b (m.T) ... FAIL\n") == {
        "test_a (m.T)": "PASSED",
        "test_b (m.T)": "FAILED",
    }
