"""``turnwise view``: the server, its addresses, and what answers them."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import pydantic
from aiohttp import web
from aiohttp.typedefs import Handler
from multidict import MultiDict

from turnwise.cache_folder import cache_folder
from turnwise.doors import Door
from turnwise.errors import TurnwiseError
from turnwise.extras import needing
from turnwise.trainers.view.campaign import campaign_shown
from turnwise.trainers.view.comparing import Comparisons
from turnwise.trainers.view.episodes import episode_shown, episodes_shown
from turnwise.trainers.view.evaluation import evaluation_shown
from turnwise.trainers.view.export import export_pieces
from turnwise.trainers.view.guard import HEADERS, ViewGuard
from turnwise.trainers.view.index import LogIndex
from turnwise.trainers.view.jobs import ForkJob, ForkJobs
from turnwise.trainers.view.overview import overview
from turnwise.trainers.view.pages import grouped, render, script, style
from turnwise.trainers.view.places import ViewedPlace, find_places
from turnwise.trainers.view.run import run_shown
from turnwise.trainers.view.selection import read_selection
from turnwise.trainers.view.sides import side_by_side
from turnwise.trainers.view.what_if import job_shown, question_of, what_if_shown

REFRESH = 3
"""Seconds between two looks at something that is being written."""

_HOST = "127.0.0.1"
_RESCAN_SECONDS = 2.0
_IN_HERE = 8 << 20  # bytes of a log that are indexed in this process; more in one of its own
_PATIENCE = 0.4  # seconds that a page waits for its index
_LONGER = 10.0  # that the page of one episode waits, since without it there is nothing to show
_LARGEST_FORM = 1 << 20
_FORM, _MOST_FIELDS = "application/x-www-form-urlencoded", 1000


class ViewTrust(NamedTuple):
    """Trust in the logs that are viewed when a turn is played otherwise: whatever they say of environments is carried
    out (``trust_log``); files of environments that are not installed (``envs``)."""

    trust_log: bool = False
    envs: tuple[str, ...] = ()


class ViewServer:
    """Server of the places that are viewed, the indexes of their logs, and the questions that are being answered."""

    def __init__(
        self, folders: Sequence[Path], cache: Path, door: Door, trust: ViewTrust | None = None
    ) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self.cache = cache
        self._trust = trust or ViewTrust()
        self.guard = ViewGuard(door)
        self.jobs = ForkJobs()
        self.comparisons = Comparisons()
        self._places: dict[str, ViewedPlace] = {}
        self._scanned = float("-inf")
        self._indexing: dict[str, asyncio.Task[None]] = {}

    def application(self) -> web.Application:
        """The server's routes."""
        app = web.Application(middlewares=[self.guard.middleware, _as_pages], client_max_size=_LARGEST_FORM)
        place, episode = "/p/{place:[0-9a-f]{12}}", "/p/{place:[0-9a-f]{12}}/e/{episode:[0-9]{1,12}}"
        app.add_routes(
            [
                web.get("/", self._overview),
                web.get("/style.css", _style),
                web.get("/view.js", _script),
                web.get("/help", self._help),
                web.get("/compare", self._compare),
                web.get("/side", self._side),
                web.get("/what-ifs", self._what_ifs),
                web.get("/what-ifs/{job:[A-Za-z0-9_-]{1,20}}", self._job),
                web.post("/what-ifs/{job:[A-Za-z0-9_-]{1,20}}/stop", self._stop),
                web.get(place, self._place),
                web.get(f"{place}/episodes", self._episodes),
                web.get(f"{place}/export", self._export),
                web.get(episode, self._episode),
                web.get(f"{episode}/what-if", self._what_if),
                web.post(f"{episode}/what-if", self._ask),
            ]
        )
        app.on_shutdown.append(self._close)
        return app

    async def _close(self, _: web.Application) -> None:
        await self.jobs.close()
        await self.comparisons.close()
        for task in self._indexing.values():
            task.cancel()
        await asyncio.gather(*self._indexing.values(), return_exceptions=True)

    # --- what there is ---------------------------------------------------------------------------

    async def places(self) -> list[ViewedPlace]:
        """Everything under the folders, looked for again every few seconds."""
        if time.monotonic() - self._scanned > _RESCAN_SECONDS:
            found = await asyncio.to_thread(find_places, self.folders)
            self._places = {place.id: place for place in found}
            self._scanned = time.monotonic()
        return list(self._places.values())

    async def place(self, name: str) -> ViewedPlace:
        """The place that an address names.

        Raises:
            HTTPNotFound: there is none.
        """
        if name not in self._places:
            await self.places()
        if name not in self._places:
            raise web.HTTPNotFound(text="There is no such run or evaluation here any more.")
        return self._places[name]

    async def index(self, place: ViewedPlace, patience: float = _PATIENCE) -> LogIndex:
        """The index of a place's log; it is brought up to date meanwhile, for which pages wait a moment only."""
        index = LogIndex(place.log, self.cache)
        task = self._indexing.get(place.id)
        if task is None or task.done():
            progress = await asyncio.to_thread(index.progress)
            if progress.whole:
                return index
            task = asyncio.get_running_loop().create_task(
                self._bring_up(index, progress.size - progress.done)
            )
            self._indexing[place.id] = task
        await asyncio.wait([task], timeout=patience)
        return index

    async def _bring_up(self, index: LogIndex, waiting: int) -> None:
        if waiting <= _IN_HERE:
            await asyncio.to_thread(index.update)
            return
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "turnwise.trainers.view.index", str(index.log), str(self.cache),
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def _of(self, request: web.Request) -> tuple[ViewedPlace, LogIndex]:
        place = await self.place(request.match_info["place"])
        if place.kind == "campaign":
            raise web.HTTPNotFound(text="A campaign's results hold no episodes.")
        return place, await self.index(place, _LONGER if "episode" in request.match_info else _PATIENCE)

    # --- pages -----------------------------------------------------------------------------------

    async def _overview(self, request: web.Request) -> web.Response:
        places = await self.places()
        view = await asyncio.to_thread(overview, self.folders, places, request.query.get("words", ""))
        return _page("overview.html.j2", view, title="Runs and evaluations", live=REFRESH if view.live else 0)

    async def _place(self, request: web.Request) -> web.Response:
        place = await self.place(request.match_info["place"])
        if place.kind == "campaign":
            found = await asyncio.to_thread(campaign_shown, place, await self.places())
            return _page("campaign.html.j2", found, title=place.name, trail=[_step(place)])
        index = await self.index(place)
        if place.kind == "run":
            run = await asyncio.to_thread(run_shown, place, index)
            live = run.activity.live or not run.progress.whole
            return _page(
                "run.html.j2", run, title=place.name, trail=[_step(place)], live=REFRESH if live else 0
            )
        view = await asyncio.to_thread(evaluation_shown, place, index)
        live = view.activity.live or not view.progress.whole
        return _page(
            "evaluation.html.j2", view, title=place.name, trail=[_step(place)], live=REFRESH if live else 0
        )

    async def _episodes(self, request: web.Request) -> web.Response:
        place, index = await self._of(request)
        view = await asyncio.to_thread(episodes_shown, place, index, read_selection(request.query))
        trail = [_step(place), ("episodes", f"/p/{place.id}/episodes")]
        live = 0 if view.progress.whole else REFRESH
        return _page("episodes.html.j2", view, title=f"Episodes of {place.name}", trail=trail, live=live)

    async def _episode(self, request: web.Request) -> web.Response:
        place, index = await self._of(request)
        number, selection = int(request.match_info["episode"]), read_selection(request.query)
        rules = "rules" in request.query
        view = await asyncio.to_thread(episode_shown, place, index, number, selection, rules=rules)
        trail = [_step(place), ("episodes", f"/p/{place.id}/episodes?{selection.address()}")]
        return _page("episode.html.j2", view, title=f"Episode {number} of {place.name}", trail=trail)

    async def _export(self, request: web.Request) -> web.StreamResponse:
        place, index = await self._of(request)
        pieces = export_pieces(place, index, read_selection(request.query))
        piece = await asyncio.to_thread(next, pieces)  # what goes wrong in the beginning still has a page
        name = f"{place.path.name or 'episodes'}.html".encode("ascii", "replace").decode().replace('"', "_")
        answer = web.StreamResponse(
            headers={**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
        )
        answer.content_type, answer.charset = "text/html", "utf-8"
        await answer.prepare(request)
        while piece:
            await answer.write(piece.encode("utf-8", "replace"))
            piece = await asyncio.to_thread(next, pieces, "")
        await answer.write_eof()
        return answer

    async def _compare(self, request: web.Request) -> web.Response:
        places = [await self.place(name) for name in request.query.getall("source", [])]
        unlike = "unlike" in request.query
        drawn = await self.comparisons.page(places, allow_unlike=unlike, patience=_PATIENCE)
        if isinstance(drawn, float):
            said = f"The tasks of the suite are drawn once more for the table by difficulty; {drawn:.0f} s so far."
            return _page("waiting.html.j2", said, title="Comparing", live=1)
        return web.Response(body=drawn, content_type="text/html", charset="utf-8")

    async def _side(self, request: web.Request) -> web.Response:
        places = [await self.place(name) for name in request.query.getall("source", [])]
        if len(places) != 2 or any(place.kind == "campaign" for place in places):
            raise TurnwiseError(f"{len(places)} were chosen.", "Choose two runs or evaluations.")
        left, right = places
        indexes = await self.index(left, _LONGER), await self.index(right, _LONGER)
        progress = [await asyncio.to_thread(index.progress) for index in indexes]
        if not all(one.whole for one in progress):  # tasks of the one would be missing from the other
            done, size = (
                sum(sizes) for sizes in zip(*((one.done, one.size) for one in progress), strict=True)
            )
            said = f"Indexing the logs: {grouped(done)} of {grouped(size)} bytes."
            return _page("waiting.html.j2", said, title="Side by side", live=REFRESH)
        view = await asyncio.to_thread(
            side_by_side,
            (left, right),
            indexes,
            request.query.get("task", ""),
            request.query.get("show", "differ"),
        )
        return _page(
            "side.html.j2", view, title=f"{left.name} and {right.name}", trail=[("side by side", "#main")]
        )

    async def _help(self, request: web.Request) -> web.Response:
        return _page("help.html.j2", None, title="Keys and filters", trail=[("help", "/help")])

    # --- what if ---------------------------------------------------------------------------------

    async def _what_if(self, request: web.Request) -> web.Response:
        place, index = await self._of(request)
        number, places = int(request.match_info["episode"]), await self.places()
        view = await asyncio.to_thread(
            what_if_shown, place, index, number, request.query, places, self.guard.csrf
        )
        return _page("what_if.html.j2", view, title=f"What if, turn {view.turn}", trail=_trail(place, number))

    async def _ask(self, request: web.Request) -> web.Response:
        place, index = await self._of(request)
        fields = await _form(request)
        self.guard.check_form(fields)
        places = await self.places()
        question, origin = await asyncio.to_thread(
            question_of, place, index, int(request.match_info["episode"]), list(fields.items()), places
        )
        job = self.jobs.ask(question.model_copy(update=self._trust._asdict()), origin)
        return web.Response(status=303, headers={"Location": f"/what-ifs/{job.id}"})

    def _job_of(self, request: web.Request) -> ForkJob:
        job = self.jobs.get(request.match_info["job"])
        if job is None:
            raise web.HTTPNotFound(text="This question is not known here any more.")
        return job

    async def _job(self, request: web.Request) -> web.Response:
        job = self._job_of(request)
        if job.task is not None:
            await asyncio.wait([job.task], timeout=_PATIENCE)
        place = await self.place(job.origin.place)
        view = job_shown(job, place, self.guard.csrf)
        title = f"What if, turn {job.question.turn} of episode {job.origin.episode}"
        return _page(
            "job.html.j2",
            view,
            title=title,
            trail=_trail(place, job.origin.episode),
            live=1 if job.running else 0,
        )

    async def _what_ifs(self, request: web.Request) -> web.Response:
        shown = [
            job_shown(job, await self.place(job.origin.place), self.guard.csrf) for job in self.jobs.all()
        ]
        live = REFRESH if any(one.job.running for one in shown) else 0
        return _page("jobs.html.j2", shown, title="What ifs", trail=[("what ifs", "/what-ifs")], live=live)

    async def _stop(self, request: web.Request) -> web.Response:
        job = self._job_of(request)
        self.guard.check_form(await _form(request))
        await self.jobs.stop(job)
        return web.Response(status=303, headers={"Location": f"/what-ifs/{job.id}"})


async def _form(request: web.Request) -> MultiDict[str]:
    """The fields of a form as a page of ours sends it.

    Raises:
        TurnwiseError: it came in another form.
    """
    if request.content_type != _FORM:
        raise TurnwiseError(
            f"The form came as {request.content_type[:60]!r} and not as {_FORM}.",
            "Send it as the page does.",
        )
    text = (await request.read()).decode("utf-8", "replace")
    try:
        return MultiDict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        raise TurnwiseError(
            f"The form cannot be read: {error}.", f"It has at most {_MOST_FIELDS} fields."
        ) from error


def _step(place: ViewedPlace) -> tuple[str, str]:
    return place.name, f"/p/{place.id}"


def _trail(place: ViewedPlace, number: int) -> list[tuple[str, str]]:
    return [
        _step(place),
        ("episodes", f"/p/{place.id}/episodes"),
        (f"episode {number}", f"/p/{place.id}/e/{number}"),
    ]


def _page(template: str, view: object, **frame: Any) -> web.Response:
    text = render(template, view, **frame)
    return web.Response(body=text.encode("utf-8", "replace"), content_type="text/html", charset="utf-8")


async def _style(request: web.Request) -> web.Response:
    return web.Response(text=style(), content_type="text/css")


async def _script(request: web.Request) -> web.Response:
    return web.Response(text=script(), content_type="text/javascript")


@web.middleware
async def _as_pages(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer what goes wrong with a page that says so."""
    try:
        with needing():
            return await handler(request)
    except TurnwiseError as error:
        status, cause, remedy = 400, error.cause, error.remedy
    except pydantic.ValidationError as error:
        status, cause, remedy = 400, str(error.errors()[0]["msg"]), "Go back and write it otherwise."
    except web.HTTPNotFound as error:
        status, cause, remedy = 404, error.text or "There is no such page.", "Begin at the first page."
    text = render("problem.html.j2", (cause, remedy), title="Not possible")
    return web.Response(
        status=status, body=text.encode("utf-8", "replace"), content_type="text/html", charset="utf-8"
    )


@asynccontextmanager
async def opened(
    folders: Sequence[Path],
    *,
    port: int = 0,
    token: str,
    cache: Path | None = None,
    trust: ViewTrust | None = None,
) -> AsyncIterator[ViewServer]:
    """A server that answers on this machine, as long as the context lasts.

    Raises:
        TurnwiseError: a folder is missing, or the port is taken.
    """
    await asyncio.to_thread(find_places, folders)
    listener = _listen(_HOST, port)
    door = Door(_HOST, listener.getsockname()[1], token)
    server = ViewServer(folders, cache or cache_folder("view"), door, trust)
    runner = web.AppRunner(server.application(), access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield server
    finally:
        await runner.cleanup()


async def serve(
    folders: Sequence[Path],
    *,
    port: int = 0,
    token: str,
    cache: Path | None = None,
    trust: ViewTrust | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve until it is interrupted; ``ready`` is called with the address when it answers.

    Raises:
        TurnwiseError: a folder is missing, or the port is taken.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    async with opened(folders, port=port, token=token, cache=cache, trust=trust) as server:
        ready(server.guard.address())
        await stop.wait()


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise TurnwiseError(
            f"Port {port} cannot be used: {error.strerror or error}.", "Choose another with --port."
        ) from error
    return listener
