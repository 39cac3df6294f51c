"""The commands for evaluating agents: eval, replay, repair, chats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnwise.cli.answer import Json, VerbResult

if TYPE_CHECKING:
    from turnwise.agents.core import Episode, Policy
    from turnwise.agents.evaluation.evaluate import Evaluation
    from turnwise.agents.evaluation.folder import EvaluationFolder
    from turnwise.agents.rollout import Limits
    from turnwise.agents.workers.hosted import WorkerHosts
    from turnwise.console import SafeConsole


STOPPED = 3
"""The exit code of an evaluation that reached what it may cost."""


def eval_(
    suite: str,
    /,
    *,
    policy: str,
    episodes: int = 200,
    k: int = 1,
    split: str = "test",
    seed: int = 0,
    temperature: float | None = None,
    top_p: float | None = None,
    max_tokens: int = 0,
    max_completion_tokens: int = 0,
    reasoning_effort: str = "",
    parallel_tool_calls: bool | None = None,
    extra_body: Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)] = None,
    price: str = "",
    concurrency: int = 64,
    tools: str = "",
    instruction: str = "",
    template: Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)] = None,
    model: str = "",
    env_option: Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)] = None,
    env_workers: int = 0,
    worker_hosts: Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)] = None,
    token_file: str = "",
    generate_s: float = 300.0,
    step_s: float = 60.0,
    episode_s: float | None = None,
    retries: int = 1,
    max_failed: float = 0.1,
    max_cost: float | None = None,
    max_total_tokens: int | None = None,
    out: Path | None = None,
    resume: Annotated[bool, Parameter(negative=())] = False,
) -> VerbResult:
    """Evaluate a policy on a suite: success with its interval, pass@k, pass^k, score, turns.

    For example: `turnwise eval shop/easy --policy openai:MODEL@http://localhost:8000/v1 --episodes 200 --out runs/eval`.

    Args:
        suite: Its name, or an environment's id or file; `turnwise list suites` shows all.
        policy: Who plays; `turnwise list policy` shows the forms.
        episodes: How many in all.
        k: How often each task is played.
        split: train, dev or test.
        seed: The episodes' seeds are derived from it.
        temperature: Of sampling; 0 is greedy; 1, or as a server chooses, if not given.
        top_p: Share of the probability that is sampled from; all, or as a server chooses, if not given.
        max_tokens: Longest message of the policy; as it was trained, or 256, or as long as a server allows, if not given.
        max_completion_tokens: The same under the name that some servers want.
        reasoning_effort: Of a server's model, such as low.
        parallel_tool_calls: Whether a server's model may make several calls at once; not where a turn takes one, if not given.
        extra_body: Further keys of each request to a server, as KEY=VALUE, such as seed=auto.
        price: Of a million tokens of a server that tells no cost, as PROMPT/COMPLETION, such as 0.25/2.
        concurrency: Episodes in flight.
        tools: How tools are shown to a model: auto, template, text or none; as it was trained, if not given.
        instruction: A text below the first message of every episode; as a model was trained, if not given.
        template: What a model's chat template is given, as KEY=VALUE, such as enable_thinking=false; on top of what it was trained with.
        model: The policy that a program of `command:` talks to, such as vllm:PATH.
        env_option: What environments are made with, as KEY=VALUE.
        env_workers: Processes that environments run in, so that a hung or crashed one can be killed; 0: this one.
        worker_hosts: Hosts that environments run on instead, HOST:PORT of each `turnwise serve-workers`.
        token_file: Holds the token that these hosts, or the engine of a policy `remote:`, were started with.
        generate_s: Deadline of one answer of the policy, in seconds.
        step_s: Deadline of one step of a blocking environment, in seconds.
        episode_s: Seconds after which an episode is cut; what it came to by then counts.
        retries: How often an episode that fails is played again before it is left out.
        max_failed: Share of the episodes that may fail; with more of them the exit code is 1.
        max_cost: Cost at which this call stops, with exit code 3; --resume goes on. As the server tells it, or by --price.
        max_total_tokens: Likewise of tokens read and sampled.
        out: A folder for the episode log and the summary.
        resume: Go on where the evaluation in that folder stopped; what failed in it is played again.
    """
    from turnwise.agents.evaluation.failures import check_max_failed
    from turnwise.agents.evaluation.folder import clock_of, now, open_folder
    from turnwise.agents.policies.registry import make_policy
    from turnwise.agents.rollout import check_numbers
    from turnwise.agents.workers.pool import workers_for
    from turnwise.cli.training import overrides
    from turnwise.errors import TurnwiseError

    check_max_failed(max_failed)
    check_numbers(concurrency, retries)
    if resume and out is None:
        raise TurnwiseError("--resume goes on with an evaluation in a folder.", "Say which one with --out.")
    env_options = _json(overrides(env_option or [], "--env-option"))
    played_by = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens, "tools": tools}
    played_by |= {"max_completion_tokens": max_completion_tokens, "reasoning_effort": reasoning_effort}
    played_by |= {"parallel_tool_calls": parallel_tool_calls, "price": price, "model": model}
    played_by["extra_body"] = _json(overrides(extra_body or [], "--extra-body"), "--extra-body")
    told = _json(overrides(template or [], "--template"), "--template")
    clock = clock_of(out) if resume and out else now()
    played_by |= {"instruction": instruction, "template": told, "clock": clock}
    asked = _asked(suite, policy, split, k, seed, episode_s, env_options) | played_by
    options = {
        "split": split,
        "episodes": episodes,
        "k": k,
        "seed": seed,
        "concurrency": concurrency,
        "limits": _limits(generate_s, step_s, episode_s),
        "retries": retries,
        "env_options": env_options,
        "max_cost": max_cost,
        "max_total_tokens": max_total_tokens,
    }
    elsewhere = policy.startswith("remote:")
    at = _environments_at(suite, env_workers, worker_hosts or (), token_file, elsewhere=elsewhere)
    key = token_file if elsewhere else ""
    with (
        nullcontext() if out is None else open_folder(out, asked, resume=resume) as folder,
        workers_for(at) as workers,
    ):
        options["env_workers"] = workers or 0
        player = make_policy(policy, max_sequences=concurrency, seed=seed, token_file=key, **played_by)
        try:
            result, interrupted = _evaluate(player, suite, folder, options)
        finally:
            player.close()
        if folder is not None:
            folder.write(result, interrupted=interrupted)
    return _answer(result, folder, interrupted, max_failed)


def _environments_at(
    suite: str, env_workers: int, worker_hosts: Sequence[str], token_file: str, *, elsewhere: bool
) -> int | WorkerHosts:
    """So many processes of this machine, or hosts. ``elsewhere``: the policy's engine may want the token.

    Raises:
        TurnwiseError: both are asked for, a token for nobody, or hosts without one.
    """
    from turnwise.agents.workers.hosted import WorkerHosts
    from turnwise.envs.registry import get_suite
    from turnwise.errors import TurnwiseError

    if not worker_hosts:
        if token_file and not elsewhere:
            raise TurnwiseError(
                "--token-file is of hosts or of an engine elsewhere, and there are none.",
                "Name hosts with --worker-hosts, or an engine with --policy remote:MODEL@URL.",
            )
        return env_workers
    if env_workers:
        raise TurnwiseError(
            "Environments are on hosts (--worker-hosts) or in processes of this machine (--env-workers).",
            "Leave one out.",
        )
    if not token_file:
        raise TurnwiseError(
            "The hosts run programs for whoever has their token, and no token is named.",
            "Say with --token-file which file holds it.",
        )
    return WorkerHosts(worker_hosts, token_file=token_file, envs=(get_suite(suite).env,))


def _answer(
    result: Evaluation, folder: EvaluationFolder | None, interrupted: bool, max_failed: float
) -> VerbResult:
    """The figures, and 1 as the exit code where more episodes failed than were accepted."""
    from turnwise.agents.evaluation.evaluate import too_many

    failed = result.failed_share > max_failed
    value = result.to_json() | {"interrupted": interrupted, "too_many_failed": failed}
    code = 130 if interrupted else 1 if failed else STOPPED if result.stopped else 0

    def show(console: SafeConsole) -> None:
        _show_evaluation(console, result, folder, interrupted)
        if failed:
            console.print("\n→ ".join(too_many(result, max_failed)), style="red")
        if result.stopped:
            how = "go on with --resume" if folder is not None else "with --out, --resume could go on"
            console.print(
                f"Stopped before all episodes were played: {result.stopped} → {how}.", style="yellow"
            )

    return VerbResult(value, show, code=code)


def _asked(
    suite: str,
    policy: str,
    split: str,
    k: int,
    seed: int,
    episode_s: float | None,
    env_options: Mapping[str, Json],
) -> dict[str, Json]:
    """What an episode's outcome depends on: a resume must ask the same."""
    from turnwise.agents.log.records import env_version
    from turnwise.agents.policies.registry import fingerprint
    from turnwise.envs.registry import env_class, get_suite
    from turnwise.envs.returned import check_named

    check_named(env_class(get_suite(suite).env), env_options, "environment")
    env = env_version(get_suite(suite).env, env_options)  # an unknown name shows before a model is loaded
    return {
        "suite": suite,
        "split": split,
        "k": k,
        "seed": seed,
        "policy": policy,
        "policy_files": fingerprint(policy),
        "episode_s": episode_s,
        "env": env.entry,
        "env_source": env.source,
        "env_options": dict(env.options),
    }


def _json(options: Mapping[str, object], option: str = "--env-option") -> dict[str, Json]:
    """Refuse what YAML knows and JSON does not."""
    from turnwise.errors import TurnwiseError

    for name, value in options.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TurnwiseError(
                f"{option} {name}: {value!r} cannot be used: {error}.", f"Quote it: {name}='\"{value}\"'."
            ) from None
    return dict(options)


def _limits(generate_s: float, step_s: float, episode_s: float | None) -> Limits:
    from turnwise.agents.rollout import Limits
    from turnwise.errors import TurnwiseError

    for name, seconds in (("--generate-s", generate_s), ("--step-s", step_s), ("--episode-s", episode_s)):
        if seconds is not None and not seconds > 0:
            raise TurnwiseError(f"{name} is {seconds:g}.", "Give more than 0 seconds.")
    limits = Limits(generate_s=generate_s, step_s=step_s)
    return limits if episode_s is None else limits._replace(episode_s=episode_s)


def _evaluate(
    player: Policy, suite: str, folder: EvaluationFolder | None, options: Mapping[str, Json]
) -> tuple[Evaluation, bool]:
    """The evaluation, of the episodes finished so far if Ctrl-C came, and whether it did."""
    from turnwise.agents.evaluation.evaluate import evaluate, summarize
    from turnwise.cli.progress import ProgressLine

    done: list[Episode] = []
    solved = 0
    with ProgressLine(f"{player.name} on {suite}", options["episodes"]) as progress:

        def heard(_: int, episode: Episode) -> None:
            nonlocal solved
            done.append(episode)
            solved += episode.success
            progress.advance(success=solved / len(done))

        try:
            result = evaluate(
                suite,
                player,
                log=folder and folder.log,
                finished=folder.played() if folder else (),
                on_episode=heard,
                max_failed=1.0,  # the figures of the others are shown all the same
                **options,
            )
        except KeyboardInterrupt:
            if not done:
                raise
            about = {name: options[name] for name in ("split", "k", "seed")}
            return summarize(done, suite=suite, policy=player.name, **about), True
    return result, False


def _show_evaluation(
    console: SafeConsole, result: Evaluation, folder: EvaluationFolder | None, interrupted: bool
) -> None:
    from turnwise.agents.evaluation.summary import evaluation_table

    if result.headline:
        console.print(result.headline, style="bold red")
    if interrupted:
        how = "; go on with --resume" if folder is not None else ""
        console.print(f"Interrupted: these are the episodes that were finished{how}.", style="yellow")
    console.print(evaluation_table(result))
    if folder is not None:
        console.print(f"episodes in {folder.log}")


def replay(
    log: Path,
    /,
    *,
    env: str = "",
    env_option: Annotated[list[str] | None, Parameter(negative=(), consume_multiple=True)] = None,
    trust_log: Annotated[bool, Parameter(negative=())] = False,
) -> VerbResult:
    """Play logged episodes again and prove that every byte is the same.

    A log is only read: options in it that loosen isolation, name files or addresses, or hold references are refused.
    For example: `turnwise replay runs/eval`.

    Args:
        log: An episode log (episodes.jsonl.zst), or the folder that holds one.
        env: The file of its environment where that is not installed: path/to/file.py.
        env_option: What environments are made with, as KEY=VALUE, in place of the same options in the log.
        trust_log: Carry out whatever the log says of its environments. Only for logs of your own, or of whom you trust.
    """
    from turnwise.agents.replay import replay as replay_log
    from turnwise.cli.training import overrides

    report = replay_log(
        log, trust_log=trust_log, env=env, env_options=_json(overrides(env_option or [], "--env-option"))
    )
    return VerbResult(
        report.to_json(), lambda console: console.print(str(report)), code=0 if report.ok else 1
    )


def repair(path: Path, /, *, dry_run: Annotated[bool, Parameter(negative=())] = False) -> VerbResult:
    """Cut out what is damaged in a log, keep it beside the file as NAME.damaged, and say what it was.

    For example: `turnwise repair runs/eval --dry-run`.

    Args:
        path: An episode log or another file of JSON lines, or the folder of an evaluation or a run.
        dry_run: Only say what would be cut.
    """
    from turnwise.agents.log.repair import repair as repair_files

    done = repair_files(path, dry_run=dry_run)
    cut = any(file.cuts for file in done)

    def show(console: SafeConsole) -> None:
        for file in done:
            console.print(str(file), markup=False, soft_wrap=True)
            if file.cuts and not dry_run:
                console.print(
                    f"  cut out; the damaged bytes are in {file.aside}", markup=False, soft_wrap=True
                )
        if cut and dry_run:
            console.print("Nothing was written; without --dry-run it is cut out.")

    return VerbResult({"dry_run": dry_run, "files": [file.to_json() for file in done]}, show)


def chats(
    log: Path,
    /,
    *,
    out: Path,
    solved: Annotated[bool, Parameter(negative=())] = False,
    least: float = float("-inf"),
) -> VerbResult:
    """Write the episodes of a log as chats, one JSON object a line, to fine-tune a model on them elsewhere.

    For example: `turnwise chats runs/eval --out chats.jsonl --solved`.

    Args:
        log: An episode log (episodes.jsonl.zst), or the folder that holds one.
        out: The file that is written.
        solved: Only episodes whose task was solved.
        least: Only episodes whose score is at least this.
    """
    from turnwise.agents.log.chats import write_chats

    file = log / "episodes.jsonl.zst" if log.is_dir() else log
    found = write_chats(file, out, solved=solved, least=least)

    def show(console: SafeConsole) -> None:
        console.print(f"{found.written} chats in {out}; {found.unwanted} episodes left out", soft_wrap=True)
        if found.programs:
            console.print(
                f"{found.programs} were played by programs, whose conversations are their own: left out"
            )

    return VerbResult({"out": str(out), **found._asdict()}, show)


VERBS: dict[str, Callable[..., VerbResult]] = {
    "eval": eval_,
    "replay": replay,
    "repair": repair,
    "chats": chats,
}
