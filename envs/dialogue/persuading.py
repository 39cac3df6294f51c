"""Meaning of a message to somebody who is to be won: its words for worries and arguments, its questions,
whether it asks for a yes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from turnwise.envs.dialogue.actions import has, is_question, named, sentences, words_of
from turnwise.envs.dialogue.vocabulary import INCIDENTAL, word_set

REQUEST = frozenset(["join", "joining", "joined", "sign", "signing", "commit", "convinced", "agree", "enrol"])
_YES = (
    r"(?:join\w*|in(?= ?(?:\W|$))(?= ?[?.!,]|$)|come\b(?: along| with us| too)?|take part|be (?:a )?part|sign\w*"
    r"|commit\w*|agree|decide|count on you|your yes"
    r"|with us|on board|convinced|name down|put you down|say yes|enrol\w*)"
)
_ASKS_FOR_YES = re.compile(
    rf"(?:will|would|won't|wouldn't|can|could|do|are|shall|may|might|have) (?:i|you|we)\b[^,.!?]*?\b{_YES}|\bhow about joining|\bwhat do you say,"
    rf"|^(?:so|please|then|come|and|well|now|just|, | )*(?:join|sign|commit|decide|say yes|agree)\b|\bjoin (?:us|in"
    rf"|now|today)\b|\bcome (?:and join|along)\b"
    rf"|\b(?:love|glad|happy|delighted|like|want|hope)\b[^,.!?]*\b(?:join\w*|take part|part of)|\bready to {_YES}|(?:^|, )(?:yes|in) ?\?"
)
"""Phrases that ask for a yes."""

_WH = re.compile(r"\b(?:what|which|why|how|where|who|when|if|before|whether)\b[^,.!?]*$")
_HOLDS_BACK = re.compile(r"\b(?:hold\w*|keep\w*|stop\w*|put\w*) you\b|\bgives? you pause")
_WORRY = word_set(
    "worry worries worried concern concerns concerned doubt doubts fear fears bother bothers hesitate hesitation hesitant reservation "
    "reservations objection objections misgivings dislike unsure uneasy problem problems"
)
_INVITING = word_set(
    "share hear tell name voice say know discuss talk understand listen open raise learn mention speak"
)
_IDIOM = re.compile(
    r"\b(?:first|last|this|next|every|each|one|any|same|at the|all the|some|your own) time\b|\bno trouble\b"
    r"|\bsounds? (?:good|like|as|great)\b|\bi believe\b"
    r"|\bbelieve me\b|\btrust me\b|\bhard to say\b|\bas long as\b|\bbefore long\b|\bof course\b"
)
"""Idioms that have a word of a worry in them and speak of none."""
_CLAIMS = re.compile(
    r"\b(?:did|do) you know\b|\bhave you heard\b|\b(?:isn't|aren't|don't|doesn't|wouldn't|haven't)\b|, (?:right|no) ?\?"
)
"""Forms of a question that tells something."""

_OF_WHAT_SETTLES = re.compile(
    r"\b(?:convinc\w+|reassur\w+|persuad\w+|at ease|ease your|help\w*|settle\w*|comfortable|confident|change your mind|need to"
    r"|would you (?:need|want)|resolve|address|overcome|make (?:it|that|this) (?:\w+ )?(?:work|acceptable|easier|possible)"
    r"|(?:more )?about (?:that|it|this))\b|\btell me more\b"
)
"""Questions, about the worry that was just told, for what would settle it."""

_OPEN_WORDS = frozenset(["what", "which", "where", "when", "ask"])
_SENTENCE = 4  # words, from which a kind of argument alone may speak of what was told


def without_idioms(text: str) -> str:
    """A text without idioms that have the words of a worry.

    >>> without_idioms("all the time , of course .").split()
    [',', '.']
    """
    return _IDIOM.sub(" ", text)


def tells(text: str) -> bool:
    """Say whether an argument that names no worry can be meant for the one that was told: a sentence, and no
    open question.

    >>> tells("my neighbour did it and is happy ."), tells("what would you test ?"), tells("story")
    (True, False, False)
    """
    words = words_of(text)
    return len(words) >= _SENTENCE and not has(words, _OPEN_WORDS)


def asks_of_worries(text: str) -> bool:
    """Say whether there is a question, or an invitation to speak of worries."""
    words = words_of(text)
    return any(map(is_question, sentences(text))) or (has(words, _WORRY) and has(words, _INVITING))


def asks_what_settles(text: str) -> bool:
    """Say whether a message asks what would settle the worry that was told, without a name for the worry.

    >>> asks_what_settles("what would reassure you ?"), asks_what_settles("what worries you ?")
    (True, False)
    """
    return _OF_WHAT_SETTLES.search(text) is not None and not asks_for_yes(text)


def told_in(text: str) -> str:
    """The part of a message that tells something: without the questions, which claim nothing.

    >>> told_in("i see . would a trial help with the cost ?")
    'i see .'
    """
    return " ".join(
        sentence for sentence in sentences(text) if not is_question(sentence) or _CLAIMS.search(sentence)
    )


def asks_for_yes(text: str) -> bool:
    """Say whether a message asks for a yes, and not for what keeps from it.

    >>> asks_for_yes("so , will you come ?"), asks_for_yes("what would make you join ?"), asks_for_yes("you can come first .")
    (True, False, False)
    """
    if _HOLDS_BACK.search(text) or any(map(_asks_of_doubt, sentences(text))):
        return False
    for sentence in sentences(text):
        found = _ASKS_FOR_YES.search(sentence)
        words = words_of(sentence)
        short = has(words, REQUEST) and (is_question(sentence) or len(words) <= _SENTENCE)
        if (found and not _WH.search(sentence[: found.start()])) or (
            short and not _WH.match(sentence.rstrip("?!. "))
        ):
            return True
    return False


def _asks_of_doubt(sentence: str) -> bool:
    """Say whether a sentence is a question about doubts, and no more than that."""
    doubt = is_question(sentence) and has(words_of(sentence), _WORRY)
    return doubt and _ASKS_FOR_YES.search(sentence) is None


def spoken_of(words: Sequence[str], families: Mapping[str, Collection[str]]) -> list[str]:
    """Name what the words speak of: by plain words, or, where there are none, by incidental ones.

    >>> from turnwise.envs.dialogue.vocabulary import TOPICS
    >>> spoken_of("your wallet is safe".split(), TOPICS), spoken_of("it is safe".split(), TOPICS)
    (['cost'], ['safety'])
    """
    plainly = named([word for word in words if word not in INCIDENTAL], families)
    return plainly or named(words, families)
