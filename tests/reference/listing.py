"""The sampler of a list: which tasks two evaluations and a run leave, and how they fill an update."""

from __future__ import annotations

import dataclasses
import functools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from allocated import ended
from chosen import of_pool, stored, updates, visited
from drawn import SETUP, fair, refused
from plain import agree, mean, reference

from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.errors import RecipeError
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import SeenGroup

Make = Callable[..., Any]
MADE = tempfile.TemporaryDirectory()


class MadeFolder(str):
    """A folder that is told by its name, since its place is another one each time."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(Path(self).name)


WEAK, STRONG, RUN, SURE, EMPTY, NAMED, UNNAMED, MIXED = (
    MadeFolder(Path(MADE.name) / name)
    for name in ("weak", "strong", "run", "sure", "empty", "named", "unnamed", "mixed")
)
NAMES = (1, 2, 3, 5, 7, 9, 77)
RATES = {  # in twentieths; a task that is not there was not evaluated, one of None has no runs
    WEAK: {0: 0, 1: 0, 2: 10, 3: 18, 4: 0, 5: 9, 6: 19, 7: 5, 8: None, 10: 20, 40: 3},
    STRONG: {
        0: 0,
        1: 10,
        2: 18,
        3: 20,
        4: 2,
        5: 5,
        6: 20,
        7: 3,
        8: 20,
        9: 6,
        10: 2.25,
        11: 20,
        40: 19,
        41: None,
    },
}
PLAYED = {  # successes of four in the updates that played a task
    0: {1: 0, 2: 1, 3: 2, 5: 3, 10: 4},
    1: {1: 2, 2: 2, 4: 2},
    2: {2: 4, 3: 4, 4: 4, 5: 3, 6: 4},
    4: {1: 4},
    5: {1: 0, 2: 4, 3: 1},
    7: {3: 4, 4: 0},
    9: {1: 1, 3: 2, 7: 0},
    11: {9: 1, 10: 3},
    30: {1: 1, 2: 4},
}


@functools.cache
def written() -> None:
    for path, rates in RATES.items():
        results = {
            task_id(i): [] if c is None else [c / 20] if c % 1 else [1.0] * int(c) + [0.0] * (20 - int(c))
            for i, c in rates.items()
        }
        Path(path).mkdir()
        (Path(path) / "evaluation.json").write_text(json.dumps({"results": results}))
    Path(NAMED).write_text(json.dumps([task_id(i) for i in NAMES]))
    Path(MIXED).write_text(json.dumps([task_id(1), 2]))
    Path(UNNAMED).write_text('{"tasks": []}')
    Path(EMPTY).mkdir()
    (Path(EMPTY) / "evaluation.json").write_text("{}")
    for path, played in ((RUN, PLAYED), (SURE, {7: {1: 4}, 5: {1: 4, 2: 4}, 4: {1: 4, 2: 0}}), (EMPTY, {})):
        with EpisodeLog(Path(path) / "episodes.jsonl.zst") as log:
            for i, visits in played.items():
                task = SETUP.request(i).task
                for update, c in visits.items():
                    for member in range(4):
                        log.append(dataclasses.replace(ended(member < c), task=task), update=update, group=0)
            log.append(dataclasses.replace(ended(False), task=SETUP.request(6).task))  # of an evaluation


@functools.cache
def task_id(i: int) -> str:
    return SETUP.request(i).task.id


def left(size: int, weak: str, strong: str, low: float, high: float) -> list[int]:
    """A rate is not there, 0, or counted in twentieths."""
    return [
        i
        for i in range(size)
        if (not weak or (RATES[WEAK].get(i) or 0) < 20 * high)
        and (not strong or (RATES[STRONG].get(i) or 0) > 20 * low)
    ]


def best(tasks: list[int], keep: int, score: str) -> list[int]:
    """The largest variances of quarters, or the smallest shares of what is missing to a run that follows the others' mean."""
    past = {i: [c / 4 for _, c in sorted(PLAYED[i].items())] for i in tasks if i in PLAYED}

    def worth(i: int) -> float:
        v = past[i]
        if score == "std":
            return round(mean([x * x for x in v]) - mean(v) ** 2, 9)
        m = [mean([other[k] for other in past.values() if len(other) > k]) for k in range(len(v))]
        far = sum((1 - b) ** 2 for b in m)
        return round(1 - sum((a - b) ** 2 for a, b in zip(v, m, strict=True)) / far, 9) if far else 0.0

    return sorted(past, key=lambda i: (-worth(i), i))[:keep]


@reference(
    "sampler",
    "listed",
    size=[12],
    weak=[WEAK],
    strong=[STRONG],
    low=[0.25],
    high=[0.5],
    run=[RUN],
    keep=[4],
    score=["lim"],
    tasks=[NAMED],
    also=[
        {"size": 12, "weak": WEAK, "strong": STRONG},
        {"size": 12, "weak": WEAK, "strong": STRONG, "low": 0.25, "high": 0.5},
        {"size": 12, "weak": WEAK, "high": 1.0},
        {"size": 12, "weak": WEAK, "high": 0.2},
        {"size": 12, "strong": STRONG, "low": 0.0},
        {"size": 12, "run": RUN, "keep": 4},
        {"size": 12, "run": RUN, "keep": 9, "score": "lim"},
        {"size": 5, "run": RUN, "keep": 3, "score": "lim"},
        {"size": 7, "run": RUN, "weak": WEAK, "keep": 3, "score": "lim"},
        {"size": 12, "tasks": NAMED},
        {"size": 12, "tasks": NAMED, "weak": WEAK, "strong": STRONG},
        {"size": 12, "tasks": NAMED, "run": RUN, "keep": 3},
    ],
)
def listed(
    make: Make,
    size: int = 256,
    weak: str = "",
    strong: str = "",
    low: float = 0.1,
    high: float = 0.9,
    run: str = "",
    keep: int = 1,
    score: str = "std",
    tasks: str = "",
) -> None:
    written()
    for option, wrong in (
        *(("size=", 0), ("keep=", 0), ("low ", -0.1), ("low ", 1.1)),
        *(("high ", -0.1), ("high ", 1.1)),
    ):
        assert f"{option}{wrong:g} " in refused(make, **{option.rstrip("= "): wrong})
    for option, wrong in (
        ("weak", EMPTY),
        ("strong", f"{EMPTY}/none"),
        ("run", EMPTY),
        ("run", f"{EMPTY}/none"),
        ("tasks", f"{EMPTY}/none"),
        ("tasks", UNNAMED),
        ("tasks", MIXED),
    ):
        assert wrong in refused(make, **{option: wrong})
    assert f"none of the first {size} " in refused(make, strong=STRONG, low=1.0)
    if not (weak or strong or run or tasks):
        assert {one.index for one in make(SETUP, size=1).plan(0, 0, 6)} == {0}
        same = make(SETUP, run=SURE, keep=1, score="lim").plan(0, 0, 6)  # all score 0
        assert {one.index for one in same} == {4}
    assert "none of the first" in refused(make, strong=STRONG, low=1.0, run=RUN, score="lim")
    expected = [i for i in left(size, weak, strong, low, high) if not tasks or i in NAMES]
    expected = best(expected, keep, score) if run else expected
    try:
        sampler = make(SETUP)
    except RecipeError:
        assert not expected
        return
    assert sampler.figures() == {"tasks": len(expected)}
    assert sampler.returns
    assert sampler.repeats
    assert not sampler.by_success
    visits = dict.fromkeys(expected, 0)
    for update in range(4):
        asked = sampler.plan(update, 0, 6)
        assert [*sampler.plan(update, 0, 2), *sampler.plan(update, 2, 4)] == asked
        for one in asked:
            assert (one.episodes, one.weight, one.visits) == (4, 1.0, visits[one.index])
        counts = [sum(one.index == i for one in asked) for i in expected]
        assert {*counts} <= {6 // len(expected), -(-6 // len(expected))}
        sampler.seen(update, [SeenGroup(one, (), 0.0) for one in asked])
        visits |= {i: visits[i] + 1 for i in {one.index for one in asked}}
    stored(sampler, make)
    if len(expected) < 13:
        drawn = [[one.index for one in sampler.plan(update, 0, 6)] for update in range(60)]
        twice = 6 / len(expected) % 1
        for i in expected:
            if twice:
                fair(sum(one.count(i) > 6 // len(expected) for one in drawn), 60, twice)
            if len(expected) > 1:
                fair(sum(one[0] == i for one in drawn), 60, 1 / len(expected))
    other = make(SETUP)
    other.restore(PartState({"tasks": [3, 5], "visits": {"5": 7}}))
    assert {(one.index, one.visits) for one in other.plan(0, 0, 6)} == {(3, 0), (5, 7)}
    agree(other.figures()["tasks"], 2, "of the checkpoint")


@reference(
    "sampler", "veripo", size=[10], drop=[0.5, 1.0, 0.0], run=[RUN],
    also=[{"size": 10, "run": RUN}, {"size": 10, "drop": 1.0}, {"size": 10, "drop": 0.5}, {"size": 31, "run": RUN, "drop": 1.0}],
)  # fmt: skip
def veripo(make: Make, size: int = 256, drop: float = 0.8, run: str = "") -> None:
    written()
    for wrong in (-0.1, 1.1):
        assert f"drop {wrong:g} " in refused(make, drop=wrong)
    assert EMPTY in refused(make, run=EMPTY)
    sampler = make(SETUP)
    of_pool(make, sampler, size)
    last = {i: played[max(played)] == 4 for i, played in PLAYED.items() if run and i < size}
    known: dict[int, tuple[int, ...]] = {}
    rest = {*range(size)}
    if run:
        rest = a_set_of(sampler, size, last, drop)
    passes = 0
    for update, asked, seen in updates(sampler, 24 if size == 10 else 4):
        visited(asked, known)
        places = [one.index for one in asked]
        assert len(rest & {*places}) == min(6, len(rest)), "what the pass has left comes first"
        for place, group in enumerate(seen):
            index = group.request.index
            times = 1 + known.get(index, (0,))[0]
            known[index] = (times,)
            solved = index % 3 == 0 or (index % 3 == 1 and times % 2 == 1)
            members = [ended(solved or member < 2) for member in range(len(group.episodes))]
            seen[place] = group._replace(episodes=members)
            last[index] = bool(members) and all(one.success for one in members)
        sampler.seen(update, seen)
        rest -= {*places}
        if not rest:
            passes += 1
            rest = a_set_of(sampler, size, last, drop)
        figures = {"mastered": sum(last.values()), "to_play": len(rest)}
        assert sampler.figures() == figures
        seen.clear()  # it was told
    stored(sampler, make)
    assert (passes > 3) == (size == 10)
    fresh = make(SETUP)
    fresh.restore(PartState())
    assert fresh.figures() == {"mastered": 0, "to_play": size}
    if size == 10 and not run:
        first = [sampler.plan(update, 0, 6)[0].index for update in range(200)]
        pool = rest if len(rest) >= 6 else {*range(10)}
        assert {*first} == pool, "in chance order"


def a_set_of(sampler: Any, size: int, last: dict[int, bool], drop: float) -> set[int]:
    """The sampler's next set: all that are not mastered, and of those that are as many as are not dropped."""
    found = {*sampler.state().numbers["left"]}
    mastered = {i for i, is_so in last.items() if is_so}
    others = {*range(size)} - mastered
    wanted = len(mastered) - round(drop * len(mastered))
    if not others and not wanted:
        assert found == {*range(size)}
    else:
        assert found - mastered == others
        assert len(found & mastered) == wanted
    return found
