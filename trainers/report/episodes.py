"""The credit viewer: a group's episodes side by side, turn by turn, with what each turn earned."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass

from turnwise.agents.core import Turn
from turnwise.agents.log.records import Record
from turnwise.envs.messages import Messages
from turnwise.trainers.report.records import ShownGroup

_SHOWN = 6_000  # characters of one message
_SIBLINGS = 5  # side by side on a laptop's screen
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_IMAGE_BYTES = 300_000
# Control and direction characters could hide or reorder text; they are shown, not obeyed.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


@dataclass(frozen=True)
class Said:
    """One message, made safe and short enough to be shown."""

    role: str
    text: str
    images: tuple[str, ...] = ()  # data: addresses


@dataclass(frozen=True)
class Chip:
    """One reward component."""

    name: str
    value: float


@dataclass(frozen=True)
class TurnView:
    """One turn of one sibling."""

    number: int
    saw: tuple[Said, ...]  # empty: the same as at the head of the group
    action: str
    bad: bool
    tokens: int
    chips: tuple[Chip, ...]
    reward: float
    to_go: float
    advantage: float | None
    share: float  # |advantage| as a share of the group's largest, 0 … 1


@dataclass(frozen=True)
class Sibling:
    """One episode of the group."""

    number: int
    total_reward: float
    score: float
    end: str
    solved: bool
    turns: tuple[TurnView, ...]
    final: tuple[Said, ...]


@dataclass(frozen=True)
class GroupView:
    """Episodes of one task, and the messages that they all start with."""

    update: int | None
    group: int | None
    task_id: str
    opening: tuple[Said, ...]
    siblings: tuple[Sibling, ...]
    left_out: int
    rounds: int  # turns of the longest
    largest: float | None  # |advantage|, the full length of the bars
    spread: float  # standard deviation of the returns


def group_view(sample: ShownGroup) -> GroupView:
    """A group to be shown, best return first; of many episodes only five, from the best to the worst."""
    ranked = sorted(enumerate(sample.records, 1), key=lambda item: -item[1].episode.trajectory.total_reward)
    if len(ranked) > _SIBLINGS:
        picked = {round(i * (len(ranked) - 1) / (_SIBLINGS - 1)) for i in range(_SIBLINGS)}
        shown = [item for i, item in enumerate(ranked) if i in picked]
    else:
        shown = ranked
    turns = next((r.episode.trajectory.turns for _, r in shown if r.episode.trajectory.turns), ())
    opening = turns[0].observation if turns else Messages()
    largest = max((abs(a) for _, record in shown for a in record.given), default=None)
    return GroupView(
        update=sample.update,
        group=sample.group,
        task_id=sample.records[0].episode.task.id,
        opening=said(opening),
        siblings=tuple(_sibling(number, record, opening, largest or 0.0) for number, record in shown),
        left_out=len(ranked) - len(shown),
        rounds=max(len(record.episode.trajectory.turns) for _, record in shown),
        largest=largest,
        spread=sample.spread,
    )


def said(messages: Messages) -> tuple[Said, ...]:
    """Messages fit to be shown: cut to size, hidden characters visible, pictures as ``data:`` addresses."""
    return tuple(
        Said(
            message.role,
            visible(str(message)),
            tuple(
                f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"
                for image in message.images
                if image.media_type in _IMAGES and len(image.data) <= _IMAGE_BYTES
            ),
        )
        for message in messages
    )


def visible(text: str) -> str:
    r"""Text with control and direction characters made visible, and cut to a bearable length.

    >>> visible("\x1b[31mred\x07 \u202egnp.exe\nnext")
    '␛[31mred␇ ⟨U+202E⟩gnp.exe\nnext'
    """
    if len(text) > _SHOWN:
        text = f"{text[:_SHOWN]}\n[… {len(text) - _SHOWN} characters not shown]"
    return _HIDDEN.sub(_name_of, text.replace("\r\n", "\n"))


def _name_of(match: re.Match[str]) -> str:
    code = ord(match.group())
    return chr(0x2400 + code) if code < 0x20 else f"⟨U+{code:04X}⟩"


def _sibling(number: int, record: Record, opening: Messages, largest: float) -> Sibling:
    episode = record.episode
    turns = episode.trajectory.turns
    to_go = [sum(turn.reward for turn in turns[index:]) for index in range(len(turns))]
    advantages: Sequence[float | None] = record.given or [None] * len(turns)
    end = str(episode.end) if episode.end else str(episode.outcome)
    return Sibling(
        number=number,
        total_reward=episode.trajectory.total_reward,
        score=episode.score,
        end=end.replace("_", " "),
        solved=episode.success,
        turns=tuple(
            _turn(index, turn, opening, to_go[index], advantage, largest)
            for index, (turn, advantage) in enumerate(zip(turns, advantages, strict=True))
        ),
        final=said(episode.trajectory.final),
    )


def _turn(
    index: int, turn: Turn, opening: Messages, to_go: float, advantage: float | None, largest: float
) -> TurnView:
    return TurnView(
        number=index + 1,
        saw=() if index == 0 and turn.observation == opening else said(turn.observation),
        action=visible(str(turn.action)) or "(said nothing)",
        bad=turn.bad_action,
        tokens=len(turn.reply.action_ids),
        chips=tuple(Chip(visible(name), value) for name, value in turn.rewards.items() if value),
        reward=turn.reward,
        to_go=to_go,
        advantage=advantage,
        share=abs(advantage) / largest if advantage is not None and largest else 0.0,
    )
