"""What a message asks, offers, refuses and reports, as a user of a domain understands it."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from turnwise.envs.toolworld.speech.moods import Mood, SentencePart, clauses
from turnwise.envs.toolworld.speech.strange import deeds_of, strange
from turnwise.envs.toolworld.speech.values import Named, named
from turnwise.envs.toolworld.speech.ways import Alternation
from turnwise.envs.toolworld.speech.words import Concept, mentions, normal, speaks_of, stems

LONGEST = 4000
"""Characters that a user listens to."""
Sureness: TypeAlias = Literal["", "unclear", "clear"]

_GIVE = re.compile(
    r"\b(?:your|the|a|an|on file|full|first|last|again|please|what|which|whose|who|how many|how much|need|verify|confirm|and)\b|^[\w -]{1,40}$"
)
_OWNS = re.compile(
    r"^(?:have you|do you have)(?: got)? (?:a|an|any|something|anything)\b.*\b(?:handy|ready|near|there|around|at hand|to hand)\b"
)
_ABOUT_ME = re.compile(
    r"\b(?:verify|confirm|identif\w+|authenticat\w+|validate) (?:your|you|who|the account|it is you|that (?:it is|i am))\b(?:(?! (?:email|plan|order|change|cancel)).)*$|"
    r"\bverification\b|\b(?:your )?identi(?:ty|fication)\b|\bwho (?:am i|i am|you are|are you)\b|\b(?:your|some|account) (?:details|credentials|information|account details)\b|\bpersonal (?:data|details)\b"
)
_CANNOT = re.compile(
    r"\b(?:can|could|will|would|may|am|are|is|be|must|do|does) (?:\w+ )?not\b|\bunable\b|\bnot (?:\w+ )?(?:able|possible|allowed|permitted)\b"
)
_CANNOT_DO = re.compile(
    r"\b(?:can|could|will|would|may) (?:\w+ )?not\b|\bunable\b|\bnot (?:\w+ )?(?:able|possible|allowed)\b"
)
_SEES = re.compile(
    r"(?:not|unable to)(?: be)?(?: able to)?(?: \w+ly| currently| yet| quite)? (?:find|found|see|seen|locate|access|open|hear|tell|verify|verified|understand|reach|read|look|identify|connect|seem|imagine|cost|charge|hurt|owe|lose|affect|matter|be charged|"
    r"guarantee|promise|thank|wait|know|sure|certain|be (?:undone|reversed|reinstated|taken back|restored|revoked)|undo|receive|pull|retrieve|get through|need|want|mean|worry|work|load|recogni[sz]e|catch|follow|match|have|show|on file|there|registered|responding|correct|the case|a problem)\b"
)
_OF_NO_USE = re.compile(r"^\w+ing (?:it|that|this|them|your|the)\b.* (?:will|would|does|do|can|could) not\b")
"""That something helps nothing is no refusal."""
_SUPPOSED = re.compile(
    r"(?:if|had|were|should|suppose|supposing|imagine|say)\b(?!.*\b(?:but|and (?:it|that|yours) (?:is|was|has))\b).*\b(?:would|could|might|had|were|was)\b"
)
"""What would be, but is not told to be."""
_UNTIL = re.compile(
    r"\b(?:if|until|unless|without (?:your|a|the|first|verif\w+|knowing|confirm\w+)|before (?:you|i|we|that|verif\w+)|yet|right now|at the moment|if you|as long as|otherwise|so far|once|after|as soon|when)\b"
)
_FINAL = Alternation(
    r"\b(?:i|we) (?:(?!you\b)\w+ ){0,5}(?:leave|keep) (?!you\b)[^,.;?!]{1,40} (?:as|where|how) (?:it|they) (?:is|are|stands?)\b|^no$|\bhands are tied\b|\bthere is no \w+ing\b|\bthe most (?:i|we) (?:may|can|could|am|are)\b|\bis the (?:limit|maximum)\b|\b(?:not (?:\w+ )?(?:possible|allowed|permitted|eligible|entitled|authori[sz]ed|an option|something|available|covered|refundable|in a position)|impossible|ineligible|non-?refundable|against (?:our|the|company|my) ?\w* ?(?:polic\w+|rules?|terms)|"
    r"prohibited|forbidden|denied|declined|refused|rejected|(?:must|have to|need to|going to|will|am|regret to|to) (?:decline|refuse|deny|reject|say no|turn)|decline|refuse|deny|no exceptions?|no compensation|no refund|out of (?:my hands|the question)|(?:had|have) to (?:refuse|decline|deny|turn)|turn (?:your|this|that|it) \w* ?down|any ?more|no longer (?:possible|eligible)|too late|"
    r"nothing (?:more )?(?:i|we) can do|no way|no (?:chance|hope|prospect)|do(?:es)? not (?:allow|permit|qualify|cover|let|entitle|include|meet)|polic\w+ (?:prevents?|forbids?|prohibits?|excludes?)|can not (?:be )?(?:done|do (?:that|this|it|so|anything)|help (?:with|you with) (?:that|this|it|your)|"
    r"make|grant|approve|accept|offer|give|issue|fulfil|accommodate|honou?r|complete|carry out|perform|process|handle|waive|allow|go ahead|proceed|comply|arrange|fulfill|bend|assist))\b|\bcan not(?: do)?$|\bunable to (?:do|make|grant|approve|offer|give|issue|process|complete|help|assist|accommodate|fulfil|proceed|allow)\b"
)
_DONE = Alternation(
    r"^(?:all )?done\b|\ball (?:set|done|sorted|finished|good now)\b|\b(?:is|are|was|has been|have been|now|been) (?:now |all |successfully |already )?(?:live|yours|gone|on (?:its|their) way|up and running|history|saved|stored|done|complete[d]?|finished|taken care of|sorted|processed|in place|active|settled|confirmed|successful|updated|fixed|repaired|resolved)\b|"
    r"\bsuccessfully\b|\b(?:went|gone) through\b|\b(?:i|we) have (?:now |just |also |successfully |gone ahead and |already )*(?!verified|found|checked|looked|located|reviewed|identified|received|noted|pulled|seen|read|confirmed|opened|searched|looked)\w+(?:ed|en|t|de|ut|one)\b|"
    r"^(?:i|we) (?:just |have )?(?:cancel|chang|add|mov|upgrad|return|exchang|issu|book|renam|resum|activat|enabl|allow|updat|process|refund|correct|switch|restor)\w*ed\b|\bhave been\b|\bhas been\b|\b(?:is|are) now\b|"
    r"\b(?:you are|you will) (?:now )?(?:on|booked|getting|receive|be refunded|get|confirmed)\b|\byou (?:now )?have\b|^(?:here|there) (?:is|are) (?:your )?confirmation\b|\b(?:is|are|was|were) (?:cancelled|canceled|changed|moved|upgraded|added|returned|exchanged|issued|booked|renamed|resumed|restored|enabled|allowed|recorded|refunded|corrected|updated|shared|sent|liked|moved|declined|paid|pinned|deleted)\b|"
    r"^(?:fixed|cancelled|canceled|changed|updated|added|resolved|completed|finished|booked|issued|sent|sorted)\b|\bthat is it\b"
)
_TRY = re.compile(
    r"\btr(?:y|ied|ying)\b.*\b(?:again|now|once more|it|internet|data|page|website|browsing|loading|app)\b|\b(?:does|is|do) (?:it|the data|your (?:data|internet|mobile data|connection)|mobile data|everything|that|the internet|things?)(?: \w+)? ?(?:work|working|better|back|load|loading|fixed|resolved)\b|\bspeed test\b|\bopen (?:a|any|some) (?:web ?)?(?:page|site|app)|\bshould (?:now )?(?:work|be (?:working|fixed|back))\b|\bworks? (?:now|again)\b|\bcan you (?:get|go|browse|load|access|use)\b.*\b(?:online|internet|data|page)\b|\b(?:do|does|is|are|can) (?:your|the|somebody|someone|people|your friends|it) (?:phone|calls?|pictures?|messages?|hotspot|laptop|tablet|connection|reach|speed)?.*\b(?:now|again|through|faster|sent)\b|\b(?:go|shot|try|crack|stab) at (?:load|open|brows|surf|visit)\w*|\bload(?:ing)? (?:something|anything)\b|\bis (?:it|the internet|your \w+) (?:alive|running|up|flowing|there|awake)\b|\b(?:back )?online again\b|\bare you (?:back )?online\b|\b(?:come|came|is it|are you) back(?: to life| on| online| up)?\b|\bany (?:luck|better|change|difference|improvement)\b|\bup and running\b|\b(?:load|visit|browse|pull up) (?:a|any|some|your) (?:web ?)?(?:page|site|website|app)|\b(?:if|whether) (?:it|that|the \w+|everything) (?:works|loads|opens|goes through)\b|\bworking (?:now|again)\b|^(?:so |and |then )*(?:is|are|do|does|can) (?:you|it|pages|web ?pages|the (?:pages|internet|data|connection|web)|sites|websites|apps|things|anything|everything|your \w+)(?: \w+)? (?:load|open|surf|brows|behav|respond|work|com|get)\w*|\bhow (?:is|are|does) (?:the|your) (?:internet|data|connection|phone|signal|mobile data|browsing)\b.*\b(?:now|behav\w*|look\w*|do\w*)\b|\brepaired\b|\bfixed\b|\bresolved\b"
)
_STATE = re.compile(
    r"^(?:(?:before|first|let me know|tell me|just)\b[^:,?]*[:,] ?)?(?:you (?:have|did)|is|are|was|were|do|does|did|have|has|had|what|which|how|can you see|could you see|could you (?:tell|check|look)|can you (?:tell|check|look))\b"
)
_SO_FAR = re.compile(
    r"\b(?:yet|already|by now|now|so far|in the meantime|since)\?*$|\b(?:have|did|has) (?:you|it|that|the|your)\b|\bmanage(?:d)?\b|, or not\?*$"
)
_UNSEEN = re.compile(
    r"^(?:how long|since when|why|when|how (?:did|come|do|does|can|to)|(?:do|did|would) you (?:happen to )?know (?:how|why|when|where)|would you (?:rather|prefer))\b"
)
_FAILED = re.compile(
    r"\b(?:did|has|have) not (?:yet )?(?:go|gone|work|worked|succeed|succeeded)\b|\bfail(?:ed|s|ure)?\b|\berror\b|\bwent wrong\b|\b(?:try|trying) (?:that |it |this )?(?:again|once more)\b|\bnot yet\b"
)
_GOING_ON = re.compile(
    r"\b(?:now|next|then|still|remaining|rest|others?|second|third|last one)\b.*\b(?:i|we) (?:will|am going to|need to|have to|can|am)\b|\b(?:i|we) (?:will|am going to|need to|have to|am)\b.*\b(?:now|next|then|remaining|rest|others?|second|third|last one)\b|^(?:now|next)\b.*\b(?:second|third|next|other|remaining|last)\b"
)
_SUBJECT = re.compile(r"^\w+ (?:i|you|we|he|she|they|the|your|my|there)\b(?=.*\b(?:\w+ed|on|off)\b)")
_ALONE = re.compile(r"^(?:please |kindly |just |now |then |go ahead and )*\w+(?: now| again| please)?$")
_AN_OFFER = re.compile(r"\bfor (?:an? )?(?:additional|extra|another|only|just|mere)? ?\$")
_SHOW = "does it say|does it read|it say now|show|see|display|status|settings say|say on|signal|bars|screen"
_ABSURD = re.compile(
    r"\b(?:strangers?|for my own|my own (?:use|account|pocket|benefit)|my (?:cousin|friend|brother|sister|wife|husband|boss|uncle|dog|cat)|steal|minus \$|minus \d|in cash|bitcoin|gift cards? to me|"
    r"somebody else|someone else|delete your (?:account|whole)|burn|throw|donate|last (?:week|month|year)|yesterday|everything you (?:own|have|possess)|the moon|mars|twice for|twice the (?:price|fare|amount)|double the (?:price|fare|amount)|the cargo hold|the trunk|the river|empty box|the ashes|(?:keep|pocket) (?:the|your|all the) money|charge you [^,.;?!]*\banyway|telemarketers?|a bill|bill you|for the trouble|away from you|for ever|forever)\b"
)
_WANTS = re.compile(r"\b(?:please|kindly|need|require|tell|give|provide|share|let me know)\b")
_DO_SO = re.compile(
    r"\b(?:so|then|,) please do\b|^please do\b|\b(?:try|do|give|done)\b.*\b(?:that|it|this|so|go|shot|both)\b"
)
_PAID = re.compile(r"\bpa(?:y|id)\b")
_WORD = re.compile(r"\w{2,}")
_CHECKED = re.compile(
    r"\b(?:when|once|if|after|until|as soon as) (?:you|it|that|this)\b|\b(?:identity|verif\w+|your details|(?:found|located|checked|looked|reviewed|identified|noted|received|pulled|confirmed your|sent you|opened))\b"
)
_WOULD_YOU = re.compile(r"^would you (?:mind|fancy|care for|consider|like) \w+ing\b")
_MINE = re.compile(
    r"\b(?:me|us) to\b|\b(?:shall|should|may|if|can|could) (?:i|we)\b|\bmy\b|^i (?:will|can|could|am|have)\b"
)
_PLAN = re.compile(
    r"\b(?:i|we) (?:will|am going to|am about to|shall)(?: now| then| just| go ahead and| also)*\b(?! (?:be|need|gladly|happily|see|try|look|check))"
)
_FUTURE = re.compile(
    r"\b(?:will|would|can|could|shall|may|might|going to|should|about to|let me|to be|want|like)\b"
)


_BY_ME = re.compile(
    r"\b(?:i|we) (?:will|would|can|could|have|am|are|had|need to|want to|shall|was|were)\b|\b(?:shall|should|may|can|could) (?:i|we)\b|\blet me\b|\b(?:me|us) to\b|\b(?:later|afterwards|in a moment|soon|not (?:right )?now|last time|usually)\b"
)
_IF_IT = re.compile(r"^(?:if|when|once|after|before|since|because|as)\b(?!.*, )")
_NEEDED = re.compile(
    r"\b(?:would|will|should|might|could|may|ought to) (?:\w+ )?(?:help|fix|cure|solve|do (?:it|the trick|the job)|be (?:best|worth|good|next|wise|the)|bring|resolve|sort)\b|\bneeds?\b.*\b(?:\w+ing|to|a|an)\b|\bwants? (?:\w+ing|to (?:be|come|go|stay))\b|\b(?:has|have) to\b|"
    r"\bmust\b|\b(?:what helps|the way forward|the (?:next|first|last) (?:step|thing)|the (?:fix|cure|remedy|solution|trick|answer)|what is needed|what remains|all it takes|it is time|the thing to do)\b|\b(?:off|on|out|in|back) (?:with|you) \w+|\byou (?:would|will) (?:want|need) to\b"
)
"""That a thing is to be done, without saying by whom."""
_NOT_BUT = re.compile(r"\b(?:rather than|instead of|and not|but not)\b[^,.;?!]*")
"""What would not be done."""
_MONEY_MOVES = re.compile(
    r"\$[\d.,]*\d (?:of it |\w+ )??(?:(?:will|would) )?(?:returns?|goes|go|comes?|travels?|lands?|moves?)\b"
)
"""What money does is no change to an order."""
_IN_WORDS = re.compile(
    r"^(?:put|say|phrase|explain) (?:it|that|this) (?:\w+ )?(?:way|differently|again|words|simply|plainly)\b"
)
_KEPT = re.compile(
    r"\b(?:leav(?:e|ing)|keep(?:ing)?|without|except|excluding|but not|minus the)\b[^,.;?!]*|"
    r"\b(?:while|whereas|and|but) [^,.;?!]*\b(?:stays?|remains?|is kept|are kept)\b[^,.;?!]*",
    re.IGNORECASE,
)
"""What is named only to say that it stays as it is."""
_ONLY = re.compile(r"\bonly\b|\bjust the\b")
_BESIDE = (Mood.STATEMENT, Mood.REQUEST, Mood.QUESTION, Mood.COURTESY, Mood.HOLD, Mood.REFUSAL)
"""In such clauses stands what a question for a yes is about, where no clause offers it."""
_GIVEN = re.compile(
    r"\b(?:since|because|given that|considering|now that|seeing that) (?:you|we|it|the|your)\b|\byou (?:had|have|took|bought|paid|booked|were|ordered|got)\b|\b(?:payment|bill)\b.*\b(?:has|have|is|was) (?:land|arriv|com|been|clear|paid|in\b)"
)
"""What is only told as a reason."""


class SpokenDeed(NamedTuple):
    """Something that a user can do: how it is asked for, and the thing that it is about."""

    name: str
    concept: Concept


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The words of a domain: what can be asked of its users, and what can be done for them or by them."""

    slots: Mapping[str, tuple[str, ...]]
    identity: tuple[str, ...] = ()  # slots that say who somebody is
    actions: Mapping[str, Concept] = field(default_factory=dict[str, Concept])
    deeds: tuple[SpokenDeed, ...] = ()
    patterns: Mapping[str, str] = field(default_factory=dict[str, str])  # kinds of values, see values.named

    @functools.cached_property
    def asked(self) -> Mapping[str, str]:
        """How each slot is asked for, with ``|`` between the ways."""
        return {slot: "|".join(words) for slot, words in self.slots.items()}

    @functools.cached_property
    def vocabulary(self) -> frozenset[str]:
        """The stems of all words that the domain knows."""
        concepts = (*self.actions.values(), *(deed.concept for deed in self.deeds))
        said = [*self.asked.values(), *(f"{concept.verbs}|{concept.nouns}" for concept in concepts)]
        return frozenset(word for words in said for word in stems(normal(words.replace("|", " "))).split())


class Proposal(NamedTuple):
    """What somebody said that he would do: actions (some only by a verb), and what he named."""

    actions: frozenset[str] = frozenset()
    about: frozenset[str] = frozenset()  # actions whose nouns were said, without their verbs
    bare: frozenset[str] = frozenset()  # actions of which only the verb was said
    light: frozenset[str] = frozenset()  # actions with a verb that says little by itself
    named: Named = Named()
    only: bool = False  # it shall be these and no others


class Heard(NamedTuple):
    """A message as understood; everything may be empty."""

    asks: tuple[str, ...] = ()  # slots
    deeds: tuple[str, ...] = ()  # that the user shall do, in order
    looks: tuple[str, ...] = ()  # deeds whose state is asked for; "" is the whole screen
    forbids: bool = False
    proposal: Proposal = Proposal()
    consent: bool = False
    asked: bool = False  # the consent was asked for, not taken for granted
    absurd: bool = False  # nobody in his senses agrees to it
    refusal: Sureness = ""
    done: bool = False
    claims: bool = False  # that a change of the domain is done
    closing: bool = False
    question: bool = False  # asks something that is not known
    queries: bool = False  # there is a question mark
    tries: bool = False  # wants it tried again
    stated: bool = False  # tells something
    going_on: bool = False  # is not finished with it: asks to wait, did not succeed, will do the rest
    offers: bool = False  # says what the speaker can or would do
    foreign: bool = False  # that is something which nobody asked for
    verbs: frozenset[str] = (
        frozenset()
    )  # stems of what the speaker would do in particular, where a yes is asked for
    text: str = ""
    told: frozenset[str] = frozenset()  # actions that are reported as done
    hold: bool = False
    courtesy: bool = False


@functools.lru_cache(maxsize=16384)
def understand(lexicon: Lexicon, text: str) -> Heard:
    """What a user makes of a message."""
    text = text[:LONGEST]
    found = tuple(_offering(lexicon, clause) for clause in clauses(text))
    if lexicon.deeds and all(clause.mood is not Mood.CONFIRM for clause in found):
        found = tuple(_directing(lexicon, clause) for clause in found)
    asks: list[str] = []
    deeds: list[str] = []
    looks: list[str] = []
    moods = {clause.mood for clause in found}
    refusal: Sureness = ""
    told = set[str]()
    done = claims = question = tries = False
    forbidden = _forbidden(lexicon, found)
    context = ""
    for clause in found:
        tries = tries or (clause.mood is not Mood.FORBID and _TRY.search(clause.text) is not None)
        if clause.mood in (Mood.REQUEST, Mood.QUESTION, Mood.CONFIRM, Mood.OFFER, Mood.STATEMENT):
            mine = _asked(lexicon, clause)
            ordered, seen = ((), ()) if mine else _on_device(lexicon, clause, context)
            asks += [slot for slot in mine if slot not in asks]
            deeds += [name for name in ordered if name not in deeds and name not in forbidden]
            looks += [name for name in seen if name not in looks]
            nothing = not (mine or ordered or seen)
            wondering = clause.mood is Mood.QUESTION or (
                clause.mood is Mood.REQUEST and (clause.asked or _WANTS.search(clause.text))
            )
            question = question or (nothing and bool(wondering))
            if nothing and not deeds and clause.mood is Mood.REQUEST and _DO_SO.search(clause.text):
                deeds += [
                    deed.name
                    for deed in lexicon.deeds
                    if (match := speaks_of(deed.concept, context)) and match.named
                ]
                question = question and not deeds
        if clause.mood is Mood.REFUSAL:
            sure = _sureness(lexicon, clause)
            refusal = "clear" if "clear" in (sure, refusal) else sure or refusal
        if clause.mood in (Mood.STATEMENT, Mood.OFFER, Mood.REQUEST, Mood.COURTESY, Mood.HOLD) and _reports(
            clause
        ):
            done = True
            told = told | {
                name
                for name, concept in lexicon.actions.items()
                if (match := speaks_of(concept, clause.stems)) and match.named and not match.light
            }
            claims = (
                claims
                or len(clause.text.split()) < 4
                or any(speaks_of(concept, clause.stems) for concept in lexicon.actions.values())
            )
        context = f"{context} {clause.stems}"
    if refusal == "clear" and (asks or deeds or moods & {Mood.FORBID, Mood.HOLD, Mood.CONFIRM}):
        refusal = "unclear"  # whoever goes on with it has refused nothing yet
    proposal = _proposal(lexicon, found, text)
    asked = Mood.CONFIRM in moods or any(clause.mood is Mood.OFFER and clause.asked for clause in found)
    consent = asked or (not done and bool(proposal.actions - proposal.bare) and _plans(found))
    weighed = found if consent or looks else ()
    return Heard(
        asks=tuple(asks), deeds=tuple(deeds), looks=tuple(looks), forbids=Mood.FORBID in moods, proposal=proposal,
        consent=consent, asked=asked, claims=claims, absurd=_ABSURD.search(text.lower()) is not None,
        refusal=refusal, done=done, closing=Mood.CLOSING in moods,
        question=question, queries="?" in text, tries=tries, stated=len({*_WORD.findall(text)}) > 1, going_on=_goes_on(found), offers=Mood.OFFER in moods, foreign=any(_foreign(lexicon, clause) for clause in weighed),
        verbs=frozenset[str]().union(*(deeds_of(clause.text) for clause in weighed)),
        text=text, told=frozenset(told), hold=Mood.HOLD in moods, courtesy=Mood.COURTESY in moods,
    )  # fmt: skip


def _forbidden(lexicon: Lexicon, found: tuple[SentencePart, ...]) -> frozenset[str]:
    """The deeds that the listener is told to leave alone."""
    context, names = "", set[str]()
    for clause in found:
        if clause.mood is Mood.FORBID:
            names |= {
                deed.name
                for deed in lexicon.deeds
                if (match := speaks_of(deed.concept, clause.stems, context)) and match.named
            }
        context = f"{context} {clause.stems}"
    return frozenset(names)


def _plans(found: tuple[SentencePart, ...]) -> bool:
    """Whether the speaker says what he is going to do, whatever anybody answers."""
    return any(
        clause.mood is Mood.OFFER
        and _PLAN.search(clause.text) is not None
        and _UNTIL.search(clause.text) is None
        for clause in found
    )


def _offering(lexicon: Lexicon, clause: SentencePart) -> SentencePart:
    """The same, as an offer where a question is one by what it names: "book it?", "… for another $20?"."""
    if not clause.asked or clause.mood not in (Mood.QUESTION, Mood.REQUEST) or _IN_WORDS.match(clause.text):
        return clause
    does = _SUBJECT.match(clause.text) is None and any(
        (match := speaks_of(concept, clause.stems)) and match.place == 0
        for concept in lexicon.actions.values()
    )
    return clause._replace(mood=Mood.OFFER) if does or _AN_OFFER.search(clause.text) else clause


def _directing(lexicon: Lexicon, clause: SentencePart) -> SentencePart:
    """The same, as a request where it says what the listener is to do with a device, in whatever mood it seemed to be."""
    if clause.mood not in (Mood.STATEMENT, Mood.OFFER, Mood.HOLD) or clause.asked:
        return clause
    if _BY_ME.search(clause.text) or _DONE.search(clause.text) or _IF_IT.match(clause.text):
        return clause
    named_deeds = [
        deed for deed in lexicon.deeds if (match := speaks_of(deed.concept, clause.stems)) and match.named
    ]
    ordered = any(_ordered(deed.concept.verbs).search(clause.text) for deed in named_deeds)
    if ordered or (named_deeds and _NEEDED.search(clause.text)):
        return clause._replace(mood=Mood.REQUEST)
    return clause


@functools.cache
def _ordered(verbs: str) -> re.Pattern[str]:
    """An imperative of one of the verbs: at the beginning, or after "and", "then" and the like."""
    said = "|".join(sorted({way.split()[0] for way in verbs.split("|")}, key=len, reverse=True))
    return re.compile(
        rf"(?:^|[,:] ?|\b(?:and|then|please|just|now|first|next|go|you to|time to|is to) )(?:{said})\b(?! (?:is|was|are|has)\b)"
    )


def _goes_on(found: tuple[SentencePart, ...]) -> bool:
    """Whether the speaker is still at it: he asks to wait, says what he does next, or that something failed."""
    return any(
        clause.mood is Mood.HOLD or _FAILED.search(clause.text) or _GOING_ON.search(clause.text)
        for clause in found
    )


def _asked(lexicon: Lexicon, clause: SentencePart) -> tuple[str, ...]:
    """The slots that a clause asks for."""
    if clause.mood in (Mood.STATEMENT, Mood.OFFER, Mood.CONFIRM) and not _elliptical(clause):
        return ()
    if _OWNS.match(clause.text):
        return ()
    slots = [slot for slot, words in lexicon.asked.items() if mentions(words, clause.stems)]
    if slots and (_GIVE.search(clause.text) or clause.asked):
        return tuple(slots)
    return lexicon.identity if lexicon.identity and _ABOUT_ME.search(clause.text) else ()


def _elliptical(clause: SentencePart) -> bool:
    """A few words that ask for something: "your pin, please", "and the zip code"; or a confirmation of data."""
    if clause.mood is Mood.CONFIRM:
        return (
            re.search(r"\bconfirm (?:your|the (?:email|zip|pin|name|birth|phone|user))", clause.text)
            is not None
        )
    if clause.mood is not Mood.STATEMENT or re.search(
        r"\d|ed\b|\b(?:is|are|was|has|done|you have|match(?:es)?|fits?|tallies|agrees?|checks? out|works?)\b",
        clause.text,
    ):
        return False
    return len(clause.stems.split()) <= 6


def _on_device(
    lexicon: Lexicon, clause: SentencePart, context: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the user shall do with a device, and what he is asked about it."""
    if (
        not lexicon.deeds
        or _offers(lexicon, clause)
        or (clause.mood in (Mood.OFFER, Mood.STATEMENT, Mood.CONFIRM) and not clause.asked)
    ):
        return (), ()
    if re.search(r"\b(?:me|us) to\b|\b(?:shall|should|may) i\b(?! ask you to)", clause.text):
        return (), ()
    if _UNSEEN.match(clause.text):
        return (), ()
    look = lexicon.deeds[0]
    asks_state = clause.mood is Mood.QUESTION and _STATE.match(clause.text) is not None
    about = [
        deed for deed in lexicon.deeds if deed.concept.nouns and mentions(deed.concept.nouns, clause.stems)
    ]
    if asks_state and not about and re.search(r"\b(?:it|that)\b", clause.text):
        about = [
            deed for deed in lexicon.deeds if deed.concept.nouns and mentions(deed.concept.nouns, context)
        ]
    if clause.asked and clause.mood in (Mood.QUESTION, Mood.CONFIRM) and _SO_FAR.search(clause.text):
        asks_state = True
    if asks_state or clause.mood in (Mood.QUESTION, Mood.CONFIRM):
        doing = [
            deed
            for deed in lexicon.deeds
            if asks_state
            and (match := speaks_of(deed.concept, clause.stems))
            and (match.named or (deed.concept.nouns and _PAID.search(clause.text)))
        ]
        names = [deed.name for deed in (about or doing)]
        if names:
            return (), tuple(names)
        return (), (("",) if mentions(_SHOW, clause.stems) else ())
    if re.match(r"^\w+ing\b.*\b(?:may|might|could|can|would|will|usually|often)\b", clause.text):
        return (), ()
    found = [
        (match.place, deed.name)
        for deed in lexicon.deeds
        if (match := speaks_of(deed.concept, clause.stems, context)) and match.named
    ]
    if found:
        return tuple(name for _, name in sorted(found)), ()
    alone = [deed.name for deed in lexicon.deeds if speaks_of(deed.concept, clause.stems)]
    if len(alone) == 1 and clause.mood is Mood.REQUEST and _ALONE.match(clause.text):
        return (alone[0],), ()
    return ((look.name,) if mentions(_SHOW, clause.stems) or about else ()), ()


def _foreign(lexicon: Lexicon, clause: SentencePart) -> bool:
    """Whether the speaker would do something that is none of a service's business."""
    return _WOULD_YOU.match(clause.text) is not None or strange(clause.text, lexicon.vocabulary)


def _offers(lexicon: Lexicon, clause: SentencePart) -> bool:
    """Whether a clause is about something that the speaker would do, not the user."""
    if clause.mood not in (Mood.OFFER, Mood.CONFIRM) and not _MINE.search(clause.text):
        return False
    return any(
        (match := speaks_of(concept, clause.stems)) and match.named for concept in lexicon.actions.values()
    )


def _sureness(lexicon: Lexicon, clause: SentencePart) -> Sureness:
    """Whether a clause that denies something refuses what the user wants."""
    text = clause.text
    if _SEES.search(text) or _OF_NO_USE.match(text) or _SUPPOSED.match(text):
        return ""
    act = any(speaks_of(concept, clause.stems) for concept in lexicon.actions.values()) and _CANNOT.search(
        text
    )
    if _FINAL.search(text) or act:
        return "unclear" if _UNTIL.search(text) else "clear"
    return "" if _UNTIL.search(text) or not _CANNOT_DO.search(text) else "unclear"


def _reports(clause: SentencePart) -> bool:
    if _CHECKED.search(clause.text):
        return False
    return _DONE.search(clause.text) and not (
        _FUTURE.search(clause.text) and clause.mood is not Mood.STATEMENT
    )


def _proposal(lexicon: Lexicon, found: tuple[SentencePart, ...], text: str) -> Proposal:
    """The actions of which a message says that they would be done."""
    asks = any(clause.mood is Mood.CONFIRM for clause in found)
    actions, bare, about, told, light = set[str](), set[str](), set[str](), set[str](), set[str]()
    context = ""
    for clause in found:
        offers = clause.mood in (Mood.OFFER, Mood.CONFIRM)
        if offers or (asks and clause.mood in _BESIDE and not _denies(lexicon, clause)):
            aside = _NOT_BUT.search(clause.text) or _MONEY_MOVES.search(clause.text)
            said = stems(_MONEY_MOVES.sub(" ", _NOT_BUT.sub(" ", clause.text))) if aside else clause.stems
            for name, concept in lexicon.actions.items():
                match = speaks_of(concept, said)
                if match and match.light:
                    light.add(name)
                if offers and (match or speaks_of(concept, said, context)):
                    (actions if match and match.named else bare).add(name)
                elif match and match.named and not _GIVEN.search(clause.text):
                    told.add(name)
                if concept.nouns and mentions(concept.nouns, said):
                    about.add(name)
        context = f"{context} {clause.stems}"
    actions = actions or told  # nothing but what is told beside may say what it would be
    return Proposal(
        frozenset(actions | bare),
        frozenset(about | told),
        frozenset(bare - actions),
        frozenset(light),
        named(_KEPT.sub(" ", text), lexicon.patterns),
        _ONLY.search(text) is not None,
    )


def _denies(lexicon: Lexicon, clause: SentencePart) -> bool:
    return clause.mood is Mood.REFUSAL and _sureness(lexicon, clause) != ""


def to_be_changed(text: str) -> str:
    """A text without what it names only to say that it stays as it is."""
    return _KEPT.sub(" ", text)


def concept_of(name: str) -> Concept:
    """The concept of a tool of which nothing but its name is known: its first word."""
    return Concept(name.partition("_")[0])
