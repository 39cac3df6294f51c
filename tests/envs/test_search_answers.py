"""Answers and rewards: the papers' worked numbers, and the traps that released code falls into."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnwise.envs.search.answers import AnswerVerdict, abstains, bare, judge, normalise
from turnwise.envs.search.question import Rubric, SearchQuestion
from turnwise.envs.search.reward import AnswerFacts, check_parts, final_rewards, rubric_share
from turnwise.errors import EnvError, NotFoundError


@pytest.mark.parametrize(
    ("answer", "gold", "em"),
    [
        ("the  Velmora Mills!", "Velmora Mills", 1),
        ("velmora mills", "The Velmora-Mills", 1),
        ("1,204", "1204", 1),
        ("1204.0", "1204", 1),
        ("3.5", "35", 0),  # SQuAD's normalisation makes these equal
        ("-5", "5", 0),
        ("10", "100", 0),
        ("", "Velmora", 0),
        ("the", "a", 0),  # nothing is left of either
        ("Velmora\u00a0Mills", "Velmora Mills", 1),
        ("Velmora Mills or Karvun Mills", "Velmora Mills", 0),
    ],
)
def test_exact_match(answer, gold, em):
    assert judge(answer, [gold]).em == em


@pytest.mark.parametrize(
    "answer",
    [
        "Karvun, Velmora, Dornik",
        "Velmora or Karvun",
        "It is either Velmora or else it may be Karvun",
        " ".join(f"Place{i}" for i in range(50)) + " Velmora",
        "100 Velmoras",
        "unknown, but perhaps Velmora, or then again not at all there",
    ],
)
def test_a_list_of_candidates_is_no_contained_match(answer):
    """Substring matching pays 1.0 for naming everything."""
    assert judge(answer, ["Velmora"], ["Karvun", "Dornik"]).sub_em == 0.0


def test_contained_match_is_of_whole_words():
    assert judge("in the town of Velmora", ["Velmora"]).sub_em == 1.0
    assert judge("10", ["100"]).sub_em == judge("100", ["10"]).sub_em == 0.0
    assert judge("New Velmora Mills", ["Velmora"], ["Velmora Mills"]).sub_em == 0.0


def test_f1_by_hand():
    assert judge("Velmora Mills in Karvun", ["Velmora Mills"]).f1 == pytest.approx(2 * 2 / (4 + 2))
    assert judge("Velmora Velmora", ["Velmora"]).f1 == pytest.approx(2 / 3)  # a word counts once


def test_abstaining_is_right_only_where_nothing_can_be_known():
    assert judge("Unknown.", ["unknown"]) == AnswerVerdict(1.0, 1.0, 1.0)
    assert judge("unknown", ["Velmora"]) == AnswerVerdict(0.0, 0.0, 0.0)
    assert judge("Velmora", ["unknown"]) == AnswerVerdict(0.0, 0.0, 0.0)
    assert judge("unknown or Velmora", ["unknown"]).sub_em == 0.0
    assert abstains("I don't know")
    assert not abstains("I don't know, Velmora")


@pytest.mark.parametrize(
    "answer",
    [
        "No passage tells it.", "no page tells it", "Not found", "I do not know", "It cannot be determined",
        "can't be determined", "unknown (no page mentions it)", "There is no such city", "no information available",
    ],
)  # fmt: skip
def test_it_is_unknown_in_many_ways(answer):
    assert abstains(answer)
    assert not abstains(f"{answer} Velmora")


@pytest.mark.parametrize(
    ("answer", "gold", "em"),
    [
        ("The answer is Velmora Mills.", "Velmora Mills", 1),
        ("Final answer: Velmora Mills", "Velmora Mills", 1),
        ("It's Velmora Mills", "Velmora Mills", 1),
        ("in the year 1904", "1904", 1),
        ("There are 5 cities", "5", 1),
        ("422,938 inhabitants", "422938", 1),
        ("five cities", "five", 1),
        ("It is unknown", "unknown", 1),
        ("1903 or 1904", "1904", 0),
        ("1904 1890", "1904", 0),  # a number of the question is none of its words
        ("about 1904", "1904", 0),
        ("It is not Velmora Mills", "Velmora Mills", 0),
        ("5 towns", "5", 0),
        ("it is", "Velmora Mills", 0),
    ],
)
def test_a_sentence_around_an_answer_says_nothing(answer, gold, em):
    asked = "Count the cities from before 1890: what is their number of inhabitants?"
    assert judge(bare(answer, asked), [gold]).em == em


def test_a_list_of_numbers_is_no_contained_match():
    assert judge("1903 or 1904", ["1904"]).sub_em == judge("3 4 5", ["5"]).sub_em == 0.0
    assert judge("on 12 May 1904", ["1904"]).sub_em == 1.0


@given(st.text(max_size=40))
def test_normalising_twice_is_normalising_once(text):
    assert normalise(normalise(text)) == normalise(text)
    assert 0.0 <= judge(text, ["Velmora"]).f1 <= 1.0


# --- parts ---------------------------------------------------------------------------------------


def facts(right=False, searches=0, malformed=False, entities=0.0, rubric=1.0, recall=0.0, retrieved=False):
    verdict = AnswerVerdict(float(right), float(right), float(right))
    return AnswerFacts(verdict, right, recall, entities, rubric, searches, malformed, retrieved)


def paid(part, weight=1.0, **known):
    return final_rewards({part: weight}, facts(**known))[part]


def test_ikea_by_the_papers_numbers():
    """Correct with 0–3 searches → 1.6, 1.4, 1.2, 1.0 with the outcome; wrong 0 and 0.05; malformed −1."""
    assert [1 + paid("knowledge", right=True, searches=n) for n in range(5)] == [1.6, 1.4, 1.2, 1.0, 1.0]
    assert (paid("knowledge"), paid("knowledge", searches=2)) == (0.0, 0.05)
    assert paid("knowledge", right=True, malformed=True) == -1.0


def test_carr_by_the_papers_numbers():
    """Outcomes and rubrics (0, .9), (1, .5), (1, 1), (0, 0) → 0, 0.85, 1, 0 with α = 0.3."""
    cases = [(False, 0.9), (True, 0.5), (True, 1.0), (False, 0.0)]
    sums = [right + paid("citations", 0.3, right=right, rubric=share) for right, share in cases]
    assert sums == pytest.approx([0, 0.85, 1, 0])


def test_e_grpo_by_the_papers_numbers():
    """Before the division by the group's best: α·γ of the wrong ones only, nothing if malformed."""
    assert [paid("entity", 0.3, right=r, entities=n / 4) for r, n in ((True, 3), (False, 1), (False, 2), (False, 0))] \
        == pytest.approx([0, 0.075, 0.15, 0])  # fmt: skip
    assert paid("entity", 0.3, entities=1.0, malformed=True) == 0.0


def test_search_r1s_format_reward():
    """Correct and valid 1, correct and invalid 1 − s, wrong and valid s (+ r if retrieved), wrong and invalid f."""
    assert 1 + paid("format", right=True) == 1.0
    assert 1 + paid("format", right=True, malformed=True) == 0.8
    assert paid("format") == 0.2
    assert paid("format", retrieved=True) == pytest.approx(0.3)
    assert paid("format", malformed=True, retrieved=True) == 0.1


def test_a_rubric_needs_name_citation_and_connection():
    chain = (Rubric((0, 1), (1,), (10,)), Rubric((1, 2), (1, 2), (11,)), Rubric((2, 3), (2, 3), (12,)))
    question = SearchQuestion("q", "chain", ("d",), (("a",), ("b",), ("c",), ("d",)), 3, rubric=chain)
    assert rubric_share(question, {1, 2, 3}, {10, 11, 12}) == 1.0
    assert rubric_share(question, {1, 2, 3}, {10, 11}) == 0.0  # the fact beside the answer is not cited
    assert rubric_share(question, {1, 2, 3}, {10, 12}) == pytest.approx(1 / 3)  # the first is cut off
    assert rubric_share(question, {2, 3}, {10, 11, 12}) == pytest.approx(1 / 3)
    assert rubric_share(question, set(), set(range(100))) == 0.0
    year = question._replace(answer=-1, rubric=(*chain, Rubric((3,), (3,), (13,))))
    assert rubric_share(year, {1, 2, 3}, {10, 11, 12}) == 0.0  # the passage that tells the year is not cited
    assert rubric_share(year, {1, 2, 3}, {10, 11, 12, 13}) == 1.0


def test_unknown_parts_and_negative_weights_are_refused():
    with pytest.raises(NotFoundError, match="evidence"):
        check_parts({"evidance": 1.0})
    with pytest.raises(EnvError, match="at least 0"):
        check_parts({"evidence": -1.0})
