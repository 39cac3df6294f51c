"""Ways to reach each kind of sub-goal: gold acts, the length of their way, an imperfect policy.

Each achiever returns the next act towards its sub-goal, or None where only time is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from turnwise.envs.lab.actions import LabAct, Wrong, do, possible
from turnwise.envs.lab.clock import tick
from turnwise.envs.lab.goals import advance, solved, suits
from turnwise.envs.lab.matter import GAS, LIQUID, PARTS, ROOM_TEMPERATURE, SOIL, SOLID, WATER
from turnwise.envs.lab.state import FRUIT, HELD, NOTHING, NOWHERE, LabGoal, LabState
from turnwise.envs.lab.ways import Stuck, go, near, put, reach, take_up, tool
from turnwise.tools.core import ToolError

WAIT, STUCK = LabAct("wait"), LabAct("look")
_LONGEST = 600
_ERROR, _HASTE = 0.35, 0.1  # how often `demonstrate` does something else, and focuses too early


def gold(state: LabState) -> LabAct:
    """The next act of a solution; ``look`` where there is none any more."""
    goal = state.lab.goals[state.done]
    try:
        return _ACHIEVE[goal.kind](state, goal) or WAIT
    except Stuck:
        return STUCK


def after(state: LabState, act: LabAct) -> LabState:
    """The state a turn after an act that nothing hinders."""
    changed, said = do(state, act)
    return state if isinstance(said, Wrong) else advance(tick(advance(changed)))


def distance(state: LabState) -> float:
    """Count the turns that ``gold`` needs from here, if nothing slips; infinite where it does not get there."""
    turns = 0
    while not solved(state):
        act = gold(state)
        if act == STUCK or turns > _LONGEST:
            return float("inf")
        try:
            state, turns = after(state, act), turns + 1
        except ToolError:
            return float("inf")
    return turns


# --- by kind of sub-goal -------------------------------------------------------------------------


def _focus(state: LabState, goal: LabGoal) -> LabAct | None:
    lab = state.lab
    fit = [goal.a] if goal.kind == "focus" else [n for n in range(len(lab.kinds)) if suits(state, goal, n)]
    thing = near(state, fit)
    return reach(state, thing) or LabAct("focus", thing)


def _device(state: LabState, goal: LabGoal) -> int:
    """The weakest working device that brings a vessel to where its phase sub-goals are."""
    lab, vessel = state.lab, goal.a
    content = state.content[vessel]
    if not content or content & (content - 1):
        raise Stuck  # emptied, or spoilt
    melts, boils, _ = lab.points(content)
    phase = next((other.b for other in lab.goals if other.kind == "phase" and other.a == vessel), LIQUID)
    phase = goal.b if goal.kind == "phase" else phase
    fit = [
        (abs(kind.device.target - ROOM_TEMPERATURE), number)
        for number, kind in enumerate(lab.props)
        if kind.device and number not in lab.broken and _enough(kind.device.target, phase, melts, boils)
    ]
    if not fit:
        raise Stuck
    return min(fit)[1]


def _enough(target: int, phase: int, melts: int, boils: int) -> bool:
    hot = target > ROOM_TEMPERATURE
    if phase == SOLID:
        return not hot and target < melts
    return hot and target > (boils if phase == GAS else melts)


def _treated(state: LabState, goal: LabGoal) -> LabAct | None:
    """A vessel in a device that runs."""
    device = _device(state, goal)
    return put(state, goal.a, device) or _run(state, device)


def _phased(state: LabState, goal: LabGoal) -> LabAct | None:
    """A vessel brought to a phase; what has boiled becomes liquid again by itself."""
    content = state.content[goal.a]
    if (
        goal.b == LIQUID
        and content
        and state.temperature[goal.a] >= state.lab.points(content)[1] > ROOM_TEMPERATURE
    ):
        return take_up(state, goal.a)
    return _treated(state, goal)


def _dried(state: LabState, goal: LabGoal) -> LabAct | None:
    return _treated(state, LabGoal("phase", goal.a, GAS))


def _warmed(state: LabState, goal: LabGoal) -> LabAct | None:
    """A vessel measured while it is between ``b`` and ``c`` degrees."""
    step, now = take_up(state, tool(state, "thermometer")), state.temperature[goal.a]
    if step or goal.b <= now <= goal.c:
        return step or reach(state, goal.a) or LabAct("measure", goal.a)
    if not state.content[goal.a]:
        raise Stuck
    hotter = now < goal.b
    if (now < ROOM_TEMPERATURE) == hotter and now != ROOM_TEMPERATURE:
        return take_up(state, goal.a)
    return _treated(state, LabGoal("phase", goal.a, LIQUID if hotter else SOLID))


def _used(state: LabState, goal: LabGoal) -> LabAct | None:
    kind, thing, _ = state.lab.readings[goal.a]
    instrument = tool(state, kind)
    return take_up(state, instrument) or reach(state, thing) or LabAct("test", instrument, thing)


def _run(state: LabState, device: int) -> LabAct | None:
    return None if state.running >> device & 1 else reach(state, device) or LabAct("activate", device)


def _noted(state: LabState, goal: LabGoal) -> LabAct | None:
    thing, lab = goal.a, state.lab
    if lab.kinds[thing] == "plane":
        return put(state, tool(state, "block"), thing)
    if lab.props[thing].part:
        return _circuit(state, thing, tool(state, "lamp"), _source(state))
    step = take_up(state, tool(state, "thermometer"))
    if step or goal.b != LIQUID:
        return step or reach(state, thing) or LabAct("measure", thing)
    content = state.content[thing]
    if not content or content & (content - 1):
        raise Stuck
    melts = lab.points(content)[0]
    if state.temperature[thing] < melts:
        return _treated(state, goal)
    if state.temperature[thing] == melts:
        return reach(state, thing) or LabAct("measure", thing)
    return take_up(state, thing)  # too hot: let it cool until it melts again


def _made(state: LabState, goal: LabGoal) -> LabAct | None:
    """Pour what a product is made of into one vessel; with ``made``, mix it."""
    lab, parts = state.lab, PARTS[goal.a]
    vessels = [n for n in lab.vessels if not lab.props[n].insulated and not state.content[n] & ~parts]
    full = [n for n in vessels if state.content[n] == parts]
    if full:
        vessel = near(state, full)
        return reach(state, vessel) or LabAct("mix", vessel)
    if not vessels:
        spoilt = [n for n in lab.vessels if _can_empty(state, n)]
        vessel = near(state, spoilt)
        return reach(state, vessel) or LabAct("empty", vessel)
    most = max(state.content[n].bit_count() for n in vessels)
    vessel = near(state, [n for n in vessels if state.content[n].bit_count() == most])
    wanted = parts & ~state.content[vessel]
    for bit in (1 << place for place in range(parts.bit_length()) if wanted >> place & 1):
        bottles = [n for n, kind in enumerate(lab.props) if kind.source and lab.content[n] == bit]
        bottle = near(state, bottles)
        step = take_up(state, bottle) or take_up(state, vessel)
        return step or LabAct("pour", bottle, vessel)
    raise Stuck


def _can_empty(state: LabState, vessel: int) -> bool:
    return bool(state.content[vessel]) and (state.lab.irreversible or not state.lab.content[vessel])


def _source(state: LabState) -> int:
    kinds = ("battery", "solar")
    return near(state, [n for n, kind in enumerate(state.lab.props) if kind.part in kinds])


def _wired(state: LabState, goal: LabGoal) -> LabAct | None:
    """The first connection of the circuit that a later sub-goal asks for."""
    later = next(other for other in state.lab.goals[state.done :] if other.kind in ("shining", "noted"))
    return _ACHIEVE[later.kind](state, later)


def _shining(state: LabState, goal: LabGoal) -> LabAct | None:
    return _circuit(state, NOTHING, goal.a, goal.b if goal.b != NOTHING else _source(state))


def _circuit(state: LabState, tested: int, lamp: int, source: int) -> LabAct | None:
    """Bring all parts to one room and connect them in a ring: source, wire, thing, wire, lamp, wire."""
    lab = state.lab
    main = [source, *([tested] if tested != NOTHING else []), lamp]
    wires = [n for n in lab.numbers.get("wire", ()) if state.room_of(n) != NOTHING][: len(main)]
    if len(wires) < len(main):
        raise Stuck
    for part in (*wires, *main):
        if not lab.props[part].fixed and state.at[part] != HELD:
            return take_up(state, part)
    where = lab.outdoors if lab.props[source].part == "solar" else state.room
    step = go(state, where)
    if step:
        return step
    ring = [part for pair in zip(main, wires, strict=True) for part in pair]
    pairs = {tuple(sorted((a, b))) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)}
    stray = next((pair for pair in state.wires if pair not in pairs and set(pair) & set(ring)), None)
    if stray:
        return LabAct("disconnect", stray[0])
    missing = [(a, b) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)]
    missing = [pair for pair in missing if tuple(sorted(pair)) not in state.wires]
    if missing:
        return LabAct("connect", *missing[0])
    if tested != NOTHING:  # the ring was closed where it could not shine: open it and close it again
        return LabAct("disconnect", ring[1])
    raise Stuck


def _planted(state: LabState, goal: LabGoal) -> LabAct | None:
    lab, seed = state.lab, goal.a
    pot = state.pot_of(seed)
    if pot == NOTHING:
        free = [n for n in lab.numbers.get("pot", ()) if not state.inside(n)]
        pot = near(state, [n for n in free if state.content[n] & SOIL] or free)
        step = put(state, seed, pot)
        if step:
            return step
    return _into_pot(state, pot, SOIL)


def _into_pot(state: LabState, pot: int, bit: int) -> LabAct | None:
    if state.content[pot] & bit:
        return None
    sources = [n for n, kind in enumerate(state.lab.props) if kind.source and state.lab.content[n] == bit]
    bottle = near(state, sources)
    return take_up(state, bottle) or reach(state, pot) or LabAct("pour", bottle, pot)


def _watered(state: LabState, goal: LabGoal) -> LabAct | None:
    return _planted(state, goal) or _into_pot(state, state.pot_of(goal.a), WATER)


def _stage(state: LabState, goal: LabGoal) -> LabAct | None:
    step = _watered(state, goal)
    if step or goal.b < FRUIT:
        return step
    hives = state.lab.hives
    room = state.room_of(goal.a)
    near = [hive for hive in hives if state.room_of(hive) == room]
    if not near:
        raise Stuck
    return (
        None
        if any(state.is_open(hive) for hive in near)
        else reach(state, near[0]) or LabAct("open", near[0])
    )


def _crossed(state: LabState, goal: LabGoal) -> LabAct | None:
    lab = state.lab
    if state.at[goal.a] != NOWHERE:
        return None
    parents = [n for n in lab.traits if n != goal.a]
    for parent in parents:
        if state.pot_of(parent) == NOTHING:
            raise Stuck
    step = take_up(state, tool(state, "brush"))
    for parent in parents:
        step = step or reach(state, parent)
    return step or LabAct("cross", *parents)


def _delivered(state: LabState, goal: LabGoal) -> LabAct | None:
    return put(state, state.focus, goal.a)


_ACHIEVE: Mapping[str, Callable[[LabState, LabGoal], LabAct | None]] = {
    "focus": _focus, "find": _focus, "show": _focus, "placed": _treated, "running": _treated, "phase": _phased,
    "warmed": _warmed, "dried": _dried, "used": _used,
    "noted": _noted, "poured": _made, "made": _made, "wired": _wired, "shining": _shining, "planted": _planted,
    "watered": _watered, "stage": _stage, "crossed": _crossed, "delivered": _delivered,
}  # fmt: skip


def demonstrate(state: LabState, rng: Random) -> LabAct:
    """An imperfect scripted policy: it does something else one time in three, and at times that is a focus."""
    act = gold(state)
    if act == STUCK or rng.random() < _ERROR:
        hasty = rng.random() < _HASTE
        others = [other for other in possible(state) if (other.verb == "focus") == hasty]
        return rng.choice(others or [WAIT])
    return act
