"""Web applications in this process: aiohttp serves them, a visit's state is an immutable value.

A subclass of :class:`SessionSite` is a pure function ``answer(state, request) → PageReply(next state, page)``, so that
copying a visit copies a reference. One server on a free loopback port serves all visits of a process; a visit is
known by a token in a cookie that scripts cannot read, and nothing is served without one.
"""

from __future__ import annotations

import functools
import os
import secrets
import threading
from abc import abstractmethod
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Generic, NamedTuple, Self, TypeVar

from aiohttp import web

from turnwise.errors import EnvError
from turnwise.tasks.core import Task
from turnwise.tools.browser.threads import LoopThread

State = TypeVar("State")

COOKIE = "turnwise_visit"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class PageRequest(NamedTuple):
    """Request of a page: the path's parts, the query and the form as text."""

    method: str  # GET or POST
    path: tuple[str, ...]
    query: Mapping[str, str]
    form: Mapping[str, str]


class PageReply(NamedTuple, Generic[State]):
    """The visit's next state and what is shown: HTML, or another address to go to (after POST)."""

    state: State
    html: str = ""
    redirect: str = ""
    status: int = 200


class SessionVisit(Generic[State]):
    """A :class:`turnwise.envs.web.site.Visit` of a :class:`SessionSite`."""

    def __init__(self, site: SessionSite[State], state: State) -> None:
        self.site = site
        self.token = secrets.token_urlsafe(24)
        self.state = state

    @property
    def origin(self) -> str:
        return self.site.origin

    @property
    def cookies(self) -> Mapping[str, str]:
        return {COOKIE: self.token}

    @property
    def door(self) -> str:
        """An address for a person's own browser: it sets the cookie and opens the start page."""
        return f"{self.origin}/enter?token={self.token}"

    def capture(self) -> State:
        return self.state

    def revive(self, captured: State) -> None:
        self.state = captured

    def close(self) -> None:
        self.site.forget(self)


class SessionSite(Generic[State]):
    """A web application whose visits are values. Use one per process: :meth:`shared`."""

    package: str  # with the folder `static`, whose files are served to everyone

    def __init__(self) -> None:
        self._visits: dict[str, SessionVisit[State]] = {}
        self._thread: LoopThread | None = None
        self._starting = threading.Lock()
        self._pid = 0
        self._origin = ""

    @classmethod
    def shared(cls) -> Self:
        """This process's site of this class."""
        return _shared(cls)

    # --- what an application is ------------------------------------------------------------------

    @abstractmethod
    def initial(self, task: Task) -> State:
        """The state in which a task begins."""
        raise NotImplementedError

    @abstractmethod
    def answer(self, state: State, request: PageRequest) -> PageReply[State]:
        """The application: pure, quick, and never raising for what a browser can send."""
        raise NotImplementedError

    # --- visits ----------------------------------------------------------------------------------

    def begin(self, task: Task) -> SessionVisit[State]:
        """A new visit."""
        visit = SessionVisit(self, self.initial(task))
        self._start()
        self._visits[visit.token] = visit
        return visit

    def forget(self, visit: SessionVisit[State]) -> None:
        self._visits.pop(visit.token, None)

    @property
    def visits(self) -> int:
        """Number of open visits."""
        return len(self._visits)

    @property
    def origin(self) -> str:
        return self._origin

    # --- the server ------------------------------------------------------------------------------

    def _start(self) -> None:
        with self._starting:
            if self._pid == os.getpid():
                return
            self._visits = {}  # a forked child has its own server and its own visits
            self._thread = LoopThread(f"turnwise-{type(self).__name__}")
            self._origin = self._thread.run(self._serve(), 30)
            self._pid = os.getpid()

    async def _serve(self) -> str:
        application = web.Application(client_max_size=4 * 2**20)
        application.router.add_route("*", "/{path:.*}", self._respond)
        # A query may be long: a text of 50,000 characters is a legal search.
        runner = web.AppRunner(application, access_log=None, max_line_size=2**20, max_field_size=2**20)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        if request.host != self._origin.removeprefix("http://"):
            return _plain("This is not the address of this site.", 421)
        parts = tuple(part for part in request.path.split("/") if part)
        if parts[:1] == ("enter",):
            return self._enter(request.query.get("token", ""))
        if parts[:1] == ("static",):
            return _static(self.package, parts[1:])
        visit = self._visits.get(request.cookies.get(COOKIE, ""))
        if visit is None:
            return _plain("This visit is over, or was never begun.", 403)
        form: Mapping[str, str] = {}
        if request.method == "POST":
            if request.headers.get("Origin", self._origin) != self._origin:
                return _plain("Forms of other sites are not accepted.", 403)
            try:
                form = {name: str(value) for name, value in (await request.post()).items()}
            except (ValueError, LookupError):  # no form, or in letters that nobody knows
                return _plain("This form cannot be read.", 400)
        elif request.method != "GET":
            return _plain("Only GET and POST.", 405)
        reply = self.answer(visit.state, PageRequest(request.method, parts, dict(request.query), form))
        visit.state = reply.state
        if reply.redirect:
            return web.Response(status=303, headers={**_HEADERS, "Location": reply.redirect})
        return web.Response(text=reply.html, status=reply.status, content_type="text/html", headers=_HEADERS)

    def _enter(self, token: str) -> web.Response:
        if token not in self._visits:
            return _plain("This visit is over, or was never begun.", 403)
        response = web.Response(status=303, headers={**_HEADERS, "Location": "/"})
        response.set_cookie(COOKIE, token, httponly=True, samesite="Strict")
        return response


def _plain(text: str, status: int) -> web.Response:
    return web.Response(text=text, status=status, headers=_HEADERS)


@functools.cache
def _static_file(package: str, name: str) -> bytes | None:
    found = files(package).joinpath("static", name)
    return found.read_bytes() if found.is_file() else None


def _static(package: str, parts: tuple[str, ...]) -> web.Response:
    name = parts[0] if len(parts) == 1 else ""
    kind = _TYPES.get(f".{name.rpartition('.')[2]}")
    body = _static_file(package, name) if kind and "/" not in name else None
    if body is None:
        return _plain("There is no such file.", 404)
    return web.Response(body=body, content_type=kind, headers={**_HEADERS, "Cache-Control": "max-age=3600"})


_sites: dict[type[Any], Any] = {}
_sites_lock = threading.Lock()


def _shared(cls: type[Any]) -> Any:
    with _sites_lock:
        if cls not in _sites:
            if not getattr(cls, "package", ""):
                raise EnvError(f"{cls.__name__} names no package.", "Set `package` to where `static/` is.")
            _sites[cls] = cls()
        return _sites[cls]
