"""A request in the making: which thing it speaks of, which values, and the calls that find them out.

A request names things by what they are called, by what singles them out, or by being the most of their kind, and values
by saying them or by where they stand ("the due date of the ticket that …"). So calls depend on the results of others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

from turnwise.envs.functioncall.data import CallData, carry_out, in_order
from turnwise.envs.functioncall.interfaces import (
    DataFunction,
    DataTable,
    FunctionParameter,
    Verb,
    tables,
    to_ours,
    to_theirs,
)
from turnwise.envs.functioncall.vocabulary import draw_value, of_split, phrases, said
from turnwise.envs.functioncall.wording import StatedValue, ToldValue, agreeing, lettered
from turnwise.tasks.core import Json, Split


class PlannedCall(NamedTuple):
    """A call that a request wants, under our names. ``after`` numbers the calls whose results it needs."""

    words: str
    arguments: Mapping[str, Json]
    after: tuple[int, ...]

    def to_json(self) -> dict[str, Json]:
        return {"function": self.words, "arguments": dict(self.arguments), "after": list(self.after)}


class PickedRow(NamedTuple):
    """A row, how it is spoken of, and the calls that find it."""

    key: str
    phrase: str
    after: tuple[int, ...]
    how: str


def tells(picked: PickedRow, value: Json) -> bool:
    """Say whether a row is spoken of by a value that is to be found out."""
    return isinstance(value, str) and value in picked.phrase


class ImpossibleRequest(Exception):
    """No such request can be made with this data; another is drawn."""


class RequestLanguage(NamedTuple):
    """Settings for the wording of requests."""

    split: Split
    spoken: bool
    compact: bool  # the small language: one way to say each thing
    recalled: float  # share of values that stand in a note of an earlier session


class RequestDraft:
    """A request in the making: carries calls out as it plans them."""

    def __init__(
        self, rng: Random, language: RequestLanguage, data: CallData, offered: Sequence[DataFunction]
    ) -> None:
        self.rng, self.language, self.data, self.offered = rng, language, data, offered
        self.plan: list[PlannedCall] = []
        self.made: Json = None  # what the last call that writes answered
        self.kind: list[str] = []
        self.letters = 0  # that stand for numbers in the request
        self.stated: frozenset[str] = frozenset()  # what the last function takes from where it stands

    def one(self, ways: Sequence[str]) -> str:
        """One of the ways to say something that belong to this split."""
        return ways[0] if self.language.compact else self.rng.choice(of_split(ways, self.language.split))

    def phrase(self, name: str) -> str:
        """One of the ways to word a request (phrases.yaml)."""
        return self.one(phrases()[name])

    def said(self, kind: str, value: Json) -> str:
        if kind == "texts" and not self.language.compact:  # unquoted, they run into what stands behind them
            value = [f'"{one}"' for one in value]
        return said(self.rng, kind, value, spoken=self.language.spoken)

    def call(self, one: DataFunction, after: Sequence[int], **arguments: Json) -> tuple[int, Json]:
        """Plan a call and carry it out; its number and its result. The same reading is done once."""
        if one not in self.offered:
            raise ImpossibleRequest(one.words)
        ordered = to_ours(one, to_theirs(one, arguments, "snake"), "snake")
        made = PlannedCall(one.words, ordered, tuple(sorted(set(after))))
        result, self.data, _ = carry_out(one, ordered, self.data)
        if one.writes:
            self.made = result
            self._check_order(one, ordered)
        elif made in self.plan:
            return self.plan.index(made), result
        self.plan.append(made)
        return len(self.plan) - 1, result

    def _check_order(self, one: DataFunction, arguments: Mapping[str, Json]) -> None:
        """The small language takes dates as they come: its tasks belong to published results."""
        table = tables()[one.table]
        if one.verb != "set" or not table.since or self.language.compact:
            return
        if not in_order(table, self.data.row(one.table, arguments[one.target])):
            raise ImpossibleRequest("a date before another that it must follow")

    def that(self, verb: Verb, table: DataTable) -> DataFunction:
        """The function that does this to a table."""
        fitting = (one for one in self.offered if (one.verb, one.table) == (verb, table.name))
        found = next(fitting, None)
        if found is None:
            raise ImpossibleRequest(verb)
        return found

    # --- rows ------------------------------------------------------------------------------------

    def noun(self, table: DataTable, *, several: bool = False) -> str:
        return self.rng.choice(of_split(table.nouns, self.language.split))[several]

    def rows(self, table: DataTable, wanted: Mapping[str, Json]) -> list[str]:
        rows = self.data.tables.get(table.name, {})
        return [
            key for key, row in rows.items() if all(row.get(name) == value for name, value in wanted.items())
        ]

    def wanted(self, table: DataTable, key: str, n: int) -> dict[str, Json]:
        """``n`` conditions that a row meets and that one can search by."""
        row = self.data.row(table.name, key)
        names = [name for name in table.filters if name in row]
        if len(names) < n:
            raise ImpossibleRequest(table.name)
        return {name: row[name] for name in self.rng.sample(names, n)}

    def such(self, table: DataTable, wanted: Mapping[str, Json], *, several: bool = False) -> str:
        """Conditions in words."""
        told = [
            agreeing(self.one(table.filters[name]), several=several).format(
                self.said(table.fields[name], value)
            )
            for name, value in wanted.items()
        ]
        return " ".join(told)

    def find(self, table: DataTable, wanted: Mapping[str, Json], after: Sequence[int] = ()) -> int:
        number, _ = self.call(self.that("find", table), after, **wanted)
        return number

    def pick(self, table: DataTable) -> PickedRow:
        """Some row, spoken of in one of the ways that single it out."""
        rows = self.data.tables.get(table.name, {})
        if not rows:
            raise ImpossibleRequest(table.name)
        ways: list[Callable[[DataTable, str], PickedRow]] = [
            self._by_conditions,
            self._by_most,
            self._by_most_of,
        ]
        ways += [self._by_name] if table.key else [self._by_id]
        for way in self.rng.sample(ways, len(ways)):
            planned = len(self.plan)
            try:
                return way(table, self.rng.choice(sorted(rows)))
            except ImpossibleRequest:
                del self.plan[planned:]
        raise ImpossibleRequest(table.name)

    def _by_name(self, table: DataTable, key: str) -> PickedRow:
        row = self.data.row(table.name, key)
        if table.key not in row:
            raise ImpossibleRequest(table.name)
        name = row[table.key]
        if len(self.rows(table, {table.key: name})) != 1:
            raise ImpossibleRequest(table.name)
        called = f"the {self.noun(table)} {self.said(table.fields[table.key], name)}"
        return PickedRow(key, called, (self.find(table, {table.key: name}),), "name")

    def _by_id(self, table: DataTable, key: str) -> PickedRow:
        return PickedRow(key, f"the {self.noun(table)} {key}", (), "id")

    def _by_conditions(self, table: DataTable, key: str) -> PickedRow:
        for n in (1, 2):
            wanted = self.wanted(table, key, n)
            if self.rows(table, wanted) == [key]:
                phrase = f"the {self.noun(table)} {self.such(table, wanted)}"
                return PickedRow(
                    key, phrase, (self.find(table, wanted),), "conditions" if n > 1 else "condition"
                )
        raise ImpossibleRequest(table.name)

    def _by_most(self, table: DataTable, key: str) -> PickedRow:
        return self._most(table, {})

    def _by_most_of(self, table: DataTable, key: str) -> PickedRow:
        return self._most(table, self.wanted(table, key, 1))

    def _most(self, table: DataTable, wanted: Mapping[str, Json]) -> PickedRow:
        field = self.rng.choice(sorted(table.best))
        rows = self.data.tables[table.name]
        among = [key for key in self.rows(table, wanted) if field in rows[key]]
        end = self.rng.randrange(2)
        ordered = sorted(among, key=lambda key: rows[key][field], reverse=not end)
        if len(ordered) < 2 or rows[ordered[0]][field] == rows[ordered[1]][field]:
            raise ImpossibleRequest(table.name)
        such = f" {self.such(table, wanted)}" if wanted else ""
        best, noun = table.best[field][end], self.noun(table)
        phrase = f"the {best.format(noun) if '{' in best else f'{best} {noun}'}{such}"
        after = [self.find(table, wanted)]
        if field in table.hidden:  # each has to be looked at
            getter = self.that("get", table)
            after = [self.call(getter, after, **{getter.target: key})[0] for key in among]
        return PickedRow(ordered[0], phrase, tuple(after), "most of some" if wanted else "most")

    # --- values ----------------------------------------------------------------------------------

    def value(self, kind: str, unlike: Json = None) -> tuple[Json, str, tuple[int, ...]]:
        """A value for an argument, in words, and the calls that tell it."""
        if kind == "flag":
            return unlike is False, "", ()
        if (
            kind not in ("texts", "people")
            and not kind.startswith("choice")
            and self.rng.random() < max(0.4, self.language.recalled)
        ):
            planned, kinds = len(self.plan), len(self.kind)
            try:
                return self._stated(kind, unlike)
            except ImpossibleRequest:
                del self.plan[planned:], self.kind[kinds:]
        for _ in range(20):
            value = draw_value(self.rng, self.language.split, kind)
            if value != unlike:
                return value, ToldValue(self.said(kind, value)), ()
        raise ImpossibleRequest(kind)

    def _stated(self, kind: str, unlike: Json) -> tuple[Json, str, tuple[int, ...]]:
        """A value that stands somewhere in the data: "the due date of the ticket …"."""
        known = {one.table for one in self.offered if one.verb == "get" and one.table in self.data.tables}
        places = [
            (table, field)
            for table in map(tables().__getitem__, sorted(known))
            for field in table.told
            if table.fields[field].partition(":")[0] == kind.partition(":")[0]
        ]
        if not places:
            raise ImpossibleRequest(kind)
        recalled = [place for place in places if place[0].api == "memory"]
        if recalled and self.rng.random() < self.language.recalled:
            places = recalled
        table, field = self.rng.choice(places)
        picked = self.pick(table)
        row = self.data.row(table.name, picked.key)
        if field not in row or row[field] == unlike or not _allowed(kind, row[field]):
            raise ImpossibleRequest(kind)
        if not self.language.compact and tells(picked, row[field]):
            raise ImpossibleRequest("it is said")
        self.kind.append(f"{field} of {table.name} by {picked.how}")
        phrase = StatedValue(self.phrase("stated").format(field=table.told[field], it=picked.phrase))
        return row[field], phrase, self.told(table, field, picked)

    def told(self, table: DataTable, field: str, picked: PickedRow) -> tuple[int, ...]:
        """The calls after which a field of a row is known."""
        if picked.after and field not in table.hidden:
            return picked.after
        getter = self.that("get", table)
        number, _ = self.call(getter, picked.after, **{getter.target: picked.key})
        return (number,)

    def arguments(
        self, one: DataFunction, key: str | None
    ) -> tuple[dict[str, Json], dict[str, str], list[int]]:
        """Values for all parameters but the target: arguments, phrases by leaf, and the calls that tell them."""
        row = self.data.row(one.table, key) if key is not None else {}
        given: dict[str, Json] = {}
        words: dict[str, str] = {}
        after: list[int] = []
        for parameter in one.parameters:
            if parameter.name == one.target or not (parameter.required or self._wants(parameter)):
                continue
            inner: dict[str, Json] = {}
            for leaf in parameter.leaves:
                if leaf.kind.startswith("id:"):
                    picked = self.pick(tables()[leaf.kind[3:]])
                    self.kind.append(picked.how)
                    value, phrase, calls = picked.key, picked.phrase, picked.after
                    words["it"] = phrase
                else:
                    unlike = row.get(leaf.name) if parameter.required else parameter.default
                    value, phrase, calls = self.value(leaf.kind, unlike)
                inner[leaf.name], words[leaf.name] = value, phrase
                after += calls
            given[parameter.name] = inner if parameter.fields else inner[parameter.name]
        self.stated = frozenset(name for name, phrase in words.items() if isinstance(phrase, StatedValue))
        return given, words, after

    def _wants(self, parameter: FunctionParameter) -> bool:
        return bool(parameter.clause) and self.rng.random() < 0.35

    def asked(self, one: DataFunction, words: Mapping[str, str], it: str, *, several: bool = False) -> str:
        """A function asked for in words, its optional arguments behind."""
        if self.language.compact:
            told = [
                f"{name} {phrase}"
                for name, phrase in words.items()
                if name != "it" and not name.endswith("_id")
            ]
            return " ".join((one.words, it or words.get("it", ""), *told)).replace("  ", " ").strip()
        it = it or words.get("it", "")
        clauses = [
            parameter.clause
            for parameter in one.parameters
            if parameter.clause and all(leaf.name in words for leaf in parameter.leaves)
        ]
        way = agreeing(", ".join((self.one(one.say), *clauses)), it, several=several)
        letters = lettered(way, words, self.letters)
        self.letters += len(letters)
        text = way.format(**{**words, **{name: ToldValue(n) for name, n in letters.items()}, "it": it})
        for name, letter in letters.items():
            text += self.phrase("letter").format(letter=letter, value=words[name])
        return text


def _allowed(kind: str, value: Json) -> bool:
    base, _, rest = kind.partition(":")
    if base == "count":
        low, high = map(int, rest.split("-"))
        return low <= value <= high
    return True
