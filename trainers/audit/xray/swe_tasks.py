"""A row of SWE-bench's kind as a task folder, where a clone of its repository is at hand: then its tests are run, and not only read."""

from __future__ import annotations

import json
import re
from pathlib import Path

from turnwise.envs.swe.importers import FolderTask, Foreign

REPO = "/testbed"
_SECONDS = 600.0
_END = "END_OF_PATCH"
_GRADE = '''"""Writes the reward as SWE-bench's harness does: 1 where each test that is named passes."""
import json, re, sys

said = open(sys.argv[1], errors="replace").read()
passed = set(re.findall(r"^(?:PASSED|XFAIL) ([^\\n]*?)(?: - [^\\n]*)?$", said, re.MULTILINE))
wanted = json.load(open("/tests/wanted.json"))
missing = [name for name in wanted if name not in passed]
print("%d of %d named tests pass" % (len(wanted) - len(missing), len(wanted)), *missing[:3])
open("/logs/verifier/reward.txt", "w").write("0" if missing else "1")
'''


def clone_of(row: Foreign, file: Path) -> Path | None:
    """The clone of a row's repository: the folder that it names, or one beside the file by the repository's name; None where there is none."""
    owner, _, name = row.repo.rpartition("/")
    beside = [file.parent / part for part in (row.repo.replace("/", "__"), name, f"{owner}/{name}") if part]
    named = [Path(row.repo)] if row.repo.startswith("/") else []
    return next((one for one in (*named, *beside) if (one / ".git").exists()), None)


def swe_task(row: Foreign, clone: Path) -> FolderTask:
    """The row as a task: the repository at its commit, the repair as the solution, and its tests as those that judge."""
    steps = [
        "FROM python:3",
        f"WORKDIR {REPO}",
        f"COPY {clone.name} {REPO}",
        f"RUN git -c safe.directory='*' checkout -q -f {_quoted(row.base_commit or 'HEAD')}",
    ]
    applied = f"git apply --whitespace=nowarn {'-R ' if row.reverse else ''}- <<'{_END}'\n{_lines(row.patch)}{_END}\n"
    if row.reverse:
        steps.append(
            f"RUN <<END_OF_RUN\ngit apply --whitespace=nowarn - <<'{_END}'\n{_lines(row.patch)}{_END}\nEND_OF_RUN"
        )
    tests = {
        "test.sh": _script(row).encode(),
        "grade.py": _GRADE.encode(),
        "wanted.json": json.dumps([*row.fail_to_pass, *row.pass_to_pass]).encode(),
    }
    if row.test_patch:
        tests["test.patch"] = _lines(row.test_patch).encode()
    solution = f"cd {REPO} && {applied}" if row.patch.strip() else ""
    return FolderTask(
        row.instance_id, row.issue, "\n".join(steps), tests, "test.sh", solution, _SECONDS, _SECONDS
    )


def test_files(row: Foreign) -> tuple[str, ...]:
    """Places of the files whose checks count, as the sandbox knows them."""
    return tuple(f"/work{REPO}/{path}" for path in row.test_files)


def not_installed(said: str, clone: Path) -> str:
    """The package that the repository's tests import and that is not there, before anything was changed; "" where there is none."""
    for name in re.findall(r"No module named ['\"]?(\w+)", said):
        if not any(clone.rglob(f"{name}.py")) and not any(one.is_dir() for one in clone.rglob(name)):
            return name
    return ""


def _script(row: Foreign) -> str:
    files = " ".join(map(_quoted, row.test_files))
    kept = files and f"git checkout -q -f {_quoted(row.base_commit or 'HEAD')} -- {files} 2>/dev/null\n"
    command = row.test_command or "python3 -m pytest -rA --tb=short -p no:cacheprovider"
    if not any(path in command for path in row.test_files):
        command = f"{command} {files}"
    patched = (
        "if ! git apply --whitespace=nowarn /tests/test.patch; then echo 'set-up failed: the test patch cannot be applied'; exit 0; fi\n"
        if row.test_patch
        else ""
    )
    return (
        f"mkdir -p /logs/verifier; echo 0 > /logs/verifier/reward.txt\ncd {REPO}\nexport GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory "
        f"GIT_CONFIG_VALUE_0='*'\n{kept}{patched}{command} > /tmp/said 2>&1\ncat /tmp/said\npython3 /tests/grade.py /tmp/said\n"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _lines(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"
