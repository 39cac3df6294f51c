"""Making tasks: the warm interpreter is as good as a fresh one, what runs leave is undone, and making goes on."""

import dataclasses
import json

import pytest
from filelock import FileLock

from turnwise.envs.swe import baseline, build, verify
from turnwise.envs.swe.baseline import baseline_of, measure
from turnwise.envs.swe.packages import ROOT, get_package, packages, repository
from turnwise.envs.swe.redteam import HERE
from turnwise.envs.swe.suite import run_suite, start
from turnwise.envs.swe.tasks import load_instances
from turnwise.envs.swe.warm import SuiteJob, run_jobs
from turnwise.errors import TurnwiseError
from turnwise.tools.sandbox.registry import isolated_backend
from turnwise.tools.sandbox.roots import build_root

pytestmark = pytest.mark.usefixtures("sandboxed")
PURSE = get_package("purse")
PATH = "purse/amounts.py"
TEXT = repository(PURSE)[PATH].decode()


@pytest.fixture(scope="module")
def base():
    return measure(isolated_backend(), PURSE, repeats=2)


def jobs(base, *texts, **options):
    return run_jobs(
        isolated_backend(), base.image, PURSE, [SuiteJob({PATH: t} if t else {}, **options) for t in texts]
    )


def test_warm_runs_agree_with_fresh_ones(base):
    broken = TEXT.replace("return total", "total")
    (warm,) = jobs(base, broken)
    with start(isolated_backend(), PURSE, {**repository(PURSE), PATH: broken.encode()}) as sandbox:
        fresh = run_suite(sandbox, PURSE)
    assert warm.complete
    assert warm.tests == fresh.tests
    assert base.passing - warm.passing()


def test_a_change_of_the_same_length_is_seen_and_undone(base):
    assert "total += parse" in TEXT
    changed, healthy = jobs(base, TEXT.replace("total += parse", "total -= parse"), "")
    assert base.passing - changed.passing()
    assert healthy.passing() == base.passing


@pytest.mark.parametrize(
    "deed",
    [
        "import os; [os.remove(f'tests/{n}') for n in os.listdir('tests') if n.endswith('.py')]",
        "import shutil; shutil.rmtree('purse', ignore_errors=True)",
        "open('purse/parse.py', 'w').write('1 +'); open('conftest.py', 'w').write('1 +')",
        "open('purse/sharing.py', 'w').write('')",
        "import os; os.makedirs('/tmp/a/b'); os.symlink('/tmp', 'link'); os.mkfifo('pipe')",
        "import os; os.fork() or [None for _ in iter(int, 1)]",
        "while True: pass",
        "import os; os.kill(os.getpid(), 9)",
    ],
)
def test_what_a_run_leaves_does_not_reach_the_next(base, deed):
    first, second = jobs(base, f"{deed}\n{TEXT}", "", cpu=1.0)
    assert first.answered
    assert second.complete
    assert second.passing() == base.passing


def test_a_run_stops_when_enough_has_failed(base):
    (run,) = jobs(base, TEXT.replace("return", "1 and"), most_failing=1)
    assert sum(result.status == "fail" for result in run.tests.values()) == 1


def test_hash_seeds_are_what_was_asked_for():
    test = b"def test_it():\n    assert hash('a') == 0\n"
    told = []
    for seed in (1, 1, 2):
        with start(isolated_backend(), PURSE, {**repository(PURSE), "tests/test_seed.py": test}) as sandbox:
            run = run_suite(sandbox, PURSE, only=["tests/test_seed.py::test_it"], hash_seed=seed)
        told.append(run.tests["tests/test_seed.py::test_it"].detail)
    assert told[0] == told[1] != told[2]


def test_a_baseline_is_measured_once(base, tmp_path, monkeypatch):
    monkeypatch.setenv("TURNWISE_CACHE", str(tmp_path))
    monkeypatch.setattr(baseline, "measure", lambda *_, **__: base)
    baseline_of(isolated_backend(), PURSE)
    monkeypatch.undo()
    monkeypatch.setenv("TURNWISE_CACHE", str(tmp_path))
    monkeypatch.setattr(baseline, "measure", None)
    again = baseline_of(isolated_backend(), PURSE)
    assert again.spent == 0
    assert again[:5] == base[:5]
    assert again.image.digest == base.image.digest


def test_levels_fill_the_lowest_first():
    assert build._level([0, 3, 5], 3) == 3
    assert build._level([2, 2], 1) == 3
    assert build._level([0], 7) == 7


def test_no_fixed_release_lies_in_the_root():
    """Row 75: what the tests need must not bring a repaired copy of the package along."""
    there = {item.name.lower() for item in build_root(ROOT).glob("usr/**/dist-packages/*")}
    for package in packages().values():
        top = package.source.rpartition("/")[2]
        assert not {top.lower(), f"{top}.py".lower()} & there, package.name


def test_two_commands_do_not_write_to_one_file(tmp_path):
    out = tmp_path / "tasks.jsonl"
    with FileLock(f"{out}.lock"), pytest.raises(TurnwiseError, match="Another command"):
        build.build(isolated_backend(), ["purse"], 1, out)


@pytest.mark.slow
def test_time_that_is_up_ends_it_and_the_rest_comes_later(tmp_path):
    out = tmp_path / "tasks.jsonl"
    done = build.build(isolated_backend(), ["purse"], 3, out, seed=5, minutes=0)
    assert done.total == 0
    done = build.build(isolated_backend(), ["purse"], 2, out, seed=5)
    row = json.loads(json.dumps(done.to_json()))["packages"]["purse"]
    assert row["total"] == 2 == row["tally"]["kept"]
    fates = sum(
        row["tally"][name] for name in ("survived", "dull", "unstable", "vague", "leaking", "crowded", "kept")
    )
    assert row["tally"]["tried"] == fates
    assert len(load_instances(out)) == 2


def test_built_tasks_are_judged_as_episodes_are(tmp_path, capsys):
    good = load_instances(HERE / "small.jsonl")[0]
    wrong = dataclasses.replace(
        good, fail_to_pass=good.pass_to_pass[:1], pass_to_pass=(), twins=(), probes=()
    )
    for instance, passing in ((good, 0), (wrong, 1)):
        path = tmp_path / f"{passing}.jsonl"
        path.write_text(json.dumps(instance.to_json()) + "\n")
        assert verify.main(["--file", str(path), "--json"]) == passing
        told = json.loads(capsys.readouterr().out)
        assert told == {"of": 1, "judged": 1, "repair_passes": 1, "bug_passes": passing}


def test_tests_in_files_of_one_name_run_with_ours_among_them():
    files = {path.replace("test_amounts", "tests"): data for path, data in repository(PURSE).items()}
    package = PURSE._replace(pattern="tests.py")
    with start(isolated_backend(), package, files) as sandbox:
        run = run_suite(sandbox, package)
    assert (run.complete, run.tampered) == (True, "")
    assert {name.partition("::")[0] for name in run.tests} == {"tests/tests.py"}


def test_a_test_whose_name_holds_its_whole_input_is_left_out():
    test = b"import pytest\n\n\n@pytest.mark.parametrize('x', ['a' * 13_000_000, 'b'])\ndef test_it(x):\n    assert x\n"
    with start(isolated_backend(), PURSE, {**repository(PURSE), "tests/test_long.py": test}) as sandbox:
        run = run_suite(sandbox, PURSE)
    assert (run.complete, run.tampered) == (True, "")
    assert [name for name in run.tests if "test_long" in name] == ["tests/test_long.py::test_it[b]"]
