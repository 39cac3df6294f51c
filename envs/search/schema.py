"""What there is in the fictional world: kinds of things, how they are related, and how that is said."""

from __future__ import annotations

from typing import NamedTuple

YEAR, NUMBER = "year", "number"
"""Targets that are no entity."""


class EntityKind(NamedTuple):
    """A kind of thing: its share of a world's entities, what one and many are called, and its introduction."""

    name: str
    share: float
    one: str
    many: str
    intros: tuple[str, ...]


class Relation(NamedTuple):
    """A function from one kind to another, a year or a number. None is symmetric, else a page about one thing
    would tell something of another that its own page contradicts.

    ``office``: it has three holders one after the other, of whom the last is the present one.
    """

    name: str
    source: str
    target: str
    nouns: tuple[str, ...]  # "the … of X"
    says: tuple[str, ...]  # {s} and {o}; for offices also {a}, {b}: from, to
    office: bool = False


KINDS = (
    EntityKind(
        "person", 0.40, "person", "people", ("{s} was a {p}.", "{s} is remembered as a {p}.", "{s}, {p}.")
    ),
    EntityKind("city", 0.12, "city", "cities", ("{s} is a city.", "{s} is a town on a river.")),
    EntityKind("company", 0.12, "company", "companies", ("{s} is a company.", "{s} is a firm of some size.")),
    EntityKind("school", 0.06, "school", "schools", ("{s} is a school.", "{s} is a place of learning.")),
    EntityKind("book", 0.13, "book", "books", ("{s} is a novel.", "{s} is a book in two parts.")),
    EntityKind("film", 0.09, "film", "films", ("{s} is a film.", "{s} is a motion picture.")),
    EntityKind(
        "event", 0.07, "contest", "contests", ("{s} is a yearly contest.", "{s} is held each spring.")
    ),
    EntityKind("region", 0.01, "region", "regions", ("{s} is a region.", "{s} is a province by the sea.")),
)

RELATIONS = (
    Relation("birthplace", "person", "city", ("birthplace", "place of birth"),
             ("{s} was born in {o}.", "The birthplace of {s} is {o}.", "{s} came into the world at {o}.")),
    Relation("mentor", "person", "person", ("mentor", "teacher"),
             ("{s} had {o} as mentor and teacher.", "The mentor of {s} was {o}.", "{o} was the teacher of {s}.")),
    Relation("patron", "person", "person", ("patron",),
             ("{s} had a patron in {o}.", "The patron of {s} was {o}.", "{o} paid for the work of {s} as patron.")),
    Relation("employer", "person", "company", ("employer",),
             ("{s} worked for {o}.", "The employer of {s} was {o}.", "{s} spent a working life at {o}.")),
    Relation("school", "person", "school", ("alma mater",),
             ("{s} was educated at {o}.", "The alma mater of {s} is {o}.", "{s} took a degree from {o}.")),
    Relation("born", "person", YEAR, ("year of birth", "birth year"),
             ("{s} was born in {o}.", "The year of birth of {s} is {o}.")),
    Relation("region", "city", "region", ("region", "home region"),
             ("{s} lies in the region of {o}.", "{s} belongs to {o}, a region.")),
    Relation("port", "city", "city", ("nearest port",),
             ("The nearest port of {s} is {o}.", "Goods for {s} come by way of its nearest port, {o}.")),
    Relation("city_founder", "city", "person", ("founder",),
             ("{s} was founded by {o}.", "The founder of {s} was {o}.")),
    Relation("mayor", "city", "person", ("mayor",),
             ("{o} has been mayor of {s} since {a}.", "Since {a}, the mayor of {s} has been {o}."), office=True),
    Relation("city_founded", "city", YEAR, ("founding year", "year of foundation"),
             ("{s} was founded in {o}.", "The founding year of {s} is {o}.")),
    Relation("population", "city", NUMBER, ("population",),
             ("{s} has a population of {o}.", "{o} people live in {s}.")),
    Relation("company_founder", "company", "person", ("founder",),
             ("{s} was founded by {o}.", "It was {o} who set up {s}.")),
    Relation("seat", "company", "city", ("seat", "head office"),
             ("{s} has its seat in {o}.", "The head office of {s} is in {o}.")),
    Relation("supplier", "company", "company", ("main supplier", "chief supplier"),
             ("The main supplier of {s} is {o}.", "{s} buys most of what it needs from {o}.")),
    Relation("chair", "company", "person", ("chair", "head"),
             ("{o} has chaired {s} since {a}.", "Since {a}, the chair of {s} has been {o}."), office=True),
    Relation("company_founded", "company", YEAR, ("founding year", "year of foundation"),
             ("{s} was founded in {o}.", "{s} has traded since {o}, its founding year.")),
    Relation("school_city", "school", "city", ("home city", "location"),
             ("{s} stands in {o}.", "The home city of {s} is {o}.")),
    Relation("school_founder", "school", "person", ("founder",),
             ("{s} was founded by {o}.", "{o} was the founder of {s}.")),
    Relation("school_founded", "school", YEAR, ("founding year", "year of foundation"),
             ("{s} was founded in {o}.", "{s} opened its doors in {o}.")),
    Relation("author", "book", "person", ("author", "writer"),
             ("{s} was written by {o}.", "The author of {s} is {o}.", "{o} wrote {s}.")),
    Relation("setting", "book", "city", ("setting",),
             ("{s} is set in {o}.", "The setting of {s} is {o}.")),
    Relation("publisher", "book", "company", ("publisher",),
             ("{s} was published by {o}.", "{o} brought out {s} as publisher.")),
    Relation("published", "book", YEAR, ("year of publication",),
             ("{s} appeared in {o}.", "The year of publication of {s} is {o}.")),
    Relation("director", "film", "person", ("director",),
             ("{s} was directed by {o}.", "The director of {s} was {o}.")),
    Relation("source", "film", "book", ("literary source", "source novel"),
             ("{s} is based on {o}.", "{s} tells the story of {o}, its source novel.")),
    Relation("producer", "film", "company", ("production company",),
             ("{s} was produced by {o}.", "The production company of {s} was {o}.")),
    Relation("released", "film", YEAR, ("year of release",),
             ("{s} was released in {o}.", "The year of release of {s} is {o}.")),
    Relation("host", "event", "city", ("host city", "venue"),
             ("{s} takes place in {o}.", "The host city of {s} is {o}.")),
    Relation("winner", "event", "person", ("first winner",),
             ("{s} was first won by {o}.", "The first winner of {s} was {o}.")),
    Relation("sponsor", "event", "company", ("sponsor",),
             ("{s} is paid for by its sponsor, {o}.", "The sponsor of {s} is {o}.")),
    Relation("first_held", "event", YEAR, ("first year",),
             ("{s} was first held in {o}.", "The first year of {s} was {o}.")),
    Relation("capital", "region", "city", ("capital",),
             ("The capital of {s} is {o}.", "{s} is governed from {o}, its capital.")),
)  # fmt: skip

OF_KIND = {kind.name: tuple(r for r in RELATIONS if r.source == kind.name) for kind in KINDS}
BY_NAME = {relation.name: relation for relation in RELATIONS}
YEAR_OF = {r.source: r for r in RELATIONS if r.target == YEAR}
TERM_SAYS = (
    "From {a} to {b}, {s} held the office of {n} of {o}.",
    "{s} was {n} of {o} between {a} and {b}.",
)
"""What a person's page says of an office that the person held."""
