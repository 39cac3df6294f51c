"""The clauses of a message and their moods."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from turnwise.envs.toolworld.speech.assent import leaves_open, solicits
from turnwise.envs.toolworld.speech.denying import LEFT_ALONE, NEGATED
from turnwise.envs.toolworld.speech.ways import Alternation, GuardedPattern
from turnwise.envs.toolworld.speech.words import normal, shape_of, stems


class Mood(enum.Enum):
    """Purposes of a clause."""

    COURTESY = "says nothing about the matter"
    HOLD = "asks for time, or tells what is being looked at"
    CLOSING = "asks whether there is anything else"
    CONFIRM = "asks for a yes"
    OFFER = "says what the speaker can, will or would do"
    REFUSAL = "says that something cannot be done"
    FORBID = "asks not to do something, or not yet"
    REQUEST = "asks to give or to do something"
    QUESTION = "asks how something is"
    STATEMENT = "tells something"


class SentencePart(NamedTuple):
    """A part of a message: its words without the courtesies before them, their stems, its mood."""

    text: str
    stems: str
    mood: Mood
    asked: bool  # it ends in a question mark


_BULLET = re.compile(r"\s*\n\s*(?:[-*\u2022]|\d+[.)])\s+")
_SENTENCE = re.compile(r"(?<=[.?!])[\"')\]]*\s+|\n+|;\s+|\s+[\u2013\u2014]\s+(?!(?:on|off)\b)|\s--?\s")
_FIELD = re.compile(r"\n+\s*(?:[-*\u2022]\s+)?(?=\**[A-Z][\w ]{1,20}:)")
"""Between the fields of a form: "Change: enable roaming", and on the next line "Cost: none"."""
_SWITCH = re.compile(
    r"(?m)^\s*(?:[-*\u2022]|\d+[.)])\s+([\w* ]+?)\s*[\u2013\u2014:>\u2192-]+\s*(on|off)\b[.!]?\s*$",
    re.IGNORECASE,
)
"""An item of a list that says how something is to stand: "1. **Data saver** - off"."""
_QUOTED = re.compile(
    r"[\"\u201c]([^\"\u201c\u201d]{20,}[.?!,])[\"\u201d]|\b(?:subject|titled|called|headed|saying|reading|stating|title)[:,]? [\"\u201c][^\"\u201c\u201d]{10,}[\"\u201d]"
)
"""A whole sentence in quotation marks: somebody else's words, or a rule's."""
_CUT = re.compile(r",?\s+(?:but|however|though|although)[, ]\s*|,\s*(?:and )?then\s+|,\s+(?=(?:just |please |simply )+(?:tell|give|send|let) )|,\s+so\s+|,\s+(?=(?:could|can|would|may|what|which|is|do|please(?= \w))\b)|"
                  r"(?<=[a-z]),?\s+and\s+(?=(?:could you|can you|may i|what is|do you|please|shall i|then|tell me (?:when|once|what|if|whether)|let me know)\b)|:\s+(?=(?:shall|should|may|do|did|can|would|could|is|are|does|have|was|were|i will|"
                  r"take|turn|switch|put|pull|push|reset|restart|reboot|open|tap|remove|insert|toggle|disable|enable|pay|try|leave|keep|please)\b)")  # fmt: skip
_CUT_SIGNS = (",", ":", "but", "however", "though", "and")
"""One of these stands wherever a sentence is cut."""
_SORRY = r"(?:i am |we are |my |our )?(?:so |very |really |truly |terribly |deeply |awfully |most )*(?:sorry|apologi[sz]e|apologies|afraid)"
_PREFIX = re.compile(
    r"^(?:so (?:that )?(?:i|we|nobody|no one|it|nothing)\b[^,.!?]*,|and|also|now|so|oh(?: no| dear)?|aha?|well|hm+|(?:okay|alright|all right|right)(?! (?:if|to|for|with|by)\b)|just|sure(?: thing)?|certainly|of course|absolutely|definitely|understood|noted|"
    r"i (?:was|am)(?: just)? wondering (?:if|whether)|got it|great(?: news| question| choice)?|perfect|wonderful|excellent|lovely|fantastic|awesome|"
    r"good (?:news|question|morning|afternoon|evening|day)|no problem(?: at all)?|no worries|i see|yes(?! or no\b)|yep|yeah|"
    r"(?:many |much )?thank(?:s| you)(?: (?:so|very) much| a lot)?(?: (?:again|(?!for\b)\w+))?(?: for (?!your (?:email|pin))[^,.!?]*)?|"
    r"h(?:i|ello|ey)(?: there)?(?: (?:mr|ms|mrs|dr)\.?)?(?: [a-z]+){0,2}|welcome(?: back)?|dear [a-z]+|"
    rf"{_SORRY}(?: (?:about|for) (?:that|this|it|the \w+))?(?: to (?:hear|say|inform|tell)(?: you)?(?: that)?)?(?: that)?|"
    r"do not worry(?: about (?:it|that|this|the \w+))?|unfortunately|regrettably|sadly|in that case|next|first(?: of all)?|finally|lastly|additionally|actually|"
    r"just to (?:confirm|be sure|make sure|clarify|double-?check)|to (?:be clear|confirm|recap|summari[sz]e|get started|begin|"
    r"start)|before (?:i|we) (?:begin|start)|(?:(?:only |just )?(?:\d+|these|a few|a couple of|the following) (?:steps|things)(?= ?:))|(?:i am |i would be |we are )?(?:more than )?(?:happy|glad|pleased|delighted) to "
    r"(?:help|assist)(?: you)?(?: (?:with|out|today)[^,.!?]*)?|i (?:can|will|would)(?: certainly| definitely| gladly)? "
    r"(?:help|assist)(?: you)?(?: (?:with|out)[^,.!?]*)?|as (?:requested|you (?:asked|wished|requested)))(?=[\s,.!:]|$)[\s,.!:]*"
)
_CLOSING = Alternation(
    r"\b(?:any|some)thing (?:else|more|further)\b(?! (?:is|was) (?:the matter|wrong|amiss))", r"\belse (?:i|we|you|that)\b", r"\b(?:further|other|more) (?:help|assistance|questions|requests|"
    r"concerns|issues)\b", r"\bhow (?:can|may|could|else can) (?:i|we) (?:help|assist|serve)\b", r"\bwhat (?:can|may) (?:i|we) do for you\b",
    r"\bhelp(?:ing)? you (?:with )?(?:today|now|next)\b", r"\bwhat (?:brings you|else)\b",
    r"^(?:is|was|will|would) (?:that|this|it) (?:be )?(?:all|everything)(?: (?:for|from|today|then|now)\b.*)?\?*$", r"\b(?:another|other|further|some other|some further|different) (?:matter|thing|wish|topic|request|point)s?\b.*\b(?:mind|i might|i could|i may|i can|help|see to|today|for you|you)\b", r"\b(?:besides|apart from|in addition to|other than|aside from|on top of|beyond) (?:that|this|it|these)\b(?=.*\b(?:i|we|you)\b)",
    r"\b(?:have|enjoy) a (?:\w+ )?(?:day|evening|trip|flight|one|weekend)\b", r"\b(?:good)?bye\b|\bcheerio\b|\bfarewell\b|^take care(?: now| then)?$|, take care$|\bthat (?:will|would) be all(?: from me)?\b",
    r"^(?:have you |do you have |is there |was there |would there be |you )?(?:got |have )?(?:an?|the|any|your)? ?(?:\w+ )?(?:another|next|second|third|fourth|last|further|other)(?: (?:one|thing|request|question|wish|item|point|matter)s?)?(?: (?:for|to|on|that|i|you|we|left|waiting|then|too|as well)\b.*)?\?+$",
    r"^(?:what|which) is (?:the )?(?:next|second|third|other|last)(?: (?:one|thing|request|question|wish|item|point|matter))?\b.{0,20}\?+$",
)  # fmt: skip
_LOOKING = (
    r"(?:check|look|see|pull|review|find|verify|access|get|dig|investigate|search|retrieve|examine|go over|go through|read|open|bring|"
    r"take a|consult|double-?check|inspect|have a|load|fetch|confirm|think|start by|begin by|work on|locate|figure|gather|ask)"
)
_HOLD = Alternation(
    r"\b(?:one|a|just a|another|few|couple of?) (?:moment|minute|second|sec|bit|while|instant)s?\b(?!.*\b(?:ago|for you to)\b)",
    r"\bhold on\b", r"\bbear with\b", r"\bplease wait\b", r"\bhang on\b", r"\bstand by\b", r"\bbe right back\b", r"\bright with you\b",
    rf"\blet (?:me|us)(?: (?:just|quickly|first|now|also|please|go ahead and|see if i can))* {_LOOKING}\b",
    rf"\b(?:i|we) (?:will|am going to|are going to|would|need to|want to|have to|would like to)(?: (?:now|just|first|quickly|also|go ahead and|then|need "
    rf"to|have to|gladly))* {_LOOKING}\b(?! (?:rid|you (?:on|to)|it (?:cancel|chang|done)))",
    r"\b(?:i|we) am (?:now |just |currently |still )?(?:checking|looking|pulling|reviewing|searching|verifying|working on|investigating|opening|"
    r"getting|going (?:over|through)|reading|processing|locating|in the (?:middle|process))\b",
    r"^(?:checking|looking|searching|working)\b", r"\b(?:looking|checking) (?:into|it|that|this|on|at|up|your)\b", r"\bi will be (?:right|with you|back)\b", r"\bget back to you\b",
    r"\blet me (?:know|see) (?:when|once|how|what happens|what you|as soon|if (?:it|that|this|you (?:have|need|run|get|see|are ready)))\b",
    r"\btell me (?:when|once) (?:it|you|that)\b", r"\b(?:i|we) will (?:take care of|handle|sort) (?:that|this|it)\b",
    r"\b(?:shall|should|can|may) (?:i|we) (?:just |now |first |quickly )*(?:see|look|find out|take a look|have a look)\b", r"\bstay (?:with (?:me|us)|there|on)\b",
    r"^(?:now )?(?:making|doing|processing|preparing|arranging|entering|applying|submitting|cancelling|changing|updating|booking|sending|adding|setting) (?:it|that|this|these|the|your|up)\b(?!.*\b(?:is|are|was|will|would|can|costs?|means|has)\b)",
    r"\bgive (?:me|us) (?:just |about )?(?:a|one|half a|\d+) (?!call|ring|hint|reason|number|name|date|yes|clear|copy|list)\w+\b", r"^(?:i am|we are) on it\b", r"\b(?:one|a|half a|two ticks?|2) (?:tick|ticks|jiffy|mo)\b",
    r"\btake your time\b", r"\b(?:hold|stay on|keep) the line\b", r"\b(?:little|bit) (?:longer|more time)\b", r"\bin the meantime\b(?!\?)",
)  # fmt: skip
_COURTESY = Alternation(
    rf"^{_SORRY}\b", r"^(?:to hear|about|for) (?:that|this|it|the|your|any)\b", r"^(?:that|this) (?:must|sounds|has to|is) (?:be |really |very |so |quite )*"
    r"(?:frustrating|annoying|upsetting|awful|terrible|difficult|stressful|great|good|perfect|fine|helpful|disappointing|inconvenient|unpleasant)\b",
    r"^(?:i |we )?(?:completely |fully |totally |can |certainly |do )*(?:understand|appreciate|realize|know|hear|get|imagine)\b(?! that you (?:want|would))",
    r"^(?:how )?(?:frustrating|annoying|awful|upsetting|terrible)\b", r"\bthank", r"^you are (?:very |most )?welcome\b", r"^my pleasure\b",
    r"^(?:i |we )?(?:can|will|would|am|are|want to)? ?(?:be )?(?:certainly |definitely |gladly |here to |happy to |glad to |going to |love to |able to )*(?:help|assist)(?: you)?"
    r"(?: (?:with|out|resolve|sort|get)\b.*)?$", r"^(?:this is|my name is|you have reached|you are speaking)\b", r"^(?:i |we )?hope\b", r"^i appreciate\b",
    r"^no (?:problem|rush|hurry|pressure|trouble|bother|stress|worries|need to (?:rush|hurry|apologi[sz]e))\b", r"^(?:let us|we will) (?:get|sort|fix|solve|see|work|figure)\b(?! (?:rid|the sim))", r"^i wish\b", r"^rest assured\b", r"^do not worry\b",
    r"^(?:gotcha|roger(?: that)?|copy that|righto|cool|nice|super|brilliant|yup|ah|aye|cheers|ta)$", r"^please (?:accept my|do not hesitate|feel free|note that|be assured|rest assured|know that|bear)\b", r"^feel free\b",
)  # fmt: skip
_NOT_YET = Alternation(
    r"^(?:please |kindly |just |for now |at this point |until then )*(?:do not|never|avoid|refrain from|no need to|leave|keep|wait|hold off|skip|stop)\b",
    r"\b(?:no need|not necessary|not needed|unnecessary) (?:to|for)\b", r"\byou (?:do not|should not|must not|need not|shall not|can not yet|better not|will not)"
    r"(?: (?:need|have))?(?: to)?\b(?!.*\b(?:eligible|refund|be able|qualif|owe))", r"^(?:i would|i) (?:rather )?(?:ask you |prefer(?: that)? you |advise (?:you )?|recommend )?not\b",
    r"\bwithout (?:restarting|turning|resetting|touching|removing|changing|paying)\b", r"\bhold off\b", r"(?<!\bi do )(?<!\bwe do )(?<!\bi can )(?<!\bwe can )\bnot (?:to )?(?:restart|turn|reset|touch|remove|switch|pay|take)\b",
    r"\bkeep (?:\w+ ){0,5}?(?:off|on|in|as (?:it|they)|closed|open|shut|untouched)\b.*\b(?:until|till|unless|for now|before|yet)\b", r"\b(?:stays?|remains?) (?:\w+ )?(?:as|where|on|off|in|out|put|untouched)\b.*\b(?:for now|until|till|please|for the moment|at present|yet)\b",
    r"\bhands off\b|\bunder no circumstances\b|\bdo not you (?:dare|even)\b|\bno (?:restart|reboot|reset|need|reason|payment)\b(?= (?:is |are )?(?:needed|required|necessary|yet|at this|to|for)\b)|\bhold(?:ing)? back\b|\b(?:is|are|be|should|must) not (?:\w+ )?(?:changed|touched|restarted|rebooted|reset|removed|switched|turned|paid|taken|toggled|settled)(?: \w+)? (?:yet|for now|before|until|till|at this|just)\b",
    r"\brather than\b.*\byou\b", r"\bleave .{0,40}\bas (?:it|they|is)\b", r"\bwait for my\b", r"\b(?:press|touch|change|do|turn|pull|tap|unplug|alter) nothing\b",
)  # fmt: skip
_CONFIRM = Alternation(
    r"\b(?:shall|should|may|can|could|might) (?:i|we) (?:now |then |just |please )?(?:go ahead|proceed|continue|do (?:that|this|so|it)|make (?:that|this|the|these) changes?|start|"
    r"carry on|move forward|take care of (?:that|this|it))\b", r"^(?:shall|should|may) (?:i|we)\??$", r"\b(?:like|want|wish|prefer) (?:for )?(?:me|us) to (?:proceed|go ahead|continue|do (?:that|this|so|it)|move forward)\b",
    r"\b(?:is|are|would|will|was) (?:that|this|it|these|those|everything|all of (?:that|this)|the above|my understanding|what i \w+) (?:all )?(?:be )?(?:okay|fine|alright|all right|correct|right|acceptable|good|suitable|agreeable|what you)\b",
    r"\b(?:does|do|did|would|will) (?:that|this|it|everything|these|those|either)(?: \w+)? ?(?:work|sound|look|suit|fit|match|meet|seem|i get|be okay|be fine)\b", r"\bare you (?:okay|happy|fine|comfortable|good|alright) (?:with|if|to|for|that)\b|\bare you (?:content|in agreement|ready|sure|certain)\b",
    r"\bdo you (?:agree|confirm|consent|approve|accept|authori[sz]e|still want|want to (?:proceed|continue|go ahead)|wish to (?:proceed|continue))\b", r"\bwould you like to (?:proceed|continue|go ahead|confirm)\b",
    r"\bokay (?:with|for|by) you\b", r"\bokay\?$", r"\b(?:sounds?|all|is that|look) (?:good|okay|right|fine)\?", r"\byes or no\b|\byes/no\b|\(y/n\)|\(yes",
    r"\b(?:just |please )?(?:say|reply|answer|type|respond|write)(?: with)?(?: a| me)?(?: simple| clear)? ['\"]?yes\b", r"\b(?:please |kindly )(?:re)?confirm\b(?! your)", r"\b(?:can|could|would|will|do) you (?:please |kindly |just )?"
    r"confirm (?:that|this|it|if|whether|you|the (?:change|cancel|upgrade|return|exchange|refund|charge|above|details))\b", r"\b(?:please )?confirm (?:that|this|it|if|whether|you|the (?:change|cancel\w*|upgrade|return|exchange|above))\b",
    r"\blet me know (?:if|whether) (?:you (?:agree|want|would|wish|are|confirm|approve)|that|this|i (?:can|should|may)|it is)\b", r"\bgood to go\b", r"\bgo ahead\?", r"\bproceed\?", r"\bdo i have your\b", r"\bwith your (?:okay|permission|approval|consent|confirmation|go-ahead)\b",
    r"\b(?:may|can|could) i have your (?:okay|permission|approval|consent|confirmation|go-ahead|yes)\b", r"(?<!\bwithout )\byour (?:okay|approval|consent|confirmation(?! (?:number|code|email))|go-ahead|permission)\b", r"\bgreen light\b", r"\bi need your (?:yes|okay|confirmation|approval|consent)\b",
    r"^(?:are )?you (?:all )?(?:okay|fine|happy|good|alright|comfortable|cool|content|agreed|on board) (?:with|if|for|to|that)\b", r"^(?:all )?(?:okay|fine|happy|good|alright|comfortable|cool|content|acceptable|agreeable) (?:by|for|with|if|to)\b.*\?",
    r"^go for (?:it|that)\b.*\?|\bis that a (?:go|deal|plan)\b|\bsounds? like a plan\b|\bcan you live with\b|^(?:are|is) (?:we|you|that|all|everything) (?:all )?good\b|\bwhat do you (?:reckon|make of)\b|\banything against\b|\bif (?:i|we) may\?|\b(?:will|would|shall|could)\b.*\bif (?:i|we) may$", r"\bsay the word\b|\bjust say so\b|\bunless you (?:object|say|tell|mind|stop)\b", r"\b(?:is|was|are) (?:that|this|it|these) (?:the|your) (?:right|correct)\b",
    r"^(?:or no|yes or no)\b", r"^want (?:me|us) to\b.*\?", r"^(?:is|would|will) it (?:be )?(?:okay|alright|all right|fine|acceptable) (?:if|to|that|for)\b", r"\b(?:mind|matter) if i\b", r"^(?:correct|right|agreed|deal|sure|fine|alright|sounds good|confirm(?:ed)?|yes)\??$", r"\bcorrect\?$|\bright\?$|\bagreed\?$|\byes\?$",
    r"(?:^|\b(?:do|would) you )(?:still |really |rather |not )*(?:want|like|take|have) (?:it|that|them|this|one|to (?:have|take|move|go|get))\b(?=.*\?)", r"\by/n\b", r"\bgo-ahead\b", r"\byes,? from you\b", r"\bin case you agree\b", r"\bno objections?\b",
    r"\ball right with you\b", r"\b(?:would|does|do|will) .{0,30}(?:make up for|sound|suit|help)\b.*\?", r"\bhow (?:does|would|about) .*\bsound\b", r"\bokay (?:if|to)\b", r"\bready for me to\b", r"\bis that a yes\b|\bwas that a yes\b|\bdeal\?$",
    r"\bdo you (?:really|still) want\b", r"\byay or nay\b", r"\bwould you (?:agree|accept)\b", r"\bshall i\?$|\bmay i\?$", r"\bwould that (?:be|work|suit|do)\b", r"\bif (?:you agree|that is okay|that works|you are (?:okay|fine|happy))\b", r"\bhow does that sound\b", r"\bwhat do you (?:say|think)\b", r"\bsound good\b", r"\bready to (?:proceed|go ahead)\b",
)  # fmt: skip
_SHARE = Alternation(
    r"\b(?:may|can|could|might) (?:i|we) (?:please |kindly |just |also )?(?:have|get|ask|see|take|know|note|bother|trouble|trouble you|grab|collect|obtain|request|jot|write down)\b", r"\b(?:i|we) (?:will |would |just |also |still |first |only |do |be |am |are )*(?:need|needing|require|requiring|want|like to (?:know|have|ask))\b",
    r"\b(?:please|kindly)\b", r"\b(?:tell|give|send|share|show|provide|state|spell|read|enter|supply|remind)\b(?!ing).* ?(?:me|us|with|your|the)\b", r"^(?:provide|share|state|give|tell|send|spell|supply|enter)\b",
    r"\b(?:can|could|would|will|might) you\b", r"\blet me (?:know|have)\b", r"^(?!no\b).*\b(?:is|are) (?:needed|required|necessary|missing)\b", r"\bi am (?:missing|looking for|going to need)\b", r"\b(?:would|do) you mind\b",
    r"\bverify (?:your|who)\b", r"\bif you (?:would|could|can|do not mind|please)\b", r"\b(?:will|would) (?:do|suffice)\b|\bis enough\b", r"\bi must (?:ask|have|know)\b", r"\b(?:i|we) (?:have to|must|need to|should) (?:ask|know|verify|confirm|identify|authenticate)\b", r"\byou (?:could|can) (?:give|tell|share|provide)\b",
    r"\bfor (?:security|verification|identification)\b", r"\b(?:i|we) can (?:look (?:you|it|that|this)(?: \w+)? up|find|locate|identify|verify|pull)\b.*\b(?:by|with|using|through|via|either|ways?|from)\b",
)  # fmt: skip
_TELL_TO = Alternation(
    r"^(?:please|kindly|go(?!-)|try|turn|switch|disable|enable|set|reset|reseat|insert|take|remove|restart|reboot|run|pay|accept|look|check|make sure|open|"
    r"toggle|put|deactivate|activate|swipe|tap|navigate|power|pull|eject|now|then|first|start|settle|complete|perform|clear|have a|let us|use|retry|reinsert|re-?seat|"
    r"download|update|install|connect|disconnect|forget|select|choose|change|wait|be so|give)\b(?! (?:you|we|i)\b)",
    r"\b(?:can|could|would|will|might) you\b", r"\byou (?:should|can|could|must|might|may|need to|have to|will (?:need|have|want) to|would (?:need|have|want) to|ought to|want to)\b", r"\bi (?:need|want|ask|suggest|recommend|advise|would like|propose)"
    r"(?: that)? you\b", r"\b(?:next|first|second|last|final) (?:step|thing)\b", r"\bstep \d\b", r"\bhow about (?:you )?\w+ing\b", r"\b(?:would|do) you mind\b", r"\bwhat if you\b", r"\bplease\b", r"\blet us\b", r"\btime to\b",
    r"\b(?:grateful|obliged|thankful|glad|appreciate(?: it)?|kind|lovely|great|good|nice|helpful?) (?:of you )?if (?:you|the|that|your)\b(?!.*\b(?:okay|agree|fine)\b)", r"\bi suggest\b|\bi recommend\b|\bi would (?:suggest|recommend)\b", r"\bthe next step is\b", r"^(?:i need you to|have you try)\b", r"^mind \w+ing\b", r"^if .* (?:please|turn|switch|toggle|disable|enable|take|remove|pay)\b", r"\bneeds to be\b|\bshould be (?:turned|switched|restarted|reset)\b",
    r"\b(?:can|could) (?:that|it|this|the \w+) be \w+ed\b.*\byour (?:side|end|part)\b", r"\bwhy do not you\b|\bwhy not\b", r"(?:^|, )see (?:if|whether)\b",
)  # fmt: skip
_OFFER = Alternation(
    r"\b(?:shall|should|may|can|could|might|must) (?:i|we)\b", r"\b(?:i|we) (?:just |also |now |then |gladly |certainly )*(?:will|would|can|could|shall|am going to|are going to|am about to|am able to|are able to|plan to|propose|suggest|recommend|"
    r"intend to|am ready to|want to|would like to|may|might|am happy to|should be able)\b(?! not)", r"\blet me\b", r"\b(?:like|want|wish|prefer|need) (?:me|us) to\b", r"\bhow about (?:i|we|if)\b", r"\bwhat if i\b", r"\bwill be\b|\bwould be\b|\bcan be\b|\bis going to be\b|\bto be\b",
    r"\b(?:this|that|it|the \w+) (?:will|would)\b", r"\byou (?:want|would like|wish|asked|are asking)\b", r"\bwith your (?:okay|permission|approval|consent|confirmation|go-ahead)\b", r"\bmy (?:proposal|plan|suggestion)\b", r"\bplanned (?:change|action)\b", r"\b(?:ready|able|happy|going) to\b",
    r"\bdo you (?:want|wish)\b", r"\bwould you like\b", r"\b(?:mind|matter|okay|fine|alright|all right) if i\b",
)  # fmt: skip
_QUESTION = re.compile(
    r"^(?:what|which|who|whose|when|where|why|how|is|are|was|were|do|does|did|have|has|had|can|could|would|will|should|shall|may|any|am)\b"
)


_LINK = re.compile(r"^which (?=\w)")
_ASIDE = tuple(
    f"which {verb} "
    for verb in ("is", "are", "has", "have", "means", "would", "will", "comes", "costs", "leaves", "can")
)
"""Beginnings of a clause that goes on telling, within a question too."""


@functools.lru_cache(maxsize=8192)
def clauses(text: str) -> tuple[SentencePart, ...]:
    """The clauses of a message, in order."""
    return tuple(_clause(part, asked) for part, asked in _split(text))


def matter(text: str) -> list[str]:
    """The words of each clause without the courtesies before them: all of it that needs no mood."""
    return [_body(part) for part, _ in _split(text)]


def _split(text: str) -> list[tuple[str, bool]]:
    """The clauses of a message as they are spelled, and whether each ends in a question mark."""
    found: list[tuple[str, bool]] = []
    if "\n" in text:
        if len(_FIELD.findall(text)) > 1:
            text = _FIELD.sub(" , ", text)
        text = _SWITCH.sub(r". Turn \2 \1.", text)
    if ('"' in text or "\u201c" in text) and len((rest := _QUOTED.sub(" ", text)).split()) > 1:
        text = rest
    text = text.strip()
    for sentence in _SENTENCE.split(_BULLET.sub(" , ", text) if "\n" in text else text):
        said = normal(sentence)
        cut = _CUT.split(said) if any(sign in said for sign in _CUT_SIGNS) else [said]
        parts = [part.strip(" ,.") for part in cut]
        parts = [part for part in parts if part.strip("?!:;,. ")]
        asked = sentence.rstrip(" \"')]").endswith("?")
        aside = len(parts) > 1 and parts[-1].startswith(_ASIDE)
        for place, part in enumerate(parts):
            last = asked and place == len(parts) - (2 if aside else 1)
            # After a comma "which" goes on telling.
            found.append((part if last or not place else _LINK.sub("it ", part), last))
    return found


def in_context(found: Iterable[SentencePart]) -> Iterator[tuple[SentencePart, str]]:
    """Each clause, with the stems of those before it."""
    context = ""
    for clause in found:
        yield clause, context
        context = f"{context} {clause.stems}"


@functools.lru_cache(maxsize=16384)
def _clause(text: str, asked: bool) -> SentencePart:
    body = _body(text)
    mood = (
        _mood(shape_of(body), asked)
        if body.strip("?")
        else Mood.CONFIRM
        if asked and "sure" not in text
        else Mood.COURTESY
    )
    return SentencePart(body, stems(body), mood, asked)


@functools.lru_cache(maxsize=16384)
def _body(text: str) -> str:
    """A clause without the courtesies before it."""
    body = text
    while (match := _PREFIX.match(body)) and match.end() and not _HOLD.match(body):
        body = body[match.end() :].strip()
        if not body:
            break
    return (_IF_I_MAY.sub("", body) if "if " in body else body).strip(" !,.")


@functools.lru_cache(maxsize=16384)
def _mood(body: str, asked: bool) -> Mood:
    """The first mood that fits, the more special ones first."""
    if _CLOSING.search(body):
        return Mood.CLOSING
    if not asked and _EXCLAIMS.search(body):
        return Mood.COURTESY
    if _YOUR_STATE.search(body):
        return Mood.COURTESY
    if not asked and ("leave" in body or "keep" in body) and LEFT_ALONE.search(body):
        return Mood.REFUSAL
    if _ABSTAIN.search(body) or (_NOT_YET.search(body) and (not asked or _DO_NOT.match(body))):
        return Mood.FORBID
    if _CHECKS.search(body):
        return Mood.REQUEST
    if _CONFIRMS.search(body) and not asked:
        return Mood.STATEMENT
    if _SOON.search(body):
        return Mood.HOLD
    if _ASKS_WHAT.search(body) and (asked or not _CONFIRM.search(body)) and not _SOUNDS.search(body):
        return Mood.REQUEST if _SHARE.search(body) or _TELL_TO.search(body) else Mood.QUESTION
    if _TELL_ME.match(body) and not _WHETHER.search(body):
        return Mood.REQUEST
    question = f"{body}?" if asked and not body.endswith("?") else body
    if (asked or not _told(body)) and (_CONFIRM.search(question) or solicits(body, asked=asked)):
        return Mood.CONFIRM
    if NEGATED.search(body) and not asked:
        return Mood.REFUSAL
    if _HOLD.search(body):
        return Mood.REQUEST if _WHO.search(body) else Mood.HOLD
    if _COURTESY.search(body) and not asked:
        return Mood.COURTESY
    first_person = _OFFER.search(body)
    if asked and leaves_open(body) and not _SHARE.search(body):
        return Mood.QUESTION
    if asked or _QUESTION.search(body):
        if _SHARE.search(body) or _TELL_TO.search(body):
            return Mood.OFFER if re.search(r"\b(?:me|us) to\b|\b(?:shall|should) i\b", body) else Mood.REQUEST
        return Mood.OFFER if first_person and not _QUESTION_FACT.search(body) else Mood.QUESTION
    if _SHARE.search(body) or _TELL_TO.search(body):
        return Mood.REQUEST
    return Mood.OFFER if first_person else Mood.STATEMENT


_ABSTAIN = GuardedPattern(
    r"\b(?:abstain|refrain|desist|keep (?:away|your \w+ off)|stay (?:away|clear)|steer clear|shy away|hold (?:off|back)|hands off|avoid)\b(?! (?:any|the) (?:confusion|doubt|delay|charge|misunderstanding)s?\b)"
)
_SIGN = r"(?:go-ahead|okay|yes|confirmation|approval|consent|permission|blessing|nod|word|green light|say-so|agreement|authori[sz]ation)"
_PAST = GuardedPattern(
    rf"\b(?:did|had|already|got|received|took|noted|heard)\b.{{0,20}}\b(?:your|the|a) (?:\w+ )?{_SIGN}\b|\b{_SIGN}\b.{{0,25}}\b(?:ago|earlier|yesterday|last time|before|came|arrived|was|were|is (?:noted|recorded|in|saved|here|logged))\b|"
    r"\b(?:you|she|he|they) (?:have |has |had |did |just |already )*(?:said|gave|given|agreed|confirmed|approved|accepted|authori[sz]ed|nodded|told)\b"
)
"""That somebody has agreed before."""
_NOT_NOW = GuardedPattern(
    r"\b(?:will|would|shall|am going to|are going to|have to|always|usually|must|going to) (?:\w+ )?(?:ask|come back|check with|read)\b|\b(?:later|afterwards|next time|in (?:a|the next|\d+) (?:moment|minute|second|bit|sec|tick|hour|day)s?|tomorrow)\b"
)
"""That they will be asked, but are not now."""
_OTHERS = GuardedPattern(
    r"\b(?:customers?|people|everyone|everybody|callers?|colleagues?|agents?|policy|policies|handbook|guidelines?|regulations?|most of us|passengers (?:must|have|may|can)|(?:last|previous|another) (?:one|person|gentleman|lady))\b"
)
"""Whom a rule or a story is about."""
_WHEN = GuardedPattern(r"\b(?:once|when|as soon as|after|until|till|if|unless|provided|the moment|before)\b")


def _told(body: str) -> bool:
    """Say whether a clause that speaks of a yes only tells of one: of the past, of others, of what comes
    later."""
    if _TOLD.search(body) or _OTHERS.search(body):
        return True
    return _WHEN.search(body) is None and (
        _PAST.search(body) is not None or _NOT_NOW.search(body) is not None
    )


_IF_I_MAY = re.compile(
    r"[, ]+(?:if (?:i|we) may ask|if you (?:do|would|will) not mind|if you (?:will |would )?(?:pardon|excuse|forgive)\b[^,.?!]*|if you (?:do not|will not|would not) mind (?:me |my )?(?:asking|telling me)|if you please)(?=\?*$|,)"
)
_TELL_ME = re.compile(
    r"^(?:(?:can|could|would|will) you (?:please |kindly |just )?)?(?:say|tell|repeat|explain|give|spell|describe|remind|rephrase|read)(?: (?:me|us|it|to me|that|again|once more|out|please))* ?(?:what|which|who|where|when(?!\W*$)|how|again)\b"
)
_WHETHER = re.compile(r"\b(?:if|whether|okay|yes|agree|happy|do you (?:say|think))\b")
_YOUR_STATE = re.compile(
    r"^are you (?:okay|alright|all right|well|safe)(?: (?:yourself|now|though|there|today|in one piece))?\?*$|^(?:i |we )?(?:understand|see|hear|realize|read)(?: that)? you (?:are|can) (?:not |un)"
)
_TOLD = GuardedPattern(
    r"\b(?:would|could|might) have (?:\w+ed|been)\b|\bhad (?:hoped|wished|wanted)\b|"  # what did not come to be
    r"\b(?:go-ahead|okay|yes|confirmation|all) (?:that )?(?:i|we) (?:needed|wanted|waited for|was waiting for)\b|"
    r"\b(?:email|message|letter|text|sms|receipt|note)\b.* to confirm\b"  # who confirms is no listener
)
_EXCLAIMS = GuardedPattern(
    r"^how (?!(?:much|many|long|do|does|did|can|old|far|often|to|is|are|would|about)\b)\w+(?: (?:that|this|it|for you|of (?:them|him|her)))*(?: (?:is|was|must be|sounds))?$|(?:^|, (?:and )?)what an? (?:\w+ )?\w+$"
)
_DO_NOT = re.compile(
    r"^(?:please |kindly |just |for now )*(?:do not|never|hold off|refrain)\b(?! (?:you|we|i|they)\b).*\b(?:okay|alright|all right|please|yes|will you|right)\?*$"
)
"""A tag after a prohibition asks for nothing."""
_CHECKS = GuardedPattern(
    r"\bconfirm (?:whether|if) (?!you (?:agree|accept|want|wish|approve|consent|are (?:okay|fine|happy|all right|in agreement)|would)\b|that|this|i (?:may|can|should)|it is (?:okay|fine))"
)
"""That somebody is to find out how something is."""
_CONFIRMS = GuardedPattern(
    r"^(?:this is|i am happy|i am glad|i am pleased|i would like|i want|i can|we can|i wanted|just|here|i am writing|let me)?(?: just)?(?: to)? ?confirm(?:ing)?(?: to you)? that\b.*\b(?:was|were|has been|have been|is now|are now|is|are|went|i have|we have)\b"
)
_SOON = GuardedPattern(
    r"\b(?:will|should|does|do|is) not (?:be |take |going to (?:be |take ))(?:me |us )?(?:too |very |much |that |more than )?(?:long|a (?:minute|moment|second|sec|while|tick))"
)
_WHO = GuardedPattern(
    r"\b(?:need|have|must|like|want|required?) to (?:first |quickly |just )?(?:verify|confirm|authenticate|identify|check) (?:your identity|who|you\b|your (?:account|details))"
)
_ASKS_WHAT = GuardedPattern(
    r"^(?:(?:to|for|at|in|on|with|under|by|from(?! what you)) )?(?:what|which|who|whose|whom|when|where|why|how)\b(?! (?:about|if|frustrating|annoying|awful|upsetting|terrible|unfortunate|inconvenient|nice|lovely|kind|wonderful|great|sad|strange|odd|disappointing|stressful)\b)|\bmay i ask\b(?! you to)|, (?:where|when|which|how much|how many|what) (?:would|do|shall|should)\b(?! you (?:say|think|reckon))"
)
_SOUNDS = re.compile(
    r"^how (?:does|do|would|is) .*\b(?:sound|suit|look|that|feel|like)\b|^what (?:do you (?:say|think)|if)\b|^why not\b|^why do not"
)
_QUESTION_FACT = re.compile(
    r"^(?:what|which|who|whose|when|where|why|how (?:much|many|do|does)|did|have|has|had|is|are|was|were|does)\b"
)
