"""The state of an episode on a web site: what decisions depend on, the live site, and a copy of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from turnwise.envs.web.site import Visit
from turnwise.tasks.core import Task
from turnwise.tools.browser.looking import View
from turnwise.tools.browser.session import Session, SessionSnapshot


class WebState(NamedTuple):
    """Data for deciding and judging: the server's state, the page as it was shown, the answer given."""

    server: Any
    page: View
    answer: str = ""


class LiveSite(NamedTuple):
    """The live world of an environment: a visit at the server and a browser session."""

    visit: Visit
    session: Session


class WebSnapshot(NamedTuple):
    """A copy of the live world."""

    task: Task
    server: object
    browser: SessionSnapshot
