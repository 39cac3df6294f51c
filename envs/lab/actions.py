"""Commands: how they are read and written, what they do, and which can be carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from turnwise.envs.lab import circuit
from turnwise.envs.lab.goals import FOCUSED, notes, suits
from turnwise.envs.lab.matter import NAMES, NUMBER, PHASES, RECIPES, SLUDGE, SOLID, leads_somewhere, names
from turnwise.envs.lab.state import FLOWER, HELD, NOTHING, NOWHERE, Laboratory, LabState
from turnwise.envs.lab.vocabulary import ASIDE, KINDS, ROOMS, VERBS
from turnwise.envs.worlds.one_command import Forms
from turnwise.tools.core import ToolError

FORMS = Forms(
    verbs=frozenset(VERBS) - ASIDE,
    names=frozenset((*KINDS, *ROOMS, *NAMES)),
    traits=frozenset(
        (
            "solid",
            "liquid",
            "gas",
            "open",
            "closed",
            "on",
            "off",
            "hot",
            "cold",
            "warm",
            "paint",
            "seed",
            "flower",
        )
    ),
    pairs=frozenset(
        word for word, verb in VERBS.items() if verb in ("connect", "disconnect", "cross", "mix")
    ),
    final=frozenset(word for word, verb in VERBS.items() if verb == "focus"),
    how="focus on X",
)


class LabAct(NamedTuple):
    """A verb with one or two things, or the number of a room."""

    verb: str
    a: int = NOTHING
    b: int = NOTHING


class Wrong(NamedTuple):
    """Outcome of a wrong focus, where mistakes cannot be undone."""

    thing: int


def read(state: LabState, words: Sequence[str]) -> LabAct:
    """Read what a command means here. Names may lack their number; a substance stands for the vessel that it
    is in.

    Raises:
        ToolError: the verb or a number is unknown.
    """
    verb = VERBS.get(words[0])
    if verb is None:
        raise ToolError(f"unknown verb {words[0][:20]} : say {' , '.join(dict.fromkeys(VERBS.values()))} .")
    if verb == "take" and tuple(words[1:2]) == ("look",):  # "take a look around"
        verb = "look"
    lab = state.lab
    found = _things(state, words, pours=verb == "pour") if verb != "go" or words[0] == "move" else []
    if verb == "go" and not found:
        return LabAct("go", _room(lab, words))
    if verb == "activate" and "off" in words:
        verb = "deactivate"
    if words[0] == "move":
        verb = "put"
    elif verb == "put" and len(found) == 1 and "down" in words:
        verb = "drop"
    if verb in ("look", "examine"):  # "look at the note", "examine the room"
        about = not {"room", "around", lab.rooms[state.room]}.isdisjoint(words)
        verb = "examine" if found else "look" if about else verb
    absent = next((word for word in words[1:] if word in KINDS or word in NUMBER), "")
    if absent and not found and verb not in ("look", "wait"):
        raise ToolError(f"there is no {absent} here .")
    instrument = next((thing for thing in found if lab.props[thing].instrument), NOTHING)
    if verb == "test" or (verb == "measure" and len(found) > 1 and instrument != NOTHING):  # "use scale on X"
        return LabAct("test", instrument, next((thing for thing in found if thing != instrument), NOTHING))
    if verb == "measure" and len(found) > 1:  # "use thermometer on X"
        found = [thing for thing in found if lab.kinds[thing] != "thermometer"]
    if words[0] == "use" and found and lab.props[found[0]].device:
        verb = "activate"
    return LabAct(verb, *found[:2])


def _room(lab: Laboratory, words: Sequence[str]) -> int:
    named = next((word for word in words[1:] if word in ROOMS), "")
    if named and named not in lab.rooms:
        raise ToolError(f"there is no {named} here .")
    return lab.rooms.index(named) if named else NOTHING


def _things(state: LabState, words: Sequence[str], *, pours: bool) -> list[int]:
    """The things that are named, each once."""
    lab, found = state.lab, list[int]()
    for place, word in enumerate(words[1:], 1):
        if word not in lab.numbers and word not in NUMBER:
            continue
        called = words[place + 1] if place + 1 < len(words) else ""
        thing = _named(state, word, called, pours=pours)
        if thing != NOTHING and thing not in found:
            found.append(thing)
    return found


def _named(state: LabState, word: str, called: str, *, pours: bool) -> int:
    lab = state.lab
    known = lab.numbers.get(word, ())
    if known and called.isdecimal():
        if len(called) > 3 or not 1 <= int(called) <= len(known):
            raise ToolError(f"there is no {word} {called[:6]} .")
        return known[int(called) - 1]
    if not known:  # a substance: what pours it if it is to be poured, else a vessel with it
        bit = 1 << NUMBER[word]
        known = [n for n, content in enumerate(state.content) if content & bit]
        known = [n for n in known if lab.props[n].source == pours] or known
    return min(known, key=lambda n: (not state.can_reach(n), state.room_of(n) != state.room), default=NOTHING)


def do(state: LabState, act: LabAct) -> tuple[LabState, str | Wrong]:
    """The state after an act (before time passes), and what is to be said beside what is seen.

    Raises:
        ToolError: it cannot be done here.
    """
    return _DO[act.verb](state, act)


Done = tuple[LabState, "str | Wrong"]


def _go(state: LabState, act: LabAct) -> Done:
    if act.a == NOTHING:
        raise ToolError("go where ?")
    if act.a not in state.lab.next_to[state.room]:
        raise ToolError(f"no door leads from here to the {state.lab.rooms[act.a]} .")
    return state._replace(room=act.a), ""


def _turn(state: LabState, act: LabAct) -> Done:
    thing, opens = _here(state, act.a, act.verb), act.verb == "open"
    if not state.lab.props[thing].openable:
        raise ToolError(f"{state.lab.names[thing]} cannot be opened .")
    if state.is_open(thing) == opens:
        raise ToolError(f"{state.lab.names[thing]} is {'open' if opens else 'closed'} .")
    return state._replace(opened=state.opened ^ 1 << thing), ""


def _switch(state: LabState, act: LabAct) -> Done:
    thing, on = _here(state, act.a, act.verb), act.verb == "activate"
    name = state.lab.names[thing]
    if state.lab.props[thing].device is None:
        raise ToolError(f"{name} cannot be switched .")
    if thing in state.lab.broken:
        raise ToolError(f"{name} is broken .")
    if bool(state.running >> thing & 1) == on:
        raise ToolError(f"{name} is {'on' if on else 'off'} .")
    return state._replace(running=state.running ^ 1 << thing), ""


def _take(state: LabState, act: LabAct) -> Done:
    thing = _here(state, act.a, "take")
    if state.lab.props[thing].fixed:
        raise ToolError(f"{state.lab.names[thing]} stays where it is .")
    if state.at[thing] == HELD:
        raise ToolError(f"you hold {state.lab.names[thing]} .")
    if state.pot_of(thing) != NOTHING and state.age[thing]:
        raise ToolError(f"{state.lab.names[thing]} has taken root .")
    return state._replace(at=_with(state.at, thing, HELD)), ""


def _put(state: LabState, act: LabAct) -> Done:
    thing, lab = _held(state, act.a, act.verb), state.lab
    if act.verb == "drop":
        return state._replace(at=_with(state.at, thing, state.room)), ""
    place = _here(state, act.b, "put it on")
    if not lab.props[place].holds or (lab.props[place].pot and not lab.props[thing].seed):
        raise ToolError(f"{lab.names[place]} does not take {lab.names[thing]} .")
    if not state.is_open(place):
        raise ToolError(f"{lab.names[place]} is closed .")
    if lab.kinds[place] == "plane" and lab.kinds[thing] == "block":
        said = f"{lab.names[thing]} slides down {lab.names[place]} in {lab.seconds[place]} seconds ."
        return state._replace(at=_with(state.at, thing, state.room), noted=state.noted | 1 << place), said
    return state._replace(at=_with(state.at, thing, len(lab.rooms) + place)), ""


def _pour(state: LabState, act: LabAct) -> Done:
    lab, a, b = state.lab, act.a, act.b
    if b != NOTHING and not lab.props[a].source and lab.props[b].source:
        a, b = b, a  # "fill pot 1 with water", "water pot 1 with bottle 1"
    source, vessel = _held(state, a, "pour"), _here(state, b, "pour it into")
    if not lab.props[source].source:
        raise ToolError("pour from a bottle , a jar or a bag .")
    if not lab.props[vessel].vessel or lab.props[vessel].source:
        raise ToolError(f"nothing can be poured into {lab.names[vessel]} .")
    content = state.content[vessel] | lab.content[source]
    if content == state.content[vessel]:
        raise ToolError(f"there is some in {lab.names[vessel]} .")
    if not lab.irreversible and not lab.props[vessel].pot and not leads_somewhere(content):
        raise ToolError(f"that would spoil {lab.names[vessel]} .")
    return _filled(state, vessel, content), ""


def _mix(state: LabState, act: LabAct) -> Done:
    vessel, lab = _here(state, act.a, "mix"), state.lab
    if not lab.props[vessel].vessel or lab.props[vessel].source or lab.props[vessel].pot:
        raise ToolError("mix what is in a vessel .")
    content = state.content[vessel]
    product = RECIPES.get(content)
    if product is None and content & (content - 1) == 0:
        raise ToolError(f"there is nothing to mix in {lab.names[vessel]} .")
    if product is None and not lab.irreversible:
        raise ToolError("that gives nothing yet .")
    after = SLUDGE if product is None else product
    return _filled(state, vessel, after), f"it becomes {names(after)[0]} ."


def _empty(state: LabState, act: LabAct) -> Done:
    vessel, lab = _here(state, act.a, "empty"), state.lab
    if not lab.props[vessel].vessel or lab.props[vessel].source or lab.props[vessel].pot:
        raise ToolError(f"{lab.names[vessel]} cannot be emptied .")
    if not state.content[vessel]:
        raise ToolError(f"{lab.names[vessel]} is empty .")
    if not lab.irreversible and lab.content[vessel]:
        raise ToolError(f"{lab.names[vessel]} is still needed .")
    return _filled(state, vessel, 0), ""


def _measure(state: LabState, act: LabAct) -> Done:
    thing, lab = _here(state, act.a, "measure"), state.lab
    if not any(state.at[n] == HELD for n in lab.numbers.get("thermometer", ())):
        raise ToolError("you need a thermometer in your hands .")
    if not lab.props[thing].vessel or not state.content[thing]:
        raise ToolError(f"there is nothing to measure in {lab.names[thing]} .")
    noted = state.noted | 1 << thing if notes(state, thing) else state.noted
    state_of = "" if state.phase(thing) == SOLID else f" , {PHASES[state.phase(thing)]}"
    return state._replace(noted=noted), f"{state.temperature[thing]} degrees{state_of} ."


def _test(state: LabState, act: LabAct) -> Done:
    if act.a == NOTHING:
        raise ToolError("test it with what ? say test X with an instrument .")
    lab, instrument, thing = state.lab, _held(state, act.a, "test"), _here(state, act.b, "test")
    for number, reading in enumerate(lab.readings):
        if (reading.instrument, reading.thing) == (lab.kinds[instrument], thing):
            return state._replace(used=state.used | 1 << number), reading.says
    raise ToolError(f"{lab.names[instrument]} says nothing of {lab.names[thing]} .")


def _connect(state: LabState, act: LabAct) -> Done:
    lab, a, b = state.lab, _here(state, act.a, "connect"), _here(state, act.b, "connect it with")
    if not lab.props[a].part or not lab.props[b].part:
        raise ToolError("connect wires with parts of circuits .")
    if "wire" not in (lab.props[a].part, lab.props[b].part):
        raise ToolError("one of the two must be a wire .")
    pair = (min(a, b), max(a, b))
    if pair in state.wires or any(len(circuit.ends(state, thing)) > 1 for thing in pair):
        raise ToolError(f"no end of {lab.names[a]} or {lab.names[b]} is free .")
    after = state._replace(wires=tuple(sorted((*state.wires, pair))))
    for thing in circuit.loop(after, a):
        if circuit.tests(after, thing):
            after = after._replace(noted=after.noted | 1 << thing)
    return after, _lamps(after)


def _disconnect(state: LabState, act: LabAct) -> Done:
    thing = _here(state, act.a, "disconnect")
    wires = tuple(pair for pair in state.wires if thing not in pair or act.b not in (NOTHING, *pair))
    if wires == state.wires:
        raise ToolError(f"{state.lab.names[thing]} is not connected .")
    return state._replace(wires=wires), ""


def _lamps(state: LabState) -> str:
    lit = [n for n in state.lab.numbers.get("lamp", ()) if circuit.shines(state, n)]
    return f"{state.lab.names[lit[0]]} shines ." if lit else "connected , no lamp shines ."


def _cross(state: LabState, act: LabAct) -> Done:
    lab, a, b = state.lab, _here(state, act.a, "cross"), _here(state, act.b, "cross it with")
    if not any(state.at[n] == HELD for n in lab.numbers.get("brush", ())):
        raise ToolError("you need a brush in your hands .")
    child = next((n for n in lab.numbers.get("sapling", ()) if state.at[n] == NOWHERE), NOTHING)
    if any(not lab.props[n].seed or state.stage(n) < FLOWER for n in (a, b)) or child == NOTHING:
        raise ToolError("only two flowers can be crossed , once .")
    return state._replace(at=_with(state.at, child, HELD)), f"you get {lab.names[child]} , a seed ."


def _focus(state: LabState, act: LabAct) -> Done:
    thing = _here(state, act.a, "focus on")
    goals = state.lab.goals
    goal = goals[state.done] if state.done < len(goals) else None
    if goal is not None and goal.kind in FOCUSED and suits(state, goal, thing):
        return state._replace(focus=thing), f"you focus on {state.lab.names[thing]} ."
    if thing == state.focus or any(one.kind == "focus" and one.a == thing for one in goals[: state.done]):
        return state, f"you focus on {state.lab.names[thing]} ."  # said again: nothing new, and no mistake
    if state.lab.irreversible:
        return state, Wrong(thing)
    raise ToolError(f"{state.lab.names[thing]} is not it , or not yet .")


def _nothing(state: LabState, act: LabAct) -> Done:
    if act.verb == "examine":
        thing = _here(state, act.a, "examine")
        if state.lab.kinds[thing] == "note":
            return state, state.lab.notes
    return state, ""


_DO: Mapping[str, Callable[[LabState, LabAct], Done]] = {
    "go": _go, "open": _turn, "close": _turn, "activate": _switch, "deactivate": _switch, "take": _take,
    "put": _put, "drop": _put, "pour": _pour, "mix": _mix, "empty": _empty, "measure": _measure, "test": _test,
    "connect": _connect, "disconnect": _disconnect, "cross": _cross, "focus": _focus,
    "wait": _nothing, "look": _nothing, "examine": _nothing,
}  # fmt: skip


def _filled(state: LabState, vessel: int, content: int) -> LabState:
    before = state.content
    return state._replace(content=(*before[:vessel], content, *before[vessel + 1 :]))


def _here(state: LabState, thing: int, verb: str) -> int:
    if thing == NOTHING:
        raise ToolError(f"{verb} what ?")
    if not state.can_reach(thing):
        raise ToolError(f"{state.lab.names[thing]} is not in reach .")
    return thing


def _held(state: LabState, thing: int, verb: str) -> int:
    if thing == NOTHING:
        raise ToolError(f"{verb} what ?")
    if state.at[thing] != HELD:
        raise ToolError(f"you do not hold {state.lab.names[thing]} .")
    return thing


def _with(values: bytes, index: int, value: int) -> bytes:
    return b"%b%c%b" % (values[:index], value, values[index + 1 :])


def possible(state: LabState) -> list[LabAct]:
    """The acts that can be carried out here and change something, waiting last."""
    lab, reach = state.lab, state.reach()
    acts = [LabAct("go", room) for room in lab.next_to[state.room]]
    for thing in reach:
        acts += _with_one(state, thing)
    held = [thing for thing in reach if state.at[thing] == HELD]
    for thing in held:
        acts += (LabAct("put", thing, place) for place in reach if _takes(state, place, thing))
        acts.append(LabAct("drop", thing))
        if lab.props[thing].instrument:
            told = [one.thing for one in lab.readings if one.instrument == lab.kinds[thing]]
            acts += (LabAct("test", thing, other) for other in told if other in reach)
        if lab.props[thing].source:
            acts += (LabAct("pour", thing, vessel) for vessel in reach if _fills(state, thing, vessel))
    acts += _circuits(state, reach)
    acts += _crossings(state, reach, held)
    acts += (LabAct("focus", thing) for thing in reach)
    return [*acts, LabAct("wait")]


def _with_one(state: LabState, thing: int) -> Iterator[LabAct]:
    lab = state.lab
    props = lab.props[thing]
    if props.openable:
        yield LabAct("close" if state.is_open(thing) else "open", thing)
    if props.device and thing not in lab.broken:
        yield LabAct("deactivate" if state.running >> thing & 1 else "activate", thing)
    rooted = state.pot_of(thing) != NOTHING and state.age[thing]
    if not props.fixed and state.at[thing] != HELD and not rooted:
        yield LabAct("take", thing)
    content = state.content[thing]
    if not content or not props.vessel:
        return
    if any(state.at[n] == HELD for n in lab.numbers.get("thermometer", ())):
        yield LabAct("measure", thing)
    if not props.source and not props.pot:
        if content in RECIPES or (lab.irreversible and content & (content - 1)):
            yield LabAct("mix", thing)
        if lab.irreversible or not lab.content[thing]:
            yield LabAct("empty", thing)


def _takes(state: LabState, place: int, thing: int) -> bool:
    props = state.lab.props[place]
    return props.holds and state.is_open(place) and (not props.pot or state.lab.props[thing].seed)


def _fills(state: LabState, source: int, vessel: int) -> bool:
    props, content = state.lab.props[vessel], state.content[vessel]
    after = content | state.lab.content[source]
    sound = state.lab.irreversible or props.pot or leads_somewhere(after)
    return props.vessel and not props.source and after != content and sound


def _circuits(state: LabState, reach: list[int]) -> Iterator[LabAct]:
    parts = [thing for thing in reach if state.lab.props[thing].part]
    if not parts:
        return
    free = [thing for thing in parts if len(circuit.ends(state, thing)) < 2]
    for wire in free:
        if state.lab.props[wire].part == "wire":
            for other in free:
                pair = (min(wire, other), max(wire, other))
                wires = state.lab.props[other].part == "wire"
                if other != wire and pair not in state.wires and (not wires or other > wire):
                    yield LabAct("connect", wire, other)
    for thing in parts:
        if circuit.ends(state, thing):
            yield LabAct("disconnect", thing)


def _crossings(state: LabState, reach: list[int], held: list[int]) -> Iterator[LabAct]:
    lab = state.lab
    if any(state.at[n] == NOWHERE for n in lab.numbers.get("sapling", ())) and any(
        lab.kinds[thing] == "brush" for thing in held
    ):
        flowers = [n for n in reach if lab.props[n].seed and state.stage(n) >= FLOWER]
        for a in flowers:
            for b in flowers:
                if a < b:
                    yield LabAct("cross", a, b)


_FULL = {
    "put": "put {a} in/on {b}", "pour": "pour {a} into {b}", "connect": "connect {a} to {b}",
    "cross": "cross {a} with {b}", "focus": "focus on {a}", "measure": "measure {a}",
    "test": "test {b} with {a}",
}  # fmt: skip
_COMPACT = {
    "put": "put {a} {b}",
    "pour": "pour {a} {b}",
    "connect": "connect {a} {b}",
    "cross": "cross {a} {b}",
    "test": "test {b} {a}",
}


def write(lab: Laboratory, act: LabAct) -> str:
    """An act as a command."""
    if act.verb == "go":
        return f"go to {lab.rooms[act.a]}" if lab.full else f"go {lab.rooms[act.a]} ."
    if act.a == NOTHING:
        return act.verb if lab.full else f"{act.verb} ."
    form = (_FULL if lab.full else _COMPACT).get(act.verb, f"{act.verb} {{a}}")
    return form.format(a=lab.names[act.a], b=lab.names[act.b] if act.b != NOTHING else "")
