"""The words of conversations: families of words, what tasks are drawn from, several ways of saying the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from turnwise.envs.wordings import ways
from turnwise.tasks.core import digest

_GREET = "hello hi hey greetings welcome morning evening"
_ASK = "what which why how where who when ask wonder tell explain"
_AGREE = "accept agree agreed deal yes ok okay sure gladly"
_REFUSE = "no not never refuse reject decline cannot can't don won nope without"
_LEAVE = "bye goodbye leave farewell quit"
_THANK = "thank thanks grateful appreciate"
_RUDE = "stupid idiot fool shut liar useless pathetic dumb ridiculous"

GREET, ASK, AGREE, REFUSE, LEAVE, THANK, RUDE = (
    frozenset(text.split()) for text in (_GREET, _ASK, _AGREE, _REFUSE, _LEAVE, _THANK, _RUDE)
)


def families(text: str) -> dict[str, frozenset[str]]:
    """Word families written as ``name : word word`` a line.

    >>> families("cost : price money")["cost"] == {"price", "money"}
    True
    """
    pairs = (line.split(" : ") for line in text.strip().splitlines())
    return {name.strip(): frozenset(words.split()) for name, words in pairs}


def phrase(seed: str, variants: Sequence[str], most: int) -> str:
    """One of the first ``most`` ways of saying something: the same one for the same seed.

    >>> phrase("a", ("yes", "sure"), 1)
    'yes'
    """
    return variants[int(digest(seed, variants[0]), 16) % min(most, len(variants))]


def language_game(families: Mapping[str, Iterable[str]], more: str) -> str:
    """What an agent is told of the language that a scripted partner understands.

    >>> language_game({"thank": ["thanks", "grateful"]}, "That is all.").splitlines()[-2]
    'thank: grateful, thanks'
    """
    lines = [f"{name}: {', '.join(sorted({*words} - {name}))}" for name, words in families.items()]
    first = "The other is a script: this is a small language game. It knows what is meant by such words:"
    return "\n".join(["\n", first, *lines, more])


# --- bargain ----------------------------------------------------------------------------------------

ISSUES: dict[str, tuple[str, ...]] = {
    "colour": ("red", "blue", "white", "black"),
    "delivery": ("monday", "tuesday", "friday", "sunday"),
    "payment": ("cash", "card", "cheque", "invoice"),
    "warranty": ("short", "medium", "long", "lifelong"),
    "place": ("office", "station", "harbour", "airport"),
    "size": ("small", "large", "wide", "tall"),
    "gift": ("lamp", "book", "mug", "poster"),
}


# --- persuade ---------------------------------------------------------------------------------------

PLANS = ways(
    "the solar roof | the new bus line | the school garden | the night shift | the shared kitchen | the choir "
    "|| the swimming club | the book exchange | the car pool "
    "|| the street festival | the repair shop | the neighbourhood watch | the bee hives | the tool library"
)
"""What somebody is to be won for."""

TOPICS = families("""
cost : price money expensive afford costs costly pay
time : busy hours schedule long slow quick
safety : safe danger dangerous risk risky secure
effort : work hard easy tiring trouble
trust : believe honest reliable promise cheat
noise : loud quiet silent disturb sound
""")

KINDS = families("""
numbers : figures data statistics percent evidence study facts
story : example neighbour experience happened friend stories
trial : try test sample demo week trials
""")


# --- comfort ----------------------------------------------------------------------------------------

TROUBLES = ways(
    "an exam | my job | a quarrel | an illness | moving away | my team | my neighbour | money "
    "|| a lost friend | a long winter | my landlord "
    "|| a bad mark | my knee | a broken promise | my sister | an empty shop | the driving test"
)

COMFORTING_ACTS = families("""
joke : joke funny laugh haha
belittle : exaggerate forget childish
reframe : view side perspective otherwise differently
advise : should could try advise suggest advice plan step
praise : strong stronger proud brave able well encourage good great lucky worth
hear : understandable understand sense hear listen natural sorry heavy awful frustrating painful hurts
ask : what how tell why when more happened who
""")
"""Acts by a single word. What takes more than one word to say is in ``COMFORTING_PHRASES``."""

COMFORTING_PHRASES: Mapping[str, tuple[str, ...]] = {
    "belittle": (
        r"it is nothing|(?:calm|cheer|get) (?:down|up|over)|pull yourself|\bover it\b(?! all)|just an? \w+\W*$|not this again",
        r"grow up|(?<!not )(?<!n't )a bit silly|you(?:'d| would| should| could|'ll)? (?:have|'ve) (?:seen|known|started|thought)",
        r"should've|if you'd|your (?:own )?fault|look at yourself|it takes two|then don't|fail anyway|deserve|won't (?:help|pay)",
        r"stop (?:crying|whining|it)|honestly|^ha\b|your poor|there must have been a reason|did you (?:smoke|drink)",
        r"that's \w+ for you|others have it worse|\(looks|plenty (?:more )?fish|a new one|always get",
    ),
    "hear": (
        r"(?:that|it|this)(?: all)? (?:must|sounds?|is|seems|has to)(?: be| feel| have been)? (?:\w+ ){0,2}(?:hard|tough|lonely|sad)",
        r"(?:must be|sounds|can be|is|be|so) (?:\w+ ){0,2}(?:a lot|exhausting|disappointing|scary|rotten|difficult|stressful|upsetting|terrible|horrible|loud)",
        r"must (?:be|feel|have been|pull)|no wonder|makes sense|(?:not|isn't) silly|i (?:get|feel) (?:it|that|you)|i can (?:feel|see|hear|imagine)",
        r"here (?:for you|with you|to listen)|glad (?:that )?you(?:'re| are)? tell|sit with you|you (?:sound|seem|feel|must feel|look|loved)",
        r"i know (?:it|that|this) too|rotten feeling|i've got time|i have time|it's (?:alright|okay|all right) to|can be (?:so|very)",
        r"(?:any(?:body|one)|every(?:body|one)) (?:would|might|could) (?:feel|be)|i (?:do )?understand|of course you|only natural",
        r"(?:love|loss) leaves|right to (?:feel|be)",
    ),
    "praise": (
        r"you (?:can|will|'ll) (?:do|manage|find|make|get through)|believe in you|you(?:'ve| have) (?:got|worked|done|come|been through|shown)",
        r"you(?:'ve| have) (?:managed|mastered|made it|overcome|survived|handled)|proud of you|doing (?:so )?(?:well|great|fine)",
        r"you(?:'re| are) (?:(?:so|very|really|more|stronger|braver) )*(?:capable|courageous|talented|tough|kind|gifted|clever|wonderful|good at)|admire",
        r"you got this|act of love|good life|how much you know|(?:nobody|no one) can take|count themselves|stay positive|stronger than",
    ),
    "advise": (
        r"one (?:small )?(?:step|thing)|(?:give|giving) it a try|why not|ask(?:ing)? (?:for|somebody|someone)|talk to (?:somebody|someone)",
        r"\blet(?:'s| us)\b|would be a start|a first|try to|write down|have you (?:thought|tried|considered)|there's a \w+",
        r"going through|you might|right to see",
    ),
    "reframe": (
        r"not the first|anybody can|everyone (?:makes|can|has)|shows that|says nothing about|don't have to know|nothing you have to",
        r"(?:may|might|could) (?:turn out|look|be different|seem)|something good|a chance|new beginning|bright side|on the other hand",
        r"learn (?:something )?from it|silver lining|look at it|not (?:be )?(?:as|so) bad as",
        r"(?:perhaps|maybe) (?:she|he|they|it)|because (?:you care|it matters)|when one door|another (?:way|side|door|look)",
    ),
    "ask": (
        r"(?:would|do) you (?:like|want) to (?:tell|talk|say|share)|talk about it|on your mind|the matter|going on|trouble(?:s|ing) you|is there (?:someone|anyone|anything)|may i ask|go on\b|breathe with me",
    ),
}
"""Acts that take more than one word, as regular expressions over the message in small letters."""

NOTHING_SAID = frozenset(
    [
        "hm",
        "hmm",
        "mm",
        "mmm",
        "ok",
        "okay",
        "yeah",
        "yes",
        "yep",
        "right",
        "oh",
        "ah",
        "uh",
        "huh",
        "uhuh",
        "i",
        "see",
        "noted",
        "sure",
        "well",
        "no",
        "so",
    ]
)
"""Words of which a message says nothing, however many of them there are."""

FEELINGS = families("""
angry : anger angers furious mad rage annoyed irritated
afraid : fear scared scary scares anxious frightened frightening frightens panic terrified
lonely : alone loneliness abandoned isolated
ashamed : shame embarrassed embarrassing humiliated humiliating guilty guilt
tired : exhausted exhausting drained draining worn weary
""")


# --- social -----------------------------------------------------------------------------------------

FAVOURS: Mapping[str, str] = {
    "ladder": "lend the ladder", "plants": "water the plants", "dog": "walk the dog", "bike": "repair the bike",
    "cake": "bake a cake", "letter": "post the letter", "sofa": "carry the sofa", "kids": "watch the kids",
}  # fmt: skip

FACTS = ("bakery", "spring", "shortcut", "festival", "library", "ferry")

SECRETS = ("lottery", "wedding", "tattoo", "debt", "novel", "rival")
