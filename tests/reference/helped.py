"""Guides, sources and teachers: on small suites, with an engine that does as it was told, and logs made for the purpose."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import torch
from measured import logits, row
from plain import reference, refuses

from turnwise.agents.core import NO_PARENT, Completion, Episode, Outcome, Reply, Sampling
from turnwise.agents.log.episode_log import EpisodeLog
from turnwise.agents.policies.mixture import mixture
from turnwise.agents.policies.model import DemonstrationPolicy, ModelPolicy
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.agents.tokens.renderer import Renderer
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.errors import RunError
from turnwise.trainers.check.teacher import scene as taught_scene
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.toy import toy_model, untrained_policy
from turnwise.trainers.learn.model import load_model
from turnwise.trainers.reward.as_is import as_is
from turnwise.trainers.source.core import SourceDraw
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
    guide: Part, suite: str, *, groups: int = 4, seed: int = 0, template: str = "", **options: Any
) -> Guided:
    """The second group was solved, the third failed to be played; nobody solved the others."""
    policy = obedient(template)
    runner = RolloutRunner(policy, as_is)
    player = GuidePlayer(runner, policy, {}, seed, 0)

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
        assert reply.parent == (NO_PARENT if k and template else None)
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


@reference("guide", "hint", demonstrator=["null"], turns=[4, 2])
def hint(guide: Part, demonstrator: str = "gold", turns: int = 1) -> None:
    for suite, template in (("calc/bare", ""), ("shop/quick", ""), ("shop/quick", FORGETS)):
        plain, found, plans = guided(guide, suite, template=template)
        assert len(found) == len(plain)
        helped = 0
        for number, (before, after, plan) in enumerate(zip(plain, found, plans, strict=True)):
            if number in (1, 2) or demonstrator == "null" or len(plan) > turns:
                assert after == before
                continue
            helped += 1
            assert len(after) == len(before)
            for one, other in zip(after, before, strict=True):
                is_hinted(one, other, plan[:turns], template)
        assert helped == (0 if demonstrator == "null" or len(plans[0]) > turns else 2)


@reference(
    "guide", "prefix", demonstrator=["null"], share=[0.3], length=[0.1, 0.6, 1.0], where=["all"],
    also=[{"where": "all", "length": 1.0}],
)  # fmt: skip
def prefix(
    guide: Part,
    demonstrator: str = "gold",
    share: float = 1.0,
    length: float | str = "random",
    where: str = "unsolved",
) -> None:
    mistakes: list[dict[str, Any]] = [{"share": 0.0}, {"share": 1.5}, {"length": 0.0}, {"length": 1.5}]
    for wrong in mistakes:
        refuses(lambda wrong=wrong: guided(guide, "shop/quick", groups=3, **wrong))
    short = guided(guide, "calc/bare")
    assert short.found == short.plain, "there is nothing left to play"
    helped, asked, lengths = 0, 0, set[int]()
    for seed in range(1 if demonstrator != "gold" else 8 if share < 1 else 5 if length == "random" else 1):
        plain, found, plans = guided(guide, "shop/quick", seed=seed)
        for number, (before, after, plan) in enumerate(zip(plain, found, plans, strict=True)):
            might = (where == "all" or number in (0, 3)) and demonstrator == "gold"
            asked += might
            if not might or after == before:
                assert after == before
                assert not might or share < 1
                continue
            helped += 1
            assert len(after) == len(before)
            lengths.add(is_prefixed(after, before, plan))
    if demonstrator == "gold":
        assert abs(helped - share * asked) <= 4.5 * sqrt(asked * share * (1 - share))
        whole = {max(1, min(3, round(4 * length)))} if isinstance(length, float) else {1, 2, 3}
        assert lengths == whole


def is_prefixed(after: Group, before: Group, plan: list[str]) -> int:
    """Of all members the same first turns are the demonstrator's, which are only read; says how many."""
    (k,) = {sum(bool(turn.reply.source) for turn in one.trajectory.turns) for one in after}
    for one, other in zip(after, before, strict=True):
        assert one.task.id == other.task.id
        assert actions(one)[:k] == plan[:k]
        for n, turn in enumerate(one.trajectory.turns):
            assert (turn.reply.source, turn.weight) == (("guide/prefix", 0.0) if n < k else ("", 1.0))
        assert len(one.trajectory.turns) > k
    return k


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
    """Three updates of two groups, two episodes of no update, and one that failed."""
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
        for one in run_episodes([Request(groups[0][0].task, seed) for seed in (1, 2)], policy):
            log.append(one)
            groups.append([one])
        log.append(dataclasses.replace(groups[0][0], outcome=Outcome.INFRA_ERROR), update=9, group=0)
    wanted = [[one for one in group if one.success or not solved] for group in groups]
    return Log(str(path), [group for group in wanted if group])


@reference("source", "stored", path=["a log"], groups=[3], solved=[False], join=[True])
def stored(make: Part, path: str = "", groups: int = 4, solved: bool = True, join: bool = False) -> None:
    if not path:
        refuses(make)
    log = log_of(solved and not join)
    draw = make(path=log.path)
    assert 3 < len(log.groups) < (9 if solved and not join else 10)
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
def another_model() -> Path:
    """The small model with other weights."""
    folder = Path(tempfile.mkdtemp(prefix="turnwise-reference-"))
    model = load_model(toy_model(), torch.device("cpu"))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
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
    """The log-probabilities of that model after the tokens that the policy read."""
    if not path:
        refuses(lambda: make(setup()))
        return
    own = untrained_policy().renderer.tokenizer.get_vocab()  # pyright: ignore
    first = min(own)
    for other in ({**own, "one more": len(own)}, {**own, first: own[first] + 1}):
        refuses(lambda other=other: make(setup(Vocabulary(other)), path=str(another_model())))
    fewer = {token: number for token, number in own.items() if token != first}
    make(setup(Vocabulary(fewer)), path=str(another_model()))
    batch, groups, see = taught_scene()
    teacher = make(setup(), path=str(another_model()))
    other = load_model(another_model(), torch.device("cpu"))
    found = taught(teacher, see, batch, groups, 3)
    assert found.turns.tokens is not None
    assert found.top is not None
    expected: dict[tuple[int, int], float] = {}
    for r in range(len(batch.rows.token_RT)):
        ids = row(batch, r)
        known = logits(other, ids)
        for t in range(1, len(ids)):
            if batch.rows.mask_RT[r, t]:
                expected[r, t] = known[t - 1, ids[t]].item()
                best = sorted(known[t - 1].tolist(), reverse=True)[:3]
                near(dict(enumerate_(found.top.teacher_logp_RTJ[r, t].tolist())), dict(enumerate_(best)))
    told = found.turns.tokens.signals["token_teacher_logp"]
    near({at: told[at].item() for at in expected}, expected)
    before = {name: x.clone() for name, x in teacher.model.state_dict().items()}
    teacher.learned(see.learner.model)
    assert all(torch.equal(x, teacher.model.state_dict()[name]) for name, x in before.items())
    assert not any(weight.requires_grad for weight in teacher.model.parameters())


def enumerate_(x: Sequence[float]) -> list[tuple[tuple[int, int], float]]:
    return [((0, j), a) for j, a in enumerate(x)]


@reference("teacher", "told", demonstrator=["null"], actions=[2])
def told(make: Part, demonstrator: str = "gold", actions: int = 0) -> None:
    """The policy's own log-probabilities of the same tokens after a prompt that ends in the solution."""
    refuses(lambda: make(setup(), demonstrator="nobody"), Exception)  # pyright: ignore
    batch, groups, see = taught_scene()
    teacher = make(setup())
    assert teacher.model is None
    rows = teacher.rows(see, batch, groups)
    shown = {
        group[0].task.id: run_episodes([Request(group[0].task, 0)], scripted(demonstrator))[0]
        for group in groups
    }
    one_by_one = [one for group in groups for one in group]
    for r, one in enumerate(one_by_one):
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
