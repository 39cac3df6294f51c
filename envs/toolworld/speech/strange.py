"""Strange offers: the speaker would do something that nobody asked for and no service does.

Nonsense has no end, so it is not listed: what is known are the words of a service, and a first person who would do
something else to something else, or who wants a thing of the listener's that no service knows, is strange.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from turnwise.envs.toolworld.speech.words import stem, stems

_SOFTLY = r"(?: (?:now|also|then|just|gladly|simply|quickly|happily|first|therefore|go ahead and|like to|love to|have to|need to|be able to|only))*"
_WOULD = re.compile(
    rf"\b(?:i|we) (?:will|would|can|could|may|might|shall|am going to|are going to|am about to|want to){_SOFTLY} (?!be\b|not\b)(\w+)(.*)|"
    rf"\b(?:shall|should|may|can|could|if|do|might|must|mind if) (?:i|we){_SOFTLY} (\w+)(.*)|\b(?:me|us) to{_SOFTLY} (\w+)(.*)|\b(?:how about i|let me|let us){_SOFTLY} (\w+)(.*)|\bhave (?:me|us) (\w+)(.*)"
)
_THEIRS = re.compile(r"\byour ((?:[\w'-]+ ?){1,3})")
_A_THING = re.compile(r"^ (?:you )?an? ((?:[\w'-]+ ?){1,3})")
_GIVE_ME = re.compile(
    r"\b(?:give|hand|send|sign over|leave|lend|sell) (?:it |them )?(?:to )?(?:me|us)\b|\byou (?:give|hand|send|sign over|leave|lend|sell)\b"
)
_ENDING = frozenset(
    stems(
        "suspend block delete close terminate cut disconnect bar reject destroy sell publish post deactivate freeze confiscate cancel void remove"
    ).split()
)
"""Verbs that take something away: they are never a mere way to say "do it"."""
_GENERAL = frozenset(
    stems(
        "do go proceed continue start make arrange process register charge carry move set apply handle submit finalize finalise complete sort get "
        "have be see check look confirm take put add give offer book place use reserve need ask just now also like then not open close lock save "
        "note write enter push press pull switch send return issue raise let keep help find work try say tell know call bring turn run fix clear lift "
        "execute action schedule secure grab snap store record log credit refund pay cover waive leave show create generate trigger kick "
        "prepare request release authorize authorise validate initiate launch file count treat understand gather assume presume"
    ).split()
)
"""Verbs that say nothing about what is done."""
_POINTING_TEXT = (
    "it that this them these those one you so both all ahead up off on in out down over through along forward "
    "back with for to at by from as right away everything something anything and or if when once while now "
    "then"
)
_POINTING = frozenset(_POINTING_TEXT.split())
_ENDS_TEXT = (
    "to for with on in at by from of into onto as if when once and or but is are was will would that which "
    "back so i we it they"
)
_ENDS = frozenset(_ENDS_TEXT.split())
_SERVICE_TEXT = (
    "order booking name address street item product parcel package delivery shipment "
    "card paypal gift payment method money refund difference amount sum rest balance price cost fee charge fare total bill invoice account profile line "
    "number plan tariff package data roaming service phone handset device sim apn settings mode network internet calls texts certificate voucher credit "
    "compensation insurance meal wrapping label change swap upgrade downgrade exchange return cancellation request button trigger switch wheels paperwork form "
    "okay word nod yes go-ahead blessing permission approval consent confirmation say-so thumbs answer decision call choice vote verdict agreement green light signal reply "
    "side end behalf convenience liking taste case matter issue problem wish mind patience time moment day date week month home house-number place "
    "details information identity email e-mail zip code pin birthday id status tier membership gold silver regular allowance savings bank statement "
    "current new old original existing next first second last other usual current remaining whole full entire extra additional free cheap cheaper "
    "itinerary journey route departure date companion travel document dollars cents gigabytes gigs gb top-up purchase records file system deal bargain "
    "note correction spelling option offer block barring bar suspension lock stock warehouse basket cart"
)
_SERVICE = frozenset(stems(_SERVICE_TEXT).split())


_NAMED = re.compile(
    r"(?<!\bin )\b(?:the|your|an?|another) ((?:[a-z'-]+ ){0,4}?[a-z'-]+)(?= (?:in|of|from|on|onto|into|to|for|with|and|or|back|at|out|off|over|by|instead|now|then|is|are|was|has|have|will|would|could|can|as|before|under|"
    r"today|again|it|you|we|i|that|which|costs?|comes?|goes?|leav\w+|plus|per|than|if|so|up|down|worth|while|since|only|inside|right|outright|there|just|once|thanks|due|too|still|away|later|yours|stays?|covers|fits|matches|\$\S+|\d\S*)\b|$|[,.;:?!()])"
)
_EVERYDAY_TEXT = (
    "house budget legroom wallet culprit fancy liking bin blink bus pocket wallet purse longer shorter sooner kid kids child wife husband partner trip holiday wedding birthday party gift mood acceptable one ones suit exception question right sound they instead quarter afternoon morning evening night hold following damage pair figure penny lot basis "
    "customer queue honour honours mere lowest least surcharge reason ball rolling bet third half road thumb minute second hour match something anything way ways thing things occasion instant fault column "
    "grown-up star stars between settled stand while bit touch click tap tick jiffy shot go try chance risk trick job word words line lines rule rules policy team desk office counter colleague "
    "supervisor manager expert specialist agent assistant person people human friend pleasure favour hand hands heart soul life world year weekend noon midnight fact facts truth story point points "
    "step steps part parts piece pieces bottom top middle corner edge hook door table floor page pages list lists screen window front view eye eyes ear ears finger fingers head face back foot "
    "start end beginning finish close clear good bad nice fine okay better best worse worst easy quick fast simple full short long small big large medium cheap cheaper cheapest dear dearest expensive expensive priciest "
    "pending economy business basic cost upside downside snag catch hitch obstacle hurdle benefit advantage condition conditions term terms limit limits gap allowance quota rate rates level share portion slice "
    "sound tune note kind kinds sort sorts type types set pack bunch couple dozen few many more most other others same such whole rest remainder balance outcome result results effect effects consequence "
    "possibility alternative version variant colour color size shape look feel fit style model make brand row aisle deck leg legs stop stops connection layover runway gate airport city town village country abroad "
    "trouble wait delay delays inconvenience mess mix-up mixup mistake mistakes error errors slip typo letter letters digit digits character spelt spelled spelling surname calendar clock timetable schedule slot deadline "
    "summary overview recap list spot place address places mile miles distance heads-up bell bells whistle magic wand needful deed deeds ink paper pen pencil stamp record books book ledger column file files form forms box boxes field fields tick ticks cross "
    "network signal icon symbol switch button cable charger battery sim card slot tray app apps website internet web connection browser traffic speed megabyte megabytes volume usage"
)
_EVERYDAY = frozenset(stems(_EVERYDAY_TEXT).split())
"""Nouns in which everybody talks about everything."""


_ADVERBS = re.compile(r"\S{3,}(?:ed|ing|ly)\b|\bred\b|\S+-\S+|(?<=-)\S+|'s?\b")


def things_of(text: str, known: AbstractSet[str]) -> frozenset[str]:
    """The things of which a normal clause speaks with a word that no service knows, as stems: what they are, last.

    >>> sorted(things_of("i will keep the money as a souvenir", set())), sorted(things_of("shall i cancel the order?", set()))
    (['souvenir'], [])
    """
    phrases = [stems(_ADVERBS.sub("", phrase)) for phrase in _NAMED.findall(text)]
    return frozenset(phrase for phrase in phrases if any(is_unknown(word, known) for word in phrase.split()))


_HARM_TEXT = (
    "smash destroy wreck crush shred steal rob spy mock insult tease harm drown poison sabotage hijack scam swindle defraud blackmail threaten "
    "sue arrest jail humiliate ridicule harass kidnap bribe gamble smuggle embezzle confiscate overcharge betray bomb explode tattoo shave "
    "hypnotize curse bewitch volcano jungle zoo circus casino prison thief crook witch wizard dragon unicorn goat elephant secretly prank"
)
_HARM = frozenset(stems(_HARM_TEXT).split())
"""Stems of words that hurt, destroy or mock and are no figure of speech, as to hit submit, throw in a service
or shoot a label over are."""
_SUFFERED = re.compile(
    r"\b(?:your|have|had|has|was|were|been|got|get|gets|is|are|the) (?:\w+ )?(?:harmed|stolen)\b"
)
"""Harm that is told."""


def harms(text: str, known: AbstractSet[str]) -> bool:
    """Say whether a normal clause speaks of harm with a word that the domain does not use; ``known`` are its
    stems.

    >>> [harms(text, {"order"}) for text in ("i would gladly smash your lamp", "the lamp was stolen", "shall i hit submit?")]
    [True, False, False]
    """
    found = (_HARM - known).intersection(stems(text).split())
    return bool(found) and bool(_HARM.intersection(stems(_SUFFERED.sub(" ", text)).split()) - known)


def in_service(root: str) -> bool:
    """Say whether a stem is a word of any service."""
    return root in _SERVICE


def is_unknown(root: str, known: AbstractSet[str]) -> bool:
    """Say whether a stem is no word of a service, of a domain, or of everybody."""
    return not (
        root in known
        or root in _SERVICE
        or root in _GENERAL
        or root in _EVERYDAY
        or root in _POINTING
        or any(sign.isdigit() for sign in root)
    )


def deeds_of(text: str) -> frozenset[str]:
    """The verbs of a normal clause, as stems, with which its speaker would do something particular to something.

    >>> sorted(deeds_of("shall i suspend your line?")), sorted(deeds_of("shall i grab it?"))
    (['suspend'], [])
    """
    found = frozenset[str]()
    for verb, rest in _speaker_verbs(text):
        words = re.findall(r"[\w'-]+", rest)
        pointed = not words or words[0] in _POINTING
        if stem(verb) not in _GENERAL and (stem(verb) in _ENDING or not pointed):
            found |= {stem(verb)}
    return found


def _speaker_verbs(text: str) -> list[tuple[str, str]]:
    """List what a first person would do: each verb with what follows it."""
    return [
        next((found[at], found[at + 1]) for at in range(0, len(found), 2) if found[at])
        for found in _WOULD.findall(text)
    ]


def strange(text: str, known: AbstractSet[str]) -> bool:
    """Say whether the speaker of a normal clause would do something strange; ``known`` are the stems of a
    domain's words.

    >>> [strange(text, {"order"}) for text in ("shall i save it?", "i will forge a signature", "i will scrap your order")]
    [False, True, False]
    """
    verbs = _speaker_verbs(text)
    for verb, rest in verbs:
        plain = stem(verb) in _GENERAL or stem(verb) in known
        if not plain and _unknown_object(rest, known):
            return True
        if plain and (thing := _A_THING.match(rest)) and _unknown(thing[1].split(), known):
            return True
    return bool(verbs or _GIVE_ME.search(text)) and any(
        _unknown(owned.split(), known) for owned in _THEIRS.findall(text)
    )


def _unknown_object(rest: str, known: AbstractSet[str]) -> bool:
    """Say whether what follows a verb begins with a thing of which no service knows."""
    words = re.findall(r"[\w'-]+", rest)
    return bool(words) and words[0] not in _POINTING and _unknown(words, known)


def _unknown(words: list[str], known: AbstractSet[str]) -> bool:
    for word in words:
        if word in _ENDS:
            return True
        root = stem(word)
        if root in known or root in _SERVICE or any(sign.isdigit() for sign in word):
            return False
    return True
