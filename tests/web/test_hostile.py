"""Hostile pages in the real browser: nothing leaves, no tool fires by itself, nothing costs more than a turn."""

import socket

import psutil
import pytest

from turnwise.tools.browser.checks.attacks import ATTACKS, BrowserAttack
from turnwise.tools.browser.checks.play import play
from turnwise.tools.browser.checks.server import hostile_site
from turnwise.tools.browser.pool import chromium
from turnwise.tools.browser.session import lease

pytestmark = pytest.mark.usefixtures("browser")
ENDLESS = [attack for attack in ATTACKS if attack.holds == "one turn"]
QUICK = [attack for attack in ATTACKS if attack.holds != "one turn"]


@pytest.fixture(scope="module")
def hostile():
    with hostile_site() as site:
        yield site


@pytest.fixture(scope="module")
def session(hostile):
    session = lease(chromium(), hostile.origin)
    yield session
    session.close()


def test_the_place_outside_notices_whoever_comes(hostile):
    """Else none of these tests could fail."""
    hostile.reached.clear()
    host, _, port = hostile.outside.partition(":")
    with socket.create_connection((host, int(port)), 5) as door:
        door.sendall(b"GET /leak\r\n\r\n")
        door.recv(10)
    assert "GET /leak" in "".join(hostile.reached)
    hostile.reached.clear()


def test_a_browser_without_the_wall_would_leak(hostile):
    """The same pages do leave where the place outside is the session's own origin: the wall is what stops them."""
    session = lease(chromium(), f"http://{hostile.outside}")
    hostile.reached.clear()
    session.goto("/leak")
    session.close()
    assert any("GET /leak" in text for text in hostile.reached)


@pytest.mark.slow
@pytest.mark.parametrize("attack", QUICK, ids=[attack.name for attack in QUICK])
def test_pages_reach_nothing_and_are_only_read(hostile, session, attack):
    assert play(hostile, session, attack).problem == ""


@pytest.mark.slow
@pytest.mark.parametrize("attack", ENDLESS, ids=[attack.name for attack in ENDLESS])
def test_crashing_and_endless_pages_cost_one_turn(hostile, session, attack):
    outcome = play(hostile, session, attack)
    assert outcome.problem == ""


@pytest.mark.parametrize("name", ["redirect hops", "web socket", "order in comment"])
def test_the_first_of_each_kind(hostile, session, name):
    attack = next(attack for attack in ATTACKS if attack.name == name)
    assert play(hostile, session, attack).problem == ""


def test_the_check_sees_what_gets_through(hostile, session):
    """A page that is on the site counts as shown where a refusal is claimed."""
    attack = BrowserAttack("goto safe", 100, "an own page", "refused", address="/safe")
    assert "was not refused" in play(hostile, session, attack).problem


def test_chromium_listens_nowhere_and_looks_up_no_names(session):
    root = psutil.Process(chromium().pid)
    flags = " ".join(root.cmdline())
    assert "--remote-debugging-pipe" in flags
    assert "--remote-debugging-port" not in flags
    assert "MAP * ~NOTFOUND" in flags
    for process in (root, *root.children(recursive=True)):
        listening = [one for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
        assert listening == []
