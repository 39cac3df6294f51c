"""Statements about a configuration of another trainer: what it does to the expected step, and to whom it does it.

Each function looks at the choices alone and yields what follows from them. ``bias`` changes the expected step away from the
gradient of the expected reward; ``trap`` loses something silently; ``note`` is good to know and harms nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from turnwise.trainers.others.core import OtherObjective

Kind = Literal["bias", "trap", "note"]


class Statement(NamedTuple):
    """Something that is known of a configuration, with the keys from which it follows."""

    kind: Kind
    text: str
    keys: tuple[str, ...]


def statements(choices: OtherObjective) -> list[Statement]:
    """Return all that is known of the choices, traps first."""
    if not choices.learns:
        return []
    found = [statement for about in ABOUT for statement in about(choices)]
    return sorted(found, key=lambda statement: ("trap", "bias", "note").index(statement.kind))


def about_groups(choices: OtherObjective) -> Iterator[Statement]:
    keys = choices.advantage.keys
    if choices.alone and choices.group_size == 1:
        nothing = "such a group is left without an advantage: every one is 0, and no reward teaches anything"
        raw = "the trainer takes 0 as the mean of such a group: nothing is subtracted from the reward"
        yield Statement(
            "trap",
            f"The group has one episode; {raw if choices.alone == 'reward' else nothing}. Set a larger group.",
            keys,
        )
    if choices.scaled == "group":
        yield Statement(
            "bias",
            "Advantages are divided by their group's standard deviation, which depends on the group's own rewards: tasks that are nearly always "
            "or nearly never solved weigh more than those in between.",
            keys,
        )
    if choices.scaled == "batch":
        yield Statement(
            "bias",
            "Advantages are standardised over the batch that they come from; the direction changes little in large batches.",
            keys,
        )


def about_weights(choices: OtherObjective) -> Iterator[Statement]:
    keys = choices.weights.keys
    match choices.weighting:
        case "sequence":
            text = "Each trajectory's loss is divided by its own length: a long failure is punished less per token than a short one, a long success rewarded less."
        case "tokens":
            text = "The denominator is the number of sampled tokens, which the policy decides; long trajectories weigh more than short ones."
        case "local":
            text = "The denominator is the micro-batch's number of tokens, so that the result depends on the batch size of the device."
        case "fixed":
            return
    yield Statement("bias", text, keys)


def about_sampling(choices: OtherObjective) -> Iterator[Statement]:
    for cut in choices.truncated:
        where = f"{cut.key}: {cut.value:g}"
        if cut.same_in_training:
            text = (
                f"Tokens are drawn from a truncated distribution ({where}), and the trainer cuts its own alike. A sampled token that the trainer's weights "
                "would cut has probability 0 there and carries no gradient, and the tokens that may be explored are fewer."
            )
        else:
            text = (
                f"Tokens are drawn from a truncated distribution ({where}), and the trainer scores them by the whole one: the step is that of another "
                "policy than the one that played. A ratio to the engine, where one is taken, is too small by the mass that was cut off, if the engine "
                "gives its log-probabilities after the cut."
            )
        yield Statement("note" if cut.same_in_training else "bias", text, (cut.key,))


def about_masks(choices: OtherObjective) -> Iterator[Statement]:
    if choices.masks_cut and choices.centred:
        yield Statement(
            "bias",
            "Trajectories that hit the limit carry no loss, but their rewards stay in their group's mean (and deviation), which moves the advantages of "
            "the others; and no such trajectory is itself pushed down for having hit the limit.",
            (choices.masks_cut,),
        )
    if choices.zero_groups:
        key, refilled = choices.zero_groups
        if refilled:
            text = (
                "Groups without differences are replaced by further ones: the expected step is that of tasks which the policy solves sometimes, and the "
                "number of tasks that are played for it grows as they become rare."
            )
        else:
            text = (
                "Tokens without advantage are left out before the loss is averaged: the fewer groups differ, the larger each one's weight, so that the "
                "step does not shrink as the policy settles."
            )
        yield Statement("bias", text, (key,))


def about_age(choices: OtherObjective) -> Iterator[Statement]:
    if choices.stale is not None and choices.asynchronous:
        yield Statement(
            "bias",
            f"Play that began more than {choices.stale.value:g} steps ago is dropped. Long episodes grow older than short ones, so that what is learned from is tilted to the "
            "short; watch how many are dropped, by length.",
            (choices.stale.key,),
        )
    if choices.asynchronous and not choices.corrected:
        yield Statement(
            "bias",
            "Play goes on while the learner works, and nothing corrects the ratio between the policy that played and the one that is trained.",
            choices.loss.keys,
        )
    if choices.drops_whole is not None:
        yield Statement(
            "bias",
            f"Completions whose whole ratio of trainer to engine is above {choices.drops_whole.value:g} are dropped. The ratio is a product over tokens, and "
            "drifts from 1 with their number: long ones go first.",
            (choices.drops_whole.key,),
        )


def about_reference(choices: OtherObjective) -> Iterator[Statement]:
    kl = choices.kl
    if kl is None:
        return
    if kl.place == "reward":
        if kl.estimator == "k1":
            text = "The penalty for leaving the reference, log π − log π_ref, is part of the reward: before advantages are scaled, its gradient is that of the reverse KL."
        else:
            text = f"The penalty for leaving the reference is part of the reward, by {named(kl.estimator)}: no gradient goes through it there, so that its step is not quite that of the reverse KL."
        yield Statement("note", text, (kl.key,))
    elif kl.weighted:
        text = "The penalty is weighted by the importance ratio, which makes its gradient that of its expected value"
        what = (
            "the reverse KL"
            if kl.estimator in ("k1", "k3")
            else f"not the reverse KL, but the mean of {named(kl.estimator)}"
        )
        yield Statement("note", f"{text}: {what}.", (kl.key,))
    elif kl.estimator == "k1":
        yield Statement(
            "trap",
            "The penalty log π − log π_ref stands in the loss: its expected gradient on fresh samples is 0, so that it holds nothing back.",
            (kl.key,),
        )
    elif kl.estimator == "k3":
        yield Statement(
            "bias",
            "The estimator k3 stands in the loss: its value is the reverse KL's, but its expected gradient on fresh samples is that of KL(π_ref ‖ π).",
            (kl.key,),
        )


def named(estimator: str) -> str:
    """An estimator of a divergence in words."""
    return "an estimator of its own" if estimator == "other" else f"the estimator {estimator}"


def about_steps(choices: OtherObjective) -> Iterator[Statement]:
    if choices.steps is None:
        yield Statement(
            "note",
            "How many optimizer steps are taken on one batch of play does not follow from the file.",
            (),
        )
    elif choices.steps > 1 and choices.ratio_free:
        yield Statement(
            "bias",
            f"{choices.steps:g} optimizer steps are taken on one batch without a ratio: from the second on they are off policy.",
            choices.loss.keys,
        )
    elif choices.steps > 8:
        yield Statement(
            "note",
            f"{choices.steps:g} optimizer steps are taken on one batch; the later ones are held by the clip alone.",
            choices.loss.keys,
        )


def about_turns(choices: OtherObjective) -> Iterator[Statement]:
    if choices.turns and choices.one_number:
        yield Statement(
            "note",
            "Where an episode has several turns, all its tokens get one number: rewards of single turns are summed, and a turn is credited with "
            "what came before it too. That is unbiased where nothing else is wrong, and noisier the longer the episode; no setting gives credit by turn.",
            (choices.turns, *choices.advantage.keys[:1]),
        )
    if choices.turns and choices.thinks:
        yield Statement(
            "trap",
            f"By its name, {choices.thinks} is of a family that can think, and many of its templates take the thinking of earlier turns out of the prompt; "
            "the file does not say whether this one does. Where it does, an episode of several turns falls into one row per turn, or a history is learned that the policy never saw: look at the token "
            "ids of a second turn before you train.",
            (choices.turns,),
        )
    if choices.turns:
        yield Statement(
            "note",
            "No setting that is read here compacts the context: unless the environment does, an episode that outgrows the limit is cut, and has no later turns to learn from.",
            (choices.turns,),
        )


def about_length(choices: OtherObjective) -> Iterator[Statement]:
    if choices.length:
        yield Statement(
            "bias",
            "Length is paid or charged: the objective is no longer the reward of the tasks alone.",
            choices.length,
        )


def about_adapters(choices: OtherObjective) -> Iterator[Statement]:
    if choices.adapters:
        yield Statement(
            "trap",
            "Adapters are trained, and the engine samples: if they never arrive there, nothing fails and nothing is learned from the policy's own play. Compare "
            "the engine's log-probabilities with the trainer's after the tenth step (`turnwise mismatch`).",
            (choices.adapters,),
        )


ABOUT: tuple[Callable[[OtherObjective], Iterator[Statement]], ...] = (
    about_groups, about_weights, about_sampling, about_masks, about_age, about_reference, about_steps, about_turns, about_length, about_adapters,
)  # fmt: skip
