"""What an issue tracker knows, and what each of its forms does to that: pure functions of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

PRIORITIES = ("low", "normal", "high", "urgent")
LONGEST = 2000  # characters of any text


class Refused(Exception):
    """A form was filled in wrongly; the text is shown above it."""


class Comment(NamedTuple):
    """Something said about an issue. ``report`` says why someone thinks it should go."""

    number: int
    author: str
    text: str
    report: str = ""
    hidden: bool = False


class Issue(NamedTuple):
    """Something to do."""

    number: int
    title: str
    text: str
    author: str
    open: bool = True
    labels: tuple[str, ...] = ()
    assignee: str = ""
    priority: str = "normal"
    locked: bool = False
    duplicate_of: int = 0
    comments: tuple[Comment, ...] = ()


class Person(NamedTuple):
    name: str
    blocked: bool = False


class Label(NamedTuple):
    name: str
    about: str = ""


class Board(NamedTuple):
    """All of a project, as ``me`` sees it. Issues are in the order of their numbers, from 1."""

    me: str
    people: tuple[Person, ...]
    labels: tuple[Label, ...]
    issues: tuple[Issue, ...]

    def issue(self, number: str | int) -> Issue | None:
        """The issue of this number."""
        place = number - 1 if isinstance(number, int) else int(number) - 1 if _is_number(number) else -1
        return self.issues[place] if 0 <= place < len(self.issues) else None

    def with_issue(self, issue: Issue) -> Board:
        """The board with this issue in its place."""
        return self._replace(issues=(*self.issues[: issue.number - 1], issue, *self.issues[issue.number :]))

    @property
    def reports(self) -> Sequence[tuple[Issue, Comment]]:
        """Comments that someone reported and nobody judged yet."""
        return [
            (issue, comment)
            for issue in self.issues
            for comment in issue.comments
            if comment.report and not comment.hidden
        ]


class Filter(NamedTuple):
    """Which issues are listed. Empty fields let all pass."""

    words: str = ""
    status: str = ""  # open, closed
    label: str = ""
    assignee: str = ""
    priority: str = ""

    def admits(self, issue: Issue) -> bool:
        """Whether an issue is listed. All words must occur in its title or text."""
        said = f"{issue.title} {issue.text}".lower()
        return (
            all(word in said for word in self.words.lower().split())
            and (not self.status or issue.open == (self.status == "open"))
            and (not self.label or self.label in issue.labels)
            and (not self.assignee or self.assignee == issue.assignee)
            and (not self.priority or self.priority == issue.priority)
        )


def submit(board: Board, path: Sequence[str], form: Mapping[str, str]) -> Board | None:
    """The board after a form was sent to ``path``; fields that are missing stay as they were.

    Returns None where no form is sent to.

    Raises:
        Refused: the form cannot be taken.
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


def _on_issue(board: Board, issue: Issue, rest: tuple[str, ...], form: Mapping[str, str]) -> Issue | None:
    match rest:
        case ("edit",):
            return _edited(board, issue, form)
        case ("comment",):
            if issue.locked:
                raise Refused("This conversation is locked.")
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
                raise Refused("Duplicate of: give the number of another issue.")
            return issue._replace(open=False, duplicate_of=other.number)
        case ("comments", number) if (comment := _comment(issue, number)) is not None:
            return _with_comment(issue, _judged(board, comment, form))
        case _:
            return None


def _judged(board: Board, comment: Comment, form: Mapping[str, str]) -> Comment:
    """A comment that was edited by its author, or judged by a moderator."""
    if "text" in form:
        if comment.author != board.me:
            raise Refused("Only your own comments can be edited.")
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


def _edited(board: Board, issue: Issue, form: Mapping[str, str]) -> Issue:
    title = _text(form.get("title", issue.title), "The title", lines=1)
    assignee = form.get("assignee", issue.assignee)
    priority = form.get("priority", issue.priority)
    if assignee and assignee not in {person.name for person in board.people}:
        raise Refused("Assignee: choose one of the people.")
    if priority not in PRIORITIES:
        raise Refused(f"Priority: choose one of {', '.join(PRIORITIES)}.")
    labels = issue.labels
    if "labels" in form:  # else the form had no such boxes
        labels = tuple(label.name for label in board.labels if form.get(f"label:{label.name}") == "on")
    text = _clean(form.get("text", issue.text))
    return issue._replace(title=title, text=text, assignee=assignee, priority=priority, labels=labels)


def _label(board: Board, label: Label, form: Mapping[str, str]) -> Label:
    name = _text(form.get("name", label.name), "The name", lines=1)
    if "/" in name or name in {other.name for other in board.labels} - {label.name}:
        raise Refused("The name of a label must be new and without a slash.")
    return Label(name, _clean(form.get("about", label.about)))


def _rename(board: Board, name: str, form: Mapping[str, str]) -> Board | None:
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
        raise Refused(f"{what} must not be empty.")
    return said


def _clean(text: str) -> str:
    """Text as it is kept: a browser sends line ends as CR LF."""
    return text.replace("\r\n", "\n").strip()[:LONGEST]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 7
