"""Success against sampled tokens of searches at equal budgets: ``python benchmarks/search_budget.py --out benchmarks/search-budget.json``.

With RUN, a run whose recipe has a learned value (``credit: gae``), its best checkpoint plays and scores. Without it an imperfect
script plays (its words are the tokens), and a linear value is fitted to the text of its episodes of the train split: no model, minutes
on one core. Every arm plays the same tasks of the test split; budgets are multiples of the mean tokens of plain play.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from turnwise.agents.core import Episode, History, Policy, Reply
from turnwise.agents.evaluation.comparison import paired_difference
from turnwise.agents.evaluation.evaluate import Evaluation, evaluate
from turnwise.agents.policies.model import ModelPolicy
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout_tasks import rollout
from turnwise.envs.baselines import SCRIPTS, ScriptMoment
from turnwise.envs.messages import Message, Messages
from turnwise.machine import describe
from turnwise.tasks.core import derive_rng
from turnwise.trainers.search.core import SearchNode
from turnwise.trainers.search.run import make_search
from turnwise.trainers.search.scorers import make_scorer

ARMS: Mapping[str, tuple[str, str]] = {
    "best of n by value": ("best_of_n:n=64", "value"),
    "votes": ("votes:n=64", ""),
    "best of n, oracle": ("best_of_n:n=64", "oracle"),
    "turn beam by value": ("turn_beam:children=4", "value"),
    "MCTS by value": ("mcts:children=4", "value"),
    "cut and regenerate by value": ("search_r2:revisions=64,accept=0.9", "value"),
    "rewind by value": ("rewind:n=64", "value"),
}
TIMES = (2, 4, 8)
SKILL = 0.65
"""Share of the turns in which the script knows what to do; in the others it takes any action that is possible."""
WIDTH, RIDGE = 2048, 3.0


class Careless:
    """The environment's own imperfect script, but for a share of random actions; its words are its tokens."""

    version = 0

    def __init__(self, skill: float = SKILL) -> None:
        self.name, self._skill = f"careless:{skill}", skill

    async def act(self, history: History) -> Reply:
        """Draw which of the two acts, from the episode's seed for this try."""
        rng = derive_rng("careless", history.task.id, history.seed, len(history.turns))
        knows = rng.random() < self._skill
        script = SCRIPTS["demonstrator" if knows else "random"]
        said = script(ScriptMoment(history.env, history.observation, len(history.turns), rng))
        message = Message("assistant", said) if isinstance(said, str) else said
        words = max(1, len(f"{message.content} {[dict(c.arguments) for c in message.tool_calls]}".split()))
        logprob = math.log(self._skill if knows else (1 - self._skill) / 10)
        return Reply(message, action_ids=(1,) * words, logprobs=(logprob / words,) * words)

    def close(self) -> None:
        """Nothing is held."""


class TextValue:
    """A linear value of the text of a state, fitted by ridge regression to how episodes of other tasks ended."""

    name, whole, forks, oracle = "text value", False, False, False

    def __init__(self, episodes: Sequence[Episode]) -> None:
        rows, ends = list[NDArray[np.float64]](), list[float]()
        for episode in episodes:
            turns = episode.trajectory.turns
            said = [(turn.observation, turn.action) for turn in turns]
            for k in range(0, len(turns) + 1, 3):
                last = turns[k].observation if k < len(turns) else episode.trajectory.final
                rows.append(features(said[:k], last))
                ends.append(float(episode.success))
        x, y = np.stack(rows), np.array(ends)
        self._mean = float(y.mean())
        self._weight = np.linalg.solve(x.T @ x + RIDGE * np.eye(WIDTH), x.T @ (y - self._mean))

    async def score(self, searcher: object, nodes: Sequence[SearchNode]) -> list[float]:
        """V of the text; nothing is sampled."""
        texts = [
            features([(t.observation, t.action) for t in node.turns], node.observation) for node in nodes
        ]
        return [self._mean + float(x @ self._weight) for x in texts]

    def close(self) -> None:
        """Nothing is held."""


def features(turns: Sequence[tuple[Messages, Message]], last: Messages) -> NDArray[np.float64]:
    """Hashed words of the newest observations and actions, alone and with each word of the task, and the turn."""
    x = np.zeros(WIDTH)
    first = turns[0][0] if turns else last
    goal = set(re.findall(r"\w+", first[-1].content.lower())[-12:])
    recent = [
        *(str(m.content) for told, said in turns[-4:] for m in (*told, said)),
        *(m.content for m in last),
    ]
    for word in set(re.findall(r"\w+", " ".join(recent[-6:]).lower())):
        x[crc32(word.encode()) % WIDTH] = 1.0
        for wanted in goal:
            x[crc32(f"{wanted} {word}".encode()) % WIDTH] = 1.0
    x[crc32(b"turn") % WIDTH] = len(turns) / 10
    return x


def main() -> None:
    """Play the arms and write figures and table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--suite", default="household/medium")
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--times", type=int, nargs="+", default=TIMES)
    parser.add_argument(
        "--arms", nargs="+", choices=ARMS, default=list(ARMS), help="only these; others stay as they are"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/search-budget.json"))
    asked = parser.parse_args()
    rows = (
        {(r["arm"], r["times"]): r for r in json.loads(asked.out.read_text("utf-8"))["rows"]}
        if asked.out.exists()
        else {}
    )
    for found in played(asked):
        rows |= {(row["arm"], row["times"]): row for row in found["rows"]}
        found["rows"] = list(rows.values())
        asked.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        asked.out.with_suffix(".md").write_text(page(found), "utf-8")


class Players(NamedTuple):
    """Who plays, sampled and greedy, and the value by which searches choose."""

    sampled: Policy
    greedy: Policy
    value: object
    said: str


def players(asked: argparse.Namespace) -> Players:
    """The checkpoint of a run, or the script with a value that is fitted now."""
    if asked.run is None:
        played = rollout(asked.suite, Careless(), split="train", episodes=300)
        value = TextValue([record.episode for record in played.records])
        return Players(Careless(), Careless(1.0), value, "an imperfect script, a linear value of its text")
    spec = f"{asked.engine}:{asked.run / 'best' / 'model'}"
    sampled = make_policy(spec, max_sequences=64, temperature=1.0)
    assert isinstance(sampled, ModelPolicy)
    greedy = ModelPolicy(sampled.engine, sampled.renderer, sampled.sampling._replace(temperature=0.0))
    return Players(
        sampled, greedy, make_scorer(f"value:{asked.run / 'best'}"), f"{asked.run.name}, its value head"
    )


def played(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Plain play, sampled and greedy, then each search at each budget; what was found is told after each."""
    who = players(asked)
    plain = evaluate(asked.suite, who.sampled, episodes=asked.episodes)
    mean = (plain.said.usage.completion or 0) / plain.episodes

    def found(*rows: dict[str, Any]) -> dict[str, Any]:
        print(rows[-1], flush=True)
        about = {"suite": asked.suite, "tasks": plain.tasks, "plain_tokens": mean, "who": who.said}
        return {**about, "date": str(datetime.date.today()), "machine": describe(), "rows": rows}

    greedy = evaluate(asked.suite, who.greedy, episodes=asked.episodes)
    yield found(figures("plain, sampled", 1, plain, plain), figures("plain, greedy", 1, greedy, plain))
    for times in asked.times:
        for name in asked.arms:
            search, scorer = ARMS[name]
            value = who.value if scorer == "value" else scorer
            made = make_search(search, budget=round(times * mean), scorer=value)
            result = evaluate(asked.suite, who.sampled, episodes=asked.episodes, search=made)
            yield found(figures(name, times, result, plain))


def figures(name: str, times: int, result: Evaluation, plain: Evaluation) -> dict[str, Any]:
    """One arm at one budget, paired with plain play on the same tasks."""
    against = paired_difference(plain.results, result.results)
    search = result.search
    taken = (
        search.tokens + search.scorer_tokens
        if search.episodes
        else (result.said.usage.completion or 0) / result.episodes
    )
    return {
        "arm": name, "times": times, "label": search.label, "success": result.success,
        "interval": list(result.success_interval), "difference": against.difference,
        "difference_interval": list(against.interval), "tokens": taken, "most_tokens": search.most_tokens,
        "budget": search.budget, "tries": search.tries, "nodes": search.nodes,
    }  # fmt: skip


def page(found: Mapping[str, Any]) -> str:
    """The table, searches that fork the test world apart from those that do not."""
    head = (
        "| search | budget, times plain play | tokens per episode | success | 95 % | against plain, points |\n"
        "|---|---|---|---|---|---|\n"
    )

    def lines(wanted: bool) -> str:
        return "".join(line(row) for row in found["rows"] if ("forks" in row["label"]) is wanted)

    def line(row: Mapping[str, Any]) -> str:
        low, high = (100 * x for x in row["interval"])
        worse, better = (100 * x for x in row["difference_interval"])
        return (
            f"| {row['arm']} | {row['times']} | {row['tokens']:.0f} | {100 * row['success']:.1f} % | {low:.1f} … {high:.1f} |"
            f" {100 * row['difference']:+.1f} ({worse:+.1f} … {better:+.1f}) |\n"
        )

    return f"""# Success against sampled tokens

Written by `python benchmarks/search_budget.py`: {found["tasks"]} test tasks of {found["suite"]}, {found["who"]};
plain play takes {found["plain_tokens"]:.0f} tokens. The same tasks and seeds in every row; budgets are per episode and count the policy's and the scorer's tokens.

## Plain play, and what chooses among whole episodes

{head}{lines(False)}
*Oracle* looks at the environment's verdict and is the bound of every choice among whole episodes.

## What forks the test world

No deployment can do this unless its world can be taken back; these rows may not be set beside others without saying so.

{head}{lines(True)}"""


if __name__ == "__main__":
    main()
