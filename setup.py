"""What pyproject.toml cannot say: the README of the package, whose links hold on the page of an index too."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
SOURCE = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"]
PICTURES = SOURCE.replace("https://github.com", "https://raw.githubusercontent.com")


def absolute(readme: str) -> str:
    """The README with its links to files of the repository made absolute, pictures to the files themselves."""
    there = r"\]\((?![a-z]+:|#)([^)\s]+)\)"
    readme = re.sub(
        rf"(!\[[^\]]*{there})",
        lambda found: found[0].replace(f"({found[2]})", f"({PICTURES}/main/{found[2]})"),
        readme,
    )
    return re.sub(there, rf"]({SOURCE}/blob/main/\1)", readme)


setup(
    long_description=absolute((ROOT / "README.md").read_text("utf-8")),
    long_description_content_type="text/markdown",
)
