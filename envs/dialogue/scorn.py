"""Messages that are unkind to the one addressed: insults, dismissals and blame, told from reports and denials
of them.

A word alone tells little: `you are not a failure` and `you feel that you are a burden` are kind, and `the library is shut` is a
fact. What counts is said of the other, by whoever speaks.
"""

from __future__ import annotations

import re

from turnwise.envs.dialogue.actions import denied, plain, sentences, words_of

_PERSON = (
    r"(?:idiot|moron|fool|loser|liar|coward|jerk|crybaby|drama queen|weakling|brat|imbecile|creep|nobody|nuisance|burden|failure"
    r"|disappointment|disgrace|baby|mess|clown|waste of (?:\w+ )?(?:time|space|air))"
)
_CALLED = (
    r"(?:idiot|moron|fool|loser|liar|coward|jerk|crybaby|drama queen|weakling|brat|imbecile|creep|clown)"
)
_QUALITY = (
    r"(?:pathetic|stupid|dumb|useless|worthless|ridiculous|lazy|annoying|unbearable|weak|boring|ugly|incompetent|hopeless"
    r"|disgusting|insufferable|spineless|unlovable|unlikeable|arrogant|despicable|laughable|a joke)"
)
_BEING = r"(?:'re| are| were|'ve (?:\w+ )?been| have (?:\w+ )?been| look| sound| seem)"
_TURNED = "not|never|as|if|like|but|from|in|having|by|for|with"
_OF_YOU = re.compile(
    rf"\byou{_BEING} (?:(?!(?:{_TURNED})\b)\w+ ){{0,3}}(?:{_PERSON}|{_QUALITY})\b"
    rf"|\b(?:are|were) you (?:\w+ ){{0,3}}(?:{_PERSON}|{_QUALITY})\b"
    r"|\bhow (?:stupid|dumb|pathetic|lazy) (?:can|could|are|must)\b"
    r"|\b(?:should|ought to) (?:really )?be (?:\w+ )?(?:ashamed|embarrassed) of (?:yourself|you)\b|\bshame on you\b"
    r"|\byou (?:will|'ll) (?:always|only) (?:fail|ruin|lose)|\byou(?:'ll| will) (?:just )?(?:fail|lose|ruin it) again"
    r"|\byou(?:'ll| will) never (?:\w+ )?(?:be (?:good|able|anything|enough|loved)|amount|make it|succeed|manage|learn|change)"
    r"|\byou (?:always|only ever) (?:fail|ruin|mess|complain|whine|moan|do\W*$)|\b(?:nobody|no one) (?:\w+ ){0,2}(?:stand|likes?|wants?|loves?|needs?|misses|miss|listen to) you\b"
    rf"|\bhow (?:{_QUALITY}) you are\b|\bwhat an? (?:\w+ )?{_PERSON} you\b|\bcan't do anything right\b"
    r"|\byou never do anything but\b|\byou make me sick\b"
    r"|\b(?:i|we) (?:\w+ )?(?:hate|despise|can't stand|cannot stand) you\b|\byou disgust me\b"
    r"|\bright about you being\b|\byou (?:\w+ )?managed to (?:ruin|fail|mess|break|lose)\b"
    r"|\bif you were (?:only )?(?:smarter|cleverer|stronger|braver|nicer|better)\b"
)
"""Unkind phrases about the other, unless they are denied, or told as what it fears."""

_PRESUPPOSED = re.compile(
    rf"\byou (?:(?:stupid|dumb|lazy|pathetic|useless|absolute|total|complete|big|little|damn) )*{_CALLED}\b(?! (?:yourself|nobody|me|us)\b)"
    rf"|\b(?:stop|quit|don't|do not|(?:try|about) (?:you )?(?:not )?|less of) ?(?:be|being|a)? ?(?:so|such an?|a) (?:\w+ )?(?:{_PERSON}|{_QUALITY})\b"
    r"|(?:^|[,;:] ?|\b(?:just|please|now|so|and|or) )(?:shut up|get lost|go away|piss off|go to hell|grow up|suck it up|leave me alone|deal with it)\b"
    r"|\b(?:nobody|no one) (?:\w+ )?(?:cares|asked you)|\bwho (?:cares|asked you)\b|\bwhy (?:(?:would|should) (?:i|anyone|anybody)|(?:i|anyone|anybody) (?:would|should)) care\b"
    r"|\bi (?:\w+ )?(?:don't|do not|couldn't|could not) (?:\w+ )?care\b(?! (?:what (?:they|he|she|others)|whether|if|for|how long))"
    r"|\bi(?:'m| am) (?:\w+ )?(?:bored|tired|sick|fed up) (?:of|with) (?:(?:listening|talking) to |hearing |helping )?you\w*\b|\b(?:had|heard) enough of you\w*\b"
    r"|\bwaste of my\b|\bkeep your (?:\w+ )?(?:to yourself|misery|problems|tears|whining)\b|\bdo you ever stop\b"
    rf"|(?:^|, ?)(?:you,? )?{_CALLED}(?=[,.!?]|$)"
    r"|\bserves you right\b|\byou had it coming\b|\bspare me\b|(?:^|[,;:] ?)get a grip\b|\b(?:stop|quit) (?:your|the) (?:moaning|whining|crying)\b"
    r"|\bi told you so\b|\bboo hoo\b|\bcry me a river\b|\bcry about it\b|\bwhat did you expect\b"
    r"|\bi hope (?:it|this|things|that) gets? worse\b|\bi hope you (?:fail|lose|suffer)\b"
    r"|\bbrought (?:it|this|that|all of this) (?:up)?on yourself\b|\byou deserved? (?:everything|all|whatever) that happen"
    r"|\byou(?:'re| are) (?:not|hardly|never|far from) (?:\w+ )?(?:bright|clever|smart|intelligent|talented|special|likeable)\b(?! enough\?)"
    r"|\b(?:nothing like you|unlike you,)|\bwho\b.*\blike you\W*$|\b(?:every|any)(?:one|body) else (?:can|manages|copes|does it|managed)\b"
    r"|\byour (?:little |so-called )?(?:problems?|troubles?|worries|feelings?) (?:is|are) (?:\w+ )?(?:trivial|nothing|silly|laughable|boring)"
    r"|\bnothing to (?:be (?:upset|sad|angry)|cry|whine|complain) about\b|\b(?:should|better|might as well|can) just give up\b"
    r"|\b(?:no wonder|surprising|sense)(?: that)? (?:\w+ ){1,2}(?:left|leaves?|dumped|hates?|avoids?) you\b"
)
"""Phrases that are unkind by their form; a denial before them makes them no better, except as ``never``,
``nobody would say``."""

_REPORTED = re.compile(
    r"\byou(?:'re|'ve)? (?:\w+ ){0,3}(?:think|thinking|thought|feel|feeling|felt|believe|fear|worry|worried|afraid|say|said|sure|sometimes)\b(?:(?!\b(?:because|since)\b)[^,;:.!?])*$"
    r"|\b(?:told|tells?|telling|makes?|made|making|call(?:s|ed)?) (?:you|yourself)\b(?:(?!\b(?:because|since)\b)[^,;:.!?])*$"
    r"|\b(?:to|as if|as though|like|does not mean|doesn't mean|feels?|seems?|whether|that voice) (?:\w+ ){0,4}$"
)
"""Text before something that others say, or that the other thinks of itself."""

_BARE = 3  # words, of which an insult alone is one
_INSULT = re.compile(rf"\b(?:{_CALLED}|{_QUALITY}|shut up)\b")


def scorns(text: str) -> bool:
    """Say whether a message is unkind to the one addressed.

    >>> scorns("You are such a loser."), scorns("You feel that you are a loser?"), scorns("You're not a loser.")
    (True, False, False)
    >>> scorns("Shut up."), scorns("Is the library shut?"), scorns("I'm useless with plants.")
    (True, False, False)
    """
    return any(map(_scorns, sentences(plain(text))))


def _scorns(sentence: str) -> bool:
    for found in _OF_YOU.finditer(sentence):
        start = found.start()
        if not (denied(sentence, start) or _REPORTED.search(sentence[:start])):
            return True
    if any(not _REPORTED.search(sentence[: found.start()]) for found in _PRESUPPOSED.finditer(sentence)):
        return True
    words = words_of(sentence)
    return (
        len(words) <= _BARE
        and not {"i", "not", "no", "me"} & {*words}
        and _INSULT.search(sentence) is not None
    )
