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

GREET, ASK, AGREE, REFUSE, LEAVE, THANK = (
    frozenset(text.split()) for text in (_GREET, _ASK, _AGREE, _REFUSE, _LEAVE, _THANK)
)


def word_set(text: str) -> frozenset[str]:
    """The words of a text.

    >>> sorted(word_set("price money"))
    ['money', 'price']
    """
    return frozenset(text.split())


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
    """Return what an agent is told of the language that a scripted partner understands.

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
"""Plans for which somebody is to be won."""

TOPICS = families("""
cost : price money expensive afford costs costly pay paying cent cents wallet purse budget cheap cheaper fee fees spend spends
time : busy hours hour minutes schedule long slow quick
safety : safe danger dangerous risk risky secure accident accidents
effort : work hard easy tiring trouble labour
trust : believe honest reliable promise cheat cheated trustworthy
noise : loud quiet silent disturb sound noisy din
""")

KINDS = families("""
numbers : figures data statistics percent evidence study facts number survey
story : example neighbour experience happened friend stories neighbours friends
trial : try test sample demo week trials trying tested taster
""")

INCIDENTAL = word_set(
    "safe secure risk hard easy work long slow quick sound believe trouble promise pay experience happened facts evidence try week hour"
)
"""Words that count as a worry or a kind of argument only where no plainer one is said: ``your wallet is safe`` speaks of money."""

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

_YOU_ARE = r"\byou(?:'re| are| have been|'ve been| were| seem| look| sound)"
_SITUATION = r"\b(?:it|that|this|things|those|these|what)(?:'s|\b)(?: \w+){0,4}"
_HARD = (
    r"(?:hard|tough|rough|sad|painful|heavy|awful|terrible|horrible|dreadful|unfair|difficult|upsetting|stressful|frustrating|rotten|cruel"
    r"|disappointing|exhausting|scary|lonely|loud|overwhelming|heartbreaking|devastating|a lot|so much|unbearable|miserable|frightening|intimidating"
    r"|draining|embarrassing|humiliating|unpleasant|nasty|hurtful|shock|blow|nightmare|burden|bitter|agonising|gutting)"
)
_GOOD = (
    r"(?:strong|stronger|tough|tougher|brave|braver|capable|courageous|talented|kind|gifted|clever|smart|wonderful|remarkable|impressive|amazing"
    r"|incredible|resilient|resourceful|able|great|loyal|patient|lovely|enough|proud|good at|worth|valuable|reliable|determined|thoughtful"
    r"|generous|special|caring|considerate|good (?:person|friend|heart)|lucky|doing (?:\w+ ){0,2}(?:well|great|fine|better|enough|right)|fighter|made of)"
)
_VERB = (
    r"(?:ask|tell|talk|speak|call|write|try|take|start|begin|go|see|make|plan|set|get|find|look for|let|break|give|practise|practice|send|visit|join"
    r"|rest|sleep|breathe|share|offer|apologise|apologize|explain|show|put|keep|book|check|read|list|learn|think about|consider|meet|walk|focus"
    r"|say|do|use|invite|reach|open|pick|split|work|move|change|leave|step|wait|allow|treat|spend|turn|have|prepare|note|jot|contact|seek)"
)

COMFORTING_PHRASES: Mapping[str, tuple[str, ...]] = {
    "belittle": (
        r"\b(?:it|that|this)(?:'s| is| was) (?:nothing|no big deal)\b(?! to\b| you\b| like\b| wrong| less| short)",
        r"(?:^|[,;:]|\b(?:just|please|now|so|well|should) ) ?(?:calm|cheer|man) (?:down|up)\b|pull yourself",
        r"(?<!help you )\bget over (?:it|yourself|her|him)",
        r"(?:it|that|this)(?:'s| is| was) (?:just|only) an? \w+\W*$|grow up\b|so childish",
        (
            r"(?:you(?:'re| are)|both|being|is|it's|that's) (?:\w+ ){0,2}(?:childish|silly|ridiculous|pathetic|dramatic"
            r"|overreacting|oversensitive|exaggerating)"
        ),
        r"you(?:'d| would| should| could|'ll)? (?:have|'ve) (?:seen|known|started|thought)|should've",
        r"if you'd\b(?! like)|(?:your own|it's your|it is your|all your) fault|look at yourself(?! with)",
        r"it takes two|fail anyway",
        r"^(?:well,? |maybe,? |perhaps,? )*you (?:\w+ )?deserved? (?:it|this|that)\b",
        r"stop (?:crying|whining|it|moaning|complaining|making|being so)|honestly\W+i(?:'d| would) have|^ha,",
        r"^your poor",
        r"there must have been a reason|did you (?:smoke|drink)",
        r"that's (?:\w+ism|life|men|women|love|families) for you|others have it worse",
        r"other people have (?:real|bigger|worse)|\(looks|plenty (?:more )?fish|a new one|you exaggerate",
        r"(?:^|[,;:]|\b(?:just|simply|so) ) ?forget (?:it|about it|her|him)\b",
        r"such a fuss|how can (?:one|you|anyone) be so|you always (?:complain|whine|moan)|who cares",
        r"(?:a|such a) (?:crybaby|drama queen)|toughen up|snap out",
    ),
    "joke": (
        r"\bhere(?:'s| is) a (?:joke|funny)|hear a (?:\w+ )?joke|knock knock|walks into a bar|just kidding",
    ),
    "reframe": (
        r"not the (?:first|only|end)\b|any(?:body|one) can\b",
        r"every(?:one|body) (?:makes|fails|stumbles|goes through)",
        (
            r"(?:it|things|that|this|life)(?:'ll| will| does| do|'s going to| is going to)? (?:\w+ )?(?:get better"
            r"|improve|work out|ease|be (?:fine|okay|alright|ok|better))"
        ),
        r"(?:you'll|you will|you're going to) (?:\w+ )?be (?:\w+ )?(?:fine|okay|alright|ok|better off)",
        r"better off without|(?:still|always) (?:\w+ )?hope\b|for the best\b|shows (?:that|how) (?:it|you|much)",
        r"(?:says|tells us|means) (?:nothing|less|little|more) about|don't have to know",
        (
            r"\b(?:may|might|could|can|will) (?:\w+ ){0,3}(?:turn out|look (?:\w+ ){0,2}(?:different|smaller|back)"
            r"|be (?:\w+ )?(?:different|for the best|a chance|the start|a start|just as)|seem (?:\w+ )?(?:different"
            r"|smaller))"
        ),
        r"something (?:good|new)\b|\ba chance\b|(?:new|fresh) (?:beginning|start|chapter)",
        r"(?:bright|brighter|good|other|another) side\b|silver lining|on the other hand",
        r"learn\w* (?:something |a lot )?from|teach\w* (?:us|you|me)|look at (?:it|this|that|things)\b",
        r"look(?:ed|ing)? at (?:it |this |that )?(?:\w+ )?(?:differently|another)",
        r"another (?:way|door|look|angle|view|explanation|reading)|different (?:light|angle|way of seeing|perspective)",
        r"not (?:be )?(?:nearly |quite )?(?:as|so) (?:bad|hopeless|dark|final)",
        r"less (?:hopeless|bad|dark|dramatic|final)|darker (?:at night )?than|because (?:you care|it matters)",
        r"when one door",
        r"what if (?:it|this|that|they|he|she|you) (?:\w+ ){0,2}(?:says?|means?|was|were|is|are|wasn't|isn't|had|has)",
        (
            r"\b(?:perhaps|maybe|possibly|it could be|could it be|it's possible|it is possible|it may be|it might be"
            r"|who knows)\b,? (?:that )?(?:in (?:a|some) \w+ )?(?:she|he|they|it|it's|this|that|one day|there"
            r"|the)\b(?! (?:would|might|could|may|is|will)?(?: be)? ?(?:help|time|worth|best|good|nice|a way|better)"
            r"| helps)"
        ),
        r"there(?:'s| is| may be| might be) (?:another|a bright|more to|also|still)",
        (
            r"(?:won't|will not|doesn't|does not|isn't going to|isn't|can't|cannot) (?:last|be like this|be this way"
            r"|stay like) ?(?:forever|for ever|always)?"
        ),
        r"this(?: too|, too,?)? (?:will|shall) pass",
        r"(?:doesn't|does not|don't|do not|didn't|can't) (?:make you|define|decide|mean (?:that )?you)|doesn't mean",
        r"from (?:where i|a distance|the outside|far away|another|a different|this|that side)",
        r"in the (?:bigger|big|larger|long) (?:picture|run)|bigger picture|think of (?:it|this|that) as",
        r"see (?:it|this|that) as|proof that",
        r"(?:it|that|this)(?:'s| is) (?:\w+ )?(?:less|more) (?:a|an|of a) .* than|rather than (?:a|an) |one chapter",
        r"bend in|\bturn(?:s|ed)? out (?:to|that)|\b(?:plenty|lots) of (?:\w+ ){1,3}(?:fail|struggle|stumble)",
        r"when one thing|room (?:opens )?for|closes?,? another|you might (?:look back|find that|even)",
        r"judging yourself|hard on yourself\?|a blessing|stepping stone",
        r"part of (?:life|being|learning|the (?:journey|process|story))|more to the story",
        r"many (?:\w+ )?(?:people )?(?:have|feel|go|went|been)|wasn't (?:about|because of) you|same (?:boat|place)",
        r"life goes on|other (?:roads|ways|doors|chances)|time heals|(?:hurts?|pain) (?:\w+ )?shows",
        r"one (?:bad|single) (?:day|week|mark|moment|mistake)|mistakes? (?:is|are|happens?)|your thoughts are not",
        r"feelings? (?:is|are)n't facts?",
    ),
    "praise": (
        rf"{_YOU_ARE} (?:\w+ ){{0,4}}{_GOOD}\b",
        (
            r"\byou (?:can|will|'ll|could) (?:\w+ )?(?:do (?:it|this|that)|manage|handle|make it|get through"
            r"|find (?:your|a|the) way|overcome|cope|be (?:\w+ )?proud|succeed|rely on yourself)"
        ),
        r"you'll (?:\w+ )?(?:do|manage|handle|find|make|get through|cope)",
        r"(?:believe|faith|trust|confidence|confident) (?:\w+ )?in you|\bi (?:\w+ )?trust you\b",
        r"(?:proud|admire|in awe|impressed|respect) (?:\w+ ){0,2}(?:of |by |at )?(?:you|how|what|the way|your)",
        r"i(?:'m| am) (?:\w+ )?proud",
        (
            r"you(?:'ve| have) (?:\w+ )?(?:got (?:this|what|it in|so much)|worked|done|come|been through|shown|managed"
            r"|mastered|made it|overcome|survived|handled|coped|dealt with|found (?:a|your) way|proved|achieved"
            r"|what it takes|a gift|a talent|(?:so much |such )?(?:courage|strength|heart|talent)|this in you"
            r"|every reason to be proud)"
        ),
        r"you got this|act of love|good life|how much you know|count themselves|stay positive",
        r"(?:stronger|braver|tougher|more capable) than|(?:doing|are|'re) better than|credit\b",
        r"that (?:was|is|took|takes) (?:\w+ ){0,3}(?:brave|courage|strength|strong|impressive)",
        r"(?:takes|took|need(?:s|ed)?|shows) (?:\w+ ){0,2}(?:courage|strength|guts)",
        (
            r"(?:your|the) (?:patience|strength|courage|kindness|honesty|way you (?:\w+ ){1,5}is|care|persistence|heart"
            r"|effort|determination) (?:\w+ )?(?:is|are|amazes?|shows?|inspires?|counts?)"
        ),
        r"you (?:matter|did (?:\w+ ){0,4}(?:well|right|best|everything you could|good|great|fine)|always (?:find|get|manage))",
        r"(?:right|good|wise) (?:decision|choice|call)|look (?:at )?how (?:much|far)",
        r"people (?:\w+ )?(?:rely|count|depend|lean) on you|what you(?:'ve| have) (?:achieved|done|built|managed)",
        r"i know you(?:'ll| can|'ve| will)",
        r"you (?:really )?(?:have|carry) (?:\w+ ){0,4}(?:in you|inside you|strength|courage|talent|gift|heart)",
        r"well done|good for you|only you could",
        r"(?:sure|certain|convinced|know|doubt) (?:that )?you(?:'ll| will| can)\b",
    ),
    "advise": (
        r"\byou (?:\w+ )?(?:should|ought to|need to|(?:might|may) want to|could (?:also|always|even|perhaps|maybe))(?! be proud) \w+",
        r"(?:it's|it is|might be|may be) (?:\w+ )?time (?:to|for you)|make sure",
        r"\b(?:let|tell) (?:her|him|them|your \w+) \w+",
        r"(?:don't|do not|never) (?:let|give up|be afraid to|be so|be too)",
        (
            rf"\byou (?:\w+ )?(?:could|might|should|can|may|ought to|need to|have to)(?: (?:also|always|perhaps|maybe"
            rf"|just|simply|first|want to|try to|even|still|well|like to))* {_VERB}\b(?! through| it\W*$)"
        ),
        (
            rf"(?:maybe|perhaps|possibly) (?:you (?:can|could|should|might)|we (?:can|could|should)|{_VERB}\b|try"
            rf"|a (?:small |short |first |little )?\w+)"
        ),
        r"(?:would|might|could|may|can|will|sometimes|often|it) (?:\w+ )?helps?(?: \w+)?\b|\blet(?:'s| us) (?!me)",
        r"(?:would|could) be a (?:good )?(?:start|idea|beginning)",
        r"a (?:good )?(?:first|next|small|little) (?:step|start|move|thing|message)|a good (?:start|idea|way)",
        r"have you (?:ever )?(?:thought (?:of|about)|tried|considered)|there's a \w+ (?:that|which|for|near)",
        (
            r"(?:^|[,;:]|\b(?:and|then|so|just|now|please|first|small)\b) ?(?:try|start|begin|go|take|write|make|set|ask"
            r"|call|talk|breathe|rest|sleep|consider|allow yourself|give yourself|get|focus|treat yourself|think about"
            r"|remember to|practise|plan|drink|eat|reach out|put|don't (?:rush|force|decide|be (?:so|too) hard|give up"
            r"|hesitate|forget to))\b(?! care| all the time| it easy\W*$| your time)(?!\W*$)"
        ),
        (
            r"(?:why not|why don't you|what if you|how about|what about|how would it be if|would it (?:be (?:possible|useful|helpful)|help"
            r"|make sense)|could you (?:\w+ )?(?:ask|try|take|talk|speak|call|write|find|start|imagine (?:asking|talking"
            r"|taking)))\b"
        ),
        r"(?:give|giving|worth) (?:it|that|this) (?:a )?(?:try|go|shot)",
        r"(?:it's|it is|would be|might be) (?:\w+ )?worth (?:\w+ing)",
        r"ask(?:ing)? (?:for|somebody|someone|a friend|your)|talk(?:ing)? to (?:somebody|someone|a)\b",
        r"\b(?:i'd|i would|i) (?:\w+ )?(?:suggest|recommend|advise|start|begin|propose|talk to|take it slow|look into|try|avoid)\b",
        r"my (?:advice|suggestion|tip|recommendation|idea)|if (?:i were you|it were me)\b",
        r"in your (?:place|position|shoes),? i(?:'d| would) (?!feel|be )|one (?:idea|option|way|thing (?:you|that))",
        r"what i(?:'d| would) do|the best (?:thing|way|step)|(?:one|a) (?:small |tiny |little )?step",
        r"one day at a time|bit by bit|step by step|one thing at a time",
        r"(?:a|one) (?:small|tiny|little) (?:thing|goal|task|walk)",
        r"we (?:could|can) (?:\w+ )?(?:go|make|look|write|plan|work|think|find|try|sit)",
        r"write (?:it |them |this )?down|right to see|going through the|you might|try to\b",
        r"a (?:break|deep breath|counsellor|therapist|professional)\b",
    ),
    "hear": (
        rf"{_SITUATION} (?:\w+ ){{0,4}}{_HARD}\b|(?:must|sounds?|can|feels?|is|so) (?:\w+ ){{0,3}}{_HARD}\b",
        r"what an? (?:\w+ )?(?:burden|load|weight|blow|shock|day|week|mess|nightmare|thing to|lot to|rotten|awful|terrible|horrible|hard)",
        r"how (?:awful|hard|sad|painful|terrible|horrible|rough|upsetting|frustrating|much (?:it|this|that) (?:hurts|weighs|costs|pains))",
        r"(?<!they )(?<!he )(?<!i )(?<!we )must (?:be|feel|have|hurt|sting|pull|weigh|ache)\b|no wonder",
        r"make(?:s)? (?:\w+ )?sense|i (?:\w+ )?(?:get|feel) (?:it|that|you|why|how|for you|with you)",
        r"i can (?:\w+ )?(?:feel|see|hear|imagine|tell|understand)|i (?:do |\w+ )?understand",
        r"here (?:for you|with you|to listen|if you|and i'm)|right here",
        r"i(?:'m| am) (?:\w+ )?(?:here|listening|with you|by your side|on your side|not going anywhere|sorry|sad (?:to|that)|all ears)",
        r"(?:so|very|really|truly|deeply|am|i'm) sorry|^sorry (?:to hear|for|that|you|about)|sorry to hear",
        r"glad (?:that )?you(?:'re| are|'ve| have)? (?:tell|told|telling|shared|said|came|let)|sit with you",
        r"nothing you have to|you deserve (?:better|rest|some|a |more|kindness|love|help|support|to be)",
        r"thank(?:s| you) for (?:\w+ )?(?:telling|sharing|trusting|saying|opening|being)",
        r"you (?:loved|miss|must feel)\b",
        r"i know (?:it|that|this|how (?:it|that|this|you|hard|much)) ?(?:too|feels?|hurts?)?\b|rotten feeling",
        r"i(?:'ve| have) (?:got )?(?:all the )?time",
        (
            r"(?:it's|it is|that's|that is|you're|you are) (?:\w+ )?(?:alright|okay|ok|all right|fine|allowed|normal"
            r"|human|natural|understandable|only natural|very common|perfectly)(?: \w+)* (?:to|that|if|for)\b"
        ),
        r"(?:you're|you are) allowed",
        (
            r"(?:any(?:body|one)|every(?:body|one)|most people|many people|who|i|we|people) (?:\w+ )?(?:(?:in (?:your"
            r"|that|this|such an?) (?:place|position|shoes|situation)) )?(?:would|wouldn't|might"
            r"|could)(?:n't)? (?:\w+ )?(?:feel|be|have felt|react|cry|struggle)\b"
        ),
        r"of course (?:you|it|this|that)",
        r"(?:only |perfectly |quite |completely )(?:natural|normal|understandable|human)|understandable",
        r"(?:love|loss) leaves",
        r"right to (?:feel|be)\b|(?:every|good|all the) (?:right|reason) to (?:feel|be|cry|get|expect)",
        (
            r"(?:feelings?|pain|anger|fear|grief|tears|what you(?:'re| are)? feel\w*) (?:\w+ )?(?:are"
            r"|is) (?:\w+ )?(?:valid|real|normal|okay|justified|understandable|allowed)"
        ),
        r"my heart (?:goes|aches|breaks)|(?:really|truly|so|this|that|it|pet) (?:\w+ )?hurts?\b",
        r"hurts? (?:so|a lot|the most|deeply)|(?:gets|got) to you",
        r"\b(?:nothing|anything) wrong with (?:feeling|being|crying)|^(?:being|feeling) (?:\w+ )*is (?:\w+ )?(?:normal|natural|human)\b",
        r"\bi'll (?:always )?be (?:right )?(?:here|with you|(?:on|by) your side)\b",
        r"a lot (?:for (?:one|any)|to (?:take|carry|bear|deal|handle|hold|process))|take all the time",
        r"(?:take|need) (?:your )?time\b|(?:cry|let it out|let it all out)\b|i hear (?:you|how|that|what)",
        r"weighs? (?:\w+ )?on you|\bhugs?\b|(?:that|this|it)(?:'s| is| really)? (?:too bad|sucks|stinks)",
        r"i hate to hear|i feel (?:bad|terrible|sad) (?:for|about|that)|oh no\b|(?:very|quite|so) common",
        r"happens to (?:many|everyone|everybody|all|a lot|most)",
    ),
    "ask": (
        (
            r"(?:would|do|don't|can|could|may|shall) (?:you|i|we) (?:\w+ )?(?:like|want|care|mind|feel like|tell|talk"
            r"|say|share|help|walk|explain|describe|ask|hear)\b"
        ),
        r"\b(?:want|like|care) to (?:talk|tell|share|say|vent)|talk about it|on your mind|the matter|going on\b",
        r"trouble(?:s|ing) you|is there (?:someone|anyone|anything|something)|may i ask|\bgo on\W*$|breathe with me",
        r"happened\b.*\?",
    ),
}
"""Acts that take more than one word, as regular expressions over a sentence in small letters."""

COMFORTING_INVITES = (
    (
        r"^(?:please,? |so,? |and |then |well,? )*(?:tell|share|describe|explain|walk me|talk me|talk to me|say more"
        r"|help me understand|let me know|let it out)\b"
    ),
    r"\btell me\b|i'd (?:\w+ )?(?:love|like) to (?:hear|know|understand)",
    r"i(?:'m| am) (?:\w+ )?(?:curious|wondering|interested)|i wonder (?:what|how|why|when|who)\b|what's up",
    r"i want to (?:hear|know|understand)",
)
"""Phrases that ask without a question, as the others do."""

COMFORTING_DENIALS: Mapping[str, str] = {
    "hear": r"\b(?:not|isn't|aren't|never|nothing|n't|no)\b (?:\w+ ){0,3}(?:silly|wrong|odd|strange|weird|childish|stupid"
    r"|crazy|weak|weakness|shameful|shame|overreacting|exaggerating"
    r"|exaggerate|pathetic|ridiculous|dramatic|too much|alone|your fault|easy|ashamed of|nothing|funny|no big deal"
    r"|fair|a joke|laughing matter|small thing)\b"
    r"|you (?:do not|don't) (?:have|need) to (?:pretend|hide|explain|be (?:strong|brave|ashamed|sorry|alone|okay"
    r"|fine)|apologi[sz]e|go through|carry|face|feel (?:bad|guilty|ashamed)|smile)",
    "belittle": r"not this again|then don't|(?:crying|screaming|whining|moaning) won't|won't (?:help|pay) (?:anybody|anyone|the)"
    r"|^you(?:'re| are) not (?:strong|good|brave|clever|able|capable)",
    "praise": r"\byou(?:'re| are) not (?:weak|a failure|a burden|a loser|useless|worthless|stupid)|not many (?:\w+ )?(?:could"
    r"|would|can|have)|nobody can take",
}
"""Acts of which the denial is a part: ``it is not silly`` denies nothing that comforts."""

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
"""Feelings by the words that the agent is told of."""

FEELING_PHRASES: Mapping[str, str] = {
    "angry": r"ang(?:ry|er|ers|ered)|furious|fury|mad|(?:en)?raged?|annoy(?:ed|ing|s)|irritat(?:ed|ing|es)|fum(?:ing|e)|livid"
    r"|seething|outraged|infuriat(?:ed|ing|es)|cross with"
    r"|resentful|resentment|boiling|pissed(?: off)?|frustrated|frustration|fed up|up in arms|mad at|wound up"
    r"|indignant|bitter",
    "afraid": r"afraid|fear(?:s|ful)?|scar(?:ed|y|es|ing)|anxious|anxiety|frighten(?:ed|ing|s)|fright|panic(?:ked|king|ky)?"
    r"|terrif(?:ied|ying|ies)|terror|worried|nervous|uneasy|dread(?:ing)?|on edge"
    r"|petrified|alarmed|apprehensive|shaken|tense|spooked|in fear|worry(?:ing)? sick",
    "lonely": r"lonel(?:y|iness)|alone|abandoned|isolat(?:ed|ing|ion)|left out|cut off|forsaken|lonesome|left behind"
    r"|on your own|all by yourself|by yourself|disconnected|deserted|solitary|forgotten"
    r"|without anyone|unseen|shut out|no one to (?:talk|turn) to|nobody to (?:talk|turn) to|miss(?:ing)? company",
    "ashamed": r"ashamed|(?<!a )shame(?:ful)?|embarrass(?:ed|ing|ment)|humiliat(?:ed|ing|ion)|guilty?|mortif(?:ied|ying)"
    r"|blam(?:e|ing) yourself|remorse(?:ful)?|self-conscious|disgraced?|exposed|sheepish"
    r"|want to hide|want to sink|regret(?:ful)?|small inside",
    "tired": r"tired|exhaust(?:ed|ing|ion|s)|drain(?:ed|ing|s)|worn(?: out| down)?|wear(?:y|iness|ies|ing you)|fatigued?"
    r"|burn(?:t|ed)[ -]?out|spent|wiped out|run down|knackered|no (?:energy|strength)|out of (?:energy|strength)"
    r"|at the end of your (?:strength|rope|tether)|running on empty|sleepless|depleted|beat",
}
"""Feelings as people name them, as regular expressions over a sentence in small letters."""


# --- social -----------------------------------------------------------------------------------------

FAVOURS: Mapping[str, str] = {
    "ladder": "lend the ladder", "plants": "water the plants", "dog": "walk the dog", "bike": "repair the bike",
    "cake": "bake a cake", "letter": "post the letter", "sofa": "carry the sofa", "kids": "watch the kids",
}  # fmt: skip

OTHER_NAMES: Mapping[str, str] = {
    "plant": "plants", "flowers": "plants", "bicycle": "bike", "couch": "sofa", "kid": "kids", "children": "kids",
    "child": "kids",
}  # fmt: skip
"""Words by which people name a favour, as the card names it."""

FACTS = ("bakery", "spring", "shortcut", "festival", "library", "ferry")

SECRETS = ("lottery", "wedding", "tattoo", "debt", "novel", "rival")
