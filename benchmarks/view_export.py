"""An export of many episodes by `turnwise view`: how long it takes, what it weighs, and how a browser opens it.

    python benchmarks/view_export.py 200 2000 10000 > benchmarks/view-export.json

The log is that of benchmarks/view.py, of so many episodes each time. `export` has the seconds until the whole file is here, `cpu` the
server's share of a processor, `server` its largest resident set (it has the log's index too). Chromium opens the file from the disk; `opened` is
when its page has loaded, `unfolded` how long the last episode takes to be opened and laid out, `browser` the proportional set of its processes then.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import psutil
from playwright.sync_api import sync_playwright
from view import ask, first_page, play, start

from turnwise.machine import describe
from turnwise.tools.browser.chromium import FLAGS, require_chromium


def export(folder: Path, episodes: int) -> dict[str, float]:
    """Write a log, and export it whole."""
    play(folder / "episodes.jsonl.zst", episodes)
    server, port, memory = start(folder, folder / "cache")
    place, _ = first_page(port)
    while "Indexing" in ask(port, f"{place}/episodes")[1]:
        time.sleep(0.2)
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
        **{name: value for name, value in memory.stop(server).items() if name == "server_megabytes"},
    }


def opened(file: Path) -> dict[str, float]:
    """Open it in Chromium, and unfold its last episode."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(require_chromium()), args=[*FLAGS])
        page = browser.new_page()
        page.set_default_timeout(300_000)
        since = time.perf_counter()
        page.goto(file.as_uri())
        loaded = time.perf_counter() - since
        since = time.perf_counter()
        page.evaluate(
            "const last = [...document.querySelectorAll('details.group')].at(-1); last.open = true; last.scrollIntoView()"
        )
        page.screenshot()
        unfolded = time.perf_counter() - since
        children = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
        memory = sum(child.memory_full_info().pss for child in children if "chrom" in child.name())
        browser.close()
    return {
        "opened_s": round(loaded, 2),
        "unfolded_s": round(unfolded, 2),
        "browser_megabytes": round(memory / 1e6, 1),
    }


def main() -> None:
    figures: dict[str, dict[str, float]] = {}
    load = [round(x, 2) for x in os.getloadavg()]
    for episodes in map(int, sys.argv[1:]):
        with tempfile.TemporaryDirectory(prefix="turnwise-export-") as folder:
            figures[str(episodes)] = export(Path(folder), episodes)
            figures[str(episodes)] |= opened(Path(folder) / "export.html")
        print(episodes, figures[str(episodes)], file=sys.stderr, flush=True)
    print(
        json.dumps(
            {"name": "view-export", "machine": describe(), "load_before": load, "figures": figures}, indent=1
        )
    )


if __name__ == "__main__":
    main()
