"""Our suites as packages for others, without their programs; tests/envs/test_foreign_packages.py plays them."""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnwise.envs.images.prepare import start_of
from turnwise.envs.images.tasks import of_folder
from turnwise.envs.offered.harbor_folders import write_harbor_folders
from turnwise.envs.offered.rows import task_rows
from turnwise.envs.offered.verifiers_package import write_verifiers_package
from turnwise.envs.swe.importers import judge_script, read_folder
from turnwise.errors import EnvError, TurnwiseError
from turnwise.tasks.core import Split


def test_a_package_of_verifiers_has_the_rows_of_the_suite(tmp_path: Path) -> None:
    inside = write_verifiers_package("calc/easy", tmp_path / "calc-easy", 3, split=Split.DEV, start=2)
    assert inside.name == "calc_easy"
    about = tomllib.loads((tmp_path / "calc-easy" / "pyproject.toml").read_text())
    assert about["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["calc_easy"]
    rows = [json.loads(line) for line in (inside / "tasks.jsonl").read_text().splitlines()]
    assert rows == [row.to_json() for row in task_rows("calc/easy", 3, split=Split.DEV, start=2)]
    names = {
        one.name
        for one in ast.parse((inside / "taskset.py").read_text()).body
        if isinstance(one, ast.ClassDef)
    }
    exported = ast.literal_eval(ast.parse((inside / "__init__.py").read_text()).body[-1].value)  # type: ignore[attr-defined]
    assert set(exported) == names
    write_verifiers_package("calc/easy", tmp_path / "calc-easy", 1)  # its own folder is written anew
    assert len((inside / "tasks.jsonl").read_text().splitlines()) == 1


def test_a_folder_of_something_else_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(TurnwiseError, match="holds something else"):
        write_verifiers_package("calc/easy", tmp_path, 1)
    with pytest.raises(EnvError, match="agent and opponent"):
        write_verifiers_package("games/tictactoe", tmp_path / "new", 1)
    assert not (tmp_path / "new").exists()


@contextlib.contextmanager
def container(folder: Path, tmp: Path) -> Iterator[dict[str, str]]:
    """What a container of Harbor would have, without one: the world's own command, `play` on the path, /tests and /logs."""
    command = (folder / "environment" / "world" / "Dockerfile").read_text().partition("CMD ")[2]
    words = json.loads(command)[1:]
    for option, value in (("--host", "127.0.0.1"), ("--port", "0")):
        words[words.index(option) + 1] = value
    place = tmp / "usr" / "play"
    place.parent.mkdir(exist_ok=True)
    place.write_text((folder / "environment" / "play").read_text())
    place.chmod(place.stat().st_mode | stat.S_IXUSR)
    with subprocess.Popen(
        [sys.executable, "-m", "turnwise", *words], stderr=subprocess.PIPE, text=True
    ) as world:
        assert world.stderr is not None
        url = next(line for line in world.stderr if line.startswith("ready: ")).split()[1]
        try:
            path = f"{place.parent}:{os.environ['PATH']}"
            yield {"PATH": path, "TURNWISE_WORLD": "http://" + url.partition("@")[2]}
        finally:
            world.terminate()


def played(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["play", *words], env=env, capture_output=True, text=True, check=False)


def judged(folder: Path, tmp: Path, env: dict[str, str]) -> str:
    """The last line of our importer's own judge, with the folders that it has in a container in ``tmp``."""
    task = read_folder(folder)
    for path, data in task.tests.items():
        (tmp / "tests").mkdir(exist_ok=True)
        text = data.decode().replace("/tests/", f"{tmp}/tests/").replace("/logs/", f"{tmp}/logs/")
        (tmp / "tests" / path).write_text(text)
    script = judge_script(task).replace("/tests/", f"{tmp}/tests/").replace("/logs/", f"{tmp}/logs/")
    return subprocess.run(
        ["bash", "-c", script], env=env, capture_output=True, text=True, check=True
    ).stdout.split()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("suite", ["functioncall/single", pytest.param("shop/easy", marks=pytest.mark.full)])
def test_a_folder_of_harbor_is_solved_by_its_oracle_and_read_by_our_importer(
    suite: str, tmp_path: Path
) -> None:
    write_harbor_folders(suite, tmp_path / "out", 2, start=3)
    (row,) = task_rows(suite, 1, start=3)
    folder = min((tmp_path / "out").iterdir())
    task = read_folder(folder)
    assert all(message["content"] in task.instruction for message in row.prompt)
    assert all(f"play call {tool['function']['name']} " in task.instruction for tool in row.tools)
    assert tomllib.loads((folder / "task.toml").read_text())["metadata"]["hash"] == row.hash
    with container(folder, tmp_path) as env:
        play = functools.partial(played, env)
        assert play().stdout.strip() in "\n\n".join(one["content"] for one in row.prompt) + "\n"
        assert "words" in play("do", '{"words": "x"}').stderr
        assert "token" in played({**env, "TURNWISE_TOKEN": "x"}).stderr
        done = subprocess.run(
            ["bash", "-c", task.solution], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "The episode has ended: solved." in done.stdout
        assert judged(folder, tmp_path, env) == "1.0"
    assert judged(folder, tmp_path, env) == "0", "no world, no reward"
    with pytest.raises(EnvError, match=r"other containers beside its own: world"):
        start_of(None, of_folder(folder, task))  # type: ignore[arg-type]


def test_suites_that_no_container_alone_can_play_are_no_folders(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="agent and opponent"):
        write_harbor_folders("games/tictactoe", tmp_path / "new", 1)
    with pytest.raises(EnvError, match="more than Python"):
        write_harbor_folders("shop-browser/text", tmp_path / "new", 1)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(TurnwiseError, match="holds something else"):
        write_harbor_folders("calc/easy", tmp_path, 1)
