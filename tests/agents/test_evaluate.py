import asyncio
import io
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.evaluation.evaluate import (
    Evaluation,
    TooManyFailedError,
    evaluate,
    evaluate_async,
    summarize,
)
from turnwise.agents.evaluation.failures import Cause
from turnwise.agents.evaluation.statistics import wilson
from turnwise.agents.evaluation.summary import comparison_table, evaluation_table
from turnwise.agents.log.episode_log import read_episodes
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout_tasks import requests_for
from turnwise.envs.core import EndReason
from turnwise.envs.registry import suite_tasks
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Split


def test_gold_is_perfect_and_the_null_agent_is_not(suite):
    gold = evaluate(suite, scripted("gold"), episodes=30)
    assert (gold.success, gold.mean_score, gold.turns) == (1.0, 1.0, 1.0)
    assert gold.success_interval == pytest.approx(wilson(30, 30))
    null = evaluate("test/guess", scripted("null"), episodes=30, split="dev")
    assert (null.success, null.mean_score, null.turns) == (0.0, 0.0, 6.0)
    assert null.outcomes == {"ok": 0, "limit": 30, "env_error": 0, "verifier_error": 0, "infra_error": 0}
    assert null.ends == {"turn_limit": 30}


def test_the_json_has_what_is_promised(suite, player):
    evaluation = evaluate(suite, player(0.5), episodes=20, k=2)
    data = json.loads(json.dumps(evaluation.to_json(), allow_nan=False))
    promised = "suite policy episodes success success_interval mean_score pass_at_k pass_hat_k outcomes"
    assert set(promised.split()) <= set(data)
    assert (data["suite"], data["policy"], data["episodes"], data["tasks"]) == (
        "test/guess",
        "player",
        20,
        10,
    )
    assert data["pass_hat_k"] <= data["success"] <= data["pass_at_k"]
    assert data["success_interval"][0] < data["success"] < data["success_interval"][1]
    assert "results" not in data
    assert len(evaluation.to_json(results=True)["results"]) == 10
    one = evaluate(suite, player(0.5), episodes=1).to_json()
    assert one["mean_score_interval"] == [None, None]  # one task tells nothing of the spread of scores


def test_the_figures_are_those_of_the_episodes(suite, player):
    heard: dict[int, Episode] = {}
    result = evaluate(suite, player(0.3), episodes=24, k=2, on_episode=heard.__setitem__)
    runs: dict[str, list[bool]] = {}
    for index in sorted(heard):
        runs.setdefault(heard[index].task.id, []).append(heard[index].success)
    assert sorted(heard) == list(range(24))
    assert [len(run) for run in runs.values()] == [2] * 12
    assert result.success == pytest.approx(sum(map(sum, runs.values())) / 24)
    assert result.pass_at_k == pytest.approx(sum(any(run) for run in runs.values()) / 12)
    assert result.pass_hat_k == pytest.approx(sum(all(run) for run in runs.values()) / 12)
    assert 0 < result.pass_hat_k < result.pass_at_k < 1, "a player too good or bad to tell them apart"


def test_the_same_call_gives_the_same_evaluation_and_another_seed_does_not(suite, player):
    def play(**options) -> Evaluation:
        return replace(evaluate(suite, player(0.5), episodes=40, **options), seconds=0)

    assert play() == play(concurrency=1)
    assert play().results != play(seed=1).results


def test_requests_are_the_suite_s_first_tasks_with_seeds_of_their_own(suite):
    requests = [*requests_for(suite, "test", episodes=100, k=2)]
    assert [r.task for r in requests_for(suite, Split.TEST, episodes=10)] == [r.task for r in requests[:20:2]]
    assert len({r.seed for r in requests}) == 100
    assert max(r.seed for r in requests) < 2**53
    assert len([*requests_for(suite, "test", episodes=10, k=4)]) == 12  # rounded up to whole tasks


def test_playing_begins_while_tasks_are_still_drawn(suite, player, monkeypatch):
    drawn: list[str] = []
    heard: dict[int, tuple[int, Episode]] = {}

    def counted(*asked):
        for task in suite_tasks(*asked):
            drawn.append(task.id)
            yield task

    monkeypatch.setattr("turnwise.agents.rollout_tasks.suite_tasks", counted)
    evaluate(suite, player(0.5), episodes=300, on_episode=lambda i, e: heard.update({i: (len(drawn), e)}))
    assert min(before for before, _ in heard.values()) < 150
    monkeypatch.undo()
    asked = [(request.task.id, request.seed) for request in requests_for(suite, "test", episodes=300)]
    assert [(heard[i][1].task.id, heard[i][1].seed) for i in range(300)] == asked


def test_infrastructure_failures_are_left_out_and_counted(episodes):
    failed = [replace(e, outcome=Outcome.INFRA_ERROR, end=None, error="boom") for e in episodes[:3]]
    clean = summarize(episodes[3:], suite="s", policy="p")
    mixed = summarize([*failed, *episodes[3:]], suite="s", policy="p")
    assert (mixed.success, mixed.mean_score, mixed.turns) == (clean.success, clean.mean_score, clean.turns)
    assert mixed.success_interval == clean.success_interval
    assert (mixed.episodes, mixed.excluded, mixed.outcomes["infra_error"]) == (12, 3, 3)
    assert "left out: infra_error" in printed(evaluation_table(mixed))


def failing(episodes: list[Episode], *errors: str, outcome=Outcome.ENV_ERROR) -> list[Episode]:
    """The first episodes, each ended by an error."""
    return [
        replace(e, outcome=outcome, end=None, error=error) for e, error in zip(episodes, errors, strict=False)
    ]


def as_solved(episode: Episode, solved: bool) -> Episode:
    """The episode with its last turn scored 1 or 0, and its end."""
    first = episode.trajectory
    name = next(name for name, one in episode.trajectories.items() if one is first)
    rows = [replace(turn, rewards={"outcome": 0.0}) for turn in first.turns]
    rows[-1] = replace(rows[-1], rewards={"outcome": float(solved)})
    whole = {**episode.trajectories, name: replace(first, turns=type(first.turns)(rows))}
    return replace(episode, trajectories=whole, end=EndReason.SOLVED if solved else EndReason.FAILED)


def test_many_failures_make_success_a_bound_with_causes_and_places(episodes):
    errors = [
        "KeyError: 'a' (my_env/env.py:42)",
        "DeadlineError: step() of x took more than 1 s (it stood at a/b.py:7 in transition). → Wait.",
        "KeyError: 'b' (my_env/env.py:42)",
    ]
    mixed = summarize([*failing(episodes, *errors), *episodes[3:]], suite="s", policy="p")
    solved = sum(e.success for e in episodes[3:])
    assert mixed.success_bound == pytest.approx((solved / 12, (solved + 3) / 12))
    assert (mixed.failed_share, mixed.bounded) == (0.25, True)
    assert mixed.causes == (
        Cause("env_error", "KeyError: 'a'", "my_env/env.py:42", 2),
        Cause("env_error", "DeadlineError: step() of x took more than 1 s. → Wait.", "a/b.py:7", 1),
    )
    shown = " ".join(printed(evaluation_table(mixed)).split())
    assert "success, a bound" in shown
    assert "2 × env_error at my_env/env.py:42: KeyError: 'a'" in shown
    assert "failures depend on what the policy does" in shown
    data = json.loads(json.dumps(mixed.to_json(results=True)))
    assert (data["bounded"], data["success_bound"]) == (True, list(mixed.success_bound))
    assert Evaluation.from_json(data) == mixed
    pair = printed(comparison_table([("before", "greedy", mixed), ("after", "greedy", mixed)]))
    assert "(3 left out)" in pair
    assert "before (greedy): 2 × env_error at my_env/env.py:42" in pair


def test_few_failures_leave_success_a_figure(episodes):
    many = [replace(e, seed=e.seed + i) for i in range(20) for e in episodes]
    one = summarize([*failing(many, "boom"), *many[1:]], suite="s", policy="p")
    assert (one.excluded, one.bounded) == (1, False)
    assert "a bound" not in printed(evaluation_table(one))
    assert "1 × env_error: boom" in printed(evaluation_table(one))
    none = summarize(many, suite="s", policy="p")
    assert (none.bounded, none.success_bound) == (False, (none.success, none.success))


def test_more_failures_than_accepted_are_an_error_that_keeps_the_figures(suite, player):
    flaky = player(1.0, broken_on=3)
    with pytest.raises(TooManyFailedError, match=r"of 30 episodes do not count, more than 10 %") as caught:
        evaluate(suite, flaky, episodes=30)
    kept = caught.value.evaluation
    assert kept.excluded > 3
    assert "the engine is gone" in str(caught.value)
    assert replace(evaluate(suite, flaky, episodes=30, max_failed=0.9), seconds=kept.seconds) == kept


def test_a_task_that_counts_too_few_times_is_not_extrapolated(episodes):
    twice = [*episodes, *(replace(e, seed=e.seed + 1) for e in episodes[1:])]
    only_pairs = summarize([*episodes[1:], *twice[12:]], suite="s", policy="p", k=2)
    assert summarize(twice, suite="s", policy="p", k=2).pass_at_k == only_pairs.pass_at_k
    assert summarize(episodes, suite="s", policy="p", k=2).pass_at_k is None


def test_pass_at_k_and_pass_hat_k_say_of_which_tasks_they_are_and_bound_the_others(episodes):
    runs = [replace(e, seed=100 * i + n) for n, e in enumerate(episodes[:10]) for i in range(4)]
    solved = [as_solved(run, n < 28) for n, run in enumerate(runs)]
    whole = summarize(solved, suite="s", policy="p", k=4)
    assert (whole.pass_at_k, whole.pass_hat_k, whole.pass_tasks) == (0.7, 0.7, 10)
    assert whole.pass_at_k_interval.low < 0.7 < whole.pass_at_k_interval.high
    assert "bound" not in printed(evaluation_table(whole))
    # The three tasks that are never solved lose a run each: what is left is perfect, and says so of seven tasks.
    lost = [
        *solved[:28],
        *(one for n in (28, 32, 36) for one in [*failing(solved[n:], "gone")[:1], *solved[n + 1 : n + 4]]),
    ]
    part = summarize(lost, suite="s", policy="p", k=4)
    assert (part.pass_at_k, part.pass_hat_k, part.pass_tasks, part.tasks) == (1.0, 1.0, 7, 10)
    assert part.pass_at_k_bound == pytest.approx((0.7, 1.0))
    assert part.pass_hat_k_bound == pytest.approx((0.7, 0.7))
    shown = printed(evaluation_table(part))
    assert "pass@4, a bound" in shown
    assert "70.0 … 100.0 %" in shown
    assert shown.count("of 7 of 10 tasks") == 2
    assert Evaluation.from_json(json.loads(json.dumps(part.to_json(results=True)))) == part


def test_scores_that_are_the_successes_have_their_interval(episodes):
    found = summarize([as_solved(e, n % 3 > 0) for n, e in enumerate(episodes)], suite="s", policy="p")
    assert (found.mean_score, found.mean_score_interval) == (found.success, found.success_interval)


def test_a_broken_engine_says_so_instead_of_scoring_zero(suite, player):
    with pytest.raises(TurnwiseError, match="5 infra_error") as caught:
        evaluate(suite, player(1.0, broken=True), episodes=5)
    assert "5 × infra_error at " in caught.value.remedy
    assert "conftest.py:" in caught.value.remedy
    assert "ConnectionError: the engine is gone" in caught.value.remedy


def test_what_was_played_is_in_the_log(suite, player, tmp_path):
    path = tmp_path / "eval.jsonl.zst"
    heard: list[Episode] = []
    result = asyncio.run(
        evaluate_async(suite, player(0.5), episodes=40, log=path, on_episode=lambda _, e: heard.append(e))
    )
    logged = list(read_episodes(path))
    assert logged == heard
    again = summarize(logged, suite=result.suite, policy=result.policy)
    assert again.success_interval == result.success_interval
    assert again.results == result.results


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "tset"}, "Did you mean 'test'"),
        ({"episodes": 0}, "must be at least 1"),
        ({"k": 0}, "must be at least 1"),
    ],
)
def test_bad_requests(suite, options, message):
    with pytest.raises(TurnwiseError, match=message):
        evaluate(suite, scripted("gold"), **options)


def test_unknown_suite(suite):
    with pytest.raises(TurnwiseError, match="Did you mean 'test/guess'"):
        evaluate("test/gess", scripted("gold"))


def printed(renderable) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(renderable)
    return console.file.getvalue()


def test_tables_say_whether_a_difference_is_significant(suite, player):
    weak, strong = (evaluate(suite, player(skill), episodes=60) for skill in (0.0, 0.9))
    better = printed(comparison_table([("warm start", "sampled", weak), ("after RL", "sampled", strong)]))
    assert "The difference is significant:" in better
    assert "McNemar over 60 tasks" in better
    same = printed(comparison_table([("a", "sampled", weak), ("[bold]b", "sampled", weak)]))
    assert "The difference is not significant:" in same
    assert "[bold]b" in same  # names are text, not markup
    one = printed(evaluation_table(evaluate(suite, player(0.5), episodes=40, k=4)))
    assert "pass^4" in one
    assert "10 tasks × 4 runs" in one


@pytest.mark.slow
def test_verdicts_pair_sampled_with_sampled_and_greedy_with_greedy(suite, player):
    skills = {
        ("warm start", "sampled"): 0.0,
        ("warm start", "greedy"): 0.5,
        ("after RL", "sampled"): 0.7,
        ("after RL", "greedy"): 1.0,
    }
    found = {key: evaluate(suite, player(skill), episodes=60) for key, skill in skills.items()}
    rows = [(name, mode, evaluation) for (name, mode), evaluation in found.items()]
    shown = " ".join(printed(comparison_table(rows)).split())
    for mode in ("sampled", "greedy"):
        said = shown.partition(f"{mode}, after RL against warm start: ")[2].partition("points")[0]
        difference = found["after RL", mode].success - found["warm start", mode].success
        assert said.endswith(f": {100 * difference:+.1f} ")
    # An interrupted run has one name only, or not every mode of the last one.
    assert "points" not in printed(comparison_table(rows[:2]))
    assert printed(comparison_table(rows[:3])).count("points") == 1


def test_opponents_must_be_agents_of_the_suite():
    with pytest.raises(NotFoundError, match="Did you mean 'opponent'"):
        evaluate("games/kuhn-self", scripted("gold"), episodes=4, opponents={"oponent": scripted("rival")})
    both = {name: scripted("rival") for name in ("agent", "opponent")}
    with pytest.raises(TurnwiseError, match="plays nobody"):
        evaluate("games/kuhn-self", scripted("gold"), episodes=4, opponents=both)


@pytest.mark.slow
def test_a_notebook_has_no_standard_error_with_a_descriptor():
    program = (
        "import io, sys, turnwise\n"
        "from turnwise.agents.policies.scripted import scripted\n"
        "sys.stderr = io.StringIO()\n"
        "print(turnwise.evaluate('shop/easy', scripted('gold'), episodes=2).success)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "1.0\n", done.stderr


def test_numbers_of_numpy_are_numbers(suite, tmp_path):
    found = evaluate(
        suite,
        scripted("gold"),
        episodes=np.int64(4),
        k=np.int64(2),
        seed=np.int64(3),
        log=tmp_path / "e.jsonl.zst",
    )
    assert json.loads(json.dumps(found.to_json()))["seed"] == 3
    assert (found.episodes, found.k) == (4, 2)
