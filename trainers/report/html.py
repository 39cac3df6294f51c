"""Templates to pages that hold everything they show."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

import turnwise
from turnwise.agents.evaluation.summary import percent, percent_interval
from turnwise.trainers.report.episodes import visible

_HERE = "turnwise.trainers.report"


def report_page(template: str, **shown: Any) -> str:
    """A page: what its template is shown, beside the style sheet, the version and the time."""
    environment = SandboxedEnvironment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(lambda name: (files(_HERE) / name).read_text("utf-8")),
    )
    environment.filters |= {
        "percent": percent,
        "interval": percent_interval,
        "signed": signed,
        "visible": visible,
    }
    return environment.get_template(template).render(
        css=Markup((files(_HERE) / "report.css").read_text("utf-8")),
        version=turnwise.__version__,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        **shown,
    )


def signed(value: float) -> str:
    """A number with its sign, as short as two decimals allow.

    >>> signed(0.5), signed(-1), signed(0)
    ('+0.50', '−1.00', '0.00')
    """
    text = f"{value:+.2f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")
