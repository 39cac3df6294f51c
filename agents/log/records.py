"""An episode as one JSON object, with everything that replaying it needs, and back.

Every number is written as Python's shortest exact text, so ``from_line(to_line(record)) == record`` to
the last bit. Each turn carries ``chain``, a hash of all observations up to it; a line whose text was
changed after it was written is noticed when it is read.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import turnwise
from turnwise.agents.core import (
    PREVIOUS,
    Act,
    Episode,
    Finish,
    MemoryMark,
    Outcome,
    Reply,
    Served,
    Trajectory,
    Turn,
    TurnPlace,
    Usage,
    VersionSpan,
)
from turnwise.agents.log.forms import check_form, read_json
from turnwise.agents.log.line import chain_link, encode, written_line
from turnwise.envs.core import AgentEnv, EndReason
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import env_class, file_of
from turnwise.envs.trust import LoggedEnv
from turnwise.errors import EnvError, TurnwiseError
from turnwise.fault import FaultCause
from turnwise.tasks.core import Json, Task

FORMAT = 3
_NOT_SERVED = Served()


class EnvVersion(NamedTuple):
    """The code that played the environment's part: ``module:Class``, a hash of its source, its options.

    ``file`` is ``path/to/file.py:Class`` where it is written in a file that nobody installed.
    """

    entry: str = ""
    source: str = ""
    options: Mapping[str, Json] = {}
    file: str = ""


@dataclass(frozen=True)
class Record:
    """A line of an episode log: the episode, and where it comes from.

    Attributes:
        episode: what was played.
        policy: the policy's name.
        env: the environment's code and options.
        update: the training update that it belongs to, counted from 1; None outside training.
        group: the number of its group within the update; equal numbers are siblings.
        suite: that the task was drawn from, in training.
        advantages: what the credit rule gave each turn of the agents that are trained; empty outside training.
        turnwise: the version that wrote the line.
        entropies: of each agent's turns, that of the distribution of each sampled token, in nats, as the trainer reckoned
            it before the update (``log.entropy`` of a recipe); empty where it was not measured.
    """

    episode: Episode
    policy: str = ""
    env: EnvVersion = field(default_factory=EnvVersion)
    update: int | None = None
    group: int | None = None
    advantages: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    turnwise: str = turnwise.__version__
    suite: str = ""
    entropies: Mapping[str, tuple[tuple[float, ...], ...]] = field(
        default_factory=dict[str, tuple[tuple[float, ...], ...]]
    )

    @property
    def logged(self) -> LoggedEnv:
        """The line's environment, whose code is run as far as whoever reads the line trusts it."""
        return LoggedEnv(self.episode.task, self.env.options, self.env.file)

    @property
    def given(self) -> tuple[float, ...]:
        """The first agent's advantages; empty where it was not trained on this episode."""
        return self.advantages.get(self.episode.trajectory.agent, ())


def env_version(name: str, options: Mapping[str, Json]) -> EnvVersion:
    """The version of a registered environment as it is installed now."""
    cls = env_class(name)
    return EnvVersion(f"{cls.__module__}:{cls.__qualname__}", _source_hash(cls), dict(options), file_of(name))


@functools.cache
def _source_hash(cls: type[AgentEnv[Any]]) -> str:
    """A hash of the class's module and, where they have a package of their own, its neighbours and tables."""
    try:
        home = Path(inspect.getfile(cls))
    except (OSError, TypeError):  # made in a console or by exec
        return ""
    package = cls.__module__.rpartition(".")[0]
    # `envs/` itself and site-packages hold what is not this environment's.
    alone = package in ("", "turnwise.envs") and home.name != "__init__.py"
    files = (
        [home] if alone else sorted(file for form in ("*.py", "*.yaml") for file in home.parent.glob(form))
    )
    text = hashlib.blake2b(digest_size=8)
    for file in files:
        text.update(file.name.encode() + b"\0" + file.read_bytes())
    return text.hexdigest()


def to_line(record: Record) -> str:
    """The record as one line of ASCII JSON, without the newline.

    Raises:
        EnvError: the environment gave something that JSON cannot hold (NaN, an object).
        TurnwiseError: the policy or the credit rule did.
    """
    episode = record.episode
    data: dict[str, Any] = {
        "format": FORMAT,
        "turnwise": record.turnwise,
        "policy": record.policy,
        "env": {
            "entry": record.env.entry,
            "source": record.env.source,
            "options": dict(record.env.options),
            **({"file": record.env.file} if record.env.file else {}),
        },
        "task_id": episode.task.id,
        "task": episode.task.to_json(),
        "seed": episode.seed,
        "outcome": episode.outcome.value,
        "end": episode.end and episode.end.value,
        "error": episode.error,
        **({"cause": episode.cause.value} if episode.cause else {}),
        "metrics": dict(episode.metrics),
        "update": record.update,
        "group": record.group,
        **({"suite": record.suite} if record.suite else {}),
        "agents": {
            name: _from_trajectory(
                trajectory, record.advantages.get(name, ()), record.entropies.get(name, ())
            )
            for name, trajectory in episode.trajectories.items()
        },
    }
    try:
        return written_line(data, episode.task)
    except (ValueError, TypeError, RecursionError) as error:
        raise _unwritable(record, data, error) from None


_OF_THE_POLICY = frozenset(
    {"action", "prompt_ids", "action_ids", "logprobs", "versions", "scored_ids", "policy_end", "served"}
)


def _unwritable(record: Record, data: Json, error: Exception) -> TurnwiseError:
    """Return the error that says whose value JSON cannot hold, and where it stands."""
    task = record.episode.task
    where, value = next(_beyond_json(data, ()), ((), None))
    place = ".".join(str(key + 1 if isinstance(key, int) else key) for key in where)
    found = f"{place} is {value!r:.80}" if where else str(error)
    remedy = "Rewards, log-probabilities, metrics and details must be finite numbers, text, lists or dicts."
    said = f"cannot be written to the log: {found}. Episodes that finished before it are kept."
    if where[0:1] == ("agents",) and len(where) > 4 and where[4] == "advantage":
        return TurnwiseError(
            f"An advantage of task {task.id} {said}", "The credit rule must give finite numbers."
        )
    if where[0:1] == ("agents",) and not _OF_THE_POLICY & {*where[4:5]}:
        return EnvError(f"What {task.env} gave in task {task.id} {said}", remedy)
    whose = f"the policy {record.policy!r}" if where[0:1] == ("agents",) else "this episode"
    return TurnwiseError(f"What {whose} gave in task {task.id} {said}", remedy)


def _beyond_json(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each value that JSON cannot hold, with the keys that lead to it; turns count from 0."""
    match value:
        case None | bool() | str() | int():
            pass
        case float():
            if not math.isfinite(value):
                yield path, value
        case Mapping():
            for key, item in value.items():
                if isinstance(key, (str, int, float)) or key is None:
                    yield from _beyond_json(item, (*path, key))
                else:
                    yield (*path, key), item
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _beyond_json(item, (*path, index))
        case _:
            yield path, value


def from_line(line: str | bytes) -> Record:
    """Read what :func:`to_line` wrote.

    Raises:
        ValueError: the line is no such record, or was changed since.
        TurnwiseError: another version wrote it, in another form.
    """
    data = read_json(line)
    known = isinstance(data, dict) and {"task_id", "agents"} <= data.keys()
    if known and type(data.get("format")) is int and 0 < data["format"] != FORMAT:
        raise TurnwiseError(
            f"The log is of format {reprlib.repr(data['format'])}, written by Turnwise {reprlib.repr(data.get('turnwise'))}; "
            f"this one reads format {FORMAT}.",
            "Read it with the version that wrote it, or play the episodes again.",
        )
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"not an episode of format {FORMAT}")
    check_form(data)
    try:
        episode = Episode(
            task=Task.from_json(data["task"]),
            seed=data["seed"],
            trajectories={name: _to_trajectory(name, agent) for name, agent in data["agents"].items()},
            outcome=Outcome(data["outcome"]),
            end=data["end"] and EndReason(data["end"]),
            error=data["error"],
            metrics=data["metrics"],
            cause=FaultCause(data["cause"]) if "cause" in data else None,
        )
        given = {
            name: tuple(turn["advantage"] for turn in agent["turns"] if "advantage" in turn)
            for name, agent in data["agents"].items()
        }
        spread = {
            name: tuple(tuple(turn.get("entropies", ())) for turn in agent["turns"])
            for name, agent in data["agents"].items()
        }
        record = Record(
            episode=episode,
            policy=data["policy"],
            env=EnvVersion(**data["env"]),
            update=data["update"],
            group=data["group"],
            advantages={name: advantages for name, advantages in given.items() if advantages},
            turnwise=data["turnwise"],
            suite=data.get("suite", ""),
            entropies={name: turns for name, turns in spread.items() if any(turns)},
        )
    except (KeyError, TypeError, AttributeError, StopIteration, EnvError) as error:
        raise ValueError(f"a field is missing or of the wrong type: {error!r}") from None
    if data["task_id"] != episode.task.id:
        raise ValueError("the task does not match its hash")
    return record


def _from_trajectory(
    trajectory: Trajectory, advantages: Sequence[float], entropies: Sequence[Sequence[float]]
) -> dict[str, Json]:
    tokens, found = [len(turn.reply.action_ids) for turn in trajectory.turns], [*map(len, entropies)]
    if found and (
        len(found) != len(tokens) or any(b not in (0, a) for a, b in zip(tokens, found, strict=True))
    ):
        raise TurnwiseError(
            f"Entropies of {found} tokens were given for turns of {tokens}.",
            "Give one per token of a turn, or none.",
        )
    if advantages and len(advantages) != len(trajectory.turns):
        raise TurnwiseError(
            f"{len(advantages)} advantages were given for {len(trajectory.turns)} turns.",
            "Give one per turn.",
        )
    turns: list[dict[str, Json]] = []
    for index, turn in enumerate(trajectory.turns):
        entry = _from_turn(turn) | {"observation": turn.observation.to_json(), "chain": ""}
        if advantages:
            entry["advantage"] = advantages[index]
        if entropies and entropies[index]:
            entry["entropies"] = entropies[index]
        turns.append(entry)
    return {"turns": turns, "final": trajectory.final.to_json(), "chain": ""}


def _from_turn(turn: Turn) -> dict[str, Json]:
    reply = turn.reply
    return {
        "action": reply.message.to_json(),
        "prompt_ids": reply.prompt_ids,
        "action_ids": reply.action_ids,
        "logprobs": reply.logprobs,
        "versions": reply.versions,
        **({"parent": reply.parent.at} if reply.parent != PREVIOUS else {}),
        **({"caller": reply.caller} if reply.caller is not None else {}),
        **({"continues": reply.continues} if reply.continues is not None else {}),
        **({"memory": _from_memory(reply.memory)} if reply.memory is not None else {}),
        **({"scored_ids": reply.scored_ids} if reply.scored_ids is not None else {}),
        **({"source": reply.source} if reply.source else {}),
        "policy_end": reply.end and reply.end.value,
        **({"served": _from_served(reply.served)} if reply.served != _NOT_SERVED else {}),
        "reward": turn.reward,
        "rewards": dict(turn.rewards),
        "state_key": turn.state_key,
        "bad_action": turn.bad_action,
        "details": dict(turn.details),
        **({"signals": dict(turn.signals)} if turn.signals else {}),
        **({"weight": turn.weight} if turn.weight != 1 else {}),
        **(
            {"acts": [act._asdict() | {"message": act.message.to_json()} for act in turn.acts]}
            if turn.acts is not None
            else {}
        ),
    }


def _to_trajectory(name: str, data: Mapping[str, Any]) -> Trajectory:
    chain = ""
    for number, turn in enumerate(data["turns"], 1):
        chain = chain_link(chain, encode(turn["observation"]))
        if chain != turn["chain"]:
            raise ValueError(f"the observation of turn {number} does not match its hash")
    if chain_link(chain, encode(data["final"])) != data["chain"]:
        raise ValueError("the last observation does not match its hash")
    return Trajectory(
        tuple(_to_turn(turn) for turn in data["turns"]), name, Messages.from_json(data["final"])
    )


def _to_turn(data: Mapping[str, Any]) -> Turn:
    observation = Messages.from_json(data["observation"])
    reply = Reply(
        message=Message.from_json(data["action"]),
        prompt_ids=tuple(data["prompt_ids"]),
        action_ids=tuple(data["action_ids"]),
        logprobs=tuple(data["logprobs"]),
        versions=tuple(VersionSpan(*span) for span in data["versions"]),
        parent=TurnPlace(data.get("parent", PREVIOUS.at)),
        caller=data.get("caller"),
        continues=data.get("continues"),
        scored_ids=None if data.get("scored_ids") is None else tuple(data["scored_ids"]),
        source=data.get("source", ""),
        end=data["policy_end"] and EndReason(data["policy_end"]),
        served=_to_served(data.get("served", {})),
        memory=_to_memory(data["memory"], observation) if "memory" in data else None,
    )
    return Turn(
        observation=observation,
        reply=reply,
        reward=data["reward"],
        rewards=data["rewards"],
        state_key=data["state_key"],
        bad_action=data["bad_action"],
        details=data["details"],
        signals=data.get("signals", {}),
        weight=data.get("weight", 1.0),
        acts=None if data.get("acts") is None else tuple(_to_act(act) for act in data["acts"]),
    )


def _from_memory(memory: MemoryMark) -> dict[str, Json]:
    """Write the mark of a turn of kind ``memory``; what was asked is the end of the observation, and is counted alone."""
    told = {"told": memory.told.to_json()} if memory.told else {}
    return {"asked": len(memory.asked), **told}


def _to_memory(data: Mapping[str, Any], observation: Messages) -> MemoryMark:
    begins = len(observation) - data["asked"]
    if begins < 0:
        raise ValueError("a turn of kind memory was asked more than it read")
    return MemoryMark(Messages(observation[begins:]), Messages.from_json(data.get("told", ())))


def _from_served(served: Served) -> dict[str, Json]:
    """Write the facts about a reply as JSON; those that are not told are left out."""
    finish = {"finish": served.finish.value}
    if served[1:] == _NOT_SERVED[1:]:
        return finish
    usage = {name: value for name, value in served.usage._asdict().items() if value is not None}
    words = {name: value for name, value in served._asdict().items() if value and name != "usage"}
    return words | finish | ({"usage": usage} if usage else {})


def _to_served(data: Mapping[str, Any]) -> Served:
    words = {"finish": Finish(data["finish"]), "usage": Usage(**data.get("usage", {}))} if data else {}
    return Served(**{**data, **words})


def _to_act(data: Mapping[str, Any]) -> Act:
    return Act(Message.from_json(data["message"]), data["number"], data["turns"], data["bad_action"])
