"""Speech acts out of words: what is said in a message, and what kind of words stand in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from turnwise.envs.acting import calls_or_words
from turnwise.envs.dialogue.vocabulary import AGREE, GREET, LEAVE, word_set
from turnwise.envs.messages import Message
from turnwise.envs.worlds.one_command import said_beside_thoughts
from turnwise.envs.worlds.sessions import SpokenMessage
from turnwise.tools.core import Tool, ToolError, find_tool, tool

_WORD = re.compile(r"[a-z]+|\d+")
_LEAVING = re.compile(
    r"\b(?:(?:(?<!i )(?<!to )|(?:was|been) (?:\w+ ){1,2}to |hope to )see you\b(?! (?:are|re|want|need|have|do|like|often))|take care$|so long"
    r"|until (?:next|later|tomorrow)|good night|talk (?:soon|later)"
    r"|(?:have|enjoy|wish you|wishing you)(?: an?| your| the rest of your)?(?: very)?(?: nice| good| great| lovely| wonderful)? day$)"
    r"|^(?:nice|good|great) day$"
)
_GREETING = GREET - word_set("morning evening")  # "see you in the morning"
_FIRM = word_set("bye goodbye farewell")
_STAYING = re.compile(
    r"\b(?:leave (?:it|that|this|the|out|me|us|you|my|your|aside|room)|(?:not|n t|don t|before (?:i|we|you)|rather than|never)(?: \w+){0,3} (?:leave|quit))\b"
)
"""Phrases with a word of leaving that take no leave."""

_LONGEST = 2000  # characters of what is said
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_CLAUSE = re.compile(r"[,;:.!?()\u2013\u2014]| - |\bbut\b|\bbecause\b")
_ASKING = re.compile(
    r"(?:so |and |well |ok |okay |then )*(?:what|which|why|how|where|who|when|is|are|am|do|does|did|can|could|would|will|have|has"
    r"|should|shall|may|might)\b"
)
_DENIAL = re.compile(
    r"\b(?:not|never|no|nothing|nobody|hardly|without|neither|nor|cannot|\w+n't|stop|far from)(?!\w)"
)
_NO_DENIAL = re.compile(
    r"no (?:wonder|doubt|surprise|matter how)|not (?:only|just|surpris\w+|to mention)|(?:do not|don't) know how"
    r"|(?:can't|cannot|can not) (?:imagine|believe|tell you|even|be easy|have been easy)|(?:is|was|are|do|does|did|have|has)n't (?:you|it|that)\b"
    r"|why not|why don't|not many|nobody else"
)
_REACH = 4
_WEAK = word_set("a an the at all so very really that too even in any to be")
_STOPS = word_set("to that when if since as for how why")
_CARRIES = word_set(
    "have need seem want going appear sound feel look get got reason be say think believe mean tell call let suggest"
)
"""After these a denial goes on past ``to``: you do not have to be afraid."""

_HARMLESS = re.compile(
    r"no (?:problem|objections?|worries|doubt|complaints?)|not bad(?: at all)?|why not\b(?!.*\?)|(?:do not|don't) mind"
    r"|(?:do not|don't) need to think(?: about (?:it|that))?|(?:can not|can't|cannot) (?:complain|say no|argue with (?:that|this|it))"
    r"|(?:will not|won't) (?:argue|haggle)(?: any (?:more|longer| further))?|\bany ?more\b|more than (?:happy|fair|enough|glad)"
)
"""Phrases that sound like an objection and are none."""

_OBJECTION = re.compile(
    r"\b(?:but|however|though|although|unless|if|whether|except|instead|rather|yet|almost|hardly|barely|not|never|no|nope|neither|nor|none"
    r"|without|cannot|\w+n't|don|won|maybe|perhaps|might|could|should|better|worse|more|less|until|before|once|when|hope|wish|wonder"
    r"|unsure|doubt|afraid|sorry|breaker|reject|refuse|decline|disagree|need|hear|else|far|soon|impossible|only|provided|best)(?!\w)"
    r"|\btoo \w|\bsee (?:your|what|that|how)|as long as|let me think|think (?:about|it over)|i would (?!be (?:glad"
    r"|happy|delighted|pleased))|i'd (?!be (?:glad|happy|delighted|pleased))"
)
_COURTESY = AGREE - {"accept", "agree", "agreed", "deal"} | word_set(
    "fine good great well then thanks thank you so much very alright all right now please perfect wonderful excellent lovely oh ah "
    "friend neighbour and right many a lot for that the offer your kindly certainly absolutely definitely of course"
)
_ACCEPTING = re.compile(
    r"(?:i )?(?:accept(?:ed)?|agreed?|deal|done)\b(?! (?:my|mine|our|or|breaker|that|with you|we)\b)|settled$"
)
"""Beginnings of a part of a sentence that accepts."""

_ACCEPTED = re.compile(
    r"\bi(?:'ll| will| do| can|'m| am|'d| would| hereby| gladly| happily| fully| also|(?: be)? (?:glad|happy|pleased|delighted|ready|willing) to)*"
    r" (?:accept\b(?! that (?:you|we|i|it|this|there)\b)|agree\b(?! (?:that|with you|we)\b))"
    r"|\b(?:it's|it is|that's|that is|this is|we have|we've got|you have|you've got(?: yourself)?|have"
    r"|call it) an? (?:\w+ )?deal\b(?! (?:breaker|to)\b)"
    r"|\b(?:fine|good|okay|ok|great|acceptable|alright|agreeable|perfect) (?:with|by|for|to) me\b|\bsuits me\b"
    r"|\bworks (?:well |fine )?for me\b|\bsounds (?:\w+ )?(?:good|fair|great|fine|perfect|reasonable|right)\b"
    r"|\b(?:happy|content|satisfied|pleased|fine|okay|glad|good|comfortable) with (?:that|it|this|your|the|those|these|what)\b"
    r"|\bi(?:'ll| will| can|'d| would| gladly| happily| shall)* (?:take (?:it|that|this|your|the)\b"
    r"|live with (?:that|it|this)|say yes|go (?:along )?with (?:that|it|this|your))"
    r"|\blet(?:'s| us) (?:do (?:it|that|this)|shake|close|sign|go (?:ahead )?with|make it official|seal)|\bi(?:'m| am) in\b(?! \w)|\bcount me in\b"
    r"|\b(?:consider it|that's|it's|we're|we are|all) (?:settled|done|agreed)|\bmy agreement\b|^(?:that|this"
    r"|it) is (?:fine|acceptable|agreed|okay|ok)$|^(?:that|this|it)'s (?:fine|acceptable|agreed|okay|ok)$"
    r"|\b(?:we|you and i)(?:'re| are)? agreed?$|\bacceptable (?:offer|deal|to us)\b|^you win$|\bgladly accept"
)


def say(text: str) -> str:
    """Say something to the other, in plain words."""
    return text


SAY = tool(say)


def read_message(action: Message, tools: Sequence[Tool]) -> SpokenMessage:
    """Read what is said in a message, in its text or in the one call of ``say``, in any notation.

    Raises:
        ToolError: there is nothing in it, or too much.
    """
    text = _text(action, tools)
    if len(text) > _LONGEST:
        raise ToolError(f"Say at most {_LONGEST} characters.")
    words = tuple(_WORD.findall(text.lower()))
    if not words:
        raise ToolError("Say something.")
    sayable = "".join(sign if sign.isprintable() else " " for sign in text)
    return SpokenMessage(words, sayable)


def _text(action: Message, tools: Sequence[Tool]) -> str:
    found = calls_or_words(action, tools, 1).calls
    return (
        find_tool(tools, found[0].name).validate(found[0])["text"]
        if found
        else said_beside_thoughts(action.content)
    )


def has(words: Sequence[str], family: Collection[str]) -> bool:
    """Say whether a word of the family is there.

    >>> has(("i", "agree", "then"), AGREE)
    True
    """
    return any(word in family for word in words)


def plain(text: str) -> str:
    """A text in small letters, without thoughts of typography.

    >>> plain("It\u2019s Fine")
    "it's fine"
    """
    return text.lower().replace("\u2019", "'")


def spoken_text(said: SpokenMessage) -> str:
    """Return what was said as :func:`plain` text; the words alone where a script gave no more than them.

    >>> spoken_text(SpokenMessage(("no", "deal"), "No deal!"))
    'no deal!'
    """
    return plain(said.text or " ".join(said.words))


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in small letters.

    >>> words_of("it's 5 .")
    ('it', 's', '5')
    """
    return tuple(_WORD.findall(text))


def sentences(text: str) -> list[str]:
    """Sentences with the marks that end them.

    >>> sentences("oh . are you well ?")
    ['oh .', 'are you well ?']
    """
    return [part.strip() for part in _SENTENCE.findall(text) if _WORD.search(part)]


def is_question(sentence: str) -> bool:
    """Say whether a sentence asks: by its mark, or, where it has none, by its first word.

    >>> is_question("fine , is it ?"), is_question("is that your best"), is_question("what a day .")
    (True, True, False)
    """
    if "?" in sentence:
        return True
    return _ASKING.match(sentence) is not None and not sentence.endswith((".", "!"))


def denied(text: str, start: int) -> bool:
    """Say whether what begins at ``start`` is denied by a word shortly before it, in the same part of the
    sentence.

    >>> denied("you are not angry", 12), denied("it is not silly to be angry", 22), denied("no wonder , angry", 12)
    (True, False, False)
    """
    masked = _NO_DENIAL.sub(lambda found: "x" * len(found[0]), text)[:start]
    clause = _CLAUSE.split(masked)[-1]
    found = list(_DENIAL.finditer(clause))
    if not found:
        return False
    between = clause[found[-1].end() :].split()
    away = [word for word in between if word not in _WEAK]
    return len(away) <= _REACH and not any(
        word in _STOPS and at > 0 and between[at - 1] not in _CARRIES for at, word in enumerate(between)
    )


def agrees(text: str) -> bool:
    """Say whether a message accepts: it neither asks, objects, hedges nor denies, and says so in a way that
    people do.

    >>> agrees("ok , it is a deal ."), agrees("is that your best deal ?"), agrees("ok , but i need more .")
    (True, False, False)
    """
    text = _HARMLESS.sub(" ", plain(text))
    said = [sentence for sentence in sentences(text) if not is_question(sentence)]
    if len(said) < len(sentences(text)) or _OBJECTION.search(text):
        return False
    return any(map(_accepts, said))


def _accepts(sentence: str) -> bool:
    """Say whether a sentence accepts in so many words; a bare yes does only where nothing else is said."""
    parts = [" ".join(part.split()) for part in re.split(r"[,;:.!\u2013\u2014]| - ", sentence)]
    rest = [" ".join(word for word in part.split() if word not in _COURTESY) for part in parts if part]
    if any(_ACCEPTING.match(part) or _ACCEPTED.search(part) for part in (*parts, *rest)):
        return True
    return not any(rest) and has(_WORD.findall(sentence), AGREE)


def leaves(said: SpokenMessage) -> bool:
    """Say whether a message takes leave: in so many words, or by a wish for the way in one that neither
    greets nor asks.

    >>> leaves(SpokenMessage(("see", "you", "tomorrow"))), leaves(SpokenMessage(("i", "see", "your", "point")))
    (True, False)
    >>> leaves(SpokenMessage(("take", "it", "or", "leave", "it"))), leaves(SpokenMessage(("nice", "to", "see", "you")))
    (False, False)
    """
    text = _STAYING.sub(" ", " ".join(said.words))
    if has(text.split(), _FIRM):
        return True
    if has(said.words, _GREETING) or any(map(is_question, sentences(spoken_text(said)))):
        return False
    return has(text.split(), LEAVE) or _LEAVING.search(text) is not None


def named(words: Sequence[str], families: Mapping[str, Collection[str]]) -> list[str]:
    """Names of the families that a word comes from, in the families' order.

    >>> named(("too", "expensive"), {"cost": {"cost", "expensive"}, "time": {"time"}})
    ['cost']
    """
    return [name for name, family in families.items() if name in words or has(words, family)]
