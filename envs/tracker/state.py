"""Contents of an issue tracker: immutable values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

PRIORITIES = ("low", "normal", "high", "urgent")


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


class TrackerBoard(NamedTuple):
    """All of a project, as ``me`` sees it. Issues are in the order of their numbers, from 1."""

    me: str
    people: tuple[Person, ...]
    labels: tuple[Label, ...]
    issues: tuple[Issue, ...]

    def __repr__(self) -> str:  # state keys are hashes of it: it must not change with the class's name
        return f"Board({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

    def issue(self, number: str | int) -> Issue | None:
        """The issue of this number."""
        place = number - 1 if isinstance(number, int) else int(number) - 1 if _is_number(number) else -1
        return self.issues[place] if 0 <= place < len(self.issues) else None

    def with_issue(self, issue: Issue) -> TrackerBoard:
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


class Stay(NamedTuple):
    """One visit's state: the board, and the form that was refused last (until another page is opened)."""

    board: TrackerBoard
    alert: str = ""
    page: str = ""  # on which it stands
    draft: tuple[tuple[str, str], ...] = ()  # what was filled in there


class IssueFilter(NamedTuple):
    """Filter of the issues that are listed. Empty fields let all pass."""

    words: str = ""
    status: str = ""  # open, closed
    label: str = ""
    assignee: str = ""
    priority: str = ""

    def admits(self, issue: Issue) -> bool:
        """Say whether an issue is listed. All words must occur in its title or text."""
        said = f"{issue.title} {issue.text}".lower()
        return (
            all(word in said for word in self.words.lower().split())
            and (not self.status or issue.open == (self.status == "open"))
            and (not self.label or self.label in issue.labels)
            and (not self.assignee or self.assignee == issue.assignee)
            and (not self.priority or self.priority == issue.priority)
        )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 7
