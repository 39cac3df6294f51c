"""The issue tracker's pages. Addresses say which page it is; forms change the board (actions.py)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined

from turnwise.envs.tracker.actions import RefusedForm, submit
from turnwise.envs.tracker.state import PRIORITIES, Issue, IssueFilter, Stay, TrackerBoard
from turnwise.envs.tracker.tasks import case_of
from turnwise.envs.web.sessions import PageReply, PageRequest, SessionSite
from turnwise.tasks.core import Task

PER_PAGE = 10


class TrackerSite(SessionSite[Stay]):
    """The web site of all tracker tasks of this process."""

    package = "turnwise.envs.tracker"

    def initial(self, task: Task) -> Stay:
        return Stay(case_of(task).ask.board)

    def answer(self, state: Stay, request: PageRequest) -> PageReply[Stay]:
        if request.method == "POST":
            return _posted(state, request)
        address = "/" + "/".join(request.path)
        if state.page != address:
            state = Stay(state.board)
        made = _page(state.board, request)
        if made is None:
            return PageReply(state, _render(state, "missing", "No such page", {}), status=404)
        return PageReply(state, _render(state, *made))


def _posted(state: Stay, request: PageRequest) -> PageReply[Stay]:
    here = request.form.get("page", "/")
    if not here.startswith("/") or here.startswith("//"):
        here = "/"
    try:
        board = submit(state.board, request.path, request.form)
    except RefusedForm as refused:
        return PageReply(
            Stay(state.board, str(refused), here, tuple(request.form.items())), redirect=quote(here)
        )
    if board is None:
        return PageReply(state, _render(state, "missing", "No such page", {}), status=404)
    return PageReply(Stay(board), redirect=quote(_after(board, request, here)))


def _after(board: TrackerBoard, request: PageRequest, here: str) -> str:
    """Return the page that a form leads to."""
    match request.path:
        case ("issues", "new"):
            return f"/issues/{len(board.issues)}"
        case ("issues", number, "edit"):
            return f"/issues/{number}"
        case ("issues", number, "comments", _) if "text" in request.form:
            return f"/issues/{number}"
        case ("labels", _):
            return "/labels"
        case _:
            return here


def _page(board: TrackerBoard, request: PageRequest) -> tuple[str, str, dict[str, Any]] | None:
    """The template, the title and what it is given; None where there is no such page."""
    match request.path:
        case ():
            return "start", "Project", {"open": sum(issue.open for issue in board.issues)}
        case ("issues",):
            return "issues", "Issues", _listed(board, request.query)
        case ("issues", "new"):
            return "form", "New issue", {"issue": Issue(0, "", "", board.me), "action": "/issues/new"}
        case ("issues", number, *rest) if (issue := board.issue(number)) is not None:
            return _of_issue(board, issue, tuple(rest))
        case ("labels",):
            return "labels", "Labels", {}
        case ("labels", name):
            label = next((label for label in board.labels if label.name == name), None)
            return None if label is None else ("label", f"Label {name}", {"label": label})
        case ("people",):
            return "people", "People", {}
        case ("reports",):
            return "reports", "Reports", {}
        case _:
            return None


def _of_issue(
    board: TrackerBoard, issue: Issue, rest: tuple[str, ...]
) -> tuple[str, str, dict[str, Any]] | None:
    title = f"#{issue.number} {issue.title}"
    match rest:
        case ():
            return "issue", title, {"issue": issue}
        case ("edit",):
            return "form", f"Edit {title}", {"issue": issue, "action": f"/issues/{issue.number}/edit"}
        case ("comments", number):
            said = next((said for said in issue.comments if str(said.number) == number), None)
            if said is None or said.author != board.me:
                return None
            return "comment", f"Comment {number} on {title}", {"issue": issue, "said": said}
        case _:
            return None


def _listed(board: TrackerBoard, query: Mapping[str, str]) -> dict[str, Any]:
    chosen = IssueFilter(**{name: query.get(name, "") for name in IssueFilter._fields})
    found = [issue for issue in reversed(board.issues) if chosen.admits(issue)]
    number = query.get("page", "1")
    page = int(number) if number.isascii() and number.isdigit() and len(number) < 5 else 1
    last = max(1, -(-len(found) // PER_PAGE))
    page = min(max(page, 1), last)
    kept = {name: value for name, value in chosen._asdict().items() if value}
    return {
        "chosen": chosen,
        "found": found,
        "shown": found[(page - 1) * PER_PAGE : page * PER_PAGE],
        "page": page,
        "last": last,
        "page_url": lambda number: f"/issues?{urlencode({**kept, 'page': number})}",
    }


def _render(state: Stay, template: str, title: str, parts: Mapping[str, Any]) -> str:
    page = _templates().get_template(f"{template}.html.j2")
    return page.render(
        title=title,
        board=state.board,
        alert=state.alert,
        draft=dict(state.draft),
        priorities=PRIORITIES,
        **parts,
    )


@functools.cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("turnwise.envs.tracker", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
