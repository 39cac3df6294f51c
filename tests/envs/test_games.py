"""Games: rules and answers worked out by hand, exact poker, forced wins, what each side sees, stalling, baselines."""

import math
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import walk
from turnwise.envs.core import EndReason
from turnwise.envs.games import boards, kuhn
from turnwise.envs.games.boards import CONNECT_FOUR, TICTACTOE
from turnwise.envs.games.env import GamesEnv
from turnwise.envs.games.kuhn import (
    Knowledge,
    best_response,
    equilibrium,
    exploitability,
    information_sets,
    uniform,
)
from turnwise.envs.games.opponents import as_policy, strength
from turnwise.envs.games.probe import counted, situations, strategy_of
from turnwise.envs.games.riddles import marks_of, pegs
from turnwise.envs.games.solver import WIN
from turnwise.envs.games.solver import value as value_of
from turnwise.envs.games.vocabulary import WORDS
from turnwise.envs.registry import environment_suites, get_suite, suite_task, suite_tasks
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task, derive_rng

ENV = "turnwise/Games-v0"
SHARED = {"text": "compact", "commands": "hidden", "turn_limit": 12}


def start(**options):
    env = GamesEnv()
    task = Task(ENV, "play .", {**SHARED, **options})
    first, _ = env.reset(seed=0, options={"task": task})
    return env, first[-1].content


def say(env, *texts):
    return [env.step(text) for text in texts][-1]


@pytest.mark.slow
@pytest.mark.usefixtures("copying")
def test_the_contract_is_kept():
    report = check_env(ENV, tasks=3)
    assert report.ok, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("suite", environment_suites(ENV), ids=lambda suite: suite.name)
def test_gold_solves_and_splits_are_disjoint(suite):
    env, seen = GamesEnv(), {}
    for split in Split:
        for seed, task in enumerate(suite_tasks(suite, split, 8)):
            assert seen.setdefault(task.id, split) is split
            walked = walk(env, task, "gold", seed=seed)
            assert walked.success
            assert walked.score == 1.0


# --- deduction ---------------------------------------------------------------------------------------


def test_wordle_by_hand():
    assert marks_of("crane", "crane") == ("yes",) * 5
    assert marks_of("eerie", "there") == ("near", "no", "near", "no", "yes")  # two e in there, one is placed
    env, told = start(game="wordle", words=["crane", "crate", "trace"], secret="trace", guesses=0)
    assert told == "play .\nwords : crane , crate , trace ."
    assert (
        say(env, "guess crane").observation[-1].content == "crane : c near , r yes , a yes , n no , e yes ."
    )
    step = say(env, "T R A C E")
    assert (step.reward, step.info["end"]) == (1.0, EndReason.SOLVED)


def test_mastermind_by_hand():
    assert pegs("red red blue blue", "blue red red green") == (1, 2)
    env, _ = start(game="mastermind", colours=4, places=3, secret="red blue red", guesses=0)
    assert say(env, "red red green").observation[-1].content == "red red green : 1 right , 1 elsewhere ."
    assert say(env, "Red, blue and red!").info["end"] is EndReason.SOLVED


WORLD = [["wug", ["red", "small"]], ["dax", ["red", "large"]], ["fep", ["blue", "small"]]]


def test_questions_by_hand_and_a_wrong_guess_loses():
    env, _ = start(game="questions", world=WORLD, secret="dax", guesses=1)
    assert say(env, "is it red?").observation[-1].content == "red : yes ."
    assert env.potential(env.state) == pytest.approx(1 - math.log(2) / math.log(3))
    fork = env.fork()
    assert say(env, "guess wug").info["end"] is EndReason.FAILED
    assert say(fork, "It must be the dax.").info["end"] is EndReason.SOLVED


@pytest.mark.parametrize("game", ["wordle-told", "mastermind-small", "questions-small"])
def test_naming_everything_at_once_is_no_guess(game):
    env = GamesEnv()
    task = suite_task(get_suite(f"games/{game}"), Split.TRAIN, 0)
    env.reset(seed=0, options={"task": task})
    everything = " ".join(env.admissible(env.state))
    step = say(env, everything)
    assert step.info["bad_action"]
    assert step.reward == 0


@pytest.mark.parametrize("game", ["wordle", "mastermind", "questions"])
def test_the_solver_and_the_key_do_not_look_at_the_secret(game):
    env, other = GamesEnv(), GamesEnv()
    task = suite_task(get_suite(f"games/{game}"), Split.TEST, 1)
    env.reset(seed=0, options={"task": task})
    secrets = env.state.play.secrets
    secret = next(s for s in secrets if s != task.options["secret"])
    twin = Task(task.env, task.prompt, {**task.options, "secret": secret})
    other.reset(seed=0, options={"task": twin})
    assert env.gold(env.state) == other.gold(other.state)
    assert env.state_key(env.state) == other.state_key(other.state)


@settings(max_examples=30)
@given(st.sampled_from(WORDS), st.sampled_from(WORDS))
def test_the_secret_always_fits_the_answers(secret, guess):
    env, _ = start(game="wordle", words=[], secret=secret, guesses=0)
    if guess != secret:
        say(env, guess)
        assert secret in env.state.play.possible(env.state.position)
        assert guess not in env.state.play.possible(env.state.position)


@pytest.mark.parametrize("game", ["wordle", "mastermind", "questions"])
def test_shaping_telescopes(game):
    env = GamesEnv(shaping=1.0)
    task = suite_task(get_suite(f"games/{game}"), Split.TRAIN, 3)
    for script in ("gold", "random", "null"):
        walked = walk(env, task, script)
        parts = [step.info["rewards"]["progress"] for step in walked.steps]
        assert sum(parts) == pytest.approx(0.0, abs=1e-9)  # nothing is known at first
        assert script != "gold" or max(parts) > 0


@pytest.mark.parametrize(
    "said",
    [
        "My first guess is CRANE.",
        "Let me start with crane.",
        "I think it might be crane.",
        "Since the e is right, I would try crane.",
        "crane\n\nThis word has common letters.",
        "**Crane**\nIt is a word with an a and an e.",
    ],
)
def test_a_word_may_be_said_in_a_sentence(said):
    env, _ = start(game="wordle", words=[], secret="trace", guesses=0)
    assert say(env, said).observation[-1].content == "crane : c near , r yes , a yes , n no , e yes ."


def test_a_word_of_speech_is_a_guess_where_it_is_the_only_one_and_two_words_are_none():
    env, _ = start(game="wordle", words=[], secret="trace", guesses=0)
    assert say(env, "I say: think!").observation[-1].content.startswith("think : ")
    for said in ("crane or brake", "I think first", "Either crane\nor, perhaps, brave or brake"):
        assert say(env, said).info["bad_action"], said
    env, _ = start(game="wordle", words=[], secret="trace", guesses=0, text="full")
    assert f"one of {len(WORDS)} common words" in env.system_for("agent")
    assert say(env, "crane").observation[-1].content == "Crane: c near, r yes, a yes, n no, e yes."


@pytest.mark.parametrize(
    "said",
    [
        "- red\n- red\n- green",
        "1: red\n2: red\n3: green",
        "Since blue was wrong, I try red, red and green.",
        "red red green\nThat tells me most about blue and green.",
    ],
)
def test_a_row_of_colours_may_stand_in_a_list_or_a_sentence(said):
    env, _ = start(game="mastermind", colours=4, places=3, secret="red blue red", guesses=0)
    assert say(env, said).observation[-1].content == "red red green : 1 right , 1 elsewhere ."
    assert say(env, "red red green or red green red").info["bad_action"]


# --- boards ------------------------------------------------------------------------------------------


def test_lines_of_the_usual_boards():
    for board, n in ((TICTACTOE, 8), (CONNECT_FOUR, 69)):
        assert len({mask for through in boards.lines(board) for mask in through}) == n


def test_perfect_tictactoe_is_a_draw_and_random_play_is_as_known():
    perfect, chance = as_policy("minimax", TICTACTOE), as_policy("random", TICTACTOE)
    assert value_of(TICTACTOE, 0, 0, 9) == 0
    assert strength(TICTACTOE, perfect, perfect).draw == pytest.approx(1.0)
    both_random = strength(TICTACTOE, chance, chance)  # known: 0.5849, 0.1270, 0.2881
    assert both_random == pytest.approx((0.584921, 0.126984, 0.288095), abs=1e-6)
    assert strength(TICTACTOE, chance, perfect).win == 0.0
    assert strength(TICTACTOE, as_policy("greedy", TICTACTOE), chance).score > both_random.score


def test_a_forced_win_is_seen_and_told_from_a_later_one():
    mine, theirs = 0b000_000_011, 0b000_011_000  # x x _ / o o _ / _ _ _
    assert boards.winning_moves(TICTACTOE, mine, theirs) == [2]
    assert value_of(TICTACTOE, mine, theirs, 9) == WIN
    fork = (0b100_000_001, 0b000_010_000)  # x _ _ / _ o _ / _ _ x, o to move: only an edge saves it
    assert value_of(TICTACTOE, fork[1], fork[0], 9) == 0
    assert value_of(TICTACTOE, fork[0], fork[1] | 1 << 2, 9) == WIN - 2


def test_stones_fall_and_full_columns_are_refused():
    env, told = start(
        game="connect4", board=[5, 4, 4], gravity=True, stones=[0, 0], seat=0, opponent="agent", depth=4, ahead=3,
        two_sided=True, turn_limit=30,
    )  # fmt: skip
    assert told == "play .\n" + "\n".join(["_ _ _ _ _ "] * 4)
    assert say(env, "2").observation[-1].content.endswith("_ o _ _ _ ")  # the other sees it as o
    step = say(env, "2", "2", "2", "2")
    assert step.info["bad_action"]
    assert step.observation[-1].content == "say one of 1 3 4 5 ."


def test_a_column_may_be_said_in_a_sentence():
    env, _ = start(
        game="connect4", board=[5, 4, 4], gravity=True, stones=[0, 0], seat=0, opponent="agent", depth=4, ahead=3,
        two_sided=True, turn_limit=30,
    )  # fmt: skip
    before = env.snapshot()
    for said in (
        "I play column 2 to get 3 in a row.",
        "2, which makes three in a row.",
        "two",
        "Move 1: column 2",
        "2\nThis blocks the 3 stones of the other.",
    ):
        env.restore(before)
        assert say(env, said).observation[-1].content.endswith("_ o _ _ _ "), said
    for said in ("2 or 3", "column 2 or column 3", "3 in a row", "the one that wins"):
        env.restore(before)
        assert say(env, said).observation[-1].content == "say one of 1 2 3 4 5 .", said


@pytest.mark.parametrize("opponent", ["random", "greedy", "minimax"])
def test_a_forced_win_is_won_against_every_opponent(opponent):
    env = GamesEnv()
    for index in range(8):
        knobs = {"game": "tictactoe", "opponent": opponent, "opening": [2, 6], "win_in": 2, "turn_limit": 6}
        task = GamesEnv.generate(derive_rng("test", index), Split.TRAIN, **knobs)
        for seed in range(3):
            assert walk(env, task, "gold", seed=seed).success


# --- poker -------------------------------------------------------------------------------------------


def test_the_value_of_kuhn_poker_and_its_equilibria():
    for bluff in (0.0, 0.1, 1 / 3):
        assert kuhn.value(equilibrium(bluff), equilibrium()) == pytest.approx(-1 / 18)
        assert exploitability(equilibrium(bluff)) == pytest.approx(0.0, abs=1e-12)
    assert exploitability(uniform()) == pytest.approx(11 / 24)
    assert exploitability({**equilibrium(0.0), Knowledge(0, ("bet",)): 1.0}) > 0.01  # it calls with a jack


@settings(max_examples=25)
@given(
    st.lists(st.floats(0, 1), min_size=12, max_size=12), st.integers(0, 2**12 - 1), st.sampled_from([0, 1])
)
def test_no_pure_strategy_does_better_than_the_best_response(chances, pure, seat):
    strategy = dict(zip(information_sets(), chances, strict=True))
    reply = {held: float(pure >> i & 1) for i, held in enumerate(information_sets())}
    won = kuhn.value(reply, strategy) if seat == 0 else -kuhn.value(strategy, reply)
    assert won <= best_response(seat, strategy)[1] + 1e-9


@settings(max_examples=25)
@given(st.lists(st.lists(st.floats(0.01, 0.99), min_size=12, max_size=12), min_size=4, max_size=4))
def test_the_average_strategy_wins_what_its_parts_win_on_average(chances):
    *parts, other = [dict(zip(information_sets(), row, strict=True)) for row in chances]
    mixed = kuhn.average(parts)
    assert kuhn.value(mixed, other) == pytest.approx(mean([kuhn.value(part, other) for part in parts]))
    assert kuhn.value(other, mixed) == pytest.approx(mean([kuhn.value(other, part) for part in parts]))
    assert kuhn.average([other, other]) == pytest.approx(other)
    assert exploitability(mixed) <= mean([exploitability(part) for part in parts]) + 1e-9


def test_fictitious_play_finds_the_equilibrium():
    """Averages of best responses converge in two-player zero-sum games (Robinson 1951)."""
    average = uniform()
    seen = []
    for n in range(1, 301):
        reply = {**best_response(0, average)[0], **best_response(1, average)[0]}
        average = {held: average[held] + (reply[held] - average[held]) / (n + 1) for held in average}
        seen.append(exploitability(average))
    assert seen[-1] < 0.05 < seen[0]


def test_a_hand_of_poker_as_both_sides_see_it():
    env, told = start(game="kuhn", deals=[[0, 2]], seat=0, match=0, two_sided=True, turn_limit=6)
    assert told == "play .\nyou have jack .\nsay check or bet ."
    step = say(env, "check")
    assert env.agent == "opponent"
    assert step.observation[-1].content == "play .\nyou have king .\nother says check .\nsay check or bet ."
    step = say(env, "bet")
    assert step.observation[-1].content == "other says bet .\nsay fold or call ."
    step = say(env, "I call")
    assert step.reward == -2.0
    assert step.info["rewards_to"] == {"opponent": {"outcome": 2.0}}
    assert step.observation[-1].content == "other has king . you lose 2 ."
    assert (
        step.info["messages_to"]["opponent"][-1].content == "other says call .\nother has jack . you win 2 ."
    )


def test_what_the_other_did_may_be_named_beside_ones_own_move():
    env, _ = start(game="kuhn", deals=[[0, 2]], seat=0, match=0, two_sided=True, turn_limit=6, text="full")
    for said in ("I call.", "check or bet", "I would rather check than bet."):
        before = env.snapshot()
        assert say(env, said).observation[-1].content == "Say check or bet.", said
        env.restore(before)
    step = say(env, "I bet, since the other may fold.")
    assert step.observation[-1].content == "play .\nYou have a king.\nThe other says bet.\nSay fold or call."
    before = env.snapshot()
    assert say(env, "I bet, since it will fold.").info["bad_action"]
    env.restore(before)
    assert say(env, "I call the bet.").observation[-1].content == "The other has a jack. You win 2 chips."


def test_the_key_does_not_tell_the_others_card():
    keys = set()
    for deal in ([1, 0], [1, 2]):
        env, _ = start(game="kuhn", deals=[deal], seat=0, match=0, two_sided=True, turn_limit=6)
        keys.add(env.state_key(env.state))
    assert len(keys) == 1


def test_stalling_spares_no_loss():
    """Without a forfeit, saying nothing until the turn limit would cost 0 where folding costs a chip."""
    env, _ = start(game="kuhn", deals=[[2, 0]], seat=0, match=0, two_sided=True, turn_limit=6)
    say(env, "bet", "hm", "what")
    step = say(env, "no idea")
    assert step.info["bad_action"]
    assert (step.reward, step.info["end"], step.info["rewards_to"]) == (
        -2.0,
        EndReason.SOLVED,
        {"agent": {"outcome": 2.0}},
    )
    with pytest.raises(EnvError, match="stalling"):
        GamesEnv.generate(derive_rng(0), Split.TRAIN, game="kuhn", opponent="agent", turn_limit=5)


def test_a_strategy_is_read_from_probabilities_and_from_moves():
    both = situations()
    assert [s.knowledge for s in both] == list(information_sets())
    assert {s.messages[-1].content.split("\n")[-1] for s in both} == {
        "say check or bet .",
        "say fold or call .",
    }
    assert exploitability(strategy_of(lambda _: 0.5)) == pytest.approx(11 / 24)
    moves = [("king", "bet"), ("king", "bet"), ("king", "check ."), ("jack bet", "fold"), ("jack bet", "??")]
    strategy = counted(moves)
    assert strategy[Knowledge(2)] == 3 / 5
    assert strategy[Knowledge(0, ("bet",))] == 1 / 3


# --- knobs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("knobs", "told"),
    [
        ({"gme": "wordle"}, "game"),
        ({"game": "chess"}, "game"),
        ({"game": "kuhn"}, "four hands"),
        ({"things": 60}, "half of values"),
    ],
)
def test_wrong_knobs_are_named(knobs, told):
    with pytest.raises(EnvError, match=told):
        GamesEnv.generate(derive_rng("knobs"), Split.TRAIN, **knobs)
