"""`turnwise view` over a log of 100,000 episodes: how long pages take, and how much memory the server has.

    python benchmarks/view.py > benchmarks/view.json            # plays the episodes first (minutes)
    python benchmarks/view.py --log FOLDER > benchmarks/view.json

3,000 episodes are played by a script on shop/quick, and the log holds them over and over with seeds of their own. The server is
`turnwise view` in a process of its own, asked over HTTP; each address is asked five times, and the slowest answer counts. `cpu` has the
processor's seconds that the server took for the same answers, five together divided by five, which a busy machine does not
change. The first page is that of a server that has just been started. Memory is the largest resident set of the server's process that was seen, and that of the indexing process beside it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil

import turnwise
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.machine import describe

EPISODES, PLAYED, TOKEN, REPEATS = 100_000, 3_000, "bench", 5
SUITE, POLICY = "shop/quick", "mix:gold=0.5,random=0.5"
FILTERS = {
    "no filter": "",
    "ended=solved": "ended=solved",
    "words that are rare": "words=leather+mug+purple",
    "words that are in all": "words=buy",
    "part of the reward": "part=outcome&part_is=%E2%89%A5&part_value=0.5",
    "part that is absent": "part=outcome&part_is=%E2%89%A4&part_value=0",
    "knob": "knob=turn_limit&knob_is=%E2%89%A5&knob_value=5",
    "turns": "turns_from=4&turns_to=5",
    "sorted by return": "sort=return&order=down",
    "sorted by turns, last page": "sort=turns&page=2000",
    "all together": "words=buy&ended=failed&part=outcome&part_value=0.3&knob=turn_limit&knob_is=%E2%89%A5&knob_value=1&turns_from=3&sort=turns",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--log", type=Path, help="a folder with a log of that many episodes")
    parser.add_argument("--episodes", type=int, default=EPISODES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="turnwise-view-") as folder:
        log = options.log or Path(folder) / "played"
        if not (log / "episodes.jsonl.zst").exists():
            play(log / "episodes.jsonl.zst", options.episodes)
        load = [round(x, 2) for x in os.getloadavg()]
        figures, cpu = measure(log, Path(folder) / "cache")
    record = {"name": "view", "machine": describe(), "load_before": load, "figures": figures, "cpu": cpu}
    print(json.dumps(record, indent=1))


def play(path: Path, episodes: int) -> None:
    """Play some episodes, and write them again and again, each time with seeds and updates of their own."""
    played = list(turnwise.rollout(SUITE, POLICY, split="test", episodes=min(PLAYED, episodes)))
    with EpisodeLog(path, policy=POLICY, flush_every=64) as log:
        for number in range(episodes):
            episode = played[number % len(played)]
            log.append(replace(episode, seed=number), update=number // 256, group=number // 8 % 32)


def measure(log: Path, cache: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Index the log by opening it, start the server anew, and time its pages; what the filters took of the processor."""
    figures = {"log_megabytes": round((log / "episodes.jsonl.zst").stat().st_size / 1e6, 1)}
    server, port, memory = start(log, cache)
    began = time.perf_counter()
    place, seconds = first_page(port)
    figures["first_page_without_index_s"] = seconds
    while "Indexing" in ask(port, f"{place}/episodes")[1]:
        time.sleep(0.2)
    figures["indexing_s"] = round(time.perf_counter() - began, 1)
    figures |= memory.stop(server)
    figures["index_megabytes"] = round(sum(f.stat().st_size for f in cache.glob("*.sqlite*")) / 1e6, 1)
    server, port, memory = start(log, cache)
    place, figures["first_page_s"] = first_page(port)
    text = ask(port, f"{place}/episodes")[1]
    figures["episodes"] = int(re.sub(r"\D", "", re.findall(r"<b>([\d\s]+)</b>\s+episodes", text)[0]))
    cpu: dict[str, float] = {}
    for name, query in FILTERS.items():
        before = memory.cpu()
        figures[f"{name}_s"] = max(ask(port, f"{place}/episodes?{query}")[0] for _ in range(REPEATS))
        cpu[name] = round((memory.cpu() - before) / REPEATS, 3)
    figures["episode_s"] = max(ask(port, f"{place}/e/{n}")[0] for n in (1, 50_000, 99_999, 77_777, 3))
    figures["server_megabytes"] = memory.stop(server)["server_megabytes"]
    return figures, cpu


class Memory:
    """Watches the largest resident set of a process and of its children."""

    def __init__(self, pid: int) -> None:
        self._process, self._over = psutil.Process(pid), threading.Event()
        self.own = self.child = 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self.own = max(self.own, self._process.memory_info().rss)
            for child in self._process.children():
                try:
                    self.child = max(self.child, child.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue

    def cpu(self) -> float:
        """Seconds that the process itself has taken of the processor."""
        times = self._process.cpu_times()
        return times.user + times.system

    def stop(self, server: subprocess.Popen[str]) -> dict[str, float]:
        """End the server; what both took at most."""
        self._over.set()
        self._thread.join()
        server.terminate()
        server.wait()
        return {
            "server_megabytes": round(self.own / 1e6, 1),
            "indexing_process_megabytes": round(self.child / 1e6, 1),
        }


def start(log: Path, cache: Path) -> tuple[subprocess.Popen[str], int, Memory]:
    command = [
        str(Path(sys.executable).with_name("turnwise")),
        "view",
        str(log),
        "--token",
        TOKEN,
        "--cache",
        str(cache),
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    said = server.stderr.readline()
    found = re.search(r":(\d+)/", said)
    assert found is not None, said + server.stderr.read()
    return server, int(found[1]), Memory(server.pid)


def first_page(port: int) -> tuple[str, float]:
    """The address of the place, and how long its list of episodes took, with all that stands before it."""
    text = ask(port, "/")[1]
    place = re.findall(r"/p/[0-9a-f]{12}", text)[0]
    return place, ask(port, f"{place}/episodes")[0]


def ask(port: int, path: str) -> tuple[float, str]:
    """Seconds, and the page."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    assert answer.status == 200, text
    return round(time.perf_counter() - began, 3), text


if __name__ == "__main__":
    main()
