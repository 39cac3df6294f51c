"""Pairs of a suite and a policy, played in turn: a folder each, one limit of cost, one table."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from turnwise.cli.answer import Json, VerbResult
from turnwise.errors import RunError, TurnwiseError

if TYPE_CHECKING:
    from turnwise.agents.core import Episode, Policy
    from turnwise.agents.evaluation.evaluate import Evaluation
    from turnwise.agents.evaluation.folder import EvaluationFolder
    from turnwise.agents.rollout_tasks import EpisodeSearch
    from turnwise.agents.workers.hosted import WorkerHosts
    from turnwise.console import SafeConsole
    from turnwise.envs.panels import PanelShare

STOPPED = 3
"""The exit code of evaluations that reached what they may cost."""
_OTHERS = re.compile(r"[^A-Za-z0-9_.]+")
_LONGEST = 40
_GO_ON = "Stopped before all episodes were played: {why} → {how}."


class Pair(NamedTuple):
    """A suite and a policy that plays it, by their names."""

    suite: str
    policy: str

    def __str__(self) -> str:
        from turnwise.secrets import redact

        return redact(f"{self.policy} on {self.suite}")

    @property
    def folder(self) -> str:
        """A name for its results: readable, without keys, and another one for every other pair."""
        from turnwise.secrets import redact

        said = [redact(name) for name in self]
        mark = hashlib.blake2b("\0".join(said).encode("utf-8", "surrogatepass"), digest_size=3).hexdigest()
        return "--".join([*(_OTHERS.sub("-", name).strip("-.")[:_LONGEST] for name in said), mark])


class PairOptions(NamedTuple):
    """Options with which all pairs are evaluated.

    Attributes:
        options: of :func:`turnwise.evaluate`.
        played_by: of the policies.
        episode_s, max_failed, out, resume, env_workers, worker_hosts, token_file: as on the command line.
        search: that plays, and is closed in the end; None: plain play.
        shares: by suite, of those that a panel names.
    """

    options: dict[str, Json]
    played_by: dict[str, Json]
    episode_s: float | None
    max_failed: float
    out: Path | None
    resume: bool
    env_workers: int
    worker_hosts: Sequence[str]
    token_file: str
    search: EpisodeSearch | None = None
    shares: Mapping[str, PanelShare] = {}

    def of(self, suite: str) -> dict[str, Json]:
        """The options of :func:`turnwise.evaluate` for a suite: a panel's split and tasks go before those of the command line."""
        share = self.shares.get(suite)
        if share is None:
            return self.options
        return self.options | {"split": share.split, "episodes": share.tasks * self.options["k"]}


class PlayedPair(NamedTuple):
    """The result of a pair: figures, or why there are none."""

    pair: Pair
    folder: EvaluationFolder | None
    result: Evaluation | None = None
    interrupted: bool = False
    error: TurnwiseError | None = None


def pairs_of(suites: Sequence[str], policies: Sequence[str]) -> list[Pair]:
    """Each suite with each policy, all suites of a policy together.

    Raises:
        TurnwiseError: there is none, one is named twice, or a name is none.
    """
    from turnwise.agents.policies.registry import check_spec
    from turnwise.envs.registry import get_suite

    if not suites:
        raise TurnwiseError("No suite is named.", "Name one or more: `turnwise list suites` shows all.")
    pairs = [Pair(suite, policy) for policy in policies for suite in suites]
    names = [pair.folder for pair in pairs]
    for n, pair in enumerate(pairs):
        if names.index(names[n]) < n:
            raise TurnwiseError(f"{pair} is named twice.", "Name each suite and each policy once.")
    if len(pairs) > 1:  # a mistake in the last name shows before the first is played
        for suite in suites:
            get_suite(suite)
        for policy in policies:
            check_spec(policy)
    return pairs


def evaluate_pairs(pairs: Sequence[Pair], asked: PairOptions) -> VerbResult:
    """Play all pairs and tell what they came to. One alone is told by itself; of several, one that fails costs no other.

    Raises:
        TurnwiseError: what is asked cannot be, or the only pair cannot be judged.
    """
    from turnwise.agents.evaluation.folder import clock_of, now, open_folder

    places = _places(pairs, asked.out)
    begun = [place for place in places if place and asked.resume and (place / "asked.json").exists()]
    asked = asked._replace(played_by=asked.played_by | {"clock": clock_of(begun[0]) if begun else now()})
    at = _environments_at({pair.suite for pair in pairs}, {pair.policy for pair in pairs}, asked)
    with ExitStack() as held:
        if asked.search is not None:
            held.enter_context(closing(asked.search))
        folders: list[EvaluationFolder | None] = []
        for pair, place in zip(pairs, places, strict=True):
            request = _request(pair, asked)
            folders.append(
                held.enter_context(open_folder(place, request, resume=asked.resume)) if place else None
            )
        if len(pairs) == 1:
            player = _player(pairs[0], asked)
            with closing(player):
                played = _play(pairs[0], player, folders[0], at, asked)
            return _answer_one(played, asked.max_failed)
        return _answer(list(_each(pairs, folders, at, asked)), asked)


def _each(
    pairs: Sequence[Pair],
    folders: Sequence[EvaluationFolder | None],
    at: int | WorkerHosts,
    asked: PairOptions,
) -> Iterator[PlayedPair]:
    """Play the pairs in turn, until one is interrupted or the limit of cost is reached."""
    player, made_of = None, ""
    over, spending = "", asked.options["spending"]
    with ExitStack() as opened:
        for pair, folder in zip(pairs, folders, strict=True):
            if over or spending.stopped:
                why = TurnwiseError(over or spending.stopped, "Go on with --resume." if folder else "")
                yield PlayedPair(pair, folder, error=why)
                continue
            try:
                if player is None or made_of != pair.policy:
                    opened.close()
                    player, made_of = opened.enter_context(closing(_player(pair, asked))), pair.policy
                played = _play(pair, player, folder, at, asked)
            except TurnwiseError as error:
                played = PlayedPair(pair, folder, error=error)
            except KeyboardInterrupt:  # of this pair nothing is there, of those before there is
                played = PlayedPair(
                    pair, folder, interrupted=True, error=TurnwiseError("It was interrupted.", "")
                )
            over = "Interrupted before it." if played.interrupted else ""
            yield played


def _play(
    pair: Pair, player: Policy, folder: EvaluationFolder | None, at: int | WorkerHosts, asked: PairOptions
) -> PlayedPair:
    from turnwise.agents.workers.pool import workers_for

    with workers_for(at) as workers:
        options = asked.of(pair.suite) | {"env_workers": workers or 0, "search": asked.search}
        result, interrupted = _evaluate(player, pair.suite, folder, options)
    if share := asked.shares.get(pair.suite):
        result = replace(result, panel=share.panel)
    if folder is not None:
        folder.write(result, interrupted=interrupted)
    return PlayedPair(pair, folder, result, interrupted)


def _player(pair: Pair, asked: PairOptions) -> Policy:
    from turnwise.agents.policies.registry import make_policy

    key = asked.token_file if _is_elsewhere(pair.policy) else ""
    options = asked.options["concurrency"], asked.options["seed"]
    return make_policy(
        pair.policy, max_sequences=options[0], seed=options[1], token_file=key, **asked.played_by
    )


def _is_elsewhere(policy: str) -> bool:
    """Say whether a policy's engine is elsewhere, and may want the token."""
    return policy.startswith("remote:")


def _places(pairs: Sequence[Pair], out: Path | None) -> list[Path | None]:
    """The folder of each pair: that which is named for a pair alone, else one in it.

    Raises:
        RunError: one pair was evaluated there, and several are asked for; or the other way round.
    """
    if out is None:
        return [None] * len(pairs)
    alone, several = (out / "asked.json").exists(), any(out.glob("*--*/asked.json"))
    if len(pairs) > 1 and alone:
        raise RunError(f"{out} holds the evaluation of one pair.", "Choose another --out for several.")
    if len(pairs) == 1 and several and not alone:
        raise RunError(
            f"{out} holds evaluations of several pairs.",
            f"Name all suites and policies of it, or the folder of this pair: {out / pairs[0].folder}.",
        )
    return [out / pair.folder for pair in pairs] if len(pairs) > 1 else [out]


def _environments_at(suites: set[str], policies: set[str], asked: PairOptions) -> int | WorkerHosts:
    """So many processes of this machine, or hosts.

    Raises:
        TurnwiseError: both are asked for, a token for nobody, or hosts without one.
    """
    from turnwise.agents.workers.hosted import WorkerHosts
    from turnwise.envs.registry import get_suite

    if not asked.worker_hosts:
        if asked.token_file and not any(map(_is_elsewhere, policies)):
            raise TurnwiseError(
                "--token-file is of hosts or of an engine elsewhere, and there are none.",
                "Name hosts with --worker-hosts, or an engine with --policy remote:MODEL@URL.",
            )
        return asked.env_workers
    if asked.env_workers:
        raise TurnwiseError(
            "Environments are on hosts (--worker-hosts) or in processes of this machine (--env-workers).",
            "Leave one out.",
        )
    if not asked.token_file:
        raise TurnwiseError(
            "The hosts run programs for whoever has their token, and no token is named.",
            "Say with --token-file which file holds it.",
        )
    envs = tuple(sorted({get_suite(suite).env for suite in suites}))
    return WorkerHosts(asked.worker_hosts, token_file=asked.token_file, envs=envs)


def _request(pair: Pair, asked: PairOptions) -> dict[str, Json]:
    """Collect all that an episode's outcome depends on: a resume must ask the same."""
    from turnwise.agents.log.records import env_version
    from turnwise.agents.policies.registry import fingerprint
    from turnwise.envs.registry import env_class, get_suite
    from turnwise.envs.returned import check_named

    suite, env_options = get_suite(pair.suite), asked.options["env_options"]
    check_named(env_class(suite.env), env_options, "environment")
    env = env_version(suite.env, env_options)  # an unknown name shows before a model is loaded
    return {
        "suite": pair.suite,
        "split": asked.of(pair.suite)["split"],
        "k": asked.options["k"],
        "seed": asked.options["seed"],
        "policy": pair.policy,
        "policy_files": fingerprint(pair.policy),
        "episode_s": asked.episode_s,
        "env": env.entry,
        "env_source": env.source,
        "env_options": dict(env.options),
        **({"search": asked.search.asked} if asked.search else {}),
        **({"panel": asked.shares[pair.suite].panel} if pair.suite in asked.shares else {}),
    } | asked.played_by


def _evaluate(
    player: Policy, suite: str, folder: EvaluationFolder | None, options: Mapping[str, Json]
) -> tuple[Evaluation, bool]:
    """The evaluation, of the episodes finished so far if Ctrl-C came, and whether it did."""
    from turnwise.agents.evaluation.evaluate import evaluate, summarize
    from turnwise.agents.rollout_tasks import search_name
    from turnwise.cli.progress import ProgressLine

    done: list[Episode] = []
    solved = 0
    name = search_name(options.get("search"), player)
    with ProgressLine(f"{name} on {suite}", options["episodes"]) as progress:

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
            return summarize(done, suite=suite, policy=name, **about), True
    return result, False


# --- what is told ----------------------------------------------------------------------------------


def _told(played: PlayedPair, result: Evaluation, max_failed: float) -> dict[str, Json]:
    failed = result.failed_share > max_failed
    return result.to_json() | {"interrupted": played.interrupted, "too_many_failed": failed}


def _answer_one(played: PlayedPair, max_failed: float) -> VerbResult:
    """The figures, and 1 as the exit code where more episodes failed than were accepted."""
    from turnwise.agents.evaluation.evaluate import too_many
    from turnwise.agents.evaluation.summary import evaluation_table

    result, folder = played.result, played.folder
    assert result is not None
    value = _told(played, result, max_failed)
    failed = value["too_many_failed"]
    code = 130 if played.interrupted else 1 if failed else STOPPED if result.stopped else 0

    def show(console: SafeConsole) -> None:
        if result.headline:
            console.print(result.headline, style="bold red")
        if played.interrupted:
            how = "; go on with --resume" if folder is not None else ""
            console.print(f"Interrupted: these are the episodes that were finished{how}.", style="yellow")
        console.print(evaluation_table(result))
        if folder is not None:
            console.print(f"episodes in {folder.log}")
        if failed:
            console.print("\n→ ".join(too_many(result, max_failed)), style="red")
        if result.stopped:
            how = "go on with --resume" if folder is not None else "with --out, --resume could go on"
            console.print(_GO_ON.format(why=result.stopped, how=how), style="yellow")

    return VerbResult(value, show, code=code)


def _answer(played: Sequence[PlayedPair], asked: PairOptions) -> VerbResult:
    """All figures in one table, and the worst of the pairs' exit codes."""
    from turnwise.agents.evaluation.evaluate import too_many
    from turnwise.agents.evaluation.summary import evaluations_table

    found = [(one, one.result) for one in played if one.result is not None]
    lost = [(one.pair, one.error) for one in played if one.error is not None]
    stopped = asked.options["spending"].stopped
    interrupted = any(one.interrupted for one in played)
    values = [_told(one, result, asked.max_failed) for one, result in found]
    for value, (one, _) in zip(values, found, strict=True):
        value["folder"] = one.folder and str(one.folder.path)
    value = {
        "evaluations": values,
        "not_judged": [{**pair._asdict(), "why": error.cause} for pair, error in lost],
        "interrupted": interrupted,
        "stopped": stopped,
    }
    failed = any(value["too_many_failed"] for value in values) or (lost and not stopped)
    code = 130 if interrupted else 1 if failed else STOPPED if stopped else 0

    def show(console: SafeConsole) -> None:
        for _, result in found:
            if result.headline:
                console.print(f"{result.suite}, {result.policy}: {result.headline}", style="bold red")
        if found:
            console.print(evaluations_table([result for _, result in found]))
        for pair, error in lost:
            remedy = f"\n→ {error.remedy}" if error.remedy else ""
            console.print(f"{pair}: {error.cause}{remedy}", style="red")
        for one, result in found:
            if result.failed_share > asked.max_failed:
                told = "\n→ ".join(too_many(result, asked.max_failed))
                console.print(f"{one.pair}: {told}", style="red")
        if asked.out is not None:
            console.print(f"each with its episodes in {asked.out}")
        if stopped:
            how = "go on with --resume" if asked.out else "with --out, --resume could go on"
            console.print(_GO_ON.format(why=stopped, how=how), style="yellow")

    return VerbResult(value, show, code=code)
