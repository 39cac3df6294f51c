"""Refinements: each episode is played once more with a critique of it, and the best of them replaces one row of the group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.reattempt import report
from turnwise.trainers.guide.rows import actions_of, solutions, told_by_seed, with_rows
from turnwise.trainers.kit.asking import ask, judge_policy, transcript

QUESTION = """\
Below are a task and an attempt at it, which {verdict}. Write a short critique: what was done well, where it went wrong, what to do instead.

{transcript}"""
VERDICTS = {True: "The earlier attempt was right.", False: "The earlier attempt was wrong."}
REFINE = "An earlier attempt:\n{attempt}\n\nHint: {critique}"


@component("guide", "critique", paper="2506.03106")
async def critique(
    player: GuidePlayer,
    groups: Sequence[Group],
    *,
    form: Literal["report", "verdict", "answer", "written"] = "report",
    critic: str = "",
    demonstrator: str = "gold",
) -> list[Group]:
    """Plays every episode once more, told the attempt and a critique of it; the best refinement replaces the last row, learned as untold.

    Critique-GRPO (Zhang et al. 2025): the first refinement that is right, else the best, stands in the place of one of the group's rows (7 + 1 of 8), in all
    groups. It is scored under the plain prompt with the weight π/(π + 0.1): `guide: [{name: critique, loss: [luffy], correction: none}]`,
    with `credit: dr_grpo`. The paper's three critiques are `written` by a judge (``critic``, any policy's spec; empty: the policy that is trained), the `verdict` right
    or wrong, and the verdict with the gold `answer` (the demonstrator's actions); `report` is the environment's own report of how the attempt failed, and the
    verdict where it has none (ours). That the last row is replaced is ours, the paper does not say which.

    It changes the objective: rows that were sampled with help are weighed otherwise than by their ratio.

    Worked by hand: seven failures and a refinement that is right have the advantages −0.125 and 0.875; a token of it with π = 0.3
    has the weight 0.75; A·f(π) is 0.2917 at π = .05 and 0.7292 at .5.

    >>> from math import log
    >>> from turnwise.trainers.credit.dr_grpo import dr_grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch, turn_batch
    >>> from turnwise.trainers.loss.luffy import luffy
    >>> rounded(dr_grpo(turn_batch([[0]] * 7 + [[1]])))[-2:]
    [[-0.125], [0.875]]
    >>> learned = luffy(token_batch([[log(0.05), log(0.5)]], [[0.875] * 2])).loss_RT, luffy(token_batch([[log(0.3)]], [[1]])).loss_RT
    >>> [rounded(one, 4) for one in learned]
    [[[-0.2917, -0.7292]], [[-0.75]]]
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(critique, "shop/quick", groups=1, size=2)
    >>> [{turn.reply.source for turn in episode.trajectory.turns} for episode in guided[0]]
    [{''}, {'guide/critique'}]
    """
    whole = {n: group for n, group in enumerate(groups) if all(one.outcome.counts for one in group)}
    gold = await solutions(player, whole, demonstrator) if form == "answer" else {}
    answers = {n: "\n".join(actions_of(one)) for n, one in gold.items()}
    asked = player.requests(whole)
    told: dict[int, str] = {}
    for n, requests in asked.items():
        said = await _critiques(player, whole[n], form, critic, answers.get(n, ""))
        for request, episode, text in zip(requests, whole[n], said, strict=True):
            attempt = "\n".join(actions_of(episode))
            told[request.seed] = REFINE.format(attempt=attempt, critique=text)
    refined = await player.play(asked, told_by_seed(player, "guide/critique", told, keeps=False))
    best = {n: best_of(every) for n, every in refined.items()}
    return with_rows(groups, {n: (len(groups[n]) - 1, one) for n, one in best.items() if one is not None})


def best_of(tried: Sequence[Episode]) -> Episode | None:
    """The first that is right, whatever it is paid, else the first of those that are paid most; None where none counts.

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> failed, solved = EndReason.FAILED, EndReason.SOLVED
    >>> tried = [episode([paid], end=end) for paid, end in ((0.5, failed), (0.9, failed), (0.5, solved), (1, solved))]
    >>> best_of(tried) is tried[2], best_of(tried[:2]) is tried[1], best_of([])
    (True, True, None)
    """
    counting = [one for one in tried if one.outcome.counts]
    right = [one for one in counting if one.success]
    return max(right[:1] or counting, key=lambda one: one.trajectory.total_reward, default=None)


async def _critiques(player: GuidePlayer, group: Group, form: str, critic: str, answer: str) -> list[str]:
    """The critique of each episode of a group."""
    verdicts = [VERDICTS[episode.success] for episode in group]
    if form == "written":
        policy = judge_policy(critic) if critic else player.policy
        questions = [
            QUESTION.format(verdict="was right" if one.success else "was wrong", transcript=transcript(one))
            for one in group
        ]
        return await ask(policy, questions, player.update)
    if form == "answer":
        return [f"{verdict} The answer:\n{answer}" if answer else verdict for verdict in verdicts]
    if form == "report":
        return [
            ("" if one.success else report(one)) or verdict
            for one, verdict in zip(group, verdicts, strict=True)
        ]
    return verdicts
