"""Packages of users are validated before they are listed; what a release repaired becomes a task, what it added does not."""

import io
import json
import tarfile
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

from turnwise.envs.swe import add as adding
from turnwise.envs.swe.add import add
from turnwise.envs.swe.baseline import Baseline
from turnwise.envs.swe.changelog import told_by
from turnwise.envs.swe.cut import Cutter, ReleaseCut
from turnwise.envs.swe.history import ReleaseRange, build_releases, read_ranges, release_list
from turnwise.envs.swe.hunks import changes_between, edits_of, fewest, parts_of, undone
from turnwise.envs.swe.issue import write_issue
from turnwise.envs.swe.layout import laid_out
from turnwise.envs.swe.levels import key_of
from turnwise.envs.swe.needs import needs_for, needs_of
from turnwise.envs.swe.packages import Package, get_package, packages, read_packages
from turnwise.envs.swe.reward import grade
from turnwise.envs.swe.sdists import Unpacked, packed, sdists_of
from turnwise.envs.swe.suite import SuiteRun, TestResult
from turnwise.envs.swe.tasks import load_instances, place_of
from turnwise.envs.swe.twins import function_of
from turnwise.errors import TurnwiseError
from turnwise.tools.sandbox.core import SandboxImage
from turnwise.tools.sandbox.registry import get_backend, isolated_backend

ROOT = Path(__file__).resolve().parents[2]
OLD = """def shorten(text, most):
    return text[:most]


def join(parts):
    return ",".join(parts)


def count(text):
    return len(text.split(" "))
"""
MORE = "def double(text):\n    return text * 2\n\n\n"
NEW = MORE + OLD.replace('text.split(" ")', "text.split()").replace('","', '", "')
TESTS = """import mint
from mint import count, join, shorten


def test_count():
    assert count("a  b") == 2


def test_join():
    assert join(["a", "b"]) == "a, b"


def test_shorten():
    assert shorten("abc", 2) == "ab"


def test_double():
    assert mint.double("a") == "aa"
"""
CHANGES = "# Changes\n\n## 1.1\n\n- `count` took two spaces for an empty word (#12)\n- New: `double`\n"


def write_sdist(folder, version, files):
    with tarfile.open(folder / f"mint-{version}.tar.gz", "w:gz") as archive:
        for path, text in files.items():
            about = tarfile.TarInfo(f"mint-{version}/{path}")
            about.size = len(text.encode())
            archive.addfile(about, io.BytesIO(text.encode()))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of its own, but with the sandboxes' roots that there are."""
    from turnwise.cache_folder import cache_folder

    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "sandboxes").symlink_to(cache_folder("sandboxes"))
    monkeypatch.setenv("TURNWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_changes_can_be_undone_one_by_one():
    older, newer = {"a.py": OLD}, {"a.py": NEW, "b.py": "x = 1\n"}
    changes = changes_between(older, newer)
    assert len(changes) == 4
    assert undone(newer, changes) == {"a.py": OLD, "b.py": ""}
    for change in changes:
        (text,) = undone(newer, [change]).values()
        (edit,) = edits_of(newer, {change.path: text})
        assert edit.apply(newer[change.path]) == text


@pytest.mark.parametrize("guilty", [{3}, {1, 6}, {0, 4, 7}, set(range(8))])
def test_the_fewest_changes_are_those_that_matter(guilty):
    changes = changes_between({}, {f"{at}.py": "x\n" for at in range(8)})
    chosen = fewest(
        changes, lambda choices: [guilty <= {changes.index(one) for one in choice} for choice in choices]
    )
    assert {changes.index(one) for one in chosen} == guilty


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_what_a_release_repaired_becomes_tasks(cache):
    for version, text in (("1.0", OLD), ("1.1", NEW)):
        write_sdist(
            cache,
            version,
            {
                "mint/__init__.py": text,
                "tests/test_mint.py": TESTS,
                "CHANGES.md": CHANGES * (version > "1.0"),
            },
        )
    heard = []
    history, out = [ReleaseRange("mint", folder=cache)], cache / "tasks.jsonl"
    (report,) = build_releases(isolated_backend(), history, out, on_report=heard.append)
    assert heard == [report]
    assert report.fates == {
        "tests": 4,
        "tests that lack a name": 1,
        "tests that fail on older code": 2,
        "cuts": 2,
        "tasks": 2,
    }
    tasks = {one.where: one for one in load_instances(out)}
    assert set(tasks) == {"count", "join"}
    assert "took two spaces for an empty word" in tasks["count"].issue
    assert "#12" not in tasks["count"].issue
    assert "mint 1.0 does not do here what it should" in tasks["join"].issue
    for task, other in ((tasks["count"], "join"), (tasks["join"], "count")):
        assert task.fail_to_pass == (f"tests/test_mint.py::test_{task.where}",)
        assert f"tests/test_mint.py::test_{other}" in task.pass_to_pass
        assert grade(isolated_backend(), task, task.fixed()).resolved
    assert build_releases(isolated_backend(), history, out, on_report=heard.append) == [report]
    assert heard == [report]  # the second time nothing was left to do


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_a_folder_is_added_and_says_what_it_yields(cache):
    folder = cache / "mint"
    for path, text in {"src/mint/__init__.py": NEW, "tests/test_mint.py": TESTS}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    assert packed(folder, "mint") == packed(folder, "mint")
    (made,) = add(isolated_backend(), str(folder), tries=1)
    assert (made.package.source, made.package.path, made.tests) == ("src/mint", "src", 4)
    assert made.tally.kept == 1
    assert packages()["mint"] == made.package


def test_what_cannot_be_added_says_why(cache, monkeypatch):
    monkeypatch.setattr(adding, "sdists_of", lambda name: [])
    cases = {
        "a: {version: 1, source: a, tests: tests, sorce: b}": "did you mean 'source'",
        "a: {source: a, tests: tests}": "a has no version",
        "[a]": "does not map names",
        "a: {": "is no YAML",
        "funcy: {version: 2, source: funcy, tests: tests, file: x.tar.gz, sha256: aa}": "comes with Turnwise",
        "a: {version: 2, source: a, tests: tests}": "no source distribution 2",
    }
    for text, why in cases.items():
        path = cache / "mine.yaml"
        path.write_text(text)
        with pytest.raises(TurnwiseError) as caught:
            add(get_backend("bubblewrap"), str(path))  # which runs nothing before that
        assert why in str(caught.value).replace("Did", "did")


def test_layouts_are_found():
    for files, source, tests, pattern in (
        (("mint/__init__.py", "tests/test_a.py"), "mint", "tests", "test_*.py"),
        (("src/mint/a.py", "test/a_test.py"), "src/mint", "test", "*_test.py"),
        (("mint.py", "tests.py"), "mint.py", "tests.py", "tests.py"),
        (("mint/__init__.py", "mint/tests/test_a.py"), "mint", "mint/tests", "test_*.py"),
    ):
        found = laid_out("mint", "1", dict.fromkeys(files, b""))
        assert (found.source, found.tests, found.pattern) == (source, tests, pattern)
    with pytest.raises(TurnwiseError, match="brings no tests"):
        laid_out("mint", "1", {"mint/__init__.py": b""})
    with pytest.raises(TurnwiseError, match="No package is found"):
        laid_out("mint", "1", {"setup.py": b""})


def test_needs_come_from_metadata():
    lines = ("Name: mint", "Requires-Dist: rich>=13", "Requires-Dist: pytest-cov; extra == 'test'",
             "Requires-Dist: attrs; extra == 'test'", "Requires-Dist: lxml<6; extra == 'tests'",
             "Requires-Dist: sphinx; extra == 'docs'")  # fmt: skip
    assert needs_of("mint", {"PKG-INFO": "\n".join(lines).encode()}) == ("lxml<6", "rich")
    root = Package("mint", "1", "mint", "tests", needs=("rich",)).root
    assert root.pip[-1] == "rich"
    row = "mint: {version: 1, source: mint, tests: t, needs: [rich]}"
    assert read_packages(row, "x")["mint"].needs == ("rich",)


def test_what_is_missing_is_looked_up_where_it_is_declared():
    package = Package("mint", "1", "mint", "tests")
    files = {
        "tox.ini": b"[testenv]\ndeps =\n  py311: sniffs>=2,<3\n  pytest\n",
        "requirements-dev.txt": b"-r other.txt\nrich==13.1  # shows\n",
        "pyproject.toml": b"[dependency-groups]\ntest = ['beautifulsoup4>4']\n",
        "mint/__init__.py": b"",
    }
    details = [
        f"ModuleNotFoundError: No module named '{name}'"
        for name in ("rich.table", "bs4", "tests.a", "mint.b", "attr_x")
    ]
    assert needs_for(details, package, files) == ("attr-x", "beautifulsoup4", "rich==13.1")
    assert needs_for(["fixture 'sniffs' not found", "No module named 'yaml'"], package, files) == (
        "sniffs<3",
    )


def test_a_folder_of_source_distributions_lists_versions_in_order(cache):
    for version in ("1.10", "1.9", "2.0rc1"):
        write_sdist(cache, version, {"mint.py": ""})
    assert [str(one.version) for one in sdists_of("mint", folder=cache)] == ["1.9", "1.10"]
    with pytest.raises(TurnwiseError, match="no source distribution"):
        sdists_of("other", folder=cache)
    with pytest.raises(TurnwiseError, match="two are needed"):
        build_releases(
            get_backend("bubblewrap"), [ReleaseRange("mint", since="1.10", folder=cache)], cache / "out.jsonl"
        )


def test_changes_are_told_apart_by_the_function_that_they_are_in():
    older = {
        "a.py": "class A:\n    def f(self):\n        '''Old words.'''\n        return 1\n\n    def g(self):\n        return 2\n\nX = 1\n"
    }
    newer = {
        "a.py": older["a.py"]
        .replace("Old", "New")
        .replace("return 2", "x = 3\n        return x")
        .replace("X = 1", "X = 2")
    }
    parts = parts_of(newer, changes_between(older, newer))
    assert [(part.where, len(part.changes)) for part in parts] == [("A.g", 1), ("", 1)]


def test_a_function_with_two_repairs_is_cut_apart():
    """Each of its tests needs one of its changes."""
    older = {"a.py": "def f(x):\n    a = 1\n    b = 1\n    c = 1\n    return a, c\n"}
    newer = {"a.py": older["a.py"].replace("a = 1", "a = 2").replace("c = 1", "c = 3")}
    changes = changes_between(older, newer)
    needs = {"t.py::a": changes[0], "t.py::c": changes[1]}

    def run(jobs):
        def status(job, line):
            return TestResult(
                "pass"
                if job.changes["a.py"].splitlines()[line] == newer["a.py"].splitlines()[line]
                else "fail",
                "assert",
            )

        return [
            SuiteRun(True, True, {"t.py::a": status(job, 1), "t.py::c": status(job, 3)}, {}) for job in jobs
        ]

    base = Baseline(frozenset(needs), {}, frozenset(), 1.0, 1.0, 0.0, SandboxImage())
    cutter = Cutter(base, newer, parts_of(newer, changes), run, deadline=float("inf"))
    both = ReleaseCut(tuple(changes), frozenset(needs))
    assert {cut.changes: set(cut.tests) for cut in cutter.apart(both)} == {
        (change,): {name} for name, change in needs.items()
    }


def test_entries_of_a_changelog_go_on_over_lines_and_lose_their_marks():
    package = Package("mint", "1", "mint", "tests")
    text = "# 1.1\n\n- Fixed: two spaces are not an empty\n  word any more ([#12](http://x), #13).\n- Other things were done.\n"
    newer = Unpacked(package, {"CHANGES.md": text.encode()})
    words = ["test_count spaces empty"]
    assert (
        told_by(Unpacked(package, {}), newer, "count", words) == "two spaces are not an empty word any more"
    )
    assert told_by(newer, newer, "count", words) == ""
    roles = Unpacked(package, {"CHANGES.md": b"* :gh:`12`: :meth:`~mint.count` takes empty spaces for two\n"})
    assert told_by(Unpacked(package, {}), roles, "count", words) == "`mint.count` takes empty spaces for two"
    long = Unpacked(package, {"CHANGES.md": b"- two spaces of an empty count" + b" and more" * 40})
    assert told_by(Unpacked(package, {}), long, "count", words) == ""


def test_an_issue_shows_every_failing_test_function_that_it_may():
    files = {"t.py": b"def test_a():\n    assert f(1) == 2\n\n\ndef test_b():\n    assert f(2) == 3\n"}
    failures = {
        "t.py::test_a": TestResult("fail", "assert 1 == 2"),
        "t.py::test_b": TestResult("fail", "assert 2 == 3!"),
    }
    package = Package("mint", "1", "mint", "tests")
    assert "f(2)" not in write_issue(package, files, failures, told="")
    helper = b"def test_a():\n    def y(x, e):\n        assert f(x) == e\n\n" + b"    y(1, 2)\n" * 30
    assert (
        write_issue(package, {"t.py": helper}, {"t.py::test_a": TestResult("fail", "assert 1 == 2", 3)}) == ""
    )
    both = write_issue(package, files, failures, told="", most=2)
    assert both.index("f(1)") < both.index("And:") < both.index("f(2)") < both.index("assert 2 == 3!")
    assert write_issue(package, files, failures, told="", first={"t.py::test_b"}).count("f(2)") == 1


def test_the_committed_history_is_what_the_page_says():
    tasks = load_instances(place_of("history"))
    told = json.loads((ROOT / "benchmarks" / "swe-build.json").read_text("utf-8"))["releases"]
    assert len(tasks) == told["tasks"] == sum(row["tasks"] for row in told["by_package"].values())
    assert len({task.package for task in tasks}) == told["packages"] >= 10
    listed = {history.name: history for history in read_ranges(release_list())}
    for task in tasks:
        functions = {function_of(test) for test in task.fail_to_pass}
        assert len(functions) <= 4
        assert task.operator == "release"
        assert any(twin.failing & set(task.fail_to_pass) for twin in task.twins)
        assert not set(task.fail_to_pass) & set(task.pass_to_pass)
        assert task.source.file
        history = listed[task.package]
        assert Version(history.since) < Version(task.version) <= Version(history.until)


def test_an_example_is_shown_with_its_decorators_and_with_helpers_that_only_the_hidden_file_has():
    text = (
        b"import pytest\n\n\ndef freeze(year):\n    return year\n\n\n@pytest.fixture\ndef given():\n    return 1\n\n\n"
        b"def test_a(given):\n    @curry\n    def g(): pass\n\n    assert f(freeze(1), given, g) == 2\n"
    )
    failures = {"t.py::test_a": TestResult("fail", "assert 1 == 2", 16)}
    issue = write_issue(get_package("shelf"), {"t.py": text}, failures)
    assert "```python\ndef freeze(year):\n    return year\n\n\n@curry\ndef g(): pass\n\nassert" in issue
    assert "fixture" not in issue


def test_tasks_that_were_read_are_there_and_what_was_unfair_is_not():
    rows = yaml.safe_load((ROOT / "benchmarks" / "swe-read.yaml").read_text("utf-8"))
    known = {key_of(task): task for task in load_instances(place_of("history"))}
    assert len(rows) >= 20
    for row in rows:
        assert row["judgement"] in ("fair", "corrected", "unfair")
        assert (row["key"] in known) == (row["judgement"] != "unfair"), row
    autocurry = next(task for task in known.values() if task.where == "autocurry.autocurried")
    assert "```python\n@autocurry\n" in autocurry.issue
