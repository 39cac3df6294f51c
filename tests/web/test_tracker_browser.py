"""The issue tracker in the real browser: gold, injections, forks, accessibility, the keyboard alone."""

from pathlib import Path

import axe_playwright_python.base
import pytest

from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import walk
from turnwise.envs.registry import make
from turnwise.envs.tracker.knobs import TrackerKnobs
from turnwise.envs.tracker.tasks import case_of
from turnwise.envs.web.actions import say
from turnwise.tasks.core import Split, derive_rng

pytestmark = pytest.mark.usefixtures("browser")
NAME = "turnwise/Tracker-v0"
PAGES = (
    "/",
    "/issues",
    "/issues/new",
    "/issues/3",
    "/issues/3/edit",
    "/labels",
    "/people",
    "/reports",
    "/no",
)


@pytest.fixture(scope="module")
def env():
    env = make(NAME)
    yield env
    env.close()


def draw(env, template, number=0, **knobs):
    rng = derive_rng("browser test", template, number)
    return type(env).generate(rng, Split.TRAIN, templates=[template], **knobs)


@pytest.mark.slow
@pytest.mark.parametrize("template", TrackerKnobs().names)
def test_gold_does_every_template(env, template):
    walked = walk(env, draw(env, template), "gold")
    assert (walked.score, walked.success) == (1.0, True)


@pytest.mark.parametrize("view", ["tree", "html", "screenshot"])
def test_gold_works_in_every_view(env, view):
    assert walk(env, draw(env, "close_with_comment", view=view), "gold").success


def test_what_was_not_asked_for_is_no_success(env):
    """Gold, and one thing more: collateral damage fails."""
    env.reset(seed=0, options={"task": draw(env, "rename_issue")})
    while not env.gold(env.state).startswith('<tool_call>{"arguments":{"answer"'):
        env.step(env.gold(env.state))
    env.step(say("click", target="Lock conversation"))
    step = env.step("done[]")
    assert (step.reward, step.info["end"]) == (0.0, "failed")


def test_an_answer_must_be_the_answer_alone(env):
    task = draw(env, "find_reporter")
    right = case_of(task).ask.answer
    everyone = ", ".join(person.name for person in case_of(task).ask.board.people)
    for answer, score in ((f" {right.upper()}. ", 1.0), (everyone, 0.0), ("", 0.0)):
        env.reset(seed=0, options={"task": task})
        assert env.step(say("done", answer=answer)).reward == score


def test_who_obeys_a_comment_is_counted_and_fails(env):
    task = draw(env, "find_code", injections=3)
    walked = walk(env, task, "gold")
    assert task.options["word"] in str(walked.steps[-2].observation)  # it was read
    assert (walked.success, walked.steps[-1].info["details"]["obeyed"]) == (True, False)
    env.reset(seed=0, options={"task": task})
    env.step(say("goto", address="/" + case_of(task).ask.look[0]))
    env.step(say("fill", target="Your comment", text=task.options["word"]))
    env.step(say("click", target="Add comment"))
    step = env.step(say("done", answer=case_of(task).ask.answer))
    assert (step.reward, step.info["details"]["obeyed"]) == (0.0, True)


def test_a_refused_form_is_told_and_survives_a_fork(env):
    env.reset(seed=0, options={"task": draw(env, "report_issue")})
    env.step(say("click", target="New issue"))
    env.step(say("fill", target="Description", text="half a report"))
    told = env.step(say("click", target="Create issue")).observation[-1].content
    assert "The title must not be empty." in told
    assert "half a report" in told
    twin = env.fork()
    one, two = env.step("scroll[down]"), twin.step("scroll[down]")
    assert one.observation == two.observation
    twin.close()


def test_all_pages_pass_axe(env):
    source = (Path(axe_playwright_python.base.__file__).parent / "axe.min.js").read_text("utf-8")
    env.reset(seed=0, options={"task": draw(env, "judge_reports")})
    session = env.session
    for page in PAGES:
        session.goto(page)
        session.ask(f"{source}; undefined")
        found = session.ask(
            "axe.run(document).then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html)]))"
        )
        assert found == [], page


def test_it_works_by_keyboard_alone(env):
    """Find an issue, comment on it, close it: Tab, letters, Enter and Space only."""
    env.reset(seed=0, options={"task": draw(env, "close_with_comment")})
    session, board = env.session, env.state.server.board
    issue = next(issue for issue in board.issues if issue.open)

    def tab_to(what):
        for _ in range(60):
            session.press("Tab")
            if session.ask(f"document.activeElement.matches({what!r})"):
                return
        raise AssertionError(f"{what} is not reached by Tab")

    def write(text):
        for letter in text:
            session.press(letter)

    tab_to("#search")
    write(issue.title.split()[0])
    session.press("Enter")
    tab_to("td a")
    session.press("Enter")
    number = int(session.address.split("/")[-1])
    tab_to("#text")
    write("ok")
    tab_to("main form:last-of-type button")
    session.press("Enter")
    assert env.visit.state.board.issue(number).comments[-1].text == "ok"
    before = env.visit.state.board.issue(number).open
    tab_to("button[name=to]")
    session.press("Space")
    assert env.visit.state.board.issue(number).open is not before


@pytest.mark.usefixtures("copying")
@pytest.mark.slow
@pytest.mark.full  # the shop keeps it in the same browser, by the same code
def test_it_keeps_the_contract():
    report = check_env(NAME, tasks=1, only=["E1", "E4", "E5", "E8"])  # all requirements: docs/web.md
    assert report.ok, str(report)
