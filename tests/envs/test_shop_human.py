"""Predicting shoppers: the reward by hand, sessions that are their personas', traps."""
# pyright: reportTypedDictNotRequiredAccess=false

import json

import pytest

from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import walk
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, make, suite_tasks
from turnwise.envs.shop.human.actions import HumanAct, write_act
from turnwise.envs.shop.human.personas import Persona
from turnwise.envs.shop.human.reward import Layers, layers, rouge_l, same
from turnwise.envs.shop.human.sessions import LONGEST, habit, perform
from turnwise.envs.shop.human.tasks import session_of
from turnwise.tasks.core import Split
from turnwise.tools.core import ToolCall

NAME = "turnwise/ShopHuman-v0"
CLICK = HumanAct("click", "soft red wool scarf")


def tasks(n, suite="shop-human/quick", split=Split.TRAIN):
    return list(suite_tasks(get_suite(suite), split, n))


def test_a_description_tells_what_is_bought_of_several_and_what_fits():
    told = Persona(compares=3).describe()
    assert "looks at 3 that fit, buys the cheapest of them" in told
    assert "all but one" in told


# --- the reward, by hand -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicted", "reference", "expected"),
    [
        ("the cat sat", "the cat sat", 1.0),
        ("cat the", "the cat", 0.5),  # one word in common in order: P = R = 1/2
        ("a b c d", "b d", 2 / 3),  # P = 2/4, R = 1: 2·(1/2)/(3/2)
        ("Red, SCARF!", "red scarf", 1.0),
        ("", "red", 0.0),
        ("", "", 0.0),
    ],
)
def test_rouge_l(predicted, reference, expected):
    assert rouge_l(predicted, reference) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("predicted", "done", "expected"),
    [
        # the formula book's number: 0.5 + 0.3 + 0.2 + 10 · 0.25 = 3.5 (R: 1 of 4 words each way)
        (HumanAct("click", "blue cotton wool hat"), CLICK, Layers(0.5, 0.3, 0.2, 2.5)),
        (CLICK, CLICK, Layers(0.5, 0.3, 0.2, 10.0)),
        (HumanAct("click", ""), CLICK, Layers(0.5, 0.3, 0.0, 0.0)),
        (HumanAct("terminate"), CLICK, Layers(0.5)),
        (HumanAct("terminate"), HumanAct("terminate"), Layers(0.5, 0.3)),
        # 0.1 + 0.1 for both present; 0.1 · 1 for the field and 10 · 2/3 for the text ("a b" in "a b c d": P 1, R 1/2)
        (
            HumanAct("type_and_submit", "search", "a b"),
            HumanAct("type_and_submit", "search", "a b c d"),
            Layers(0.5, 0.3, 0.2, 0.1 + 20 / 3),
        ),
        (
            HumanAct("type_and_submit", "", "x"),
            HumanAct("type_and_submit", "search", "y"),
            Layers(0.5, 0.3, 0.1, 0.0),
        ),
    ],
)
def test_layers(predicted, done, expected):
    assert layers(predicted, done, 10.0) == pytest.approx(expected, abs=1e-9)


def test_the_scale_weighs_only_the_words():
    one, two = (layers(HumanAct("click", "red scarf"), CLICK, scale) for scale in (1.0, 1000.0))
    assert one[:3] == two[:3]
    assert two.text == pytest.approx(1000 * one.text)


def test_exact_means_the_same_but_for_case_and_spaces():
    assert same(HumanAct("click", " Soft red  WOOL scarf"), CLICK)
    assert not same(HumanAct("click", "soft red wool"), CLICK)
    assert not same(HumanAct("type_and_submit", CLICK.name), CLICK)


# --- sessions ----------------------------------------------------------------------------------------


def test_without_whims_a_persona_is_its_habits_and_the_description_tells_them():
    for task in tasks(40):
        session = session_of(task)
        assert session.persona.describe() in task.prompt
        for moment in session.moments:
            assert moment.act == moment.usual == habit(session.persona, moment.shop, moment.mind)
        for before, after in zip(session.moments, session.moments[1:], strict=False):
            assert perform(before.shop, before.act) == after.shop
        last = session.moments[-1]
        assert last.act.type == "terminate" or last.act.name == last.shop.world.layout.buttons.buy


@pytest.mark.slow
def test_people_differ_buy_leave_and_come_to_an_end():
    sessions = [session_of(task) for task in tasks(60, "shop-human/standard")]
    lengths = [len(session.moments) for session in sessions]
    assert max(lengths) <= LONGEST
    assert sum(length == LONGEST for length in lengths) <= 3
    ends = [session.moments[-1].act.type for session in sessions]
    assert ends.count("click") >= 10
    assert ends.count("terminate") >= 5
    whims = sum(moment.act != moment.usual for session in sessions for moment in session.moments)
    assert 0.04 < whims / sum(lengths) < 0.16
    assert len({session.persona for session in sessions}) == 60


def test_habits_matter():
    """Each habit changes what is done somewhere, else its sentence would be idle talk."""
    base = Persona()
    others = (
        {"query": "short"},
        {"order": "cheapest"},
        {"order": "title"},
        {"compares": 3},
        {"reads": ("reviews",)},
        {"options": "none"},
        {"patience": 1},
    )
    moments = [moment for task in tasks(60, "shop-human/standard") for moment in session_of(task).moments]
    for change in others:
        other = base._replace(**change)
        assert any(habit(base, m.shop, m.mind) != habit(other, m.shop, m.mind) for m in moments), change


# --- the environment -----------------------------------------------------------------------------------


def test_gold_is_exact_and_the_layers_are_paid_at_each_turn():
    env, task = make(NAME, scale=1.0), tasks(1)[0]
    walked = walk(env, task, "gold")
    assert (walked.score, walked.success) == (1.0, True)
    for step, moment in zip(walked.steps, session_of(task).moments, strict=True):
        assert step.info["rewards"]["format"] == 0.5
        best = layers(moment.act, moment.act, 1.0)
        assert {name: step.info["rewards"][name] for name in Layers._fields} == best._asdict()
    assert walked.steps[-1].info["details"]["exact"] == 1.0


@pytest.mark.slow
def test_it_keeps_the_contract_with_and_without_the_layers():
    report = check_env(NAME, tasks=3, only=["E1", "E2", "E4", "E5", "E6", "E7", "E8"])
    assert report.ok, str(report)
    walked = walk(make(NAME, hierarchy=0.0), tasks(1)[0], "gold")
    assert sum(step.reward for step in walked.steps) == 1.0


def test_the_average_shopper_predicts_some_but_not_all():
    scores = [walk(make(NAME), task, "demonstrator").score for task in tasks(40)]
    assert 0.4 < sum(scores) / len(scores) < 0.95


def test_a_prediction_is_read_as_json_or_as_a_call():
    env, task = make(NAME), tasks(1)[0]
    done = session_of(task).moments[0].act
    said = [
        write_act(done),
        f"I think so.\n```json\n{json.dumps({'rationale': 'why', 'action': done._asdict()})}\n```"
        if done.type != "click"
        else write_act(done),
        Message("assistant", "", (ToolCall(done.type, {"name": done.name, "text": done.text}, "c"),)),
    ]
    for action in said:
        env.reset(seed=0, options={"task": task})
        assert env.step(action).info["rewards"]["type"] == 0.3


def test_trap_what_cannot_be_read_earns_nothing_and_shows_nothing():
    env, task = make(NAME), tasks(1)[0]
    env.reset(seed=0, options={"task": task})
    for action in ("click buy", "{", '{"action": {"type": "steal"}}', '{"action": {"type": "click"}}', "{}"):
        step = env.step(action)
        assert (step.reward, step.info["bad_action"], env.state.place) == (0.0, True, 0)
        assert "The person did" not in str(step.observation)


def test_trap_naming_everything_pays_less_than_naming_the_thing():
    task = tasks(1)[0]
    moment = next(moment for moment in session_of(task).moments if moment.act.type == "click")
    everything = " ".join(json.loads(one)["action"].get("name", "") for one in make_admissible(task, moment))
    assert layers(HumanAct("click", everything), moment.act, 10.0).text < 8.0


def make_admissible(task, moment):
    env = make(NAME)
    env.reset(seed=0, options={"task": task})
    place = session_of(task).moments.index(moment)
    return env.admissible(env.state._replace(place=place))


def test_trap_stalling_is_not_paid():
    env, task = make(NAME), tasks(1)[0]
    env.reset(seed=0, options={"task": task})
    total = 0.0
    while True:
        step = env.step("I do not know.")
        total += step.reward
        if step.terminated or step.truncated:
            break
    assert (total, step.info["end"]) == (0.0, "turn_limit")
