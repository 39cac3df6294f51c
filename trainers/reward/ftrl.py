"""FTRL: each turn's calls are paid by how many open parts of the task they solve, against how many they are."""

from collections.abc import Callable, Mapping
from typing import Literal

from turnwise.agents.core import Episode, Turn
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import Turns, paid_each, replace_turns, told_number

FORMS: Mapping[str, Callable[[float, int], float]] = {
    "f1": lambda s, n: 2 * s / (n + 1),
    "square": lambda s, n: s * s / n,
    "sum": lambda s, n: s,
    "mean": lambda s, n: s / n,
}


@component("reward", "ftrl", reads=("rewards",))
def ftrl(
    group: Group,
    *,
    form: Literal["f1", "square", "sum", "mean"] = "f1",
    empty: float = -0.5,
    broken: float = -0.3,
    silent: float = 0.5,
) -> Group:
    """Every turn is paid for itself: n calls of which s solve an open part of the task earn 2s/(n + 1); nothing else is paid.

    Other forms: s²/n (``square``), s (``sum``), s/n (``mean``). A turn without calls earns ``broken`` where a call could not be read, ``empty`` where
    it says nothing, 1/(1 + u) with u open parts where it gives the right answer, ``silent`` where no part is open and it does not, else
    0. FTRL (feedback-driven tool use; its released reward), whose worlds are written by a model. Here environments tell of each turn
    in ``info["details"]`` which parts it ``met`` and how many are ``open``, as turnwise/FunctionCall-v0 does. Ours: the right answer is the message
    that solves the task; a turn of which nothing is told solved nothing. Put a rule behind it that
    looks at turns, such as `turn_index`.

    Worked by hand with (n, s) = (1, 1), (2, 1), (2, 2), (3, 0), in two forms; then the right answer with two parts open.

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode, with_calls
    >>> told = [{"met": s, "open": 2} for s in (1, 1, 2, 0, 0)]
    >>> played = with_calls(episode([0, 0, 0, 0, 1], details=told, end=EndReason.SOLVED), [[("look", {})] * n for n in (1, 2, 2, 3, 0)])
    >>> [round(turn.reward, 4) for turn in ftrl([played])[0].trajectory.turns]
    [1.0, 0.6667, 1.3333, 0.0, 0.3333]
    >>> [round(turn.reward, 4) for turn in ftrl([played], form="square")[0].trajectory.turns[:4]]
    [1.0, 0.5, 2.0, 0.0]
    """

    def worth(episode: Episode, turn: Turn, *, last: bool) -> float:
        if turn.bad_action or turn.action.malformed:
            return broken
        if calls := len(turn.action.tool_calls):
            return FORMS[form](told_number(turn, "met"), calls)
        left = told_number(turn, "open")
        if last and episode.success:
            return 1 / (1 + left)
        if not turn.action.content.strip():
            return empty
        return silent if "open" in turn.details and not left else 0.0

    def pay(episode: Episode, turns: Turns) -> Turns:
        return paid_each(turns, [worth(episode, turn, last=turn is turns[-1]) for turn in turns])

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]
