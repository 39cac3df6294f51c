"""Speed and cost of keyword search: ``python -m turnwise.envs.search.bench --out search.json``.

For each size a world is made and indexed in a process of its own (unless the cache has it), then two fresh
processes open it and search. Queries are those of the gold agent and two or three words of pages, each for
the first time. Seconds are processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from turnwise.cache_folder import cache_folder
from turnwise.envs.keywords import keyword_engine
from turnwise.envs.search.graph import WorldSpec
from turnwise.envs.search.index import words_of
from turnwise.envs.search.library import LocalLibrary, world_library
from turnwise.machine import describe
from turnwise.tasks.core import Json

SIZES = (100_000, 1_000_000)
_QUERIES = 1000


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m turnwise.envs.search.bench", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(arguments)
    report: dict[str, Json] = {
        "name": "search",
        "date": time.strftime("%Y-%m-%d"),
        "load_before": [round(x, 2) for x in os.getloadavg()],
        "machine": describe(),
        "figures": {},
    }
    for size in chosen.sizes:
        report["figures"] |= {f"{name}_{size}": value for name, value in measure(size).items()}
        text = json.dumps(report, indent=2)
        if chosen.out:
            chosen.out.write_text(text + "\n", "utf-8")
    print(json.dumps(report["figures"], indent=2))


def measure(size: int) -> dict[str, Json]:
    """All figures of one size."""
    figures: dict[str, Json] = {}
    spec = WorldSpec.model_validate({"seed": f"bench {size}", "passages": size})
    for folder in (cache_folder() / "search").glob(f"world-{spec.key}-*"):
        shutil.rmtree(folder, ignore_errors=True)
    with _process() as pool:
        figures |= pool.submit(_build, spec).result()
    with _process() as first, _process() as second:
        runs = [pool.submit(_search, spec, seed).result() for seed, pool in enumerate((first, second))]
        figures |= runs[0]
        figures["private_memory"] = runs[1]["private_memory"]
    return figures


def _process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def _build(spec: WorldSpec) -> dict[str, Json]:
    import resource

    started = time.process_time()
    library = world_library(spec)
    seconds = time.process_time() - started
    folder = cache_folder() / f"search/{library.key}"
    disk = sum(file.stat().st_size for file in folder.iterdir())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "build": _figure(seconds, "s"),
        "build_peak_memory": _figure(peak, "MiB"),
        "disk": _figure(disk / 2**20, "MiB"),
    }


def _search(spec: WorldSpec, seed: int) -> dict[str, Json]:
    keyword_engine()  # its import is not what is measured

    before = _private()
    started = time.perf_counter()
    library = world_library(spec)
    opened = time.perf_counter() - started
    figures: dict[str, Json] = {"open": _figure(1000 * opened, "ms")}
    library.index.search("warm", 5)
    for name, queries in _queries(library, Random(seed)).items():
        started = time.process_time()
        for query in queries:
            library.index.search(query, 50)
        figures[f"{name}_queries"] = _figure(len(queries) / (time.process_time() - started), "queries/s")
    figures["private_memory"] = _figure(_private() - before, "MiB")
    return figures


def _queries(library: LocalLibrary, rng: Random) -> dict[str, list[str]]:
    pages = [library.corpus[rng.randrange(len(library))] for _ in range(_QUERIES)]
    words = [words_of(page.text) for page in pages]
    return {
        "title": [page.title for page in pages],
        "three_words": [" ".join(rng.sample(w, min(3, len(w)))) for w in words],
    }


def _private() -> float:
    """Return this process's own memory in MiB: mapped files are shared with others and not counted."""
    import psutil

    memory = psutil.Process().memory_info()
    return (memory.rss - memory.shared) / 2**20


def _figure(value: float, unit: str) -> dict[str, Any]:
    return {"value": float(f"{value:.4g}"), "unit": unit}


if __name__ == "__main__":
    main()
