"""An export of many episodes by `turnwise view`: how long it takes, what it weighs, and how a browser opens it.

    python benchmarks/view_export.py 200 2000 10000 > benchmarks/view-export.json

The log is that of benchmarks/view.py, of so many episodes each time. `export` has the seconds until the whole file is here, `cpu` the
server's share of a processor, `server` its largest resident set (it has the log's index too), `told` the size that the list of episodes told
before. Chromium opens the file from the disk, three times as it is (`built_when_unfolded`) and three times with scripts turned off
(`built_at_once`, which is how all files were before), by turns; the middle one of each is here. `opened` is when its page has loaded and was drawn, by the
clock and of the processor (all processes of Chromium's); `unfolded` how long the last episode takes to be opened and laid out; `browser` the
proportional set of its processes then.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
from playwright.sync_api import sync_playwright
from view import ask, first_page, play, start

from turnwise.machine import describe
from turnwise.tools.browser.chromium import FLAGS, require_chromium

_TIMES = 3


def export(folder: Path, episodes: int) -> dict[str, float]:
    """Write a log, and export it whole."""
    play(folder / "episodes.jsonl.zst", episodes)
    server, port, memory = start(folder, folder / "cache")
    place, _ = first_page(port)
    while "Indexing" in ask(port, f"{place}/episodes")[1]:
        time.sleep(0.2)
    told = re.search(r"of about ([\d.]+) MB", ask(port, f"{place}/episodes")[1])
    assert told is not None
    before = memory.cpu()
    seconds, text = ask(port, f"{place}/export")
    cpu = memory.cpu() - before
    (folder / "export.html").write_text(text, "utf-8")
    assert text.count('<details class="group"') == episodes
    size = (folder / "export.html").stat().st_size / 1e6
    return {
        "export_s": round(seconds, 2),
        "cpu_s": round(cpu, 2),
        "megabytes": round(size, 1),
        "told_megabytes": float(told[1]),
        **{name: value for name, value in memory.stop(server).items() if name == "server_megabytes"},
    }


def opened(file: Path, *, scripts: bool) -> dict[str, float]:
    """Open it in Chromium, and unfold its last episode."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(require_chromium()), args=[*FLAGS])
        page = browser.new_context(java_script_enabled=scripts).new_page()
        page.set_default_timeout(300_000)
        processes = [one for one in psutil.Process().children(recursive=True) if one.pid not in before]
        cpu, since = spent(processes), time.perf_counter()
        page.goto(file.as_uri())
        page.screenshot()
        loaded, of_cpu = time.perf_counter() - since, spent(processes) - cpu
        since = time.perf_counter()
        page.locator("details.group > summary").last.click()
        page.locator("article.step").last.wait_for()
        page.screenshot()
        unfolded = time.perf_counter() - since
        memory = sum(one.memory_full_info().pss for one in processes if "chrom" in one.name())
        browser.close()
    return {
        "opened_s": round(loaded, 2),
        "opened_cpu_s": round(of_cpu, 2),
        "unfolded_s": round(unfolded, 2),
        "browser_megabytes": round(memory / 1e6, 1),
    }


def spent(processes: list[psutil.Process]) -> float:
    """Seconds that they have taken of the processor."""
    return sum(sum(one.cpu_times()[:2]) for one in processes if one.is_running())


def both_ways(file: Path) -> dict[str, dict[str, float]]:
    """As it is and without scripts, by turns: the middle of each figure."""
    rows: dict[str, list[dict[str, float]]] = {"built_when_unfolded": [], "built_at_once": []}
    for _ in range(_TIMES):
        for name, kept in rows.items():
            kept.append(opened(file, scripts=name == "built_when_unfolded"))
    return {
        name: {figure: statistics.median(row[figure] for row in kept) for figure in kept[0]}
        for name, kept in rows.items()
    }


def main() -> None:
    figures: dict[str, object] = {}
    load = [round(x, 2) for x in os.getloadavg()]
    for episodes in map(int, sys.argv[1:]):
        with tempfile.TemporaryDirectory(prefix="turnwise-export-") as folder:
            figures[str(episodes)] = {
                **export(Path(folder), episodes),
                **both_ways(Path(folder) / "export.html"),
            }
        print(episodes, figures[str(episodes)], file=sys.stderr, flush=True)
    print(
        json.dumps(
            {"name": "view-export", "machine": describe(), "load_before": load, "figures": figures}, indent=1
        )
    )


if __name__ == "__main__":
    main()
