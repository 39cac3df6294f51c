"""``turnwise bench update``: a whole update (play, credit, learn, push) beside TRL's GRPOTrainer, and as turns grow.

Turnwise's side are real runs by ``turnwise.train``; TRL's is ``GRPOTrainer.train`` with a ``rollout_func``, its interface for
episodes of several turns (:mod:`turnwise.trainers.bench.trl_update`). **The same** means here: the tasks of shop/quick that
Turnwise's run drew, in its order; one model, that of the recipe shop-quick with random weights, in float32; as many episodes
an update, in groups as large; GRPO's advantages, PPO's clipped loss over all sampled tokens, as many optimizer steps; the same
number of threads, in a process for each side, of which one works at a time. A policy of random weights says ``max_tokens``
nearly every turn and never buys, so every episode has as many turns as the suite allows: **lengths are equal by
construction**, no batch has a ragged end, and no reward differs, so that no side's policy moves away from the other's. Each
side counts what it did, and the benchmark refuses to compare where counts differ by more than :data:`~turnwise.trainers.bench.laps.ALIKE`.

With ``--model`` a published model takes the small one's place, on CUDA where there is one for both sides: a copy with a head of its own that
never ends a message, so that lengths are equal here too. Its answers mean nothing; its sizes are what counts.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import LogReader
from turnwise.agents.models.loading import load_causal, load_config, load_tokenizer, longest_sequence
from turnwise.agents.models.small import build_small_model
from turnwise.agents.models.vocabulary import end_ids
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.bench.memory import BenchmarkFigure
from turnwise.envs.registry import get_suite, register_suite, suite_tasks
from turnwise.errors import MissingDependencyError, TurnwiseError
from turnwise.tasks.core import Split
from turnwise.trainers.bench.apart import Apart
from turnwise.trainers.bench.laps import (
    RECIPE,
    TRL,
    Played,
    UpdateLap,
    UpdateWorkload,
    check_alike,
    middle,
    multiply_adds,
    token_ratio,
)
from turnwise.trainers.bench.prefix_batches import log_of
from turnwise.trainers.bench.update_log import bench_log, logged_update
from turnwise.trainers.learn.warm_start import texts
from turnwise.trainers.run.learning import learning_setup
from turnwise.trainers.run.loop import train

OF_A_MODEL = UpdateWorkload(trl_rows=8, times=())
"""Of a published model on a GPU; on a CPU :func:`of_a_model` makes it as small as comes to an end."""


def bench_update(
    run: str = "", *, repeats: int = 2, workload: UpdateWorkload | None = None
) -> dict[str, BenchmarkFigure]:
    """Seconds of a whole update, and ratios; medians over rounds, spread = largest − smallest.

    With a run also those of its last update (:func:`~turnwise.trainers.bench.update_log.bench_log`).

    * ``torch``, ``vllm``: Turnwise with this engine in process; ``…_play``, ``…_learn`` and ``…_push`` are its parts.
    * ``trl_transformers``: TRL with ``generate`` of transformers, one batch for each turn of all episodes; ``…_play`` is its
      rollout function, ``…_learn`` all else. It has nothing to push: it generates by the model that it trains.
    * ``times_trl_ENGINE``: TRL's seconds divided by Turnwise's of the same round. Like is beside like with ``torch``.
    * ``sampled``, ``read``: tokens of an update, of the policy and in all; ``threads``.
    * ``token_ratio``: the latter divided by the distinct prefixes of each group, which is what Turnwise's learner reads of it.
    * ``turns_N_times``: seconds with N times the turns, divided by those with one time, divided by what arithmetic says (the ratio
      of multiply-adds of the layers and of attention over what was played): 1 where an update costs what its tokens cost, less
      where part of it is fixed. ``turns_doubled_to_N``: the same of the last doubling alone, in which fixed costs weigh little.

    Raises:
        MissingDependencyError: a model was given, and TRL is not installed.
        TurnwiseError: the run has no update that both sides can learn.
        RunError: the sides did not do the same.
    """
    load = workload or UpdateWorkload()
    logged = logged_update(log_of(run)) if run else None  # before anything is measured
    if load.model and find_spec("trl") is None:
        raise MissingDependencyError(
            "An update of a published model is measured beside TRL's, and TRL is not installed.",
            "pip install trl",
        )
    load = load._replace(
        trl=_with_trl() if load.trl is None else load.trl, threads=load.threads or torch.get_num_threads()
    )
    with tempfile.TemporaryDirectory(prefix="turnwise-bench-") as folder, ExitStack() as stack:
        sides = [*load.engines, *([TRL] if load.trl else [])]
        processes = {side: stack.enter_context(Apart()) for side in sides}
        model, long = Path(folder, "model"), Path(folder, "long")
        processes[sides[0]].call(make_models, model, long, load)
        rounds = [
            {
                **_beside(Path(folder, f"{number}"), model, load, processes),
                **_growth(Path(folder, f"{number}-turns"), long, load, processes[load.engines[-1]]),
            }
            for number in range(repeats)
        ]
    found = {name: _figure([one[name] for one in rounds], _unit(name)) for name in rounds[0]}
    return found if logged is None else found | bench_log(logged, load, repeats=repeats)


def of_a_model(folder: str) -> UpdateWorkload:
    """Return the size of the runs of a published model here."""
    if torch.cuda.is_available():
        return OF_A_MODEL._replace(model=folder)
    return OF_A_MODEL._replace(model=folder, groups=2, group_size=2, updates=1, engines=("torch",))


def _with_trl() -> bool:
    """Say whether TRL is installed; warn where it is not."""
    there = find_spec("trl") is not None
    if not there:
        warnings.warn("TRL is not installed: no figures of it. Remedy: pip install trl", stacklevel=3)
    return there


def make_models(model: Path, long: Path, load: UpdateWorkload) -> None:
    """The recipe's model with random weights, or a copy of a published one; in ``long`` the small one with room for the longest episodes."""
    if load.model:
        never_ends(Path(load.model), model)
        return
    setup = learning_setup(RECIPE, {})
    requests = [Request(task, 0) for task in suite_tasks(get_suite(setup.suite), Split.TRAIN, 40)]
    said = texts([one.trajectory for one in run_episodes(requests, scripted(setup.demonstrator))])
    sizes = {**setup.sizes, "init": "random"}
    build_small_model(model, said, **sizes)
    room = int(setup.sizes["context"]) * max(8, *(load.turns * times for times in (1, *load.times))) // 8
    build_small_model(long, said, **{**sizes, "context": room})
    for folder in (model, long):
        never_ends(folder, folder)


@torch.no_grad()
def never_ends(source: Path, folder: Path) -> None:
    """Save a model of the Llama kind in ``folder`` so that it never ends a message.

    The first channel of the residual stream is the same for all tokens and nothing writes to it; the rows of the tokens that
    end messages read it alone, negatively, and no other row reads it. A head that is the embedding becomes one of its own.

    Raises:
        TurnwiseError: the model is of another kind.
    """
    model: Any = load_causal(source, torch.float32)
    tokenizer = load_tokenizer(source)
    layers = getattr(model.get_decoder(), "layers", ())
    if not layers or not all(hasattr(layers[0], part) for part in ("self_attn", "mlp", "input_layernorm")):
        raise TurnwiseError(
            f"{type(model).__name__} has no layers of the Llama kind.",
            "turnwise bench update --model smollm2",
        )
    if model.config.tie_word_embeddings:
        model.config.tie_word_embeddings = False
        model.lm_head.weight = nn.Parameter(model.lm_head.weight.clone())
    model.get_input_embeddings().weight[:, 0] = 1.0
    model.get_decoder().norm.weight[0] = model.get_decoder().norm.weight[0].abs().clamp(min=1.0)
    for layer in layers:
        layer.self_attn.o_proj.weight[0] = 0.0
        layer.mlp.down_proj.weight[0] = 0.0
    head = model.get_output_embeddings().weight
    head[:, 0] = 0.0
    for token in {*Renderer(tokenizer).stop_ids, *end_ids(source)}:
        head[token] = 0.0
        head[token, 0] = -1000.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _beside(out: Path, model: Path, load: UpdateWorkload, processes: Mapping[str, Apart]) -> dict[str, float]:
    """A run of each side, one after the other."""
    figures, sides = dict[str, float](), dict[str, Played]()
    changes = _changes(model, load, load.groups)
    for kind in load.engines:
        sides[kind] = processes[kind].call(play, out / kind, {**changes, "engine.kind": kind}, load)
        figures |= _parts(kind, sides[kind].laps, push=True)
    first = sides[load.engines[0]]
    figures |= {"sampled": middle(first.laps, "sampled"), "read": middle(first.laps, "read")}
    figures["token_ratio"] = first.token_ratio
    if load.trl:
        from turnwise.trainers.bench.trl_update import trl_updates

        sides[TRL] = processes[TRL].call(trl_updates, RECIPE, model, out / TRL, first.tasks, load)
        figures |= _parts(TRL, sides[TRL].laps, push=False)
        for kind in load.engines:
            figures[f"times_trl_{kind}"] = figures[TRL] / figures[kind]
    check_alike(sides)
    return figures | {"threads": first.threads}


def play(out: Path, changes: Mapping[str, Any], load: UpdateWorkload) -> Played:
    """A run of Turnwise, in this process."""
    torch.set_num_threads(load.threads)
    turns = changes["turns"]
    suite = f"bench/shop-quick-{turns}"
    given = get_suite(learning_setup(RECIPE, {}).suite)
    register_suite(dataclasses.replace(given, name=suite, knobs={**given.knobs, "turn_limit": turns}))
    updates = load.skipped + load.updates + 1  # the last one is evaluated, and does not count
    whole = {name: value for name, value in changes.items() if name != "turns"}
    whole |= {"suite": suite, "updates": updates, "evaluate.every": updates, "checkpoint.every": updates}
    train(RECIPE, out=out, preflight=False, log=lambda line: None, **whole)
    lines = (out / "metrics.jsonl").read_text().splitlines()
    rows: list[dict[str, Any]] = [row for row in map(json.loads, lines) if row["phase"] == "rl"]
    groups: dict[tuple[int, int], list[Episode]] = defaultdict(list)
    counts = [[0, 0, 0, 0] for _ in rows]
    for record in LogReader(out / "episodes.jsonl.zst"):
        assert record.update is not None
        assert record.group is not None
        groups[record.update, record.group].append(record.episode)
        said = record.episode.trajectory.turns
        sampled = sum(len(turn.reply.action_ids) for turn in said)
        read = sampled + sum(len(turn.reply.prompt_ids) for turn in said)
        for place, more in enumerate((1, len(said), sampled, read)):
            counts[record.update - 1][place] += more
    laps = [_lap(row, counts[row["update"] - 1]) for row in rows]
    ordered = [groups[key][0].task for key in sorted(groups)]
    return Played(laps[load.skipped : -1], ordered, torch.get_num_threads(), token_ratio([*groups.values()]))


def _lap(row: Mapping[str, Any], count: Sequence[int]) -> UpdateLap:
    steps = learning_setup(RECIPE, {}).optimizer.minibatches
    episodes, turns, sampled, read = count
    return UpdateLap(
        row["seconds"], row["rollout_seconds"], row["learn_seconds"], row["sync_seconds"],
        episodes, turns, sampled, read, steps,
    )  # fmt: skip


def _changes(model: Path, load: UpdateWorkload, groups: int, turns: int = 8) -> dict[str, Any]:
    episodes = groups * load.group_size
    return {
        **(_of_its_size(model) if load.model else {}),
        "turns": turns,
        "model": {"path": str(model)},
        "warm_start": None,
        "engine.max_sequences": episodes,
        "rollout": {
            "groups": groups,
            "group_size": load.group_size,
            "concurrency": episodes,
            "max_vacuous": 0,
        },
        "credit": "grpo",
        "loss": ["clip"],
        "reduce": "token_mean",
        "filter": "any",
        "evaluate.dev": 1,
        "evaluate.test": 1,
        "sinks": [],
    }


def _of_its_size(model: Path) -> dict[str, Any]:
    """Return what a published model needs: passes and contexts that are shorter than it could have."""
    longest = longest_sequence(load_config(model)) or 2048
    return {"optimizer.micro_tokens": 4096, "engine.context_length": min(2048, longest)}


# --- turns ---------------------------------------------------------------------------------------------


def _growth(out: Path, model: Path, load: UpdateWorkload, process: Apart) -> dict[str, float]:
    """Measure how an update's seconds grow with its turns, beside its arithmetic."""
    if not load.times:
        return {}
    sizes = learning_setup(RECIPE, {}).sizes
    seconds, operations = dict[int, float](), dict[int, float]()
    for times in (1, *load.times):
        changes = _changes(model, load, load.grown_groups, load.turns * times)
        changes["engine.kind"] = load.engines[-1]
        laps = process.call(play, out / str(times), changes, load).laps
        seconds[times] = middle(laps, "seconds")
        operations[times] = statistics.median(multiply_adds(lap, sizes) for lap in laps)
    figures = {f"turns_{times}_times_s": taken for times, taken in seconds.items()}
    for times in load.times:
        figures[f"turns_{times}_times"] = seconds[times] / seconds[1] * operations[1] / operations[times]
    if load.times:
        last, before = load.times[-1], (1, *load.times)[-2]
        grown = seconds[last] / seconds[before]
        figures[f"turns_doubled_to_{last}"] = grown * operations[before] / operations[last]
    return figures


# --- figures -------------------------------------------------------------------------------------------


def _parts(name: str, laps: Sequence[UpdateLap], *, push: bool) -> dict[str, float]:
    parts = {"": "seconds", "_play": "play_s", "_learn": "learn_s", **({"_push": "push_s"} if push else {})}
    return {f"{name}{ending}": middle(laps, field) for ending, field in parts.items()}


def _unit(name: str) -> str:
    if name in ("sampled", "read"):
        return "tokens"
    if name == "threads":
        return ""
    return "×" if name.startswith(("times", "turns", "token")) and not name.endswith("_s") else "s"


def _figure(values: Sequence[float], unit: str) -> BenchmarkFigure:
    return BenchmarkFigure(statistics.median(values), unit, max(values) - min(values))
