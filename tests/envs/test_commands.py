"""One command a message: found among prose, refused where there are several, in every world of commands alike."""
# pyright: reportTypedDictNotRequiredAccess=false

from __future__ import annotations

import random
from typing import Any

import pytest

from turnwise.envs.core import AgentEnv, EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.envs.worlds.one_command import Forms, command_in, spoken
from turnwise.tasks.core import Split, Task
from turnwise.tools.core import ToolCall, ToolError

WAYS: dict[str, tuple[str, ...]] = {  # world → how to get where the two commands can be carried out
    "household/standard": ("go to sink 1",),
    "household/medium": ("go sink 1",),
    "lab/standard": ("go to foundry", "go to laboratory"),
    "craft/medium": (),
    "craft/asked": (),
    "grid/maze": (),
}
AMONG_PROSE = (
    "{a}.",
    "I think that is best. Action: {a}",
    "Action: {a}\nThis will let me go on.",
    "That seems best.\n\n{a}\n\nIt should help with the task.",
    "It has to be done first. **Action:** `{a}`. The rest follows.",
    "My command: {a}",
    "Reason: it is the only way.\nCommand: {a}\nExpected: the task is nearly done.",
    "<think>{b}, perhaps?</think>{a}",
    "<planning>{b}; {a}</planning><action>{a}</action>",
    "What would help most? Nothing else comes to mind.\n**{a}**",
    "```\n{a}\n```\nThat is all.",
    "The plan:\n1. {a}\n2. {b}\n\n{a}",
    "Thought: {b} comes later.\nAction:\n{a}",
    "So here is what I say next: {a}",
)
SEVERAL = (
    "{a}\n{b}",
    "{a}, then {b}",
    "{a} and {b}",
    "{a}; {b}",
    "1. {a}\n2. {b}",
    "Action: {a}\nAction: {b}",
    "Both are needed. Action: {a} Action: {b}",
    "Action: {a}\n{b}",
    "That is the way.\n{a}\nAnd this after it:\n{b}\nDone.",
    "<action>{a}</action><action>{b}</action>",
    "<action>{a}, then {b}</action>",
    "```\n{a}\n{b}\n```",
)


def at(name: str, *commands: str) -> AgentEnv[Any]:
    """A world's first test task, after some commands."""
    suite = get_suite(name)
    env = make(suite.env)
    env.reset(seed=0, options={"task": suite_task(suite, Split.TEST, 0)})
    for command in commands:
        assert not env.step(command).info["bad_action"]
    return env


def told(env: AgentEnv[Any], message: Message | str) -> str:
    return str(env.step(message).observation[-1].content)


def two_commands(env: AgentEnv[Any]) -> tuple[str, str]:
    """Two that change different things."""
    known = [one for one in env.admissible(env.state) if not one.startswith(("focus", "wait"))]
    first, last = known[0], known[-1] if len(known) > 1 else "right"
    return first.removesuffix(" ."), last.removesuffix(" .")


@pytest.mark.parametrize("name", WAYS)
def test_one_command_among_prose_is_carried_out(name: str) -> None:
    env = at(name, *WAYS[name])
    a, b = two_commands(env)
    start = env.snapshot()
    env.step(a)
    wanted = env.state
    assert wanted != start.state
    for way in AMONG_PROSE:
        env.restore(start)
        step = env.step(way.format(a=a, b=b))
        assert not step.info["bad_action"], (way, step.observation[-1].content)
        assert env.state == wanted, way


@pytest.mark.parametrize("name", [name for name in WAYS if name != "grid/maze"])
def test_of_several_commands_none_is_carried_out(name: str) -> None:
    env = at(name, *WAYS[name])
    a, b = two_commands(env)
    start = env.snapshot()
    for way in SEVERAL:
        env.restore(start)
        step = env.step(way.format(a=a, b=b))
        assert step.info["bad_action"], way
        assert env.state == start.state, way
        assert "A turn takes one command: this message has 2" in step.observation[-1].content, way
    both = Message("assistant", "", (ToolCall("act", {"command": f"{a}, then {b}"}, "c1"),))
    env.restore(start)
    assert "A turn takes one command" in told(env, both)


def test_several_moves_of_one_turn_are_one_command_and_two_lines_of_moves_are_two() -> None:
    env = at("grid/maze")
    start = env.snapshot()
    assert "One move a turn" in told(env, "down, down").capitalize()
    assert "A turn takes one command" in told(env, "down\ndown")
    assert env.state == start.state


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("take comb 4 and cloth 1", "(take comb 4; take cloth 1)"),
        ("take comb 4, cloth 1", "(take comb 4; take cloth 1)"),
        ("take cloth 1 or comb 4", "A turn takes one command"),
        ("I'll take cloth 1. Then I'll clean it with sink 1.", "A turn takes one command"),
        ("I take cloth 1 and clean it.", "A turn takes one command"),
        ("First take cloth 1, after that clean cloth 1", "A turn takes one command"),
        ("go rack 1 take soap 1", "A turn takes one command"),
        ("Should I take cloth 1?", "A question is no command"),
        ("take cloth 1?", "A question is no command"),
        ("Could I take the cloth from here", "A question is no command"),
        ("I am at the sink. What can I do here?", "A question is no command"),
        ("Wait, I hold nothing.", "Write one command on a line of its own"),
        ("Clean cloth 1 is what I need.", "Write one command on a line of its own"),
        ("Do not take comb 4.", "Unknown verb do"),
        ("If cloth 1 is wet, take it.", "Unknown verb if"),
    ],
)
def test_what_is_not_one_command_is_answered_with_how_to_write_it(said: str, answer: str) -> None:
    env = at("household/standard", "go to sink 1")
    before = env.state
    assert answer in told(env, said)
    assert env.state == before


@pytest.mark.parametrize(
    "said",
    [
        "I look around and see a cloth. take cloth 1",
        "I'll take the cloth. take cloth 1 from sink 1",
        "I should take cloth 1, clean it and put it on rack 1.\ntake cloth 1",
        "First take cloth 1, then clean cloth 1.\nAction: take cloth 1",
        "Options:\n- take cloth 1\n- go to rack 1\nThe first it is.\ntake cloth 1",
        "The comb is of no use.\nThe cloth has to be clean.\nSo I take the cloth.",
        "Don't take comb 4. Take cloth 1.",
        "Take cloth 1, not comb 4.",
        "take cloth 1 instead of comb 4",
        "take cloth 1, which lies in sink 1, so that I can clean it",
        "Take the wet cloth from the sink",
        "Let's take cloth 1 from the sink!",
        "I'm going to take the cloth (it is dirty).",
        "> take cloth 1",
        "{'action': 'take cloth 1'}".replace("'", '"'),
    ],
)
def test_a_command_is_heard_in_many_manners(said: str) -> None:
    env = at("household/standard", "go to sink 1")
    assert told(env, said) == "You hold cloth 1."


@pytest.mark.parametrize(
    ("said", "carried_out"),
    [
        ("go sink 1 .", True),
        (". go sink 1", True),
        ("go sink 1 : plate 2 .", True),
        ("go the sink 1 .", True),
        ("go sink 1 . go sink 1 .", False),
        ("go sink 1 take plate 2 .", False),
        ("sink 1 .", False),
    ],
)
def test_compact_commands_are_heard_with_blanks_between_all_signs(said: str, carried_out: bool) -> None:
    env = at("household/medium")
    assert env.step(said).info["bad_action"] is not carried_out


def test_a_question_is_answered_where_the_answer_changes_nothing() -> None:
    env = at("craft/asked")
    made = str(env.now.task.prompt).split(":")[0].removesuffix(".").split()[-1]
    start = env.state
    assert made in told(env, f"How do I make {made}?")
    assert env.state == start
    assert "A question is no command" in told(env, f"Should I {two_commands(env)[0]}?")
    assert env.state == start


# --- what ends an episode ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        "Let me focus on getting the burner ready first.",
        "Should I focus on the burner?",
        "Should I focus on the burner",
        "focus on burner 1?",
        "I focus on burner 1",
        "I will focus on heating the flask with the burner.",
        "Focus on getting the burner ready.",
        "focus on burner 1 because it is hot",
        "Action: let me focus on burner 1",
        "<action>should I focus on burner 1</action>",
        'act(command="let me focus on burner 1")',
        "I could say `focus on burner 1`, but no.",
        'The command "focus on burner 1" would end it.',
        "Perhaps focus on burner 1",
        "I won't focus on burner 1.",
        "My focus is on burner 1 now.",
    ],
)
def test_no_question_and_no_purpose_is_a_focus(said: str) -> None:
    env = at("lab/standard", *WAYS["lab/standard"])
    before = env.state
    step = env.step(said)
    assert (step.info["end"], step.info["bad_action"]) == (None, True)
    assert "write the command alone: focus on X" in step.observation[-1].content
    assert env.state == before


@pytest.mark.parametrize(
    "said",
    [
        "focus on burner 1",
        "Focus on the burner.",
        "please focus on burner 1 now",
        "Action: focus on burner 1",
        "I am sure now.\nfocus on burner 1",
        "<think>Should I?</think><action>focus on burner 1</action>",
    ],
)
def test_a_focus_in_its_own_form_is_one(said: str) -> None:
    env = at("lab/standard", *WAYS["lab/standard"])
    assert env.step(said).info["end"] is EndReason.FAILED


def test_two_things_joined_by_and_are_one_command_where_the_verb_takes_two() -> None:
    forms = Forms(frozenset(("connect", "take")), frozenset(("wire", "lamp")), pairs=frozenset(("connect",)))
    assert command_in("connect wire 1 and lamp 1", forms) == "connect wire 1 lamp 1"
    with pytest.raises(ToolError, match="A turn takes one command"):
        command_in("take wire 1 and lamp 1", forms)


# --- craft and grid, as a fluent agent speaks ----------------------------------------------------

_RECIPES = [["plank", {"wood": 1}], ["rod", {"ore": 2}], ["lamp", {"rod": 1, "plank": 1}]]


def workshop(batch: int = 1) -> AgentEnv[Any]:
    """In the hands lie a wood and two ores; a plank and a rod could be made."""
    options = {
        "raw": ["ore", "wood", "stone"], "goal": "lamp", "stock": [9, 9, 9], "batch": batch, "slip": 0.0, "told": True,
        "recipes": _RECIPES, "text": "compact", "commands": "hidden", "turn_limit": 50,
    }  # fmt: skip
    env = make("turnwise/Craft-v0")
    env.reset(seed=0, options={"task": Task("turnwise/Craft-v0", "make lamp .", options)})
    for command in ("get wood", "get ore", "get ore"):
        env.step(command)
    return env


def room(moves: int = 1) -> AgentEnv[Any]:
    """An empty room, the agent in its middle."""
    level = ["#######", "#_____#", "#_____#", "#__@__#", "#_____#", "#____x#", "#######"]
    options = {
        "level": level, "game": "maze", "moves": moves, "slip": 0.0, "sight": 0, "image": False, "text": "compact",
        "commands": "hidden", "turn_limit": 50,
    }  # fmt: skip
    env = make("turnwise/Grid-v0")
    env.reset(seed=0, options={"task": Task("turnwise/Grid-v0", "go to x .", options)})
    return env


@pytest.mark.parametrize(
    "said",
    [
        "let me craft a wooden plank please",
        "make planks",
        "Produce one plank.",
        "craft a plank using 1 wood",
        'craft(item="plank")',
        "I will craft(plank, 1).",
        "To make the lamp, I make a plank first.",
        "I look at the recipe for plank. make plank",
        "I check my inventory, then make plank",
        "Make plank, not rod.",
    ],
)
def test_a_thing_is_made_in_many_manners(said: str) -> None:
    assert told(workshop(), said) == "have ore 2 , plank 1 ."


@pytest.mark.parametrize(
    "said",
    [
        "To make a plank, I need wood.",
        "The recipe for plank is wood 1.",
        "make no plank",
        "Don't make a plank.",
        "I won't make a plank",
        "If I make a plank, I lose wood.",
        "Should I make a plank?",
        "make sure a plank comes first",
        "get rid of wood",
        "get started with stone",
        "create a plan with a plank",
        "make plank from wood and rod from ore",
        "make plank from wood, then rod",
        "get stone twice",
        "get two stones",
    ],
)
def test_what_does_not_mean_one_thing_to_be_made_makes_none(said: str) -> None:
    env = workshop()
    before = env.state
    assert env.step(said).info["bad_action"]
    assert env.state == before


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("make rod with 2 ore", "have wood 1 , rod 1 ."),  # not two rods
        ("get two stones", "have ore 2 , wood 1 , stone 2 ."),
        ("get a couple of stone", "have ore 2 , wood 1 , stone 2 ."),
        ("get stone for 2 rods", "have ore 2 , wood 1 , stone 1 ."),
        ("get stone to make 2 rods", "have ore 2 , wood 1 , stone 1 ."),
        ("build the lamp with a rod and a plank", "parts of lamp are missing , it needs rod 1 , plank 1 ."),
        ("look up the recipe of lamp", "lamp : rod 1 , plank 1 ."),
        ("Show me the recipe for lamp", "lamp : rod 1 , plank 1 ."),
        ("What is a lamp made of?", "lamp : rod 1 , plank 1 ."),
        ("How many planks do I have?", "have ore 2 , wood 1 ."),
        ("check my inventory", "have ore 2 , wood 1 ."),
    ],
)
def test_amounts_belong_to_what_is_got_and_questions_of_the_world_are_answered(
    said: str, answer: str
) -> None:
    assert told(workshop(batch=5), said) == answer


@pytest.mark.parametrize(
    "said",
    [
        "I'll go up",
        "Next move: up",
        "move up one cell",
        "take one step up",
        "Head upwards.",
        "I go up because right is blocked.",
        "Go up instead of left.",
        "To push the box right, I go up",
        "The box is to my right, so I go up.",
        "move(direction='up')",
        '{"direction": "up"}',
        "<think>left?</think>I choose up.",
        "Left is a dead end.\nup",
    ],
)
def test_a_step_is_taken_in_many_manners(said: str) -> None:
    env = room()
    env.step("up")
    wanted, other = env.state, room()
    other.step(said)
    assert other.state == wanted


@pytest.mark.parametrize(
    "said",
    [
        "Don't go up.",
        "go no further up",
        "I won't go up.",
        "up?",
        "Should I go up",
        "left is blocked",
        "left leads to a hole",
        "The exit is to the right.",
        "That's right.",
        "Right, I see.",
        "Right, let me go up.",
        "Right. Let me think.",
        "left or right",
        "To go up, I must first go left",
        "go left unless it is a hole",
        "it's up to me",
        "look left",
        "I look up.",
        "left twice 2",
        "up 99",
    ],
)
@pytest.mark.parametrize("moves", [1, 3])
def test_what_speaks_of_a_direction_is_no_step(said: str, moves: int) -> None:
    env = room(moves)
    before = env.state
    env.step(said)
    assert env.state == before


def test_steps_are_counted_and_a_turn_takes_no_more_than_it_may() -> None:
    for said in (
        "move left twice",
        "2 left",
        "two steps to the left",
        "left 2",
        "left x2",
        "I go left, then I go left.",
    ):
        env = room(3)
        env.step(said)
        assert env.state.agent == room().state.agent - 2, said
        assert told(room(), said) == "one move a turn ." or "one command" in told(room(), said)
    env = room(3)
    env.step("left twice, then up")
    assert env.state.agent == room().state.agent - 9


# --- without a grammar, and with hostile text ----------------------------------------------------


def test_without_a_grammar_it_is_what_stands_behind_the_label_or_in_the_last_line() -> None:
    def heard(text: str) -> tuple[str, ...]:
        return spoken(Message("assistant", text))

    assert heard("Left or right?\ngo left") == ("go", "left")
    assert heard("I think so. Action: go left\nThat is all.") == ("go", "left")
    with pytest.raises(ToolError, match="this message has 2"):
        heard("Action: go left. Action: go right.")


@pytest.mark.parametrize("name", ["household/medium", "lab/standard", "craft/medium", "grid/maze"])
def test_any_text_is_answered(name: str) -> None:
    env, rng = at(name), random.Random(0)
    words = ["go", "to", "sink", "1", "take", "and", ",", ".", "?", "\n", "- ", "Action:", "`", '"', "**", "I", "let me",
             "focus", "up", "get", "<action>", "</action>", "[", "(", "{", ":", "", "not", "if", "2 ", "wait", "=>"]  # fmt: skip
    start = env.snapshot()
    for _ in range(400):
        env.restore(start)
        env.step(" ".join(rng.choice(words) for _ in range(rng.randrange(14))))


@pytest.mark.parametrize(
    ("suite", "told"),
    [
        ("search/standard", "one action"),
        ("shop/standard", "one action"),
        ("shop/easy", "Buy Now and the pages of details"),
        ("lab/standard", "one command, as text or with the tool act"),
        ("household/standard", "one command"),
        ("craft/asked", "one command"),
        ("grid/sokoban", "one command"),
    ],
)
def test_the_rules_are_told_before_they_are_broken(suite, told):
    env, task = make(get_suite(suite).env), suite_task(get_suite(suite), Split.TEST, 0)
    system = env.reset(seed=0, options={"task": task})[0][0].content
    assert told in system
    assert system.endswith(f"none of them is carried out. You have {task.options['turn_limit']} turns.")


def test_small_formats_tell_no_more_than_before():
    small = {
        "search/quick": "search[x] or answer[x] .",
        "shop/quick": "Shop: search[words] or click[x].",
        "household/easy": "house : go , open , close , take , put , clean , heat , cool , use .",
        "grid/maze": "grid : up , down , left or right .",
    }
    for suite, system in small.items():
        env, task = make(get_suite(suite).env), suite_task(get_suite(suite), Split.TEST, 0)
        assert env.reset(seed=0, options={"task": task})[0][0].content == system


def test_where_a_message_may_have_several_moves_only_the_turns_are_told():
    task = suite_task(get_suite("grid/sokoban-hard"), Split.TEST, 0)
    system = make("turnwise/Grid-v0").reset(seed=0, options={"task": task})[0][0].content
    assert system.endswith("write one to 3 moves: up, down, left or right. You have 40 turns.")
