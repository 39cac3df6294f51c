"""Success against sampled tokens of searches at equal budgets: ``python benchmarks/search_budget.py RUN --out benchmarks/search-budget.json``.

RUN is a run whose recipe has a learned value (``credit: gae``); its best checkpoint plays and scores. Every arm plays the same
tasks of the test split. Budgets are multiples of the mean tokens of plain play. What forks the test world stands apart.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turnwise.agents.evaluation.comparison import paired_difference
from turnwise.agents.evaluation.evaluate import Evaluation, evaluate
from turnwise.agents.policies.registry import make_policy
from turnwise.trainers.search.run import make_search

ARMS: Mapping[str, tuple[str, str]] = {
    "best of n by value": ("best_of_n:n=64", "value"),
    "votes": ("votes:n=64", ""),
    "best of n, oracle": ("best_of_n:n=64", "oracle"),
    "turn beam by value": ("turn_beam:children=4", "value"),
    "MCTS by value": ("mcts:children=4", "value"),
    "cut and regenerate by value": ("search_r2:revisions=64,accept=0.9", "value"),
}
TIMES = (2, 4, 8)


def main() -> None:
    """Play all arms and write figures and table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--suite", default="shop/quick")
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--times", type=int, nargs="+", default=TIMES)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/search-budget.json"))
    asked = parser.parse_args()
    found = played(asked)
    asked.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    asked.out.with_suffix(".md").write_text(page(found), "utf-8")


def played(asked: argparse.Namespace) -> dict[str, Any]:
    """All arms: plain play sampled and greedy, then each search at each budget."""
    checkpoint = asked.run / "best"
    spec = f"{asked.engine}:{checkpoint / 'model'}"
    rows: list[dict[str, Any]] = []
    policy = make_policy(spec, max_sequences=64)
    greedy = make_policy(spec, max_sequences=64, temperature=0.0)
    plain = evaluate(asked.suite, policy, episodes=asked.episodes)
    mean = (plain.said.usage.completion or 0) / plain.episodes
    rows.append(figures("plain, sampled", 1, plain, plain))
    rows.append(figures("plain, greedy", 1, evaluate(asked.suite, greedy, episodes=asked.episodes), plain))
    for name, (search, scorer) in ARMS.items():
        for times in asked.times:
            made = make_search(
                search,
                budget=round(times * mean),
                scorer=f"value:{checkpoint}" if scorer == "value" else scorer,
            )
            result = evaluate(asked.suite, policy, episodes=asked.episodes, search=made)
            made.close()
            rows.append(figures(name, times, result, plain))
            print(rows[-1], flush=True)
    policy.close()
    greedy.close()
    return {"suite": asked.suite, "tasks": plain.tasks, "plain_tokens": mean, "rows": rows}


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

Written by `python benchmarks/search_budget.py`: {found["tasks"]} test tasks of {found["suite"]}, one tiny model, plain play takes
{found["plain_tokens"]:.0f} tokens. The same tasks and seeds in every row; budgets are per episode and count the policy's and the scorer's tokens.

## Plain play, and what chooses among whole episodes

{head}{lines(False)}
*Oracle* looks at the environment's verdict and is the bound of every choice among whole episodes.

## What forks the test world

No deployment can do this unless its world can be taken back; these rows may not be set beside others without saying so.

{head}{lines(True)}"""


if __name__ == "__main__":
    main()
