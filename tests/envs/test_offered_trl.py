"""Our suites played by TRL's own trainer, and by inspect_ai and PettingZoo."""

from __future__ import annotations

import inspect
import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from turnwise.envs.offered.trl import trl_tasks
from turnwise.envs.registry import get_suite, suite_task
from turnwise.errors import EnvError
from turnwise.tasks.core import Split

SUITES = (
    "shop/easy",
    "functioncall/single",
    "toolworld/retail",
    "household/easy",
    "lab/easy",
    "sort/4",
    "search/easy",
    "dialogue/bargain",
)


def methods_of(environment: object) -> dict[str, Any]:
    """As GRPOTrainer finds the tools of an environment."""
    found = inspect.getmembers(type(environment), predicate=inspect.isfunction)
    kept = [name for name, _ in found if name not in ("reset", "get_reward") and not name.startswith("_")]
    return {name: getattr(environment, name) for name in kept}


@pytest.mark.parametrize("suite", SUITES)
def test_gold_scores_one_by_methods_alone(suite: str) -> None:
    rows, made = trl_tasks(suite, 2, start=5)
    assert [row["index"] for row in rows] == [5, 6]
    for row in rows:
        environment = made[row["environment"]]()
        tools = methods_of(environment)
        environment.reset(**{key: value for key, value in row.items() if key != "environment"})
        env = environment._episode.env
        assert env.task == suite_task(get_suite(suite), Split.TRAIN, row["index"])
        assert row["prompt"][-1]["content"] == environment._episode.opening[-1].content
        while not environment._episode.end:
            gold = env.gold(env.state)
            calls = () if isinstance(gold, str) else gold.tool_calls
            heard = [tools[call.name](**call.arguments) for call in calls]
            heard += [] if calls else [tools["say"](text=gold if isinstance(gold, str) else gold.content)]
            assert all(isinstance(one, str) for one in heard)
        assert environment.get_reward() == pytest.approx(1.0)
        with pytest.raises(Exception, match="has ended"):
            environment.say(text="more")


@pytest.mark.parametrize("suite", SUITES)
def test_schemas_are_made_again(suite: str) -> None:
    """Out of signature and docstring transformers makes the schema that the tool had, but for descriptions that it wants of all."""
    from transformers.utils import get_json_schema

    rows, made = trl_tasks(suite, 2)
    for row in rows:
        environment = made[row["environment"]]()
        environment.reset(**row)
        told = {name: get_json_schema(one)["function"] for name, one in methods_of(environment).items()}
        for tool in environment._episode.tools:
            again, spec = told[tool.spec.name], tool.spec.to_json()["function"]
            assert again["description"].split() == spec["description"].split()
            properties = again["parameters"].get("properties", {})
            assert properties.keys() == spec["parameters"].get("properties", {}).keys()
            assert set(again["parameters"].get("required", ())) == set(spec["parameters"].get("required", ()))
            for name, one in spec["parameters"].get("properties", {}).items():
                for key in ("type", "enum"):
                    if isinstance(one.get(key), (str, list)) and not (key == "type" and "enum" in one):
                        assert properties[name].get(key) == one[key], (tool.spec.name, name)


def test_matches_of_two_are_not_offered_to_one() -> None:
    with pytest.raises(EnvError, match="agent and opponent"):
        trl_tasks("games/tictactoe", 1)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_the_trainer_of_trl_plays_them(tmp_path: Path) -> None:
    trl = pytest.importorskip("trl")
    import torch
    from datasets import Dataset
    from transformers import Qwen3Config, Qwen3ForCausalLM
    from trl.chat_template_utils import qwen3_chat_template

    from turnwise.agents.bench.families import family_tokenizer

    rows, made = trl_tasks("sort/4", 4)
    call = '<tool_call>\n{"name": "compare", "arguments": {"i": 0, "j": 1}}\n</tool_call><|im_end|>\n'
    tokenizer = family_tokenizer("chatml", (str(rows), call), 1024)
    tokenizer.chat_template = qwen3_chat_template
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=4096,
        )
    )
    tools = [*methods_of(made[rows[0]["environment"]]()).values()]
    always_says(model, tokenizer, rows, tools, call)
    arguments = trl.GRPOConfig(
        str(tmp_path),
        per_device_train_batch_size=4,
        num_generations=2,
        max_steps=1,
        max_completion_length=400,
        report_to=[],
        use_cpu=True,
        temperature=0.01,
        max_tool_calling_iterations=3,
        logging_steps=1,
    )
    trainer = trl.GRPOTrainer(
        model,
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        environment_factory=made,
        processing_class=tokenizer,
    )
    trainer.train()
    (log,) = [one for one in trainer.state.log_history if "reward" in one]
    assert log["tools/call_frequency"] >= 1.0
    assert not log["tools/failure_frequency"]
    played = [one for pool in trainer._environment_pool.values() for one in pool]
    assert [one._episode.env.now.turn for one in played] == [int(log["tools/call_frequency"])] * 4


def always_says(model: Any, tokenizer: Any, rows: list[dict[str, Any]], tools: list[Any], text: str) -> None:
    """Teach a tiny model to say this after any of the prompts, whatever stands between."""
    import torch

    said = tokenizer.encode("<|im_start|>assistant\n" + text, add_special_tokens=False)
    starts = [
        tokenizer.encode(
            tokenizer.apply_chat_template(row["prompt"], tools=tools, tokenize=False),
            add_special_tokens=False,
        )
        for row in rows
    ]
    optimizer, rng = torch.optim.Adam(model.parameters(), lr=3e-3), random.Random(0)
    recent = 1.0
    for step in range(2000):
        between = [rng.randrange(len(tokenizer)) for _ in range(rng.choice((0, 30, 120)))]
        ids = torch.tensor([[*starts[step % len(starts)], *between, *said]])
        labels = torch.full_like(ids, -100)
        labels[0, -len(said) + 2 :] = ids[0, -len(said) + 2 :]
        optimizer.zero_grad()
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
        optimizer.step()
        recent += 0.1 * (float(loss) - recent)
        if recent < 0.005:
            return
    raise AssertionError(f"the model has not learned to say it: nll {recent:.2g}")


@pytest.mark.full
def test_inspect_and_pettingzoo_play_them(tmp_path: Path) -> None:
    """With an interpreter that has inspect_ai, pettingzoo and our packages: TURNWISE_ELSEWHERE=/path/to/python."""
    python = os.environ.get("TURNWISE_ELSEWHERE")
    if not python:
        pytest.skip("TURNWISE_ELSEWHERE names no interpreter")
    program = str(Path(__file__).with_name("offered_elsewhere.py"))
    done = subprocess.run(
        [python, program, str(tmp_path)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["sums"]["games/tictactoe"] == {"agent": 20.0, "opponent": 0.0}
    assert said["sums"]["shop/easy"] == {"agent": pytest.approx(20.0)}
    assert said["sums"]["dialogue/bargain-two"].keys() == {"agent", "partner"}
    assert said["logs"] == 3
    assert all(score == 1.0 and end == "solved" for rows in said["found"].values() for score, end, _ in rows)
