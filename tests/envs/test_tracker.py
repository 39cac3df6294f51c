"""The issue tracker without a browser: its forms, its tasks, its pages."""

from collections import Counter

import pytest

from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.envs.tracker.actions import RefusedForm, submit
from turnwise.envs.tracker.content import make_board
from turnwise.envs.tracker.knobs import TrackerKnobs
from turnwise.envs.tracker.site import TrackerSite
from turnwise.envs.tracker.solver import sheet_of
from turnwise.envs.tracker.state import IssueFilter, Stay
from turnwise.envs.tracker.task_templates import TEMPLATES
from turnwise.envs.tracker.tasks import case_of, draw_task
from turnwise.envs.web.sessions import PageRequest
from turnwise.envs.worlds.knobs import check_knobs, first_drawn
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task, derive_rng

NAMES = TrackerKnobs().names


def draw(template, number=0, split=Split.TRAIN, **knobs):
    chosen = TrackerKnobs(templates=(template,), **knobs)
    rng = derive_rng("test", template, number)
    return first_drawn(lambda rng: draw_task(rng, split, chosen), rng, split, "tracker")


def get(state, path, **query):
    return TrackerSite().answer(state, PageRequest("GET", tuple(path.split("/")) if path else (), query, {}))


def post(state, path, **form):
    return TrackerSite().answer(state, PageRequest("POST", tuple(path.split("/")), {}, form))


def test_there_are_twenty_templates_in_four_kinds():
    assert list(TEMPLATES) == ["create", "edit", "find", "moderate"]
    assert len(set(NAMES)) == len(NAMES) == 20


@pytest.mark.parametrize("template", NAMES)
def test_each_template_asks_for_a_change_or_an_answer_and_never_for_nothing(template):
    prompts = set()
    for number in range(5):
        task = draw(template, number)
        case = case_of(task)
        assert bool(case.ask.wanted) != bool(case.ask.answer)
        for before, after in zip(case.boards, case.boards[1:], strict=False):
            assert before != after
        assert len(set(case.boards)) == len(case.boards)
        prompts.add(task.prompt)
    assert len(prompts) >= 3 or template in ("judge_reports", "find_busiest")  # only their boards differ


@pytest.mark.parametrize("template", NAMES)
def test_what_is_wanted_can_be_done_by_the_pages_own_forms(template):
    """Every wanted form has its page, its controls stand there by their labels, and sending it leads on."""
    case = case_of(draw(template))
    state = Stay(case.ask.board)
    for form in case.ask.wanted:
        path, fields = form
        sheet = sheet_of(form, state.board)
        page = get(state, sheet.page.strip("/"))
        assert page.status == 200
        assert sheet.button in page.html
        assert all(name in page.html for name in sheet.controls)
        state = post(state, path, **fields).state
    assert state.board == case.boards[-1]


def test_answers_are_right_by_another_way_of_counting():
    for number in range(5):
        task = draw("count_issues", number)
        case, words = case_of(task), task.prompt.split()
        status, label = words[2], words[words.index("label") + 1].rstrip("?")
        page = get(Stay(case.ask.board), "issues", status=status, label=label).html
        assert f"{case.ask.answer} found" in page
        busiest = case_of(draw("find_busiest", number))
        counts = Counter(
            issue.assignee for issue in busiest.ask.board.issues if issue.open and issue.assignee
        )
        assert all(counts[busiest.ask.answer] > counts[name] for name in counts if name != busiest.ask.answer)


def test_splits_share_no_board_whatever_the_generator_is():
    seeds = [{draw("rename_issue", number, split).options["seed"] for number in range(20)} for split in Split]
    assert len(set.union(*seeds)) == 60


def test_forms_that_cannot_be_taken_say_why_and_keep_what_was_typed():
    board = make_board("x", 6, 2)
    state = Stay(board)
    reply = post(state, "issues/new", page="/issues/new", title=" ", text="kept words")
    assert (reply.redirect, reply.state.board) == ("/issues/new", board)
    page = get(reply.state, "issues/new").html
    assert 'role="alert"' in page
    assert "The title must not be empty." in page
    assert "kept words" in page
    assert get(get(reply.state, "labels").state, "issues/new").html.count("kept words") == 0
    for path, form in (
        (("issues", "1", "duplicate"), {"of": "1"}),
        (("issues", "1", "duplicate"), {"of": "99"}),
        (("issues", "1", "edit"), {"priority": "extreme"}),
        (("issues", "1", "edit"), {"assignee": "mallory"}),
        (("labels",), {"name": board.labels[0].name}),
        (("issues", "2", "comment"), {"text": "\r\n"}),
    ):
        with pytest.raises(RefusedForm):
            submit(board, path, form)


def test_a_locked_conversation_takes_no_comment_and_others_comments_no_edits():
    case = case_of(draw("stop_spammer"))
    board, (path, _) = case.ask.board, case.ask.wanted[0]
    locked = submit(board, ("issues", "1", "lock"), {"to": "locked"})
    with pytest.raises(RefusedForm, match="locked"):
        submit(locked, ("issues", "1", "comment"), {"text": "hello"})
    with pytest.raises(RefusedForm, match="own"):
        submit(board, path.split("/"), {"text": "mine now"})


def test_a_renamed_label_is_renamed_on_every_issue():
    board = make_board("y", 12, 1)
    old = board.labels[0].name
    assert any(old in issue.labels for issue in board.issues)
    after = submit(board, ("labels", old), {"name": "fresh"})
    assert not any(old in issue.labels for issue in after.issues)
    assert [old in issue.labels for issue in board.issues] == [
        "fresh" in issue.labels for issue in after.issues
    ]


@pytest.mark.parametrize(
    "path", ["no", "issues/0", "issues/99", "issues/²", "issues/1/comments/9", "labels/none", "issues/1/x"]
)
def test_addresses_that_no_page_has_are_answered_and_change_nothing(path):
    state = Stay(make_board("x", 6, 2))
    for reply in (get(state, path), post(state, path, to="closed", page="/issues")):
        assert (reply.status, reply.state.board) == (404, state.board)


def test_a_form_leads_nowhere_else():
    state = Stay(make_board("x", 6, 2))
    for page in ("//evil.example/", "https://evil.example/", "javascript:alert(1)"):
        assert post(state, "issues/1/lock", to="locked", page=page).redirect == "/"


def test_what_people_write_is_shown_as_text():
    state = post(Stay(make_board("x", 6, 2)), "issues/1/comment", text="<script>alert(1)</script>").state
    page = get(state, "issues/1").html
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_the_list_is_filtered_and_cut_into_pages():
    board = make_board("z", 24, 1)
    first, last = (get(Stay(board), "issues", page=number).html for number in ("1", "99"))
    assert "page 1 of 3" in first
    assert "page 3 of 3" in last
    high = IssueFilter(priority="high", status="open")
    assert all(issue.open and issue.priority == "high" for issue in board.issues if high.admits(issue))
    assert (
        f"{sum(map(high.admits, board.issues))} found"
        in get(Stay(board), "issues", priority="high", status="open").html
    )


def test_injections_stand_where_the_agent_reads_and_ask_for_what_was_not_asked():
    task = draw("find_code", injections=2)
    case = case_of(task)
    read = case.ask.board.issue(case.ask.look[0].split("/")[1])
    assert task.options["word"] in read.comments[-1].text
    assert task.options["word"] not in task.prompt


def test_a_board_serves_other_environments_tasks_but_no_forged_ones():
    task = draw("find_busiest")
    other = Task("me/CloseStale-v0", "Close every open issue of low priority.", task.options, task.gold)
    assert TrackerSite().initial(other).board == case_of(task).ask.board
    with pytest.raises(EnvError, match="Another version"):
        case_of(Task(task.env, "Something else.", task.options, task.gold))
    with pytest.raises(EnvError, match="no task of"):
        case_of(Task(task.env, task.prompt, {}, task.gold))


def test_suites_mix_templates_and_knobs_are_checked():
    seen = {task.options["template"] for task in suite_tasks(get_suite("tracker/all"), Split.TEST, 60)}
    assert len(seen) >= 15
    with pytest.raises(EnvError, match="templates"):
        check_knobs(TrackerKnobs, {"templates": ["no such"]}, "tracker")
