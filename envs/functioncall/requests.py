"""Requests: what a user asks for, with the calls that do it, found by carrying them out on the data.

Deeds and questions come in several shapes, each a function of a draft; a value may be left out, to be asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from turnwise.envs.functioncall.data import CallData
from turnwise.envs.functioncall.drafting import ImpossibleRequest, PickedRow, PlannedCall, RequestDraft, tells
from turnwise.envs.functioncall.interfaces import DataFunction, DataTable, apis, functions, tables
from turnwise.envs.functioncall.vocabulary import call_words, is_number, of_split, phrases, said
from turnwise.envs.functioncall.wording import units_of
from turnwise.tasks.core import Json, canonical

_ATTEMPTS = 8  # to draw one part of a request


class UserRequest(NamedTuple):
    """A request. ``ask`` is what must be asked for, ``answer`` what must be told, ``kind`` what sort it is."""

    say: str
    plan: tuple[PlannedCall, ...]
    data: CallData  # after the plan
    kind: str
    ask: Mapping[str, Json] | None = None
    answer: Mapping[str, Json] | None = None
    declines: bool = False


def act(draft: RequestDraft, one: DataFunction, key: PickedRow | None = None) -> str:
    """Have a function called: the words that ask for it."""
    draft.kind.append(one.words)
    picked = key
    if one.target and picked is None:
        picked = draft.pick(tables()[one.table])
        draft.kind.append(picked.how)
    before = draft.data.key
    given, words, after = draft.arguments(one, picked.key if picked else None)
    if picked is not None and one.target:
        given[one.target] = picked.key
        after = [*picked.after, *after]
    draft.call(one, after, **given)
    if draft.data.key == before:
        raise ImpossibleRequest("nothing would change")
    return draft.asked(one, words, picked.phrase if picked is not None and one.target else "")


def writers(draft: RequestDraft, *verbs: str) -> DataFunction:
    """Some function that is offered and does one of these things."""
    fitting = [
        one
        for one in draft.offered
        if one.writes and one.table in draft.data.tables and (not verbs or one.verb in verbs)
    ]
    if not fitting:
        raise ImpossibleRequest("no function")
    return draft.rng.choice(fitting)


def readable(draft: RequestDraft) -> DataTable:
    """Some table that can be searched and has data."""
    known = [one.table for one in draft.offered if one.verb == "find" and draft.data.tables.get(one.table)]
    if not known:
        raise ImpossibleRequest("no table")
    return tables()[draft.rng.choice(sorted(known))]


# --- shapes of requests --------------------------------------------------------------------------


def plain(draft: RequestDraft) -> str:
    """One thing to do, with one thing."""
    return act(draft, writers(draft))


def every(draft: RequestDraft) -> str:
    """The same to be done with several things."""
    one = writers(draft, "set", "append", "remove")
    table = tables()[one.table]
    if not draft.data.tables[table.name]:
        raise ImpossibleRequest("nothing is left")
    if any(parameter.name == table.key for parameter in one.parameters):
        raise ImpossibleRequest("several would be called the same")
    some = draft.rng.choice(sorted(draft.data.tables[table.name]))
    wanted = draft.wanted(table, some, 1)
    keys = draft.rows(table, wanted)
    if not 2 <= len(keys) <= 4:
        raise ImpossibleRequest("too few or too many")
    found = draft.find(table, wanted)
    given, words, after = draft.arguments(one, keys[0])
    before = draft.data.key
    for key in keys:
        draft.call(one, [found, *after], **given, **{one.target: key})
    if draft.data.key == before:
        raise ImpossibleRequest("nothing would change")
    draft.kind += [one.words, "each"]
    it = draft.phrase("each").format(**_those(draft, table, wanted))
    return draft.asked(one, words, it, several=True)


def made_first(draft: RequestDraft) -> str:
    """A new thing, with which something is done at once."""
    first = writers(draft, "add")
    then = [
        one
        for one in draft.offered
        if one.table == first.table
        and one.verb in ("set", "append")
        and _says(one)
        and not _overlap(first, one)
    ]
    if not then:
        raise ImpossibleRequest("nothing to do with it")
    text = act(draft, first)
    it = PickedRow(draft.made["id"], draft.phrase("new"), (len(draft.plan) - 1,), "new")
    return draft.phrase("then").format(first=text, then=act(draft, draft.rng.choice(then), it))


def if_so(draft: RequestDraft) -> str:
    """One of two things to do, which depends on a value."""
    table = readable(draft)
    fields = [name for name in table.told if is_number(table.fields[name])]
    if not fields:
        raise ImpossibleRequest("no numbers")
    field = draft.rng.choice(fields)
    picked = draft.pick(table)
    row = draft.data.row(table.name, picked.key)
    if field not in row:
        raise ImpossibleRequest(field)
    after = draft.told(table, field, picked)
    value = row[field]
    border = max(1, round(value * draft.rng.choice((0.5, 0.7, 0.9, 1.2, 1.5))))
    if border == value:
        raise ImpossibleRequest("neither more nor less")
    start, other = len(draft.plan), RequestDraft(draft.rng, draft.language, draft.data, draft.offered)
    yes = act(draft, writers(draft))
    other.letters = draft.letters
    no = act(other, writers(other))
    draft.letters = other.letters
    if value <= border:
        draft.plan[start:] = [one._replace(after=tuple(n + start for n in one.after)) for one in other.plan]
        draft.data, yes, no = other.data, no, yes
    draft.plan[start:] = [
        one._replace(after=tuple(sorted({*one.after, *after}))) for one in draft.plan[start:]
    ]
    draft.kind += ["if", table.name, field, picked.how]
    first, second = (yes, no) if value > border else (no, yes)
    return draft.phrase("if").format(
        field=table.told[field], it=picked.phrase, border=border, yes=first, no=second
    )


def several(draft: RequestDraft) -> str:
    """Two or three things that have nothing to do with each other: each has tables of its own, so their order is free."""
    parts: list[str] = []
    free = list(draft.offered)
    for left in reversed(range(draft.rng.choice((2, 2, 3)))):
        # "otherwise" would reach over whatever stands behind it
        shape, text, one = _part(draft, free, PARTS if left else (*PARTS, "if_so"))
        start = len(draft.plan)
        draft.plan += [call._replace(after=tuple(n + start for n in call.after)) for call in one.plan]
        draft.data, draft.letters = one.data, one.letters
        draft.kind += [shape, *one.kind]
        touched = {functions()[call.words].table for call in one.plan}
        free = [known for known in free if known.table not in touched]
        parts.append(text)
    text, *others = parts
    ways = draft.rng.sample(of_split(phrases()["joined"], draft.language.split), len(others))
    for way, other in zip(ways, others, strict=True):
        text = way.format(first=text, last=other)
    return text


def _part(
    draft: RequestDraft, free: Sequence[DataFunction], shapes: Sequence[str]
) -> tuple[str, str, RequestDraft]:
    """A part of a request that needs no other function than these: its shape, its words, and its draft."""
    for _ in range(_ATTEMPTS):
        one = RequestDraft(draft.rng, draft.language, draft.data, free)
        one.letters = draft.letters
        shape = draft.rng.choice(shapes)
        try:
            return shape, DEEDS[shape](one), one
        except ImpossibleRequest:
            continue
    raise ImpossibleRequest("nothing can be asked for beside it")


def field_of(draft: RequestDraft) -> tuple[str, Mapping[str, Json]]:
    """A question for a field of a thing."""
    table = readable(draft)
    field, picked = draft.rng.choice(sorted(table.told)), draft.pick(table)
    row = draft.data.row(table.name, picked.key)
    if field not in row or tells(picked, row[field]):
        raise ImpossibleRequest(field)
    draft.told(table, field, picked)
    draft.kind += ["what", table.name, field, picked.how]
    return draft.phrase("what").format(field=table.told[field], it=picked.phrase), _answer(
        table, field, row[field], draft
    )


def count(draft: RequestDraft) -> tuple[str, Mapping[str, Json]]:
    """A question how many things there are."""
    table = readable(draft)
    wanted = draft.wanted(
        table, draft.rng.choice(sorted(draft.data.tables[table.name])), draft.rng.randint(1, 2)
    )
    draft.find(table, wanted)
    draft.kind += ["count", table.name, *sorted(wanted)]
    text = draft.phrase("count").format(**_those(draft, table, wanted))
    return text, {"value": len(draft.rows(table, wanted)), "others": []}


def total(draft: RequestDraft) -> tuple[str, Mapping[str, Json]]:
    """A question for a sum."""
    table = readable(draft)
    fields = [name for name in table.told if is_number(table.fields[name]) and name not in table.hidden]
    if not fields:
        raise ImpossibleRequest("no numbers")
    field = draft.rng.choice(fields)
    wanted = draft.wanted(table, draft.rng.choice(sorted(draft.data.tables[table.name])), 1)
    keys = draft.rows(table, wanted)
    rows = draft.data.tables[table.name]
    if len(keys) < 2 or any(field not in rows[key] for key in keys):
        raise ImpossibleRequest("too few")
    draft.find(table, wanted)
    draft.kind += ["total", table.name, field, *wanted]
    value = round(sum(rows[key][field] for key in keys), 2)
    text = draft.phrase("total").format(field=table.told[field], **_those(draft, table, wanted))
    return text, {"value": value, "others": []}


def which(draft: RequestDraft) -> tuple[str, Mapping[str, Json]]:
    """A question which thing is the most of its kind."""
    table = readable(draft)
    if not table.key:
        raise ImpossibleRequest("they have no names")
    key = draft.rng.choice(sorted(draft.data.tables[table.name]))
    picked = draft.rng.choice((draft._by_most, draft._by_most_of))(table, key)
    row = draft.data.row(table.name, picked.key)
    draft.kind += ["which", table.name, picked.how]
    if table.key not in row:
        raise ImpossibleRequest("it has no name")
    text = draft.phrase("which").format(called=table.called, it=picked.phrase)
    return text, _answer(table, table.key, row[table.key], draft)


def _those(draft: RequestDraft, table: DataTable, wanted: Mapping[str, Json]) -> dict[str, str]:
    """The things that meet conditions, in words."""
    return {"nouns": draft.noun(table, several=True), "such": draft.such(table, wanted, several=True)}


def _answer(table: DataTable, field: str, value: Json, draft: RequestDraft) -> dict[str, Json]:
    """Return the value that must be told, and what else could have been meant: who tells that too has told
    nothing."""
    others = {
        canonical(row[field]): row[field] for row in draft.data.tables[table.name].values() if field in row
    }
    return {"value": value, "others": [one for one in others.values() if one != value][:30]}


DEEDS: Mapping[str, Callable[[RequestDraft], str]] = {
    "plain": plain,
    "every": every,
    "made_first": made_first,
    "if_so": if_so,
    "several": several,
}
PARTS = ("plain", "plain", "every", "made_first")
"""Shapes of what is asked for beside something else; named twice is drawn twice as often."""
QUESTIONS: Mapping[str, Callable[[RequestDraft], tuple[str, Mapping[str, Json]]]] = {
    "field_of": field_of, "count": count, "total": total, "which": which,
}  # fmt: skip


def _says(one: DataFunction) -> bool:
    return any(parameter.name != one.target for parameter in one.parameters) or bool(one.sets)


def _overlap(first: DataFunction, then: DataFunction) -> bool:
    return {leaf.name for one in first.parameters for leaf in one.leaves} >= {
        leaf.name for one in then.parameters if one.name != then.target for leaf in one.leaves
    }


def ask_for(draft: RequestDraft, text: str) -> tuple[str, Mapping[str, Json]]:
    """Leave one value of the last call's out of a request: the vaguer text, and what is told when asked."""
    last = draft.plan[-1]
    one = next(f for f in draft.offered if f.words == last.words)
    leaves = [
        (leaf, (last.arguments[p.name][leaf.name] if p.fields else last.arguments[p.name]))
        for p in one.parameters
        if p.required and p.name != one.target
        for leaf in p.leaves
        if leaf.kind.partition(":")[0] in call_words().vague
        and leaf.name not in draft.stated
        and leaf.name != "side"  # which a verb says
    ]
    draft.rng.shuffle(leaves)
    for leaf, value in leaves:
        base = leaf.kind.partition(":")[0]
        written = {said(Random(n), leaf.kind, value, spoken=draft.language.spoken) for n in range(8)}
        patterns = {
            one: rf"(?<![\w-]){re.escape(one)}(?![\w-])"
            for one in sorted(written, key=lambda one: (-len(one), one))
        }
        found = [pattern for pattern in patterns.values() if len(re.findall(pattern, text)) == 1]
        if found:
            words = [leaf.name.replace("_", " "), *call_words().asked[base]]
            draft.kind.append(f"without {leaf.name}")
            ask = {"words": words, "reply": draft.said(leaf.kind, value)}
            return _vaguely(
                text, found[0], draft.one(call_words().vague[base]), " ".join(one.say), leaf.name
            ), ask
    raise ImpossibleRequest("nothing to leave out")


def _vaguely(text: str, pattern: str, vague: str, ways: str, name: str) -> str:
    """A request with a vague word for a value: "5 bags" becomes "another number of bags"."""
    for unit in units_of(ways, name):
        one = unit.removesuffix("s")
        if re.search(rf"{pattern} {one}(?:s|\b)", text):
            return re.sub(rf"{pattern} {one}s?\b", f"{vague} of {unit}", text)
    return re.sub(pattern, vague, text)


def offered_of(names: Sequence[str]) -> list[DataFunction]:
    """The functions of some interfaces."""
    return [one for name in names for one in apis()[name]]
