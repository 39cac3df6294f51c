"""A retrieval server that speaks Search-R1's protocol, over a generated world or a corpus file.

    python -m turnwise.envs.search.server --suite search/standard --split test
    python -m turnwise.envs.search.server --corpus wiki.jsonl --port 8000

``POST /retrieve {"queries": [...], "topk": 3, "return_scores": true}`` answers ``{"result": [[{"document": {"id",
"title", "contents"}, "score"}]]}``, without scores the documents alone. A wrong request is answered with status
400 and the reason.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import pydantic
from aiohttp import web

from turnwise.envs.registry import get_suite
from turnwise.envs.search.index import Hit
from turnwise.envs.search.knobs import SearchKnobs, knobs_of
from turnwise.envs.search.library import LocalLibrary, file_library, world_library
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json, Split

_MOST = 100


class RetrieveRequest(pydantic.BaseModel):
    """Search-R1's request."""

    queries: list[str] = pydantic.Field(max_length=1024)
    topk: int | None = pydantic.Field(None, ge=1, le=_MOST)
    return_scores: bool = False


def application(library: LocalLibrary, *, topk: int = 3, embedder: str = "") -> web.Application:
    """The server's routes over a library; with ``embedder`` it ranks by meaning."""

    async def retrieve(request: web.Request) -> web.Response:
        try:
            asked = RetrieveRequest.model_validate_json(await request.read())
        except pydantic.ValidationError as error:
            return web.json_response(
                {"detail": error.errors(include_url=False, include_input=False)}, status=400
            )
        k = asked.topk or topk
        found = [_hits(library, query, k, embedder) for query in asked.queries]
        return web.json_response(
            {"result": [_documents(library, hits, asked.return_scores) for hits in found]}
        )

    async def health(_: web.Request) -> web.Response:
        return web.json_response({"library": library.key, "passages": len(library)})

    app = web.Application(client_max_size=16 << 20)
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
    chosen = parser.parse_args(arguments)
    try:
        if chosen.corpus:
            library = file_library(chosen.corpus)
        else:
            library = suite_library(chosen.suite, Split(chosen.split), chosen.world)
    except TurnwiseError as error:
        parser.exit(1, f"{error}\n")
    print(f"{library.key}: {len(library)} passages, http://{chosen.host}:{chosen.port}/retrieve", flush=True)
    web.run_app(application(library, topk=chosen.topk, embedder=chosen.semantic), host=chosen.host, port=chosen.port,
                print=None)  # fmt: skip


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
