"""How exploitable each checkpoint of a run on ``games/kuhn-self`` is, exactly (chips a hand for a best response).

    turnwise train kuhn-self --out runs/kuhn-0 --set seed=0
    python benchmarks/learning/kuhn.py runs/kuhn-0 [runs/kuhn-1 ...]

The strategy is read off the model: at each of the twelve information sets, how likely it says either move. Prints one
JSON object: for each run the updates, the exploitability and the hand value against the equilibrium player, both of
the policy as it is and of the average of all policies so far (a checkpoint drawn for each hand), which is what self-play is
known to bring to an equilibrium. Intervals are Student's t over runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

import torch
from scipy import stats
from transformers import AutoModelForCausalLM, AutoTokenizer

from turnwise.agents.policies.model import read_chat_format
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.games.kuhn import Strategy, average, equilibrium, exploitability, value
from turnwise.envs.games.probe import Situation, strategy_of
from turnwise.envs.messages import Message
from turnwise.machine import describe

MEASURED = ("exploitability", "average_exploitability", "against_equilibrium", "average_against_equilibrium")


def curve(run: Path) -> dict[str, list[float]]:
    """Exploitability and strength after each saved update."""
    found: dict[str, list[float]] = {"update": []}
    for name in ("exploitability", "against_equilibrium"):
        found |= {name: [], f"average_{name}": []}
    strategies: list[Strategy] = []
    for step in sorted((run / "checkpoints").glob("step-*")):
        model = AutoModelForCausalLM.from_pretrained(step / "model").eval()
        tokenizer = AutoTokenizer.from_pretrained(step / "model")
        renderer = Renderer(tokenizer, tools_format=read_chat_format(step / "model").tools_format)
        strategy = strategy_of(lambda situation, m=model, r=renderer: active(m, r, situation))
        strategies.append(strategy)
        found["update"].append(int(step.name.partition("-")[2]))
        for of, player in (("", strategy), ("average_", average(strategies))):
            found[f"{of}exploitability"].append(exploitability(player))
            seats = value(player, equilibrium()), -value(equilibrium(), player)
            found[f"{of}against_equilibrium"].append(mean(seats))
    return found


@torch.no_grad()
def active(model: torch.nn.Module, renderer: Renderer, situation: Situation) -> float:
    """The probability of betting or calling, among the two moves there are."""
    prompt = renderer.start(situation.messages)
    scores: list[float] = []
    for move in situation.options:
        said = renderer.reply_ids(Message("assistant", move))
        ids = torch.tensor([[*prompt, *said]])
        logp = model(ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        scores.append(float(logp.gather(1, torch.tensor(said)[:, None]).sum()))
    return float(torch.tensor(scores).softmax(0)[1])


def main() -> None:
    curves = {run: curve(Path(run)) for run in sys.argv[1:]}
    summaries = {name: summary([c[name] for c in curves.values()]) for name in MEASURED}
    print(json.dumps({"machine": describe(), "runs": curves, **summaries}, indent=1))


def summary(runs: Sequence[Sequence[float]]) -> dict[str, dict[str, object]]:
    """First and last value over runs, and how much it changed, each with its interval."""
    first, last = [run[0] for run in runs], [run[-1] for run in runs]
    change = [b - a for a, b in zip(first, last, strict=True)]
    return {
        name: {"mean": mean(x), "interval": interval(x)}
        for name, x in (("first", first), ("last", last), ("change", change))
    }


def interval(values: Sequence[float]) -> list[float] | None:
    """95 %, Student's t; None for a single value."""
    if len(values) < 2:
        return None
    half = float(stats.t.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return [mean(values) - half, mean(values) + half]


if __name__ == "__main__":
    main()
