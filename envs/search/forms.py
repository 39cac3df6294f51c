"""Questions about a generated world, each drawn from its graph and answered by it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from turnwise.envs.search.answers import UNKNOWN
from turnwise.envs.search.clues import clues_to
from turnwise.envs.search.encyclopedia import Pages
from turnwise.envs.search.graph import SOURCES, WorldGraph
from turnwise.envs.search.phrases import search_phrases
from turnwise.envs.search.question import Rubric, SearchQuestion
from turnwise.envs.search.schema import NUMBER, YEAR, Relation, schema
from turnwise.envs.worlds.vocabulary import NUMBERS
from turnwise.tasks.core import Split

_STARTS = ("book", "film", "event", "company", "school", "person", "city")
_CANDIDATES = 4
_MOST_COUNTED = 8


class QuestionDraft(NamedTuple):
    """The sources from which questions are drafted: a world's graph and its pages."""

    pages: Pages
    rng: Random
    hops: int

    @property
    def graph(self) -> WorldGraph:
        return self.pages.graph

    @property
    def split(self) -> Split:
        return self.graph.spec.split

    def noun(self, relation: Relation) -> str:
        """One of the nouns that a relation has in the world's language."""
        return self.rng.choice(relation.nouns.of(self.split))

    def say(self, name: str, /, **values: object) -> str:
        """The first of the ways to put a question in the world's language (phrases.yaml)."""
        return search_phrases().questions[name].of(self.split)[0].format(**values)


class FactStep(NamedTuple):
    """A fact: ``relation`` leads from ``source`` to ``target``."""

    source: int
    relation: Relation
    target: int


def chain(draft: QuestionDraft) -> SearchQuestion | None:
    """As many facts as ``hops``, one after the other: "Who is the mentor of the director of …?"."""
    steps = walked(draft, draft.hops)
    return None if steps is None else chained(draft, steps)


def chained(draft: QuestionDraft, steps: Sequence[FactStep], start: str = "") -> SearchQuestion:
    """A question along facts; ``start``: words for the thing that it begins at, in place of its name."""
    graph, rng = draft.graph, draft.rng
    text = _nested(draft, steps, start)
    last = steps[-1]
    entities = [*(step.source for step in steps)]
    if last.relation.target in (YEAR, NUMBER):
        answers, answer = (str(last.target),), -1
    else:
        entities.append(last.target)
        answers, answer = _names(graph, last.target), len(steps)
    said = _asks(draft, last.relation.target, text)
    names = tuple(_names(graph, entity) for entity in entities)
    rubric = tuple(
        Rubric(
            tuple(i for i in (at, at + 1) if i < len(entities)),
            tuple(i for i in (at, at + 1) if 0 < i < len(entities)),
            (draft.pages.position(step.source),),
        )
        for at, step in enumerate(steps)
    )
    rivals = _rivals(graph, rng, last) if answer >= 0 else ()
    return _question(
        draft, said, "chain", answers, [s.source for s in steps],
        entities=names, answer=answer, rubric=rubric, rivals=rivals, hops=len(steps),
    )  # fmt: skip


def unanswerable(draft: QuestionDraft) -> SearchQuestion | None:
    """A chain whose last fact no text gives, or which begins at something that does not exist."""
    graph, rng = draft.graph, draft.rng
    steps = walked(draft, draft.hops - 1, on=True) if draft.hops > 1 else ()
    if steps is None:
        return None
    if not steps and rng.random() < 0.5:  # a false premise
        kind = rng.choice(("city", "company", "event"))
        name = graph.unknown_name(kind, rng.getrandbits(40))
        if name is None:
            return None
        relation = rng.choice(schema().of_kind[kind])
        said = _asks(draft, relation.target, f"the {draft.noun(relation)} of {name}")
        return SearchQuestion(said, "unanswerable", (UNKNOWN,), queries=(name,), answerable=False)
    at = steps[-1].target if steps else _any(draft, rng.choice(_STARTS))
    gaps = [
        r for r in schema().of_kind[graph.kind(at)] if not (graph.told(at, r) or graph.is_disputed(at, r))
    ]
    if not gaps:
        return None
    missing = FactStep(at, rng.choice(gaps), -1)
    steps = (*steps, missing)
    last = missing.relation.target
    said = _asks(draft, last, _nested(draft, steps))
    return _question(
        draft, said, "unanswerable", (UNKNOWN,), [s.source for s in steps], answerable=False, hops=len(steps)
    )


def comparison(draft: QuestionDraft) -> SearchQuestion | None:
    """Ask which of four is the oldest, by a year of its own or of somebody related to it."""
    graph, rng = draft.graph, draft.rng
    kind = rng.choice(("city", "company", "school", "book", "film"))
    through = None
    if draft.hops > 1:
        through = rng.choice([r for r in schema().of_kind[kind] if r.target == "person" and not r.office])
    year = schema().year_of["person" if through else kind]
    found: dict[int, tuple[int, int]] = {}  # candidate → the one whose year counts, the year
    for _ in range(40):
        candidate = _any(draft, kind)
        who = graph.target(candidate, through) if through and graph.told(candidate, through) else candidate
        if (through and who == candidate) or not graph.told(who, year):
            continue
        when = graph.target(who, year)
        if when not in [other for _, other in found.values()]:
            found[candidate] = (who, when)
        if len(found) == _CANDIDATES:
            break
    else:
        return None
    earliest = rng.random() < 0.5
    right = (min if earliest else max)(found, key=lambda candidate: found[candidate][1])
    listed = [graph.mention(candidate) for candidate in found]
    first = {one: one.nouns.of(draft.split)[0] for one in (through, year) if one}
    what = f"the {first[through]} whose {first[year]}" if through else f"the {draft.noun(year)} that"
    said = draft.say(
        "superlative", what=what, end="earliest" if earliest else "latest", most=", ".join(listed[:-1]), last=listed[-1]
    )  # fmt: skip
    need = list(dict.fromkeys(page for candidate, (who, _) in found.items() for page in (candidate, who)))
    order = list(found)
    people = [who for who, _ in found.values() if through]
    names = tuple(_names(graph, entity) for entity in (*order, *people))
    rubric = tuple(
        Rubric((at, order.index(right)), (), (draft.pages.position(candidate),))
        for at, candidate in enumerate(order)
    ) + tuple(
        Rubric((at, len(order) + at), (len(order) + at,), (draft.pages.position(who),))
        for at, who in enumerate(people)
    )
    return _question(
        draft, said, "comparison", _names(graph, right), need, entities=names, answer=order.index(right),
        rubric=rubric, rivals=tuple(graph.name(c) for c in order if c != right), hops=2 if through else 1,
    )  # fmt: skip


def weighed_years(draft: QuestionDraft, pair: Sequence[int], called: Sequence[str]) -> SearchQuestion:
    """Ask which of two things came first, by the years of their own; ``called``: words for them in place of their names."""
    graph = draft.graph
    years = [schema().year_of[graph.kind(one)] for one in pair]
    first, second = (draft.noun(year) for year in years)
    said = draft.say("came_first", left=called[0], right=called[1], first=first, second=second)
    at = 0 if graph.target(pair[0], years[0]) < graph.target(pair[1], years[1]) else 1
    rubric = tuple(Rubric((i,), (i,), (draft.pages.position(one),)) for i, one in enumerate(pair))
    return _question(
        draft, said, "comparison", _names(graph, pair[at]), list(pair), entities=tuple(_names(graph, one) for one in pair),
        answer=at, rubric=rubric, rivals=(graph.name(pair[1 - at]),), hops=2,
    )  # fmt: skip


def intersection(draft: QuestionDraft) -> SearchQuestion | None:
    """The one thing of which two facts are told: "Which book has … as its author and … as its setting?"."""
    graph, rng = draft.graph, draft.rng
    kind = rng.choice(("person", "city", "company", "school", "book", "film", "event"))
    entity = _any(draft, kind)
    told = [r for r in schema().of_kind[kind] if r.target not in (YEAR, NUMBER) and graph.told(entity, r)]
    if len(told) < 2:
        return None
    pair = rng.sample(told, 2)
    both = set.intersection(*(set(graph.sources(r, graph.target(entity, r))) for r in pair))
    if both != {entity}:
        return None
    parts = [f"{graph.mention(graph.target(entity, r))} as its {draft.noun(r)}" for r in pair]
    said = draft.say("both", one=schema().kind[kind].one, left=parts[0], right=parts[1])
    position = draft.pages.position(entity)
    names = tuple(_names(graph, e) for e in (entity, *(graph.target(entity, r) for r in pair)))
    return _question(
        draft, said.replace(" its ", " their ") if kind == "person" else said, "intersection",
        _names(graph, entity), [entity], queries=(" ".join(graph.name(graph.target(entity, r)) for r in pair),),
        entities=names, answer=0, rubric=tuple(Rubric((0, at), (0,), (position,)) for at in (1, 2)), hops=2,
    )  # fmt: skip


def aggregation(draft: QuestionDraft) -> SearchQuestion | None:
    """Ask how many things are related to one: all of them must be found."""
    graph, rng = draft.graph, draft.rng
    relation = rng.choice(
        [r for r in schema().relations if r.target in graph.count and r.target != "region" and not r.office]
    )
    value = graph.target(_any(draft, relation.source), relation)
    found = graph.sources(relation, value)
    if not 2 <= len(found) <= _MOST_COUNTED:
        return None
    said = draft.say(
        "count",
        many=schema().kind[relation.source].many,
        name=graph.mention(value),
        noun=draft.noun(relation),
    )
    names = tuple(_names(graph, entity) for entity in (value, *found))
    rubric = tuple(
        Rubric((0, at), (at,), (draft.pages.position(entity),)) for at, entity in enumerate(found, start=1)
    )
    return _question(
        draft, said, "aggregation", (str(len(found)), NUMBERS[len(found)]), found,
        entities=names, answer=0, rubric=rubric, hops=1,
    )  # fmt: skip


def temporal(draft: QuestionDraft) -> SearchQuestion | None:
    """Ask who held an office in a year that is past; the present page and the old edition name others."""
    graph, rng = draft.graph, draft.rng
    relation = rng.choice([r for r in schema().relations if r.office])
    place = _any(draft, relation.source)
    terms = graph.office_terms(place, relation)
    term = terms[rng.randrange(2)]
    if term.end - term.start < 2 or term not in graph.terms_of(term.person):
        return None
    year = rng.randrange(term.start + 1, term.end)
    said = draft.say("office", noun=draft.noun(relation), name=graph.mention(place), year=year)
    names = (_names(graph, place), _names(graph, term.person))
    position = draft.pages.position(term.person)
    query = f"{graph.name(place)} {relation.nouns.of(draft.split)[0]} office {term.start} {term.end}"
    return _question(
        draft, said, "temporal", _names(graph, term.person), [term.person], queries=(query,), entities=names,
        answer=1, rubric=(Rubric((0, 1), (1,), (position,)),),
        rivals=tuple(dict.fromkeys(graph.name(t.person) for t in terms if t.person != term.person)), hops=2,
    )  # fmt: skip


def vague(draft: QuestionDraft) -> SearchQuestion | None:
    """The one thing that several vague clues fit together, or with more hops something told of it."""
    graph, rng = draft.graph, draft.rng
    kind = rng.choice(("person", "city", "company", "school", "book", "film", "event"))
    entity = _any(draft, kind)
    clues = clues_to(graph, rng, entity)
    if clues is None:
        return None
    rng.shuffle(clues)
    listed = "; ".join(clue.text for clue in clues)
    if kind == "person":
        listed = _ITS.sub("their", listed).replace("it was born", "they were born")
        listed = _IT.sub("they", listed)
    said, need = draft.say("vague", one=schema().kind[kind].one, listed=listed), [entity]
    need = list(dict.fromkeys([page for clue in clues for page in clue.pages if page != entity] + [entity]))
    onward = [
        r for r in schema().of_kind[kind] if not r.office and r.target != "region" and graph.told(entity, r)
    ]
    onward = [
        r
        for r in onward
        if not any(graph.name(graph.target(entity, r)) in said for r in [r] if r.target in graph.count)
    ]
    last = rng.choice(onward) if draft.hops > 3 and onward else None
    names = tuple(_names(graph, one) for one in need)
    at = need.index(entity)
    if last is None:
        said, answers, rivals = said + " " + draft.say("its_name"), _names(graph, entity), ()
    else:
        target = graph.target(entity, last)
        said = f"{said} {_asks(draft, last.target, f'its {draft.noun(last)}')}"
        entities = last.target in graph.count
        answers = _names(graph, target) if entities else (str(target),)
        rivals = _rivals(graph, rng, FactStep(entity, last, target)) if entities else ()
        if entities:
            names, at = (*names, answers), len(names)
        else:
            at = -1
    said = said.replace(" its ", " their ") if kind == "person" else said
    rubric = tuple(
        Rubric(
            tuple(need.index(page) for page in clue.pages),
            (need.index(entity),),
            tuple(draft.pages.position(page) for page in clue.pages),
        )
        for clue in clues
    )
    return _question(
        draft,
        said,
        "vague",
        answers,
        need,
        entities=names,
        answer=at,
        rubric=rubric,
        rivals=rivals,
        hops=len(need),
    )


def disputed(draft: QuestionDraft) -> SearchQuestion | None:
    """A year about which sources contradict each other, of something that is named or led to."""
    graph, rng = draft.graph, draft.rng
    if not graph.disputes:
        return None
    dispute = rng.randrange(len(graph.disputes))
    entity, relation = graph.disputes[dispute]
    said, led = graph.mention(entity), list[int]()
    leading = [
        r
        for r in schema().relations
        if r.target == graph.kind(entity) and not r.office and r.target != "region"
    ]
    if draft.hops > 1 and leading:
        way = rng.choice(leading)
        sources = graph.sources(way, entity)
        if sources:
            led = [rng.choice(sources)]
            said = f"the {draft.noun(way)} of {graph.mention(led[0])}"
    numbers = range(dispute * SOURCES, (dispute + 1) * SOURCES)
    reports = graph.reports_on(dispute)
    right = max(reports, key=lambda report: report.weight)
    names = tuple(_names(graph, one) for one in (*led, entity))
    places = [draft.pages.position(one) for one in (*led, entity)] + [
        draft.pages.report_position(n) for n in numbers
    ]
    queries = [graph.title(one) for one in (*led, entity)] + [draft.pages.report_title(n) for n in numbers]
    best = places[len(led) + 1 + reports.index(right)]
    rubric = (*((Rubric((0, 1), (1,), (places[0],)),) if led else ()), Rubric((len(led),), (), (best,)))
    rivals = tuple(dict.fromkeys(str(one.value) for one in reports if one.value != right.value))
    return SearchQuestion(
        draft.say("weighed", noun=draft.noun(relation), name=said), "disputed",
        (str(right.value),), names, -1, tuple(places), tuple(queries), rubric, rivals, True, len(led) + 2,
    )  # fmt: skip


FORMS: dict[str, Callable[[QuestionDraft], SearchQuestion | None]] = {
    "chain": chain, "comparison": comparison, "intersection": intersection, "aggregation": aggregation,
    "temporal": temporal, "vague": vague, "disputed": disputed, "unanswerable": unanswerable,
}  # fmt: skip

_ITS, _IT = re.compile(r"\bits\b"), re.compile(r"\bit\b")


def _asks(draft: QuestionDraft, target: str, what: str) -> str:
    if target not in schema().kind:
        return draft.say("what", what=what)
    return draft.say("who" if target == "person" else "which", what=what, one=schema().kind[target].one)


def walked(draft: QuestionDraft, hops: int, *, on: bool = False) -> tuple[FactStep, ...] | None:
    """A path along told facts that meets nothing twice; a year or number can only be its end, unless it goes ``on``."""
    graph, rng = draft.graph, draft.rng
    at = _any(draft, rng.choice(_STARTS))
    steps: list[FactStep] = []
    met = {at}
    for left in range(hops, 0, -1):
        ways = [r for r in schema().of_kind[graph.kind(at)] if graph.told(at, r)]
        ways = [r for r in ways if (left == 1 and not on) or r.target not in (YEAR, NUMBER, "region")]
        if not ways:
            return None
        relation = rng.choice(ways)
        target = graph.target(at, relation)
        if relation.target in graph.count and target in met:
            return None
        steps.append(FactStep(at, relation, target))
        met.add(target)
        at = target
    return tuple(steps)


def _nested(draft: QuestionDraft, steps: Sequence[FactStep], start: str = "") -> str:
    said, now = start or draft.graph.mention(steps[0].source), draft.say("now") + " "
    for step in steps:
        said = f"the {now if step.relation.office else ''}{draft.noun(step.relation)} of {said}"
    return said


def _question(
    draft: QuestionDraft, text: str, form: str, answers: tuple[str, ...], need: list[int], *,
    queries: tuple[str, ...] = (), entities: tuple[tuple[str, ...], ...] = (), answer: int = -1,
    rubric: tuple[Rubric, ...] = (), rivals: tuple[str, ...] = (), answerable: bool = True, hops: int = 1,
) -> SearchQuestion:  # fmt: skip
    evidence = tuple(draft.pages.position(entity) for entity in need)
    found_by = queries or tuple(draft.graph.title(entity) for entity in need)
    return SearchQuestion(
        text, form, answers, entities, answer, evidence, found_by, rubric, rivals, answerable, hops
    )


def _names(graph: WorldGraph, entity: int) -> tuple[str, ...]:
    alias = graph.alias(entity)
    names = (graph.name(entity), graph.title(entity), graph.mention(entity), *([alias] if alias else []))
    return tuple(dict.fromkeys(names))


def _rivals(graph: WorldGraph, rng: Random, step: FactStep) -> tuple[str, ...]:
    """Names beside the answer's that stand on its page or are of its kind."""
    others = [
        graph.target(step.source, r)
        for r in schema().of_kind[graph.kind(step.source)]
        if r.target in graph.count
    ]
    kind = graph.kind(step.target)
    others += [graph.first[kind] + rng.randrange(graph.count[kind]) for _ in range(3)]
    right = _names(graph, step.target)
    return tuple(dict.fromkeys(name for other in others if (name := graph.name(other)) not in right))


def _any(draft: QuestionDraft, kind: str) -> int:
    return draft.graph.first[kind] + draft.rng.randrange(draft.graph.count[kind])
