"""The effect of each form on the board, as pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from turnwise.envs.tracker.state import PRIORITIES, Comment, Issue, Label, Person, TrackerBoard

LONGEST = 2000  # characters of any text


class RefusedForm(Exception):
    """A form was filled in wrongly; the text is shown above it."""


def submit(board: TrackerBoard, path: Sequence[str], form: Mapping[str, str]) -> TrackerBoard | None:
    """The board after a form was sent to ``path``; fields that are missing stay as they were.

    Returns None where no form is sent to.

    Raises:
        RefusedForm: the form cannot be taken.
    """
    match path:
        case ("issues", "new"):
            made = Issue(len(board.issues) + 1, "", "", board.me)
            return board._replace(issues=(*board.issues, _edited(board, made, form)))
        case ("issues", number, *rest) if (issue := board.issue(number)) is not None:
            changed = _on_issue(board, issue, tuple(rest), form)
            return None if changed is None else board.with_issue(changed)
        case ("labels",):
            return board._replace(labels=(*board.labels, _label(board, Label(""), form)))
        case ("labels", name):
            return _rename(board, name, form)
        case ("people", name) if name in {person.name for person in board.people} - {board.me}:
            people = (
                Person(name, form.get("to") == "blocked") if person.name == name else person
                for person in board.people
            )
            return board._replace(people=tuple(people))
        case _:
            return None


def _on_issue(
    board: TrackerBoard, issue: Issue, rest: tuple[str, ...], form: Mapping[str, str]
) -> Issue | None:
    match rest:
        case ("edit",):
            return _edited(board, issue, form)
        case ("comment",):
            if issue.locked:
                raise RefusedForm("This conversation is locked.")
            said = Comment(len(issue.comments) + 1, board.me, _text(form.get("text", ""), "A comment"))
            return issue._replace(comments=(*issue.comments, said))
        case ("state",):
            opened = form.get("to") == "open"
            return issue._replace(open=opened, duplicate_of=0 if opened else issue.duplicate_of)
        case ("lock",):
            return issue._replace(locked=form.get("to") == "locked")
        case ("duplicate",):
            other = board.issue(form.get("of", "").strip().removeprefix("#"))
            if other is None or other.number == issue.number:
                raise RefusedForm("Duplicate of: give the number of another issue.")
            return issue._replace(open=False, duplicate_of=other.number)
        case ("comments", number) if (comment := _comment(issue, number)) is not None:
            return _with_comment(issue, _judged(board, comment, form))
        case _:
            return None


def _judged(board: TrackerBoard, comment: Comment, form: Mapping[str, str]) -> Comment:
    """A comment that was edited by its author, or judged by a moderator."""
    if "text" in form:
        if comment.author != board.me:
            raise RefusedForm("Only your own comments can be edited.")
        return comment._replace(text=_text(form["text"], "A comment"))
    match form.get("to"):
        case "hidden":
            return comment._replace(hidden=True)
        case "shown":
            return comment._replace(hidden=False)
        case "kept":
            return comment._replace(report="")
        case _:
            return comment


def _edited(board: TrackerBoard, issue: Issue, form: Mapping[str, str]) -> Issue:
    title = _text(form.get("title", issue.title), "The title", lines=1)
    assignee = form.get("assignee", issue.assignee)
    priority = form.get("priority", issue.priority)
    if assignee and assignee not in {person.name for person in board.people}:
        raise RefusedForm("Assignee: choose one of the people.")
    if priority not in PRIORITIES:
        raise RefusedForm(f"Priority: choose one of {', '.join(PRIORITIES)}.")
    labels = issue.labels
    if "labels" in form:  # else the form had no such boxes
        labels = tuple(label.name for label in board.labels if form.get(f"label:{label.name}") == "on")
    text = _clean(form.get("text", issue.text))
    return issue._replace(title=title, text=text, assignee=assignee, priority=priority, labels=labels)


def _label(board: TrackerBoard, label: Label, form: Mapping[str, str]) -> Label:
    name = _text(form.get("name", label.name), "The name", lines=1)
    if "/" in name or name in {other.name for other in board.labels} - {label.name}:
        raise RefusedForm("The name of a label must be new and without a slash.")
    return Label(name, _clean(form.get("about", label.about)))


def _rename(board: TrackerBoard, name: str, form: Mapping[str, str]) -> TrackerBoard | None:
    """Change a label, also on the issues that carry it."""
    old = next((label for label in board.labels if label.name == name), None)
    if old is None:
        return None
    new = _label(board, old, form)
    issues = (
        issue._replace(labels=tuple(new.name if label == name else label for label in issue.labels))
        for issue in board.issues
    )
    labels = (new if label == old else label for label in board.labels)
    return board._replace(labels=tuple(labels), issues=tuple(issues))


def _comment(issue: Issue, number: str) -> Comment | None:
    return next((comment for comment in issue.comments if str(comment.number) == number), None)


def _with_comment(issue: Issue, comment: Comment) -> Issue:
    before, after = issue.comments[: comment.number - 1], issue.comments[comment.number :]
    return issue._replace(comments=(*before, comment, *after))


def _text(text: str, what: str, lines: int = 0) -> str:
    said = _clean(text)
    if lines:
        said = " ".join(said.split())
    if not said:
        raise RefusedForm(f"{what} must not be empty.")
    return said


def _clean(text: str) -> str:
    """Text as it is kept: a browser sends line ends as CR LF."""
    return text.replace("\r\n", "\n").strip()[:LONGEST]
