"""An episode made ready to be shown: its turns, tokens, branches, pictures, and differences of files."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from turnwise.agents.core import PREVIOUS, Reply, Trajectory, Turn
from turnwise.agents.log.records import Record
from turnwise.agents.models.finding import local_model
from turnwise.envs.messages import Message, Messages
from turnwise.tasks.core import Json
from turnwise.trainers.report.episodes import Said, said, visible
from turnwise.trainers.report.turns import TrueEpisode, TrueGroup, TrueTurn
from turnwise.trainers.view.branches import TurnBranch, branches_of, caller_of, continued_by, parent_of

SHADES = 8
"""Number of steps of colour in which a token's probability is shown."""

_DIFF = re.compile(r"^(diff --git |--- |\+\+\+ |@@ )", re.MULTILINE)
_LONGEST_TOKENS = 4000
_PEEK = 140
_ALIKE = 40  # characters with which two texts begin alike before that is left out


class TokenShown(NamedTuple):
    """A sampled token: its text, its log-probability in nats (None: unknown), and a shade from 0, the likeliest.

    ``entropy`` is that of the distribution that it was drawn from, in nats; None: it was not measured.
    """

    id: int
    text: str
    logp: float | None
    shade: int
    entropy: float | None = None

    @property
    def chance(self) -> str:
        """Its probability, as people read it."""
        if self.logp is None:
            return "not known"
        share = 100 * math.exp(self.logp)
        return f"{share:.1f} %" if share >= 0.05 else f"{share:.1e} %"


class DiffLine(NamedTuple):
    """A line of a difference of files: ``add``, ``cut``, ``head`` or plain."""

    kind: str
    text: str


class NamedValue(NamedTuple):
    """A named number: a part of a reward, a signal."""

    name: str
    value: float


class MessageShown(NamedTuple):
    """A message: its text with pictures; ``diff`` where it is a difference of files, ``peek`` what a closed one shows."""

    role: str
    text: str
    peek: str
    images: tuple[str, ...]
    diff: tuple[DiffLine, ...] = ()


class TurnShown(NamedTuple):
    """A turn. ``parent`` is the turn whose tokens its prompt extends, ``caller`` the one that called its conversation, ``continues``
    the one after which its context was written anew; from 1, or 0."""

    number: int
    saw: tuple[MessageShown, ...]
    action: MessageShown
    bad: bool
    tokens: tuple[TokenShown, ...]
    mean_logp: float | None
    mean_entropy: float | None
    parts: tuple[NamedValue, ...]
    reward: float
    to_go: float
    advantage: float | None
    share: float  # |advantage| as a share of the episode's largest
    truth: TrueTurn | None
    signals: tuple[NamedValue, ...]
    details: str
    versions: str
    source: str
    weight: float
    state_key: str
    parent: int
    caller: int
    continues: int
    kind: str
    prompt_tokens: int


class AgentShown(NamedTuple):
    """Turns of one agent; ``branches`` where its turns are no single line."""

    name: str
    turns: tuple[TurnShown, ...]
    final: tuple[MessageShown, ...]
    total: float
    branches: tuple[TurnBranch, ...]


class EpisodeShown(NamedTuple):
    """Everything of an episode that its page tells."""

    agents: tuple[AgentShown, ...]
    truth: TrueGroup | None
    options: str
    gold: str
    metrics: tuple[NamedValue, ...]
    has_tokens: bool
    has_entropy: bool


def show_episode(
    record: Record, tokenizer: Path | None = None, truths: Sequence[TrueGroup] = ()
) -> EpisodeShown:
    """An episode of a log; ``tokenizer`` is the file that says what its tokens read, ``truths`` what was measured."""
    episode = record.episode
    group, true_episode = _truth_of(record, truths)
    words = TokenTexts(tokenizer)
    agents = tuple(
        _agent(
            trajectory,
            record.advantages.get(name, ()),
            record.entropies.get(name, ()),
            true_episode if first else None,
            words,
        )
        for first, (name, trajectory) in zip(
            itertools.chain([True], itertools.repeat(False)), episode.trajectories.items(), strict=False
        )
    )
    return EpisodeShown(
        agents,
        group,
        _as_text(dict(episode.task.options)),
        _as_text(episode.task.gold),
        tuple(NamedValue(visible(name), value) for name, value in episode.metrics.items()),
        any(turn.tokens for agent in agents for turn in agent.turns),
        any(turn.mean_entropy is not None for agent in agents for turn in agent.turns),
    )


class TokenTexts:
    """Texts of tokens, one by one; their ids where no tokeniser is known."""

    def __init__(self, file: Path | None) -> None:
        there = file is not None and file.is_file() and importlib.util.find_spec("tokenizers") is not None
        self._file = file if there else None

    def __call__(self, token: int) -> str:
        if self._file is None:
            return f"{token}·"
        return _texts(self._file, self._file.stat().st_mtime_ns)(token)


@functools.lru_cache(maxsize=4)
def _texts(file: Path, changed: int) -> functools._lru_cache_wrapper[str]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))

    @functools.lru_cache(maxsize=100_000)
    def text(token: int) -> str:
        said = tokenizer.decode([token], skip_special_tokens=False)
        whole = tokenizer.id_to_token(token)
        if whole is None:
            return f"⟨{token}⟩"
        return whole if not said or "\ufffd" in said else said

    return text


def tokenizer_of(folder: Path, policy: str = "") -> Path | None:
    """The tokeniser with which a run or an evaluation was played, if it is on this machine."""
    sampled = policy.rpartition(" with ")[2]  # a program's policy names the model behind it
    model = local_model(sampled.partition(":")[2]) if ":" in sampled else None
    candidates = [folder / "model", folder / "start", *([model, model / "best" / "model"] if model else [])]
    steps = sorted(folder.glob("checkpoints/step-*/model"))
    for place in [*candidates, *steps[-1:]]:
        if (file := place / "tokenizer.json").is_file():
            return file
    return None


def _agent(
    trajectory: Trajectory,
    advantages: Sequence[float],
    entropies: Sequence[Sequence[float]],
    truth: TrueEpisode | None,
    words: TokenTexts,
) -> AgentShown:
    turns = trajectory.turns
    to_go = [sum(turn.reward for turn in turns[index:]) for index in range(len(turns))]
    largest = max(map(abs, advantages), default=0.0)
    before = dict[str, str]()
    shown = tuple(
        _turn(
            index, turn, show_messages(turn.observation, before), to_go[index],
            advantages[index] if index < len(advantages) else None, largest,
            truth.turns[index] if truth else None, words,
            entropies[index] if index < len(entropies) else (),
        )
        for index, turn in enumerate(turns)
    )  # fmt: skip
    return AgentShown(
        visible(trajectory.agent),
        shown,
        show_messages(trajectory.final, before),
        trajectory.total_reward,
        branches_of([turn.reply for turn in turns])
        if any(turn.reply.parent != PREVIOUS for turn in turns[1:])
        else (),
    )


def _turn(
    index: int,
    turn: Turn,
    saw: tuple[MessageShown, ...],
    to_go: float,
    advantage: float | None,
    largest: float,
    truth: TrueTurn | None,
    words: TokenTexts,
    entropies: Sequence[float],
) -> TurnShown:
    reply = turn.reply
    known = reply.logprobs
    parent, caller = parent_of(index, reply), caller_of(index, reply)
    continues = continued_by(index, reply)
    return TurnShown(
        number=index + 1,
        saw=saw,
        action=show_message(turn.action),
        bad=turn.bad_action,
        tokens=show_tokens(reply, entropies, words),
        mean_logp=sum(known) / len(known) if known else None,
        mean_entropy=sum(entropies) / len(entropies) if entropies else None,
        parts=tuple(NamedValue(visible(name), value) for name, value in turn.rewards.items() if value),
        reward=turn.reward,
        to_go=to_go,
        advantage=advantage,
        share=abs(advantage) / largest if advantage is not None and largest else 0.0,
        truth=truth,
        signals=tuple(NamedValue(visible(name), value) for name, value in sorted(turn.signals.items())),
        details=_as_text(dict(turn.details)) if turn.details else "",
        versions=", ".join(
            f"{span.version}" + (f" from token {span.start + 1}" if span.start else "")
            for span in reply.versions
        ),
        source=visible(reply.source),
        weight=turn.weight,
        state_key=turn.state_key,
        parent=0 if parent is None else parent + 1,
        caller=0 if caller is None else caller + 1,
        continues=0 if continues is None else continues + 1,
        kind=turn.kind,
        prompt_tokens=len(reply.prompt_ids),
    )


def show_tokens(reply: Reply, entropies: Sequence[float], words: TokenTexts) -> tuple[TokenShown, ...]:
    """The sampled tokens of a reply; their entropies, if there are any."""
    unknown: Sequence[None] = [None] * len(reply.action_ids)
    rows = zip(
        reply.action_ids[:_LONGEST_TOKENS], reply.logprobs or unknown, entropies or unknown, strict=False
    )
    return tuple(
        TokenShown(token, visible(words(token)), logp, shade(logp), entropy) for token, logp, entropy in rows
    )


def shade(logp: float | None) -> int:
    """A step of colour for a log-probability: 0 for what was nearly certain, one more for each halving.

    >>> [shade(x) for x in (None, 0.0, -0.5, -0.8, -3.0, -40.0)]
    [0, 0, 0, 1, 4, 7]
    """
    return 0 if logp is None else min(SHADES - 1, max(0, int(-logp / math.log(2))))


def show_messages(messages: Messages, before: dict[str, str]) -> tuple[MessageShown, ...]:
    """Messages fit to be shown; ``before`` holds what each role said last, and is brought up to date."""
    shown: list[MessageShown] = []
    for one in said(messages):
        shown.append(_shown(one, before.get(one.role, "")))
        before[one.role] = one.text
    return tuple(shown)


def show_message(message: Message) -> MessageShown:
    """One message fit to be shown."""
    return _shown(said(Messages((message,)))[0])


def _shown(one: Said, before: str = "") -> MessageShown:
    return MessageShown(one.role, one.text, peek(one.text, before), one.images, diff_of(one.text))


def peek(text: str, before: str = "") -> str:
    """A text in a short line. Where it begins as the one ``before`` it, as pages of a shop do, that beginning is left out.

    >>> shop = "Instruction: find a red lamp that is cheaper than 30 dollars. "
    >>> peek(shop + "Search results", shop + "Start page"), peek("Done.", shop), peek(shop, shop)
    ('… Search results', 'Done.', '(as before)')
    """
    if len(text) >= _ALIKE and text[:_ALIKE] == before[:_ALIKE]:
        pairs = enumerate(zip(text, before, strict=False))
        alike = next((at for at, (one, other) in pairs if one != other), min(len(text), len(before)))
        begin = max(text.rfind(space, 0, alike) for space in " \n") + 1
        text = "(as before)" if alike == len(text) else f"… {text[begin:]}"
    return text[:_PEEK].replace("\n", " ")


def diff_of(text: str) -> tuple[DiffLine, ...]:
    """The lines of a text that holds a difference of files; of others none.

    >>> [line.kind for line in diff_of("@@ -1 +1 @@\\n-old\\n+new\\n same")]
    ['head', 'cut', 'add', '']
    """
    if "@@ " not in text or not _DIFF.search(text):
        return ()
    return tuple(DiffLine(_kind(line), line) for line in text.splitlines())


def _kind(line: str) -> str:
    if _DIFF.match(line):
        return "head"
    return {"+": "add", "-": "cut"}.get(line[:1], "")


def _truth_of(record: Record, truths: Sequence[TrueGroup]) -> tuple[TrueGroup | None, TrueEpisode | None]:
    """The measured episode that is this one: of its task, with the same actions."""
    actions = [visible(str(turn.action)) or "(said nothing)" for turn in record.episode.trajectory.turns]
    for group in truths:
        if group.task_id != record.episode.task.id:
            continue
        for one in group.episodes:
            if [turn.action for turn in one.turns] == actions:
                return group, one
    return None, None


def _as_text(value: Json) -> str:
    return visible(json.dumps(value, indent=1, ensure_ascii=False))
