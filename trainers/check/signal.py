"""Requirements for signals, on a small batch that a small policy has played."""

from __future__ import annotations

import torch

from turnwise.kinds import READS
from turnwise.registry import Component
from turnwise.requirements import NotTested, Requirements, require
from turnwise.trainers.check.options import EVERY_PART
from turnwise.trainers.check.small_policy import played_batch, signal_context, signal_setup
from turnwise.trainers.lab.exact import paths
from turnwise.trainers.lab.processes import PROCESSES, lopsided
from turnwise.trainers.signal.choose import ChosenSignal
from turnwise.trainers.signal.measure import Signals


def says_what_it_reads(entry: Component) -> str:
    """``gives`` and ``reads`` are declared, and ``reads`` in the words of the registry."""
    require(entry.gives, "It does not say what it gives.")
    unknown = sorted({*entry.reads} - {*READS})
    require(entry.reads and not unknown, f"It reads {unknown or 'nothing'}; known: {', '.join(READS)}.")
    return ", ".join(entry.reads)


def measures_what_it_gives(entry: Component) -> str:
    """Finite figures, of turns or trajectories (B, K) or (B,), of tokens (R, T) under names that begin with token_."""
    found, _ = _measured(entry)
    B, K = found.turns.mask_BK.shape
    tokens = found.turns.tokens.signals if found.turns.tokens else {}
    for name in entry.gives:
        x = tokens.get(name) if name.startswith("token_") else found.turns.signals.get(name)
        shapes = [found.rows.mask_RT.shape] if name.startswith("token_") else [(B, K), (B,)]
        require(x is not None, f"It does not give {name!r}.")
        assert x is not None
        require(
            any(tuple(x.shape) == tuple(shape) for shape in shapes), f"{name} has the shape {tuple(x.shape)}."
        )
        require(bool(torch.isfinite(x).all()), f"{name} is not finite.")
    return f"{', '.join(entry.gives)} of {B} trajectories"


def goes_on_where_it_was(entry: Component) -> str:
    """Its state, put into another one of it, gives the same figures from there on."""
    _, one = _measured(entry)
    setup = signal_setup(entry)
    other = Signals([ChosenSignal(entry, {})], setup)
    if not one.stateful:
        return "it keeps nothing"
    for name, part in one.stateful.items():
        other.stateful[name].restore(part.state())
    for mine, theirs in zip(one.heads, other.heads, strict=True):
        assert mine.module is not None
        assert theirs.module is not None
        theirs.module.load_state_dict(mine.module.state_dict())
    batch, groups = played_batch()
    see = signal_context(entry)
    a, _ = one.measure(see, batch, groups)
    b, _ = other.measure(see, batch, groups)
    for name in entry.gives:
        x, y = (
            (
                found.turns.tokens.signals
                if name.startswith("token_") and found.turns.tokens
                else found.turns.signals
            )[name]
            for found in (a, b)
        )
        require(torch.equal(x, y), f"{name} differs after its state was put into another one.")
    return "the same figures"


def _measured(entry: Component):  # noqa: ANN202
    if "gold" in entry.reads:
        raise NotTested("It reads gold answers, which the small batch has none of.")
    signals = Signals([ChosenSignal(entry, {})], signal_setup(entry))
    batch, groups = played_batch()
    found, _ = signals.measure(signal_context(entry), batch, groups)
    return found, signals


def is_known_on_processes(entry: Component) -> str:
    """On small processes, where it says what it is there: finite figures of turns or trajectories under names that it gives."""
    known = [hook for hook in (entry.exact, entry.stand_in) if hook]
    if not known:
        raise NotTested("It has no value on a process, so that no bias is measured of what needs it.")
    for process in PROCESSES:
        p = paths(process, lopsided(process))
        for name, x in ((name, x) for hook in known for name, x in hook(p).items()):
            require(name in entry.gives, f"It says what {name!r} is on a process, which it does not give.")
            shapes = (tuple(p.mask_NK.shape), tuple(p.return_N.shape))
            require(tuple(x.shape) in shapes, f"On {process.name} {name} has the shape {tuple(x.shape)}.")
            require(bool(torch.isfinite(x).all()), f"On {process.name} {name} is not finite.")
            require(not x.requires_grad, f"On {process.name} {name} carries a gradient.")
    return "exact" if entry.exact else "made up"


REQUIREMENTS: dict[str, Requirements] = {
    "signal": {
        **EVERY_PART,
        "says what it reads": says_what_it_reads,
        "measures what it gives": measures_what_it_gives,
        "goes on where it was": goes_on_where_it_was,
        "is known on processes": is_known_on_processes,
    }
}
