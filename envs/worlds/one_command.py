"""The one command of a message in plain words.

One rule holds in all text worlds. A message is read for its one command: the argument of the tool ``act``, what stands
between ``<action>`` tags or behind a label such as ``Action:``, else the one line that is a command and nothing else,
else the one sentence. A message with two commands or more does none of them and is told so. A question is no command.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from turnwise.envs.acting import check_number
from turnwise.envs.messages import Message
from turnwise.tools.core import ToolCall, ToolError, find_tool, tool
from turnwise.tools.notations import read_written
from turnwise.tools.thoughts import without_thoughts

_WORD = re.compile(r"[a-z]+|\d+")
_TAGGED = re.compile(r"<(action|command|answer|act)>(.*?)(?:</\1>|$)", re.DOTALL | re.IGNORECASE)
_LABEL = re.compile(r"^\W*(?:action|command|act|next|i)\s*[:>]", re.IGNORECASE)
_LABELLED = re.compile(r"(?<![a-z])(?:action|command)[ \t]{0,3}\d{0,3}[ \t*_`]{0,6}:", re.IGNORECASE)
_FENCE = re.compile(r"```\w*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_ITEM = re.compile(r"[ \t]*(?:[-*•+][ \t]|\(?\d{1,3}[.)][ \t])")
_SPAN = re.compile(r"`([^`\n]{1,300})`|\*\*([^*\n]{1,300})\*\*|\"([^\"\n]{1,300})\"|“([^”\n]{1,300})”")
_CALL = re.compile(  # of a verb as of a function: craft(item="plank"), get["ore", 2], pick_up(mug 1)
    r"\b([A-Za-z]{1,30}(?:_[A-Za-z]{1,30}){0,3})[(\[]([\w ,='\"]{1,160})[)\]]"
)
_PARTS = re.compile(r"\w{1,30}\s*=|[,'\"]")  # of its arguments, what is no word of the command
_BOXED = re.compile(r"\\boxed\{([^{}]{1,300})\}")
_KEYED = re.compile(r"\"(?:command|action)\"\s*:\s*\"([^\"\n]{1,300})\"")
_REASONS = frozenset(("thought", "thoughts", "reasoning", "reason", "explanation", "plan", "comment"))
_PLAIN = re.compile(r"[\w /]*[.!]?\s*")
_SENTENCE = re.compile(r"[^.!?;:]+[.!?;:]*")
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_THEN = re.compile(r"\b(?:then|afterwards|next)\b", re.IGNORECASE)
_JOINED = re.compile(r"[,&()]|->|→|—|\s-\s|\b(?:and|or|then)\b", re.IGNORECASE)


def _all(words: str) -> frozenset[str]:
    return frozenset(words.split())


_FILLERS = _all("the a an my some please then now i will ll should let me to of")
_SOFT = _all(  # what leads over to a command
    "please now then first next so ok okay well sure alright finally after afterwards that just simply also but great yes "
    "therefore thus hence and or step"
)
_TELLERS = _all("i we let lets")
_TOLD = _TELLERS | _all(  # "I am now going to …"
    "will ll shall should us me s now then first next just simply also am m re are going gonna to d had better"
)
_INTENDING = _all("need want like try trying decide decided choose plan have ought intend")  # … to do it
_LINKS = _all(
    "the a an my some this that these those to from in into inside on onto at up down off of with using by under out over "
    "around here there it them again now please first next back both"
)
_LEADING = _all(
    "from in into inside on onto at with using by under to of"
)  # what goes on with a command behind a comma
_TAILS = _all(
    "so because since as order which where while before after until instead rather hoping if for i we"
)
_PROSE = _all(
    "is are was were am be been has have had must might would could can cannot not never what who why how you they need "
    "needs want seems think no nothing nor neither"
)
_ASKING = _all(
    "should shall can could may might would do does did is are am was were will must what where which who why when whether"
)
_NOT = _all("not t never")
_CONDITION = _all("if unless when once whenever")
LONGEST = 300  # characters of a command
_LONGEST_TEXT = 20_000  # characters of a message, thoughts included
_MOST_TOLD, _LONGEST_TOLD = 3, 60  # commands that a refusal repeats, and characters of each
_MOST_WORDS = 6  # of a command of a world that does not say what its commands look like
NONE_FOUND = "No command found. Write one, such as: look."
_NOT_ONE = "Nothing was done. Write one command on a line of its own, such as: look."
_A_QUESTION = "A question is no command, and nothing was done. Write one command on a line of its own."


class Grammar(Protocol):
    """Rules on which words are a command of a world."""

    def own(self, words: Sequence[str]) -> bool:
        """Say whether these words are a command and nothing else, but for a reason given behind it."""
        ...

    def more(self, verb: str, words: Sequence[str]) -> bool:
        """Say whether these words behind "and" name another thing for the same verb."""
        ...

    def starts(self, word: str) -> bool:
        """Say whether a command cannot but begin where this word follows a number."""
        ...

    def whole(self, clauses: Sequence[Sequence[str]]) -> bool:
        """Say whether parts of a sentence are one command together, as several moves of one turn are."""
        ...


class Forms(NamedTuple):
    """Forms of a world's commands; where a world says so, prose is told from commands by it.

    >>> forms = Forms(frozenset(["go", "take"]), frozenset(["sink", "cloth"]))
    >>> forms.own("take the cloth 1 from sink 1".split()), forms.own("take care".split())
    (True, False)
    """

    verbs: frozenset[str]
    names: frozenset[str]  # of things and places
    traits: frozenset[str] = frozenset()  # what tells things apart
    pairs: frozenset[str] = frozenset()  # verbs for two things joined by "and"
    behind: frozenset[str] = frozenset()  # words of which one must lead to those two, if there are any
    needy: frozenset[str] = frozenset()  # verbs that are no command without a name
    asked: frozenset[str] = (
        frozenset()
    )  # first words of questions that the world answers, and changes nothing
    final: frozenset[str] = frozenset()  # verbs that can end an episode: obeyed in their own form alone
    how: str = ""  # the form of those

    def own(self, words: Sequence[str]) -> bool:
        if not words or words[0] not in self.verbs:
            return False
        if words[0] in self.needy and self.names.isdisjoint(words):
            return False
        for place, word in enumerate(words[1:], 1):
            before = words[place - 1]
            if word in self.names or word in self.traits or word.isdecimal():
                continue
            if word in _TAILS or (before == "to" and word not in _LINKS):
                return words[0] not in self.final
            if word in _LINKS or (word in self.verbs and not before.isdecimal()):
                continue
            return False
        return True

    def more(self, verb: str, words: Sequence[str]) -> bool:
        known = all(word in self.names | self.traits | _LINKS or word.isdecimal() for word in words)
        return known and not self.names.isdisjoint(words) and words[0] not in _LEADING

    def starts(self, word: str) -> bool:
        return word in self.verbs and word not in self.names and word not in self.traits

    def whole(self, clauses: Sequence[Sequence[str]]) -> bool:
        first, *more = clauses
        if first[0] not in _TELLERS and any(one[0] in _TELLERS for one in more):  # "Right, let me go up."
            return False
        verb = _untold(first)[:1]
        if not verb or verb[0] not in self.pairs:
            return False
        if self.behind:
            named = [one for one in more if one[0] not in self.verbs and self.behind.isdisjoint(one)]
            if self.behind.isdisjoint(first) or len(named) < len(more):
                return False
        return self.own([word for clause in clauses for word in _untold(clause)])


class Tried(NamedTuple):
    """The grammar of a world that does not say what its commands look like: whatever it has an answer of its own to."""

    now: object
    answer: Callable[[tuple[str, ...]], tuple[object, str]]  # what a command leads to, and what is said of it

    def own(self, words: Sequence[str]) -> bool:
        said = _bare(words)
        if not said or said[0] != words[0] or len(said) > _MOST_WORDS or not _PROSE.isdisjoint(said[1:]):
            return False
        state, text = self.answer(said)
        other, unknown = self.answer(("?", *said[1:]))
        return state != other or unknown not in (text, text.replace(said[0][:20], "?"))

    def more(self, verb: str, words: Sequence[str]) -> bool:
        return any(word not in _LINKS for word in words) and self.own((verb, *words))

    def starts(self, word: str) -> bool:
        return False

    def whole(self, clauses: Sequence[Sequence[str]]) -> bool:
        together = _bare([word for clause in clauses for word in clause])
        return self.own(together) and self.answer(together) != self.answer(_bare(clauses[0]))

    def harmless(self, words: Sequence[str]) -> bool:
        """Say whether a command changes nothing."""
        return self.answer(_bare(words))[0] == (self.now, None)


def _bare(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in _FILLERS)


class _ToldCommand(NamedTuple):
    """A command within a text."""

    words: tuple[str, ...]  # from the verb on
    own: bool = True  # in the imperative, and not "I go …"


class _Part(NamedTuple):
    """A line or a sentence, taken apart."""

    found: tuple[_ToldCommand, ...] = ()
    wholly: bool = False  # commands and nothing else
    asks: bool = False


def act(command: str) -> str:
    """Do one thing, said in plain words."""
    return command


TOOLS = (tool(act),)


def spoken(
    action: Message, fillers: frozenset[str] = _FILLERS, grammar: Grammar | None = None
) -> tuple[str, ...]:
    """The words of the command in a message, in lower case and without fillers.

    A command is the argument of the tool ``act`` in any notation, what stands between ``<action>`` tags or behind a
    label such as ``Action:``, or else what :func:`command_in` finds by the world's grammar; without one, the last line
    that is not empty. Thoughts between ``<think>`` tags (or RLVMR's ``<planning>``, ``<explore>``, …) are left out.

    >>> spoken(Message("assistant", "Where is it? I look.\\nAction: Go to the Fridge1."))
    ('go', 'fridge', '1')
    >>> spoken(Message("assistant", "<think>go up?</think><action>take mug 2</action>"))
    ('take', 'mug', '2')

    Raises:
        ToolError: there is no command, or more than one.
    """
    check_number(len(action.tool_calls), 1)
    text = _argument(action.tool_calls[0]) if action.tool_calls else _said(action.content)
    if isinstance(grammar, Forms) and len(text) < LONGEST:
        return _by_forms(text, fillers, grammar)
    return _filtered(command_in(text, grammar), fillers)


@functools.lru_cache(maxsize=4096)  # the same commands are said again and again
def _by_forms(text: str, fillers: frozenset[str], forms: Forms) -> tuple[str, ...]:
    return _filtered(command_in(text, forms), fillers)


def _filtered(line: str, fillers: frozenset[str]) -> tuple[str, ...]:
    if len(line) > LONGEST:
        raise ToolError(f"A command has at most {LONGEST} characters.")
    words = _words(line, fillers)
    if not words:
        raise ToolError(NONE_FOUND)
    return words


@functools.lru_cache(maxsize=4096)
def _words(line: str, fillers: frozenset[str]) -> tuple[str, ...]:
    return tuple([word for word in _WORD.findall(line.lower()) if word not in fillers])


def _argument(call: ToolCall) -> str:
    return find_tool(TOOLS, call.name).validate(call)["command"]


def said_beside_thoughts(text: str) -> str:
    """Return a text without thoughts between tags, and only what stands in the last action tag if any.

    >>> said_beside_thoughts("<think>hm</think> Good morning. How are you?")
    'Good morning. How are you?'

    Raises:
        ToolError: the text is too long to be looked at.
    """
    if len(text) > _LONGEST_TEXT:
        raise ToolError(f"A message has at most {_LONGEST_TEXT} characters.")
    text = without_thoughts(text)
    tagged = _TAGGED.findall(text) if "<" in text else ()
    return (tagged[-1][1] if tagged else text).strip()


def _said(text: str) -> str:
    """Return what may be a command in a text.

    That is what a call of ``act`` says, what stands between tags or fences, else all of it.
    """
    whole, text = text, said_beside_thoughts(text)
    if any(sign in text for sign in "([{<`") or "nput:" in text:
        text = _BOXED.sub(r"\1", "\n".join(_FENCE.findall(text)) or text)
        found = read_written(text, TOOLS).calls
        check_number(len(found), 1)
        if found:
            return _argument(found[0]) if found[0].name == act.__name__ else _composed(found[0])
        keyed = _KEYED.findall(text) if text.startswith("{") else []
        if len(keyed) == 1:
            return keyed[0]
    if "<" in whole:
        _check_commands([said for _, said in _TAGGED.findall(without_thoughts(whole)) if said.strip()])
    return text.strip()


def _composed(call: ToolCall) -> str:
    """The command that is written as a call: {"action": "go north"}, {"action": "get", "item": "ore", "amount": 2}."""
    given = [str(value) for name, value in call.arguments.items() if name not in _REASONS]
    return " ".join((call.name.replace("_", " "), *given))


def _check_commands(found: Sequence[str]) -> None:
    """Refuse a message with several commands.

    Raises:
        ToolError: there are more than one.
    """
    if len(found) > 1:
        told = "; ".join([" ".join(one.split())[:_LONGEST_TOLD] for one in found[:_MOST_TOLD]])
        raise ToolError(
            f"A turn takes one command: this message has {len(found)} ({told}), and none was carried out. "
            "Write the first alone, and the next one when you have read the answer."
        )


def command_in(text: str, grammar: Grammar | None) -> str:
    """The one command in a text, among whatever prose.

    >>> forms = Forms(frozenset(["go", "take"]), frozenset(["sink", "cloth"]))
    >>> command_in("The cloth should be there. Action: go to sink 1. That will help.", forms)
    'go to sink 1'
    >>> command_in("I would look for it near water.\\ngo to sink 1\\nThere I can take a cloth.", forms)
    'go to sink 1'

    Raises:
        ToolError: there is none, or more than one.
    """
    labels = list(_LABELLED.finditer(text))
    ends = [*(one.start() for one in labels), len(text)]
    said = [(one.start(), text[one.end() : end]) for one, end in zip(labels, ends[1:], strict=True)]
    said = [(start, what) for start, what in said if _WORD.search(what.lower())]
    _check_commands([what.strip().partition("\n")[0] for _, what in said])
    start, behind = said[0] if said else (0, "")
    lines = [line for line in (behind or text).split("\n") if line.strip()]
    if grammar is None:
        return _unlabelled(lines[0] if behind else lines[-1]) if lines else ""
    parts = [_part(_unlabelled(line), grammar, short=bool(behind) and not n) for n, line in enumerate(lines)]
    if behind and (parts[0].found or not any(part.wholly for part in parts)):
        return _one(_labelled(text[:start], parts, grammar), grammar) or _as_it_stands(
            lines[0], parts[0], grammar
        )
    return _one(_candidates(lines, parts, grammar), grammar) or _as_it_stands(
        lines[-1] if lines else "", parts[-1] if parts else _Part(), grammar
    )


def _labelled(before: str, parts: Sequence[_Part], grammar: Grammar) -> Sequence[_ToldCommand]:
    """The commands behind a label, and those that stand alone on other lines; a plan before it is none."""
    bare = [_part(_unlabelled(line), grammar) for line in before.split("\n")[:-1] if not _ITEM.match(line)]
    alone = [part for part in bare if part.wholly and not _plans(part, parts[0].found)]
    said = set(parts[0].found)
    earlier = [one for part in alone for one in part.found if one.own and one not in said]
    later = [one for part in parts[1:] if part.wholly for one in part.found if one.own]
    return [*earlier, *parts[0].found, *later]


def _plans(part: _Part, following: Sequence[_ToldCommand]) -> bool:
    """Say whether a line tells several steps of which one follows."""
    return len(part.found) > 1 and len(following) == 1 and following[0] in part.found


def _candidates(lines: Sequence[str], parts: Sequence[_Part], grammar: Grammar) -> Sequence[_ToldCommand]:
    """The commands of a text without a label: of lines that are nothing else, of what is set off, of sentences."""
    whole = [place for place, part in enumerate(parts) if part.wholly and all(one.own for one in part.found)]
    if whole:
        last = parts[whole[-1]].found
        if not _ITEM.match(lines[whole[-1]]):
            planned = {
                place for place in whole[:-1] if _ITEM.match(lines[place]) or _plans(parts[place], last)
            }
            whole = [place for place in whole if place not in planned]
        after = [one for part in parts[whole[-1] + 1 :] for one in part.found if one.own]
        return [*(one for place in whole for one in parts[place].found), *after]
    spans = ["".join(found) for line in lines for found in _SPAN.findall(line)]
    set_off = [
        one._replace(own=False)  # it may be only spoken of
        for said in spans
        if (part := _part(said, grammar)).wholly
        for one in part.found
    ]
    if set_off:
        return set_off
    if not parts or parts[-1].wholly or _loosely(lines[-1], grammar):
        return parts[-1].found if parts else ()
    return [*{one.words: one for part in parts for one in part.found}.values()]


def _one(found: Sequence[_ToldCommand], grammar: Grammar) -> str:
    """The only command, "" if there is none."""
    found = [
        one for place, one in enumerate(found) if one.own or not _leads_to(one, found[place + 1 : place + 2])
    ]
    _check_commands([" ".join(one.words) for one in found])
    if not found:
        return ""
    (one,) = found
    if isinstance(grammar, Forms) and one.words[0] in grammar.final and not one.own:
        raise ToolError(_only_so(grammar))
    return " ".join(one.words)


def _leads_to(told: _ToldCommand, following: Sequence[_ToldCommand]) -> bool:
    """Say whether "I'll go to the sink" or "I look around" only leads to the command that follows."""
    if not following or not following[0].own:
        return False
    verb, *rest = told.words
    named = set(rest) - (_LINKS - {"it", "them"})
    return not named or (verb == following[0].words[0] and named.issubset(following[0].words))


def _only_so(forms: Forms) -> str:
    return f"Nothing was done. If you mean it, write the command alone: {forms.how}."


def _as_it_stands(line: str, part: _Part, grammar: Grammar) -> str:
    """A line that is no command to the letter: read as one if it may be meant so, and refused if it is anything else."""
    words = _raw(line)
    if isinstance(grammar, Forms):
        if grammar.final & set(words):
            raise ToolError(_only_so(grammar))
        if part.asks and not (words and words[0] in grammar.asked):
            raise ToolError(_A_QUESTION)
        bare = [word for word in words if word not in _FILLERS]
        if bare and bare[0] in grammar.verbs and not _loosely(line, grammar):
            raise ToolError(_NOT_ONE)
    elif part.asks and isinstance(grammar, Tried) and not grammar.harmless(words):
        raise ToolError(_A_QUESTION)
    return _unlabelled(line)


def _part(line: str, grammar: Grammar, *, short: bool = False) -> _Part:
    """A line, taken apart; among prose a single word is a command only behind a colon, or where ``short``."""
    texts = _SENTENCE.findall(line.strip())
    sentences = [_sentence(text, grammar) for text in texts]
    found = [one for part in sentences for one in part.found]
    wholly = bool(found) and all(part.wholly for part in sentences)
    if not wholly and not short:  # "Wait, …", "Look! …"
        last = sentences[-1].found if len(texts) > 1 and texts[-2].endswith(":") else ()
        found = [one for one in found if len(one.words) > 1 or one in last]
    return _Part(tuple(found), wholly, any(part.asks for part in sentences))


def _sentence(text: str, grammar: Grammar) -> _Part:
    clauses = list(_clauses(text, grammar))
    if not clauses:
        return _Part(wholly=True)
    first = clauses[0]
    if text.endswith("?") or (first[0] in _ASKING and _NOT.isdisjoint(first[1:2]) and not grammar.own(first)):
        return _Part(asks=True)
    if first[0] in _CONDITION:
        return _Part()
    apart = _OR.search(text) or (_takes_parts(grammar) and _THEN.search(text))
    if len(clauses) > 1 and not apart and grammar.whole(clauses):
        together = tuple(word for clause in clauses for word in _untold(clause))
        return _Part((_ToldCommand(together),), wholly=True)
    found: list[_ToldCommand] = []
    own, aside = True, False  # in the imperative so far; with something that is no command
    for clause in clauses:
        told = () if grammar.own(clause) else _told(clause, grammar)
        if told is not None:  # in "I go … and take …" the second is told, too
            own = own and not told
            found.append(_ToldCommand(told or clause, own))
        elif found and grammar.more(found[-1].words[0], clause):
            found.append(_ToldCommand((found[-1].words[0], *clause), own))
        else:
            aside = True
    return _Part(tuple(found), not aside)


def _takes_parts(grammar: Grammar) -> bool:
    """Say whether things joined by "and" are what one thing is made of, so that those behind "then" are not."""
    return isinstance(grammar, Forms) and bool(grammar.behind)


def _clauses(text: str, grammar: Grammar) -> Iterator[tuple[str, ...]]:
    """The words between commas, "and", "then" and the like, without what only leads over from one to the next."""
    for said in _JOINED.split(text):
        words = _raw(said)
        begin = 0
        for place in range(1, len(words)):
            if words[place - 1].isdecimal() and grammar.starts(words[place]):
                yield words[begin:place]
                begin = place
        if any(word.isalpha() for word in words[begin:]):
            yield words[begin:]


def _raw(text: str) -> tuple[str, ...]:
    words = _WORD.findall(text.lower())
    return tuple(words[_first_not(_SOFT, words) :])


def _first_not(known: frozenset[str], words: Sequence[str]) -> int:
    """The place of the first word that is none of these."""
    return next((place for place, word in enumerate(words) if word not in known), len(words))


def _told(words: tuple[str, ...], grammar: Grammar) -> tuple[str, ...] | None:
    """The command in "I go …", "I'll go …", "Let's go …"; None where there is none."""
    if words[0] not in _TELLERS:
        return None
    rest = _untold(words)
    if not grammar.own(rest) or (isinstance(grammar, Tried) and grammar.harmless(rest)):
        return None
    return rest


def _untold(words: Sequence[str]) -> tuple[str, ...]:
    """The words behind "I'll", "Let me" and the like; all where nobody is named first."""
    if words[0] not in _TELLERS:
        return tuple(words)
    place = 0
    while place < len(words) and (words[place] in _TOLD or _intends(words[place : place + 2])):
        place += 1
    return tuple(words[place:])


def _intends(words: Sequence[str]) -> bool:
    """Say whether these two words only say that one means to do what follows."""
    first, *following = words
    after = following[0] if following else ""
    return (
        (first in _INTENDING and after == "to")
        or (first == "would" and after == "like")
        or (first == "think" and after in _TELLERS)
    )


def _loosely(line: str, grammar: Grammar) -> bool:
    """Say whether a line begins like a command, if only it knew more words.

    It must have none that make a statement of it.
    """
    words = _raw(line)
    rest = words[_first_not(_TOLD | _FILLERS, words) :]
    if not rest or not isinstance(grammar, Forms) or rest[0] not in grammar.verbs:
        return False
    interjection = len(rest) > 1 and len(next(_clauses(line, grammar))) == 1  # "Wait, …"
    return _PROSE.isdisjoint(rest) and not interjection


@functools.lru_cache(maxsize=4096)
def is_plain(text: str) -> bool:
    """Say whether a text is plainly one command, if it is any."""
    plain = _PLAIN.fullmatch(text) is not None and not _JOINED.search(text)
    return plain and _ASKING.isdisjoint(text.lower().split()[:1])


def _unlabelled(line: str) -> str:
    item = _ITEM.match(line)
    line = line[item.end() :] if item else line
    line = _LABEL.sub("", line) if ":" in line or ">" in line else line
    if "(" not in line and "[" not in line:
        return line
    return _CALL.sub(lambda call: f"{call[1].replace('_', ' ')} {_PARTS.sub(' ', call[2])}", line)
