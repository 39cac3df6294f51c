"""Who called whom is known where words tell it, and one credit rule sees it."""

from __future__ import annotations

import asyncio
import itertools
from math import exp

import pytest

from turnwise.agents.core import PREVIOUS, ROOT, Episode, Outcome, Reply, Trajectory, Turn, after
from turnwise.agents.gateway.core import ChatRequest
from turnwise.agents.gateway.external_env import external_task
from turnwise.agents.gateway.sessions import AgentSession
from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.agents.policies.own import FunctionPolicy
from turnwise.envs.core import AgentEnv, EndReason
from turnwise.envs.messages import Message, Messages
from turnwise.tools.core import ToolCall
from turnwise.trainers.credit.branch_return import branch_return
from turnwise.trainers.credit.return_to_go import return_to_go
from turnwise.trainers.kit.toy_batches import turn_batch
from turnwise.trainers.learn.collate import collate_turns

TASK = external_task("Plan a trip.")
GO = Message("user", "Plan a trip.")
TRAINS, HOTELS = "Find a train to Lyon in May.", "Find a hotel near the station."


def helper(task: str, name: str) -> ToolCall:
    return ToolCall("delegate", {"task": task, "speed": 1}, name)


def say(history) -> Message:
    """The main agent sends for two helpers; one of these sends for a third."""
    match history.observation[-1].content:
        case "Plan a trip.":
            return Message("assistant", "", (helper(TRAINS, "call_a"), helper(HOTELS, "call_b")))
        case text if text.endswith(TRAINS):
            return Message("assistant", "", (helper("now", "call_c"),))
        case text:
            return Message("assistant", f"This is what I found about it: {text[:9]}")


class Talks:
    """A session, and what was replied in it."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self._session = AgentSession(FunctionPolicy(say), TASK, AgentEnv[int](), heard=self.replies.append)

    async def ask(self, *said: Message) -> Message:
        body = {"messages": [message.to_json() for message in said], "number": len(self.replies)}
        return (await self._session.ask(ChatRequest(said), body)).message


def replies_to(*conversations: list[Message]) -> list[Reply]:
    """What is replied to conversations, one after the other."""

    async def run() -> list[Reply]:
        talks = Talks()
        for said in conversations:
            await talks.ask(*said)
        return talks.replies

    return asyncio.run(run())


def user(text: str) -> Message:
    return Message("user", text)


def test_a_sub_agent_s_caller_is_the_turn_whose_argument_is_its_task():
    train, hotel = [Message("system", "You help."), user(f"Your task: {TRAINS}")], [user(HOTELS)]

    async def run() -> list[Reply]:
        talks = Talks()
        ask = talks.ask
        first = await ask(GO)
        second = await ask(*train)
        await ask(*hotel)
        await ask(user("now"))  # short words, but all of a message
        await ask(*train, second, Message("tool", "So be it.", tool_call_id=second.tool_calls[0].id))
        await ask(*hotel)  # again: why, nobody knows
        results = [Message("tool", "done", tool_call_id=call.id) for call in first.tool_calls]
        await ask(GO, first, *results)
        await ask(user(TRAINS))  # the call was answered
        return talks.replies

    replies = asyncio.run(run())
    assert [reply.parent for reply in replies] == [
        PREVIOUS, ROOT, ROOT, ROOT, after(1), ROOT, after(0), ROOT,
    ]  # fmt: skip
    assert [reply.caller for reply in replies] == [None, 0, 0, 1, None, None, None, None]


@pytest.mark.parametrize(
    "said",
    [
        [user("Something else.")],
        [
            user(f"So far: This is what I found about it: Something. Go on. {TRAINS}")
        ],  # told what a reply said
        [user(TRAINS), Message("assistant", "I have begun."), user("Go on.")],  # a history that was retold
        [Message("system", TRAINS), user("begin")],  # words of the system, not of the task
    ],
)
def test_who_began_a_conversation_is_not_known_where_anything_speaks_against_it(said):
    replies = replies_to([user("Something")], [GO], said)
    assert [reply.caller for reply in replies] == [None, None, None]


def test_a_log_and_the_trainer_s_batch_hold_the_tree(tmp_path):
    replies = replies_to([GO], [user(TRAINS)], [user(HOTELS)])
    turns = tuple(Turn(Messages(), reply, 0.0, {}, "") for reply in replies)
    episode = Episode(TASK, 0, {"agent": Trajectory(turns)}, Outcome.OK, EndReason.GAVE_UP)
    with EpisodeLog(tmp_path / "log.jsonl.zst", policy="own") as log:
        log.append(episode)
    (record,) = LogReader(tmp_path / "log.jsonl.zst")
    assert [turn.reply.caller for turn in record.episode.trajectory.turns] == [None, 0, 0]
    tree = collate_turns([[record.episode]]).tree
    assert tree is not None
    assert (tree.parent_BK.tolist(), tree.caller_BK.tolist()) == ([[-1, -1, -1]], [[-1, 0, 0]])


def test_with_helpers_the_rule_that_sees_branches_has_the_exact_gradient_and_less_noise():
    """A main turn calls two helpers, who each do a 1 (which is paid) or a 0; the main agent is paid if both did."""
    chance = [1 / (1 + exp(-x)) for x in (0.3, -0.5)]
    plays = [*itertools.product((0, 1), repeat=2)]
    tree = {"parents": [[-1, -1, -1, 0]] * 2, "callers": [[-1, 0, 0, -1]] * 2}

    def likely(play: tuple[int, int]) -> float:
        return chance_of(play[0], chance[0]) * chance_of(play[1], chance[1])

    def chance_of(did: int, p: float) -> float:
        return p if did else 1 - p

    exact = [p * (1 - p) * (1 + other) for p, other in zip(chance, chance[::-1], strict=True)]
    noise = {}
    for rule in (return_to_go, branch_return):
        mean, square = [0.0, 0.0], [0.0, 0.0]
        for one, other in itertools.product(plays, repeat=2):  # all groups of two
            rewards = [[0, a, b, a * b] for a, b in (one, other)]
            credit = rule(turn_batch(rewards, **tree)).tolist()
            for helper in (0, 1):
                slopes = [play[helper] - chance[helper] for play in (one, other)]
                update = sum(credit[i][helper + 1] * slopes[i] for i in (0, 1)) / 2
                mean[helper] += likely(one) * likely(other) * update
                square[helper] += likely(one) * likely(other) * update**2
        assert mean == pytest.approx(exact, abs=1e-12)
        noise[rule] = [s - m**2 for s, m in zip(square, mean, strict=True)]
    assert noise[branch_return][0] < 0.8 * noise[return_to_go][0]
    assert noise[branch_return][1] == pytest.approx(
        noise[return_to_go][1]
    )  # nothing stands after it that it did not cause


def test_an_agent_s_own_summary_is_a_memory_and_its_conversation_goes_on() -> None:
    """It is recognised by its words in a beginning that was rewritten; a cut history is, by what is left of it."""
    system = Message("system", "You plan trips.")
    long = [system, GO]

    async def run() -> list[Reply]:
        talks = Talks()
        ask = talks.ask
        first = await ask(*long)
        more = [
            *long,
            first,
            Message("tool", "A train.", tool_call_id=first.tool_calls[0].id),
            Message("tool", "A hotel.", tool_call_id=first.tool_calls[1].id),
        ]
        second = await ask(*more)
        summary = await ask(*more, second, user("Sum up."))
        await ask(system, user(f"So far: {summary.content} Go on."))  # 3: from the summary
        await ask(system, second, user("And then?"))  # 4: cut, from the second reply
        await ask(
            Message("system", "You check facts."), user(f"Is it true? {summary.content}")
        )  # 5: another's words
        await ask(system, user("Plan another trip."))  # 6: a new conversation
        return talks.replies

    replies = asyncio.run(run())
    assert [reply.continues for reply in replies] == [None, None, None, 2, 1, None, None]
    assert replies[3].parent == replies[4].parent == ROOT
