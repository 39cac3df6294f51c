"""Take the pictures of docs/view.md: `turnwise view` in Chromium, over folders with real runs and evaluations.

    turnwise eval shop/standard --policy scripted:demonstrator --episodes 2000 --out shots/shop-demonstrator
    turnwise eval shop/standard --policy mix:gold=0.8,random=0.2 --episodes 2000 --out shots/shop-mix
    turnwise train search-quick --out shots/search-quick --set updates=40    # while it runs, for the live picture
    turnwise train shop-quick --out shots/shop-quick --set warm_start.episodes=1600 updates=2 evaluate.every=2 log.entropy=true checkpoint.every=1 checkpoint.keep=9
    turnwise credit-quality --run shots/shop-quick --groups 2 --forks 12 --no-processes
    turnwise eval shop/quick --policy command:branching.yaml --model torch:shots/shop-quick/best/model --episodes 8 --out shots/branches
    python scripts/view_screenshots.py shots benchmarks/learning/shop-short.json --out docs/view

`branching.yaml` has `command: [python3, -S, tests/gateway/branching_agent.py]` and `prompt: messages`. The first run that is live (or the first
run) gives the picture of a run and of an episode with its tokens; the first with true advantages that of what credit rules would give; the first
evaluation in which a program branched that of a tree; the first two
evaluations those of an evaluation, a comparison, and a turn that is played differently.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from PIL import Image
from playwright.async_api import Page, async_playwright

from turnwise.tools.browser.chromium import FLAGS, require_chromium
from turnwise.trainers.report.turns import TRUE_TURNS, load_groups
from turnwise.trainers.view.episodes import episode_shown
from turnwise.trainers.view.places import ViewedPlace, activity
from turnwise.trainers.view.selection import Selection, find
from turnwise.trainers.view.server import ViewServer, opened

TOKEN, WIDTH = "pictures", 1240
Shot = Callable[[str, str, int], Awaitable[None]]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=Path("docs/view"))
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="such as: run")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(take(options.folders, options.out, frozenset(options.only)))


async def take(folders: Sequence[Path], out: Path, only: frozenset[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="turnwise-view-") as cache:
        async with (
            opened(folders, token=TOKEN, cache=Path(cache)) as server,
            async_playwright() as playwright,
        ):
            chromium = await playwright.chromium.launch(
                executable_path=str(require_chromium()), args=[*FLAGS]
            )
            page = await chromium.new_page(viewport={"width": WIDTH, "height": 800}, device_scale_factor=1.5)
            page.set_default_timeout(300_000)
            await page.goto(server.guard.address())
            await pictures(server, page, out, only)
            await chromium.close()


async def pictures(server: ViewServer, page: Page, out: Path, only: frozenset[str]) -> None:
    base = f"http://127.0.0.1:{server.guard.door.port}"

    async def shot(name: str, path: str, height: int) -> None:
        if only and name not in only:
            return
        await page.set_viewport_size({"width": WIDTH, "height": height})
        if path:
            await page.goto(base + path)
        await page.screenshot(path=out / f"{name}.png")
        make_small(out / f"{name}.png")
        print(out / f"{name}.png")

    places = await server.places()
    runs = sorted((p for p in places if p.kind == "run"), key=lambda p: not activity(p).live)
    judged = [p for p in places if p.kind == "evaluation"]
    for place in [*runs, *judged]:
        await settled(server, place)
    await shot("overview", "/", 760)
    if runs:
        await shot("run", f"/p/{runs[0].id}", 1120)
        await one_episode(server, runs, shot)
        await measured_episode(server, runs, page, base, shot)
    await tree(server, judged, shot)
    if len(judged) > 1:
        await shot("evaluation", f"/p/{judged[0].id}", 800)
        await shot(
            "episodes",
            f"/p/{judged[0].id}/episodes?words=leather&part=outcome&part_value=0.5&sort=score",
            760,
        )
        await what_if(server, judged[0], page, base, shot)
        sources = f"source={judged[0].id}&source={judged[1].id}"
        await page.goto(f"{base}/compare?{sources}")
        await page.locator("h1", has_text=re.compile("Comparison")).wait_for()
        await shot("comparison", "", 560)
        await shot("side", f"/side?{sources}&task={await differing(page, base, sources)}", 900)
    for place in places:
        if place.kind == "campaign":
            await shot("campaign", f"/p/{place.id}", 900)
            break


def make_small(picture: Path) -> None:
    """256 colors, a third of the size. Median cut, Pillow's default, turns the few orange pixels of a curve brown."""
    with Image.open(picture) as drawn:
        small = drawn.convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(picture, optimize=True)


async def settled(server: ViewServer, place: ViewedPlace) -> None:
    """Wait until a place's log is indexed."""
    index = await server.index(place, patience=300)
    await asyncio.to_thread(index.progress)


async def one_episode(server: ViewServer, runs: Sequence[ViewedPlace], shot: Shot) -> None:
    """The longest episode that was solved, of the first run that has one, with what every rule would give."""
    for run in runs:
        index = await server.index(run)
        found = find(index, Selection(ended="solved", sort="turns", order="down")).rows
        if found:
            await shot("episode", f"/p/{run.id}/e/{found[0].id}", 1080)
            return


async def measured_episode(
    server: ViewServer, runs: Sequence[ViewedPlace], page: Page, base: str, shot: Shot
) -> None:
    """What every rule would give the turns of a measured episode, and the entropies of its first turn's tokens."""
    for run in runs:
        index = await server.index(run)
        for group in load_groups(run.path / TRUE_TURNS):
            for row in find(index, Selection(task=group.task_id, sort="return", order="down")).rows:
                if episode_shown(run, index, row.id, Selection()).shown.truth is None:
                    continue
                await page.goto(f"{base}/p/{run.id}/e/{row.id}?rules=1")
                await page.locator("#turn-1 details.more > summary").click()
                await page.evaluate("scrollTo(0, 0)")
                await shot("credit", "", 1780)
                return


async def tree(server: ViewServer, judged: Sequence[ViewedPlace], shot: Shot) -> None:
    """The longest episode of the first evaluation in which turns do not follow one another."""
    for place in judged:
        index = await server.index(place)
        for row in find(index, Selection(sort="turns", order="down")).rows[:1]:
            if episode_shown(place, index, row.id, Selection()).first.branches:
                await shot("branches", f"/p/{place.id}/e/{row.id}", 1100)
                return


async def what_if(server: ViewServer, place: ViewedPlace, page: Page, base: str, shot: Shot) -> None:
    """The demonstrator goes on, had it not bought at the last turn of a failure but gone back to the results."""
    index = await server.index(place)
    row = find(index, Selection(ended="failed", turns_from="3", sort="score")).rows[0]
    await page.goto(f"{base}/p/{place.id}/e/{row.id}/what-if?turn={row.turns}")
    await page.fill("#action", "click[< prev]")
    await page.select_option("select[name=policy]", "scripted:demonstrator")
    await page.fill("input[name=continuations]", "24")
    await shot("what-if-form", "", 800)
    await page.click("form.ask button")
    await page.locator(".title", has_text="done after").wait_for()
    await shot("what-if", "", 1000)


async def differing(page: Page, base: str, sources: str) -> str:
    """A task that the two did differently."""
    await page.goto(f"{base}/side?{sources}")
    address = await page.locator("tbody a").first.get_attribute("href")
    found = re.search(r"task=([0-9a-f]+)", address or "")
    return found[1] if found else ""


if __name__ == "__main__":
    main()
