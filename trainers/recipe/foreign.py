"""Misfits of guides and sources: losses, weights and corrections that reach none of their tokens, logs that they may not learn
from, and a recipe whose own choices nothing of them meets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from turnwise.envs.registry import get_suite
from turnwise.registry import OURS, components
from turnwise.tasks.core import Split
from turnwise.trainers.recipe.levels import (
    LEVELS,
    corrects_itself,
    ignores_advantages,
    level_of_correction,
    level_of_loss,
)
from turnwise.trainers.recipe.part import GuidePart, LossPart, Part, SourcePart, departing
from turnwise.trainers.recipe.problems import RecipeProblem, found_by
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.source.core import Joining, LogReading
from turnwise.trainers.source.held_out import held_out_remedy, split_of_evaluation

IMITATED = (LossPart(name="nll"),)
"""Losses by which what a source shows is learned if nothing is said."""


def misfits_of_the_foreign(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Yield a problem for each choice of guides and sources that would not hold."""
    for stream in streams(recipe):
        yield from _finer_than_the_loss(stream)
        yield from _corrected_twice(stream)
    for part in recipe.guide:
        yield from _learned_though_read(part)
    for part in recipe.source:
        yield from _unknown_ratios(part)
        yield from _held_out(recipe, part)
    yield from _sharing_turns(recipe)
    yield from _alike_guides(recipe)
    yield from _weighed_in_the_whole(recipe)
    yield from _played_by_nobody(recipe)


def joins(part: SourcePart) -> bool:
    """Say whether a source's options have it that its episodes join what is played.

    >>> joins(SourcePart(name="stored")), joins(SourcePart.model_validate({"name": "stored", "join": True}))
    (False, True)
    """
    return bool({**part.component("source").options, **part.options}.get("join", False))


def may_join(part: SourcePart) -> bool:
    """Say whether a source's episodes may join; somebody else's source that has no such option cannot be asked."""
    entry = part.component("source")
    return joins(part) or ("join" not in entry.options and entry.package != OURS)


class ForeignTokens(NamedTuple):
    """Tokens that are learned alike.

    Attributes:
        who: chose them, as in ``guide 'hint'``; empty of the policy's own.
        correction: that weighs their advantages.
        losses: that they are learned by.
        own: whether the correction is their own, and not the recipe's.
    """

    who: str
    correction: Part
    losses: Sequence[LossPart]
    own: bool


def streams(recipe: Recipe) -> Iterator[ForeignTokens]:
    """The policy's own tokens, then those of each guide and source that says how they are learned."""
    yield ForeignTokens("", recipe.correction, recipe.loss, own=True)
    for part in recipe.guide:
        if part.loss or part.correction:
            losses = part.loss or recipe.loss
            yield ForeignTokens(
                f"guide {part.name!r}",
                part.correction or recipe.correction,
                losses,
                own=bool(part.correction),
            )
    for part in recipe.source:
        if part.correction:
            losses = part.loss or (recipe.loss if joins(part) else IMITATED)
            yield ForeignTokens(f"source {part.name!r}", part.correction, losses, own=True)


def corrected_in_vain(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Corrections of guides and sources, which weigh advantages, where none of the losses looks at them."""
    for who, correction, losses, own in streams(recipe):
        if not who or not own or level_of_correction(correction.build("correction")) is None:
            continue
        if all(ignores_advantages(part.make, whole=part.whole) for part in losses):
            names = " and ".join(repr(part.name) for part in losses)
            yield RecipeProblem(
                f"correction {correction.name!r} of {who} weighs advantages, and loss {names} does not look at them.",
                f"Remove the correction of {who}.",
            )


def _finer_than_the_loss(stream: ForeignTokens) -> Iterator[RecipeProblem]:
    """A correction that weighs tokens apart which a loss weighs as one."""
    who, correction, losses, _ = stream
    level = level_of_correction(correction.build("correction"))
    for part in losses if level else ():
        unit = level_of_loss(part.make, whole=part.whole)
        if level is None or unit is None or LEVELS.index(level) >= LEVELS.index(unit):
            continue
        of, place = (f" of {who}", f" beside the name of {who}") if who else ("", "")
        yield RecipeProblem(
            f"loss {part.name!r} has one ratio for a whole {unit}, and correction {correction.name!r}{of} weighs each {level} "
            "of it by another: tokens that the loss counts alike would be corrected a second time, one by one.",
            f"Set correction: {{name: {correction.name}, level: {unit}}}{place}, or correction: none.",
        )


def _corrected_twice(stream: ForeignTokens) -> Iterator[RecipeProblem]:
    """A correction beside a loss that holds the ratio to who sampled in it."""
    who, correction, losses, _ = stream
    if level_of_correction(correction.build("correction")) is None:
        return
    for part in losses:
        if corrects_itself(part.make, whole=part.whole):
            of, place = (f" of {who}", f" beside the name of {who}") if who else ("", "")
            yield RecipeProblem(
                f"loss {part.name!r} holds the ratio to who sampled in it, and correction {correction.name!r}{of} would weigh it a "
                "second time.",
                f"Set correction: none{place}.",
            )


def _learned_though_read(part: GuidePart) -> Iterator[RecipeProblem]:
    """Losses or a correction for tokens that carry no loss."""
    given = [key for key in ("loss", "correction") if getattr(part, key) is not None]
    if part.component("guide").only_read and given:
        yield RecipeProblem(
            f"guide {part.name!r} has a {' and a '.join(given)} of its own, and the tokens that it chose are read and not learned.",
            f"Remove {' and '.join(given)} from the guide; the policy's own tokens have those of the recipe.",
        )


def _sharing_turns(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Strategies and guides whose episodes share sampled turns, beside a rule that takes episodes to be drawn apart."""
    tolerant = [(recipe.credit, "credit"), *((part, "shape") for part in recipe.shape)]
    if any(part.component(seam).shared_turns for part, seam in tolerant):
        return
    fitting = ", ".join(c.name for c in components("credit") if c.shared_turns)
    sharing = [(recipe.rollout.strategy, "rollout.strategy"), *((part, "guide") for part in recipe.guide)]
    for part, key in sharing:
        if part.component(key.rpartition(".")[2]).shared_turns:
            instead = "leave the guide out" if key == "guide" else "set rollout.strategy: chain"
            yield RecipeProblem(
                f"credit {recipe.credit.name!r} takes episodes to be drawn apart, and those of {key} {part.name!r} share "
                "turns, whose advantages would be wrong.",
                f"{instead[0].upper()}{instead[1:]}, or set credit to one that allows for it: {fitting}.",
            )


def _alike_guides(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Guides of one name: their turns carry one mark, so that they are learned alike; each does something else."""
    for name in sorted({part.name for part in recipe.guide}):
        alike = [part for part in recipe.guide if part.name == name]
        if any(one == other for one, other in itertools.combinations(alike, 2)):
            yield RecipeProblem(
                f"guide {name!r} is named twice with the same options.",
                "Name it once, or with other options.",
            )
        elif any((part.loss, part.correction) != (alike[0].loss, alike[0].correction) for part in alike):
            yield RecipeProblem(
                f"guide {name!r} is named {len(alike)} times with other losses or corrections, and its tokens carry one mark: "
                f"guide/{name}.",
                "Give each of them the same loss and correction.",
            )


def _unknown_ratios(part: SourcePart) -> Iterator[RecipeProblem]:
    """A correction that asks how likely tokens were, where nobody can say: a script chose them, or a log is here and lacks it."""
    correction = part.correction
    if correction is None or level_of_correction(correction.build("correction")) is None:
        return
    if part.component("source").scripted:
        yield RecipeProblem(
            f"source {part.name!r} gives what a script says, whose log-probabilities nobody knows, and its correction "
            f"{correction.name!r} asks for them.",
            "Remove the source's correction.",
        )
    source, unknown = part.make(), list[bool]()
    if isinstance(source, Joining):
        yield from found_by(lambda: unknown.append(source.joins_unknown()))
    if any(unknown):
        yield RecipeProblem(
            f"source {part.name!r} joins tokens whose log-probabilities nobody kept (of a script, a person or a server), and its "
            f"correction {correction.name!r} asks for them.",
            "Remove the source's correction, or join the episodes of a run.",
        )


def _held_out(recipe: Recipe, part: SourcePart) -> Iterator[RecipeProblem]:
    """A log that an evaluation on dev or test tasks wrote; of any other log its tasks tell, when it is read."""
    source = part.make()
    played = split_of_evaluation(source.log_path()) if isinstance(source, LogReading) else None
    if played is None or played.split is Split.TRAIN or played.suite not in recipe.suites:
        return
    if not get_suite(played.suite).listed:
        yield RecipeProblem(
            f"source {part.name!r} would learn from episodes of {played.suite}'s {played.split.value} split, on which this run is "
            "evaluated.",
            held_out_remedy(played.suite),
        )


def _weighed_in_the_whole(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Losses and weights of single tokens, where a loss takes the whole minibatch, whoever chose its tokens."""
    whole = next((part for part in recipe.loss if part.whole), None)
    for part in (one for one in recipe.source if joins(one)):
        for loss in [loss for loss in part.loss or () if loss.whole][:1]:
            yield RecipeProblem(
                f"source {part.name!r} joins what was played, and its loss {loss.name!r} is of whole minibatches.",
                "Give the source losses of tokens, or put that one into the recipe's own `loss`.",
            )
        weighed = part.weight != 1 or f"source.{part.name}.weight" in recipe.schedule
        given = [key for key, is_given in (("weight", weighed), ("loss", part.loss)) if is_given]
        if whole is not None and given:
            yield _in_the_whole(f"source {part.name!r}", given, whole, "what the source joins")
    for part in recipe.guide:
        if whole is not None and part.loss:
            yield _in_the_whole(f"guide {part.name!r}", ["loss"], whole, "what the guide had a hand in")


def _in_the_whole(who: str, given: Sequence[str], whole: LossPart, what: str) -> RecipeProblem:
    return RecipeProblem(
        f"{who} has a {' and a '.join(given)} of its own, and the recipe's loss {whole.name!r} is of whole minibatches, {what} among them: it would "
        "count as all else does.",
        f"Remove {' and '.join(given)} from {who}, or choose a loss of tokens for the recipe.",
    )


def _played_by_nobody(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Choices for what is played or joined, where there is no such thing: what a source shows is learned by its own loss."""
    if (
        recipe.rollout.groups
        or recipe.proposer
        or not recipe.source
        or not recipe.updates
        or any(map(may_join, recipe.source))
    ):
        return
    given = [f"algorithm {recipe.algorithm!r}"] if recipe.algorithm else []
    shown = [loss.name for part in recipe.source for loss in part.loss or IMITATED]
    silent = next((part for part in recipe.source if not part.loss), None)
    for loss in recipe.loss:
        departs = recipe.loss != type(recipe).model_fields["loss"].default and loss.name not in shown
        if loss.whole or (silent is not None and departs):
            given.append(f"loss {loss.name!r}")
    if silent is not None:
        given += _departing_rules(recipe)
    if given:
        first = recipe.source[0]
        joining = any("join" in part.component("source").options for part in recipe.source)
        imitate = f"say that it is imitated, source: [{{name: {first.name}, …, loss: [nll]}}], and leave out what cannot hold."
        join = "let the source join what is played (`join: true`) to learn by them, or " if joining else ""
        remedy = f"{join}{imitate}"
        yield RecipeProblem(
            f"rollout.groups 0 plays nothing and no source joins, so that {', '.join(given)} can do nothing: what source "
            f"{first.name!r} shows is imitated.",
            f"{remedy[0].upper()}{remedy[1:]}",
        )


def _departing_rules(recipe: Recipe) -> Iterator[str]:
    """Credit, filter and shapes that are not what a recipe has if nothing is said."""
    for key in ("credit", "filter"):
        part, usual = getattr(recipe, key), type(recipe).model_fields[key].default
        learned = key == "filter" and part.name == "any" and any(one.entry.learns for one in recipe.sources)
        if not learned and (part.name != usual.name or departing(part, key)):
            yield f"{key} {part.name!r}"
    yield from (f"shape {part.name!r}" for part in recipe.shape)
