"""SSRL: the outcome, and the form of thoughts and searches that a policy writes all by itself."""

import re

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import Turns, paid_instead, paid_on_last, replace_turns

TAG = re.compile(r"<(/?)(think|search|information|answer)>")
MOST = 8
"""More thoughts than this are no form."""


@component("reward", "ssrl", paper="2508.10874", reads=("rewards",))
def ssrl(group: Group, *, right: float = 0.9, form: float = 0.1) -> Group:
    """Pays 0.9 for a solved task and up to 0.1 for its form; nothing else is paid.

    R = 0.9·EM + 0.1·fmt (SSRL, Fan et al. 2025), fmt = min(n_think/2, 1)·ratio over all messages of the episode, with ratio 1 where n_think = n_search + 1, else the smaller
    of n_think and n_search + 1 over the larger. fmt is 0 where a tag of think, search, information or answer is unclosed or within
    another, or n_think > 8. There the policy writes the results of its searches too, whose tokens are not learned; here an environment answers,
    or an agent among ``rollout.opponents``, which may be `self`.

    Worked by hand: thoughts and searches (1, 0), (2, 1), (3, 2), (3, 1), (1, 1), (9, 8) have fmt ½, 1, 1, ⅔, ¼, 0.

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode, with_words
    >>> def said(thoughts, searches, end):
    ...     return with_words(episode([0.0], end=end), ["<think>a</think>" * thoughts + "<search>b</search>" * searches])
    >>> pairs = [(1, 0), (2, 1), (3, 2), (3, 1), (1, 1), (9, 8)]
    >>> for end in (EndReason.SOLVED, EndReason.FAILED):
    ...     [round(one.trajectory.total_reward, 4) for one in ssrl([said(*pair, end) for pair in pairs])]
    [0.95, 1.0, 1.0, 0.9667, 0.925, 0.9]
    [0.05, 0.1, 0.1, 0.0667, 0.025, 0.0]

    Raises:
        RecipeError: a weight is below 0.
    """
    not_below_zero("reward 'ssrl'", right=right, form=form)

    def pay(turns: Turns, solved: bool) -> Turns:
        shape = form_of("\n".join(turn.action.content for turn in turns))
        return paid_on_last(paid_instead(turns, right * solved), "format", form * shape)

    return [replace_turns(one, lambda turns, one=one: pay(turns, one.success)) for one in group]


def form_of(text: str) -> float:
    """The share of the form that a text has.

    >>> form_of("<think>a<search>b</search></think>"), form_of("<think>a</think><think>b"), form_of("a</think>")
    (0.0, 0.0, 0.0)
    """
    count, inside = {"think": 0, "search": 0}, ""
    for closing, name in TAG.findall(text):
        if closing != ("/" if inside else "") or (inside and name != inside):
            return 0.0
        inside = "" if inside else name
        if inside in count:
            count[inside] += 1
    thoughts, due = count["think"], count["search"] + 1
    if inside or thoughts > MOST:
        return 0.0
    return min(thoughts / 2, 1.0) * min(thoughts, due) / max(thoughts, due)
