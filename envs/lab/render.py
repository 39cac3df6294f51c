"""Rendering of observations: sentences, or compact lines in which a space follows every word."""

from __future__ import annotations

import re
from collections.abc import Sequence

from turnwise.envs.lab.actions import LabAct
from turnwise.envs.lab.matter import PHASES, names
from turnwise.envs.lab.state import GROWN, HELD, STAGES, Laboratory, LabState

SYSTEM = {
    "compact": (
        "lab : go , open , close , take , put , drop , pour , mix , empty , activate , deactivate , measure , test , "
        "connect , disconnect , cross , focus , examine , wait ."
    ),
    "full": (
        "You are in a laboratory for science at school. Do what you are asked to do, one command per turn: go to "
        "ROOM, open X, close X, take X, put X in/on Y, drop X, pour X into Y, mix X, empty X, activate X, "
        "deactivate X, measure X (with a thermometer), test X with Y (an instrument such as a scale), connect X to Y, disconnect X, cross X with Y (with a "
        "brush), examine X, look, wait, focus on X. Focus only on what the task names, when it is time: a wrong "
        "focus cannot be taken back. A device must be on to work, and heats or cools what is in it turn by turn; only a "
        "thermometer shows how warm something is."
    ),
}
_SPACED = re.compile(r" ([.,:?])")


def opening(state: LabState) -> str:
    """The first observation: the task, and what is to be seen."""
    lab = state.lab
    lines = [lab.task.prompt, describe(state)]
    if lab.known:
        others = [room for room in range(len(lab.rooms)) if room != state.room]
        lines += (_elsewhere(state, room) if lab.full else _contents(state, room) for room in others)
    return "\n".join(lines)


def describe(state: LabState) -> str:
    """Describe what one sees from here."""
    lab = state.lab
    if lab.full:
        return _prose(state)
    held = [_named(state, thing) for thing in state.held()]
    doors = " , ".join(lab.rooms[room] for room in lab.next_to[state.room])
    lines = f"{_contents(state, state.room)} doors : {doors or 'none'} ."
    return f"{lines} hold : {' , '.join(held)} ." if held else lines


def _prose(state: LabState) -> str:
    """The same in sentences."""
    lab = state.lab
    here = [thing for thing in state.reach() if state.at[thing] == state.room]
    sentences = [f"This room is called the {lab.rooms[state.room]}."]
    sentences.append(f"In it you see {_listed([_seen(state, thing) for thing in here]) or 'nothing'}.")
    doors = [f"the {lab.rooms[room]}" for room in lab.next_to[state.room]]
    if doors:
        sentences.append(f"{'Doors lead' if len(doors) > 1 else 'A door leads'} to {_listed(doors)}.")
    held = [_seen(state, thing) for thing in state.held()]
    if held:
        sentences.append(f"In your hands you have {_listed(held)}.")
    return " ".join(sentences)


def _elsewhere(state: LabState, room: int) -> str:
    things = [_seen(state, thing) for thing in state.things_at(room)]
    return f"In the {state.lab.rooms[room]} there is {_listed(things) or 'nothing'}."


def _seen(state: LabState, thing: int) -> str:
    """A thing with what one can see of it, and what lies in or on it: "an oven (off, open) with a cup in it"."""
    lab, props = state.lab, state.lab.props[thing]
    words, signs = [_with_article(lab, thing)], _signs(state, thing)
    content = state.content[thing]
    if content:
        words.append(f"of {' and '.join(names(content))}")
    if signs:
        words.append(f"({', '.join(signs)})")
    inside = state.inside(thing) if state.is_open(thing) or state.lab.known else []
    if inside:
        where = "in" if props.openable or props.vessel else "on"
        words.append(f"with {_listed([_seen(state, one) for one in inside])} {where} it")
    return " ".join(words)


def _with_article(lab: Laboratory, thing: int, *, definite: bool = False) -> str:
    """The only stove is a stove; one of several cups is cup 2."""
    kind = lab.kinds[thing]
    if len(lab.numbers[kind]) > 1:
        return lab.names[thing]
    if definite:
        return f"the {kind}"
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _signs(state: LabState, thing: int) -> list[str]:
    """List what one sees of a thing's state."""
    lab, props = state.lab, state.lab.props[thing]
    signs: list[str] = []
    if state.content[thing] and not props.source and not props.pot:
        signs.append(PHASES[state.phase(thing)])
    if props.device:
        signs.append("on" if state.running >> thing & 1 else "off")
    if props.openable:
        signs.append("open" if state.is_open(thing) else "closed")
    if props.seed:
        signs.append(STAGES[state.stage(thing)])
        if thing in lab.traits and state.stage(thing) >= GROWN:
            signs.append(lab.traits[thing])
    return signs


def _listed(things: Sequence[str]) -> str:
    return things[0] if len(things) == 1 else f"{', '.join(things[:-1])} and {things[-1]}" if things else ""


def _contents(state: LabState, room: int) -> str:
    """List what can be seen in this room; of another room everything, for where it is told at first."""
    lab = state.lab
    if room == state.room:
        things = [thing for thing in state.reach() if state.at[thing] != HELD]
    else:
        things = [thing for thing in range(len(lab.kinds)) if state.room_of(thing) == room]
    return f"{lab.rooms[room]} : {' , '.join([_named(state, thing) for thing in things]) or 'nothing'} ."


def _named(state: LabState, thing: int) -> str:
    """A thing with what one can see of it, in few words."""
    lab = state.lab
    words = [lab.names[thing]]
    if state.content[thing]:
        words += ["of", " and ".join(names(state.content[thing]))]
    words += _signs(state, thing)
    at = state.at[thing] - len(lab.rooms)
    if 0 <= at < len(lab.kinds):
        words.append(f"in {lab.names[at]}")
    return " ".join(words)


def tell(state: LabState, act: LabAct, said: str) -> str:
    """Tell what an act led to."""
    lab = state.lab
    if said:
        text = f"the thermometer shows {said}" if lab.full and act.verb == "measure" else said
    elif act.verb == "wait" and lab.full:
        text = f"you wait for one turn. {describe(state)}"
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
        thing = act.a if act.verb != "pour" else _target(lab, act)
        text = _sentence(state, act, thing) if lab.full else f"{_named(state, thing)} ."
    else:
        text = _sentence(state, act, act.a) if lab.full else "done ."
    return styled(lab, text)


def _sentence(state: LabState, act: LabAct, thing: int) -> str:
    """Tell what an act led to, as a sentence."""
    lab = state.lab
    name = _with_article(lab, thing, definite=True)
    place = state.at[thing] - len(lab.rooms)
    match act.verb:
        case "take":
            return f"you take {name}."
        case "put" if 0 <= place < len(lab.kinds):
            where = "on" if lab.props[place].holds and not lab.props[place].openable else "in"
            return f"you put {name} {where} {_with_article(lab, place, definite=True)}."
        case "drop":
            return f"you put {name} down."
        case "disconnect":
            return f"you disconnect {name}."
        case "examine":
            return f"you see {_seen(state, thing)}."
        case "pour" | "empty":
            held = " and ".join(names(state.content[thing]))
            return f"{name} now holds {held}." if held else f"{name} is empty now."
        case _:
            return f"{name} is {' and '.join(_signs(state, thing)[-2:])} now."


def _target(lab: Laboratory, act: LabAct) -> int:
    return act.a if lab.props[act.b].source else act.b


def styled(lab: Laboratory, text: str) -> str:
    """A text in the style of the laboratory: full sentences have no space before their signs."""
    if not lab.full or not text:
        return text
    return _SPACED.sub(r"\1", text[0].upper() + text[1:])
