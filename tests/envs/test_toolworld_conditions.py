"""Requests whose plan depends on what the agent reads: gold solves them, and a sensible agent who errs does not."""
# pyright: reportAttributeAccessIssue=false, reportTypedDictNotRequiredAccess=false

import dataclasses
import itertools

import pytest

from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import make
from turnwise.envs.toolworld import alternatives, cases
from turnwise.envs.toolworld.airline import conditions as airline_conditions
from turnwise.envs.toolworld.airline import several as airline_several
from turnwise.envs.toolworld.cases import domain_of
from turnwise.envs.toolworld.facts import amounts
from turnwise.envs.toolworld.retail import conditions as retail_conditions
from turnwise.envs.toolworld.retail import several as retail_several
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.core import ToolCall

ENV = "turnwise/ToolWorld-v0"
CONDITIONS = {"retail": retail_conditions, "airline": airline_conditions}
OTHERS = {"retail": (retail_several,), "airline": (airline_several,)}


def kinds_of(*modules):
    names = {module.__name__ for module in modules}
    return [
        (domain, kind)
        for domain in CONDITIONS
        for kind, made in domain_of(domain).requests.items()
        if getattr(made, "func", made).__module__ in names
    ]


BRANCHED = kinds_of(*CONDITIONS.values())
JOINED = kinds_of(*itertools.chain(*OTHERS.values()))


@pytest.fixture
def drawn(monkeypatch):
    """Tasks whose one request is of a kind."""

    def draw(domain, kind, n, split=Split.TRAIN):
        made = domain_of(domain)
        only = dataclasses.replace(made, requests={kind: made.requests[kind]}, traps={})
        monkeypatch.setitem(cases._loaded, domain, only)
        env = make(ENV)
        for index in range(n):
            rng = derive_rng("conditions", domain, kind, index)
            task = env.generate(rng, split, domains=[domain], requests=1, traps=0)
            env.reset(seed=0, options={"task": task})
            yield env

    return draw


def play(env, plan):
    """Whether the task is solved by a plan that is followed whatever the user says."""
    last = [step for step in plan if step.kind == "tell"][-1:] * 3
    for step in (*plan, *last):
        end = act(env, step)
        if end is not None:
            return end is EndReason.SOLVED
    return False


def act(env, step):
    said = step.text
    if step.kind == "call":
        said = Message("assistant", "", (ToolCall(step.name, dict(step.arguments), "c"),))
    return env.step(said).info["end"]


def plan_of(env):
    return env.state.case.story.stages[0].plan


def changes_of(env, plan):
    made = env.state.case.domain.act
    return [step for step in plan if step.kind == "call" and made(step.name).kind == "write"]


def test_there_are_many_kinds_that_depend_on_what_is_read():
    for domain in CONDITIONS:
        assert sum(name == domain for name, _ in BRANCHED) >= 7
        assert sum(name == domain for name, _ in JOINED) >= 7


@pytest.mark.parametrize(("domain", "kind"), BRANCHED)
def test_both_branches_are_drawn_and_the_other_one_does_not_solve_it(domain, kind, drawn, monkeypatch):
    decided, other, held = alternatives.decided, [], []

    def noted(*args, holds):
        other[:] = [decided(*args, holds=not holds)]
        held.append(holds)
        return decided(*args, holds=holds)

    monkeypatch.setattr(CONDITIONS[domain], "decided", noted)
    branches = []
    for env in drawn(domain, kind, 16):
        branches.append(held[-1])
        stage = env.state.case.story.stages[0]
        assert changes_of(env, stage.plan) or stage.tells, "silence would do"
        start = env.snapshot()
        assert not play(env, other[0].plan), stage.say
        env.restore(start)
        assert play(env, stage.plan), stage.say
    assert 2 <= sum(branches) <= 14


@pytest.mark.parametrize(("domain", "kind"), JOINED)
def test_half_of_it_or_another_thing_does_not_solve_it(domain, kind, drawn):
    tried = 0
    for env in drawn(domain, kind, 6):
        stage = env.state.case.story.stages[0]
        start, changes = env.snapshot(), changes_of(env, stage.plan)
        for change in changes:
            env.restore(start)
            assert not play(env, [step for step in stage.plan if step is not change]), stage.say
            for name, row in itertools.product(("order_id", "reservation_id"), _own(env)):
                if change.arguments.get(name, row) != row:
                    env.restore(start)
                    plan = [_about(step, change, name, row) for step in stage.plan]
                    assert not play(env, plan), (stage.say, plan)
                    tried += 1
        env.restore(start)
        assert play(env, stage.plan), stage.say
    assert tried or kind in ("cancel_and_claim", "book_beside", "book")


def _own(env):
    """The ids of the customer's orders or reservations."""
    state = env.state
    table = "orders" if "orders" in state.db.tables else "reservations"
    return [
        key for key, row in state.db.tables[table].items() if row.user_id == state.case.story.customer
    ]  # fmt: skip


def _about(step, change, name, row):
    """The same step about another order or reservation."""
    old = change.arguments[name]
    if step is change:
        return step._replace(arguments={**step.arguments, name: row})
    return step._replace(text=step.text.replace(old, row))


@pytest.mark.parametrize(("domain", "kind"), JOINED)
def test_a_yes_about_one_order_or_trip_allows_nothing_with_another(domain, kind, drawn):
    for env in drawn(domain, kind, 4):
        stage = env.state.case.story.stages[0]
        place = next(n for n, step in enumerate(stage.plan) if step.kind == "confirm")
        confirm, first = stage.plan[place : place + 2]
        for step in stage.plan[:place]:
            act(env, step)
        act(env, confirm)
        assert env.state.user.agreed, (stage.say, confirm)
        for name, row in itertools.product(("order_id", "reservation_id"), _own(env)):
            if name in first.arguments and row not in confirm.text:
                fork = env.fork()
                act(fork, first._replace(arguments={**first.arguments, name: row}))
                unmade = fork.state.db == env.state.db  # the tool refused
                assert unmade or "unconfirmed" in fork.state.broken, (stage.say, row)


LIMITED = {  # kind → the change that is wanted where the amount is at most what the user says; a minus where it is at least that
    ("retail", "change_within"): "change_item", ("retail", "exchange_within"): "exchange_item",
    ("airline", "move_within"): "change_flight", ("airline", "upgrade_within"): "change_cabin",
    ("airline", "downgrade_for"): "-change_cabin",
}  # fmt: skip


@pytest.mark.parametrize("key", LIMITED)
def test_what_is_done_keeps_the_limit_that_the_user_names(key, drawn):
    """Read from the words alone: the amount in the plan's question or report against the one in the wish."""
    wanted, seen = LIMITED[key].lstrip("-"), set()
    for env in drawn(*key, 24):
        stage = env.state.case.story.stages[0]
        limit = int(amounts(stage.say)[0])
        done = [step.name for step in changes_of(env, stage.plan)]
        if done and done != [wanted]:
            continue  # the amount is not told then
        told = next(step.text for step in stage.plan if amounts(step.text))
        within = int(amounts(told)[0]) <= limit
        if key == ("airline", "downgrade_for"):
            within = int(amounts(told)[0]) >= limit
        assert within is bool(done), (stage.say, told)
        seen.add(within)
    assert seen == {True, False}
