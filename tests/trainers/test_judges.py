"""Judges say what they are made to say: gold on real episodes, models over real HTTP."""

import asyncio
from dataclasses import replace

import pytest
from chat_server import said, serve

from turnwise.agents.core import Episode, Reply
from turnwise.agents.policies.mixture import mixture
from turnwise.agents.policies.scoring import YesNo
from turnwise.agents.rollout import run_episodes
from turnwise.envs.messages import Message
from turnwise.errors import EngineError
from turnwise.registry import get_component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.judge.critic import critic, verdict
from turnwise.trainers.judge.gold import gold
from turnwise.trainers.judge.principles import principles
from turnwise.trainers.judge.tournament import tournament
from turnwise.trainers.kit.asking import judged_now, trained
from turnwise.trainers.kit.bracket import standings
from turnwise.trainers.learn.collate import collate_turns
from turnwise.trainers.strategy.runner import plan_groups


@pytest.fixture(scope="module")
def groups() -> list:
    policy = mixture("demonstrator=0.5,random=0.5")
    return [run_episodes(requests, policy) for requests in plan_groups("shop/quick", 3, 4, 0)]


def test_gold_calls_turns_wrong_that_bring_nothing(groups) -> None:
    judged = asyncio.run(gold(groups))
    wrong = solved = 0
    for group in judged:
        places = sorted(e.trajectory.turns[0].signals["standing"] for e in group)
        assert places == pytest.approx([0, 1 / 3, 2 / 3, 1])
        best = max(group, key=lambda e: e.trajectory.turns[0].signals["standing"])
        assert best.trajectory.total_reward == max(e.trajectory.total_reward for e in group)
        for episode in group:
            for turn in episode.trajectory.turns:
                assert not turn.bad_action or turn.signals["wrong"] == 1
                wrong += turn.signals["wrong"]
            solved += episode.success
            assert episode.success or any(t.signals["wrong"] for t in episode.trajectory.turns)
    assert 0 < wrong < sum(len(e.trajectory.turns) for g in judged for e in g)
    turns = collate_turns(judged)
    for name in ("ppr", "arena"):
        given = get_component("credit", name).build({})(turns)
        assert given.isfinite().all()
        assert get_component("shape", "tp_grpo").build({})(given, turns).isfinite().all()


def test_a_critic_reads_every_episode_and_its_votes_are_counted(groups) -> None:
    with serve(lambda asked: said("The second.\nWRONG: 2")) as server:
        judged = asyncio.run(critic(groups[:1], policy=f"openai:m@{server.url}", critiques=2))
    assert len(server.requests) == 8
    shown = server.requests[0]["messages"][-1]["content"]
    assert "[turn 1]" in shown
    assert "WRONG" in shown
    for episode in judged[0]:
        told = [turn.signals["wrong"] for turn in episode.trajectory.turns]
        assert told == [float(k == 1) for k in range(len(told))]


def test_votes() -> None:
    answers = ["WRONG: 1, 2", "**WRONG:** 2", "WRONG: none", "who knows"]
    assert verdict(answers, 3, "intersection") == [0, 0, 0]
    assert verdict(answers, 3, "majority") == [0, 1, 0]
    assert verdict(["?"], 2, "mean") == [0, 0], "what cannot be read deducts nothing"


def test_principles_are_shares(groups) -> None:
    with serve(lambda asked: said("TURN 1: 3/4\nTURN 2: 9/4")) as server:
        judged = asyncio.run(principles(groups[:1], policy=f"openai:m@{server.url}"))
    for episode in judged[0]:
        told = [turn.signals["principle"] for turn in episode.trajectory.turns]
        assert told == [0.75] + [0.0] * (len(told) - 1)


def test_a_tournament_asks_in_both_orders(groups) -> None:
    """The judge of this test prefers short attempts, so the shortest wins."""

    def prefer_short(asked):
        question = asked["messages"][-1]["content"]
        first, second = question.split("=== Attempt A")[1].split("=== Attempt B")
        return said(f"POINTS: {10 if len(first) < len(second) - 200 else 2} 5")

    with serve(prefer_short) as server:
        judged = asyncio.run(tournament(groups[:1], policy=f"openai:m@{server.url}"))
    places = [e.trajectory.turns[0].signals["standing"] for e in judged[0]]
    assert sorted(places) == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert 6 <= len(server.requests) <= 6 + 2 * 3 * 2, (
        "a pair that was asked about before is not asked about again"
    )


@pytest.mark.slow
def test_a_judge_that_is_down_stops_the_update(groups) -> None:
    with serve(lambda asked: said("x")) as server:
        url = server.url
    with pytest.raises(EngineError):
        asyncio.run(critic(groups[:1], policy=f"openai:m@{url}", critiques=1))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_the_strongest_wins_and_comparisons_are_few(n: int) -> None:
    met = []

    async def compare(i: int, j: int) -> tuple[float, float]:
        met.append((i, j))
        return float(i), float(j)

    places = asyncio.run(standings(n, compare))
    assert places[n - 1] == (1 if n > 1 else 0.5)
    assert len(set(places)) == n
    assert len(met) <= 2 * (n - 1)


class _Busy:
    """Answers by what it is asked and by chance, and counts how many questions it has at once."""

    name, version = "busy", 0

    def __init__(self) -> None:
        self.now, self.most, self.scored = 0, 0, []

    async def act(self, history) -> Reply:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(50):  # whoever else wants to ask does
            await asyncio.sleep(0)
        self.now -= 1
        chance = derive_rng("busy", history.seed)
        points = ", ".join(str(chance.randint(1, 10)) for _ in range(2))
        turn = chance.choice(["1", "none"])
        return Reply(
            Message("assistant", f"WRONG: {turn}\nSCORES: {points}\nANSWER: {chance.choice(['yes', 'no'])}")
        )

    async def yes_no(self, questions) -> list[YesNo]:
        self.scored.append(len(questions))
        return [YesNo(-0.1, -len(str(one)) % 7 - 1.0) for one in questions]

    async def score(self, replies):
        raise NotImplementedError

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("judge", "options", "at_once"),
    [
        ("critic", {"critiques": 5}, 10),
        ("spct", {"samples": 5, "meta": "self"}, 5),
        ("genprm", {"critiques": 5, "code": False}, 20),
        ("think_prm", {"chains": 5}, 10),
    ],
)
def test_independent_samples_are_asked_together(groups, judge: str, options: dict, at_once: int) -> None:
    pair = [[_first_turns(one, 2) for one in groups[0][:2]]]
    told = []
    for _ in range(2):
        busy = _Busy()
        with trained(busy):
            judged = judged_now(get_component("judge", judge).build({"policy": "self", **options}), pair)
        told.append([[dict(turn.signals) for turn in one.trajectory.turns] for one in judged[0]])
        assert busy.most == at_once
        assert len(busy.scored) <= 1
    assert told[0] == told[1]


def _first_turns(episode: Episode, turns: int) -> Episode:
    cut = replace(episode.trajectory, turns=episode.trajectory.turns[:turns])
    return replace(episode, trajectories={cut.agent: cut})
