"""Effects of an agent's message: its tool calls, or its words to the user."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from turnwise.envs.messages import Message
from turnwise.envs.toolworld.domain import Domain, as_json
from turnwise.envs.toolworld.facts import stated
from turnwise.envs.toolworld.mind import UserState, cost_of, unconfirmed
from turnwise.envs.toolworld.requests import after_call, open_stages, without_yes
from turnwise.envs.toolworld.reward import worth
from turnwise.envs.toolworld.speech.proposing import Proposal
from turnwise.envs.toolworld.speech.reading import LONGEST, understand
from turnwise.envs.toolworld.state import ToolState
from turnwise.envs.toolworld.users import STOP, respond
from turnwise.tasks.core import Json, canonical, text_encoder
from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool, tool
from turnwise.tools.notations import said_beside_thoughts

_YES = re.compile(
    r"\b(agreed?|do it|do that|exactly|works for me|that works|fine|sounds? (?:right|good|great|perfect|fine)|yes|yeah|yep|yup|sure|ok|okay|"
    r"go ahead|please (?:do|proceed|go)|proceed|correct|confirm(?:ed)?|absolutely|definitely|of course|perfect|by all means|go for it)\b",
    re.IGNORECASE,
)
_NO = re.compile(r"\b(no|not|nope|don't|never|isn't|won't|can't|unless|before)\b", re.IGNORECASE)
_TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|instead|hold on|stop|rather not|changed my mind|on second thou?ght)\b|^no\b(?! (?:problem|worries))",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.?!;])\s+|\n+")
_RESTATED = re.compile(r"(\b(?:if|so long as|as long as)\b[^.:;?!\n]*):.*", re.IGNORECASE | re.DOTALL)
"""A condition, and after it what somebody wishes for: where a yes stands before, no word of the wish agrees or denies."""
_UNSAYABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_text_of = text_encoder(ensure_ascii=False)
PROPOSED = "I propose:"
"""Beginning of a proposal by tool where it is put into words for a user who is played (proposals.py)."""


def words_of(action: Message) -> str:
    """Return what is said to the user, without the thoughts.

    Raises:
        ToolError: nothing that can be said.
    """
    text = said_beside_thoughts(action.content)
    if not text:
        raise ToolError("Say something to the user, or call a tool.")
    if len(text) > LONGEST or _UNSAYABLE.search(text):
        raise ToolError(f"A message to the user is plain text of at most {LONGEST} characters.")
    return text


def write_call(
    name: str, arguments: Mapping[str, Json], *, compact: bool, thought: str = ""
) -> Message | str:
    """A call as a message: ``tool[first , second ]`` in compact domains, else a structured call."""
    if compact:  # with the spaces a word is the same token as where it was told (agents/models/small.py)
        call = f"{name}[{' , '.join(str(value) for value in arguments.values())} ]"
        return f"{thought} \n{call}" if thought else call
    return Message("assistant", thought, (ToolCall(name, dict(arguments), "call_0"),))


def as_text(result: Json) -> str:
    """A tool's result as the agent reads it."""
    return result if isinstance(result, str) else _text_of(result)


def use(state: ToolState, call: ToolCall, earned: dict[str, float]) -> tuple[ToolState, Json]:
    """Carry out one call; add what it is worth to ``earned``.

    Raises:
        ToolError: it cannot be carried out; nothing has changed.
    """
    case, domain = state.case, state.case.domain
    made = domain.act(call.name)
    arguments = (made.tool if made else find_tool(domain.tools, call.name)).validate(call)
    assert made is not None  # else find_tool raised
    broken: list[str] = []
    if made.kind in ("write", "errand", "note", "end"):
        owner = made.owner(state.db, **arguments) if made.owner else None
        if owner is not None and owner not in state.verified:
            broken.append("unverified")
        broken += domain.rules(state.db, call.name, arguments)
    db, result, customer = made.run(state.db, arguments)
    if made.kind == "write" and domain.asks_consent:
        broken += unconfirmed(domain, state.user, call.name, arguments, result)
    given = {name: as_json(value) for name, value in arguments.items()}
    value = worth(case.planned, state.best, call.name, given)
    counted = state.calls < len(case.planned)
    for part, gain in (("valid", float(counted)), ("tool", value.tool), ("arguments", value.arguments)):
        earned[part] = earned.get(part, 0.0) + gain
    verified = state.verified
    if made.kind == "identify" and customer:
        verified = verified | {customer}
    cost = cost_of(result) if made.kind != "note" and db != state.db else None
    looks = made.kind in ("read", "identify")
    user = after_call(domain, case.story, state.user, call.name, given, cost, looks=looks)
    after = state._replace(
        db=db,
        user=user,
        verified=verified,
        broken=(*state.broken, *broken),
        done=state.done | {(call.name, canonical(given))},
        best=value.best,
        calls=min(state.calls + 1, len(case.planned)),
        closed=call.name if made.kind == "end" else "",
    )
    return after, result


def hear(state: ToolState, text: str) -> tuple[ToolState, str]:
    """The state after a message to the user."""
    case = state.case
    if case.played:
        waiting = state._replace(
            current_agent="user", pending=text, acted=frozenset(), user=_all_told(state, text)
        )
        return waiting, text
    answer = respond(case.domain, case.story, state.user, state.db, text)
    closed = "content" if answer.user.over else "" if answer.user.patience else "left"
    return state._replace(user=answer.user, db=answer.db, closed=closed), answer.text


def hear_user(state: ToolState, text: str) -> ToolState:
    """Return the state after the words of a user who is another agent.

    The scripted user listens too, so that plans know where they are; their answer is not said.
    """
    if not state.opened:
        return state._replace(current_agent="agent", opened=True)
    case = state.case
    answer = respond(case.domain, case.story, state.user, state.db, state.pending)
    by_tool = state.pending.startswith(PROPOSED)
    heard = Proposal() if by_tool else understand(case.domain.lexicon, state.pending).proposal
    offered = heard if heard.actions else state.user.offered
    agreed = state.user.agreed
    verdict = says_yes(text)
    if verdict:
        agreed = (*agreed, offered)
    elif verdict is False:
        agreed = ()
    if state.user.stage not in open_stages(answer.user):
        agreed = ()
    did = (
        bool(state.acted) and answer.user.stage == state.user.stage
    )  # their deeds were done before they speak
    user = answer.user._replace(
        served=answer.user.served or did, consent=bool(agreed), agreed=agreed, aside=without_yes(answer.user.aside),
        offered=offered, told=state.user.told, over=False, patience=case.story.patience,
    )  # fmt: skip
    closed = "content" if STOP in text else ""
    return state._replace(current_agent="agent", user=user, closed=closed, pending="")


def says_yes(text: str) -> bool | None:
    """Say whether a user's words agree to what was proposed; False where they deny it, None where they do
    neither.

    >>> [says_yes(text) for text in ("Sounds good, no rush.", "Yes. Actually, wait.", "My PIN is 1.")]
    [True, False, None]
    >>> [says_yes(text) for text in ("Yes, if it is this: no red lamp.", "If it is free: yes.", "If you must: no!")]
    [True, True, False]
    """
    found = _RESTATED.search(text)
    said = text[: found.end(1)] if found and _YES.search(text[: found.end(1)]) else text
    sentences = [part.replace("\u2019", "'").strip() for part in _SENTENCE.split(said)]
    if any(_TAKEN_BACK.search(part) for part in sentences):
        return False
    if any(
        _YES.search(part) and not _NO.search(re.sub(r"\bno (?:rush|hurry|problem|worries)\b", "", part))
        for part in sentences
    ):
        return True
    return False if any(_NO.search(part) for part in sentences) else None


def user_tools(domain: Domain) -> tuple[Tool, ...]:
    """Return what users can do themselves, as tools without arguments."""
    return tuple(_deed_tool(deed.name) for deed in domain.deeds)


@functools.cache
def _deed_tool(name: str) -> Tool:
    def do() -> str:
        return name

    do.__name__, do.__doc__ = name, name.replace("_", " ").capitalize() + "."
    return tool(do)


def _all_told(state: ToolState, text: str) -> UserState:
    """Facts of all stages, since nobody knows in which one another agent believes to be.

    Where the scripted user would be, a wrong value takes a right one back.
    """
    told = set(state.user.told)
    for number, stage in enumerate(state.case.story.stages):
        for index, fact in enumerate(stage.tells):
            right = stated(fact, text)
            if right:
                told.add((number, index))
            elif right is False and number == state.user.stage:
                told.discard((number, index))
    return state.user._replace(told=frozenset(told))
