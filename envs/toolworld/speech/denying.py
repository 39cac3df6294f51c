"""The words with which something is denied: what moods and refusals have in common stands once."""

from __future__ import annotations

import re

from turnwise.envs.toolworld.speech.ways import Alternation, GuardedPattern

_LEAVES = r"\b(?:i|we) (?:(?!you\b)\w+ ){0,5}(?:leave|keep) (?!you\b)[^,.;?!]{1,40} (?:as|where|how) (?:it|they) (?:is|are|stands?)\b"
_NOT_ABLE = r"\bunable\b|\bnot (?:\w+ )?(?:able|possible|allowed|permitted)\b"
_AT_AN_END = (
    r"\bhands are tied\b",
    r"\bthe most (?:i|we) (?:may|can|could|am|are)\b",
    r"\bis the (?:limit|maximum)\b",
)
_OUTSIDE = (
    r"\bno longer (?:be \w+|possible|eligible|an option|available|allowed)\b|\banswer (?:is|has to be|must be|will be|stays) (?:a )?no\b|\boff the table\b|"
    r"\b(?:it|this|that|request|order|booking) (?:falls?|is|lies?) (?:well )?outside (?:of )?(?:what|our|my|the)\b|"
    r"\bnot something (?:that )?(?:i|we) (?:can|could|may|am|are)\b|\btoo late to\b"
)
"""That a thing lies beyond what can be done."""
_ONLY = r"\b(?:polic(?:y|ies)|rules?|terms|we) (?:can |may )?only (?:allows?|permits?|lets?|covers?)\b"
"""That others can be done, by which listeners may understand that theirs cannot."""
_REJECTED = "impossible|ineligible|non-?refundable|prohibited|forbidden|denied|declined|refused|rejected"
_NOTHING = r"nothing (?:more )?(?:i|we) can do"
_RULES_OUT = "do(?:es)? not (?:allow|permit|qualify|cover|let|entitle|include|meet)"

NEGATED = Alternation(
    r"\b(?:can|could|will|would|may|do|does|is|are|am|be|was|were|must|shall)(?: \w+ly| also| simply| just| currently| still)? not\b", rf"\b(?:unable|disallowed|{_REJECTED})\b",
    r"\b(?:decline|refuse|deny|reject|turn .{0,25}\bdown|say no)\b", r"\bnot (?:\w+ )?(?:able|possible|allowed|permitted|eligible|authori[sz]ed|entitled|available|covered|something|in a position)\b", r"\bno (?:way|exceptions?|possibility|compensation|refunds?)\b",
    r"\bagainst (?:our|the|company|my)\b", r"\b(?:polic(?:y|ies)|rules?|terms|fare|regulations)\b.*\b(?:prevents?|forbids?|prohibits?|excludes?|do(?:es)? not)\b", r"\bout of my hands\b", r"\bno longer (?:possible|be|eligible)\b", r"\btoo late\b", r"\bnot an option\b", rf"\b{_NOTHING}\b",
    _OUTSIDE, _ONLY, _LEAVES, r"^no\b(?! (?:joke|kidding|doubt|wonder|matter|one|internet|data|connection|signal|further|more|need|problem|worries|rush|hurry|pressure|trouble|bother|stress))", r"\bout of the question\b", r"\bno (?:chance|hope|prospect)\b|\bthere is no (?!need|extra|additional|charge|fee|cost)\w+ing\b", *_AT_AN_END, r"\b(?:had|have) to (?:refuse|decline|deny|turn)\b",
)  # fmt: skip
"""That a clause denies something."""
LEFT_ALONE = re.compile(_LEAVES + r"(?!.*\b(?:until|for now|unless|till|yet)\b)")
"""That a speaker leaves a thing as it is."""
CANNOT = re.compile(rf"\b(?:can|could|will|would|may|am|are|is|be|must|do|does) (?:\w+ )?not\b|{_NOT_ABLE}")
CANNOT_DO = re.compile(rf"\b(?:can|could|will|would|may|must) (?:\w+ )?not\b|{_NOT_ABLE}")
FINAL = Alternation(
    _OUTSIDE, _ONLY, _LEAVES, r"^no$|\bthere is no \w+ing\b", *_AT_AN_END, r"\b(?:not (?:\w+ )?(?:possible|allowed|permitted|eligible|entitled|authori[sz]ed|an option|something|available|covered|refundable|in a position)|against (?:our|the|company|my) ?\w* ?(?:polic\w+|rules?|terms)|"
    rf"{_REJECTED}|(?:must|have to|need to|going to|will|am|regret to|to) (?:decline|refuse|deny|reject|say no|turn)|decline|refuse|deny|no exceptions?|no compensation|no refund|out of (?:my hands|the question)|(?:had|have) to (?:refuse|decline|deny|turn)|turn (?:your|this|that|it) \w* ?down|any ?more|no longer (?:possible|eligible)|too late|"
    rf"{_NOTHING}|no way|no (?:chance|hope|prospect)|{_RULES_OUT}|polic\w+ (?:prevents?|forbids?|prohibits?|excludes?)|can not (?:be )?(?:done|do (?:that|this|it|so|anything)|help (?:with|you with) (?:that|this|it|your)|"
    r"make|grant|approve|accept|offer|give|issue|fulfil|accommodate|honou?r|complete|carry out|perform|process|handle|waive|allow|go ahead|proceed|comply|arrange|fulfill|bend|assist))\b|\bcan not(?: do)?$|\bunable to (?:do|make|grant|approve|offer|give|issue|process|complete|help|assist|accommodate|fulfil|proceed|allow)\b",
)  # fmt: skip
"""That it is the end of the matter."""
SURELY = GuardedPattern(
    r"\b(?:can|could|may|must) (?:\w+ )?not\b|\b(?:i|we) (?:\w+ )?(?:will|would|do|shall|am|are) (?:\w+ )?not\b|\bunable\b|\bnot (?:\w+ )?(?:able|possible|allowed|permitted|eligible|entitled|authori[sz]ed|an option)\b|"
    rf"\b(?:i|we) (?:\w+ ){{0,4}}(?:decline|refuse|deny|reject|turn|leave|keep)\b|\b(?:{_REJECTED}|against (?:our|the|company|my)|out of (?:my hands|the question)|hands are tied|"
    rf"{_NOTHING}|no (?:way|chance|exceptions?|\w+ing)|{_RULES_OUT})\b|^no$|{_OUTSIDE}"
)
"""That somebody may not or will not, or that a thing is not to be had: what a change would not do is no refusal."""
MEANT = re.compile(
    r"\b(?:i|we|me|us|my|your|yours|it|this)\b|\banswer (?:is|has to be|must be|will be|stays) (?:a )?no\b|^(?:that|no|not|impossible|denied|declined|refused|rejected)\b|\b(?=\w*\d)(?=\w*[a-z])\w+\b"
)
"""Signs that a rule in general does not have: a speaker, or the listener's own thing."""
POINTS = re.compile(
    r"\b(?:it|that|this|so|request|wish|exceptions?|help|assist|comply|anything|what you|hands are tied|nothing (?:more )?(?:i|we) can|no (?:way|chance|hope)|answer \w+(?: \w+)? no)\b|(?:\bnot(?: do)?|\bno|possible|impossible|declin\w*|refus\w*|eligible|reject\w*|allowed)$"
)
"""Words in which a refusal speaks of whatever was asked for."""
INDIRECT = Alternation(
    r"\b(?:can|may) only (?:be \w+ed|\w+) (?:by|for)\b", r"\bonly (?:the |an? |its |your )?(?:\w+ ){0,3}(?:owner|holder|customer|traveller|passenger|person|buyer) (?:\w+ )?(?:can|may|has to|must)\b",
    r"\bonly (?:he|she|they|people|somebody|those)\b.*\b(?:can|may)\b", r"^only \w+ .*\b(?:are|is) (?:possible|allowed|permitted|available)\b",
    r"\b(?:will|would|has to|have to|must) (?:need to |have to )?contact us (?:\w+self|directly|in person)\b", r"\b(?:has|have) to (?:stay|remain|keep)\b(?! (?:on hold|on the line|with me|calm|in touch))",
    r"\b(?:number|destination|origin|route|name|names|date|fare|terms?)\b.*\b(?:is|are) fixed\b", r"\byou (?:would|will) (?:have|need) to (?:book|make|place|open) (?:an? )?(?:new|separate|different|another)\b",
    r"\b(?:nobody|no one) (?:here |else |of us )?(?:can|could|may|is able|is allowed)\b(?! (?:reach|call|use|see|hear|know))", r"\b(?:answer|decision) (?:stays|remains|is final|is still)\b", r"\bfinal decision\b|\blast word\b|\b(?:stay|stick) (?:with|to) (?:my|our) no\b|\bno can do\b",
    r"\bagainst (?:our |the |company )*(?:policy|policies|rules?|terms)\b", r"^no: |\bi have to say no\b", r"\b(?:is|are) not (?:yours|in your name|your own)\b|, not yours\b|\bunder (?:\w+ ){1,3}account, not\b", r"\bno (?:price )?refund on\b",
    r"\bwe only \w+ .*\bfor the (?:account|owner|card)?\s*(?:holder|owner)\b",
)  # fmt: skip
"""That others could, or that things stand as they stand: whoever hears it asks whether it is a no."""
