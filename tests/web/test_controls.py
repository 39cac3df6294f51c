"""The attacks of test_hostile.py with the wall taken away that stops each: they succeed, so those tests can fail."""

from types import SimpleNamespace

import pytest

from turnwise.tools.browser import looking, pool, tab, tree, window
from turnwise.tools.browser.checks.attacks import ATTACKS
from turnwise.tools.browser.checks.play import play
from turnwise.tools.browser.checks.server import hostile_site
from turnwise.tools.browser.looking import View
from turnwise.tools.browser.session import Session, lease
from turnwise.tools.browser.tab import Hung, Tab
from turnwise.tools.browser.window import BrowserWindow
from turnwise.tools.core import ToolError

pytestmark = pytest.mark.usefixtures("browser")
NETWORK = ("--disable-quic", "--force-webrtc-ip-handling-policy", "--host-resolver-rules")


def those(*walls):
    chosen = [attack for attack in ATTACKS if attack.wall in walls]
    return pytest.mark.parametrize("attack", chosen, ids=[attack.name for attack in chosen])


@pytest.fixture(scope="module")
def hostile():
    with hostile_site() as site:
        yield site


@pytest.fixture(scope="module")
def walled():
    """A Chromium as all have it, whose contexts are not used again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "_IDLE", 0)
        browser = pool.Chromium()
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def bare(hostile):
    """A session of a Chromium that may go anywhere, keep files and open windows."""
    browser = pool.Chromium()
    own = {**pool.settings(hostile.origin), "service_workers": "allow", "accept_downloads": True}
    del own["proxy"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "FLAGS", [flag for flag in pool.FLAGS if not flag.startswith(NETWORK)])
        patch.setattr(pool, "UNWANTED", ())
        patch.setattr(pool, "settings", lambda _: own)
        session = lease(browser, hostile.origin)
    yield session
    session.close()
    browser.close()


@pytest.fixture
def session(hostile, walled):
    session = lease(walled, hostile.origin)
    yield session
    session.close()


@those("address check")
def test_without_the_check_of_addresses_it_is_opened(hostile, session, attack, monkeypatch):
    monkeypatch.setattr(BrowserWindow, "allowed", lambda self, address: True)
    problem = play(hostile, session, attack).problem
    assert "was not refused" in problem or "stayed open" in problem


@those("quotes")
def test_a_tree_without_quotes_shows_an_order_as_its_own(hostile, session, attack, monkeypatch):
    monkeypatch.setattr(tree, "json", SimpleNamespace(dumps=lambda text, **_: text))
    assert "outside of quotes" in play(hostile, session, attack).problem


@those("pruning")
def test_a_view_of_all_that_a_page_holds_shows_an_order_that_nobody_sees(
    hostile, session, attack, monkeypatch
):
    def look(self, kind="tree"):
        whole = "[...document.childNodes].map(node => node.nodeValue ?? node.outerHTML).join('')"
        return View(self.address, "Safe", self.ask(whole))

    monkeypatch.setattr(Session, "look", look)
    assert "what nobody sees" in play(hostile, session, attack).problem


@pytest.mark.slow
@pytest.mark.full
@those("replacement")
def test_a_session_that_keeps_its_page_is_lost(hostile, session, attack, monkeypatch):
    async def told_only(self, work):
        try:
            return await work
        except Hung as hung:
            raise ToolError(str(hung)) from hung

    monkeypatch.setattr(Session, "_guarded", told_only)
    monkeypatch.setattr(tab, "HANG", 1.5)
    monkeypatch.setattr(pool, "_CLEANING", 1.0)
    assert "the next turn" in play(hostile, session, attack).problem


@pytest.mark.slow
@pytest.mark.full
@those("dialogs")
def test_a_dialog_that_nobody_answers_holds_the_page(hostile, walled, attack, monkeypatch):
    async def ignore(self, dialog):
        pass

    monkeypatch.setattr(Tab, "_answer", ignore)
    monkeypatch.setattr(tab, "HANG", 1.5)
    session = lease(walled, hostile.origin)
    outcome = play(hostile, session, attack)
    session.close()
    assert outcome.problem or "stopped working" in outcome.seen


@pytest.mark.slow
@pytest.mark.full
@those("patience")
def test_only_patience_ends_the_turn(hostile, session, attack, monkeypatch):
    """No clock can fail this on a slow machine: a turn that something else ended would be shorter."""
    patience = 4.0
    monkeypatch.setattr(tab, "PATIENCE", patience)
    monkeypatch.setattr(tab, "HANG", patience)
    assert play(hostile, session, attack).seconds > 0.9 * patience


@pytest.mark.slow
@pytest.mark.full
@those("element limit")
def test_without_a_limit_the_page_is_lost(hostile, session, attack, monkeypatch):
    monkeypatch.setattr(looking, "ELEMENTS", 10**9)
    monkeypatch.setattr(tab, "HANG", 1.0)
    outcome = play(hostile, session, attack)
    assert outcome.problem or "stopped working" in outcome.seen


@those("own world")
def test_in_the_page_s_own_world_our_script_breaks(hostile, session, attack, monkeypatch):
    send = Tab.send

    async def without_world(self, method, arguments=None):
        return await send(self, method, {k: v for k, v in (arguments or {}).items() if k != "contextId"})

    monkeypatch.setattr(Tab, "send", without_world)
    outcome = play(hostile, session, attack)
    assert outcome.problem or "stopped working" in outcome.seen


# Last, because these leave pages open that go on sending.


@those("proxy")
def test_without_the_proxy_it_leaves(hostile, bare, attack):
    assert "something left" in play(hostile, bare, attack).problem


@those("downloads")
def test_a_browser_that_keeps_files_takes_it(hostile, bare, attack):
    assert "MiB of a file" in play(hostile, bare, attack).problem


@those("tab limit")
def test_without_a_limit_all_windows_open(hostile, bare, attack, monkeypatch):
    monkeypatch.setattr(window, "TABS", 25)
    play(hostile, bare, attack)
    assert len(bare.look().tabs) > 20
