"""Templates to pages. Everything is escaped; what a page shows is passed to it as one value."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

import turnwise
from turnwise.agents.evaluation.summary import percent, percent_interval
from turnwise.trainers.report.episodes import visible
from turnwise.trainers.view import drawing
from turnwise.trainers.view.told import peek

_HERE = "turnwise.trainers.view"
_TINTS = 8


def render(template: str, view: object, **frame: Any) -> str:
    """A page: ``view`` is what it shows, ``frame`` what every page has (title, trail, whether it is live)."""
    return "".join(render_pieces(template, view, **frame))


def render_pieces(template: str, view: object, **frame: Any) -> Iterator[str]:
    """A page piece by piece, of which none is made before it is asked for."""
    return _environment().get_template(template).generate(view=view, **({"live": 0, "trail": ()} | frame))


@functools.cache
def style() -> str:
    """The style sheet: the report's, and what pages have beside it."""
    report = (files("turnwise.trainers.report") / "report.css").read_text("utf-8")
    return f"{report}\n{_text('view.css')}"


def inline_hash(text: str) -> str:
    """By which a page's policy lets a style sheet or a script in, where it stands between line breaks inside the page."""
    return base64.b64encode(hashlib.sha256(f"\n{text}\n".encode()).digest()).decode()


@functools.cache
def script() -> str:
    """The script of all pages."""
    return _text("view.js")


@functools.cache
def unfolding() -> str:
    """The script of an exported file, which builds an episode when it is unfolded."""
    return _text("export.js")


@functools.cache
def _environment() -> SandboxedEnvironment:
    environment = SandboxedEnvironment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: _text(f"templates/{name}")),
    )
    environment.filters |= {
        "percent": percent,
        "interval": percent_interval,
        "signed": signed,
        "short": drawing.short,
        "visible": visible,
        "grouped": grouped,
        "megabytes": megabytes,
        "peek": peek,
    }
    environment.globals |= {
        "bar": drawing.bar,
        "share_bar": drawing.share_bar,
        "tint": tint,
        "version": turnwise.__version__,
        "now": lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "css": lambda: Markup(style()),
        "css_hash": lambda: inline_hash(style()),
        "unfold": lambda: Markup(unfolding()),
        "unfold_hash": lambda: inline_hash(unfolding()),
    }
    return environment


def _text(name: str) -> str:
    return (files(_HERE) / name).read_text("utf-8")


def signed(value: float) -> str:
    """A number with its sign, in three digits at most behind the point; what is only rounding is 0.

    >>> [signed(x) for x in (0.5, -1, 0, 0.0004, 12.3456, 2e-16)]
    ['+0.5', '−1', '0', '+0.0004', '+12.346', '0']
    """
    if abs(value) < 1e-12:
        return "0"
    text = f"{value:+.3f}".rstrip("0").rstrip(".") if abs(value) >= 0.001 else f"{value:+.1g}"
    return text.replace("-", "−")


def grouped(number: int) -> str:
    """A count, with its thousands set apart.

    >>> grouped(100000)
    '100 000'
    """
    return f"{number:,}".replace(",", " ")


def megabytes(size: int) -> str:
    """A number of bytes as people read it, in two digits.

    >>> [megabytes(size) for size in (38_400, 960_000, 9_960_000, 13_314_029, 1_234_567_890)]
    ['0.1 MB', '1.0 MB', '10 MB', '13 MB', '1 200 MB']
    """
    millions = max(0.1, size / 1e6)
    return f"{millions:.1f} MB" if millions < 9.95 else f"{grouped(int(float(f'{millions:.2g}')))} MB"


def tint(value: float, largest: float) -> str:
    """The class that tints a cell: ``up3`` or ``down8``, by the value's share of the largest; none for 0."""
    step = round(_TINTS * min(1.0, abs(value) / largest)) if largest else 0
    return f"{'up' if value > 0 else 'down'}{step}" if step else "none"
