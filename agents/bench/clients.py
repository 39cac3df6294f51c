"""The clients of ``turnwise bench gateway``: a program of the standard library alone that talks in many sessions at once."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

FIRST = "Session {}: which of the scarves is the warmest, and what does it cost with shipping?"
NEXT = (
    "That was answer {}. The page shows ten more products: look at the next one, and say what speaks for it."
)


class Waited(NamedTuple):
    """Waiting times of clients for each reply, by session, and the time until the first of them asked, in seconds."""

    seconds: Sequence[Sequence[float]]
    starting: float


async def talk(url: str, key: str, number: int, replies: int) -> list[float]:
    """One session; the seconds of each reply."""
    at = urlsplit(url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    messages = [{"role": "user", "content": FIRST.format(number)}]
    took: list[float] = []
    for n in range(replies):
        body = json.dumps({"model": "bench", "messages": messages}).encode()
        head = f"POST {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\nAuthorization: Bearer {key}\r\n"
        began = time.perf_counter()
        writer.write(
            f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        answer = json.loads(await read(reader))
        took.append(time.perf_counter() - began)
        messages += [answer["choices"][0]["message"], {"role": "user", "content": NEXT.format(n)}]
    writer.close()
    return took


async def read(reader: asyncio.StreamReader) -> bytes:
    """The body of an answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = next(line.partition(":")[2] for line in head.splitlines() if line.startswith("content-length"))
    body = await reader.readexactly(int(length))
    if " 200 " not in head.splitlines()[0]:
        raise SystemExit(f"{head.splitlines()[0]}: {body[:300]!r}")
    return body


async def main() -> None:
    told = json.load(sys.stdin)
    began = time.time()
    talks = (talk(url, key, n, told["replies"]) for n, (url, key) in enumerate(told["urls"]))
    seconds = await asyncio.gather(*talks)
    json.dump({"began": began, "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
