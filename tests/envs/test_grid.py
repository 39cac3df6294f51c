"""Grid: moves worked out by hand, shortest ways, slippery ice, levels that can be solved, floors and splits."""

import random
import re
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import walk
from turnwise.envs.core import EndReason
from turnwise.envs.grid import levels, solver
from turnwise.envs.grid.env import GridEnv
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task, derive_rng
from turnwise.tools.core import ToolCall

ENV = "turnwise/Grid-v0"
SUITES = [
    "sokoban-easy",
    "sokoban",
    "sokoban-hard",
    "maze",
    "maze-dark",
    "lake",
    "lake-slippery",
    "lake-small",
]
OPTIONS = {
    "moves": 1,
    "slip": 0.0,
    "sight": 0,
    "image": False,
    "text": "compact",
    "commands": "hidden",
    "turn_limit": 50,
}


def start(game, *level, **options):
    env = GridEnv()
    task = Task(ENV, "push o to x .", {"level": list(level), "game": game, **OPTIONS, **options})
    env.reset(seed=0, options={"task": task})
    return env


def rows(env, *moves):
    """The level as it is told after some moves, without its spaces."""
    said = [env.step(one) for one in moves][-1].observation[-1].content
    return said.replace(" ", "").split("\n")


@pytest.mark.slow
@pytest.mark.usefixtures("copying")
def test_the_contract_is_kept():
    report = check_env(ENV, tasks=3, only=("E1", "E2", "E3", "E4", "E5", "E7", "E8", "E9"))
    assert report.ok, str(report)


# --- by hand -------------------------------------------------------------------------------------

ROOM = ("######", "#@_ox#", "#_o__#", "#x___#", "######")


def test_boxes_are_pushed_not_pulled_and_never_two_at_once():
    env = start("sokoban", *ROOM)
    assert solver.distance(env.state) == 7
    assert rows(env, "right", "right") == ["######", "#__@*#", "#_o__#", "#x___#", "######"]
    assert rows(env, "right")[0] == "blocked."  # the wall is behind the box
    assert rows(env, "left") == ["######", "#_@_*#", "#_o__#", "#x___#", "######"]
    assert rows(env, "down") == ["######", "#___*#", "#_@__#", "#xo__#", "######"]
    env.step("right")
    env.step("down")
    step = env.step("left")
    assert (step.reward, step.info["end"]) == (1.0, EndReason.SOLVED)


def test_a_box_in_a_corner_cannot_be_solved_any_more():
    env = start("sokoban", "#####", "#_@_#", "#_o_#", "#_x_#", "#####")
    assert env.gold(env.state) == "down"
    env = start("sokoban", "#####", "#@o_#", "#___#", "#_x_#", "#####")
    env.step("right")
    assert solver.distance(env.state) == float("inf")
    assert env.potential(env.state) == 0.0
    assert env.gold(env.state) == "look"
    assert not env.step("look").info["bad_action"]


def test_keys_open_the_doors_of_their_colour():
    env = start("maze", "#######", "#r@R_x#", "#######")
    assert solver.distance(env.state) == 5
    assert rows(env, "right")[0] == "blocked."
    assert rows(env, "left") == ["#######", "#@___x#", "#######", "keys:r."]
    assert rows(env, "right", "right", "right") == ["#######", "#___@x#", "#######", "keys:r."]
    assert env.step("right").info["end"] is EndReason.SOLVED


def test_one_sees_as_far_as_told():
    env = start("maze", "#######", "#r@R_x#", "#######", sight=1)
    assert rows(env, "look") == ["###", "r@R", "###"]


def test_holes_are_deadly():
    env = start("lake", "####", "#@~#", "#_x#", "####")
    step = env.step("right")
    assert (step.reward, step.info["end"]) == (0.0, EndReason.FAILED)


def test_a_turn_makes_as_many_moves_as_told():
    env = start("maze", "#####", "#@_x#", "#####", moves=2)
    assert env.step("right right right").info["bad_action"]
    assert env.step("I go right and right.").info["end"] is EndReason.SOLVED
    assert start("maze", "#####", "#@_x#", "#####").step("right right").info["bad_action"]


@pytest.mark.parametrize(
    "said", ["down", "Down!", "move down", "go south", "Action: down", "<think>up</think>down"]
)
def test_moves_are_read_tolerantly(said):
    env = start("lake", "####", "#@~#", "#_x#", "####")
    assert rows(env, said) == ["####", "#_~#", "#@x#", "####"]


@pytest.mark.parametrize(
    "said",
    [
        "right\nright",
        "1. right\n2. right",
        "- right\n- right",
        "right; right",
        '{"moves": ["right", "right"]}',
        '["right", "right"]',
        "```\nright\nright\n```",
    ],
)
def test_the_moves_of_one_turn_may_stand_in_several_lines(said):
    env = start("maze", "######", "#@___#", "#___x#", "######", moves=3)
    assert rows(env, said) == ["######", "#__@_#", "#___x#", "######"]
    one = start("maze", "######", "#@___#", "#___x#", "######")
    assert one.step(said).info["bad_action"]
    for hedged in ("right\nor down", "right\nright\nright\nright"):
        assert env.step(hedged).info["bad_action"], hedged


def test_full_text_is_in_sentences():
    env = start("maze", "#######", "#r@R_x#", "#######", text="full")
    assert (
        env.step("right").observation[-1].content
        == "Blocked.\n# # # # # # # \n# r @ R _ x # \n# # # # # # # "
    )
    assert env.step("left").observation[-1].content.endswith("\nKeys: r.")
    assert env.step("fly").observation[-1].content == "Say up, down, left or right."
    assert env.step("up up").observation[-1].content == "One move a turn."


def test_slippery_ice_slides_to_the_sides_as_often_as_told():
    env = start("lake", *("#" * 13, *["#" + "_" * 11 + "#"] * 5, "#_____@___x_#", *["#" + "_" * 11 + "#"] * 5, "#" * 13), slip=0.4, turn_limit=3000)  # fmt: skip
    aside, moved = 0, 0
    for turn in range(900):
        state = env.state
        x, y = state.agent % 13, state.agent // 13
        if env.step("left" if x > 6 else "right").info["end"]:
            break
        moved += 1
        aside += env.state.agent // 13 != y
        if not 3 < y < 9:
            env.reset(seed=turn, options={"task": env.task})
    assert moved > 300
    assert 0.33 < aside / moved < 0.47


def test_the_expected_way_on_slippery_ice_solves_bellmans_equation():
    """A corridor: straight on with 1 − s, else a wall: expected moves are distance / (1 − s)."""
    env = start("lake", "######", "#@__x#", "######", slip=0.5)
    assert solver.distance(env.state) == pytest.approx(6.0)
    # Beside a hole one walks against the wall, until the ice slides to the right side: in the middle
    # m = 1 + m/2 + (s + 0)/4 and at the start s = 2 + m, so m = 6 and s = 8.
    env = start("lake", "#####", "#@_x#", "##~##", "#####", slip=0.5)
    assert solver.distance(env.state) == pytest.approx(8.0)
    env = start(
        "lake", "#####", "##~##", "#@_x#", "##~##", "#####", slip=0.5
    )  # between two there is no safe move
    assert solver.distance(env.state) == float("inf")


def test_levels_can_be_shown_as_pictures():
    env = start("maze", "#######", "#r@R_x#", "#######", image=True)
    first, _ = env.reset(seed=0, options={"task": env.task})
    assert first[-1].content == "push o to x .\nsee the picture ."
    before = pixels(first[-1].images[0].data)
    assert [before[1][x] for x in (0, 1, 2, 3, 4)] == [
        (70, 70, 78), (230, 50, 50), (255, 120, 0), (138, 30, 30), (226, 226, 220),
    ]  # fmt: skip
    call = Message("assistant", "", (ToolCall("act", {"command": "left"}, "c1"),))
    after = env.step(call).observation[-1]
    assert (after.role, after.tool_call_id) == ("tool", "c1")
    assert pixels(after.images[0].data)[1][1:4] == [(255, 120, 0), (226, 226, 220), (226, 226, 220)]


def pixels(data):
    """The middle pixel of each cell of a PNG."""
    width, height = struct.unpack(">II", data[16:24])
    start = data.index(b"IDAT") + 4
    raw = zlib.decompress(data[start : start + struct.unpack(">I", data[start - 8 : start - 4])[0]])
    lines = [raw[y * (3 * width + 1) + 1 : (y + 1) * (3 * width + 1)] for y in range(height)]
    return [[tuple(lines[y][3 * x : 3 * x + 3]) for x in range(7, width, 14)] for y in range(7, height, 14)]


# --- levels --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("name", "each"), [(name, 2 if name == "sokoban-hard" else 8) for name in SUITES])
def test_gold_solves_in_the_fewest_moves_and_the_imperfect_agent_sometimes_does(name, each):
    env, suite = GridEnv(), get_suite(f"grid/{name}")
    tasks = [task for split in Split for task in suite_tasks(suite, split, each)]
    for seed, task in enumerate(tasks):
        walked = walk(env, task, "gold", seed=seed)
        assert walked.success
        assert walked.score == 1.0
        if not task.options["slip"]:
            assert len(walked.steps) == -(-task.gold["moves"] // task.options["moves"])
    imperfect = [walk(env, task, "demonstrator", seed=seed).success for seed, task in enumerate(tasks)]
    assert any(imperfect)


@pytest.mark.slow
def test_hard_sokoban_is_long_also_where_a_turn_makes_three_moves():
    tasks = list(suite_tasks(get_suite("grid/sokoban-hard"), Split.TEST, 6))
    assert all(task.gold["moves"] >= 42 for task in tasks)  # 14 turns; with random levels most had 6


@pytest.mark.slow
def test_who_looks_at_one_box_at_a_time_seldom_solves_hard_sokoban():
    env, tasks = GridEnv(), list(suite_tasks(get_suite("grid/sokoban-hard"), Split.TEST, 5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver, "_SHORT_SIGHTED", 1.0)
        assert sum(walk(env, task, "demonstrator", seed=1).success for task in tasks) <= 1


def test_levels_of_the_search_backwards_are_as_long_as_it_says():
    rng, found = random.Random(1), 0
    while found < 5:
        for level in levels.far_sokoban(rng, 7, 2, 20):
            env = start("sokoban", *level)
            assert 20 <= solver.distance(env.state) < float("inf")
            found += 1


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_random_moves_seldom_succeed(name):
    env, suite = GridEnv(), get_suite(f"grid/{name}")
    played = [walk(env, task, "random", seed=i) for i, task in enumerate(suite_tasks(suite, Split.TEST, 40))]
    assert sum(walked.success for walked in played) / 40 <= GridEnv.max_trivial_score


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sokoban-easy", "maze", "lake"])
def test_splits_share_no_level(name):
    suite = get_suite(f"grid/{name}")
    seen = {split: {str(t.options["level"]) for t in suite_tasks(suite, split, 60)} for split in Split}
    assert all(len(levels) > 50 for levels in seen.values())
    assert not seen[Split.TRAIN] & seen[Split.TEST]
    assert not seen[Split.TRAIN] & seen[Split.DEV]
    assert not seen[Split.DEV] & seen[Split.TEST]


KNOBS = [
    {"game": "sokoban", "boxes": 2, "turn_limit": 200},
    {"game": "maze", "size": 9, "decoys": 1, "turn_limit": 300},
    {"game": "lake", "size": 8, "turn_limit": 200},
]


@settings(max_examples=30)
@given(st.sampled_from(KNOBS), st.integers(0, 20), st.integers(0, 2**32), st.integers(0, 15))
def test_gold_from_any_solvable_state(knobs, index, seed, turns):
    env, rng = GridEnv(), random.Random(seed)
    env.reset(seed=seed, options={"task": GridEnv.generate(derive_rng(index), Split.TRAIN, **knobs)})
    for _ in range(turns):
        before = env.snapshot()
        step = env.step(rng.choice(env.admissible(env.state)))
        if step.info["end"] or solver.distance(env.state) == float("inf"):
            env.restore(before)
            break
    left = solver.distance(env.state)
    while env.snapshot().end is None:
        assert solver.distance(env.state) == left
        env.step(env.gold(env.state))
        left -= 1
    assert (env.snapshot().end, left) == (EndReason.SOLVED, 0)


def test_in_compact_text_every_sign_has_a_space_behind_it():
    env = GridEnv()
    for name in ("sokoban-easy", "maze", "lake"):
        for task in suite_tasks(get_suite(f"grid/{name}"), Split.TRAIN, 3):
            walked = walk(env, task, "gold")
            for message in (*walked.first, *(m for step in walked.steps for m in step.observation)):
                assert not re.search(r"[^ .\n](?=\n|$)|[a-z](?![a-z ])", message.content), message.content


def test_knobs_are_checked():
    with pytest.raises(EnvError, match="only the lake is slippery"):
        GridEnv.generate(derive_rng(0), Split.TRAIN, slip=0.1)
    with pytest.raises(EnvError, match="must be odd"):
        GridEnv.generate(derive_rng(0), Split.TRAIN, game="maze", size=8)
    with pytest.raises(EnvError, match="no grid task"):
        GridEnv().reset(options={"task": Task("other", "x")})
