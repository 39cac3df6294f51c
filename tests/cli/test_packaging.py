"""Wheel and sdist, installed into an empty environment and used there: the core alone registers and evaluates."""

from __future__ import annotations

import email.policy
import importlib.util
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from turnwise.envs.worlds.speaking.server import serve

ROOT = Path(__file__).resolve().parents[2]
_SPEC = importlib.util.spec_from_file_location("packaged", ROOT / "scripts" / "packaged.py")
assert _SPEC is not None
assert _SPEC.loader is not None
packaged = sys.modules["packaged"] = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(packaged)
Built, Installed, NoIndexError = packaged.Built, packaged.Installed, packaged.NoIndexError
build, install, run_in = packaged.build, packaged.install, packaged.run_in
SOURCE = "https://github.com/turnwise/turnwise"
PICTURES = "https://raw.githubusercontent.com/turnwise/turnwise"
FOLDERS = ("agents", "envs", "tasks", "tools", "trainers")
MOST_MEGABYTES = 200  # how long it takes is measured alone: benchmarks/install.json


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    try:
        return build(tmp_path_factory.mktemp("built"))
    except NoIndexError as error:
        pytest.skip(f"no package index: {error}")


@pytest.fixture(scope="module")
def core(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    try:
        return install(built.wheel, tmp_path_factory.mktemp("core") / "env")
    except NoIndexError as error:
        pytest.skip(f"no package index: {error}")


def tracked() -> set[str]:
    named = ["src/turnwise", *FOLDERS]
    found = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *named],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    links = {f"src/turnwise/{folder}" for folder in FOLDERS}
    return {
        name.removeprefix("src/turnwise/") for name in found if name not in links and (ROOT / name).is_file()
    }


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        held = {name.removeprefix("turnwise/") for name in wheel.namelist()}
    assert not tracked() - held


@pytest.mark.slow
def test_links_of_the_readme_hold_on_an_index(built: Built) -> None:
    """All are absolute, pictures are files and no pages, and those into the repository are of files that it has."""
    with zipfile.ZipFile(built.wheel) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(wheel.read(name), policy=email.policy.default)
    assert metadata["Description-Content-Type"] == "text/markdown"
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", metadata.get_content())
    assert len(links) > 30
    for picture, address in links:
        place = f"{PICTURES}/main/" if picture else f"{SOURCE}/blob/main/"
        assert address.startswith("https://"), address
        if address.startswith((SOURCE, PICTURES)):
            assert address.startswith(place), address
            assert (ROOT / address.removeprefix(place).partition("#")[0]).exists(), address


@pytest.mark.slow
def test_the_sdist_holds_files_and_no_links(built: Built) -> None:
    with tarfile.open(built.sdist) as sdist:
        members = sdist.getmembers()
    assert not [member.name for member in members if member.issym() or member.islnk()]
    held = {member.name.partition("/src/turnwise/")[2] for member in members}
    assert not tracked() - held


@pytest.mark.slow
@pytest.mark.full
def test_the_core_is_light(core: Installed) -> None:
    assert core.megabytes <= MOST_MEGABYTES
    assert core.packages < 70


@pytest.mark.slow
@pytest.mark.full
def test_the_core_holds_nothing_of_the_extras(core: Installed) -> None:
    program = (
        "from turnwise.extras import EXTRAS, lacks\n"
        "print([name for name, extra in EXTRAS.items() if len(lacks(name)) < len(extra.modules)])"
    )
    done = subprocess.run([str(core.python), "-I", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("list", "suites"), "shop/easy"),
        (("list", "policy"), "openai:MODEL@URL"),
        (("doctor",), "Ready."),
        (("survey", "sort/4", "--gold", "3", "--baselines", "3", "--tasks", "4"), "Trivial baselines"),
        (("eval", "shop/easy", "--policy", "scripted:gold", "--episodes", "2"), "100.0 %"),
    ],
)
def test_the_core_does_its_work(core: Installed, tmp_path: Path, arguments: Sequence[str], said: str) -> None:
    done = run_in(core.python, tmp_path, *arguments)
    assert said in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.full
def test_a_new_environment_is_made_and_checked_with_the_core(core: Installed, tmp_path: Path) -> None:
    made = run_in(core.python, tmp_path, "new-env", "word-chain", "--json")
    file = next(path for path in json.loads(made.stdout)["files"] if path.endswith("__init__.py"))
    done = run_in(core.python, tmp_path, "check", file, "--tasks", "1", "--json")
    failed = {
        name: found["detail"]
        for name, found in json.loads(done.stdout)["requirements"].items()
        if not found["ok"]
    }
    assert set(failed) <= {"E9"}, failed  # it is given by its file, and not installed


@pytest.mark.slow
@pytest.mark.full
def test_a_server_is_evaluated_with_the_core_and_compared(core: Installed, tmp_path: Path) -> None:
    with serve(lambda _: "I do not know.") as server:
        policy = f"openai:some-model@{server.url}"
        done = run_in(
            core.python, tmp_path, "eval", "shop/easy", "--policy", policy, "--episodes", "3", "--out", "a"
        )
        assert done.returncode == 0, done.stderr
        assert len(server.requests) >= 3
    run_in(
        core.python,
        tmp_path,
        "eval",
        "shop/easy",
        "--policy",
        "scripted:gold",
        "--episodes",
        "3",
        "--out",
        "b",
    )
    found = run_in(core.python, tmp_path, "compare", "a", "b", "--json")
    assert found.returncode == 0, found.stderr
    assert "shop/easy" in found.stdout


@pytest.mark.slow
@pytest.mark.full
def test_the_viewer_shows_every_page_with_the_core_but_what_rules_give(core: Installed) -> None:
    command = [str(core.python), "-I", str(ROOT / "tests" / "kit" / "viewed.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = json.loads(done.stdout)
    assert pages.pop("PLACE/e/1?rules=1") == [400, "train"]
    assert {tuple(answer) for answer in pages.values()} == {(200, "")}, pages


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("train", "shop-quick"), "train"),
        (("explain", "shop-quick"), "train"),
        (("relearn", "."), "train"),
        (("eval", "shop/easy", "--policy", "torch:some/model"), "train"),
        (("eval", "tracker/all", "--policy", "scripted:gold"), "web"),
        (("report", "."), "plots"),
    ],
)
def test_what_is_missing_is_named_with_its_extra(
    core: Installed, tmp_path: Path, arguments: Sequence[str], extra: str
) -> None:
    done = run_in(core.python, tmp_path, *arguments)
    assert done.returncode == 1
    assert f"→ pip install 'turnwise[{extra}]'" in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) == 2
