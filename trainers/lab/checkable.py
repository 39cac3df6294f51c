"""Items of any domain as tasks that a rule can check: ``python -m turnwise.trainers.lab.checkable ROWS.jsonl OUT.jsonl [--form choice|short]``.

Nemotron-CrossThink's templates: an item with ``options`` becomes a choice, whose answer is the letter of its gold option, and one
without them an open question with a short answer. What a rule cannot check is dropped: a choice whose gold answer is not among its options, a short answer
of more than ``longest`` words. With ``--form short`` the options of a choice are left out, so that all items are open (the paper's better form). Rows have
``question``, ``answer`` and, for a choice, ``options``; those that are written are read by `suite: math:OUT.jsonl`. Ours: ten words, an answer that
is the letter itself counts as among the options.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from turnwise.durable import write_whole
from turnwise.errors import TurnwiseError

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LONGEST = 10
"""Words of an answer that a rule can check."""


def checkable(
    question: str,
    answer: str,
    options: Sequence[str] = (),
    *,
    form: Literal["choice", "short"] = "choice",
    longest: int = LONGEST,
) -> dict[str, str] | None:
    """The item as a problem with an answer that a rule can check; None where it has none.

    >>> print(checkable("Which is even?", "4", ["3", "4"])["problem"])
    Which is even?
    (A) 3
    (B) 4
    Answer with the letter.
    >>> checkable("Which is even?", "4", ["3", "4"])["answer"], checkable("Which is even?", " b", ["3", "4"])["answer"]
    ('B', 'B')
    >>> checkable("Which is even?", "6", ["3", "4"]), checkable("Why?", "one " * 11)
    (None, None)
    >>> checkable("Which is even?", "B", ["3", "4"], form="short")
    {'problem': 'Which is even?', 'answer': '4'}
    """
    said = " ".join(answer.split())
    if options:
        shown = [" ".join(option.split()) for option in options]
        letter = LETTERS.find(said.upper()) if len(said) == 1 else -1
        at = shown.index(said) if said in shown else letter
        if not 0 <= at < len(shown) or len(shown) > len(LETTERS):
            return None
        if form == "choice":
            lines = (f"({LETTERS[i]}) {option}" for i, option in enumerate(shown))
            return {
                "problem": "\n".join([question.strip(), *lines, "Answer with the letter."]),
                "answer": LETTERS[at],
            }
        said = shown[at]
    if not said or len(said.split()) > longest:
        return None
    return {"problem": question.strip(), "answer": said}


def rewritten(rows: Iterable[Mapping[str, Any]], form: Literal["choice", "short"]) -> list[dict[str, str]]:
    """The rows that a rule can check, in order.

    >>> rewritten([{"question": "2 + 2?", "answer": "4"}, {"question": "Why?"}, {"question": "Odd?", "answer": "x", "options": ["y"]}], "choice")
    [{'problem': '2 + 2?', 'answer': '4'}]
    """
    found = (
        checkable(str(row["question"]), str(row["answer"]), [*map(str, row.get("options") or ())], form=form)
        for row in rows
        if row.get("question") and row.get("answer") is not None
    )
    return [row for row in found if row is not None]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the rows of a file anew, and say how many were dropped."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--form", choices=["choice", "short"], default="choice")
    given = parser.parse_args(arguments)
    try:
        rows = [json.loads(line) for line in given.rows.read_text("utf-8").splitlines() if line.strip()]
        kept = rewritten(rows, given.form)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise TurnwiseError(
            f"{given.rows} holds no rows of items ({type(error).__name__}).",
            'Give JSON lines such as {"question": "…", "answer": "…", "options": ["…"]}.',
        ) from error
    write_whole(given.out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept))
    print(f"{len(kept)} of {len(rows)} items can be checked by a rule: suite math:{given.out}")


if __name__ == "__main__":
    main()
