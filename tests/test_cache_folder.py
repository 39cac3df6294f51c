"""The folder of what can be made again: named by a variable, in the home, or in the temporary folder of those who have none."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from turnwise.cache_folder import cache_folder
from turnwise.errors import TurnwiseError


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of a user whose home is none."""
    for name in ("TURNWISE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"turnwise-cache-{os.getuid()}"


def test_variables_go_before_the_home(
    homeless: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("swe", "sdists") == tmp_path / ".cache" / "turnwise" / "swe" / "sdists"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "turnwise"
    monkeypatch.setenv("TURNWISE_CACHE", str(tmp_path / "own"))
    assert cache_folder("models") == tmp_path / "own" / "models"


def test_who_cannot_write_to_a_home_has_a_folder_of_their_own(homeless: Path) -> None:
    assert cache_folder("models") == homeless / "models"
    assert homeless.stat().st_mode & 0o777 == 0o700
    assert cache_folder("models") == homeless / "models", "the next process finds it"


def test_a_user_whom_the_system_does_not_know(homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    assert cache_folder() == homeless


@pytest.mark.parametrize("planted", ["open to all", "a link", "a file"])
def test_a_folder_that_others_may_write_to_is_refused(homeless: Path, tmp_path: Path, planted: str) -> None:
    if planted == "a link":
        homeless.symlink_to(tmp_path)
    elif planted == "a file":
        homeless.write_text("")
    else:
        homeless.mkdir()
        homeless.chmod(0o777)
    with pytest.raises(TurnwiseError, match="not a folder of this user alone") as refused:
        cache_folder()
    assert "TURNWISE_CACHE" in refused.value.remedy
