"""The form in which a turn is asked to be played otherwise, and the page of its answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from turnwise.agents.log.episode_log import read_record
from turnwise.errors import TurnwiseError
from turnwise.trainers.report.episodes import visible
from turnwise.trainers.view.drawing import strip
from turnwise.trainers.view.episodes import required_row
from turnwise.trainers.view.forking import Arm, ForkEpisode, ForkQuestion, write_action
from turnwise.trainers.view.index import LogIndex
from turnwise.trainers.view.jobs import ArmReturns, ForkJob, ForkOrigin
from turnwise.trainers.view.pages import signed
from turnwise.trainers.view.places import ModelPlace, ViewedPlace, models_of
from turnwise.trainers.view.selection import EpisodeRow
from turnwise.trainers.view.told import AgentShown, TurnShown, show_episode, tokenizer_of

NOBODY = "nobody"
SCRIPTS = (
    ("scripted:gold", "gold: the environment's own solution"),
    ("scripted:demonstrator", "the imperfect script that warm starts imitate"),
    ("scripted:random", "random actions"),
)
_SHOWN = 6
_LONGEST_ADDRESS = 1000


class WhatIfShown(NamedTuple):
    """The form."""

    place: ViewedPlace
    row: EpisodeRow
    turn: int
    played: TurnShown
    typed: str
    agent: AgentShown
    scripts: tuple[tuple[str, str], ...]
    models: tuple[ModelPlace, ...]
    policy: str
    continuations: str
    temperature: str
    refused: str
    csrf: str


def what_if_shown(
    place: ViewedPlace,
    index: LogIndex,
    number: int,
    asked: Mapping[str, str],
    places: Sequence[ViewedPlace],
    csrf: str,
) -> WhatIfShown:
    """The form for a turn of an episode; ``asked`` names the turn, and what is filled in where a question is asked again.

    Raises:
        TurnwiseError: there is no such episode, or no such turn.
    """
    row, turn = required_row(place, index, number), asked.get("turn", "1")
    record = read_record(place.log, index.place(number))
    folder = place.path if place.path.is_dir() else place.path.parent
    agents = show_episode(record, tokenizer_of(folder, row.policy)).agents
    agent = agents[0]
    at = int(turn) if turn.isdecimal() and len(turn) < 6 else 0
    if not 1 <= at <= len(agent.turns):
        raise TurnwiseError(
            f"The episode has {len(agent.turns)} turns, and {turn!r:.20} was asked for.", "Choose one."
        )
    refused = "" if len(agents) == 1 else "Several agents play in this episode, and it cannot be forked."
    own = [model for model in models_of(places) if model.name.startswith(f"{place.name} ")]
    others = [model for model in models_of(places) if model not in own]
    typed = visible(write_action(record.episode.trajectory.turns[at - 1].action))
    return WhatIfShown(
        place, row, at, agent.turns[at - 1], visible(asked.get("action", typed)), agent, SCRIPTS, (*own, *others),
        asked.get("policy", ""), asked.get("continuations", "8"), asked.get("temperature", "1"), refused, csrf,
    )  # fmt: skip


def question_of(
    place: ViewedPlace,
    index: LogIndex,
    number: int,
    fields: Sequence[tuple[str, str]],
    places: Sequence[ViewedPlace],
) -> tuple[ForkQuestion, ForkOrigin]:
    """Return what a form asks for. Only scripts and checkpoints that the form offers can be asked to play.

    Raises:
        TurnwiseError: a field says something else than the form offers.
    """
    known = dict(fields)
    actions = [text for name, text in fields if name == "action" and text.strip()]
    policy = known.get("policy", NOBODY)
    offered = {NOBODY, *(spec for spec, _ in SCRIPTS), *(model.spec for model in models_of(places))}
    if policy not in offered:
        raise TurnwiseError(f"{policy!r:.80} is nobody who can go on here.", "Choose one of the list.")
    if policy == NOBODY and not actions and "look" not in known:
        raise TurnwiseError(
            "Nobody plays, and no action was given.", "Write an action, or choose who goes on."
        )
    row = required_row(place, index, number)
    at = index.place(number)
    turn = _count(known.get("turn", "1"), "turn", 1, max(1, row.turns))
    record = read_record(place.log, at)
    played = sum(one.reward for one in record.episode.trajectory.turns[turn - 1 :])
    question = ForkQuestion(
        log=str(place.log),
        start=at.start,
        line=at.line,
        turn=turn,
        actions=tuple(actions),
        policy="" if policy == NOBODY else policy,
        continuations=_count(known.get("continuations", "8"), "number of continuations", 1, 64),
        temperature=_temperature(known.get("temperature", "1")),
    )
    return question, ForkOrigin(place.id, number, played)


def _count(text: str, what: str, low: int, high: int) -> int:
    if not text.isdecimal() or len(text) > 6 or not low <= int(text) <= high:
        raise TurnwiseError(f"The {what} is {text!r:.20}.", f"Write a number from {low} to {high}.")
    return int(text)


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 10:
        raise TurnwiseError(f"The temperature is {text!r:.20}.", "Write a number from 0 (greedy) to 10.")
    return value


class AlikeShown(NamedTuple):
    """Continuations that went the same way, turn by turn: the first of them, and how many they are."""

    episode: ForkEpisode
    times: int


class ArmShown(NamedTuple):
    """One of the two ways to go on: its returns, and its first few different continuations."""

    name: str
    about: str
    returns: ArmReturns
    played: int
    lost: int
    some: tuple[AlikeShown, ...]

    @property
    def told(self) -> int:
        """Number of continuations that are shown, each of those alike counted."""
        return sum(alike.times for alike in self.some)


class JobShown(NamedTuple):
    """The page of a question and its answers."""

    job: ForkJob
    place: ViewedPlace
    arms: tuple[ArmShown, ...]
    picture: Markup
    difference: float | None
    clear: bool
    verdict: str
    again: str
    you: ForkEpisode | None
    observation: str
    admissible: tuple[str, ...]
    changed: str
    csrf: str


def job_shown(job: ForkJob, place: ViewedPlace, csrf: str) -> JobShown:
    """A question as far as it is answered."""
    question, moment = job.question, job.moment
    abouts: dict[Arm, str] = {
        "as played": next((visible(e.turns[0].action) for e in job.episodes("as played") if e.turns), ""),
        "changed": " then ".join(map(visible, question.actions)) or "the policy chooses at once",
    }
    arms = tuple(_arm(job, arm, about) for arm, about in abouts.items() if job.episodes(arm))
    groups = [
        (f"{arm.name} (mean {arm.returns.mean:.2f})", arm.returns.values)
        for arm in arms
        if arm.returns.mean is not None
    ]
    picture = (
        strip(groups, label="Returns from the turn on", mark=job.origin.played) if groups else Markup("")
    )
    difference, error = _difference(job)
    you = next(iter(job.episodes("you")), None)
    return JobShown(
        job, place, arms, picture, difference, _is_clear(difference, error), verdict(difference, error), _again(question), you,
        visible(moment.observation) if moment else "",
        tuple(visible(action) for action in moment.admissible) if moment else (),
        visible(moment.changed) if moment else "",
        csrf,
    )  # fmt: skip


def _arm(job: ForkJob, arm: Arm, about: str) -> ArmShown:
    episodes = job.episodes(arm)
    lost = sum(not episode.counts for episode in episodes)
    return ArmShown(arm, about, job.returns(arm), len(episodes), lost, _alike(episodes)[:_SHOWN])


def _alike(episodes: Sequence[ForkEpisode]) -> tuple[AlikeShown, ...]:
    kinds = dict[str, list[ForkEpisode]]()
    for episode in episodes:
        kinds.setdefault(episode.model_dump_json(), []).append(episode)
    return tuple(AlikeShown(alike[0], len(alike)) for alike in kinds.values())


def _difference(job: ForkJob) -> tuple[float | None, float | None]:
    """Changed less as played, with its standard error; the arms are taken as independent, which errs on the safe side."""
    before, after = job.returns("as played"), job.returns("changed")
    if before.mean is None or after.mean is None:
        return None, None
    if before.error is None or after.error is None:
        return after.mean - before.mean, None
    return after.mean - before.mean, math.hypot(before.error, after.error)


def _is_clear(difference: float | None, error: float | None) -> bool:
    return difference is not None and error is not None and abs(difference) > 2 * error


def verdict(difference: float | None, error: float | None) -> str:
    """Say in a sentence what the difference of the two mean returns says."""
    if difference is None:
        return ""
    if error is None:
        return f"Mean return changed by {signed(difference)}; how far that is chance, single continuations do not tell."
    if not difference and not error:
        return "Every continuation earned the same, after the one action as after the other."
    said = f"Mean return changed by {signed(difference)} ± {error:.3f} (standard error)"
    if _is_clear(difference, error):
        return f"{said}: more than twice its error, so the action matters."
    return f"{said}: within twice its error, so that it may be chance. More continuations tell more."


def _again(question: ForkQuestion) -> str:
    """The form's address with the question filled in."""
    fields = {"turn": str(question.turn), "policy": question.policy or NOBODY}
    if question.policy:
        fields |= {"continuations": str(question.continuations), "temperature": f"{question.temperature:g}"}
    action = question.actions[0] if question.actions else ""
    return urlencode(fields | ({"action": action} if len(action) <= _LONGEST_ADDRESS else {}))
