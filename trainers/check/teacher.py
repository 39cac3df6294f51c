"""Requirements for teachers, on episodes that an untrained model played in a small shop."""

from __future__ import annotations

import functools
import json
from typing import Any

import torch

from turnwise.registry import Component
from turnwise.requirements import Requirements, require
from turnwise.trainers.check.options import EVERY_PART
from turnwise.trainers.core import Group, PartState, TeacherTop
from turnwise.trainers.guide.toy import played_with, toy_model, untrained_policy
from turnwise.trainers.learn.collate import TrainingBatch, collate
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.signal.core import SignalContext
from turnwise.trainers.teacher.core import GIVES, Teacher, TeacherSetup, taught

TOP = 3


async def as_played(player: object, groups: list[Group]) -> list[Group]:
    """No guide at all."""
    return groups


@functools.cache
def scene() -> tuple[TrainingBatch, list[Group], SignalContext]:
    """A batch of a small shop, and what a teacher sees of the run."""
    groups, _ = played_with(as_played, "shop/quick", groups=1, size=2)
    renderer = untrained_policy().renderer
    cpu = torch.device("cpu")
    reference = load_model(toy_model(), cpu, frozen=True)
    learner = Learner(load_model(toy_model(), cpu), OptimizerOptions(), reference=reference)
    see = SignalContext(frozenset(), learner, renderer.tokenizer, renderer, 2048, {})
    return collate(groups), groups, see


def made(entry: Component) -> Teacher:
    """The teacher; one that is a model is the untrained one itself."""
    known: dict[str, Any] = {"path": str(toy_model())}
    cpu = torch.device("cpu")
    setup = TeacherSetup(
        lambda path: load_model(path, cpu, frozen=True),
        lambda: load_model(toy_model(), cpu),
        untrained_policy().renderer.tokenizer,
    )
    return entry.build({name: x for name, x in known.items() if name in entry.options})(setup)


def finds_the_tokens(entry: Component) -> str:
    """A log-probability of at most 0 for each sampled token, 0 elsewhere, and no token that is likelier than its likeliest."""
    batch, groups, see = scene()
    found = taught(made(entry), see, batch, groups, TOP)
    assert found.turns.tokens is not None
    logp_RT, mask_RT = found.turns.tokens.signals[GIVES[0]], batch.rows.mask_RT
    require(set(entry.gives) == set(GIVES), f"It does not declare to give {' and '.join(GIVES)}.")
    require(bool(torch.isfinite(logp_RT).all()) and bool((logp_RT <= 0).all()), "A log-probability is none.")
    require(not logp_RT[~mask_RT].any(), "It finds tokens that nobody sampled.")
    top: TeacherTop | None = found.top
    require(top is not None, "It does not say what it would have said.")
    assert top is not None
    best_RT = top.teacher_logp_RTJ[..., 0]
    require(bool((logp_RT <= best_RT + 1e-4)[mask_RT].all()), "A token is likelier than its likeliest one.")
    mean = float(logp_RT[mask_RT].mean())
    return f"{int(mask_RT.sum())} tokens, {mean:.2f} nats on average"


def goes_on_where_it_was(entry: Component) -> None:
    """Its state, put into another one of it, gives the same log-probabilities."""
    batch, groups, see = scene()
    one, other = made(entry), made(entry)
    one.learned(see.learner.model)
    state = one.state()
    other.restore(PartState(json.loads(json.dumps({**state.numbers})), state.tensors))
    a, b = (taught(teacher, see, batch, groups, 0).turns.tokens for teacher in (one, other))
    assert a is not None
    assert b is not None
    require(torch.equal(a.signals[GIVES[0]], b.signals[GIVES[0]]), "It teaches otherwise after a restart.")


REQUIREMENTS: dict[str, Requirements] = {
    "teacher": {
        **EVERY_PART,
        "finds the tokens": finds_the_tokens,
        "goes on where it was": goes_on_where_it_was,
    }
}
