"""The kinds of defects, a planted task, and a JSONL set before it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

SOUND = "sound"
ALWAYS_1, ALWAYS_0 = "always 1", "always 0"
GOLD_REFUSED, EMPTY_ACCEPTED = "gold refused", "empty or no-op accepted"
ONLY_SKIPPED, NO_ASSERTION = "only skipped tests", "no assertion reached"
ANSWER_SHOWN, KEY_WORD = "answer in prompt or files", "key word accepted"
FLAKY, TIMEOUT_PASSES, NETWORK = "flaky", "time-out as pass", "needs a network"
TWICE, IN_TRAIN = "same task twice", "test task in train"
BROKEN = "broken set-up counted as 0"
KINDS = (
    ALWAYS_1, ALWAYS_0, GOLD_REFUSED, EMPTY_ACCEPTED, ONLY_SKIPPED, NO_ASSERTION, ANSWER_SHOWN, KEY_WORD, FLAKY,
    TIMEOUT_PASSES, NETWORK, TWICE, IN_TRAIN, BROKEN,
)  # fmt: skip

ALSO: Mapping[str, tuple[str, ...]] = {
    ALWAYS_1: (EMPTY_ACCEPTED, KEY_WORD, TIMEOUT_PASSES, NO_ASSERTION),
    ALWAYS_0: (GOLD_REFUSED, BROKEN),
    GOLD_REFUSED: (ALWAYS_0,),
    EMPTY_ACCEPTED: (ALWAYS_1, KEY_WORD, NO_ASSERTION),
    ONLY_SKIPPED: (ALWAYS_1, EMPTY_ACCEPTED, NO_ASSERTION, KEY_WORD, TIMEOUT_PASSES),
    NO_ASSERTION: (ALWAYS_1, EMPTY_ACCEPTED, KEY_WORD, TIMEOUT_PASSES),
    ANSWER_SHOWN: (KEY_WORD,),
    KEY_WORD: (EMPTY_ACCEPTED, ALWAYS_1, NO_ASSERTION),
    FLAKY: (GOLD_REFUSED, ALWAYS_0),
    TIMEOUT_PASSES: (),
    NETWORK: (ALWAYS_0, GOLD_REFUSED, BROKEN),
    TWICE: (),
    IN_TRAIN: (TWICE,),
    BROKEN: (ALWAYS_0, GOLD_REFUSED),
}
"""Other kinds that an honest tool may report of a planted task too: a set whose tests are all skipped does pay nonsense."""


class PlantedTask(NamedTuple):
    """A task and the truth about it.

    ``path`` is the set's, from the folder that all sets are in: a file of rows, or a folder of task folders. ``kind`` is
    one of :data:`KINDS` or :data:`SOUND`. ``mechanism`` says in a word how it goes wrong, or of a sound task why
    it may look wrong (empty: it does not). ``gold`` is a completion that a right reward pays; of other formats than JSONL it is
    empty, since the task brings its own. ``twin`` is the task that a copy copies, which is not listed by itself.
    """

    path: str
    format: str
    task: str
    kind: str
    mechanism: str = ""
    gold: str = ""
    twin: str = ""


class Row(NamedTuple):
    """A question of a JSONL set: ``answer`` is its ground truth and, where ``gold`` is empty, the right completion too.

    ``key`` is the same for two wordings of one question. ``shown``: the row has its gold in a column ``solution``.
    ``source`` and ``system`` are verl's data source and a message before the prompt. ``twin`` is the key of the row that
    this one copies; ``wordings`` are all that the question has.
    """

    key: str
    prompt: str
    answer: str
    gold: str = ""
    kind: str = SOUND
    mechanism: str = ""
    shown: bool = True
    source: str = ""
    system: str = ""
    twin: str = ""
    wordings: tuple[str, ...] = ()


class Draft(NamedTuple):
    """A JSONL set before it is written.

    ``core`` is the text of its reward file. A core that ends with ``score(answer, completion)`` is given a function of
    ``convention`` (drawn where it is empty); one that has a reward function of its own names the convention. ``files`` lie
    beside it. With ``train`` rows the others are the test set.
    """

    topic: str
    core: str
    rows: Sequence[Row]
    convention: str = ""
    files: Mapping[str, str] = {}
    train: Sequence[Row] = ()


Maker = Callable[[Random], Row]


class Bank:
    """Draws questions, each only once in all sets of a seed."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self._seen: set[str] = set()

    def draw(self, makers: Sequence[Maker], count: int) -> list[Row]:
        """Return ``count`` questions of these makers that were not drawn before."""
        rows: list[Row] = []
        for _ in range(400 * (count + 1)):
            if len(rows) == count:
                return rows
            row = self.rng.choice(makers)(self.rng)
            if row.key not in self._seen:
                self._seen.add(row.key)
                rows.append(row)
        if len(rows) == count:
            return rows
        raise RuntimeError(f"only {len(rows)} of {count} questions are new: add makers")


def bad(rows: Sequence[Row], kind: str, mechanism: str) -> list[Row]:
    """The rows as planted ones."""
    return [row._replace(kind=kind, mechanism=mechanism) for row in rows]


def hard(rows: Sequence[Row], why: str) -> list[Row]:
    """The rows as sound ones that may look wrong."""
    return [row._replace(mechanism=why) for row in rows]
