"""What the pages say, who may see them, and that nothing in a log acts on the reader."""

import asyncio
import base64
import hashlib
import html
import json
import re
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import quote

import places as made
import pytest
from filelock import FileLock

from turnwise.agents.log.episodes import LOG_NAME, load_episodes
from turnwise.trainers.report.page import write_report
from turnwise.trainers.view.index import LogIndex
from turnwise.trainers.view.pages import grouped
from turnwise.trainers.view.places import ViewedPlace
from turnwise.trainers.view.run import run_shown
from turnwise.trainers.view.server import ViewServer
from turnwise.trainers.view.told import tokenizer_of

ODD = f"odd {made.HOSTILE[:8]} name"


class Tags(HTMLParser):
    """What a page would run or load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        given = dict(attrs)
        if tag == "script":
            self.scripts.append(given.get("src") or "inline")
        self.addresses += [
            given[name] or "" for name in ("href", "src", "action", "formaction") if name in given
        ]
        self.handlers += [name for name, _ in attrs if name.startswith("on") or name == "style"]


def pages_of(site) -> list[str]:
    run, first, second, odd = (site.place(name) for name in ("nested/trained", "first", "second", ODD))
    both = f"source={first[3:]}&source={second[3:]}"
    return [
        "/", "/help", "/what-ifs", "/?words=shop", run, first, odd, site.place("shop-short.json"), f"{run}/episodes",
        f"{odd}/episodes", f"{run}/e/1", f"{run}/e/1?rules=1", f"{run}/e/1/what-if?turn=1", f"{odd}/e/1", f"{odd}/e/2",
        f"{odd}/e/1?rules=1", f"{odd}/e/1/what-if?turn=1", f"{site.place('branched')}/e/1", f"/side?{both}", f"{odd}/export", f"{run}/export",
    ]  # fmt: skip


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", " ", page))


def test_branches_stand_under_the_turn_that_they_go_on_from(site):
    page = site.get(f"{site.place('branched')}/e/1")
    tree = page[page.index('<nav class="tree"') : page.index("</nav>", page.index('<nav class="tree"'))]
    said = " ".join(text_of(tree).split())
    first, rest = said.index("called by 1"), said.index("after 1")
    assert first < rest
    assert tree.count("<ol>") == tree.count("</ol>") == 3
    assert re.findall(r'href="#turn-(\d+)"', tree)[:4] == ["1", "2", "4", "5"]
    beside = [" ".join(text_of(found).split()) for found in re.findall(r'<p class="branch">.*?</p>', page)]
    assert beside == ["called by 1", "after 1", "after 1"], (
        "what stands beside a turn says what the tree says"
    )


def test_the_first_page_lists_what_the_folders_hold(site):
    said = text_of(site.get("/"))
    assert all(name in said for name in ("nested/trained", "first", "second", "shop-short.json", "shop/easy"))
    assert "scripted:demonstrator" in said
    assert "3 of 5" in re.sub(r"\s+", " ", said)
    assert "nested/trained" not in text_of(site.get("/?words=demonstrator"))


@pytest.mark.slow
def test_every_page_keeps_to_its_policy(site):
    """No inline script or style, nothing from elsewhere, whatever the log says."""
    for path in pages_of(site):
        answer = site.ask(path)
        assert answer.status == 200, (path, answer.text)
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        tags = Tags(answer.text)
        exported = path.endswith("export")
        assert tags.scripts == (["inline"] if exported else ["/view.js"]), path
        assert tags.handlers == [], path
        assert ("style" in tags.tags) == exported
        for address in tags.addresses:
            assert address.startswith(("/", "?", "#")) or address == "data:,", (path, address)
        assert "{{" not in answer.text.replace("{{ 7 * 7 }}", "")
        assert not {"\u202e", "\x1b"} & {*text_of(answer.text)}, path


def test_what_is_hostile_is_shown_as_text(site):
    said = text_of(site.get(f"{site.place(ODD)}/e/1"))
    assert said.count("document.title='taken'") > 10
    assert "⟨U+202E⟩gnp.exe" in said


def test_an_episode_is_told_turn_by_turn(site, folder):
    record = load_episodes(folder / "nested" / "trained").records[1]
    said = text_of(site.get(f"{site.place('nested/trained')}/e/2"))
    for turn in record.episode.trajectory.turns:
        assert str(turn.action)[:60] in said
    assert "−0.5" in said  # its advantage
    assert "3.0 %" in said  # of the second token
    assert "-3.5000" in said
    assert "entropy 0.25" in said
    assert str(record.episode.seed) in said


def test_entropies_of_tokens_are_shown_where_they_were_measured(site):
    place = site.place("nested/trained")
    with_them, without = (" ".join(text_of(site.get(f"{place}/e/{number}")).split()) for number in (9, 2))
    assert "entropy per token 1.438" in with_them  # the mean of 0.125 and 2.75
    assert "2.7500" in with_them
    assert "not measured" not in with_them
    assert "Entropies were not measured." in without
    assert "log.entropy: true" in without


def test_runs_fold_what_never_changed(site):
    page = site.get(site.place("nested/trained"))
    assert "1 that never changed" in page
    assert re.search(r"becoming less likely\s*<b>0</b>", page)
    assert page.count("<figure>") == 1  # entropy


@pytest.mark.parametrize(
    ("recipe", "shown"),
    [
        ("guide: []\nsource: []\njudge: none\ncredit: grpo\n", "credit"),
        ("guide: [hint]\nsource: []\njudge: {name: critic}\ncredit: grpo\n", "credit guide judge"),
        ("guide: []\nsource: []\njudge: none\nphases: [{name: a, updates: 2}, {name: b, updates: 1, set: {guide: [hint]}}]\n", "credit guide"),
        ("guide: []\nphases: [{name: a, updates: 3, set: {algorithm: dapo}}]\n", "credit guide judge source"),
        ("", "credit guide judge source"),
        ("phases: 3\njudge: [", "credit guide judge source"),
    ],
)  # fmt: skip
def test_what_parts_took_is_shown_of_those_that_the_recipe_uses(tmp_path, recipe, shown):
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.yaml").write_text(recipe)
    parts = ("credit", "guide", "judge", "source")
    rows = [
        {"update": n, "phase": "rl", "grad_norm": 1.0 + n, "guide_tokens": 0.0}
        | {f"{part}_seconds": 1e-6 * n for part in parts}
        for n in (1, 2, 3)
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    viewed = run_shown(ViewedPlace("0", "run", run, "run"), LogIndex(run / LOG_NAME, tmp_path / "cache"))
    expected = {"Gradient norm", *(f"{part.capitalize()} seconds" for part in shown.split())}
    assert {figure.title for figure in viewed.figures} == expected
    assert [one.title for one in viewed.constants] == ["Guide tokens"] * ("guide" in shown)
    reported = text_of(write_report(run).read_text("utf-8"))
    assert [part for part in parts if f"{part} seconds" in reported] == shown.split()


def test_a_run_that_is_written_is_live(site, folder):
    ended = site.until(site.place("first"), "40 episodes")
    assert "data-live" not in ended
    assert "so far" not in ended
    with FileLock(folder / "first" / ".lock"):
        written = site.get(site.place("first"))
        assert "data-live" in written
        assert "40 episodes so far" in written
        assert 'class="live"' in site.get("/")


def test_while_a_log_is_indexed_pages_say_how_far_and_count_no_episodes(
    served, folder, tmp_path, monkeypatch
):
    """Of what has ended, too: "0 episodes so far" reads as if none had been played."""

    async def never(server, index, waiting):
        await asyncio.sleep(3600)

    monkeypatch.setattr(ViewServer, "_bring_up", never)
    monkeypatch.setattr("turnwise.trainers.view.server._LONGER", 0.1)
    with served([folder], tmp_path / "cache") as site:
        run, first, second = (site.place(name) for name in ("nested/trained", "first", "second"))
        sizes = {
            path: (folder / path / "episodes.jsonl.zst").stat().st_size
            for path in ("nested/trained", "first", "second")
        }
        both = f"/side?source={first[3:]}&source={second[3:]}"
        expected = {
            run: sizes["nested/trained"], f"{run}/episodes": sizes["nested/trained"], first: sizes["first"],
            both: sizes["first"] + sizes["second"],
        }  # fmt: skip
        for path, size in expected.items():
            said = " ".join(text_of(site.get(path)).split())
            assert re.search(rf"Indexing the logs?: 0 of {grouped(size)} bytes", said), path
            assert "so far" not in said, path
            assert path.endswith("/episodes") or not re.search(r"\b0 episodes", said), path


def test_an_export_holds_the_selection_and_loads_nothing(site):
    page = site.get(f"{site.place('first')}/export?ended=solved")
    solved = [e for e in load_episodes(site.server.folders[0] / "first") if e.success]
    assert page.count('<details class="group"') == len(solved)
    for tag in ("style", "script"):  # the only ones that the file's own policy lets in
        (inside,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    for episode in solved:
        assert html.escape(episode.task.prompt[:60], quote=True).replace("&#x27;", "&#39;") in page


def test_the_size_of_an_export_is_told_before_it_is_made(site):
    """Within a fifth, of everything and of a part; where nothing is found there is nothing to export."""
    for name, query in (("first", ""), ("first", "?ended=solved"), ("nested/trained", "?update=1")):
        place = site.place(name)
        said = re.search(r"of about ([\d.]+) MB", text_of(site.get(f"{place}/episodes{query}")))
        assert said is not None
        assert float(said[1]) == pytest.approx(
            len(site.get(f"{place}/export{query}").encode()) / 1e6, rel=0.2
        )
    assert "of about" not in site.get(f"{site.place('first')}/episodes?task=none")


def test_two_evaluations_stand_side_by_side(site):
    first, second = site.place("first"), site.place("second")
    page = site.get(f"/side?source={first[3:]}&source={second[3:]}&show=all")
    task = re.search(r"task=([0-9a-f]{16})", page)
    assert task is not None
    both = site.get(f"/side?source={first[3:]}&source={second[3:]}&task={task[1]}")
    assert both.count('<section aria-label="') == 2
    shop = re.findall(r'<span class="peek">(.*?)</span>', both)
    assert (
        len({*shop}) > len(shop) / 2
    )  # a page of the shop begins as the one before: what follows that is shown


def test_the_side_of_a_task_that_was_played_several_times_counts_those_that_solved_it(served, tmp_path):
    for name in ("first", "second"):
        made.evaluation(tmp_path / "in" / name, "mix:gold=0.6,random=0.4", episodes=16, k=4)
    with served([tmp_path / "in"], tmp_path / "cache") as site:
        first, second = site.place("first"), site.place("second")
        page = site.get(f"/side?source={first[3:]}&source={second[3:]}&show=all")
    rows = [text_of(row) for row in re.findall("<tr data-row>.*?</tr>", page, re.DOTALL)]
    said = Counter(found for row in rows for found in re.findall(r"(\d+) of (\d+) solved", row))
    expected: Counter[tuple[str, str]] = Counter()
    for name in ("first", "second"):
        runs: dict[str, list[bool]] = {}
        for episode in load_episodes(tmp_path / "in" / name):
            runs.setdefault(episode.task.id, []).append(episode.success)
        expected.update((str(sum(won)), str(len(won))) for won in runs.values())
    assert said == expected
    assert any(0 < int(solved) < int(played) for solved, played in said)


def test_campaigns_have_a_page(site):
    said = text_of(site.get(site.place("shop-short.json")))
    assert "return_to_go" in said
    assert "A proof of the machinery" in said


@pytest.mark.slow
def test_a_comparison_is_a_page_as_soon_as_it_is_made(site):
    first, second = site.place("first"), site.place("second")
    said = text_of(site.until(f"/compare?source={first[3:]}&source={second[3:]}", "significant"))
    assert "McNemar" in said
    assert "won" in said


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/p/000000000000", 404),
        ("/p/..%2f..%2fetc%2fpasswd", 404),
        ("/../../etc/passwd", 404),
        ("/p/%2e%2e/e/1", 404),
        ("/what-ifs/nobody", 404),
        ("/compare", 400),
        ("/compare?source=x", 404),
        ("/side?source=x", 404),
    ],
)
def test_what_is_not_there_is_refused_in_words(site, path, status):
    answer = site.ask(path)
    assert answer.status == status
    assert 'role="alert"' in answer.text


@pytest.mark.parametrize(
    "asked",
    [
        "?sort=total;drop",
        "?turns_from=x",
        "?part=outcome&part_is=<&part_value=1",
        "?update=1e999",
        "?knob_is=OR",
    ],
)
def test_bad_filters_are_errors_that_say_so(site, asked):
    answer = site.ask(f"{site.place('first')}/episodes{asked}")
    assert answer.status == 400
    assert 'role="alert"' in answer.text


@pytest.mark.parametrize("path", ["/", "/style.css", "/view.js", "/p/000000000000", "/what-ifs"])
def test_whoever_lacks_the_token_sees_nothing(site, path):
    for cookie in (None, "", "wrong", "the-toke\u00f6"):
        sent = cookie if cookie is None else cookie.encode("utf-8").decode("latin-1")
        assert site.ask(path, cookie=sent).status == 401
    assert site.ask(f"{path}?token=wrong").status == 401


def test_the_address_of_the_terminal_leaves_a_cookie_that_scripts_cannot_read(site):
    answer = site.ask("/help?token=the-token&x=1", cookie=None)
    assert (answer.status, answer.headers["Location"]) == (303, "/help?x=1")
    assert {"HttpOnly", "SameSite=Strict"} <= {
        part.strip() for part in answer.headers["Set-Cookie"].split(";")
    }


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "localhost:1", ""])
def test_other_names_of_this_machine_are_turned_away(site, host):
    """A page that lets its own name point here (DNS rebinding) sends that name."""
    assert site.ask("/", Host=host).status == 421


def test_forms_of_other_sites_are_turned_away(site):
    where = f"{site.place('first')}/e/1/what-if"
    form = [("turn", "1"), ("policy", "scripted:gold")]
    before = site.server.jobs.all()
    right = [*form, ("csrf", site.server.guard.csrf)]
    assert site.ask(where, right, Origin="http://evil.example").status == 403
    assert site.ask(where, right, Origin="null").status == 403
    for wrong in (form, [*form, ("csrf", "")], [*form, ("csrf", "ö")], [*form, ("csrf", "0" * 64)]):
        assert site.ask(where, wrong).status == 403
    assert site.server.jobs.all() == before


def test_long_forms_are_refused(site):
    form = [
        ("csrf", site.server.guard.csrf),
        ("turn", "1"),
        ("policy", "nobody"),
        ("action", "x" * (2 << 20)),
    ]
    assert site.ask(f"{site.place('first')}/e/1/what-if", form).status == 413


def test_words_of_a_search_are_never_a_query(site):
    for words in ('"', "a OR b", "NEAR(", "said:x", "*", "x' OR 1=1 --", "-", "()", "\x00"):
        assert site.ask(f"{site.place('first')}/episodes?words={quote(words)}").status == 200


def test_rules_are_applied_to_the_group_of_the_log(site):
    """GRPO by hand on the group's returns, of an episode that is not the mean."""
    run = site.server.folders[0] / "nested" / "trained"
    records = [r for r in load_episodes(run).records if (r.update, r.group) == (1, 0)]
    returns = [r.episode.trajectory.total_reward for r in records]
    mean = sum(returns) / len(returns)
    std = (sum((x - mean) ** 2 for x in returns) / (len(returns) - 1)) ** 0.5
    member = max(range(len(returns)), key=lambda i: abs(returns[i] - mean))
    expected = (returns[member] - mean) / (std + 1e-6)
    assert expected
    page = site.get(f"{site.place('nested/trained')}/e/{member + 1}?rules=1")
    row = re.search(r'<th scope="row">grpo</th>.*?</tr>', page, re.DOTALL)
    assert row is not None
    said = text_of(row[0]).replace("−", "-").split()
    assert float(said[1]) == pytest.approx(expected, abs=6e-4)
    assert "vine needs fork_value" in re.sub(r"\s+", " ", text_of(page))


def test_places_are_found_and_links_are_not_followed(site, folder, tmp_path):
    (folder / "nested" / "elsewhere").symlink_to(tmp_path)
    made.evaluation(tmp_path / "secret", episodes=2)
    assert "secret" not in site.get("/")
    (folder / "nested" / "elsewhere").unlink()


def test_a_damaged_evaluation_is_listed_without_figures(site, folder):
    broken = folder / "broken"
    broken.mkdir()
    (broken / "evaluation.json").write_text(json.dumps({"suite": 3}))
    site.server._scanned = float("-inf")
    assert "not finished" in site.get("/")
    assert site.ask(site.place("broken")).status == 200


def test_the_tokeniser_of_a_programs_model_is_found(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "tokenizer.json").write_text("{}")
    folder = tmp_path / "evaluation"
    for policy in ("torch:{}", "command:python3 agent.py with torch:{}"):
        assert (
            tokenizer_of(folder, policy.format(tmp_path / "model")) == tmp_path / "model" / "tokenizer.json"
        )
    assert tokenizer_of(folder, "command:python3 agent.py") is None
