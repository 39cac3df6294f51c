"""Tasks of conversations: knobs → values, concerns, moods, wishes."""

from __future__ import annotations

from random import Random

from turnwise.envs.core import EndReason
from turnwise.envs.dialogue.bargain import BargainPlay
from turnwise.envs.dialogue.knobs import DialogueKnobs
from turnwise.envs.dialogue.state import BargainState
from turnwise.envs.dialogue.vocabulary import (
    FACTS,
    FAVOURS,
    FEELINGS,
    ISSUES,
    KINDS,
    PLANS,
    SECRETS,
    TOPICS,
    TROUBLES,
)
from turnwise.envs.wordings import ways
from turnwise.envs.worlds.knobs import first_drawn, in_split
from turnwise.envs.worlds.sessions import SpokenMessage
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise/Dialogue-v0"
_ASKS = {
    "bargain": "Agree on a deal that is good for you.",
    "comfort": ways(
        "Somebody is troubled by {}. Help. | Be a comfort to somebody who has this trouble: {}. | There is someone whose mood suffers from {}. Cheer them up."
    ),
    "persuade": ways(
        "Win the other for {}. | Persuade the other to take part in {}. | The other is undecided about {}: bring about a yes."
    ),
    "social": "You meet a neighbour.",
}
_BRIEF_ASKS = {
    "bargain": "make a deal .",
    "comfort": "help : {} .",
    "persuade": "plan : {} .",
    "social": "a neighbour .",
}


def draw_task(rng: Random, split: Split, knobs: DialogueKnobs) -> Task:
    """A conversation that no other split can draw."""

    def draw(rng: Random) -> Task | None:
        made = {"bargain": _bargain, "persuade": _persuade, "comfort": _comfort, "social": _social}
        task = made[knobs.scene](rng, knobs, split if knobs.text == "full" else Split.TRAIN)
        key = [
            knobs.scene,
            {k: v for k, v in (task.options if task else {}).items() if k not in _shared(knobs)},
        ]
        return task if task and in_split(split, ENV, task.prompt, key) else None

    return first_drawn(draw, rng, split, "dialogue", attempts=5000)


def _shared(knobs: DialogueKnobs) -> dict[str, Json]:
    names = ("scene", "text", "commands", "turn_limit", "paraphrase")
    later = ("paid", "swing")  # told only where they are not the default: tasks keep their ids
    names += tuple(one for one in later if getattr(knobs, one) != DialogueKnobs.model_fields[one].default)
    shared = {**{name: getattr(knobs, name) for name in names}, "two_sided": knobs.partner != "scripted"}
    return {**shared, "partner": "model"} if knobs.partner == "model" else shared


def _ask(knobs: DialogueKnobs, language: Split, what: str = "") -> str:
    ask = _ASKS[knobs.scene] if knobs.text == "full" else _BRIEF_ASKS[knobs.scene]
    return (ask if isinstance(ask, str) else ask.of(language)[0]).format(what)


# --- bargain -----------------------------------------------------------------------------------------


def _bargain(rng: Random, knobs: DialogueKnobs, language: Split) -> Task | None:
    """Both like opposite options best on most issues, but care for different issues."""
    names = rng.sample(list(ISSUES), knobs.issues)
    issues = [[name, rng.sample(ISSUES[name], knobs.choices)] for name in names]
    weights = [rng.sample(range(1, 9), knobs.issues) for _ in range(2)]
    worths: list[list[list[int]]] = [[], []]
    for issue in range(knobs.issues):
        ranks = rng.sample(range(knobs.choices), knobs.choices)
        opposed = rng.random() < 0.8
        worths[0].append([weights[0][issue] * rank for rank in ranks])
        worths[1].append(
            [weights[1][issue] * (knobs.choices - 1 - rank if opposed else rank) for rank in ranks]
        )
    most = [(knobs.choices - 1) * sum(weights[seat]) for seat in range(2)]
    options = {
        **_shared(knobs),
        "issues": issues,
        "worths": worths,
        "reserve": [int(most[seat] * rng.uniform(0.1, 0.3)) for seat in range(2)],
        "lies": knobs.lies,
        "patience": knobs.patience or knobs.turn_limit + 1,
        **({"vain": knobs.vain} if knobs.vain else {}),
    }
    play = BargainPlay(Task(ENV, _ask(knobs, language), options))
    return play.task if _is_worth_playing(play) else None


def _is_worth_playing(play: BargainPlay) -> bool:
    """Say whether neither the first counter-offer nor the middle of everything is a good deal, and gold,
    against a script, finds one."""
    both = [p for p in play.packages if play.gain(0, p) > 0 and play.gain(1, p) > 0]
    if not both:
        return False
    if play.score(0, _middle(play)) > 0.85 or play.score(0, play.counter(1, None)) > 0.6:
        return False
    return play.two_sided or _gold_wins(play)


def _middle(play: BargainPlay) -> tuple[int, ...]:
    """The middle option of each issue, by the agent's own worths."""
    orders = [sorted(range(len(row)), key=row.__getitem__) for row in play.worths[0]]
    return tuple(order[len(order) // 2] for order in orders)


def _gold_wins(play: BargainPlay) -> bool:
    position = BargainState()
    for _ in range(play.options["turn_limit"]):
        told = play.move(position, SpokenMessage(tuple(play.gold(position).split())))
        if told.end is not None:
            return told.end is EndReason.SOLVED
        position = told.position
    return False


# --- the others --------------------------------------------------------------------------------------


def _persuade(rng: Random, knobs: DialogueKnobs, language: Split) -> Task:
    kinds = list(KINDS)
    facts = {topic: sorted(rng.sample(kinds, 2)) for topic in TOPICS}
    topics = rng.sample(list(TOPICS), knobs.concerns)
    options = {
        **_shared(knobs),
        "concerns": [[topic, rng.choice(facts[topic])] for topic in topics],
        "facts": facts,
        "patience": knobs.patience or 2,
        "language": language.value,
    }
    return Task(ENV, _ask(knobs, language, rng.choice(PLANS.of(language))), options)


def _comfort(rng: Random, knobs: DialogueKnobs, language: Split) -> Task:
    aims = ["hear", "advise", "praise", "reframe"]
    options = {
        **_shared(knobs),
        "trouble": rng.choice(TROUBLES.of(language)),
        "feeling": rng.choice(list(FEELINGS)),
        "aims": rng.sample(aims, 4),
        "dislikes": rng.choice([*aims, "ask"]),
        "language": language.value,
    }
    return Task(ENV, _ask(knobs, language, options["trouble"]), options)


def _social(rng: Random, knobs: DialogueKnobs, language: Split) -> Task:
    options = {
        **_shared(knobs),
        "wishes": rng.sample(list(FAVOURS), 2),
        "facts": rng.sample(FACTS, 2),
        "secrets": rng.sample(SECRETS, 2),
    }
    return Task(ENV, _ask(knobs, language), options)
