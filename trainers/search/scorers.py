"""Scorers of searches: ``value:CHECKPOINT``, ``judge:POLICY``, ``listed:POLICY``, ``logp``, ``votes``, ``fork:N`` and ``oracle``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from turnwise.agents.core import Policy
from turnwise.agents.policies.registry import make_policy
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.trainers.kit.asking import answer, transcript_of
from turnwise.trainers.kit.spoken import spoken
from turnwise.trainers.search.core import NodeScorer, Path, Searcher, SearchNode

JUDGED = """\
Below is an attempt of an agent at a task, so far. Say how likely it is that the task will be, or was, done rightly.

{transcript}

End with one line: `SCORE: p`, where p is a number from 0 to 1."""
LISTED = """\
Below is an attempt of an agent at a task, so far, and a list of what it may say next. Score every entry of the list.

{transcript}

{options}

End with one line for each entry: `SCORE n: p`, where p is a number from 0 to 1."""
_SCORE = re.compile(r"^\W*SCORE\W*:\s*([01](?:\.\d{1,12})?|\.\d{1,12})\b", re.MULTILINE | re.IGNORECASE)
_SCORE_OF = re.compile(
    r"^\W*SCORE\s+(\d{1,6})\W*:\s*([01](?:\.\d{1,12})?|\.\d{1,12})\b", re.MULTILINE | re.IGNORECASE
)


class Votes:
    """The share of the episodes that end with the same action: what most tries say."""

    name, whole, forks, oracle = "votes", True, False, False

    async def score(self, searcher: Searcher, nodes: Sequence[SearchNode]) -> list[float]:
        said = Counter(answer_of(node) for node in nodes)
        return [said[answer_of(node)] / len(nodes) for node in nodes]

    def close(self) -> None:
        """Nothing is held."""


class Confidence:
    """The mean log-probability of the tokens that the policy sampled."""

    name, whole, forks, oracle = "logp", False, False, False

    async def score(self, searcher: Searcher, nodes: Sequence[SearchNode]) -> list[float]:
        tokens = [sum(len(turn.logprobs) for turn in node.turns) for node in nodes]
        return [node.logprob() / max(1, n) for node, n in zip(nodes, tokens, strict=True)]

    def close(self) -> None:
        """Nothing is held."""


class Judge:
    """Answers of a policy about each node: the probability that the task is done; 0 where it gives no number.

    Without a policy of its own it is the one that plays (Self-PRM).
    """

    whole, forks, oracle = False, False, False

    def __init__(self, policy: Policy | None = None) -> None:
        self._policy = policy
        self.name = f"judge:{policy.name}" if policy else "judge"

    async def score(self, searcher: Searcher, nodes: Sequence[SearchNode]) -> list[float]:
        return [await self._one(searcher, node) for node in nodes]

    async def _one(self, searcher: Searcher, node: SearchNode) -> float:
        said = await asked(searcher, self._policy, JUDGED.format(transcript=read(node)))
        found = _SCORE.findall(said)
        return min(1.0, float(found[-1])) if found else 0.0

    def close(self) -> None:
        if self._policy is not None:
            self._policy.close()


class ListedJudge(Judge):
    """One answer of a policy about all next actions at once, which it sees side by side (after Saffron's model of rewards)."""

    async def score(self, searcher: Searcher, nodes: Sequence[SearchNode]) -> list[float]:
        siblings: dict[Path, list[SearchNode]] = {}
        for node in nodes:
            siblings.setdefault(node.path[:-1] if node.turns else (-1,), []).append(node)
        found: dict[Path, float] = {}
        for group in siblings.values():
            listed = await (
                self._listed(searcher, group) if group[0].turns else super().score(searcher, group)
            )
            found.update(zip((node.path for node in group), listed, strict=True))
        return [found[node.path] for node in nodes]

    async def _listed(self, searcher: Searcher, nodes: Sequence[SearchNode]) -> list[float]:
        before = nodes[0]
        options = "\n".join(
            f"{n}. {spoken(node.turns[-1].action)}" for n, node in enumerate(nodes, 1) if node.turns
        )
        told = transcript_of(
            [(t.observation, t.action) for t in before.turns[:-1]], before.turns[-1].observation
        )
        said = await asked(searcher, self._policy, LISTED.format(transcript=told, options=options))
        found = {int(n): min(1.0, float(p)) for n, p in _SCORE_OF.findall(said)}
        return [found.get(n, 0.0) for n in range(1, len(nodes) + 1)]


class ForkValue:
    """The share of so many rollouts from a state that the environment says were solved: an oracle, since no deployment knows."""

    whole, forks, oracle = False, True, True

    def __init__(self, rollouts: int) -> None:
        self._rollouts, self.name = rollouts, f"fork:{rollouts}"

    async def score(self, searcher: Searcher, nodes: Sequence[SearchNode]) -> list[float]:
        return [await self._one(searcher, node) for node in nodes]

    async def _one(self, searcher: Searcher, node: SearchNode) -> float:
        if node.over:
            return searcher.verdict(node)
        ends = [await searcher.play_on(node) for _ in range(self._rollouts)]
        solved = [searcher.verdict(end) for end in ends if end is not None]
        return sum(solved) / max(1, len(solved))

    def close(self) -> None:
        """Nothing is held."""


class Oracle:
    """The environment's verdict on whole episodes: the bound that no way of choosing among them can pass (pass@n)."""

    name, whole, forks, oracle = "oracle", False, False, True

    async def score(self, searcher: Searcher, nodes: Sequence[SearchNode]) -> list[float]:
        return [searcher.verdict(node) if node.over else 0.0 for node in nodes]

    def close(self) -> None:
        """Nothing is held."""


def answer_of(node: SearchNode) -> str:
    """The last action of a try, in a form in which equal ones are equal."""
    return spoken(node.turns[-1].action) if node.turns else ""


def read(node: SearchNode) -> str:
    """A try as a judge reads it."""
    return transcript_of([(turn.observation, turn.action) for turn in node.turns], node.observation)


async def asked(searcher: Searcher, policy: Policy | None, question: str) -> str:
    """A policy's answer; its tokens are the scorer's.

    Raises:
        BudgetSpent: nothing is left to ask with.
    """
    searcher.check()
    reply = await answer(policy or searcher.policy, question)
    if reply is None:
        return ""
    searcher.spend(reply)
    return reply.message.content


def _value(target: str) -> NodeScorer:
    from turnwise.trainers.search.value_scorer import ValueScorer

    return ValueScorer(target)


def _fork(target: str) -> NodeScorer:
    if not (target or "4").isdecimal() or int(target or 4) < 1:
        raise TurnwiseError(
            f"The scorer fork:{target} cannot be read.", "Write fork:4, with how many rollouts."
        )
    return ForkValue(int(target or 4))


def _own(target: str) -> NodeScorer:
    from turnwise.trainers.search.own_scorer import own_scorer

    return own_scorer(target)


FORMS: Mapping[str, tuple[str, Callable[[str], NodeScorer]]] = {
    "value": ("value:CHECKPOINT", _value),
    "judge": ("judge[:POLICY]", lambda target: Judge(make_policy(target) if target else None)),
    "listed": ("listed[:POLICY]", lambda target: ListedJudge(make_policy(target) if target else None)),
    "logp": ("logp", lambda _: Confidence()),
    "votes": ("votes", lambda _: Votes()),
    "fork": ("fork[:ROLLOUTS]", _fork),
    "oracle": ("oracle", lambda _: Oracle()),
    "python": ("python:FILE.py:OBJECT", _own),
}


def scorer_forms() -> str:
    """Return the forms in which scorers are written."""
    return ", ".join(form for form, _ in FORMS.values())


def make_scorer(spec: str) -> NodeScorer:
    """The scorer that a spec names. Close it where it holds a model.

    >>> make_scorer("fork:2").name, make_scorer("votes").whole
    ('fork:2', True)

    Raises:
        NotFoundError: there is none of this name.
        TurnwiseError: it is not complete, or its model cannot be loaded.
    """
    name, _, target = spec.partition(":")
    if name not in FORMS:
        raise NotFoundError("scorer", name, FORMS)
    form, make = FORMS[name]
    if not target and ":" in form and "[" not in form:
        raise TurnwiseError(f"The scorer {spec!r} is not complete.", f"Write {form}.")
    return make(target)
