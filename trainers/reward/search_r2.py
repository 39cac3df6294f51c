"""Search-R2: a right answer earns more where its searches were of use."""

import re

from turnwise.agents.core import Episode, Turn
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import paid_on_last, part_total, replace_turns, signal_of

_VERB = re.compile(r"[A-Za-z_]+")


@component("reward", "search_r2", paper="2602.03647", asks=("signal",), reads=("rewards",))
def search_r2(
    group: Group,
    *,
    signal: str = "principle",
    threshold: float = 0.5,
    acts: tuple[str, ...] = ("search",),
) -> Group:
    """Adds the outcome times the share of useful searches: R = outcome·(1 + (1/M)·Σ_i u_i), u_i of each of the M searches 1 or 0.

    Search-R2: u_i is 1 if the i-th search is useful and not redundant, as a judge says, here if its ``signal`` is ``threshold`` or more; ask the judge just
    that, `judge: {name: rlbff, of: turns, principles: [...]}`. Process counts where the answer is right alone, so that searching for its own sake earns nothing; without
    searches the bonus is 0. A search is a turn that calls a tool of the names ``acts``, or whose message begins with one; without names every turn
    is. In `refined:SUITE` the choice to accept or cut is learned by the same reward, as the paper trains all parts jointly; searches that were taken back count, too (ours).

    Worked by hand: right with u = 1, 0, 1; wrong with 1, 1; right without a search.

    >>> from turnwise.trainers.kit.reward_edits import with_signals
    >>> from turnwise.trainers.kit.toy_batches import episode, with_words
    >>> def of(outcome: float, *u: float) -> float:
    ...     played = with_signals(episode([0.0] * len(u) + [outcome]), [{"principle": x} for x in (*u, 0.0)])
    ...     (paid,) = search_r2([with_words(played, [*["search[it]"] * len(u), "answer[so]"])])
    ...     return round(paid.trajectory.total_reward, 4)
    >>> of(1, 1, 0, 0.5), of(0, 1, 1), of(1)
    (1.6667, 0.0, 1.0)

    Raises:
        RecipeError: a turn has no such signal.
    """

    def pay(episode: Episode) -> Episode:
        searches = [turn for turn in episode.trajectory.turns if not acts or _verbs(turn) & {*acts}]
        useful = sum(signal_of(turn, signal) >= threshold for turn in searches) / max(1, len(searches))
        return replace_turns(
            episode,
            lambda turns: paid_on_last(turns, "search_r2", useful * part_total(turns, "outcome")),
        )

    return [pay(one) for one in group]


def _verbs(turn: Turn) -> set[str]:
    """What a turn does: the tools that it calls, and the first word that it says."""
    said = _VERB.match(turn.action.content.lstrip())
    return {call.name for call in turn.action.tool_calls} | ({said[0]} if said else set())
