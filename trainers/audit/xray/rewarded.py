"""Tasks of rows with a reward function, and of verifiers environments: all agents, under all conditions, by their own judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from turnwise.tools.sandbox.core import Backend, Root
from turnwise.trainers.audit.xray.answers import attempts, hangs, is_code, told_by_print
from turnwise.trainers.audit.xray.core import HASHES, PATIENT, Attempt, Judged, ProbedTask, XrayCost, XTask
from turnwise.trainers.audit.xray.reward_calls import MODES, RewardDesk, RewardFunction

VERDICTS = 90
"""About so many verdicts are asked of a task."""
_REPEATS, _SLOW_S, _PATIENTLY = 6, 0.02, 3


def probe_rewarded(
    backend: Backend, root: Root, by: RewardFunction, tasks: Sequence[XTask], line: float
) -> list[ProbedTask]:
    """Ask the reward function of every agent's answer to every task."""
    with closing(RewardDesk(backend, root, by)) as desk:
        first = desk.ask(tasks, [*_first(tasks, by)], "plain")
        held: list[list[Judged]] = [[] for _ in tasks]
        for number, one in first:
            held[number].append(one)
        line = _line(held, line)
        best = [_best(one) for one in held]
        took = sum(one.verdict.seconds for seen in held for one in seen) / max(len(first), 1)
        for mode, jobs in _more(tasks, best, _REPEATS if took < _SLOW_S else 2):
            for number, one in desk.ask(tasks, jobs, mode):
                held[number].append(one)
        for mode, jobs in _patient(
            [ProbedTask(task, seen, line) for task, seen in zip(tasks, held, strict=True)]
        ):
            for number, one in desk.ask(tasks, jobs, mode):
                held[number].append(one)
    return [ProbedTask(task, seen, line) for task, seen in zip(tasks, held, strict=True)]


def _patient(probed: Sequence[ProbedTask]) -> Iterator[tuple[str, list[tuple[int, Attempt]]]]:
    """Ask for verdicts that changed once more, where the judge's own time limits are longer."""
    asked: dict[str, list[tuple[int, Attempt]]] = {}
    for number, one in enumerate(probed):
        if one.in_doubt is not None:
            attempt, mode = one.in_doubt
            for again in ("plain", mode):
                asked.setdefault(f"{again}{PATIENT}", []).extend([(number, attempt)] * _PATIENTLY)
    yield from asked.items()


def cost(tasks: int, *, seconds: float) -> XrayCost:
    """The price of asking that many tasks."""
    verdicts = tasks * VERDICTS
    return XrayCost(tasks, verdicts, 1, 2 * len(MODES) + verdicts * seconds)


def _first(tasks: Sequence[XTask], by: RewardFunction) -> Iterator[tuple[int, Attempt]]:
    printed = [*told_by_print(by.files.get(by.file, b"").decode("utf-8", "replace"))]
    for number, task in enumerate(tasks):
        near = [*tasks[number + 1 : number + 8], *tasks[max(0, number - 7) : number]]
        others = near if len(tasks) > 40 else [*near, *tasks]
        yield from ((number, attempt) for attempt in attempts(task, others))
        yield from ((number, attempt) for attempt in printed if is_code(task))


def _best(seen: Sequence[Judged]) -> Attempt:
    """The form of the right answer that pays most; the first form where none is paid, garbage where there is none."""
    golds = [one for one in seen if one.attempt.agent == "gold"]
    if not golds:
        return next(one.attempt for one in seen if one.attempt.agent == "garbage")
    return max(golds, key=lambda one: one.verdict.score if one.verdict.score is not None else -1e9).attempt


def _more(
    tasks: Sequence[XTask], best: Sequence[Attempt], repeats: int
) -> Iterator[tuple[str, list[tuple[int, Attempt]]]]:
    wrong = [Attempt("garbage", "zqx vrml 83151.77 blorp"), Attempt("empty", "")]
    both = [(n, one) for n in range(len(tasks)) for one in (best[n], *wrong)]
    traced = [(n, one) for n in range(len(tasks)) for one in (best[n], *wrong)]
    yield "trace", traced
    yield "again", [one for _ in range(repeats) for one in reversed(both)]
    yield "low", both
    yield "high", both
    for seed in HASHES:
        yield f"hash {seed}", [(n, best[n]) for n in range(len(tasks))]
    yield "elsewhere", [(n, one) for n in range(len(tasks)) for one in (best[n], wrong[0])]
    yield (
        "time up",
        [
            (n, one)
            for n, task in enumerate(tasks)
            for one in (wrong[0], *(Attempt("hang", text) for text in hangs(task)))
        ],
    )


def _line(held: Sequence[Sequence[Judged]], line: float) -> float:
    """The score from which an answer counts as accepted: half of the highest that a right one gets, where that is not 1."""
    scores = [
        one.verdict.score
        for seen in held
        for one in seen
        if one.attempt.agent == "gold" and one.verdict.score is not None
    ]
    top = max(scores, default=1.0)
    return line * top if top > 1.0 else line
