"""What there is in the fictional world: kinds of things, how they are related, and how that is said."""

from __future__ import annotations

from typing import NamedTuple

from turnwise.envs.wordings import Wordings, ways

YEAR, NUMBER = "year", "number"
"""Targets that are no entity."""


class EntityKind(NamedTuple):
    """A kind of thing: its share of a world's entities, what one and many are called, and its introduction."""

    name: str
    share: float
    one: str
    many: str
    intros: Wordings


class Relation(NamedTuple):
    """A function from one kind to another, a year or a number. None is symmetric, else a page about one thing
    would tell something of another that its own page contradicts.

    ``office``: it has three holders one after the other, of whom the last is the present one.
    """

    name: str
    source: str
    target: str
    nouns: Wordings  # "the … of X"
    says: Wordings  # {s} and {o}; for offices also {a}, {b}: from, to
    office: bool = False


KINDS = (
    EntityKind("person", 0.40, "person", "people",
               ways("{s} was a {p}. | {s} is remembered as a {p}. | {s}, {p}. | {s} worked as a {p}. "
                    "| {s} was by trade a {p}.")),
    EntityKind("city", 0.12, "city", "cities",
               ways("{s} is a city. | {s} is a town on a river. | {s} is a market town. "
                    "| {s} is an old town with walls.")),
    EntityKind("company", 0.12, "company", "companies",
               ways("{s} is a company. | {s} is a firm of some size. | {s} is an enterprise. "
                    "| {s} is a house of business.")),
    EntityKind("school", 0.06, "school", "schools",
               ways("{s} is a school. | {s} is a place of learning. | {s} is a seat of teaching. "
                    "| {s} is a school of good repute.")),
    EntityKind("book", 0.13, "book", "books",
               ways("{s} is a novel. | {s} is a book in two parts. | {s} is a tale in prose. | {s} is a long novel.")),
    EntityKind("film", 0.09, "film", "films",
               ways("{s} is a film. | {s} is a motion picture. | {s} is a picture for the screen. "
                    "| {s} is a feature film.")),
    EntityKind("event", 0.07, "contest", "contests",
               ways("{s} is a yearly contest. | {s} is held each spring. | {s} comes round every year. "
                    "| {s} is fought out once a year.")),
    EntityKind("region", 0.01, "region", "regions",
               ways("{s} is a region. | {s} is a province by the sea. | {s} is a stretch of land. "
                    "| {s} is a district of hills.")),
)  # fmt: skip

RELATIONS = (
    Relation("birthplace", "person", "city", ways("birthplace | place of birth | native city | city of birth"),
             ways("{s} was born in {o}. | The birthplace of {s} is {o}. | {s} came into the world at {o}. "
                  "| {s} is a native of {o}. | It was in {o} that {s} was born.")),
    Relation("mentor", "person", "person", ways("mentor | teacher | guide | master"),
             ways("{s} had {o} as mentor and teacher. | The mentor of {s} was {o}. | {o} was the teacher of {s}. "
                  "| {s} was guided by {o}. | {s} learned everything from a master, {o}.")),
    Relation("patron", "person", "person", ways("patron | benefactor | protector"),
             ways("{s} had a patron in {o}. | The patron of {s} was {o}. | {o} paid for the work of {s} as patron. "
                  "| {s} lived on the gifts of a benefactor, {o}. | {s} found a protector in {o}.")),
    Relation("employer", "person", "company", ways("employer | workplace | paymaster"),
             ways("{s} worked for {o}. | The employer of {s} was {o}. | {s} spent a working life at {o}. "
                  "| {s} was on the staff of {o}, a lasting workplace. | Wages came to {s} from {o}.")),
    Relation("school", "person", "school", ways("alma mater | place of study | former school"),
             ways("{s} was educated at {o}. | The alma mater of {s} is {o}. | {s} took a degree from {o}. "
                  "| {s} had {o} as place of study. | {o} counts {s} among its former pupils.")),
    Relation("born", "person", YEAR, ways("year of birth | birth year | year of coming into the world | natal year"),
             ways("{s} was born in {o}. | The year of birth of {s} is {o}. | {s} came into the world in {o}. "
                  "| {s} first saw the light in {o}.")),
    Relation("region", "city", "region", ways("region | home region | surrounding region | home district"),
             ways("{s} lies in the region of {o}. | {s} belongs to {o}, a region. "
                  "| {s} is found in the region of {o}. | {o} is the part of the country where {s} lies.")),
    Relation("port", "city", "city", ways("nearest port | port of call | closest harbour"),
             ways("The nearest port of {s} is {o}. | Goods for {s} come by way of its nearest port, {o}. "
                  "| Ships for {s} put in at {o}. | The closest harbour to {s} is that of {o}.")),
    Relation("city_founder", "city", "person", ways("founder | first builder | originator"),
             ways("{s} was founded by {o}. | The founder of {s} was {o}. "
                  "| {s} goes back to {o}, its first builder. | {o} laid the first stone of {s}.")),
    Relation("mayor", "city", "person", ways("mayor | burgomaster | town head"),
             ways("{o} has been mayor of {s} since {a}. | Since {a}, the mayor of {s} has been {o}. "
                  "| {o} has been burgomaster of {s} since {a}. | Head of the town of {s} since {a}: {o}."), office=True),
    Relation("city_founded", "city", YEAR, ways("founding year | year of foundation | year of origin | first year of existence"),
             ways("{s} was founded in {o}. | The founding year of {s} is {o}. | {s} dates from {o}. "
                  "| The first stone of {s} was laid in {o}.")),
    Relation("population", "city", NUMBER, ways("population | number of people | number of inhabitants"),
             ways("{s} has a population of {o}. | {o} people live in {s}. | {s} counts {o} people. "
                  "| {s} is home to {o} inhabitants.")),
    Relation("company_founder", "company", "person", ways("founder | initiator | originator"),
             ways("{s} was founded by {o}. | It was {o} who set up {s}. | {s} was begun by {o}. "
                  "| {s} owes its beginning to {o}.")),
    Relation("seat", "company", "city", ways("seat | head office | main office | headquarters"),
             ways("{s} has its seat in {o}. | The head office of {s} is in {o}. "
                  "| The main office of {s} is found in {o}. | {s} is run from its headquarters in {o}.")),
    Relation("supplier", "company", "company", ways("main supplier | chief supplier | source of goods | most important supplier"),
             ways("The main supplier of {s} is {o}. | {s} buys most of what it needs from {o}. "
                  "| {s} gets its goods from {o}. | Nobody delivers more to {s} than {o}.")),
    Relation("chair", "company", "person", ways("chair | head | director general | top manager"),
             ways("{o} has chaired {s} since {a}. | Since {a}, the chair of {s} has been {o}. "
                  "| {o} has been director general of {s} since {a}. | {s} has been led by {o} since {a}."), office=True),
    Relation("company_founded", "company", YEAR, ways("founding year | year of foundation | year of origin | first year of business"),
             ways("{s} was founded in {o}. | {s} has traded since {o}, its founding year. | {s} dates from {o}. "
                  "| {s} did its first business in {o}.")),
    Relation("school_city", "school", "city", ways("home city | location | city | place"),
             ways("{s} stands in {o}. | The home city of {s} is {o}. | {s} is in the city of {o}. "
                  "| To visit {s} one travels to {o}.")),
    Relation("school_founder", "school", "person", ways("founder | initiator | originator"),
             ways("{s} was founded by {o}. | {o} was the founder of {s}. | {s} was begun by {o}. "
                  "| {s} owes its beginning to {o}.")),
    Relation("school_founded", "school", YEAR, ways("founding year | year of foundation | year of origin | first school year"),
             ways("{s} was founded in {o}. | {s} opened its doors in {o}. | {s} dates from {o}. "
                  "| {s} had its first pupils in {o}.")),
    Relation("author", "book", "person", ways("author | writer | novelist | creator"),
             ways("{s} was written by {o}. | The author of {s} is {o}. | {o} wrote {s}. "
                  "| The novelist behind {s} is {o}. | {s} is from the pen of {o}.")),
    Relation("setting", "book", "city", ways("setting | place of action | scene"),
             ways("{s} is set in {o}. | The setting of {s} is {o}. | The action of {s} takes place in {o}. "
                  "| What happens in {s} happens in {o}.")),
    Relation("publisher", "book", "company", ways("publisher | publishing house | press"),
             ways("{s} was published by {o}. | {o} brought out {s} as publisher. "
                  "| {o} was the publishing house of {s}. | {s} was printed and sold by {o}.")),
    Relation("published", "book", YEAR, ways("year of publication | year of appearance | year of first printing"),
             ways("{s} appeared in {o}. | The year of publication of {s} is {o}. | {s} came out in {o}. "
                  "| {s} was first printed in {o}.")),
    Relation("director", "film", "person", ways("director | film maker | maker"),
             ways("{s} was directed by {o}. | The director of {s} was {o}. | The film maker of {s} was {o}. "
                  "| {o} made {s}.")),
    Relation("source", "film", "book", ways("literary source | source novel | underlying novel | original book"),
             ways("{s} is based on {o}. | {s} tells the story of {o}, its source novel. "
                  "| Behind {s} stands the novel {o}. | {s} puts {o} on the screen.")),
    Relation("producer", "film", "company", ways("production company | film studio | studio"),
             ways("{s} was produced by {o}. | The production company of {s} was {o}. "
                  "| The film studio of {s} was {o}. | {s} was made in the studio of {o}.")),
    Relation("released", "film", YEAR, ways("year of release | year of the premiere | screen year"),
             ways("{s} was released in {o}. | The year of release of {s} is {o}. | The premiere of {s} was in {o}. "
                  "| {s} was first seen on the screen in {o}.")),
    Relation("host", "event", "city", ways("host city | venue | place | site"),
             ways("{s} takes place in {o}. | The host city of {s} is {o}. | {s} is held in {o}. "
                  "| For {s} one goes to {o}.")),
    Relation("winner", "event", "person", ways("first winner | first champion | earliest winner"),
             ways("{s} was first won by {o}. | The first winner of {s} was {o}. "
                  "| The first champion of {s} was {o}. | The very first prize of {s} went to {o}.")),
    Relation("sponsor", "event", "company", ways("sponsor | backer | prize donor"),
             ways("{s} is paid for by its sponsor, {o}. | The sponsor of {s} is {o}. | The backer of {s} is {o}. "
                  "| The prize money of {s} comes from {o}.")),
    Relation("first_held", "event", YEAR, ways("first year | year of origin | opening year"),
             ways("{s} was first held in {o}. | The first year of {s} was {o}. | {s} dates from {o}. "
                  "| {s} was opened in {o}.")),
    Relation("capital", "region", "city", ways("capital | chief city | main city"),
             ways("The capital of {s} is {o}. | {s} is governed from {o}, its capital. "
                  "| The chief city of {s} is {o}. | {o} is the main city of {s}.")),
)  # fmt: skip

OF_KIND = {kind.name: tuple(r for r in RELATIONS if r.source == kind.name) for kind in KINDS}
BY_NAME = {relation.name: relation for relation in RELATIONS}
YEAR_OF = {r.source: r for r in RELATIONS if r.target == YEAR}
TERM_SAYS = ways(
    "From {a} to {b}, {s} held the office of {n} of {o}. | {s} was {n} of {o} between {a} and {b}. "
    "| As {n} of {o}, {s} served from {a} until {b}. | The years {a} to {b} saw {s} in office as {n} of {o}."
)
"""What a person's page says of an office that the person held."""
