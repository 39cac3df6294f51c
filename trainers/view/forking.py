"""Forks of logged episodes, for questions of what if: an episode is played again up to a turn, and goes on from there otherwise.

The turns before are replayed with the recorded replies (E3 makes them the same), the environment is forked there (E4), and from
the fork given actions are played, then a policy goes on, several times with different chance. This runs in a process of
its own (``python -m turnwise.trainers.view.forking``), which reads one question as JSON from its input and writes answers
as JSON lines: an environment or a model that hangs or fills the memory takes nothing else with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pydantic

from turnwise.agents.core import Episode, History, Policy, Reply, Turn
from turnwise.agents.log.episode_log import LogPlace, read_record
from turnwise.agents.log.records import Record, env_version
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import BranchPoint, Limits, fork, rollout, rollout_episode
from turnwise.envs.core import AgentEnv, EndReason
from turnwise.envs.messages import Message
from turnwise.envs.registry import resolve
from turnwise.envs.trust import NO_TRUST, LogTrust, make_logged, options_of
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json
from turnwise.tools.dialects.hermes import HERMES, render

MOST_CONTINUATIONS = 64
MOST_ACTIONS = 50
_LIMITS = Limits(reset_s=60, step_s=60, generate_s=120, episode_s=300)
_SHOWN_ACTIONS = 40

Arm = Literal["as played", "changed", "you"]


class ForkQuestion(pydantic.BaseModel):
    """Question that is asked of an episode.

    Attributes:
        log, start, line: where it stands.
        turn: at which it is forked, from 1.
        actions: played there one after the other instead of what was played; empty: the policy chooses at once.
        policy: who goes on after them, by spec; empty: nobody, it stops and says what there is to see.
        continuations: how often, each with other chance.
        temperature: of a model's sampling.
        trust_log: carry out what the log says of environments (:mod:`turnwise.envs.trust`).
        envs: files of environments that are not installed.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    log: str
    start: int
    line: int
    turn: int = pydantic.Field(ge=1)
    actions: tuple[str, ...] = pydantic.Field(default=(), max_length=MOST_ACTIONS)
    policy: str = ""
    continuations: int = pydantic.Field(default=8, ge=1, le=MOST_CONTINUATIONS)
    temperature: float = pydantic.Field(default=1.0, ge=0.0, le=10.0)
    trust_log: bool = False
    envs: tuple[str, ...] = ()

    @property
    def trust(self) -> LogTrust:
        return LogTrust(self.trust_log)


class ForkTurn(pydantic.BaseModel):
    """A turn that was played after the fork."""

    saw: str
    action: str
    reward: float
    rewards: dict[str, float]
    bad: bool


class ForkEpisode(pydantic.BaseModel):
    """Result of one continuation: its turns from the fork on, and what they earned."""

    kind: Literal["episode"] = "episode"
    arm: Arm
    to_go: float
    score: float
    end: str
    counts: bool
    error: str
    turns: tuple[ForkTurn, ...]
    final: str


class ForkMoment(pydantic.BaseModel):
    """The moment at which a person acts next: what there is to see, and some actions that mean something."""

    kind: Literal["moment"] = "moment"
    observation: str
    admissible: tuple[str, ...]
    changed: str  # why this may not be the moment that was recorded; empty: it is


class ForkProblem(pydantic.BaseModel):
    """Why there is no answer."""

    kind: Literal["problem"] = "problem"
    cause: str
    remedy: str


ForkAnswer = ForkEpisode | ForkMoment | ForkProblem
Tell = Callable[[ForkAnswer], None]


class SteeredPolicy:
    """Plays given replies from a turn on; then another policy goes on, or the episode stops."""

    name = "what if"
    version = 0

    def __init__(self, replies: Sequence[Reply], first: int, then: Policy | None) -> None:
        self._replies, self._first, self._then = replies, first, then

    async def act(self, history: History) -> Reply:
        number = len(history.turns) - self._first
        if number < len(self._replies):
            return self._replies[number]
        if self._then is None:
            return Reply(Message("assistant", ""), end=EndReason.GAVE_UP)
        return await self._then.act(history)

    def close(self) -> None:
        """The other policy is its maker's."""


class _Fork(NamedTuple):
    """The point at which an episode is forked; ``changed`` says in what it differs from the record.

    ``env`` is there: a copy of a live world may need it. Whoever has this closes it.
    """

    env: AgentEnv[Any]
    point: BranchPoint
    admissible: tuple[str, ...]
    changed: str


async def play_forks(question: ForkQuestion, tell: Tell) -> None:
    """Answer a question, piece by piece.

    Raises:
        TurnwiseError: the episode is not there, it has no such turn, it cannot be forked, or the policy cannot be made.
    """
    for file in question.envs:
        resolve(file)
    record = read_record(question.log, LogPlace(question.start, question.line))
    turns = record.episode.trajectory.turns
    if question.turn > len(turns):
        raise TurnwiseError(f"The episode has {len(turns)} turns.", "Choose one of them.")
    before = [turn.reply for turn in turns[: question.turn - 1]]
    given = [read_action(text) for text in question.actions]
    if not question.policy:
        found = await reach(record, [*before, *given], question.trust)
        if isinstance(found, _Fork):
            found.env.close()
            tell(_moment(found))
            played = found.point.turns[len(before) :]
            tell(_told("you", played, "", "goes on", True, "", 0))
        else:
            tell(_episode("you", found, len(before)))
        return
    fork_at = await reach(record, before, question.trust)
    if not isinstance(fork_at, _Fork):
        raise TurnwiseError(
            f"Replayed, the episode ends before turn {question.turn} ({fork_at.error or fork_at.end}).",
            "The environment's code has changed since; `turnwise replay` says where.",
        )
    tell(_moment(fork_at))
    with contextlib.closing(fork_at.env):
        policy = make_policy(question.policy, temperature=question.temperature)
        with contextlib.closing(policy):
            await _continue(question, record, fork_at.point, policy, given, tell)


def _moment(found: _Fork) -> ForkMoment:
    return ForkMoment(
        observation=str(found.point.observation), admissible=found.admissible, changed=found.changed
    )


async def _continue(
    question: ForkQuestion,
    record: Record,
    point: BranchPoint,
    policy: Policy,
    given: Sequence[Reply],
    tell: Tell,
) -> None:
    """Both arms with the same chance: the action that was played, and what is asked for, each followed by the policy."""
    recorded = record.episode.trajectory.turns[question.turn - 1].reply
    arms: dict[Arm, Sequence[Reply]] = {"as played": [recorded], "changed": given}
    if len(given) == 1 and _meant(given[0].message) == _meant(recorded.message):
        del arms["changed"]
    first = len(point.turns)
    for arm, replies in arms.items():
        await rollout(
            [fork(point, "what if", number) for number in range(question.continuations)],
            SteeredPolicy(replies, first, policy),
            concurrency=8,
            limits=_LIMITS,
            retries=0,
            env_options=options_of(record.logged, question.trust),
            on_episode=lambda _, episode, arm=arm: tell(_episode(arm, episode, first)),
        )


async def reach(record: Record, replies: Sequence[Reply], trust: LogTrust = NO_TRUST) -> _Fork | Episode:
    """Play replies from the beginning; the point after the last of them, or the episode, where it ended before.

    Raises:
        TurnwiseError: the environment cannot be forked: it has several agents, or a world that cannot be copied; or the log asks
            for more than a log may that nobody trusts.
    """
    episode = record.episode
    if len(episode.trajectories) > 1:
        raise TurnwiseError(
            "An episode of several agents cannot be forked: whose turn it would be is not recorded.",
            "`turnwise play` plays such a task from its beginning.",
        )
    env = make_logged(record.logged, trust)
    reached: list[_Fork] = []

    def look(point: BranchPoint) -> None:
        if len(point.turns) == len(replies):
            possible = tuple(map(str, env.admissible(env.state)[:_SHOWN_ACTIONS]))
            reached.append(_Fork(env, point, possible, _changed(record, point)))

    try:
        played = await rollout_episode(
            env,
            SteeredPolicy(replies, 0, None),
            episode.task,
            seed=episode.seed,
            limits=_LIMITS,
            on_branch_point=look,
        )
    finally:
        if not reached:
            env.close()
    if reached:
        return reached[0]
    if not played.outcome.counts:
        raise TurnwiseError(
            f"The episode cannot be played again up to there: {played.error}",
            "What cannot be copied cannot be forked; `turnwise replay` says whether it replays at all.",
        )
    return played


def _changed(record: Record, point: BranchPoint) -> str:
    """In what the replayed moment differs from the record, as far as the record goes along with it."""
    turns = record.episode.trajectory.turns
    number = len(point.turns)
    same_actions = [turn.action for turn in point.turns] == [turn.action for turn in turns[:number]]
    if same_actions and number < len(turns) and point.observation != turns[number].observation:
        version = env_version(record.episode.task.env, record.env.options)
        why = (
            "its code has changed since" if version.source != record.env.source else "it is not deterministic"
        )
        return f"Replayed, the environment says something else than was recorded: {why}."
    return ""


def read_action(text: str) -> Reply:
    """Read what a person typed, with the tool calls in it, as a reply."""
    parsed = HERMES.parse(text.replace("\r\n", "\n"))
    return Reply(Message("assistant", parsed.content, parsed.calls))


def write_action(message: Message) -> str:
    """An action as a person would type it: :func:`read_action` reads the same words and calls."""
    return "\n".join(
        filter(None, (message.content, render(message.tool_calls) if message.tool_calls else ""))
    )


def _meant(action: Message) -> tuple[str, list[tuple[str, Mapping[str, Json]]]]:
    """Return what an action says and calls, however its calls are written; their ids say nothing."""
    read = read_action(write_action(action)).message
    return read.content, [(call.name, call.arguments) for call in read.tool_calls]


def _episode(arm: Arm, episode: Episode, first: int) -> ForkEpisode:
    end = str(episode.end or episode.outcome).replace("_", " ")
    final = str(episode.trajectory.final)
    turns = episode.trajectory.turns[first:]
    return _told(arm, turns, final, end, episode.outcome.counts, episode.error, episode.score)


def _told(
    arm: Arm, turns: Sequence[Turn], final: str, end: str, counts: bool, error: str, score: float
) -> ForkEpisode:
    return ForkEpisode(
        arm=arm,
        to_go=float(sum(turn.reward for turn in turns)),
        score=float(score),
        end=end,
        counts=counts,
        error=error,
        turns=tuple(
            ForkTurn(
                saw=str(turn.observation),
                action=str(turn.action),
                reward=float(turn.reward),
                rewards={name: float(value) for name, value in turn.rewards.items()},
                bad=turn.bad_action,
            )
            for turn in turns
        ),
        final=final,
    )


_ANSWERS: pydantic.TypeAdapter[ForkAnswer] = pydantic.TypeAdapter(ForkAnswer)


def read_answer(line: bytes) -> ForkAnswer:
    """A line of the process's output.

    Raises:
        ValueError: it is none.
    """
    return _ANSWERS.validate_json(line)


def main() -> None:
    """Read a question, write answers; what libraries print goes to the errors."""
    out = os.dup(1)
    os.dup2(2, 1)

    def tell(answer: ForkAnswer) -> None:
        data = answer.model_dump_json().encode("utf-8", "replace") + b"\n"
        while data:
            data = data[os.write(out, data) :]

    try:
        question = ForkQuestion.model_validate_json(sys.stdin.buffer.read())
        asyncio.run(play_forks(question, tell))
    except TurnwiseError as error:
        tell(ForkProblem(cause=error.cause, remedy=error.remedy))
    except Exception as error:  # noqa: BLE001 (whatever an environment or a model raises is the answer)
        with contextlib.suppress(BrokenPipeError):
            tell(
                ForkProblem(
                    cause=f"{type(error).__name__}: {error}"[:500], remedy="The terminal has more of it."
                )
            )
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
