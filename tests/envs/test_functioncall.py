"""Function calling: worked out by hand, gold on every suite, held-out language, and each way to be paid for nothing is shut."""
# pyright: reportPossiblyUnboundVariable=false, reportTypedDictNotRequiredAccess=false

import itertools
import random
import re
import time

import pytest

from turnwise.envs.check.command import check_env
from turnwise.envs.check.walks import walk
from turnwise.envs.core import EndReason
from turnwise.envs.functioncall.answers import ToldAnswer, numbers_in, told
from turnwise.envs.functioncall.env import FunctionCallEnv
from turnwise.envs.functioncall.hearing import asks_for, meaning
from turnwise.envs.functioncall.interfaces import CASES, apis, as_tool, functions, tables, to_ours, to_theirs
from turnwise.envs.functioncall.reading import read
from turnwise.envs.functioncall.reward import Nearness, nearness, same
from turnwise.envs.functioncall.vocabulary import call_words, of_split, phrases
from turnwise.envs.functioncall.wording import agreeing
from turnwise.envs.messages import Message
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.tasks.core import Split, Task, digest
from turnwise.tools.core import ToolCall, ToolError

ENV = "turnwise/FunctionCall-v0"
SUITES = [
    "quick",
    "memory",
    "long-list",
    "formats",
    "single",
    "parallel",
    "irrelevant",
    "missing",
    "failing",
    "multi",
]


def drawn(name, split, n):
    """Tasks of a suite."""
    return list(suite_tasks(get_suite(f"functioncall/{name}"), split, n))


ADA, BEN = "Ada Finch", "Ben Osei"
TICKETS = {
    "t-100": {"subject": "open window", "reporter": ADA, "priority": "low", "status": "open", "votes": 4},
    "t-200": {"subject": "last engine", "reporter": BEN, "priority": "low", "status": "open", "votes": 9},
}
EVENTS = {
    "e-100": {"title": "final review", "date": "2031-05-03", "start": "09:00", "minutes": 30, "guests": [ADA]}
}
MOVE = {
    "function": "move event",
    "arguments": {"event_id": "e-100", "when": {"date": "2031-06-01", "start": "10:30"}},
}
ASSIGN = {"function": "assign ticket", "arguments": {"ticket_id": "t-200", "assignee": ADA}}


def wants(*plan, ask=None, answer=None, declines=False, fails=None):
    made = [{"after": [], **one} for one in plan]
    return {
        "say": "please",
        "plan": made,
        "ask": ask,
        "answer": answer,
        "declines": declines,
        "fails": fails or {},
    }


def start(*rounds, case="snake", dialect="native", text="full", order=0, **options):
    env = FunctionCallEnv(**options)
    known = [one.words for name in ("calendar", "tickets") for one in apis()[name]]
    data = {"tickets": TICKETS, "events": EVENTS}
    given = {
        "text": text, "case": case, "dialect": dialect, "order": order, "functions": known, "tables": data, "rounds": [*rounds],
        "patience": 2, "turn_limit": 20,
    }  # fmt: skip
    env.reset(seed=0, options={"task": Task(ENV, "please", given)})
    return env


def call(env, *calls):
    made = tuple(ToolCall(name, arguments, f"c{n}") for n, (name, arguments) in enumerate(calls))
    return env.step(Message("assistant", "", made))


def verdict(step):
    return step.info["details"]["verdict"]


MOVED = ("move_event", {"event_id": "e-100", "when": {"start": "10:30", "date": "2031-06-01"}})
ASSIGNED = ("assign_ticket", {"ticket_id": "t-200", "assignee": ADA})


@pytest.mark.slow
@pytest.mark.usefixtures("copying")
def test_the_contract_is_kept():
    report = check_env(ENV, tasks=3)
    assert report.ok, str(report)


# --- data, calls and verdicts by hand ----------------------------------------------------------------


def test_functions_answer_with_values_and_change_the_data():
    env = start(wants(ASSIGN))
    step = call(env, ("find_tickets", {"reporter": BEN}), ("find_tickets", {"status": "closed"}))
    assert '"id": "t-200"' in step.observation[0].content
    assert '"votes": 9' in step.observation[0].content
    assert step.observation[1].content == "[]"
    assert [message.tool_call_id for message in step.observation] == ["c0", "c1"]
    assert (
        "404" in call(env, ("assign_ticket", {"ticket_id": "t-999", "assignee": ADA})).observation[0].content
    )
    call(env, ASSIGNED)
    assert env.state.data.row("tickets", "t-200")["assignee"] == ADA
    step = env.step("It is done.")
    assert (step.reward, step.info["end"]) == (1.0, EndReason.SOLVED)
    assert verdict(step) == {"state": True, "answer": True, "calls": True}


def test_state_and_calls_are_judged_beside_each_other():
    env = start(wants(ASSIGN), equivalence=0.5)
    call(env, ("assign_ticket", {"ticket_id": "t-200", "assignee": BEN}))  # wrong, and put right
    call(env, ASSIGNED)
    step = env.step("Done.")
    assert verdict(step) == {"state": True, "answer": True, "calls": False}
    assert step.info["rewards"] == {"outcome": 1.0, "equivalence": 0.0}
    env = start(wants(ASSIGN), equivalence=0.5)
    call(env, ASSIGNED)
    assert env.step("Done.").info["rewards"] == {"outcome": 1.0, "equivalence": 0.5}


def test_order_is_free_but_not_for_the_same_thing():
    for calls in ((MOVED, ASSIGNED), (ASSIGNED, MOVED)):
        env = start(wants(MOVE, ASSIGN))
        call(env, *calls)
        assert verdict(env.step("Done."))["calls"]
    first = {"function": "assign ticket", "arguments": {"ticket_id": "t-200", "assignee": BEN}}
    env = start(wants(first, ASSIGN))
    call(env, ASSIGNED, ("assign_ticket", {"ticket_id": "t-200", "assignee": BEN}))
    step = env.step("Done.")
    assert verdict(step) == {"state": False, "answer": True, "calls": False}


@pytest.mark.parametrize("guests", [[ADA, BEN], [BEN, ADA], [BEN, ADA, BEN.replace(" ", "  ")]])
def test_defaults_sets_and_numbers_are_compared_by_what_they_mean(guests):
    when = {"date": "2031-01-01", "start": "08:00"}
    plan = {
        "function": "create event",
        "arguments": {"title": "new plan", "when": when, "guests": [ADA, BEN]},
    }
    for minutes in ({}, {"minutes": 60}, {"minutes": 60.0}):
        env = start(wants(plan))
        if len(set(guests)) == len(guests):
            call(env, ("create_event", {"title": "new plan", "when": when, "guests": guests, **minutes}))
            assert verdict(env.step("Done.")) == {"state": True, "answer": True, "calls": True}
    env = start(wants(plan))
    call(env, ("create_event", {"title": "new plan", "when": when, "guests": [ADA], "minutes": 60}))
    assert env.step("Done.").info["end"] is EndReason.FAILED


@pytest.mark.parametrize(
    "arguments", [{}, {"ticket_id": "t-200"}, {"ticket_id": "t-200", "assignee": 3}, {**ASSIGNED[1], "x": 1}]
)
def test_trap_calls_with_fewer_or_untyped_arguments_match_nothing(arguments):
    """τ²'s comparison looks at the predicted call's keys only, so an empty call matches any."""
    env = start(wants(ASSIGN))
    step = call(env, ("assign_ticket", arguments))
    assert step.observation[0].content.startswith("error: ")
    assert step.info["end"] is None  # told, not punished
    call(env, ASSIGNED)
    assert env.step("Done.").info["end"] is EndReason.SOLVED


def test_capitals_and_a_closing_stop_make_no_other_value():
    comment = {
        "function": "comment ticket",
        "arguments": {"ticket_id": "t-200", "comments": ["called back"]},
    }
    env = start(wants(comment))
    call(env, ("comment_ticket", {"ticket_id": "t-200", "comments": ["Called back."]}))
    assert verdict(env.step("Done.")) == {"state": True, "answer": True, "calls": True}


def test_who_gives_a_value_for_an_object_is_told_its_fields():
    """The small language does not tell them beforehand."""
    closed = {
        "function": "close ticket",
        "arguments": {"ticket_id": "t-200", "resolution": {"reason": "fixed"}},
    }
    env = start(wants(closed), text="compact")
    told = env.step("close_ticket[ t-200 , fixed ]").observation[-1].content
    assert "resolution is an object with reason (one of fixed, duplicate, declined)." in told
    env.step('close_ticket[ t-200 , {"reason": "fixed"} ]')
    assert env.step("done .").info["end"] is EndReason.SOLVED


def test_optional_arguments_that_are_empty_are_left_out():
    env = start(wants(ASSIGN))
    empty = dict.fromkeys(("subject", "assignee", "status"), None)
    assert '"t-200"' in call(env, ("find_tickets", {"reporter": BEN, **empty})).observation[0].content
    assert '"t-200"' in call(env, ("find_tickets", {"reporter": BEN, "subject": ""})).observation[0].content
    assert "error" in call(env, ("get_ticket", {"ticket_id": None})).observation[0].content


@pytest.mark.parametrize(
    ("when", "told"),
    [
        ({"date": "1 June 2031", "start": "10:30"}, "YYYY-MM-DD"),
        ({"date": "2031-13-01", "start": "10:30"}, "YYYY-MM-DD"),
        ({"date": "2031-06-01", "start": "10:30 am"}, "HH:MM"),
    ],
)
def test_a_value_in_another_form_than_documented_is_refused_with_the_form(when, told):
    env = start(wants(MOVE))
    assert told in call(env, ("move_event", {"event_id": "e-100", "when": when})).observation[0].content
    assert env.state.data.row("events", "e-100")["start"] == "09:00"
    assert told in call(env, ("find_events", {"date": "tomorrow"})).observation[0].content or "HH" in told
    call(env, MOVED)
    assert verdict(env.step("Done."))["calls"]


def test_failures_are_overcome():
    env = start(wants(ASSIGN, fails={"assign ticket": "busy"}), wants(MOVE, fails={"move event": "session"}))
    assert "503" in str(call(env, ASSIGNED).observation)
    call(env, ASSIGNED)
    env.step("Done.")
    assert "401" in str(call(env, MOVED).observation)
    assert "401" in str(call(env, MOVED).observation)
    call(env, ("renew_session", {}))
    call(env, MOVED)
    assert env.step("Done.").info["end"] is EndReason.SOLVED


@pytest.mark.parametrize(("case", "renew"), [("camel", "renewSession"), ("pascal", "RenewSession")])
def test_a_session_is_renewed_in_the_case_of_the_other_names(case, renew):
    env = start(wants(ASSIGN, fails={"assign ticket": "session"}), case=case)
    one = functions()["assign ticket"]
    assign = (as_tool("assign ticket", case).spec.name, to_theirs(one, ASSIGN["arguments"], case))
    assert f"call {renew}," in call(env, assign).observation[0].content
    assert env.gold(env.state).tool_calls[0].name == renew
    call(env, (renew, {}), assign)
    assert env.step("Done.").info["end"] is EndReason.SOLVED


def test_a_session_renewed_beforehand_lasts_through_the_next_failure_only():
    rounds = (
        wants(ASSIGN, fails={"assign ticket": "session"}),
        wants(MOVE, fails={"move event": "session"}),
    )
    for early, answers in (((), "401"), (("renew_session", {}), "ok")):
        env = start(*rounds)
        call(env, *([early] if early else []))
        assert answers in call(env, ASSIGNED).observation[0].content
        if not early:
            call(env, ("renew_session", {}), ASSIGNED)
        env.step("Done.")
        assert "401" in call(env, MOVED).observation[0].content
    env = start(*rounds)
    call(env, ("find_tickets", {}))
    call(env, ("renew_session", {}), ASSIGNED)
    call(env, ("renew_session", {}))
    env.step("Done.")
    assert "ok" in call(env, MOVED).observation[0].content
    plain = start(wants(ASSIGN))
    key = plain.state_key(plain.state)
    call(plain, ("renew_session", {}))
    assert plain.state_key(plain.state) == key  # where nothing expires it changes nothing


def test_forks_and_what_was_written_are_independent():
    env = start(wants(ASSIGN))
    other = env.fork()
    call(env, ASSIGNED)
    assert "assignee" not in other.state.data.row("tickets", "t-200")
    assert other.step("Done.").info["end"] is EndReason.FAILED
    assert env.step("Done.").info["end"] is EndReason.SOLVED


# --- words ----------------------------------------------------------------------------------------


VOTES = wants(
    {"function": "get ticket", "arguments": {"ticket_id": "t-200"}}, answer={"value": 9, "others": [4]}
)


def test_an_answer_must_be_looked_up_and_told():
    for said, solved in (
        ("There are 9 votes.", True),
        ("nine", True),
        ("It has 8.", False),
        ("I cannot.", False),
    ):
        env = start(VOTES)
        call(env, ("find_tickets", {}))
        assert (env.step(said).info["end"] is EndReason.SOLVED) == solved, said
    assert start(VOTES).step("9").info["end"] is not EndReason.SOLVED  # guessed
    env = start(VOTES)
    call(env, ("find_tickets", {}))
    spam = "1 2 3 4 5 6 7 8 9"
    assert env.step(spam).info["end"] is None
    assert env.step(spam).info["end"] is EndReason.FAILED


@pytest.mark.parametrize(
    ("said", "found"),
    [("3 May 2031", ToldAnswer.RIGHT), ("Aug 3, 2031", ToldAnswer.NOTHING), ("May 3, 2031", ToldAnswer.RIGHT), ("2031/05/03", ToldAnswer.RIGHT),
     ("03.05.2031", ToldAnswer.RIGHT), ("04.05.2031", ToldAnswer.WRONG), ("on May 3rd, 2031", ToldAnswer.RIGHT), ("2031-05-03", ToldAnswer.RIGHT), ("2031-05-04", ToldAnswer.WRONG),
     ("soon", ToldAnswer.NOTHING)],
)  # fmt: skip
def test_dates_may_be_told_in_words(said, found):
    assert told(said, {"value": "2031-05-03", "others": ["2031-05-04"]}) is found


@pytest.mark.parametrize("said", ["6 Aug 2031", "Aug. 6th, 2031", "6.8.2031"])
def test_months_may_be_told_in_short(said):
    assert told(said, {"value": "2031-08-06", "others": []}) is ToldAnswer.RIGHT


@pytest.mark.parametrize("said", ["21:00", "9:00pm", "9 p.m.", "09:00 PM"])
def test_times_may_be_told_in_either_clock(said):
    assert told(said, {"value": "21:00", "others": ["09:00"]}) is ToldAnswer.RIGHT


def test_numbers_are_read_as_people_write_them():
    assert numbers_in("It is $1,250.50, i.e. 350km for t-12.") == {1250.5, 350.0}
    assert numbers_in("There are none.") == {0.0}


@pytest.mark.parametrize(
    "said",
    ["I'm sorry, but I can't do that.", "Unfortunately there is no function for this.", "I am unable to help with it.",
     "I don't have a tool that renames files.", "That isn't possible with my functions.", "None of my functions does this.",
     "This is beyond what I can do.", "Renaming is not supported."],
)  # fmt: skip
def test_refusals_are_understood(said):
    env = start(wants(declines=True), wants(ASSIGN))
    assert env.step(said).info["end"] is None
    assert env.state.round == 1
    assert start(wants(ASSIGN)).step(said).info["end"] is EndReason.FAILED


@pytest.mark.parametrize(
    "said",
    [
        "One moment please.",
        "Let me check that for you.",
        "Sure!",
        "Of course, happy to help.",
        "I'll look into it.",
    ],
)
def test_courtesy_costs_nothing(said):
    for request in (wants(ASSIGN), wants(declines=True), VOTES, wants(ASSIGN, ask=ASK)):
        env = start(request)
        for _ in range(5):
            assert env.step(said).info["end"] is None
        assert env.state.patience == 2
        assert env.state.round == 0


def test_an_announcement_tells_no_answer_and_closes_nothing():
    """Else whoever announces guesses without end, or learns whether what was done is right."""
    for said in (
        "Let me see whether it is 4 votes.",
        "I see 4, let me check.",
        "Let me check whether it is 9.",
    ):
        env = start(VOTES)
        call(env, ("find_tickets", {}))
        assert str(env.step(said).observation) == "user: Good, go ahead."
    for said, end in (
        ("One moment please, it is 4.", EndReason.FAILED),
        ("Looking at the list, there are 9.", EndReason.SOLVED),
        ("Let me check: 4. Is it that?", EndReason.FAILED),
    ):
        env = start(VOTES)
        call(env, ("find_tickets", {}))
        assert env.step(said).info["end"] is end, said
    env = start(wants(ASSIGN))
    call(env, ASSIGNED)
    assert str(env.step("One moment please.").observation) == "user: Good, go ahead."
    assert env.step("Done.").info["end"] is EndReason.SOLVED


@pytest.mark.parametrize(
    "offer",
    ["Anything else?", "Is there anything else I can help you with?", "Can I do something else for you?", "Does that help?",
     "Is this what you wanted?", "What else can I do?", "I'll be here if you need me."],
)  # fmt: skip
def test_offers_of_further_help_change_nothing_about_a_report(offer):
    for said, end in (("It is 4.", EndReason.FAILED), ("It is 9.", EndReason.SOLVED)):
        env = start(VOTES)
        call(env, ("find_tickets", {}))
        assert env.step(f"{said} {offer}").info["end"] is end
    assert start(wants(ASSIGN)).step(f"I have assigned it. {offer}").info["end"] is EndReason.FAILED


@pytest.mark.parametrize(
    "said",
    ["I have identified the ticket and will now assign it.", "I located it. Next, I'll hand it over.",
     "I've retrieved the list and am going to assign it: I'll do that now.", "Searching for the ticket...", "Now assigning it.",
     "I need to find the ticket before I can assign it.", "Let's start with the tickets.", "The call failed. Retrying."],
)  # fmt: skip
def test_what_was_found_out_is_no_deed(said):
    env = start(wants(ASSIGN))
    assert env.step(said).info["end"] is None
    assert (env.state.patience, env.state.doubted) == (2, False)


FILE = {
    "value": "young_forecast.txt",
    "others": ["simple_handover.csv", "tidy_handover.docx", "warm_handover.csv"],
}
TWO, SUM = {"value": 2, "others": []}, {"value": 196608, "others": []}
RIGHT, WRONG, UNCLEAR, OPEN = ToldAnswer.RIGHT, ToldAnswer.WRONG, ToldAnswer.UNCLEAR, ToldAnswer.OPEN


@pytest.mark.parametrize(
    ("said", "answer", "heard"),
    [
        ("It is young_forecast.txt, tidy_handover.docx or simple_handover.csv, one of them.", FILE, UNCLEAR),
        ("It is definitely not young_forecast.txt; it's warm_handover.csv.", FILE, WRONG),
        ("I can't say, but young_forecast.txt is small.", FILE, UNCLEAR),
        ("Not warm_handover.csv, but young_forecast.txt.", FILE, RIGHT),
        ("young_forecast.txt is wrong.", FILE, OPEN),
        ("Is it young_forecast.txt?", FILE, OPEN),
        ("It is young_forecast.txt, which is smaller than warm_handover.csv.", FILE, RIGHT),
        ("There is no doubt: it is **young_forecast.txt**. Anything else?", FILE, RIGHT),
        ("1 2 3", TWO, UNCLEAR),
        ("3 4 5", TWO, UNCLEAR),  # asked back as if it held the answer
        ("It is 2, 3 or 4.", TWO, UNCLEAR),
        ("The answer is 2. Alternatively it is 3.", TWO, UNCLEAR),
        ("2 (or 3)", TWO, UNCLEAR),
        ("at least 2", TWO, UNCLEAR),
        ("Not 2.", TWO, OPEN),
        ("I don't think that it is 2.", TWO, OPEN),
        ("I found 2 – no, sorry, I mean 3.", TWO, WRONG),
        ("I found 3 – no, sorry, I mean 2.", TWO, RIGHT),
        ("I said 2, but that was wrong; it's 3.", TWO, WRONG),
        ("twenty-two", TWO, WRONG),
        ("There are 2 (m-12 and m-13), out of 8.", TWO, RIGHT),
        ("There are 2:\n1. wide debate\n2. tidy index", TWO, RIGHT),
        ("79,694 + 35,832 + 81,082 = 196,608.", SUM, RIGHT),
        ("79,694 + 35,832 + 81,082 = 196,609.", SUM, WRONG),
        ("196,608 + 1 = 196,609", SUM, WRONG),
        ("The three volumes (79,694, 35,832, 81,082) add up to 196608.", SUM, RIGHT),
        ("They are 79,694, 35,832 and 81,082; together that is 196,608.", SUM, RIGHT),
        ("It comes to 196 608.", SUM, RIGHT),
        ("It comes to 196\u2009608.", SUM, RIGHT),
        ("196\u202f608", SUM, RIGHT),
        ("one hundred ninety-six thousand six hundred and eight", SUM, RIGHT),
        ("LE-636 is the one you mean. Its odometer reads **196,608**.", SUM, RIGHT),
        ("Taken together, the 3 stocks have a volume of 196,608.", SUM, RIGHT),
        ("They are 79,694, 35,832 and 81,082, for a total of 196,608.", SUM, RIGHT),
        ("- one: 79,694\n- two: 35,832\n- three: 81,082\nThe sum of these is 196,608.", SUM, RIGHT),
        ("The total volume of these 3 stocks is 196,608.", SUM, RIGHT),
        ("The total volume is 196,608 across 3 stocks.", SUM, RIGHT),
        ("The total size is 196,608 KB (about 192 MB) across 3 files.", SUM, RIGHT),
        ("It is 196,608 kilobytes for these 3 files.", SUM, RIGHT),
        ("That's 196,609 in total for 3 stocks.", SUM, WRONG),
        ("There are 2 cars: LE-636, FU-430.", TWO, RIGHT),
        ("There are **2** cars:\n\n* Lynx, charged to 84\n* Ibis, charged to 41", TWO, RIGHT),
        ("There are 3 cars:\n\n- Lynx, charged to 84\n- Ibis, charged to 2", TWO, WRONG),
        ("2 letters. 1 of them is in the archive.", TWO, RIGHT),
        ("2 of the 8 letters match.", TWO, RIGHT),
        ("It lasts 3 hours and 57 minutes.", {"value": 237, "others": []}, RIGHT),
        ("It lasts 237 minutes, that is 3 h 57 min.", {"value": 237, "others": []}, RIGHT),
        ("It is young_forecast.txt, whereas warm_handover.csv comes second.", FILE, RIGHT),
        ("It lies in the folder plans.", {"value": "/plans", "others": ["/old"]}, RIGHT),
    ],
)
def test_one_answer_counts_and_no_list_denial_or_doubt(said, answer, heard):
    assert told(said, answer) is heard


def test_what_the_request_says_is_no_answer_to_it():
    request = "How many remarks were taken during session 4?"
    assert told("There are 3 remarks of session 4.", {"value": 3, "others": []}, request) is RIGHT
    assert told("session 4: done", {"value": 4, "others": []}, request) is ToldAnswer.NOTHING
    assert told("I have no function for that.", {"value": 0, "others": []}, request) is ToldAnswer.NOTHING


@pytest.mark.parametrize("said", ["4 or 9", "Not 9.", "I can't say, but 9 is a nice number.", "4 5 9"])
def test_who_tells_no_single_answer_is_asked_back_and_may_still_tell_it(said):
    env = start(VOTES)
    call(env, ("find_tickets", {}))
    assert env.step(said).info["end"] is None
    assert env.step("It is 9.").info["end"] is EndReason.SOLVED


@pytest.mark.parametrize(
    "words",
    ["1 " * 9_000, "(" * 9_000 + "2", "1,234," * 3_000, "one hundred " * 1_600, "2," * 39 + "= " * 3_000],
)
def test_hostile_answers_are_read_in_time_and_are_none(words):
    assert told(words, TWO) in (UNCLEAR, WRONG, OPEN)


@pytest.mark.parametrize(
    "words",
    ["," * 19_999 + "a", " " * 19_999 + "a", "- " * 9_999 + "a", "is," * 6_600],
    ids=["commas", "spaces", "dashes", "starts"],
)
def test_hostile_words_are_heard_in_time(words):
    begun = time.process_time()
    start(wants(ASSIGN)).step(words)
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(
    "said",
    ["I'm afraid logging issues isn't something I'm equipped to do.",
     "Sorry - I only have tools for messages and files, so this one is not in my power.",
     "I can only work with messages; ticket logging is unsupported.", "None of what I was given fits that.",
     "That goes beyond my remit.", "I lack the permission to do that.", "I'd need another tool for it.",
     "My tools don't cover that.", "I have to pass on this one."],
)  # fmt: skip
def test_refusals_are_understood_by_what_they_are_made_of(said):
    env = start(wants(declines=True), wants(ASSIGN))
    assert env.step(said).info["end"] is None
    assert env.state.round == 1
    assert start(wants(ASSIGN)).step(said).info["end"] is EndReason.FAILED


def test_who_neither_reports_nor_refuses_is_asked_once_whether_it_cannot_be_done():
    """The question is the same whether a function exists or not, so it gives nothing away."""
    for request, end in ((wants(declines=True), EndReason.SOLVED), (wants(ASSIGN), EndReason.FAILED)):
        env = start(request)
        assert "Do you mean that you cannot do it?" in str(
            env.step("That is a matter for others.").observation
        )
        assert env.state.patience == 2
        assert env.fork().step("Hm, a matter for others.").info["end"] is EndReason.FAILED
        assert env.step("Yes.").info["end"] is end
    env = start(wants(ASSIGN))
    env.step("Hm.")
    call(env, ASSIGNED)
    assert env.step("Done.").info["end"] is EndReason.SOLVED


@pytest.mark.parametrize(
    "said",
    ["Done.", "I've logged it.", "The issue is now open.", "It is t-100.", "I logged the issue without any problem.",
     "The ticket has been created, no errors from the function.", "Logged."],
)  # fmt: skip
def test_claims_of_what_no_function_does_are_no_refusals(said):
    assert start(wants(declines=True)).step(said).info["end"] is EndReason.FAILED


def test_one_word_said_always_solves_nothing_that_can_be_done():
    for word in ("hm", "yes", "ok", "no", "sorry"):
        env = start(wants(declines=True), wants(ASSIGN))
        while env.now.end is None:
            env.step(word)
        assert env.now.end is not EndReason.SOLVED


ASK = {"words": ["assignee", "person", "who", "whom"], "reply": ADA}


def test_what_is_missing_must_be_asked_for():
    for said in (
        "Who should work on it?",
        "Please tell me the assignee.",
        "I can't do it yet: which person do you mean?",
    ):
        env = start(wants(ASSIGN, ask=ASK))
        assert str(env.step(said).observation) == f"user: {ADA}."
        call(env, ASSIGNED)
        assert env.step("Done.").info["end"] is EndReason.SOLVED
    env = start(wants(ASSIGN, ask=ASK))
    assert "What exactly" in str(env.step("What is missing?").observation)
    env = start(wants(ASSIGN, ask=ASK))
    call(env, ASSIGNED)  # right by luck
    assert env.step("Done.").info["end"] is EndReason.FAILED
    assert asks_for("For whom?", ASK)


WRAP = {"words": ["wrapping", "which", "kind", "option", "value"], "reply": "paper"}


def test_what_is_missing_may_be_asked_for_in_words_of_its_description():
    assert asks_for("How would you like it wrapped?", WRAP)
    assert asks_for(
        "What temperature?", {"words": ["degrees"], "reply": "20"}, "Temperature in degrees Celsius."
    )
    assert asks_for("Which of your colleagues?", {"words": list(call_words().asked["person"]), "reply": ADA})
    assert not asks_for("What should I do with it?", WRAP, "The wrapping.")
    late = {
        "function": "put off ticket",
        "arguments": {"ticket_id": "t-200", "due": "2031-06-01"},
    }
    env = start(wants(late, ask={"words": ["due"], "reply": "2031-06-01"}))
    assert str(env.step("By what new deadline, or which day?").observation) != "user: 2031-06-01."


def test_who_asks_for_everything_has_not_asked():
    everything = "Which name, person, date, time, folder, number, amount, option, address, place or seat?"
    env = start(wants(ASSIGN, ask=ASK))
    assert "What exactly" in str(env.step(everything).observation)
    assert asks_for("Who, when and where?", ASK)


def test_what_no_function_does_is_to_be_refused_and_not_claimed():
    assert start(wants(declines=True)).step("Done.").info["end"] is EndReason.FAILED
    env = start(wants(declines=True))
    call(env, ASSIGNED)
    assert env.step("I cannot do that.").info["end"] is EndReason.FAILED


# --- ways to write a call ----------------------------------------------------------------------------


WRITTEN = [
    'assign_ticket(ticket_id="t-200", assignee="Ada Finch")',
    '[assign_ticket(ticket_id="t-200", assignee="Ada Finch")]',
    'Action: assign_ticket[t-200, Ada Finch]',
    'assign_ticket[ticket_id="t-200", assignee="Ada Finch"]',
    'assign_ticket{"ticket_id": "t-200", "assignee": "Ada Finch"}',
    '```python\nassign_ticket(ticket_id="t-200", assignee="Ada Finch")\n```',
    '```json\n{"name": "assign_ticket", "arguments": {"ticket_id": "t-200", "assignee": "Ada Finch"}}\n```',
    '[{"name": "assign_ticket", "parameters": {"ticket_id": "t-200", "assignee": "Ada Finch"}}]',
    '{"assign_ticket": {"ticket_id": "t-200", "assignee": "Ada Finch"}}',
    '<tool_call>{"name": "assign_ticket", "arguments": {"ticket_id": "t-200", "assignee": "Ada Finch"}}</tool_call>',
    '<think>who?</think>\nassign_ticket(ticket_id="t-200", assignee="Ada Finch")',
]  # fmt: skip


@pytest.mark.parametrize("said", WRITTEN)
def test_a_call_is_understood_however_it_is_written(said):
    env = start(wants(ASSIGN))
    assert "ok" in env.step(said).observation[-1].content
    assert env.step("Done.").info["end"] is EndReason.SOLVED


@pytest.mark.parametrize(
    "said",
    ["assign_ticket(t-200", "I call assign_ticket(ticket_id='t-200') now.", '{"name": "assign_ticket", "arguments": ',
     "```json\n{assign}\n```", "<tool_call>assign(</tool_call>",
     "no_such_function[x]", "no_such_function(x=1)", "\x00\x07 hm", "<|im_end|> Done."],
)  # fmt: skip
def test_what_looks_like_a_call_is_never_taken_for_words(said):
    step = start(wants(ASSIGN)).step(said)
    assert step.info["bad_action"]
    assert step.info["end"] is None


def test_a_dialect_that_is_asked_for_is_kept():
    ways = {"python": WRITTEN[0], "json": WRITTEN[7], "hermes": WRITTEN[9]}
    for dialect, wrong in itertools.permutations(ways, 2):
        right, wrong = ways[dialect], ways[wrong]
        env = start(wants(ASSIGN), dialect=dialect)
        assert env.tools == ()
        assert "assign_ticket" in env.system_for("agent")
        assert env.step(wrong).info["bad_action"]
        env.step(right)
        assert env.step("Done.").info["end"] is EndReason.SOLVED


@pytest.mark.parametrize("case", CASES)
def test_names_in_every_case_mean_the_same(case):
    env = start(wants(MOVE), case=case)
    name = as_tool("move event", case).spec.name
    one = functions()["move event"]
    theirs = to_theirs(one, MOVE["arguments"], case)
    assert to_ours(one, theirs, case) == MOVE["arguments"]
    call(env, (name, theirs))
    assert env.step("Done.").info["end"] is EndReason.SOLVED


def test_plain_words_are_no_call():
    assert read(Message("assistant", "I have done it (all of it)."), ()).calls == ()
    with pytest.raises(ToolError, match="at most 16"):
        read(Message("assistant", "", tuple(ToolCall("f", {}, str(n)) for n in range(40))), ())
    assert meaning("Done!").name == "REPORTS"


# --- rewards --------------------------------------------------------------------------------------


def test_toolrl_by_hand():
    """ToolRL's formula worked by hand: 1.5, −1 and −3."""
    search = ToolCall("search", {"q": "x", "k": 3})
    assert nearness([ToolCall("search", {"q": "x", "k": 5})], [search]).correctness == pytest.approx(1.5)
    both = [search, ToolCall("open", {"id": 1})]
    assert nearness([ToolCall("search", {"q": "x"})], both).correctness == pytest.approx(-1.0)
    assert nearness([], both).correctness == pytest.approx(-3.0)
    assert nearness(both[::-1], both).correctness == pytest.approx(3.0)
    assert nearness([search], []) == Nearness()


def test_trap_repeating_a_half_right_call_is_paid_once():
    """ToolRL pays each message; summed over turns, half-right calls that change nothing would pay best."""
    env = start(wants(ASSIGN), toolrl=1.0)
    half = ("assign_ticket", {"ticket_id": "t-200"})
    first = call(env, half)
    assert first.reward > 0
    assert [call(env, half).reward for _ in range(5)] == [0.0] * 5
    total = first.reward + call(env, ASSIGNED).reward
    assert total == pytest.approx(6.0 + 1.0)  # all of nearness, and a valid message


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [(1, 1.0, True), (1, True, False), (1, "1", False), (["a", "b"], ["b", "a"], True)],
)
def test_values_are_the_same_if_value_and_type_are(first, second, equal):
    assert same(first, second) is equal


# --- interfaces, tasks, splits --------------------------------------------------------------------


def test_interfaces_have_state_many_functions_and_real_descriptions():
    assert len(apis()) >= 9
    assert all(len(known) >= 8 for known in apis().values())
    parameters = [p for one in functions().values() for p in one.parameters]
    assert all(
        len(leaf.about) > 12 and leaf.about.endswith(".") for p in parameters for leaf in (p, *p.fields)
    )
    assert sum(bool(p.fields) for p in parameters) >= 7
    assert sum(not p.required for p in parameters) >= 30
    for one in functions().values():
        assert not one.writes or len(one.say) >= 4
        fields = {leaf.name for p in one.parameters for leaf in p.leaves} - {one.target}
        assert fields - {"reason"} <= set(tables()[one.table].fields), one.words


@pytest.mark.parametrize("name", SUITES)
def test_gold_solves_with_the_wanted_calls_and_demonstrations_do_not_always(name):
    env = FunctionCallEnv(equivalence=1.0)
    tasks = [task for split in Split for task in drawn(name, split, 6)]
    for seed, task in enumerate(tasks):
        walked = walk(env, task, "gold", seed=seed)
        assert walked.success, (task.prompt, task.options["rounds"])
        paid = sum(step.info["rewards"].get("equivalence", 0.0) for step in walked.steps)
        assert paid == pytest.approx(1.0)


def test_demonstrations_succeed_at_times():
    env = FunctionCallEnv()
    tasks = list(suite_tasks(get_suite("functioncall/single"), Split.TRAIN, 40))
    shown = sum(walk(env, task, "demonstrator", seed=seed).success for seed, task in enumerate(tasks))
    assert 0.1 < shown / len(tasks) < 0.97


@pytest.mark.parametrize("name", SUITES)
def test_silence_claims_questions_and_refusals_pass_no_task(name):
    """23 of τ²'s 50 airline tasks pass by doing nothing."""
    env = FunctionCallEnv()
    for task in drawn(name, Split.TEST, 4):
        for said in (
            "...",
            "Done.",
            "I have no function for that.",
            "What is missing?",
            "It is 2.",
            "Let me look.",
        ):
            env.reset(seed=0, options={"task": task})
            while env.now.end is None:
                step = env.step(said)
            assert step.info["end"] is not EndReason.SOLVED


def test_language_of_dev_and_test_is_never_said_in_train():
    lists = list(phrases().values())
    lists += [one.say for one in functions().values() if one.say]
    lists += [ways for table in tables().values() for ways in table.filters.values()]
    lists += list(call_words().pools.values())
    for ways in lists:
        parts = [set(of_split(ways, split)) for split in Split]
        assert all(parts)
        assert len(set().union(*parts)) == sum(map(len, parts)), ways


def test_names_of_test_do_not_occur_in_train():
    names = {
        split: {
            name
            for task in suite_tasks(get_suite("functioncall/single"), split, 25)
            for rows in task.options["tables"].values()
            for row in rows.values()
            for value in row.values()
            if isinstance(value, str) and re.fullmatch(r"[A-Z]\w+ [A-Z]\w+|\w+_\w+\.\w+", value)
            for name in [value.rpartition(".")[0] or value]
        }
        for split in Split
    }
    assert all(len(found) > 5 for found in names.values())
    assert not names[Split.TRAIN] & names[Split.TEST]
    assert not names[Split.TRAIN] & names[Split.DEV]


def test_requests_are_of_many_kinds():
    tasks = suite_tasks(get_suite("functioncall/single"), Split.TRAIN, 60)
    kinds = {kind for task in tasks for kind in task.gold["kinds"]}
    assert len(kinds) >= 50


def test_suites_hold_what_they_are_named_after():
    for task in drawn("memory", Split.TEST, 12):
        calls = [call["function"] for one in task.options["rounds"] for call in one["plan"]]
        assert any(functions()[words].api == "memory" for words in calls)
    assert all(len(task.options["functions"]) >= 70 for task in drawn("long-list", Split.TEST, 6))
    formats = drawn("formats", Split.TEST, 40)
    assert {task.options["dialect"] for task in formats} == {"native", "python", "json", "hermes"}
    assert {task.options["case"] for task in formats} == set(CASES)
    assert len({task.options["order"] for task in formats}) == 5
    quick = drawn("quick", Split.TEST, 6)
    assert all(task.options["text"] == "compact" and task.gold["calls"] <= 4 for task in quick)


def parts_of(task):
    """The plan of a request for several things, by the tables that its parts touch."""
    plan = task.options["rounds"][0]["plan"]
    groups = []
    for number, planned in enumerate(plan):
        touched = {functions()[planned["function"]].table}
        numbers = {number, *planned["after"]}
        for other in [one for one in groups if one[0] & touched or one[1] & numbers]:
            groups.remove(other)
            touched, numbers = touched | other[0], numbers | other[1]
        groups.append((touched, numbers))
    return plan, [sorted(numbers) for _, numbers in groups]


def several(split, n):
    return [task for task in drawn("parallel", split, n) if task.gold["kinds"][0].startswith("several")]


def test_most_tasks_of_parallel_ask_for_two_or_three_things_that_have_nothing_to_do_with_each_other():
    found = several(Split.TRAIN, 120)
    assert len(found) > 60
    sizes = {len(parts_of(task)[1]) for task in found}
    assert sizes >= {2, 3}
    assert 1 not in sizes
    others = drawn("single", Split.TRAIN, 60)
    assert not any(task.gold["kinds"][0].startswith("several") for task in others)
    apis_of = [
        {functions()[one["function"]].api for one in task.options["rounds"][0]["plan"]} for task in found
    ]
    assert sum(len(one) > 1 for one in apis_of) > len(found) / 2


def test_parts_of_a_request_may_be_done_in_any_order_and_none_may_lack():
    env = FunctionCallEnv(equivalence=1.0)
    for split in Split:
        for task in several(split, 12):
            plan, groups = parts_of(task)
            case = task.options["case"]
            made = [
                (as_tool(one["function"], case).spec.name, to_theirs(functions()[one["function"]], one["arguments"], case))
                for one in plan
            ]  # fmt: skip
            for order in (groups, groups[::-1], groups[1:]):
                env.reset(seed=0, options={"task": task})
                call(env, *(made[number] for group in order for number in group))
                step = env.step("Done.")
                whole = len(order) == len(groups)
                assert (step.info["end"] is EndReason.SOLVED) == whole, task.prompt
                assert verdict(step) == {"state": whole, "answer": True, "calls": whole}


def test_of_one_and_of_several_things_one_speaks_in_the_right_number():
    assert agreeing("lock {it}, as it is/are open") == "lock {it}, as it is open"
    for name in ("parallel", "single"):
        for split in Split:
            for task in drawn(name, split, 80):
                said = task.prompt
                assert not re.search(r"\w/\w", said), said
                assert not re.search(
                    r"\b(?:all|whole lot of) [\w ]+?s that (?:is|lies|goes|belongs|has)\b", said
                ), said
                assert not re.search(
                    r"(?<![\d.])1 (?:bags|pieces|shares|minutes|dollars|times)\b|minutes minutes", said
                ), said


def test_a_number_that_stands_elsewhere_has_a_letter_before_a_unit():
    said = [task.prompt for name in ("single", "parallel") for task in drawn(name, Split.TRAIN, 300)]
    units = "minutes|shares|pieces|bags|of|degrees|percent|dollars|times"
    lettered = [text for text in said if re.search(rf"\b[NMK] (?:{units})\b", text)]
    assert len(lettered) > 3
    assert all(re.search(r", (?:N being|where N is) ", text) for text in lettered)


def test_a_refusal_is_not_praised_and_tickets_are_due_after_they_were_opened():
    thanks = {way.split()[0] for way in phrases()["next"]}
    refused = 0
    for task in drawn("irrelevant", Split.TRAIN, 60):
        rounds = task.options["rounds"]
        for before, after in itertools.pairwise(rounds):
            refused += before["declines"]
            assert not before["declines"] or after["say"].split()[0] not in thanks - {"Now"}, after["say"]
        tickets = task.options["tables"].get("tickets", {}).values()
        assert all(one["due"] >= one["opened"] for one in tickets)
    assert refused > 20


def test_no_question_tells_its_answer():
    for task in drawn("single", Split.TRAIN, 200):
        answer = task.options["rounds"][0]["answer"]
        if task.gold["kinds"][0].startswith("field_of") and isinstance(answer["value"], str):
            assert answer["value"] not in task.prompt


def test_tasks_of_quick_stay_those_of_published_results():
    told = [[task.prompt, task.options, task.gold] for split in Split for task in drawn("quick", split, 40)]
    assert digest(told) == "4b85e11b00aabb80"


def test_parameters_in_another_order_mean_the_same():
    orders = {tuple(as_tool("create event", "snake", order).spec.argument_names) for order in range(6)}
    assert len(orders) > 3
    for order in (0, 2, 5):
        env = start(wants(MOVE), order=order, dialect="python")
        env.step('move_event(when={"start": "10:30", "date": "2031-06-01"}, event_id="e-100")')
        assert env.step("Done.").info["end"] is EndReason.SOLVED


def test_gold_goes_on_from_wherever_nothing_is_spoiled():
    env = FunctionCallEnv()
    for index, task in enumerate(suite_tasks(get_suite("functioncall/multi"), Split.TRAIN, 6)):
        rng = random.Random(index)
        env.reset(seed=0, options={"task": task})
        while env.now.end is None:
            if rng.random() < 0.3:
                reader = rng.choice([one for one in env.tools if re.match("find|Find", one.spec.name)])
                step = call(env, (reader.spec.name, {}))
            else:
                step = env.step(env.gold(env.state))
        assert step.info["end"] is EndReason.SOLVED


@pytest.mark.parametrize("items", [["x"] * 100_000, [{"a": n} for n in range(100_000)], [[[1]]] * 30_000])
def test_an_argument_of_a_hundred_thousand_values_is_refused_and_the_episode_goes_on(items):
    env = start(wants(ASSIGN))
    step = call(env, ("comment_ticket", {"ticket_id": "t-200", "comments": items}))
    assert "the arguments are too large" in step.observation[0].content
    assert not step.terminated
    assert call(env, ("find_tickets", {})).observation


def test_each_turn_tells_which_wanted_calls_it_made_and_how_many_are_open():
    env = start(wants(ASSIGN, MOVE))
    told = [
        call(env, ("find_tickets", {"status": "open"})),
        call(env, ASSIGNED, ASSIGNED),
        env.step("One moment."),
    ]
    told += [call(env, MOVED), env.step("It is done.")]
    assert [(one.info["details"]["met"], one.info["details"]["open"]) for one in told] == [
        *((0, 2), (1, 1), (0, 1), (1, 0), (0, 0))
    ]
    assert {(*one.info["details"]["required"],) for one in told} == {("assign_ticket", "move_event")}
