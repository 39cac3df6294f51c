"""Knobs, worlds and tasks; and the case that an episode is played on."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from random import Random

from turnwise.envs.toolworld.cases import domain_of, world
from turnwise.envs.toolworld.domain import Domain, Primitive, StoryDraft, drawn
from turnwise.envs.toolworld.files.tasks import draw_file_task
from turnwise.envs.toolworld.knobs import FileDomainKnobs, ToolWorldKnobs
from turnwise.envs.toolworld.phrases import draw_voice
from turnwise.envs.toolworld.story import PlanStep, Stage, Story
from turnwise.envs.worlds.knobs import first_drawn, in_split
from turnwise.tasks.core import Json, Split, Task, canonical, digest

ENV = "turnwise/ToolWorld-v0"
MANNERS = (
    "",
    "Please be quick.",
    "Hello there!",
    "I was on hold for ages.",
    "Thanks for taking my call.",
    "Well, the weather is awful here, but anyway.",
    "Look, I have not much time today.",
)
_PATIENCE = 40  # worlds and customers that one kind of first request is tried with


def draw_task(rng: Random, split: Split, knobs: ToolWorldKnobs | FileDomainKnobs) -> Task:
    """A task that no other split can draw, whose plan was carried out and breaks no rule."""
    if isinstance(knobs, FileDomainKnobs):
        return draw_file_task(rng, split, knobs)

    name = rng.choice(knobs.domains)
    kinds = _first_kinds(domain_of(name), rng, knobs)
    attempts = itertools.count()

    def draw(rng: Random) -> Task | None:
        kind = kinds[next(attempts) // _PATIENCE % len(kinds)]
        seed = digest(ENV, name, split.value, rng.randrange(knobs.worlds))
        draft = StoryDraft(
            domain_of(name),
            rng,
            world(name, seed, knobs.size),
            paraphrase=knobs.paraphrase,
            changes=knobs.changes,
            split=split,
        )
        made = _stages(draft, kind, rng, knobs)
        if made is None:
            return None
        stages = list(made)
        brief, manner = rng.random() < knobs.brief, rng.choice(MANNERS) if knobs.paraphrase else ""
        voice = {} if draft.domain.compact else draw_voice(rng, split)
        story = Story(draft.customer, tuple(stages), draft.facts, knobs.patience, brief, manner, voice)
        core = [[stage.say, [canonical(step) for step in stage.plan]] for stage in stages]
        if not in_split(split, ENV, core):
            return None
        if draft.db == draft.base and not any(stage.tells for stage in stages):
            return None  # doing nothing would solve it
        if _can_be_told_together(draft.domain, stages):
            story = story._replace(together=rng.random() < knobs.together)
        options: dict[str, Json] = {
            "domain": name,
            "world": [seed, knobs.size],
            "patch": [[table, key, dict(fields)] for table, key, fields in draft.patch],
            "story": story.to_json(),
            "user": knobs.user,
            "turn_limit": knobs.turn_limit,
        }
        return Task(ENV, story.opening, options, {"database": draft.db.digest})

    return first_drawn(draw, rng, split, "tool world")


def _first_kinds(domain: Domain, rng: Random, knobs: ToolWorldKnobs) -> list[Primitive]:
    """Draw the kinds of which the first request may be, before everything else, so that what seldom fits is
    not rarer."""
    trap = bool(domain.traps) and rng.random() < knobs.traps
    kinds = domain.traps if trap else domain.requests
    return [kinds[name] for name in rng.sample(sorted(kinds), len(kinds))]


def _stages(
    draft: StoryDraft, first: Primitive, rng: Random, knobs: ToolWorldKnobs
) -> Sequence[Stage] | None:
    domain = draft.domain
    if not domain.enter(draft):
        return None
    stages: list[Stage] = []
    for number in range(rng.randint(*knobs.requests)):
        trap = domain.traps and rng.random() < knobs.traps
        stage = (
            _drawn(draft, domain.traps if trap else domain.requests, rng) if number else drawn(first, draft)
        )
        if stage is None:
            return None
        draft.apply(stage)
        stages.append(stage)
        if any(_is_end(domain, step) for step in stage.plan):
            break
    return _introduced(domain, stages)


def _can_be_told_together(domain: Domain, stages: Sequence[Stage]) -> bool:
    """Say whether several requests can be told at once: a policy may want somebody handed over, which ends
    the talk."""
    ends = (_is_end(domain, step) for stage in stages for step in stage.plan)
    return len(stages) > 1 and not domain.compact and not any(ends)


def _is_end(domain: Domain, step: PlanStep) -> bool:
    made = domain.act(step.name) if step.kind == "call" else None
    return made is not None and made.kind == "end"


def _drawn(draft: StoryDraft, kinds: Mapping[str, Primitive], rng: Random) -> Stage | None:
    for name in rng.sample(sorted(kinds), len(kinds)):
        stage = drawn(kinds[name], draft)
        if stage is not None:
            return stage
    return None


def _introduced(domain: Domain, stages: list[Stage]) -> list[Stage]:
    """Without calls that a stage before made (the customer is identified once)."""
    seen: set[str] = set()
    kept: list[Stage] = []
    for stage in stages:
        plan: list[PlanStep] = []
        for step in stage.plan:
            made = domain.act(step.name) if step.kind == "call" else None
            once = step.kind == "ask" or (made is not None and made.kind == "identify")
            key = canonical([step.kind, step.text, step.name, dict(step.arguments), step.slots])
            if once and key in seen:
                continue
            seen.add(key)
            plan.append(step)
        kept.append(stage._replace(plan=tuple(plan)))
    return kept
