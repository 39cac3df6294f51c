"""What strangers write in a recipe, and what each hears of it: rows for a test, and docs/recipe-mistakes.md.

``python tests/trainers/recipe_mistakes.py`` writes the page.
"""

from __future__ import annotations

from typing import NamedTuple

GOOD = "suite: shop/quick\nmodel: {path: Qwen/Qwen3-0.6B}\n"


class Mistake(NamedTuple):
    """A file's text, or what follows --set on a good one; what the message must say."""

    text: str
    cause: tuple[str, ...]
    remedy: tuple[str, ...]

    @property
    def sets(self) -> bool:
        return self.text.startswith("--set ")

    @property
    def file(self) -> str:
        return GOOD if self.sets else self.text


def more(text: str) -> str:
    return f"{GOOD}{text}\n"


MISTAKES = [
    # --- as TRL, verl, OpenRLHF and others call it ---
    Mistake(more("lr: 1e-6"), ("unknown key 'lr'", "line 3"), ("optimizer.learning_rate",)),
    Mistake(more("learning_rate: 1e-6"), ("'learning_rate'",), ("optimizer.learning_rate",)),
    Mistake(more("num_generations: 8"), ("'num_generations'",), ("rollout.group_size",)),
    Mistake(more("rollout: {n: 8}"), ("'rollout.n'",), ("rollout.group_size",)),
    Mistake(more("batch_size: 64"), ("'batch_size'",), ("rollout.groups",)),
    Mistake(more("per_device_train_batch_size: 4"), ("'per_device_train_batch_size'",), ("rollout.groups", "micro_tokens")),
    Mistake(more("gradient_accumulation_steps: 4"), ("'gradient_accumulation_steps'",), ("optimizer.micro_tokens",)),
    Mistake(more("max_steps: 100"), ("'max_steps'",), ("updates",)),
    Mistake(more("num_train_epochs: 3"), ("'num_train_epochs'",), ("updates",)),
    Mistake(more("beta: 0.04"), ("'beta'",), ("loss: [clip, {name: kl, weight:",)),
    Mistake(more("kl_coef: 0.001"), ("'kl_coef'",), ("name: kl",)),
    Mistake(more("entropy_coeff: 0.01"), ("'entropy_coeff'",), ("name: entropy",)),
    Mistake(more("clip_ratio: 0.2"), ("'clip_ratio'",), ("name: clip", "high")),
    Mistake(more("adv_estimator: gae"), ("'adv_estimator'",), ("credit",)),
    Mistake(more("algorithm: grop"), ("no algorithm 'grop' (line 3)",), ("'grpo'",)),
    Mistake(more("algorithm: remax"), ("'remax' is not offered", "greedy rollout"), ("list algorithms",)),
    Mistake(more("gamma: 0.99"), ("'gamma'",), ("credit", "discount")),
    Mistake(more("temperature: 0.7"), ("'temperature'",), ("sampling.temperature",)),
    Mistake(more("sampling: {max_new_tokens: 512}"), ("'sampling.max_new_tokens'",), ("sampling.max_tokens",)),
    Mistake(more("max_completion_length: 512"), ("'max_completion_length'",), ("sampling.max_tokens",)),
    Mistake(more("sampling: {top_p: 0.9}"), ("'sampling.top_p'",), ("sampling.temperature",)),
    Mistake(more("reward_funcs: [accuracy]"), ("'reward_funcs'",), ("reward",)),
    Mistake(more("use_vllm: true"), ("'use_vllm'",), ("engine.kind",)),
    Mistake(more("gpu_memory_utilization: 0.5"), ("'gpu_memory_utilization'",), ("engine.options",)),
    Mistake(more("output_dir: runs/x"), ("'output_dir'",), ("--out",)),
    Mistake(more("save_steps: 50"), ("'save_steps'",), ("checkpoint.every",)),
    Mistake(more("eval_steps: 50"), ("'eval_steps'",), ("evaluate.every",)),
    Mistake(more("report_to: wandb"), ("'report_to'",), ("sinks: [tensorboard, wandb]",)),
    Mistake("suite: shop/quick\nmodel_name_or_path: Qwen/Qwen3-0.6B\n", ("'model_name_or_path'",), ("model.path",)),
    Mistake("env: shop/quick\nmodel: {path: Qwen/Qwen3-0.6B}\n", ("unknown key 'env'", "no 'suite'"), ("suite",)),
    Mistake(
        "suite: shop/quick\nmodel: {path: Qwen/Qwen3-0.6B, lora: {r: 16, target_modules: all-linear}}\n",
        ("'model.lora.r'", "'model.lora.target_modules'"),
        ("model.lora.rank", "model.lora.targets"),
    ),
    # --- the wrong kind of thing ---
    Mistake("suite: shop/quick\nmodel: 7\n", ("'model'", "7 is given"), ("model: {path: Qwen/Qwen3-0.6B}",)),
    Mistake(more("engine: torch"), ("'engine'", "'torch'"), ("engine: {kind: torch}",)),
    Mistake(more("warm_start: true"), ("'warm_start'", "true"), ("warm_start: {",)),
    Mistake(more("rollout: 8"), ("'rollout'", "8"), ("rollout: {groups: 16}",)),
    Mistake(more("loss: clip"), ("'loss'", "'clip'"), ("loss: [clip]",)),
    Mistake(more("credit: [gae, rloo]"), ("'credit'",), ("credit: gae",)),
    Mistake(more("credit: {lam: 0.9}"), ("'credit'", "name"), ("credit: {name:",)),
    Mistake(more("updates: lots"), ("'updates'", "'lots'", "whole number"), ("updates: 100",)),
    Mistake(more("updates: 10.5"), ("'updates'", "10.5", "whole number"), ("updates: 100",)),
    Mistake(more("updates: -5"), ("'updates'", "-5"), ("0 or more",)),
    Mistake(more("rollout: {group_size: 0}"), ("'rollout.group_size'", "0"), ("more than 0",)),
    Mistake(more("rollout: {max_failed: 20}"), ("'rollout.max_failed'", "20"), ("at most 1",)),
    Mistake(more("optimizer: {betas: 0.9}"), ("'optimizer.betas'", "0.9"), ("[0.9, 0.95]",)),
    Mistake(more("optimizer: {learning_rate: small}"), ("'optimizer.learning_rate'", "number"), ("1.0e-06",)),
    Mistake(more("device: gpu"), ("'device'", "'gpu'"), ("auto, cpu, cuda",)),
    Mistake(more("engine: {kind: sglang}"), ("no engine 'sglang'", "line 3"), ("torch, vllm", "'turnwise.plugins'")),
    Mistake(more("rollout: {env_options: {since: 2026-01-01}}"), ("'rollout.env_options.since'", "date"), ("quotes",)),
    Mistake(more("about: [a, b]"), ("'about'", "text"), ("about:",)),
    Mistake(more("updates: yes"), ("'updates'", "true", "whole number"), ("updates: 100",)),
    Mistake(more("optimizer: {learning_rate: .inf}"), ("'optimizer.learning_rate'", "finite"), ("1.0e-06",)),
    Mistake(more("credit: {name: gae, lam: high}"), ("credit 'gae'", "lam='high'", "a number"), ("default",)),
    Mistake(more("loss: [{name: kl, estimator: k9}]"), ("loss 'kl'", "estimator='k9'", "'k1'"), ("default",)),
    Mistake(more("loss: [{name: clip, weight: lots}]"), ("'loss.0.weight'", "a number"), ("loss: [clip]",)),
    # --- names that do not exist ---
    Mistake("suite: shop/quik\nmodel: {path: Qwen/Qwen3-0.6B}\n", ("no suite 'shop/quik'",), ("'shop/quick'",)),
    Mistake(more("credit: ppo"), ("no credit 'ppo'",), ("gae", "clip")),
    Mistake(more("credit: rlo"), ("no credit 'rlo'",), ("'rloo'",)),
    Mistake(more("loss: [grpo]"), ("no loss 'grpo'",), ("clip", "credit: grpo")),
    Mistake(more("credit: {name: gae, lamda: 0.9}"), ("credit 'gae'", "'lamda'"), ("'lam'",)),
    Mistake(more("rolout: {groups: 8}"), ("'rolout'", "line 3"), ("'rollout'",)),
    Mistake(more("warm_start: {demonstrator: golden}"), ("'golden'",), ("'gold'",)),
    # --- together they cannot work ---
    Mistake("suite: shop/quick\nmodel: {path: x, scratch: {}}\n", ("loaded or made",), ("exactly one",)),
    Mistake("suite: shop/quick\nmodel: {lora: {rank: 8}}\n", ("loaded or made",), ("exactly one",)),
    Mistake(more("credit: gae\nrollout: {strategy: vine}"), ("can have no effect",), ("credit:",)),
    Mistake(more("credit: pure\nreward: success"), ("'pure'", "solved", "'success' pays no others"), ("as_is", "from_signal")),
    Mistake(more("rollout: {group_size: 1}"), ("nothing to a group of one",), ("group_size above 1",)),
    Mistake(more("evaluate: {every: 1000}"), ("no checkpoints to choose from",), ("evaluate.every",)),
    Mistake(more("source: [thought_dropout]"), ("'thought_dropout' has no path",), ("episodes.jsonl.zst",)),
    Mistake(more("source: [{name: thought_dropout, path: x, drop: 0}]"), ("drop=0",), ("up to 1", "source stored")),
    Mistake(more("source: [{name: conditioned, path: x, chances: -1}]"), ("chances=-1",), ("other chance (8)",)),
    Mistake(more("source: [{name: conditioned, path: x}]"), ("'Return: '", "no such words"), ("sampling: {instruction",)),
    Mistake(more("source: [{name: improved, path: x}]"), ("no log to compare with",), ("over: …",)),
    # --- given, and it would not hold ---
    Mistake(
        more("schedule: {sampling.temperature: linear}"),
        ("sets sampling.temperature to 0 in update 100 of 100",),
        ("to: …", "more than 0"),
    ),
    Mistake(more("optimizer: {learning_rate: 0}"), ("'optimizer.learning_rate'", "cannot be 0"), ("above 0", "schedule may bring it to 0")),
    Mistake(
        more("rollout: {groups: 0}\nloss: [dpo]\nsource: [{name: stored, path: x}]"),
        ("no source joins", "loss 'dpo' can do nothing"),
        ("join: true",),
    ),
    Mistake(
        more("credit: grpo\nloss: [dpo]\nsource: [{name: stored, path: x, join: true, weight: 0.1}]"),
        ("source 'stored' has a weight of its own", "whole minibatches"),
        ("Remove weight",),
    ),
    Mistake(
        more("source: [{name: stored, path: x, join: true, loss: [gspo]}]"),
        ("joins what was played", "'gspo' is of whole minibatches"),
        ("losses of tokens",),
    ),
    Mistake(
        more("loss: [gspo]\ncorrection: none\nguide: [{name: hint, correction: tis}]"),
        ("correction 'tis' of guide 'hint'", "one by one"),
        ("level: trajectory",),
    ),
    Mistake(more("guide: [{name: prefix, loss: [nll]}]"), ("guide 'prefix'", "read and not learned"), ("Remove loss",)),
    Mistake(
        more("source: [{name: demonstrations, correction: tis}]"), ("what a script says", "'tis'"), ("Remove the source's correction",)
    ),
    Mistake(
        more("credit: grpo\nloss: [dpo]\nrollout: {refill: {most: 64}}"),
        ("rollout.refill weighs groups", "'dpo'"),
        ("rollout.groups",),
    ),
    Mistake(
        more("credit: grpo\nloss: [dpo]\nfilter: {name: ranked, keep: power}"),
        ("filter 'ranked' weighs trajectories", "'dpo'"),
        ("keeps or drops",),
    ),
    Mistake(
        more("algorithm: dapo\nrollout: {groups: 8}"),
        ("optimizer.minibatches 16", "8 groups", "The algorithm 'dapo' sets optimizer.minibatches"),
        ("at most 8", "rollout.groups"),
    ),
    # --- several at once ---
    Mistake(
        "suite: {shop/quick: 1, shop/quik: -1}\nmodel: {path: Qwen/Qwen3-0.6B}\n",
        ("2 mistakes", "'suite.shop/quik' cannot be -1", "no suite 'shop/quik'"),
        ("more than 0", "Did you mean 'shop/quick'"),
    ),
    Mistake(
        more("lr: 1e-6\nupdates: many\ncredit: rlo\nrollout: {grops: 4}"),
        ("4 mistakes", "'lr'", "'updates'", "'rlo'", "'rollout.grops'"),
        ("optimizer.learning_rate", "'rloo'", "'groups'"),
    ),
    Mistake(
        more("rollout: {group_size: 1}\nevaluate: {every: 1000}"),
        ("2 mistakes", "nothing to a group of one", "no checkpoints"),
        ("group_size", "evaluate.every"),
    ),
    # --- YAML ---
    Mistake(more("updates: 10\nupdates: 20"), ("'updates'", "twice", "line 3", "line 4"), ("one of them",)),
    Mistake(more("optimizer: {epochs: 1, epochs: 2}"), ("'optimizer.epochs'", "twice"), ("one of them",)),
    Mistake(more("  updates: 10"), ("is no YAML", "line 3"), ("indent",)),
    Mistake(more("about: to learn: well"), ("is no YAML", "line 3", "second colon"), ("quotes",)),
    Mistake(more("rollout:\n\tgroups: 4"), ("is no YAML", "line 4", "tab"), ("indentation",)),
    Mistake(more("about: !!python/name:os.system"), ("is no YAML", "line 3"), ("Fix that line",)),
    Mistake("- suite: shop/quick\n", ("is no recipe",), ("mapping",)),
    Mistake("", ("is no recipe", "empty"), ("suite",)),
    Mistake(more("about: " + "[" * 3000), ("nested too deeply",), ("Write each value out",)),
    Mistake(more("7: x"), ("'7'", "unknown key"), ("Known here",)),
    # --- on the command line ---
    Mistake("--set updats=3", ("unknown key 'updats'", "--set"), ("'updates'",)),
    Mistake("--set lr=1e-6", ("unknown key 'lr'",), ("optimizer.learning_rate",)),
    Mistake("--set model=7", ("'model'",), ("model: {path: Qwen/Qwen3-0.6B}",)),
    Mistake("--set loss.clip=0.3", ("loss.clip is a part",), ("loss.clip.OPTION",)),
    Mistake("--set loss.kl.weight=0.1", ("no loss.kl",), ("loss=[", "name: kl")),
    Mistake("--set updates", ("no change",), ("key=value",)),
    Mistake("--set about=" + "[" * 3000, ("about", "cannot be read"), ("YAML",)),
]  # fmt: skip


def hear(mistake: Mistake, folder: object) -> str:
    """The message as the command line gives it."""
    from pathlib import Path

    from turnwise.cli.training import overrides
    from turnwise.errors import TurnwiseError
    from turnwise.trainers.recipe.load import load_recipe

    file = Path(str(folder)) / "my.yaml"
    file.write_text(mistake.file)
    try:
        load_recipe(file, overrides([mistake.text.removeprefix("--set ")] if mistake.sets else []))
    except TurnwiseError as error:
        return str(error).replace(str(file), "my.yaml")
    return "(accepted)"


def page() -> str:
    """docs/recipe-mistakes.md."""
    import tempfile

    said = [
        "# Recipe mistakes, and what Turnwise says\n",
        "Each block is a recipe file (or a change of a good one), and the message that it gets.\n"
        + "Where `suite` and `model` are right they are left out.\n",
        "This page is generated (`python tests/trainers/recipe_mistakes.py`); a test keeps it up to date.\n",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for mistake in MISTAKES:
            shown = mistake.text.removeprefix(GOOD) or "(an empty file)"
            shown = shown if len(shown) < 400 else f"{shown[:20]}… (3,000 brackets)"
            said.append(f"```yaml\n{shown.rstrip()}\n```\n```\n{hear(mistake, folder)}\n```\n")
    return "\n".join(said)


if __name__ == "__main__":
    from pathlib import Path

    target = Path(__file__).parents[2] / "docs" / "recipe-mistakes.md"
    target.write_text(page(), "utf-8")
    print(f"wrote {target}: {len(MISTAKES)} mistakes")
