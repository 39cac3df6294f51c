"""Domains as descriptions: what holds for all operations, whatever they do."""
# pyright: reportAttributeAccessIssue=false

import ast
import collections
import dataclasses
import functools
import re
import string
import typing
from pathlib import Path

import pytest

from turnwise.data_file import data_file
from turnwise.envs.toolworld import cases
from turnwise.envs.toolworld.airline import actions as airline_actions
from turnwise.envs.toolworld.airline import operations as airline
from turnwise.envs.toolworld.alternatives import Lookup, compared
from turnwise.envs.toolworld.apps import rules as apps
from turnwise.envs.toolworld.apps.account import actions as account_actions
from turnwise.envs.toolworld.apps.account import rules as account_rules
from turnwise.envs.toolworld.apps.account.parts import enter_as_child
from turnwise.envs.toolworld.cases import domain_of, world
from turnwise.envs.toolworld.domain import DOMAINS, StoryDraft, drawn
from turnwise.envs.toolworld.granting import granted, refused, sentence
from turnwise.envs.toolworld.operations import ChangeWords, broken, reasons, wish_for
from turnwise.envs.toolworld.phrases import pool
from turnwise.envs.toolworld.retail import actions as retail_actions
from turnwise.envs.toolworld.retail import operations as retail
from turnwise.envs.toolworld.speech.values import named
from turnwise.envs.toolworld.telecom import actions as telecom_actions
from turnwise.envs.toolworld.telecom import operations as telecom
from turnwise.tasks.core import Split, derive_rng

DESCRIBED = {
    "retail": (retail.OPERATIONS, retail.SECTIONS, retail_actions.Reason),
    "airline": (airline.OPERATIONS, airline.SECTIONS, airline_actions.Reason),
    "telecom": (telecom.OPERATIONS, telecom.SECTIONS, telecom_actions.Reason),
    "apps": (apps.OPERATIONS, account_rules.SECTIONS, account_actions.AccountReason),
}
PHRASES = {
    name: data_file(package, table, dict[str, tuple[str, ...]])
    for name, package, table in (
        ("wishes", "turnwise.envs.toolworld", "wishes"),
        *((name, DOMAINS[name], "phrases") for name in DESCRIBED),
    )
}
FRAMES = PHRASES["wishes"]["frames"]
CHANGES = [(domain, one) for domain, (operations, _, _) in DESCRIBED.items() for one in operations]
ASKED = [pytest.param(domain, one, id=f"{domain}-{one.name}") for domain, one in CHANGES if one.tool]
REFUSALS = [
    pytest.param(domain, one, rule, id=f"{domain}-{one.name}-{rule}")
    for domain, one in CHANGES
    for rule in one.may
    if rule in DESCRIBED[domain][1]  # others are about arguments alone: nobody is refused for them
]
OF_WHO = {"not_owner", "minor", "organizer_only"}
"""Rules that hang on who asks: a call is judged by whose data it changes."""
SIGHT = {"not_owner", "minor", "other_product", "cancel_reason", "no_discount", "no_compensation"}
"""Rules of which a wish may speak: whose an order is, what it is swapped for, why it is cancelled, what was heard of a flight."""


@functools.cache
def drafts(domain, paraphrase=True):
    """The beginnings of some stories, in all splits."""
    found = []
    for index in range(24):
        made, rng = domain_of(domain), derive_rng("law", domain, index)
        split = list(Split)[index % 3]
        draft = StoryDraft(
            made, rng, world(domain, str(index % 6), 40), paraphrase=paraphrase, changes=0.3, split=split
        )
        assert made.enter(draft)
        found.append(draft)
    return found


def begin(domain, salt, paraphrase=True, rule=""):
    """Fresh stories, each with its own chance; a child speaks where the rule is about that."""
    for index, old in enumerate(drafts(domain, paraphrase)):
        fresh = StoryDraft(
            old.domain, derive_rng("law", domain, salt, index), old.base, paraphrase=paraphrase, changes=0.3, split=old._split,
        )  # fmt: skip
        fresh.customer, fresh.facts = old.customer, dict(old.facts)
        if rule != "minor" or enter_as_child(fresh):
            yield fresh


MINDS = [case for case in ASKED if case.values[1].rethink]


@pytest.mark.parametrize(("domain", "operation"), MINDS)
def test_a_change_of_mind_is_never_to_the_same(domain, operation):
    same = dataclasses.replace(operation, rethink=lambda draft, wish: wish)
    asked = list[str]()
    for one, salts in ((same, 1), (operation, 3)):
        for draft in (draft for salt in range(salts) for draft in begin(domain, f"{operation.name}{salt}")):
            draft._changes = 1.0
            stage = granted(draft, one)
            if stage is not None:
                asked.append(stage.twist)
                assert not (stage.twist and one is same)
            if stage is not None and stage.twist:
                first, second = (step.text for step in stage.plan if step.kind in ("propose", "confirm"))
                assert first != second
    assert any(asked) or operation is retail.PAYMENT  # who has two payments changes from one to the other
    assert not all(asked)


@pytest.mark.parametrize("domain", DESCRIBED)
def test_there_are_words_for_each_change_and_for_nothing_else(domain):
    written = data_file(DOMAINS[domain], "operations", dict[str, ChangeWords])
    assert sorted(written) == sorted(one.name for one in DESCRIBED[domain][0])


@pytest.mark.parametrize(("domain", "operation"), ASKED)
def test_a_request_breaks_nothing_and_changes_something(domain, operation):
    drawn = 0
    for draft in begin(domain, operation.name):
        stage = granted(draft, operation)
        if stage is not None:
            before = draft.db
            draft.apply(stage)  # raises where a call fails or breaks a rule
            assert draft.db != before, stage.say
            assert stage.plan[-1].kind == "tell"
            drawn += 1
    assert drawn >= 3


@pytest.mark.parametrize(
    ("domain", "operation"),
    [pytest.param(domain, one, id=f"{domain}-{one.name}") for domain, one in CHANGES if one.rethink],
)
def test_who_changes_their_mind_can_want_something_else(domain, operation):
    wishes = ((draft, wish_for(draft, operation)) for draft in begin(domain, operation.name))
    final = ((wish, operation.rethink(draft, wish)) for draft, wish in wishes if wish)
    assert any(second and second.arguments != first.arguments for first, second in final)


@pytest.mark.parametrize(("domain", "operation", "rule"), REFUSALS)
def test_what_is_refused_breaks_exactly_its_rule_first(domain, operation, rule):
    drawn, made = 0, domain_of(domain)
    for draft in begin(domain, operation.name + rule, rule=rule):
        wish = wish_for(draft, operation, rule, own=rule != "not_owner")
        if wish is None:
            continue
        assert broken(draft.db, draft.customer, wish)[0] == rule
        if operation.tool and rule not in OF_WHO:
            assert made.rules(draft.db, operation.tool, wish.arguments)[0] == rule, "as the call is judged"
        drawn += 1
    assert drawn >= 2


@pytest.mark.parametrize(("domain", "operation", "rule"), REFUSALS)
def test_a_refusal_is_put_on_record_by_its_rule_and_changes_nothing_else(domain, operation, rule):
    for draft in begin(domain, rule + operation.name, rule=rule):
        stage = refused(draft, operation, rule, own=rule != "not_owner")
        if stage is not None:
            writes = [
                step
                for step in stage.plan
                if step.kind == "call" and draft.domain.act(step.name).kind == "write"
            ]
            assert not writes
            assert stage.plan[-2].arguments["reason"] == rule
            return
    raise AssertionError("never drawn")


def fields(template):
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


@pytest.mark.parametrize(("domain", "operation"), ASKED)
def test_both_wordings_name_the_same_values(domain, operation):
    """The clauses of a change are filled in alike, and a sentence names what its clause names."""
    assert len({frozenset(fields(way) - {"verb"}) for way in operation.clauses}) == 1
    patterns = domain_of(domain).lexicon.patterns
    for draft in begin(domain, f"{operation.name} words"):
        wish = wish_for(draft, operation)
        if wish is not None:
            clause = wish.clause(draft)
            assert named(sentence(draft, clause), patterns) == named(clause, patterns)


@pytest.mark.parametrize(
    ("domain", "operation"), [pytest.param(*one, id=f"{one[0]}-{one[1].name}") for one in CHANGES]
)
def test_no_split_shares_a_wording(domain, operation):
    for ways in (operation.clauses, operation.question, operation.second, operation.beside, FRAMES):
        if ways:
            assert len({*ways}) == len(ways) >= 3
            train, dev, test = ({*pool(ways, split)} for split in Split)
            assert not train & dev
            assert not (train | dev) & test


@pytest.mark.parametrize(
    ("table", "name"), [(table, name) for table, phrases in PHRASES.items() for name in phrases]
)
def test_no_split_shares_a_phrase_and_each_is_said_somewhere(table, name):
    ways = PHRASES[table][name]
    assert len({*ways}) == len(ways) >= 3
    pools = [{*pool(ways, split)} for split in Split]
    assert sum(map(len, pools)) == len(set.union(*pools)) == len(ways)
    said, parts = texts_of(Path(cases.__file__).parent / ("" if table == "wishes" else table))
    assert name in said or any(part in name for part in parts)


@functools.cache
def texts_of(folder):
    """The texts in the code of a folder, and the parts of those that are put together."""
    nodes = [node for file in folder.rglob("*.py") for node in ast.walk(ast.parse(file.read_text("utf-8")))]
    built = [part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values]
    texts = [{node.value for node in some if isinstance(node, ast.Constant)} for some in (nodes, built)]
    whole, parts = ({text for text in found if isinstance(text, str)} for found in texts)
    return whole - parts, {part for part in parts if len(part.strip()) > 3}


@pytest.mark.parametrize(("domain", "operation"), ASKED)
def test_no_wording_gives_a_refusal_away(domain, operation):
    """With the names of things and the values taken out, what is refused is said as what is granted is said."""
    said = collections.defaultdict(set)
    for rule in ("", *operation.may):
        for draft in begin(domain, f"{operation.name} {rule} away", paraphrase=False, rule=rule):
            wish = wish_for(draft, operation, rule, own=rule != "not_owner")
            for text in (wish.clause(draft), "" if operation.asked_for else wish.said) if wish else ():
                for name in ("things", "new", "there", "many", "it", "name", "who", *wish.arguments):
                    text = text.replace(str(wish.fill.get(name) or "\0"), "#")
                said[rule].add(re.sub(r"\w+_\d+|\$?\d[\d.,]*", "#", text))
    for rule in operation.may.keys() - SIGHT:
        assert not {one for one in said[rule] if "my " not in one} - said[""] - {""}, rule


@pytest.mark.parametrize("domain", DESCRIBED)
def test_the_policy_lists_the_rules_as_they_are_judged(domain):
    operations, sections, reasons_recorded = DESCRIBED[domain]
    for operation in operations:
        assert list(operation.may) == [
            *(rule for rule in sections if rule in operation.may),
            *(rule for rule in operation.may if rule not in sections),
        ], "in one order"
    used = {rule for one in operations for rule in one.may}
    assert used >= {*sections} == {*typing.get_args(reasons_recorded)}
    assert reasons(operations, sections) in domain_of(domain).policy


def test_a_wish_after_another_is_one_for_what_the_first_one_leaves():
    """The price of wrapping is that of what is left when something was taken out."""
    seen = 0
    for draft in begin("retail", "left"):
        stage = drawn(domain_of("retail").requests["remove_and"], draft)
        wraps = [step for step in stage.plan if step.name == "wrap_order"] if stage else []
        if stage and wraps:
            order = draft.db.get("orders", wraps[0].arguments["order_id"])
            offer = next(step.text for step in stage.plan if step.kind == "confirm" and "wrap" in step.text)
            assert f"${3 * (len(order.lines) - 1)}.00" in offer
            seen += 1
    assert seen


@pytest.mark.parametrize("value", [2, 4, 30, 299])
def test_a_condition_on_a_count_has_a_limit_near_it_and_is_true_as_often_as_not(value):
    """A count of 4 that is compared with 100 would be below it whatever is asked."""
    limits, held = set(), set()
    for draft in begin("apps", f"limit {value}"):
        clause = compared(draft, Lookup(("the number of seats",), "count", value, "{} seats."), above=True)
        limits |= {int(number) for number in re.findall(r"\d+", clause.say)}
        held.add(clause.holds)
    assert all(abs(limit - value) <= 9 for limit in limits), limits
    assert held == {True, False}
