"""What makes the user of tool worlds quick changes nothing that he understands: shapes, guards, and keys kept in part."""

import importlib
import json
import pkgutil
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from turnwise.envs.registry import make
from turnwise.envs.toolworld import speech
from turnwise.envs.toolworld.cases import domain_of
from turnwise.envs.toolworld.mind import StageMind
from turnwise.envs.toolworld.speech import reading, values
from turnwise.envs.toolworld.speech.lexicon import Lexicon
from turnwise.envs.toolworld.speech.moods import clauses
from turnwise.envs.toolworld.speech.values import named
from turnwise.envs.toolworld.speech.ways import Alternation, GuardedPattern, loosened
from turnwise.envs.toolworld.speech.words import Concept, shape_of
from turnwise.tasks.core import Split, derive_rng

LINES = Path(__file__).with_name("toolworld_sentences").joinpath("open.jsonl").read_text("utf-8").splitlines()
TEXTS = [json.loads(line)["text"] for line in LINES[::3]]
DOMAINS = ("retail", "airline", "telecom", "apps")
MODULES = [
    importlib.import_module(f"{speech.__name__}.{one.name}") for one in pkgutil.iter_modules(speech.__path__)
]
PATTERNS = [
    (f"{module.__name__.rpartition('.')[2]}.{name}", value)
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, (re.Pattern, GuardedPattern, Alternation))
]


def sources(value):
    if isinstance(value, Alternation):
        return value.ways
    return [value.pattern if isinstance(value, re.Pattern) else value._exact.pattern]


def other_numbers(text, rng, known=frozenset()):
    def other(found):
        return found[0] if found[0] in known else "".join(rng.choice("135689") for _ in found[0])

    return re.sub(r"[0-9]{2,}", other, text)


@pytest.mark.parametrize("domain", DOMAINS)
def test_messages_that_differ_in_numbers_alone_differ_in_what_they_name_alone(domain):
    rng, lexicon = random.Random(1), domain_of(domain).lexicon
    for text in TEXTS:
        one = reading._by_shape.__wrapped__(lexicon, text)
        other = reading._by_shape.__wrapped__(lexicon, other_numbers(text, rng, lexicon._numbers))
        assert one == other, text


@pytest.mark.parametrize("domain", DOMAINS)
def test_what_a_message_names_is_found_as_if_no_message_of_its_shape_had_been_read(domain):
    rng, patterns = random.Random(2), domain_of(domain).lexicon.patterns
    for text in TEXTS:
        text = other_numbers(text, rng)
        found = [
            values._found(reader, text)
            for reader in (*(one for _, some in values._READERS for one in some), *patterns.items())
        ]
        assert named(text, patterns).values == frozenset().union(*(one.values for one in found)), text
        assert named(text, patterns).money == frozenset().union(*(one.money for one in found)), text


def test_no_pattern_of_the_reader_knows_a_number_of_two_digits():
    for name, value in PATTERNS:
        for source in sources(value):
            bare = re.sub(r"\{[0-9,]*\}|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}", "", source)
            assert not re.search("[0-9]{2}", bare) or not name.startswith(
                ("moods", "assent", "denying", "telling", "asking", "proposing", "reading", "strange")
            ), name


def test_a_lexicon_that_knows_a_number_is_read_to_the_letter():
    lexicon = Lexicon({}, actions={"give_fifty": Concept("book", "plan 50")})
    assert lexicon.shape_of("plan 50 for 4711") == "plan 50 for 7777"
    assert reading.understand(lexicon, "Shall I book plan 50?").proposal.actions == {"give_fifty"}
    assert reading.understand(lexicon, "Shall I book plan 70?").proposal.actions == frozenset()


def test_numbers_that_are_counted_with_words_keep_their_value():
    for text in ("It is 12 hundred dollars.", "It is 10 THOUSAND dollars.", "That makes 20 million dollars."):
        assert shape_of(text) == text
    assert named("It is 12 hundred dollars.", {}).money == {120_000}


def test_a_guard_lets_through_whatever_the_pattern_finds():
    said = [clause.text for text in TEXTS for clause in clauses(text)]
    said += [f"{text} caf\u00e9 \u2013 na\u00efve" for text in said[::9]]
    guards = [(name, value) for name, value in PATTERNS if isinstance(value, GuardedPattern)]
    assert len(guards) > 15
    for name, guard in guards:
        for text in said:
            assert (guard.search(text) is None) == (guard._exact.search(text) is None), (name, text)


def test_an_alternation_finds_what_its_ways_find():
    said = [clause.text for text in TEXTS for clause in clauses(text)][::2]
    for name, value in PATTERNS:
        if isinstance(value, Alternation):
            whole = re.compile("|".join(value.ways))
            for text in said:
                assert value.search(text) == (whole.search(text) is not None), (name, text)


def test_only_look_arounds_are_taken_out_of_a_pattern():
    assert loosened(r"a(?!b(?=c)[)])d(?<!x)(?:e|f)") == "ad(?:e|f)"
    assert loosened(r"\(?!x[(?!]") == r"\(?!x[(?!]"


KEYS = """
from turnwise.envs.registry import make
from turnwise.tasks.core import Split, derive_rng
env = make("turnwise/ToolWorld-v0")
for index in range(6):
    env.reset(seed=0, options={"task": env.generate(derive_rng("keys", index), Split.TRAIN, domains=["telecom"])})
    end = None
    while end is None:
        info = env.step(env.gold(env.state)).info
        end = info["end"]
        print(info["state_key"])
"""


@pytest.mark.slow
def test_the_key_of_a_state_is_the_same_in_every_process():
    runs = {
        subprocess.run(
            [sys.executable, "-c", KEYS], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(runs) == 1
    assert len(runs.pop().split()) > 20


def test_states_that_differ_in_one_part_have_different_keys():
    env = make("turnwise/ToolWorld-v0")
    env.reset(seed=0, options={"task": env.generate(derive_rng("keys", 0), Split.TRAIN, domains=["telecom"])})
    state, user = env.state, env.state.user
    minds = {
        "stage": 1, "patience": 1, "revealed": frozenset("a"), "consent": True, "twisted": True, "insisted": True, "served": True,
        "corrected": True, "doubts": True, "puzzled": True, "told": frozenset({(0, 0)}), "did": frozenset("a"), "over": True,
        "agreed": (user.offered,), "offered": user.offered._replace(actions=frozenset("a")), "priced": frozenset({5}), "paid": frozenset("5"), "answered": True,
        "aside": (StageMind(1),),
    }  # fmt: skip
    assert minds.keys() == set(user._fields), "all that a user has in mind"
    others = [
        state._replace(verified=frozenset("C1")), state._replace(broken=("x",)), state._replace(done=frozenset({("a", "b")})),
        state._replace(closed="left"), state._replace(acted=frozenset("a")), state._replace(pending="hm"), state._replace(opened=False),
        *(state._replace(user=user._replace(**{name: value})) for name, value in minds.items()),
        *(state._replace(user=user._replace(aside=(StageMind(2)._replace(**{name: minds[name]}),))) for name in StageMind._fields if name != "stage"),
    ]  # fmt: skip
    keys = {env.state_key(one) for one in (state, *others)}
    assert len(keys) == len(others) + 1
