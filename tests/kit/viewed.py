"""A program for where libraries are missing: it evaluates, asks the viewer for every page once, and
prints a JSON object of each page's status and, where it names one, the extra to install."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from pathlib import Path

import aiohttp

import turnwise
from turnwise.trainers.view.server import opened

PAGES = (
    *("/", "/help", "/what-ifs", "PLACE", "PLACE/episodes", "PLACE/export", "PLACE/e/1", "PLACE/e/1?rules=1"),
    *("PLACE/e/1/what-if?turn=1", "/side?source=FIRST&source=SECOND", "/compare?source=FIRST&source=SECOND"),
)


def evaluate(folder: Path) -> None:
    """An evaluation in a folder, as ``turnwise eval --out`` leaves it."""
    folder.mkdir()
    result = turnwise.evaluate("calc/easy", "scripted:gold", episodes=2, log=folder / "episodes.jsonl.zst")
    (folder / "evaluation.json").write_text(json.dumps(result.to_json(results=True)))
    (folder / "asked.json").write_text(
        json.dumps({"suite": "calc/easy", "policy": "scripted:gold", "split": "test"})
    )


async def ask(folder: Path, cache: Path) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    async with opened([folder], token="some-token", cache=cache) as server:
        first, second = sorted(place.id for place in await server.places())
        origin = f"http://127.0.0.1:{server.guard.door.port}"
        cookies = {server.guard.cookie: "some-token"}
        async with aiohttp.ClientSession(
            origin, cookies=cookies, cookie_jar=aiohttp.CookieJar(unsafe=True)
        ) as session:
            for page in PAGES:
                address = (
                    page.replace("PLACE", f"/p/{first}").replace("FIRST", first).replace("SECOND", second)
                )
                while True:
                    async with session.get(address) as answer:
                        status, text = answer.status, await answer.text()
                    if "The page is here as soon as" not in text:
                        break
                    await asyncio.sleep(0.1)
                extra = re.search(r"pip install &#39;turnwise\[(\w+)\]&#39;", text)
                found[page] = status, extra[1] if extra else ""
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        viewed = Path(place) / "viewed"
        viewed.mkdir()
        evaluate(viewed / "a")
        evaluate(viewed / "b")
        print(json.dumps(asyncio.run(ask(viewed, Path(place) / "cache"))))
