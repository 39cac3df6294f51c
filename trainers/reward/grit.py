"""GRIT: thoughts that refer to evidence which is there."""

import math
import re
from collections import Counter

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.grams import repeated, words_of
from turnwise.trainers.kit.reward_edits import (
    Turns,
    has_answer,
    paid_instead,
    part_total,
    replace_turns,
    signal_of,
    told_list,
    told_text,
)

TAG = re.compile("(</?(?:think|rethink)>)")
REFERENCE = re.compile(r"\[([^\[\]]{1,80})\]")


@component("reward", "grit", paper="2505.15879", asks=("signal",), reads=("rewards",))
def grit(
    group: Group,
    *,
    exists: str = "read",
    number: str = "",
    said: str = "answer",
    wanted: str = "",
    signal: str = "",
    gram: int = 3,
) -> Group:
    """The last turn earns a form of thinking, references in thoughts to evidence that exists, and the outcome; nothing else is paid.

    R = ½[a thought, and an answer] + ½[a thought, then another look] + ½[references, all of which exist] + [as many as were asked for] + BLEU/10 + c + (1 − d)/2:
    GRIT (its released rewards). Thoughts stand between ``<think>`` and ``</think>``, another look between ``<rethink>`` and ``</rethink>``, in messages of any turn; `sampling.instruction`
    must ask for them. A reference is ``[17]`` in one of them, where the paper has boxes on a picture. The environment tells in ``info["details"]`` what ``exists``,
    by default the passages that turnwise/Search-v0 showed, and in tasks of counting the ``number`` wanted. No label says which evidence is right. BLEU is that of
    single words, of the text ``said`` against the one ``wanted``, where the environment tells it. c is the correctness: ``signal`` of the last turn, such as a
    judge's, else the outcome. d is the share of ``gram`` words in a row that stood before in thoughts and answers; the paper's form of it is not in the formula book.

    Worked by hand: all of the form, the right number, BLEU 0.5, correct, without repetition; then a passage that nobody showed, and BLEU 0.

    >>> from turnwise.trainers.kit.toy_batches import episode, with_words
    >>> told = {"read": [3, 8], "number": 1, "answer": "red kite", "gold": "red fox"}
    >>> words = ["<think>It says so in [3].</think><rethink>Yes.</rethink> red kite", "<think>It says so in [4].</think><rethink>Yes.</rethink> owl"]
    >>> group = [with_words(episode([1], details=[{**told, "answer": x[-8:]}]), [x]) for x in words]
    >>> [round(one.trajectory.total_reward, 4) for one in grit(group, number="number", wanted="gold")]
    [4.05, 3.5]

    Raises:
        RecipeError: ``gram`` is below 1.
    """
    if gram < 1:
        raise RecipeError(f"reward 'grit': gram={gram} cannot be below 1.", "Set it to 1 or more.")

    def score(episode: Episode, turns: Turns) -> float:
        text = "\n".join(turn.action.content for turn in turns)
        thoughts = _thoughts(text)
        tags = [tag for tag, _ in thoughts]
        thinks = "<think>" in tags
        found = {*REFERENCE.findall(" ".join(inner for _, inner in thoughts))}
        form = thinks and has_answer(episode, turns)
        again = thinks and "<rethink>" in tags[tags.index("<think>") :]
        valid = bool(found) and found <= {*told_list(turns, exists)}
        counted = len(found) == turns[-1].details.get(number)
        alike = bleu(words_of(told_text(turns[-1], said)), words_of(told_text(turns[-1], wanted)))
        right = signal_of(turns[-1], signal) if signal else part_total(turns, "outcome")
        new = 1 - repeated(words_of(text), gram)
        return (form + again + valid + new) / 2 + counted + alike / 10 + right

    return [
        replace_turns(one, lambda turns, one=one: paid_instead(turns, score(one, turns)) if turns else turns)
        for one in group
    ]


def _thoughts(text: str) -> list[tuple[str, str]]:
    """The opening tag of each thought, and what it holds."""
    parts = TAG.split(text)
    every = zip(parts[1::2], parts[2::2], parts[3::2], strict=False)
    return [(tag, inner) for tag, inner, after in every if after == tag.replace("<", "</")]


def bleu(said: list[str], wanted: list[str]) -> float:
    """BLEU of single words: the share of the words said that are wanted, less for a text that is too short.

    >>> bleu("the red kite".split(), "a red kite".split()), round(bleu(["red"], ["red", "kite"]), 4)
    (0.6666666666666666, 0.3679)
    """
    shared = (Counter(said) & Counter(wanted)).total()
    return shared / len(said) * math.exp(min(0.0, 1 - len(wanted) / len(said))) if said else 0.0
