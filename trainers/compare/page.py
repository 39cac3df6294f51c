"""A comparison as one HTML page that holds everything: tables, tasks by their ids, pictures."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from jinja2 import StrictUndefined
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

import turnwise
from turnwise.agents.evaluation.summary import percent
from turnwise.errors import TurnwiseError
from turnwise.trainers.compare.comparison import Comparison
from turnwise.trainers.compare.plots import pasted
from turnwise.trainers.compare.table import points, points_interval, sentence, share_interval


def write_page(comparison: Comparison, path: Path) -> Path:
    """Write the page.

    Raises:
        TurnwiseError: the name does not end in .html, or the file cannot be written.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise TurnwiseError(f"--out {path} is no page.", "Give it the ending .html.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(comparison), "utf-8", errors="replace")
    except OSError as error:
        cause = f"Cannot write {path}: {error.strerror or error}."
        raise TurnwiseError(cause, "Choose another place with --out.") from error
    return path


def render(comparison: Comparison) -> str:
    """The page's text."""
    environment = SandboxedEnvironment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "percent": percent,
        "points": points,
        "interval": points_interval,
        "share_interval": share_interval,
    }
    page = environment.from_string(
        (files("turnwise.trainers.compare") / "compare.html.j2").read_text("utf-8")
    )
    css = (files("turnwise.trainers.report") / "report.css").read_text("utf-8")
    return page.render(
        comparison=comparison,
        css=Markup(css),
        pictures=pasted(comparison),
        sentence=lambda contrast, comparisons: sentence(contrast, comparisons).plain,
        version=turnwise.__version__,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
