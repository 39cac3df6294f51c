"""Guides, sources and teachers: on small suites, with an engine that does as it was told, and logs made for the purpose."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import json
import random
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from math import log, sqrt
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from measured import logits, row
from plain import reference, refuses

from turnwise.agents.core import (
    PREVIOUS,
    ROOT,
    Act,
    Completion,
    Episode,
    Outcome,
    Reply,
    Sampling,
    Trajectory,
    Turn,
)
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.policies.mixture import mixture
from turnwise.agents.policies.model import DemonstrationPolicy, ModelPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import get_suite, register, suite_tasks
from turnwise.envs.registry import make as make_env
from turnwise.errors import RunError
from turnwise.tasks.core import Split, Task
from turnwise.tools.core import ToolCall, tool
from turnwise.trainers.check.teacher import scene as taught_scene
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.toy import toy_model, untrained_policy
from turnwise.trainers.learn.learner import Learner
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.source.core import SourceContext, SourceDraw
from turnwise.trainers.source.stored import Stored
from turnwise.trainers.source.toy import example_context
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import RolloutRunner, plan_groups
from turnwise.trainers.teacher.core import TeacherSetup, taught

Part = Callable[..., Any]
FORGETS = """\
{%- for message in messages %}
{{- '<|' + message.role + '|>' + ('.' if message.role == 'assistant' and not loop.last else message.content) }}
{%- if message.role == 'assistant' %}{{ '<|end|>' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""
"""A chat template that does not repeat what was said, so that every turn's prompt stands alone."""


# --- guides -----------------------------------------------------------------------------------------------------


class Obedient:
    """An engine that says line by line what a hint in its prompt says, and otherwise nothing of use."""

    version, context_length = 0, 4096

    def __init__(self, tokenizer: Any, stop: int) -> None:
        self.tokenizer, self.stop = tokenizer, stop

    async def generate(self, prompt_ids: Any, sampling: Any, *, stop_ids: Any, seed: int) -> Completion:
        text = self.tokenizer.decode(list(prompt_ids))
        told = text.partition("Hint: ")[2].partition("<|")[0].splitlines()
        turn = text.count("<|assistant|>") - 1
        said = told[turn] if turn < len(told) else "?"
        ids = (*self.tokenizer.encode(said, add_special_tokens=False), self.stop)
        return Completion(ids, (-0.5,) * len(ids), stopped=True)

    def close(self) -> None:
        """Nothing is held."""


@functools.cache
def obedient(template: str = "") -> ModelPolicy:
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(toy_model())
    if template:
        tokenizer.chat_template = template
    renderer = Renderer(tokenizer, tools_format="none")
    return ModelPolicy(Obedient(tokenizer, next(iter(renderer.stop_ids))), renderer, Sampling(max_tokens=200))


class Guided(NamedTuple):
    """Groups as they were given to a guide, as it left them, and gold's actions of each task."""

    plain: list[Group]
    found: list[Group]
    plans: list[list[str]]


def guided(
    guide: Part,
    suite: str,
    *,
    groups: int = 4,
    seed: int = 0,
    template: str = "",
    update: int = 0,
    **options: Any,
) -> Guided:
    """The second group was solved, the third failed to be played; nobody solved the others."""
    policy = obedient(template)
    runner = RolloutRunner(policy, as_is)
    player = GuidePlayer(runner, policy, {}, seed, update)

    async def run() -> tuple[list[Group], list[Group]]:
        given = await chain(runner, plan_groups(suite, groups, 2, seed))
        given[1] = [dataclasses.replace(given[1][0], end=EndReason.SOLVED), given[1][1]]
        given[2] = [dataclasses.replace(one, outcome=Outcome.INFRA_ERROR) for one in given[2]]
        return given, await guide(player, given, **options)

    given, found = asyncio.run(run())
    shown = run_episodes([Request(group[0].task, 7) for group in given], scripted("gold"))
    return Guided(given, found, [[str(turn.action) for turn in one.trajectory.turns] for one in shown])


def actions(episode: Episode) -> list[str]:
    return [str(turn.action) for turn in episode.trajectory.turns]


def is_hinted(episode: Episode, before: Episode, hint: list[str], template: str) -> None:
    """It was sampled under the hint, is learned without it, and says who helped."""
    renderer, conversation = obedient(template).renderer, list[Message]()
    assert episode.success
    assert episode.task.id == before.task.id
    for k, turn in enumerate(episode.trajectory.turns):
        conversation += turn.observation
        reply = turn.reply
        assert (reply.source, turn.weight) == ("guide/hint", 1.0)
        alone = k == 0 or bool(template)
        assert reply.parent == (ROOT if k and template else PREVIOUS)
        if alone:
            told = [
                dataclasses.replace(
                    conversation[0], content=f"{conversation[0].content}\n\nHint: " + "\n".join(hint)
                ),
                *conversation[1:],
            ]
            assert reply.prompt_ids == tuple(renderer.start(told, ()))
            assert reply.scored_ids == tuple(renderer.start(conversation, ()))
        else:
            assert reply.scored_ids is None
        conversation.append(turn.action)


# --- sources ----------------------------------------------------------------------------------------------------


def drawn(source: Part, update: int, seed: int = 0) -> SourceDraw:
    async def draw() -> SourceDraw:
        return await source(example_context("shop/quick", seed=seed), update)

    return asyncio.run(draw())


@reference("source", "demonstrations", demonstrator=["demonstrator"], episodes=[3])
def demonstrations(source: Part, demonstrator: str = "gold", episodes: int = 16) -> None:
    """New tasks, far from those that are played and those of the warm start; solved as the script solves them."""
    see, known = example_context("shop/quick"), set[str]()
    for update in range(3):
        found = drawn(source, update)
        assert not found.joined
        tasks = [see.mixture.task((1 << 40) + (1 << 30) + update * episodes + i) for i in range(episodes)]
        assert [one.task.id for one in found.shown] == [task.id for task in tasks]
        known |= {task.id for task in tasks}
        for one in found.shown:
            assert one.success or demonstrator != "gold"
            assert len(one.trajectories) == 1
            for turn in one.trajectory.turns:
                assert turn.reply.action_ids == tuple(see.renderer.reply_ids(turn.action))
                assert not turn.reply.logprobs
        if demonstrator == "gold":
            gold = run_episodes([Request(one.task, 1) for one in found.shown], scripted("gold"))
            assert [*map(actions, found.shown)] == [*map(actions, gold)]
    assert len(known) == 3 * episodes


@functools.cache
def tried() -> list[list[list[Episode]]]:
    """Four updates of groups: failed as a whole, in part, in what counts, not at all; some tasks come back."""
    see = example_context("shop/quick")
    tasks, rng = [*see.mixture.tasks(24, start=0)], random.Random(5)
    updates: list[list[list[Episode]]] = []
    for update in range(4):
        groups: list[list[Episode]] = []
        chosen = [*tasks[6 * update : 6 * update + 6], *(tasks[:2] if update else ())]
        for number, task in enumerate(chosen):
            seeds = [rng.getrandbits(30) for _ in range(3)]
            failed = run_episodes([Request(task, seed) for seed in seeds], scripted("echo"))
            broken = dataclasses.replace(failed[0], outcome=Outcome.INFRA_ERROR)
            (solved,) = run_episodes([Request(task, seeds[1])], scripted("gold"))
            lost = dataclasses.replace(solved, outcome=Outcome.ENV_ERROR)
            if update == 1 and number < 3:
                groups.append(
                    [[failed[0], solved, failed[2]], [broken] * 3, [lost, failed[1], failed[2]]][number]
                )
            else:
                groups.append(failed)
        updates.append(groups)
    return updates


@reference("source", "relift", demonstrator=["demonstrator"], batch=[3, 1, 6])
def relift(make: Part, demonstrator: str = "gold", batch: int = 16) -> None:
    """A queue of the tasks at which all that counts of a group failed, each there once; whole batches of it are played."""
    for wrong in (0, -1):
        refuses(lambda wrong=wrong: make(batch=wrong))
    see, source, waiting = example_context("shop/quick"), make(), list[tuple[Task, int]]()
    shown_ever = 0
    for update, groups in enumerate(tried()):
        for group in groups:
            counting = [one for one in group if one.outcome in (Outcome.OK, Outcome.LIMIT)]
            failed = counting and max(one.success for one in counting) is False
            if failed and counting[0].task.id not in [task.id for task, _ in waiting]:
                waiting.append((counting[0].task, counting[0].seed))
        found = asked(source, dataclasses.replace(see, played=groups), update)
        assert not found.joined
        due = waiting[:batch] if len(waiting) >= batch else []
        waiting = waiting[len(due) :]
        script = run_episodes([Request(*one) for one in due], scripted(demonstrator)) if due else []
        wanted = [one for one in script if one.success]
        assert [(one.task.id, one.seed) for one in found.shown] == [(one.task.id, one.seed) for one in wanted]
        assert [*map(actions, found.shown)] == [*map(actions, wanted)]
        for turn in (turn for one in found.shown for turn in one.trajectory.turns):
            assert turn.reply.action_ids == tuple(see.renderer.reply_ids(turn.action))
            assert not turn.reply.logprobs
        shown_ever += len(found.shown)
        state, source = source.state(), make()
        source.restore(PartState(json.loads(json.dumps({**state.numbers})), state.tensors))
    assert shown_ever
    if batch == 16:
        assert len(waiting) == 8  # 6 and 4 and 6 are 16; then 6, and two that had left
    fresh = make()
    fresh.restore(PartState())
    assert not asked(fresh, see).shown


class Log(NamedTuple):
    """A log, and by (update, group) the episodes in it that count."""

    path: str
    groups: list[list[Episode]]


def log_with(wrong: str) -> str:
    """A log whose second episode lacks tokens (of all turns, of the last one), or has those of another model."""
    episodes = [*log_of(False).groups[0][:2]]
    trajectory = episodes[1].trajectory
    last = len(trajectory.turns) - 1

    def spoil(k: int, reply: Reply) -> Reply:
        if wrong == "none" or (wrong == "last missing" and k == last):
            return reply._replace(action_ids=())
        if wrong == "other actions":
            return reply._replace(action_ids=tuple(max(0, one - 1) for one in reply.action_ids))
        if wrong == "other vocabulary":
            return reply._replace(prompt_ids=tuple(one + 10**6 for one in reply.prompt_ids))
        if wrong == "other template" and k == 1:
            return reply._replace(prompt_ids=(*reply.prompt_ids, reply.prompt_ids[-1]))
        return reply

    turns = tuple(
        dataclasses.replace(turn, reply=spoil(k, turn.reply)) for k, turn in enumerate(trajectory.turns)
    )
    episodes[1] = dataclasses.replace(
        episodes[1], trajectories={"agent": dataclasses.replace(trajectory, turns=turns)}
    )
    path = Path(tempfile.mkdtemp(prefix="turnwise-reference-")) / "episodes.jsonl"
    with EpisodeLog(path) as log:
        for one in episodes:
            log.append(one, update=0, group=0)
    return str(path)


@functools.cache
def log_of(solved: bool) -> Log:
    """Three updates of two groups, of no update two episodes of one task and one of each of three, and one that failed."""
    play = mixture("demonstrator=0.5,random=0.5")
    policy = DemonstrationPolicy(play, untrained_policy().renderer)
    folder = Path(tempfile.mkdtemp(prefix="turnwise-reference-"))
    path, groups = folder / "episodes.jsonl", list[list[Episode]]()
    with EpisodeLog(path) as log:
        for update in range(3):
            for number, plan in enumerate(plan_groups("shop/quick", 2, 3, update)):
                group = run_episodes(plan, policy)
                for one in group:
                    log.append(one, update=update, group=number)
                groups.append(group)
        gold = DemonstrationPolicy(mixture("gold=1.0"), policy.renderer)
        for number, seeds, player in (
            (0, (1, 2), policy),
            (1, (3,), gold),
            (2, (4,), gold),
            (3, (5,), policy),
        ):
            groups.append(run_episodes([Request(groups[number][0].task, seed) for seed in seeds], player))
            for one in groups[-1]:
                log.append(one)
        log.append(dataclasses.replace(groups[0][0], outcome=Outcome.INFRA_ERROR), update=9, group=0)
    wanted = [[one for one in group if one.success or not solved] for group in groups]
    return Log(str(path), [group for group in wanted if group])


def said_with(episode: Episode, known: Callable[[int], bool], tokens: Callable[[int], bool]) -> Episode:
    """The episode with the probabilities, and with the tokens, of some of its turns."""

    def of(number: int, reply: Reply) -> Reply:
        ids = reply.action_ids if tokens(number) else ()
        return reply._replace(action_ids=ids, logprobs=(-1.0,) * len(ids) if known(number) else ())

    told = episode.trajectory
    turns = tuple(dataclasses.replace(turn, reply=of(k, turn.reply)) for k, turn in enumerate(told.turns))
    return dataclasses.replace(episode, trajectories={"agent": dataclasses.replace(told, turns=turns)})


@functools.cache
def logs_of_what_is_known() -> list[tuple[str, bool]]:
    """Logs, and whether an episode in them that counts was not sampled with tokens and probabilities in every turn."""
    whole = log_of(False).groups[0][0]
    assert len(whole.trajectory.turns) > 1
    known = said_with(whole, lambda _: True, lambda _: True)
    unlikely = said_with(whole, lambda number: number > 0, lambda _: True)
    wordless = said_with(whole, lambda _: True, lambda number: number > 0)
    kinds = [((known,), False), ((unlikely,), True), ((wordless,), True), ((known, wordless), True)]
    for other in (unlikely, wordless):
        kinds.append(((dataclasses.replace(other, outcome=Outcome.INFRA_ERROR), known), False))
    found = [(str(Path(tempfile.gettempdir()) / "no-such-log.jsonl"), False)]
    for episodes, unknown in kinds:
        path = Path(tempfile.mkdtemp(prefix="turnwise-reference-")) / "episodes.jsonl"
        with EpisodeLog(path) as log:
            for one in episodes:
                log.append(one, update=0, group=0)
        found.append((str(path), unknown))
    return found


@reference("source", "stored", path=["a log"], groups=[3], solved=[False], join=[True])
def stored(make: Part, path: str = "", groups: int = 4, solved: bool = True, join: bool = False) -> None:
    if not path:
        refuses(make)
    for kept, unknown in logs_of_what_is_known():
        assert make(path=kept).joins_unknown() is (join and unknown)
    log = log_of(solved and not join)
    draw = make(path=log.path)
    assert 4 < len(log.groups) < (10 if solved and not join else 11)
    counts = [0] * len(log.groups)
    for update in range(60):
        found = drawn(draw, update)
        assert bool(found.joined) == join
        assert bool(found.shown) != join
        if join:
            places = [_place(log, group) for group in found.joined]
        else:
            places = [*dict.fromkeys(_holding(log, one) for one in found.shown)]
            assert [_key(one) for one in found.shown] == [_key(one) for n in places for one in log.groups[n]]
        assert len(places) == groups == len({*places})
        for n in places:
            counts[n] += 1
    chance = groups / len(counts)
    assert all(abs(n - 60 * chance) <= 4.5 * sqrt(60 * chance * (1 - chance)) for n in counts), counts
    assert drawn(draw, 0, seed=1) != drawn(draw, 0)
    every = drawn(make(path=log.path, groups=99), 0)
    assert len(every.joined or every.shown) == (len(log.groups) if join else sum(map(len, log.groups)))
    for wrong in ("none", "last missing", "other actions", "other vocabulary", "other template"):
        found = drawn(make(path=log_with(wrong), solved=False), 0)
        given = [one for group in found.joined for one in group] or [*found.shown]
        assert [*map(_tokens, given)] == [*map(_tokens, log_of(False).groups[0][:2])], wrong
    with tempfile.TemporaryDirectory() as folder, EpisodeLog(f"{folder}/empty.jsonl") as log_:
        failed = dataclasses.replace(log.groups[0][0], outcome=Outcome.INFRA_ERROR)
        log_.append(failed, update=0, group=0)
        log_.close()
        why = refuses(lambda: drawn(make(path=str(log_.path)), 0), RunError)
        assert ("no solved episode" in why) == (solved and not join)


SAID = (
    "<think>Is it this?\nIt is.</think>",
    "<think>a</think> or <think></think>",
    "",
    "</think><think>so I",
    "<think>\n\n</think>",
)
"""What stands before an action, turn by turn: thoughts, none, one that is never closed, one that is empty as it is."""


@functools.cache
def thinking_log() -> Log:
    """Those episodes with thoughts, half of them in this model's tokens, the others without any."""
    folder = Path(tempfile.mkdtemp(prefix="turnwise-reference-"))
    groups = [
        [_thinking(one, tokens=bool(n % 2)) for one in group] for n, group in enumerate(log_of(False).groups)
    ]
    with EpisodeLog(folder / "episodes.jsonl") as log:
        for number, group in enumerate(groups):
            for one in group:
                log.append(one, update=number, group=0)
    return Log(str(log.path), groups)


def _thinking(episode: Episode, *, tokens: bool) -> Episode:
    trajectory = episode.trajectory
    turns = tuple(
        dataclasses.replace(
            turn,
            reply=Reply(dataclasses.replace(turn.action, content=SAID[k % len(SAID)] + turn.action.content)),
        )
        for k, turn in enumerate(trajectory.turns)
    )
    found = dataclasses.replace(episode, trajectories={"agent": dataclasses.replace(trajectory, turns=turns)})
    return in_tokens(found) if tokens else found


def in_tokens(episode: Episode) -> Episode:
    """The episode in the small model's tokens, turn after turn."""
    renderer, said, turns = untrained_policy().renderer, list[Message](), list[Any]()
    for turn in episode.trajectory.turns:
        said += turn.observation
        ids = renderer.reply_ids(turn.action)
        before = turns[-1].reply.action_ids[-1] if turns else None
        new = renderer.extend(said, len(turn.observation), before).ids if turns else renderer.start(said)
        turns.append(
            dataclasses.replace(turn, reply=Reply(turn.action, tuple(new), tuple(ids), (-0.5,) * len(ids)))
        )
        said.append(turn.action)
    trajectory = dataclasses.replace(episode.trajectory, turns=tuple(turns))
    return dataclasses.replace(episode, trajectories={"agent": trajectory})


@reference("source", "thought_dropout", path=["a log"], groups=[3], solved=[False], drop=[0.2, 1.0])
def thought_dropout(
    make: Part, path: str = "", groups: int = 4, solved: bool = True, drop: float = 0.5
) -> None:
    """Every turn's thoughts are empty with this probability, each apart, in what is said and in what is read later."""
    if not path:
        refuses(make)
    log = thinking_log()
    for wrong in (0.0, -0.1, 1.01):
        refuses(lambda wrong=wrong: make(path=log.path, drop=wrong))
    make(path=log.path, drop=1.0)
    why = refuses(lambda: drawn(make(path=log_of(False).path, solved=False), 0), RunError)
    assert log_of(False).path in why
    known = {(one.task.id, one.seed): (n, one) for n, group in enumerate(log.groups) for one in group}
    source = make(path=log.path)
    asked = dropped = mixed = 0
    for update in range(25):
        found = drawn(source, update)
        assert not found.joined
        places = [known[one.task.id, one.seed][0] for one in found.shown]
        assert len({*places}) == groups
        every = [one for n in dict.fromkeys(places) for one in log.groups[n] if one.success or not solved]
        assert [one.seed for one in found.shown] == [one.seed for one in every]
        for one, before in zip(found.shown, every, strict=True):
            kinds = [
                _dropped(*both) for both in zip(one.trajectory.turns, before.trajectory.turns, strict=True)
            ]
            thoughts = [kind for kind in kinds if kind is not None]
            asked, dropped = asked + len(thoughts), dropped + sum(thoughts)
            mixed += len({*thoughts}) == 2
            assert _tokens(one) == _tokens(in_tokens(one)), "what was dropped is not in later prompts either"
            as_sampled = known[one.task.id, one.seed][0] % 2 == 1 and not any(thoughts)
            assert all(bool(turn.reply.logprobs) == as_sampled for turn in one.trajectory.turns)
    assert abs(dropped - drop * asked) <= 4.5 * sqrt(asked * drop * (1 - drop))
    assert bool(mixed) == (drop < 1)
    assert said_in(drawn(make(path=log.path), 1)) == said_in(drawn(make(path=log.path), 1))
    if drop < 1:
        whole = make(path=log.path, groups=99, solved=False)
        assert (
            len({str(said_in(drawn(whole, update, seed))) for update, seed in ((0, 0), (1, 0), (0, 1))}) == 3
        )


def _dropped(turn: Any, before: Any) -> bool | None:
    """Whether a turn's thoughts were dropped; None where there are none."""
    empty = re.sub("<think>.*?</think>", "<think>\n\n</think>", before.action.content, flags=re.DOTALL)
    emptied = dataclasses.replace(before.action, content=empty)
    assert turn.action in (before.action, emptied)
    assert (turn.reward, turn.observation, turn.state_key) == (
        before.reward,
        before.observation,
        before.state_key,
    )
    return None if emptied == before.action else turn.action == emptied


def said_in(found: SourceDraw) -> list[str]:
    return sorted(f"{one.seed} {turn.action.content}" for one in found.shown for turn in one.trajectory.turns)


class Beaten(NamedTuple):
    """The paths of two logs, and which episodes of the first are above the best of the second: by group, and each agent apart."""

    played: str
    stored: str
    better: list[list[tuple[int, str]]]


@functools.cache
def beaten() -> Beaten:
    rng, folder = random.Random("returns"), Path(tempfile.mkdtemp(prefix="turnwise-reference-"))
    groups = [[_paid(one, rng) for one in group] for group in log_of(False).groups]
    missing = groups[2][0].task.id
    best: dict[tuple[str, str], float] = {}
    with EpisodeLog(folder / "played.jsonl") as played, EpisodeLog(folder / "stored.jsonl") as stored:
        for number, group in enumerate(groups):
            for one in group:
                played.append(one, update=number, group=0)
            if group[0].task.id == missing:
                continue
            for other in (_paid(group[0], rng, of=(-0.5, 0.5)) for _ in range(2)):
                stored.append(other)
                for name, trajectory in other.trajectories.items():
                    place = other.task.id, name
                    best[place] = max(best.get(place, -9.0), sum(turn.reward for turn in trajectory.turns))
            failed = _paid(group[0], rng, of=(5.0,))
            stored.append(dataclasses.replace(failed, outcome=Outcome.INFRA_ERROR))
    better = [
        [
            (one.seed, name)
            for one in group
            for name, trajectory in one.trajectories.items()
            if (one.task.id, name) in best
            and sum(turn.reward for turn in trajectory.turns) > best[one.task.id, name]
        ]
        for group in groups
    ]
    return Beaten(str(played.path), str(stored.path), [group for group in better if group])


def _paid(episode: Episode, rng: random.Random, of: Sequence[float] = (0.5, 0.5, 0.7)) -> Episode:
    """Two agents did the same, and each has a return of its own, half of it in its first turn."""

    def trajectory(name: str) -> Any:
        first, *others = episode.trajectory.turns
        total, none = rng.choice(of), [dataclasses.replace(turn, reward=0.0) for turn in others]
        turns = (dataclasses.replace(first, reward=total / 2), *none)
        last = dataclasses.replace(turns[-1], reward=turns[-1].reward + total / 2)
        return dataclasses.replace(episode.trajectory, agent=name, turns=(*turns[:-1], last))

    return dataclasses.replace(episode, trajectories={name: trajectory(name) for name in ("agent", "other")})


@reference("source", "improved", path=["a log"], over=["another"], groups=[3])
def improved(make: Part, path: str = "", over: str = "", groups: int = 4) -> None:
    """What is strictly above the best return that is stored of its task and agent."""
    if not path or not over:
        refuses(make)
    known = beaten()
    assert len(known.better) > 4
    source, counts = make(path=known.played, over=known.stored), [0] * len(known.better)
    for update in range(60):
        found = drawn(source, update)
        assert not found.joined
        shown = [(one.seed, one.trajectory.agent) for one in found.shown]
        assert all(len(one.trajectories) == 1 for one in found.shown)
        places = [*dict.fromkeys(n for one in shown for n, group in enumerate(known.better) if one in group)]
        assert shown == [one for n in places for one in known.better[n]]
        assert len(places) == groups
        for n in places:
            counts[n] += 1
    chance = groups / len(counts)
    assert all(abs(n - 60 * chance) <= 4.5 * sqrt(60 * chance * (1 - chance)) for n in counts), counts
    for worse in (known.stored, elsewhere()):
        why = refuses(lambda worse=worse: drawn(make(path=worse, over=known.stored), 0), RunError)
        assert worse in why
        assert known.stored in why


@functools.cache
def elsewhere() -> str:
    """A log of tasks that the others do not have."""
    policy = DemonstrationPolicy(scripted("gold"), untrained_policy().renderer)
    path = Path(tempfile.mkdtemp(prefix="turnwise-reference-")) / "episodes.jsonl"
    with EpisodeLog(path) as log:
        for one in run_episodes(plan_groups("shop/quick", 1, 1, 99)[0], policy):
            log.append(one)
    return str(path)


MOST = 6
"""Turns of an episode with dice."""


def throw(high: bool) -> str:
    """Throw the dice, for much or for little."""
    return f"high={high}"


THROW, DARE, PASS = (
    Message("assistant", "", (ToolCall("throw", {"high": False}, "call_0"),)),
    Message("assistant", "I dare.", (ToolCall("throw", {"high": True}, "call_0"),)),
    Message("assistant", "pass"),
)


def pays(seed: int, turn: int, action: Message) -> tuple[float, bool]:
    """What an action earns, in whole 64ths, and whether the episode is over."""
    if not action.tool_calls:
        return -1 / 64, False
    rng = random.Random(f"{seed} {turn}")
    won = rng.randrange(-64, 193) / 64
    return 4 * won if action.tool_calls[0].arguments["high"] else won, rng.random() < 0.25


class Dice(AgentEnv[int]):
    """Chance that is known, by the seed of the reset; the seeds that were played with are written down."""

    system, tools, turn_limit, blocking = "Throw, or pass.", (tool(throw),), MOST, False
    met: ClassVar[dict[str, list[int]]] = {}
    left_open: ClassVar[int] = 0

    def __init__(self, *, each: float = 0.0, shaping: float = 0.0, render_mode: str | None = None) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.each = each
        Dice.left_open += 1

    def initial(self, task: Task) -> tuple[int, str]:
        return 0, task.prompt

    def transition(self, state: int, action: Message) -> Transition[int]:
        if not state:
            Dice.met.setdefault(self.task.id, []).append(self.now.seed)
        won, over = pays(self.now.seed, state, action)
        return Transition(
            state + 1, "So be it.", {"outcome": won + self.each}, EndReason.FAILED if over else None
        )

    def close(self) -> None:
        Dice.left_open -= 1


def earns(seeds: Sequence[int], plan: Sequence[Message], each: float) -> float:
    """The mean over the seeds of what a plan earns, up to its end or the episode's."""
    total = 0.0
    for seed in seeds:
        for turn, action in enumerate(plan[:MOST]):
            won, over = pays(seed, turn, action)
            total += won + each
            if over:
                break
    return total / len(seeds)


PLANS = ([THROW, PASS, DARE], [PASS, PASS], [DARE] * 3 + [THROW] * 5, [PASS] * 8, [DARE])
"""What was done; the second earns next to nothing, and two go on for longer than an episode may."""


def with_plan(task: Task, seed: int, plan: Sequence[Message]) -> Episode:
    """An episode that says that it earned 0.5 in each turn."""
    opening = Messages([Message("system", "Throw, or pass."), Message("user", task.prompt)])
    answer = Messages([Message("user", "So be it.")])
    turns = [
        Turn(answer if k else opening, Reply(said), 0.5, {"outcome": 0.5}, "") for k, said in enumerate(plan)
    ]
    return Episode(
        task, seed, {"agent": Trajectory(tuple(turns))}, Outcome.OK, EndReason.FAILED, "", {"seconds": 1.0}
    )


def logged(groups: Sequence[Sequence[Episode]]) -> str:
    """The path of a new log of these groups."""
    path = Path(tempfile.mkdtemp(prefix="turnwise-reference-")) / "episodes.jsonl"
    with EpisodeLog(path) as log:
        for number, group in enumerate(groups):
            for one in group:
                log.append(one, update=number, group=0)
    return str(path)


@functools.cache
def dice_log() -> str:
    """Every plan of three tasks, twice of the first one, whose second group did the same under other seeds."""
    register("test/Dice-v0", f"{__name__}:Dice", "Pays by chance.")
    tasks = [Task("test/Dice-v0", f"Throw {n}.") for n in (0, 1, 2, 0)]
    return logged(
        [[with_plan(task, 10 * n + k, plan) for k, plan in enumerate(PLANS)] for n, task in enumerate(tasks)]
    )


@functools.cache
def paid_log() -> str:
    """Two agents, whose returns stand around and on the halves of a tenth."""
    rng, of = random.Random("told"), (-0.04, 0.25, 0.75, -1.06, 12345.67)
    return logged([[_paid(one, rng, of=of) for one in group] for group in log_of(False).groups[:2]])


def alone(episode: Episode, reward: float) -> Episode:
    """The episode with another reward for its last turn."""
    (name,) = episode.trajectories
    *turns, last = episode.trajectory.turns
    turns = (*turns, dataclasses.replace(last, reward=reward))
    return dataclasses.replace(
        episode, trajectories={name: dataclasses.replace(episode.trajectory, turns=turns)}
    )


@functools.cache
def lying_log() -> str:
    """Episodes without chance, of whose returns the log says something else."""
    return logged([[alone(one, 7.3) for one in group] for group in log_of(False).groups[:5]])


def joined_by(episode: Episode, *, tokens: bool) -> Episode:
    """The episode with a second agent that did the same, whose tokens are known or not."""
    other = [
        dataclasses.replace(turn, reply=turn.reply if tokens else Reply(turn.action))
        for turn in episode.trajectory.turns
    ]
    second = dataclasses.replace(episode.trajectory, agent="other", turns=tuple(other))
    return dataclasses.replace(episode, trajectories={"agent": episode.trajectory, "other": second})


@functools.cache
def crowded_log(*, tokens: bool) -> str:
    """A single one of three episodes has a second agent."""
    first, *others = log_of(False).groups[0]
    return logged([[joined_by(first, tokens=tokens), *others]])


class Ice(NamedTuple):
    """A log of ways over slippery ice, and by task how often they get there."""

    path: str
    chance: dict[str, float]


TRIES = 250


@functools.cache
def icy() -> Ice:
    suite = get_suite("grid/lake-slippery")
    tasks = [next(suite_tasks(suite, Split.TRAIN, 1, start=n)) for n in (0, 1, 5)]
    found, chance = run_episodes([Request(task, 1) for task in tasks], scripted("gold")), dict[str, float]()
    env = make_env(suite.env)
    for one in found:
        assert one.trajectory.total_reward == 1.0
        chance[one.task.id] = sum(_again(env, one, 10**6 + n) for n in range(TRIES)) / TRIES
        assert 0.1 < chance[one.task.id] < 0.8
    return Ice(logged([[one] for one in found]), chance)


def _again(env: AgentEnv[Any], episode: Episode, seed: int) -> float:
    env.reset(seed=seed, options={"task": episode.task})
    total = 0.0
    for action in [turn.action for turn in episode.trajectory.turns]:
        step = env.step(action)
        total += step.reward
        if step.terminated or step.truncated:
            break
    return total


@functools.cache
def instructed(kind: str = "") -> tuple[Renderer, Renderer]:
    """A renderer (with tools, of a template that forgets, or the plain one), and the same with an instruction."""
    plain = obedient(FORGETS).renderer if kind == "forgets" else untrained_policy().renderer
    if kind == "tools":
        plain = Renderer(plain.tokenizer, tools_format="template")
    return plain, plain.instructed("Return: 1.0")


def told_of(found: SourceDraw, before: SourceDraw, kind: str = "") -> list[str]:
    """What each shown episode is told, after it was seen that nothing else was changed but that it is in new tokens."""
    assert not found.joined
    assert [*map(_untold, found.shown)] == [*map(_untold, before.shown)]
    told = list[str]()
    for one in found.shown:
        (trajectory,) = one.trajectories.values()
        tokenizer: Any = instructed(kind)[0].tokenizer
        first = trajectory.turns[0]
        told.append(re.findall("Return: (-?[0-9.]+)", tokenizer.decode([*first.reply.prompt_ids]))[0])
        for turn, reply in zip(trajectory.turns, _told_replies(trajectory, told[-1], kind), strict=True):
            assert turn.reply == reply
    return told


def _untold(episode: Episode) -> Episode:
    def of(one: Trajectory) -> Trajectory:
        turns = [dataclasses.replace(turn, reply=Reply(turn.action)) for turn in one.turns]
        return dataclasses.replace(one, turns=tuple(turns))

    return dataclasses.replace(
        episode, trajectories={name: of(one) for name, one in episode.trajectories.items()}
    )


def _told_replies(trajectory: Trajectory, told: str, kind: str) -> list[Reply]:
    """The trajectory's replies in tokens, where its first message says one thing more."""
    renderer, said, replies = instructed(kind)[0], list[Message](), list[Reply]()
    tools = Dice.tools if kind == "tools" else ()
    for turn in trajectory.turns:
        said += turn.observation
        if not replies:
            said[0] = dataclasses.replace(said[0], content=f"{said[0].content}\n\nReturn: {told}")
            ids, fresh = renderer.start(said, tools), False
        else:
            ids, fresh = renderer.extend(said, len(turn.observation), replies[-1].action_ids[-1], tools)
        action = renderer.reply_ids(turn.action)
        replies.append(Reply(turn.action, ids, action, parent=ROOT if fresh else PREVIOUS))
        said.append(turn.action)
    return replies


def tenths(x: float) -> str:
    return f"{round(x, 1) or 0.0:.1f}"


@reference("source", "conditioned", path=["a log"], groups=[3], chances=[2, 1])
def conditioned(make: Part, path: str = "", groups: int = 4, chances: int = 0) -> None:
    """What `stored` shows, solved or not, and below its first message what it earned or earns on average."""
    if not path:
        refuses(make)
    log = log_of(False).path
    refuses(lambda: make(path=log, chances=-1))
    make(path=log, chances=0)
    for text in ("", "Hint: 1.0", "My Return: 1.0", "Return:1.0"):
        see = example_context("shop/quick")
        see = dataclasses.replace(see, renderer=see.renderer.instructed(text))
        assert "sampling" in refuses(lambda see=see: asked(make(path=log), see), RunError)
    draws = [_drawn_as_stored(make, lying_log(), groups, *at) for at in ((0, 0), (1, 0), (0, 1))]
    assert len({*map(str, draws)}) == 3
    if not chances:
        _told_returns(make, "")
        _told_returns(make, "forgets")
    else:
        _told_without_chance(make)
        _told_of_dice(make, chances)
        _told_of_ice(make, chances)


def asked(source: Part, see: SourceContext, update: int = 0) -> SourceDraw:
    async def draw() -> SourceDraw:
        return await source(see, update)

    return asyncio.run(draw())


def conditional(seed: int = 0, kind: str = "", **options: Any) -> SourceContext:
    see = example_context("shop/quick", seed=seed)
    return dataclasses.replace(see, renderer=instructed(kind)[1], env_options=options)


def _drawn_as_stored(make: Part, path: str, groups: int, update: int, seed: int) -> list[int]:
    """The groups that `stored` draws; a source that is made anew, and was asked for nothing before, says the same."""
    see = conditional(seed)
    found = asked(make(path=path), see, update)
    told_of(found, asked(Stored(path=path, groups=groups, solved=False), see, update))
    return [one.seed for one in found.shown]


def _told_returns(make: Part, kind: str) -> None:
    """Each agent of an episode is told what it earned itself, whoever else is in it."""
    see, said = conditional(kind=kind), set[str]()
    for path in (paid_log(), crowded_log(tokens=True), crowded_log(tokens=False)):
        before = asked(Stored(path=path, groups=99, solved=False), see)
        told = told_of(asked(make(path=path, groups=99), see), before, kind)
        assert told == [tenths(sum(turn.reward for turn in one.trajectory.turns)) for one in before.shown]
        said |= {*told}
    assert said >= {"0.0", "0.2", "0.8", "-1.1", "12345.7"}


@functools.cache
def programmed_log(*, asked_for: bool = False) -> str:
    """A program stood between policy and environment in one turn of the last episode; ``asked_for``: of a policy that is told
    what to earn, so that its tokens are those of the run."""
    groups = [[*group] for group in log_of(False).groups]
    if asked_for:
        told = DemonstrationPolicy(mixture("gold=1.0"), instructed()[1])
        groups = [run_episodes([Request(group[0].task, 1)], told) for group in groups]
    last = next(one for group in reversed(groups) for one in group if len(one.trajectory.turns) > 1)
    first, *others = last.trajectory.turns
    turns = (dataclasses.replace(first, acts=(Act(first.action, 0, 0),)), *others)
    by_program = dataclasses.replace(
        last, trajectories={"agent": dataclasses.replace(last.trajectory, turns=turns)}
    )
    return logged([*groups, [by_program]])


def _told_without_chance(make: Part) -> None:
    """It is what the environment pays, whatever the log says; where two acted, nobody knows in which order."""
    see = conditional()
    before = asked(Stored(path=lying_log(), groups=99, solved=False), see)
    told = told_of(asked(make(path=lying_log(), groups=99), see), before)
    true = {
        (one.task.id, one.seed): one.trajectory.total_reward
        for group in log_of(False).groups
        for one in group
    }
    assert told == [tenths(true[one.task.id, one.seed]) for one in before.shown]
    assert {*told} == {"0.0", "0.5", "0.8", "1.0"}
    for path in (paid_log(), crowded_log(tokens=True), programmed_log()):
        assert path in refuses(lambda path=path: asked(make(path=path, groups=99), see), RunError)
    path = programmed_log(asked_for=True)
    assert "again alone" in refuses(lambda: asked(make(path=path, groups=99), see), RunError)


def _told_of_dice(make: Part, chances: int) -> None:
    """The mean over so many seeds, which all episodes of a task meet, and no other task and no other run."""
    met = list[set[int]]()
    for seed, each in ((0, 0.0), (1, 0.5)):
        see = conditional(seed, "tools", **({"each": each} if each else {}))
        stored, source = Stored(path=dice_log(), groups=99, solved=False), make(path=dice_log(), groups=99)
        Dice.met.clear()
        before, found = zip(*((asked(stored, see, n), asked(source, see, n)) for n in range(2)), strict=True)
        seeds = {task: {*of} for task, of in Dice.met.items()}
        for one, other in zip(before, found, strict=True):
            assert told_of(other, one, "tools") == [
                tenths(earns([*seeds[one.task.id]], [turn.action for turn in one.trajectory.turns], each))
                for one in one.shown
            ]
        assert said_first(asked(make(path=dice_log(), groups=99), see, 1)) == said_first(found[1])
        met += seeds.values()
    assert [*map(len, met)] == [chances] * 6
    assert len(set[int]().union(*met)) == chances * 6
    assert Dice.left_open == 0


def said_first(found: SourceDraw) -> list[object]:
    return [one.trajectory.turns[0].reply.prompt_ids for one in found.shown]


def _told_of_ice(make: Part, chances: int) -> None:
    """Over many runs as much as the same actions earn when they are played again, each time a possible mean."""
    ice, won, runs = icy(), 0, 12
    for seed in range(runs):
        see = conditional(seed)
        found = asked(make(path=ice.path, groups=99), see)
        for told in told_of(found, asked(Stored(path=ice.path, groups=99, solved=False), see)):
            k = round(float(told) * chances)
            assert told == tenths(k / chances)
            won += k
    n = runs * chances
    spread = sum((n + n * n / TRIES) * p * (1 - p) for p in ice.chance.values())
    assert abs(won - n * sum(ice.chance.values())) <= 4.5 * sqrt(spread)


def _key(episode: Episode) -> object:
    return episode.task.id, episode.seed, [turn.reply.action_ids for turn in episode.trajectory.turns]


def _tokens(episode: Episode) -> object:
    return [(turn.reply.prompt_ids, turn.reply.action_ids) for turn in episode.trajectory.turns]


def _holding(log: Log, episode: Episode) -> int:
    (n,) = [n for n, group in enumerate(log.groups) if _key(episode) in map(_key, group)]
    return n


def _place(log: Log, group: Sequence[Episode]) -> int:
    (n,) = {_holding(log, one) for one in group}
    assert [*map(_key, group)] == [*map(_key, log.groups[n])]
    return n


# --- teachers ---------------------------------------------------------------------------------------------------


@functools.cache
def another_model(more: int = 0) -> Path:
    """The small model with other weights, and so many rows more in its head."""
    folder = Path(tempfile.mkdtemp(prefix="turnwise-reference-"))
    model = load_model(toy_model(), torch.device("cpu"))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
        size = model.get_output_embeddings().weight.shape[0]  # pyright: ignore
        model.resize_token_embeddings(size + more)  # pyright: ignore
    model.save_pretrained(folder)  # pyright: ignore
    untrained_policy().renderer.tokenizer.save_pretrained(folder)  # pyright: ignore
    return folder


class Vocabulary(NamedTuple):
    """A tokeniser that is asked for its tokens' numbers alone."""

    tokens: dict[str, int]

    def get_vocab(self) -> dict[str, int]:
        return self.tokens


def setup(tokenizer: Any = None) -> TeacherSetup:
    cpu = torch.device("cpu")
    return TeacherSetup(
        lambda path: load_model(path, cpu, frozen=True),
        lambda: load_model(toy_model(), cpu),
        tokenizer or untrained_policy().renderer.tokenizer,
    )


def near(found: Mapping[tuple[int, int], float], expected: Mapping[tuple[int, int], float]) -> None:
    assert found.keys() == expected.keys()
    for at, x in expected.items():
        assert abs(found[at] - x) < 1e-4, f"{at}: {found[at]} is not {x}"


@reference("teacher", "model", path=["another model"])
def model(make: Part, path: str = "") -> None:
    """The log-probabilities of that model after the tokens that the policy read, over the tokens that the policy can say."""
    if not path:
        refuses(lambda: make(setup()))
        return
    own = untrained_policy().renderer.tokenizer.get_vocab()  # pyright: ignore
    first = min(own)
    for other in ({**own, "one more": len(own)}, {**own, first: own[first] + 1}):
        refuses(lambda other=other: make(setup(Vocabulary(other)), path=str(another_model())))
    fewer = {token: number for token, number in own.items() if token != first}
    make(setup(Vocabulary(fewer)), path=str(another_model()))
    for more in (0, 64, -40):
        agrees_over_policy(make, more)
    see = taught_scene()[2]
    teacher = make(setup(), path=str(another_model()))
    assert not teacher.writes_anew
    before = {name: x.clone() for name, x in teacher.model.state_dict().items()}
    teacher.learned(see.learner.model)
    assert all(torch.equal(x, teacher.model.state_dict()[name]) for name, x in before.items())
    assert not any(weight.requires_grad for weight in teacher.model.parameters())


def agrees_over_policy(make: Part, more: int) -> None:
    """A teacher whose head has ``more`` rows than the policy's: over the policy's tokens, and a token that it lacks is at −20."""
    batch, groups, see = taught_scene()
    other = load_model(another_model(more), torch.device("cpu"))
    own = see.learner.model.get_output_embeddings().weight.shape[0]  # pyright: ignore
    teacher = make(setup(), path=str(another_model(more)))
    found = taught(teacher, see, batch, groups, own + 100 if more else 3)
    assert found.turns.tokens is not None
    assert found.top is not None
    likeliest = found.top.teacher_logp_RTJ
    expected: dict[tuple[int, int], float] = {}
    for r in range(len(batch.rows.token_RT)):
        ids = row(batch, r)
        known = logits(other, [min(i, own + more - 1) for i in ids])
        for t in range(1, len(ids)):
            if batch.rows.mask_RT[r, t]:
                says = [x.exp().item() for x in known[t - 1, :own]]
                shares = [log(x / sum(says)) for x in says]
                expected[r, t] = shares[ids[t]] if ids[t] < len(shares) else -20.0
                best = sorted(shares, reverse=True)
                near(dict(enumerate_(likeliest[r, t].tolist())), dict(enumerate_(best if more else best[:3])))
                of_each = zip(found.top.token_RTJ[r, t].tolist(), likeliest[r, t].tolist(), strict=True)
                near(
                    {(0, i): x for i, x in of_each},
                    {(0, i): shares[i] for i in found.top.token_RTJ[r, t].tolist()},
                )
    assert (-20.0 in expected.values()) is (more < 0)
    told = found.turns.tokens.signals["token_teacher_logp"]
    near({at: told[at].item() for at in expected}, expected)


def enumerate_(x: Sequence[float]) -> list[tuple[tuple[int, int], float]]:
    return [((0, j), a) for j, a in enumerate(x)]


@reference("teacher", "reference")
def frozen(make: Part) -> None:
    """The log-probabilities of the learner's reference, whatever the policy is, after the tokens that the policy read."""
    batch, groups, see = taught_scene()
    other = load_model(another_model(), torch.device("cpu"), frozen=True)
    learner = Learner(see.learner.model, OptimizerOptions(), reference=other)
    teacher = make(setup())
    assert not teacher.writes_anew
    found = taught(teacher, dataclasses.replace(see, learner=learner), batch, groups, 3)
    assert found.turns.tokens is not None
    assert found.top is not None
    for r in range(len(batch.rows.token_RT)):
        ids = row(batch, r)
        known = logits(other, ids)
        for t in range(1, len(ids)):
            if batch.rows.mask_RT[r, t]:
                shares = known[t - 1].log_softmax(-1).tolist()
                said = found.turns.tokens.signals["token_teacher_logp"][r, t].item()
                near({(r, t): said}, {(r, t): shares[ids[t]]})
                best = sorted(shares, reverse=True)[:3]
                near(
                    dict(enumerate_(found.top.teacher_logp_RTJ[r, t].tolist())),
                    dict(enumerate_(best)),
                )


@reference("teacher", "told", demonstrator=["null", "demonstrator"], actions=[2])
def told(make: Part, demonstrator: str = "gold", actions: int = 0) -> None:
    """The policy's own log-probabilities of the same tokens after a prompt that ends in the solution, if it is one."""
    refuses(lambda: make(setup(), demonstrator="nobody"), Exception)  # pyright: ignore
    batch, groups, see = taught_scene()
    teacher = make(setup())
    assert teacher.model is None
    assert teacher.writes_anew, "its first message is rendered again"
    rows = teacher.rows(see, batch, groups)
    shown = {
        group[0].task.id: run_episodes([Request(group[0].task, 0)], scripted(demonstrator))[0]
        for group in groups
    }
    one_by_one = [one for group in groups for one in group]
    for r, one in enumerate(one_by_one):
        assert shown[one.task.id].success is (demonstrator == "gold")
        if demonstrator != "gold":
            assert row(batch, r) == rows.token_RT[r, : int(rows.length_R[r])].tolist()
            continue
        lines = [str(turn.action) for turn in shown[one.task.id].trajectory.turns]
        text = "\n".join(["A solution:", *(lines[:actions] if actions else lines)])
        first = one.trajectory.turns[0]
        opening = [*first.observation]
        opening[0] = dataclasses.replace(opening[0], content=f"{opening[0].content}\n\n{text}")
        ids = [*see.renderer.start(opening, ()), *first.reply.action_ids]
        for turn in one.trajectory.turns[1:]:
            ids += [*turn.reply.prompt_ids, *turn.reply.action_ids]
        assert rows.token_RT[r, : int(rows.length_R[r])].tolist() == ids
        assert rows.token_RT[r][rows.mask_RT[r]].tolist() == [
            x for turn in one.trajectory.turns for x in turn.reply.action_ids
        ]
    assert torch.equal(rows.trajectory_R, batch.rows.trajectory_R)
    assert torch.equal(rows.turn_RT[rows.mask_RT], batch.rows.turn_RT[batch.rows.mask_RT])
