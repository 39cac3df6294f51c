"""ThinkPRM: a verifier that thinks about every turn, and how likely it is then to say that all are right."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

from torch import Tensor

from turnwise.agents.core import Episode, Policy
from turnwise.agents.log.records import Record, to_line
from turnwise.agents.policies.scoring import GivenReply, YesNo, scorer_of
from turnwise.envs.judging.actions import before_last_verdict
from turnwise.envs.judging.drawing import AttemptPart
from turnwise.envs.judging.env import JudgingEnv
from turnwise.envs.judging.recorded import recorded_episode
from turnwise.envs.judging.turns import chain_question
from turnwise.envs.messages import Message
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.asking import ask_samples, counting, judge_policy
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.stand_in import turns_of, wave


class _JudgedPart(NamedTuple):
    """A question, and how many verdicts it asks for."""

    question: str
    verdicts: int


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"think_prm": (0.5 - 0.4 * wave(p)) * turns_of(p)}


@component("judge", "think_prm", paper="2504.16828", gives=("think_prm",), stand_in=_stand_in)
async def think_prm(
    groups: Sequence[Group],
    *,
    policy: str = "openai:judge",
    chains: int = 4,
    of: Literal["episode", "turns"] = "episode",
) -> list[Group]:
    """P(yes) / (P(yes) + P(no)) that every turn is right, after a chain of thought about each; the mean over ``chains`` of them.

    The question is that of `judging:chain:LOG` (envs/judging), so that a verifier learns there what it is asked here: a verdict on each act, and
    last whether all are right. Each chain is cut before that last verdict, and the two words are compared there. Of an ``episode`` all its turns
    get the score; of ``turns`` each gets that of the attempt up to it. A chain without a verdict on every act is left out; without any other the
    score is 0, so that nothing is paid for it.

    Demonstrations are the chains whose verdicts are all right: `turnwise eval judging:chain:LABELLED --policy … --k 8 --out …` plays them on a log that
    `trainers/lab/labelled.py` labelled, and `source: {name: stored, solved: true}` shows those that were. The policy must tell
    log-probabilities, and its server go on with a reply that was begun (vLLM, SGLang; others may refuse it, or begin a new one).

    Worked by hand (the book's): log p of −.2 and −1.8 are .8320; two chains of .8320 and ½ score .6660.

    >>> round(YesNo(-0.2, -1.8).chance, 4), round(scored([YesNo(-0.2, -1.8), YesNo(-1.0, -1.0)]), 4), scored([])
    (0.832, 0.666, 0.0)

    Raises:
        RecipeError: there is no chain.
        EngineError: the policy tells no log-probabilities, or cannot be reached.
    """
    if chains < 1:
        raise RecipeError(f"judge 'think_prm': {chains} chains say nothing.", "Give 1 or more (4).")
    asked: dict[tuple[int, int], list[_JudgedPart]] = {}
    for g, group in enumerate(groups):
        for i in counting(group):
            turns = len(group[i].trajectory.turns)
            asked[g, i] = [_part(group[i], k) for k in (range(1, turns + 1) if of == "turns" else [turns])]
    scores = await _scores(judge_policy(policy), itertools.chain(*asked.values()), chains)
    judged: dict[tuple[int, int], Episode] = {}
    for (g, i), parts in asked.items():
        told = [scores[part] for part in parts]
        turns = len(groups[g][i].trajectory.turns)
        each = told if of == "turns" else told * turns
        judged[g, i] = with_signals(groups[g][i], [{"think_prm": x} for x in each])
    return [[judged.get((g, i), one) for i, one in enumerate(group)] for g, group in enumerate(groups)]


async def _scores(judge: Policy, asked: Iterable[_JudgedPart], chains: int) -> dict[_JudgedPart, float]:
    """The mean over chains of the chance of yes, of each part."""
    parts = [*dict.fromkeys(asked)]  # attempts that begin alike
    begun: list[GivenReply] = []
    owners: list[_JudgedPart] = []
    questions = [part.question for part in parts]
    for said in await ask_samples(judge, [questions] * chains, system=JudgingEnv.system):
        for part, chain in zip(parts, said, strict=True):
            text = before_last_verdict(chain, part.verdicts)
            if text is not None:
                told = Message("system", JudgingEnv.system), Message("user", part.question)
                begun.append(GivenReply(told, text))
                owners.append(part)
    found: dict[_JudgedPart, list[YesNo]] = {part: [] for part in parts}
    known = await scorer_of(judge).yes_no(begun) if begun else []
    for part, chance in zip(owners, known, strict=True):
        found[part].append(chance)
    return {part: scored(some) for part, some in found.items()}


def scored(chains: Sequence[YesNo]) -> float:
    """The mean chance of yes of those chains where it is known; 0 where there is none."""
    return fmean(known) if (known := [one.chance for one in chains if one.readable]) else 0.0


def _part(episode: Episode, turns: int) -> _JudgedPart:
    recorded = recorded_episode(json.loads(to_line(Record(episode))))
    assert recorded is not None  # it counts, and has turns
    return _JudgedPart(chain_question(AttemptPart(recorded, turns)), turns + 1)
