"""What rewards pay for thoughts that refer to evidence: formulas in plain numbers, on episodes that think aloud."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from math import exp
from typing import Any, NamedTuple

from law import plays
from losses import Played, last
from plain import Refused, agree, reference, refuses

from turnwise.agents.core import Turn
from turnwise.trainers.kit.reward_edits import replace_turns
from turnwise.trainers.kit.toy_batches import with_words

PIECES = (
    *("<think>", "</think>", "<rethink>", "</rethink>", "<think>it is [3]</think>", "<rethink>no, [8] and [a.py:2]</rethink>"),
    *("[3]", "[8]", "[9]", "[]", "[[3]]", "it is", "It is", "so it is", "\n"),
)  # fmt: skip


class Thinking(NamedTuple):
    """An episode, its messages in pieces, and what the environment told of each turn."""

    e: Played
    pieces: list[list[str]]
    told: list[dict[str, Any]]

    def newest(self, name: str) -> list[str]:
        lists = [t[name] for t in self.told if isinstance(t.get(name), list)]
        return [str(x) for x in lists[-1]] if lists else []

    def text(self, name: str) -> list[str]:
        said = self.told[-1].get(name, "")
        return said.lower().split() if isinstance(said, str) else []


def _drawn(rng: random.Random) -> dict[str, Any]:
    told: dict[str, Any] = {
        name: rng.choice([[3, 8], [3], [3, 8, "a.py:2"], [], "none"]) for name in ("read", "files")
    }
    told |= {name: rng.choice([0, 1, 2, 3, "2"]) for name in ("number", "boxes")}
    for name in ("answer", "gold", "verdict"):
        told[name] = rng.choice(
            ["", 3, " ".join(rng.choices(["red", "Red", "kite", "fox"], k=rng.randrange(1, 6)))]
        )
    return {name: x for name, x in told.items() if rng.random() < 0.9}


def thinking_law(name: str, part: Callable[..., Any], formula: Callable[..., Any]) -> None:
    for seed in range(30):
        rng = random.Random(f"thinking {seed}")
        episodes, plain = plays(seed)
        group: list[Thinking] = []
        shown: list[Any] = []
        for one, e in zip(episodes, plain, strict=True):
            pieces = [rng.choices(PIECES, k=rng.randrange(7)) for _ in e.signal]
            new = Thinking(e, pieces, [_drawn(rng) for _ in e.signal])
            heard = with_words(one, [" ".join(x) for x in pieces])
            shown.append(replace_turns(heard, lambda turns, new=new: _told(turns, new)))
            group.append(new)
        try:
            wanted = formula(group)
        except Refused:
            refuses(lambda shown=shown: part(shown))
            return
        for i, (one, paid) in enumerate(zip(part(shown), wanted, strict=True)):
            for k, (turn, x) in enumerate(zip(one.trajectory.turns, paid, strict=True)):
                agree(turn.reward, x, f"group {seed}, episode {i}, turn {k}")


def _told(turns: Sequence[Turn], new: Thinking) -> list[Turn]:
    return [
        dataclasses.replace(t, details={**t.details, **more}) for t, more in zip(turns, new.told, strict=True)
    ]


@reference(
    "reward", "grit", law=thinking_law, exists=["files"], number=["number"], said=["verdict"], wanted=["gold"],
    signal=["principle", "standing"], gram=[1, 2, 0],
    also=[{"number": "boxes", "wanted": "gold", "said": "verdict", "gram": 2}, {"number": "number", "wanted": "answer", "exists": "files"}],
)  # fmt: skip
def grit(
    group: list[Thinking],
    exists: str = "read",
    number: str = "",
    said: str = "answer",
    wanted: str = "",
    signal: str = "",
    gram: int = 3,
) -> list[list[float]]:
    if gram < 1:
        raise Refused

    def thoughts(text: str) -> list[tuple[str, str]]:
        """Each thought by its kind: from an opening tag to the closing one, with no tag between."""
        found: list[tuple[str, str]] = []
        for at in range(len(text)):
            for kind in ("think", "rethink"):
                rest = text[at:]
                if rest.startswith(f"<{kind}>"):
                    inner = rest[len(kind) + 2 :].split(f"</{kind}>")
                    if len(inner) > 1 and not any(f"{c}think>" in inner[0] for c in ("<", "/", "<re", "/re")):
                        found.append((kind, inner[0]))
        return found

    def named(text: str) -> set[str]:
        """What stands between two brackets without a bracket inside."""
        found: set[str] = set()
        for piece in text.split("[")[1:]:
            inner = piece.split("]")
            if len(inner) > 1 and inner[0]:
                found.add(inner[0])
        return found

    def words(text: str) -> list[str]:
        kept = "".join(c if c.isalnum() else " " for c in text.lower())
        return kept.split()

    def alike(a: list[str], b: list[str]) -> float:
        if not a:
            return 0.0
        hits, left = 0, [*b]
        for word in a:
            if word in left:
                left.remove(word)
                hits += 1
        return hits / len(a) * (exp(1 - len(b) / len(a)) if len(a) < len(b) else 1.0)

    def of(one: Thinking) -> float:
        e = one.e
        if not e.signal:
            return 0.0
        text = "\n".join(" ".join(x) for x in one.pieces)
        every = thoughts(text)
        kinds = [kind for kind, _ in every]
        ids = named(" ".join(inner for _, inner in every))
        worth = 0.0
        if "think" in kinds and e.answered:
            worth += 0.5
        if any(a == "think" and "rethink" in kinds[i:] for i, a in enumerate(kinds)):
            worth += 0.5
        if ids and all(x in one.newest(exists) for x in ids):
            worth += 0.5
        if number and one.told[-1].get(number) == len(ids):
            worth += 1
        if wanted:
            worth += 0.1 * alike(one.text(said), one.text(wanted))
        said_words = words(text)
        places = [said_words[i : i + gram] for i in range(len(said_words) - gram + 1)]
        again = sum(x in places[:i] for i, x in enumerate(places)) / max(1, len(places))
        right = e.signal[-1] * (2 if signal == "standing" else 1) if signal else sum(e.paid["outcome"])
        return worth + right + 0.5 * (1 - again)

    return [last(one.e, of(one)) for one in group]
