"""Updates without any learning signal: why they happen, and when a run stops because of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.envs.core import EndReason
from turnwise.errors import RunError
from turnwise.trainers.core import Group
from turnwise.trainers.run.collect import CollectedGroups
from turnwise.trainers.run.update import UpdateResult

SAME = 1e-12
"""Returns that differ by less are the same."""


class Vacuous(NamedTuple):
    """Why nothing was learned from an update, in a few words, and what would help."""

    why: str
    remedy: str
    mastered: bool = False  # every episode was solved, which is no reason to stop


def vacuous(
    played: CollectedGroups, result: UpdateResult, *, filter_name: str, credit_name: str
) -> Vacuous | None:
    """Why an update teaches nothing; None where it teaches something.

    Args:
        played: the update's episodes.
        result: what was made of them.
        filter_name: the filter, by name.
        credit_name: the credit rule, by name.
    """
    groups, advantages, kept = [*result.groups], [*result.advantages], result.kept
    if result.joined is not None:
        groups += result.joined.groups
        advantages += result.joined.advantages
        kept += result.joined.kept
    if any(any(row) for row in advantages) and any(map(_sampled, groups)):
        return None
    episodes = [episode for group in groups for episode in group]
    context = "Raise model.scratch.context or engine.context_length, or shorten the prompt and the tools."
    if not episodes:
        return Vacuous(
            f"{played.failed} episodes failed, so that none of the {len(played.played)} groups could be used",
            "Fix what fails; the log (episodes.jsonl.zst) holds the message of each.",
        )
    if not any(map(_sampled, groups)):
        cut = sum(episode.end is EndReason.TOKEN_LIMIT for episode in episodes)
        if cut == len(episodes):
            return Vacuous(
                f"all {cut} episodes ended at the token limit before their first turn: the prompt leaves no room",
                context,
            )
        return Vacuous(f"the model sampled no token in {len(episodes)} episodes", context)
    if all(episode.success for episode in episodes):
        easier = "A harder suite would teach more."
        return Vacuous(f"all {len(episodes)} episodes were solved", easier, mastered=True)
    if all(len(group) == 1 for group in groups) and not any(kept):
        return Vacuous(
            f"each of the {len(groups)} groups is one episode, and filter {filter_name} with credit {credit_name} compares the "
            "episodes of a group",
            "Take filter any and a credit rule that needs no group, or learn from groups.",
        )
    if all(_same([episode.trajectory.total_reward for episode in group]) for group in groups):
        return Vacuous(
            f"in each of the {len(groups)} groups all episodes earned the same",
            "Raise rollout.group_size or sampling.temperature, train on an easier suite, begin with a "
            "warm_start, or reward parts of the task (rollout.env_options).",
        )
    if not any(kept):
        return Vacuous(
            f"filter {filter_name} kept none of {len(groups)} groups, to whose turns credit {credit_name} gave nothing "
            "that it lets through",
            "Choose another credit rule or filter.",
        )
    return Vacuous(f"credit {credit_name} gave every turn an advantage of 0", "Choose another credit rule.")


def refuse_more(found: Vacuous, in_a_row: int, most: int) -> None:
    """Stop a run that has learned nothing in ``most`` updates in a row; 0 accepts any number.

    Raises:
        RunError: with the reason of the last such update.
    """
    if most and in_a_row >= most:
        raise RunError(
            f"Nothing was learned in {in_a_row} updates in a row: {found.why}.",
            f"{found.remedy} Then start another run (rollout.max_vacuous: 0 would let this one go on).",
        )


def refuse_unplayed(found: Evaluation, context: int) -> None:
    """Refuse an evaluation none of whose episodes reached a first turn.

    Raises:
        RunError: every prompt is longer than the context.
    """
    counting = found.episodes - found.excluded
    if found.turns == 0 and found.ends.get(EndReason.TOKEN_LIMIT.value) == counting:
        raise RunError(
            f"None of {counting} episodes of {found.suite} ({found.split}) came to a first turn: "
            f"prompt, tools and first observation leave no room in a context of {context} tokens.",
            "Raise model.scratch.context or engine.context_length, or show no tools (sampling.tools: none).",
        )


def _sampled(group: Group) -> bool:
    return any(turn.reply.action_ids for episode in group for turn in episode.trajectory.turns)


def _same(returns: Sequence[float]) -> bool:
    return max(returns) - min(returns) <= SAME
