"""Household: what commands mean and do, gold from anywhere, splits, baselines, what is told."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import walk
from turnwise.envs.core import EndReason
from turnwise.envs.household import solver
from turnwise.envs.household.actions import HouseAct, read
from turnwise.envs.household.env import HouseholdEnv
from turnwise.envs.household.render import ask
from turnwise.envs.household.state import HouseGoal, solved
from turnwise.envs.household.vocabulary import PLACES, ROOMS, THINGS
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.envs.worlds.meta_reasoning import PAID
from turnwise.envs.worlds.one_command import spoken
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task, derive_rng
from turnwise.tools.core import ToolCall

ENV = "turnwise/Household-v0"
SUITES = ["easy", "medium", "standard", "seen", "routine", "clumsy"]
HOUSE = {
    "rooms": [["kitchen", ["cabinet", "shelf", "shelf", "sink", "microwave", "fridge", "bin"]], ["lounge", ["desk"]]],
    "doors": [[0, 1]],
    "objects": [["mug", 0], ["mug", 1], ["apple", 5], ["book", 7]],
    "goals": [["clean", "mug", "shelf"]],
    "text": "compact", "commands": "hidden", "turn_limit": 30, "irreversible": False, "slip": 0.0, "known": False,
}  # fmt: skip


def start(**options):
    env = HouseholdEnv()
    env.reset(seed=0, options={"task": Task(ENV, "put clean mug in shelf .", {**HOUSE, **options})})
    return env


def say(env, *commands):
    """The last observation's text after some commands."""
    return [env.step(command) for command in commands][-1].observation[-1].content


@pytest.mark.slow
@pytest.mark.usefixtures("copying")
def test_the_contract_is_kept():
    report = check_env(ENV, tasks=4)
    assert report.ok, str(report)


# --- by hand -------------------------------------------------------------------------------------


def test_an_episode_worked_out_by_hand():
    env = start()
    first, _ = env.reset(seed=0, options={"task": env.task})
    opening = "put clean mug in shelf .\nkitchen 1 : cabinet 1 , shelf 1 , shelf 2 , sink 1 , microwave 1 , fridge 1 , bin 1 , lounge 1 ."
    assert first[-1].content == opening
    told = [
        ("go cabinet 1", "cabinet 1 : closed ."),
        ("take mug 1", "mug 1 is not here ."),
        ("open cabinet 1", "cabinet 1 : mug 1 ."),
        ("take mug 1", "hold mug 1 ."),
        ("put mug 1", "cabinet 1 : mug 1 ."),
        ("take mug 1", "hold mug 1 ."),
        ("clean mug 1", "cabinet 1 does not clean ."),
        ("go lounge 1", "lounge 1 : desk 1 , kitchen 1 ."),
        ("go sink 1", "sink 1 is not in this room ."),
        ("go desk 1", "desk 1 : lamp 1 , book 1 ."),
        ("use lamp 1", "lamp 1 on ."),
        ("take book 1", "you hold mug 1 ."),
        ("go kitchen 1", opening.split("\n")[1]),
        ("go sink 1", "sink 1 : nothing ."),
        ("clean mug 1", "hold clean mug 1 ."),
        ("go fridge 1", "fridge 1 : closed ."),
        ("cool mug 1", "hold clean cool mug 1 ."),
        ("go shelf 1", "shelf 1 : mug 2 ."),
    ]
    for command, answer in told:
        assert say(env, command) == answer
    step = env.step("put mug 1")
    assert (step.reward, step.info["end"], step.observation[-1].content) == (1.0, EndReason.SOLVED, "done .")


def test_full_sentences():
    env = start(text="full")
    assert say(env, "go to the cabinet 1") == "The cabinet 1 is closed."
    assert say(env, "open cabinet 1") == "In/on the cabinet 1 you see mug 1."
    assert say(env, "take mug 1 from cabinet 1") == "You hold mug 1."
    assert say(env, "clean mug 1 with sink 1") == "You are not at sink 1."
    assert say(env, "go to sink 1", "clean mug 1 with sink 1") == "You clean it. You hold clean mug 1."
    assert "put mug 1 in/on sink 1" in env.admissible(env.state)


def test_looking_at_something_under_a_lamp_counts_once_and_for_all():
    env = start(goals=[["light", "book", ""], ["place", "apple", "desk"]])
    say(env, "go lounge 1", "go desk 1", "use lamp 1", "take book 1")
    assert env.state.seen == 1
    say(env, "put book 1", "use lamp 1")
    assert env.state.seen == 1
    say(env, "go kitchen 1", "go fridge 1", "open fridge 1", "take apple 1", "go lounge 1", "go desk 1")
    assert env.step("put apple 1").info["end"] is EndReason.SOLVED


def test_two_things_may_lie_in_two_places_of_the_kind():
    env = start(goals=[["two", "mug", "shelf"]], objects=[["mug", 3], ["mug", 3]])
    say(env, "go sink 1", "take mug 1", "go shelf 1", "put mug 1", "go sink 1", "take mug 2", "go shelf 2")
    assert env.step("put mug 2").info["end"] is EndReason.SOLVED


def test_what_is_heated_twice_burns_and_bins_swallow_where_mistakes_are_irreversible():
    goal = {"goals": [["heat", "apple", "shelf"]], "objects": [["apple", 3]]}
    for irreversible in (True, False):
        env = start(irreversible=irreversible, **goal)
        say(env, "go sink 1", "take apple 1", "go microwave 1", "heat apple 1")
        before = env.snapshot()
        assert env.potential(env.state) == pytest.approx(1 - 2 / 6)
        for mistake in (["heat apple 1"], ["go bin 1", "put apple 1"]):
            env.restore(before)
            say(env, *mistake)
            assert (solver.distance(env.state) == float("inf")) == irreversible
            assert (env.potential(env.state) == 0.0) == irreversible
            assert (env.gold(env.state) == "look") == irreversible
    assert (
        say(start(irreversible=True, **goal), "go sink 1", "take apple 1", "go bin 1", "put apple 1", "look")
        == "bin 1 : nothing ."
    )


# --- commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "act"),
    [
        ("go to shelf 2", HouseAct("go", -1, 2)),
        ("Walk to the Shelf2!", HouseAct("go", -1, 2)),
        ("I go to shelf 2.", HouseAct("go", -1, 2)),
        ("move to shelf 2", HouseAct("go", -1, 2)),
        ("enter the lounge", HouseAct("go", -1, 9)),
        ("<think>shelf 1?</think> go shelf 2", HouseAct("go", -1, 2)),
        ("Let me think: shelf 1?\nAction: go to shelf 2", HouseAct("go", -1, 2)),
        ("<planning>shelf 1, then the sink</planning>go to shelf 2", HouseAct("go", -1, 2)),
        ("<action>go to shelf 2</action>", HouseAct("go", -1, 2)),
        ("pick up mug 2 from shelf 1", HouseAct("take", 1, 1)),
        ("take mug", HouseAct("take", 1, -1)),  # the one that is here
        ("move mug 1 to shelf 2", HouseAct("put", 0, 2)),
        ("Put the mug 1 in/on shelf 2", HouseAct("put", 0, 2)),
        ("wash mug 1 with sink 1", HouseAct("clean", 0, 3)),
        ("turn on the lamp", HouseAct("use", -1, 7)),
    ],
)  # fmt: skip
def test_commands_are_read_tolerantly(said, act):
    env = start()
    env.step("go shelf 1")
    assert read(env.state, spoken(Message("assistant", said))) == act


def test_a_tool_call_is_a_command_too():
    env = start()
    call = Message("assistant", "", (ToolCall("act", {"command": "go to shelf 1"}, "c1"),))
    answer = env.step(call).observation[-1]
    assert (answer.role, answer.content, answer.tool_call_id) == ("tool", "shelf 1 : mug 2 .", "c1")
    both = Message(
        "assistant",
        "",
        (ToolCall("act", {"command": "look"}, "a"), ToolCall("act", {"command": "look"}, "b")),
    )
    assert env.step(both).info["bad_action"]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("fly to shelf 1", "unknown verb fly"),
        ("go to shelf 3", "there is no shelf 3 ."),
        ("go to mug 1", "one goes to a receptacle"),
        ("go", "go where ?"),
        ("open fridge 1", "go to a receptacle first ."),
        ("take", "take what ?"),
        ("put mug 1", "you hold nothing ."),
        ("use lamp 1", "there is no lamp here ."),
        ("?!", "No command found"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(said, answer):
    env = start()
    before = env.state
    step = env.step(said)
    assert answer in step.observation[-1].content
    assert step.info["bad_action"]
    assert env.state == before


def test_what_is_not_here_cannot_be_examined_and_nothing_far_away_is_named():
    for text in ("compact", "full"):
        env = start(text=text)
        seen = say(env, "look")
        for said in ("examine", "examine myself", "examine kitchen 1"):
            assert say(env, said) == seen
        for said in ("examine shelf 1", "examine book 1", "examine lounge 1"):
            step = env.step(said)
            assert step.info["bad_action"]
            assert "book 1" not in step.observation[-1].content.replace("ook 1 is not here", "")
    env = start()
    shelf = say(env, "go shelf 1")
    assert say(env, "examine shelf 1") == say(env, "examine") == shelf
    assert say(env, "examine mug 2") == say(env, "take mug 2", "go sink 1", "examine mug 2") == "mug 2 ."
    assert say(env, "examine") == "sink 1 : nothing ."


def test_what_one_looks_at_must_be_here_and_a_look_is_nothing_to_take():
    env = start(text="full")
    room = say(env, "look")
    for said in ("take a look around", "look around the room", "examine the kitchen", "check kitchen 1"):
        assert say(env, said) == room, said
    for said in ("look at shelf 1", "check shelf 1", "search the cabinet", "look at the book"):
        step = env.step(said)
        assert step.info["bad_action"], said
        assert "not" in step.observation[-1].content
    shelf = say(env, "head to shelf 1")
    for said in ("look at shelf 1", "search the shelf", "I'll check the shelf."):
        assert say(env, said) == shelf, said
    assert say(env, "look at the mug") == "This is mug 2."
    assert say(env, "check the inventory") == "You hold nothing."
    # Said of what one is about to do, it is no second command.
    assert say(env, "Let me check the sink. Action: go to sink 1") == say(env, "look")


def test_a_lamp_is_as_one_turns_it():
    env = start(text="full")
    say(env, "go to lounge 1", "go to desk 1")
    for said, answer in (
        ("turn off the lamp", "Lamp 1 is off."),
        ("turn the lamp on", "The lamp 1 is on."),
        ("switch on the lamp", "Lamp 1 is on."),
        ("switch lamp 1 off", "The lamp 1 is off."),
        ("use lamp 1", "The lamp 1 is on."),
        ("use lamp 1", "The lamp 1 is off."),
    ):
        assert say(env, said) == answer, said


def test_every_admissible_command_can_be_carried_out_and_changes_something():
    rng = random.Random(0)
    for name in ("easy", "standard"):
        env = HouseholdEnv()
        for task in suite_tasks(get_suite(f"household/{name}"), Split.TRAIN, 3):
            env.reset(seed=0, options={"task": task})
            while env.snapshot().end is None:
                here = env.snapshot()
                for command in env.admissible(env.state):
                    env.restore(here)
                    assert not env.step(command).info["bad_action"], command
                    assert env.state != here.state
                env.restore(here)
                env.step(rng.choice(env.admissible(env.state)))


def test_commands_can_be_told():
    env = start(commands="shown")
    step = env.step("go lounge")
    assert step.observation[-1].content.endswith("\ncommands : go desk 1 , go kitchen 1 .")
    assert step.info["details"] == {"commands": ["go desk 1", "go kitchen 1"]}
    step = start(commands="info").step("go lounge")
    assert "commands" not in step.observation[-1].content
    assert step.info["details"] == {"commands": ["go desk 1", "go kitchen 1"]}


def test_executable_commands_can_be_paid_for():
    env = HouseholdEnv(grounding=0.1)
    env.reset(seed=0, options={"task": start(turn_limit=100).task})
    assert env.step("go shelf 1").info["rewards"] == {"grounding": 0.1}
    assert env.step("go mug").info["rewards"] == {}
    before = env.now
    assert env.step("go shelf 2").info["rewards"] == {"grounding": 0.1}
    for said in ("go shelf 1", "look", "go shelf 2", *["look"] * 50):
        step = env.step(said)
        assert step.info["end"] or step.info["rewards"] == {"grounding": 0.0}, said
    env.restore(before)
    assert env.step("go shelf 2").info["rewards"] == {"grounding": 0.1}


def test_meta_reasoning_is_paid_by_rlvmrs_rules():
    env = HouseholdEnv(meta=1.0)
    first, _ = env.reset(seed=0, options={"task": start().task})
    assert "<reflection>" in first[0].content
    told = [
        ("<planning>mug 2 is on shelf 1</planning>go shelf 1", {}),  # paid when the episode succeeds
        ("<explore>take it</explore>take mug 2", {"explore": 1.0}),
        ("<explore>put it back</explore>put mug 2", {"explore": 1.0}),
        ("<explore>again</explore>take mug 2", {}),  # not new
        ("<explore>?</explore>fly to the sink", {}),  # cannot be done
        ("<reflection>flying fails</reflection>fly to the sink", {}),
        ("<reflection>go instead</reflection>go sink 1", {"reflection": 1.0}),
        ("<reflection>go on</reflection>clean mug 2", {}),  # nothing was refused before
        ("<monitor>nearly there</monitor>go shelf 1", {}),
        ("put mug 2", {"outcome": 1.0, "planning": 1.0}),
    ]
    for said, earned in told:
        assert env.step(said).info["rewards"] == earned, said


def test_meta_reasoning_is_remembered_by_snapshots_and_by_nothing_else():
    env = HouseholdEnv(meta=0.5)
    env.reset(seed=0, options={"task": start().task})
    env.step("fly away")
    before = env.snapshot()
    for _ in range(2):
        assert env.step("<reflection>walk</reflection>go shelf 1").info["rewards"] == {"reflection": 0.5}
        env.restore(before)
    plain = HouseholdEnv()
    plain.reset(seed=0, options={"task": start().task})
    state = plain.state
    plain.step("fly away")
    assert plain.state == state


def test_a_call_that_cannot_be_read_is_a_refusal_of_its_own():
    env = HouseholdEnv(meta=1.0)
    env.reset(seed=0, options={"task": start().task})
    env.step("look")
    env.step(Message("assistant", "", malformed="no JSON"))
    # Going there is not what was refused, so to reflect first is well placed.
    earned = env.step("<reflection>write it plainly</reflection>go shelf 1").info["rewards"]
    assert earned == {"reflection": 1.0}


@pytest.mark.parametrize("tag", PAID)
def test_no_part_of_meta_reasoning_pays_twice_for_the_same_look(tag):
    env = HouseholdEnv(meta=1.0, grounding=1.0)
    env.reset(seed=0, options={"task": start(turn_limit=300).task})
    paid = 0.0
    for turn in range(50):
        env.step("fly")
        paid += env.step(f"<{tag}>hm</{tag}>look" + " around" * (turn % 2)).reward
    assert paid <= 1.0
    env.step("go shelf 1")
    env.step("take mug 2")
    env.step("go sink 1")
    env.step("clean mug 2")
    env.step("go shelf 1")
    assert env.step("put mug 2").info["rewards"].get("planning", 0.0) <= 1.0


def test_with_meta_reasoning_gold_thinks_aloud_and_still_solves():
    env = HouseholdEnv(meta=0.1)
    for task in suite_tasks(get_suite("household/easy"), Split.TRAIN, 5):
        walked = walk(env, task, "gold")
        assert walked.score == 1.0
        assert walked.steps[-1].info["rewards"]["planning"] == pytest.approx(0.1)
        assert walked.actions[0].content.startswith("<planning>")


def test_acts_slip_as_often_as_told():
    env = start(slip=0.25, turn_limit=2000)
    slipped = 0
    for _ in range(400):
        before = env.state
        step = env.step("go shelf 1" if env.state.place != 1 else "go shelf 2")
        slipped += env.state == before
        assert not step.info["bad_action"]
    assert 70 <= slipped <= 130


# --- gold, baselines, splits ------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUITES)
def test_gold_solves_and_the_imperfect_agent_sometimes_does(name):
    env, suite = HouseholdEnv(), get_suite(f"household/{name}")
    tasks = [task for split in Split for task in suite_tasks(suite, split, 25)]
    played = [walk(env, task, "gold", seed=seed) for seed, task in enumerate(tasks)]
    assert all(walked.success and walked.score == 1.0 for walked in played)
    if name != "clumsy":
        assert [len(walked.steps) for walked in played] == [task.gold["turns"] for task in tasks]
    imperfect = sum(walk(env, task, "demonstrator", seed=seed).success for seed, task in enumerate(tasks))
    assert 0.03 < imperfect / len(tasks) < 0.97


KNOBS = [
    {"rooms": 3, "goals": 3, "receptacles": 14, "turn_limit": 200},
    {"text": "compact", "vocabulary": "small", "turn_limit": 200},
]


@pytest.mark.slow
@settings(max_examples=40)
@given(st.sampled_from(KNOBS), st.integers(0, 30), st.integers(0, 2**32), st.integers(0, 25))
def test_gold_from_any_state(knobs, index, seed, turns):
    env, rng = HouseholdEnv(shaping=1.0), random.Random(seed)
    env.reset(seed=seed, options={"task": HouseholdEnv.generate(derive_rng(index), Split.TRAIN, **knobs)})
    for _ in range(turns):
        if env.snapshot().end is None:
            env.step(rng.choice(env.admissible(env.state)))
    while env.snapshot().end is None:
        left = solver.distance(env.state)
        env.step(env.gold(env.state))
        assert solver.distance(env.state) == left - 1
    assert solved(env.state)


def test_a_state_of_another_order_of_the_same_acts_has_the_same_key():
    env = start()
    keys = []
    for commands in (
        ["go cabinet 1", "open cabinet 1", "go shelf 1"],
        ["go shelf 2", "go cabinet 1", "open cabinet 1", "go shelf 1"],
    ):
        env.reset(seed=0, options={"task": env.task})
        keys.append([env.step(command) for command in commands][-1].info["state_key"])
    assert keys[0] == keys[1]


@pytest.mark.slow
def test_splits_share_no_goals_and_each_has_every_kind():
    suite = get_suite("household/easy")
    of = {split: [task.options["goals"][0] for task in suite_tasks(suite, split, 400)] for split in Split}
    sets = {split: {tuple(goal) for goal in goals} for split, goals in of.items()}
    assert not sets[Split.TRAIN] & sets[Split.DEV]
    assert not sets[Split.TRAIN] & sets[Split.TEST]
    assert not sets[Split.DEV] & sets[Split.TEST]
    for goals in of.values():
        for kind in ("place", "two", "clean", "heat", "cool", "light"):
            assert sum(goal[0] == kind for goal in goals) > 20


@pytest.mark.slow
def test_unseen_houses_differ_and_seen_houses_do_not():
    for name, low, high in (("seen", 0.9, 1.0), ("standard", 0.0, 0.0)):
        suite = get_suite(f"household/{name}")
        train = {str(task.options["rooms"]) for task in suite_tasks(suite, Split.TRAIN, 1500)}
        test = {str(task.options["rooms"]) for task in suite_tasks(suite, Split.TEST, 100)}
        assert low <= len(test & train) / len(test) <= high


# --- what is told --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["easy", "medium"])
def test_in_compact_text_every_word_has_a_space_behind_it(name):
    env = HouseholdEnv()
    for task in suite_tasks(get_suite(f"household/{name}"), Split.TRAIN, 10):
        for script in ("gold", "demonstrator"):
            walked = walk(env, task, script)
            texts = [message.content for step in walked.steps for message in step.observation]
            texts += [message.content for message in (*walked.first, *walked.actions)]
            for text in texts:
                assert not re.search(r"[a-z](?![a-z ])", text), text


def test_no_word_means_two_things():
    assert not set(PLACES) & set(THINGS)
    assert not set(ROOMS) & (set(PLACES) | set(THINGS))
    assert all(name.isalpha() and name.islower() for name in (*PLACES, *THINGS, *ROOMS))


def test_knobs_are_checked():
    with pytest.raises(EnvError, match="Did you mean 'rooms'"):
        HouseholdEnv.generate(derive_rng(0), Split.TRAIN, room=2)
    with pytest.raises(EnvError, match="slip"):
        HouseholdEnv.generate(derive_rng(0), Split.TRAIN, slip=2)
    with pytest.raises(EnvError, match="no task"):
        HouseholdEnv.generate(derive_rng(0), Split.TRAIN, horizon=[90, 99], turn_limit=99)
    with pytest.raises(EnvError, match="no household task"):
        HouseholdEnv().reset(options={"task": Task("other", "x")})


def test_goals_are_asked_for_in_sentences_that_people_say():
    goals = [
        HouseGoal("heat", "egg", "stove"),
        HouseGoal("cool", "bottle", "cabinet"),
        HouseGoal("two", "mug", "bin"),
    ]
    assert ask(goals, full=True) == (
        "Put a hot egg on a stove. Put a cool bottle in a cabinet. Put one mug in a bin, and then another one."
    )
