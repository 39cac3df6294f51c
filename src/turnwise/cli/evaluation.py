"""The commands for evaluating agents: eval, replay, repair, chats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnwise.cli.answer import Json, VerbResult

if TYPE_CHECKING:
    from turnwise.agents.rollout import Limits
    from turnwise.console import SafeConsole


def eval_(
    *suites: str,
    policy: Annotated[list[str], Parameter(negative=())],
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
    context: str = "",
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
    search: str = "",
    budget: int = 0,
    scorer: str = "",
    out: Path | None = None,
    resume: Annotated[bool, Parameter(negative=())] = False,
) -> VerbResult:
    """Evaluate policies on suites: success with its interval, pass@k, pass^k, score, turns.

    For example: `turnwise eval shop/easy --policy openai:MODEL@http://localhost:8000/v1 --episodes 200 --out runs/eval`.

    Several suites, and several --policy, are played in turn and told in one table.

    Args:
        suites: Their names, or environments' ids or files; `turnwise list suites` shows all. panel/NAME is all suites of a panel, each
            with the panel's own tasks in place of --split and --episodes (`turnwise list panels`).
        policy: Who plays; `turnwise list policy` shows the forms. Give it again for another policy.
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
        context: What of a long conversation a model is shown, as NAME or NAME:OPTION=VALUE,… (`turnwise list context`), such as summary:tokens=2048; as it was trained, or all of it, if not given.
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
        max_cost: Cost of all episodes at which this call stops, with exit code 3; --resume goes on. As the server tells it, or by --price.
        max_total_tokens: Likewise of tokens read and sampled.
        search: Tries more than one way and keeps one episode of each, as NAME or NAME:KEY=VALUE,KEY=VALUE; `turnwise list search`.
        budget: Tokens that the policy and the scorer may sample for each episode of a search.
        scorer: By which a search chooses: value:CHECKPOINT, judge:POLICY, listed:POLICY, logp, votes, fork:N, oracle or python:FILE.py:OBJECT.
        out: A folder for the episode log and the summary; of several pairs of suite and policy, each has its own in it.
        resume: Go on where the evaluation in that folder stopped; what failed in it is played again.
    """
    from turnwise.agents.contexts.core import read_context
    from turnwise.agents.evaluation.failures import check_max_failed
    from turnwise.agents.evaluation.spending import Spending
    from turnwise.agents.rollout import check_numbers
    from turnwise.cli.evaluating import PairOptions, evaluate_pairs, pairs_of
    from turnwise.cli.searching import search_of
    from turnwise.cli.training import overrides
    from turnwise.envs.panels import with_panels
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
    played_by |= {"instruction": instruction, "template": told, "context": read_context(context)}
    options = {
        "split": split,
        "episodes": episodes,
        "k": k,
        "seed": seed,
        "concurrency": concurrency,
        "limits": _limits(generate_s, step_s, episode_s),
        "retries": retries,
        "env_options": env_options,
        "spending": Spending(max_cost, max_total_tokens),
    }
    named, shares = with_panels(suites)
    searched = search_of(search, budget, scorer)
    asked = PairOptions(
        options,
        played_by,
        episode_s,
        max_failed,
        out,
        resume,
        env_workers,
        worker_hosts or (),
        token_file,
        searched,
        shares,
    )
    return evaluate_pairs(pairs_of(named, policy), asked)


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
