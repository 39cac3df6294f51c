"""Questions to a judge: any policy answers one message with another."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from turnwise.agents.core import Episode, History, Policy, Reply
from turnwise.agents.policies.registry import make_policy
from turnwise.agents.policies.structured import StructuredPolicy
from turnwise.agents.rollout import Limits, rollout_episode
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.errors import EngineError, RecipeError
from turnwise.tasks.core import Json, Split, Task, derive_rng
from turnwise.trainers.kit.forms import VerdictForm, in_lines
from turnwise.trainers.kit.purse import charge, may_ask

if TYPE_CHECKING:  # a judge is asked where torch is not installed, too
    from turnwise.registry import Component
    from turnwise.trainers.core import Group, Judge

SHOWN = 1500
"""Characters of one message that a judge sees: its beginning and its end."""
TOGETHER = 32
"""Questions in flight."""
ANSWER_S = 300.0
"""Seconds after which a judge that has not answered is given up."""
REMEMBERED = 20_000
"""Answers that are kept of a policy: the same question to the same weights is asked once."""


class _Sample(NamedTuple):
    """A question, and what makes it another sample than the same question with other names."""

    question: str
    names: tuple[Json, ...] = ()


class _Answered(NamedTuple):
    policy: Policy
    answers: dict[Json, str]


class JudgeQuestion(AgentEnv[str]):
    """One question, below a system message if there is one; the answer ends the episode."""

    blocking, gold_known = False, False

    def __init__(self, system: str = "") -> None:
        super().__init__()
        self.system = system

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return Task("judge", "?", {"salt": rng.getrandbits(32)})

    def initial(self, task: Task) -> tuple[str, str]:
        return "", task.prompt

    def transition(self, state: str, action: Message) -> Transition[str]:
        return Transition(action.content, "", {"outcome": 0.0}, EndReason.SOLVED)


SELF = "self"
"""Names, in place of a policy's spec, the policy that is trained, with the weights that it has now."""
_trained: ContextVar[Policy | None] = ContextVar("trained", default=None)


@contextmanager
def trained(policy: Policy | None) -> Iterator[None]:
    """Let :data:`SELF` name this policy for what is asked within."""
    token = _trained.set(policy)
    try:
        yield
    finally:
        _trained.reset(token)


def made_judge(entry: Component, options: Mapping[str, Any]) -> Judge:
    """The judge with its options, a new object where it remembers; raises RecipeError where options do not fit."""
    built = entry.build(options)
    return built() if inspect.isclass(entry.target) else built


def judged_now(judge: Judge, groups: Sequence[Group]) -> list[Group]:
    """Let a judge read some groups where no event loop runs."""

    async def read() -> list[Group]:
        return await judge(groups)

    return asyncio.run(read())


def judge_policy(spec: str) -> Policy:
    """The policy that a judge part names: the one that is trained where that is :data:`SELF`, else one that is made on first use.

    Raises:
        RecipeError: it is :data:`SELF`, and nothing is trained here.
    """
    if spec != SELF:
        return _made(spec)
    policy = _trained.get()
    if policy is None:
        raise RecipeError(
            f"A judge asks the policy that is trained (policy: {SELF}), and nothing is trained here.",
            "Name a policy, such as torch:PATH or openai:MODEL@URL.",
        )
    return policy


@functools.cache
def _made(spec: str) -> Policy:
    return make_policy(spec)


_answers: OrderedDict[int, _Answered] = OrderedDict()
_POLICIES = 8


def _answered(policy: Policy) -> dict[Json, str]:
    """The answers of a policy that are known; it is kept with them, so that no other one has its identity."""
    if id(policy) not in _answers:
        _answers[id(policy)] = _Answered(policy, {})
    _answers.move_to_end(id(policy))
    while len(_answers) > _POLICIES:
        _answers.popitem(last=False)
    return _answers[id(policy)].answers


async def ask(
    policy: Policy,
    questions: Sequence[str],
    *names: Json,
    form: VerdictForm | None = None,
    system: str = "",
) -> list[str]:
    """The policy's answers, in order. ``names`` make repeated questions different samples.

    With a form, a policy whose server can is asked for JSON, and what it says comes as the lines that stand for it; one that answers in words is
    read as it is.

    What was asked before, of the same weights, is not asked again. Tokens, cost and seconds are charged to the judge that asks.

    Raises:
        EngineError: the judge cannot be reached, or does not answer in time. An update without its judge is not made.
        RunError: the judge has used up its budget.
    """
    return await _ask(policy, [_Sample(question, names) for question in questions], form, system)


async def ask_samples(
    policy: Policy,
    samples: Sequence[Sequence[str]],
    *,
    form: VerdictForm | None = None,
    system: str = "",
) -> list[list[str]]:
    """The answers to the questions of each sample, all of them in flight together; the same as :func:`ask` gives with a sample's number as its name.

    Raises:
        EngineError: the judge cannot be reached, or does not answer in time.
        RunError: the judge has used up its budget.
    """
    every = [_Sample(question, (n,)) for n, questions in enumerate(samples) for question in questions]
    said = iter(await _ask(policy, every, form, system))
    return [[next(said) for _ in questions] for questions in samples]


async def _ask(
    policy: Policy, samples: Sequence[_Sample], form: VerdictForm | None, system: str
) -> list[str]:
    free = asyncio.Semaphore(TOGETHER)
    known = _answered(policy)
    began = time.monotonic()

    async def one(sample: _Sample) -> str:
        key = (policy.version, system, sample.question, *sample.names)
        async with free:
            if key in known:
                charge(questions=1, known=1)
                return known[key]
            may_ask()
            reply = await answer(policy, sample.question, *sample.names, form=form, system=system)
        said = reply.message.content if reply is not None else ""
        known[key] = in_lines(said, form) if form else said
        if len(known) > REMEMBERED:
            del known[next(iter(known))]
        return known[key]

    try:
        return list(await asyncio.gather(*map(one, samples)))
    finally:
        charge(seconds=time.monotonic() - began)


class _HeldToForm:
    """A policy that is asked for JSON, under its own name and version."""

    def __init__(self, policy: StructuredPolicy, schema: Mapping[str, Json], name: str, version: int) -> None:
        self.name, self.version = name, version
        self._policy, self._schema = policy, schema

    async def act(self, history: History) -> Reply:
        return await self._policy.act_as(history, self._schema)

    def close(self) -> None:
        """The policy is another's."""


async def answer(
    policy: Policy, question: str, *names: Json, form: VerdictForm | None = None, system: str = ""
) -> Reply | None:
    """The policy's answer with what it took; None if it had no room for one.

    Raises:
        EngineError: the judge cannot be reached, or does not answer in time.
    """
    seed = derive_rng("judge", question, *names).getrandbits(62)
    limits = Limits(generate_s=ANSWER_S)
    asked = policy
    if form is not None and isinstance(policy, StructuredPolicy):
        asked = _HeldToForm(policy, form.schema, policy.name, policy.version)
        question = f"{question}\n\n{form.told}"
    env, task = JudgeQuestion(system), Task("judge", question)
    episode = await rollout_episode(env, asked, task, seed=seed, limits=limits)
    turns = episode.trajectory.turns if episode.trajectories else ()
    if turns:
        told = turns[-1].reply.served.usage
        known = told.prompt is not None or told.completion is not None
        charge(told if known else told._replace(completion=turns[-1].reply.tokens), questions=1)
    if not episode.outcome.counts:
        raise EngineError(
            f"The judge {policy.name} did not answer: {episode.error[:200]}", "See to it that it is up."
        )
    return turns[-1].reply if turns else None


def transcript(episode: Episode) -> str:
    """The task and all turns, numbered from 1, as a judge reads them.

    Further lines of a message begin with ``> ``, so that no message can pass for a turn, or for a line of the judge's own.
    """
    trajectory = episode.trajectory
    return transcript_of([(turn.observation, turn.action) for turn in trajectory.turns], trajectory.final)


def transcript_of(turns: Iterable[tuple[Messages, Message]], final: Messages) -> str:
    """The same of what was told and said, turn by turn, and of what was told last."""
    lines: list[str] = []
    for number, (told, action) in enumerate(turns, 1):
        lines += [f"[told] {quoted(m.content)}" for m in told if m.role != "system"]
        called = " ".join(f"{call.name}({call.arguments})" for call in action.tool_calls)
        lines.append(f"[turn {number}] {quoted(f'{action.content} {called}'.strip())}")
    lines += [f"[told] {quoted(m.content)}" for m in final if m.role != "system"]
    return "\n".join(lines)


def counting(group: Group) -> list[int]:
    """The episodes of a group that a judge is asked about."""
    return [i for i, episode in enumerate(group) if episode.outcome.counts and episode.trajectory.turns]


def quoted(text: str) -> str:
    """A message, cut in its middle where it is long, its further lines marked as quoted."""
    short = text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} … {text[-SHOWN // 2 :]}"
    return "\n> ".join(short.splitlines())
