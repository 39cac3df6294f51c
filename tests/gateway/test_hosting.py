"""Sessions that others open: by HTTP and in Python, on a suite and in worlds of their own."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.request import Request, urlopen

import aiohttp
import pytest
from gateway_kit import AnsweringEngine
from lazily import Lazily

import turnwise
from turnwise.agents.core import PREVIOUS, ROOT, Outcome, Sampling, after
from turnwise.agents.gateway.core import RefusedError
from turnwise.agents.gateway.sessions import SessionLimits
from turnwise.agents.hosting.routes import add_routes
from turnwise.agents.hosting.session_host import Host, HostOptions
from turnwise.agents.policies.model import ModelPolicy
from turnwise.doors import Door
from turnwise.envs.core import EndReason
from turnwise.envs.registry import get_suite
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Split
from turnwise.trainers.credit.return_to_go import return_to_go
from turnwise.trainers.learn.collate import collate

openai = Lazily("openai")


@pytest.fixture
def model(renderer) -> ModelPolicy:
    return ModelPolicy(
        AnsweringEngine(renderer, lambda text: "fine"), renderer, Sampling(1.0, 1.0, 40), name="small"
    )


def test_a_world_of_one_s_own_pays_each_turn_and_is_a_logged_episode(model, tmp_path):
    with turnwise.gateway(model) as served, served.session("Say fine.") as one:
        with openai.OpenAI(base_url=one.base_url, api_key=one.key) as client:
            for n in range(2):
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"say {n}"}])
        one.reward(0.25, turn=0, component="step")
        one.reward(0.5)
        for turn, component, named in ((7, "outcome", "turn is 7"), (0, "luck", "outcome, step")):
            with pytest.raises(TurnwiseError, match=named):
                one.reward(1.0, turn=turn, component=component)
        episode = one.end(solved=True)
    assert (episode.success, episode.score, episode.outcome) == (True, 0.5, Outcome.OK)
    assert [turn.reward for turn in episode.trajectory.turns] == [0.25, 0.5]
    assert collate([[episode]]).rows.mask_RT.sum() == sum(len(d.token_ids) for d in model.engine.sampled)
    with turnwise.EpisodeLog(tmp_path / "own.jsonl.zst", policy="small") as log:
        log.append(episode)
    assert turnwise.replay(tmp_path / "own.jsonl.zst").ok


def test_a_suite_s_tasks_are_those_of_an_evaluation_and_its_environment_pays(model):
    with turnwise.gateway("scripted:gold", "shop/easy", split="test", plain_words=True) as served:
        with served.session() as one:
            play_shop(one)
            assert one.end().success
        with served.session() as left, pytest.raises(TurnwiseError, match="pays by itself"):
            left.reward(1.0)
    assert left.episode.end is EndReason.GAVE_UP
    tasks = [turnwise.suite_task(get_suite("shop/easy"), Split.TEST, n).id for n in range(2)]
    assert [episode.task.id for episode in served.episodes] == tasks


def test_a_function_becomes_an_agent_that_plays_an_episode_whenever_it_is_called(model):
    opened = []

    @turnwise.session(model, "Say fine.")
    def agent(one, number: int, *, again: bool = False):
        "Asks so many times."
        opened.append(one.key)
        with openai.OpenAI(base_url=one.base_url, api_key=one.key) as client:
            for n in range(number):
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"say {n}"}])
        return number / 4

    @turnwise.session(model)
    async def waiting(one):
        await asyncio.sleep(0)
        return False

    @turnwise.session(model)
    def judging(one):
        one.end(solved=True)

    episodes = [agent(1), agent(4, again=True)]
    assert [(one.success, one.score, len(one.trajectory.turns)) for one in episodes] == [
        (False, 0.25, 1),
        (True, 1.0, 4),
    ]
    assert len({*opened}) == 2
    assert (waiting().end, judging().end) == (EndReason.FAILED, EndReason.SOLVED)
    assert (agent.__name__, agent.__doc__) == ("agent", "Asks so many times.")
    assert collate([episodes]).rows.mask_RT.any()

    @turnwise.session(model)
    def broken(one):
        raise KeyError("of the agent's own")

    with pytest.raises(KeyError, match="of the agent's own"):
        broken()


def play_shop(one) -> None:
    """Does what the policy says, until the episode is over."""
    headers = {"Authorization": f"Bearer {one.key}"}
    with openai.OpenAI(base_url=one.base_url, api_key=one.key) as client:
        end, number = None, 0
        while end is None:
            number += 1  # the same words again are a new question here
            asked = [{"role": "user", "content": one.prompt}]
            reply = client.chat.completions.create(model="m", messages=asked, user=str(number))
            body = json.dumps({"text": reply.choices[0].message.content}).encode()
            with urlopen(Request(f"{one.url}/act", body, headers)) as answer:
                end = json.load(answer)["end"]


def test_a_session_on_a_task_is_paid_by_its_environment():
    task = turnwise.suite_task(get_suite("shop/easy"), Split.TEST, 5)
    with turnwise.session("scripted:gold", task) as one:
        assert task.prompt in one.prompt
        with pytest.raises(TurnwiseError, match="pays by itself"):
            one.reward(1.0)
        play_shop(one)
    assert (one.end().success, one.end().task) == (True, task)
    assert turnwise.session("scripted:gold", task)(play_shop)().success


def test_an_episode_that_ends_while_its_session_is_being_ended_is_kept(monkeypatch):
    with turnwise.gateway("scripted:gold", "shop/easy", seed=3) as served:
        wait = served._wait
        with served.session(index=0) as one:

            def late(work):
                async def over():
                    one._hosted.play.stop(EndReason.GAVE_UP)
                    await asyncio.wait([one._hosted.episode])
                    await asyncio.sleep(0)

                wait(over())
                return wait(work)

            monkeypatch.setattr(served, "_wait", late)
            assert one.end().end is EndReason.GAVE_UP
            assert [one.episode] == served.episodes
            monkeypatch.undo()


def test_a_function_is_evaluated_on_a_suite_with_the_statistics_of_an_evaluation(caplog):
    def every_other(one) -> None:
        if one.prompt in failing:
            raise ValueError("no idea")
        play_shop(one)

    tasks = [turnwise.suite_task(get_suite("shop/easy"), Split.TEST, n) for n in range(4)]
    with turnwise.gateway("scripted:gold", "shop/easy", split="test", seed=3, plain_words=True) as served:
        failing: list[str] = []
        done = served.evaluate(play_shop, episodes=4, at_once=3)
        with served.session(index=1) as one:
            failing.append(one.prompt)
        half = served.evaluate(every_other, episodes=2)
        with pytest.raises(TurnwiseError, match="in every episode, first ZeroDivisionError"):
            served.evaluate(lambda one: 1 / 0, episodes=2)
    log = turnwise.evaluate("shop/easy", "scripted:gold", episodes=4, seed=3)
    assert (done.success, done.success_interval, done.results) == (1.0, log.success_interval, log.results)
    assert {*done.results} == {task.id for task in tasks}
    assert (half.success, half.ends) == (0.5, {"solved": 1, "gave_up": 1})
    assert "no idea" in caplog.text
    with turnwise.gateway("scripted:gold") as own, pytest.raises(TurnwiseError, match="no suite"):
        own.evaluate(play_shop)


def test_sessions_over_http_need_the_token_and_the_abandoned_are_given_up(model):
    async def run():
        done = []
        host = Host(model, HostOptions(idle_s=0.2, limits=SessionLimits(calls=5), most=2), done.append)
        add_routes(host, lambda: Door("127.0.0.1", host.server.port, "the-token"))
        await host.start()
        url = f"{host.server.address}/sessions"
        async with aiohttp.ClientSession() as client:
            for headers in (
                {},
                {"Authorization": "Bearer no"},
                {"Authorization": "Bearer the-token", "Host": "evil"},
            ):
                async with client.post(url, headers=headers) as response:
                    assert response.status in (401, 421)
            given = {"Authorization": "Bearer the-token"}
            async with client.post(url, headers=given, json={"prompt": "x"}) as response:
                one = await response.json()
            for body in ({"index": -1}, {"promt": "x"}, {"index": "0"}):
                async with client.post(url, headers=given, json=body) as response:
                    assert response.status == 400
            own = {"Authorization": f"Bearer {one['key']}"}
            said = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            async with client.post(f"{one['base_url']}/chat/completions", json=said, headers=own) as response:
                assert response.status == 200
            for path in ("/reward", "/end"):  # an agent cannot pay itself
                async with client.post(one["url"] + path, json={"reward": 1}, headers=own) as response:
                    assert response.status == 401
            async with client.post(
                one["url"] + "/act", json={"text": '{"rewards": {"outcome": 1}}'}, headers=own
            ) as response:
                assert response.status == 404
            async with client.post(one["url"] + "/reward", json={"reward": 0.5}, headers=given) as response:
                assert response.status == 200
            ended = {"end": "solved", "reward": 0.5}
            async with client.post(one["url"] + "/end", json=ended, headers=given) as response:
                assert (await response.json())["score"] == 1.0
            async with client.post(f"{one['base_url']}/chat/completions", json=said, headers=own) as response:
                assert response.status == 401
            async with client.post(url, headers=given) as response:
                left = await response.json()
            while len(done) < 2:
                await asyncio.sleep(0.05)
            assert (done[1].end, done[1].score) == (EndReason.GAVE_UP, 0.0)
            assert left["id"] not in host.open_sessions
        await host.close()
        assert [episode.success for episode in done] == [True, False]

    asyncio.run(run())


def test_those_who_open_sessions_at_the_same_moment_get_no_more_than_there_may_be():
    async def run():
        options = HostOptions(get_suite("shop/easy"), Split.TEST, most=3, episodes=5)
        host = Host(turnwise.make_policy("scripted:gold"), options)
        await host.start()
        try:
            for opened, code in ((3, "too_many_sessions"), (2, "all_begun")):
                tries = await asyncio.gather(*(host.open() for _ in range(9)), return_exceptions=True)
                refused = [one.code for one in tries if isinstance(one, RefusedError)]
                assert (len(host.open_sessions), refused[-1:]) == (opened, [code])
                assert len(refused) == 9 - opened
                await asyncio.gather(*(host.end(name, EndReason.GAVE_UP) for name in [*host.open_sessions]))
        finally:
            await host.close()

    asyncio.run(run())


@pytest.mark.slow
def test_a_client_that_comes_again_during_an_update_gets_one_reply(model):
    """OpenAI's own client heeds what it is told while the weights change, and asks again."""

    async def run():
        host = Host(model)
        await host.start()
        host.update_lock.wait_s = 0.01
        try:
            one = await host.open(prompt="Say fine.")
            url = f"{host.server.address}/sessions/{one.seat.name}/v1"
            asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            async with openai.AsyncOpenAI(base_url=url, api_key=one.seat.key, max_retries=4) as client:
                async with host.update_lock.exclusive():
                    waiting = [asyncio.create_task(client.chat.completions.create(**asked)) for _ in range(3)]
                    while not one.play.session.counts.refused:
                        await asyncio.sleep(0.01)
                replies = await asyncio.gather(*waiting)
            assert len({reply.id for reply in replies}) == one.play.session.counts.replies == 1
            assert len(model.engine.sampled) == 1
        finally:
            await host.close()

    asyncio.run(run())


def test_whoever_changes_the_weights_holds_the_requests_meanwhile(model):
    """A reply that is being sampled is of the old weights, and one that is asked for meanwhile of the new."""
    engine = model.engine
    with turnwise.gateway(model) as served, served.session("Say fine.") as one, ThreadPoolExecutor() as pool:

        def ask(text: str) -> None:
            with openai.OpenAI(base_url=one.base_url, api_key=one.key, max_retries=0) as client:
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])

        served._loop.call_soon_threadsafe(engine.go.clear)
        first = pool.submit(ask, "first")
        while not engine.asked:
            time.sleep(0.01)
        served._loop.call_soon_threadsafe(served._loop.call_later, 0.2, engine.go.set)
        with served.held():
            assert len(engine.sampled) == 1
            second = pool.submit(ask, "second")
            time.sleep(0.3)
            assert len(engine.asked) == 1
            engine.version = 4
        first.result(30)
        second.result(30)
    versions = [turn.reply.versions[0].version for turn in served.episodes[0].trajectory.turns]
    assert versions == [3, 4]


def test_credit_reaches_the_tokens_of_every_branch_in_the_order_of_time(model):
    """A helper's reply between two of the main agent's has a row of its own, and the credit of what came after it."""

    def play(last: float):
        with turnwise.gateway(model) as served, served.session("Sum.") as one:
            with openai.OpenAI(base_url=one.base_url, api_key=one.key) as client:

                def ask(*messages):
                    done = client.chat.completions.create(model="m", messages=[*messages])
                    return {"role": "assistant", "content": done.choices[0].message.content}

                begin, helper = {"role": "user", "content": "begin"}, {"role": "user", "content": "help"}
                first = ask(begin)
                one.reward(0.25, turn=0)
                ask(helper)
                ask(begin, first, {"role": "user", "content": "go on"})
                one.reward(last, turn=2)
            return one.end(solved=last > 0)

    group = [play(1.0), play(0.0)]
    assert [turn.reply.parent for turn in group[0].trajectory.turns] == [PREVIOUS, ROOT, after(0)]
    batch = collate([group])
    credit = return_to_go(batch.turns)
    assert credit.tolist() == [[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]
    rows, (main, helper) = batch.rows, batch.rows.turn_RT[:2].tolist()
    assert rows.trajectory_R.tolist() == [0, 0, 1, 1]
    assert ({*main}, {*helper}) == ({-1, 0, 2}, {-1, 1})
    for k, turn in enumerate(group[0].trajectory.turns):
        assert rows.token_RT[:2][rows.turn_RT[:2] == k].tolist() == [*turn.reply.action_ids]
