"""DeepSport: a tool is paid for where its use helped, and nothing is paid to a malformed episode."""

import json

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import (
    Turns,
    is_formed,
    paid_instead,
    paid_on_last,
    part_total,
    replace_turns,
)


@component("reward", "tool_gate", reads=("rewards",))
def tool_gate(
    group: Group,
    *,
    bonus: float = 0.5,
    consolation: float = 0.03,
    malformed: float = 0.05,
    threshold: float = 0.5,
    answers: tuple[str, ...] = (),
) -> Group:
    """The outcome counts in well-formed episodes alone, and more where a tool was used; nothing else is paid.

    R = f·(a + T) − 0.05·(1 − f) with a the outcome and f the format, 0 or 1. T is ``bonus``·a where a tool was used and
    a ≥ ``threshold``, ``consolation`` where one was used and a is less, 0 without a tool. A call that repeats an earlier one with the
    same arguments is a failure of the format. DeepSport. Ours: the format is right where the environment could read every act and
    no limit cut the episode; tools named in ``answers`` give the answer and are no tool use.

    Worked by hand with (f, a, tool) = (1, 1, yes), (1, 1, no), (1, 0.3, yes), (1, 0.3, no), (0, 1, yes), the last for its repeated call:

    >>> from turnwise.trainers.kit.toy_batches import episode, with_calls
    >>> look = [("look", {"at": 3})]
    >>> group = [with_calls(episode([0, a]), calls) for a, calls in [(1, [look, []]), (1, [[], []]), (0.3, [look, []]), (0.3, [[], []]), (1, [look, look])]]
    >>> [round(one.trajectory.total_reward, 6) for one in tool_gate(group)]
    [1.5, 1.0, 0.33, 0.3, -0.05]

    Raises:
        RecipeError: a payment or the cost of a failed format is below 0.
    """
    not_below_zero("reward 'tool_gate'", bonus=bonus, consolation=consolation, malformed=malformed)

    def pay(episode: Episode, turns: Turns) -> Turns:
        outcome = part_total(turns, "outcome")
        calls = [call for turn in turns for call in turn.action.tool_calls if call.name not in answers]
        said = [json.dumps([call.name, dict(call.arguments)], sort_keys=True, default=str) for call in calls]
        if not is_formed(episode, turns) or len(set(said)) < len(said):
            return paid_on_last(paid_instead(turns, 0.0), "format", -malformed)
        used = bonus * outcome if outcome >= threshold else consolation
        return paid_on_last(paid_instead(turns, outcome), "tool_use", used if calls else 0.0)

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]
