"""Teachers that are the policy under another context: of every row what it is told, read off the tokens and rendered again."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from helped import setup
from plain import reference

from turnwise.agents.core import Episode
from turnwise.agents.policies.mixture import mixture
from turnwise.agents.policies.model import DemonstrationPolicy
from turnwise.agents.rollout import run_episodes
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message, Messages
from turnwise.trainers.check.teacher import scene
from turnwise.trainers.core import Group
from turnwise.trainers.guide.toy import untrained_policy
from turnwise.trainers.learn.collate import TokenRows, TrainingBatch, collate
from turnwise.trainers.strategy.runner import plan_groups

Part = Callable[..., Any]
MARK = "(here it stands)"
LONG = "".join(f"[shelf-{n}]" for n in range(60))


@functools.cache
def played() -> list[Group]:
    """Three groups of four episodes of 3 to 8 turns, some of which were solved."""
    policy = DemonstrationPolicy(mixture("demonstrator=0.6,random=0.4"), untrained_policy().renderer)
    return [run_episodes(plan, policy) for plan in plan_groups("shop/quick", 3, 4, 0)]


def renders(conversation: Sequence[Message]) -> list[int]:
    return [*untrained_policy().renderer.start([*conversation], ())]


def text_of(ids: Sequence[int]) -> str:
    tokenizer: Any = untrained_policy().renderer.tokenizer
    return tokenizer.decode([*ids])


def below(message: Message, text: str) -> Message:
    return dataclasses.replace(message, content=f"{message.content}\n\n{text}") if text else message


def before(episode: Episode, k: int) -> list[Message]:
    """What was said before the reply of turn k."""
    turns = episode.trajectory.turns
    earlier = [m for turn in turns[:k] for m in (*turn.observation, turn.action)]
    return [*earlier, *turns[k].observation]


def ids_of(rows: TokenRows, r: int) -> list[int]:
    return rows.token_RT[r, : int(rows.length_R[r])].tolist()


def told_at(prompt: list[int], conversation: list[Message], place: int) -> str:
    """What stands below a message of the conversation, after it was seen that nothing else was changed."""
    marked = [*conversation]
    marked[place] = below(marked[place], MARK)
    head, _, tail = text_of(renders(marked)).partition(MARK)
    found = text_of(prompt)
    said = found[len(head) : len(found) - len(tail)] if found.startswith(head) else ""
    told = [*conversation]
    told[place] = below(told[place], said)
    assert prompt == renders(told)
    return said


def told_last(prompt: list[int], episode: Episode, k: int) -> str:
    """What stands below all that the policy read before its reply, each token of which stands as it was; the template's end follows."""
    turns = episode.trajectory.turns
    read = [i for turn in turns[:k] for i in (*turn.reply.prompt_ids, *turn.reply.action_ids)]
    own = [*read, *turns[k].reply.prompt_ids]
    same = next(n for n, (a, b) in enumerate(itertools.zip_longest(own, prompt)) if a != b)
    assert prompt[len(prompt) - len(own) + same :] == own[same:], "what was read is read otherwise"
    tail = text_of(renders([Message("user", MARK)])).partition(MARK)[2]
    head = text_of(own).removesuffix(tail)
    found = text_of(prompt)
    assert found.startswith(f"{head}\n\n")
    assert found.endswith(tail)
    return found[len(head) + 2 : len(found) - len(tail)]


def prompts(teacher: Any, batch: TrainingBatch, groups: list[Group], *, anew: bool) -> list[list[list[int]]]:
    """By trajectory and turn what the policy reads before the reply, where every turn is a row of its own.

    ``anew``: the conversation is rendered again, which it must declare.
    """
    assert teacher.model is None, "another model than the policy"
    assert teacher.writes_anew is anew
    rows: TokenRows = teacher.rows(scene()[2], batch, groups)
    found: list[list[list[int]]] = []
    r = itertools.count()
    for b, episode in enumerate(one for group in groups for one in group):
        found.append([])
        for k, turn in enumerate(episode.trajectory.turns):
            n, action = next(r), [*turn.reply.action_ids]
            ids, mask = ids_of(rows, n), rows.mask_RT[n, : int(rows.length_R[n])].tolist()
            assert ids[-len(action) :] == action
            assert mask == [False] * (len(ids) - len(action)) + [True] * len(action)
            assert int(rows.trajectory_R[n]) == b
            assert rows.turn_RT[n][rows.mask_RT[n]].tolist() == [k] * len(action)
            found[-1].append(ids[: -len(action)])
    assert next(r) == len(rows.token_RT)
    return found


def edited(episode: Episode, observations: dict[int, list[str]], final: list[str]) -> Episode:
    """The episode with other observations of some turns, and after the last one."""
    one = episode.trajectory
    turns = tuple(
        dataclasses.replace(turn, observation=_user(observations[k])) if k in observations else turn
        for k, turn in enumerate(one.turns)
    )
    return dataclasses.replace(
        episode, trajectories={"agent": dataclasses.replace(one, turns=turns, final=_user(final))}
    )


def _user(texts: list[str]) -> Messages:
    return Messages(Message("user", text) for text in texts)


def ended(episode: Episode, end: EndReason) -> Episode:
    return dataclasses.replace(episode, end=end)


def readable() -> list[Group]:
    """Failures, successes and a limit; a long answer, one of two messages, no answer to a last reply."""
    first, second, third, fourth = played()[0]
    one = ended(edited(first, {1: [LONG], 3: ["one thing", "and another"]}, ["bought it"]), EndReason.SOLVED)
    other = ended(edited(second, {}, ["bought it"]), EndReason.FAILED)
    silent = [ended(edited(x, {}, []), end) for x in (third, fourth) for end in _ENDS[:2]]
    cut = ended(edited(third, {2: ["wait"]}, ["too late"]), EndReason.TURN_LIMIT)
    solved = ended(edited(third, {}, [LONG]), EndReason.SOLVED)
    return [[one, other, cut], [solved, *silent]]


_ENDS = (EndReason.SOLVED, EndReason.FAILED)


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


GOOD, BAD = ("solved", "success", "succeed"), ("fail", "not ", "un")
"""The wording is the teacher's own, but one of these must be in it."""


@reference("teacher", "hindsight", longest=[30, 7], outcome=[False])
def hindsight(make: Part, longest: int = 400, outcome: bool = True) -> None:
    """Below the last message before each reply the environment's answer to it, cut; at the last one how it ended."""
    groups = readable()
    found = prompts(make(setup()), collate(groups), groups, anew=False)
    ends: dict[tuple[bool, bool], set[str]] = {}
    frame: tuple[str, str] | None = None
    for one, of in zip([one for group in groups for one in group], found, strict=True):
        turns = one.trajectory.turns
        observed = [*(turn.observation for turn in turns[1:]), one.trajectory.final]
        for k, prompt in enumerate(of):
            said = one_line(told_last(prompt, one, k))
            answer = one_line("\n".join(m.content for m in observed[k])[:longest])
            if frame is None:
                start, cut, end = said.partition(answer)
                assert start
                assert cut
                frame = start, end
            if k < len(turns) - 1 or (answer and not outcome):
                assert said == f"{frame[0]}{answer}{frame[1]}"
                continue
            assert answer or frame[0] not in said
            head = frame[0] + answer if answer else ""
            assert said.startswith(head)
            assert said.endswith(frame[1])
            rest = said.removesuffix(frame[1])[len(head) :].strip()
            ends.setdefault((one.success, bool(answer)), set()).add(rest)
    says_how(ends, outcome)


def says_how(ends: dict[tuple[bool, bool], set[str]], outcome: bool) -> None:
    """The same of all successes and of all others; after no answer it is the same, below what says that there was none."""
    silent = [*ends.pop((True, False)), *ends.pop((False, False))]
    assert len(silent) == 2
    if not outcome:
        assert not ends
        assert silent[0] == silent[1]
        return
    (solved,), (failed,) = ends[True, True], ends[False, True]
    assert any(word in solved for word in GOOD)
    assert not any(word in solved for word in BAD)
    assert any(word in failed for word in BAD)
    assert silent[0].removesuffix(solved) == silent[1].removesuffix(failed)
    assert silent[0].endswith(solved)
    assert silent[1].endswith(failed)


@reference("teacher", "blind", instead=["…", ""])
def blind(make: Part, instead: str = "(not shown)") -> None:
    """The first observation and all that was said stand; the later observations do not."""
    groups = readable()
    found = prompts(make(setup()), collate(groups), groups, anew=True)
    for one, of in zip([one for group in groups for one in group], found, strict=True):
        conversation: list[Message] = []
        for k, (turn, prompt) in enumerate(zip(one.trajectory.turns, of, strict=True)):
            seen = turn.observation
            conversation += [dataclasses.replace(m, content=instead) for m in seen] if k else seen
            assert prompt == renders(conversation)
            conversation.append(turn.action)


def schools() -> list[tuple[Group, list[list[int]]]]:
    """Groups, and of each member whose actions it may be shown: the shortest successes but itself."""
    a, b, c = played()  # of 8, 4, 6, 7 turns; of 4, 8, 7, 4; of 5, 8, 6, 4
    assert [[len(x.trajectory.turns) for x in group] for group in (a, b, c)] == [
        [8, 4, 6, 7],
        [4, 8, 7, 4],
        [5, 8, 6, 4],
    ]

    def of(group: Group, solved: Sequence[int]) -> Group:
        return [ended(x, _ENDS[i not in solved]) for i, x in enumerate(group)]

    return [
        (of(a, [2, 3]), [[2], [2], [3], [2]]),
        (of(a, []), [[], [], [], []]),
        (of(a[::-1], [0, 1, 3]), [[1], [0], [1], [1]]),
        (of(b, [0, 1, 3]), [[3], [0, 3], [0, 3], [0]]),
        (of(c, [2]), [[2], [2], [], [2]]),
    ]


@reference("teacher", "peer", actions=[2, 5])
def peer(make: Part, actions: int = 0) -> None:
    """The first message ends in the actions of a group's shortest other success; without one nothing is told."""
    known = schools()
    groups = [group for group, _ in known]
    batch, teacher = collate(groups), make(setup())
    assert teacher.model is None, "another model than the policy"
    assert teacher.writes_anew, "its first message is rendered again"
    rows: TokenRows = teacher.rows(scene()[2], batch, groups)
    assert torch.equal(rows.trajectory_R, batch.rows.trajectory_R)
    assert torch.equal(rows.turn_RT[rows.mask_RT], batch.rows.turn_RT[batch.rows.mask_RT])
    titles, r = set[str](), itertools.count()
    for group, shown in known:
        plans = [[str(turn.action) for turn in one.trajectory.turns] for one in group]
        for one, allowed in zip(group, shown, strict=True):
            n = next(r)
            ids, turns = ids_of(rows, n), one.trajectory.turns
            length = len(ids) - sum(len(t.reply.prompt_ids) for t in turns[1:]) - sum(len(t.reply.action_ids) for t in turns)  # fmt: skip
            assert ids[length:] == ids_of(batch.rows, n)[len(turns[0].reply.prompt_ids) :]
            said = told_at(ids[:length], [*turns[0].observation], 0)
            if not allowed:
                assert not said
                assert ids == ids_of(batch.rows, n)
                continue
            ways = ["\n".join(plans[j][: actions or None]) for j in allowed]
            fitting = [way for way in ways if said.endswith(f"\n{way}")]
            assert fitting
            titles.add(said.removesuffix(max(fitting, key=len)))
    assert len(titles) == 1, "what stands above the actions differs"
