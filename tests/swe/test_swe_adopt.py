"""Instances of others become ours where they fit the pinned release, and say why where not."""

import difflib
import json

import pytest

from turnwise.envs.check.walks import walk
from turnwise.envs.swe import adopt as command
from turnwise.envs.swe.adopt import NotPlayableError, adopt, package_of
from turnwise.envs.swe.diffs import DiffError, apply_diff, read_diff
from turnwise.envs.swe.env import SweEnv
from turnwise.envs.swe.importers import read_instances
from turnwise.envs.swe.redteam import subject
from turnwise.envs.swe.tasks import load_instances
from turnwise.tools.sandbox.registry import isolated_backend

pytestmark = pytest.mark.usefixtures("sandboxed")
TASK = subject()
TEST = "tests/test_amounts.py"


def diff(path, before, after):
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return f"diff --git a/{path} b/{path}\n" + "".join(lines)


def row(**changes):
    path = TASK.edit.path
    bug = diff(path, TASK.fixed()[path].decode(), TASK.broken()[path].decode())
    made = {
        "instance_id": "someone__purse.0a1b2c3d.x", "repo": "swesmith/someone__purse.0a1b2c3d", "patch": bug,
        "image_name": "x", "problem_statement": "Adding gives None.",
        "FAIL_TO_PASS": list(TASK.fail_to_pass), "PASS_TO_PASS": [*TASK.pass_to_pass, "tests/test_gone.py::test_x"],
    }  # fmt: skip
    return made | changes


def foreign(tmp_path, *rows):
    path = tmp_path / "instances.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return list(read_instances(path))


def test_a_smith_instance_is_played(tmp_path):
    (one,) = foreign(tmp_path, row())
    made = adopt(isolated_backend(), one, package_of(one))
    assert made.broken() == TASK.broken()
    assert made.where == "add"
    assert made.pass_to_pass == TASK.pass_to_pass
    env = SweEnv()
    walked = walk(env, made.task(), "gold")
    env.close()
    assert walked.success


def test_a_bench_instance_has_the_same_bug(tmp_path):
    text = TASK.fixed()[TEST].decode()
    tests = diff(TEST, text.replace("def test_add_skips_blanks", "def test_other"), text)
    (one,) = foreign(tmp_path, row(repo="someone/purse", patch=TASK.patch(), test_patch=tests))
    assert not one.reverse
    assert adopt(isolated_backend(), one, package_of(one)).broken() == TASK.broken()


def test_what_does_not_fit_says_why(tmp_path):
    two = row()["patch"] + diff(
        "purse/sharing.py", *[TASK.fixed()["purse/sharing.py"].decode() + end for end in ("", "\n# x\n")]
    )
    for changes, why in (
        ({"patch": TASK.patch()}, "not the text"),
        ({"patch": two}, "2 files"),
        ({"repo": "pallets/flask"}, "packages.yaml"),
        ({"FAIL_TO_PASS": ["tests/test_gone.py::test_x"]}, "do not pass with the repair"),
        (
            {"FAIL_TO_PASS": [*TASK.fail_to_pass, TASK.pass_to_pass[0]]},
            "1 tests of fail_to_pass pass with the bug",
        ),
    ):
        (one,) = foreign(tmp_path, row(**changes))
        with pytest.raises(NotPlayableError, match=why):
            adopt(isolated_backend(), one, package_of(one))


def test_repositories_are_known_by_their_names(tmp_path):
    names = {
        "swesmith/un33k__python-slugify.872b3750": "python-slugify",
        "pallets/jinja": "jinja2",
        "python-semver/python-semver": "semver",
    }
    for repo, name in names.items():
        (one,) = foreign(tmp_path, row(repo=repo))
        assert package_of(one).name == name


def test_the_command_writes_what_can_be_played(tmp_path, capsys):
    foreign(tmp_path, row(), row(instance_id="other", repo="a/b"))
    out = tmp_path / "adopted.jsonl"
    assert command.main([str(tmp_path / "instances.jsonl"), "--out", str(out)]) == 0
    assert "1 of 2" in capsys.readouterr().out
    assert load_instances(out)[0].issue == "Adding gives None."


@pytest.mark.parametrize("after", ["a\nb\nc\n", "x\na\nb\nc\nd\n", "a\nb\n", "a\nc", "", "b\n\n\nb\n" * 9])
def test_diffs_go_both_ways(after):
    before = "a\nb\nc\n\nlast"
    if not after:
        with pytest.raises(DiffError):
            read_diff("no diff at all")
        return
    lines = list(difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/f", "b/f"))
    text = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    read = read_diff(text)
    assert apply_diff(read, {"f": before}) == {"f": after}
    assert apply_diff(read, {"f": after}, reverse=True) == {"f": before}


def test_a_diff_that_makes_a_file_is_refused():
    with pytest.raises(DiffError, match="makes"):
        read_diff("--- /dev/null\n+++ b/x.py\n@@ -0,0 +1 @@\n+x\n")
