"""Test a model for having seen a task set: it is shown the first 60 % of each task and completes the rest.

python -m turnwise.trainers.lab.completed SUITE --policy vllm:PATH              # the share that is completed exactly
python -m turnwise.trainers.lab.completed calc/easy --policy vllm:PATH          # beside it: tasks that nobody can have seen

RandomCalculation (Wu et al. 2025, "Reasoning or memorization?"): a model that completes the statements of a benchmark word by word was trained on
them, so that whatever reward it is trained with seems to help there. Nobody completes what was drawn just now, such as the expressions
of `turnwise/Calc-v0`, beyond chance. The paper reports the share at 80, 60 and 40 %; ours is by words, and what is said after the rest counts
neither way.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.core import Policy
from turnwise.agents.evaluation.statistics import Estimate, proportion
from turnwise.agents.policies.registry import make_policy
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Split
from turnwise.trainers.kit.asking import ask

QUESTION = (
    "Below is the beginning of a text. Write how it goes on, word by word, and nothing else.\n\n{begun}"
)


class CutText(NamedTuple):
    """The beginning of a text, and the words that follow it."""

    begun: str
    rest: tuple[str, ...]


def cut(text: str, shown: float = 0.6) -> CutText | None:
    """A text whose first words are shown, rounded down; None where no word is left on one of the sides.

    >>> cut("How many apples do they have in all ? Tell .", 0.6)
    CutText(begun='How many apples do they have', rest=('in', 'all', '?', 'Tell', '.'))
    >>> cut("one"), cut("one two", 1.0)
    (None, None)
    """
    words = text.split()
    most = int(len(words) * shown)
    return CutText(" ".join(words[:most]), tuple(words[most:])) if 0 < most < len(words) else None


def is_completed(said: str, rest: Sequence[str]) -> bool:
    """Say whether an answer begins with the very words that are left.

    >>> is_completed(" in all ?  Nine.", ["in", "all", "?"]), is_completed("in all", ["in", "all", "?"])
    (True, False)
    """
    return said.split()[: len(rest)] == [*rest]


async def completed(texts: Sequence[str], policy: Policy, shown: float = 0.6) -> Estimate:
    """The share of texts that the policy completes exactly, with its interval.

    Raises:
        TurnwiseError: no text has words enough to be cut.
    """
    cuts = [one for text in texts if (one := cut(text, shown))]
    if not cuts:
        raise TurnwiseError(
            f"None of {len(texts)} texts can be cut at {shown:.0%}.",
            "Name a suite whose tasks are sentences.",
        )
    said = await ask(policy, [QUESTION.format(begun=one.begun) for one in cuts])
    return proportion(
        [is_completed(answer, one.rest) for answer, one in zip(said, cuts, strict=True)], range(len(cuts))
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m turnwise.trainers.lab.completed")
    parser.add_argument("suite")
    parser.add_argument("--policy", required=True)
    parser.add_argument("--split", default="test", choices=[one.value for one in Split])
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--shown", type=float, default=0.6)
    asked = parser.parse_args()
    tasks = suite_tasks(get_suite(asked.suite), Split(asked.split), asked.tasks)
    policy = make_policy(asked.policy, temperature=0.0)
    try:
        found = asyncio.run(completed([task.prompt for task in tasks], policy, asked.shown))
    finally:
        policy.close()
    low, high = found.interval
    print(f"{asked.suite}: {found.mean:.3f} completed exactly ({low:.3f} … {high:.3f})")


if __name__ == "__main__":
    main()
