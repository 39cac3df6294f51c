"""Any turn can be played differently, and what cannot be forked says so."""

import asyncio
import html
import json
import re

import places as made
import pytest

import turnwise
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.log.episodes import load_episodes
from turnwise.envs.messages import Message
from turnwise.errors import TurnwiseError
from turnwise.tools.core import ToolCall
from turnwise.trainers.view.comparing import Comparisons
from turnwise.trainers.view.forking import (
    ForkEpisode,
    ForkMoment,
    ForkQuestion,
    ForkTurn,
    SteeredPolicy,
    play_forks,
    read_action,
    read_answer,
    write_action,
)
from turnwise.trainers.view.index import LogIndex
from turnwise.trainers.view.jobs import AT_ONCE, WAITING, ForkJob, ForkOrigin
from turnwise.trainers.view.pages import render
from turnwise.trainers.view.places import ViewedPlace, find_places
from turnwise.trainers.view.what_if import job_shown, verdict


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Questions about the first episode that gold would have gone on with otherwise."""
    folder = made.evaluation(tmp_path_factory.mktemp("asked") / "played", episodes=20)
    index = LogIndex(folder / "episodes.jsonl.zst", folder.parent / "cache")
    index.update()
    records = load_episodes(folder).records
    number = next(
        n for n, r in enumerate(records, 1) if not r.episode.success and len(r.episode.trajectory.turns) > 2
    )
    at = index.place(number)
    turns = records[number - 1].episode.trajectory.turns

    def ask(**fields):
        return ForkQuestion(log=str(index.log), start=at.start, line=at.line, **fields)

    return ask, turns


def answers(question):
    found = []
    asyncio.run(play_forks(question, found.append))
    return found


def arm(found, name):
    return [answer for answer in found if isinstance(answer, ForkEpisode) and answer.arm == name]


def test_gold_repairs_an_episode_that_failed(asked):
    ask, turns = asked
    found = answers(ask(turn=1, policy="scripted:gold", continuations=2))
    assert isinstance(found[0], ForkMoment)
    assert found[0].changed == ""
    assert found[0].observation == str(turns[0].observation)
    assert [e.end for e in arm(found, "changed")] == ["solved"] * 2
    assert all(e.turns[0].action == str(turns[0].action) for e in arm(found, "as played"))


def test_the_fork_of_the_last_turn_earns_what_was_recorded(asked):
    ask, turns = asked
    last = turns[-1]
    found = answers(
        ask(turn=len(turns), actions=(str(last.action),), policy="scripted:random", continuations=3)
    )
    assert arm(found, "changed") == []  # the same action: one arm
    assert [e.to_go for e in arm(found, "as played")] == [last.reward] * 3
    assert [e.turns[0].rewards for e in arm(found, "as played")] == [dict(last.rewards)] * 3


def test_a_person_plays_on_action_by_action_in_the_recorded_world(asked):
    ask, turns = asked
    said = [str(turn.action) for turn in turns]
    moment, played = answers(ask(turn=1, actions=(said[0],)))
    assert moment.observation == str(turns[1].observation)
    assert (played.end, [turn.action for turn in played.turns]) == ("goes on", said[:1])
    (over,) = answers(ask(turn=1, actions=tuple(said)))
    assert over.to_go == pytest.approx(sum(turn.reward for turn in turns))
    assert over.end == "failed"
    with_choices = answers(ask(turn=1, actions=("look around",)))[0]
    assert isinstance(with_choices.admissible, tuple)


def test_continuations_differ_by_chance_and_repeat_when_they_are_asked_again(asked):
    ask, _ = asked
    question = ask(turn=1, policy="scripted:random", continuations=12)
    one, two = answers(question), answers(question)
    actions = [[turn.action for turn in e.turns] for e in arm(one, "changed")]
    assert len({tuple(a) for a in actions}) > 6
    assert sorted(actions) == sorted([turn.action for turn in e.turns] for e in arm(two, "changed"))


def test_turns_that_are_not_there_and_policies_that_are_none_are_refused(asked):
    ask, turns = asked
    with pytest.raises(TurnwiseError, match=f"has {len(turns)} turns"):
        answers(ask(turn=len(turns) + 1, policy="scripted:gold"))
    with pytest.raises(TurnwiseError):
        answers(ask(turn=1, policy="scripted:golden"))


def test_an_environment_that_says_something_else_is_noticed(asked, monkeypatch):
    from turnwise.envs.shop.env import ShopEnv

    ask, _ = asked
    old = ShopEnv.initial
    monkeypatch.setattr(ShopEnv, "initial", lambda self, task: (old(self, task)[0], "Something else."))
    moment = answers(ask(turn=1, actions=()))[0]
    assert "it is not deterministic" in moment.changed


def test_episodes_of_several_agents_cannot_be_forked(tmp_path):
    log = tmp_path / "episodes.jsonl.zst"
    turnwise.rollout("games/kuhn-self", "scripted:random", episodes=1, log=log)
    with pytest.raises(TurnwiseError, match="several agents"):
        answers(ForkQuestion(log=str(log), start=0, line=0, turn=1, policy="scripted:random"))


def test_a_policy_that_is_steered_stops_where_nobody_goes_on():
    from turnwise.agents.core import History, Reply
    from turnwise.envs.messages import Message, Messages

    (episode,) = turnwise.rollout("shop/easy", "scripted:gold", episodes=1)
    history = History(env=None, task=episode.task, seed=0, observation=Messages())  # pyright: ignore
    policy = SteeredPolicy([Reply(Message("assistant", "a"))], 0, None)
    assert asyncio.run(policy.act(history)).message.content == "a"
    history.turns.append(episode.trajectory.turns[0])
    assert asyncio.run(policy.act(history)).end is not None


EDIT = ToolCall("edit", {"path": "a.py", "old": "it's\n", "new": '"""é"""\n'}, "call_17")


@pytest.mark.parametrize("content", ["", "I mend it."])
@pytest.mark.parametrize("calls", [(), (EDIT,), (EDIT, ToolCall("submit", {}))])
def test_what_was_played_can_be_typed_again(content, calls):
    played = Message("assistant", content, calls)
    typed = read_action(write_action(played)).message
    assert typed.content == content
    assert [(call.name, call.arguments) for call in typed.tool_calls] == [
        (c.name, c.arguments) for c in calls
    ]


def in_a_live_world(suite, tmp_path):
    """An episode of gold's is forked before its last turn but one: by a script, and by typing what was played."""
    log = tmp_path / "episodes.jsonl.zst"
    (episode,) = turnwise.rollout(suite, "scripted:gold", episodes=1, log=log)
    turns = episode.trajectory.turns
    at = max(1, len(turns) - 1)
    question = ForkQuestion(log=str(log), start=0, line=0, turn=at, policy="scripted:gold", continuations=2)
    found = answers(question)
    assert isinstance(found[0], ForkMoment)
    assert (found[0].observation, found[0].changed) == (str(turns[at - 1].observation), "")
    ends = [e.end for name in ("as played", "changed") for e in arm(found, name)]
    assert ends == ["solved"] * 4
    typed = write_action(turns[at - 1].action)
    again = answers(question.model_copy(update={"actions": (typed,)}))
    assert arm(again, "changed") == []  # what was typed is what was played
    *moment, gone_on = answers(question.model_copy(update={"actions": (typed,), "policy": ""}))
    assert [one.observation for one in moment] == [str(turn.observation) for turn in turns[at:]]
    assert gone_on.turns[0].action == str(turns[at - 1].action)


def test_programs_are_forked(tmp_path):
    in_a_live_world("code/quick", tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("sandboxed")
def test_repositories_are_forked(tmp_path):
    in_a_live_world("swe/small", tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("browser")
def test_pages_in_a_browser_are_forked(tmp_path):
    in_a_live_world("shop-browser/text", tmp_path)


def test_a_comparison_that_takes_too_long_is_given_up(folder):
    async def drawn():
        comparisons = Comparisons(seconds=0.01)
        places = [place for place in find_places([folder]) if place.name in ("first", "second")]
        with pytest.raises(TurnwiseError, match=r"not drawn within 0\.01 s"):
            await comparisons.page(places, allow_unlike=False, patience=60)

    asyncio.run(drawn())


def form_of(site, **fields):
    return [("csrf", site.server.guard.csrf), *fields.items()]


@pytest.mark.parametrize(
    ("difference", "error", "says"),
    [
        (None, None, ""),
        (0.5, None, "do not tell"),
        (0.0, 0.0, "earned the same"),
        (0.5, 0.1, "+0.5 ± 0.100 (standard error): more than twice"),
        (-0.1, 0.1, "may be chance"),
    ],
)
def test_the_verdict_on_two_ways_heeds_their_error(difference, error, says):
    assert says in verdict(difference, error)


def test_continuations_that_went_alike_are_told_once_with_their_number(tmp_path):
    """The same actions with another return, or after which something else was seen, are a kind of their own."""

    def played(saw, earned):
        turn = ForkTurn(saw=saw, action="look", reward=earned, rewards={}, bad=False)
        return ForkEpisode(
            arm="changed", to_go=earned, score=earned, end="failed", counts=True, error="", turns=(turn,), final=""
        )  # fmt: skip

    kinds = [played("a wall", 0.0), played("a door", 0.0), played("a wall", 1.0)]
    question = ForkQuestion(log="log", start=0, line=0, turn=1, policy="scripted:random", continuations=10)
    answers = [kinds[0]] * 4 + [kinds[1]] + [kinds[0]] * 4 + [kinds[2]]
    job = ForkJob("job", question, ForkOrigin("0", 1, 0.0), answers, "done")
    shown = job_shown(job, ViewedPlace("0", "log", tmp_path, "played"), "")
    page = render("job.html.j2", shown, title="What if")
    summaries = re.findall(r"<summary>(?:(\d+) times )?<b>(\d+)</b> from here on", page)
    assert summaries == [("8", "0"), ("", "0"), ("", "1")]
    assert "10 of 10 continuations" in page
    assert page.count('class="dot') == 10  # each keeps its place among the returns


@pytest.mark.slow
def test_the_page_asks_a_process_and_shows_what_it_says(site):
    where = f"{site.place('first')}/e/1"
    assert 'name="csrf"' in site.get(f"{where}/what-if?turn=2")
    form = form_of(
        site, turn="2", policy="scripted:gold", continuations="3", temperature="1", action="click[back]"
    )
    answer = site.ask(f"{where}/what-if", form)
    assert answer.status == 303
    page = site.until(answer.headers["Location"], "done after")
    assert "3 of 3 continuations" in page
    assert "Mean return changed by" in page or "earned the same" in page
    again = re.search(r'href="([^"]*)">Ask again', page)
    assert again is not None
    form = site.get(html.unescape(again[1]))
    assert '<option value="scripted:gold" selected>' in form
    assert 'name="continuations" value="3"' in form
    assert ">click[back]</textarea>" in form
    assert page.count('class="dot') == 6
    assert answer.headers["Location"] in site.get("/what-ifs")


@pytest.mark.slow
def test_a_person_plays_on_through_the_page(site):
    where = f"{site.place('first')}/e/1"
    first = load_episodes(site.server.folders[0] / "first")[0].trajectory.turns
    answer = site.ask(
        f"{where}/what-if", form_of(site, turn="1", policy="nobody", action=str(first[0].action))
    )
    page = site.until(answer.headers["Location"], "done after")
    assert "Your next action" in page
    kept = re.findall(r'<input type="hidden" name="action" value="([^"]*)"', page)
    assert kept
    again = [*form_of(site, turn="1", policy="nobody"), ("action", str(first[0].action)), ("action", "look")]
    page = site.until(site.ask(f"{where}/what-if", again).headers["Location"], "done after")
    assert "2 turns" in page


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"policy": "python:os:system"}, "nobody who can go on"),
        ({"policy": "openai:x@http://127.0.0.1:1"}, "nobody who can go on"),
        ({"policy": "torch:/etc"}, "nobody who can go on"),
        ({"policy": "nobody"}, "no action was given"),
        ({"policy": "scripted:gold", "turn": "99"}, "turn is"),
        ({"policy": "scripted:gold", "continuations": "100000"}, "continuations is"),
        ({"policy": "scripted:gold", "temperature": "nan"}, "temperature is"),
    ],
)
def test_only_what_the_form_offers_is_played(site, fields, why):
    form = form_of(site, **({"turn": "1", "continuations": "2", "temperature": "1"} | fields))
    answer = site.ask(f"{site.place('first')}/e/1/what-if", form)
    assert answer.status == 400
    assert why in answer.text


def test_too_many_questions_are_refused_and_each_can_be_stopped(site):
    where = f"{site.place('first')}/e/1/what-if"
    form = form_of(site, turn="1", policy="scripted:gold", continuations="64", temperature="1")
    jobs = []
    while (answer := site.ask(where, form)).status == 303:
        jobs.append(answer.headers["Location"])
        assert len(jobs) <= 40
    assert "are being answered already" in answer.text
    assert len(jobs) >= AT_ONCE + WAITING
    for job in jobs:
        assert site.ask(f"{job}/stop", form_of(site)).status == 303
    assert not any(job.running for job in site.server.jobs.all())


def test_answers_are_read_and_nothing_else():
    with pytest.raises(ValueError, match="validation"):
        read_answer(json.dumps({"kind": "episode"}).encode())


def test_a_live_log_is_not_locked_by_questions(asked, tmp_path):
    (episode,) = turnwise.rollout("shop/easy", "scripted:gold", episodes=1)
    with EpisodeLog(tmp_path / "episodes.jsonl.zst") as log:
        log.append(episode)
        log.flush()
        question = ForkQuestion(
            log=str(log.path), start=0, line=0, turn=1, policy="scripted:gold", continuations=1
        )
        assert arm(answers(question), "changed")[0].end == "solved"
        log.append(episode)
