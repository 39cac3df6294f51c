"""The verbs of those who evaluate agents: eval, replay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from turnwise.cli.answer import Answer, Json

if TYPE_CHECKING:
    from rich.console import Console

    from turnwise.agents.core import Episode, Policy
    from turnwise.agents.evaluate import Evaluation


def eval_(
    suite: str,
    /,
    *,
    policy: str,
    episodes: int = 200,
    k: int = 1,
    split: str = "test",
    seed: int = 0,
    temperature: float = 1.0,
    max_tokens: int = 0,
    concurrency: int = 64,
    tools: str = "",
    out: Path | None = None,
) -> Answer:
    """Evaluate a policy on a suite: success with its interval, pass@k, pass^k, score, turns.

    Args:
        suite: Its name; `turnwise list suites` shows all.
        policy: Who plays; `turnwise list policies` shows the forms.
        episodes: How many in all.
        k: How often each task is played.
        split: train, dev or test.
        seed: The episodes' seeds are derived from it.
        temperature: Of sampling; 0 is greedy.
        max_tokens: Longest message of the policy; as it was trained, or 256, if not given.
        concurrency: Episodes in flight.
        tools: How tools are shown to a model: auto, template, text or none; as it was trained, if not given.
        out: A folder for the episode log and the summary.
    """
    from turnwise.agents.policies.registry import make_policy
    from turnwise.envs.registry import get_suite

    get_suite(suite)  # an unknown name shows before a model is loaded
    log = _log_path(out)
    player = make_policy(
        policy,
        temperature=temperature,
        max_tokens=max_tokens,
        max_sequences=concurrency,
        seed=seed,
        tools=tools,
    )
    try:
        result, interrupted = _evaluate(
            player, suite, split=split, episodes=episodes, k=k, seed=seed, concurrency=concurrency, log=log
        )
    finally:
        player.close()
    if out is not None:
        _write_summary(out, result.to_json(results=True) | {"interrupted": interrupted})
    value = result.to_json() | {"interrupted": interrupted}
    code = 130 if interrupted else 0
    return Answer(value, lambda console: _show_evaluation(console, result, log, interrupted), code=code)


def _evaluate(
    player: Policy,
    suite: str,
    *,
    split: str,
    episodes: int,
    k: int,
    seed: int,
    concurrency: int,
    log: Path | None,
) -> tuple[Evaluation, bool]:
    """The evaluation, of the episodes finished so far if Ctrl-C came, and whether it did."""
    from turnwise.agents.evaluate import evaluate, summarize
    from turnwise.cli.progress import Progress

    done: list[Episode] = []
    solved = 0
    with Progress(f"{player.name} on {suite}", episodes) as progress:

        def heard(_: int, episode: Episode) -> None:
            nonlocal solved
            done.append(episode)
            solved += episode.success
            progress.advance(success=solved / len(done))

        try:
            result = evaluate(
                suite,
                player,
                split=split,
                episodes=episodes,
                k=k,
                seed=seed,
                concurrency=concurrency,
                log=log,
                on_episode=heard,
            )
        except KeyboardInterrupt:
            if not done:
                raise
            return summarize(done, suite=suite, policy=player.name, split=split, k=k, seed=seed), True
    return result, False


def _log_path(out: Path | None) -> Path | None:
    from turnwise.errors import RunError

    if out is None:
        return None
    log = out / "episodes.jsonl.zst"
    if log.exists():
        raise RunError(f"{log} exists already.", "Choose another folder with --out, or move that one away.")
    return log


def _write_summary(out: Path, value: Json) -> None:
    import json

    (out / "evaluation.json").write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _show_evaluation(console: Console, result: Evaluation, log: Path | None, interrupted: bool) -> None:
    from turnwise.agents.summary import evaluation_table

    if interrupted:
        console.print("Interrupted: these are the episodes that were finished.", style="yellow")
    console.print(evaluation_table(result))
    if log is not None:
        console.print(f"episodes in {log}", markup=False)


def replay(log: Path, /) -> Answer:
    """Play logged episodes again and prove that every byte is the same.

    Args:
        log: An episode log (episodes.jsonl.zst), or the folder that holds one.
    """
    from turnwise.agents.replay import replay as replay_log

    report = replay_log(log / "episodes.jsonl.zst" if log.is_dir() else log)
    return Answer(
        report.to_json(), lambda console: console.print(str(report), markup=False), code=0 if report.ok else 1
    )


VERBS: dict[str, Callable[..., Answer]] = {"eval": eval_, "replay": replay}
