"""Sessions of the real browser: what one leaves behind, and whether one can hold up another."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from turnwise.tools.browser.checks.server import hostile_site
from turnwise.tools.browser.pool import Chromium, chromium
from turnwise.tools.browser.session import lease
from turnwise.tools.core import ToolError

pytestmark = pytest.mark.usefixtures("browser")
LEAVES = """<h1>Leaves things</h1><script>
const leave = () => {
  localStorage.left = sessionStorage.left = window.name = "left";
  document.cookie = "left=1; path=/; max-age=9999";
};
leave();
addEventListener("pagehide", leave);
addEventListener("unload", leave);
new BroadcastChannel("left").onmessage = leave;
caches?.open("left");
indexedDB.open("left");
history.pushState("left", "", "?left");
</script>"""

FOUND = """(async () => ({
  local: localStorage.length, session: sessionStorage.length, name: window.name, cookies: document.cookie,
  caches: globalThis.caches ? await caches.keys() : [], databases: await indexedDB.databases(),
  history: history.length, came: document.referrer,
}))()"""


@pytest.fixture(scope="module")
def site():
    with hostile_site() as site:
        site.pages["leaves"] = LEAVES
        site.pages["loop"] = "<h1>Loop</h1><script>while (true) {}</script>"
        yield site


def leased(site):
    return closing(lease(chromium(), site.origin))


def test_nothing_of_a_session_is_left_for_the_next_in_its_context(site):
    first = lease(chromium(), site.origin)
    first.goto("/safe")
    clean = first.ask(FOUND)
    first.goto("/attack/leaves")
    dirty = first.ask(FOUND)
    first.close()
    contexts = chromium().contexts
    second = lease(chromium(), site.origin)
    assert chromium().contexts == contexts  # the same one again
    second.goto("/safe")
    found = second.ask(FOUND)
    second.close()
    assert all(dirty[what] for what in ("local", "session", "cookies", "databases", "name"))
    assert found == clean


def test_starting_a_browser_draws_no_random_numbers(site):
    browser, before = Chromium(), random.getstate()
    lease(browser, site.origin).close()
    browser.close()
    assert random.getstate() == before


@pytest.mark.parametrize(("name", "value"), [("_IDLE", 2), ("_SPARE", 1 << 60)])
def test_contexts_that_wait_do_not_pile_up(name, value, monkeypatch):
    """Sites of one episode have an origin of their own, which nobody asks for again."""
    monkeypatch.setattr(f"turnwise.tools.browser.pool.{name}", value)
    browser, most = Chromium(), 2 if name == "_IDLE" else 0
    for port in range(9, 14):
        lease(browser, f"http://127.0.0.1:{port}").close()
    while browser.contexts > most:
        time.sleep(0.02)  # they are cleaned in the background
    assert lease(browser, "http://127.0.0.1:13")._open
    browser.close()


def test_a_page_that_hangs_holds_up_no_other_session(site):
    with leased(site) as hung, leased(site) as other, ThreadPoolExecutor(1) as pool:
        other.goto("/safe")
        waiting = pool.submit(hung.goto, "/attack/loop")
        visits = 0
        while not waiting.done():
            other.goto("/safe")
            visits += not waiting.done()
        assert visits > 0
        with pytest.raises(ToolError, match="stopped working"):
            waiting.result()
