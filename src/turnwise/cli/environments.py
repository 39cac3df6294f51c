"""The verbs of those who make environments: list, check, play, new-env."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from turnwise.cli.answer import Answer, Json, table

if TYPE_CHECKING:
    from rich.console import Console

    from turnwise.agents.core import Episode
    from turnwise.envs.check import CheckReport
    from turnwise.envs.survey import Survey
    from turnwise.tasks.core import Task


def list_(kind: str = "", /) -> Answer:
    """List what there is of a kind; without a kind, the kinds.

    Args:
        kind: envs, suites, policies, recipes, or a seam of the trainer: credit, loss, reduce, ...
    """
    from turnwise.errors import NotFoundError
    from turnwise.trainers.registry import SEAMS

    kinds: dict[str, Callable[[], list[dict[str, Json]]]] = {
        "envs": _envs,
        "suites": _suites,
        "policies": _policies,
        "recipes": _recipes,
        **{seam: lambda seam=seam: _components(seam) for seam in SEAMS},
    }
    if not kind:
        rows: list[dict[str, Json]] = [{"name": name} for name in kinds]
    elif kind in kinds:
        rows = kinds[kind]()
    else:
        raise NotFoundError("kind", kind, kinds)
    return Answer(rows, table(rows, [key for key in rows[0] if key in _SHOWN] if rows else ()))


_SHOWN = ("name", "spec", "about", "summary", "options")  # on a terminal; --json has everything


def _envs() -> list[dict[str, Json]]:
    from turnwise.envs.registry import env_entries

    return [{"name": entry.name, "about": entry.about} for entry in env_entries()]


def _suites() -> list[dict[str, Json]]:
    from turnwise.envs.registry import suites

    return [{"name": s.name, "env": s.env, "about": s.about, "knobs": dict(s.knobs)} for s in suites()]


def _policies() -> list[dict[str, Json]]:
    from turnwise.agents.policies.registry import POLICIES

    return [{"name": name, "spec": kind.spec, "about": kind.about} for name, kind in POLICIES.items()]


def _recipes() -> list[dict[str, Json]]:
    from turnwise.trainers.recipe import load_recipe, recipe_names

    return [{"name": name, "about": load_recipe(name).about.strip()} for name in recipe_names()]


def _components(seam: str) -> list[dict[str, Json]]:
    from turnwise.trainers.registry import components

    return [
        {"name": c.name, "paper": c.paper, "needs": list(c.needs), "bias": c.bias, "summary": c.summary}
        | {"options": c.options}
        for c in components(seam)
    ]


def check(env: str, /, *, tasks: int = 0) -> Answer:
    """Test an environment against each clause of the contract (E1-E9).

    Args:
        env: Its id, such as turnwise/Shop-v0.
        tasks: How many tasks of each split the gold script and the floor agents play; without it 50, or 10
            where a browser or a sandbox takes its time.
    """
    from turnwise.cli.progress import Progress
    from turnwise.envs.check import CLAUSES, check_env

    with Progress(f"check {env}", len(CLAUSES)) as progress:
        report = check_env(env, tasks=tasks, on_clause=progress.advance)
    return Answer(report.to_json(), lambda console: _show_card(console, report), code=0 if report.ok else 1)


def _show_card(console: Console, report: CheckReport) -> None:
    from rich.markup import escape
    from rich.panel import Panel
    from rich.table import Table

    from turnwise.envs.check import CLAUSES

    card = Table(box=None, show_header=False, padding=(0, 1))
    for name, clause in report.clauses.items():
        mark = "[green]✓[/green]" if clause.ok else "[red]✗[/red]"
        card.add_row(mark, name, CLAUSES[name][0], escape(clause.detail.replace("; ", "\n")))
    verdict = "[green]keeps the contract[/green]" if report.ok else "[red]breaks the contract[/red]"
    console.print(Panel(card, title=f"{escape(report.env)} {verdict}", title_align="left"))


def survey(*names: str, gold: int = 1000, floors: int = 1000, tasks: int = 10_000) -> Answer:
    """Play the scripted solution and agents without a mind on many tasks of suites, and see that splits share none.

    Args:
        names: Suites (lab/easy), environments (turnwise/Lab-v0) or families (lab).
        gold: How many tasks of each suite the scripted solution plays.
        floors: How many each agent without a mind plays.
        tasks: How many tasks of each suite are compared.
    """
    from turnwise.envs.survey import suites_of
    from turnwise.envs.survey import survey as survey_suite

    found = [survey_suite(suite, gold=gold, floors=floors, tasks=tasks) for suite in suites_of(names)]
    ok = all(row.ok for row in found)
    return Answer(
        {"ok": ok, "suites": [row.to_json() for row in found]},
        lambda console: _show_survey(console, found),
        code=0 if ok else 1,
    )


def _show_survey(console: Console, found: Sequence[Survey]) -> None:
    columns = ("gold", "worst", "turns", "compared", "different", "shared", "seconds")
    rows = [{"name": row.suite} | {key: row.to_json()[key] for key in columns} for row in found]
    table(rows)(console)
    console.print("\nAgents without a mind: share of tasks solved (mean score)")
    floors = [
        {"name": row.suite, "bound": row.bound}
        | {agent: f"{got.success:.3f} ({got.score:.2f})" for agent, got in row.floors.items()}
        for row in found
    ]
    table(floors)(console)
    for row in found:
        if not row.ok:
            console.print(f"[red]✗[/red] {row.suite}")


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
) -> Answer:
    """Play one episode, yourself or by a policy, and see every turn.

    Args:
        name: An environment (turnwise/Shop-v0) or a suite (shop/easy).
        policy: Who plays; `turnwise list policies` shows the forms.
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
    from turnwise.agents.rollout import Limits
    from turnwise.agents.rollout import play as play_episode
    from turnwise.envs.registry import make

    task = _task(name, split, index)
    env, player = make(task.env), make_policy(policy, tools=tools)
    no_hurry = float("inf")
    limits = Limits(generate_s=no_hurry) if policy == "human" else Limits()
    try:
        episode = asyncio.run(play_episode(env, player, task, seed=seed, limits=limits))
    finally:
        player.close()
        env.close()
    value = _episode_json(episode, player.name)
    code = 0 if episode.outcome.counts else 1
    return Answer(value, lambda console: _show_episode(console, episode, turns=policy != "human"), code=code)


def _browse(task: Task) -> Answer:
    from turnwise.envs.web.people import browse

    score = browse(task)

    def show(console: Console) -> None:
        said = "You left before the end." if score is None else f"Your score: {score:.3g}"
        console.print(said, style="bold", markup=False)

    return Answer({"env": task.env, "task": task.id, "score": score}, show)


def _task(name: str, split: str, index: int) -> Task:
    from turnwise.envs.registry import env_entries, get_suite, suite_task
    from turnwise.envs.walks import environment_suites
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


def _show_episode(console: Console, episode: Episode, *, turns: bool) -> None:
    for number, turn in enumerate(episode.trajectory.turns if turns else (), 1):
        console.print(f"── turn {number} ──", style="dim")
        console.print(str(turn.observation), markup=False)
        console.print(f"> {turn.action}", style="bold", markup=False)
        paid = ", ".join(f"{name} {value:+.3g}" for name, value in turn.rewards.items() if value)
        if paid:
            console.print(f"reward: {paid}", style="green", markup=False)
    last = str(episode.trajectory.final)
    if last:
        console.print("── the end ──", style="dim")
        console.print(last, markup=False)
    end = episode.end.value if episode.end else episode.error
    console.print(
        f"{episode.outcome.value}: {end}, score {episode.score:.3g} in {len(episode.trajectory.turns)} turns.",
        style="bold",
        markup=False,
    )


def new_env(name: str, /, *, out: Path = Path()) -> Answer:
    """Start a package of your own with an environment that passes `turnwise check`.

    Args:
        name: What it is about, such as word-chain.
        out: The folder in which the package's folder is made.
    """
    from turnwise.scaffold import names, scaffold

    written = scaffold(name, out)
    made = names(name)
    root = out / made.distribution

    def show(console: Console) -> None:
        for path in written:
            console.print(f"wrote {path}", markup=False)
        console.print(f"Next: pip install -e {root} && turnwise check {made.env}", markup=False)

    value = {
        "name": made.distribution,
        "env": made.env,
        "suite": made.suite,
        "files": [str(p) for p in written],
    }
    return Answer(value, show)


VERBS: dict[str, Callable[..., Answer]] = {
    "list": list_,
    "check": check,
    "survey": survey,
    "play": play,
    "new-env": new_env,
}
