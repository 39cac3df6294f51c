"""Debate: two policies argue for one attempt each, and a third decides by what they said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.kit.asking import ask, counting, judge_policy, quoted, transcript
from turnwise.trainers.kit.reward_edits import with_signals

SHOWN = """\
Two agents tried the same task.

=== Attempt A
{first}

=== Attempt B
{second}

=== Arguments
{said}

"""
ARGUE = """\
You argue that attempt {side} is the better one; somebody else argues for the other, and a judge decides between you. Give one more argument for attempt {side}, \
in a sentence or two, which the judge can check in the attempts."""
DECIDE = """\
The arguments are those of two debaters, each of whom wants to win. Decide which attempt is better. End with one line: `BETTER: A`, `BETTER: B` or `BETTER: tie`."""


class Dispute(NamedTuple):
    """Two attempts as they are shown, and the side of the one that is asked about; the other one is the baseline."""

    first: str
    second: str
    side: str

    def shown(self, said: Sequence[str]) -> str:
        """What debaters and judge read; arguments are in order, A's first."""
        lines = "\n".join(f"[{'AB'[n % 2]}] {quoted(one)}" for n, one in enumerate(said)) or "(none yet)"
        return SHOWN.format(first=self.first, second=self.second, said=lines)


@component("judge", "debate", paper="2402.15826", gives=("debate",))
async def debate(
    groups: Sequence[Group], *, policy: str = "openai:judge", debater: str = "", arguments: int = 6
) -> list[Group]:
    """Each attempt is argued against a baseline, one of its group that is drawn by chance; 1 where the judge prefers it, else 0, on every turn.

    Debate for justifiable rewards (Sukovic and Radanovic 2024): two debaters, whose game is zero-sum, give ``arguments`` in turn, half of them each, and
    see what was said before; the judge sees both attempts and all arguments. The paper's baseline is what the data set did; here a seeded generator draws
    it, and which attempt is A (ours). It earns 0. A tie, or an answer that cannot be read, is no win. Their reward, (1 − λ)·r + λ·10·1[preferred], is `reward: {name: own_probability, signal: debate, weight: 5, outcome: 0.5,
    format: 0}` with λ = ½. (``arguments`` + 1)·(G − 1) questions a group.
    Both debaters are ``debater``, which is ``policy`` unless named. Left out: the training of debaters against each other, and of the judge on preferences.

    Worked by hand from the book: λ = ½, r = .2 and a win, 5.1.

    >>> better("I side with [B].\\nBETTER: A"), better("BETTER: tie"), better("A, I think")
    ('A', '', '')
    >>> from turnwise.trainers.reward.own_probability import own_probability
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> played = with_signals(episode([0, 0.2]), [{"debate": 1.0}] * 2)
    >>> round(own_probability([played], signal="debate", weight=5.0, outcome=0.5, format=0.0)[0].trajectory.total_reward, 4)
    5.1

    Raises:
        RecipeError: both sides do not have the same number of arguments.
    """
    if arguments < 0 or arguments % 2:
        raise RecipeError(
            f"judge 'debate': arguments={arguments} are not half of them each side's.",
            "Give an even number (6).",
        )
    disputes: dict[tuple[int, int], Dispute] = {}
    told = [list(group) for group in groups]
    for g, group in enumerate(groups):
        disputes |= {(g, i): one for i, one in _disputed(group).items()}
    said: dict[tuple[int, int], list[str]] = {place: [] for place in disputes}
    for n in range(arguments):
        asked = [one.shown(said[place]) + ARGUE.format(side="AB"[n % 2]) for place, one in disputes.items()]
        for place, argument in zip(disputes, await ask(judge_policy(debater or policy), asked), strict=True):
            said[place].append(argument)
    asked = [one.shown(said[place]) + DECIDE for place, one in disputes.items()]
    found = dict(zip(disputes, map(better, await ask(judge_policy(policy), asked)), strict=True))
    for g, group in enumerate(groups):
        for i in counting(group):
            won = (g, i) in found and found[g, i] == disputes[g, i].side
            told[g][i] = with_signals(group[i], [{"debate": float(won)}] * len(group[i].trajectory.turns))
    return [*told]


def _disputed(group: Group) -> dict[int, Dispute]:
    """The attempts of a group that are held against its baseline, by place."""
    asked = counting(group)
    if not asked:
        return {}
    rng = derive_rng("debate", sorted(group[i].seed for i in asked))
    baseline = rng.choice(asked)
    shown = {i: transcript(group[i]) for i in asked}
    found: dict[int, Dispute] = {}
    for i in asked:
        if i != baseline:
            pair = (
                (shown[i], shown[baseline], "A") if rng.random() < 0.5 else (shown[baseline], shown[i], "B")
            )
            found[i] = Dispute(*pair)
    return found


def better(answer: str) -> str:
    """The side that a judge prefers, by its last line of that form; empty for a tie and where there is none."""
    found = re.findall(r"^[^\w\n>]*BETTER:[^\w\n]*(A|B|tie)\b", answer, re.MULTILINE | re.IGNORECASE)
    return found[-1].upper() if found and found[-1].upper() in "AB" else ""
