"""The commands for authors of environments: list, check, play, new-env."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from turnwise.cli.answer import Json, VerbResult, table

if TYPE_CHECKING:
    from turnwise.agents.core import Episode
    from turnwise.console import SafeConsole
    from turnwise.envs.check.command import CheckReport
    from turnwise.envs.check.fairness import Fairness
    from turnwise.envs.check.survey import Survey
    from turnwise.tasks.core import Task


def list_(kind: str = "", /) -> VerbResult:
    """List what there is of a kind, each with the package that it comes with; without a kind, the kinds.

    For example: `turnwise list suites`.

    Args:
        kind: envs, suites, benchmarks, panels, recipes, algorithms, or a kind of component: credit, loss, engine, policy, ...
    """
    from turnwise.errors import NotFoundError
    from turnwise.kinds import KINDS

    kinds: dict[str, Callable[[], list[dict[str, Json]]]] = {
        "envs": _envs,
        "suites": _suites,
        "benchmarks": _benchmarks,
        "panels": _panels,
        "recipes": _recipes,
        "algorithms": _algorithms,
        **{name: lambda name=name: _components(name) for name in KINDS},
        "policy": _policies,
    }
    if not kind:
        about = {
            "envs": "Environments.",
            "suites": "Endless tasks by name.",
            "benchmarks": "Published benchmarks that play here, what each needs and where it comes from.",
            "panels": "Lists of tasks that stay as they are, for results that compare (turnwise eval panel/NAME).",
            "recipes": "Runs that come with us.",
            "algorithms": "Training algorithms by the names of the field, and what a recipe makes of them.",
        }
        rows: list[dict[str, Json]] = [
            {"name": name, "about": about[name] if name in about else KINDS[name].about} for name in kinds
        ]
    elif kind in kinds:
        rows = kinds[kind]()
    else:
        raise NotFoundError("kind", kind, kinds)
    shown = [key for key in _SHOWN if any(row.get(key) for row in rows)]
    return VerbResult(rows, table(rows, shown))


_SHOWN = (
    "name",
    "package",
    "spec",
    "about",
    "tasks",
    "hash",
    "requires",
    "source",
    "summary",
    "bias",
    "sees",
    "options",
)  # on a terminal; --json has everything


def _envs() -> list[dict[str, Json]]:
    from turnwise.envs.registry import env_entries

    return [{"name": entry.name, "about": entry.about, "package": entry.package} for entry in env_entries()]


def _suites() -> list[dict[str, Json]]:
    from turnwise.envs.registry import suites

    return [
        {"name": s.name, "env": s.env, "about": s.about, "size": s.size, "knobs": dict(s.knobs)}
        for s in suites()
    ]


def _benchmarks() -> list[dict[str, Json]]:
    from turnwise.envs.benchmarks import BENCHMARKS

    return [each._asdict() for known in BENCHMARKS.values() for each in known]


def _panels() -> list[dict[str, Json]]:
    from turnwise.envs.panels import panels, read_panel

    found = [read_panel(name) for name in panels()]
    return [
        {
            "name": f"panel/{panel.name}-{panel.version}",
            "about": panel.about,
            "tasks": ", ".join(f"{part.suite} {len(part.tasks)}" for part in panel.parts),
            "hash": panel.hash,
        }
        for panel in found
    ]


def _policies() -> list[dict[str, Json]]:
    from turnwise.agents.policies.registry import policies, spec_form

    return [
        {"name": entry.name, "spec": spec_form(entry), "about": entry.summary, "package": entry.package}
        for entry in policies()
    ]


def _recipes() -> list[dict[str, Json]]:
    from turnwise.trainers.recipe.load import load_recipe, recipe_names

    return [{"name": name, "about": load_recipe(name).about.strip()} for name in recipe_names()]


def _algorithms() -> list[dict[str, Json]]:
    from turnwise.trainers.recipe.algorithms import ALGORITHMS, shown

    return [
        each._asdict()
        | {"sets": dict(each.sets), "options": "; ".join(f"{k}: {shown(v)}" for k, v in each.sets.items())}
        for each in ALGORITHMS.values()
    ]


def _components(kind: str) -> list[dict[str, Json]]:
    from turnwise.registry import components

    return [
        {"name": c.name, "package": c.package, "paper": c.paper, "needs": list(c.needs), "bias": c.bias}
        | ({"sees": c.sees} if c.kind == "credit" else {})
        | ({"objective": c.objective} if c.kind == "loss" else {})
        | {"summary": c.summary, "options": c.options}
        for c in components(kind)
    ]


def show_card(console: SafeConsole, report: CheckReport) -> None:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    from turnwise.envs.check.command import REQUIREMENTS

    card = Table(box=None, show_header=False, padding=(0, 1))
    for name, result in report.requirements.items():
        mark = Text("✓", "green") if result.ok else Text("✗", "red")
        card.add_row(mark, name, REQUIREMENTS[name][0], result.detail.replace("; ", "\n"))
    for unseen in report.unseen:
        requirement, _, said = unseen.partition(": ")
        card.add_row(Text("–", "yellow"), requirement, "not seen", said)
    verdict = ("keeps the contract", "green") if report.ok else ("breaks the contract", "red")
    title = Text.assemble(report.env, " ", verdict)
    console.print(Panel(card, title=title, title_align="left"))


def survey(*names: str, gold: int = 1000, baselines: int = 1000, tasks: int = 10_000) -> VerbResult:
    """Play the gold policy and trivial baselines on many tasks of suites, and check the splits.

    For example: `turnwise survey shop/easy --gold 200 --baselines 200`.

    Args:
        names: Suites (lab/easy), environments (turnwise/Lab-v0) or families (lab).
        gold: How many tasks of each suite the scripted solution plays.
        baselines: How many each trivial baseline plays.
        tasks: How many tasks of each suite are compared.
    """
    from turnwise.envs.check.survey import suites_of
    from turnwise.envs.check.survey import survey as survey_suite

    found = [survey_suite(suite, gold=gold, baselines=baselines, tasks=tasks) for suite in suites_of(names)]
    ok = all(row.ok for row in found)
    return VerbResult(
        {"ok": ok, "suites": [row.to_json() for row in found]},
        lambda console: _show_survey(console, found),
        code=0 if ok else 1,
    )


def _show_survey(console: SafeConsole, found: Sequence[Survey]) -> None:
    columns = ("gold", "worst", "turns", "compared", "different", "shared", "seconds")
    rows = [{"name": row.suite} | {key: row.to_json()[key] for key in columns} for row in found]
    table(rows)(console)
    console.print("\nTrivial baselines: share of tasks solved (mean score)")
    baselines = [
        {"name": row.suite, "bound": row.bound}
        | {agent: f"{got.success:.3f} ({got.score:.2f})" for agent, got in row.baselines.items()}
        for row in found
    ]
    table(baselines)(console)
    for row in found:
        if not row.ok:
            console.print(f"✗ {row.suite}", style="red")


def fairness(*names: str, tasks: int = 60, reworded: Path | None = None) -> VerbResult:
    """Measure whether suites ask for the skill that they are named after.

    Silence, one word, an agent of key words, a scan without a model, scripts from weak to strong, and gold, on the test
    split. The exit code is 1 where a suite falls short.

    For example: `turnwise fairness shop/hard --tasks 60`.

    Args:
        names: Suites (shop/hard), environments (turnwise/Shop-v0) or families (shop).
        tasks: How many test tasks each agent plays.
        reworded: A JSONL file of rewordings ({"gold", "template"}): gold also plays in other words.
    """
    from turnwise.envs.check.fairness import fairness as measure
    from turnwise.envs.check.survey import suites_of

    found = [measure(suite, tasks=tasks, reworded=reworded) for suite in suites_of(names)]
    ok = not any(row.shortcomings for row in found)
    return VerbResult(
        {"ok": ok, "suites": [row.to_json() for row in found]},
        lambda console: _show_fairness(console, found),
        code=0 if ok else 1,
    )


def _show_fairness(console: SafeConsole, found: Sequence[Fairness]) -> None:
    from turnwise.envs.check.fairness import table_row

    rows = [table_row(row) for row in found]
    ladders = [(row["suite"], row.pop("ladder")) for row in rows]
    table(rows, [name for name in rows[0] if any(row[name] for row in rows)])(console)
    for suite, ladder in ladders:
        console.print(f"{suite}: {ladder}")
    for row in found:
        for shortcoming in row.shortcomings:
            console.print(f"✗ {row.suite}: {shortcoming}", style="red")


def play(
    name: str,
    /,
    *,
    policy: str = "human",
    split: str = "train",
    index: int = 0,
    seed: int = 0,
    tools: str = "",
    browse: Annotated[bool, Parameter(negative=())] = False,
) -> VerbResult:
    """Play one episode, yourself or by a policy, and see every turn.

    For example: `turnwise play shop/easy --policy scripted:gold`.

    Args:
        name: An environment (turnwise/Shop-v0), a suite (shop/easy) or where an environment is written
            (path/to/file.py, path/to/file.py:Class, module:Class).
        policy: Who plays; `turnwise list policy` shows the forms.
        split: Of the suite: train, dev or test.
        index: Which task of the split.
        seed: For chance in the environment and in the policy.
        tools: How tools are shown to a model: auto, template, text or none; as it was trained, if not given.
        browse: Play a web environment yourself, in your own browser; the score comes when you are done.
    """
    if browse:
        return _browse(_task(name, split, index))
    import asyncio

    from turnwise.agents.policies.registry import make_policy
    from turnwise.agents.rollout import Limits, rollout_episode
    from turnwise.envs.registry import make

    task = _task(name, split, index)
    env, player = make(task.env), make_policy(policy, tools=tools)
    no_hurry = float("inf")
    limits = Limits(generate_s=no_hurry) if policy == "human" else Limits()
    try:
        episode = asyncio.run(rollout_episode(env, player, task, seed=seed, limits=limits))
    finally:
        player.close()
        env.close()
    value = _episode_json(episode, player.name)
    code = 0 if episode.outcome.counts else 1
    return VerbResult(
        value, lambda console: _show_episode(console, episode, turns=policy != "human"), code=code
    )


def _browse(task: Task) -> VerbResult:
    from turnwise.envs.web.people import browse

    score = browse(task)

    def show(console: SafeConsole) -> None:
        said = "You left before the end." if score is None else f"Your score: {score:.3g}"
        console.print(said, style="bold")

    return VerbResult({"env": task.env, "task": task.id, "score": score}, show)


def _task(name: str, split: str, index: int) -> Task:
    from turnwise.envs.registry import env_entries, environment_suites, get_suite, suite_task
    from turnwise.errors import NotFoundError
    from turnwise.tasks.core import Split

    if split not in list(Split):
        raise NotFoundError("split", split, Split)
    is_env = name in {entry.name for entry in env_entries()}
    suite = environment_suites(name)[0] if is_env else get_suite(name)
    return suite_task(suite, Split(split), index)


def _episode_json(episode: Episode, policy: str) -> dict[str, Any]:
    turns = [
        {"observation": str(turn.observation), "action": str(turn.action), "rewards": dict(turn.rewards)}
        for turn in episode.trajectory.turns
    ]
    return {
        "env": episode.task.env,
        "task": episode.task.id,
        "seed": episode.seed,
        "policy": policy,
        "outcome": episode.outcome.value,
        "end": episode.end and episode.end.value,
        "error": episode.error,
        "score": episode.score,
        "turns": turns,
    }


def _show_episode(console: SafeConsole, episode: Episode, *, turns: bool) -> None:
    for number, turn in enumerate(episode.trajectory.turns if turns else (), 1):
        console.print(f"── turn {number} ──", style="dim")
        console.print(str(turn.observation))
        console.print(f"> {turn.action}", style="bold")
        paid = ", ".join(f"{name} {value:+.3g}" for name, value in turn.rewards.items() if value)
        if paid:
            console.print(f"reward: {paid}", style="green")
    last = str(episode.trajectory.final)
    if last:
        console.print("── the end ──", style="dim")
        console.print(last)
    end = episode.end.value if episode.end else episode.error
    console.print(
        f"{episode.outcome.value}: {end}, score {episode.score:.3g} in {len(episode.trajectory.turns)} turns.",
        style="bold",
    )


def new_env(name: str, /, *, out: Path = Path()) -> VerbResult:
    """Start a package of your own with an environment that passes `turnwise check`.

    For example: `turnwise new-env word-chain`.

    Args:
        name: What it is about, such as word-chain.
        out: The folder in which the package's folder is made.
    """
    from turnwise.scaffold import names, scaffold

    written = scaffold(name, out)
    made = names(name)
    root = out / made.distribution

    def show(console: SafeConsole) -> None:
        for path in written:
            console.print(f"wrote {path}")
        console.print(f"Next: pip install -e {root} && turnwise check {made.env}")

    value = {
        "name": made.distribution,
        "env": made.env,
        "suite": made.suite,
        "files": [str(p) for p in written],
    }
    return VerbResult(value, show)


VERBS: dict[str, Callable[..., VerbResult]] = {
    "list": list_,
    "survey": survey,
    "fairness": fairness,
    "play": play,
    "new-env": new_env,
}
