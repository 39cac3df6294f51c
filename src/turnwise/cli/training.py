"""The commands for training agents: train, explain, report."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from turnwise.cli.answer import VerbResult
from turnwise.errors import TurnwiseError

if TYPE_CHECKING:
    from turnwise.console import SafeConsole
    from turnwise.trainers.recipe.schema import Recipe
    from turnwise.trainers.run.placement import Placement
    from turnwise.trainers.run.progress import TrainingResult
    from turnwise.trainers.run.world import RankPlace


def train(
    recipe: str,
    /,
    *,
    out: Path | None = None,
    resume: Annotated[bool, Parameter(negative=())] = False,
    preflight: bool = True,
    allow_changed_env: Annotated[bool, Parameter(negative=())] = False,
    on: str = "",
    with_parent: Annotated[bool, Parameter(negative=())] = False,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative=(), consume_multiple=True)] = None,
) -> VerbResult:
    """Train an agent by a recipe.

    For example: `turnwise train shop-quick --out runs/shop --set updates=20`.

    Started several times by torchrun (`torchrun --nproc-per-node 2 -m turnwise train …`), the processes learn together.

    Args:
        recipe: A recipe's name (`turnwise list recipes`) or a YAML file.
        out: The run's folder; runs/NAME without it.
        resume: Go on where the run in that folder stopped.
        preflight: Play a few scripted episodes first, and refuse a run that they show to be in vain.
        allow_changed_env: Resume although the environment's source has changed since the run was started.
        on: Where engines and environments are, such as local:engines=2,env_workers=8, and with ray: learners; in this process without it.
        with_parent: Be killed when the process that started this one ends.
        set_: Changes of the recipe, such as --set updates=50 loss.clip.high=0.3.
    """
    from turnwise.agents.remote.orphan import end_with_parent
    from turnwise.trainers.recipe.load import load_recipe
    from turnwise.trainers.run.loop import folder_of
    from turnwise.trainers.run.loop import train as train_recipe
    from turnwise.trainers.run.placement import parse_placement
    from turnwise.trainers.run.world import world_of

    if with_parent:
        end_with_parent(signal.SIGKILL)  # a learner that went on would hold the run's folder
    world = world_of(os.environ)
    if world is not None and world.rank:
        return _learn_beside(world, out or folder_of(recipe))
    placement = parse_placement(on) if on else None
    if placement is not None and placement.learners:
        flags = {
            "--resume": resume,
            "--no-preflight": not preflight,
            "--allow-changed-env": allow_changed_env,
        }
        given = [name for name, wanted in flags.items() if wanted]
        result = _placed_by_ray(recipe, out or folder_of(recipe), placement, given, set_ or [])
    else:
        result = train_recipe(
            load_recipe(recipe, overrides(set_ or [])),
            out=out or folder_of(recipe),
            resume=resume,
            preflight=preflight,
            allow_changed_env=allow_changed_env,
            on=on,
        )

    def show(console: SafeConsole) -> None:
        from turnwise.agents.evaluation.summary import comparison_table

        if result.evaluations:
            console.print(comparison_table(result.evaluations))
        if not result.learned and not result.interrupted:
            console.print(
                "Nothing was learned by reinforcement: no update had anything to learn from (docs/how-to/not-learning.md)."
            )
        state = "interrupted; go on with --resume" if result.interrupted else "done"
        console.print(f"{state} after {result.seconds:.0f} s, everything in {result.path}")

    return VerbResult(result.to_json(), show, code=130 if result.interrupted else 0)


def _placed_by_ray(
    recipe: str, out: Path, placement: Placement, flags: list[str], changes: list[str]
) -> TrainingResult:
    """Have Ray place the learners, the first of which is the run."""
    from turnwise.trainers.recipe.load import load_recipe
    from turnwise.trainers.run.by_ray import train_by_ray

    changes = [*changes, f"scale.learners={placement.learners}"]
    checked = load_recipe(recipe, overrides(changes))
    words = [str(Path(recipe).absolute()) if Path(recipe).is_file() else recipe, "--out", str(out.absolute())]
    words += [*flags, *(["--on", placement.beside] if placement.beside else [])]
    return train_by_ray(
        [*words, "--set", *changes],
        placement.learners,
        beside=placement.engines + (placement.env_workers or 0),
        device=checked.device,
        log=lambda line: print(line, file=sys.stderr, flush=True),
    )


def _learn_beside(world: RankPlace, run: Path) -> VerbResult:
    """Be one of several learners that torchrun has started, but the first."""
    from turnwise.trainers.run.rank import learn_beside
    from turnwise.trainers.run.world import joined

    with joined(world, run) as first:
        learn_beside(first.connection, first.meeting)
    done = {"run": str(run), "learner": world.rank, "learners": world.size}
    return VerbResult(done, lambda console: None)


def overrides(pairs: list[str], option: str = "--set") -> dict[str, object]:
    """``key=value`` texts as a mapping; values are YAML.

    >>> overrides(["updates=50", "credit.name=rloo", "eval.greedy=true"])
    {'updates': 50, 'credit.name': 'rloo', 'eval.greedy': True}
    """
    import yaml

    from turnwise.errors import RecipeError
    from turnwise.plain_yaml import read_yaml

    read: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise RecipeError(f"{option} {pair!r} is no change.", f"Write {option} key=value.")
        try:
            read[key] = read_yaml(value)
        except yaml.YAMLError as error:
            raise RecipeError(
                f"{option} {key}: {value[:60]!r} cannot be read.", "Values are YAML."
            ) from error
    return read


def explain(
    recipe: str,
    /,
    *,
    preflight: Annotated[bool, Parameter(negative=())] = False,
    bias: Annotated[bool, Parameter(negative=())] = False,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative=(), consume_multiple=True)] = None,
    from_: Annotated[str | None, Parameter(name="--from")] = None,
    sampling: int | None = None,
) -> VerbResult:
    """Print what a recipe optimises, in words and as a formula.

    For example: `turnwise explain shop-quick --set credit=grpo`; `turnwise explain run_grpo.sh --from verl`.

    The parts of a recipe are tried on small batches, for which torch is loaded. The answer is kept in ~/.cache/turnwise/explained
    and given again at once, as long as neither the recipe nor any file of code has changed.

    Args:
        recipe: A recipe's name or a YAML file.
        preflight: Also play a few scripted episodes, as `turnwise train` does before anything else.
        bias: Compute how its first step differs from the policy gradient on small exact processes, if that is not
            known yet (seconds, or a minute or two where a part looks beyond its group).
        set_: Changes of the recipe, such as --set loss.clip.high=0.3.
        from_: The trainer whose configuration the file is: trl, verl, prime-rl or nemo. Its objective is explained, with what is
            known of it, settings without effect, and the recipe of ours that means the same.
        sampling: Also say which tasks so many updates would play, if each task were solved with a chance of its own.
    """
    if from_ is not None:
        return _explain_other(
            Path(recipe),
            from_,
            bias=bias,
            unused=[
                *(set_ or []),
                *(["--preflight"] if preflight else []),
                *(["--sampling"] if sampling else []),
            ],
        )
    from turnwise.cli.explained import kept_answer, quick_loading

    if sampling is not None and sampling < 1:
        raise TurnwiseError(f"--sampling {sampling} shows no update.", "Give 1 or more.")
    changes = overrides(set_ or [])
    kept = None if preflight or bias or sampling else kept_answer(recipe, changes)
    answer = kept.read() if kept else None
    if answer is None:
        with contextlib.nullcontext() if preflight else quick_loading():
            from turnwise.cli.recipe_bias import bias_file
            from turnwise.trainers.recipe.explain import explain_recipe
            from turnwise.trainers.recipe.load import load_recipe

            checked = load_recipe(recipe, changes)
        lines, biases = _biases(checked, compute=bias)
        text = explain_recipe(checked) + "\n" + "\n".join(lines) + "\n"
        if preflight:
            from turnwise.trainers.run.ready import rehearse

            text += f"\n{rehearse(checked, Path('runs'))}\n"
        answer = {"recipe": recipe, "text": text, "bias": biases}
        if sampling:
            from turnwise.trainers.recipe.sampling import rehearse_sampling, sampling_lines

            found = rehearse_sampling(checked, sampling)
            answer["sampling"] = [[task._asdict() for task in update] for update in found]
            answer["text"] = text + "\n" + "\n".join(sampling_lines(found)) + "\n"
        if kept and not checked.phases:  # each of which has a bias of its own
            kept.write(answer, bias_file(checked))
    said = str(answer["text"])
    return VerbResult(answer, lambda console: console.print(said, soft_wrap=True))


def _explain_other(file: Path, trainer: str, *, bias: bool, unused: list[str]) -> VerbResult:
    """Explain a configuration of another trainer; its bias is that of the recipe that means the same."""
    from turnwise.trainers.others.explained import WITH_BIAS, as_recipe, explain_other, text_of, to_json

    if unused:
        raise TurnwiseError(f"{unused[0]} is of recipes of ours.", "Leave it out beside --from.")
    found = explain_other(trainer, file)
    answer, text = to_json(found), text_of(found)
    if bias:
        from turnwise.trainers.recipe.load import load_recipe

        lines, answer["bias"] = _biases(load_recipe(as_recipe(found)), compute=True)
        text += "\n" + "\n".join([WITH_BIAS, *lines]) + "\n"
    return VerbResult(
        answer, lambda console: console.print(text, soft_wrap=True, markup=False, highlight=False)
    )


def _biases(recipe: Recipe, *, compute: bool) -> tuple[list[str], dict[str, Any]]:
    """The bias of each phase of a recipe, in lines and by process."""
    from turnwise.cli.recipe_bias import bias_of
    from turnwise.trainers.lab.recipe_bias import shown
    from turnwise.trainers.recipe.phases import phases_of

    lines, found = list[str](), dict[str, Any]()
    for phase in phases_of(recipe):
        of, lead = (f" of phase {phase.name}", f"{phase.name}: ") if phase.name else ("", "")
        biases = bias_of(phase.recipe, compute=compute)
        found |= {f"{lead}{name}": one.to_json() for name, one in (biases or {}).items()}
        lines += [f"Phase {phase.name}"] if biases and phase.name else []
        lines += shown(biases) if biases else [f"Bias of the whole recipe{of}: not computed yet (`--bias`)."]
    return lines, found


def report(run: Path, /) -> VerbResult:
    """Write a run's report.html: one file that holds everything.

    For example: `turnwise report runs/shop`.

    Args:
        run: The run's folder.
    """
    from turnwise.trainers.report.page import write_report

    path = write_report(run)
    return VerbResult({"report": str(path)}, lambda console: console.print(f"wrote {path}"))


VERBS: dict[str, Callable[..., VerbResult]] = {"train": train, "explain": explain, "report": report}
