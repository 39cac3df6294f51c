"""The made-up world: consistent, told truthfully, never twice the same, the same in every process."""
# pyright: reportCallIssue=false

import hashlib
import subprocess
import sys

import pytest

from turnwise.envs.search.clues import _range
from turnwise.envs.search.encyclopedia import Pages
from turnwise.envs.search.graph import NOW, WorldGraph, WorldSpec
from turnwise.envs.search.schema import NUMBER, YEAR, schema
from turnwise.envs.search.village import TO_PEOPLE, VillageSpec, village
from turnwise.envs.search.vocabulary import WorldNames
from turnwise.tasks.core import Split, derive_rng

SPEC = WorldSpec(
    seed="tests", passages=1200, aliases=0.3, namesakes=0.3, outdated=0.1, stated=0.8, hostile=0.05
)


@pytest.fixture(scope="module")
def pages() -> Pages:
    return Pages(WorldGraph(SPEC))


@pytest.fixture(scope="module")
def passages(pages):
    return list(pages)


def test_every_page_has_a_title_of_its_own(pages, passages):
    assert len(passages) == len(pages) == SPEC.passages
    assert len({passage.title for passage in passages}) == SPEC.passages
    assert [passage.id for passage in passages] == [str(i) for i in range(SPEC.passages)]


@pytest.mark.slow
def test_words_are_distinct_and_aliases_belong_to_one():
    names = WorldNames(derive_rng("x"), 1000)
    assert len({names.word(n) for n in range(2_000_000)}) == 2_000_000
    graph = WorldGraph(SPEC)
    called = [name for e in range(graph.size) for name in {graph.title(e), graph.alias(e) or graph.title(e)}]
    assert len(called) == len(set(called))
    assert 0.15 < sum(graph.alias(e) is not None for e in range(graph.size)) / graph.size < 0.35


def test_a_noun_of_a_relation_points_to_nothing_else():
    """It stands in "the … of X" and after "its": "its book behind it" is no English."""
    nouns = [noun for one in schema().relations for split in Split for noun in one.nouns.of(split)]
    assert not [noun for noun in nouns if {"it", "country", "money"} & {*noun.split()}]
    says = [said for one in schema().relations for split in Split for said in one.says.of(split)]
    assert not [said for said in says if "first {s}" in said]  # "the first this contest"


@pytest.mark.parametrize("people", [100_000, 400_000, 400_001])
def test_a_clue_about_a_round_number_of_people_fits_the_city(people):
    graph = WorldGraph(SPEC)
    graph.column["population"][0] = people
    city, relation = graph.first["city"], schema().by_name["population"]
    for seed in range(8):
        clue = _range(graph, derive_rng("round", seed), city, relation, "it", lambda of: of, (city,))
        assert clue.fits[0], clue.text


def test_namesakes_share_a_name_but_not_a_profession(pages):
    graph, n = pages.graph, pages.graph.count["person"]
    people = [person for person in range(n) if graph.has_namesake(person)]
    assert len(people) == pytest.approx(0.3 * n, abs=2)
    assert len({graph.name(p) for p in people}) == len(people) // 2
    assert len({graph.mention(p) for p in range(n)}) == n


def test_the_graph_is_consistent(pages):
    """Nobody teaches, founds, writes or governs before they are of age; offices follow one another."""
    graph = pages.graph

    def born(person):
        return graph.target(person, next(r for r in schema().relations if r.name == "born"))

    by_name = {r.name: r for r in schema().relations}
    for person in range(1, graph.count["person"]):
        assert born(graph.target(person, by_name["mentor"])) <= born(person)
    for founder, founded in (
        ("city_founder", "city_founded"),
        ("author", "published"),
        ("director", "released"),
    ):
        kind = by_name[founder].source
        for entity in range(graph.first[kind], graph.first[kind] + graph.count[kind]):
            maker = graph.target(entity, by_name[founder])
            assert born(maker) + 20 <= graph.target(entity, by_name[founded]) <= NOW
    for city in range(graph.first["city"], graph.first["city"] + graph.count["city"]):
        terms = graph.office_terms(city, by_name["mayor"])
        assert [t.end for t in terms[:-1]] == [t.start for t in terms[1:]]
        assert len({t.person for t in terms}) == 3
        assert all(born(t.person) + 18 < t.start for t in terms)


def test_pages_tell_what_is_told_and_nothing_else(pages, passages):
    graph = pages.graph
    for entity in range(0, graph.size, 3):
        text = passages[pages.position(entity)].text
        for relation in schema().of_kind[graph.kind(entity)]:
            value = graph.target(entity, relation)
            if relation.target in (YEAR, NUMBER):
                said = str(value) in text
            else:
                names = filter(None, (graph.mention(value), graph.alias(value)))
                said = any(name.lower() in text.lower() for name in names)
            assert said or not graph.told(entity, relation), (text, relation)
            if not graph.told(entity, relation) and relation.target == NUMBER:
                assert not said, text


def test_old_editions_contradict_the_present_page(pages, passages):
    graph, contradictions = pages.graph, 0
    for number in range(graph.editions):
        edition = graph.edition(number)
        old = passages[pages.edition_position(number)]
        relation = next(r for r in schema().of_kind[graph.kind(edition.entity)] if r.office)
        then = next(
            t for t in graph.office_terms(edition.entity, relation) if t.start <= edition.year < t.end
        )
        assert old.date == edition.year < passages[pages.position(edition.entity)].date
        assert f"edition of {edition.year}" in old.title
        assert any(
            n.lower() in old.text.lower() for n in (graph.mention(then.person), graph.alias(then.person)) if n
        )
        contradictions += then.person != graph.target(edition.entity, relation)
    assert contradictions == graph.editions == 120


def test_some_pages_carry_text_that_would_forge_an_answer(passages):
    forged = [p for p in passages if "<answer>" in p.text or "<|im_end|>" in p.text or "answer[" in p.text]
    assert 20 < len(forged) < 100


def test_a_world_is_the_same_in_another_process():
    program = (
        "import hashlib; from turnwise.envs.search.encyclopedia import Pages;"
        "from turnwise.envs.search.graph import WorldGraph, WorldSpec;"
        f"print(hashlib.sha256(repr(list(Pages(WorldGraph(WorldSpec(**{SPEC.model_dump()!r}))))).encode()).hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                          env={"PYTHONHASHSEED": "7", "PATH": ""})  # fmt: skip
    here = hashlib.sha256(repr(list(Pages(WorldGraph(SPEC)))).encode()).hexdigest()
    assert done.stdout.strip() == here


def test_other_seeds_are_other_worlds(passages):
    other = {p.title for p in Pages(WorldGraph(SPEC.model_copy(update={"seed": "other"})))}
    assert len(other & {p.title for p in passages}) < 0.05 * len(passages)


def test_a_village_tells_its_facts_and_old_pages_are_marked():
    made = village(VillageSpec(seed="v", people=10, facts=(3, 1), outdated=0.5))
    assert 10 < len(made.passages) < 20
    for person, position in made.position.items():
        page = made.passages[position]
        assert page.title == made.names[person]
        assert sorted(page.text.split(" , ")) == sorted(f"{r} {v}" for r, v in made.facts[person].items())
        assert sum(r in TO_PEOPLE for r in made.facts[person]) == 3
    assert {p.kind for p in made.passages if p.title.endswith(" old")} == {"old"}
