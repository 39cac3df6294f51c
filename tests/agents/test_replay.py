import itertools
from dataclasses import replace

import pytest

from turnwise.agents.core import Outcome
from turnwise.agents.evaluation.evaluate import evaluate
from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.agents.replay import replay
from turnwise.agents.rollout import Limits, Request, run_episodes
from turnwise.envs.core import AgentEnv, EndReason
from turnwise.envs.registry import env_class, suite_tasks
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Split


@pytest.fixture
def records(suite, player, tmp_path):
    evaluate(suite, player(0.6), episodes=20, log=tmp_path / "e.jsonl.zst")
    return list(LogReader(tmp_path / "e.jsonl.zst"))


def test_a_log_replays_byte_for_byte(suite, player, tmp_path):
    path = tmp_path / "e.jsonl.zst"
    evaluate(suite, player(0.6), episodes=50, k=2, log=path)
    report = replay(path)
    assert (report.ok, report.episodes, report.equal, report.difference) == (True, 50, 50, None)
    assert report.turns > 100
    assert str(report) == f"50 of 50 episodes ({report.turns} turns) replay byte for byte."
    assert report.to_json()["ok"] is True


@pytest.mark.parametrize("limits", [Limits(episode_tokens=5), Limits(episode_s=-1.0)])
def test_cut_episodes_and_shaped_rewards_replay_too(suite, player, tmp_path, limits):
    requests = [Request(task, 5) for task in suite_tasks(suite, Split.DEV, 15)]
    options = {"shaping": 0.5}
    episodes = run_episodes(requests, player(0.4), limits=limits, env_options=options)
    assert {e.end for e in episodes} & {EndReason.TOKEN_LIMIT, EndReason.TIME_LIMIT}
    assert any(turn.rewards.get("progress") for e in episodes for turn in e.trajectory.turns)
    with EpisodeLog(tmp_path / "e.jsonl", env_options=options) as log:
        for episode in episodes:
            log.append(episode)
    assert str(replay(tmp_path / "e.jsonl")).startswith("15 of 15 episodes")


def _turn_changed(record, number, **changes):
    trajectory = record.episode.trajectory
    turns = list(trajectory.turns)
    turns[number] = replace(turns[number], **changes)
    agents = {"agent": replace(trajectory, turns=tuple(turns))}
    return replace(record, episode=replace(record.episode, trajectories=agents))


@pytest.mark.parametrize(
    ("change", "turn", "what"),
    [
        (lambda r: _turn_changed(r, 1, reward=0.25), 2, "reward"),
        (lambda r: _turn_changed(r, 1, reward=r.episode.trajectory.turns[1].reward + 1e-17), 2, "reward"),
        (lambda r: _turn_changed(r, 1, rewards={"cost": -0.02}), 2, "reward parts"),
        (lambda r: _turn_changed(r, 0, state_key="0" * 16), 1, "state key"),
        (lambda r: _turn_changed(r, 0, bad_action=True), 1, "bad action"),
        (lambda r: _turn_changed(r, 0, details={"x": 1}), 1, "details"),
        (lambda r: replace(r, episode=replace(r.episode, end=EndReason.GAVE_UP)), 0, "end"),
        (lambda r: replace(r, episode=replace(r.episode, seed=r.episode.seed + 1)), None, "observation"),
    ],
)
def test_the_first_difference_is_shown(records, change, turn, what):
    at = next(i for i, r in enumerate(records) if len(r.episode.trajectory.turns) > 4)
    changed = change(records[at])
    if changed.episode.trajectory.turns[1].reward == records[at].episode.trajectory.turns[1].reward + 1e-17:
        changed = _turn_changed(records[at], 1, reward=-0.010000000000000002)  # the next float
    report = replay([*records[:at], changed, *records[at + 1 :]])
    assert not report.ok
    assert report.equal == len(records) - 1
    assert (report.difference.line, report.difference.what) == (at + 1, what)
    if turn is not None:
        assert report.difference.turn == turn
    assert report.difference.expected != report.difference.got
    assert f"episode {at + 1}, " in str(report)
    assert not report.difference.code_changed


def test_an_environment_that_depends_on_hidden_state_is_caught(records, monkeypatch):
    cls: type[AgentEnv] = env_class("turnwise-test/Guess-v0")
    honest, visits = cls.initial, itertools.count()

    def forgetful(self, task):
        state, text = honest(self, task)
        return state, f"{text} visit {next(visits)}"

    monkeypatch.setattr(cls, "initial", forgetful)
    difference = replay(records).difference
    assert (difference.line, difference.turn, difference.what) == (1, 1, "observation")
    assert "visit 0" in difference.got


def test_an_environment_that_now_raises_is_a_difference_not_a_crash(records, monkeypatch):
    def broken(self, state, action):
        raise RuntimeError("the new version is broken")

    monkeypatch.setattr(env_class("turnwise-test/Guess-v0"), "transition", broken)
    report = replay(records)
    assert report.equal == 0
    assert (report.difference.turn, report.difference.what) == (1, "fault")
    assert "the new version is broken" in report.difference.got


def test_changed_code_is_pointed_out(records):
    old = _turn_changed(replace(records[0], env=records[0].env._replace(source="0" * 16)), 0, state_key="x")
    report = replay([old])
    assert report.difference.code_changed
    assert "code has changed" in str(report)


def test_a_record_that_a_fault_cut_short_is_compared_as_far_as_it_goes(records):
    episode = records[0].episode
    short = replace(episode.trajectory, turns=episode.trajectory.turns[:1])
    cut = replace(
        episode, trajectories={"agent": short}, outcome=Outcome.INFRA_ERROR, end=None, error="out of memory"
    )
    assert replay([replace(records[0], episode=cut)]).ok


def test_nothing_to_replay(tmp_path):
    with pytest.raises(TurnwiseError, match="no episode to replay"):
        replay([])
