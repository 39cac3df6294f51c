"""Judges answers by exact match, F1 and contained match, on normalised words.

As in SQuAD and Search-R1: lower case, no punctuation, no articles, single spaces. Different from them: a
point or a minus sign inside a number is kept ("3.5" is not "35"), and numbers are compared as numbers.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from turnwise.envs.worlds.vocabulary import NUMBERS

UNKNOWN = "unknown"
_ABSTENTION = (
    r"unknown|undetermined|unanswerable|no answer|insufficient information|no information(?: available| found)?"
    r"|(?:it is )?not (?:known|stated|found|mentioned|specified|given|told|recorded|available|answerable)"
    r"|(?:no|none of(?: these)?) (?:page|passage|source|document)s? (?:tell|say|state|mention|give)s?(?: it| this| so)?"
    r"|(?:i )?(?:do not|dont) know|(?:it )?(?:cannot|can not|cant) (?:be )?(?:answered|determined?|known|said)"
    r"|(?:there is )?no such \w+(?: exists)?"
)
_ABSTENTIONS = re.compile(rf"(?:{_ABSTENTION})(?: (?:{_ABSTENTION}))*")
"""Normalised answers that say that the question cannot be answered from the corpus, and maybe why."""

_FRAME = frozenset(
    ["final", "answer", "is", "it", "its", "was", "in", "year", "there", "are", "that", "would", "be"]
)
"""Words before an answer that make it a sentence."""
_SPELT = frozenset(NUMBERS[1:9])

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_JUNK = re.compile(r"(?<!\d)[.,](?=\d)|[.](?!\d)|(?<=\d),(?=\d)|(?<=\w)-|-(?!\d)|[^\w\s.-]|_")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LONG_ANSWER = 4  # words beside the right ones, at most


class AnswerVerdict(NamedTuple):
    """Scores of an answer by each measure, all between 0 and 1."""

    em: float
    f1: float
    sub_em: float


def normalise(text: str) -> str:
    """The words that count.

    >>> normalise("The Mills, of  Velmora!"), normalise("1,204"), normalise("3.5 m.")
    ('mills of velmora', '1204', '3.5 m')
    """
    text = unicodedata.normalize("NFKC", text).lower().replace("'", "").replace("’", "")
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    return " ".join(_ARTICLES.sub(" ", _JUNK.sub(" ", text)).split())


def bare(answer: str, question: str) -> str:
    """An answer without the sentence around it, normalised: no words before it that only lead up to it, and after a
    number none of the words of the question. Names in the little worlds begin with none of these words.

    >>> bare("The answer is Velmora.", "Where?"), bare("5 cities", "Count the cities."), bare("in 1904", "When?")
    ('velmora', '5', '1904')
    """
    words = normalise(answer).split()
    begin = next((at for at, word in enumerate(words) if word not in _FRAME), 0)
    words = words[begin:]
    asked = {word for word in normalise(question).split() if not _NUMBER.fullmatch(word)}
    if words and (_NUMBER.fullmatch(words[0]) or words[0] in _SPELT) and asked.issuperset(words[1:]):
        words = words[:1]
    return " ".join(words)


def abstains(answer: str) -> bool:
    """Say whether an answer says that there is none, and says nothing else."""
    return _ABSTENTIONS.fullmatch(normalise(answer)) is not None


def judge(answer: str, golds: Sequence[str], rivals: Iterable[str] = ()) -> AnswerVerdict:
    """Score ``answer``; the best over all accepted answers.

    Contained match (SubEM) asks that the gold stands in the answer as whole words, that the answer has at
    most four words more, and names none of the ``rivals`` and no other number as long as one that is right: an
    answer that lists candidates is none.

    >>> judge("It is Velmora.", ["Velmora"], ["Karvun"])
    AnswerVerdict(em=0.0, f1=0.5, sub_em=1.0)
    >>> judge("Karvun or Velmora", ["Velmora"], ["Karvun"]).sub_em
    0.0
    """
    if any(abstains(gold) for gold in golds):
        return AnswerVerdict(*[float(abstains(answer))] * 3)
    words = normalise(answer).split()
    accepted = [accepted for gold in golds if (accepted := normalise(gold).split())]
    if not words or abstains(answer):
        return AnswerVerdict(0.0, 0.0, 0.0)
    em = any(_equal(words, gold) for gold in accepted)
    f1 = max((_f1(words, gold) for gold in accepted), default=0.0)
    named = [words_ for rival in rivals if (words_ := normalise(rival).split()) and words_ not in accepted]
    listed = any(
        _contains(words, rival) and not any(_contains(g, rival) for g in accepted) for rival in named
    )
    inside = any(
        _contains(words, gold) and len(words) <= len(gold) + _LONG_ANSWER and not _numbers_beside(words, gold)
        for gold in accepted
    )
    return AnswerVerdict(float(em), f1, float(em or (inside and not listed)))


def squad_normalise(text: str) -> str:
    """The words that count as SQuAD has it, which HotpotQA, FlashRAG and Search-R1 follow: a point in a number counts for nothing.

    >>> squad_normalise("The  Mills, of U.S.A. 3.5")
    'mills of usa 35'
    """
    bare = "".join(each for each in text.lower() if each not in string.punctuation)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def squad_judge(answer: str, golds: Sequence[str]) -> AnswerVerdict:
    """Score ``answer`` as it was published: the best over all accepted answers, and F1 0 where one of both is a mere yes or no.

    >>> squad_judge("It is the Velmora", ["Velmora"])
    AnswerVerdict(em=0.0, f1=0.5, sub_em=1.0)
    >>> squad_judge("yes it is", ["yes"]).f1, squad_judge("3.5", ["35"]).em
    (0.0, 1.0)
    """
    said = squad_normalise(answer)
    scores = [AnswerVerdict(0.0, 0.0, 0.0)]
    for gold in map(squad_normalise, golds):
        closed = {said, gold} & {"yes", "no", "noanswer"} and said != gold
        f1 = 0.0 if closed else _f1(said.split(), gold.split())
        scores.append(AnswerVerdict(float(said == gold), f1, float(gold in said)))
    return AnswerVerdict(*map(max, zip(*scores, strict=True)))


def _equal(words: Sequence[str], gold: Sequence[str]) -> bool:
    if len(words) == len(gold) == 1 and _NUMBER.fullmatch(words[0]) and _NUMBER.fullmatch(gold[0]):
        return float(words[0]) == float(gold[0])
    return words == gold


def _numbers_beside(words: Sequence[str], gold: Sequence[str]) -> bool:
    """Say whether a number that is right stands beside others of its length: "1903 or 1904"."""
    if len(gold) > 1 or not _NUMBER.fullmatch(gold[0]):
        return False
    return any(word != gold[0] and len(word) == len(gold[0]) and _NUMBER.fullmatch(word) for word in words)


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    return any(words[i : i + len(part)] == part for i in range(len(words) - len(part) + 1))


def _f1(words: Sequence[str], gold: Sequence[str]) -> float:
    same = sum((Counter(words) & Counter(gold)).values())
    return 2 * same / (len(words) + len(gold)) if same else 0.0
