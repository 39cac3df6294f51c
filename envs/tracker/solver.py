"""The gold script: which control to use next on the open page, so that a form is sent with these fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

from turnwise.envs.tracker.state import TrackerBoard
from turnwise.envs.tracker.task_templates import Form
from turnwise.envs.web.actions import say
from turnwise.tools.browser.looking import Thing, View

_FIELDS = {"title": "Title", "text": "Description", "priority": "Priority", "assignee": "Assignee"}
_FILTER = {"status": "Status", "label": "Label", "assignee": "Assignee", "priority": "Priority"}
_TO = {
    "closed": "Close issue",
    "open": "Reopen issue",
    "locked": "Lock conversation",
    "unlocked": "Unlock conversation",
    "hidden": "Hide comment {}",
    "shown": "Show comment {}",
    "kept": "Dismiss report on comment {}",
    "blocked": "Block {}",
    "active": "Unblock {}",
}


class Sheet(NamedTuple):
    """A form as a person fills it in: its page, the values of its controls, and the button."""

    page: str
    controls: Mapping[str, str | bool]
    button: str


def sheet_of(form: Form, board: TrackerBoard) -> Sheet:
    """Return the sheet by which a form is sent by hand."""
    path, fields = form
    match path.split("/"):
        case ["issues", last, *_] if path == "issues/new" or path.endswith("/edit"):
            return Sheet(f"/{path}", _edits(fields, board), "Create issue" if last == "new" else "Save issue")
        case ["issues", number, "comment"]:
            return Sheet(f"/issues/{number}", {"Your comment": fields["text"]}, "Add comment")
        case ["issues", number, "duplicate"]:
            return Sheet(f"/issues/{number}", {"Duplicate of": fields["of"]}, "Mark as duplicate")
        case ["issues", _, "comments", _] if "text" in fields:
            return Sheet(f"/{path}", {"Comment": fields["text"]}, "Save comment")
        case ["labels", *_]:
            named = {"Name": fields.get("name"), "Description": fields.get("about")}
            button = "Add label" if path == "labels" else "Save label"
            return Sheet(f"/{path}", {name: text for name, text in named.items() if text}, button)
        case ["people", name]:
            return Sheet("/people", {}, _TO[fields["to"]].format(name))
        case [_, number, *rest]:
            return Sheet(f"/issues/{number}", {}, _TO[fields["to"]].format(rest[-1]))
        case _:
            raise AssertionError(path)


def next_act(form: Form, board: TrackerBoard, view: View) -> str:
    """The next action towards sending a form."""
    sheet = sheet_of(form, board)
    if view.address != sheet.page:
        return _towards(sheet.page, board, view)
    return _fill(sheet, view)


def next_look(look: Form, board: TrackerBoard, view: View) -> str | None:
    """The next action towards the page that tells an answer; None on it."""
    path, fields = look
    here, _, query = view.address.partition("?")
    chosen = dict(parse_qsl(query))
    if here != f"/{path}":
        return _towards(f"/{path}", board, view)
    if all(chosen.get(name) == value for name, value in fields.items()):
        return None
    return _fill(Sheet(here, {_FILTER[name]: value for name, value in fields.items()}, "Filter"), view)


def _edits(fields: Mapping[str, str], board: TrackerBoard) -> dict[str, str | bool]:
    controls: dict[str, str | bool] = {said: fields[name] for name, said in _FIELDS.items() if name in fields}
    if "labels" in fields:
        controls |= {label.name: f"label:{label.name}" in fields for label in board.labels}
    return controls


def _fill(sheet: Sheet, view: View) -> str:
    """The first control that does not hold what it should, or the button."""
    for name, wanted in sheet.controls.items():
        thing = _thing(view, name, "textbox", "combobox", "checkbox")
        if isinstance(wanted, bool):
            if ("checked" in thing.states) != wanted:
                return say("click", target=thing.id)
        elif thing.value != wanted and thing.role == "combobox":
            return say("select", target=thing.id, option=wanted)
        elif thing.value != wanted:
            return say("fill", target=thing.id, text=wanted)
    return say("click", target=_thing(view, sheet.button, "button").id)


def _towards(page: str, board: TrackerBoard, view: View) -> str:
    """One step to another page, by its links or the search."""
    parts = page.split("/")[1:]
    if parts[0] != "issues" or parts == ["issues"] or parts[1] == "new":
        if len(parts) == 2 and parts[0] == "labels" and view.address == "/labels":
            return say("click", target=_thing(view, parts[1], "link").id)
        return say("click", target="New issue" if parts[-1] == "new" else parts[0].capitalize())
    if len(parts) > 2 and view.address == f"/issues/{parts[1]}":
        name = "Edit issue" if parts[2] == "edit" else f"Edit comment {parts[3]}"
        return say("click", target=_thing(view, name, "link").id)
    for thing in view.things:
        if thing.role == "link" and thing.name.startswith(f"#{parts[1]} "):
            return say("click", target=thing.id)
    issue = board.issue(parts[1])
    assert issue is not None
    return say("fill", target="Search issues", text=issue.title, submit=True)


def _thing(view: View, name: str, *roles: str) -> Thing:
    return next(thing for thing in view.things if thing.name == name and thing.role in roles)
