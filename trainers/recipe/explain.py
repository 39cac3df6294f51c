"""Say what a recipe optimises: its objective as a formula, and each part in words."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from turnwise.trainers.learn.options import imitated
from turnwise.trainers.recipe.algorithms import departures, get_algorithm, shown
from turnwise.trainers.recipe.load import RecipeLike, load_recipe
from turnwise.trainers.recipe.numbers import number_at
from turnwise.trainers.recipe.part import LossPart, Part, departing
from turnwise.trainers.recipe.phases import RunPhase, phases_of
from turnwise.trainers.recipe.schema import Recipe

WIDTH = 110


def explain(recipe: RecipeLike, /, **overrides: Any) -> str:
    """Say what a recipe optimises: its objective as a formula, and each part in words.

    Args:
        recipe: the name of one that comes with Turnwise, the path of a YAML file, a mapping, or a :class:`Recipe`.
        overrides: keys of the recipe with their values; dotted ones as ``**{"rollout.groups": 4}``.

    Returns:
        The text that `turnwise explain` prints.

    Raises:
        RecipeError: the recipe is not right.
    """
    return explain_recipe(load_recipe(recipe, overrides))


def explain_recipe(recipe: Recipe) -> str:
    """The objective of a recipe, in a formula and in words."""
    lines = [*textwrap.wrap(recipe.about, WIDTH), ""] if recipe.about else []
    phases, told = phases_of(recipe), set[str]()
    for number, phase in enumerate(phases, 1):
        last = number == len(phases)
        if phase.name:
            span = f"updates {phase.first + 1} to {phase.end}"
            lines += [f"Phase {number} of {len(phases)}: {phase.name} ({span})", ""]
        lines += _algorithm(phase.recipe)
        lines += ["Objective (descended)", f"  L(θ) = {_formula(phase.recipe)}", ""]
        lines += [f"  {symbol:<6} {meaning}" for symbol, meaning in _symbols(phase.recipe, later=number > 1)]
        lines += ["", "Run", *(f"  {line}" for line in _run(phase, recipe, last=last))]
        lines += ["", "Parts, in the order in which a batch passes them"]
        lines += [line for seam, part in _parts(phase.recipe) for line in _part(seam, part, told)]
        lines += [] if last else [""]
    return "\n".join(lines) + "\n"


def _algorithm(recipe: Recipe) -> list[str]:
    """Say what the algorithm that the recipe names stands for, and where the recipe says otherwise."""
    if recipe.algorithm is None:
        return []
    algorithm = get_algorithm(recipe.algorithm)
    lines = [f"Algorithm: {algorithm.name}  [arXiv {algorithm.paper}]", f"  {algorithm.about}"]
    lines += [f"  {key}: {shown(value)}" for key, value in algorithm.sets.items()]
    told = [("Here otherwise than in the paper", algorithm.ours), ("Left out", algorithm.left_out)]
    lines += [line for title, text in told if text for line in _indented(f"{title}: {text}")]
    return [*lines, *(f"  This recipe departs from it: {line}." for line in departures(recipe)), ""]


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")


def _formula(recipe: Recipe) -> str:
    weight = f"{recipe.optimizer.value_weight:g}"
    fitted = "".join(f" + {weight}·{term}" for _, term in _told(recipe, "objective"))
    shown = "".join(
        f" + {'' if part.weight == 1 else f'{part.weight:g}·'}{_sum(part.loss or [LossPart(name='nll')], 's', 'M_s')}"
        for part in recipe.source
    )
    return f"{_sum(recipe.loss, 't', 'M')}{shown}{fitted}"


def _sum(losses: Sequence[LossPart], token: str, minibatch: str) -> str:
    """Losses of tokens, in brackets under their sum, and those of the whole minibatch."""
    tokens = [(part.weight, f"ℓ_{part.name}({token})") for part in losses if not part.whole]
    whole = [(part.weight, f"L_{part.name}({minibatch})") for part in losses if part.whole]
    terms = [f"Σ_{token} w_{token}·[{_terms(tokens)}]"] if tokens else []
    return " + ".join([*terms, *([_terms(whole)] if whole else [])])


def _terms(terms: Sequence[tuple[float, str]]) -> str:
    first, *others = (f"{'−' if w < 0 else '+'} {'' if abs(w) == 1 else f'{abs(w):g}·'}{x}" for w, x in terms)
    return " ".join([first.removeprefix("+ "), *others])


def _told(recipe: Recipe, attribute: str) -> list[tuple[str, Any]]:
    """Return what the recipe's signals say of those of their names that are needed, under an attribute of their class."""
    return [
        (name, said)
        for chosen in recipe.sources
        for name, said in getattr(chosen.entry.target, attribute, {}).items()
        if name in recipe.needs
    ]


def _symbols(recipe: Recipe, *, later: bool) -> list[tuple[str, str]]:
    """``later``: of a phase that others came before."""
    start = "after the warm start" if recipe.warm_start else "it is trained from"
    start = "as the phase begins" if later else start
    start += ", and after each reset as it then is" if "optimizer.resets" in recipe.schedule else ""
    old = (
        "the policy that played this update" if recipe.steps > 1 else "π itself: there is one step per update"
    )
    symbols = [
        ("t", "a token that the policy sampled; no other token carries loss"),
        ("k", "a turn: one message of the policy and what the environment answered"),
        ("π", f"the policy, at temperature {recipe.sampling.temperature:g}; π_old: {old}"),
        ("w_t", f"weight of the reducer `{recipe.reduce.name}`; its denominator is the whole minibatch's"),
        (
            "A_t",
            f"the advantage in the losses: c_t·A_k, where credit `{recipe.credit.name}` gives turn k of t its A_k",
        ),
        ("c_t", f"the correction `{recipe.correction.name}` of the gap between engine and trainer"),
    ]
    if any(part.whole for part in recipe.loss):
        symbols.append(("M", "the minibatch as a whole: its tokens, groups and returns"))
    symbols += [
        ("s", f"a token that source `{part.name}` shows; its advantage is 1") for part in recipe.source
    ]
    if recipe.teacher:
        symbols.append(("q", f"the teacher `{recipe.teacher.name}`"))
    if "reference" in recipe.needs:
        symbols.append(("π_ref", f"the model {start}, frozen"))
    symbols += [symbol for _, symbol in _told(recipe, "symbols")]
    return symbols


def _parts(recipe: Recipe) -> list[tuple[str, Part]]:
    first = [("sampler", recipe.rollout.sampler), ("strategy", recipe.rollout.strategy)]
    signals = [("signal", Part(name=entry.name, **options)) for entry, options in recipe.sources]
    return [
        *first,
        *(("guide", part) for part in recipe.guide),
        *(("judge", part) for part in recipe.judge),
        *(("proposer", part) for part in recipe.proposer),
        *(("source", part) for part in recipe.source),
        *([("teacher", recipe.teacher)] if recipe.teacher else []),
        *signals,
        *(("reward", part) for part in recipe.reward),
        *((seam, getattr(recipe, seam)) for seam in ("credit", "filter")),
        *(("shape", part) for part in recipe.shape),
        ("correction", recipe.correction),
        *(("loss", part) for part in recipe.loss),
        ("reduce", recipe.reduce),
    ]


def _part(seam: str, part: Part, told: set[str]) -> list[str]:
    """A part in words, or by its name alone where an earlier phase has ``told`` of it."""
    entry = part.component(seam)
    paper = f"  [arXiv {entry.paper}]" if re.fullmatch(r"\d{4}\.\d{4,5}", entry.paper) else ""
    line = f"  {seam}: {_called(seam, part)}{paper}"
    if line in told:
        return ["", f"{line} (above)"]
    told.add(line)
    lines = ["", line]
    said = inspect.cleandoc(entry.target.__doc__ or "").partition("Worked by hand")[0].partition(">>>")[0]
    lines += [f"      {line}".rstrip() for line in said.strip().replace("``", "`").splitlines()]
    if entry.bias:
        lines += textwrap.wrap(_bias(seam, part), WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    if seam == "credit":
        lines.append(f"      Of an agent with several conversations it sees {entry.sees}.")
    return lines


def _bias(seam: str, part: Part) -> str:
    """Say what a part declares of its bias, which it does with its defaults."""
    declared, said = part.component(seam).bias, "As an estimate of the policy gradient"
    others = {name: value for name, value in departing(part, seam).items() if name not in declared}
    if not others or not declared.startswith("unbiased"):
        return f"{said}: {declared}."
    given = ", ".join(f"{name}={value}" for name, value in others.items())
    return f"{said} with its defaults: {declared}; with {given}: what `turnwise explain --bias` measures."


def _called(seam: str, part: Part) -> str:
    """A part with all its options."""
    options = {**part.component(seam).options, **part.options}
    return f"{part.name}({', '.join(f'{name}={value}' for name, value in options.items())})"


def _run(phase: RunPhase, whole: Recipe, *, last: bool) -> list[str]:
    """Describe what is done in a phase; its evaluations on test are the whole run's and said of the ``last`` one."""
    recipe = phase.recipe
    rollout, optimizer, warm = recipe.rollout, recipe.optimizer, recipe.warm_start
    made = recipe.model.scratch
    model = f"a model from scratch, {made.layers} layers of {made.width}" if made else recipe.model.path
    adapters = f", by adapters of rank {recipe.model.lora.rank}" if recipe.model.lora else ""
    lines = [f"model: {model}{adapters}; {recipe.engine.kind} samples from it"]
    if warm is not None:
        lines.append(
            f"warm start: cross-entropy on {warm.episodes} {imitated(warm.demonstrator, warm.chats)} "
            f"(observations weigh {warm.observation_weight:g})"
        )
    played = f"{rollout.groups} tasks × {rollout.group_size} episodes"
    steps = f"{recipe.steps} AdamW step{'s' if recipe.steps > 1 else ''} at rate {optimizer.learning_rate:g}"
    suites = recipe.suites
    several = len(suites) > 1
    total = sum(suites.values())
    on = (
        ", ".join(f"{name} ({100 * w / total:.3g} %)" for name, w in suites.items())
        if several
        else next(iter(suites))
    )
    lines.append(f"then {recipe.updates} updates on {on}, each of {played} and {steps}")
    lines.append(f"objective: the mean over {rollout.sampler.component('sampler').target.over}")
    lines += [
        f"beside them each update plays the tasks that proposer {part.name} makes of what was played, in groups of their own; they are "
        f"{f'kept for {part.keep} later updates' if part.keep else 'kept for no later one'}"
        for part in recipe.proposer
    ]
    lines += _sampling(recipe)
    if ahead := recipe.scale.staleness:
        most = (ahead + 1) * recipe.steps - 1
        lines.append(
            f"asynchronous: played up to {ahead} update{'s' if ahead > 1 else ''} ahead, so that a token is trained on at most "
            f"{ahead} version{'s' if ahead > 1 else ''} ({most} optimizer steps) after it was sampled; kv: {recipe.scale.kv}"
        )
    if recipe.model.lora:
        lines.append(
            "adapters are merged on their way to the engine, which gets all weights after each update"
        )
    if recipe.scale.learners > 1:
        lines.append(
            f"{recipe.scale.learners} learners take every step together, each with its share of the rows; denominators are "
            "of the whole minibatch"
        )
    lines += [
        f"{key}: {number_at(recipe, key):g} at first, then by {_called('schedule', part)}"
        for key, part in recipe.schedule.items()
    ]
    looks, each = whole.evaluate, " of each suite" if several else ""
    by = ", by the weighted mean" if several else ""
    end = ", and after the last one of the phase," if phase.name else ""
    lines.append(f"every {looks.every} updates{end} {looks.dev} dev tasks{each} choose the checkpoint{by}")
    if not last:
        return lines
    lines.append(f"{looks.test} test tasks{each} judge it, before and after, sampled and greedily")
    return lines


def _sampling(recipe: Recipe) -> list[str]:
    """Describe what refill adds to an update, and name a signal that waits for tasks to return though none does."""
    lines: list[str] = []
    if refill := recipe.rollout.refill:
        lines.append(
            f"refill: rounds of {recipe.rollout.groups} tasks until {refill.informative} groups are informative or "
            f"{refill.most} tasks are played"
        )
        lines.append("  (weighed so that the expected update is that of a fixed number of tasks)")
    remember = [chosen.entry.name for chosen in recipe.sources if "memory" in chosen.entry.reads]
    sampler = recipe.rollout.sampler
    if remember and not sampler.component("sampler").target.returns:
        lines.append(
            f"signal {remember[0]} waits for tasks to return, and with sampler {sampler.name} none does, unless the"
        )
        lines.append("  generator makes one twice: set rollout.sampler: {name: pool, size: …}")
    return lines
