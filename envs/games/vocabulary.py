"""The vocabulary of the games."""

from __future__ import annotations

from random import Random
from typing import TypeAlias

COLOURS = ("red", "blue", "green", "yellow", "white", "black", "orange", "purple")

_FIVE_LETTERS = """
about above actor admit adult after again agent agree ahead alarm album alert alive allow alone along alter among
anger angle angry apart apple apply arena argue arise armor array aside asset audio avoid award aware badly baker
basic basis beach beard beast begin being below bench berry birth black blade blame blank blast blend bless blind
block blood bloom board boast bonus boost booth bound brain brake brand brass brave bread break breed brick bride
brief bring broad broom brown brush build bunch burst buyer cabin cable camel canal candy cargo carry catch cause
chain chair chalk charm chart chase cheap check cheek cheer chess chest chief child chill civic civil claim class
clean clear clerk click cliff climb clock close cloth cloud coach coast color couch count court cover crack craft
crane crash crazy cream creek crest crime crisp cross crowd crown crude cruel crush curve cycle daily dairy dance
death debut decay delay dense depth diary dirty doubt dozen draft drain drama dream dress drift drill drink drive
eager eagle early earth elbow elder elect empty enemy enjoy enter entry equal error essay event every exact exist
extra fable faint faith false fancy fault favor feast fence fever field fifth fight final first flame flash fleet
float flock flood floor flour fluid focus force forge forty found frame fresh front frost fruit giant given glass
globe glory glove grace grade grain grand grant grape graph grasp grass grave great green greet grief grill group
grove guard guest guide habit happy harsh haste heart heavy hedge hello honey honor horse hotel house human humor
ideal image index inner input irony issue ivory jelly jewel joint judge juice knife knock label labor large laser
later laugh layer learn lease least leave legal lemon level light limit linen liver local logic loose lower loyal
lucky lunar lunch magic major maker maple march match mayor medal media mercy merge merit merry metal meter might
minor model money month moral motor mount mouse mouth movie music nerve never night noble noise north novel nurse
ocean offer often olive onion opera orbit order organ other ought outer owner paint panel paper party pasta patch
peace peach pearl phase phone photo piano piece pilot pitch place plain plane plant plate point pound power press
price pride prime print prize proof proud pulse punch queen quick quiet quite quote radar radio raise range rapid
ratio reach react ready realm rebel reply rider ridge rifle right rival river roast robin robot rocky rough round
route royal rural salad sauce scale scarf scene scent scope score scout screw seize sense serve seven shade shake
shame shape share shark sharp sheep sheet shelf shell shift shine shirt shock shore short shout sight silly since
skill skirt sleep slice slide slope small smart smell smile smoke snake solar solid solve sound south space spare
spark speak speed spell spend spice spike split spoon sport staff stage stair stake stamp stand stare start state
steak steam steel steep stick stiff still stock stone store storm story stove strap straw strip style sugar sunny
super surge sweet swift swing sword table taste teach teeth thank theme thick thief thing think third thorn three
throw thumb tiger tight title toast today token tooth topic total touch tough tower toxic trace track trade trail
train trait treat trend trial tribe trick troop truck truly trunk trust truth twice twist uncle under union unity
until upper upset urban usage usual valid value vapor vault verse video virus visit vital vivid vocal voice voter
wagon waste watch water whale wheat wheel while white whole woman world worry worth wound wrist write wrong yield
young youth zebra
"""
WORDS: tuple[str, ...] = tuple(_FIVE_LETTERS.split())
"""Common words of five letters."""

PROPERTIES: tuple[tuple[str, ...], ...] = (
    ("red", "blue", "green", "yellow"),
    ("tiny", "small", "large", "huge"),
    ("forest", "river", "desert", "mountain"),
    ("round", "flat", "long", "square"),
    ("soft", "hard", "wet", "sticky"),
    ("silent", "loud", "singing", "humming"),
    ("warm", "cold", "hot", "frozen"),
    ("young", "old", "ancient", "new"),
)
"""Words that describe the things of a made-up world, one family a line."""

SPEAKING = frozenset(
    [
        "about", "after", "again", "along", "alone", "among", "begin", "check", "clear", "every", "exact",
        "extra", "final", "first", "given", "great", "ideal", "later", "least", "might", "never", "offer",
        "often", "order", "other", "ought", "place", "point", "quick", "quite", "reply", "right", "round",
        "score", "sense", "share", "short", "since", "small", "smart", "solve", "sound", "start", "state",
        "still", "think", "third", "three", "today", "total", "track", "under", "until", "usual", "value",
        "while", "whole", "worth", "wrong",
    ]
)  # fmt: skip
"""Words with which one speaks of a guess; beside another word they are none."""

_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z")
_VOWELS = ("a", "e", "i", "o", "u")
NAMES: tuple[str, ...] = tuple(
    first + vowel + second + end
    for first in _ONSETS
    for vowel in _VOWELS
    for second in ("rl", "mp", "nd", "x")
    for end in ("o", "a")
)
"""Names of things that there are not."""

World: TypeAlias = list[tuple[str, list[str]]]


def make_world(rng: Random, things: int, families: int, values: int) -> World:
    """Things with one property of each family, no two alike; names in the order in which they are told."""
    chosen = [family[:values] for family in rng.sample(PROPERTIES, families)]
    kinds: dict[tuple[str, ...], None] = {}
    while len(kinds) < things:
        kinds[tuple(rng.choice(family) for family in chosen)] = None
    names = rng.sample(NAMES, things)
    return [(name, list(kind)) for name, kind in zip(names, kinds, strict=True)]
