"""Clauses that ask for a yes, told by what they are made of and not by how they are worded.

People ask for a yes in endless words, but with few means. A question does so where it is about what the speaker may do
("Do I push the button?"), where it asks whether the listener or the matter is in a state of assent ("Content?", "Is that
to your liking?"), or where it is a bare deed ("Grab it?"). A statement does so where it makes the deed depend on a sign
of assent ("with your nod") or on a condition that only the listener can fulfil ("if that is no obstacle"). What asks
about the past, about facts or about things that the listener has is none.
"""

from __future__ import annotations

import re

from turnwise.envs.toolworld.speech.ways import GuardedPattern
from turnwise.envs.toolworld.speech.words import plain_words

_STATES = (
    r"okay|fine|good|happy|content|contented|comfortable|keen|interested|game|willing|agreed|agreeable|agree|accept\w*|"
    r"approve|consent|fancy|alright|all right|cool|pleased|satisfied|tempted|sold|convinced|convenient|reasonable|"
    r"suit\w*|appeal\w*|tickle|to your (?:liking|taste)|okey[- ]?dokey|objections?|object|opposed|against it|in favou?r|"
    r"on board|up for|ready|sure|certain|positive|down (?:with|for)|at ease|aboard|yay|yeah|yep|yup|deal|worth (?:it|that)|"
    r"like|want|wish|care (?:to|for)|prefer|love|dream|sound\w*|feel about|go for|go with|take (?:it|that|this|them)|say yes|"
    r"proceed|mind(?! \w+ing)|bother|hesitate|go ahead|right(?! now| away| here| there)|correct|make sense|qualms|doubts|reservations about|settle (?:it|that|this)|"
    r"do the (?:trick|job)|hit the spot|meet your|enough|permission|blessing|nod|thumbs|say-so|green light|yes|approval|vote|confirm|have (?:me|us)|along with|in agreement|in order"
)
_STATE = GuardedPattern(rf"\b(?:{_STATES})\b")
_SIGN = (
    r"(?:nod|thumbs?[- ]?up|say-so|say so|word|blessing|green light|go-ahead|yes|yeah|yep|okay|permission|approval|consent|"
    r"confirmation|sign-off|signoff|agreement|all-clear|clearance|authori[sz]ation|thumb|shout|signal|verdict|decision|answer|affirmative)"
)
_WAITS_FOR = GuardedPattern(
    rf"(?<!\bwithout )(?:\b(?:with|once|upon|on|after|when|as soon as|pending|await(?:ing)?|needs?|want|waits? for|waiting for|give|gives|"
    rf"given|giving|got|get|have|having|just|only|all i|subject to|say|tell|drop|send|reply|answer|type|is|at|for)(?: (?:me|us|i have|i get|get|the|a|an|"
    rf"your|quick|clear|simple|firm|short|final|little|just|with|your own|you give|is|from|missing|one|formal|explicit|for|need|needed|of)){{0,5}} ['\"(]?{_SIGN}\b['\")]?)"
    r"(?! (?:to|of|that|number|code|e-?mail|letter|lights?|for (?:a|one|\d)|with (?:the|that|our)|on (?:the )?(?:line|hold|with)|through|what|how|over|is (?:no|that))\b)"
)
_LIGHTLY = GuardedPattern(
    r"\b(?:shout|holler|whistle|ping|nod|yell|sing out|speak up|speak now|text|buzz|say yes|tell me yes|be my guest|your call|up to you|your choice|you decide|you choose|give a (?:yes|nod|shout))\b"
)
_ANSWER_ME = GuardedPattern(
    r"\b(?:say|tell (?:me|us)|let (?:me|us) know|reply|answer|indicate|signal)\b.{0,25}\b(?:agree\w*|approve|accept|in agreement|happy|fine with|in favou?r|want (?:it|that|this|me)|so: do you)\b|"
    r"\b(?:tell|let|ask|give)(?:ing)? (?:me|us)\b.{0,15}\b(?:to (?:proceed|go ahead|do (?:it|so|that)|start|continue|carry on)|that you (?:want|would like|agree)|(?:that )?i (?:should|may|can))\b|"
    r"\bhear(?:ing)?\b.{0,14}\b(?:that you (?:want|agree|would like)|from you (?:that|whether|if)\b|from you\b.{0,10}\bi (?:should|may|can))\b|"
    r"\b(?:i|we) (?:will |would |can |do |am )*(?:not|nothing|never|no)\b.{0,60}\b(?:without|until|unless|before|till) (?:hearing|you (?:say|tell|agree|approve|nod|want|decide)|your (?:yes|word|okay|say-so|nod|approval|consent|go-ahead|permission|blessing|agreement)|i (?:hear|have|get|am told))\b"
)
_TOLD_PAST = GuardedPattern(
    r"\b(?:thank\w*|(?:would|could|might) have|have liked|i needed|we needed|received?|gave|given me|noted|already|you said|you confirmed|got it|has been|was|were|email|text message|sent)\b"
)
_IF = r"(?:if|provided(?: that)?|providing|assuming(?: that)?|as long as|so long as|supposing|in case|should|unless)"
_YOU_AGREE = rf"you (?:are|feel|would(?! be so| please| kindly| mind)|will(?! please)|do(?! not mind \w+ing)|also|still|too|indeed|really|all|both|just|have no|have nothing|give (?:me|us|it|your)|let|can live with|say|tell|(?:{_STATES}))\b"
_IT_SUITS = (
    r"(?:that|this|it|those|these|which|nothing|nobody|no one|there (?:is|are) (?:no|nothing)|that figure|that price|the (?:price|figure|sum|amount|"
    r"cost|fare|difference|charge|fee|date|time|flight|address|plan|offer|terms|deal)|\$[\d.,]+\d|\d+ (?:dollars?|bucks))"
)
_CONDITION = GuardedPattern(
    rf"\b(?:once|as soon as|when|the (?:moment|minute|second|instant)|after|till|until) you (?:have |just |do )?(?:agree|consent|approv|accept|say (?:yes|so|the|okay|go)|confirm(?! (?:your|the (?:email|pin|zip|name)))|nod|authori[sz]|give (?:me|us|your)|okay|give the)\w*|^(?:just )?(?:tell|say|let) (?:me |us )?when$|, (?:just |please |simply )*confirm$|"
    rf"\b{_IF} (?:{_YOU_AGREE}(?!.*\b(?:abroad|overseas|verified|eligible|see|hear|call|calling|restart|turn|switch|pay|paid)\b)|(?:i|we) (?:have|get|may|can have|hear)\b.*\b{_SIGN}\b|"
    rf"{_IT_SUITS}(?: \S+){{0,6}}? (?:{_STATES}|no (?:obstacle|problem|issue|trouble|bother|hurdle)|works?|works for you|is all|not too|isn't|"
    rf"acceptable|what you|you))"
)
_ABOUT_FACTS = re.compile(
    r"^(?:and |so |but |then )*(?:what|which|who|whose|whom|when|where|why|how(?! (?:do|does|would|about|did) (?:you feel|that|this|it|you like(?! to\b)))|"
    r"since when|(?:.*, )?(?:where|when|how (?:much|many)|what) (?:would|do|shall|should|is|are)|did|was|were|had|has|does (?:your|the|anybody|anyone|somebody)|do (?:your|the|they|people)|have you|have they|are (?:there|they|your|the)|is (?:there|your|the|he|she|somebody|anybody|anyone)|"
    r"(?:do|did|would|are|can|could|will) you (?:\w+ly )?(?:know|remember|recall|happen|have(?! (?:me|us|it|that)\b)|see|hear|get|mean|use|own|live|still (?:have|see)|able|abroad|tell|give|say|share|send|repeat|spell|try|turn|switch|"
    r"restart|travel\w*|calling|speaking|trying|using|the|at|near|on (?:a|the|your|wi-?fi)|in (?:a|the|your|another))|"
    r"(?:can|could|will) you(?! (?:take|have|accept|agree|go (?:for|with)|approve|settle|want|like|be (?:okay|fine|happy)|let)\b))\b"
)
_WHO = re.compile(
    r"^(?:and |so |but |then |now )*(?:(?:would|will|do|does|is|are|can|could|may|might|shall|should|have|am|did) )?"
    r"(?:still |really |all |both |also |just |perhaps |maybe )*(?:you|i|we|me|us|that|this|it|these|those|one|everything|all|\$[\d.,]+\d|any|no|so|how|not)\b"
)
_SPEAKER_ACTS = re.compile(
    r"^(?:and |so |but |then |now )*(?:can|could|may|might|shall|should|do|am|would|will|have|must) (?:i|we) "
    r"(?!(?:just |please |kindly |also |now |first |quickly )*(?:ask|have\b(?! your (?:okay|go-ahead|permission|blessing|approval|consent|word|yes|nod|vote|confirmation(?! (?:number|code))))|get(?! (?:you\b|it\b|that|this|going|started|on with|\w+ (?:on|to|out|off|up)\b))|know|help|assist|take (?:a|your|down)|see|look|check|trouble|bother|borrow|note (?:down )?your|"
    r"grab your|collect|be of|do for|do anything|count on|hear|speak|talk|call you|reach|find|verify|offer any|wait|suggest you|be|tell|explain|say|start by|begin by|remind|mention|point out)\b)"
)
_PASSIVE = re.compile(
    r"^(?:and |so |but |then |now )*(?:should|shall) (?!(?:i|we|you|he|she|they|there|any)\b)(?:\S+ ){1,5}?(?:(?:be|get) \w+(?:ed|en|t)\b|(?:go|come) (?:to|on|back to) (?!.*\bor\b)\S*\d)"
)
"""Question about a thing, whether something is to happen to it."""
_BARE_DEED = re.compile(
    r"^(?:so |then |and |shall |just )*(?:go|[a-z]{3,})(?: (?:up|in|out|off|down|on|over|through))? (?:it|that|this|them|those|these|one|ahead|for it|both|all)\b(?: \w+){0,4}\?*$"
)
_NO_DEED = re.compile(
    r"^(?:so |then |and |just )*(?:was|were|is|are|did|does|do|has|have|put it \w+ way|put it (?:another|different|in)|say|repeat|explain|tell|show|read|spell|describe|rephrase|got|saw|heard|seen|had|which|what|about|like|see|mean|under|over|with|for|not|try|tried|said|say|hold|spell|need|after|before|on|at|in)\b"
)
_TAG = GuardedPattern(
    r"(?:,|^|\s[-\u2013\u2014]) ?(?:yeah|yes|yep|okay|alright|all right|right|agreed|deal|fine|cool|good|correct|fair|shall (?:i|we)|may i|should i|"
    r"okey[- ]?dokey|happy|content|interested|keen|in|game|sound good|that (?:alright|okay|fine|good)|y|sure|savvy)\?+$|\b(?:shall|should|may|can) (?:i|we)\?+$|(?<!sign )(?<!log )(?<!let )(?<!get )(?<!check )(?<!book )(?<!put )(?<!signing )(?<!logging )\byou in\?+$|\byou (?:up for (?:it|that)|game|on board|keen|happy|okay|fine|sure)\?+$"
)  # fmt: skip
_ALOUD = re.compile(r"^(?:still |quite |that |all |you |really |so )*(?:in|on|good|okay)\?*$")
_OTHERWISE = GuardedPattern(
    r"\bor (?:do|would you|something|rather|just|only|one of|another|a different|the other|keep|leave|is there|are you)\b"
)
_ASIDE = GuardedPattern(
    r"^(?:are you|you) (?:okay|alright|all right|well|safe|there|still there|with me)\??$|\bhold on\b|\bif you (?:can|could|would please|need|have (?:any|more|other|further|a)|are (?:abroad|ever|not sure|unsure)|do not mind (?:me asking|telling))\b"
)


_WORD = re.compile(r"[\w-]+")
_SIGNS = (("signs", _WAITS_FOR), ("conditions", _CONDITION), ("answers", _LIGHTLY), ("answers", _ANSWER_ME))
"""Signs that a statement which asks for a yes has, with the set of the words one of which stands in it."""


def solicits(text: str, *, asked: bool) -> bool:
    """Say whether a normal clause asks for a yes; ``asked``: it ends in a question mark.

    >>> [solicits(text, asked=True) for text in ("do i push the button?", "content?", "grab it for you?", "is it paid?")]
    [True, True, True, False]
    >>> [solicits(text, asked=False) for text in ("with your nod i will see to it", "i got your okay, thank you")]
    [True, False]
    """
    if asked and _question(text):
        return _ASIDE.search(text) is None and not leaves_open(text)
    words = _WORD.findall(text)  # a look at the words is cheaper than a search
    return (
        any(
            not plain_words(begin).isdisjoint(words)
            and sign.search(text) is not None
            and _TOLD_PAST.search(text) is None
            for begin, sign in _SIGNS
        )
        and _ASIDE.search(text) is None
    )


def leaves_open(text: str) -> bool:
    """Say whether a question names several things between which the listener is to choose."""
    return _OTHERWISE.search(text) is not None


def _question(text: str) -> bool:
    if _TAG.search(f"{text.rstrip('?')}?"):
        return True
    if _ABOUT_FACTS.match(text):
        return False
    if _SPEAKER_ACTS.match(text) or _PASSIVE.match(text):
        return True
    if _BARE_DEED.match(text) and not _NO_DEED.match(text):
        return True
    words = len(text.split())
    return (_STATE.search(text) is not None and (_WHO.match(text) is not None or words <= 7)) or _ALOUD.match(
        text
    ) is not None
