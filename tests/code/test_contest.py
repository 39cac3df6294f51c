"""Contest problems: both solutions agree where both can answer, and only the fast one answers the largest tests in time."""

# pyright: reportTypedDictNotRequiredAccess=false

import random
import re
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from turnwise.envs.code.contest.core import (
    SECONDS,
    Contest,
    build_contest,
    contest_of,
    contests,
    large_case,
    large_input,
    small_inputs,
)
from turnwise.envs.code.families.core import Arguments, expected, reference
from turnwise.envs.code.tasks import problem_of
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.tasks.core import Split

NAMES = sorted(contests())
SAMPLED = random.Random(0).sample(NAMES, 3)  # `full` has all of them


class OutOfTime(Exception):
    """A program ran for its whole time."""


def limited(solve: Callable[..., Any], given: Arguments, seconds: float) -> Any:
    """What a program answers; OutOfTime after so many seconds of processor time."""

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        return expected(solve, given)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def drawn(name: str, seed: int = 0) -> Contest:
    return contest_of(name, contests()[name].sample(random.Random(seed)))


def both(made: Contest) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return reference(made.solution, made.entry), reference(made.naive, made.entry)


def test_there_are_forty_families_and_several_problems_of_each():
    assert len(NAMES) >= 40
    assert all(len(contests()[name].every()) >= 8 for name in NAMES)


def test_every_statement_reads_as_a_sentence_and_no_parameter_does_nothing_in_it():
    clumsy = re.compile(
        r"\(s\)|divides by|\b[23]th\b|\b1 (days|letters|minutes|primes|times)\b|\bplus 0\b|\+ 0\b|\b0 more\b|of 0[,.;]|\b1 ·"
    )
    for name in NAMES:
        every = contests()[name].every()
        stories = [contest_of(name, params).story for params in every]
        assert len({*stories}) == len(every), name
        for story in stories:
            found = clumsy.search(story)
            assert not found, f"{name}: {found and found.group()!r} in {story}"


@pytest.mark.parametrize("name", NAMES)
def test_the_fast_and_the_naive_solution_agree_on_small_inputs(name):
    for seed in range(2):
        made = drawn(name, seed)
        fast, naive = both(made)
        for given in small_inputs(made, random.Random(seed), 25):
            right = expected(naive, given)
            assert expected(fast, given) == right, given
            assert type(expected(fast, given)) is type(right)


def out_of_time(name: str, room: float, limit: float) -> None:
    """The fast solution answers the largest tests with room, and the naive one not within the limit."""
    problem = build_contest(name, contests()[name].sample(random.Random(1)), visible=2, hidden=2, variant=0)
    made = contest_of(name, problem.large[0].params)
    fast, naive = both(made)
    start = time.process_time()
    for test in problem.large:
        expected(fast, large_input(test))
    used = time.process_time() - start
    assert used < room, f"{name}: {used:.1f} s"
    with pytest.raises(OutOfTime):
        limited(naive, large_input(problem.large[0]), max(limit, 3 * used))


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLED)
def test_sampled_families_part_fast_from_naive(name):
    out_of_time(name, SECONDS / 2, 0.5)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_the_naive_solution_of_every_family_runs_out_of_time(name):
    out_of_time(name, SECONDS / 2, SECONDS / 2)  # there are two large tests


def test_statements_have_limits_examples_and_no_problem_of_another_split():
    seen: dict[Split, set[str]] = {}
    for split in Split:
        tasks = list(suite_tasks(get_suite("code/hard"), split, 60))
        seen[split] = {task.options["problem"]["statement"] for task in tasks}
        for task in tasks[:8]:
            problem = problem_of(task)
            assert "Limits: " in problem.statement
            assert len(problem.visible) == 2
            assert len(problem.large) == 2
            assert len(repr(task.options)) < 20_000  # the largest inputs are not written down
    assert not seen[Split.TRAIN] & seen[Split.TEST]
    assert not seen[Split.DEV] & seen[Split.TEST]
    assert not seen[Split.TRAIN] & seen[Split.DEV]


def test_inputs_keep_the_limits_that_a_solution_may_allot_its_lists_by():
    rng = random.Random(0)
    for name, most in (("best_jobs", 70_000), ("fewest_jumps", 30_000)):
        for given in small_inputs(drawn(name), rng, 30):
            bounds = [item[0] if isinstance(item, list) else item for item in given[0]]  # pyright: ignore
            assert max(bounds) <= most
    for text, pattern in small_inputs(drawn("shuffled_windows"), rng, 30):
        assert 1 <= len(str(pattern)) <= (len(str(text)) + 1) // 2
    for name, most in (("tree_distances", 30_000), ("common_boss", 40_000)):
        made = drawn(name)
        for size in (1, 2, made.large):
            parents = made.draw(rng, size)[0]
            assert isinstance(parents, list)
            assert 2 <= len(parents) + 1 <= most
            assert all(0 <= parent < node for node, parent in enumerate(parents, 1))


def test_a_large_test_is_a_function_of_its_name():
    test = build_contest("residue_pairs", {"m": 7, "r": 1}, visible=2, hidden=2, variant=3).large[0]
    one, other = large_case(test), large_case(test)
    assert one == other
    assert isinstance(one.given, tuple)
    assert len(one.given[0]) == 60_000
    counts = [sum(weight % 7 == rest for weight in one.given[0]) for rest in range(7)]
    apart = sum(counts[a] * counts[(1 - a) % 7] for a in range(7) if a < (1 - a) % 7)
    same = sum(n * (n - 1) // 2 for a, n in enumerate(counts) if 2 * a % 7 == 1)
    assert one.expected == apart + same


@pytest.mark.usefixtures("copying")
@pytest.mark.slow
def test_the_environment_judges_a_slow_program_as_a_failure():
    from turnwise.envs.code.env import CodeEnv

    env = CodeEnv()
    task = next(iter(suite_tasks(get_suite("code/hard"), Split.TEST, 1)))
    made = contest_of(task.options["origin"]["family"], task.options["origin"]["params"])
    for program, score in ((made.solution, 1.0), (made.naive, 0.0)):
        env.reset(seed=0, options={"task": task})
        step = env.step(f"submit\n```python\n{program}\n```")
        assert step.info["rewards"]["outcome"] == score
        details = step.info["details"]
        assert details["hidden_passed"] == details["hidden"]
        assert (details["large_passed"] == details["large"]) is (score == 1.0)
