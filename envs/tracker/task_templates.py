"""Twenty templates of tasks. Each draws from a board what is asked, and the forms that do it or the answer.

A form is (path, fields): sending ``wanted`` in turn makes the board that counts as done, and no other board does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple, TypeAlias

from turnwise.envs.tracker.content import new_title, said_text, spam
from turnwise.envs.tracker.state import PRIORITIES, Comment, Issue, TrackerBoard

Form: TypeAlias = tuple[str, Mapping[str, str]]


class TrackerRequest(NamedTuple):
    """A task: where it begins, what is asked, and the forms that do it or the answer to be told.

    ``look`` is the page on which the answer stands, and what is chosen in its filter.
    """

    board: TrackerBoard
    prompt: str
    wanted: Sequence[Form] = ()
    answer: str = ""
    look: Form = ("", {})


Template: TypeAlias = Callable[[Random, TrackerBoard], TrackerRequest | None]
"""Draws a task; None where this board has none."""

# --- create --------------------------------------------------------------------------------------


def report_issue(rng: Random, board: TrackerBoard) -> TrackerRequest:
    title, text = new_title(rng, board), said_text(rng)
    prompt = f'Report a new issue with the title "{title}" and the description "{text}".'
    return TrackerRequest(board, prompt, [("issues/new", {"title": title, "text": text})])


def report_urgent(rng: Random, board: TrackerBoard) -> TrackerRequest:
    title, label, person = new_title(rng, board), _label(rng, board), _person(rng, board)
    priority = rng.choice(("low", "high", "urgent"))
    fields = {"title": title, "priority": priority, "assignee": person, **_boxes([label])}
    prompt = f'Report "{title}" with priority {priority} and the label {label}, and assign it to {person}.'
    return TrackerRequest(board, prompt, [("issues/new", fields)])


def add_comment(rng: Random, board: TrackerBoard) -> TrackerRequest:
    issue, text = rng.choice(board.issues), said_text(rng)
    return TrackerRequest(board, f'Comment "{text}" on the issue "{issue.title}".', [_comment(issue, text)])


def add_label(rng: Random, board: TrackerBoard) -> TrackerRequest:
    name, about = f"team-{rng.choice(('red', 'blue', 'green', 'north', 'south'))}", said_text(rng)
    prompt = f'Add a label named "{name}" with the description "{about}".'
    return TrackerRequest(board, prompt, [("labels", {"name": name, "about": about})])


def label_and_use(rng: Random, board: TrackerBoard) -> TrackerRequest:
    name, issue = f"release-{rng.randint(5, 9)}", rng.choice(board.issues)
    forms = [("labels", {"name": name}), (_edit(issue), _boxes([*issue.labels, name]))]
    return TrackerRequest(
        board, f'Add a label named "{name}" and put it on the issue "{issue.title}".', forms
    )


# --- edit ----------------------------------------------------------------------------------------


def rename_issue(rng: Random, board: TrackerBoard) -> TrackerRequest:
    issue, title = rng.choice(board.issues), new_title(rng, board)
    prompt = f'Change the title of the issue "{issue.title}" to "{title}".'
    return TrackerRequest(board, prompt, [(_edit(issue), {"title": title})])


def rewrite_text(rng: Random, board: TrackerBoard) -> TrackerRequest:
    issue, text = rng.choice(board.issues), f"Rewritten. {said_text(rng)}"
    prompt = f'Replace the description of issue #{issue.number} by "{text}".'
    return TrackerRequest(board, prompt, [(_edit(issue), {"text": text})])


def relabel(rng: Random, board: TrackerBoard) -> TrackerRequest | None:
    issue = _one(rng, [issue for issue in board.issues if issue.labels])
    if issue is None:
        return None
    old = rng.choice(issue.labels)
    new = rng.choice([label.name for label in board.labels if label.name not in issue.labels])
    names = [name for name in issue.labels if name != old] + [new]
    prompt = f'On the issue "{issue.title}", replace the label {old} by {new}.'
    return TrackerRequest(board, prompt, [(_edit(issue), _boxes(names))])


def hand_over(rng: Random, board: TrackerBoard) -> TrackerRequest | None:
    """Several issues at once, which must be found."""
    giver, taker = rng.sample([person.name for person in board.people], 2)
    issues = [issue for issue in board.issues if issue.open and issue.assignee == giver]
    forms = [(_edit(issue), {"assignee": taker}) for issue in issues]
    prompt = f"{giver} is on leave: assign all open issues of {giver} to {taker}."
    return TrackerRequest(board, prompt, forms) if 1 <= len(issues) <= 3 else None


def raise_priority(rng: Random, board: TrackerBoard) -> TrackerRequest | None:
    label, priority = _label(rng, board), rng.choice(PRIORITIES)
    all_open = [issue for issue in board.issues if issue.open and label in issue.labels]
    issues = [issue for issue in all_open if issue.priority != priority]
    prompt = f"Give every open issue with the label {label} the priority {priority}."
    forms = [(_edit(issue), {"priority": priority}) for issue in issues]
    return TrackerRequest(board, prompt, forms) if 1 <= len(issues) <= 3 else None


def close_with_comment(rng: Random, board: TrackerBoard) -> TrackerRequest | None:
    issue = _one(rng, [issue for issue in board.issues if issue.open])
    if issue is None:
        return None
    text = f"Fixed in {rng.randint(5, 9)}.{rng.randint(0, 9)}."
    prompt = f'Comment "{text}" on the issue "{issue.title}", then close it.'
    return TrackerRequest(
        board, prompt, [_comment(issue, text), (f"issues/{issue.number}/state", {"to": "closed"})]
    )


def correct_comment(rng: Random, board: TrackerBoard) -> TrackerRequest | None:
    own = [(issue, said) for issue in board.issues for said in issue.comments if said.author == board.me]
    if not own:
        return None
    issue, said = rng.choice(own)
    text = said_text(rng) + " Corrected."
    prompt = f'Change your comment {said.number} on the issue "{issue.title}" to "{text}".'
    return TrackerRequest(board, prompt, [(_path(issue, said), {"text": text})])


# --- find ----------------------------------------------------------------------------------------


def find_reporter(rng: Random, board: TrackerBoard) -> TrackerRequest:
    issue = rng.choice(board.issues)
    prompt = f'Who reported the issue "{issue.title}"? Answer with the name.'
    return TrackerRequest(board, prompt, (), issue.author, (f"issues/{issue.number}", {}))


def find_code(rng: Random, board: TrackerBoard) -> TrackerRequest | None:
    found = [
        (issue, said) for issue in board.issues for said in issue.comments if "The log says E" in said.text
    ]
    if not found:
        return None
    issue, said = rng.choice(found)
    code = said.text.rpartition("The log says ")[2].rstrip(".")
    prompt = f'Which error code does {said.author} give in comment {said.number} on "{issue.title}"?'
    return TrackerRequest(board, prompt, (), code, (f"issues/{issue.number}", {}))


def count_issues(rng: Random, board: TrackerBoard) -> TrackerRequest | None:
    label, status = _label(rng, board), rng.choice(("open", "closed"))
    count = sum((issue.open == (status == "open")) and label in issue.labels for issue in board.issues)
    prompt = f"How many {status} issues have the label {label}? Answer with a number."
    look = ("issues", {"status": status, "label": label})
    return TrackerRequest(board, prompt, (), str(count), look) if count >= 2 else None


def find_oldest(rng: Random, board: TrackerBoard) -> TrackerRequest | None:
    priority, person = rng.choice(PRIORITIES), _person(rng, board)
    found = [issue for issue in board.issues if (issue.priority, issue.assignee) == (priority, person)]
    prompt = (
        f"What is the number of the oldest issue with priority {priority} that is assigned to {person}? "
        "The smallest number is the oldest."
    )
    look = ("issues", {"priority": priority, "assignee": person})
    return TrackerRequest(board, prompt, (), str(found[0].number), look) if found else None


def find_busiest(rng: Random, board: TrackerBoard) -> TrackerRequest | None:
    counts = Counter(issue.assignee for issue in board.issues if issue.open and issue.assignee).most_common(2)
    if len(counts) < 2 or counts[0][1] == counts[1][1]:
        return None
    prompt = "Who has the most open issues? Answer with the name."
    return TrackerRequest(board, prompt, (), counts[0][0], ("issues", {"status": "open"}))


# --- moderate ------------------------------------------------------------------------------------


def judge_reports(rng: Random, board: TrackerBoard) -> TrackerRequest | None:
    """Of the reported comments, hide the advertisements and keep the others."""
    places = [(issue, said) for issue in board.issues for said in issue.comments]
    if len(places) < 3:
        return None
    forms: list[Form] = []
    for place, (issue, said) in enumerate(rng.sample(places, 3)):
        bad = place == 0 or rng.random() < 0.4
        text = spam(rng) if bad else said.text
        board = _replaced(board, issue.number, said._replace(text=text, report="advertising"))
        forms.append((_path(issue, said), {"to": "hidden" if bad else "kept"}))
    prompt = "Judge the reports: hide the comments that are advertisements, and dismiss the other reports."
    return TrackerRequest(board, prompt, forms)


def stop_spammer(rng: Random, board: TrackerBoard) -> TrackerRequest | None:
    """Hide the one advertisement on an issue and block whoever wrote it."""
    found = [(issue, said) for issue in board.issues for said in issue.comments if said.author != board.me]
    if not found:
        return None
    issue, said = rng.choice(found)
    board = _replaced(board, issue.number, said._replace(text=spam(rng)))
    prompt = f'On the issue "{issue.title}" someone advertises: hide that comment and block its author.'
    return TrackerRequest(
        board, prompt, [(_path(issue, said), {"to": "hidden"}), (f"people/{said.author}", {"to": "blocked"})]
    )


def merge_duplicate(rng: Random, board: TrackerBoard) -> TrackerRequest | None:
    """Two open issues say the same: the newer one goes, and its conversation is locked."""
    if not board.issues[-1].open:
        return None
    older = rng.choice(board.issues[:-1])
    part = f'"{board.issues[-1].title}" reports the same as "{older.title}"'
    newer = board.issues[-1]
    prompt = f"{part}. Mark it as a duplicate of that issue and lock its conversation."
    path = f"issues/{newer.number}"
    return TrackerRequest(
        board, prompt, [(f"{path}/duplicate", {"of": str(older.number)}), (f"{path}/lock", {"to": "locked"})]
    )


TEMPLATES: Mapping[str, Mapping[str, Template]] = {
    kind: {template.__name__: template for template in templates}
    for kind, templates in {
        "create": (report_issue, report_urgent, add_comment, add_label, label_and_use),
        "edit": (
            rename_issue,
            rewrite_text,
            relabel,
            hand_over,
            raise_priority,
            close_with_comment,
            correct_comment,
        ),
        "find": (find_reporter, find_code, count_issues, find_oldest, find_busiest),
        "moderate": (judge_reports, stop_spammer, merge_duplicate),
    }.items()
}
"""Kind → name → template."""

# --- parts of forms ------------------------------------------------------------------------------


def _edit(issue: Issue) -> str:
    return f"issues/{issue.number}/edit"


def _path(issue: Issue, said: Comment) -> str:
    return f"issues/{issue.number}/comments/{said.number}"


def _comment(issue: Issue, text: str) -> Form:
    return f"issues/{issue.number}/comment", {"text": text}


def _boxes(names: Sequence[str]) -> dict[str, str]:
    """Labels as a form of boxes sends them."""
    return {"labels": "boxes"} | {f"label:{name}": "on" for name in names}


def _label(rng: Random, board: TrackerBoard) -> str:
    return rng.choice(board.labels).name


def _person(rng: Random, board: TrackerBoard) -> str:
    return rng.choice(board.people).name


def _one(rng: Random, issues: Sequence[Issue]) -> Issue | None:
    return rng.choice(issues) if issues else None


def _replaced(board: TrackerBoard, number: int, said: Comment) -> TrackerBoard:
    issue = board.issues[number - 1]
    comments = tuple(said if other.number == said.number else other for other in issue.comments)
    return board.with_issue(issue._replace(comments=comments))
