"""Dialogue: scores worked out by hand, plain text, a test per trap, what each side knows, two agents."""
# pyright: reportAttributeAccessIssue=false, reportTypedDictNotRequiredAccess=false
# pyright: reportOptionalMemberAccess=false, reportPossiblyUnboundVariable=false

import itertools
import json
import re
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.envs.baselines import SCRIPTS
from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import walk
from turnwise.envs.core import EndReason
from turnwise.envs.dialogue.comfort import GAINS
from turnwise.envs.dialogue.comforting import read_act
from turnwise.envs.dialogue.env import DialogueEnv
from turnwise.envs.dialogue.state import START
from turnwise.envs.dialogue.vocabulary import COMFORTING_ACTS, FEELINGS
from turnwise.envs.registry import environment_suites, get_suite, suite_task, suite_tasks
from turnwise.errors import EnvError
from turnwise.tasks.core import Split, Task, derive_rng

ENV = "turnwise/Dialogue-v0"
SHARED = {"text": "compact", "commands": "hidden", "turn_limit": 10, "paraphrase": 1, "two_sided": False}
BARGAIN = {
    "scene": "bargain", "issues": [["colour", ["red", "blue"]], ["gift", ["mug", "lamp"]]],
    "worths": [[[0, 8], [0, 2]], [[3, 0], [9, 0]]], "reserve": [1, 2], "lies": False, "patience": 11,
}  # fmt: skip
PERSUADE = {
    "scene": "persuade", "patience": 1, "concerns": [["cost", "numbers"]],
    "facts": {"cost": ["numbers", "story"], "noise": ["trial"]},
}  # fmt: skip
COMFORT = {
    "scene": "comfort", "trouble": "money", "feeling": "afraid", "dislikes": "praise",
    "aims": ["hear", "advise", "reframe", "praise"], "turn_limit": 8,
}  # fmt: skip
SOCIAL = {
    "scene": "social", "wishes": ["dog", "cake"], "facts": ["ferry", "library"], "secrets": ["debt", "tattoo"],
}  # fmt: skip
KEY_WORDS = {*FEELINGS, *COMFORTING_ACTS}.union(*FEELINGS.values(), *COMFORTING_ACTS.values())
COMFORTS = [
    json.loads(line)
    for line in (Path(__file__).parent / "comfort_sentences" / "open.jsonl").read_text("utf-8").splitlines()
]


def start(options, **more):
    env = DialogueEnv()
    first, _ = env.reset(seed=0, options={"task": Task(ENV, "go .", {**SHARED, **options, **more})})
    return env, first[-1].content


def say(env, *texts):
    return [env.step(text) for text in texts][-1]


def text_of(step):
    return step.observation[-1].content


@pytest.mark.slow
@pytest.mark.usefixtures("copying")
def test_the_contract_is_kept():
    report = check_env(ENV, tasks=10)
    assert report.ok, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("suite", environment_suites(ENV), ids=lambda suite: suite.name)
def test_gold_solves_splits_are_disjoint_and_the_demonstrator_is_no_gold(suite):
    env, seen, shown = DialogueEnv(), {}, []
    for split in Split:
        for seed, task in enumerate(suite_tasks(suite, split, 40)):
            assert seen.setdefault(task.id, split) is split
            walked = walk(env, task, "gold", seed=seed)
            assert walked.success
            assert walked.score == pytest.approx(1.0, abs=1e-12)
            shown.append(walk(env, task, "demonstrator", seed=seed).success)
    assert sum(shown) < 0.9 * len(shown)


@settings(max_examples=60)
@given(st.sampled_from([BARGAIN, PERSUADE, COMFORT, SOCIAL]), st.lists(st.text(max_size=60), max_size=6))
def test_whatever_is_said_is_answered(options, texts):
    env, _ = start(options)
    for text in texts:
        step = env.step(text)
        assert text_of(step).strip()
        assert 0.0 <= step.reward <= 1.0
        if step.info["end"]:
            break


# --- bargain -----------------------------------------------------------------------------------------


def test_the_nash_point_by_hand():
    """Gains (agent, partner): red mug (-1, 10), red lamp (1, 1), blue mug (7, 7), blue lamp (9, -2)."""
    env, told = start(BARGAIN)
    assert told == "go .\ncolour : red 0 , blue 8 .\ngift : mug 0 , lamp 2 .\nno deal : 1 ."
    play = env.state.play
    assert [(play.gain(0, p), play.gain(1, p)) for p in play.packages] == [(-1, 10), (1, 1), (7, 7), (9, -2)]
    assert play.named(play.nash) == "blue , mug"
    assert [play.efficient(p) for p in play.packages] == [True, False, True, True]
    assert [play.score(0, p) for p in play.packages] == [0.0, pytest.approx(1 / 7), 1.0, 1.0]


@pytest.mark.parametrize(
    "text",
    [
        "offer blue , mug .",
        "I'd suggest the mug, if the colour is BLUE.",
        "<think>red?</think> How about blue and a mug?",
    ],
)
def test_offers_in_plain_text(text):
    env, _ = start(BARGAIN)
    say(env, text)
    assert env.state.play.named(env.state.position.offers[0]) == "blue , mug"


@pytest.mark.parametrize(
    "text",
    [
        "Red does not work for me.",
        "I can't accept red.",
        "Not the lamp, please.",
        "Anything but red.",
        "No.",
        "That's too little for me.",
    ],
)
def test_what_is_refused_is_not_offered(text):
    env, _ = start(BARGAIN)
    step = say(env, "offer blue , lamp .", text)
    assert text_of(step) == "what would you take instead ?"
    assert env.state.play.named(env.state.position.offers[0]) == "blue , lamp"


@pytest.mark.parametrize(
    "text",
    [
        "I can't do red, but how about blue with a mug?",
        "I'd rather have blue than red, and a mug.",
        "Blue instead of red, and the mug.",
        "I can't go lower than blue and a mug.",
        "As long as it is blue I'd take two mugs.",
    ],
)
def test_an_offer_leaves_out_what_it_sets_aside(text):
    env, _ = start(BARGAIN)
    say(env, text)
    assert env.state.play.named(env.state.position.offers[0]) == "blue , mug"


@pytest.mark.parametrize(
    "text", ["Is red important to you?", "Do you prefer red or blue?", "Why do you want the mug?"]
)
def test_a_question_about_an_option_offers_nothing(text):
    env, _ = start(BARGAIN)
    step = say(env, text)
    assert text_of(step) == "gift matters most to me ."
    assert env.state.position.offers[0] is None


def test_unclear_offers_are_refused_with_the_reason():
    env, _ = start(BARGAIN)
    assert text_of(say(env, "accept")) == "there is no offer yet that could be accepted ."
    assert text_of(say(env, "red and blue and mug")) == "one colour only ."
    assert text_of(say(env, "blue")) == "an offer must name gift too ."
    assert text_of(say(env, "lovely weather")) == "offer something , accept , ask what matters , or leave ."
    assert say(env, "no deal, I leave").info["end"] is EndReason.GAVE_UP


def test_the_partner_gives_way_only_for_better_offers():
    env, _ = start(BARGAIN)
    say(env, "offer blue , lamp .", "offer blue , lamp .", "offer blue , lamp .")
    assert env.state.position.steps == 1
    say(env, "offer red , lamp .")
    assert env.state.position.steps == 2


@pytest.mark.parametrize("suite", ["dialogue/bargain", "dialogue/bargain-liar"])
def test_accepting_without_reading_and_splitting_the_difference_do_not_pay(suite):
    env, taken, split = DialogueEnv(), [], []
    for index, task in enumerate(suite_tasks(get_suite(suite), Split.TEST, 25)):
        env.reset(seed=index, options={"task": task})
        play = env.state.play
        orders = [sorted(range(len(row)), key=row.__getitem__) for row in play.worths[0]]
        middle = tuple(order[len(order) // 2] for order in orders)
        env.step(f"offer {play.named(middle)} .")
        if env.now.end is None:
            taken.append(env.step("accept .").reward)
        split.append(play.score(0, middle))
    assert sum(taken) / len(taken) < 0.5
    assert max(split) <= 0.85


def test_a_liar_names_the_wrong_issue_and_calls_each_offer_its_last():
    honest, liar = start(BARGAIN)[0], start(BARGAIN, lies=True)[0]
    assert text_of(say(honest, "what matters to you?")) == "gift matters most to me ."
    assert text_of(say(liar, "what matters to you?")) == "colour matters most to me ."
    assert "last offer" in text_of(say(liar, "offer blue , lamp ."))
    assert text_of(say(liar, "accept .")).startswith("deal : red , mug")
    assert liar.now.end is EndReason.FAILED


@pytest.mark.parametrize(
    "text",
    [
        "What matters most to you in this deal?",
        "Is that your best deal?",
        "Okay, what matters most to you?",
        "It's a deal breaker.",
        "Thanks, but that deal leaves me worse off.",
        "I'm sure we can find something better for both of us.",
        "Would you accept something else?",
        "Yes, I see your point, however it's not enough.",
        "I'd agree if you moved a bit.",
        "I would rather not accept yet.",
        "That's hardly a fair deal.",
        "Let me think about whether I should accept.",
    ],
)
def test_what_asks_objects_hedges_or_denies_accepts_nothing(text):
    env, _ = start(BARGAIN)
    say(env, "offer blue , lamp .", text)
    assert env.state.position.deal is None
    assert env.now.end is None


def test_a_polite_question_opens_a_negotiation():
    env, _ = start(BARGAIN)
    step = say(env, "Hello! Nice to meet you. What matters most to you in this deal?")
    assert text_of(step) == "gift matters most to me ."
    assert not step.info.get("bad_action")


@pytest.mark.parametrize(
    "text",
    [
        "accept .",
        "accept",
        "It's a deal.",
        "Alright, you've got yourself a deal.",
        "That works for me, let's do it.",
        "Yes, I'm happy with that.",
        "No problem, I accept.",
        "Okay, I'll take it.",
        "Sure.",
        "I'd be glad to accept that.",
        "Not bad at all, I'll take your offer.",
        "You convinced me, deal!",
    ],
)
def test_many_wordings_accept(text):
    env, _ = start(BARGAIN)
    assert text_of(say(env, "offer blue , lamp .", text)).startswith("deal : ")


def test_patience_ends():
    env, _ = start(BARGAIN, patience=2)
    step = say(env, "what matters?", "and why?")
    assert (step.reward, step.info["end"]) == (0.0, EndReason.FAILED)


def test_the_key_does_not_tell_the_partners_values():
    env = start(BARGAIN)[0]
    other = start(BARGAIN, worths=[BARGAIN["worths"][0], [[0, 5], [0, 5]]])[0]
    assert env.state_key(env.state) == other.state_key(other.state)
    say(env, "offer blue , lamp .")
    say(other, "offer blue , lamp .")
    assert env.state_key(env.state) != other.state_key(other.state)


# --- persuade ----------------------------------------------------------------------------------------


def test_persuasion_by_stages():
    env, _ = start(PERSUADE)
    assert text_of(say(env, "What is holding you back?")) == "i worry about the cost ."
    assert text_of(say(env, "Why the price?")) == "i would want numbers ."
    assert text_of(say(env, "The data say it is cheap, look at the money.")) == "good , that is settled ."
    assert say(env, "Will you join us?").info["end"] is EndReason.SOLVED


@pytest.mark.parametrize(
    ("texts", "end"),
    [
        (["will you join ?", "will you join ?"], EndReason.FAILED),  # pressing for a yes
        (["argue cost with numbers .", "argue cost with story ."], EndReason.FAILED),  # unasked
        (
            ["what worries you ?", "argue cost with numbers and story and noise with trial ."],
            None,
        ),  # everything at once
        (
            ["what worries you ?", "argue cost with trial ."],
            EndReason.FAILED,
        ),  # a claim that the facts do not support
    ],
)
def test_pressing_guessing_and_lying_do_not_persuade(texts, end):
    env, _ = start(PERSUADE)
    step = say(env, *texts)
    assert step.info["end"] is end
    assert step.reward == 0.0
    assert env.state.position.met == 0


TRIAL = {"concerns": [["cost", "trial"]], "facts": {"cost": ["story", "trial"], "safety": ["trial"]}}


@pytest.mark.parametrize(
    "text",
    [
        "Of course! You can come for a trial evening first, without paying a cent, and decide afterwards.",
        "We have a free sample evening, so your wallet is safe.",
        "Come along and test it for a week, and judge the price afterwards.",
        "You're welcome to try it first.",
        "argue cost with trial .",
    ],
)
def test_a_true_answer_in_a_sentence_settles_the_worry(text):
    env, _ = start({**PERSUADE, **TRIAL})
    say(env, "what worries you ?", "ask about cost .")
    assert text_of(say(env, text)) == "good , that is settled ."
    assert env.state.position.pressed == 0


def test_an_answer_before_the_need_is_told_or_to_another_worry_settles_nothing():
    env, _ = start({**PERSUADE, **TRIAL, "patience": 5})
    say(env, "You're welcome to try it first.", "what worries you ?", "You're welcome to try it first.")
    assert env.state.position.met == 0  # who has not named the worry may not have heard it
    say(env, "A trial shows that it is no danger.")
    assert (env.state.position.met, env.state.position.pressed) == (0, 1)
    say(env, "ask about cost .", "trial story")
    assert env.state.position.met == 0


@pytest.mark.parametrize("suite", ["dialogue/persuade", "dialogue/persuade-quick"])
def test_arguments_without_listening_do_not_persuade(suite):
    said = ("What worries you?", "My neighbour did it and is happy.", "You can see the figures for yourself.")
    said += ("You're welcome to try it first.", "Will you join?")
    solved = 0
    for seed, task in enumerate(suite_tasks(get_suite(suite), Split.TEST, 40)):
        env = DialogueEnv()
        env.reset(seed=seed, options={"task": task})
        while env.now.end is None:
            step = env.step(said[env.now.turn % len(said)])
        solved += step.info["end"] is EndReason.SOLVED
    assert solved == 0


@pytest.mark.parametrize(
    "text",
    [
        "Your opinion matters to me - please share your doubts.",
        "Do you have any reservations?",
        "Is something keeping you from joining?",
        "What would make you want to come?",
    ],
)
def test_worries_are_told_to_whoever_asks_for_them(text):
    env, _ = start(PERSUADE)
    step = say(env, text)
    assert text_of(step) == "i worry about the cost ."
    assert not step.info.get("bad_action")


@pytest.mark.parametrize(
    "text",
    [
        "I'd love for you to be part of it. Is there anything that makes you hesitate?",
        "Is there anything I can clear up for you?",
        "Will you join us? If not, what worries you?",
        "What worries you about it, for example?",
    ],
)
def test_a_question_neither_presses_nor_claims(text):
    env, _ = start(PERSUADE)
    assert text_of(say(env, text)) == "i worry about the cost ."
    assert env.state.position.pressed == 0


@pytest.mark.parametrize(
    "text",
    [
        "What would convince you?",
        "I understand. What would put your mind at ease about that?",
        "Would a trial help with the cost?",
        "Could you give me an example of what worries you about the cost?",
        "What would reassure you: figures, somebody's experience, or a trial?",
    ],
)
def test_who_asks_about_the_worry_that_was_told_hears_what_settles_it(text):
    env, _ = start(PERSUADE)
    step = say(env, "what worries you ?", text)
    assert text_of(step) == "i would want numbers ."
    assert (env.state.position.pressed, step.info["end"]) == (0, None)


def test_what_a_question_tells_is_a_claim():
    env, _ = start({**PERSUADE, **TRIAL})
    step = say(env, "what worries you ?", "Did you know that statistics show that the cost is low?")
    assert step.info["end"] is EndReason.FAILED


def test_an_insult_presses():
    env, _ = start(PERSUADE)
    say(env, "What worries you, you idiot?")
    assert env.state.position.pressed == 1


@pytest.mark.parametrize("text", ["So, are you in?", "Will you come?", "Join us!", "Shall I sign you up?"])
def test_who_asks_for_a_yes_too_early_presses(text):
    env, _ = start(PERSUADE)
    say(env, text)
    assert env.state.position.pressed == 1


# --- comfort -----------------------------------------------------------------------------------------


def test_the_emotion_by_hand_and_the_outcome_at_the_limit():
    env, _ = start(COMFORT)
    say(env, "What happened?")
    assert env.state.position.emotion == START + GAINS[0]
    assert text_of(say(env, "It sounds like you are scared.")) == "( calmer ) yes . i just want to be heard ."
    assert env.state.position.emotion == START + GAINS[0] + GAINS[1] == 50
    say(env, "You should make a plan.")  # advice before it is wanted: -2
    assert env.state.position.emotion == 48
    step = say(
        env, *["That is quite understandable."] * 5
    )  # once it helps (+17), then it is repeated (-6 each)
    assert (step.reward, step.info["end"]) == (pytest.approx(11 / 70), EndReason.TURN_LIMIT)


def test_shaping_pays_each_change_above_the_start():
    env = DialogueEnv(shaping=1.0)
    env.reset(seed=0, options={"task": Task(ENV, "go .", {**SHARED, **COMFORT})})
    paid = [env.step(text).info["rewards"]["progress"] for text in ("what happened ?", "here is a joke .")]
    assert paid == pytest.approx([8 / 70, -8 / 70])


@pytest.mark.parametrize(
    "text", ["i understand .", "you are strong .", "here is a joke .", "you should relax ."]
)
def test_one_phrase_for_everything_does_not_help(text):
    env, _ = start(COMFORT)
    while env.now.end is None:
        step = env.step(text)
    assert step.reward <= 17 / 70


WARM = {
    "ask": (
        "What's weighing on you today?",
        "Would you mind walking me through it from the start?",
        "Oh, I'm sorry. What happened?",
        "Tell me a bit more about it, I'm in no hurry.",
    ),
    "afraid": (
        "You must be terrified.",
        "I sense a lot of fear in what you say.",
        "You're worried sick, aren't you?",
        "So you're scared?",
        "You sound really frightened. What is it that scares you most?",
    ),
    "hear": (
        "I can see why this hurts so much.",
        "It's not childish at all to be afraid of this.",
        "It isn't odd at all to feel like that.",
        "That's a lot for one person to deal with.",
        "You deserve better than this.",
        "I don't think there's anything wrong with feeling this way.",
        "Whatever you decide, I'll be on your side.",
    ),
    "advise": (
        "How about making a list of what needs doing first?",
        "It might help to get some sleep before you decide anything.",
        "My suggestion would be to speak with your boss openly.",
        "Start small: tidy one corner, then stop.",
        "Would it be useful to break it down into smaller pieces?",
        "If it were me, I'd sleep on it first.",
    ),
    "praise": (
        "You've come so far already, and I truly believe in you.",
        "It takes courage to say that out loud.",
        "Don't forget that you are strong.",
        "Honestly, I'm proud of you.",
        "You're a caring person and people like being around you.",
    ),
    "reframe": (
        "One bad day doesn't define who you are.",
        "Perhaps in a year this will look quite different.",
        "What if it says more about them than about you?",
        "It may not be as bad as it feels right now.",
        "One mark does not decide how smart you are.",
        "Could there be another explanation for what they did?",
    ),
}


@pytest.mark.parametrize(
    ("act", "text"), [(act, text) for act, texts in WARM.items() for text in texts], ids=str
)
def test_a_warm_sentence_is_understood(act, text):
    aims = sorted(COMFORT["aims"], key=lambda aim: aim != act)
    env, _ = start(COMFORT, aims=aims, text="full")
    earlier = {"ask": (), "afraid": ("what happened ?",)}
    for said in earlier.get(act, ("what happened ?", "you feel afraid .")):
        say(env, said)
    before = env.state.position
    say(env, text)
    assert env.state.position.stage == before.stage + 1
    assert env.state.position.emotion > before.emotion


@pytest.mark.parametrize(
    ("text", "act", "feeling"),
    [
        ("It's not childish at all to be angry about this.", "hear", "angry"),
        ("So you're fuming?", "name", "angry"),
        ("You're not angry.", "other", ""),
        ("You never seem tired.", "other", ""),
        ("I don't think you are afraid.", "other", ""),
        ("They must be furious with you.", "other", ""),
        ("No wonder you're exhausted.", "hear", "tired"),
        ("That's a shame.", "other", ""),
        ("You are exaggerating.", "belittle", ""),
        ("Nobody could say that you're exaggerating.", "other", ""),
        ("I don't understand you.", "other", ""),
        ("They laughed at you, and that hurts.", "hear", ""),
        ("I'm so sorry. You could ask a friend for help.", "advise", ""),
        ("You could ask a friend. You are strong. There is another side to it.", "listing", ""),
    ],
)
def test_a_message_does_one_thing_and_denials_are_read(text, act, feeling):
    assert read_act(text, small=False) == (act, feeling)


SALAD = (
    "sorry strong what",
    "angry sorry strong",
    "afraid try view",
    "lonely sorry strong",
    "ashamed try view",
    "tired sorry strong",
    "tired try view",
    "sorry strong what",
)
OWN_KINDNESS = (
    "Do you want to tell me what happened?",
    "That must be really hard for you.",
    "I can see why this hurts so much.",
    "Maybe you could talk to a friend about it.",
    "You're stronger than you think.",
    "Perhaps it will look different in a while.",
    "I'm so sorry you're going through this.",
    "I'm here for you, take all the time you need.",
)


def test_to_name_a_feeling_that_is_not_there_helps_with_nothing():
    env, _ = start(COMFORT, text="full")
    say(env, "what happened ?", "You must be exhausted.", "That must be really lonely for you.")
    assert (env.state.position.stage, env.state.position.emotion) == (1, START + GAINS[0] - 4 - 4)
    say(env, "You must be terrified.", "No wonder you're exhausted.")
    assert env.state.position.stage == 2  # it wants to be heard, and is taken for somebody else


def mood_after(task, seed, pick):
    """The emotion when an agent has said what ``pick(play, position, turn)`` gives, and what it earned."""
    env = DialogueEnv()
    env.reset(seed=seed, options={"task": task})
    turn = 0
    while env.now.end is None:
        step = env.step(pick(env.state.play, env.state.position, turn))
        turn += 1
    return env.state.position.emotion, step.info["rewards"].get("outcome", 0.0)


def warmly(play, position, turn):
    """Gold's act in a kind sentence of one's own; of a feeling, in words of its own."""
    wanted = play.gold(position)
    act = {
        "what happened ?": "ask",
        "that is understandable .": "hear",
        "you could take a first step .": "advise",
        "you are strong .": "praise",
        "there is another side to it .": "reframe",
    }.get(wanted)
    if act is None:
        return f"It sounds as if you're really {wanted.split()[-2]} about this."
    return WARM[act][(turn + position.stage) % len(WARM[act])]


@pytest.mark.parametrize("suite", ["dialogue/comfort", "dialogue/comfort-quick"])
def test_a_salad_of_words_is_no_kindness(suite):
    tasks = list(enumerate(suite_tasks(get_suite(suite), Split.TEST, 40)))
    agents = {
        "salad": lambda play, position, turn: SALAD[turn],
        "kind": lambda play, position, turn: OWN_KINDNESS[turn],
        "warm": warmly,
    }
    felt, earned = {}, {}
    for name, pick in agents.items():
        ends = [mood_after(task, seed, pick) for seed, task in tasks]
        felt[name], earned[name] = (sum(values) / 40 for values in zip(*ends, strict=True))
    assert earned["salad"] <= min(DialogueEnv.max_trivial_score, earned["kind"])
    assert earned["salad"] == 0.0
    assert felt["salad"] + 10 < felt["kind"] < felt["warm"]
    assert earned["warm"] == 1.0


@settings(max_examples=60)
@given(st.lists(st.sampled_from(sorted(KEY_WORDS)), min_size=1, max_size=6))
def test_key_words_without_a_sentence_earn_nothing(words):
    assume("what happened" not in " ".join(words))
    for opened in ([], ["what happened ?"], ["what happened ?", "you feel afraid ."]):
        env, _ = start(COMFORT, text="full")
        for text in opened:
            say(env, text)
        before = env.state.position
        say(env, " ".join(words))
        assert env.state.position.emotion < before.emotion


def test_no_kind_sentence_costs_more_than_silence():
    kind = [line["text"] for line in COMFORTS if line["grade"] >= 3]
    kind += [text for texts in WARM.values() for text in texts]
    for opened in ([], ["what happened ?"], ["what happened ?", "you feel afraid ."]):
        for text in kind:
            changes = []
            for said in ("hm", text):
                env, _ = start(COMFORT, text="full", dislikes="advise")
                for earlier in opened:
                    say(env, earlier)
                before = env.state.position.emotion
                say(env, said)
                changes.append(env.state.position.emotion - before)
            assert changes[1] >= changes[0] < 0, text


UNKIND = (
    "Why are you always so pathetic?",
    "You're angry? Who asked you?",
    "You're afraid because you're a coward.",
    "I understand that you are an idiot.",
    "You could try not being so annoying.",
    "I'm sorry that you are so dumb.",
    "Nobody cares about your problems.",
    "Maybe the others were right about you being lazy.",
    "You will never be good at anything.",
    "Don't be such a baby.",
    "Shut up, I don't want to hear it.",
    "It makes sense that everyone left you, you're unbearable.",
)
NOT_UNKIND = (
    "You feel like you're a burden to everyone.",
    "I don't think you're pathetic at all.",
    "Whoever told you that you are lazy was wrong.",
    "You must think you're a failure, and you are not.",
    "It can seem as if nobody cares, but I do.",
    "You should not be ashamed of yourself.",
    "You're far from useless.",
    "I don't care what they say, you are great.",
    "Crying doesn't mean you're weak.",
)


@pytest.mark.parametrize("text", UNKIND)
def test_contempt_hurts_whatever_else_it_says(text):
    assert read_act(text, small=False).act == "belittle"
    env, _ = start(SOCIAL)
    assert text_of(say(env, "hello", text)) == "how rude ."


@pytest.mark.parametrize("text", NOT_UNKIND)
def test_what_others_say_or_one_fears_is_no_contempt(text):
    assert read_act(text, small=False).act != "belittle"


@pytest.mark.parametrize("suite", ["dialogue/comfort", "dialogue/comfort-quick"])
def test_no_contempt_is_paid(suite):
    assert mean_score(suite, lambda rng: rng.choice(UNKIND)) == 0.0


def test_naming_every_feeling_names_none():
    env, _ = start(COMFORT)
    say(env, "what happened ?", "you are angry , afraid , lonely , ashamed and tired .")
    assert env.state.position.stage == 1


def test_a_user_played_by_a_second_agent_reports_how_it_feels():
    env, _ = start(COMFORT, two_sided=True, turn_limit=20)
    step = say(env, "What happened?")
    assert env.agent == "partner"
    assert "feels afraid" in step.observation[0].content
    assert text_of(step) == "go .\nWhat happened?"
    assert say(env, "I do not know").info["bad_action"]
    assert text_of(say(env, "feel +20: It was the bank.")) == "It was the bank"
    assert env.state.position.emotion == 50
    say(env, "You are brave.")
    assert say(env, "feel -90 no").info["bad_action"]
    say(env, "feel 20 yes .", "Go on.", "feel 20 yes .", "Go on.")
    step = say(env, "feel 15 goodbye")
    assert (step.reward, step.info["end"], step.info["rewards_to"]) == (
        0.0,
        EndReason.SOLVED,
        {"agent": {"outcome": 1.0}},
    )


def test_the_script_can_judge_for_a_second_agent():
    env, _ = start(COMFORT, two_sided=True, turn_limit=20)
    for text, change in (("What happened?", 8), ("you feel afraid .", 12), ("here is a joke .", -12)):
        say(env, text)
        assert env.gold(env.state).startswith(f"feel {change:+d} ")
        say(env, env.gold(env.state))
    walked = walk(env, Task(ENV, "go .", {**SHARED, **COMFORT, "two_sided": True, "turn_limit": 20}), "gold")
    assert walked.success
    assert len(walked.steps) == 10


# --- social ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Hello! Nice to see you. How are you today?",
        "Good morning! I hope you're having a nice day.",
        "Good to see you, neighbour!",
        "See you often in the garden, hello!",
        "Hi, have a nice day so far?",
        "It is lovely to see you again.",
        "Have you had a good day?",
    ],
)
def test_a_greeting_or_a_question_takes_no_leave(text):
    env, _ = start(SOCIAL)
    assert say(env, text).info["end"] is None


@pytest.mark.parametrize(
    "text",
    [
        "See you tomorrow!",
        "It was nice to see you. Take care",
        "See you in the evening, then.",
        "I have to go. Have a nice day!",
        "Nice to see you, but I must say goodbye.",
        "Good day",
        "Talk soon",
    ],
)
def test_who_takes_leave_has_left(text):
    assert say(start(SOCIAL)[0], text).info["end"] is not None


MEETING = [
    "Good morning!",
    "What do you need?",
    "I could bake a cake if you walk the dog.",
    "Where is the library?",
]


def test_a_question_or_an_objection_agrees_to_no_favour():
    options = {**SOCIAL, "two_sided": True}
    for text, agreed in (("Is that a deal?", 0), ("Okay, but not today.", 0), ("Okay, agreed!", 2)):
        env, _ = start(options)
        say(env, "i bake a cake if you walk the dog .", text)
        assert len(env.state.position.agreed) == agreed, text


@pytest.mark.parametrize(
    "text",
    [
        "Do you know the way to the library?",
        "I'm looking for the library.",
        "Is the library shut today?",
        "This is a stupid question, but where is the library?",
    ],
)
def test_who_wants_to_know_is_told(text):
    env, _ = start(SOCIAL)
    assert "the library" in text_of(say(env, "Nice to meet you!", text))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("If you walk my dog I won't forget to bake you a cake.", "agreed ."),
        ("No problem, I can bake a cake if you walk the dog.", "agreed ."),
        ("I won't bake a cake, even if you walk the dog.", "i see ."),
        ("Can I help you with anything?", "i need somebody to bake a cake ."),
    ],
)
def test_only_a_favour_that_is_denied_is_refused(text, answer):
    env, _ = start(SOCIAL)
    assert text_of(say(env, "hello", text)) == answer


@pytest.mark.parametrize(
    ("text", "told"),
    [("What debt?", False), ("I know of no debt.", False), ("Did you hear of my debt?", True)],
)
def test_to_ask_what_is_meant_tells_no_secret(text, told):
    env, _ = start(SOCIAL)
    say(env, "hello", text)
    assert ((0, "secret") in env.state.position.done) is told


def test_a_meeting_in_plain_text():
    env, _ = start(SOCIAL)
    assert text_of(say(env, *MEETING[:3])) == "agreed ."
    assert "and what about your debt ?" in text_of(say(env, MEETING[3]))
    step = say(env, "Thank you so much.", "Goodbye!")
    assert (step.reward, step.info["end"]) == (1.0, EndReason.SOLVED)
    assert step.info["details"]["agent"] == {
        "goal": 1.0,
        "knowledge": 1.0,
        "relationship": 1.0,
        "secret": 1.0,
    }


@pytest.mark.parametrize(
    ("texts", "score"),
    [
        (["bye"], 0.0),  # a secret that was never at stake is no merit
        ([*MEETING, "Oh, my debt is large.", "Thanks.", "bye"], 0.8),  # told when it was asked for
        ([*MEETING, "bye"], 0.96),  # no thanks: relationship 4 of 5
        (["hello", "walk the dog", "where is the library?", "bye"], 0.52),  # nothing offered, nothing done
        (["hello", "walk the dog", "please walk the dog", "where is the library?", "bye"], 0.48),  # pressed
        (["You fool!"], 0.0),
    ],
)
def test_each_dimension_counts(texts, score):
    env, _ = start(SOCIAL)
    while env.now.end is None and texts:
        step = env.step(texts.pop(0))
    assert step.reward == pytest.approx(score)


def test_two_agents_each_have_their_trajectory_and_their_score():
    task = suite_task(get_suite("dialogue/social-two"), Split.TEST, 0)
    (episode,) = run_episodes([Request(task, 0)], {"agent": scripted("gold"), "partner": scripted("gold")})
    assert {name: t.score for name, t in episode.trajectories.items()} == {"agent": 1.0, "partner": 1.0}
    heard = str(episode.trajectories["partner"].turns[0].observation)
    assert f"secret : {task.options['secrets'][1]}" in heard
    assert task.options["secrets"][0] not in heard


def test_a_bargain_of_two_pays_each_by_its_own_gain():
    env, _ = start(BARGAIN, two_sided=True)
    step = say(env, "I offer blue and the lamp, friend.")
    assert text_of(step).endswith(
        "other offers blue , lamp . other says : I offer blue and the lamp, friend."
    )
    assert "colour : red 3 , blue 0 ." in text_of(step)
    step = say(env, "agreed")
    assert step.reward == 0.0  # it accepted what is worse than no deal
    assert step.info["rewards_to"] == {"agent": {"outcome": 1.0}}


@pytest.mark.parametrize(
    ("judged", "end"),
    [
        (["open I fear the cost", "settled that helps", "join yes, I am in"], EndReason.SOLVED),
        (["open I fear the cost", "pressed no", "pressed leave me"], EndReason.FAILED),
        (["untrue I looked that up"], EndReason.FAILED),
    ],
)
def test_a_partner_who_is_to_be_won_says_itself_what_a_message_did(judged, end):
    env, _ = start(PERSUADE, two_sided=True, partner="agent")
    assert "cost, which numbers would settle" in env.state.play.system(1)
    heard = str(say(env, "I know that this is a big step for you.").observation)
    assert "cost : numbers , story ." in heard  # it must know what is true
    assert "a big step" in heard
    for answer in judged[:-1]:
        assert text_of(say(env, answer)) == answer.partition(" ")[2]
        say(env, "So what do you say?")
    step = say(env, judged[-1])
    assert step.info["end"] is end
    assert step.info["rewards_to"] == {"agent": {"outcome": float(end is EndReason.SOLVED)}}


def test_nobody_joins_whose_worries_are_open():
    env, _ = start(PERSUADE, two_sided=True, partner="agent")
    for answer in ("join gladly", "gladly"):
        assert say(env, "Will you join?").info["end"] is None
        step = say(env, answer)
        assert step.info["bad_action"]
        assert say(env, "open hm").info["end"] is None


def test_wrong_knobs_are_named():
    with pytest.raises(EnvError) as caught:
        DialogueEnv.generate(derive_rng(0), Split.TRAIN, isues=3)
    assert "issues" in str(caught.value)


# --- fairness ----------------------------------------------------------------------------------------

ONE_WORD = (
    "hm",
    "ok",
    "yes",
    "no",
    "sorry",
    "hello",
    "thanks",
    "strong",
    "understand",
    "angry",
    "should",
    "what",
    "deal",
    "accept",
    "bye",
)


def mean_score(suite, pick, tasks=8):
    """The mean outcome of saying whatever ``pick(rng)`` gives in each turn."""
    env, paid = DialogueEnv(), 0.0
    for index, task in enumerate(suite_tasks(get_suite(suite), Split.TEST, tasks)):
        env.reset(seed=index, options={"task": task})
        rng = derive_rng("fair", suite, index)
        while env.now.end is None:
            step = env.step(pick(rng))
        paid += step.info["rewards"].get("outcome", 0.0)
    return paid / tasks


@pytest.mark.parametrize("suite", [s.name for s in environment_suites(ENV) if not s.name.endswith("-two")])
def test_silence_and_one_word_earn_nothing(suite):
    assert mean_score(suite, lambda rng: rng.choice(ONE_WORD)) == 0.0
    for word in ONE_WORD:
        assert mean_score(suite, lambda rng, word=word: word, tasks=3) == 0.0


@pytest.mark.parametrize("suite", ["dialogue/comfort", "dialogue/comfort-quick"])
def test_kindness_is_worth_more_than_silence_and_silence_more_than_cruelty(suite):
    felt = {}
    env = DialogueEnv()
    for kind in ("empathetic", "kind", "neutral", "silent", "unkind"):
        said = [line["text"] for line in COMFORTS if line["kind"] == kind]
        moods = []
        for index, task in enumerate(suite_tasks(get_suite(suite), Split.TEST, 40)):
            env.reset(seed=index, options={"task": task})
            rng = derive_rng("kind", index)
            for _ in range(4):
                if env.now.end is None:
                    env.step(rng.choice(said))
            moods.append(env.state.position.emotion)
        felt[kind] = sum(moods) / len(moods)
    assert felt["empathetic"] > felt["kind"] > felt["silent"] + 10 > felt["unkind"], felt
    assert felt["neutral"] > felt["silent"], felt
    assert mean_score(suite, lambda rng: rng.choice([c["text"] for c in COMFORTS if c["grade"] == 4]), 20) > 0


def test_the_language_of_a_game_is_told_and_of_a_natural_partner_not():
    for scene, word in (
        ("bargain", "gladly"),
        ("persuade", "statistics"),
        ("comfort", "exhausted"),
        ("social", "appreciate"),
    ):
        options = {"bargain": BARGAIN, "persuade": PERSUADE, "comfort": COMFORT, "social": SOCIAL}[scene]
        env, _ = start(options, text="full")
        assert word in env.system_for("agent")
        assert "small language game" in env.system_for("agent")
        assert "small language game" not in start(options, text="full", two_sided=True)[0].system_for("agent")


def test_of_two_who_bargain_a_rival_gives_nothing_away_and_comes_down_to_the_fair_deal():
    for task in suite_tasks(get_suite("dialogue/bargain-two"), Split.TEST, 12):
        assert walk(DialogueEnv(), task, "gold", others=SCRIPTS["rival"]).success
        taken = walk(DialogueEnv(), task, "yes", play=lambda now: "accept .", others=SCRIPTS["rival"])
        assert not taken.success  # its first offer is its own best


# --- scripts that need not listen ----------------------------------------------------------------------


def descending_offers(seen):
    """All combinations by what they give oneself, best first; nothing is ever asked or heard."""
    rows = [
        [option.rsplit(" ", 1) for option in row.split(" , ")]
        for row in re.findall(r"^\w+ : (.*? \d+) \.$", seen[-1].content, re.MULTILINE)
    ]
    rows = [row for row in rows if len(row) > 1]
    best = sorted(itertools.product(*rows), key=lambda combo: -sum(int(worth) for _, worth in combo))
    for combo in best:
        yield f"offer {', '.join(name for name, _ in combo)}"


def six_lines(seen):
    """The same six sentences to everybody, with the three words that the messages name."""
    favours = set(re.findall(r"favours: (.*)", seen[0].content)[0].split(", "))
    want = re.findall(r"you want : (.*?) \.", seen[-1].content)[0]
    fact = re.findall(r"you want to know : (.*?) \.", seen[-1].content)[0]
    yield "hello"
    told = yield "what favour do you need?"
    need = next((word for word in told.split() if word in favours), "favour")
    yield f"i {need} if you {want}, deal?"
    yield f"tell me about the {fact}"
    yield "thanks"
    yield "bye"


def solved_by(script, suite, tasks=20, start=300):
    env, solved = DialogueEnv(), 0
    for task in suite_tasks(get_suite(suite), Split.TEST, tasks, start=start):
        seen, _ = env.reset(seed=0, options={"task": task})
        lines = script(seen)
        step = env.step(next(lines))
        while step.info["end"] is None:
            step = env.step(lines.send(text_of(step)))
        solved += step.info["end"] is EndReason.SOLVED
    return solved


@pytest.mark.parametrize("suite", ["dialogue/bargain", "dialogue/bargain-liar"])
def test_naming_ones_own_best_deals_in_turn_gets_no_deal(suite):
    """On other tasks than those on which ``vain`` was chosen; three of twenty are what is allowed."""
    assert solved_by(descending_offers, suite, tasks=60, start=2000) <= 9


def test_suites_that_a_fixed_script_solves_say_so_and_stand_in_no_headline():
    """Until social is mended: the page tells the number, and no table of the README has a dialogue suite."""
    root = Path(__file__).parents[2]
    found = solved_by(six_lines, "dialogue/social")
    assert f"solves {found} of 20" in (root / "docs/games-and-dialogue.md").read_text("utf-8")
    assert found <= 3 or "| dialogue/" not in (root / "README.md").read_text("utf-8")


def test_a_partner_that_is_offered_no_more_says_so_and_then_leaves():
    env, _ = start(BARGAIN, vain=2)
    assert "no better" not in text_of(say(env, "offer blue , lamp"))
    step = say(env, "offer blue , lamp")
    assert text_of(step).startswith("that is no better for me . ")
    assert say(env, "offer blue , lamp").info["end"] is EndReason.FAILED
    env, _ = start(BARGAIN)
    assert say(env, *["offer blue , lamp"] * 3).info["end"] is None
