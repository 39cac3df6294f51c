"""Which acts can be carried out, and how they are written."""

from __future__ import annotations

from collections.abc import Iterator

from turnwise.envs.lab import circuit
from turnwise.envs.lab.matter import RECIPES, leads_somewhere
from turnwise.envs.lab.verbs import Act
from turnwise.envs.lab.world import FLOWER, HELD, NOTHING, NOWHERE, Lab, LabState


def possible(state: LabState) -> list[Act]:
    """The acts that can be carried out here and change something, waiting last."""
    lab, reach = state.lab, state.reach()
    acts = [Act("go", room) for room in lab.next_to[state.room]]
    for thing in reach:
        acts += _with_one(state, thing)
    held = [thing for thing in reach if state.at[thing] == HELD]
    for thing in held:
        acts += (Act("put", thing, place) for place in reach if _takes(state, place, thing))
        acts.append(Act("drop", thing))
        if lab.props[thing].source:
            acts += (Act("pour", thing, vessel) for vessel in reach if _fills(state, thing, vessel))
    acts += _circuits(state, reach)
    acts += _crossings(state, reach, held)
    acts += (Act("focus", thing) for thing in reach)
    return [*acts, Act("wait")]


def _with_one(state: LabState, thing: int) -> Iterator[Act]:
    lab = state.lab
    props = lab.props[thing]
    if props.openable:
        yield Act("close" if state.is_open(thing) else "open", thing)
    if props.device and thing not in lab.broken:
        yield Act("deactivate" if state.running >> thing & 1 else "activate", thing)
    rooted = state.pot_of(thing) != NOTHING and state.age[thing]
    if not props.fixed and state.at[thing] != HELD and not rooted:
        yield Act("take", thing)
    content = state.content[thing]
    if not content or not props.vessel:
        return
    if any(state.at[n] == HELD for n in lab.numbers.get("thermometer", ())):
        yield Act("measure", thing)
    if not props.source and not props.pot:
        if content in RECIPES or (lab.irreversible and content & (content - 1)):
            yield Act("mix", thing)
        if lab.irreversible or not lab.content[thing]:
            yield Act("empty", thing)


def _takes(state: LabState, place: int, thing: int) -> bool:
    props = state.lab.props[place]
    return props.holds and state.is_open(place) and (not props.pot or state.lab.props[thing].seed)


def _fills(state: LabState, source: int, vessel: int) -> bool:
    props, content = state.lab.props[vessel], state.content[vessel]
    after = content | state.lab.content[source]
    sound = state.lab.irreversible or props.pot or leads_somewhere(after)
    return props.vessel and not props.source and after != content and sound


def _circuits(state: LabState, reach: list[int]) -> Iterator[Act]:
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
                    yield Act("connect", wire, other)
    for thing in parts:
        if circuit.ends(state, thing):
            yield Act("disconnect", thing)


def _crossings(state: LabState, reach: list[int], held: list[int]) -> Iterator[Act]:
    lab = state.lab
    if any(state.at[n] == NOWHERE for n in lab.numbers.get("sapling", ())) and any(
        lab.kinds[thing] == "brush" for thing in held
    ):
        flowers = [n for n in reach if lab.props[n].seed and state.stage(n) >= FLOWER]
        for a in flowers:
            for b in flowers:
                if a < b:
                    yield Act("cross", a, b)


_FULL = {
    "put": "put {a} in/on {b}", "pour": "pour {a} into {b}", "connect": "connect {a} to {b}",
    "cross": "cross {a} with {b}", "focus": "focus on {a}", "measure": "measure {a}",
}  # fmt: skip
_COMPACT = {
    "put": "put {a} {b}",
    "pour": "pour {a} {b}",
    "connect": "connect {a} {b}",
    "cross": "cross {a} {b}",
}


def write(lab: Lab, act: Act) -> str:
    """An act as a command."""
    if act.verb == "go":
        return f"go to {lab.rooms[act.a]}" if lab.full else f"go {lab.rooms[act.a]} ."
    if act.a == NOTHING:
        return act.verb if lab.full else f"{act.verb} ."
    form = (_FULL if lab.full else _COMPACT).get(act.verb, f"{act.verb} {{a}}")
    return form.format(a=lab.names[act.a], b=lab.names[act.b] if act.b != NOTHING else "")
