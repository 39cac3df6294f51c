"""How exploitable each checkpoint of a run on ``games/kuhn-self`` is, exactly (chips a hand for a best response).

    turnwise train kuhn-self --out runs/kuhn-0 --set seed=0
    python benchmarks/learning/kuhn.py runs/kuhn-0 [runs/kuhn-1 ...]

The strategy is read off the model: at each of the twelve information sets, how likely it says either move. Prints one
JSON object: for each run the updates, the exploitability and the hand value against the equilibrium player.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import mean, stdev

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from turnwise.agents.policies.model import read_habits
from turnwise.agents.renderer import Renderer
from turnwise.envs.games.kuhn import equilibrium, exploitability, value
from turnwise.envs.games.probe import Situation, strategy_of
from turnwise.envs.messages import Message
from turnwise.machine import describe


def curve(run: Path) -> dict[str, list[float]]:
    """Exploitability and strength after each saved update."""
    found: dict[str, list[float]] = {"update": [], "exploitability": [], "against_equilibrium": []}
    for step in sorted((run / "checkpoints").glob("step-*")):
        model = AutoModelForCausalLM.from_pretrained(step / "model").eval()
        tokenizer = AutoTokenizer.from_pretrained(step / "model")
        renderer = Renderer(tokenizer, tools_format=read_habits(step / "model"))
        strategy = strategy_of(lambda situation, m=model, r=renderer: active(m, r, situation))
        found["update"].append(int(step.name.partition("-")[2]))
        found["exploitability"].append(exploitability(strategy))
        seats = value(strategy, equilibrium()), -value(equilibrium(), strategy)
        found["against_equilibrium"].append(mean(seats))
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
    ends = {
        name: [c["exploitability"][i] for c in curves.values()] for name, i in (("first", 0), ("last", -1))
    }
    gain = [a - b for a, b in zip(ends["first"], ends["last"], strict=True)]
    summary = {
        name: {"mean": mean(x), "stdev": stdev(x) if len(x) > 1 else None}
        for name, x in (*ends.items(), ("gain", gain))
    }
    print(json.dumps({"machine": describe(), "runs": curves, "exploitability": summary}, indent=1))


if __name__ == "__main__":
    main()
