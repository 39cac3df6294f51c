"""Context managers: what a policy is shown, what it writes for later, and that every token of it is known."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from turnwise.agents.contexts.core import ContextView, Look, make_context, read_context
from turnwise.agents.contexts.recollection import NOTHING, recollection
from turnwise.agents.core import PREVIOUS, ROOT, Episode, History, MemoryMark, Reply, Sampling, Turn
from turnwise.agents.engines.recorded import RecordedEngine
from turnwise.agents.log.records import Record, from_line, to_line
from turnwise.agents.models.small import train_tokenizer
from turnwise.agents.policies.model import DemonstrationPolicy, ModelPolicy, prompt_of
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.replay import replay
from turnwise.agents.rollout import BranchPoint, rollout_episode
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.baselines import foreseen, moment
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import get_suite, make, register, suite_tasks
from turnwise.errors import NotFoundError, RecipeError, TurnwiseError
from turnwise.registry import components, get_component
from turnwise.requirements import check_component
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolCall
from turnwise.trainers.learn.collate import collate

TASK = Task("test/LongCount-v0", "Count to two hundred.")
TURNS, TOKENS = 200, 740


class LongCount(AgentEnv[int]):
    """Counts two hundred turns aloud."""

    blocking = False
    turn_limit = TURNS

    def initial(self, task: Task) -> tuple[int, str]:
        return 0, task.prompt

    def transition(self, state: int, action: Message) -> Transition[int]:
        end = EndReason.SOLVED if state + 1 == TURNS else None
        return Transition(
            state + 1, f"turn {state + 1} was counted", {"outcome": float(end is not None)}, end
        )


register("test/LongCount-v0", f"{__name__}:LongCount", "Counts.")


@cache
def tokenizer() -> Any:
    text = "Count to two hundred. turn 1 was counted go stop I counted note fold 0123456789"
    return train_tokenizer([text] * 4, vocab_size=300)


def renderer(context: Look | None, tools: str = "none") -> Renderer:
    return Renderer(tokenizer(), tools_format=tools, context=context)


def play(
    said: list[str | Message], context: Look | None, tools: str = "none", **options: object
) -> tuple[Episode, RecordedEngine, list[BranchPoint]]:
    writer = renderer(context, tools)
    messages = [Message("assistant", one) if isinstance(one, str) else one for one in said]
    engine = RecordedEngine([writer.reply_ids(one) for one in messages])
    points: list[BranchPoint] = []
    policy = ModelPolicy(engine, writer, Sampling(max_tokens=200))
    playing = rollout_episode(LongCount(), policy, TASK, seed=1, on_branch_point=points.append, **options)
    return asyncio.run(playing), engine, points


def summaries(tokens: int) -> tuple[Episode, RecordedEngine, list[BranchPoint]]:
    """Two hundred turns; whatever the policy is asked, it says how it is going."""
    return play(
        [f"go {n % 10}" for n in range(2 * TURNS)], make_context({"name": "summary", "tokens": tokens})
    )


@pytest.fixture(scope="module")
def long() -> tuple[Episode, RecordedEngine, list[BranchPoint]]:
    return summaries(TOKENS)


def memories(episode: Episode) -> list[int]:
    return [k for k, turn in enumerate(episode.trajectory.turns) if turn.kind == "memory"]


def test_two_hundred_turns_with_four_compactions_replay_byte_for_byte(long, tmp_path: Path) -> None:
    episode, _, _ = long
    turns = episode.trajectory.turns
    assert episode.success
    assert len(memories(episode)) == 4
    assert len(turns) == TURNS + 4, "what was written for later is outside the limit of turns"
    record = Record(episode, "it")
    again = from_line(to_line(record))
    assert again == record
    assert str(replay([again])) == f"1 of 1 episodes ({TURNS + 4} turns) replay byte for byte."


def test_a_replay_sees_that_a_memory_was_asked_otherwise(long) -> None:
    episode, _, _ = long
    line = to_line(Record(episode, "it"))
    with pytest.raises(ValueError, match="asked more than it read"):
        from_line(line.replace('"memory":{"asked":1}', '"memory":{"asked":9}', 1))
    with pytest.raises(ValueError, match=r"memory.asked cannot be"):
        from_line(line.replace('"memory":{"asked":1}', '"memory":{"asked":-1}', 1))


def test_each_context_is_a_row_of_exactly_the_tokens_that_the_engine_saw(long) -> None:
    episode, engine, _ = long
    turns = episode.trajectory.turns
    batch = collate([[episode]])
    assert len(batch.rows.length_R) == 5, "a row for each context"
    fresh = [k for k, turn in enumerate(turns) if turn.reply.parent == ROOT]
    assert fresh == [k + 1 for k in memories(episode)]
    assert [turns[k].reply.continues for k in fresh] == memories(episode)
    for k, call in enumerate(engine.asked):
        r, position = int(batch.rows.state_row_BK[0, k]), int(batch.rows.state_position_BK[0, k])
        assert tuple(batch.rows.token_RT[r, : position + 1].tolist()) == call.prompt_ids
    assert batch.turns.memory_BK is not None
    assert batch.turns.memory_BK[0].nonzero().flatten().tolist() == memories(episode)
    assert batch.turns.tree is not None
    assert batch.turns.tree.parent_BK[0].tolist() == list(range(-1, len(turns) - 1))
    k = memories(episode)[0]
    assert batch.turns.state_BK[0, k] != batch.turns.state_BK[0, k + 1], "another decision in the same state"


def test_no_prompt_is_longer_than_was_asked_for(long) -> None:
    episode, engine, _ = long
    asked = [len(call.prompt_ids) for k, call in enumerate(engine.asked) if k not in memories(episode)]
    assert max(asked) <= TOKENS
    assert max(asked) > TOKENS - 100, "nor is room wasted"


def test_who_goes_on_from_the_middle_is_shown_the_same(long) -> None:
    """As after a kill: nothing is known but the turns and the tokens."""
    episode, engine, points = long
    for k in (3, memories(episode)[1], memories(episode)[1] + 1, 150):
        point = points[k]
        history = History(LongCount(), TASK, 1, point.observation, turns=[*point.turns])
        history.token_ids = [*point.token_ids]
        new, fresh, _ = prompt_of(history, renderer(make_context({"name": "summary", "tokens": TOKENS})))
        assert (*([] if fresh else point.token_ids), *new) == engine.asked[k].prompt_ids
    going = rollout_episode(
        LongCount(),
        ModelPolicy(
            RecordedEngine([call.action_ids for call in [t.reply for t in episode.trajectory.turns[150:]]]),
            renderer(make_context({"name": "summary", "tokens": TOKENS})),
            Sampling(max_tokens=200),
        ),
        TASK,
        seed=1,
        start=points[150],
    )
    assert asyncio.run(going).trajectory == episode.trajectory


def noted(text: str) -> Message:
    return Message("assistant", "", (ToolCall("note", {"text": text}, "call_0"),))


def test_a_note_takes_no_turn_and_stays_when_turns_go() -> None:
    said: list[str | Message] = ["go", noted("I counted one"), *["go"] * 300]
    episode, engine, _ = play(said, make_context({"name": "notes", "tokens": 800}), "text")
    turns = episode.trajectory.turns
    assert episode.success
    assert memories(episode) == [1]
    assert len(turns) == TURNS + 1
    assert turns[1].reply.memory == MemoryMark(told=turns[2].observation)
    assert [message.content for message in turns[2].observation] == ["Noted."]
    assert turns[2].reply.parent == PREVIOUS
    told = tokenizer().decode(list(engine.asked[-1].prompt_ids))
    assert "Your notes:\nI counted one" in told
    assert "turn 3 was counted" not in told
    assert from_line(to_line(Record(episode))) == Record(episode)
    assert replay([Record(episode)]).ok


def test_two_notes_in_a_row_are_one_and_a_turn() -> None:
    said: list[str | Message] = [noted("one"), noted("two"), *["go"] * 300]
    episode, _, _ = play(said, make_context({"name": "notes"}), "text")
    assert memories(episode) == [0]
    assert len(episode.trajectory.turns) == TURNS + 1


def test_folded_turns_give_way_to_what_came_of_them() -> None:
    fold = Message("assistant", "", (ToolCall("fold", {"turns": 3, "about": "I counted to 3"}, "call_0"),))
    said: list[str | Message] = ["go", "go", "go", fold, *["go"] * 300]
    episode, engine, _ = play(said, make_context({"name": "fold", "tokens": 100000}), "text")
    told = tokenizer().decode(list(engine.asked[4].prompt_ids))
    assert "I counted to 3" in told
    assert "turn 2 was counted" not in told
    assert episode.trajectory.turns[4].reply.continues == 3


def test_a_workspace_is_written_before_each_action_but_the_first() -> None:
    episode, engine, _ = play([f"go {n % 10}" for n in range(2 * TURNS)], make_context({"name": "workspace"}))
    assert memories(episode) == list(range(1, 2 * TURNS - 1, 2))
    assert max(len(call.prompt_ids) for call in engine.asked) < 400
    told = tokenizer().decode(list(engine.asked[2].prompt_ids))
    assert "Your report:\ngo 1" in told


def test_cleared_answers_give_way_and_what_was_said_stays() -> None:
    context = make_context({"name": "clear", "tokens": 1500, "keep": 2})
    _, engine, _ = play([f"go {n % 10}" for n in range(TURNS)], context)
    told = tokenizer().decode(list(engine.asked[-1].prompt_ids))
    assert told.count("go ") == TURNS - 1
    assert "This was cleared" in told
    assert f"turn {TURNS - 1} was counted" in told
    assert "turn 3 was counted" not in told


@pytest.mark.parametrize("entry", components("context"), ids=lambda entry: entry.name)
def test_every_context_manager_keeps_what_is_required(entry) -> None:
    report = check_component(entry)
    assert report.ok, report.results


def test_a_manager_that_remembers_is_no_context_manager() -> None:
    entry = get_component("context", "window")
    calls: list[int] = []

    def drifting(talk, *, tokens: int = 2048):
        calls.append(0)
        return entry.target(talk, tokens=tokens - len(calls))

    object.__setattr__(entry, "target", kept := drifting)
    try:
        assert check_component(entry).results["is pure"].ok is False
    finally:
        from turnwise.agents.contexts.window import window

        object.__setattr__(entry, "target", window)
    assert kept is drifting


@pytest.mark.parametrize(
    ("asked", "error", "match"),
    [
        ({"name": "windw"}, NotFoundError, "window"),
        ({"name": "window", "tokns": 9}, RecipeError, "tokens"),
        ({"name": "window", "tokens": 3}, TurnwiseError, "32 or more"),
        ({"tokens": 300}, TurnwiseError, "no name"),
    ],
)
def test_what_is_asked_in_vain_is_refused(asked, error, match) -> None:
    with pytest.raises(error, match=match):
        make_context(asked)


def test_a_script_is_told_of_no_context() -> None:
    with pytest.raises(TurnwiseError, match="chooses what a model is shown"):
        make_policy("scripted:gold", context={"name": "window"})
    with pytest.raises(TurnwiseError, match="no value"):
        read_context("summary:tokens")


def test_a_memory_turn_is_asked_nothing_that_the_environment_said() -> None:
    asked = Message("user", "Write.")
    history = History(LongCount(), TASK, 0, LongCount().reset(seed=0, options={"task": TASK})[0])
    history.note(Reply(Message("assistant", "notes"), memory=MemoryMark(Messages([asked]))), "key")
    turn: Turn = history.turns[0]
    assert (turn.kind, turn.acts) == ("memory", None)
    assert turn.observation[-1] == asked
    assert asked not in turn.said


# --- what a script writes down -----------------------------------------------------------------------

DAY = next(suite_tasks(get_suite("household/day-30"), Split.TRAIN, 1))


class Watched(DemonstrationPolicy):
    """A demonstration, of which each action is seen to rest on what its prompt says, or not."""

    def __init__(self, renderer: Renderer, forgets: float = 0.0) -> None:
        super().__init__(scripted("gold"), renderer, forgets)
        self.knew: list[bool] = []

    async def act(self, history: History) -> Reply:
        reply = await super().act(history)
        if reply.memory is None:
            shown = self.renderer.tokenizer.decode(history.token_ids[: -len(reply.action_ids)])
            env = history.env
            self.knew.append(all(line in shown for line in env.needs(env.state)))
        return reply


def demonstrated(
    context: dict[str, Json], tools: str = "none", forgets: float = 0.0
) -> tuple[Watched, Episode]:
    env = make("turnwise/Household-v0")
    plain = asyncio.run(rollout_episode(env, scripted("gold"), DAY, seed=0))
    said = [message.content for turn in plain.trajectory.turns for message in turn.observation]
    small = Renderer(train_tokenizer(said, vocab_size=512), tools_format=tools, context=make_context(context))
    policy = Watched(small, forgets)
    episode = asyncio.run(rollout_episode(env, policy, DAY, seed=0))
    assert episode.end == EndReason.SOLVED
    return policy, episode


def test_a_window_shows_a_demonstration_less_than_it_rests_on() -> None:
    policy, _ = demonstrated({"name": "window", "tokens": 512})
    assert 8 <= policy.knew.count(False) < len(policy.knew) / 2


@pytest.mark.parametrize(
    ("context", "tools"),
    [
        ({"name": "summary", "tokens": 512, "ask": "memory :"}, "none"),
        ({"name": "workspace", "every": 4, "ask": "report :"}, "none"),
        ({"name": "notes", "tokens": 1200}, "tags"),
    ],
    ids=lambda one: one["name"] if isinstance(one, dict) else one,
)
def test_a_demonstration_writes_down_all_that_it_will_rest_on(context: dict[str, Json], tools: str) -> None:
    policy, episode = demonstrated(context, tools)
    assert all(policy.knew)
    written = [turn.action for turn in episode.trajectory.turns if turn.kind == "memory"]
    assert len(written) >= 2
    assert len(set(map(str, written))) > 1, "not the same again and again"


@pytest.mark.parametrize(
    ("context", "tools"),
    [
        ({"name": "summary", "tokens": 512, "ask": "memory :"}, "none"),
        ({"name": "notes", "tokens": 1200}, "tags"),
    ],
    ids=lambda one: one["name"] if isinstance(one, dict) else one,
)
def test_a_demonstration_forgets_lines_of_what_it_writes_down(context: dict[str, Json], tools: str) -> None:
    def lines(forgets: float) -> list[set[str]]:
        _, episode = demonstrated(context, tools, forgets)
        turns = [turn for turn in episode.trajectory.turns if turn.kind == "memory"]
        texts = [turn.action.content or turn.action.tool_calls[0].arguments["text"] for turn in turns]
        return [set(text.splitlines()) for text in texts]

    whole, half, again = lines(0.0), lines(0.5), lines(0.5)
    assert half == again, "chance of the episode's own seed"
    every = set().union(*whole) | {NOTHING}
    assert 0 < sum(map(len, half)) < sum(map(len, whole))
    assert all(some <= every for some in half)
    assert set().union(*lines(1.0)) <= {NOTHING}


def test_the_rest_of_a_solution_is_walked_once_in_an_episode_that_follows_it(monkeypatch) -> None:
    env = make("turnwise/Household-v0")
    observation, _ = env.reset(seed=0, options={"task": DAY})
    asked, solution = [], type(env).gold
    monkeypatch.setattr(type(env), "gold", lambda self, state: asked.append(self) or solution(self, state))

    def rest(of: AgentEnv[Any]) -> str:
        return foreseen(moment(of, observation, "foreseen"))

    turns, told, end = 0, [], None
    while end is None:
        told.append(rest(env))
        if turns % 7 == 3:
            assert told[-1] == rest(env.fork()), "as one that walks it from here"
        end, turns = env.step(solution(env, env.state)).info["end"], turns + 1
    assert end == EndReason.SOLVED
    assert asked.count(env) == 0
    walkers = {id(one): asked.count(one) for one in asked}
    assert sum(count == turns for count in walkers.values()) == 1
    assert len(walkers) == 1 + len(range(3, turns, 7))
    assert len(set(told)) > 5

    env.reset(seed=0, options={"task": DAY})
    for _ in range(4):
        env.step(solution(env, env.state))
        rest(env)
    env.step("look")
    assert rest(env) == rest(env.fork()), "who leaves it walks it anew"


def test_a_script_remembers_the_newest_words_where_nobody_says_what_is_needed() -> None:
    head = Messages([Message("user", "Count.")])
    shown = [*head, Message("assistant", "go"), Message("user", "turn 1 was counted\nmore")]
    view = ContextView(
        [*shown, Message("user", "memory :")], 1, True, (), Messages([Message("user", "memory :")])
    )
    assert recollection(view, head, []) == "go: turn 1 was counted"
    assert recollection(view, head, ["more"]) == "more"
    assert recollection(view, head, ["Count."]) == "go: turn 1 was counted", (
        "the task stands in every context"
    )
