"""The shop in a real browser: the same as in text mode, usable by people, robust when Chromium dies."""

import os
import signal
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import axe_playwright_python.base
import psutil
import pytest

from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import walk
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.envs.shop.browser import in_browser
from turnwise.envs.shop.site import ShopSite
from turnwise.envs.web.actions import say
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.browser.pool import chromium

pytestmark = pytest.mark.usefixtures("browser")
NAME = "turnwise/ShopBrowser-v0"
ODD = (
    "search[]",
    "click[no such thing]",
    "search[ Red\n  SCARF ]",
    "click[ BACK to search ]",
    "search[é ß 🧣]",
    "buy",
)


def tasks(suite, n, split=Split.DEV):
    return list(suite_tasks(get_suite(suite), split, n))


# --- parity ----------------------------------------------------------------------------------------


def twin_walk(task, script, seed):
    """Play an episode in text mode and the same actions in the browser; the number of steps compared."""
    text, browser = make("turnwise/Shop-v0"), make(NAME)
    rng = derive_rng("parity", task.id, script, seed)
    told, _ = text.reset(seed=seed, options={"task": task})
    seen, _ = browser.reset(seed=seed, options={"task": in_browser(task, "text")})
    assert told == seen
    steps, end = 0, None
    while end is None:
        if script == "gold" and rng.random() < 0.8:
            action = text.gold(text.state)
        else:
            action = rng.choice(ODD if rng.random() < 0.2 else text.admissible(text.state))
        one, two = text.step(action), browser.step(action)
        assert one.observation == two.observation, action
        assert (one.reward, one.info["end"], one.info["details"]) == (
            two.reward,
            two.info["end"],
            two.info["details"],
        )
        assert text.state[1:] == browser.state.server.shop[1:], action
        end, steps = one.info["end"], steps + 1
    browser.close()
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("least", [200, pytest.param(1000, marks=pytest.mark.full)])
def test_many_steps_are_the_same_in_text_and_in_the_browser(least):
    walks = [
        (task, script, seed)
        for suite, n in (("shop/quick", 25), ("shop/easy", 20), ("shop/standard", 15))
        for seed, task in enumerate(tasks(suite, n * least // 1000))
        for script in ("gold", "random")
    ]
    with ThreadPoolExecutor(4) as pool:
        steps = sum(pool.map(lambda arguments: twin_walk(*arguments), walks))
    assert steps >= least


def test_gold_buys_the_right_thing_in_every_view():
    for view in ("tree", "html", "screenshot", "text"):
        env = make(NAME)
        walked = walk(env, in_browser(tasks("shop/standard", 1)[0], view), "gold")
        env.close()
        assert walked.success
        assert bool(walked.first[-1].images) == (view == "screenshot")


def test_a_cart_holds_what_is_bought_and_shares_the_score():
    env, task = make(NAME), in_browser(tasks("shop/easy", 1)[0], checkout=True)
    assert walk(env, task, "gold").success
    env.reset(seed=0, options={"task": task})
    while not env.state.server.cart:
        env.step(env.gold(env.state))
    full = env.snapshot()
    env.step("back[]")
    env.step(say("click", target="Add to Cart"))
    assert len(env.state.server.cart) == 2
    bought = env.step(say("click", target="Place Order"))
    assert (bought.reward, bought.info["end"]) == (0.5, "failed")
    env.restore(full)
    env.step("click[Remove " + env.state.server.cart[0].product.title + " (1)]")
    assert env.state.server.cart == ()
    assert env.step(say("click", target="Place Order")).info["bad_action"]
    env.close()


@pytest.mark.slow
def test_it_keeps_the_contract():
    report = check_env(NAME, tasks=1, only=["E4"])  # all requirements: docs/web.md
    assert report.ok, str(report)


@pytest.mark.usefixtures("copying")
@pytest.mark.slow
@pytest.mark.full
def test_it_tells_nobody_the_answer():
    report = check_env(NAME, tasks=1, only=["E8"])
    assert report.ok, str(report)


# --- one visit cannot see another's ------------------------------------------------------------------


def fetch(address, *, cookie="", host="", method="GET", origin=""):
    headers = {"Cookie": cookie, "Host": host, "Origin": origin}
    asked = urllib.request.Request(address, method=method, headers={k: v for k, v in headers.items() if v})
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_visit_needs_its_token_and_is_seen_by_no_other():
    site = ShopSite.shared()
    first, second = (site.begin(task) for task in tasks("shop/easy", 2))
    page = f"{first.origin}/"
    cookies = [f"turnwise_visit={visit.token}" for visit in (first, second)]
    assert fetch(page)[0] == 403
    assert fetch(page, cookie="turnwise_visit=guess")[0] == 403
    assert fetch(f"{page}enter?token=guess")[0] == 403
    assert fetch(page, cookie=cookies[0], host="evil.example")[0] == 421
    assert fetch(f"{page}buy", cookie=cookies[0], method="POST", origin="http://evil.example")[0] == 403
    assert fetch(f"{page}search?q=lamp", cookie=cookies[0])[0] == 200
    assert first.state.shop.query == "lamp"
    assert second.state.shop.query == ""
    assert second.state.shop.world.task.prompt in fetch(page, cookie=cookies[1])[1]
    for visit in (first, second):
        visit.close()
    assert fetch(page, cookie=cookies[0])[0] == 403


@pytest.mark.parametrize(
    "path", ["item/nonsense", "item/x/y/z", "search?q=lamp&page=0", "search?q=lamp&page=²", "no"]
)
def test_addresses_that_no_page_has_are_answered_and_change_nothing(path):
    visit = ShopSite.shared().begin(tasks("shop/easy", 1)[0])
    before = visit.state
    status, text = fetch(
        f"{visit.origin}/{urllib.request.quote(path, safe='/?=&')}", cookie=f"turnwise_visit={visit.token}"
    )
    assert (status, visit.state) == (404, before)
    assert "There is no such page" in text
    visit.close()


# --- people ----------------------------------------------------------------------------------------


def test_all_pages_pass_axe():
    source = (Path(axe_playwright_python.base.__file__).parent / "axe.min.js").read_text("utf-8")
    env = make(NAME)
    env.reset(seed=0, options={"task": in_browser(tasks("shop/standard", 1)[0])})
    session = env.session
    end = None
    looked = []
    while end is None:
        session.ask(f"{source}; undefined")
        found = session.ask(
            "axe.run(document).then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html)]))"
        )
        assert found == [], session.address
        looked.append(env.state.server.shop.page)
        end = env.step(env.gold(env.state)).info["end"]
    env.close()
    assert {"index", "results", "item"} <= set(looked)


def test_the_shop_works_by_keyboard_alone():
    env = make(NAME)
    env.reset(seed=0, options={"task": in_browser(tasks("shop/easy", 1)[0])})
    session = env.session

    def tab_to(what):
        for _ in range(60):
            session.press("Tab")
            if session.ask(f"document.activeElement.matches({what!r})"):
                return
        raise AssertionError(f"{what} is not reached by Tab")

    tab_to("input[type=search]")
    for letter in "desk":
        session.press(letter)
    session.press("Enter")
    assert session.address == "/search?q=desk"
    for target, key in (
        ("a.result", "Enter"),
        ("button[name=option]", "Space"),
        ("a.tab", "Enter"),
        ("a.button", "Enter"),
    ):
        tab_to(target)
        session.press(key)
    assert session.address == "/"  # the last one was Back to Search
    env.close()


# --- faults and leaks --------------------------------------------------------------------------------


def test_the_run_goes_on_when_chromium_is_killed():
    requests = [Request(in_browser(task), seed) for seed, task in enumerate(tasks("shop/easy", 3))]
    killed = []

    def kill_once(index, moment):
        if index == 1 and len(moment.turns) == 2 and not killed:
            killed.append(chromium().pid)
            os.kill(killed[0], signal.SIGKILL)

    episodes = run_episodes(requests, make_policy("scripted:gold"), concurrency=2, on_branch_point=kill_once)
    assert [episode.end for episode in episodes] == ["solved"] * 3
    assert killed
    assert chromium().pid not in (0, *killed)


def test_episodes_leave_no_contexts_visits_or_processes():
    policy, site = make_policy("scripted:gold"), ShopSite.shared()
    before = site.visits

    def play(n):
        requests = [
            Request(in_browser(task, "text"), seed) for seed, task in enumerate(tasks("shop/quick", n))
        ]
        assert all(episode.success for episode in run_episodes(requests, policy, concurrency=4))
        return len(psutil.Process(chromium().pid).children(recursive=True))

    first = play(8)
    assert play(24) <= first + 1
    assert site.visits == before
