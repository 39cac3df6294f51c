"""What a gateway is told twice is done once, what it cannot keep is no answer, and a folder has one writer."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
import secrets

import aiohttp
import pytest

import turnwise
from turnwise.agents.evaluation.folder import EvaluationFolder
from turnwise.agents.hosting.routes import add_routes
from turnwise.agents.hosting.session_host import Host, HostOptions
from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.cli import gateway as command
from turnwise.cli.app import run
from turnwise.doors import Door
from turnwise.durable import hold_folder

TOKEN = "the-token-of-this-test"
GIVEN = {"Authorization": f"Bearer {TOKEN}"}


async def told(client: aiohttp.ClientSession, url: str, body: object) -> tuple[int, dict]:
    async with client.post(url, json=body) as response:
        return response.status, await response.json()


def hosted(on_episode=None) -> Host:
    host = Host(turnwise.make_policy("scripted:echo"), HostOptions(), on_episode)
    add_routes(host, lambda: Door("127.0.0.1", host.server.port, TOKEN))
    return host


def test_a_payment_or_an_end_that_is_sent_again_is_made_once_and_another_end_is_refused():
    async def run():
        done = []
        host = hosted(done.append)
        await host.start()
        async with aiohttp.ClientSession(headers=GIVEN) as client:
            _, one = await told(client, f"{host.server.address}/sessions", {"prompt": "x"})
            asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            own = {"Authorization": f"Bearer {one['key']}"}
            async with client.post(
                f"{one['base_url']}/chat/completions", json=asked, headers=own
            ) as response:
                assert response.status == 200
            pay = one["url"] + "/reward"
            twice = [told(client, pay, {"reward": 0.25}) for _ in range(2)]
            assert [status for status, _ in await asyncio.gather(*twice)] == [200, 200]
            assert (await told(client, pay, {"reward": 0.25, "turn": 0}))[0] == 200
            assert (await told(client, pay, {"reward": 0.25, "id": "another"}))[0] == 200
            for body in (
                {"reward": 1e308},
                {"reward": int("9" * 400)},
                {"reward": 1, "id": 2},
                {"reward": 1, "turn": 10**30},
            ):
                assert (await told(client, pay, body))[0] == 400, body
            assert (await told(client, pay, {"rewards": {"luck": 1}}))[0] == 400
            ends = [told(client, one["url"] + "/end", {"end": "solved", "reward": 0.5}) for _ in range(3)]
            answers = await asyncio.gather(
                *ends, told(client, pay, {"reward": 9}), told(client, one["url"] + "/end", {})
            )
            answers.append(await told(client, one["url"] + "/end", {"end": "solved", "reward": 0.5}))
        assert [status for status, _ in answers] == [200, 200, 200, 409, 409, 200]
        assert {json.dumps(answer) for status, answer in answers if status == 200} == {
            json.dumps(answers[0][1])
        }
        assert (answers[0][1]["score"], answers[0][1]["success"], len(done)) == (1.0, True, 1)
        await host.close()

    asyncio.run(run())


def test_an_episode_that_cannot_be_kept_is_no_success_for_whoever_ended_it(tmp_path):
    async def run():
        with EpisodeLog(tmp_path / "log.jsonl.zst", policy="mine") as log:

            def heard(episode):
                log.append(episode)
                log.flush()

            host = hosted(heard)
            await host.start()
            async with aiohttp.ClientSession(headers=GIVEN) as client:
                _, one = await told(client, f"{host.server.address}/sessions", {"prompt": "x"})
                assert (await told(client, one["url"] + "/end", {}))[0] == 200
                _, one = await told(client, f"{host.server.address}/sessions", {"prompt": "x"})
                limits = resource.getrlimit(resource.RLIMIT_FSIZE)
                resource.setrlimit(resource.RLIMIT_FSIZE, (log.path.stat().st_size, limits[1]))
                try:
                    status, said = await told(client, one["url"] + "/end", {})
                    assert (status, "could not be kept" in said["error"]) == (507, True)
                    status, said = await told(client, f"{host.server.address}/sessions", {"prompt": "x"})
                    assert status in (200, 503)
                finally:
                    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            await host.close()

    asyncio.run(run())
    assert len([*LogReader(tmp_path / "log.jsonl.zst")]) >= 1


def full_disk(out, at: int, answer) -> None:
    """Serve six episodes in a process of its own, whose files may have so many bytes; what came of it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (at, at))
    addresses: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("turnwise.terminal.hand_over", addresses.append)
        told: list[int] = []

        async def play(host: Host) -> None:
            async with aiohttp.ClientSession(headers=GIVEN) as client:
                for _ in range(6):
                    url = f"{host.server.address}/sessions"
                    async with client.post(url, json={"prompt": secrets.token_hex(2000)}) as response:
                        one = await response.json()
                    if response.status != 200:
                        return
                    async with client.post(one["url"] + "/end", json={}) as response:
                        told.append(response.status)
                    if response.status != 200:
                        return

        start = Host.start

        async def started(host: Host, *where) -> None:
            await start(host, *where)
            host.agents = asyncio.create_task(play(host))

        patch.setattr(Host, "start", started)
        options = command.ServedAt(out=out, token=TOKEN, episodes=6)
        result = command.gateway(policy="scripted:echo", place=options)
    answer.put((told, result.code, result.value))


@pytest.mark.slow
def test_a_gateway_on_a_full_disk_ends_and_says_what_it_kept(tmp_path):
    fork = multiprocessing.get_context("fork")
    answer = fork.Queue()
    process = fork.Process(target=full_disk, args=(tmp_path / "out", 12_000, answer))
    process.start()
    told, code, value = answer.get(timeout=120)
    process.join()
    kept = len([*LogReader(EvaluationFolder(tmp_path / "out").log)])
    assert (told, code, value["episodes"], kept) == ([*[200] * kept, 507], 1, kept, kept)
    assert 0 < kept < 6
    assert ("Cannot write" in value["error"], "--out" in value["remedy"]) == (True, True)


def test_a_folder_has_one_gateway_and_holds_one_evaluation(tmp_path, capsys):
    words = ["gateway", "--policy", "scripted:echo", "--json", "--out", str(tmp_path)]
    with hold_folder(tmp_path, "serves", lambda path, error: error):
        assert run(words) != 0
    assert "Another process serves or evaluates in" in capsys.readouterr().err
    with EpisodeLog(tmp_path / "episodes.jsonl.zst", policy="mine") as log:
        log.append(turnwise.rollout("shop/easy", "scripted:gold", episodes=1)[0])
    assert run(words) != 0
    assert "holds episodes already" in capsys.readouterr().err
