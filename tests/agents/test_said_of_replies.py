"""What is said about replies, in the figures of an evaluation: cut, refused, what they took, and when it stops."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import turnwise
from turnwise.agents.core import Finish, Reply, Served, Usage
from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.agents.log.episode_log import read_episodes
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.errors import TurnwiseError


class Saying:
    """Gives gold's actions, and says this about each."""

    name, version = "saying", 0

    def __init__(self, *said: Served, words: str | None = None) -> None:
        self.said, self.words, self.given = said, words, 0
        self.playing = self.most = 0

    async def act(self, history):
        served = self.said[self.given % len(self.said)]
        self.given += 1
        if served.finish is Finish.CONTEXT:
            return Reply(Message("assistant", ""), end=EndReason.TOKEN_LIMIT, served=served)
        gold = history.env.gold(history.env.state)
        message = Message("assistant", gold) if isinstance(gold, str) else gold
        return Reply(message if self.words is None else Message("assistant", self.words), served=served)

    def close(self):
        pass


def evaluated(policy, **options) -> Evaluation:
    return turnwise.evaluate(
        "calc/easy", policy, **{"episodes": 4, "concurrency": 2, "retries": 0, **options}
    )


def test_cut_replies_are_named_before_the_figures():
    found = evaluated(Saying(Served(Finish.LENGTH), words="x"))
    replies = found.said.replies
    assert found.said.causes == {"cut_by_limit": replies}
    assert f"cut by max_tokens: {replies} of {replies} replies" in found.headline
    assert "--max-tokens" in found.headline
    data = json.loads(json.dumps(found.to_json()))
    assert (data["headline"], data["said"]["causes"]) == (found.headline, {"cut_by_limit": replies})
    assert Evaluation.from_json(data).said == found.said


def test_thoughts_that_took_the_whole_limit_are_told_apart_and_a_few_are_no_headline():
    few = evaluated(Saying(*[Served(Finish.STOP)] * 5, Served(Finish.LENGTH, thoughts="hm")), episodes=8)
    assert few.headline == ""
    assert {*few.said.causes} == {"cut_by_limit"}  # they said something
    hidden = Served(Finish.LENGTH, usage=Usage(9, 400, reasoning=400))
    for said, words in (
        (Served(Finish.LENGTH, thoughts="hm"), " "),
        (hidden, ""),
        (Served(Finish.LENGTH), "<think>Hm"),
    ):
        none = evaluated(Saying(said, words=words))
        assert {*none.said.causes} == {"thoughts_ate_budget"}
    assert "thoughts took all of max_tokens" in none.headline


def test_a_full_context_and_refusals_are_counted_and_no_headline_of_their_own():
    full = evaluated(Saying(Served(Finish.CONTEXT)))
    assert (full.said.causes, full.headline) == ({"context_full": 4}, "")
    refused = evaluated(Saying(Served(Finish.REFUSAL)))
    assert "refused by the model" in refused.headline


def test_what_replies_took_is_added_up_and_written_into_the_log(tmp_path):
    usage = Usage(10, 5, 2, 4, 0.25)
    found = evaluated(Saying(Served(Finish.STOP, usage=usage)), log=tmp_path / "log.jsonl")
    n = found.said.replies
    assert found.said.usage == Usage(10 * n, 5 * n, 2 * n, 4 * n, 0.25 * n)
    assert turnwise.replay(tmp_path / "log.jsonl").ok
    (episode, *_) = read_episodes(tmp_path / "log.jsonl")
    assert episode.trajectory.turns[0].reply.served.usage == usage


@pytest.mark.parametrize("limit", [{"max_total_tokens": 600}, {"max_cost": 6.0}])
def test_an_evaluation_stops_before_it_costs_more_and_goes_on_later(tmp_path, limit):
    policy = Saying(Served(Finish.STOP, usage=Usage(10, 5, cost=0.15)))
    found = evaluated(policy, episodes=40, log=tmp_path / "log.jsonl", **limit)
    assert 4 < found.episodes < 40
    spent = found.said.usage
    assert (spent.prompt or 0) + (spent.completion or 0) <= 600
    assert "would go beyond it" in found.stopped
    finished = [*read_episodes(tmp_path / "log.jsonl")]
    assert len(finished) == found.episodes
    rest = evaluated(policy, episodes=40, finished=finished)
    assert (rest.episodes, rest.stopped, rest.success) == (40, "", 1.0)


def test_a_cost_that_nobody_tells_is_no_limit_and_is_said():
    found = evaluated(Saying(Served(usage=Usage(10, 5))), episodes=20, max_cost=1.0)
    assert found.episodes < 20
    assert "tells no cost" in found.stopped
    with pytest.raises(TurnwiseError, match="Give more than 0"):
        evaluated(Saying(Served()), max_cost=0.0)


def test_a_policy_without_a_price_plays_all_episodes_whatever_the_limit_of_tokens():
    assert evaluated("scripted:gold", max_total_tokens=1).episodes == 4


PLAYER = """
from turnwise.agents.core import Finish, Reply, Served, Usage
from turnwise.envs.messages import Message

def act(history):
    return Reply(Message("assistant", "x"), served=Served(Finish.LENGTH, usage=Usage(10, 5)))
"""


def test_the_command_line_says_it_first_and_ends_with_3_where_it_stopped(tmp_path):
    (tmp_path / "player.py").write_text(PLAYER)
    command = [
        sys.executable,
        "-m",
        "turnwise",
        "eval",
        "calc/easy",
        "--policy",
        "player.py:act",
        "--out",
        "out",
    ]
    asked = [*command, "--episodes", "12", "--max-total-tokens", "400", "--concurrency", "2"]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stdout.lstrip().startswith("The figures are not the policy's: cut by max_tokens:")
    assert "--resume" in done.stdout
    again = [*command, "--episodes", "12", "--resume", "--json"]
    done = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, check=False)
    data = json.loads(done.stdout)
    assert (done.returncode, data["episodes"], data["stopped"]) == (0, 12, "")
    assert data["said"]["usage"]["prompt"] == 10 * data["said"]["replies"]
