"""Vague clues, sources that contradict each other, long pages, names of their own for each split, and further pages."""
# pyright: reportTypedDictNotRequiredAccess=false, reportArgumentType=false, reportCallIssue=false

import re

import pytest

from turnwise.envs.check.walks import walk
from turnwise.envs.messages import Message
from turnwise.envs.search.clues import clues_to
from turnwise.envs.search.encyclopedia import Pages
from turnwise.envs.search.env import SearchEnv
from turnwise.envs.search.graph import SOURCES, WEIGHTS, WorldGraph, WorldSpec
from turnwise.envs.search.vocabulary import WorldNames
from turnwise.tasks.core import Split, derive_rng
from turnwise.tools.core import ToolCall

SPEC = WorldSpec(seed="sources", passages=900, disputed=0.1, long=0.4)


@pytest.fixture(scope="module")
def pages():
    return Pages(WorldGraph(SPEC))


@pytest.fixture(scope="module")
def passages(pages):
    return list(pages)


def task_of(form, index=0, split=Split.TRAIN, **knobs):
    world = {"passages": 900, "worlds": 1, "disputed": 0.1, "long": 0.4, "hops": [1, 3], "turn_limit": 40}
    return SearchEnv.generate(derive_rng(form, index), split, **{**world, "forms": {form: 1}, **knobs})


# --- sources --------------------------------------------------------------------------------------


def test_the_weightiest_source_is_right_and_the_others_are_not(pages):
    graph = pages.graph
    assert len(graph.disputes) == 30
    for dispute, (entity, relation) in enumerate(graph.disputes):
        found = graph.reports_on(dispute)
        right = graph.target(entity, relation)
        best = max(found, key=lambda one: (WEIGHTS[one.source], one.year))
        assert best.value == right
        assert sum(one.value == right for one in found) == 1
        assert len({(one.source, one.year) for one in found}) == SOURCES
        assert all(one.year > one.value for one in found)
    many = [len({one.value for one in graph.reports_on(n)}) for n in range(len(graph.disputes))]
    assert 2 in many, "the wrong ones agree at times, so that counting them misleads"
    assert 3 in many


def test_a_disputed_fact_is_told_by_its_sources_alone(pages, passages):
    graph = pages.graph
    for dispute, (entity, relation) in enumerate(graph.disputes):
        right = str(graph.target(entity, relation))
        own = passages[pages.position(entity)].text
        assert "Accounts differ on the" in own
        assert not any(
            say.format(s=graph.name(entity), o=right) in own for say in relation.says.of(graph.spec.split)
        )
        for number, report in enumerate(graph.reports_on(dispute), start=dispute * SOURCES):
            page = passages[pages.report_position(number)]
            assert page.title == pages.report_title(number)
            assert (page.kind, page.date) == (report.source, report.year)
            assert str(report.value) in page.text
            assert graph.name(entity) in page.text


@pytest.mark.parametrize("form", ["disputed", "vague"])
def test_gold_reads_what_is_needed_and_a_rival_fails(form):
    for index in range(6):
        task = task_of(form, index)
        walked = walk(SearchEnv(), task, "gold")
        assert walked.success
        assert len(walked.steps) >= 2 * len(task.gold["evidence"])
        for rival in task.gold["rivals"]:
            env = SearchEnv()
            env.reset(options={"task": task})
            assert env.step(f"answer[{rival}]").info["end"] == "failed"


def test_the_rule_is_told_where_it_is_needed_and_nowhere_else():
    env = SearchEnv()
    with_sources, _ = env.reset(options={"task": task_of("disputed")})
    without, _ = env.reset(options={"task": task_of("chain", disputed=0.0)})
    assert "a register outweighs a newspaper" in str(with_sources)
    assert "register" not in str(without)


# --- clues ----------------------------------------------------------------------------------------


def test_clues_fit_one_thing_and_do_not_name_it(pages):
    graph, found = pages.graph, 0
    for entity in range(0, graph.size, 7):
        clues = clues_to(graph, derive_rng("clues", entity), entity)
        if clues is None:
            continue
        found += 1
        fits = clues[0].fits.copy()
        for clue in clues:
            fits &= clue.fits
            assert graph.name(entity) not in clue.text
        assert fits.sum() == 1
        assert fits[entity - graph.first[graph.kind(entity)]]
    assert found > 40


def test_a_vague_question_names_no_page_that_one_must_read():
    for index in range(10):
        task = task_of("vague", index)
        *related, _ = task.gold["entities"]
        assert not any(f" {names[0]} " in f" {task.prompt} " for names in related)


# --- pages ----------------------------------------------------------------------------------------


def test_long_pages_have_tables_of_what_is_told(pages, passages):
    graph = pages.graph
    tables = [page for page in passages if "\n| " in page.text]
    assert tables
    assert max(len(page.text) for page in passages) > 1200
    for page in tables:
        for name, year in re.findall(r"^\| (.+?) \| (\d{4}) \|", page.text, re.MULTILINE):
            entity = next(e for e in range(graph.size) if graph.title(e) == name)
            assert any(str(graph.target(entity, r)) == year for r in _years(graph, entity))


def _years(graph, entity):
    from turnwise.envs.search.schema import YEAR, schema

    return [r for r in schema().of_kind[graph.kind(entity)] if r.target == YEAR and graph.told(entity, r)]


# --- names ----------------------------------------------------------------------------------------


def test_no_name_of_a_test_world_stands_in_a_training_world():
    def called(part):
        names = WorldNames(derive_rng("names", part), 4000, part)
        return {names.word(n) for n in range(50_000)} | {names.person(n) for n in range(4000)}

    train, dev, test = (called(part) for part in ("train", "dev", "test"))
    assert not train & test
    assert not train & dev
    assert not dev & test
    assert all(re.fullmatch(r"[A-Z][a-z]+(?:[ -](?:on-)?[A-Z][a-z]+)*", name) for name in train | test)


def test_worlds_of_splits_share_no_name():
    titles = {split: {p.title for p in Pages(WorldGraph(_spec(split)))} for split in Split}
    assert not titles[Split.TRAIN] & titles[Split.TEST]


def _spec(split):
    return WorldSpec(seed=split.value, passages=300, part=split.value)


# --- further pages of results -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        Message("assistant", "", (ToolCall("search", {"query": "year", "page": 2}, "a"),)),
        "search[year, page=2]",
        'search(query="year", page=2)',
        "Action: search[year, page=2]",
        '<tool_call>{"name": "search", "arguments": {"query": "year", "page": 2}}</tool_call>',
        "<search> year, page=2 </search>",
    ],
    ids=["native", "verb", "python", "labelled", "hermes", "tags"],
)
def test_the_next_page_is_reached_in_every_way_of_acting(said):
    env = SearchEnv()
    env.reset(options={"task": task_of("chain")})
    first = str(env.step("search[year]").observation)
    assert "(page=2 shows more)" in first
    assert "Results 6 to 10 of" in str(env.step(said).observation)
    assert env.state.first == 5


def test_filters_page_and_keep_a_kind_and_years():
    env = SearchEnv()
    env.reset(options={"task": task_of("disputed")})
    said = str(env.step("filter[flood, kind=newspaper, since=1951, until=1959, page=1]").observation)
    years = [int(year) for year in re.findall(r"\(newspaper, (\d{4})\)", said)]
    assert years
    assert all(1951 <= year <= 1959 for year in years)


def test_tools_are_offered_where_they_live():
    env = SearchEnv()
    env.reset(options={"task": task_of("chain")})
    assert "semantic_search" not in {one.spec.name for one in env.tools}
    start = env.snapshot()
    env.reset(options={"task": task_of("chain", semantic="hashing")})
    assert "semantic_search" in {one.spec.name for one in env.tools}
    env.restore(start)
    assert "semantic_search" not in {one.spec.name for one in env.tools}
