"""A retrieval server that speaks Search-R1's protocol, over a generated world or a corpus file.

    python -m turnwise.envs.search.server --suite search/standard --split test
    python -m turnwise.envs.search.server --corpus wiki.jsonl --port 8000 --token none

``POST /retrieve {"queries": [...], "topk": 3, "return_scores": true}`` answers ``{"result": [[{"document": {"id",
"title", "contents"}, "score"}]]}``, without scores the documents alone. A wrong request is answered with status
400 and the reason, one without the token that the server prints with status 401 (:mod:`turnwise.doors`).
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import pydantic
from aiohttp import web
from aiohttp.typedefs import Handler

from turnwise.doors import Door, open_door
from turnwise.envs.registry import get_suite
from turnwise.envs.search.index import Hit
from turnwise.envs.search.knobs import SearchKnobs, knobs_of
from turnwise.envs.search.library import LocalLibrary, file_library, world_library
from turnwise.envs.search.remote import LONGEST_QUERY
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json, Split
from turnwise.terminal import guard, hand_over

_MOST = 100
_MOST_BYTES = 4 << 20


class RetrieveRequest(pydantic.BaseModel):
    """Search-R1's request."""

    queries: list[Annotated[str, pydantic.Field(max_length=LONGEST_QUERY)]] = pydantic.Field(max_length=1024)
    topk: int | None = pydantic.Field(None, ge=1, le=_MOST)
    return_scores: bool = False


def application(
    library: LocalLibrary, *, topk: int = 3, embedder: str = "", door: Door | None = None
) -> web.Application:
    """The server's routes over a library; with ``embedder`` it ranks by meaning, with ``door`` it asks who comes."""
    thread = ThreadPoolExecutor(1, "turnwise-retrieve")  # the loop answers meanwhile

    async def retrieve(request: web.Request) -> web.Response:
        try:
            asked = RetrieveRequest.model_validate_json(await request.read())
        except pydantic.ValidationError as error:
            return web.json_response(
                {"detail": error.errors(include_url=False, include_input=False)}, status=400
            )
        k = asked.topk or topk

        def find(query: str) -> list[Json]:
            return _documents(library, _hits(library, query, k, embedder), asked.return_scores)

        loop = asyncio.get_running_loop()
        return web.json_response(
            {"result": [await loop.run_in_executor(thread, find, query) for query in asked.queries]}
        )

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"library": library.key, "passages": len(library)})

    @web.middleware
    async def ask(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = door.refuses(request.headers) if door is not None else None
        if refusal is not None:
            return web.json_response({"detail": refusal[1]}, status=refusal[0])
        return await handler(request)

    async def end(_: web.Application) -> None:
        thread.shutdown(wait=False, cancel_futures=True)

    app = web.Application(client_max_size=_MOST_BYTES, middlewares=[ask])
    app.on_cleanup.append(end)
    app.add_routes([web.post("/retrieve", retrieve), web.get("/", health)])
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m turnwise.envs.search.server", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--suite", help="a suite of generated worlds, such as search/standard")
    source.add_argument("--corpus", help="a JSONL file of passages")
    parser.add_argument("--split", default="test", choices=[split.value for split in Split])
    parser.add_argument("--world", type=int, default=0, help="which world of the suite's split")
    parser.add_argument("--semantic", default="", help="rank by an embedder: minilm or ngrams")
    parser.add_argument("--topk", type=int, default=3)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--token", default="", help="that clients must give; random if not given, `none` on this machine"
    )
    chosen = parser.parse_args(arguments)
    guard()
    try:
        door = open_door(chosen.host, chosen.port, chosen.token)
        if chosen.corpus:
            library = file_library(chosen.corpus)
        else:
            library = suite_library(chosen.suite, Split(chosen.split), chosen.world)
    except TurnwiseError as error:
        parser.exit(1, f"{error}\n")
    hand_over(f"{library.key}: {len(library)} passages, {door.address}/retrieve")
    app = application(library, topk=chosen.topk, embedder=chosen.semantic, door=door)
    web.run_app(app, host=chosen.host, port=chosen.port, print=None, access_log=None)


def suite_library(suite: str, split: Split, world: int) -> LocalLibrary:
    """World number ``world`` of a suite's split.

    Raises:
        TurnwiseError: there is no such suite, or its tasks have no such world.
    """
    knobs = knobs_of(get_suite(suite).knobs)
    if not isinstance(knobs, SearchKnobs) or not 0 <= world < knobs.worlds:
        raise TurnwiseError(
            f"{suite} has no world {world} to serve.", "Choose search/standard and --world 0."
        )
    return world_library(knobs.spec(split, world))


def _hits(library: LocalLibrary, query: str, k: int, embedder: str) -> Sequence[Hit]:
    return library.semantic(query, k, embedder) if embedder else library.search(query, k)


def _documents(library: LocalLibrary, hits: Sequence[Hit], scores: bool) -> list[Json]:
    found: list[Any] = []
    for hit in hits:
        passage = library.corpus[hit.position]
        # The position is the id, so that gold passages of tasks mean the same on both sides.
        document = {"id": str(hit.position), "title": passage.title, "contents": passage.contents}
        found.append({"document": document, "score": hit.score} if scores else document)
    return found


if __name__ == "__main__":
    main()
