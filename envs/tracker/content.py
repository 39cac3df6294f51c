"""A project's history from a seed: people, labels, issues and what was said about them."""

from __future__ import annotations

from random import Random

from turnwise.envs.tracker.state import PRIORITIES, Comment, Issue, Label, Person, TrackerBoard
from turnwise.envs.tracker.vocabulary import FAULTS, LABELS, PARTS, PEOPLE, SEEN, SPAM, TRIED, WHENS
from turnwise.tasks.core import derive_rng


def make_board(seed: str, issues: int, comments: int) -> TrackerBoard:
    """A board with so many issues and at most so many comments on each. Titles and error codes are unique."""
    rng = derive_rng("tracker", seed)
    people = rng.sample(PEOPLE, 8)
    titles = _titles(rng, issues)
    codes = rng.sample(range(1000, 10_000), issues * comments + 1)
    labels = tuple(Label(*label) for label in rng.sample(LABELS, 6))
    made = [_issue(rng, number, title, people, labels) for number, title in enumerate(titles, 1)]
    made = [_discuss(rng, issue, people, comments, codes) for issue in made]
    return TrackerBoard(people[0], tuple(map(Person, sorted(people))), labels, tuple(made))


def new_title(rng: Random, board: TrackerBoard) -> str:
    """A title that no issue of the board has."""
    taken = {issue.title for issue in board.issues}
    return next(title for title in _titles(rng, len(taken) + 1) if title not in taken)


def said_text(rng: Random) -> str:
    """Write what a person may say about an issue."""
    return f"{rng.choice(SEEN)} {rng.choice(TRIED)}"


def spam(rng: Random) -> str:
    return rng.choice(SPAM).format(n=rng.randint(100, 999))


def _titles(rng: Random, count: int) -> list[str]:
    every = [f"{part} {fault} {when}" for part in PARTS for fault in FAULTS for when in WHENS]
    return [title[0].upper() + title[1:] for title in rng.sample(every, count)]


def _issue(rng: Random, number: int, title: str, people: list[str], labels: tuple[Label, ...]) -> Issue:
    version = f"{rng.randint(1, 4)}.{rng.randint(0, 9)}.{rng.randint(0, 9)}"
    named = set(rng.sample([label.name for label in labels], rng.choice((0, 1, 1, 2))))
    return Issue(
        number,
        title,
        f"Seen with version {version}. {rng.choice(TRIED)}",
        rng.choice(people),
        open=rng.random() < 0.7,
        labels=tuple(label.name for label in labels if label.name in named),
        assignee=rng.choice((*people, "", "")),
        priority=rng.choice(PRIORITIES),
    )


def _discuss(rng: Random, issue: Issue, people: list[str], most: int, codes: list[int]) -> Issue:
    said: list[Comment] = []
    for number in range(1, rng.randint(0, most) + 1):
        code = f" The log says E{codes.pop()}." if rng.random() < 0.4 else ""
        said.append(Comment(number, rng.choice(people), f"{said_text(rng)}{code}"))
    return issue._replace(comments=tuple(said))
