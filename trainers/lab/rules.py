"""Rules out of preferences, kept by how they go with success: ``python -m turnwise.trainers.lab.rules LOG OUT.yaml --policy openai:MODEL@URL``.

AutoRule (2025): (1) a reasoning model explains of pairs of attempts at one task why the one that succeeded is better than the one that failed; (2) from
each explanation it states rules; (3) it merges them into one set. OUT is the part of a recipe that pays them: the judge `rlbff` asks a verifier of each rule,
yes or no, and an episode earns ``weight`` times the share that it keeps beside what it earned. (4) Before that each rule is asked about on every episode
of the log, and one that goes against success is dropped: the correlation of keeping it with success is below 0. Ours: the fourth step, which is what the
formula book makes of the paper for agents, and answers in JSON; what cannot be read is no rule.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import StatisticsError, correlation, mean
from typing import NamedTuple

import yaml

from turnwise.agents.core import Episode
from turnwise.agents.log.episodes import load_episodes
from turnwise.durable import write_whole
from turnwise.errors import TurnwiseError
from turnwise.trainers.kit.asking import ask, judge_policy, transcript
from turnwise.trainers.lab.experiences import read_lessons
from turnwise.trainers.lab.labelled import judged

EXPLAIN = """\
Below are two attempts at one task. The first succeeded, the second failed. Explain step by step what the first does better.

First:
{better}

Second:
{worse}"""
EXTRACT = """\
Below is a comparison of two attempts at a task.

{explanation}

State up to {most} rules that follow from it and hold for other tasks of this kind, each a sentence that begins with "It" and that an attempt keeps or
does not. Answer with a JSON list of texts."""
MERGE = """\
Rules for attempts at tasks:
{rules}

Merge those that say the same and leave out those that hold for one task alone. Answer with the JSON list of at most {most} rules."""


class FoundRule(NamedTuple):
    """A rule, the share of episodes that keep it, and how keeping it goes with success (from −1 to 1; 0 where all or none keep it)."""

    text: str
    rate: float
    correlation: float


def measured(text: str, kept: Sequence[float], solved: Sequence[float]) -> FoundRule:
    """The rule with its figures, of which the second is the correlation (Pearson's, φ of two yes-or-no answers).

    >>> measured("It asks.", [1, 1, 0, 0], [1, 1, 0, 0]), measured("It asks.", [1, 0, 0, 0], [0, 1, 0, 1]).correlation < 0
    (FoundRule(text='It asks.', rate=0.5, correlation=1.0), True)
    >>> measured("It asks.", [1, 1], [1, 0]).correlation
    0.0
    """
    try:
        found = correlation(kept, solved)
    except StatisticsError:  # one of them is the same throughout
        found = 0.0
    return FoundRule(text, mean(kept), found)


def fragment(rules: Sequence[FoundRule], policy: str, weight: float) -> str:
    """The part of a recipe that pays the rules.

    >>> print(fragment([FoundRule("It asks first.", 0.5, 0.25)], "openai:judge", 0.5))
    # keeps 0.50, with success +0.25: It asks first.
    judge:
      name: rlbff
      policy: openai:judge
      principles:
      - It asks first.
    reward:
      name: from_signal
      signal: rlbff
      form: last
      weight: 0.5
    <BLANKLINE>
    """
    judge = {"name": "rlbff", "policy": policy, "principles": [rule.text for rule in rules]}
    reward = {"name": "from_signal", "signal": "rlbff", "form": "last", "weight": weight}
    about = "".join(
        f"# keeps {rule.rate:.2f}, with success {rule.correlation:+.2f}: {rule.text}\n" for rule in rules
    )
    return about + yaml.safe_dump({"judge": judge, "reward": reward}, sort_keys=False, allow_unicode=True)


def pairs_of(episodes: Sequence[Episode], most: int, seed: int = 0) -> list[tuple[Episode, Episode]]:
    """At most so many pairs of a success and a failure of one task, one of each task, in an order by chance."""
    by_task: defaultdict[str, tuple[list[Episode], list[Episode]]] = defaultdict(lambda: ([], []))
    for episode in episodes:
        by_task[episode.task.id][0 if episode.success else 1].append(episode)
    rng = random.Random(seed)
    mixed = [(rng.choice(won), rng.choice(lost)) for won, lost in by_task.values() if won and lost]
    return rng.sample(mixed, min(most, len(mixed)))


async def extracted(pairs: Sequence[tuple[Episode, Episode]], policy: str, most: int) -> list[str]:
    """The rules that a policy finds in pairs, merged into one set."""
    asked = judge_policy(policy)
    questions = [EXPLAIN.format(better=transcript(a), worse=transcript(b)) for a, b in pairs]
    explained = await ask(asked, questions)
    stated = await ask(asked, [EXTRACT.format(explanation=one, most=most) for one in explained])
    rules = [*dict.fromkeys(rule for answer in stated for rule in read_lessons(answer, most))]
    (merged,) = await ask(asked, [MERGE.format(rules="\n".join(f"- {rule}" for rule in rules), most=most)])
    return read_lessons(merged, most) or rules[:most]


def rules_of(
    log: Path | str, policy: str, *, verifier: str = "", pairs: int = 64, most: int = 16
) -> tuple[list[FoundRule], list[FoundRule]]:
    """The rules of a log that are kept, and those that are dropped since they go against success.

    Raises:
        TurnwiseError: the log is missing or damaged, or no task of it has a success and a failure.
    """
    played = [one.episode for one in load_episodes(log).records if one.episode.outcome.counts]
    played = [episode for episode in played if episode.trajectory.turns]
    mixed = pairs_of(played, pairs)
    if not mixed:
        raise TurnwiseError(
            f"No task of {log} was both solved and failed, so that no attempt is preferred to another.",
            "Log several episodes of each task: `turnwise eval SUITE --policy … --k 8 --out FOLDER`.",
        )
    solved = [float(episode.success) for episode in played]
    found: list[FoundRule] = []
    for text in asyncio.run(extracted(mixed, policy, most)):
        options: Mapping[str, object] = {"policy": verifier or policy, "principles": (text,)}
        told = judged(played, "rlbff", options)
        found.append(
            measured(text, [episode.trajectory.turns[-1].signals["rlbff"] for episode in told], solved)
        )
    return [rule for rule in found if rule.correlation >= 0], [rule for rule in found if rule.correlation < 0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the rules of a log as part of a recipe, and say which were dropped."""
    parser = argparse.ArgumentParser(prog="python -m turnwise.trainers.lab.rules")
    parser.add_argument("log", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--policy", required=True)
    parser.add_argument("--verifier", default="")
    parser.add_argument("--pairs", type=int, default=64)
    parser.add_argument("--most", type=int, default=16)
    parser.add_argument("--weight", type=float, default=1.0)
    given = parser.parse_args(arguments)
    verifier = given.verifier or given.policy
    kept, dropped = rules_of(given.log, given.policy, verifier=verifier, pairs=given.pairs, most=given.most)
    for rule in dropped:
        print(f"dropped, goes against success ({rule.correlation:+.2f}): {rule.text}")
    write_whole(given.out, fragment(kept, verifier, given.weight))
    print(f"{len(kept)} rules in {given.out}")


if __name__ == "__main__":
    main()
