"""What is told: sentences, or compact lines in which every word has a space behind it."""

from __future__ import annotations

import re

from turnwise.envs.lab.matter import PHASES, names
from turnwise.envs.lab.verbs import Act
from turnwise.envs.lab.world import GROWN, HELD, STAGES, Lab, LabState

SYSTEM = {
    "compact": (
        "lab : go , open , close , take , put , drop , pour , mix , empty , activate , deactivate , measure , "
        "connect , disconnect , cross , focus , examine , wait ."
    ),
    "full": (
        "You are in a laboratory for science at school. Do what you are asked to do, one command per turn: go to "
        "ROOM, open X, close X, take X, put X in/on Y, drop X, pour X into Y, mix X, empty X, activate X, "
        "deactivate X, measure X (with a thermometer), connect X to Y, disconnect X, cross X with Y (with a "
        "brush), examine X, look, wait, focus on X. Focus only on what the task names, when it is time: a wrong "
        "focus cannot be taken back."
    ),
}
_SPACED = re.compile(r" ([.,:?])")


def opening(state: LabState) -> str:
    """The first observation: the task, and what is to be seen."""
    lab = state.lab
    lines = [lab.task.prompt, describe(state)]
    if lab.known:
        lines += (_contents(state, room) for room in range(len(lab.rooms)) if room != state.room)
    return "\n".join(lines)


def describe(state: LabState) -> str:
    """What one sees from here."""
    lab = state.lab
    held = [_named(state, thing) for thing in state.held()]
    doors = " , ".join(lab.rooms[room] for room in lab.next_to[state.room])
    lines = f"{_contents(state, state.room)} doors : {doors or 'none'} ."
    return f"{lines} hold : {' , '.join(held)} ." if held else lines


def _contents(state: LabState, room: int) -> str:
    """What can be seen in this room; of another room everything, for where it is told at first."""
    lab = state.lab
    if room == state.room:
        things = [thing for thing in state.reach() if state.at[thing] != HELD]
    else:
        things = [thing for thing in range(len(lab.kinds)) if state.room_of(thing) == room]
    return f"{lab.rooms[room]} : {' , '.join([_named(state, thing) for thing in things]) or 'nothing'} ."


def _named(state: LabState, thing: int) -> str:
    """A thing with what one can see of it."""
    lab, props = state.lab, state.lab.props[thing]
    words = [lab.names[thing]]
    content = state.content[thing]
    if content:
        words.append("of")
        words.append(" and ".join(names(content)))
        if not props.source and not props.pot:
            words.append(PHASES[state.phase(thing)])
    if props.device:
        words.append("on" if state.running >> thing & 1 else "off")
    if props.openable:
        words.append("open" if state.is_open(thing) else "closed")
    if props.seed:
        words.append(STAGES[state.stage(thing)])
        if thing in lab.traits and state.stage(thing) >= GROWN:
            words.append(lab.traits[thing])
    at = state.at[thing] - len(lab.rooms)
    if 0 <= at < len(lab.kinds):
        words.append(f"in {lab.names[at]}")
    return " ".join(words)


def tell(state: LabState, act: Act, said: str) -> str:
    """What an act led to."""
    lab = state.lab
    if (said and act.verb != "examine") or said:
        text = said
    elif act.verb in ("go", "open", "look", "wait"):
        text = describe(state)
    elif act.verb == "examine" or act.verb in (
        "pour",
        "empty",
        "activate",
        "deactivate",
        "close",
        "put",
        "take",
    ):
        text = f"{_named(state, act.a if act.verb != 'pour' else _target(lab, act))} ."
    else:
        text = "done ."
    return styled(lab, text)


def _target(lab: Lab, act: Act) -> int:
    return act.a if lab.props[act.b].source else act.b


def styled(lab: Lab, text: str) -> str:
    """A text in the style of the laboratory: full sentences have no space before their signs."""
    if not lab.full or not text:
        return text
    return _SPACED.sub(r"\1", text[0].upper() + text[1:])
