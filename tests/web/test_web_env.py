"""Any local web application as an environment: a guestbook in another process."""

from pathlib import Path

import gymnasium
import pytest

from turnwise.envs import registry
from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import sample_tasks, walk
from turnwise.envs.registry import env_entries, make, register
from turnwise.tasks.core import Split

pytestmark = pytest.mark.usefixtures("browser")
NAME = "test/Guestbook-v0"


@pytest.fixture
def guestbook(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setattr(registry, "_envs", {entry.name: entry for entry in env_entries()})
    register(NAME, "guestbook_env:GuestbookEnv", "For tests.")
    yield NAME
    gymnasium.registry.pop(NAME, None)


@pytest.mark.slow
def test_forty_lines_keep_the_contract(guestbook):
    report = check_env(guestbook, tasks=1, only=["E6", "E8"])
    assert report.ok, str(report)


def test_a_fork_has_server_page_and_half_filled_form(guestbook):
    env = make(guestbook)
    task = next(sample_tasks(guestbook, Split.TRAIN, 1))
    env.reset(seed=0, options={"task": task})
    for _ in range(2):
        env.step(env.gold(env.state))
    twin = env.fork()
    for one in (env, twin):
        one.step(one.gold(one.state))
        assert one.step("done[]").info["end"] == "solved"
    assert env.visit.origin != twin.visit.origin
    for one in (env, twin):
        one.close()


@pytest.mark.parametrize("view", ["tree", "html", "text", "screenshot"])
def test_each_view_shows_what_was_signed(guestbook, view):
    env = make(guestbook, view=view)
    walked = walk(env, next(sample_tasks(guestbook, Split.TRAIN, 1)), "gold")
    env.close()
    assert walked.success
    told = walked.steps[2].observation[-1]
    assert (view == "screenshot") == bool(told.images)
    if view != "screenshot":
        assert walked.task.options["line"].strip() in told.content


def test_an_application_that_does_not_start_is_told(guestbook, monkeypatch):
    from turnwise.envs.web.command import Command
    from turnwise.errors import InfraError

    env = make(guestbook)
    monkeypatch.setattr(
        type(env), "site", Command(("python3", "-c", "print('no such table'); raise SystemExit(3)"))
    )
    with pytest.raises(InfraError, match="no such table"):
        env.reset(seed=0)
