import asyncio
import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from turnwise.agents.core import Episode, Outcome
from turnwise.agents.evaluate import Evaluation, evaluate, evaluate_async, requests_for, summarize
from turnwise.agents.log import read_episodes
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.statistics import wilson
from turnwise.agents.summary import comparison_table, evaluation_table
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
    assert one["mean_score_interval"] == [None, None]


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
    requests = requests_for(suite, "test", episodes=100, k=2)
    assert [r.task for r in requests_for(suite, Split.TEST, episodes=10)] == [r.task for r in requests[:20:2]]
    assert len({r.seed for r in requests}) == 100
    assert max(r.seed for r in requests) < 2**53
    assert len(requests_for(suite, "test", episodes=10, k=4)) == 12  # rounded up to whole tasks


def test_infrastructure_failures_are_left_out_and_counted(episodes):
    failed = [replace(e, outcome=Outcome.INFRA_ERROR, end=None, error="boom") for e in episodes[:3]]
    clean = summarize(episodes[3:], suite="s", policy="p")
    mixed = summarize([*failed, *episodes[3:]], suite="s", policy="p")
    assert (mixed.success, mixed.mean_score, mixed.turns) == (clean.success, clean.mean_score, clean.turns)
    assert mixed.success_interval == clean.success_interval
    assert (mixed.episodes, mixed.excluded, mixed.outcomes["infra_error"]) == (12, 3, 3)
    assert "left out: infra_error" in printed(evaluation_table(mixed))


def test_a_task_that_counts_too_few_times_is_not_extrapolated(episodes):
    twice = [*episodes, *(replace(e, seed=e.seed + 1) for e in episodes[1:])]
    only_pairs = summarize([*episodes[1:], *twice[12:]], suite="s", policy="p", k=2)
    assert summarize(twice, suite="s", policy="p", k=2).pass_at_k == only_pairs.pass_at_k
    assert summarize(episodes, suite="s", policy="p", k=2).pass_at_k is None


def test_a_broken_engine_says_so_instead_of_scoring_zero(suite, player):
    with pytest.raises(TurnwiseError, match="5 infra_error") as caught:
        evaluate(suite, player(1.0, broken=True), episodes=5)
    assert "the engine is gone" in caught.value.remedy


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
    assert again.compare(result).difference == 0


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
    better = printed(comparison_table({"warm start": weak, "after RL": strong}))
    assert "The difference is significant:" in better
    assert "McNemar over 60 tasks" in better
    same = printed(comparison_table({"a": weak, "[bold]b": weak}))
    assert "The difference is not significant:" in same
    assert "[bold]b" in same  # names are text, not markup
    one = printed(evaluation_table(evaluate(suite, player(0.5), episodes=40, k=4)))
    assert "pass^4" in one
    assert "10 tasks × 4 runs" in one


def test_opponents_must_be_agents_of_the_suite():
    with pytest.raises(NotFoundError, match="Did you mean 'opponent'"):
        evaluate("games/kuhn-self", scripted("gold"), episodes=4, opponents={"oponent": scripted("rival")})
    both = {name: scripted("rival") for name in ("agent", "opponent")}
    with pytest.raises(TurnwiseError, match="plays nobody"):
        evaluate("games/kuhn-self", scripted("gold"), episodes=4, opponents=both)
