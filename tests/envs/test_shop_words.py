"""The vocabulary: no word may be taken for another by substring, fuzzy or colour matching."""

import itertools

import pytest

from turnwise.envs.shop.catalogue import BUTTONS
from turnwise.envs.shop.reward import first_colour, similar
from turnwise.envs.shop.vocabulary import ATTRIBUTES, NOUNS, OPTIONS, STOP_WORDS, vocabulary

BOILERPLATE = "a for every day it is"
VALUES = [value for values in OPTIONS.values() for value in values]


def test_enough_words():
    full, small = vocabulary("full"), vocabulary("small")
    assert min(len(full.nouns), len(full.attributes)) >= 60
    assert (len(small.nouns), len(small.attributes)) == (16, 16)
    assert {name: len(values) for name, values in small.options}["color"] == 8
    assert {name: len(values) for name, values in small.options}["size"] == 4


@pytest.mark.parametrize("words", [[*NOUNS, *ATTRIBUTES, *VALUES]], ids=["all lists"])
def test_single_lower_case_words_without_repetition(words):
    assert all(word.isascii() and word.isalpha() and word.islower() for word in words)
    assert len(set(words)) == len(words)
    assert not set(words) & (STOP_WORDS | BUTTONS)


def test_no_attribute_is_part_of_another_word():
    for attribute in ATTRIBUTES:
        others = [word for word in (*NOUNS, *ATTRIBUTES, *BOILERPLATE.split()) if word != attribute]
        assert not [word for word in others if attribute in word], attribute


@pytest.mark.parametrize("words", [ATTRIBUTES, VALUES], ids=["attributes", "options"])
def test_no_two_words_are_similar(words):
    assert not [pair for pair in itertools.combinations(words, 2) if similar(*pair)]


def test_colours_stay_and_other_options_hold_no_colour():
    assert all(first_colour(value) == value for value in VALUES)


def test_nouns_have_a_department_and_an_aisle():
    assert all(len(aisle.split(" › ")) == 2 for aisle in NOUNS.values())
