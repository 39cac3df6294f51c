"""Which fault a trial is about: a function of the campaign's seed and the trial's number."""

from __future__ import annotations

import errno
import signal
from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from faulting.server import LIES

KINDS = ("kill", "hang", "slow", "lie", "flood", "lost fsync", "full disk", "clock", "engine")
SCOPES = ("eval", "train")
EPISODES, EVAL_STEPS, EVAL_EVENTS = 40, 120, 16
TRAIN_STEPS, TRAIN_EVENTS, TRAIN_SECONDS, TRAIN_ANSWERS = 150, 200, 3.0, 60
DEADLINE = 2.0
_BREAKS = (
    "reward nan", "reward inf", "reward -inf", "reward 1e39", "reward text", "reward None", "reward list", "reward True",
    "reward undeclared", "rewards a number", "rewards None", "observation bytes", "observation None",
    "observation number", "end True", "end text", "state list", "state dict", "details nan", "details object",
    "five-tuple", "None", "KeyError", "AssertionError", "MemoryError", "SystemExit", "GeneratorExit", "TimeoutError",
    "StopIteration", "RecursionError", "InfraError", "VerifierError",
)  # fmt: skip
_RAISES = (
    "KeyError",
    "MemoryError",
    "SystemExit",
    "RecursionError",
    "InfraError",
    "TimeoutError",
    "None",
    "five-tuple",
)
ENGINE_LIES = (
    "nan", "inf", "-inf", "+50", "token 1000000", "token 10**12", "token -3", "a stop token inside", "half the log-probabilities",
    "OverflowError", "MemoryError",
)  # fmt: skip
_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS)


class Trial(NamedTuple):
    """A fault, and what must come of it.

    Attributes:
        expect: ``same``, the uninterrupted run bit for bit; ``masked``, the episodes that it hits do not count and all
            others are the same; ``mistake``, they count, as the agent's failures; ``counted``, they count with the
            same result, though something else was seen or said in them; ``costs``, they are the same or masked.
        plan: what the process does to itself, beside the hazard.
        hazard: what the environment does.
        server: what the policy server does; None where a script plays.
        runs: the most processes that it takes, resumes included.
    """

    number: int
    seed: int
    scope: str
    kind: str
    fault: str
    expect: str = "same"
    world: str = "pure"
    workers: int = 0
    kills: tuple[dict[str, Any], ...] = ()
    plan: Mapping[str, Any] = MappingProxyType({})
    hazard: dict[str, Any] | None = None
    server: dict[str, Any] | None = None
    power: str = ""  # "sizes" or "names": what a power failure takes back
    tmpfs: int = 0  # KiB of the run's own file system
    task_seed: int = 0

    @property
    def name(self) -> str:
        return f"{self.scope}/{self.kind}/{self.fault}"


def draw(number: int, seed: int, kinds: tuple[str, ...], scopes: tuple[str, ...] = SCOPES) -> Trial:
    """The trial of this number. Five of six are evaluations, where both are asked for."""
    rng = Random(f"faults/{seed}/{number}")
    scope = scopes[0] if len(scopes) == 1 else ("train" if number % 6 == 5 else "eval")
    kind = kinds[(number // 6 if scope == "train" and len(scopes) > 1 else number) % len(kinds)]
    scope = "train" if kind == "engine" else scope  # scripts and servers need none
    world = rng.choice(("pure", "blocking"))
    base = Trial(
        number, seed, scope, kind, "", world=world, task_seed=rng.randrange(3) if scope == "eval" else 3
    )
    drawn = _DRAWS[kind](base, rng)
    if scope == "train" and drawn.hazard is not None:  # it has a few tasks only
        drawn = drawn._replace(hazard={**drawn.hazard, "share": 0.15 if kind == "hang" else 0.3})
    return drawn


def _moment(base: Trial, rng: Random) -> tuple[str, dict[str, float]]:
    train = base.scope == "train"
    match rng.choice(("step", "disk", "disk", "seconds") if train else ("step", "disk", "seconds")):
        case "step":
            return "in a step", {"step": rng.randint(1, TRAIN_STEPS if train else EVAL_STEPS)}
        case "disk":
            return "at a write", {"disk": rng.randint(1, TRAIN_EVENTS if train else EVAL_EVENTS)}
        case _:
            return "any time", {"seconds": rng.uniform(0.05, TRAIN_SECONDS if train else 1.2)}


def _kill(base: Trial, rng: Random) -> Trial:
    if rng.random() < 0.2:
        return base._replace(
            fault="SIGKILL of a worker process", workers=2, hazard=_hazard("sigkill", rng, once=True)
        )
    if base.scope == "eval" and rng.random() < 0.12:
        return base._replace(fault="os._exit in a step", hazard=_hazard("os_exit", rng, once=True))
    number = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
    kills, where = [], ""
    for _ in range(rng.choice((1, 1, 2, 3))):
        where, at = _moment(base, rng)
        kills.append({"signal": int(number), "at": at})
    times = f" × {len(kills)}" if len(kills) > 1 else f" {where}"
    return base._replace(fault=f"{number.name}{times}", kills=tuple(kills), plan={"pause": 0.02})


def _hazard(
    name: str, rng: Random, *, once: bool, share: float = 0.15, place: str = "step", **more: Any
) -> dict[str, Any]:
    return {"name": name, "once": once, "share": share, "place": place, "salt": rng.getrandbits(32), **more}


def _hang(base: Trial, rng: Random) -> Trial:
    train = base.scope == "train"
    if not train and rng.random() < 0.15:
        name = rng.choice(("hang", "drip"))
        return base._replace(
            fault=f"policy server: {name}", expect="masked", server=_lie(name, rng, once=False)
        )
    name = rng.choice(("spin", "spin", "sleep", "hold_the_lock"))
    place = rng.choice(("step", "step", "reset"))
    once = rng.random() < 0.6 or train
    workers = rng.choice((0, 0, 2))
    ends = not workers and (name == "hold_the_lock" or (name == "sleep" and base.world == "pure"))
    once = once or ends  # the process ends each time: only a hang that passes lets a resume come through
    said = {"spin": "Python", "sleep": "C code", "hold_the_lock": "C code with the lock"}[name]
    fault = f"{said} in {place}{', in a worker' if workers else ''}{', once' if once else ''}"
    hazard = _hazard(name, rng, once=once, share=0.06 if ends else 0.1, place=place)
    return base._replace(
        fault=fault,
        expect="same" if once else "masked",
        hazard=hazard,
        workers=workers,
        plan={"limits": {"reset_s": 10.0 if workers else DEADLINE}},  # it holds for the start of a worker too
    )


def _slow(base: Trial, rng: Random) -> Trial:
    choice = rng.choice(
        ("step", "reset", "disk", "all steps", *(() if base.scope == "train" else ("server",)))
    )
    match choice:
        case "server":
            return base._replace(fault="policy server", server=_lie("slow", rng, once=False, share=0.5))
        case "disk":
            return base._replace(
                fault="fsync",
                plan={"disk": {"slow": rng.uniform(0.05, 0.3) / (1 + 4 * (base.scope == "train"))}},
            )
        case "all steps":
            return base._replace(fault=choice, world="blocking", plan={"pause": rng.uniform(0.02, 0.1)})
        case _:
            hazard = _hazard("slow", rng, once=False, place=choice, seconds=rng.uniform(0.3, 0.7) * DEADLINE)
            return base._replace(
                fault=f"{choice} near its deadline", hazard=hazard, plan={"limits": {"reset_s": DEADLINE}}
            )


def _lie(name: str, rng: Random, *, once: bool, share: float = 0.15) -> dict[str, Any]:
    return {"name": name, "once": once, "share": share, "salt": rng.getrandbits(32)}


def _lies(base: Trial, rng: Random) -> Trial:
    if base.scope == "eval" and rng.random() < 0.45:
        name = rng.choice([name for name in LIES if name not in ("slow", "hang", "drip", "80 MB", "endless")])
        once = LIES[name].whose == "server" and name not in ("401", "400") and rng.random() < 0.5
        expect = "same" if once else {"model": "mistake", "server": "masked"}[LIES[name].whose]
        fault = f"policy server: {name}{', once' if once else ''}"
        return base._replace(fault=fault, expect=expect, server=_lie(name, rng, once=once))
    if rng.random() < 0.08:
        return base._replace(
            fault="surrogate", expect="counted", hazard=_hazard("surrogate", rng, once=False)
        )
    if rng.random() < 0.1:
        return base._replace(fault="InfraError, once", hazard=_hazard("InfraError", rng, once=True))
    name, place = rng.choice(_BREAKS), "step"
    if name in _RAISES and rng.random() < 0.3:
        place = "reset"
    fault = name + (" in reset" if place == "reset" else "")
    workers = 2 if rng.random() < 0.15 else 0
    return base._replace(
        fault=fault + (", in a worker" if workers else ""),
        expect="masked",
        workers=workers,
        hazard=_hazard(name, rng, once=False, place=place),
    )


def _flood(base: Trial, rng: Random) -> Trial:
    if base.scope == "eval" and rng.random() < 0.3:
        name = rng.choice(("80 MB", "endless"))
        return base._replace(
            fault=f"policy server: {name}", expect="mistake", server=_lie(name, rng, once=False, share=0.1)
        )
    name = rng.choice(("print", "write stdout", "write stderr", "log", "huge observation", "huge details"))
    size = rng.choice((1 << 20, 8 << 20))
    expect = "counted" if name.startswith("huge") else "same"
    if (name, base.scope) == (
        "print",
        "eval",
    ):  # each line is made visible, which may take longer than a step may
        expect = "costs"
    workers = 2 if rng.random() < 0.25 else 0
    return base._replace(
        fault=name + (" in a worker" if workers else ""),
        expect=expect,
        workers=workers,
        hazard=_hazard(name, rng, once=False, share=0.1, size=size),
    )


def _fsync(base: Trial, rng: Random) -> Trial:
    power = rng.choice(("sizes", "names"))
    kills = []
    for _ in range(rng.choice((1, 1, 2))):
        _, at = _moment(base, rng)
        kills.append({"signal": int(signal.SIGKILL), "at": at})
    said = {"sizes": "content", "names": "content and names"}[power]
    return base._replace(
        fault=f"power failure × {len(kills)}, {said}", kills=tuple(kills), power=power, plan={"pause": 0.02}
    )


def _disk(base: Trial, rng: Random) -> Trial:
    train = base.scope == "train"
    match rng.choice(("errno", "errno", "limit", "tmpfs")):
        case "errno":
            number = rng.choice(_ERRNOS)
            first = rng.randint(1, TRAIN_EVENTS if train else EVAL_EVENTS)
            plan = {"disk": {"errno": number, "from": first, "events": rng.choice((1, 10_000))}}
            return base._replace(fault=f"{errno.errorcode[number]} at a write", plan=plan)
        case "limit":
            size = rng.randint(2_000, 300_000) if train else rng.choice((2_000, 4_200, 4_400))
            return base._replace(fault="RLIMIT_FSIZE", plan={"size_limit": size})
        case _:
            return base._replace(
                fault="a small file system",
                tmpfs=rng.randint(100, 3_000) if train else rng.choice((4, 8, 12, 16, 20)),
            )


def _clock(base: Trial, rng: Random) -> Trial:
    jumps = [rng.choice((-1, 1)) * rng.choice((1, 3600, 86_400 * 400)) for _ in range(5)]
    which = rng.choice(("steps", "steps and kill"))
    plan = {"clock": {"jumps": jumps, "every": rng.randint(1, 20)}}
    if which == "steps":
        return base._replace(fault="jumps", plan=plan)
    _, at = _moment(base, rng)
    kills = ({"signal": int(signal.SIGKILL), "at": at},)
    return base._replace(fault="jumps, and a SIGKILL", plan={**plan, "pause": 0.02}, kills=kills)


def _engine(base: Trial, rng: Random) -> Trial:
    """One answer of the engine is a lie: the episode is the engine's fault, and is played again."""
    lie = rng.choice(ENGINE_LIES)
    plan = {"engine": {"lie": lie, "at": rng.randint(1, TRAIN_ANSWERS)}}
    quiet = {
        "name": "",
        "place": "",
        "once": True,
        "share": 0.0,
        "salt": 0,
    }  # it is marked like a hazard of a world
    return base._replace(fault=f"an answer: {lie}", expect="counted", plan=plan, hazard=quiet)


_DRAWS = {
    "kill": _kill,
    "hang": _hang,
    "slow": _slow,
    "lie": _lies,
    "flood": _flood,
    "lost fsync": _fsync,
    "full disk": _disk,
    "clock": _clock,
    "engine": _engine,
}
