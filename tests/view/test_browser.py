"""The pages in Chromium: by keyboard, with axe in light and dark, and with hostile texts that do nothing."""

from pathlib import Path

import axe_playwright_python.base
import places as made
import pytest
from playwright.sync_api import sync_playwright

from turnwise.agents.log.episodes import load_episodes
from turnwise.tools.browser.chromium import FLAGS, require_chromium
from turnwise.trainers.view.pages import render

pytestmark = [pytest.mark.usefixtures("browser"), pytest.mark.slow]
AXE = (Path(axe_playwright_python.base.__file__).parent / "axe.min.js").read_text("utf-8")
ODD = f"odd {made.HOSTILE[:8]} name"


@pytest.fixture(scope="module")
def chromium(browser):
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(require_chromium()), args=[*FLAGS])
        yield chromium
        chromium.close()


def page_of(chromium, site, **options):
    """A tab that has the cookie, with what its console complains of."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, **options)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{site.address}/?token=the-token")
    complaints = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return page, complaints


def violations(page, *rules):
    """axe's findings, by these rules or all; its source is evaluated by the debugger, which the page's own policy does not bind."""
    page.evaluate(f"if (!window.axe) {{ {AXE} }}; undefined")
    return page.evaluate(
        "rules => axe.run(document, rules.length ? {runOnly: rules} : {})"
        ".then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html).slice(0, 3)]))",
        rules,
    )


def answered(site, place):
    """The address of a question that has its answer."""
    form = [
        ("turn", "1"),
        ("policy", "scripted:gold"),
        ("continuations", "2"),
        ("csrf", site.server.guard.csrf),
    ]
    asked = site.ask(f"{place}/e/1/what-if", form)
    assert asked.status == 303, asked.text
    site.until(asked.headers["Location"], "done after")
    return asked.headers["Location"]


def exported(site, place, folder, query=""):
    """The address of a file that holds a selection, written from what the server sends."""
    file = folder / f"{place[3:]}{len(query)}.html"
    file.write_text(site.get(f"{place}/export{query}"), "utf-8")
    return file.as_uri()


def test_all_pages_pass_axe(chromium, site, tmp_path):
    """In light by every rule; in dark by the contrast of colors, which is all that is different there. No page is wider than its window."""
    run, first, second, odd = (site.place(name) for name in ("nested/trained", "first", "second", ODD))
    page, complaints = page_of(chromium, site)
    both = f"source={first[3:]}&source={second[3:]}"
    site.until(f"/compare?{both}", "significant")
    paths = [
        "/", run, first, odd, f"{run}/episodes", f"{run}/episodes?ended=solved&sort=turns", f"{run}/e/1?rules=1",
        f"{run}/e/1/what-if?turn=1", answered(site, first), f"/side?{both}", f"/compare?{both}", "/help", "/what-ifs",
        "/nothing", site.place("shop-short.json"), f"{site.place('branched')}/e/1", f"{odd}/e/1", f"/side?{both}&show=all", f"{run}/e/3", "/waiting",
    ]  # fmt: skip
    waiting = render("waiting.html.j2", "A table is drawn; 3 s so far.", title="Comparing", live=60)
    page.route("**/waiting", lambda route: route.fulfill(body=waiting, content_type="text/html"))
    files = [exported(site, place, tmp_path, "?turns_to=3") for place in (run, first, odd)]
    files.append(exported(site, first, tmp_path, "?task=none"))
    for address in [*(site.address + path for path in paths), *files]:
        page.goto(address)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        page.wait_for_function("!document.querySelector('details.group[open] noscript')")
        page.emulate_media(color_scheme="light")
        assert violations(page) == [], address
        page.emulate_media(color_scheme="dark")
        assert violations(page, "color-contrast") == [], f"{address} in dark"
        for width in (1280, 420):
            page.set_viewport_size({"width": width, "height": 800})
            beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert beyond <= 0, f"{address} scrolls sideways at {width}"
        page.set_viewport_size({"width": 1280, "height": 800})
    assert [said for said in complaints if "404" not in said] == []
    page.context.close()


def test_hostile_texts_do_nothing(chromium, site, tmp_path):
    page, complaints = page_of(chromium, site)
    dialogs = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message) or dialog.dismiss())
    odd = site.place(ODD)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for path in (
        "/",
        odd,
        f"{odd}/episodes",
        f"{odd}/e/1",
        f"{odd}/e/2",
        f"{odd}/e/1/what-if?turn=1",
        "/?words=" + "<script>",
    ):
        page.goto(site.address + path)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert page.title() != "taken"
        assert page.locator("main").is_visible()
    page.goto(exported(site, odd, tmp_path))
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.locator("article.step").first.wait_for()
    assert page.locator("noscript").count() == 0
    assert page.title() != "taken"
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.step')).display") == "grid"
    )  # its own style is let in
    assert dialogs == complaints == []
    outside = [url for url in asked if not url.startswith((site.address, "file:", "data:"))]
    assert outside == []
    page.context.close()


def test_everything_is_reached_by_keyboard(chromium, site):
    """From the first page to a turn that is played differently, by keys alone."""
    page, complaints = page_of(chromium, site)
    press = page.keyboard.press
    press("/")
    page.keyboard.type("first")
    press("Enter")
    page.wait_for_url("**/?words=first")
    press("j")
    press("Enter")
    page.wait_for_url("**/p/*")
    while not page.evaluate("document.activeElement.matches('a.button')"):
        press("Tab")
    press("Enter")
    page.wait_for_url("**/episodes")
    for key in "jjk":
        press(key)
    assert page.evaluate("document.activeElement.textContent") == "1"
    press("Enter")
    page.wait_for_url("**/e/1")
    press("n")
    page.wait_for_url("**/e/2*")
    press("p")
    page.wait_for_url("**/e/1*")
    for key in "jj":
        press(key)
    assert page.evaluate("document.activeElement.id") == "turn-2"
    press("e")
    assert page.evaluate("[...document.querySelectorAll('main details')].every(one => one.open)")
    press("w")
    page.wait_for_url("**/what-if?turn=2")
    while not page.evaluate("document.activeElement.matches('form.ask button')"):
        press("Tab")
    press("Enter")
    page.wait_for_url("**/what-ifs/*")
    page.locator(".title", has_text="done after").wait_for(timeout=120_000)
    assert "continuations" in page.inner_text("main")
    press("?")
    page.wait_for_url("**/help")
    assert complaints == []
    page.context.close()


def test_pages_are_read_without_scripts(chromium, site):
    page, _ = page_of(chromium, site, java_script_enabled=False)
    page.goto(f"{site.address}{site.place('first')}/episodes")
    page.fill("#search", "buy")
    page.select_option("select[name=ended]", "failed")
    page.click("form.filter button")
    assert "ended=failed" in page.url
    page.click("tbody a")
    assert page.locator("article.step").count() > 1
    page.context.close()


def test_an_exported_file_is_used_by_keyboard(chromium, site, folder, tmp_path):
    """Episodes are built when they are unfolded, by their line in the list or by themselves, and found by their words."""
    page, complaints = page_of(chromium, site)
    episodes = list(load_episodes(folder / "first"))
    page.goto(exported(site, site.place("first"), tmp_path))
    assert page.locator("article.step").count() == 0
    press = page.keyboard.press
    while not page.evaluate("document.activeElement.hash === '#episode-3'"):
        press("Tab")
    press("Enter")
    page.locator("#e3-turn-1").wait_for()
    assert page.evaluate("document.activeElement.parentElement.id") == "episode-3"
    assert page.locator("article.step").count() == len(episodes[2].trajectory.turns)
    press("Enter")
    assert page.evaluate("document.getElementById('episode-3').open") is False
    while not page.evaluate("document.activeElement.matches('#episode-4 > summary')"):
        press("Tab")
    press("Space")
    page.locator("#e4-turn-1").wait_for()
    page.focus("#words")
    prompt = episodes[6].task.prompt
    page.keyboard.type(prompt.upper())
    alike = [episode for episode in episodes if episode.task.prompt == prompt]
    page.locator("#found", has_text=f"{len(alike)} of {len(episodes)}").wait_for()
    assert (
        page.locator("details.group:visible").count()
        == page.locator("tbody tr:visible").count()
        == len(alike)
    )
    page.fill("#words", "article")  # markup is no word
    page.locator("#found", has_text=f"0 of {len(episodes)}").wait_for()
    assert complaints == []
    page.context.close()


def test_an_exported_file_is_read_without_scripts(chromium, site, folder, tmp_path):
    """Every episode stands there whole, and nothing that would need a script is offered."""
    page, _ = page_of(chromium, site, java_script_enabled=False)
    episodes = list(load_episodes(folder / "first"))
    page.goto(exported(site, site.place("first"), tmp_path))
    assert page.locator("article.step").count() == sum(len(one.trajectory.turns) for one in episodes)
    assert page.locator("#words").is_hidden()
    page.locator("#episode-2 > summary").click()
    assert page.locator("#e2-turn-1").is_visible()
    page.context.close()


def test_an_address_of_a_turn_unfolds_its_episode(chromium, site, tmp_path):
    page, complaints = page_of(chromium, site)
    page.goto(f"{exported(site, site.place('first'), tmp_path)}#e5-turn-2")
    page.locator("#e5-turn-2").wait_for()
    assert page.locator("#episode-5[open]").count() == page.locator("details.group[open]").count() == 1
    assert complaints == []
    page.context.close()


def test_what_is_written_appears_while_one_looks(chromium, site, folder):
    from filelock import FileLock

    run = folder / "nested" / "trained"
    rows = (run / "metrics.jsonl").read_text()
    with FileLock(run / ".lock"):
        page, _ = page_of(chromium, site)
        page.goto(site.address + site.place("nested/trained"))
        assert "update 3" in page.inner_text(".title")
        with (run / "metrics.jsonl").open("a") as file:
            file.write('{"update": 4, "phase": "rl", "success": 0.7, "entropy": 0.2}\n')
        page.locator(".title", has_text="update 4").wait_for(timeout=60_000)
        page.context.close()
    (run / "metrics.jsonl").write_text(rows)
