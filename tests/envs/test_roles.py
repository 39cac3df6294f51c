"""Second roles around any world: advice before each act, and an attempt that is read before the next."""

from __future__ import annotations

from random import Random

import pytest

from turnwise.agents.core import Episode, History, Reply
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.check.command import check_env
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.envs.search.simulated import SimulatedEnv
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task
from turnwise.trainers.proposer.core import tasks_within


class Heard:
    """Plays gold, or whatever its first word is to be; keeps what it was told."""

    name, version = "heard", 0

    def __init__(self, say: str = "") -> None:
        self.say, self.heard = say, list[str]()

    async def act(self, history: History) -> Reply:
        self.heard.append("\n".join(one.content for one in history.observation))
        act = self.say or history.env.gold(history.env.state)
        return Reply(act if isinstance(act, Message) else Message("assistant", act))

    def close(self) -> None:
        """Nothing is held."""


def play(form: str, within: str, **policies: Heard) -> Episode:
    task = suite_task(get_suite(f"{form}:{within}"), Split.TRAIN, 3)
    (episode,) = run_episodes([Request(task, 5)], policies)
    return episode


@pytest.mark.slow
@pytest.mark.parametrize(
    "suite",
    [
        "advised:shop/quick",
        "advised:calc/easy",
        "pair:household/easy",
        "pair:calc/easy",
        "simulated:search/quick",
        "refined:shop/quick",
        "refined:calc/easy",
        "refined:household/easy",
    ],
)
def test_a_world_with_roles_keeps_the_contract_of_environments(suite: str) -> None:
    """With tools and without; forks, determinism, bad acts, ends and rewards are those of the world within."""
    report = check_env(suite, tasks=3, quick=True)
    assert report.ok, str(report.to_json())


def test_the_actor_reads_the_newest_line_and_both_earn_what_the_act_earns() -> None:
    strategist, actor = Heard("compare\nthe  prices first"), Heard()
    episode = play("advised", "shop/quick", strategist=strategist, actor=actor)
    mine, theirs = episode.trajectories["strategist"], episode.trajectories["actor"]
    assert episode.success
    assert len(mine.turns) == len(theirs.turns) > 2
    assert [turn.reward for turn in mine.turns] == [turn.reward for turn in theirs.turns]
    assert mine.total_reward == 1.0
    assert all(heard.endswith("Advice : compare the prices first") for heard in actor.heard)
    (plain,) = run_episodes([Request(Task.from_json(episode.task.options["around"]), 5)], scripted("gold"))
    assert [t.action for t in theirs.turns] == [t.action for t in plain.trajectory.turns]
    for k, turn in enumerate(plain.trajectory.turns):
        seen = "\n".join(one.content for one in turn.observation if one.role != "system")
        assert seen in actor.heard[k]
        assert seen in strategist.heard[k]
    assert plain.trajectory.turns[0].observation[0].content in strategist.heard[0], "the rules of the world"


def test_a_demonstrated_actor_does_what_a_demonstrated_strategist_tells() -> None:
    """They are drawn apart, so that an actor that draws for itself differs somewhere in these tasks."""
    suite = get_suite("advised:shop/quick")
    requests = [Request(suite_task(suite, Split.TRAIN, n), n) for n in range(12)]
    for episode in run_episodes(requests, scripted("demonstrator")):
        mine, theirs = (episode.trajectories[name].turns for name in ("strategist", "actor"))
        assert [f"do : {turn.action.content}" for turn in theirs] == [turn.action.content for turn in mine]
        assert len(mine) > 1


def test_a_strategist_has_no_tools_and_the_actors_calls_are_answered_once() -> None:
    episode = play("advised", "calc/easy", strategist=Heard("go on"), actor=Heard())
    assert episode.success
    said = [m for t in episode.trajectories["actor"].turns for m in (*t.observation, t.action)]
    calls = [call.id for m in said for call in m.tool_calls]
    answered = [m.tool_call_id for m in said if m.role == "tool"]
    assert len(answered) == len({*answered})
    assert {*answered} <= {*calls}


def test_pioneer_and_observer_earn_the_sum_of_both_attempts() -> None:
    """CORY's numbers are 0.6 and 0.8, which give both 1.4; here 0 and 1, 1 and 1, which give 1 and 2."""
    for pioneer, sums in ((Heard("nothing of use"), 1.0), (Heard(), 2.0)):
        observer = Heard()
        episode = play("pair", "household/easy", pioneer=pioneer, observer=observer)
        assert [episode.trajectories[name].total_reward for name in ("pioneer", "observer")] == [sums, sums]
        assert episode.success, "it is the observer's that is evaluated"
        first = observer.heard[0]
        assert "Another agent has tried this" in first
        assert f"> {pioneer.say or episode.trajectories['pioneer'].turns[-1].action.content}" in first
        assert pioneer.heard[0].splitlines()[-1] in first, "it begins where the pioneer began"


def test_an_engine_writes_what_a_search_finds_and_is_told_the_query_alone() -> None:
    agent, engine = Heard(), Heard("nira :\n heir suki")
    episode = play("simulated", "search/quick", agent=agent, engine=engine)
    assert episode.success
    assert not any(turn.bad_action for one in episode.trajectories.values() for turn in one.turns)
    mine, theirs = (episode.trajectories[name].turns for name in ("agent", "engine"))
    assert (len(mine), len(theirs)) == (2, 1)
    query = mine[0].action.content.removeprefix("search[").removesuffix("]").strip()
    assert engine.heard[0].endswith(f"Query : {query}")
    assert episode.task.prompt not in engine.heard[0]
    assert agent.heard[1] == "nira : heir suki"
    assert mine[1].reward == theirs[0].reward == 1.0
    within = play("simulated", "search/quick", agent=Heard(), engine=Heard())
    plain = Heard()
    run_episodes([Request(Task.from_json(episode.task.options["around"]), 5)], plain)
    said = within.trajectories["engine"].turns[0].action.content
    assert said in plain.heard[1], "gold's engine shows what the library finds"


def test_a_simulated_search_has_tags_where_the_questions_have_them_and_no_other_tools() -> None:
    rng = Random("tags")
    task = SimulatedEnv.generate(rng, Split.TRAIN, suite="search/quick", pages="tags")
    env = make(task.env)
    env.reset(seed=0, options={"task": task})
    bad = env.step("open[1]")
    assert bad.info.get("bad_action")
    assert [one.spec.name for one in env.tools_for("agent")] == ["search", "answer"]
    assert env.tools_for("engine") == ()
    for empty in ("<search> </search>", "search[ ]"):
        assert env.step(empty).info.get("bad_action"), empty
    asked = env.step("<think>Who?</think><search> nira </search>")
    assert (env.agent, asked.observation[-1].content) == ("engine", "Query : nira")
    found = env.step("<think>I recall.</think> nira is\n a town")
    assert found.observation[-1].content == "<information>\nnira is a town\n</information>"
    gold = Task.from_json(task.options["around"]).gold["answers"][0]
    ended = env.step(f"<answer>{gold}</answer>")
    assert (ended.reward, ended.info["end"]) == (1.0, "solved")
    for suite in ("shop/quick", "search/standard"):
        with pytest.raises(EnvError, match="no searches that an agent could answer"):
            get_suite(f"simulated:{suite}")


class Refines(Heard):
    """Says these before it is asked whether its attempt is right, those then, and plays gold after a cut or where it has nothing to say."""

    def __init__(self, first: list[str], then: list[str]) -> None:
        super().__init__()
        self.first, self.then = [*first], [*then]

    async def act(self, history: History) -> Reply:
        said = history.observation[-1].content
        if "of yours and what came after" in said:
            self.first = []
        asked = said.endswith("accept or cut ?") or "say accept" in said
        lines = self.then if asked else self.first
        self.say = lines.pop(0) if lines else ""
        return await super().act(history)


def test_an_attempt_is_accepted_or_cut_once_and_what_stands_is_paid() -> None:
    """Search-R2: the prefix before the cut is kept, what came after counts for nothing, and a second way stands."""
    looks = Refines([], ["accept"])
    episode = play("refined", "shop/quick", agent=looks)
    plain = [str(turn.action) for turn in episode.trajectory.turns[:-1]]
    assert episode.success
    assert episode.trajectory.total_reward == 1.0
    assert all(f"{n} > {act}" in looks.heard[-1] for n, act in enumerate(plain, 1))
    bad = ["nothing of use"] * 60
    for first, said, solved in (
        (bad, "cut 1", True), (plain[:2] + bad, "Cut  3", True), (bad, "accept", False), (plain, "cut 2", True),
    ):  # fmt: skip
        looks = Refines(first, ["hm", "cut 0", "cut 99", said])
        episode = play("refined", "shop/quick", agent=looks)
        turns = episode.trajectory.turns
        assert (episode.success, episode.trajectory.total_reward) == (solved, float(solved))
        at = next(k for k, heard in enumerate(looks.heard) if heard.endswith("accept or cut ?"))
        assert [turn.bad_action for turn in turns[at : at + 4]] == [True] * 3 + [False]
        assert not any(turn.reward for turn in turns[: at + 3])
        if said != "accept":
            number = int(said.split()[-1])
            assert f"Turn {number} of yours" in looks.heard[at + 4]
            assert [str(turn.action) for turn in turns[at + 4 :]] == plain[number - 1 :], (
                "it goes on where it was"
            )
            assert looks.heard[number - 1].splitlines()[-1] in looks.heard[at + 4]


def test_tasks_around_others_hold_them_and_worlds_that_are_not_pure_are_refused() -> None:
    task = suite_task(get_suite("advised:shop/quick"), Split.TEST, 0)
    inner = suite_task(get_suite("shop/quick"), Split.TEST, 0)
    assert [one.env for one in tasks_within(task)] == ["turnwise/Advised-v0", "turnwise/Shop-v0"]
    assert task.prompt == Task.from_json(task.options["around"]).prompt != ""
    assert inner.env == "turnwise/Shop-v0"
    for suite in ("games/kuhn-self", "impossible:shop/quick", "tracker/all"):
        with pytest.raises(EnvError, match="cannot be played within another world"):
            get_suite(f"pair:{suite}")


def test_it_goes_on_from_a_moment_in_another_environment_of_its_class() -> None:
    """As forks and replays do: the world within is made anew there."""
    task = suite_task(get_suite("advised:shop/quick"), Split.TRAIN, 1)
    env = make(task.env)
    env.reset(seed=2, options={"task": task})
    env.step("look at all")
    moment, other = env.snapshot(), make(task.env)
    act = env.gold(env.state)
    one = env.step(act)
    other.restore(moment)
    assert other.tools_for("actor") == env.tools_for("actor")
    assert other.step(act) == one
