import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.agents.replay import replay
from turnwise.envs.messages import Image, Message, Messages
from turnwise.errors import TurnwiseError
from turnwise.tools.browser.chromium import require_chromium
from turnwise.trainers.report.episodes import group_view, visible
from turnwise.trainers.report.page import verdict, write_report
from turnwise.trainers.report.records import json_lines, read_run

HOSTILE = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">{{ 7 * 7 }}"


class Page(HTMLParser):
    """What a page holds: its tags, the addresses it would load, its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.text = ""
        self.source = path.read_text("utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset", "action", "data", "poster", "background"):
                self.addresses.append(value or "")
            if name.startswith("on"):
                self.handlers.append(name)

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="session")
def page(run_dir: Path) -> Page:
    return Page(write_report(run_dir))


def copied(run_dir: Path, tmp_path: Path, *names: str) -> Path:
    target = tmp_path / "run"
    target.mkdir()
    for name in names:
        shutil.copy(run_dir / name, target / name)
    return target


ALL = ("recipe.yaml", "objective.txt", "metrics.jsonl", "evaluations.jsonl", "episodes.jsonl.zst")


@pytest.mark.slow
def test_it_says_what_was_trained_and_whether_it_worked(run_dir, page):
    rows = [json.loads(line) for line in (run_dir / "evaluations.jsonl").read_text().splitlines()]
    sampled = [row for row in rows if row["mode"] == "sampled"]
    for row in rows:
        assert f"{100 * row['success']:.1f} %" in page.text
        low, high = row["success_interval"]
        assert f"{100 * low:.1f} … {100 * high:.1f} %" in page.text
    assert "Training raised held-out success on shop/quick." in page.text
    points = 100 * (sampled[1]["success"] - sampled[0]["success"])
    assert f"The difference is significant: {points:+.1f} points" in page.text
    for part in ("return_to_go", "quickstart", "Maximise the expected return", "12 warm start + 6 rl", "48"):
        assert part in page.text
    for title in ("Learning curve", "Entropy, nats per token", "KL to the reference", "engine gap"):
        assert title in page.text
    assert page.source.count("<svg") >= 8


def test_the_credit_viewer_shows_the_logged_numbers(run_dir, page):
    run = read_run(run_dir)
    assert len(run.samples) == 5
    assert {s.update for s in run.samples} >= {0, 5}
    for sample in run.samples:
        view = group_view(sample)
        assert view.rounds == max(len(r.episode.trajectory.turns) for r in sample.records)
        assert [s.total_reward for s in view.siblings] == sorted(
            (s.total_reward for s in view.siblings), reverse=True
        )
        for sibling in view.siblings:
            record = sample.records[sibling.number - 1]
            turns = record.episode.trajectory.turns
            assert sibling.turns[0].to_go == pytest.approx(sibling.total_reward)
            assert [t.advantage for t in sibling.turns] == list(record.given)
            for shown, turn in zip(sibling.turns, turns, strict=True):
                assert {c.name: c.value for c in shown.chips} == {n: v for n, v in turn.rewards.items() if v}
                assert shown.action in page.text
                assert 0 <= shown.share <= 1
        shares = [t.share for s in view.siblings for t in s.turns]
        assert max(shares) == pytest.approx(1) or not any(t.advantage for s in view.siblings for t in s.turns)


def test_the_sampled_group_is_the_one_whose_returns_differ_most(run_dir):
    everything: dict[tuple[int, int], list[float]] = {}
    for record in LogReader(run_dir / "episodes.jsonl.zst"):
        everything.setdefault((record.update, record.group), []).append(
            record.episode.trajectory.total_reward
        )
    for sample in read_run(run_dir).samples:
        rivals = [returns for (update, _), returns in everything.items() if update == sample.update]
        assert sample.spread == pytest.approx(max(_spread(returns) for returns in rivals))


def _spread(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5


def test_the_training_log_replays(run_dir):
    assert replay(run_dir / "episodes.jsonl.zst").ok


def test_it_loads_nothing_and_runs_nothing(page):
    outside = [a for a in page.addresses if a and not a.startswith(("data:", "#"))]
    assert not outside
    assert not re.search(r"@import|url\((?!#)", page.source)
    assert not re.search(r"https?://", page.source)
    assert not page.tags & {"script", "iframe", "object", "embed", "base", "form"}
    assert not page.handlers
    assert "default-src 'none'" in page.source


@pytest.fixture
def hostile_dir(run_dir, tmp_path) -> Path:
    """A run whose every text was written by someone who means harm."""
    target = copied(run_dir, tmp_path, *ALL).rename(tmp_path / "<b>run")
    (target / "recipe.yaml").write_text(f'suite: "{HOSTILE[:40]}"\nnote: |\n  </pre>{HOSTILE}\n')
    (target / "objective.txt").write_text(f"</pre>{HOSTILE}")
    with (target / "metrics.jsonl").open("a") as file:
        for update in (7, 8):
            file.write(json.dumps({"update": update, "phase": "rl", HOSTILE: update, "$\\frac{": 1}) + "\n")
    rows = [json.loads(line) for line in (target / "evaluations.jsonl").read_text().splitlines()]
    for row in rows:
        row["name"] = HOSTILE + row["name"]
    (target / "evaluations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    records = list(LogReader(target / "episodes.jsonl.zst"))
    (target / "episodes.jsonl.zst").unlink()
    with EpisodeLog(target / "episodes.jsonl.zst") as log:
        for record in records:
            log.append(_poisoned(record.episode), update=record.update, group=record.group)
    return target


def _poisoned(episode):
    image = Image(b"\x89PNG", 'image/svg+xml" onload="document.title=1')
    said = Messages((Message("user", f"\x1b]0;title\x07{HOSTILE}\u202egnp.\ud800", images=(image,)),))
    trajectory = episode.trajectory
    turns = tuple(
        replace(
            turn,
            observation=said,
            reply=turn.reply._replace(message=Message("assistant", f"</code>{HOSTILE}")),
        )
        for turn in trajectory.turns
    )
    return replace(episode, trajectories={"agent": replace(trajectory, turns=turns, final=said)})


@pytest.mark.slow
def test_hostile_text_stays_text(hostile_dir):
    page = Page(write_report(hostile_dir))
    assert not page.tags & {"script", "img"}
    assert not page.handlers
    assert HOSTILE in page.text  # shown as it was written, {{ 7 * 7 }} included
    assert "49" not in re.findall(r"onerror.{0,60}", page.text)[0]
    assert "␛]0;title␇" in page.text
    assert "⟨U+202E⟩" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\ud800-\udfff]", page.source)


def opened(path: Path, tmp_path: Path) -> tuple[str, str]:
    """The page's DOM as Chromium sees it, and what it wrote to its console."""
    done = subprocess.run(
        [require_chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-dev-shm-usage", "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}",
         "--dump-dom", path.resolve().as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


@pytest.mark.usefixtures("browser")
def test_chromium_opens_it_without_a_complaint(run_dir, page, tmp_path):
    dom, console = opened(run_dir / "report.html", tmp_path)
    assert console == ""
    assert "<title>quickstart – Turnwise run</title>" in dom
    assert dom.count("<svg") == page.source.count("<svg")


@pytest.mark.usefixtures("browser")
def test_chromium_runs_nothing_of_a_hostile_page(hostile_dir, tmp_path):
    dom, console = opened(write_report(hostile_dir), tmp_path)
    assert console == ""
    assert "<title>&lt;b&gt;run – Turnwise run</title>" in dom
    assert "<script" not in dom


@pytest.mark.slow
@pytest.mark.parametrize("missing", ALL)
def test_a_part_that_is_missing_is_left_out_and_named(run_dir, tmp_path, missing):
    target = copied(run_dir, tmp_path, *(name for name in ALL if name != missing))
    text = Page(write_report(target)).text
    assert (f"{missing} is missing" in text) == (missing != "objective.txt")


@pytest.mark.slow
def test_torn_ends_are_left_out_and_named(run_dir, tmp_path):
    target = copied(run_dir, tmp_path, *ALL)
    for name in ("metrics.jsonl", "evaluations.jsonl", "episodes.jsonl.zst"):
        data = (target / name).read_bytes()
        (target / name).write_bytes(data[:-20])
    text = Page(write_report(target)).text
    for name in ("metrics.jsonl", "evaluations.jsonl"):
        assert f"the last line of {name} is torn and was left out" in text
    assert "the torn end of episodes.jsonl.zst was left out" in text


@pytest.mark.slow
def test_damage_is_an_error_and_keeps_the_old_report(run_dir, tmp_path):
    target = copied(run_dir, tmp_path, *ALL)
    old = write_report(target).read_bytes()
    lines = (target / "metrics.jsonl").read_text().splitlines()
    (target / "metrics.jsonl").write_text("\n".join([lines[0], lines[1][:9], *lines[2:]]))
    with pytest.raises(TurnwiseError, match=r"metrics\.jsonl is damaged at line 2"):
        write_report(target)
    assert (target / "report.html").read_bytes() == old
    assert sorted(p.name for p in target.iterdir()) == sorted([*ALL, "report.html"])


def test_rows_end_at_line_feeds_alone(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"update":\r1}\r\n{"update": 2}\n')
    notes: list[str] = []
    assert [row["update"] for row in json_lines(path, notes)] == [1, 2]
    assert not notes


def test_no_run(tmp_path):
    with pytest.raises(TurnwiseError, match="no run directory"):
        write_report(tmp_path / "nothing")
    with pytest.raises(TurnwiseError, match="holds no run"):
        write_report(tmp_path)


def evaluated(tmp_path: Path, before: list[float], after: list[float], *, results: bool = True) -> Path:
    from turnwise.agents.evaluation.statistics import wilson

    rows = []
    for name, runs in (("warm start", before), ("after RL", after)):
        row = {
            "name": name, "mode": "sampled", "split": "test", "suite": "s", "episodes": len(runs),
            "success": sum(runs) / len(runs), "success_interval": list(wilson(sum(runs), len(runs))),
            "mean_score": 0.5, "outcomes": {"ok": len(runs)},
        }  # fmt: skip
        if results:
            row["results"] = {str(i): [x] for i, x in enumerate(runs)}
        rows.append(json.dumps(row))
    (tmp_path / "evaluations.jsonl").write_text("\n".join(rows) + "\n")
    return tmp_path


@pytest.mark.parametrize("results", [True, False])
@pytest.mark.parametrize(
    ("before", "after", "headline"),
    [
        ([0.0] * 60 + [1.0] * 40, [1.0] * 80 + [0.0] * 20, "Training raised held-out success on s."),
        ([1.0] * 80 + [0.0] * 20, [0.0] * 60 + [1.0] * 40, "Training lowered held-out success on s."),
        ([0.0, 1.0] * 50, [1.0] + [0.0, 1.0] * 49 + [0.0], "made no significant difference to held-out"),
    ],
)
def test_the_verdict_is_said_aloud(tmp_path, before, after, headline, results):
    said = verdict(read_run(evaluated(tmp_path, before, after, results=results)))
    assert headline in said.headline
    negation = " not" if "no significant" in headline else ""
    assert f"The difference is{negation} significant:" in said.detail
    assert ("McNemar" in said.detail) == results
    assert said.headline in Page(write_report(tmp_path)).text


def test_each_mode_is_compared_with_itself(tmp_path):
    from turnwise.agents.evaluation.statistics import wilson

    solved = {
        ("warm start", "sampled"): 20,
        ("warm start", "greedy"): 50,
        ("after RL", "sampled"): 80,
        ("after RL", "greedy"): 90,
    }
    rows = [
        {
            "name": name, "mode": mode, "split": "test", "suite": "s", "episodes": 100, "success": n / 100,
            "success_interval": list(wilson(n, 100)), "mean_score": 0.5, "outcomes": {"ok": 100},
        }
        for (name, mode), n in solved.items()
    ]  # fmt: skip
    path = tmp_path / "evaluations.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = verdict(read_run(tmp_path))
    assert "+60.0 points" in said.detail
    assert "sampled" in said.detail
    (greedy,) = said.others
    assert "+40.0 points" in greedy
    assert "greedy" in greedy
    assert "+40.0 points" in Page(write_report(tmp_path)).text
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:2]))
    assert verdict(read_run(tmp_path)) is None, "an interrupted run compares no policy's two modes"


@pytest.mark.parametrize("learned", [True, False])
def test_where_nothing_was_trained_no_training_is_judged(tmp_path, learned):
    evaluated(tmp_path, [0.0, 1.0] * 50, [1.0] + [0.0, 1.0] * 49 + [0.0])
    row = {"update": 1, "phase": "rl", "success": 0.5} | ({"grad_norm": 1.0} if learned else {})
    (tmp_path / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    headline = verdict(read_run(tmp_path)).headline
    assert ("Training made no significant difference" in headline) == learned
    assert ("Nothing was trained by reinforcement" in headline) == (not learned)
    assert ("docs/how-to/not-learning.md" in headline) == (not learned)


def test_failed_episodes_are_part_of_the_headline(tmp_path):
    evaluated(tmp_path, [0.0] * 60 + [1.0] * 40, [1.0] * 80 + [0.0] * 20)
    path = tmp_path / "evaluations.jsonl"
    first, last = map(json.loads, path.read_text().splitlines())
    cause = {
        "outcome": "env_error",
        "message": "ZeroDivisionError: division by zero",
        "place": "desk.py:34",
        "episodes": 30,
    }
    last |= {"episodes": 130, "outcomes": {"ok": 100, "env_error": 30}, "causes": [cause]}
    path.write_text(json.dumps(first) + "\n" + json.dumps(last) + "\n")
    said = verdict(read_run(tmp_path))
    assert "30 of 230 episodes failed and do not count" in said.headline
    text = Page(write_report(tmp_path)).text
    assert "30 × env_error at desk.py:34: ZeroDivisionError: division by zero" in text
    assert "61.5 … 84.6 %" in text, "success as a bound: 80 and 110 of 130"


def test_one_evaluation_is_no_verdict(tmp_path):
    evaluated(tmp_path, [1.0, 0.0], [1.0, 0.0])
    path = tmp_path / "evaluations.jsonl"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert verdict(read_run(tmp_path)) is None
    assert "Training raised" not in Page(write_report(tmp_path)).text


def test_long_text_is_cut_visibly():
    assert visible("x" * 7000).endswith("[… 1000 characters not shown]")
