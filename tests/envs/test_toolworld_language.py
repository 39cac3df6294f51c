"""Requests, traps, wordings and policies: as many as promised, in other words in each split, and right in what they say."""
# pyright: reportAttributeAccessIssue=false, reportTypedDictNotRequiredAccess=false

import inspect
import re

import pytest

from turnwise.envs.registry import make
from turnwise.envs.toolworld.airline.state import AIRPORTS
from turnwise.envs.toolworld.cases import domain_of
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.phrases import pool
from turnwise.envs.toolworld.retail.state import COLOURS, KINDS, SIZES
from turnwise.envs.toolworld.vocabulary import LAST
from turnwise.tasks.core import Split, derive_rng

DOMAINS = ("retail", "airline", "telecom")
FILLED = (*COLOURS, *SIZES, *AIRPORTS, *KINDS, *LAST, "scheduled", "delayed", "cancelled", "March", "April", "exchange", "change",
          "basic", "economy", "business", "vegetarian", "vegan", "kosher", "halal", "Alex", "Robin", "Sam", "Chris")  # fmt: skip
VARIABLE = re.compile(
    r"[\w./-]*\d[\w./-]*(?: [A-Z][a-z]+ (?:Street|Road|Lane|Avenue|Square|Way), [A-Z][a-z]+)?|\$|"
    + "|".join(rf"\b{word}\b" for word in sorted(FILLED, key=len, reverse=True)),
    re.IGNORECASE,
)


def sentences(domain, split, count):
    """What users say of their own accord in so many tasks, without what is filled in."""
    env, found = make("turnwise/ToolWorld-v0"), set()
    for index in range(count):
        task = env.generate(
            derive_rng("said", domain, index),
            split,
            domains=[domain],
            requests=[1, 2],
            traps=0.45,
            changes=0.5,
        )
        for stage in task.options["story"]["stages"]:
            for text in (stage["say"], stage.get("twist", ""), stage.get("insist", "")):
                masked = VARIABLE.sub("#", text)
                found |= {part.strip() for part in re.split(r"(?<=[.?!])\s+", masked) if part.strip()}
    return found


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_sentence_of_test_is_said_in_train(domain):
    said = {split: sentences(domain, split, 120) for split in (Split.TRAIN, Split.TEST)}
    assert len(said[Split.TEST]) > 25
    assert not said[Split.TRAIN] & said[Split.TEST]


@pytest.mark.parametrize("domain", DOMAINS)
def test_everything_that_is_said_in_several_ways_has_one_for_each_split(domain, monkeypatch):
    """Fewer than three ways would be the same in all splits."""
    asked = []
    words = StoryDraft.words

    def noted(self, *ways):
        asked.append(ways)
        return words(self, *ways)

    monkeypatch.setattr(StoryDraft, "words", noted)
    sentences(domain, Split.TRAIN, 60)
    assert asked
    for ways in asked:
        assert len({*ways}) == len(ways) >= 3
        pools = [{*pool(ways, split)} for split in Split]
        assert not pools[0] & (pools[1] | pools[2])


@pytest.mark.parametrize("domain", DOMAINS)
def test_there_are_many_kinds_of_requests_and_traps(domain):
    made = domain_of(domain)
    assert len(made.requests) + len(made.traps) >= 20
    if domain == "telecom":
        assert len(made.deeds) >= 25


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_policy_is_long_and_its_references_and_names_are_right(domain):
    made = domain_of(domain)
    text = made.policy
    assert len(text.split()) >= 1000
    sections = {*re.findall(r"^(?:## )?(\d+(?:\.\d+)?)\.?\s", text, re.MULTILINE)}
    for found in re.findall(r"\((?:section )?(\d+(?:\.\d+)?)[,;:)]|section (\d+)", text):
        assert next(filter(None, found)) in sections, found
    known = {one.name for one in made.acts} | {
        name for one in made.acts for name in inspect.signature(one.tool.function).parameters
    }
    reasons = {
        value
        for one in made.acts
        for value in one.tool.spec.parameters.get("properties", {}).get("reason", {}).get("enum", ())
    }
    for name in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text):
        assert name in known | reasons, name
    for reason in reasons - {"no longer needed", "ordered by mistake", "unpaid", "status"}:
        assert reason in text, reason
